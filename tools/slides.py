"""Make build/slides: from each built notebook a deck that opens from disk, without a network.

A cell's tags say what becomes of it: `slide` puts it on a new slide, `fragment` on the slide before it, where it
appears at a click. Cells with neither tag stay out. Of a code cell a slide shows what it printed or drew; the code
stands there too when the cell is tagged `with-code`, or shows nothing.
"""

import copy
import html
import re
from pathlib import Path

import click
import nbformat
from nbconvert.exporters import SlidesExporter
from traitlets.config import Config

import pages

ROOT = pages.ROOT
DECK = Path(__file__).resolve().parent / "deck"
WITHOUT_CODE = "without-code"
BADGES = re.compile(r"^\[!\[.*\)\n?", re.MULTILINE)
PROGRESS = re.compile(r"Measured \d+ \w+ in \d+ s")  # what the clock leaves behind when it took a while
HEADING = re.compile(r"^(#{1,3}) +(.+?)\s*$", re.MULTILINE)


def tags(cell):
    """A cell's tags."""
    return set(cell.metadata.get("tags", []))


def headings(source):
    """(level, title) of the headings in a markdown cell, leaving code blocks out."""
    text = re.sub(r"^```.*?^```", "", source, flags=re.MULTILINE | re.DOTALL)
    return [(len(marks), title) for marks, title in HEADING.findall(text)]


def chosen(notebook):
    """The cells of the deck as nbconvert wants them: copies with a slide type, and a line that says where we are."""
    cells, path = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for level, title in headings(cell.source):
                path = {above: name for above, name in path.items() if above < level} | {level: title}
        kind = next((kind for kind in ("slide", "fragment") if kind in tags(cell)), None)
        if kind is None:
            continue
        if not cells and kind == "fragment":
            raise click.ClickException("The first cell of a deck must be tagged slide: there is nothing to add it to.")
        if kind == "slide" and not (cell.cell_type == "markdown" and cell.source.startswith("#")):
            cells.append(where(path))
            kind = "-"
        cells.append(prepared(cell, kind))
    return cells


def where(path):
    """A cell that starts a slide with the headings above it."""
    titles = " · ".join(html.escape(title) for level, title in sorted(path.items()) if level > 1)
    cell = nbformat.v4.new_markdown_cell(f'<p class="where">{titles}</p>')
    cell.metadata["slideshow"] = {"slide_type": "slide"}
    return cell


def prepared(cell, kind):
    """A copy of a cell with its slide type; of code only the outputs, unless they are missing or the code is wanted."""
    cell = copy.deepcopy(cell)
    cell.metadata["slideshow"] = {"slide_type": kind}
    if cell.cell_type == "markdown":
        cell.source = BADGES.sub("", cell.source)
        return cell
    cell.outputs = [output for output in cell.outputs
                    if not PROGRESS.fullmatch(output.get("data", {}).get("text/plain", ""))]
    if cell.outputs and "with-code" not in tags(cell):
        cell.metadata["tags"] = [*cell.metadata.get("tags", []), WITHOUT_CODE]
    return cell


def deck(notebook, title):
    """One page's deck as a single HTML text."""
    slides = nbformat.v4.new_notebook(metadata=notebook.metadata, cells=chosen(notebook))
    parts = {"title": title, "reveal_css": DECK / "reveal.js/reveal.css", "reveal_js": DECK / "reveal.js/reveal.js",
             "style": DECK / "deck.css", "script": DECK / "deck.js"}
    read = {name: part.read_text(encoding="utf-8") if isinstance(part, Path) else part for name, part in parts.items()}
    config = Config(TagRemovePreprocessor={"enabled": True, "remove_input_tags": {WITHOUT_CODE}})
    exporter = SlidesExporter(template_name="offline", extra_template_basedirs=[str(DECK)], config=config)
    return exporter.from_notebook_node(slides, resources={"deck": read})[0]


def count(notebook):
    """How many slides the tags make."""
    return sum("slide" in tags(cell) for cell in notebook.cells)


def index(titles):
    """A page that links to the decks: {file name: title}."""
    links = "\n".join(f'<li><a href="{name}">{html.escape(title)}</a></li>' for name, title in titles.items())
    return ('<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Slides</title>\n'
            f'<body style="font: 20px/1.5 system-ui, sans-serif; margin: 2em">\n<h1>Slides</h1>\n<ul>\n{links}\n</ul>\n'
            "<p>Space goes on, Shift + Space back, Esc shows all slides. For a PDF, add <code>?print-pdf</code> to a "
            "deck's address and print.</p>\n</body>\n</html>\n")


@click.command(help=__doc__)
@click.argument("only", nargs=-1)
@click.option("--folder", default=ROOT / "notebooks", type=click.Path(path_type=Path), help="The built notebooks.")
@click.option("--out", default=ROOT / "build" / "slides", type=click.Path(path_type=Path), help="Where the decks go.")
def main(only, folder, out):
    found = [path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb")) if not only or path.stem.startswith(only)]
    if not found:
        raise click.ClickException(f"{folder} has no notebook {' or '.join(only)}".rstrip() + ".")
    out.mkdir(parents=True, exist_ok=True)
    titles = {}
    for path in found:
        notebook = nbformat.read(path, as_version=4)
        if not count(notebook):
            raise click.ClickException(f"{path.stem} has no cell tagged slide.")
        title = next(title for cell in notebook.cells for level, title in headings(cell.source) if level == 1)
        (out / f"{path.stem}.html").write_text(deck(notebook, title), encoding="utf-8")
        titles[f"{path.stem}.html"] = f"{path.stem[:2]} · {title}"
        click.echo(f"{path.stem}: {count(notebook)} slides")
    (out / "index.html").write_text(index(titles), encoding="utf-8")
    click.echo(f"Open {out / 'index.html'} in a browser.")


if __name__ == "__main__":
    main()
