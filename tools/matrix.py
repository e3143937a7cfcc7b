"""Try the collection in every environment and with every fault; one table says what ran where.

ROWS chooses by the start of a row's name, as in `colab` or `3.12/tests` or `faults/no-gcc/01`. What passed is kept in
build/matrix and not run again until something that it rests on changes.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import nbformat

import environments
import kernels
import pages
import setup_venv
from environments import RECIPES, Missing, found
from faults import FAULTS, limited
from tutorial_helpers.machine import size

# What a page's row rests on besides the page and the package, and what can decide over a test.
OWN = ["conftest.py", *(f"tools/{name}.py" for name in ("environments", "faults", "kernels", "matrix", "record"))]
SOURCES = (".py", ".md", ".json", ".txt", ".ipynb", ".html", ".css")
LIMIT = 2 * 2**30  # bytes of memory on Binder
PATIENCE = 3600  # seconds for one row
# The kernel that nbval starts is named here, so what the project's own settings say of the kernel must go.
ALONE = ["-o", "addopts=", "--nbval", "--nbval-kernel-name=tried", "--nbval-cell-timeout=300", "-p", "conftest",
         "-p", "no:cacheprovider", "-q"]


@dataclass(frozen=True)
class Row:
    """One thing to try: a place (an environment, or a fault in this one) and a page, or all the tests."""

    place: str
    task: str

    @property
    def name(self):
        return f"{'faults/' if self.place in FAULTS else ''}{self.place.replace(' ', '-')}/{self.task}"


@dataclass
class Result:
    """What became of a row. `state` is "passed", "failed" or "not run"; `said` holds one line for each reason."""

    place: str
    task: str
    state: str
    seconds: float = 0.0
    memory: int = 0
    said: list[str] = field(default_factory=list)
    digest: str = ""
    date: str = ""
    size: str = ""


def rows(root=pages.ROOT):
    """Every row, in the order in which they run."""
    names = [path.stem for path in pages.notebooks(root)]
    found = [Row(recipe.name, task) for recipe in RECIPES.values()
             for task in ([] if recipe.alone else ["tests"]) + names]
    return found + [Row(fault.name, name) for fault in FAULTS.values() for name in names if fault.touches(name)]


def chosen(wanted, root=pages.ROOT):
    """The rows whose names start with one of `wanted`; all where nothing is wanted. Raises: ClickException."""
    there = rows(root)
    for one in wanted:
        if not any(row.name.startswith(one) for row in there):
            places = ", ".join(dict.fromkeys(row.name.split("/")[0] for row in there))
            raise click.ClickException(f"No row starts with {one!r}; they start with {places}.")
    return [row for row in there if not wanted or row.name.startswith(tuple(wanted))]


# ---------------------------------------------------------------------------------------------------------------------
# One row


class Matrix:
    """The rows of one checkout, with the folder that environments and results are kept in."""

    def __init__(self, root=pages.ROOT, folder=None, say=click.echo):
        self.root, self.say = Path(root), say
        self.folder = Path(folder or self.root / "build" / "matrix").resolve()
        self._ready, self._missing = {}, {}

    def environment(self, name):
        """The folder of an environment, installed now if need be. Raises: Missing, RuntimeError."""
        if name in self._missing:
            raise self._missing[name]
        recipe, folder, own = RECIPES[name], self.folder / "environments" / name, self.root / ".venv"
        if recipe.install is environments.pinned and setup_venv.up_to_date(self.root, False) \
                and environments.version_of(found(own)) == tuple(map(int, recipe.python.split("."))):
            return own  # the same packages on the same Python
        if name not in self._ready:
            try:
                self._ready[name] = environments.ready(recipe, folder, self.root, self.say)
            except (Missing, RuntimeError) as error:
                self._missing[name] = error
                raise
        return folder

    def digest(self, row):
        """Changes with everything that a row rests on."""
        parts = [row.name, size().name]
        if row.place in RECIPES:
            parts.append(RECIPES[row.place].digest(self.root))
        parts.append(environments.source_digest(self.root))
        if row.task == "tests":
            files = [path for name in ("tests", "tools", "notebooks") for path in sorted((self.root / name).rglob("*"))
                     if path.is_file() and path.suffix in SOURCES]
        else:
            files = [self.root / "notebooks" / f"{row.task}.ipynb", *map(self.root.joinpath, OWN)]
        whole = hashlib.sha256("\0".join(parts).encode())
        for path in files:
            whole.update(str(path.relative_to(self.root)).encode() + path.read_bytes())
        return whole.hexdigest()[:16]

    def path(self, row):
        return self.folder / "results" / f"{row.name.replace('/', '--')}.json"

    def kept(self, row):
        """The stored Result of a row, or None."""
        try:
            return Result(**json.loads(self.path(row).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def run(self, row, afresh=False):
        """The Result of a row: the kept one where it passed and nothing has changed since, else a new one."""
        digest, before = self.digest(row), self.kept(row)
        if before and before.state == "passed" and before.digest == digest and not afresh:
            return before
        result = Result(row.place, row.task, "failed", digest=digest, date=time.strftime("%Y-%m-%d"), size=size().name)
        try:
            said = self._try(row, result)
            result.said, result.state = said, "failed" if said else "passed"
        except Missing as error:
            result.said, result.state = [str(error)], "not run"
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            result.said = [" ".join(str(error).split())[:500]]
        self.path(row).parent.mkdir(parents=True, exist_ok=True)
        self.path(row).write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        return result

    def _try(self, row, result):
        """Run the row, note seconds and memory in `result`; what was wrong, one sentence each."""
        if row.place in FAULTS:
            return self._with_fault(row, result)
        folder = self.environment(row.place)
        return self._alone(row, folder, result) if RECIPES[row.place].alone else self._suite(row, folder, result)

    def _suite(self, row, folder, result):
        """Tests, or a page as `make test` runs it, by the environment's own pytest."""
        what = ["tests"] if row.task == "tests" else [f"notebooks/{row.task}.ipynb"]
        return self._pytest(found(folder), [*what, "-q", "-p", "no:cacheprovider"], result)

    def _alone(self, row, folder, result):
        """A page by itself in an empty folder, its outputs compared with the stored ones, no version moved."""
        before = self._ready[row.place]["versions"]
        tidy(folder, before)
        on_binder = row.place == "binder"
        kernel = kernels.Kernel(str(found(folder)), prefix=limited(LIMIT, cores=1) if on_binder else ())
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) / "alone"
            place.mkdir()
            shutil.copy(self.root / "notebooks" / f"{row.task}.ipynb", place)
            announce(kernel, Path(scratch) / "jupyter")
            said = self._pytest(sys.executable, [*ALONE, "-c", self.root / "pyproject.toml", f"--rootdir={scratch}",
                                                 place / f"{row.task}.ipynb"], result,
                                {**kernel.variables(), "JUPYTER_PATH": f"{scratch}/jupyter"})
            left = sorted(path.name for path in place.iterdir() if path.suffix != ".ipynb")
        said += [f"{', '.join(left)} is left behind."] if left else []
        if on_binder and result.memory > LIMIT:
            said.append(f"{result.memory / 2**20:.0f} MiB were resident; Binder gives {LIMIT / 2**20:.0f}.")
        said += changes(before, environments.freeze(folder), folder)
        tidy(folder, before)
        return said

    def _pytest(self, python, arguments, result, variables=None):
        """Run pytest in a process of its own; the failures."""
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "record.json"
            variables = dict(variables or kernels.Kernel(str(python)).variables())
            variables |= {"TUTORIAL_HELPERS_SOURCE": str(self.root), "TUTORIAL_HELPERS_DATA": f"{scratch}/progress",
                          "TUTORIAL_HELPERS_SIZE": size().name}
            command = [str(python), str(self.root / "tools" / "record.py"), str(out), *map(str, arguments)]
            done = subprocess.run(command, cwd=self.root, env=variables, capture_output=True, text=True,
                                  timeout=PATIENCE)
            if not out.exists():
                raise RuntimeError(f"pytest did not finish: {(done.stdout + done.stderr)[-400:]}")
            record = json.loads(out.read_text())
        result.seconds, result.memory = record["seconds"], record["memory"]
        if record["status"] and not record["failures"]:
            return [f"pytest ended with status {record['status']}."]
        return record["failures"]

    def _with_fault(self, row, result):
        """A page with a fault in this environment: no exception, nothing on stderr, nothing left behind."""
        notebook = nbformat.read(self.root / "notebooks" / f"{row.task}.ipynb", as_version=4)
        fault = FAULTS[row.place]
        with tempfile.TemporaryDirectory() as folder:
            outcome = kernels.run(fault.cells(notebook), fault.kernel(folder), timeout=300)
        result.seconds, result.memory = round(outcome.seconds, 1), outcome.memory
        return outcome.problems


def announce(kernel, folder):
    """Let Jupyter find this kernel by the name "tried", with `folder` on JUPYTER_PATH."""
    place = folder / "kernels" / "tried"
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(json.dumps(kernel.specification().to_dict()), encoding="utf-8")


def changes(before, after, folder):
    """What installing the helpers did that it must not: a version that moved, a package that is not small and pure."""
    said = [f"{name} went from {version} to {after.get(name, 'nothing')}." for name, version in before.items()
            if after.get(name) != version]
    added = sorted(set(after) - set(before) - {"tutorial-helpers"})
    return said + [f"{name} was installed and is not small and pure Python." for name in added
                   if not environments.small_and_pure(folder, name)]


def tidy(folder, versions):
    """Bring an environment back to what it was made with; RuntimeError where that does not do it."""
    there = environments.freeze(folder)
    if extra := sorted(set(there) - set(versions)):
        environments.call(found(folder), "-m", "pip", "uninstall", "--quiet", "--yes", *extra,
                          env=environments.plain())
        there = environments.freeze(folder)
    if there != versions:
        (folder / "stamp.json").unlink(missing_ok=True)
        raise RuntimeError(f"Versions in {folder.name} have moved; it will be made anew next time.")


def check(row):
    """A row as a test: fails with the reasons, skips what cannot run here."""
    import pytest

    os.environ.setdefault("TUTORIAL_HELPERS_SIZE", "quick")
    result = Matrix(folder=os.environ.get("MATRIX_FOLDER")).run(row)
    if result.state == "not run":
        pytest.skip(result.said[0])
    assert result.said == []


# ---------------------------------------------------------------------------------------------------------------------
# The table


def line(result):
    """One line of the table."""
    numbers = f"{result.seconds:7.0f} s {result.memory / 2**20:7.0f} MiB" if result.seconds else " " * 21
    first = f": {result.said[0]}" if result.said else ""
    more = f" (and {len(result.said) - 1} more)" if len(result.said) > 1 else ""
    return f"{result.place:<16} {result.task:<32} {numbers}  {result.state}{first}{more}"


def table(results, known):
    """All results as Markdown, with what the environments hold. known: place → what environments.ready() says."""
    lines = ["| where | what | seconds | peak memory, MiB | |", "|---|---|---:|---:|---|"]
    for one in results:
        said = f": {one.said[0]}".replace("|", "\\|") if one.said else ""
        numbers = f"{one.seconds:.0f} | {one.memory / 2**20:.0f}" if one.seconds else "|"
        lines.append(f"| {one.place} | {one.task} | {numbers} | {one.state}{said} |")
    lines.append("")
    for place, facts in known.items():
        lines.append(f"- {place}: {RECIPES[place].about}; Python {facts['python']}, {facts['bytes'] / 1e9:.1f} GB, "
                     f"installed in {facts['seconds']:.0f} s ({facts['date']})")
    return "\n".join(lines) + "\n"


def known_environments(folder):
    """Place → what is known about its environment, for those that are installed."""
    stamps = {name: folder / "environments" / name / "stamp.json" for name in RECIPES}
    return {name: json.loads(stamp.read_text()) for name, stamp in stamps.items() if stamp.exists()}


@click.command(help=__doc__)
@click.argument("wanted", metavar="[ROWS]...", nargs=-1)
@click.option("--afresh", is_flag=True, help="Run also what passed before and has not changed since.")
@click.option("--list", "only_list", is_flag=True, help="List the rows and run nothing.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where environments and results are kept.",
              envvar="MATRIX_FOLDER", default=pages.ROOT / "build" / "matrix", show_default="build/matrix")
def main(wanted, afresh, only_list, folder):
    os.environ.setdefault("TUTORIAL_HELPERS_SIZE", "quick")
    todo, results = chosen(wanted), []
    if only_list:
        click.echo("\n".join(row.name for row in todo))
        return
    matrix = Matrix(folder=folder)
    for row in todo:
        before = matrix.kept(row)
        results.append(matrix.run(row, afresh))
        kept = f" (kept from {before.date})" if results[-1] == before else ""
        click.echo(line(results[-1]) + kept)
    (folder / "table.md").write_text(table(results, known_environments(folder)), encoding="utf-8")
    states = [result.state for result in results]
    click.echo(f"{states.count('passed')} passed, {states.count('failed')} failed, {states.count('not run')} could not "
               f"run here. The table is in {folder / 'table.md'}.")
    if "failed" in states or "passed" not in states:
        sys.exit(1)


if __name__ == "__main__":
    main()
