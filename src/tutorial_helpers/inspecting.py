"""What a function becomes on its way to the processor, as text that a learner can read and search.

Nothing here prints: each function returns a View. Addresses in memory and paths of this machine are taken out,
so that a stored notebook tells nothing about the computer that ran it.
"""

import html
import inspect
import io
import re
import shutil
import subprocess
from importlib import import_module

HEAD = 40  # lines shown before the rest is folded


class View:
    """Text to read and search: `text`, `name`, and `available` (False when the tool that makes it is missing)."""

    def __init__(self, name, text, available=True):
        self.name, self.text, self.available = name, text.strip("\n"), available

    def count(self, pattern):
        """How often the regular expression `pattern` occurs."""
        return sum(1 for _ in re.finditer(pattern, self.text, re.MULTILINE))

    def lines(self, pattern=""):
        """The lines in which the regular expression `pattern` occurs, as a View."""
        found = [line for line in self.text.splitlines() if re.search(pattern, line)]
        return View(f"{self.name}, lines with {pattern}", "\n".join(found), self.available)

    def head(self, n=HEAD):
        """The first `n` lines, as a View."""
        return View(f"{self.name}, first {n} lines", "\n".join(self.text.splitlines()[:n]), self.available)

    def __str__(self):
        return self.text

    def __repr__(self):
        lines = self.text.splitlines()
        more = [f"… and {len(lines) - HEAD} more: print(…) shows all of them"] if len(lines) > HEAD else []
        return "\n".join(lines[:HEAD] + more)

    def _repr_html_(self):
        lines = self.text.splitlines()
        shown, rest = (f'<pre style="font-family: monospace">{html.escape(chr(10).join(part))}</pre>'
                       for part in (lines[:HEAD], lines[HEAD:]))
        more = len(lines) - HEAD
        folded = f"<details><summary>{more} more line{'s' * (more > 1)}</summary>{rest}</details>" if more > 0 else ""
        return f'<div role="group" aria-label="{html.escape(self.name)}">{shown}{folded}</div>'


def bytecode(fn, adaptive=False):
    """The instructions of CPython's virtual machine for `fn`; `adaptive` shows what it specialised them to.

    A function compiled by JAX, TensorFlow or Numba shows the Python function that it was made from.
    Raises: TypeError when `fn` has no bytecode, as functions written in C have none.
    """
    import dis

    plain = _python_function(fn)
    if not hasattr(plain, "__code__"):
        raise TypeError(f"{_name(fn)} has no bytecode: it is not written in Python.")
    out = io.StringIO()
    dis.dis(plain, file=out, adaptive=adaptive)
    return View(f"Bytecode of {_name(fn)}", _anonymous(out.getvalue()))


def jaxpr(fn, *args):
    """What JAX recorded while it traced `fn`, plain or jitted, with `args`.

    Raises: ModuleNotFoundError without JAX.
    """
    jax = _need("jax", "JAX")
    traced = fn.trace(*args).jaxpr if hasattr(fn, "trace") else jax.make_jaxpr(fn)(*args)
    return View(f"jaxpr of {_name(fn)}", _anonymous(str(traced)))


def stablehlo(fn, *args):
    """What JAX hands to the XLA compiler for `fn`, plain or jitted, with `args`: StableHLO, not optimised yet.

    Raises: ModuleNotFoundError without JAX.
    """
    return View(f"StableHLO of {_name(fn)}", _anonymous(_lowered(fn, args).as_text()))


def hlo(fn, *args):
    """What XLA made of `fn`, plain or jitted, with `args`, after optimisation for the device that they are on.

    Raises: ModuleNotFoundError without JAX.
    """
    return View(f"Optimised HLO of {_name(fn)}", _anonymous(_lowered(fn, args).compile().as_text()))


def tf_graph(fn, *args):
    """The operations of the graph that tf.function makes of `fn`, plain or decorated, with `args`; one a line.

    Raises: ModuleNotFoundError without TensorFlow.
    """
    tf = _need("tensorflow", "TensorFlow")
    function = fn if hasattr(fn, "get_concrete_function") else tf.function(fn)
    graph = function.get_concrete_function(*args).graph
    lines = []
    for op in graph.get_operations():
        results = ", ".join(f"{out.dtype.name}{out.shape}" for out in op.outputs)
        inputs = ", ".join(source.name.removesuffix(":0") for source in op.inputs)
        lines.append(f"{op.name} = {op.type}({inputs})" + (f" → {results}" if results else ""))
    for inner in graph.as_graph_def().library.function:
        lines += ["", f"inside {inner.signature.name}:"]
        lines += [f"  {node.name} = {node.op}({', '.join(node.input)})" for node in inner.node_def]
    return View(f"Graph of {_name(fn)}", _anonymous("\n".join(lines)))


def tf_hlo(fn, *args):
    """What XLA makes of `fn`, plain or a tf.function, with `args`, under tf.function(jit_compile=True).

    Raises: ModuleNotFoundError without TensorFlow.
    """
    tf = _need("tensorflow", "TensorFlow")
    compiled = tf.function(_python_function(fn), jit_compile=True)
    text = compiled.experimental_get_compiler_ir(*args)(stage="optimized_hlo")
    return View(f"Optimised HLO of {_name(fn)}", _anonymous(text))


def assembly(path, symbol):
    """The machine instructions of the function `symbol` in the shared library at `path`.

    Where objdump is missing, the View says so and its `available` is False.
    Raises: FileNotFoundError without the library; ValueError when it has no such function.
    """
    with open(path, "rb"):
        pass
    objdump = shutil.which("objdump")
    if objdump is None:
        return View(f"Assembly of {symbol}", "objdump is missing, which would show the machine instructions here; "
                    "it comes with gcc (Debian, Ubuntu: apt install binutils).", available=False)
    version = subprocess.run([objdump, "--version"], capture_output=True, text=True).stdout
    llvm = "LLVM" in version
    options = [f"--disassemble-symbols={symbol},_{symbol}"] if llvm else [f"--disassemble={symbol}"]
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", *options, str(path)],
                             capture_output=True, text=True).stdout
    start = re.search(rf"^[0-9a-f]+ <_?{re.escape(symbol)}>:$", listing, re.MULTILINE)
    if start is None:
        raise ValueError(f"The library has no function {symbol!r} to show.")
    body = re.split(r"\n\s*\nDisassembly of section", listing[start.start():])[0]
    return View(f"Assembly of {symbol}", body)


def _need(module, name):
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"This view needs {name}, which is not installed: pip install {module}") from None


def _lowered(fn, args):
    jax = _need("jax", "JAX")
    return (fn if hasattr(fn, "lower") else jax.jit(fn)).lower(*args)


def _python_function(fn):
    for attribute in ("python_function", "py_func"):  # tf.function; Numba
        fn = getattr(fn, attribute, fn)
    return inspect.unwrap(fn)


def _name(fn):
    return getattr(fn, "__name__", None) or getattr(_python_function(fn), "__name__", type(fn).__name__)


def _anonymous(text):
    """`text` without colour codes, addresses in memory, source paths and XLA's tables of source positions."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)  # JAX colours its jaxpr where it finds a notebook
    tables = r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*\n?"
    text = re.sub(r"\n{3,}", "\n\n", re.sub(tables, "", text, flags=re.MULTILINE))
    text = re.sub(r" ?\b(source_file|source_line|source_end_line|source_column|source_end_column|stack_frame_id)="
                  r'("[^"]*"|\d+)', "", text)
    text = re.sub(r", metadata=\{\s*\}", "", text).replace("metadata={ ", "metadata={")
    text = re.sub(r"\bat 0x[0-9a-fA-F]+", "at 0x…", text)
    return re.sub(r'file "[^"]*"', 'file "…"', text)
