"""What the clock notices about a case before anyone believes its number.

Facts collects what can be seen of one case (arguments, results, compilations, samples) and turns it into caveats. The
kinds, each with what happened and what to do about it:

nothing-to-wait-for, recompiles, constant-folded, dead-code, transfer, dtype-mismatch, device-mismatch, values-differ,
faster-than-memory, cached-result, input-changed, not-finite, noisy, drifting, few-samples, cut-short.
"""

import asyncio
import concurrent.futures
import dataclasses
import inspect
import time
import zlib
from collections import Counter

import numpy as np

from . import frameworks

_CHUNK = 2**20  # elements compared at a time, so that comparing needs little memory
_NOISY = 0.25  # half-width of the median's interval, relative to the median
_WIDEST_ACCUSED = 2.0  # a result must outrun the measured bandwidth by more than this to be accused
_IN_CACHE = 2**22  # bytes; below, caches of unknown depth could deliver anything


@dataclasses.dataclass(frozen=True)
class Caveat:
    """Why a number may not mean what it seems to. kind: a fixed short word; sentence: what happened, what to do."""

    kind: str
    sentence: str

    def __str__(self):
        return f"{self.kind}: {self.sentence}"


class Facts:
    """What is known of one case."""

    def __init__(self, label):
        self.label, self.caveats = label, []
        self.input_dtypes, self.dtypes, self.devices = set(), set(), set()
        self.fresh_bytes = self.input_bytes = 0
        self.same_object = False

    def add(self, kind, sentence):
        if all(caveat.kind != kind for caveat in self.caveats):
            self.caveats.append(Caveat(kind, sentence))

    # -- at the first call

    def look_at_call(self, fn, args):
        """Before the first call: what goes in."""
        inputs = frameworks.leaves(args)
        self.input_dtypes = _floating(inputs)
        self.input_bytes = sum(frameworks.adapter_of(leaf).nbytes(leaf) for leaf in inputs)
        self.prints = [_fingerprint(leaf) for leaf in inputs]
        self.spans = [span for leaf in [*inputs, *frameworks.leaves(_held(fn))]
                      if (span := frameworks.adapter_of(leaf).span(leaf))]
        self.used = frameworks.frameworks_used(fn, args)

    def look_at_result(self, fn, args, result, fresh_args=False):
        """After the first call: what came out, and how the function treats its arguments."""
        inputs, outputs = frameworks.leaves(args), frameworks.leaves(result)
        self.dtypes, self.devices = _floating(outputs), _devices(outputs)
        fresh = [leaf for leaf in outputs if not self._is_input(leaf, inputs)]
        self.fresh_bytes = sum(frameworks.adapter_of(leaf).nbytes(leaf) for leaf in fresh
                               if frameworks.adapter_of(leaf).device(leaf) == "cpu")
        self._pending_work(result, outputs)
        if not fresh_args:
            self._changed_input(inputs, outputs)
        self._folded_or_dead(fn, args)
        self._transfer(inputs, outputs)
        if self.dtypes and self.input_dtypes and "float64" in self.input_dtypes and "float64" not in self.dtypes \
                and self.used:
            self.add("dtype-mismatch", "float64 arguments came out as " + ", ".join(sorted(self.dtypes)) + ": the "
                     "framework narrowed them without a word. Pass float32 to both sides, or enable 64-bit mode.")
        if any(_has_nan(leaf) for leaf in outputs):
            self.add("not-finite", "the result holds NaN, so its values were not really checked, and operations on "
                     "NaN can take another path. Time it on inputs where the function is defined.")

    def _is_input(self, leaf, inputs):
        if any(leaf is other for other in inputs):
            return True
        span = frameworks.adapter_of(leaf).span(leaf)
        return span is not None and any(low < span[1] and span[0] < high for low, high in self.spans)

    def _pending_work(self, result, outputs):
        lazy = _lazy_kind(result)
        if lazy:
            self.add("nothing-to-wait-for", f"the call returned a {lazy}: the work is still to be done, and was not "
                     "timed. Return the finished values.")
        elif self.used and not outputs and result is None:
            self.add("nothing-to-wait-for", f"the call uses {' and '.join(sorted(self.used))} but returned nothing to "
                     "wait for, so the clock may have stopped before the work did. Return the arrays it computes.")

    def _changed_input(self, inputs, outputs):
        for before, leaf in zip(self.prints, inputs, strict=True):
            if before is None or _fingerprint(leaf) == before or any(leaf is out for out in outputs):
                continue
            if _as_output(leaf, outputs):
                continue
            self.add("input-changed", "the function changes its argument, so every later call works on other data than "
                     "the first, such as an array that is sorted already. Use setup= to make fresh arguments.")

    def _folded_or_dead(self, fn, args):
        compiler = frameworks.compiler_of(fn)
        if compiler is None:
            return
        work = frameworks.jax_work(fn, args)
        if work is None:
            if not frameworks.leaves(args) and not (compiler.module == "numba" and args):
                self.add("constant-folded", "a compiled function without array arguments can be computed while it is "
                         "compiled, and the call then only hands out the answer. Pass the data as arguments.")
            return
        if work["inputs"] == 0 or work["constant"] > 0.5 * work["total"] > 0:
            self.add("constant-folded", "most of the work does not depend on the arguments, so the compiler can do it "
                     "once, ahead of the timed calls. Pass the data as arguments instead of capturing it.")
        if work["dead"] > 0.2 * work["total"] > 0:
            share = work["dead"] / work["total"]
            self.add("dead-code", f"{100 * share:.0f} % of the work does not reach the result, and the compiler leaves "
                     "it out. Return, or add into the result, every value that is to be timed.")

    def _transfer(self, inputs, outputs):
        home = [leaf for leaf in inputs if isinstance(leaf, np.ndarray) and leaf.ndim]
        if home and self.used and any(not frameworks.adapter_of(leaf).on_host for leaf in outputs):
            size = sum(leaf.nbytes for leaf in home)
            self.moved = size
            self.transfer_of = home
        else:
            self.moved = 0

    # -- values

    def compare_values(self, result, reference, tolerance):
        """Check the result against the first case's; returns the reference for the next case."""
        mine = [_host(leaf) for leaf in frameworks.leaves(result)] or _numbers(result)
        if not mine:
            return reference
        if reference is None:
            return self.label, mine
        other, theirs = reference
        for where, sentence in enumerate(_differences(mine, theirs, tolerance)):
            if sentence:
                place = f" in part {where} of the result" if len(mine) > 1 else ""
                self.add("values-differ", f"{sentence}{place} compared with {other!r}: the two do not compute the same "
                         "thing. Make them agree, or state tolerance=.")
                break
        return reference

    # -- at the second call

    def look_at_second_result(self, case, args, first, second):
        """Did the second call do any work of its own?"""
        if second is not first or case.carry or not frameworks.leaves(second):
            if isinstance(second, float) and second is first:
                self.same_object = not any(second is arg for arg in args)
            return
        inputs = frameworks.leaves(args)
        fresh = [leaf for leaf in frameworks.leaves(second) if not any(leaf is other for other in inputs)]
        writable = [leaf for leaf in fresh if isinstance(leaf, np.ndarray) and leaf.flags.writeable and leaf.size]
        if not fresh:
            return
        # An immutable array that comes back a second time was not computed again. A NumPy buffer may have been
        # filled again: smudge one element and see whether the function wipes it clean.
        self.same_object = len(writable) < len(fresh) or any(_stays_smudged(case, args, leaf) for leaf in writable)

    # -- after the rounds

    def judge(self, samples, steady, compiles, traced, count, harness, cut):
        """Caveats that need the finished samples."""
        if self.moved:
            spent = _transfer_seconds(self.transfer_of, self.used)
            share = "" if spent is None else f", about {100 * min(1.0, spent / steady):.0f} % of the time"
            self.add("transfer", f"each call takes {_bytes(self.moved)} of host arrays over to the framework{share}. "
                     "Convert them once before the clock starts, or time the transfer by itself.")
        self.transfer_of = None
        if compiles or traced:
            what = f"{compiles} times in {count} timed calls" if compiles else "in every call"
            self.add("recompiles", f"the function was compiled or traced again {what}, and that time is in the number. "
                     "Create the compiled function once, outside, and keep shapes, dtypes and Python values the same.")
        if self.same_object:
            self.add("cached-result", "every call hands back the very same object without computing it again. Time a "
                     "call that does the work.")
        self._outran_memory(steady)
        self._spread(samples, steady)
        if cut:
            self.add("cut-short", f"the measurement was interrupted after {len(samples)} samples.")

    def _outran_memory(self, steady):
        moved = self.fresh_bytes + (self.input_bytes if self.same_object else 0)
        # Only what cannot lie in a cache is accused, and only beyond what memory was measured to do.
        if moved < _IN_CACHE or moved / steady < 5e9:
            return
        from .machine import memory_rate
        rate = memory_rate(moved)
        if moved / steady > _WIDEST_ACCUSED * rate:
            self.add("faster-than-memory", f"{_bytes(moved)} in this time would need "
                     f"{moved / steady / 1e9:,.0f} GB/s, and this machine was measured at {rate / 1e9:,.0f} GB/s: the "
                     "work was not done, or not yet. Touch the result before the clock stops.")

    def _spread(self, samples, steady):
        from .results import median_interval, seconds
        low, high = median_interval(samples)
        count = len(samples)
        if count < 6:
            sure = 1 - 2.0 ** (1 - count)
            how = "once, so its spread is unknown" if count == 1 else f"{count} times, so the interval holds with " \
                f"{100 * sure:.0f} % only"
            self.add("few-samples", f"the function is slow for this budget and ran {how}. Raise budget= or give it "
                     "less to do.")
            return
        if (high - low) / 2 > _NOISY * steady:
            self.add("noisy", f"the median lies somewhere between {seconds(low)} and {seconds(high)}. Close other "
                     "programs, or raise budget=.")
        if count >= 12:
            third = count // 3
            if np.median(samples[-third:]) > 1.5 * np.median(samples[:third]) and _rising(samples):
                self.add("drifting", "each call takes longer than the one before: the function leaves something "
                         "behind, such as a list that grows. Start each call from the same state.")


def across(facts):
    """Caveats that only a comparison shows: unequal precision, unequal devices."""
    for attribute, kind, sentence in (
            ("dtypes", "dtype-mismatch", "computes in {mine} where {other!r} computes in {theirs}: half the bits are "
             "half the memory traffic. Give both the same dtype."),
            ("devices", "device-mismatch", "runs on {mine} where {other!r} runs on {theirs}: that compares the "
             "hardware, not the code. Compare on one device, or say that the device is what differs.")):
        known = [fact for fact in facts if getattr(fact, attribute)]
        usual = Counter(frozenset(getattr(fact, attribute)) for fact in known).most_common(1)
        for fact in known:
            mine = getattr(fact, attribute)
            other = next((o for o in known if frozenset(getattr(o, attribute)) == usual[0][0]), fact)
            if frozenset(mine) != usual[0][0]:
                words = {"mine": "/".join(sorted(mine)), "theirs": "/".join(sorted(getattr(other, attribute)))}
                fact.add(kind, sentence.format(other=other.label, **words))


# ---------------------------------------------------------------------------------------------------------------------


def _floating(leaves):
    """Names of the floating and complex dtypes among arrays, host scalars apart."""
    names = {frameworks.adapter_of(leaf).dtype(leaf) for leaf in leaves if not isinstance(leaf, np.generic)}
    return {name for name in names if "float" in name or "complex" in name}


def _devices(leaves):
    return {frameworks.adapter_of(leaf).device(leaf) for leaf in leaves}


def _held(fn):
    return [value for value in frameworks.reachable(fn) if frameworks.adapter_of(value)]


def _host(leaf):
    return frameworks.adapter_of(leaf).numpy(leaf)


def _numbers(result):
    return [np.asarray(result)] if isinstance(result, (int, float, complex)) else []


def _fingerprint(leaf):
    """A checksum over at most 64 Ki elements spread over a NumPy array; None for arrays that can't change."""
    if not isinstance(leaf, np.ndarray) or not leaf.flags.c_contiguous or leaf.dtype.hasobject:
        return None
    flat = leaf.reshape(-1)
    return zlib.crc32(flat[:: max(1, flat.size >> 16)].tobytes())


def _as_output(leaf, outputs):
    """Is this argument the memory that the result was written to, as with out=?"""
    return any(isinstance(out, np.ndarray) and np.may_share_memory(leaf, out) for out in outputs)


def _lazy_kind(result):
    if isinstance(result, (concurrent.futures.Future, asyncio.Future)):
        return "future"
    if inspect.isawaitable(result):
        return "coroutine"
    if inspect.isgenerator(result) or isinstance(result, (map, filter, zip)):
        return "generator"
    return None


def _has_nan(leaf):
    if not _floating([leaf]):
        return False
    values = _host(leaf).reshape(-1)
    return any(bool(np.isnan(values[i:i + _CHUNK]).any()) for i in range(0, values.size, _CHUNK)
               ) if values.dtype.kind in "fc" else False


_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-7}


def _differences(mine, theirs, tolerance):
    """For each pair of results, None or what differs."""
    if len(mine) != len(theirs):
        yield f"{len(mine)} arrays came out instead of {len(theirs)}"
        return
    for a, b in zip(mine, theirs, strict=True):
        yield _difference(a, b, tolerance)


def _difference(a, b, tolerance):
    if a.shape != b.shape:
        return f"shape {a.shape} came out instead of {b.shape}"
    if a.dtype.kind not in "biufc" or b.dtype.kind not in "biufc":
        a, b = _widened(a), _widened(b)
        if a is None or b is None:
            return None
    size = min((x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) for x in (a, b) if x.dtype.kind in "fc"),
               default=None)
    relative = tolerance if tolerance is not None else _TOLERANCE.get(size, 0.0 if size is None else 1e-7)
    worst, where, scale = 0.0, 0, _scale(b)
    a, b = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, _CHUNK):
        x, y = a[start:start + _CHUNK], b[start:start + _CHUNK]
        kind = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        with np.errstate(invalid="ignore"):
            gap = np.abs(x.astype(kind) - y.astype(kind))
        same = (x == y) | (np.isnan(x.astype(kind)) & np.isnan(y.astype(kind)))
        gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
        index = int(gap.argmax())
        if gap[index] > worst:
            worst, where = float(gap[index]), start + index
    if worst <= relative * scale:
        return None
    return f"element {where} is {a[where]:.6g} instead of {b[where]:.6g}"


def _widened(values):
    """bfloat16 and the 8-bit floats, as float32; None for what is no number."""
    try:
        return values.astype(np.float32)
    except (TypeError, ValueError):
        return None


def _scale(values):
    """The size that a difference is relative to: the largest finite magnitude."""
    flat, largest = values.reshape(-1), 0.0
    for start in range(0, flat.size, _CHUNK):
        part = np.abs(flat[start:start + _CHUNK].astype(np.complex128 if flat.dtype.kind == "c" else np.float64))
        part = part[np.isfinite(part)]
        largest = max(largest, float(part.max(initial=0.0)))
    return largest or 1.0


def _stays_smudged(case, args, leaf):
    """Change one element of a result buffer and call again: does the change survive? It is undone in any case."""
    flat = leaf.reshape(-1) if leaf.flags.c_contiguous else None
    if flat is None or leaf.dtype.hasobject:
        return False
    kept = flat[:1].copy()
    flat.view(np.uint8)[: leaf.itemsize] ^= 0x55
    smudged = flat[:1].tobytes()
    try:
        case.fn(*args)
        return flat[:1].tobytes() == smudged
    finally:
        if flat[:1].tobytes() == smudged:
            flat[:1] = kept


def _transfer_seconds(arrays, used):
    """Seconds to hand these host arrays to the framework, the best of three; None if it can't be told."""
    best = None
    try:
        put = frameworks.adapter_for(min(used)).put
        for _ in range(3):
            start = time.perf_counter()
            frameworks.wait([put(array) for array in arrays])
            best = min(best or 1e9, time.perf_counter() - start)
    except Exception:  # an array kind that the framework cannot take by itself
        return None
    return best


def _bytes(count):
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _rising(samples):
    from scipy.stats import spearmanr
    return spearmanr(range(len(samples)), samples).statistic > 0.8
