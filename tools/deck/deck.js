// Show a slide at the largest size, up to its own, at which all of it fits: tables and texts differ between machines.
const WIDTH = 1280, HEIGHT = 720, FIGURE = 600;

function fit(slide) {
  let box = slide.querySelector(":scope > .fit");
  if (!box) {
    box = document.createElement("div");
    box.className = "fit";
    box.append(...slide.childNodes);
    slide.append(box);
    for (const image of box.querySelectorAll("img"))
      image.style.width = `${Math.min(WIDTH, FIGURE * image.naturalWidth / image.naturalHeight)}px`;
  }
  let scale = 1;
  for (let round = 0; round < 6; round++) {
    box.style.zoom = scale;
    const high = box.scrollHeight * scale, wide = box.scrollWidth * scale;
    if (high <= HEIGHT + 1 && wide <= slide.clientWidth + 1) break;
    scale *= Math.min(0.98, Math.sqrt(HEIGHT / high), slide.clientWidth / wide);
  }
}

const leaves = () => [...document.querySelectorAll(".slides section")].filter(s => !s.querySelector("section"));

// Set when the deck can be shown: everything in it has its size then.
window.ready = Reveal.initialize({
  width: WIDTH, height: HEIGHT, margin: 0.05, center: false, hash: true, transition: "none",
  slideNumber: "c/t", controls: false, pdfSeparateFragments: false, viewDistance: 1000, mobileViewDistance: 1000,
}).then(() => {
  const current = () => fit(Reveal.getCurrentSlide());
  Reveal.on("slidechanged", current);
  Reveal.on("pdf-ready", () => leaves().forEach(fit));
  document.addEventListener("toggle", current, true);
  return Promise.all([...document.images].map(image => image.decode())).then(current);
});
