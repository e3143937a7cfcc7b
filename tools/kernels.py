"""A kernel under chosen conditions (another interpreter, less memory, a missing tool), and what cells show in it."""

import contextlib
import dataclasses
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbclient.util import run_sync

from tutorial_helpers.collection import QUIET_KERNEL, PeakMemory, first_line

# What the tools' own Python was told must not reach another one.
OUR_OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST")
RESTART = "restart the kernel"  # stands among cells where that is to happen


@dataclass(frozen=True)
class Kernel:
    """How to start a kernel.

    python: the interpreter, whose folder comes first on PATH. prefix: words before its command, such as
    ("taskset", "-c", "0"). environment: name → value, None to unset. sockets: whether it may have TCP ports on
    loopback; without, Unix sockets carry the messages, which also reach a process that has no network at all.
    """

    python: str = sys.executable
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str | None] = field(default_factory=dict)
    sockets: bool = True

    def variables(self):
        """All environment variables that the kernel sees."""
        inherited = {name: value for name, value in os.environ.items() if name not in OUR_OWN}
        inherited["PATH"] = os.pathsep.join([str(Path(self.python).parent), inherited.get("PATH", "")])
        merged = {**inherited, **self.environment}
        return {name: value for name, value in merged.items() if value is not None}

    def specification(self):
        """The kernel as Jupyter describes it."""
        command = [*self.prefix, self.python, "-m", "ipykernel_launcher", *QUIET_KERNEL, "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class _OnlyThis(KernelSpecManager):
    """Finds one kernel, whatever name is asked for."""

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel

    def get_kernel_spec(self, kernel_name):
        return self.kernel.specification()


class Session:
    """A running kernel that takes one cell after the other, in any order, and can be restarted."""

    def __init__(self, kernel, folder, timeout=120):
        self.kernel, self.folder = kernel, Path(folder)
        manager = AsyncKernelManager(kernel_spec_manager=_OnlyThis(kernel))
        if not kernel.sockets:
            # A short path: a Unix socket's name may have 108 characters at most.
            manager.transport, manager.ip = "ipc", os.path.join(tempfile.mkdtemp(prefix="k"), "k")
        self._client = NotebookClient(nbformat.v4.new_notebook(), km=manager, timeout=timeout, allow_errors=True,
                                      resources={"metadata": {"path": str(folder)}}, store_widget_state=False)
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._stack.enter_context(self._client.setup_kernel(cleanup_kc=True, env=self.kernel.variables()))
        return self

    def __exit__(self, *error):
        self._stack.close()

    def run(self, cell):
        """Run a cell, or a line of code; returns the cell with its outputs.

        Raises: CellTimeoutError after `timeout` seconds, DeadKernelError when the kernel ends.
        """
        cell = nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else nbformat.from_dict(cell)
        cell.outputs = []
        self._client.nb.cells.append(cell)
        if cell.cell_type == "code":
            self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return cell

    def restart(self):
        """What *Restart Kernel* does: a new process, in which no name is defined."""
        run_sync(self._restart)()

    async def _restart(self):
        await self._client.km.restart_kernel()
        await self._client.kc.wait_for_ready(timeout=60)


def text_of(cell):
    """What the cell showed as text, one string."""
    shown = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            shown.append(output.text)
        elif output.output_type == "error":
            shown.append(f"{output.ename}: {output.evalue}")
        else:
            shown.append(output.data.get("text/html") or output.data.get("text/plain", ""))
    return "\n".join(shown)


def complaints(cell):
    """What a learner should not have to see: an exception, or anything on stderr."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            yield f"raised {output.ename}: {first_line(output.evalue)}"
        elif output.output_type == "stream" and output.name == "stderr":
            yield f"wrote to stderr: {first_line(output.text)[:300]}"


@dataclass
class Outcome:
    """What became of some cells: seconds, most memory that the kernel and what it started held, problems."""

    cells: list = field(default_factory=list)
    seconds: float = 0.0
    memory: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def text(self):
        """Everything that the cells showed."""
        return "\n".join(map(text_of, self.cells))

    def after(self, code):
        """What the cell that contains `code` showed (the first such cell)."""
        return text_of(next(cell for cell in self.cells if code in cell.source))


def run(cells, kernel=None, timeout=120):
    """Run cells one after the other in a fresh kernel and an empty folder; returns the Outcome, whatever happens.

    A cell may be a line of code, or RESTART. Exercises and predictions are kept in a folder of their own.
    """
    outcome, start, kernel = Outcome(), time.perf_counter(), kernel or Kernel()
    with PeakMemory() as memory, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as progress:
        environment = {"TUTORIAL_HELPERS_DATA": progress, **kernel.environment}
        try:
            with Session(dataclasses.replace(kernel, environment=environment), folder, timeout) as session:
                for cell in cells:
                    if cell is RESTART:
                        session.restart()
                        continue
                    done = session.run(cell)
                    outcome.cells.append(done)
                    outcome.problems += [f"Cell {len(outcome.cells)} ({first_line(done.source)[:60]}) {said}"
                                         for said in complaints(done)]
        except (CellTimeoutError, DeadKernelError, RuntimeError) as error:
            outcome.problems.append(f"Cell {len(outcome.cells)}: {first_line(error)}")
        left = sorted(path.name for path in Path(folder).iterdir())
        outcome.problems += [f"{', '.join(left)} is left behind."] if left else []
    outcome.seconds, outcome.memory = time.perf_counter() - start, memory.peak
    return outcome


def code_cells(notebook):
    """The cells of a page that run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def sections(notebook):
    """Title → code cells of that section, in the page's order; what comes before the first is the section ""."""
    found, title = {"": []}, ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found[title].append(cell)
        else:
            for heading in re.findall(r"^## (.+)$", cell.source, re.MULTILINE):
                title = heading
                found[title] = []
    return found
