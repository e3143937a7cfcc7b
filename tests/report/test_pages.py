"""The report in a browser: opens from disk, asks for nothing, fits a phone, readable in light and dark."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tutorial_helpers.report import charts, comparing, site
from tutorial_helpers.report.html import write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"desktop": 1280, "phone": 360}

# The contrast of every piece of text with what is painted behind it (WCAG 2.2, 1.4.3), the worst first.
CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { const v = c.map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
                       return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
                        if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const a = light(parse(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
    found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.className + ' ' + e.textContent.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0])[0];
}"""
# By how many pixels any text of a figure leaves its frame.
STICKS_OUT = """() => Math.max(0, ...[...document.querySelectorAll('.chart')].flatMap(chart => {
  const frame = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('.plot *')].map(e => e.getBoundingClientRect()).filter(box => box.width).map(
    box => Math.max(box.right - frame.right, frame.left - box.left));
}))"""


@pytest.fixture(scope="module")
def site_folder(made):
    """The report, with a comparison beside it."""
    own = json.loads((made.out / "measurements.json").read_text(encoding="utf-8"))
    other = json.loads((made.out / "measurements.json").read_text(encoding="utf-8"))
    other["label"], other["size"], other["claims"][0]["verdict"] = "Other", "standard", "does not hold"
    paths = [made.out / "a.json", made.out / "b.json"]
    for path, data in zip(paths, (own, other), strict=True):
        path.write_text(json.dumps(data), encoding="utf-8")
    site.write_comparison(comparing.side_by_side(paths), made.out)
    return made.out


@pytest.fixture(scope="module")
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright is not installed: pip install playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as tools:
        if path is None and not Path(tools.chromium.executable_path).exists():
            pytest.skip("no Chromium here: sudo apt-get install chromium")
        browser = tools.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_open_from_disk_and_fit(chromium, site_folder, width, scheme):
    context = chromium.new_context(viewport={"width": WIDTHS[width], "height": 900}, color_scheme=scheme, offline=True)
    asked, errors = [], []
    for name in ("index.html", "compare.html", "notebooks/02_fall.html"):
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto((site_folder / name).as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width], f"{name} scrolls sideways"
        assert page.evaluate(STICKS_OUT) <= 0, f"a figure of {name} sticks out"
        ratio, text = page.evaluate(CONTRAST)
        assert ratio >= 4.5, f"{name}: {text!r} has a contrast of {ratio:.2f} only"
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", dark))) < 200) is (scheme == "dark")
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == [] and errors == []


def test_figures_have_alt_text_and_a_table_of_the_same_numbers(chromium, site_folder):
    page = chromium.new_page()
    page.goto((site_folder / "index.html").as_uri())
    figures = page.locator("figure").all()
    assert len(figures) == 2
    for figure in figures:
        alt = figure.get_by_role("img").get_attribute("aria-label")
        cells = figure.locator("details td, details tbody th").all_text_contents()
        values = [text.split()[0] for text in figure.locator(".row .value").all_text_contents() if text.strip()]
        assert len(alt) > 60 and values
        assert all(any(cell.startswith(value) for cell in cells) and value in alt for value in values)
    page.close()


def test_the_first_page_says_what_it_is_for(site_folder, made):
    text = (site_folder / "index.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<li id="S\d\d">', text)) == 28
    for piece in ("A factor of ", "division by zero", "not judged", "Its notebook, 03_bad, failed", "side = 40"):
        assert piece in text
    assert "<script" not in text and "&lt;script&gt;alert" in text and 'href="https://example.org/x"' in text
    assert "parameter &#39;sise&#39;" in text


def test_every_link_leads_somewhere(site_folder):
    for name in ("index.html", "compare.html", *(f"notebooks/{path.name}" for path in
                                                 (site_folder / "notebooks").glob("*.html"))):
        text = (site_folder / name).read_text(encoding="utf-8")
        for link in re.findall(r'href="([^"]+)"', text):
            if link.startswith(("http", "data:")):
                continue
            path, _, fragment = link.partition("#")
            target = (site_folder / name).parent / path if path else site_folder / name
            assert target.exists(), f"{name} links to {link}"
            assert not fragment or f'id="{fragment}"' in target.read_text(encoding="utf-8"), f"{name} links to {link}"


def test_a_notebook_as_a_page(site_folder):
    text = (site_folder / "notebooks" / "02_fall.html").read_text(encoding="utf-8")
    assert "<title>Fall of a number</title>" in text
    assert 'href="01_rungs.html"' in text and "badge.svg" not in text and "cdn" not in text
    assert re.findall(r"<img(?![^>]*\balt=)", text) == []
    assert "ZeroDivisionError" in (site_folder / "notebooks" / "03_bad.html").read_text(encoding="utf-8")


def test_controls_without_a_kernel_show_the_text_that_stands_for_them(tmp_path):
    import nbformat

    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "Controls, live in a notebook"}
    cell = nbformat.v4.new_code_cell("explore()", execution_count=1, outputs=[
        nbformat.v4.new_output("display_data", data=view)])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    write_page(tmp_path / "a.ipynb")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Controls, live in a notebook" in text and "<script" not in text and 'id="in-1"' in text


def test_an_axis_places_what_it_names():
    axis = charts.Axis([1e-6, 1e-3], charts.duration)
    assert 0 < axis.at(1e-6) < axis.at(1e-5) < axis.at(1e-3) < 100
    assert [tick["label"] for tick in axis.ticks] == ["1 µs", "10 µs", "100 µs", "1 ms"]
    assert axis.at(1e-5) - axis.at(1e-6) == pytest.approx(axis.at(1e-4) - axis.at(1e-5), abs=0.1)
    close = charts.Axis([1.0, 1.01], str)
    assert close.at(1.01) - close.at(1.0) < 3, "what is close looks close"
    assert all(len(charts.Axis([1, 10.0**n], str).ticks) <= 7 for n in range(1, 12))
