"""What a check needs to judge an answer by its properties: calls, values, types, names used, and speed."""

import copy
import functools
import inspect
import itertools
import linecache
import math
import numbers
import sys
import types

import numpy as np

from .. import frameworks
from ..caveats import _lazy_kind
from ..results import MeasurementError, Ratio, times
from .guard import Stopped

CALL_LIMIT = 10.0  # seconds for one call of the learner's function, compilation included
SPEED_LIMIT = 60.0  # seconds for one speed measurement

# Caveats of the clock under which a fast answer does not count: the work was not done, or not the same work.
# Not "dead-code": an answer that is right may well compute more than it hands out (lax.associative_scan does).
REFUSED = {"cached-result", "constant-folded", "nothing-to-wait-for", "recompiles", "values-differ", "dtype-mismatch",
           "device-mismatch", "input-changed"}

_RTOL = {2: 2e-2, 4: 1e-4, 8: 1e-9}


class Wrong(Exception):
    """The answer is wrong. The message is one sentence: what was wrong and what to try."""


class Trial:
    """One check of one answer.

    rng: a NumPy Generator, freshly seeded for each check. speedups: the ratios that faster() measured.
    """

    def __init__(self, guard=None):
        self.rng = np.random.default_rng()
        self.speedups = []
        self._guard = guard

    # -- calling

    def call(self, fn, *args, limit=None, may_change=False):
        """fn(*args), finished, with whatever the learner's function does wrong turned into Wrong.

        limit: seconds (default CALL_LIMIT). may_change: the function may change its arguments in place.
        Raises Wrong for an exception, a wrong number of parameters, or an argument that was changed.
        """
        name = named(fn)
        self._callable_with(fn, args, name)
        given = f"{name}({', '.join(shown(arg) for arg in args)})"
        kept = None if may_change else [_copied(arg) for arg in args]
        limit = CALL_LIMIT if limit is None else limit
        with self._limit(limit, f"`{given}` did not return within {limit:g} s: look for a loop that never ends."):
            result = _called(fn, args, name, given)
        for place, (before, after) in enumerate(zip(kept or (), args, strict=bool(kept))):
            if before is not _KEPT_NOTHING and not _same(before, after):
                raise Wrong(f"`{name}` changes its argument number {place + 1} in place: work on a copy, and return "
                            "the result.")
        return result

    def _callable_with(self, fn, args, name):
        if not callable(fn):
            raise Wrong(f"A function is needed here, and this is {described(fn)}: hand over the function itself, "
                        "without calling it.")
        try:
            signature = inspect.signature(fn)
        except (TypeError, ValueError):  # some built-in functions have none
            return
        try:
            signature.bind(*args)
        except TypeError:
            count = f"{len(args)} argument{'s' * (len(args) != 1)}"
            raise Wrong(f"`{name}` must take {count}, but yours is written as `{name}{signature}`.") from None

    def _limit(self, seconds, sentence):
        return self._guard.limit(seconds, sentence) if self._guard else _no_limit()

    # -- values

    def close(self, got, want, what="the result", rtol=None, atol=None, dtype=True):
        """Check that `got` has the structure, shape, dtype and values of `want`; Wrong names the first that differs.

        what: how the sentence calls it. rtol: relative tolerance (default 1e-9 for float64, 1e-4 for float32, 2e-2
        for 16 bits; integers must be equal). atol: absolute tolerance (default: a hundredth of rtol times the largest
        magnitude in `want`). dtype=False leaves the dtype open.
        """
        _finished(got, what)
        if isinstance(want, dict):
            self._keys(got, want, what)
            pairs = [(f"{what}[{key!r}]", got[key], want[key]) for key in want]
        elif isinstance(want, (tuple, list)):
            self._length(got, want, what)
            pairs = [(f"{what}[{i}]", *pair) for i, pair in enumerate(zip(got, want, strict=True))]
        else:
            return self._leaf(got, want, what, rtol, atol, dtype)
        for name, mine, theirs in pairs:
            self.close(mine, theirs, name, rtol, atol, dtype)

    def _keys(self, got, want, what):
        if not isinstance(got, dict):
            raise Wrong(f"{_capital(what)} must be a dict, not {described(got)}.")
        if set(got) != set(want):
            raise Wrong(f"{_capital(what)} must have the keys {', '.join(map(repr, want))}; yours has "
                        f"{', '.join(map(repr, got)) or 'none'}.")

    def _length(self, got, want, what):
        kind = type(want).__name__
        if not isinstance(got, (tuple, list)):
            raise Wrong(f"{_capital(what)} must be a {kind} of {len(want)}, not {described(got)}.")
        if len(got) != len(want):
            raise Wrong(f"{_capital(what)} must have {len(want)} parts; yours has {len(got)}.")

    def _leaf(self, got, want, what, rtol, atol, dtype):
        if want is None or isinstance(want, str):
            if got != want:
                raise Wrong(f"{_capital(what)} must be {want!r}, not {shown(got)}.")
            return
        if np.ndim(want) and isinstance(got, (list, tuple)):
            raise Wrong(f"{_capital(what)} must be {_a(library_of(want))}, not {described(got)}.")
        a, b = values_of(got, what), values_of(want, what)
        if a.shape != b.shape:
            raise Wrong(f"{_capital(what)} has shape {a.shape}, but {b.shape} is needed.")
        if dtype and a.dtype != b.dtype:
            raise Wrong(f"{_capital(what)} has dtype {a.dtype}, but {b.dtype} is needed.")
        difference = _first_difference(a, b, rtol, atol)
        if difference:
            raise Wrong(f"{_capital(what)} {difference}.")

    def same_type(self, got, want, what="the result"):
        """Check that `got` comes from the library that `want` comes from."""
        _finished(got, what)
        mine, theirs = library_of(got), library_of(want)
        if mine != theirs:
            raise Wrong(f"{_capital(what)} must be {_a(theirs)}, but is {_a(mine)}.")

    def number(self, answer, what="your answer", integer=False):
        """`answer` as a float (integer=True: an int), or Wrong for what is no finite number."""
        if isinstance(answer, str):
            raise Wrong(f"{_capital(what)} must be a number: write it without quotes.")
        if isinstance(answer, np.ndarray) or frameworks.adapter_of(answer):
            array = values_of(answer, what)
            if array.size != 1:
                raise Wrong(f"{_capital(what)} must be one number, not an array of shape {array.shape}.")
            answer = array.reshape(-1)[0].item()
        if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
            raise Wrong(f"{_capital(what)} must be a number, not {described(answer)}.")
        if not math.isfinite(answer):
            raise Wrong(f"{_capital(what)} must be a finite number, not {answer}.")
        if integer and answer != int(answer):
            raise Wrong(f"{_capital(what)} must be a whole number, and {answer:g} is none.")
        return int(answer) if integer else float(answer)

    def word(self, answer, choices=(), what="your answer"):
        """`answer` as text without surrounding space; a class or function counts as its name.

        choices: the words allowed. The case of letters does not matter: the word comes back as `choices` spell it, or
        in lower case without choices.
        """
        answer = getattr(answer, "__name__", answer)
        if not isinstance(answer, str):
            raise Wrong(f"{_capital(what)} must be a word in quotes, not {described(answer)}.")
        text = answer.strip().strip("`'\"").strip()
        if not choices:
            return text.lower()
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        raise Wrong(f"{_capital(what)} must be one of {', '.join(map(repr, choices))}, not {answer[:60]!r}.")

    # -- names

    def uses(self, fn, *names):
        """The first of `names` that fn refers to, or "": in its code, in helpers of the same notebook that it calls,
        in what it closes over, as a text that is just the name, or because it is that function under another name."""
        found = set(_names_in(fn))
        return next((name for name in names if name in found), "")

    # -- speed

    def faster(self, fn, baseline, make_args, factor, what="your function", budget=0.25, rtol=None, atol=None,
               dtype=True):
        """Check that fn gives what baseline gives and is at least `factor` times as fast, by the clock, here and now.

        make_args: () → tuple of fresh arguments, different at each call, made before every call and not timed. budget:
        seconds of samples per function. rtol, atol, dtype: see close().
        Returns the Ratio "the baseline takes … times as long"; raises Wrong, with the ratio measured if that is it.
        """
        from ..timing import Case, compare

        self._agrees(fn, baseline, make_args, what, rtol, atol, dtype)
        fn = _without_the_lock(fn)

        def measured(budget):
            cases = [Case(label, f, setup=lambda: frameworks.wait(tuple(make_args())), check=False)
                     for label, f in (("the baseline", baseline), ("yours", fn))]
            with self._limit(SPEED_LIMIT, f"Measuring {what} took more than {SPEED_LIMIT:g} s: it is far too slow."):
                return compare(*cases, budget=budget)
        try:
            comparison = measured(budget)
            ratio = comparison.ratio("the baseline", "yours")
            if ratio.low < factor <= ratio.high:  # too close to call: look again, longer
                comparison = measured(3 * budget)
                ratio = comparison.ratio("the baseline", "yours")
        except MeasurementError as error:
            raise Wrong(f"The clock could not time {what}: {error}") from None
        self._counts(comparison["yours"].caveats, what)
        self._agrees(fn, baseline, make_args, what, rtol, atol, dtype, again=" after many calls")
        if ratio.estimate < factor:
            raise Wrong(_too_slow(ratio.estimate, factor, what))
        ratio = Ratio(*map(float, ratio))
        self.speedups.append(ratio)
        return ratio

    def _agrees(self, fn, baseline, make_args, what, rtol, atol, dtype, again=""):
        """Two calls on different inputs, since one answer may be remembered."""
        before = None
        for _ in range(2):
            args = tuple(make_args())
            got, want = self.call(fn, *args), frameworks.wait(baseline(*args))
            try:
                self.close(got, want, "the result", rtol, atol, dtype)
            except Wrong as wrong:
                if before is not None and _agree(self, got, before):
                    raise Wrong(f"{_capital(what)} hands back the answer to an earlier call: compute it from the "
                                "arguments each time.") from None
                raise Wrong(f"{_capital(what)} must give what the slow version gives{again}. {wrong}") from None
            before = copy.deepcopy(got) if isinstance(got, np.ndarray) else got

    def _counts(self, caveats, what):
        for caveat in caveats:
            if caveat.kind in REFUSED:
                raise Wrong(f"The time of {what} does not count ({caveat.kind}): {caveat.sentence}")


def _too_slow(estimate, factor, what):
    if estimate >= 1.05:
        return (f"{_capital(what)} is right, and {times(estimate)} as fast as the given version here; "
                f"{times(factor)} is asked for.")
    if estimate > 0.95:
        return (f"{_capital(what)} is right, but takes as long as the given version; {times(factor)} as fast is "
                "asked for.")
    return (f"{_capital(what)} is right, but takes {times(1 / estimate)} as long as the given version; "
            f"{times(factor)} as fast is asked for.")


# ---------------------------------------------------------------------------------------------------------------------
# Calling


class _no_limit:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def _called(fn, args, name, given):
    try:
        return frameworks.wait(_without_the_lock(fn)(*args))
    except Stopped:
        raise
    except RecursionError:
        raise Wrong(f"`{name}` calls itself again and again without coming to an end: give it a case that "
                    "returns.") from None
    except MemoryError:
        raise Wrong(f"`{given}` asks for more memory than there is: avoid the large intermediate arrays.") from None
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise Wrong(f"`{name}` raises {type(error).__name__}, which would end the program: use `return` "
                    "instead.") from None
    except BaseException as error:
        raise Wrong(f"Your function raised {_told(error)} when called as `{given}`{_where(fn, error)}.") from None


def _told(error):
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    first = first if len(first) <= 160 else first[:160] + " …"
    return f"{type(error).__name__}: {first.rstrip('.')}" if first else type(error).__name__


def _where(fn, error):
    """The learner's own line in which it happened."""
    code, found = getattr(unwrapped(fn), "__code__", None), None
    trace = error.__traceback__
    while trace is not None and code is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            found = linecache.getline(code.co_filename, trace.tb_lineno).strip() or None
        trace = trace.tb_next
    return f", in the line `{found[:120]}`" if found else ""


def _without_the_lock(fn):
    """A Numba function that keeps the interpreter's lock could not be stopped, so a copy that releases it is called."""
    options = getattr(fn, "targetoptions", None)
    numba = sys.modules.get("numba")
    if numba is None or not isinstance(options, dict) or options.get("nogil") or not hasattr(fn, "py_func"):
        return fn
    return _released(fn)


@functools.lru_cache(maxsize=8)
def _released(fn):
    keep = {name: value for name, value in fn.targetoptions.items() if name != "nogil"}
    try:
        return sys.modules["numba"].jit(nogil=True, **keep)(fn.py_func)
    except Exception:  # an option that jit() itself does not take
        return fn


# ---------------------------------------------------------------------------------------------------------------------
# Telling values apart and in words


_KEPT_NOTHING = object()


def _copied(arg):
    if isinstance(arg, np.ndarray):
        return arg.copy()
    if isinstance(arg, (list, dict, set, bytearray)):
        try:
            return copy.deepcopy(arg)
        except Exception:
            return _KEPT_NOTHING
    return _KEPT_NOTHING


def _same(before, after):
    if isinstance(before, np.ndarray):
        if before.shape != after.shape or before.dtype != after.dtype:
            return False
        if before.dtype.hasobject:
            return all(a is b or a == b for a, b in zip(before.ravel(), after.ravel(), strict=True))
        return before.tobytes() == after.tobytes()
    if isinstance(before, dict):
        return list(before) == list(after) and all(_same(before[key], after[key]) for key in before)
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(_same, before, after))
    try:
        return bool(before == after) or before != before
    except Exception:
        return True


def _agree(trial, got, want):
    try:
        trial.close(got, want, dtype=False)
    except Wrong:
        return False
    return True


def _finished(got, what):
    """Wrong for what is no value at all."""
    if got is None:
        raise Wrong(f"{_capital(what)} is None: does your function `return` it?")
    if got is Ellipsis:
        raise Wrong(f"{_capital(what)} is still `...`: put your own in its place.")
    if _lazy_kind(got):
        raise Wrong(f"{_capital(what)} is a {_lazy_kind(got)}, with its work still to be done: return the finished "
                    "values.")
    if isinstance(got, (types.FunctionType, types.BuiltinFunctionType)):
        raise Wrong(f"{_capital(what)} is a function: call it.")


def values_of(value, what="the result"):
    """`value` as a NumPy array, or Wrong if it holds no numbers."""
    try:
        adapter = frameworks.adapter_of(value)
        array = adapter.numpy(value) if adapter else np.asarray(value)
    except Exception:
        kind = "a value that JAX is still tracing: return it" if "Tracer" in type(value).__name__ else described(value)
        raise Wrong(f"{_capital(what)} is {kind}, not an array of numbers.") from None
    if array.dtype.kind in "OSUMm":
        raise Wrong(f"{_capital(what)} is {described(value)}, not numbers.")
    return array


def _first_difference(a, b, rtol, atol):
    """None, or how and where two arrays of one shape differ."""
    a, b = _plain(a), _plain(b)
    inexact = [x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) for x in (a, b) if x.dtype.kind in "fc"]
    if rtol is None:
        rtol = _RTOL.get(min(inexact), 1e-9) if inexact else 0.0
    if not inexact and not rtol and not atol:
        bad = a != b
    else:
        kind = complex if "c" in (a.dtype.kind, b.dtype.kind) else float
        x, y = a.astype(kind), b.astype(kind)
        if atol is None:
            finite = np.abs(y[np.isfinite(y)])
            atol = 0.01 * rtol * float(finite.max(initial=0.0))
        bad = ~np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    if not bad.any():
        return None
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    place = f"[{', '.join(map(str, where))}]" if where else ""
    many = f" ({int(bad.sum()):,} of {bad.size:,} elements differ)" if bad.size > 1 else ""
    return f"{place and 'at ' + place + ' '}is {_figure(a[where])}, but should be {_figure(b[where])}{many}"


def _plain(array):
    """bfloat16 and other additions to NumPy as float16 would be: their kind is "V", which NumPy cannot compare."""
    return array.astype(np.float32).astype(np.float16) if array.dtype.kind == "V" else array


def _figure(value):
    return f"{value:.7g}" if isinstance(value, np.floating) else str(value)


def library_of(value):
    """"a NumPy array" and the like, without the article."""
    names = {"numpy": "NumPy array", "jax": "JAX array", "tensorflow": "TensorFlow tensor", "torch": "PyTorch tensor"}
    adapter = frameworks.adapter_of(value)
    return names.get(adapter.module, adapter.module) if adapter else type(value).__name__


def described(value):
    """What a value is, in a few words.

    >>> described([1, 2])
    'a list'
    """
    if value is None or value is Ellipsis:
        return "None" if value is None else "still `...`"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value):
        return "a function"
    adapter = frameworks.adapter_of(value)
    if adapter and np.ndim(value):
        return f"{_a(library_of(value))} of shape {tuple(value.shape)}"
    return _a(library_of(value))


def shown(value):
    """A value as it would stand in a call: short ones in full, arrays by dtype and shape."""
    adapter = frameworks.adapter_of(value)
    if adapter and getattr(value, "shape", ()) != ():
        try:
            small = adapter.numpy(value) if math.prod(value.shape) <= 6 else None
        except Exception:
            small = None
        if small is not None and small.dtype.kind in "biuf":
            return f"array({small.tolist()}, {small.dtype})" if small.dtype.kind != "f" else \
                f"array({[float(f'{x:.4g}') for x in small.ravel()] if small.ndim == 1 else small.tolist()}, " \
                f"{small.dtype})"
        return f"<{adapter.dtype(value)} array of shape {tuple(value.shape)}>"
    if callable(value):
        return named(value)
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}…"


def named(fn):
    """The name of a function, whatever wraps it."""
    return getattr(unwrapped(fn), "__name__", None) or getattr(fn, "__name__", None) or type(fn).__name__


def _a(noun):
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _capital(text):
    return text[:1].upper() + text[1:]


# ---------------------------------------------------------------------------------------------------------------------
# Names that a function refers to


def unwrapped(fn):
    """The Python function inside jit, tf.function, njit, partial, vectorize and the like."""
    for _ in range(10):
        for name in ("__wrapped__", "py_func", "python_function", "pyfunc", "func", "__func__"):
            inner = getattr(fn, name, None)
            if callable(inner) and inner is not fn:
                fn = inner
                break
        else:
            break
    return fn


def _names_in(fn):
    """Every name that a function's code, closure and helpers refer to."""
    seen, todo, home = set(), [fn], getattr(unwrapped(fn), "__globals__", None)
    while todo and len(seen) < 200:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        inner = unwrapped(value)
        yield from filter(None, (getattr(value, "__name__", None), getattr(inner, "__name__", None)))
        if isinstance(value, type) or not isinstance(inner, types.FunctionType):
            todo += _inside(value)
            continue
        codes = list(_codes(inner.__code__))
        names = set(itertools.chain.from_iterable(code.co_names for code in codes))
        yield from names
        yield from (text for code in codes for text in code.co_consts if isinstance(text, str))
        closed = [cell.cell_contents for cell in inner.__closure__ or () if _filled(cell)]
        defaults = [*(inner.__defaults__ or ()), *(inner.__kwdefaults__ or {}).values()]
        reached = [inner.__globals__[name] for name in names if name in inner.__globals__]
        own = inner.__globals__ is home
        todo += [x for x in closed + defaults + (reached if own else [])
                 if callable(x) or isinstance(x, (list, tuple, dict))]


def _inside(value):
    """What a partial, a container or an object with __call__ holds."""
    if isinstance(value, (list, tuple)):
        return [x for x in value if callable(x)]
    if isinstance(value, dict):
        return [x for x in value.values() if callable(x)]
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
        return []
    held = [x for x in (getattr(value, "__dict__", None) or {}).values() if callable(x)]
    return held + [call for call in [vars(type(value)).get("__call__")] if isinstance(call, types.FunctionType)]


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _filled(cell):
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
