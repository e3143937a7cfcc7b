"""What the other tools and the tests share: where the pages are, how to read them, what a built page must not hold."""

import re
import tomllib
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 2**20  # bytes of one .ipynb
# A path of somebody's machine: it tells a reader nothing and differs on every build.
MACHINE_PATH = re.compile(
    r"/home/\w|/root/|/Users/\w|/tmp/\w|/var/folders/|site-packages|dist-packages|[A-Z]:\\\\?Users")

FIRST_CELL = """\
# Install the helpers when this notebook stands alone (Colab, Binder, an empty folder).
import importlib.util, os, subprocess, sys
if importlib.util.find_spec("tutorial_helpers") is None:
    source = os.environ.get("TUTORIAL_HELPERS_SOURCE", "{address}/archive/refs/tags/v{version}.zip")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", source], check=True)
from tutorial_helpers import prepare
prepare()"""
FIRST_CELL_START = FIRST_CELL.splitlines()[0]

# Words, not the services' pictures: opening a page must not ask another address for anything.
COLAB = "[Open in Colab]"
BINDER = "[Launch on Binder]"


def project(root=ROOT):
    """pyproject.toml's [project] table."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def address(root=ROOT):
    """The public address, from the one place that names it."""
    return project(root)["urls"]["Repository"]


def first_cell(root=ROOT):
    """The first cell of every page."""
    return FIRST_CELL.format(address=address(root), version=project(root)["version"])


def badges(stem, root=ROOT):
    """The badges line of the page called `stem`."""
    slug = address(root).removeprefix("https://github.com/")
    return (f"{COLAB}(https://colab.research.google.com/github/{slug}/blob/main/notebooks/{stem}.ipynb) · "
            f"{BINDER}(https://mybinder.org/v2/gh/{slug}/main?urlpath=lab/tree/notebooks/{stem}.ipynb)")


def texts(root=ROOT, only=()):
    """The pages' sources in order, or those whose name starts with one of `only`."""
    found = sorted((root / "notebooks" / "text").glob("[0-9][0-9]_*.md"))
    return [path for path in found if not only or path.stem.startswith(tuple(only))]


def notebooks(root=ROOT):
    """The built pages in order."""
    return sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def built(text):
    """Where the page made from this source belongs."""
    return text.parent.parent / f"{text.stem}.ipynb"


def read_text(path):
    """The source as a notebook without outputs."""
    return jupytext.read(path, fmt="md:myst")


def write_notebook(notebook, path):
    """Write in the one form that is committed, never leaving half a file."""
    scratch = path.with_suffix(".ipynb.part")
    scratch.write_text(nbformat.writes(notebook, version=4) + "\n", encoding="utf-8")
    scratch.replace(path)


def essence(notebook):
    """What text and .ipynb must agree on: each cell's kind, source and tags."""
    return [(cell.cell_type, cell.source.strip(), tuple(cell.metadata.get("tags", []))) for cell in notebook.cells]


def in_step(text, notebook_path):
    """Whether the built page exists, was run and agrees with its source."""
    if not notebook_path.exists():
        return False
    notebook = nbformat.read(notebook_path, as_version=4)
    return essence(read_text(text)) == essence(notebook) and all(
        cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def shown(output):
    """The text that an output stores, without pictures."""
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return "\n".join([output.ename, output.evalue, *output.traceback])
    return "\n".join(str(value) for kind, value in output.data.items() if not kind.startswith("image/"))


def problems(notebook):
    """Everything that a built page must not hold, one sentence each."""
    found = []
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        found.append("The cells were not run once each, from top to bottom.")
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            found += [f"Cell {index} {problem}" for problem in output_problems(output)]
    size = len(nbformat.writes(notebook, version=4).encode())
    if size > LARGEST:
        found.append(f"The notebook has {size / LARGEST:.1f} MiB; at most 1 MiB is allowed.")
    return found


def output_problems(output):
    """What is wrong with one stored output."""
    if output.output_type == "error":
        yield f"raised {output.ename}: {output.evalue}"
    elif output.output_type == "stream" and output.name == "stderr":
        yield f"wrote to stderr: {output.text.strip().splitlines()[0][:200]}"
    machine = MACHINE_PATH.search(shown(output))
    if machine:
        line = next(line for line in shown(output).splitlines() if machine.group() in line)
        yield f"shows a path of this machine: {line.strip()[:200]}"
    for kind in output.get("data", {}):
        if kind.startswith("image/") and not str(output.metadata.get(kind, {}).get("alt", "")).strip():
            yield f"has a figure ({kind}) without alt text"
    for image in re.findall(r"<img\b[^>]*", output.get("data", {}).get("text/html", "")):
        if not re.search(r"""\balt=(["'])\s*\S.*?\1""", image, re.DOTALL):
            yield "has a figure (<img>) without alt text"
