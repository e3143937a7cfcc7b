"""make slides: what the tags choose, and a deck in Chromium that fetches nothing and fits on every slide."""

import re
import shutil

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright

import pages
import slides

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTH, HEIGHT = 1280, 720
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FIGURE = f'<img alt="A finding" width="760" src="data:image/png;base64,{PIXEL}">'


def code(source, output=None, tags=()):
    """A code cell with at most one output: HTML, or text."""
    cell = new_code_cell(source, metadata={"tags": list(tags)})
    if output:
        kind = "text/html" if output.startswith("<") else "text/plain"
        cell.outputs = [new_output("display_data", {kind: output})]
    return cell


def text(source, *tags):
    return new_markdown_cell(source, metadata={"tags": list(tags)})


def page(*cells):
    return new_notebook(cells=[text("# A page\n\n[![Badge](https://example.org/x.svg)](https://example.org)\n\n"
                                    "**Minutes** 5", "slide"), *cells])


def test_tags_choose_the_cells():
    html = slides.deck(page(
        text("## 1. Section"), text("left out"), text("A question?", "slide"), code("x = 1", tags=["fragment"]),
        code("hidden()", "shown", ["fragment"]), code("kept()", "as well", ["fragment", "with-code"]),
        code("not_there()", "nor this")), "A page")
    body = html[html.index("<body>"):].split("<script>")[0]
    assert body.count('class="fragment"') == 3
    for there in ("A question?", '<p class="where">1. Section</p>', "shown", "kept", "as well", "<h1"):
        assert there in body, there
    for absent in ("left out", "hidden", "not_there", "nor this", "example.org", "without-code-"):
        assert absent not in body, absent
    assert re.search(r"<span[^>]*>x</span>", body), "a cell that shows nothing shows its code"


def test_the_clock_s_progress_line_stays_out():
    body = slides.deck(page(code("plot()", "Measured 6 cases in 4 s", ["slide"])), "A page")
    assert "Measured 6 cases" not in body


def test_a_deck_starts_with_a_slide():
    with pytest.raises(slides.click.ClickException, match="must be tagged slide"):
        slides.chosen(new_notebook(cells=[text("# A page", "fragment")]))


def test_headings_in_code_blocks_and_cells_are_none(tmp_path):
    assert slides.headings("```\n# no\n```\n## yes") == [(2, "yes")]
    cells = slides.chosen(page(text("## 2. Here"), code("# a comment", "out", ["slide"])))
    assert '<p class="where">2. Here</p>' in cells[1].source


def test_the_command(tmp_path):
    nbformat.write(page(code("plot()", FIGURE, ["slide"])), tmp_path / "07_stub.ipynb")
    run = CliRunner().invoke(slides.main, ["--folder", str(tmp_path), "--out", str(tmp_path / "out")])
    assert run.exit_code == 0 and "07_stub: 2 slides" in run.output
    assert '<a href="07_stub.html">07 · A page</a>' in (tmp_path / "out" / "index.html").read_text()
    nbformat.write(new_notebook(cells=[text("# A page")]), tmp_path / "08_none.ipynb")
    run = CliRunner().invoke(slides.main, ["08", "--folder", str(tmp_path), "--out", str(tmp_path / "out")])
    assert run.exit_code == 1 and run.output == "Error: 08_none has no cell tagged slide.\n"
    assert CliRunner().invoke(slides.main, ["99", "--folder", str(tmp_path)]).exit_code == 1


@pytest.mark.parametrize("source", pages.texts(), ids=lambda path: path.stem)
def test_every_page_has_a_deck_of_the_right_length(source):
    """8 to 15 slides, the title first, the recap last, verdicts among them; formulas would need a library."""
    notebook = pages.read_text(source)
    shown = [cell for cell in notebook.cells if {"slide", "fragment"} & slides.tags(cell)]
    assert 8 <= slides.count(notebook) <= 15
    assert shown[0] is notebook.cells[0]
    assert shown[-1].source.startswith("## Recap") and any("ledger(" in cell.source for cell in shown)
    assert not any(re.search(r"\$[^$]+\$", cell.source) for cell in shown if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def browser():
    if not BROWSER:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def shown(browser, tmp_path):
    """Open a deck from disk with the network off; the tab, what it asked for, and what it complained of."""
    tabs = []

    def show(html):
        (tmp_path / "deck.html").write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, offline=True)
        tab, asked, said = context.new_page(), [], []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto((tmp_path / "deck.html").as_uri())
        tab.evaluate("window.ready.then(() => true)")
        tabs.append(context)
        return tab, asked, said

    yield show
    for context in tabs:
        context.close()


def boxes(tab):
    """For each slide with everything on it: its scale, and whether all that is seen lies inside of the window."""
    for index in range(tab.evaluate("Reveal.getTotalSlides()")):
        tab.evaluate(f"Reveal.slide({index}, 0, 99)")
        yield tab.evaluate("""() => {
          const slide = Reveal.getCurrentSlide(), box = slide.querySelector(".fit");
          const parts = [...box.querySelectorAll("p, pre, li, h1, h2, h3, img, table, summary")]
            .map(part => part.getBoundingClientRect()).filter(part => part.width);
          const least = side => Math.min(...parts.map(part => part[side]));
          const most = side => Math.max(...parts.map(part => part[side]));
          return {scale: +box.style.zoom, inside: least("left") >= 0 && least("top") >= 0
                                                  && most("right") <= innerWidth && most("bottom") <= innerHeight};
        }""")


def test_a_built_page_in_the_browser(shown):
    """Page 02 as it is stored here: nothing is fetched, every slide fits and can be read, every figure is described."""
    path = next(path for path in pages.notebooks() if path.stem.startswith("02"))
    notebook = nbformat.read(path, as_version=4)
    tab, asked, said = shown(slides.deck(notebook, "NumPy vs JAX"))
    measured = list(boxes(tab))
    assert len(measured) == slides.count(notebook) >= 8
    for number, box in enumerate(measured, 1):
        assert box["inside"], f"slide {number} reaches out of the window"
        assert box["scale"] >= 0.5, f"slide {number} has too much on it"
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == [] and said == []
    images = tab.eval_on_selector_all(".slides img", "all => all.map(one => [one.alt, one.naturalWidth])")
    assert len(images) >= 3 and all(alt.strip() and width > 100 for alt, width in images)


def test_what_is_too_long_shrinks_and_an_answer_unfolds(shown):
    long = "## Long\n\n" + "\n".join(f"- line {number}" for number in range(25))
    fold = "## Fold\n\n<details><summary>Answer</summary>\n\n" + "word " * 400 + "\n\n</details>"
    tab, _, said = shown(slides.deck(page(text(long, "slide"), text(fold, "slide")), "A page"))
    title, shrunk, folded = boxes(tab)
    assert title["scale"] == folded["scale"] == 1 and 0.5 < shrunk["scale"] < 1 and shrunk["inside"]
    tab.click("section.present summary")
    tab.wait_for_function("+Reveal.getCurrentSlide().querySelector('.fit').style.zoom < 1")
    assert list(boxes(tab))[-1]["inside"] and said == []
