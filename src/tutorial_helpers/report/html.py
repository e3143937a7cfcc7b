"""Pages that open from disk and ask nothing of the network: the frame they share, and executed notebooks in it."""

import functools
import re
from pathlib import Path

from ..files import write_whole

_FOLDER = Path(__file__).with_name("templates")


@functools.cache
def environment():
    """The templates. Everything that a measurements file or a notebook says is escaped."""
    import jinja2

    made = jinja2.Environment(loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    made.globals["style"] = (_FOLDER / "style.css").read_text(encoding="utf-8")
    return made


def render(template, path, **context):
    """Write a page from one of the templates."""
    write_whole(path, environment().get_template(template).render(**context))


def write_page(notebook_path):
    """Write an executed notebook as a page beside it."""
    import nbformat
    from markupsafe import Markup

    if not notebook_path.exists():
        return
    notebook = nbformat.read(notebook_path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _for_disk(cell.source)
        for output in cell.get("outputs", ()):
            _keep_readable(output)
    body, _ = _exporter().from_notebook_node(notebook)
    title = next(iter(re.findall(r"^# (.+)$", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)),
                 notebook_path.stem)
    render("notebook.html.j2", notebook_path.with_suffix(".html"), title=re.sub(r"[`*]", "", title),
           body=Markup(body))  # a notebook's own HTML is meant to be shown


def anchor(cell):
    """Where a page shows the cell with this number."""
    return f"#in-{cell}" if cell else ""


def _for_disk(source):
    """Markdown without pictures from elsewhere, and with links to the notebooks' pages."""
    source = re.sub(r"!\[([^\]]*)\]\(https?://[^)]*\)", r"\1", source)
    return re.sub(r"\]\(((?:\./)?\d\d_\w+)\.ipynb(#[^)]*)?\)", r"](\1.html\2)", source)


def _keep_readable(output):
    """Show controls that need a kernel as the text that stands for them."""
    data = output.get("data", {})
    if "application/vnd.jupyter.widget-view+json" in data:
        del data["application/vnd.jupyter.widget-view+json"]


def _exporter():
    from nbconvert import HTMLExporter

    nothing = dict.fromkeys(("require_js_url", "mathjax_url", "jquery_url", "jupyter_widgets_base_url"), "")
    exporter = HTMLExporter(template_name="basic", extra_template_basedirs=[str(_FOLDER)], exclude_output_prompt=True,
                            exclude_anchor_links=True, **nothing)
    exporter.raw_template = (_FOLDER / "cells.html.j2").read_text(encoding="utf-8")
    return exporter
