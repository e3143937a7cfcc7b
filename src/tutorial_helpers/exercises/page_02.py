"""Exercises of page 02: waiting, precision, passes over memory, fusion, the price of a call, donation, no writing."""

import dataclasses
import time

import numpy as np

from .engine import Exercise, Wrong
from .given import defined, is_jax, on_cpu

# ---------------------------------------------------------------------------------------------------------------------
# 02.1 A stopwatch that waits

_BUILD = 0.1  # seconds that the first call takes more, as a compilation would


@dataclasses.dataclass(init=False)
class _Promise:
    """A result that is there at a given time. It can be waited for in each way in which JAX's arrays can."""

    value: np.ndarray  # the package's wait() looks into the fields of a dataclass

    def __init__(self, ready_at):
        self._ready_at = ready_at

    def block_until_ready(self):
        time.sleep(max(0.0, self._ready_at - time.perf_counter()))
        return self

    def __array__(self, dtype=None, copy=None):
        self.block_until_ready()
        return np.zeros(3, dtype or np.float32)


_Promise.value = property(np.asarray)


class _Device:
    """A make-believe accelerator. Each call puts `work` seconds into its queue and returns; the first one builds."""

    def __init__(self, work, pack):
        self.work, self.pack, self.free_at, self.seen = work, pack, 0.0, []

    def submit(self, *args):
        """What the learner's stopwatch is to time."""
        if not self.seen:
            time.sleep(_BUILD)
        self.seen.append(args)
        self.free_at = max(self.free_at, time.perf_counter()) + self.work
        return self.pack(_Promise(self.free_at))


_STOPWATCH = '''
def seconds_per_call(fn, *args):
    """Seconds that one later call takes, until its result is there."""
    ...     # below, the published way: mend it
    start = time.perf_counter()
    fn(*args)
    return time.perf_counter() - start
'''


def _reading(answer, trial, work, pack, kind):
    """What the learner's stopwatch says about a fresh device."""
    device, given = _Device(work, pack), ("x", "y")
    try:
        found = trial.call(answer, device.submit, *given)
    except Wrong as wrong:
        if kind == "an array" or "raised" not in str(wrong):
            raise
        raise Wrong(f"Your stopwatch works when `fn` returns one array, but not when it returns {kind}: wait for "
                    "everything in it, as `jax.block_until_ready(result)` does.") from None
    if found is None:
        raise Wrong("Your stopwatch hands nothing back: `return` the seconds.")
    if not device.seen:
        raise Wrong("Your stopwatch never calls `fn`: start the clock, call `fn(*args)`, wait, stop the clock.")
    if device.seen[-1] != given:
        raise Wrong(f"Your stopwatch called `fn` with {len(device.seen[-1])} arguments instead of the {len(given)} it "
                    "was given: pass them on with `fn(*args)`.")
    return trial.number(found, "the time")


def _check_stopwatch(answer, trial):
    forms = {"an array": lambda one: one, "a tuple of arrays": lambda one: (one, {"loss": one})}
    for kind, pack in forms.items():
        work = float(trial.rng.uniform(0.02, 0.03))
        found = _reading(answer, trial, work, pack, kind)
        if found > 1.6 * work:  # other programs may have held this one up, but not three times in a row
            found = min(found, *(_reading(answer, trial, work, pack, kind) for _ in range(2)))
        if found < 0.9 * work:
            raise Wrong(f"The work of one call took {1e3 * work:.0f} ms and your stopwatch said {1e3 * found:.2g} ms: "
                        f"it stopped before {kind} was there, so wait for the result before you read the clock again.")
        if found > 500 * work:
            raise Wrong(f"One call takes {work:.3f} s and your stopwatch said {found:.3g}: seconds are asked for, not "
                        "milliseconds.")
        if found > _BUILD:
            raise Wrong(f"Your stopwatch counted {1e3 * _BUILD:.0f} ms of compilation, which only the first call "
                        "takes: call `fn` once, and wait for it, before the clock starts.")
        if found > 1.6 * work:
            raise Wrong(f"One call takes {1e3 * work:.0f} ms and your stopwatch said {1e3 * found:.0f} ms: when the "
                        "clock started, the device was still busy with an earlier call, so wait for that one too.")
    return "Right: it leaves the compilation out, and stops when the result is there, whatever form that has."


STOPWATCH = Exercise(
    id="02.1", title="A stopwatch that waits", level="write", answer="seconds_per_call", starter=_STOPWATCH.lstrip(),
    task="""
The starter is the published way to time. Mend it: `seconds_per_call(fn, *args)` returns the seconds that one call
of `fn(*args)` takes, **from its start until its result is there**. Two things to think of: the first call may
compile, which doesn't count, and a result may be one array, or a tuple or dictionary of arrays. The check hands you
a make-believe device on which every call takes a known time.""",
    hints=(
        "`fn(*args)` gives back a promise. What did section 1 do so that the numbers existed when it stopped the "
        "clock?",
        "Two calls: one before the clock starts, so that everything is compiled, and one that is timed. Is the device "
        "idle when the clock starts?",
        "`jax.block_until_ready(result)` waits for every array in a tuple or dictionary, and so does this package's "
        "`wait(result)`. It is needed after both calls."),
    solution='''
import time

def seconds_per_call(fn, *args):
    """Seconds that one later call takes, until its result is there."""
    jax.block_until_ready(fn(*args))        # compiles, and leaves nothing in the queue
    start = time.perf_counter()
    jax.block_until_ready(fn(*args))
    return time.perf_counter() - start
''',
    explanation="""
The first wait matters as much as the second. Without it, the timed call stands in a queue behind the first one, and
pays for both. One call is still a poor sample: this page's `compare` takes many, in shuffled rounds, and shows the
spread.""",
    check=_check_stopwatch)


# ---------------------------------------------------------------------------------------------------------------------
# 02.2 Which precision comes out?

_DTYPES = '''
n32, j32 = np.ones(3, np.float32), jnp.ones(3)

dtypes = {
    "n32 * 2.5": ...,
    "n32 * np.sqrt(2)": ...,
    "n32 * np.arange(3)": ...,
    "j32 * np.sqrt(2)": ...,
    "j32 * jnp.arange(3)": ...,
    "jnp.asarray(np.ones(3))": ...,
}
'''

_WHY = {
    "n32 * 2.5": "a plain Python number adapts to the array, in NumPy as in JAX",
    "n32 * np.sqrt(2)": "`np.sqrt(2)` is not a Python number but an np.float64, and since NumPy 2 that counts like an "
                        "array of float64",
    "n32 * np.arange(3)": "`np.arange(3)` holds 64-bit integers, for which NumPy finds float32 too narrow",
    "j32 * np.sqrt(2)": "JAX narrows the np.float64 before it computes",
    "j32 * jnp.arange(3)": "JAX counts in 32 bits unless told otherwise, and lets a float array keep its dtype when it "
                           "meets integers",
    "jnp.asarray(np.ones(3))": "a float64 array is narrowed on its way into JAX, without a word",
}


def _check_dtypes(answer, trial):
    import jax.numpy as jnp

    if not isinstance(answer, dict) or set(answer) != set(_WHY):
        raise Wrong("Your answer must be the starter's dictionary, with a name such as \"int32\" for each of its six "
                    "lines.")
    space = {"np": np, "jnp": jnp, "n32": np.ones(3, np.float32), "j32": jnp.ones(3)}
    for line, why in _WHY.items():
        right = str(eval(line, space).dtype)
        if answer[line] is Ellipsis:
            raise Wrong(f"`{line}` has no answer yet: put a name such as \"int32\" in its place.")
        try:
            found = np.dtype(answer[line]).name
        except TypeError:
            raise Wrong(f"`{line}`: {answer[line]!r} is no dtype; write \"float32\" or the like.") from None
        if found != right:
            raise Wrong(f"`{line}` is not {found}: {why}.")
    return "Right, all six: only NumPy widens, and it needs no more than one np.float64 to do so."


WHICH_DTYPE = Exercise(
    id="02.2", title="Which precision comes out?", level="read", answer="dtypes", starter=_DTYPES.lstrip(),
    task="""
Precision is a part of many a published speed-up. Say for each line which dtype its result has, as a word such as
`"int32"`. Decide first, then look at `.dtype` where you are not sure.""",
    hints=(
        "NumPy takes the wider of two dtypes. Which of these factors have a dtype of their own, and which are plain "
        "Python numbers?",
        "`type(np.sqrt(2))` is the surprise in NumPy. For JAX remember: 64 bits only if you insist.",
        "Let Python tell you, for instance `(n32 * np.sqrt(2)).dtype`."),
    solution='''
dtypes = {
    "n32 * 2.5": "float32",
    "n32 * np.sqrt(2)": (np.ones(3, np.float32) * np.sqrt(2)).dtype,      # float64 since NumPy 2
    "n32 * np.arange(3)": "float64",
    "j32 * np.sqrt(2)": "float32",
    "j32 * jnp.arange(3)": "float32",
    "jnp.asarray(np.ones(3))": "float32",
}
''',
    explanation="""
A careful NumPy program in float32 can turn into float64 at one `np.sqrt(2)` or `np.pi * np.arange(n)`, and then
moves twice the bytes; `float(np.sqrt(2))` prevents that. JAX errs on the other side: it never goes to 64 bits by
itself.""",
    check=_check_dtypes)


# ---------------------------------------------------------------------------------------------------------------------
# 02.3 Count the passes

_SIDE, _ITEM = 2000, 4


def _check_passes(answer, trial):
    array = _SIDE * _SIDE * _ITEM / 1e6
    # x - y, again x - y, their product: three arrays each; 0.5 * x: two; the sum: three. Fused: x, y and the result.
    apart, fused = (3 + 3 + 3 + 2 + 3) * array, 3 * array
    trial.close(answer, (0, 0), "your answer", atol=1e300, dtype=False)
    first, second = (trial.number(part, "each part") for part in answer)

    def says(part, *arrays):
        return any(abs(part - count * array) < 0.02 * array for count in arrays)
    told = [
        (abs(first - 2 * apart) < 1 or abs(second - 2 * fused) < 1,
         f"A float32 number has 4 bytes, so one array is {array:.0f} MB: you have counted 8."),
        (says(first, 3) and says(second, 14), "The first number is for one operation at a time, the second for the "
         "fused loop: you have them the other way round."),
        (abs(first - apart / array) < 0.1 and abs(second - fused / array) < 0.1,
         f"These are arrays; multiply by the {array:.0f} MB of one array."),
        (says(first, 9), "Writing counts as well: each of the five operations also writes an array."),
        (says(first, 11), "NumPy does not notice that it has x - y already: it computes it twice, three arrays each."),
        (says(first, 15), "0.5 is one number, not an array: 0.5 * x reads one array and writes one."),
        (not says(first, 14), "One operation at a time, there are five operations: count for each the arrays that it "
         f"reads and the one that it writes, {array:.0f} MB apiece."),
        (says(second, 2), "The fused loop has two inputs, x and y, and it writes one result."),
        (not says(second, 3), "In the fused loop nothing in between goes to memory: count only the inputs and the "
         "result."),
    ]
    for wrong, sentence in told:
        if wrong:
            raise Wrong(sentence)
    return f"Right: {apart:.0f} MB against {fused:.0f} MB, so fusion can gain at most a factor of {apart / fused:.1f}."


PASSES = Exercise(
    id="02.3", title="Count the passes", level="read", answer="megabytes", starter="megabytes = ...\n",
    task=f"""
`contrast(x, y)` returns `(x - y) * (x - y) + 0.5 * x` for two float32 arrays of {_SIDE} × {_SIDE}. How many **MB**
(10⁶ bytes) go to or from memory, first with NumPy, one operation at a time, then in one fused loop? Answer with a
pair, `megabytes = (one_at_a_time, fused)`. Caches and temporary arrays that are used again don't count.""",
    hints=(
        "How many MB is one such array? A float32 number has four bytes.",
        "Write the operations below each other, one a line, as NumPy does them: what does each read, what does it "
        "write?",
        "Five operations: x - y, x - y once more, their product, 0.5 * x, the sum. And the fused loop touches only "
        "what "
        "comes in and what goes out."),
    solution=f'''
one_array = {_SIDE} * {_SIDE} * {_ITEM} / 1e6           # MB
operations = [3, 3, 3, 2, 3]                   # arrays read and written: x - y, x - y, their product, 0.5 * x, the sum
megabytes = (sum(operations) * one_array, 3 * one_array)
''',
    explanation="""
14 passes against 3, so no more than a factor of 4.7 can come from fusion here. Measured, it may be less, when
NumPy's temporary arrays stay in a cache, or more, when XLA uses several cores.""",
    check=_check_passes)


# ---------------------------------------------------------------------------------------------------------------------
# 02.4 Make it one loop

_SOFTEN = '''
def soften(x):
    """Bring x into -1 to 1, push it towards the ends, bring it back."""
    ...     # below, right but slow: make it faster
    top = float(jnp.abs(x).max())
    t = x / top
    for _ in range(6):
        t = 0.5 * t * (3 - t * t)
    return top * t
'''


def _softened(x):
    top = np.abs(x).max().astype(np.float64)
    t = x.astype(np.float64) / top
    for _ in range(6):
        t = 0.5 * t * (3 - t * t)
    return (top * t).astype(np.float32)


def _check_soften(answer, trial):
    for shape in [(1,), (3, 40), (int(trial.rng.integers(100, 400)),)]:
        # Now and then the number farthest from 0 is a negative one, so abs() cannot be left out.
        data = (trial.rng.uniform(1, 9) * trial.rng.uniform(-1, 0.5, shape)).astype(np.float32)
        result = trial.call(answer, *on_cpu(data))
        is_jax(trial, result)
        trial.close(result, _softened(data), f"the result for shape {shape}", rtol=1e-3, atol=1e-5)

    def make_args():
        return on_cpu(trial.rng.random(500_000, np.float32) * 2 - np.float32(1))
    ratio = trial.faster(answer, defined(_SOFTEN, "soften"), make_args, 2, "your `soften`", rtol=1e-3, atol=1e-5)
    return f"Right, and {ratio.estimate:.1f} times as fast: one loop over memory instead of one for each operation."


SOFTEN = Exercise(
    id="02.4", title="Make it one loop", level="speed", answer="soften", starter=_SOFTEN.lstrip(),
    task="""
Make `soften` **at least twice as fast** on half a million float32 numbers in a JAX array. It must give the same
numbers, for arrays of any shape that are not all zero, as a JAX array of float32. `jax.jit` is the tool, but it
won't take the function as it stands. The timed calls all have new numbers and one shape.""",
    hints=(
        "Put `@jax.jit` above it and read the first line of the error. Which line asks for a value while there is "
        "none?",
        "Nobody needs `top` as a Python number. What is it if you leave it to JAX?",
        "Remove `float(…)` and decorate with `@jax.jit`. The Python loop runs while JAX is tracing, and unrolls."),
    solution='''
@jax.jit
def soften(x):
    """Bring x into -1 to 1, push it towards the ends, bring it back."""
    top = jnp.abs(x).max()
    t = x / top
    for _ in range(6):
        t = 0.5 * t * (3 - t * t)
    return top * t
''',
    explanation="""
`float(…)` had two costs: it waited for the device in the middle of the function, and it kept the function out of
`jit`. As an array without dimensions, `top` stays inside. XLA can make one loop that finds the largest number and
one that does the rest, where eager JAX goes to memory and back for each of the 28 operations.""",
    check=_check_soften)


# ---------------------------------------------------------------------------------------------------------------------
# 02.5 Four hundred steps, one call

_SWING = '''
def swing(angle, speed, steps):
    """Angles and speeds of pendulums after so many small time steps."""
    ...     # below, right but slow: make it faster
    for _ in range(steps):
        speed = speed - 0.05 * jnp.sin(angle)
        angle = angle + 0.05 * speed
    return angle, speed
'''


def _swung(angle, speed, steps):
    angle, speed = angle.astype(np.float64), speed.astype(np.float64)
    for _ in range(steps):
        speed = speed - 0.05 * np.sin(angle)
        angle = angle + 0.05 * speed
    return angle.astype(np.float32), speed.astype(np.float32)


def _pendulums(trial, count):
    return tuple(trial.rng.uniform(-1, 1, (2, count)).astype(np.float32))


def _check_swing(answer, trial):
    for count, steps in ((10, 1), (3, 25), (1, 0), (10, 60)):
        start = _pendulums(trial, count)
        result = trial.call(answer, *on_cpu(*start), steps)
        trial.close(result, _swung(*start, steps), f"`swing(…, {steps})`", rtol=1e-3, atol=1e-4)
        for part in result:
            is_jax(trial, part)

    def make_args():
        return (*on_cpu(*_pendulums(trial, 10)), 400)
    ratio = trial.faster(answer, defined(_SWING, "swing"), make_args, 20, "your `swing`", rtol=1e-3, atol=1e-3)
    return f"Right, and {ratio.estimate:,.0f} times as fast: the loop is inside, and Python calls once."


SWING = Exercise(
    id="02.5", title="Four hundred steps, one call", level="speed", answer="swing", starter=_SWING.lstrip(),
    task="""
Ten pendulums, 400 time steps, two thousand calls into JAX. Make `swing(angle, speed, steps)` **at least 20 times as
fast**. It returns both arrays, JAX, float32, for any number of pendulums and any number of steps, 0 included.
Within a step, the angle moves with the *new* speed, as in the starter.""",
    hints=(
        "Ten numbers are nothing; what costs is the way into each of the 2,000 calls. Where did this section put its "
        "loop?",
        "`lax.fori_loop(0, steps, body, start)` carries one thing from step to step, and that may be a pair: "
        "`body(i, (angle, speed))` returns the next pair.",
        "Put `jax.jit` around the function with the loop, once, and not around the body only: then Python would still "
        "call 400 times."),
    solution='''
@jax.jit
def swing(angle, speed, steps):
    """Angles and speeds of pendulums after so many small time steps."""
    def step(_, state):
        angle, speed = state
        speed = speed - 0.05 * jnp.sin(angle)
        return angle + 0.05 * speed, speed
    return jax.lax.fori_loop(0, steps, step, (angle, speed))
''',
    explanation="""
The state is a pair, and the loop carries it. `steps` may stay an ordinary argument: the compiled loop counts up to
whatever number comes in, so a new number of steps compiles nothing.""",
    check=_check_swing)


# ---------------------------------------------------------------------------------------------------------------------
# 02.6 Give the old array away

_BLEND = '''
def blend(state, update):
    """A running mean: mostly the old state, a little of the new."""
    ...     # below, right, but into new memory: mend it
    return 0.9 * state + 0.1 * update
'''


def _fresh(trial, shape):
    """A state and an update in memory of JAX's own, with their values: what came from NumPy cannot be given away."""
    import jax

    values = [trial.rng.normal(size=shape).astype(np.float32) for _ in range(2)]
    owned = tuple(array + 0 for array in on_cpu(*values))
    return jax.block_until_ready(owned), 0.9 * values[0] + np.float32(0.1) * values[1]


def _check_blend(answer, trial):
    for shape in ((7,), (64, 3), (int(trial.rng.integers(1000, 2000)),)):
        (state, update), right = _fresh(trial, shape)
        home = state.unsafe_buffer_pointer()
        result = trial.call(answer, state, update)
        is_jax(trial, result)
        trial.close(result, right, f"the result for shape {shape}")
        if update.is_deleted():
            raise Wrong("`update` is gone after the call, though the caller may still need it: donate the first "
                        "argument only, whose number is 0.")
        if not state.is_deleted():
            raise Wrong("The numbers are right, but the old state is still there, so the result lies in new memory: "
                        "tell "
                        "jit which argument it may use up.")
        if result.unsafe_buffer_pointer() != home:
            raise Wrong("The old state is gone, but the result does not lie in its memory: let XLA write there, by "
                        "donation, instead of deleting the array.")
    _compiles_once(answer, trial, shape)
    return "Right: the result lies where the state was, and no new memory is needed."


def _compiles_once(answer, trial, shape):
    """Wrong if further calls with arrays of the same shape compile."""
    from .. import frameworks

    calls = [_fresh(trial, shape)[0] for _ in range(3)]
    before = frameworks.jax_events()["compiles"]
    for state, update in calls:
        trial.call(answer, state, update)
    if frameworks.jax_events()["compiles"] > before:
        raise Wrong("Your function compiles again at every call, because it makes a new jitted function each time: "
                    "decorate once, outside.")


BLEND = Exercise(
    id="02.6", title="Give the old array away", level="write", answer="blend", starter=_BLEND.lstrip(),
    task="""
A training loop calls `state = blend(state, update)` a million times, and never looks at the old state again. Let
the result be written **into the memory of the old state**. The `update` must stay usable, and nothing may be
compiled anew when the same shape comes again.""",
    hints=(
        "This section's `reusing` did the same. What had it that a plain `jax.jit` has not?",
        "Arguments count from 0. Which one may be used up, and which one not?",
        "`@partial(jax.jit, donate_argnums=0)` above the function, with `from functools import partial`."),
    solution='''
from functools import partial

@partial(jax.jit, donate_argnums=0)
def blend(state, update):
    """A running mean: mostly the old state, a little of the new."""
    return 0.9 * state + 0.1 * update
''',
    explanation="""
Donation is a promise by the caller: nobody will read this array again. JAX holds you to it: `state.is_deleted()` is
True afterwards, and a later read raises an error. It works only if a result has the donated array's shape and
dtype.""",
    check=_check_blend)


# ---------------------------------------------------------------------------------------------------------------------
# 02.7 Without writing in place

_RING = '''
def close_ring(u):
    """No negative heat, and the ring closed: its last cell is its first one."""
    ...     # below, NumPy writing in place: put it into JAX
    u[u < 0] = 0
    u[-1] = u[0]
    return u
'''


def _ring(u):
    out = np.where(u < 0, 0, u).astype(u.dtype)
    out[-1] = out[0]
    return out


def _check_ring(answer, trial):
    import jax

    cases = [np.array([-2.0, 3.0, -1.0, 5.0], np.float32), np.array([4.0, -1.0, 2.0], np.float32),
             np.array([-1.5], np.float32), trial.rng.normal(size=50).astype(np.float32),
             trial.rng.integers(-9, 9, 20).astype(np.int32)]
    for data in cases:
        (given,) = on_cpu(data)
        result = trial.call(answer, given)
        is_jax(trial, result)
        trial.close(result, _ring(data), f"the result for {data.dtype.name} {data[:4].tolist()}"
                    f"{' …' if len(data) > 4 else ''}")
        if given.is_deleted() or not np.array_equal(np.asarray(given), data):
            raise Wrong("The array that you were given must still hold its old values afterwards.")
    try:
        trial.close(trial.call(jax.jit(answer), given), _ring(data))
    except Wrong as wrong:
        raise Wrong(f"By itself it is right, but not inside `jax.jit`. {wrong}") from None
    return "Right, for float32 and int32, with and without jit, and the old array is untouched."


RING = Exercise(
    id="02.7", title="Without writing in place", level="write", answer="close_ring", starter=_RING.lstrip(),
    task="""
The starter is NumPy and writes into `u`. Write it for JAX: `close_ring(u)` takes a JAX array with one dimension,
float32 or int32, and returns a new one **of the same dtype**; `u` keeps its values, and the function works inside
`jax.jit` as well. The order matters: the last cell gets the first one as it is after the negative numbers have
gone.""",
    hints=(
        "Two writes, two tools: one picks element by element between two values, the other writes at an index and "
        "returns a new array.",
        "`jnp.where(condition, a, b)` and `u.at[i].set(value)`. Neither changes `u`: give the result a name.",
        "If your int32 comes back as float32, look at the zero: `0.0` is a float, `0` adapts."),
    solution='''
def close_ring(u):
    """No negative heat, and the ring closed: its last cell is its first one."""
    u = jnp.where(u < 0, 0, u)
    return u.at[-1].set(u[0])
''',
    explanation="""
Neither line changes what came in. Inside `jit`, `at[…].set(…)` need not copy either: the compiler sees that nobody
looks at the array before it any more, and may write into that one.""",
    check=_check_ring)


EXERCISES = [STOPWATCH, WHICH_DTYPE, PASSES, SOFTEN, SWING, BLEND, RING]
