"""Running a learner's code so that nothing it does takes the kernel along.

The code runs in a thread of its own while the calling thread waits with a deadline. When time is up, or the learner
presses Stop, an exception is raised inside that thread (PyThreadState_SetAsyncExc, which works on every system), again
and again until the code gives up, so that `except: pass` cannot swallow it. Compiled code that never returns cannot be
stopped in a process: it is left behind, and the caller is told so. Only compiled code that also holds on to the
interpreter's lock, such as `sum(itertools.count())`, still blocks the kernel.
"""

import builtins
import contextlib
import contextvars
import ctypes
import functools
import gc
import io
import sys
import threading
import time
from typing import NamedTuple

_GRACE = 2.0  # seconds for the code to give up after it was told to
_LOOK = 0.2  # seconds between looks at the deadline; on Windows a Stop is noticed at such a look only
_STACK = 2**26  # bytes of stack: some systems give a thread too little for XLA's compiler or a deep recursion
_KEPT = (500, 10)  # characters and lines of printed output that are kept

_clock = time.monotonic


class Stopped(BaseException):
    """Raised inside the code to end it."""


class _StoppedAtOnce(Stopped):
    """The first one: making it, which happens in the code's own thread, has further lines raise Stopped."""

    def __init__(self):
        _insist()


class Outcome(NamedTuple):
    """How a run ended: its value, or the exception it raised; late: the sentence of the limit that it overran;
    interrupted: by the learner; left_running: it could not be ended. printed: the beginning of what it printed."""

    value: object
    error: BaseException | None
    late: str | None
    interrupted: bool
    left_running: bool
    printed: str


class Guard:
    """Runs one piece of work under limits. seconds, sentence: the limit on the whole, and what to say beyond it."""

    def __init__(self, seconds, sentence):
        self._limits = [(_clock() + seconds, sentence)]

    @contextlib.contextmanager
    def limit(self, seconds, sentence):
        """A limit on a part of the work, to be used inside it. Overrunning it ends the work as a whole."""
        mark = (_clock() + seconds, sentence)
        self._limits.append(mark)
        try:
            yield
        finally:
            self._limits.remove(mark)

    def run(self, work):
        """Call work() in a thread of its own; returns an Outcome and raises nothing."""
        worker, late, interrupted = _Worker(work), None, False
        collecting = gc.isenabled()
        with _Held() as held:
            try:
                worker.start()
                while not worker.done.wait(_LOOK) and late is None:
                    late = self._overrun()
            except KeyboardInterrupt:
                interrupted = True
            worker.stop()
        if collecting:  # a measurement that was left behind may have switched it off
            gc.enable()
        left = not worker.done.is_set() and worker.is_alive()
        if left:
            _take_back()  # lowers the flag; the worker still finds its exception
        return Outcome(worker.value, worker.error, late, interrupted, left, held.text())

    def _overrun(self):
        now = _clock()
        return next((sentence for deadline, sentence in reversed(tuple(self._limits)) if now > deadline), None)


class _Worker(threading.Thread):
    """The thread that runs the work, in a copy of the caller's context (NumPy's error state, IPython's cell)."""

    def __init__(self, work):
        super().__init__(name="exercise", daemon=True)
        self._work, self._in = work, contextvars.copy_context()
        self.value = self.error = None
        self.done, self._sending, self._over = threading.Event(), threading.Lock(), False

    def start(self):
        before = threading.stack_size()
        try:
            threading.stack_size(_STACK)
            super().start()
        except (RuntimeError, ValueError):  # no room for so large a stack
            threading.stack_size(before)
            super().start()
        finally:
            threading.stack_size(before)

    def run(self):
        # At most two exceptions can still be on their way when the work is over: stop()'s one, and the last that a
        # traced line asked for. This frame itself is not traced, so it can catch them.
        try:
            try:
                try:
                    self.value = self._in.run(self._work)
                except BaseException as error:
                    self.error = error
                sys.settrace(None)
                self._close()
            except Stopped:
                sys.settrace(None)
                self._close()
        except Stopped:
            sys.settrace(None)
            self._close()
        self.done.set()

    def _close(self):
        """From here on nothing more is raised in this thread."""
        with self._sending:
            self._over = True
        _take_back()

    def stop(self):
        """End the work if it still runs; gives up after the grace period, or when Stop is pressed again."""
        with contextlib.suppress(KeyboardInterrupt):
            with self._sending:
                if not self._over:
                    _raise_in(self.ident, _StoppedAtOnce)
            self.join(_GRACE)  # not done.wait(): the thread may be hit once more and end without saying so


def _raise_in(thread, kind):
    """Raise `kind` at that thread's next chance, in place of any that is on its way there."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _take_back():
    """Let an exception that is still on its way to this thread arrive here.

    Cancelling it (PyThreadState_SetAsyncExc with NULL) would leave the interpreter's flag for it up for good: every
    later call is then slower, and under sys.setprofile Python 3.11 goes round in circles.
    """
    with contextlib.suppress(Stopped):
        _raise_in(threading.get_ident(), Stopped)
        for _ in range(100):  # raised at the latest when a loop goes round
            pass


def _insist():
    """Have further lines of this thread raise Stopped, up to the frame that started the work.

    The trace function is PyThreadState_SetAsyncExc itself: one written in Python would be hit by the exception that it
    asks for, and Python drops a trace function that raises. What it is called with beyond its own two arguments (frame,
    event, argument) C ignores, and what it returns must be the next trace function.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_code is not _Worker.run.__code__:
        frame = frame.f_back
    if frame in (None, sys._getframe(2)):  # not in a worker's thread, or its work is over
        return
    trace = _tracers(threading.get_ident())
    inner = sys._getframe(2)
    while inner is not frame:
        inner.f_trace = trace
        inner = inner.f_back
    sys.settrace(trace)


def _tracers(thread):
    """Trace functions in a ring: some ask for Stopped in this thread, the others (thread 0 is nobody) let a line pass.

    Not every line may raise: Python 3.12 counts an exception at the end of a jump to what stands before its target, and
    that can be the inside of the same `try`, for ever. Where to pause depends on the code, so the ring has many ways.
    """
    ring = []
    for asks in map(int, "111111110100100010000"):
        function = ctypes.pythonapi["PyThreadState_SetAsyncExc"]
        function.argtypes = [ctypes.c_ulong] + [ctypes.py_object] * 4
        ring.append((function, functools.partial(function, thread if asks else 0, Stopped)))
    for (function, _), (_, following) in zip(ring, [*ring[1:], ring[0]], strict=True):
        function.restype = {0: following, 1: following}.get
    return ring[0][1]


class _Held(io.TextIOBase):
    """Takes the place of stdout, stderr and input() for as long as the code runs, and keeps the beginning."""

    encoding = "utf-8"

    def __enter__(self):
        self._parts, self._length = [], 0
        self._before = sys.stdout, sys.stderr, builtins.input
        sys.stdout, sys.stderr, builtins.input = self, io.StringIO(), _nobody_answers
        return self

    def __exit__(self, *_):
        sys.stdout, sys.stderr, builtins.input = self._before

    def writable(self):
        return True

    def write(self, text):
        room = max(0, _KEPT[0] - self._length)
        if room:
            self._parts.append(text[:room])
        self._length += len(text)
        return len(text)

    def text(self):
        """What was printed, shortened."""
        kept = "".join(self._parts)
        short = "\n".join(kept.splitlines()[:_KEPT[1]]).rstrip()
        more = self._length - len(short)
        return short if more < 3 else f"{short} … ({more:,} characters more)"


def _nobody_answers(prompt=""):
    raise RuntimeError("input() finds nobody to answer while an exercise is checked")
