"""The notebooks as a collection: what there is, and running them all with papermill."""

import json
import re
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import psutil

# A kernel on this machine says on every start that its loopback connection is not encrypted.
QUIET_KERNEL = ["--log-level=ERROR"]


@dataclass(frozen=True)
class Page:
    """One notebook, as its opening lines present it."""

    path: Path
    title: str
    minutes: int | None
    needs: str

    @property
    def name(self):
        return self.path.stem


def read_page(path):
    """The Page of a notebook file."""
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    minutes = re.search(r"^\*\*Minutes\*\*\D*(\d+)", text, re.MULTILINE)
    needs = re.search(r"^\*\*You need\*\*\s*(.+?)\\?$", text, re.MULTILINE)
    return Page(Path(path), title.group(1) if title else Path(path).stem, int(minutes.group(1)) if minutes else None,
                needs.group(1) if needs else "")


def pages(folder="notebooks", only=()):
    """The notebooks of a folder in order, or those whose name starts with one of `only`."""
    found = sorted(Path(folder).glob("[0-9][0-9]_*.ipynb"))
    return [read_page(path) for path in found if not only or path.stem.startswith(tuple(only))]


class PeakMemory:
    """The most memory that this process's children (a kernel and what it starts) held at once, in bytes.

    Resident memory of every process, added up, so that pages which two of them share count twice.
    """

    def __init__(self, interval=0.05):
        self.peak = 0
        self._interval = interval
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        me = psutil.Process()
        while not self._done.wait(self._interval):
            held = 0
            for child in me.children(recursive=True):
                try:
                    held += child.memory_info().rss
                except psutil.Error:  # it ended in the meantime
                    continue
            self.peak = max(self.peak, held)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()


@dataclass(frozen=True)
class Run:
    """What became of one notebook; `error` is None when it ran to the end."""

    page: Page
    seconds: float
    memory: int
    error: str | None = None

    def __str__(self):
        numbers = f"{self.page.name:<36} {self.seconds:5.0f} s {self.memory / 2**20:6.0f} MiB"
        return f"{numbers}   failed: {self.error}" if self.error else numbers


def parameters_of(page):
    """The names that the notebook's parameters cell defines."""
    import papermill

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(papermill.inspect_notebook(str(page.path)))


def run_page(page, out, parameters=None, timeout=600, progress=True):
    """Run one notebook in an empty folder, leave the result in `out`, and say how it went."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    error, start = None, time.perf_counter()
    with PeakMemory() as memory, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            papermill.execute_notebook(
                str(page.path.resolve()), str(Path(out).resolve() / page.path.name), parameters or {}, cwd=folder,
                kernel_name="python3", execution_timeout=timeout, extra_arguments=QUIET_KERNEL,
                progress_bar={"desc": page.name, "leave": False} if progress else False)
        except papermill.PapermillExecutionError as raised:
            error = f"code cell {raised.exec_count} raised {raised.ename}: {first_line(raised.evalue)}"
        except (CellTimeoutError, DeadKernelError) as raised:
            error = first_line(raised)
    return Run(page, time.perf_counter() - start, memory.peak, error)


def first_line(text):
    """The first line that says something."""
    return next((line.strip() for line in str(text).splitlines() if line.strip()), "")
