"""The command line: python -m tutorial_helpers doctor | list | run."""

import ast
import logging
import sys
from importlib.util import find_spec
from pathlib import Path

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Look at this machine, list the notebooks, or run them."""


@main.command()
def doctor():
    """Say what this machine is, and what on it changes results."""
    from . import doctor

    click.echo(str(doctor()))


folder_option = click.option("--folder", default="notebooks", show_default=True, type=click.Path(path_type=Path),
                             help="Where the notebooks are.")


def chosen_pages(folder, only):
    """The notebooks asked for, each name being the start of a file's name."""
    from .collection import pages

    there = pages(folder)
    if not there:
        raise click.ClickException(f"{folder} holds no notebooks: name their folder with --folder.")
    for name in only:
        if not any(page.name.startswith(name) for page in there):
            names = ", ".join(page.name for page in there)
            raise click.ClickException(f"No notebook starts with {name!r}; there are {names}.")
    return pages(folder, only)


@main.command(name="list")
@folder_option
def list_pages(folder):
    """List the notebooks with their minutes."""
    for page in chosen_pages(folder, ()):
        minutes = f"{page.minutes} min" if page.minutes else ""
        click.echo(f"{page.name:<36} {minutes:>7}  {page.title}")


def parsed(value):
    """A parameter's value: a Python literal, true or false, else the text itself."""
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def known_parameters(pages, parameters):
    """Which of the parameters each notebook has; refuses a name that none of them has."""
    from .collection import parameters_of

    if not parameters:
        return {page: {} for page in pages}
    names = {page: parameters_of(page) for page in pages}
    offered = sorted(set().union(*names.values()))
    for name in parameters:
        if name not in offered:
            there = ", ".join(offered) or "none"
            raise click.ClickException(f"No chosen notebook has a parameter {name!r}; there are {there}.")
    return {page: {name: value for name, value in parameters.items() if name in names[page]} for page in pages}


@main.command()
@click.argument("only", nargs=-1)
@click.option("-p", "--parameter", "parameters", nargs=2, multiple=True, metavar="NAME VALUE",
              help="Set a notebook's parameter; may be repeated.")
@folder_option
@click.option("--out", default="build/run", show_default=True, type=click.Path(path_type=Path),
              help="Where the executed notebooks go.")
@click.option("--timeout", default=600, show_default=True, help="Seconds that one cell may take.")
def run(only, parameters, folder, out, timeout):
    """Run the notebooks (ONLY: the ones whose names start so, as in 02), one after the other.

    A notebook that fails does not stop the others; it is named at the end, and the exit status is 1.
    """
    missing = [name for name in ("papermill", "nbclient") if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"Running needs {' and '.join(missing)}: pip install papermill.")
    from .collection import run_page

    chosen = chosen_pages(folder, only)
    settings = known_parameters(chosen, {name: parsed(value) for name, value in parameters})
    logging.getLogger("papermill").setLevel(logging.CRITICAL)
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    for page in chosen:
        result = run_page(page, out, settings[page], timeout)
        click.echo(str(result))
        if result.error:
            failed.append(page.name)
    if failed:
        click.echo(f"{len(failed)} of {len(chosen)} notebooks failed: {', '.join(failed)}. See {out}.", err=True)
        sys.exit(1)
    click.echo(f"All {len(chosen)} notebooks ran to the end. The results are in {out}.")


if __name__ == "__main__":
    main(prog_name="python -m tutorial_helpers")
