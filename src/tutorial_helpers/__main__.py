"""The command line: python -m tutorial_helpers doctor | list | exercises | run | report."""

import sys

import click

from .report.command import chosen_pages, folder_option, report, run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Look at this machine, list the notebooks, run them, or build a report from them."""


@main.command()
@click.option("--trial", is_flag=True, help="Also check what a course needs, and run the first page at its quick size.")
@folder_option
def doctor(trial, folder):
    """Say what this machine is, and what on it changes results.

    With --trial the last line is "ready", or "not ready:" and what to do; the exit status is 0 or 1.
    """
    from . import doctor, readiness

    click.echo(str(doctor()))
    if trial:
        sys.exit(readiness.check_up(folder))


@main.command(name="list")
@folder_option
def list_pages(folder):
    """List the notebooks with their minutes."""
    for page in chosen_pages(folder, ()):
        minutes = f"{page.minutes} min" if page.minutes else ""
        click.echo(f"{page.name:<36} {minutes:>7}  {page.title}")


main.add_command(report)
main.add_command(run)


@main.command()
@click.argument("only", nargs=-1)
def exercises(only):
    """List the exercises (ONLY: of these notebooks, as in 02): notebook, level, state, title."""
    from .exercises import LEVELS, PAGES
    from .learner import folder, states
    from .results import times

    rows = [row for row in states() if not only or row[0].id.startswith(only)]
    if not rows:
        raise click.ClickException(f"No exercise starts with {' or '.join(only)}; notebooks: {', '.join(PAGES)}.")
    for each, state, entry in rows:
        mark = {"done": "✓ done", "tried": "… tried", "open": "· open"}[state]
        best = f" ({times(entry['speedup'][0])} as fast)" if entry and entry["speedup"] else ""
        seen = " (solution seen)" if entry and entry["solution"] else ""
        click.echo(f"{each.id:<6} {PAGES.get(each.page, ''):<22} {LEVELS[each.level]:<15} {mark:<8} "
                   f"{each.title}{best}{seen}")
    done = sum(state == "done" for _, state, _ in rows)
    click.echo(f"{done} of {len(rows)} done. Your progress is kept in {folder()}.")


if __name__ == "__main__":
    main(prog_name="python -m tutorial_helpers")
