"""Is this machine ready for a course? What participants run the day before: checks, then a short trial run."""

import importlib.metadata
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import click

from . import machine
from .collection import QUIET_KERNEL, PeakMemory, first_line, pages

NEEDED_DISK = 2**30  # bytes free for what the pages build and keep
NEEDED_MEMORY = 3 * 2**29  # bytes free: the largest page takes about 1.5 GiB at its peak
TRIAL_LIMIT = 120  # seconds
PROJECT = "tutorial-helpers"
# Libraries without which pages stop. Whatever else pyproject.toml names is missed by some cells, which say so.
NEEDED = {"jax", "jaxlib", "ipykernel"}
MISSED = {"tensorflow": "the TensorFlow halves of 03, 04 and 05", "numba": "the Numba rows of 01 and 02",
          "cython": "the Cython rungs of 01", "setuptools": "%%cython", "jupyterlab": "make lab"}


class Check(NamedTuple):
    """One thing looked at. `problem` says what to do about it; it is empty where nothing has to be done."""

    subject: str
    finding: str
    problem: str = ""


def gib(size):
    """Bytes as text."""
    return f"{size / 2**30:.1f} GiB"


def check_python(version=None, wanted=None):
    """Whether the packages exist for this Python. `version` is a text such as "3.12.1"."""
    from packaging.specifiers import SpecifierSet

    version = version or ".".join(map(str, sys.version_info[:3]))
    wanted = wanted or importlib.metadata.metadata(PROJECT)["Requires-Python"]
    fits = SpecifierSet(wanted).contains(version, prereleases=True)
    return Check("Python", version, "" if fits else
                 f"Python {version} will not do: install one that is {wanted}, and start there again")


def check_disk(usage=shutil.disk_usage):
    """Room for temporary files."""
    folder = tempfile.gettempdir()
    free = usage(folder).free
    enough = free >= NEEDED_DISK
    return Check("Disk", f"{gib(free)} free", "" if enough else
                 f"only {gib(free)} of disk free in {folder}, {gib(NEEDED_DISK)} are needed: make room there")


def check_memory(free=None):
    """Room for the largest page."""
    free = machine.memory_free() if free is None else free
    enough = free >= NEEDED_MEMORY
    return Check("Memory", f"{gib(free)} free", "" if enough else
                 f"only {gib(free)} of memory free, the pages need up to {gib(NEEDED_MEMORY)}: close other programs")


def check_compiler():
    """Whether C can be built. Without a compiler parts are skipped; with a broken one page 01 would stop."""
    from .native import CompileError, c_library

    if machine.compiler() is None:
        return Check("C compiler", "none: page 01 skips its C and Cython parts (Debian, Ubuntu: sudo apt-get install "
                     "gcc libc6-dev; macOS: xcode-select --install)")
    name = Path(machine.compiler()).name
    try:
        works = c_library("#include <math.h>\nint seven(void) { return 7; }").load.seven() == 7
    except (CompileError, OSError) as error:
        return Check("C compiler", name, f"{name} cannot build ({error}): on Debian and Ubuntu, sudo apt-get install "
                     "gcc libc6-dev")
    return Check("C compiler", name, "" if works else f"{name} builds programs that compute wrong results")


def requirements():
    """What this project asks for on this system, as packaging's Requirement objects."""
    from packaging.requirements import Requirement

    lines = map(Requirement, importlib.metadata.requires(PROJECT) or [])
    asked = [{"extra": extra} for extra in ("", "notebooks", "lab")]
    return [one for one in lines if one.marker is None or any(one.marker.evaluate(extra) for extra in asked)]


def installed(name):
    """The version of an installed distribution, or None. TensorFlow's two names count as one."""
    for candidate in [name, *(["tensorflow"] if name == "tensorflow-cpu" else [])]:
        try:
            return importlib.metadata.version(candidate)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def check_library(requirement, version):
    """One required range against what is installed (None: nothing)."""
    name = requirement.name.lower().removesuffix("-cpu")
    wanted = f'"{requirement.name}{requirement.specifier}"'
    extras = {"notebooks", "lab"} if requirement.marker and "extra" in str(requirement.marker) else set()
    if version is None and (name in NEEDED or not extras):
        return Check(name, "missing", f"{name} is missing: {pip()} install {wanted}")
    if version is None:
        return Check(name, f"none: {MISSED.get(name, 'some cells')} will be missing ({pip()} install {wanted})")
    if requirement.specifier.contains(version, prereleases=True):
        return Check(name, version)
    return Check(name, version, f"{name} {version} does not fit: {pip()} install {wanted}")


def pip():
    """How to call the pip that belongs to this Python."""
    return f"{Path(sys.executable).name} -m pip"


def check_libraries(version_of=installed):
    """Every library that the project names, against its range."""
    return [check_library(requirement, version_of(requirement.name)) for requirement in requirements()]


def check_kernel(specs=None):
    """Whether the notebooks' kernel is this Python: an old kernel of the same name would hide it."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        return Check("Kernel", "no Jupyter", f"Jupyter is missing: {pip()} install jupyterlab ipykernel")
    try:
        started = (specs or KernelSpecManager()).get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        return Check("Kernel", "none", f"there is no Python kernel: {pip()} install ipykernel")
    # The folder tells, not what its links lead to: a virtual environment's Python is a link to the system's.
    here, there = (os.path.normcase(os.path.dirname(path)) for path in (sys.executable, started))
    own = there in ("", here)
    return Check("Kernel", "this Python" if own else started, "" if own else
                 f"notebooks would run in {started} and not in this Python: jupyter kernelspec remove python3")


def read_notebook(path):
    """The notebook in a file. Raises: ValueError in one sentence that names the file."""
    import nbformat

    try:
        notebook = nbformat.v4.reads(Path(path).read_text(encoding="utf-8"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nbformat.validate(notebook)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, nbformat.ValidationError) as error:
        raise ValueError(f"{path} is not a notebook.") from error
    return notebook


def trial(page, limit=TRIAL_LIMIT, on_cell=lambda: None):
    """Run one notebook at the quick size, in an empty folder and within `limit` seconds; a Check of how it went.

    page: a collection.Page. on_cell: called after every cell.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
        notebook = read_notebook(page.path)
    except ImportError as error:
        return Check("Trial run", "not possible", f"{error.name} is missing: {pip()} install {error.name}")
    except ValueError as error:
        return Check("Trial run", "no page", f"{error} Fetch the notebooks anew")
    quiet = logging.getLogger(f"{__name__}.trial")
    quiet.disabled = True
    end, begun = time.monotonic() + limit, []
    problem, start = "", time.perf_counter()
    with PeakMemory() as memory, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data, \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = NotebookClient(
            notebook, kernel_name="python3", extra_arguments=QUIET_KERNEL, log=quiet,
            resources={"metadata": {"path": folder}}, record_timing=False, store_widget_state=False,
            timeout_func=lambda cell: max(1, int(end - time.monotonic())),
            on_cell_execute=lambda **_: begun.append(1), on_cell_executed=lambda **_: on_cell())
        try:
            client.execute(env={**os.environ, "TUTORIAL_HELPERS_SIZE": "quick", "TUTORIAL_HELPERS_DATA": data},
                           stderr=subprocess.DEVNULL)  # what a kernel says there is about its debugger
        except CellExecutionError as error:
            problem = f"code cell {len(begun)} of {page.name} raised {error.ename}: {first_line(error.evalue)}"
        except CellTimeoutError:
            problem = (f"{page.name} was not done after {limit} seconds (code cell {len(begun)}): "
                       "close other programs and try again")
        except (DeadKernelError, RuntimeError) as error:
            problem = f"{page.name} ended at code cell {len(begun)}: {first_line(error)}"
    seconds = time.perf_counter() - start
    return Check("Trial run", f"{seconds:.0f} s, {memory.peak / 2**20:.0f} MiB at most", problem)


def verdict(checks):
    """The last line: "ready", or what has to be done first."""
    problems = [check.problem for check in checks if check.problem]
    return "ready" if not problems else "not ready: " + "; ".join(problems) + "."


# ---------------------------------------------------------------------------------------------------------------------
# The command


def check_up(folder):
    """Check, run the first page of `folder`, print what was found with the verdict last; the exit status."""
    click.echo()
    checks = [check_python(), check_disk(), check_memory(), check_compiler(), check_kernel(), *check_libraries()]
    for check in checks:
        show(check)
    checks.append(trial_run(folder, wanted=not any(check.problem for check in checks)))
    click.echo(verdict(checks))
    return int(any(check.problem for check in checks))


def show(check):
    """One line for a check."""
    click.echo(f"{'!!' if check.problem else 'ok'} {check.subject:<14} {check.finding}")


def trial_run(folder, wanted):
    """The trial run of the first page with a bar, unless the checks before it found something to mend first."""
    try:
        page = next(iter(pages(folder)), None)
    except ValueError as error:
        return Check("Trial run", "no page", f"{error} Fetch the notebooks anew")
    if page is None:
        return Check("Trial run", "no page", f"{folder} holds no notebooks: call this in the folder that you cloned, "
                     "or name theirs with --folder")
    if not wanted:
        click.echo("   Trial run      waits until the rest is in order")
        return Check("Trial run", "not yet")
    count = sum(measures is not None for measures in page.cells)
    with click.progressbar(length=count, label=f"   Trial run of {page.name}, two minutes at most") as bar:
        check = trial(page, on_cell=lambda: bar.update(1))
    show(check)
    return check
