"""Exercises of page 03: what is recorded, loops for the compiler, retraces, static arguments, control flow, buckets."""

import numpy as np

from .. import frameworks
from ..tracing import _no_python_log
from .engine import Exercise, Wrong
from .given import defined, is_jax, on_cpu, program_length


def _compilations(call):
    """How often JAX compiles while call() runs, and what call() returns."""
    before = frameworks.jax_events()["compiles"]
    result = call()
    return frameworks.jax_events()["compiles"] - before, result


def _holds_compiled(fn):
    """Is `fn` compiled, or does it use a function that was compiled outside of it?"""
    return any(frameworks.compiler_of(value) for value in [fn, *frameworks.reachable(fn)])


# ---------------------------------------------------------------------------------------------------------------------
# 03.1 What is recorded, what is left

_WASTEFUL = """
def wasteful(x):
    spare = jnp.cos(x)
    return jnp.sin(x) * jnp.sin(x) + 1
"""


def _check_waves(answer, trial):
    import jax.numpy as jnp

    from ..inspecting import hlo, jaxpr

    wasteful, x = defined(_WASTEFUL, "wasteful"), jnp.ones(1000)
    recorded = jaxpr(wasteful, x).count(r"\b(sin|cos)\b")
    left = hlo(wasteful, x).count(r" (sine|cosine)\(")
    trial.close(answer, (0, 0), "your answer", atol=1e300, dtype=False)
    first, second = (trial.number(part, "each part", integer=True) for part in answer)
    if (first, second) == (left, recorded):
        raise Wrong("You have them the other way round: first what JAX recorded, then what XLA left of it.")
    if first < recorded:
        raise Wrong(f"The recording holds more than {first}: JAX writes down all that Python does, also what nobody "
                    "uses, and also the same thing twice.")
    if first > recorded:
        raise Wrong("The recording holds fewer: count the calls of `jnp.sin` and `jnp.cos` that Python comes by.")
    if second > left:
        kept = "drops what does not reach the result" if second == recorded else "computes one thing only once"
        raise Wrong(f"XLA leaves fewer than {second}: it {kept}.")
    if second < left:
        raise Wrong("Some sine must be left, since the result depends on it.")
    return "Right: tracing writes down everything, and the optimiser throws out what is unused or there already."


RECORDED = Exercise(
    id="03.1", title="What is recorded, what is left", level="read", answer="waves", starter="waves = ...\n",
    task=f"""
```python
{_WASTEFUL.strip()}
```

Sines and cosines, counted together: how many of them stand in the **jaxpr** of `wasteful`, and how many in the
**optimised HLO**? Answer with a pair, `waves = (recorded, left)`. Decide first; then `jaxpr(…)` and `hlo(…)` show
you.""",
    hints=(
        "Tracing runs the Python code as it stands. Does it know what will be needed?",
        "An optimiser drops what does not reach the result, and does not compute the same thing twice.",
        "Count in `jaxpr(wasteful, x)` and `hlo(wasteful, x)`, where they are called `sine` and `cosine`."),
    solution=f'''{_WASTEFUL}
x = jnp.ones(1000)
recorded = str(jax.make_jaxpr(wasteful)(x))
left = jax.jit(wasteful).lower(x).compile().as_text()
waves = (recorded.count(" sin ") + recorded.count(" cos "), left.count(" sine(") + left.count(" cosine("))
''',
    explanation="""
So under `jit` there is no need to avoid common subexpressions by hand: write for the reader. Eager JAX and NumPy
compute all three.""",
    check=_check_waves)


# ---------------------------------------------------------------------------------------------------------------------
# 03.2 A loop for the compiler

_SMOOTHED = '''
def smoothed(x):
    """Each result lies a fifth of the way from the one before it towards x."""
    ...     # below, right but slow: make it faster
    y, results = x[0], []
    for i in range(len(x)):
        y = y + 0.2 * (x[i] - y)
        results.append(y)
    return jnp.stack(results)
'''


def _smooth(x):
    y, out = float(x[0]), []
    for value in x.tolist():
        y = y + 0.2 * (value - y)
        out.append(y)
    return np.array(out, np.float32)


def _signal(trial, size):
    return trial.rng.normal(3, 1, size).astype(np.float32)


def _check_smoothed(answer, trial):
    import jax

    for size in (1, 2, int(trial.rng.integers(10, 20))):
        data = _signal(trial, size)
        result = trial.call(answer, *on_cpu(data))
        is_jax(trial, result)
        trial.close(result, _smooth(data), f"the result for {size} number{'s' * (size > 1)}", rtol=1e-4)
    try:
        trial.close(trial.call(jax.jit(answer), *on_cpu(data)), _smooth(data), rtol=1e-4)
    except Wrong as wrong:
        raise Wrong(f"By itself it is right, but it must also work inside `jax.jit`. {wrong}") from None
    short, long = (program_length(trial, answer, *on_cpu(_signal(trial, size))) for size in (8, 32))
    if long > 2 * short:
        raise Wrong(f"JAX records {short} operations for 8 numbers and {long} for 32: Python still writes the loop "
                    f"out, "
                    "step by step, and building it takes ever longer, so hand the loop itself to the compiler.")

    def make_args():
        return on_cpu(_signal(trial, 256))
    ratio = trial.faster(answer, defined(_SMOOTHED, "smoothed"), make_args, 10, "your `smoothed`", rtol=1e-3)
    return f"Right, and {ratio.estimate:,.0f} times as fast, with a recording that does not grow."


SMOOTHED = Exercise(
    id="03.2", title="A loop for the compiler", level="speed", answer="smoothed", starter=_SMOOTHED.lstrip(),
    task="""
Exponential smoothing, as it is used on any noisy curve. Make it **at least 10 times as fast** for 256 numbers. It
takes and returns a JAX array with one dimension of float32, and works for every length from 1 on, inside `jax.jit`
too. And what JAX records must not grow with the length: a loop that Python unrolls takes longer and longer to
build.""",
    hints=(
        "Each result needs the one before it, so no plain array operation will do. Which of `fori_loop` and `scan` "
        "collects results?",
        "`lax.scan(step, start, x)` calls `step(y, value)`, which returns the next `y` and what to collect: here, "
        "both are "
        "the same number.",
        "`lax.scan` returns (last carry, collected). Begin with `x[0]`, and put one `@jax.jit` above it all."),
    solution='''
@jax.jit
def smoothed(x):
    """Each result lies a fifth of the way from the one before it towards x."""
    def step(y, value):
        y = y + 0.2 * (value - y)
        return y, y
    return jax.lax.scan(step, x[0], x)[1]
''',
    explanation="""
The loop's body is recorded once, whatever the length; the state is what `step` gets and gives first. A new length
still compiles again, because shapes belong to the signature.""",
    check=_check_smoothed)


# ---------------------------------------------------------------------------------------------------------------------
# 03.3 Count the traces

_HALVES = """
@jax.jit
def half(x):
    seen.append(x)
    return x / 2

half(np.ones(3, np.float32))
half(np.zeros(3, np.float32))
half(np.ones((3, 1), np.float32))
half(1.0)
half(2.0)
half(2)
half(np.float32(2))
"""


def _check_traces(answer, trial):
    import jax

    seen = []
    exec(_HALVES, {"jax": jax, "np": np, "seen": seen})
    found, right = trial.number(answer, integer=True), len(seen)
    calls, by_value = 7, right + 1
    told = {calls: "Seven calls, but a signature that came before is not traced again: look for pairs that share shape "
                   "and dtype.",
            by_value: "1.0 and 2.0 share one trace: JAX passes a Python number's value along, and only its type "
                      "counts. "
                      "(A constant for each value is TensorFlow's way.)",
            right - 1: "Close, but one more signature is new: think of what is weakly typed, and of int against float.",
            right - 2: "Two more are new: Python's 2 is an integer where 2.0 is a float, and np.float32(2) has a dtype "
                       "of its own where 2.0 adapts.",
            1: "Once would be enough only if all seven had one signature, but shapes, dtypes and weak types differ.",
            0: "Machine code needs a recording, so the first call traces at least."}
    if found != right:
        raise Wrong(told.get(found, f"It is not {found}: give each call its shape, dtype and weak type, and count the "
                                    "different ones."))
    return f"Right: {right} signatures in seven calls."


TRACES = Exercise(
    id="03.3", title="Count the traces", level="read", answer="half_traces", starter="half_traces = ...\n",
    task=f"""
```python
seen = []
{_HALVES.strip()}
```

How long is `seen` in the end? That is `half_traces`. Decide by what you know of signatures, then run it if you
like.""",
    hints=(
        "Write next to each call what JAX sees: shape, dtype, and whether the number is a plain Python one.",
        "Does JAX look at the value of a Python number? The table above has two rows on that.",
        "Weak float, weak integer, float32: three different things, even without a shape."),
    solution='''
seen = []

@jax.jit
def half(x):
    seen.append(x)
    return x / 2

for x in [np.ones(3, np.float32), np.zeros(3, np.float32), np.ones((3, 1), np.float32), 1.0, 2.0, 2, np.float32(2)]:
    half(x)
half_traces = len(seen)
''',
    explanation="""
Five: float32 of shape (3,), float32 of shape (3, 1), a weak float, a weak integer, and a float32 without
dimensions. In a program, the last three are often one number that reaches the function in three ways. Make it an
array once, at the door.""",
    check=_check_traces)


# ---------------------------------------------------------------------------------------------------------------------
# 03.4 Which argument is static?

_WINDOWS = '''
def window_means(x, width, scale):
    """scale times the mean of every `width` neighbours."""
    ...     # below, right, but not compiled
    runs = jnp.stack([x[i:len(x) - width + 1 + i] for i in range(width)])
    return scale * runs.mean(axis=0)
'''


def _means(x, width, scale):
    runs = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), width)
    return (scale * runs.mean(axis=1)).astype(np.float32)


def _check_windows(answer, trial):
    length, scales = int(trial.rng.integers(30, 60)), trial.rng.uniform(1, 2, 6).tolist()
    data = trial.rng.normal(size=length).astype(np.float32)
    (x,), compiled = on_cpu(data), 0
    for width in (3, 5):
        for scale in scales:
            times, result = _compilations(lambda width=width, scale=scale: trial.call(answer, x, width, scale))
            compiled += times
            is_jax(trial, result)
            trial.close(result, _means(data, width, scale), f"the result for width {width}, scale {scale:.3g}")
    for width in (1, length):
        trial.close(trial.call(answer, x, width, 2.0), _means(data, width, 2.0), f"the result for width {width}")
    if not _holds_compiled(answer):
        raise Wrong("The numbers are right, but no compiled function is kept: decorate with `jax.jit`, once, outside "
                    "of "
                    "any call.")
    if compiled > 5:
        raise Wrong(f"Two widths and six scales led to {compiled} compilations: fix while tracing only what shapes the "
                    "code, and leave what is merely multiplied an ordinary argument.")
    return f"Right: {len(scales)} scales share the code of each width."


WINDOWS = Exercise(
    id="03.4", title="Which argument is static?", level="write", answer="window_means", starter=_WINDOWS.lstrip(),
    task="""
Put the starter under `jit`, so that it compiles **once for each width** and never for a new `scale`. `x` is a JAX
array with one dimension of float32, `width` a Python int from 1 to `len(x)`, `scale` a Python float. The check
calls it as `window_means(x, width, scale)`, with two widths and six scales, and counts compilations.""",
    hints=(
        "A bare `@jax.jit` fails. Which argument must be known before anything can be recorded, since it decides about "
        "shapes?",
        "`static_argnames` names what is fixed while tracing. What happens at each new value of a static argument?",
        "Only the width: `@functools.partial(jax.jit, static_argnames=\"width\")`."),
    solution='''
import functools

@functools.partial(jax.jit, static_argnames="width")
def window_means(x, width, scale):
    """scale times the mean of every `width` neighbours."""
    runs = jnp.stack([x[i:len(x) - width + 1 + i] for i in range(width)])
    return scale * runs.mean(axis=0)
''',
    explanation="""
A static argument is for what the *code* depends on: sizes, flags, axes. Numbers that only take part in the
arithmetic, such as a learning rate, stay ordinary arguments, or each new value buys a new compilation.""",
    check=_check_windows)


# ---------------------------------------------------------------------------------------------------------------------
# 03.5 One trace for all rates (TensorFlow)

_DECAYED = '''
def decayed(step, weights, rates):
    """The weights after one step for each rate."""
    ...     # below, right, but with a trace for each rate: mend it
    for rate in rates:
        weights = step(weights, rate)
    return weights
'''


def _check_decayed(answer, trial):
    with frameworks.quiet_stderr():
        import tensorflow as tf

    def shrink(weights, rate):
        return weights - rate * weights

    start = trial.rng.normal(size=4).astype(np.float32)
    for rates in (trial.rng.uniform(0.01, 0.2, 8).tolist(), [0.5], []):
        step = tf.function(shrink, autograph=False)
        with _no_python_log():  # TensorFlow warns of retraces, and so does the check
            result = trial.call(answer, step, tf.constant(start), rates)
        trial.same_type(result, tf.constant(start))
        want = (start * np.prod(1 - np.array(rates))).astype(np.float32)
        trial.close(result, want, f"the result for {len(rates)} rate{'s' * (len(rates) != 1)}")
        traces = step.experimental_get_tracing_count()
        if rates and not traces:
            raise Wrong("The numbers are right, but `step` itself was never called: call the tf.function that you are "
                        "given, so that its graph does the work.")
        if traces > 1:
            raise Wrong(f"{len(rates)} rates led to {traces} traces: to tf.function each Python number is a constant "
                        f"of "
                        "its own, so turn the rate into something that has a dtype before you pass it.")
    return "Right: eight rates, one trace."


DECAYED = Exercise(
    id="03.5", title="One trace for all rates", level="write", answer="decayed", needs=("tensorflow",),
    starter=_DECAYED.lstrip(),
    task="""
`step` is a `tf.function` of float32 weights and a rate, and `rates` a list of Python floats, perhaps an empty one.
As it stands, `decayed` makes `step` trace for **each** rate. Mend `decayed`, not `step`: the same weights come
back, as a tensor, and `step` traces **once**.""",
    hints=(
        "How many traces does the table above show for `Python 1.5` and `Python 2.5`, and for the `np.float32` "
        "numbers?",
        "Hand over the rate as something that TensorFlow does not take for a constant. Mind its dtype: the weights are "
        "float32, and TensorFlow does not mix.",
        "`step(weights, tf.constant(rate, tf.float32))`."),
    solution='''
import tensorflow as tf

def decayed(step, weights, rates):
    """The weights after one step for each rate."""
    for rate in rates:
        weights = step(weights, tf.constant(rate, tf.float32))
    return weights
''',
    explanation="""
A tensor enters the graph through a placeholder, a Python number becomes part of it. The same cure serves step
counters, epochs, and anything else that changes from call to call.""",
    check=_check_decayed)


# ---------------------------------------------------------------------------------------------------------------------
# 03.6 Until it is done

_COLLATZ = '''
def collatz_steps(n):
    """Halve n if it is even, else take 3n + 1: how many steps until it is 1?"""
    ...     # below, Python decides: let the compiler's own loop do it
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
'''


def _collatz(n):
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def _check_collatz(answer, trial):
    import jax
    import jax.numpy as jnp

    with jax.disable_jit():  # a loop without end can be stopped here, but not once it is compiled
        trial.call(answer, jnp.int32(6))
    compiled = jax.jit(answer)
    for n in (1, 2, 6, 27, 871, *trial.rng.integers(3, 5000, 3).tolist()):
        result = trial.call(compiled, jnp.int32(n))
        trial.close(result, np.int32(_collatz(n)), f"the number of steps for {n}")
    many = trial.rng.integers(1, 5000, 20).astype(np.int32)
    try:
        together = trial.call(jax.vmap(answer), jnp.asarray(many))
    except Wrong as wrong:
        raise Wrong(f"Under `jit` it is right, but not under `vmap`. {wrong}") from None
    trial.close(together, np.array([_collatz(n) for n in many.tolist()], np.int32), "the result under vmap")
    return "Right, under jit and vmap, however many steps it takes."


COLLATZ = Exercise(
    id="03.6", title="Until it is done", level="write", answer="collatz_steps", starter=_COLLATZ.lstrip(),
    task="""
Nobody knows how many steps this takes before it has been tried, so Python must not be the one who decides. Write
`collatz_steps` so that it works under `jax.jit` and under `jax.vmap`: an int32 number from 1 on comes in, an int32
goes out. For 1 the answer is 0, and for 871 it is 178.""",
    hints=(
        "Two decisions are taken on a value: whether to go on, and whether n is even. Which of the compiler's own "
        "tools "
        "serves which?",
        "`lax.while_loop(cond, body, start)` for the loop, with the state `(n, steps)`; `jnp.where` or `lax.cond` for "
        "the choice.",
        "`cond` gets the state and returns `state[0] != 1`. `n // 2` keeps the integer where `n / 2` makes a float."),
    solution='''
def collatz_steps(n):
    """Halve n if it is even, else take 3n + 1: how many steps until it is 1?"""
    def one_step(state):
        n, steps = state
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1
    return jax.lax.while_loop(lambda state: state[0] != 1, one_step, (n, jnp.int32(0)))[1]
''',
    explanation="""
The state must keep shape and dtype from step to step, which is why the counter starts as an int32. Under `vmap` the
loop runs until the last of the numbers has arrived, and those that are done wait.""",
    check=_check_collatz)


# ---------------------------------------------------------------------------------------------------------------------
# 03.7 Few sizes for many lengths

_SPREAD = '''
@jax.jit
def spread(x):
    """How far the largest number lies above the mean."""
    ...     # below, right, but compiled for every length: mend it
    return x.max() - x.mean()
'''


_BUCKETS = 11  # from 1 to 1024 in powers of two


def _spread(x):
    return np.float32(x.max() - x.astype(np.float64).mean())


def _check_spread(answer, trial):
    lengths = [1, 1000, *trial.rng.choice(np.arange(2, 1000), 18, replace=False).tolist()]
    compiled = 0
    for count, length in enumerate(lengths, 1):
        data = trial.rng.normal(-5, 1, length).astype(np.float32)  # all below 0, so that a padding with 0 shows
        times, result = _compilations(lambda data=data: trial.call(answer, data))
        compiled += times
        is_jax(trial, result)
        trial.close(result, _spread(data), f"the result for {length} number{'s' * (length > 1)}", rtol=1e-4, atol=1e-4)
        if compiled > _BUCKETS:
            where = "; `jnp.pad` compiles for each length too, so pad in NumPy, before JAX sees the array" if \
                trial.uses(answer, "pad") and not _pads_in_numpy(answer) else ""
            raise Wrong(f"The first {count} lengths led to {compiled} compilations, and {_BUCKETS} are allowed: let "
                        f"the compiled function see only a few lengths{where}.")
    return f"Right: {len(lengths)} lengths, compilations: {compiled}."


def _pads_in_numpy(answer):
    """Does the function name NumPy, under its usual name or in full?"""
    import sys

    return any(value is sys.modules["numpy"] for value in frameworks.reachable(answer))


SPREAD = Exercise(
    id="03.7", title="Few sizes for many lengths", level="write", answer="spread", starter=_SPREAD.lstrip(),
    task="""
Readings of float32 numbers arrive as NumPy arrays, each of a new length between 1 and 1000. The starter compiles
for every one of them. Write `spread(x)` so that JAX does the work, the result is a JAX array without dimensions,
float32, and 20 lengths lead to **at most 11 compilations**.""",
    hints=(
        "If all readings were padded to a few lengths, a few compilations would do. What must not happen to the "
        "maximum and "
        "the mean because of it?",
        "Pad in NumPy, outside of `jit`, to the next power of two, and hand the true length over as an ordinary "
        "argument: "
        "inside, `jnp.arange(len(x)) < length` is the mask.",
        "Under the mask: `jnp.where(mask, x, -jnp.inf).max()`, and `jnp.where(mask, x, 0).sum() / length` for the "
        "mean."),
    solution='''
@jax.jit
def masked_spread(x, length):
    """How far the largest of the first `length` numbers lies above their mean."""
    real = jnp.arange(len(x)) < length
    return jnp.where(real, x, -jnp.inf).max() - jnp.where(real, x, 0).sum() / length

def spread(x):
    """How far the largest number lies above the mean; x is padded to the next power of two."""
    wide = np.zeros(1 << (len(x) - 1).bit_length(), np.float32)
    wide[:len(x)] = x
    return masked_spread(wide, len(x))
''',
    explanation="""
Lengths up to 1000 fall into eleven buckets, from 1 to 1024, at the price of up to twice the arithmetic. One bucket
of 1024 would compile once and compute more. Which is better depends on your readings; both beat a compilation for
each length.""",
    check=_check_spread)


EXERCISES = [RECORDED, SMOOTHED, TRACES, WINDOWS, DECAYED, COLLATZ, SPREAD]
