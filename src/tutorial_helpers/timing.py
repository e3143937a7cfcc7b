"""The clock that does not lie: measure one function, compare several, sweep over sizes.

It waits for asynchronous results, keeps the first call apart, batches what is too fast for the clock, interleaves
and shuffles the cases of a comparison, gives intervals that hold for skewed and autocorrelated samples, and says so
when a number does not mean what it seems to (see caveats.py for what it notices).
"""

import contextlib
import dataclasses
import functools
import gc
import itertools
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from . import caveats, frameworks, machine
from .caveats import Caveat
from .recording import recorded
from .results import Comparison, Crossover, MeasurementError, Ratio, Sweep, Timing, seconds

__all__ = ["Case", "Caveat", "Comparison", "Crossover", "MeasurementError", "Ratio", "Sweep", "Timing", "compare",
           "measure", "seconds", "sweep"]

_SAMPLE = 1e-3  # seconds that one sample should last: ten thousand times the clock's resolution
_ROUNDS = (6, 100)  # six samples are the fewest that an order-statistic interval of 95 % can be had from
_PATIENCE = 10  # a slow case may take this many times its budget to come to six samples
_SETUP_BYTES = 2**26  # room for arguments prepared ahead by Case(setup=…)

_clock = time.perf_counter


@dataclasses.dataclass(frozen=True, init=False)
class Case:
    """One function with its arguments, ready to be timed under a label.

    label: name in tables and figures, unique within a comparison. fn, *args: what is called.
    setup: () → tuple of fresh arguments, made before every call and not timed, for functions that use up or change
    their input. carry: the result becomes the first argument of the next call, as for a function that donates its
    input. check: compare the result with the other cases'.

    Raises MeasurementError if fn cannot be called.

    >>> Case("sum", sum, [1, 2, 3]).label
    'sum'
    """

    label: str
    fn: Callable
    args: tuple
    setup: Callable | None
    carry: bool
    check: bool

    def __init__(self, label, fn, *args, setup=None, carry=False, check=True):
        if not callable(fn):
            raise MeasurementError(f"Case {label!r} needs a function to call, not {type(fn).__name__}. Pass the "
                                   "function and its arguments apart: Case(label, f, x), not Case(label, f(x)).")
        if setup is not None and (carry or args):
            raise MeasurementError(f"Case {label!r}: setup= makes all arguments, so neither arguments nor carry=True "
                                   "go with it.")
        if carry and not args:
            raise MeasurementError(f"Case {label!r}: carry=True replaces the first argument, but there is none.")
        for name, value in {"label": str(label), "fn": fn, "args": args, "setup": setup, "carry": carry,
                            "check": check}.items():
            object.__setattr__(self, name, value)

    def fresh_args(self, before=None):
        """Arguments for the next call: made by setup=, or else those of the call before."""
        if self.setup:
            return tuple(self.setup())
        return self.args if before is None else before


@recorded
def measure(fn, *args, name=None, budget=1.0, ceiling=60.0, setup=None, carry=False):
    """Time one function: its first call apart, then the median of many with its 95 % interval.

    fn, *args: the call. name: label in tables. budget: seconds to spend on steady samples. ceiling: seconds after
    which a call is given up. setup, carry: see Case. Returns a Timing; raises MeasurementError, with what was measured
    so far in `.partial`.
    """
    label = name or getattr(fn, "__name__", type(fn).__name__)
    return _run([Case(label, fn, *args, setup=setup, carry=carry)], budget, ceiling, None)[label]


@recorded
def compare(*cases, budget=1.0, ceiling=60.0, tolerance=None):
    """Time several cases in interleaved, shuffled rounds, so that a machine that changes its speed treats all alike.

    cases: Case objects with different labels. budget, ceiling: seconds per case, see measure. tolerance: relative
    difference allowed between results (default: by the coarsest dtype, 1e-3 for float32).
    Returns a Comparison; raises MeasurementError, with the cases measured so far in `.partial`.
    """
    if not cases:
        raise MeasurementError("compare() needs at least one case: compare(Case('label', function, argument), …).")
    for case in cases:
        if not isinstance(case, Case):
            raise MeasurementError(f"compare() takes Case objects, not {type(case).__name__}: wrap it as "
                                   "Case('label', function, argument).")
    labels = [case.label for case in cases]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise MeasurementError(f"Two cases are called {twice!r}: give each a label of its own.")
    return _run(list(cases), budget, ceiling, tolerance)


@recorded
def sweep(make_cases, sizes, budget=0.2, ceiling=60.0, tolerance=None):
    """Compare the same cases at several sizes, for a crossover.

    make_cases: size → list of Case with the same labels at every size. sizes: numbers, in any order.
    Returns a Sweep; raises MeasurementError, with the sizes measured so far in `.partial`.
    """
    done, sizes = {}, sorted(set(sizes))
    if not sizes:
        raise MeasurementError("sweep() needs at least one size.")
    with _Progress(f"{len(sizes)} sizes") as progress:
        for n in sizes:
            progress.show(f"size {n:,} ({len(done) + 1} of {len(sizes)})")
            try:
                done[n] = compare(*make_cases(n), budget=budget, ceiling=ceiling, tolerance=tolerance)
            except MeasurementError as error:
                raise MeasurementError(f"At size {n:,}: {error}", Sweep(done)) from error
            if any(c.kind == "cut-short" for c in done[n].caveats):
                break
    return Sweep(done)


# ---------------------------------------------------------------------------------------------------------------------
# Running the cases


def _run(cases, budget, ceiling, tolerance):
    if not budget > 0 or not ceiling > 0:
        raise MeasurementError("budget and ceiling are times in seconds and must be greater than 0.")
    budget *= machine.size().time
    runners, reference, cut = [], None, False
    with _Progress(f"{len(cases)} case{'s' * (len(cases) > 1)}") as progress:
        try:
            for case in cases:
                progress.show(f"first call of {case.label}")
                runner = _Runner(case, ceiling)
                reference = runner.start(budget, reference, tolerance)
                runners.append(runner)
            reference = None  # give its memory back before the rounds
            _rounds(runners, budget, progress)
        except KeyboardInterrupt:
            runners, cut = [runner for runner in runners if runner.samples], True
            if not runners:
                raise
        except _CaseFailed as failed:
            raise MeasurementError(str(failed), _finish([r for r in runners if r.samples], False)) from failed.__cause__
    return _finish(runners, cut)


def _rounds(runners, budget, progress):
    """Fill each runner's samples: every round runs every case, in a new order."""
    slowest = max(runner.cost for runner in runners)
    fewest, most = _ROUNDS
    rounds = max(1, min(most, max(int(budget / slowest), min(fewest, int(_PATIENCE * budget / slowest)))))
    for runner in runners:
        runner.plan(budget / rounds)
    order = list(runners)
    for done in range(rounds):
        progress.show(f"round {done + 1} of {rounds}")
        random.shuffle(order)
        for runner in order:
            if rounds == 1 and runner.only_once:
                runner.keep_first()
            else:
                runner.round()


def _finish(runners, cut):
    """Judge the finished samples and wrap them up."""
    for runner in runners:
        runner.conclude(cut)
    caveats.across([runner.facts for runner in runners])
    return Comparison([runner.timing() for runner in runners])


class _CaseFailed(Exception):
    """A case's function raised, or did not return in time."""


class _Runner:
    """One case while it is being measured."""

    def __init__(self, case, ceiling):
        self.case, self.ceiling = case, ceiling
        self.samples, self.round_medians, self.calls, self.compiles = [], [], 1, 0
        self.stages, self.only_once, self.cpu = {}, False, 0.0
        self.facts = caveats.Facts(case.label)

    # -- before the rounds

    def start(self, budget, reference, tolerance):
        """First call and warm-up; looks at what the function takes and gives. Returns the result to compare with."""
        case, facts = self.case, self.facts
        self.args = self._guarded(case.fresh_args)
        facts.look_at_call(case.fn, self.args)
        events = frameworks.jax_events()
        result, self.first_call = self._timed_call(self.args)
        self._take_stages(events)
        facts.look_at_result(case.fn, self.args, result, fresh_args=case.setup is not None)
        if case.check:
            reference = facts.compare_values(result, reference, tolerance)
        self.wait = frameworks.waiter(result)
        used_up = [leaf for leaf in frameworks.leaves(self.args) if getattr(leaf, "is_deleted", bool)()]
        if used_up and not (case.carry or case.setup):
            raise _CaseFailed(f"Case {case.label!r} donates its input, so a second call has nothing to work on. Use "
                              "carry=True to feed the result back, or setup= to make fresh arguments.")
        slow = self.first_call > _PATIENCE * budget
        self.only_once = slow and not frameworks.may_compile(case.fn, self.args)
        self.setup_cost = 0.0
        if self.only_once:
            self.estimate = self.first_call
        else:
            self._warm_up(result)
        self.cost = max(self.estimate + self.setup_cost, 1e-8)  # seconds that one more call takes of the budget
        return reference

    def _warm_up(self, result):
        """Call until nothing compiles any more, at most five times, and estimate one call's time."""
        for attempt in range(5):
            before = self._compilations()
            if self.case.carry:
                self.args = (result, *self.args[1:])
            start = _clock()
            args = self._guarded(lambda: self.case.fresh_args(self.args))
            self.setup_cost = _clock() - start if self.case.setup else 0.0
            again, self.estimate = self._timed_call(args)
            if attempt == 0:
                self.facts.look_at_second_result(self.case, args, result, again)
            result = again
            del again
            if self._compilations() == before:
                break
        if self.case.carry:
            self.args = (result, *self.args[1:])

    def _timed_call(self, args):
        """One call, waited for, under the ceiling. Returns (result, seconds)."""
        def call():
            start = _clock()
            result = frameworks.wait(self.case.fn(*args))
            return result, _clock() - start
        return self._guarded(call)

    def _guarded(self, call):
        """Run `call`; whatever it raises becomes one sentence that names the case."""
        label = self.case.label
        try:
            with _alarm(self.ceiling):
                return call()
        except _TooLong:
            raise _CaseFailed(f"Case {label!r} did not return within {self.ceiling:g} s. Give it less to do, or raise "
                              "ceiling=.") from None
        except _CaseFailed:
            raise
        except Exception as error:
            first = (str(error).strip().splitlines() or ["no message"])[0]
            raise _CaseFailed(f"Case {label!r} raised {type(error).__name__}: {first[:200]}") from error

    def _compilations(self):
        return frameworks.compilations(self.case.fn)

    def _take_stages(self, before):
        after = frameworks.jax_events()
        if after["compiles"] > before["compiles"]:
            spent = {name: after[name] - before[name] for name in ("trace", "lower", "compile")}
            self.stages = {**spent, "run": max(0.0, self.first_call - sum(spent.values()))}

    # -- the rounds

    def plan(self, share):
        """Choose calls per sample and samples per round so that a round takes about `share` seconds."""
        target = max(_SAMPLE, share / 20)
        self.calls = max(1, int(target / self.cost))
        if self.case.setup:
            size = sum(frameworks.adapter_of(leaf).nbytes(leaf) for leaf in frameworks.leaves(self.args))
            self.calls = max(1, min(self.calls, _SETUP_BYTES // max(size, 1)))
        self.loop = _loop(len(self.args), self.wait is not None, self.case.carry, self.case.setup is not None)
        if self.calls > 1:  # one call is too short to plan by, so take its time from a batch
            self.cost = max(self._sample(record=False) + self.setup_cost, 1e-8)
            room = 10 * self.calls if not self.case.setup else self.calls
            self.calls = max(1, min(int(target / self.cost), room))
        self.per_round = max(1, min(20, int(share / (self.calls * self.cost))))
        if any(caveat.kind == "nothing-to-wait-for" for caveat in self.facts.caveats):
            self.calls = self.per_round = 1  # the work that such calls leave behind would pile up, unseen by the clock

    def _sample(self, record=True):
        """Seconds per call over one batch."""
        batch = [self.case.fresh_args() for _ in range(self.calls)] if self.case.setup else None

        def run():
            cpu = time.process_time()
            taken, self.args = self.loop(self.calls, self.case.fn, self.args, self.wait, batch)
            if record:
                self.cpu += time.process_time() - cpu
            return taken / self.calls
        collecting = gc.isenabled()
        gc.disable()  # a collection in the middle of one sample would look like the case's own work
        try:
            return self._guarded(run)
        finally:
            if collecting:
                gc.enable()

    def round(self):
        before = self._compilations()
        taken = [self._sample() for _ in range(self.per_round)]
        self.compiles += self._compilations() - before  # JAX counts for the whole process: other cases' rounds stay out
        self.samples += taken
        self.round_medians.append(float(np.median(taken)))

    def keep_first(self):
        """A slow function's first call is its only sample."""
        self.samples = self.round_medians = [self.first_call]

    # -- after the rounds

    def conclude(self, cut):
        facts, case = self.facts, self.case
        self.steady = float(np.median(self.samples))
        traced = 0
        cheap = not (cut or self.only_once or case.carry or self.steady > 1.0)
        if cheap and (facts.used - {"jax"} or frameworks._loaded("numba")):
            with contextlib.suppress(_CaseFailed):
                args = case.fresh_args()
                traced = self._guarded(lambda: frameworks.traces_in_one_call(lambda: case.fn(*args)))
        count = len(self.samples) * self.calls
        facts.judge(self.samples, self.steady, self.compiles, traced, count, harness(self.wait), cut)

    def timing(self):
        total = sum(self.samples) * self.calls
        return Timing(label=self.case.label, first_call=self.first_call, samples=tuple(self.samples),
                      rounds=tuple(self.round_medians), caveats=tuple(self.facts.caveats), stages=self.stages,
                      compiles=self.compiles, calls_per_sample=self.calls, harness=harness(self.wait),
                      cores_busy=self.cpu / total if total and self.cpu else float("nan"),
                      argument_bytes=self.facts.input_bytes)


@functools.cache
def _loop(count, waits, carries, prepared):
    """The timed loop for this number of arguments, written out so that a call costs what `timeit` says it costs.

    Like timeit, it is generated source: `fn(a0, a1)` is faster than `fn(*args)`, and a wait that is not needed is
    not there. Returns (seconds, arguments for the next batch).
    """
    names = [f"a{i}" for i in range(count)]
    call = "fn(*prepared)" if prepared else f"fn({', '.join(names)})"
    call = f"wait({call})" if waits and not carries else call
    body = f"a0 = {call}\n        wait(a0)" if carries and waits else f"a0 = {call}" if carries else call
    unpack = f"{', '.join(names)}, = args" if names and not prepared else "pass"
    source = (f"def loop(calls, fn, args, wait, batch):\n"
              f"    {unpack}\n"
              f"    start = clock()\n"
              f"    for {'prepared in batch' if prepared else '_ in repeat(None, calls)'}:\n"
              f"        {body}\n"
              f"    return clock() - start, {'args' if prepared or not names else '(' + ', '.join(names) + ',)'}\n")
    space = {"clock": _clock, "repeat": itertools.repeat}
    exec(source, space)
    return space["loop"]


def harness(wait):
    """Seconds per call that the loop and the wait themselves cost, measured once per kind of wait."""
    return _harness(None if wait is None else getattr(wait, "__qualname__", "wait"))


@functools.cache
def _harness(kind, calls=20_000):
    def empty():
        pass
    loop = _loop(0, False, False, False)
    call = min(loop(calls, empty, (), None, None)[0] for _ in range(5)) / calls
    if kind is None:
        return call
    ready = np.float32(0)
    if "block_until_ready" in kind:
        ready = frameworks.wait(sys.modules["jax"].numpy.zeros(()))
        pause = type(ready).block_until_ready
    else:
        pause = frameworks.wait
    waiting = _loop(1, False, False, False)
    return call + min(waiting(calls // 10, pause, (ready,), None, None)[0] for _ in range(5)) / (calls // 10)


# ---------------------------------------------------------------------------------------------------------------------
# Ceiling and progress


class _TooLong(BaseException):
    """The ceiling is reached. A BaseException, so that a learner's `except Exception` does not swallow it."""


@contextlib.contextmanager
def _alarm(limit):
    """Interrupt the block after `limit` seconds, where the system can (main thread, not Windows)."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_):
        raise _TooLong

    previous = signal.getsignal(signal.SIGALRM)
    pending, _ = signal.getitimer(signal.ITIMER_REAL)
    if pending and pending < limit:  # somebody else's earlier deadline stands
        yield
        return
    start = _clock()
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if pending:
            signal.setitimer(signal.ITIMER_REAL, max(1e-3, pending - (_clock() - start)))


class _Progress:
    """One line that changes in place while a measurement takes more than two seconds; silent otherwise."""

    _active = None  # the outermost line speaks, an inner one (a comparison within a sweep) stays silent

    def __init__(self, what):
        self.what, self.start, self.shown, self.handle = what, _clock(), 0.0, None

    def __enter__(self):
        self.mine = _Progress._active is None
        if self.mine:
            _Progress._active = self
        return self

    def show(self, text):
        now = _clock()
        if not self.mine or now - self.start < 2.0 or now - self.shown < 0.5:
            return
        self.shown = now
        self._put(f"Measuring {self.what}: {text}, {now - self.start:.0f} s")

    def _put(self, text):
        shell = _shell()
        if shell is None or not hasattr(shell, "kernel"):
            if sys.stderr.isatty():
                print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
                self.handle = True
        elif self.handle is None:
            from IPython.display import display
            self.handle = display(_Line(text), display_id=True)
        else:
            self.handle.update(_Line(text))

    def __exit__(self, *_):
        if self.mine:
            _Progress._active = None
        if self.handle is True:
            print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
        elif self.handle is not None:
            self.handle.update(_Line(f"Measured {self.what} in {_clock() - self.start:.0f} s"))


class _Line:
    """Plain text that displays without quotes."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def _shell():
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
