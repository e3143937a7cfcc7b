"""Crossing from one framework to another: addresses, an array's fate at the border, fresh processes, a scatter plot."""

import contextlib
import ctypes
import gc
import os
import shutil
import subprocess
import sys

import numpy as np

from . import frameworks
from .drawing import COLOURS, FAINT, INK, MARKERS, Figure, log_scale, mark, picture, power
from .tracing import attempt, brief


def aligned(values, offset=0):
    """A NumPy copy of `values` that starts at a multiple of 64 bytes, or `offset` bytes after one."""
    values = np.asarray(values)
    room = np.zeros(values.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    copy = room[start:start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def address(array):
    """Where the first element of an array of any framework lies in memory; None where that can't be told."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    span = frameworks.adapter_of(array).span(array)
    return span and span[0]


def crossing(fn, array):
    """What becomes of an array that fn hands to another framework: "shared, float32", "copied, …" or the error."""
    result = attempt(fn, array)
    if isinstance(result, Exception):
        return brief(result)
    kind, here, there = frameworks.adapter_of(result).dtype(result), address(array), address(result)
    if here is None or there is None:
        return f"accepted, {kind}"
    return f"{'shared' if here == there else 'copied'}, {kind}"


def tidy():
    """Forget compiled JAX programs and give free memory back to the system."""
    if frameworks._loaded("jax"):
        sys.modules["jax"].clear_caches()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # only the GNU C library has malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


def program_bytes(compiled):
    """Bytes of memory that a compiled JAX program works in: its arguments, its results and what lies between."""
    found = compiled.memory_analysis()
    return found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes


def fresh_process(code, **environment):
    """The last line that `code` prints in a new Python without this one's framework settings; None if it fails."""
    ours = ("XLA_PYTHON_CLIENT_", "XLA_CLIENT_", "TF_FORCE_GPU_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                              env={**clean, "TF_CPP_MIN_LOG_LEVEL": "3", **environment})
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else None


_ASK = ("import subprocess\nused = lambda: sum(map(int, subprocess.run(['nvidia-smi', '--query-gpu=memory.used', "
        "'--format=csv,noheader,nounits'], capture_output=True, text=True).stdout.split()))\nbefore = used()\n")


def gpu_memory_taken(code, **environment):
    """MiB of GPU memory that a new Python holds after running `code`; None without an NVIDIA GPU."""
    if not shutil.which("nvidia-smi"):
        return None
    found = fresh_process(f"{_ASK}{code}\nprint(used() - before)", **environment)
    return None if found is None else int(found)


def front(x, y):
    """Indices of the points that no other point beats in both x and y (smaller is better), by growing x."""
    best, found = np.inf, []
    for i in np.lexsort((y, x)):
        if y[i] < best:
            best = y[i]
            found.append(int(i))
    return found


def plot_front(x, y, groups, title, xlabel, ylabel, finding, names):
    """Points on log axes, a colour and a marker for each group, and a line along the front, whose points are named.

    groups: a label for each point. finding: a sentence that the caller has computed. names: a text for each point.
    """
    x, y, labels = np.asarray(x, float), np.asarray(y, float), list(dict.fromkeys(groups))
    best = front(x, y)

    def draw(ax):
        for i, label in enumerate(labels):
            chosen = [k for k, group in enumerate(groups) if group == label]
            ax.scatter(x[chosen], y[chosen], s=24, color=COLOURS[i], marker=MARKERS[i], alpha=0.65, linewidth=0,
                       label=label)
        ax.step(x[best], y[best], where="post", color=INK, linewidth=1.3, zorder=0.9)
        for k in best:  # its own marker, outlined: the shape must still tell the group
            i = labels.index(groups[k])
            ax.scatter(x[k], y[k], s=42, color=COLOURS[i], marker=MARKERS[i], edgecolor=INK, linewidth=1.3, zorder=4)
        log_scale(ax, "x", power)
        log_scale(ax, "y", power)
        ax.set_xlim(left=ax.get_xlim()[0] / 2)  # room for the names
        ax.set_ylim(bottom=ax.get_ylim()[0] / 1.5)
        last = None
        for k in reversed(best):  # the best is always named, the others where there is room
            at = ax.transData.transform((x[k], y[k]))
            if last is None or abs(at[1] - last) > 60:
                mark(ax.annotate(names[k], (x[k], y[k]), xytext=(-6, -8), textcoords="offset points", ha="right",
                                 va="top", fontsize=8, color=FAINT), "front")
                last = at[1]
        ax.set(xlabel=f"{xlabel} (log scale)", ylabel=f"{ylabel} (log scale)")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1), ncols=5, frameon=False, borderaxespad=0.1)

    told = "; ".join(f"{names[k]}: {x[k]:,.0f} and {y[k]:.3g}" for k in best)
    alt = f"{title}. {finding} On the front, {xlabel} and {ylabel}: {told}."
    return picture(draw, title, finding, alt, 3.6, key="black line: the front, which no other network beats in both")


__all__ = ["Figure", "address", "aligned", "crossing", "fresh_process", "front", "gpu_memory_taken", "plot_front",
           "program_bytes", "tidy"]
