"""What this machine is and can do: cores, memory, devices, versions, settings and the memory's speed."""

import atexit
import concurrent.futures
import datetime
import functools
import html
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from . import frameworks

_LIBRARIES = ["numpy", "scipy", "jax", "jaxlib", "tensorflow", "tensorflow-cpu", "torch", "numba", "Cython"]
_OVERRIDES = ("OPENBLAS_", "OMP_", "MKL_", "GOTO_", "XLA_", "JAX_", "TF_", "NUMBA_", "PYTHON_JIT", "PYTHON_GIL",
              "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE")
_PREPARED = {
    "TF_CPP_MIN_LOG_LEVEL": "3",  # TensorFlow's C++ log: errors that stop the program only
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


class Size(NamedTuple):
    """How much work a page may do: a factor on every measurement's seconds, and one on the memory of its arrays."""

    name: str
    time: float
    memory: float


SIZES = {size.name: size for size in (Size("quick", 0.2, 1 / 8), Size("standard", 1, 1), Size("large", 4, 4))}


def size():
    """The Size that $TUTORIAL_HELPERS_SIZE names: quick, standard (when it is not set) or large.

    Raises: ValueError for any other name.
    """
    name = os.environ.get("TUTORIAL_HELPERS_SIZE") or "standard"
    if name not in SIZES:
        raise ValueError(f"TUTORIAL_HELPERS_SIZE is {name!r}: set it to {', '.join(SIZES)}, or not at all.")
    return SIZES[name]


def prepare():
    """Make frameworks that start after this call quiet and polite. Call it once, at the top of a notebook.

    Log lines below errors are switched off, and JAX and TensorFlow take GPU memory as they need it instead of
    nearly all at once, so that they can share a card. Where the home folder takes no files, Matplotlib gets a temporary
    one. Values that are already set are left alone.
    """
    for name, value in _PREPARED.items():
        os.environ.setdefault(name, value)
    if "MPLCONFIGDIR" not in os.environ and not (_writable(_settings("CONFIG")) and _writable(_settings("CACHE"))):
        # Matplotlib would say so on stderr, and look for its fonts anew in each kernel all the same.
        os.environ["MPLCONFIGDIR"] = folder = tempfile.mkdtemp(prefix="matplotlib-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _settings(kind):
    """The folder below which programs keep their "CONFIG" or "CACHE" (XDG base directories; HOME elsewhere)."""
    home = os.path.expanduser("~")
    return Path(os.environ.get(f"XDG_{kind}_HOME") or os.path.join(home, f".{kind.lower()}"))


def _writable(path):
    """Whether files can be made in this folder, or it can be made itself."""
    existing = next((place for place in (path, *path.parents) if os.path.lexists(place)), path)
    return existing.is_dir() and os.access(existing, os.W_OK)


def cores():
    """Cores that this process may use: the scheduler's mask, and a container's CPU quota where there is one."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, int(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return count


def memory_free():
    """Bytes that this process can still take: what the system has available, or what a container's limit leaves."""
    free = psutil.virtual_memory().available
    for limit, used in (("memory.max", "memory.current"),
                        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        limit, used = (Path("/sys/fs/cgroup", name) for name in (limit, used))
        try:
            statistics = (used.parent / "memory.stat").read_text()
            cached = re.search(r"^(?:total_)?inactive_file (\d+)$", statistics, re.MULTILINE)
            # Copies of files count as used, but make room when somebody needs it.
            free = min(free, int(limit.read_text()) - int(used.read_text()) + int(cached.group(1) if cached else 0))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    try:
        import resource
        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if soft != resource.RLIM_INFINITY:
            free = min(free, soft - psutil.Process().memory_info().data)
    except (ImportError, AttributeError):  # Windows, macOS
        pass
    return max(0, free)


def largest(candidates, bytes_needed, share=0.25, at_most=2**30):
    """The largest candidate that memory has room for.

    candidates: sizes in any order. bytes_needed: size → bytes. The chosen one needs at most `share` of the free
    memory and at most `at_most` bytes, times the factor of size(). When none fits, the smallest is returned, so that
    a page still runs.
    """
    room = min(at_most * size().memory, share * memory_free())
    ordered = sorted(candidates)
    if not ordered:
        raise ValueError("largest() needs at least one candidate size.")
    return max((n for n in ordered if bytes_needed(n) <= room), default=ordered[0])


def compiler():
    """Path of a C compiler, or None. $CC comes first, then gcc, clang and cc."""
    names = [os.environ.get("CC", "").split(" ")[0], "gcc", "clang", "cc"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


@functools.cache
def cpu_name():
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    try:  # in a process of its own, because py-cpuinfo forks, which a process with running JAX threads must not
        done = subprocess.run([sys.executable, "-m", "cpuinfo", "--json"], capture_output=True, text=True, timeout=20)
        return json.loads(done.stdout)["brand_raw"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return platform.processor() or platform.machine()


def devices():
    """The devices that loaded frameworks see, as {"jax": ["cpu:0", …], …}."""
    found = {}
    if frameworks._loaded("jax"):
        found["jax"] = [f"{d.platform}:{d.id} {d.device_kind}".strip() for d in sys.modules["jax"].devices()]
    if frameworks._loaded("tensorflow"):
        listed = sys.modules["tensorflow"].config.list_physical_devices()
        found["tensorflow"] = [d.name.removeprefix("/physical_device:").lower() for d in listed]
    if frameworks._loaded("torch") and sys.modules["torch"].cuda.is_available():
        torch = sys.modules["torch"]
        found["torch"] = [f"gpu:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    return found


def gpu_names():
    """Names of NVIDIA GPUs according to nvidia-smi, without starting a framework."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return []
    try:
        done = subprocess.run([tool, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def versions():
    """Installed versions of Python and of the libraries that results depend on."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def overrides():
    """Environment settings that change results, apart from those that prepare() makes."""
    return {name: value for name, value in sorted(os.environ.items())
            if name.startswith(_OVERRIDES) and name != "TF_CLI_CONFIG_FILE" and _PREPARED.get(name) != value}


def threads():
    """Threads that each loaded native library uses, such as {"openblas": 2}."""
    from threadpoolctl import threadpool_info
    return {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}


@functools.cache
def _static():
    return {"cpu": cpu_name(), "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release()}", "memory_bytes": psutil.virtual_memory().total,
            "gpus": gpu_names(), "versions": versions()}


def describe():
    """This machine as a dictionary of plain values, as stored with every result.

    cpu, architecture, system, memory_bytes, gpus, versions, cores, memory_free_bytes, devices, threads,
    overrides, date (ISO 8601, UTC).
    """
    return {**_static(), "cores": cores(), "memory_free_bytes": memory_free(), "devices": devices(),
            "threads": threads(), "overrides": overrides(),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}


def stamp(machine=None):
    """One line that says where a figure's numbers come from."""
    machine = machine or describe()
    known = machine["versions"]
    tensorflow = known.get("tensorflow") or known.get("tensorflow-cpu")
    parts = [machine["cpu"], _plural(machine["cores"], "core"), *machine["gpus"][:1], f"Python {known['python']}"]
    parts += [f"{label} {version}" for label, version in
              [("NumPy", known.get("numpy")), ("JAX", known.get("jax")), ("TensorFlow", tensorflow)] if version]
    return " · ".join([*parts, machine["date"][:10]])


def _plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


# ---------------------------------------------------------------------------------------------------------------------
# How fast memory can be


@functools.cache
def bandwidth():
    """Measured copy speed, as {bytes read and written: bytes per second}; about half a second, once per process.

    For each size, one thread and one thread per core are tried, each on a buffer of its own, and the best of several
    runs counts. Small sizes lie in the caches, so the table is aware of them. Method: the copy kernel of McCalpin's
    STREAM benchmark (https://www.cs.virginia.edu/stream/), with sizes from cache to memory.
    """
    top = int(min(2**27, max(2**20, memory_free() // 8)))
    sizes = [size for size in (2**16, 2**18, 2**20, 2**22, 2**24, 2**25, 2**26, 2**27) if size <= top]
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        return {size: max(_copy_rate(size, workers, pool) for workers in {1, cores()}) for size in sizes}


def _copy_rate(size, workers, pool, seconds=0.03):
    """Bytes per second that `workers` threads read and write together, `size` bytes in all."""
    each = size // 2 // workers
    pairs = [(np.ones(each, np.uint8), np.ones(each, np.uint8)) for _ in range(workers)]
    best, end = 0.0, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        if workers == 1:
            np.copyto(*pairs[0])
        else:
            list(pool.map(lambda pair: np.copyto(*pair), pairs))
        now = time.perf_counter()
        best = max(best, 2 * each * workers / (now - start))
        if now > end:
            return best


def memory_rate(nbytes):
    """The most bytes per second that memory or cache could deliver for a working set of `nbytes`, measured."""
    table = bandwidth()
    # The next smaller size is the faster one: an upper bound must not be too low.
    return max(rate for size, rate in table.items() if size >= max(s for s in table if s <= max(nbytes, min(table))))


# ---------------------------------------------------------------------------------------------------------------------
# The doctor


class Report:
    """What doctor() found: rows of (subject, finding) and advice. Shows itself in a terminal and in a notebook."""

    def __init__(self, rows, advice):
        self.rows, self.advice = rows, advice

    def __repr__(self):
        width = max(len(subject) for subject, _ in self.rows)
        lines = [f"{subject:<{width}}  {finding}" for subject, finding in self.rows]
        return "\n".join(lines + [""] * bool(self.advice) + [f"- {line}" for line in self.advice])

    def _repr_html_(self):
        left = "style='text-align:left'"
        rows = "".join(f"<tr><th scope='row' {left}>{html.escape(subject)}</th><td {left}>{html.escape(finding)}</td>"
                       "</tr>" for subject, finding in self.rows)
        advice = "".join(f"<li>{html.escape(line)}</li>" for line in self.advice)
        return f"<table><caption>This machine</caption>{rows}</table>" + (f"<ul>{advice}</ul>" if advice else "")


def doctor():
    """Look at this machine and say what a lesson can do on it, and what would falsify a measurement."""
    facts = describe()
    tool = compiler()
    gpus = facts["gpus"] or [d for d in facts["devices"].get("jax", []) if not d.startswith("cpu")]
    known = facts["versions"]
    rows = [("Processor", f"{facts['cpu']} ({facts['architecture']})"),
            ("Cores usable", str(facts["cores"])),
            ("Memory", f"{facts['memory_bytes'] / 2**30:.1f} GiB, {facts['memory_free_bytes'] / 2**30:.1f} GiB free"),
            ("Disk free", f"{shutil.disk_usage(tempfile.gettempdir()).free / 2**30:.1f} GiB for temporary files"),
            ("GPU", ", ".join(gpus) or "none"),
            ("C compiler", os.path.basename(tool) if tool else "none"),
            ("System", facts["system"]),
            ("Versions", ", ".join(f"{name} {version}" for name, version in known.items())),
            ("Native threads", ", ".join(f"{k}: {v}" for k, v in facts["threads"].items()) or "library defaults"),
            ("Overrides", ", ".join(f"{k}={v}" for k, v in facts["overrides"].items()) or "none")]
    return Report(rows, _advice(facts, tool))


def _advice(facts, tool):
    known, advice = facts["versions"], []
    if not tool:
        advice.append("No C compiler: parts that build C or Cython are skipped. On Debian or Ubuntu, "
                      "`sudo apt install gcc`; on macOS, `xcode-select --install`.")
    for name, names in {"JAX": ["jax"], "TensorFlow": ["tensorflow", "tensorflow-cpu"], "Numba": ["numba"],
                        "Cython": ["Cython"]}.items():
        if not set(names) & set(known):
            advice.append(f"{name} is not installed: the parts that use it are skipped. "
                          f"`pip install {names[-1]}` adds it.")
    if facts["cores"] == 1:
        advice.append("One core: whatever gains from threads elsewhere gains nothing here.")
    if facts["memory_free_bytes"] < 2 * 2**30:
        advice.append("Under 2 GiB of memory free: the pages choose smaller arrays. Closing other notebooks helps.")
    if facts["overrides"]:
        advice.append("Environment settings change results here: " + ", ".join(facts["overrides"]) +
                      ". Unset them for numbers that you want to compare with others'.")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > facts["cores"]:
        advice.append("Other programs keep the cores busy now: expect wide intervals.")
    if os.environ.get("COLAB_RELEASE_TAG") or os.environ.get("BINDER_SERVICE_HOST"):
        advice.append("This machine is borrowed: nothing that you save here lasts. Download what you want to keep.")
    return advice
