"""The notebooks as a collection: what there is, and running one of them with papermill."""

import hashlib
import json
import logging
import os
import re
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from .files import write_whole
from .machine import memory_free
from .recording import VARIABLE as RECORD

# A kernel on this machine says on every start that its loopback connection is not encrypted.
QUIET_KERNEL = ["--log-level=ERROR"]
# When less memory than this is free, the notebook is stopped before the system stops something else.
LAST_MEMORY = 200 * 2**20
_OUT_OF_MEMORY = re.compile(r"MemoryError|RESOURCE_EXHAUSTED|ResourceExhausted|bad_alloc", re.IGNORECASE)
_MEASURES = re.compile(r"\b(?:compare|measure|sweep|explore)\(")


@dataclass(frozen=True)
class Page:
    """One notebook, as its opening lines present it; `claims` are those that its code judges."""

    path: Path
    title: str
    minutes: int | None
    needs: str
    claims: tuple = ()
    digest: str = ""
    cells: tuple = ()  # for each cell, whether it is likely to measure; None for text

    @property
    def name(self):
        return self.path.stem


def read_page(path):
    """The Page of a notebook file. Raises ValueError for anything else."""
    kinds, sources = _kinds_and_sources(path)
    is_code = [kind == "code" for kind in kinds]
    text = "\n\n".join(source for source, kind in zip(sources, kinds, strict=True) if kind == "markdown")
    code = [source if runs else None for source, runs in zip(sources, is_code, strict=True)]
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    minutes = re.search(r"^\*\*Minutes\*\*\D*(\d+)", text, re.MULTILINE)
    needs = re.search(r"^\*\*You need\*\*\s*(.+?)\\?$", text, re.MULTILINE)
    claims = re.findall(r"""judge\(\s*["'](S\d\d)["']""", "\n".join(filter(None, code)))
    return Page(Path(path), title.group(1) if title else Path(path).stem, int(minutes.group(1)) if minutes else None,
                needs.group(1) if needs else "", tuple(dict.fromkeys(claims)),
                hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16],
                tuple(None if source is None else bool(_MEASURES.search(source)) for source in code))


def _kinds_and_sources(path):
    """Two lists, of each cell's kind and of its source."""
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        return [cell["cell_type"] for cell in cells], ["".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a notebook.") from error


def pages(folder="notebooks", only=()):
    """The notebooks of a folder in order, or those whose name starts with one of `only`."""
    found = sorted(Path(folder).glob("[0-9][0-9]_*.ipynb"))
    return [read_page(path) for path in found if not only or path.stem.startswith(tuple(only))]


class PeakMemory:
    """The most memory that this process's children (a kernel and what it starts) held at once, in bytes.

    Resident memory of every process, added up, so that pages which two of them share count twice. Only a process that
    has just been forked is left out: until it starts its own program it shows its parent's memory as its own. When
    the system runs out of memory, the largest child is ended, and `ran_out` says so.
    """

    def __init__(self, interval=0.05, tick=None):
        self.peak, self.ran_out = 0, False
        self._interval, self._tick = interval, tick
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        me, rounds = psutil.Process(), 0
        while not self._done.wait(self._interval):
            held, mapped = {}, {}
            for child in me.children(recursive=True):
                with suppress(psutil.Error):  # it may have ended in the meantime
                    memory, parent = child.memory_info(), child.ppid()
                    mapped[child.pid] = memory.vms
                    if mapped.get(parent) != memory.vms:
                        held[child] = memory.rss
            self.peak, rounds = max(self.peak, sum(held.values())), rounds + 1
            if held and memory_free() < LAST_MEMORY:
                self.ran_out = True
                max(held, key=held.get).kill()
            if self._tick and rounds % 10 == 0:
                self._tick()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()


@dataclass(frozen=True)
class Run:
    """What became of one notebook; `error` is None when it ran to the end. `cells`: seconds of each cell."""

    page: Page
    seconds: float
    memory: int
    error: str | None = None
    cells: list = field(default_factory=list)

    def __str__(self):
        numbers = f"{self.page.name:<36} {self.seconds:5.0f} s {self.memory / 2**20:6.0f} MiB"
        return f"{numbers}   failed: {self.error}" if self.error else numbers


def parameters_of(page):
    """The names that the notebook's parameters cell defines."""
    import papermill

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(papermill.inspect_notebook(str(page.path)))


def run_page(page, out, parameters=None, timeout=600, progress=None, record=None):
    """Run one notebook in an empty folder, leave the result in `out`, and say how it went.

    progress: has cell(index), called when a cell starts, and tick(), called twice a second. record: file to which
    measurements and verdicts are appended. An interrupted notebook leaves what `out` held before.
    """
    import papermill

    error, start = None, time.perf_counter()
    with (tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch, _recording_to(record),
          open(Path(scratch) / "stderr", "w+") as said, PeakMemory(tick=progress and progress.tick) as memory,
          warnings.catch_warnings()):
        warnings.simplefilter("ignore")
        executed = Path(scratch) / page.path.name
        try:
            papermill.execute_notebook(
                str(page.path.resolve()), str(executed), parameters or {}, cwd=folder, kernel_name="python3",
                execution_timeout=timeout, extra_arguments=QUIET_KERNEL, progress_bar=False,
                engine_name=_engine(), progress=progress, kernel_manager_class=_kernel_manager(said, scratch))
        except KeyboardInterrupt:
            # The kernel was interrupted too; that nobody waits for its cell any more is no news to the user.
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)
            raise
        except papermill.PapermillExecutionError as raised:
            error = f"code cell {raised.exec_count} raised {raised.ename}: {first_line(raised.evalue)}"
        except Exception as raised:  # the kernel died or never started, a cell took too long: the other pages still run
            said.seek(0)
            error = first_line(raised) or type(raised).__name__
            error += "".join(f" ({line.strip()})" for line in said.readlines()[-1:] if "died" in error)
        if error and (memory.ran_out or _OUT_OF_MEMORY.search(error)):
            error = f"{error.rstrip('.')}. {_too_large(memory)}"
        cells = _publish(executed, Path(out) / page.path.name)
    return Run(page, time.perf_counter() - start, memory.peak, error, cells)


def _too_large(memory):
    held = f"It held {memory.peak / 2**30:.1f} GiB when it was stopped" if memory.ran_out else \
        f"It asked for more than the {memory_free() / 2**30:.1f} GiB that are free"
    return f"{held}: choose a smaller --size or parameter."


@contextmanager
def _recording_to(path):
    """Let kernels started within record to `path`."""
    before = os.environ.pop(RECORD, None)
    if path:
        os.environ[RECORD] = str(Path(path).resolve())
    try:
        yield
    finally:
        os.environ.pop(RECORD, None)
        if before is not None:
            os.environ[RECORD] = before


def _engine():
    """papermill's engine, which tells `progress` of every cell that starts."""
    from papermill.engines import NBClientEngine, papermill_engines

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, progress=None, **settings):
            start = nb_man.cell_start

            def cell_start(cell, cell_index=None, **more):
                progress.cell(cell_index)
                start(cell, cell_index, **more)

            if progress:
                nb_man.cell_start = cell_start
            super().execute_managed_notebook(nb_man, kernel_name, **settings)

    papermill_engines.register("tutorial_helpers", Engine)
    return "tutorial_helpers"


def _kernel_manager(stderr, scratch):
    """A kernel manager whose kernels say to `stderr` what they have to say about themselves, not to the terminal.

    They keep a progress of their own in the folder `scratch`: what the learner did in person stays as it is.
    """
    from jupyter_client import AsyncKernelManager

    class Manager(AsyncKernelManager):
        def start_kernel(self, **settings):
            own = {**settings.pop("env", os.environ), "TUTORIAL_HELPERS_DATA": os.path.join(scratch, "progress")}
            return super().start_kernel(stderr=stderr, env=own, **settings)

    return Manager


def _publish(executed, target):
    """Put the executed notebook in place in one step; returns the seconds that each of its cells took."""
    if not executed.exists():
        return []
    content = executed.read_text(encoding="utf-8")
    write_whole(target, content)
    return [round(cell["metadata"].get("papermill", {}).get("duration") or 0, 3)
            for cell in json.loads(content)["cells"]
            if "injected-parameters" not in cell["metadata"].get("tags", [])]


def first_line(text):
    """The first line that says something."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")
