"""Watching the two compilers at work: what makes them trace and compile again, and what they refuse to do."""

import contextlib
import ctypes
import logging
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np
import psutil

from . import frameworks
from .inspecting import View, assembly
from .native import Table
from .timing import measure

MISSING = "not installed"
Outcome = namedtuple("Outcome", "jax tensorflow")
_runs = [0]


# ---------------------------------------------------------------------------------------------------------------------
# Cells that need TensorFlow


def offer_tensorflow_cells():
    """Add the cell magic `%%tensorflow …`: run the cell where TensorFlow is loaded, else say what it would show."""
    from IPython import get_ipython

    shell = get_ipython()

    def tensorflow(line, cell):
        if not _tensorflow():
            print(f"TensorFlow is {MISSING}: this cell would show {line.strip()}.")
            return
        shell.run_cell(cell).raise_error()

    if shell is not None:
        shell.register_magic_function(tensorflow, "cell")
    if _tensorflow():  # XLA logs its first compilation, once per process, past every setting: let it do so unheard
        with frameworks.quiet_stderr():
            _tensorflow().function(lambda: _tensorflow().zeros(()), jit_compile=True, autograph=False)()


def _tensorflow():
    return sys.modules.get("tensorflow") if frameworks._loaded("tensorflow") else None


@contextlib.contextmanager
def _no_python_log():
    """Hold back TensorFlow's Python log, which warns of the very retraces that a lesson provokes."""
    log = logging.getLogger("tensorflow")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


# ---------------------------------------------------------------------------------------------------------------------
# Traced? Compiled?


def traced():
    """Put this into a function's body to let `trace_table` see whether Python ran it: a compiled call doesn't."""
    _runs[0] += 1


def trace_table(rows, caption=""):
    """Make each call once and say whether it traced and compiled, for both frameworks side by side.

    rows: {label: (jax call, tensorflow call)}, each a tuple (function, *arguments) or None. The function's body must
    call `traced()`. Returns a Watched; shows itself as a table.
    """
    found = {label: Outcome(_watch(jax_call, _jax_compiles), _watch(tf_call, _xla_compiles))
             for label, (jax_call, tf_call) in rows.items()}
    return Watched(found, caption)


Call = namedtuple("Call", "traced compiled error")


class Watched(Table):
    """What trace_table saw: `watched[label].jax.traced`, `.compiled`, `.error`, and the same under `.tensorflow`.

    A framework that no row calls has no columns.
    """

    def __init__(self, found, caption=""):
        self.found = found
        names = {"JAX": "jax", "TensorFlow": "tensorflow"}
        asked = [name for name, field in names.items() if any(getattr(seen, field) for seen in found.values())]
        rows = [{"call": label} for label in found]
        for row, seen in zip(rows, found.values(), strict=True):
            for name in asked:
                row |= _told(name, getattr(seen, names[name]))
        super().__init__(rows, caption)

    def __getitem__(self, label):
        return self.found[label]

    def traced(self, framework):
        """The labels of the calls that `framework` ("jax" or "tensorflow") traced."""
        return [label for label, seen in self.found.items() if (call := getattr(seen, framework)) and call.traced]


def _told(name, call):
    keys = f"{name}: traced?", f"{name}: compiled?"
    if call is None:
        return dict.fromkeys(keys, "–")
    if call.error is not None:
        return dict(zip(keys, (f"✗ {type(call.error).__name__}", "–"), strict=True))
    words = ("yes" if call.traced else "no", {True: "yes", False: "no", None: "?"}[call.compiled])
    return dict(zip(keys, words, strict=True))


def _watch(call, compiles):
    if call is None or call[0] is None:
        return None
    fn, *args = call
    before, error = _runs[0], None

    def run():
        nonlocal error
        try:
            frameworks.wait(fn(*args))
        except Exception as raised:
            error = raised
    with _no_python_log():
        compiled = compiles(run)
    return Call(_runs[0] > before, compiled, error)


def _jax_compiles(run):
    """Whether `run()` made JAX compile, as JAX itself reports it."""
    before = frameworks.jax_events()["compiles"]
    run()
    return frameworks.jax_events()["compiles"] > before


def _xla_compiles(run):
    """Whether `run()` made TensorFlow's XLA compile, read from TensorFlow's profiler; None where that fails.

    TensorFlow counts traces but offers no count of compilations. XLA's compiler passes appear in a profile by name.
    """
    profiler, done = _tensorflow().profiler.experimental, False
    try:
        with tempfile.TemporaryDirectory() as folder, frameworks.quiet_stderr():
            profiler.start(folder, profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=0,
                                                            device_tracer_level=0))
            try:
                done = True
                run()
            finally:
                profiler.stop()
            profile = b"".join(path.read_bytes() for path in Path(folder).rglob("*.pb"))
        return bool(re.search(rb"[CG]puCompiler::|XlaCompile", profile))
    except Exception:  # another profile is being taken
        if not done:
            run()
        return None


# ---------------------------------------------------------------------------------------------------------------------
# What works, what fails


def side_by_side(rows, caption="", heads=("JAX", "TensorFlow")):
    """Run each pair of functions without arguments and show what came back, or which error was raised, in short.

    rows: {label: (jax function, tensorflow function)}; None leaves a place empty. Where TensorFlow is missing, its
    column says so. Returns a Tried, where tried[label].jax is the result or the exception.
    """
    found = {label: Outcome(_try(one), _try(other, heads[1] != "TensorFlow")) for label, (one, other) in rows.items()}
    return Tried(found, caption, heads)


class Tried(Table):
    """What side_by_side found: `tried[label].jax` and `.tensorflow` are results or exceptions (None: not run)."""

    def __init__(self, found, caption, heads):
        self.found = found
        absent = heads[1] == "TensorFlow" and not _tensorflow()
        rows = [{"": label, heads[0]: brief(pair.jax), heads[1]: MISSING if absent else brief(pair.tensorflow)}
                for label, pair in found.items()]
        super().__init__(rows, caption)

    def __getitem__(self, label):
        return self.found[label]


def attempt(fn, *args):
    """The result of fn(*args), or the exception that it raised."""
    try:
        with _no_python_log():
            return frameworks.wait(fn(*args))
    except Exception as error:
        return error


def _try(fn, always=True):
    return None if fn is None or not (always or _tensorflow()) else attempt(fn)


def brief(value):
    """A result or an exception in one short line.

    >>> brief(ValueError("no such thing\\nsecond line"))
    '✗ ValueError: no such thing'
    """
    if value is None:
        return "–"
    if isinstance(value, Exception):
        return _shorten(f"✗ {type(value).__name__}: {_reason(value)}", 110)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(brief, value))
    adapter = frameworks.adapter_of(value)
    try:
        return np.array2string(np.asarray(adapter.numpy(value)), precision=4, threshold=6) if adapter else str(value)
    except Exception:  # a symbolic tensor has no values
        return type(value).__name__


def _reason(error):
    """The line of an error's message that names the reason: TensorFlow's come after the user's own lines of code."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or ["no message"]
    if lines[0] == "in user code:":
        named = [line for line in lines if re.match(r"[A-Z]\w*(Error|Exception): ", line)]
        return re.sub(r"^\w+: ", "", named[-1]) if named else lines[-1]
    return lines[0]


def _shorten(text, width):
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"/\S+/(site|dist)-packages/", "…/", text)
    return text if len(text) <= width else text[:width - 1].rstrip() + "…"


# ---------------------------------------------------------------------------------------------------------------------
# What the compilers made


def operations(text):
    """How often each operation occurs in an HLO text: Counter such as {"add": 2, "fusion": 1}."""
    found = re.findall(r"^\s*(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([a-z][\w\-]*)\(", str(text), re.MULTILINE)
    return Counter(found)


def machine_code(fn, *args):
    """The processor's instructions that XLA made of `fn`, plain or jitted, taken out of the compiled JAX function.

    Where they can't be had (a GPU, no objdump, another form of executable) the View says so: `available` is False.
    """
    import jax

    title = f"Machine code of {getattr(fn, '__name__', 'the function')}"
    try:
        compiled = (fn if hasattr(fn, "lower") else jax.jit(fn)).lower(*args).compile()
        executable = compiled.runtime_executable()
        data = executable.client.serialize_executable(executable)
        if jax.default_backend() != "cpu" or b"\x7fELF" not in data or not shutil.which("objdump"):
            raise LookupError
        pieces = [b"\x7fELF" + piece for piece in data.split(b"\x7fELF")[1:]]
        with tempfile.TemporaryDirectory() as folder:
            views = [_disassemble(Path(folder) / f"{i}.o", piece) for i, piece in enumerate(pieces)]
        return View(title, "\n\n".join(views))
    except Exception:
        return View(title, "The machine code cannot be shown here: that takes a CPU, objdump (it comes with gcc) and "
                    "an XLA that hands its code out.", available=False)


def _disassemble(path, code):
    path.write_bytes(code)
    table = subprocess.run(["objdump", "-t", str(path)], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^\S+ g +F \.l?text\S*\s+\S+\s+(?:\.hidden )?(\S+)$", table, re.MULTILINE)
    return "\n\n".join(str(assembly(path, name)) for name in names)


# ---------------------------------------------------------------------------------------------------------------------
# Build time


def tf_stages(fn, *args, **options):
    """Where a first call of tf.function(fn, **options) spends its time, as {stage: seconds}."""
    start = time.perf_counter()
    concrete = _tensorflow().function(fn, **options).get_concrete_function(*args)
    trace = time.perf_counter() - start
    again = measure(concrete, *args, budget=0.05)
    made = "compile" if options.get("jit_compile") else "optimise graph"
    return {"trace": trace, made: max(0.0, again.first_call - again.steady), "run": again.steady}


def calls_to_pay_off(comparison, label, baseline):
    """From which call on `label`, its first call included, has taken less time than `baseline`; None if never."""
    built, saved = comparison[label].first_call, comparison[baseline].steady - comparison[label].steady
    return max(1, math.ceil((built - comparison[label].steady) / saved)) if saved > 0 else None


# ---------------------------------------------------------------------------------------------------------------------
# Memory


def resident_memory():
    """Bytes of memory that this process holds now, what its allocator could give back given back."""
    _give_back()
    return psutil.Process().memory_info().rss


def memory_growth(fn, x, numbers):
    """Call fn(x, number) for each number; the MiB that this process has grown by after each, the first call apart."""
    frameworks.wait(fn(x, numbers[0]))
    start, grown = resident_memory(), []
    with _no_python_log():
        for number in numbers:
            frameworks.wait(fn(x, number))
            grown.append((resident_memory() - start) / 2**20)
    return grown


def memory_added(fn, *args):
    """Call fn(*args) and say how much memory this process held more: (at the peak of the call, afterwards), in bytes.

    The peak is the operating system's own record on Linux; elsewhere only the end is known, and the two are equal.
    """
    start = resident_memory()
    reset = _reset_peak()
    frameworks.wait(fn(*args))
    peak = _peak() if reset else 0
    end = resident_memory()
    return max(peak, end) - start, end - start


def _give_back():
    with contextlib.suppress(OSError, AttributeError, TypeError):  # only the GNU C library has malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def _reset_peak():
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return True
    except OSError:
        return False


def _peak():
    try:
        return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()).group(1)) * 1024
    except (OSError, AttributeError):
        return 0
