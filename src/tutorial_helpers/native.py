"""Building native code for a lesson, and looking at what came out: C, Cython, resident memory, file tags.

Everything is built in one temporary folder that goes when the process ends. Compilers run quietly in a process of
their own; when one refuses a source, `CompileError` says in one line why.
"""

import atexit
import ctypes
import functools
import html
import importlib.machinery
import importlib.util
import itertools
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from .inspecting import View
from .machine import compiler

_count = itertools.count(1)


class CompileError(Exception):
    """A compiler refused a source; the message is the first error that it reported."""


@functools.cache
def folder():
    """The folder that everything is built in; it is removed when the process ends."""
    made = tempfile.mkdtemp(prefix="native-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


# ---------------------------------------------------------------------------------------------------------------------
# What is there to build with


def find_c(shows="this part"):
    """The C compiler's name, or None after one printed line that says what is missing and how to get it."""
    found = compiler()
    if found is None:
        print(f"There is no C compiler here, so {shows} is skipped. To see it: `sudo apt install gcc` (Debian, "
              "Ubuntu), `xcode-select --install` (macOS) or `conda install gcc`.")
    return found and os.path.basename(found)


def find_cython(shows="this part"):
    """Cython's version, or None after one printed line. Building needs a C compiler and Python's C headers too."""
    lacking = []
    if compiler() is None:
        lacking.append("a C compiler")
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        lacking.append("Python's C headers (`sudo apt install python3-dev`)")
    if importlib.util.find_spec("Cython") is None:
        lacking.append("Cython (`%pip install Cython`)")
    if lacking:
        print(f"Cython modules cannot be built here, so {shows} is skipped. To see it, install "
              f"{' and '.join(lacking)}.")
        return None
    from Cython import __version__
    return __version__


def offer_needs():
    """Let a cell that starts with the comment `# needs a, b` run only when the notebook's names a and b hold something.

    Otherwise the cell prints one line instead. Outside IPython, and in a cell without that comment, nothing changes.
    """
    from IPython import get_ipython

    shell = get_ipython()

    def skip(lines):
        needed = re.match(r"# needs ([\w, ]+)$", lines[0].strip()) if lines else None
        missing = [name for name in re.findall(r"\w+", needed[1]) if shell.user_ns.get(name) is None] if needed else []
        said = f"Skipped: this cell needs {' and '.join(missing)}; the start of the page says how to get it."
        return [f"print({said!r})\n"] if missing else lines

    if shell is not None:
        hooks = shell.input_transformers_cleanup
        hooks[:] = [hook for hook in hooks if getattr(hook, "__qualname__", "") != skip.__qualname__] + [skip]


# ---------------------------------------------------------------------------------------------------------------------
# Building


def _run(command, **options):
    """Run a compiler; CompileError with its first complaint when it refuses."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        said = (done.stderr + done.stdout).splitlines()
        reasons = [line for line in said if re.search(r"error:|\.pyx:\d+:\d+:", line)]
        first = [*reasons, *said[-1:], "no reason given"][0]
        raise CompileError(re.sub(r"^\S*[/\\]", "", first.strip()))


def _compile(source_path, target, flags):
    if compiler() is None:
        raise CompileError("there is no C compiler here")
    extra = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" and "-shared" in flags else []
    _run([compiler(), *flags, *extra, "-o", str(target), str(source_path), "-lm"], cwd=folder())


class Library(NamedTuple):
    """A shared library: `load` is what ctypes loaded, `path` the file, `seconds` how long the compiler took."""

    load: ctypes.CDLL
    path: Path
    seconds: float


def c_library(source, *flags, loader=ctypes.CDLL):
    """Compile C source to a shared library and load it, with ctypes.CDLL or another of its loaders.

    Raises: CompileError with the compiler's first complaint.
    """
    stem = folder() / f"c{next(_count)}"
    stem.with_suffix(".c").write_text(source)
    target = stem.with_suffix(".dll" if os.name == "nt" else ".so")
    start = time.perf_counter()
    _compile(stem.with_suffix(".c"), target, ["-shared", "-fPIC", *flags])
    seconds = time.perf_counter() - start
    return Library(loader(str(target)), target, seconds)


def c_program(source, *flags):
    """Compile C source to a program; returns its path. Raises CompileError as c_library does."""
    stem = folder() / f"c{next(_count)}"
    stem.with_suffix(".c").write_text(source)
    target = stem.with_suffix(".exe")
    _compile(stem.with_suffix(".c"), target, flags)
    return target


class CythonModule(NamedTuple):
    """An extension module: the module, its file, seconds of both compilers, and what Cython wrote.

    `c_text` is the generated C; `scores` maps each line number of the source to Cython's own score of how much of
    that line's C talks to the Python runtime (0: nothing, a plain line of C).
    `line_c(5)` is the C that line 5 became. `load` is a Python line that imports its pairs() in another process.
    """

    module: object
    path: Path
    translate_seconds: float
    compile_seconds: float
    c_text: str
    scores: dict

    @property
    def seconds(self):
        return self.translate_seconds + self.compile_seconds

    @property
    def load(self):
        return f"import sys; sys.path.insert(0, {str(self.path.parent)!r}); from {self.module.__name__} import pairs"

    def line_c(self, number):
        marker = rf'/\* "{self.module.__name__}\.pyx":(\d+)\n'
        parts = re.split(marker, self.c_text)
        found = [re.sub(r"^(.*\n)*? *\*/\n", "", text) for at, text in zip(parts[1::2], parts[2::2], strict=True)
                 if int(at) == number]
        text = textwrap.dedent(max(found, key=len, default="")).strip()
        return View(f"C of line {number}", re.sub(r"if \(unlikely\(.*?__PYX_ERR\([^)]*\)", "/* or raise */", text))


def cython_module(source, *flags):
    """Translate Cython source to C, compile that C, import the result: the steps that `%%cython` takes.

    Raises: CompileError with the first complaint of either compiler.
    """
    name = f"lesson{next(_count)}"
    pyx = folder() / f"{name}.pyx"
    pyx.write_text(source)
    start = time.perf_counter()
    _run([sys.executable, "-m", "cython", "-3", "--annotate", pyx.name, "-o", f"{name}.c"], cwd=folder())
    translated = time.perf_counter()
    target = folder() / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    _compile(pyx.with_suffix(".c"), target, ["-shared", "-fPIC", "-fwrapv", f"-I{sysconfig.get_path('include')}",
                                             *(flags or ["-O3"])])
    compiled = time.perf_counter()
    marked = re.findall(r'class="cython line score-(\d+)"', pyx.with_suffix(".html").read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location(name, target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return CythonModule(module, target, translated - start, compiled - translated,
                        pyx.with_suffix(".c").read_text(encoding="utf-8"),
                        {line: int(score) for line, score in enumerate(marked, 1)})


# ---------------------------------------------------------------------------------------------------------------------
# Resident memory, in a process of its own


class Run(NamedTuple):
    """One run of a program: the first line it printed, bytes resident then, the peak so far, seconds until then."""

    said: str
    resident: int
    peak: int
    seconds: float


def run_apart(program):
    """Run Python source (a string) or a program (a path) in a fresh process until it prints its first line.

    The program must then wait for a line of input; Python source is given that wait. `peak` equals `resident` where
    the system does not tell a peak. Raises: RuntimeError with the last line that a failing program wrote.
    """
    command = [sys.executable, "-c", program + "\ninput()\n"] if isinstance(program, str) else [str(program)]
    with tempfile.TemporaryFile("w+") as complaints:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True,
                                 env={**os.environ, "PYTHONUNBUFFERED": "1"})
        try:
            said = child.stdout.readline().strip()
            seconds = time.perf_counter() - start
            if not said:
                child.wait()
                complaints.seek(0)
                raise RuntimeError((complaints.read().strip().splitlines() or ["it printed nothing"])[-1])
            held = psutil.Process(child.pid).memory_info()
            return Run(said, held.rss, max(held.rss, _peak(child.pid, held)), seconds)
        finally:
            child.communicate("\n")


def _peak(pid, held):
    try:  # getrusage would not do: a new process inherits that peak from its parent
        return int(re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024
    except (OSError, AttributeError):
        return getattr(held, "peak_wset", 0)


# ---------------------------------------------------------------------------------------------------------------------
# Reading the compiler's output

_MEANING = [  # (mnemonic, what it does); {n} is the number of floats in the register that the line names
    (r"v?cmp\w*ps|v?cmpps|fcmg\w+", "{n} comparisons at once: all bits 1 where closer, else 0"),
    (r"v?u?comiss|fcmpe?", "compare the squared distance with the limit"),
    (r"v?sub[ps]s|fsub", "{n} subtraction{s}"), (r"v?mul[ps]s|fmul", "{n} multiplication{s}"),
    (r"v?add[ps]s|fadd", "{n} addition{s}"),
    (r"vfn?m(add|sub)\w+|fml[as]|fmadd", "{n} multiplication{s} and addition{s}, fused"),
    (r"v?psubd|v?paddd", "{n} counters change at once: −(−1) where closer"),
    (r"set\w+|cset", "1 if it was closer, else 0"), (r"movzx|cinc", "that 1 or 0 as a whole number"),
    (r"v?p?xor\w*|vpternlog\w*|movi", "set a register to a constant"),
    (r"v?mov[aus]+p?s|v?movdq\w+|ldr?[qs]?|ldp|vbroadcast\w+|ldur", "load {n} float{s}"),
    (r"(cmp|test|subs|cmn)", "at the end of the row?"), (r"j\w+|b\.\w+|cbn?z", "if not, go round again"),
    (r"add|inc|lea|adc|sub|sbb|dec", "step in whole numbers: the count, or the next point"),
    (r"mov\w*", "copy a whole number"),
]


def _explain(line):
    words = line.split()
    width = 1
    if re.search(r"ps$|psubd|paddd|movdq|movups|movaps|ternlog", words[0]) or re.search(r"\bv\d+\.4s|\bq\d", line):
        width = 16 if "zmm" in line.lower() else 8 if "ymm" in line.lower() else 4
    if re.fullmatch(r"v?mov(aps|ups|ss|dqa\w*|dqu\w*)", words[0]) and "[" not in line:
        return f"{width} answers from the mask: −1 where closer, else 0" if "{k" in line else "copy a register"
    if re.match(r"vcmp\w*ps k\d", line):  # AVX-512 compares into a mask
        return f"{width} comparisons at once: one bit each, 1 where closer"
    said = next((text for pattern, text in _MEANING if re.fullmatch(pattern, words[0])), "")
    return said.format(n=width if width > 1 else "one", s="s" if width > 1 else "")


def inner_loop(source, *flags):
    """The innermost loop of one C function as assembly, each line explained, as a View.

    Of several loops that subtract floats, the one with the widest instructions is shown: with vectorisation the
    others handle what is left over at the end of a row. `View.available` is False where no such loop is found.
    """
    stem = folder() / f"c{next(_count)}"
    stem.with_suffix(".c").write_text(source)
    intel = ["-masm=intel"] if platform.machine().lower() in ("x86_64", "amd64", "i686") else []
    _compile(stem.with_suffix(".c"), stem.with_suffix(".s"), ["-S", *intel, *flags])
    lines = [re.sub(r"\s*(#|//|;|@).*", "", line).strip() for line in stem.with_suffix(".s").read_text().splitlines()]
    lines = [line for line in lines if line and (line.endswith(":") or not line.startswith("."))]
    labels = {line[:-1]: number for number, line in enumerate(lines) if line.endswith(":")}
    loops = [lines[labels[line.split()[-1]] + 1:number + 1] for number, line in enumerate(lines)
             if re.match(r"j|b\.|cbn?z|tbn?z", line) and labels.get(line.split()[-1], number) < number]
    loops = [loop for loop in loops if any(re.match(r"v?sub[ps]s|fsub", line) for line in loop)]
    name = f"Inner loop compiled with {' '.join(flags)}"
    if not loops:
        return View(name, "No loop over floats was recognised in this compiler's output.", available=False)

    def floats_at_once(loop):
        explained = [_explain(line) for line in loop if re.match(r"v?sub[ps]s|fsub", line)]
        return max(int(text.split()[0].replace("one", "1")) for text in explained)
    widest = max(map(floats_at_once, loops))
    chosen = min((loop for loop in loops if floats_at_once(loop) == widest), key=len)
    chosen = [re.sub(r"\s+", " ", line).replace("XMMWORD PTR ", "").replace("YMMWORD PTR ", "")
              .replace("ZMMWORD PTR ", "").replace("DWORD PTR ", "") for line in chosen if not line.endswith(":")]
    return View(name, "\n".join(f"{line:<32} ; {_explain(line)}".rstrip(" ;") for line in chosen))


_VERSION = f"CPython {sys.version_info.major}.{sys.version_info.minor}"
_MACHINES = {0x03: "x86", 0x28: "ARM", 0x3E: "x86-64", 0xB7: "AArch64", 0xF3: "RISC-V"}
_CPUS = {0x01000007: "x86-64", 0x0100000C: "AArch64"}


def passport(path):
    """What a file says about where it can run: {"file", "kind", "processor", "system", "Python", "C library"}."""
    path = Path(path)
    data = path.read_bytes()
    entry = {"file": re.sub(r"^(c|lesson)\d+", "pairs", path.name), "kind": "text", "processor": "any", "system": "any",
             "Python": "any", "C library": "none"}
    if data[:4] == b"\x7fELF":
        order = "<" if data[5] == 1 else ">"
        needs = [tuple(map(int, found.split(b"."))) for found in set(re.findall(rb"GLIBC_(\d+\.\d+)", data))]
        entry.update(kind="machine code (ELF)", system="Linux" if sys.platform == "linux" else "ELF systems",
                     processor=_MACHINES.get(struct.unpack(order + "H", data[18:20])[0], "another"))
        if needs:
            entry["C library"] = "glibc ≥ " + ".".join(map(str, max(needs)))
    elif data[:4] in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
        cpu = struct.unpack("<I", data[4:8])[0] if data[:4] == b"\xcf\xfa\xed\xfe" else None
        entry.update(kind="machine code (Mach-O)", system="macOS", processor=_CPUS.get(cpu, "several"))
        entry["C library"] = "macOS's own"
    elif data[:2] == b"MZ":
        entry.update(kind="machine code (PE)", system="Windows", processor=platform.machine())
        entry["C library"] = "Windows' own"
    elif path.suffix == ".pyc":
        own = data[:4] == importlib.util.MAGIC_NUMBER
        entry.update(kind="bytecode", Python=_VERSION if own else "another version")
    if any(path.name.endswith(suffix) for suffix in importlib.machinery.EXTENSION_SUFFIXES[:1]):
        entry["Python"] = _VERSION
    return entry


def for_another_processor(path):
    """A copy of a shared library whose header says that it is for a processor that this machine hasn't got."""
    data = bytearray(Path(path).read_bytes())
    at, value = {b"\x7fELF": (18, 0xF7), b"\xcf\xfa\xed\xfe": (4, 18)}.get(bytes(data[:4]), (0, 0))  # eBPF; PowerPC
    data[at:at + 2] = struct.pack("<H", value)
    copy = folder() / f"other{next(_count)}{Path(path).suffix}"
    copy.write_bytes(data)
    return copy


class Table:
    """Rows of dictionaries with the same keys; shows itself as an HTML table or as text."""

    def __init__(self, rows, caption=""):
        self.rows, self.caption = [{key: str(value) for key, value in row.items()} for row in rows], caption
        self.columns = list(self.rows[0]) if self.rows else []

    def __repr__(self):
        width = {key: max(len(key), *(len(row[key]) for row in self.rows)) for key in self.columns}
        lines = [self.caption] * bool(self.caption) + ["  ".join(key.ljust(width[key]) for key in self.columns)]
        lines += ["  ".join(row[key].ljust(width[key]) for key in self.columns) for row in self.rows]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self):
        left = 'style="text-align: left"'
        head = "".join(f'<th scope="col" {left}>{html.escape(key)}</th>' for key in self.columns)
        body = "".join(f'<tr><th scope="row" {left}>{html.escape(row[self.columns[0]])}</th>' + "".join(
            f"<td {left}>{html.escape(row[key])}</td>" for key in self.columns[1:]) + "</tr>" for row in self.rows)
        caption = f"<caption {left}>{html.escape(self.caption)}</caption>" if self.caption else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
