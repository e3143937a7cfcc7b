"""Exercises of page 00: how a benchmark lies, and how to make it tell the truth."""

import numpy as np

from ..frameworks import compiler_of, reachable
from ..results import seconds, times
from .engine import Exercise, Wrong
from .trial import described, library_of

# ---------------------------------------------------------------------------------------------------------------------
# 00.1 The largest jump


def _jump_loop(temperatures):
    """The baseline: one temperature at a time."""
    largest, before = 0.0, None
    for now in temperatures.tolist():
        if before is not None:
            largest = max(largest, abs(now - before))
        before = now
    return largest


def _walk(trial, n):
    """n temperatures whose largest jump is a fall, and less than their range."""
    steps = trial.rng.normal(size=n)
    if n > 1:
        steps[trial.rng.integers(1, n)] = -8.0 - trial.rng.uniform()
    return steps.cumsum()


def _check_jump(answer, trial):
    for n in (500, 400, 3, 2):
        _check_one_jump(answer, trial, _walk(trial, n))
    try:
        alone = trial.number(trial.call(answer, np.array([21.5])), "the result")
    except Wrong as wrong:
        raise Wrong(f"A single temperature has no neighbour, and the answer for it should be 0.0. {wrong}") from None
    if alone:
        raise Wrong(f"For a single temperature your function gives {alone:g}: there is no change, so it should be 0.0.")
    ratio = trial.faster(answer, _jump_loop, lambda: (trial.rng.normal(size=50_000).cumsum(),), 10)
    return f"The loop takes {times(ratio.estimate)} as long as yours."


def _check_one_jump(answer, trial, temperatures):
    steps, want = np.diff(temperatures), _jump_loop(temperatures)
    got = trial.number(trial.call(answer, temperatures), "the result")
    near = {"falls count as well as rises: what matters is the size of the step": steps.max(),
            "only neighbours count: the warmest and the coldest minute may lie hours apart": np.ptp(temperatures),
            "what is asked for is the largest change, not the largest temperature": np.abs(temperatures).max()}
    for hint, value in near.items():
        if len(steps) > 2 and np.isclose(got, value) and not np.isclose(got, want):
            raise Wrong(f"Your function gives {got:.4g} where {want:.4g} is right; {hint}.")
    if 1e-9 < abs(got - want) / want < 1e-3:
        raise Wrong(f"Your function gives {got:.12g} where {want:.12g} is right: somewhere 16 digits became 7 (lie 3). "
                    "Compute in float64.")
    trial.close(got, want, f"the result for {len(temperatures)} temperatures", rtol=1e-9)


JUMP = Exercise(
    id="00.1", title="The largest jump", level="speed",
    task="""
A thermometer is read once a minute. `largest_jump(temperatures)` is to say how much the temperature changed, up or
down, in the minute in which it changed most. As a loop:

```python
largest, before = 0.0, None
for now in temperatures.tolist():
    if before is not None:
        largest = max(largest, abs(now - before))
    before = now
```

Write it so that **the loop takes at least ten times as long** for 50,000 temperatures. It takes a float64 array with
one temperature or more, leaves it unchanged, and returns one number, 0.0 for a single temperature.
""",
    answer="largest_jump",
    starter='''
def largest_jump(temperatures):
    """The largest change between two neighbours."""
    ...
''',
    hints=("Ask once for all steps, not once for each. The loop's work per element is a subtraction and `abs`: NumPy "
           "has both for whole arrays.",
           "`x[1:] - x[:-1]`, or `np.diff(x)`, are the steps between neighbours. Then sizes, then the largest.",
           "The largest of no steps at all is an error in NumPy, unless you say what to begin with: "
           "`.max(initial=0.0)`."),
    solution='''
import numpy as np

def largest_jump(temperatures):
    """The largest change between two neighbours."""
    return float(np.abs(np.diff(temperatures)).max(initial=0.0))
''',
    explanation="""
Three calls into NumPy replace 50,000 turns of a loop. Each of them still visits every number, but in compiled code.
`initial=0.0` is what the loop began with, and it makes a single temperature work. Python's own `max` would walk over
the array one number at a time and give most of the gain back.
""",
    check=_check_jump)

# ---------------------------------------------------------------------------------------------------------------------
# 00.2 Four lies and an honest one

_FIVE = """
angles = np.random.default_rng(0).uniform(0, 1, 100_000).astype(np.float32)
jax_angles = jnp.asarray(angles)
wave = jax.jit(lambda x: jnp.cos(x))
fixed = jax.jit(lambda: jnp.cos(jax_angles))

def in_place(x):
    x[:] = np.cos(x)

def anew(x):
    return jax.jit(lambda x: jnp.cos(x))(x)

A = lambda: measure(wave, angles)
B = lambda: measure(np.cos, angles)
C = lambda: measure(in_place, angles.copy())
D = lambda: measure(anew, jax_angles)
E = lambda: measure(fixed)
"""
_KEY = {"A": "transfer", "B": "honest", "C": "input-changed", "D": "recompiles", "E": "constant-folded"}
_WORDS = ("transfer", "recompiles", "constant-folded", "input-changed", "cached-result", "dead-code",
          "nothing-to-wait-for", "dtype-mismatch", "honest")
_LOOK = {"A": "Look at A: where does its argument live, and where is the work done?",
         "B": "Look at B: does `np.cos` do anything to its argument, or leave anything undone?",
         "C": "Look at C: what does the second call work on?",
         "D": "Look at D: what is born anew in each call?",
         "E": "Look at E: what does the compiler know before the first call?"}
_NEAR = {("B", "input-changed"): "Look at B: `np.cos` makes a new array and leaves `angles` as it was.",
         ("C", "honest"): "Look at C: copying `angles` once, before the clock starts, makes one call's argument fresh, "
                          "not every call's.",
         ("E", "cached-result"): "Look at E: Python remembers nothing here, each call does hand out a new copy; "
                                 "somebody worked out its numbers beforehand.",
         ("E", "honest"): "Look at E: it takes no argument, so its numbers were known before the first call.",
         ("D", "constant-folded"): "Look at D: the data is an argument, so nothing can be computed ahead. Something "
                                   "else is done again in every call.",
         ("A", "dtype-mismatch"): "Look at A: `angles` is float32 already, so no digits are lost. What kind of "
                                  "array is it?"}


def _check_diagnosis(answer, trial):
    if not isinstance(answer, dict):
        raise Wrong(f"`diagnosis` must be a dictionary such as `{{'A': 'honest', …}}`, not {described(answer)}.")
    given = {str(key).strip().upper(): word for key, word in answer.items() if word is not ...}
    missing = [letter for letter in _KEY if letter not in given]
    if missing:
        raise Wrong(f"There is nothing yet about {', '.join(missing)}: give each of the five letters a word.")
    given = {letter: trial.word(given[letter], _WORDS, f"the word for {letter}") for letter in _KEY}
    right = sum(given[letter] == word for letter, word in _KEY.items())
    for letter, word in _KEY.items():
        if given[letter] != word:
            raise Wrong(f"{right} of 5 are right. {_NEAR.get((letter, given[letter]), _LOOK[letter])}")
    return "All five. B is the honest one."


DIAGNOSIS = Exercise(
    id="00.2", title="Four lies and an honest one", level="read",
    task=f"""
Five ways to time the cosine of the same numbers. **One is honest.** What would the clock object to in the others?
Decide by reading; afterwards you may copy them into a cell and run `A()` and so on.

```python{_FIVE}```

Make `diagnosis` a dictionary from each letter to one of these words: {", ".join(f"`{word}`" for word in _WORDS)}.
""",
    answer="diagnosis",
    starter='diagnosis = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ...}\n',
    hints=("Ask the same questions of each: where is the data before the call, is it the same in every call, what has "
           "to be computed anew, and what could have been computed before?",
           "Two of the five take a NumPy array and give it to NumPy. One of these two leaves it alone.",
           "A and E are both compiled once, outside. One gets its data from the wrong place, the other gets none at "
           "all."),
    solution='''
diagnosis = {"A": "transfer", "B": "honest", "C": "input-changed", "D": "recompiles", "E": "constant-folded"}
''',
    explanation="""
**A** hands a NumPy array to JAX in every call (lie 6). **B** is what it looks like. **C** takes the cosine of the
cosine of the cosine …, since each call finds what the last one left (lie 9). **D** makes a new function and compiles it
in each call (lie 2). **E** has no argument, so the compiler may compute the cosines once and for all (lie 4).
""",
    check=_check_diagnosis)

# ---------------------------------------------------------------------------------------------------------------------
# 00.3 Fresh arguments


def _check_sorting(answer, trial):
    data = trial.rng.normal(size=int(trial.rng.integers(20_000, 30_000)))
    kept = data.copy()
    case = _case(trial.call(answer, data), "sorting_case")
    first = _fresh(case, trial)
    if not np.array_equal(first, kept):
        what = "sorted already" if np.array_equal(first, np.sort(kept)) else "not the numbers of `data`"
        raise Wrong(f"The array that the first call gets is {what}: it should be a copy of `data` as it came.")
    trial.call(case.fn, first, may_change=True)
    if not np.array_equal(first, np.sort(kept)):
        raise Wrong("After the call its argument is not sorted: what is timed should still sort in place. If it sorts "
                    "a copy, the copying is on the clock too.")
    if case.setup is None:
        raise Wrong("Only the first call finds unsorted numbers, because the clock hands the same array to every call: "
                    "let the Case make fresh arguments, with `setup=`.")
    if not np.array_equal(_fresh(case, trial), kept):
        raise Wrong("The second call gets an array that the first one has sorted, because the setup hands out the same "
                    "memory each time: make a new copy in each call of the setup.")
    if not np.array_equal(data, kept):
        raise Wrong("Afterwards `data` itself is sorted. It belongs to the caller: sort copies of it.")
    return _sorting_seen(case, kept)


def _case(made, name):
    from ..timing import Case
    if not isinstance(made, Case):
        raise Wrong(f"`{name}` must return a `Case`, not {described(made)}.")
    return made


def _fresh(case, trial):
    """The one array that the case's next call would get."""
    args = trial.call(case.setup) if case.setup else case.args
    if not isinstance(args, (tuple, list)):
        raise Wrong(f"The setup must return a tuple of arguments, not {described(args)}. The comma makes the tuple: "
                    "`(copy,)`.")
    if len(args) != 1 or not isinstance(args[0], np.ndarray):
        raise Wrong("Each call should get one argument, the array to sort.")
    return args[0]


def _sorting_seen(case, data):
    """The honest number beside the one that the lie would have given."""
    from ..timing import Case, compare
    seen = compare(case, Case("sorted before", case.fn, np.sort(data)), budget=0.03)
    honest, lie = (timing.steady for timing in seen)
    return f"An honest sort takes {seconds(honest)} here; of sorted numbers it would have taken {seconds(lie)}."


SORTING = Exercise(
    id="00.3", title="Fresh arguments", level="write",
    task="""
The starter times a sort, and falls for lie 9: every call but the first finds the array sorted. Change
`sorting_case(data)` so that the `Case` it returns **still sorts in place**, that each call gets an unsorted copy of
`data`, and that **the copying is not timed**. `data` itself stays as it is.
""",
    answer="sorting_case",
    starter='''
def sorting_case(data):
    """A Case that times an in-place sort of data, unsorted in every call."""
    def sort(a):
        a.sort(kind="stable")
    return Case("sort in place", sort, data)
''',
    hints=("`Case(label, fn, setup=…)` calls the setup before every call, outside the timed part. Lie 9 was mended "
           "that way.",
           "The setup takes no argument and returns the *tuple* of arguments for the next call. With `setup=` the Case "
           "takes no further arguments.",
           "`setup=lambda: (data.copy(),)`: the copy must be made inside the lambda, so that each call gets its own."),
    solution='''
from tutorial_helpers import Case

def sorting_case(data):
    """A Case that times an in-place sort of data, unsorted in every call."""
    def sort(a):
        a.sort(kind="stable")
    return Case("sort in place", sort, setup=lambda: (data.copy(),))
''',
    explanation="""
The clock calls the setup before each timed call and starts only afterwards. A copy made once, `copy = data.copy()`,
would not do: the second call would get it back sorted. Sorting a copy inside `sort` would be honest about the order but
would time the copying too.
""",
    check=_check_sorting)

# ---------------------------------------------------------------------------------------------------------------------
# 00.4 Repair a benchmark


def _waves(x):
    return np.sin(x) + np.cos(x) * np.sqrt(x)


def _check_repair(answer, trial):
    n = int(trial.rng.integers(20_000, 40_000))
    made = trial.call(answer, n)
    if not isinstance(made, (list, tuple)) or len(made) != 2:
        raise Wrong("`cases(n)` must return a list of two Cases, first NumPy's, then JAX's.")
    for case, side in zip(made, ("NumPy", "JAX"), strict=True):
        _same_work(_case(case, "cases"), side, n, trial)
    _no_objections(made)
    _is_compiled(made[1])
    return "Same work, same digits, data in place, compiled once, and waited for: the clock has no objection left."


def _same_work(case, side, n, trial):
    """Does this side still compute the waves of n numbers, in its own library, from its argument?"""
    args = case.fresh_args()
    result = trial.call(case.fn, *args)
    if result is None:
        raise Wrong(f"The {side} case returns nothing, so the clock has nothing to wait for (lie 1). Return the "
                    "result.")
    if not args:
        raise Wrong(f"The {side} case takes no argument, so its answer can be computed beforehand (lie 4). Pass the "
                    "data: `Case(label, function, data)`.")
    if np.shape(args[0]) != (n,):
        raise Wrong(f"`cases({n})` should work on {n:,} numbers, and the {side} case has an argument of shape "
                    f"{np.shape(args[0])}.")
    if library_of(result) != f"{side} array":
        raise Wrong(f"The result of the {side} case is {described(result)}: the work is to be done by {side}.")
    if np.shape(result) != (n,) or not np.allclose(result, _waves(np.asarray(args[0], np.float64)), atol=1e-4):
        raise Wrong(f"The {side} case no longer computes `sin(x) + cos(x) * sqrt(x)` of its argument: a benchmark is "
                    "not mended by doing other work.")


def _is_compiled(case):
    """Does the JAX side call a compiled function? What it names is looked at, since a wait can't be traced."""
    if not any(compiler_of(value) for value in (case.fn, *reachable(case.fn))):
        raise Wrong("The JAX case runs one operation after the other. It is meant to be compiled as a whole: keep "
                    "`jax.jit`, but call it once, outside the timed function.")


def _no_objections(made):
    from ..timing import compare
    seen = compare(*made, budget=0.02)
    advice = {
        "recompiles": "`jax.jit` is called within the timed call, on a function that is new each time (lie 2). Create "
                      "the compiled function once, outside.",
        "transfer": "the JAX case is handed a NumPy array, which it moves to its device in every call (lie 6). Convert "
                    "it once, with `jnp.asarray`, before the Case is made.",
        "constant-folded": "the work does not depend on the argument, so it is done while compiling (lie 4).",
        "dead-code": "part of the work never reaches the result (lie 5).",
        "dtype-mismatch": "one side computes in float64, the other in float32 (lie 3). Give both the same numbers.",
        "values-differ": "the two sides compute different results. Give both the same numbers.",
        "cached-result": "the result is remembered and handed out again (lie 8).",
        "input-changed": "the argument is changed by the call (lie 9).",
        "device-mismatch": None}  # on a GPU the two sides differ in device, and that is what such a comparison is about
    found = {caveat.kind for caveat in seen.caveats}
    for kind, sentence in advice.items():
        if kind in found and sentence:
            raise Wrong(f"The clock still objects, {kind}: {sentence}")


REPAIR = Exercise(
    id="00.4", title="Repair a benchmark", level="write",
    task="""
This benchmark finds JAX a few hundred times slower than NumPy, or infinitely fast, depending on how you look. **It
tells four lies.** Repair `cases(n)`: two Cases, NumPy's first, which do the same work on the same *n* random numbers;
the JAX side is compiled; and `compare(*cases(n))` shows no caveat about what is measured.
""",
    answer="cases",
    starter='''
def cases(n):
    """NumPy and JAX, the same waves over the same n numbers."""
    x = np.random.default_rng(0).uniform(0, 1, n)

    def numpy_waves(x):
        return np.sin(x) + np.cos(x) * np.sqrt(x)

    def jax_waves(x):
        jax.jit(lambda x: jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x))(x)

    return [Case("NumPy", numpy_waves, x), Case("JAX", jax_waves, x)]
''',
    hints=("Run `compare(*cases(1_000_000))` and read the caveats. Mend one, run it again.",
           "The four are lie 1 (nothing is returned), lie 2 (jit inside the call), lie 3 (float64 against float32) and "
           "lie 6 (a NumPy array on its way to JAX in every call).",
           "`x = ….astype(np.float32)` for both sides, `jnp.asarray(x)` in the JAX case, and "
           "`jax_waves = jax.jit(lambda x: …)` in place of the `def`."),
    solution='''
import jax
import jax.numpy as jnp
import numpy as np
from tutorial_helpers import Case

def cases(n):
    """NumPy and JAX, the same waves over the same n numbers."""
    x = np.random.default_rng(0).uniform(0, 1, n).astype(np.float32)

    def numpy_waves(x):
        return np.sin(x) + np.cos(x) * np.sqrt(x)

    jax_waves = jax.jit(lambda x: jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x))
    return [Case("NumPy", numpy_waves, x), Case("JAX", jax_waves, jnp.asarray(x))]
''',
    explanation="""
Four changes: float32 for both (lie 3), the compiled function made once (lie 2), its result returned so that the clock
can wait for it (lie 1), and the data on JAX's device before the clock starts (lie 6). None of them says who wins: that
is for your machine to say, with `compare(*cases(1_000_000))`.
""",
    check=_check_repair)

# ---------------------------------------------------------------------------------------------------------------------
# 00.5 Too close to call


def _rounds(trial, ratios):
    """Paired rounds (a, b) with these ratios, on a machine that changes its speed by a factor of three meanwhile."""
    ratios = np.asarray(ratios)
    b = 0.01 * np.linspace(1, 3, len(ratios))
    order = trial.rng.permutation(len(ratios))
    b, ratios = b[order], trial.rng.permutation(ratios)
    return ratios * b, b


def _experiments(trial):
    """(rounds, too close?, what went wrong when the answer is the opposite)."""
    spread = np.exp(np.abs(trial.rng.normal(0, 0.05, 20)) + 0.01)
    lopsided = np.concatenate([1 + trial.rng.uniform(0.04, 0.08, 16), 1 - trial.rng.uniform(0.04, 0.08, 14)])
    steady = 1 + trial.rng.uniform(0.04, 0.06, 40)
    yield (_rounds(trial, np.concatenate([spread, 1 / spread])), True,
           "In half of 40 rounds `a` took longer, in half `b`: that is too close to call")
    yield (_rounds(trial, steady), False,
           "In each of 40 rounds `a` took about 5 % longer than `b`, while the machine's own speed changed by a factor "
           "of three. Compare within the rounds, `a[i]` with `b[i]`: what slows both then cancels out")
    yield (_rounds(trial, 1 / steady), False,
           "In each of 40 rounds `a` took about 5 % less than `b`. That is a clear difference as well: an interval can "
           "miss 1 on either side")
    yield (_rounds(trial, 1 + trial.rng.uniform(0.003, 0.006, 60)), False,
           "In each of 60 rounds `a` took about half a per cent longer than `b`. That is little, but it is certain: "
           "how large a difference is and how sure it is are two questions")
    yield (_rounds(trial, lopsided), True,
           "`a` took longer in 16 of 30 rounds and `b` in 14. The median ratio isn't 1, but that is chance: look at "
           "the interval, not at the estimate")
    yield (_rounds(trial, np.append(steady, 0.5)), False,
           "`a` took longer in 40 of 41 rounds; in one, something else got in the way of `b`. A single round must not "
           "decide, as it would if you look at the smallest and the largest ratio")


def _check_close(answer, trial):
    for (a, b), want, hint in _experiments(trial):
        got = trial.call(answer, a.copy(), b.copy())
        if not isinstance(got, (bool, np.bool_)):
            raise Wrong(f"The answer must be True or False, not {described(got)}.")
        if bool(got) != want:
            raise Wrong(f"{hint}. Your function says {bool(got)}.")
    return "Right in six experiments, with a machine that changed its speed throughout."


CLOSE = Exercise(
    id="00.5", title="Too close to call", level="write",
    task="""
`a` and `b` are arrays of seconds from the same rounds: `a[i]` and `b[i]` were measured within the same moment. Write
`too_close(a, b)`: **True** if the 95 % interval of the ratio contains 1, else **False**. There are 30 rounds or more,
and the machine may change its speed from round to round. You may use `median_interval` of section 4.
""",
    answer="too_close",
    starter='''
def too_close(a, b):
    """Can't we tell whether a or b takes longer, from these paired rounds?"""
    ...
''',
    hints=("Which 30 numbers should the interval be an interval of?",
           "Divide first, then take the interval: one ratio for each round.",
           "`low, high = median_interval(a / b)`, and then the question is whether 1 lies between them."),
    solution='''
from tutorial_helpers.results import median_interval

def too_close(a, b):
    """Can't we tell whether a or b takes longer, from these paired rounds?"""
    low, high = median_interval(a / b)
    return low <= 1 <= high
''',
    explanation="""
The two medians and their intervals say how fast a and b were over the whole time, slow phases included. The ratio
within each round says which one was slower *at that moment*, and that survives a machine that changes its speed. How
large a difference has to be before you care is another question, for you and not for statistics.
""",
    check=_check_close)

EXERCISES = [JUMP, DIAGNOSIS, SORTING, REPAIR, CLOSE]
