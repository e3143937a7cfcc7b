"""The command `report`, and `run`, which only runs."""

import ast
import logging
import sys
from importlib.util import find_spec
from pathlib import Path

import click

folder_option = click.option("--folder", default="notebooks", show_default=True, type=click.Path(path_type=Path),
                             help="Where the notebooks are.")
parameter_option = click.option("-p", "--parameter", "parameters", nargs=2, multiple=True, metavar="NAME VALUE",
                                help="Set a notebook's parameter; may be repeated.")
timeout_option = click.option("--timeout", default=600, show_default=True, help="Seconds that one cell may take.")


@click.command()
@click.argument("only", nargs=-1)
@click.option("--size", type=click.Choice(["quick", "standard", "large"]),
              help="How much work each measurement does [default: standard, or $TUTORIAL_HELPERS_SIZE].")
@parameter_option
@click.option("--resume", is_flag=True, help="Go on with an interrupted run: keep the notebooks that it finished.")
@click.option("--compare", is_flag=True, help="Set measurements.json files side by side instead: ONLY are the files, "
              "or names of samples; without any, this machine's report and all samples.")
@click.option("--samples", "list_samples", is_flag=True, help="List the measurements that come with the package.")
@click.option("--label", help="What to call this machine in comparisons [default: processor, cores, JAX].")
@folder_option
@click.option("--out", default="build/report", show_default=True, type=click.Path(path_type=Path),
              help="Where the report goes.")
@timeout_option
def report(only, size, parameters, resume, compare, list_samples, label, folder, out, timeout):
    """Run the notebooks and build a report of what held on this machine.

    ONLY: the notebooks whose names start so, as in 02; all of them without it. A notebook that fails does not stop
    the others. The exit status is 0 when everything that was asked for was done, 1 when not, 130 after Ctrl-C.
    """
    if list_samples:
        return say_samples()
    if compare:
        return side_by_side(only, out)
    need("papermill", "nbconvert")
    from .. import machine
    from .running import Order, make_report

    everything, chosen = chosen_pages(folder, ()), chosen_pages(folder, only)
    try:
        order = Order(everything, chosen, out, size or machine.size().name, bool(size), parsed_all(parameters), resume,
                      timeout, label)
        sys.exit(make_report(order))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # a full disk, a folder that is read-only; what ran before is kept
        raise click.ClickException(f"{error.filename or out} cannot be written: {error.strerror}.") from error


@click.command()
@click.argument("only", nargs=-1)
@parameter_option
@folder_option
@click.option("--out", default="build/run", show_default=True, type=click.Path(path_type=Path),
              help="Where the executed notebooks go.")
@timeout_option
def run(only, parameters, folder, out, timeout):
    """Only run the notebooks (ONLY: the ones whose names start so, as in 02), one after the other.

    A notebook that fails does not stop the others; it is named at the end, and the exit status is 1.
    """
    need("papermill")
    from ..collection import run_page
    from .running import assign_parameters

    chosen = chosen_pages(folder, only)
    settings, problems = assign_parameters(chosen, parsed_all(parameters))
    for problem in problems:
        click.echo(problem, err=True)
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    for page in chosen:
        result = run_page(page, out, settings[page.name], timeout)
        click.echo(str(result))
        if result.error:
            failed.append(page.name)
    if failed:
        click.echo(f"{len(failed)} of {len(chosen)} notebooks failed: {', '.join(failed)}. See {out}.", err=True)
    else:
        click.echo(f"All {len(chosen)} notebooks ran to the end. The results are in {out}.")
    sys.exit(int(bool(failed or problems)))


def side_by_side(names, out):
    """Write compare.html and say where it is."""
    from . import comparing
    from .measurements import FormatError
    from .site import write_comparison

    need("jinja2", "jsonschema")
    try:
        files = comparing.chosen_files(names, out / "measurements.json")
        found = comparing.side_by_side(files)
    except FormatError as error:
        raise click.ClickException(str(error)) from error
    out.mkdir(parents=True, exist_ok=True)
    write_comparison(found, out)
    for warning in found["warnings"]:
        click.echo(f"- {warning}")
    click.echo(f"{len(files)} reports are side by side in {out / 'compare.html'}: open it in a browser.")


def say_samples():
    """One line for each sample: its short name and what it is."""
    from .measurements import read, samples

    for name, path in samples().items():
        data = read(path)
        click.echo(f"{name:<24} {data['label']} ({data['size']} size, {data['date'][:10]})")


def need(*modules):
    """Refuse, in one sentence, where a library is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"This needs {' and '.join(missing)}: pip install {' '.join(missing)}.")
    logging.getLogger("papermill").setLevel(logging.CRITICAL)
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)


def chosen_pages(folder, only):
    """The notebooks asked for, each name being the start of a file's name."""
    from ..collection import pages

    try:
        there = pages(folder)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if not there:
        raise click.ClickException(f"{folder} holds no notebooks: name their folder with --folder.")
    for name in only:
        if not any(page.name.startswith(name) for page in there):
            names = ", ".join(page.name for page in there)
            raise click.ClickException(f"No notebook starts with {name!r}; there are {names}.")
    return [page for page in there if not only or page.name.startswith(only)]


def parsed_all(parameters):
    """{name: value} of the -p options."""
    return {name: parsed(value) for name, value in parameters}


def parsed(value):
    """A parameter's value: a Python literal, true or false, else the text itself."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
