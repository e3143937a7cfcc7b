"""Exercises of page 01: what the interpreter does, what a number weighs, and loops that a compiler can do."""

import contextlib
import ctypes
import dis
import io
import math
import os
import sys
import tracemalloc

import numpy as np

from ..results import times
from .engine import Exercise, Wrong
from .trial import described

# ---------------------------------------------------------------------------------------------------------------------
# 01.1 How often is a name looked up?

_ROUGHNESS = """
import math

def roughness(values):
    total = 0.0
    for value in values:
        total += math.sqrt(abs(value))
    return total
"""


def _lookups(turns):
    """How many LOAD_GLOBAL the interpreter runs in roughness() for this many values."""
    space = {}
    exec(_ROUGHNESS, space)
    steps = list(dis.get_instructions(space["roughness"]))
    start = next(i for i, step in enumerate(steps) if step.opname == "FOR_ITER")
    end = max(i for i, step in enumerate(steps) if step.opname.startswith("JUMP_BACKWARD"))
    inside = sum(step.opname == "LOAD_GLOBAL" for step in steps[start:end])
    return inside * turns + sum(step.opname == "LOAD_GLOBAL" for step in steps[:start] + steps[end:])


def _check_lookups(answer, trial):
    given, want, turns = trial.number(answer, "`lookups`"), _lookups(1000), 1000
    said = {want // turns: "That is how often it stands in the bytecode. How often does the loop go round?",
            turns: "That is one for each turn. Which of the names `math`, `sqrt` and `abs` are global?",
            want + turns: "`sqrt` is not a global name, but an attribute of `math`: another instruction fetches it.",
            want + 2 * turns: "Local names such as `value` and `total` are not looked up by name at all: `LOAD_FAST` "
                              "takes them by their number."}
    if given != want:
        raise Wrong(said.get(given, f"It is not {given:g}. Count the `LOAD_GLOBAL` between `FOR_ITER` and "
                                    "`JUMP_BACKWARD`, and think how often that part is run."))
    return f"{want:,}: two dictionary lookups in each turn, for names that never change. A compiler would look once."


LOOKUPS = Exercise(
    id="01.1", title="How often is a name looked up?", level="read",
    task="""
`roughness` in the next cell is called with a list of 1000 numbers. **How many times does the interpreter run the
instruction `LOAD_GLOBAL`**, all in all, during that call? Set `lookups` to the number. `dis.dis(roughness)` shows the
bytecode.
""",
    answer="lookups",
    starter=_ROUGHNESS + "\nlookups = ...\n",
    hints=("Add a cell with `dis.dis(roughness)`. Where does the loop begin, and where does it jump back?",
           "What stands between `FOR_ITER` and `JUMP_BACKWARD` is run once for each number. Count the `LOAD_GLOBAL` "
           "there.",
           "`math` and `abs` are found by `LOAD_GLOBAL`. `sqrt` is fetched from `math` by another instruction."),
    solution="lookups = 2 * 1000     # math and abs, in each turn\n",
    explanation="""
Python can't know that nobody assigns to `math` or `abs` while the loop runs, so it looks both up in every turn. Since
3.11 the specialised instruction remembers where it found them and checks that nothing has changed, which is quick but
not free. A compiler that is told the types settles the question once.
""",
    check=_check_lookups)

# ---------------------------------------------------------------------------------------------------------------------
# 01.2 What a list weighs


def _weight(values):
    return sys.getsizeof(values) + sum(map(sys.getsizeof, {id(value): value for value in values}.values()))


def _check_weight(answer, trial):
    n = int(trial.rng.integers(500, 1500))
    different = trial.rng.normal(size=n).tolist()
    _weigh(answer, trial, different, f"{n} different floats")
    _weigh(answer, trial, [0.5] * n, f"a list with {n} references to one float")
    _weigh(answer, trial, [float("0.5") for _ in range(n)], f"{n} floats that are equal, but separate objects")
    _weigh(answer, trial, different + different[::-1], f"{n} floats, each of them twice in the list")
    _weigh(answer, trial, [], "an empty list")
    return f"{_weight(different) / n:.0f} bytes for each of {n} different floats, {_weight([0.5] * n) / n:.0f} for a " \
        "shared one."


def _weigh(answer, trial, values, what):
    got, want = trial.number(trial.call(answer, values), "the result"), _weight(values)
    box = sys.getsizeof(0.5)
    near = {sys.getsizeof(values): "that is the list alone, which holds addresses; the floats themselves are elsewhere",
            want - sys.getsizeof(values): "those are the floats alone; the list that holds their addresses counts too",
            sys.getsizeof(values) + box * len(values): "an object that is in the list many times is in memory only "
                                                       "once",
            sys.getsizeof(values) + box * len(set(values)): "a set tells values apart, not objects: two floats can be "
                                                            "equal and still be two boxes (`id` tells them apart)",
            8 * len(values): "that is what an array of as many numbers takes, or the addresses alone"}
    if got != want:
        hint = near.get(got, "add up `sys.getsizeof` of the list and of each object in it")
        raise Wrong(f"For {what} your function gives {got:,.0f} bytes where {want:,} are right: {hint}.")


WEIGHT = Exercise(
    id="01.2", title="What a list weighs", level="write",
    task="""
`sys.getsizeof` tells the bytes of one object, without what it refers to. Write `weight(values)`: how many bytes a list
of floats takes **together with the floats in it**. An object that is in the list several times counts once; two objects
with the same value are two.
""",
    answer="weight",
    starter='''
def weight(values):
    """Bytes of a list and of the floats that it refers to."""
    ...
''',
    hints=("Two parts: the list, and the floats in it.",
           "`id(value)` is different for different objects, even for equal ones. Which container keeps one entry for "
           "each key?",
           "`{id(value): value for value in values}` holds each object once."),
    solution='''
import sys

def weight(values):
    """Bytes of a list and of the floats that it refers to."""
    objects = {id(value): value for value in values}.values()
    return sys.getsizeof(values) + sum(sys.getsizeof(value) for value in objects)
''',
    explanation="""
The list holds addresses of 8 bytes each (and some spare room if it grew by `append`). The boxes are elsewhere in
memory, and several addresses can lead to the same box. That is why `[0.5] * 10**6` is four times lighter than a million
different floats, and why no function can tell the size of a list from its length.
""",
    check=_check_weight)

# ---------------------------------------------------------------------------------------------------------------------
# 01.3 How far does it get?

_PROGRAMS = {
    "A": 'print("one")\nprint("two")\nprint(1 / 0)\n',
    "B": 'print("one")\nprint("two")\nreturn 3\n',
    "C": 'print("one")\ndef never_called():\n    return unknown\nprint("two")\n',
    "D": 'print("one")\nimport no_such_module\nprint("two")\n',
    "E": 'print("one")\nif False:\n    print(("two")\n'}
_WHY = {
    ("A", 0): "dividing by zero is only found out when it is done, even between two constants",
    ("B", 2): "a `return` outside a function is found by the compiler, which reads the whole file before anything runs",
    ("C", 0): "a name that doesn't exist is not the compiler's business",
    ("C", 1): "`def` makes a function and runs nothing in it; whether its names exist is asked when it is called",
    ("D", 0): "`import` is a statement like any other, carried out when its turn comes",
    ("D", 2): "a module that isn't there stops the program",
    ("E", 1): "the branch would never run, but it has to be parsed, and the bracket is never closed",
    ("E", 2): "the second `print` is in a branch that never runs, and its bracket is never closed"}


def _lines_printed(program):
    """How many lines this program prints before it ends, one way or the other."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(Exception):
        exec(compile(program, "<program>", "exec"), {})
    return len(said.getvalue().splitlines())


def _check_lines(answer, trial):
    if isinstance(answer, (list, tuple)) and len(answer) == len(_PROGRAMS):
        answer = dict(zip(_PROGRAMS, answer, strict=True))
    if not isinstance(answer, dict):
        raise Wrong(f"`printed` must be a dictionary such as `{{'A': 2, …}}`, not {described(answer)}.")
    given = {str(key).strip().upper(): value for key, value in answer.items() if value is not ...}
    missing = [letter for letter in _PROGRAMS if letter not in given]
    if missing:
        raise Wrong(f"There is nothing yet about {', '.join(missing)}: give each of the five programs a number.")
    given = {letter: trial.number(given[letter], f"the number for {letter}", integer=True) for letter in _PROGRAMS}
    truth = {letter: _lines_printed(program) for letter, program in _PROGRAMS.items()}
    right = sum(given[letter] == truth[letter] for letter in truth)
    for letter in truth:
        if given[letter] != truth[letter]:
            why = _WHY.get((letter, given[letter]), "run it with `attempt` of this section and see")
            raise Wrong(f"{right} of 5 are right. About {letter}: {why}.")
    return "All five: what the compiler refuses prints nothing, what it lets pass runs until the mistake."


def _listing(letter):
    return f"**{letter}**\n\n```python\n{_PROGRAMS[letter]}```\n"


LINES = Exercise(
    id="01.3", title="How far does it get?", level="read",
    task=f"""
Five programs with a mistake in each. **How many lines does each of them print** before it ends? (The lines of an error
message don't count.) Put the numbers into `printed`.

{chr(10).join(map(_listing, _PROGRAMS))}
""",
    answer="printed",
    starter='printed = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ...}\n',
    hints=("For each mistake ask: can it be seen from the text alone, without running anything?",
           "What can't be *parsed* or makes no sense as a statement is refused before line 1. Names, numbers and "
           "modules are looked at when their line runs.",
           "Two of the five print nothing. Two print everything that they could."),
    solution='printed = {"A": 2, "B": 0, "C": 2, "D": 1, "E": 0}\n',
    explanation="""
B and E are refused as a whole: a `return` outside a function, an open bracket (even in a branch that never runs).
Everything else is found out only when the line runs, and in C it never does, because nobody calls the function.
""",
    check=_check_lines)

# ---------------------------------------------------------------------------------------------------------------------
# 01.4 A row at a time

_ROOM = 3000  # bytes for each point: a few rows may be held at a time, n of them may not


def _pairs(x, y, r):
    """The baseline: rung 1 of the ladder."""
    x, y, limit, count = x.tolist(), y.tolist(), float(r) ** 2, 0
    for i in range(len(x)):
        for j in range(i):
            dx, dy = x[i] - x[j], y[i] - y[j]
            if dx * dx + dy * dy < limit:
                count += 1
    return count


def _town(trial, n):
    """n shops as on the page, and a radius whose square is no whole number."""
    x, y = trial.rng.integers(0, 1000, (2, n)).astype(np.float32)
    return x, y, np.float32(trial.rng.integers(40, 60) + 0.5)


def _check_rows(answer, trial):
    for n in (300, 300, 47, 2, 1):
        _count(answer, trial, *_town(trial, n))
    x, y, r = _town(trial, 40)
    _count(answer, trial, np.repeat(x, 3), np.repeat(y, 3), r)
    _room(answer, trial, 600)
    ratio = trial.faster(answer, _pairs, lambda: _town(trial, 800), 3, dtype=False)
    return f"Pure Python takes {times(ratio.estimate)} as long as yours, and no table of n × n was made."


def _count(answer, trial, x, y, r):
    got, want, n = trial.number(trial.call(answer, x, y, r), "the result"), _pairs(x, y, r), len(x)
    near = {2 * want: "each pair is counted twice, as (i, j) and as (j, i)",
            2 * want + n: "each pair is counted twice, and each point with itself",
            want + n: "each point is counted as a pair with itself",
            n * (n - 1) // 2 - want: "those are the pairs that lie further apart",
            _pairs(x, np.zeros_like(y), r): "only the first coordinate counts in it"}
    if got != want:
        hint = near.get(got, "compare with `pairs` of rung 1 for a few points")
        raise Wrong(f"For {n} points your function finds {got:,.0f} pairs where there are {want:,}: {hint}.")


def _room(answer, trial, n):
    """Refuse tables of n by n numbers, which NumPy's memory shows up."""
    x, y, r = _town(trial, n)
    trial.call(answer, x, y, r)
    tracemalloc.start()
    try:
        trial.call(answer, x, y, r)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > _ROOM * n:
        raise Wrong(f"For {n} points your function holds {peak / 1e6:.1f} MB at its peak, or {peak // n:,} bytes for "
                    f"each point, where {_ROOM:,} are allowed: it makes tables of n × n numbers. Work on one row at a "
                    "time.")


ROWS = Exercise(
    id="01.4", title="A row at a time", level="speed",
    task="""
Rung 3 is fast but makes tables of *n* × *n* numbers: at 50,000 points they would take 10 GB each. Write
`pairs_by_row(x, y, r)`, which counts the same pairs **without such a table** (at most 3,000 bytes at the peak for each
point) and is **three times as fast as the pure Python of rung 1** at 800 points. `x` and `y` are float32 arrays, `r` a
float32; the result is one number.
""",
    answer="pairs_by_row",
    starter='''
def pairs_by_row(x, y, r):
    """How many pairs of points lie closer together than r, in memory that grows with n only."""
    ...
''',
    hints=("Of rung 1's two loops keep the outer one in Python, and give the inner one to NumPy.",
           "For one `i`, the inner loop looks at all `j` below `i`: `x[i] - x[:i]` are their differences.",
           "`np.count_nonzero(dx * dx + dy * dy < r * r)` counts a row's close pairs in one call."),
    solution='''
import numpy as np

def pairs_by_row(x, y, r):
    """How many pairs of points lie closer together than r, in memory that grows with n only."""
    count, limit = 0, r * r
    for i in range(1, len(x)):
        dx, dy = x[i] - x[:i], y[i] - y[:i]
        count += np.count_nonzero(dx * dx + dy * dy < limit)
    return int(count)
''',
    explanation="""
A few calls of NumPy for each *row* of pairs instead of several instructions for each *pair*: the price of a call is
shared by up to *n* pairs, and the rows are small enough to stay in the processor's cache. `pairs_table` under `jax.jit`
passes as well, because XLA makes no tables. So does sorting the points by x and looking only at neighbours: a better
algorithm needs no compiler.
""",
    check=_check_rows)

# ---------------------------------------------------------------------------------------------------------------------
# 01.5 A loop that NumPy has no word for


def _smooth(x, a):
    """The baseline, as fast as a plain loop can be."""
    keep, last, out = 1 - a, float(x[0]), []
    for value in x.tolist():
        last = a * value + keep * last
        out.append(last)
    return np.array(out)


def _signal(trial, n):
    return trial.rng.normal(10, 3, n), float(trial.rng.uniform(0.2, 0.8))


def _check_smooth(answer, trial):
    for n in (400, 400, 2, 1):
        _smooth_once(answer, trial, *_signal(trial, n))
    ratio = trial.faster(answer, _smooth, lambda: _signal(trial, 20_000), 5, rtol=1e-9)
    return f"The interpreted loop takes {times(ratio.estimate)} as long as yours."


def _smooth_once(answer, trial, x, a):
    got, want = trial.call(answer, x, a), _smooth(x, a)
    wrong_memory, from_zero = x.copy(), np.concatenate([[0.0], x])
    wrong_memory[1:] = a * x[1:] + (1 - a) * x[:-1]
    near = [(wrong_memory, "it mixes each value with the *raw* value before it. The formula wants the *smoothed* value "
                           "before it, which isn't known until that step is done"),
            (_smooth(from_zero, a)[1:], "it starts from 0. The first result should be `x[0]` itself"),
            (_smooth(x, 1 - a), "`a` belongs to the new value, `1 - a` to the smoothed one before it")]
    for other, hint in near:
        if len(x) > 2 and isinstance(got, np.ndarray) and got.shape == x.shape and np.allclose(got, other):
            raise Wrong(f"Your function computes something else: {hint}.")
    trial.close(got, want, f"the result for {len(x)} value{'s' * (len(x) > 1)}", rtol=1e-9)


SMOOTH = Exercise(
    id="01.5", title="A loop that NumPy has no word for", level="speed", needs=("numba",),
    task="""
Exponential smoothing: the first result is `x[0]`, and after that each is `a * x[i] + (1 - a) * (the result before)`.
Every step needs the one before, so no sum or product of whole arrays will do. Write `smooth(x, a)` so that it is **five
times as fast as an interpreted loop** for 20,000 values. `x` is a float64 array of one value or more, `a` a float
between 0 and 1; the result is a new float64 array.
""",
    answer="smooth",
    starter='''
def smooth(x, a):
    """Exponential smoothing: every result is a mix of the new value and the result before."""
    ...
''',
    hints=("Write the plain loop first: make the array for the results, set `y[0]`, then loop from 1.",
           "`y = np.empty_like(x)`, and in the loop `y[i] = a * x[i] + (1 - a) * y[i - 1]`. Check that it passes "
           "except for the speed.",
           "Now put `@numba.njit` above it, outside: the first call compiles it, and later ones run machine code."),
    solution='''
import numba
import numpy as np

@numba.njit
def smooth(x, a):
    """Exponential smoothing: every result is a mix of the new value and the result before."""
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * x[i] + (1 - a) * y[i - 1]
    return y
''',
    explanation="""
The loop stays as it is; only who runs it changes. A compiler can't vectorise it either, because each step waits for the
one before, but bare numbers in registers are many times quicker than boxes. For this particular loop there is a
compiled one in SciPy (`scipy.signal.lfilter`), and for the next one there isn't.
""",
    check=_check_smooth)

# ---------------------------------------------------------------------------------------------------------------------
# 01.6 Both ends of a call


class _Mathematics(ctypes.CDLL):
    """C's mathematics library, freshly loaded, which notes what it is asked for."""

    def __init__(self):
        super().__init__("ucrtbase" if os.name == "nt" else None)  # elsewhere Python itself is linked with it
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)


def _check_declared(answer, trial):
    library = _Mathematics()
    hypot = trial.call(answer, library)
    if not callable(hypot):
        raise Wrong(f"`declare` must return C's function, ready to be called, and it returned {described(hypot)}.")
    if "hypot" not in library.asked and not isinstance(hypot, ctypes._CFuncPtr):
        raise Wrong("Your function never asks `library` for `hypot`. It is C's that is wanted, by way of ctypes, not "
                    "Python's own.")
    for x, y in [(3.0, 4.0), *trial.rng.normal(0, 1e6, (20, 2)).tolist(), (-1e-200, 1e-200), (0.0, -2.5)]:
        _one_hypot(hypot, trial, x, y)
    return "Declared at both ends: doubles go in, a double comes out."


def _one_hypot(hypot, trial, x, y):
    try:
        got = trial.call(hypot, x, y)
    except Wrong as wrong:
        if "ArgumentError" in str(wrong):
            raise Wrong("ctypes refuses a Python float as long as it doesn't know what the function takes: declare "
                        "`argtypes` too, one type for each argument.") from None
        raise
    want = math.hypot(x, y)
    if isinstance(got, int):
        raise Wrong(f"`hypot({x:g}, {y:g})` gives the whole number {got}: without `restype`, ctypes takes every result "
                    "for an `int` and reads a register into which nobody wrote.")
    if not isinstance(got, float):
        raise Wrong(f"`hypot({x:g}, {y:g})` must give a float, not {described(got)}.")
    if not math.isclose(got, want, rel_tol=1e-14):
        raise Wrong(f"`hypot({x:g}, {y:g})` gives {got:g} instead of {want:g}: its bits were taken for another type. "
                    "Both arguments and the result are doubles, of 8 bytes each.")


DECLARE = Exercise(
    id="01.6", title="Both ends of a call", level="write",
    task="""
C's mathematics library has `double hypot(double x, double y)`, the length of the vector (x, y). No compiler is needed
to call it. Write `declare(library)`: it gets that library as ctypes loaded it, with nothing declared, and returns its
`hypot` so that **it can be called with two Python floats and returns one**.
""",
    answer="declare",
    starter='''
def declare(library):
    """C's hypot from this library, as a function of two Python floats."""
    ...
''',
    hints=("`library.hypot` is the function. ctypes can see neither what it takes nor what it returns: trap 4.",
           "Set `argtypes`, a list with one type for each argument, and `restype`, one type.",
           "C's `double` is `ctypes.c_double`. Return the function itself, not a call of it."),
    solution='''
import ctypes

def declare(library):
    """C's hypot from this library, as a function of two Python floats."""
    hypot = library.hypot
    hypot.argtypes, hypot.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
    return hypot
''',
    explanation="""
A shared library holds machine code and names, but no types: those stand in C's header files, which ctypes doesn't read.
So you tell both ends once, and from then on ctypes unboxes the two floats, puts them into the registers where C expects
them, and boxes the result.
""",
    check=_check_declared)

EXERCISES = [LOOKUPS, WEIGHT, LINES, ROWS, SMOOTH, DECLARE]
