"""What goes wrong on learners' machines, made on purpose: each fault as a kernel, or an order of cells, that has it."""

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

import pages
from environments import Missing, call, found
from kernels import RESTART, Kernel, code_cells, sections

COMPILER = re.compile(r"([\w.]+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|c89|c99|c89-gcc|c99-gcc|tcc)(-[\d.]+)?")
GUARD = pages.ROOT / "tests" / "clients" / "guard"




@dataclass(frozen=True)
class Fault:
    """One fault: its name, how a kernel has it, and what becomes of the cells.

    kernel: empty folder → Kernel; raises Missing where this machine cannot have the fault. cells: page → the cells to
    run, RESTART among them where the kernel is to start anew. pages: the numbers of the pages that it can touch, as a
    regular expression.
    """

    name: str
    kernel: Callable = lambda folder: Kernel()
    cells: Callable = code_cells
    pages: str = r"\d\d"

    def touches(self, page):
        """Whether it can make a difference to the page of this name."""
        return re.match(self.pages, page) is not None


# ---------------------------------------------------------------------------------------------------------------------
# Something is not installed


def without_compiler(folder):
    """Every command of this machine but the C compilers: links to the others are all of PATH."""
    commands = Path(folder) / "bin"
    commands.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).glob("*") if place else []:
            link = commands / command.name
            if not COMPILER.fullmatch(command.name) and not os.path.lexists(link):
                link.symlink_to(command)
    # Kernel puts the interpreter's folder on PATH, and that of a system's Python holds compilers as well.
    python = without(folder)
    return Kernel(python, environment={"PATH": os.pathsep.join([str(Path(python).parent), str(commands)]), "CC": None})


def without(folder, *modules):
    """The path of a Python that has all that this one has, but for the distributions that bring these modules.

    A virtual environment of links: nothing is patched, so that import, find_spec, metadata and child processes agree.
    """
    venv = Path(folder) / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", venv)
    hidden = set().union(*map(_entries, modules), {"__pycache__"})
    python = found(venv)
    there = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(site).iterdir():
            if entry.name in hidden:
                continue
            if entry.suffix == ".dist-info":  # a copy, so that no installer can write through a link
                shutil.copytree(entry, there / entry.name)
            else:
                (there / entry.name).symlink_to(entry)
    return str(python)


@functools.cache
def _entries(module):
    """The names in site-packages that belong to the distributions which bring this module."""
    # An editable installation may not list its modules: its distribution is found by its own name.
    names = importlib.metadata.packages_distributions().get(module, [module.replace("_", "-")])
    files = [file for name in names for file in importlib.metadata.files(name) or []]
    return {file.parts[0] for file in files} - {"..", "__pycache__"}


def lacking(*modules):
    """A fault's kernel: these modules are not installed."""
    return lambda folder: Kernel(without(folder, *modules))


# ---------------------------------------------------------------------------------------------------------------------
# Something is not allowed, or scarce


def can(*command):
    """Whether this machine lets us run a command."""
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def with_read_only_home(folder):
    """HOME is there but takes no file: mode 555, or for root, whom no mode stops, a read-only file system."""
    home = Path(folder) / "home"
    home.mkdir()
    # Where these settings name another folder, HOME would not matter.
    elsewhere = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR", "IPYTHONDIR",
                 "TUTORIAL_HELPERS_DATA", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    environment = {"HOME": str(home), **dict.fromkeys(elsewhere)}
    home.chmod(0o555)
    if not os.access(home, os.W_OK):
        return Kernel(environment=environment)
    mount = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro none "$HOME" && exec "$@"', "sh")
    if not can("env", f"HOME={home}", *mount, "true"):
        raise Missing("HOME cannot be made read-only here: root may write everywhere, and unshare is not allowed.")
    return Kernel(prefix=mount, environment=environment)


def without_network(folder):
    """A network namespace of its own, in which even loopback is down; else a guard on Python's sockets."""
    if can("unshare", "-rn", "true"):
        return Kernel(prefix=("unshare", "-rn"), sockets=False)
    return Kernel(environment={"PYTHONPATH": str(GUARD), "TUTORIAL_GUARD_LOG": str(Path(folder) / "guard.log")})


def limited(memory=None, cores=None):
    """Words before a command that limit it without privileges: taskset for cores, RLIMIT_DATA for bytes of memory.

    RLIMIT_DATA counts what each process may write to, touched or not, so it is stricter than a container's limit on
    what is resident. (A cgroup needs root or a delegated one, which not every machine has.)
    """
    needed = ["taskset"] * bool(cores) + ["prlimit"] * bool(memory)
    if lack := [tool for tool in needed if shutil.which(tool) is None]:
        raise Missing(f"Limiting a kernel needs {' and '.join(lack)} (Debian, Ubuntu: util-linux).")
    words = ()
    if cores:
        allowed = sorted(os.sched_getaffinity(0))[:cores]
        words += ("taskset", "-c", ",".join(map(str, allowed)))
    return words + ((("prlimit", f"--data={memory}")) if memory else ())


ONE_GIB_FREE = """\
import resource
import psutil
resource.setrlimit(resource.RLIMIT_DATA, (psutil.Process().memory_info().data + 2**30, resource.RLIM_INFINITY))"""


def one_gib_free(page):
    """Once the opening has imported its libraries, the kernel may take 1 GiB more than it holds (RLIMIT_DATA)."""
    cells, opening = code_cells(page), sections(page)[""]
    last = max(number for number, cell in enumerate(opening)
               if re.search(r"^(import|from) |optional\(", cell.source, re.MULTILINE))
    return [*cells[:last + 1], nbformat.v4.new_code_cell(ONE_GIB_FREE), *cells[last + 1:]]


# ---------------------------------------------------------------------------------------------------------------------
# Cells in another order


def twice(page):
    """Run All, and then Run All again in the same kernel."""
    return code_cells(page) * 2


# What a first call does can be seen once for each definition: 01 goes on with its time, 03 counts its traces.
ONCE = re.compile(r"^(ladder_times|relaxed, signed) = ", re.MULTILINE)


def each_twice(page):
    """Every cell that allows it once more at once, as someone does who clicks twice."""
    return [cell for cell in code_cells(page) for _ in range(1 if ONCE.search(cell.source) else 2)]


def restarted(page):
    """Half of the page, then *Restart Kernel and Run All Cells*."""
    cells = code_cells(page)
    return [*cells[:len(cells) // 2], RESTART, *cells]


def out_of_order(page):
    """The sections from last to first. Page 01 promises that they can be taken so, but for 7 to 9, which follow 6."""
    there = sections(page)
    numbered = {title[0]: title for title in there if title[:1].isdigit()}
    order = "".join(sorted(numbered, reverse=True)).replace("9876", "6789")
    titles = ["", *(numbered[number] for number in order), *there]
    return [cell for title in dict.fromkeys(titles) for cell in there[title]]


FAULTS = {fault.name: fault for fault in [
    Fault("no gcc", without_compiler, pages="0[135]"),
    Fault("no Cython", lacking("Cython"), pages="0[13]"),
    Fault("no Numba", lacking("numba"), pages="0[12]"),
    Fault("no TensorFlow", lacking("tensorflow"), pages="0[345]"),
    Fault("HOME read-only", with_read_only_home),
    Fault("no network", without_network),
    Fault("no GPU visible", lambda folder: Kernel(environment={"CUDA_VISIBLE_DEVICES": ""})),
    Fault("one core", lambda folder: Kernel(prefix=limited(cores=1))),
    Fault("1 GiB free", cells=one_gib_free),
    Fault("Run All twice", cells=twice),
    Fault("each cell twice", cells=each_twice),
    Fault("restarted", cells=restarted),
    Fault("out of order", cells=out_of_order, pages="01"),
]}
