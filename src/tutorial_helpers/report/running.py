"""Run the notebooks one after the other, keep what ran, and build the report from it."""

import contextlib
import datetime
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import click

from .. import machine
from ..collection import parameters_of, run_page
from ..files import write_whole
from . import store
from .measurements import write
from .pace import Pace, expected_cells

INTERRUPTED = 130  # what a shell reports for a program that Ctrl-C ended


@dataclass
class Order:
    """What was asked for. pages: all there are; chosen: those to run; parameters: by name, for whichever has them."""

    pages: list
    chosen: list
    out: Path
    size: str
    size_named: bool = False  # a default that memory has no room for is worth a word, but is no failure
    parameters: dict = field(default_factory=dict)
    resume: bool = False
    timeout: int = 600
    label: str | None = None


def make_report(order):
    """Run, build, say what happened; returns the exit status."""
    (order.out / "notebooks").mkdir(parents=True, exist_ok=True)
    small, (wanted, problems) = list(check_size(order.size)), assign_parameters(order.chosen, order.parameters)
    for sentence in small + problems:
        click.echo(sentence, err=True)
    problems += small if order.size_named else []
    wanted = {page.name: store.settings(order.size, wanted[page.name]) for page in order.chosen}
    run_id, waiting = what_to_run(order, wanted)
    interrupted = False
    try:
        run_all(order, waiting, wanted, run_id)
    except KeyboardInterrupt:
        interrupted = True
    return finish(order, wanted, problems, run_id if interrupted else None)


def check_size(size):
    """A sentence if this machine has no room for arrays of the size that was asked for."""
    wanted, room = machine.SIZES[size].memory * 2**30, machine.memory_free() / 4
    if wanted > room:
        yield (f"Size {size} means arrays of up to {wanted / 2**30:.3g} GiB, but a quarter of the free memory is "
               f"{room / 2**30:.2g} GiB: the notebooks run with smaller arrays than the size stands for.")


def assign_parameters(pages, parameters):
    """{page name: the parameters that it has}, and a sentence for each parameter that no page has."""
    if not parameters:
        return {page.name: {} for page in pages}, []
    names = {page.name: parameters_of(page) for page in pages}
    offered = sorted(set().union(*names.values()))
    there = f"there {'is' if len(offered) == 1 else 'are'} {', '.join(offered) or 'none'}"
    unknown = [f"No chosen notebook has a parameter {name!r}, so it is left out; {there}."
               for name in parameters if name not in offered]
    return {page: {name: value for name, value in parameters.items() if name in there}
            for page, there in names.items()}, unknown


def what_to_run(order, wanted):
    """The run's identity and the pages that are still to run; refuses to resume what was run differently."""
    note = order.out / "run.json"
    if order.resume and note.exists():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            run_id = json.loads(note.read_text(encoding="utf-8"))["run"]
            return run_id, [page for page in order.chosen if not finished(order, page, wanted[page.name], run_id)]
    if order.resume:
        click.echo(f"{order.out} holds no interrupted run, so this one starts from the beginning.", err=True)
    run_id = datetime.datetime.now(datetime.UTC).isoformat()
    write_whole(note, json.dumps({"run": run_id}))
    return run_id, order.chosen


def finished(order, page, wanted, run_id):
    """Whether this run already has a good result of the page as it now is."""
    record = store.load(order.out, page.name)
    if record is None or record["run"] != run_id:
        return False
    different = store.differences(wanted, record["settings"])
    if different:
        raise click.ClickException(
            f"--resume would mix results: {page.name} in {order.out} was run with other settings: "
            f"{'; '.join(different)}. Use the same settings, or run without --resume to begin anew.")
    return record["page"]["status"] == "ran" and record["digest"] == page.digest


def run_all(order, waiting, wanted, run_id):
    """Run the pages that wait; each one's results are complete on disk before the next begins."""
    from .html import write_page

    size = machine.SIZES[order.size]
    known = {page.name: (store.load(order.out, page.name) or {}) for page in waiting}
    pace = Pace({page.name: expected_cells(page, size, _if_same_size(known[page.name], order.size))
                 for page in waiting})
    for page in order.chosen:
        if page not in waiting:
            click.echo(f"{page.name:<36} finished before")
    try:
        for page in waiting:
            with tempfile.TemporaryDirectory() as scratch, sized(order.size):
                lines = Path(scratch) / "lines"
                pace.start(page.name)
                run = run_page(page, order.out / "notebooks", wanted[page.name]["parameters"], order.timeout, pace,
                               lines)
                facts = store.facts_of_machine()
                pace.done()
                write_page(order.out / "notebooks" / page.path.name)
                store.save(order.out, run, wanted[page.name], facts, store.read_lines(lines), run_id)
            click.echo(str(run))
    finally:
        pace.close()


def _if_same_size(record, size):
    return record.get("cells") if record and record["settings"]["size"] == size else None


@contextlib.contextmanager
def sized(size):
    """Run notebooks at this size."""
    before = os.environ.get("TUTORIAL_HELPERS_SIZE")
    os.environ["TUTORIAL_HELPERS_SIZE"] = size
    try:
        yield
    finally:
        os.environ.pop("TUTORIAL_HELPERS_SIZE")
        if before is not None:
            os.environ["TUTORIAL_HELPERS_SIZE"] = before


def finish(order, wanted, problems, interrupted):
    """Build the report from what there is, and say where it is and what is missing.

    interrupted: the identity of the run that was interrupted, or None.
    """
    records, left_out = usable_records(order, wanted)
    failed = [record["page"] for record in records if record["page"]["status"] == "failed"
              and record["page"]["name"] in wanted]
    if records:
        from .site import write_index
        data = store.collect(records, order.pages, order.size, order.label)
        write(data, order.out / "measurements.json")
        stopped = ["The run was interrupted before all notebooks had run."] if interrupted else []
        write_index(data, order.pages, order.out, [*stopped, *problems, *left_out])
    if interrupted:
        count = sum(record["run"] == interrupted and record["page"]["status"] == "ran" for record in records)
        click.echo(f"\nInterrupted: {count} of {len(order.chosen)} notebooks are finished and kept in {order.out}. "
                   "The same command with --resume goes on.", err=True)
        return INTERRUPTED
    if failed:
        names = ", ".join(page["name"] for page in failed)
        click.echo(f"{len(failed)} of {len(order.chosen)} notebooks failed: {names}. See {order.out}.", err=True)
    elif not problems:
        click.echo(f"All {len(order.chosen)} notebooks ran to the end.")
    click.echo(f"The report is {order.out / 'index.html'}: open it in a browser.")
    return int(bool(failed or problems))


def usable_records(order, wanted):
    """Records that belong into one report, and a sentence for each that does not."""
    records, left_out = [], []
    for page in order.pages:
        record = store.load(order.out, page.name)
        if record is None:
            continue
        mine = wanted.get(page.name) or store.settings(order.size, record["settings"]["parameters"])
        different = store.differences(mine, record["settings"])
        if record["digest"] != page.digest:
            different = ["the notebook has changed since"]
        if different:
            left_out.append(f"{page.name} is left out, for its last run was another: {'; '.join(different)}.")
        else:
            records.append(record)
    return records, left_out
