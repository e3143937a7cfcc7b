"""Make notebooks/NN_name.ipynb from notebooks/text/NN_name.md: convert, run in a fresh kernel, keep the outputs."""

import os
import sys
import tempfile
import time
from pathlib import Path

import click
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from tqdm import tqdm

import pages
from tutorial_helpers.collection import QUIET_KERNEL, PeakMemory

WIDGET = "application/vnd.jupyter.widget-view+json"
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python", "pygments_lexer": "ipython3",
            "nbconvert_exporter": "python"}
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def convert(text):
    """The source as an unexecuted notebook whose cell ids follow from their order."""
    notebook = pages.read_text(text)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index:03d}"
    return notebook


def execute(notebook, timeout, bar):
    """Run every cell in a fresh kernel, in an empty folder; the problems, such as files that it leaves there."""
    started = [0]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as held:
        client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", record_timing=False,
                                store_widget_state=False, resources={"metadata": {"path": folder}},
                                extra_arguments=QUIET_KERNEL, on_cell_executed=lambda **_: bar.update(),
                                on_cell_execute=lambda cell, cell_index: started.append(cell_index))
        try:
            # What whoever builds the pages guessed and solved does not belong in them.
            client.execute(env={**os.environ, "TUTORIAL_HELPERS_DATA": os.path.join(held, "progress")})
        except CellExecutionError as error:
            return [f"Cell {started[-1]} raised {error.ename}: {error.evalue}"]
        except (CellTimeoutError, DeadKernelError) as error:
            return [f"Cell {started[-1]}: {str(error).strip().splitlines()[0]}"]
        left = sorted(path.name for path in Path(folder).iterdir())
        return [f"The notebook leaves {', '.join(left)} behind: write to a temporary folder."] if left else []


def tidy(notebook):
    """Drop what changes with every run and tells a reader nothing."""
    notebook.metadata.language_info = nbformat.from_dict(LANGUAGE)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [with_one_picture(output) for output in map(without_widget, cell.outputs) if output]


def without_widget(output):
    """A stored widget is dead without its state: keep the picture beside it, if there is one."""
    if WIDGET not in output.get("data", {}):
        return output
    del output.data[WIDGET]
    return output if set(output.data) - {"text/plain"} else None


def with_one_picture(output):
    """A figure comes as PNG and as HTML. JupyterLab takes alt text from the HTML only, so that is the one to store."""
    data = output.get("data", {})
    if "image/png" in data and data["image/png"].strip() in data.get("text/html", ""):
        del data["image/png"]
        output.metadata.pop("image/png", None)
    return output


def build(text, timeout):
    """Build one page; the problems that kept it from being written."""
    notebook = convert(text)
    code_cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    start = time.perf_counter()
    with tqdm(total=code_cells, desc=text.stem, unit="cell", leave=False) as bar, PeakMemory() as memory:
        found = execute(notebook, timeout, bar)
    tidy(notebook)
    found = found or pages.problems(notebook)
    if not found:
        pages.write_notebook(notebook, pages.built(text))
        click.echo(f"{text.stem}: built in {time.perf_counter() - start:.0f} s, {memory.peak / 2**20:.0f} MiB at most")
    return found


@click.command(help=__doc__)
@click.argument("only", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Build every page, not only those whose text changed.")
@click.option("--timeout", default=120, show_default=True, help="Seconds that one cell may take.")
def main(only, everything, timeout):
    chosen = pages.texts(only=only)
    if not chosen:
        raise click.ClickException(f"notebooks/text has no page {' or '.join(only)}".rstrip() + ".")
    failed = []
    for text in chosen:
        if not everything and pages.in_step(text, pages.built(text)):
            click.echo(f"{text.stem}: up to date")
            continue
        found = build(text, timeout)
        for problem in found:
            click.echo(f"{text.stem}: {problem}", err=True)
        if found:
            failed.append(text.stem)
    if failed:
        click.echo(f"Not built: {', '.join(failed)}.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
