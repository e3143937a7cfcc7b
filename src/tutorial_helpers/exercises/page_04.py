"""Exercises of page 04: slopes at a kink, next to 0, tall or wide, memory, one gradient each, own rules."""

import functools
import re

import numpy as np

from ..results import times
from .engine import Exercise, Wrong
from .given import defined, faster, is_jax, not_unrolled, on_cpu, program_length
from .trial import values_of

# ---------------------------------------------------------------------------------------------------------------------
# 04.1 One function, several slopes

_SLOPES = '''
kink_slopes = {
    "jnp.abs(x)": ...,
    "jnp.sqrt(x * x)": ...,
    "x * jnp.sign(x)": ...,
    "jnp.maximum(x, 0.0)": ...,
    "jax.nn.relu(x)": ...,
    "jnp.where(x > 0, jnp.sqrt(x), 0.0)": ...,
}
'''

_WHY = {
    "jnp.abs(x)": "at a kink a library must choose; look at what it chose",
    "jnp.sqrt(x * x)": "on the way back, the square root hands on 1/0 = inf, and the slope of x * x at 0 is 0: inf · 0",
    "x * jnp.sign(x)": "by the rule for products it is sign(0) + 0 · (the slope of sign), and sign(0) = 0",
    "jnp.maximum(x, 0.0)": "here both arguments are the maximum, and JAX shares the adjoint between them",
    "jax.nn.relu(x)": "the same ramp as maximum, but its authors gave it a rule of its own, with the slope of the flat "
                      "side at 0",
    "jnp.where(x > 0, jnp.sqrt(x), 0.0)": "`where` hands 0 to the branch that was not chosen, and that branch "
                                          "multiplies it by its own slope at 0, which is infinite",
}


def _as_slope(line, given):
    """A learner's answer as a float, nan and inf included."""
    if given is Ellipsis:
        raise Wrong(f"`{line}` has no answer yet: put a number in its place, `float(\"nan\")` and `float(\"inf\")` "
                    "included.")
    try:
        return float(given)
    except (TypeError, ValueError):
        raise Wrong(f"`{line}`: {given!r} is no number. Write 0.5, or `float(\"nan\")`, or the like.") from None


def _check_slopes(answer, trial):
    import jax
    import jax.numpy as jnp

    if not isinstance(answer, dict) or set(answer) != set(_WHY):
        raise Wrong("Your answer must be the starter's dictionary, with a number for each of its six lines.")
    for line, why in _WHY.items():
        given = _as_slope(line, answer[line])
        right = float(jax.grad(eval(f"lambda x: {line}", {"jax": jax, "jnp": jnp}))(0.0))
        if not np.isclose(given, right, rtol=1e-3, atol=1e-6, equal_nan=True):
            raise Wrong(f"The slope of `{line}` at 0 is not {given:g}: {why}.")
    return "Right, all six: what is differentiated is the program, not the curve that it draws."


SLOPES = Exercise(
    id="04.1", title="One curve, several slopes", level="read", answer="kink_slopes", starter=_SLOPES.lstrip(),
    task="""
The first three programs draw the same curve, |x|, and the next two the same ramp. What does `jax.grad` say about the
slope of each **at 0.0**? Decide first, then ask JAX where you are not sure. `float("nan")` and `float("inf")` are
numbers too.""",
    hints=(
        "`grad` knows no curves. It goes back through the operations of the program, and multiplies their slopes.",
        "The slope of a square root at 0 is infinite, and infinity times 0 is nan. Which of the lines come across it?",
        "Let JAX tell you: `jax.grad(lambda x: jnp.sqrt(x * x))(0.0)`."),
    solution='''
kink_slopes = {
    "jnp.abs(x)": jax.grad(jnp.abs)(0.0),
    "jnp.sqrt(x * x)": float("nan"),
    "x * jnp.sign(x)": 0.0,
    "jnp.maximum(x, 0.0)": 0.5,
    "jax.nn.relu(x)": 0.0,
    "jnp.where(x > 0, jnp.sqrt(x), 0.0)": float("nan"),
}
''',
    explanation="""
Three programs for |x|, three slopes at 0. Where there is no derivative, any of the answers but nan serves gradient
descent well enough. A nan spreads to all that it touches: look for square roots, norms, logarithms and quotients whose
argument can become 0.""",
    check=_check_slopes)


# ---------------------------------------------------------------------------------------------------------------------
# 04.2 Right at 0, and next to it

_GROWTH = '''
def growth_factor(x):
    """(exp(x) - 1) / x, whose limit at 0 is 1."""
    ...     # below, as the formula says: mend it
    return (jnp.exp(x) - 1) / x
'''


def _exact_growth(x):
    """Value and slope in float64, for x in any order."""
    with np.errstate(all="ignore"):
        value, slope = np.expm1(x) / x, (x * np.exp(x) - np.expm1(x)) / x**2
    terms = np.arange(30)[:, None]
    below = np.cumprod(np.vstack([np.ones(1), 1.0 + np.arange(1, 30)[:, None]]), axis=0)      # (k + 1)!
    near = np.abs(x) < 1
    value[near] = (x[near] ** terms / below).sum(0)
    slope[near] = (terms[1:] * x[near] ** (terms[1:] - 1) / below[1:]).sum(0)
    return value, slope


def _at_zero(answer, trial):
    import jax

    zero, = on_cpu(np.float32(0))
    value = values_of(trial.call(answer, zero), "the value at 0")
    if value.shape:
        raise Wrong(f"For one number, one number is to come back; yours has the shape {value.shape}.")
    if not abs(value - 1) < 1e-5:
        raise Wrong(f"At 0 your function returns {value:.4g}, but the limit is 1: give the division a harmless number "
                    "there, and choose the limit instead.")
    slope = float(trial.call(jax.grad(answer), zero))
    if np.isnan(slope):
        raise Wrong("At 0 the value is right and the slope is nan: the branch that was not chosen still divides by 0, "
                    "so make its input harmless first, with a second `where`.")
    if abs(slope) < 1e-6:
        raise Wrong("At 0 the slope is 0, but 0.5 is right: the constant that you put there is flat, so you need "
                    "something with the right shape near 0.")
    if not abs(slope - 0.5) < 1e-5:
        raise Wrong(f"At 0 the slope is {slope:.4g}, but 0.5 is right: the series is 1 + x/2 + x²/6 + …")


def _everywhere(answer, trial):
    import jax

    size = np.concatenate([np.geomspace(1e-5, 1, 60), trial.rng.uniform(0, 10, 60)])
    x = (size * trial.rng.choice([-1, 1], size.size)).astype(np.float32)
    try:
        found = trial.call(jax.jit(jax.vmap(jax.value_and_grad(answer))), *on_cpu(x))
    except Wrong as wrong:
        if "Tracer" in str(wrong) or "Concretization" in str(wrong):
            raise Wrong("Under `jit` and `vmap` there is no single x that an `if` or `float` could look at: choose "
                        "with `jnp.where`.") from None
        raise
    for name, got, want in zip(("value", "slope"), found, _exact_growth(x.astype(float)), strict=True):
        off = np.abs(np.asarray(got, float) / want - 1)
        off[np.isnan(off)] = np.inf
        k = int(off.argmax())
        if off[k] > 2e-5:
            advice = ("the program subtracts two numbers of nearly equal size there, so let a series take over at a "
                      "larger x" if abs(x[k]) < 0.9 else "a series is good near 0 only, so let the formula take over "
                      "farther out, or take more terms")
            raise Wrong(f"At x = {x[k]:.3g} the {name} is {float(got[k]):.6g}, but {want[k]:.6g} is right: {advice}.")


def _check_growth(answer, trial):
    _at_zero(answer, trial)
    _everywhere(answer, trial)
    point, = on_cpu(np.float32(trial.rng.uniform(1, 5)))
    result = trial.call(answer, point)
    is_jax(trial, result)
    trial.close(result, np.float32(np.expm1(float(point)) / float(point)), rtol=1e-4)
    return "Right: value and slope hold to 2e-5 of themselves at 0, next to it and far from it."


GROWTH = Exercise(
    id="04.2", title="Right at 0, and next to it", level="write", answer="growth_factor", starter=_GROWTH.lstrip(),
    task="""
(eˣ − 1)/x turns up wherever something grows at a steady rate. Write `growth_factor(x)` for one float32 number x between
−10 and 10, so that the value **and the slope by `jax.grad`** are right to 2·10⁻⁵ of themselves: at 0 (value 1, slope
0.5), next to 0, and far from it. It must work under `jit` and `vmap`.""",
    hints=(
        "A double `where` cures the nan. What slope does it give at 0, and why?",
        "Near 0 you need something that is right in its shape and not only in its value: the series "
        "1 + x/2! + x²/3! + x³/4! + …, as `with_series` did it.",
        "Use the series for |x| < 1, with terms up to x¹⁰/11!, and the formula elsewhere; feed each of them with "
        "numbers that suit it: `far = jnp.where(near, 1.0, x)`."),
    solution='''
def growth_factor(x):
    """(exp(x) - 1) / x, whose limit at 0 is 1."""
    near = jnp.abs(x) < 1
    small, far = jnp.where(near, x, 0.0), jnp.where(near, 1.0, x)
    series = 1.0
    for k in range(12, 1, -1):              # 1 + x/2 (1 + x/3 (1 + x/4 (...)))
        series = 1 + small / k * series
    return jnp.where(near, series, (jnp.exp(far) - 1) / far)
''',
    explanation="""
Each branch sees only numbers that suit it, so nothing infinite arises, and near 0 the series has the right slope as
well. There is a way without any `where`: (eˣ − 1)/x is the mean of eᵗˣ over t from 0 to 1, and a dozen points of Gauss
and Legendre compute that mean to all the digits of float32, without dividing at all.""",
    check=_check_growth)


# ---------------------------------------------------------------------------------------------------------------------
# 04.3 Tall or wide?

_SENSITIVITIES = '''
@jax.jit
def sensitivities(p, t):
    """How much each position moves when a parameter moves: shape (len(t), 4)."""
    ...     # below, right but slow: make it faster
    def position(p):
        return p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3])
    return jax.jacrev(position)(p)
'''


def _exact_sensitivities(p, t):
    p, t = np.asarray(p, float), np.asarray(t, float)
    fading, angle = p[0] * np.exp(-p[1] * t), p[2] * t + p[3]
    position, turned = fading * np.cos(angle), -fading * np.sin(angle)
    return np.stack([position / p[0], -t * position, t * turned, turned], axis=1).astype(np.float32)


def _oscillator(trial, n):
    p = trial.rng.uniform([0.5, 0.02, 1, 0], [2, 0.1, 4, 1])
    t = np.sort(trial.rng.uniform(0, 10, n))
    return on_cpu(p.astype(np.float32), t.astype(np.float32))


def _check_sensitivities(answer, trial):
    for n in (6, 1, int(trial.rng.integers(10, 60))):
        p, t = _oscillator(trial, n)
        result = trial.call(answer, p, t)
        is_jax(trial, result)
        if result.shape == (4, n):
            raise Wrong(f"The result has shape (4, {n}): you have a row for each parameter, and a column for each is "
                        "needed. Transpose it.")
        if result.shape == (n, n):
            raise Wrong(f"The result has shape ({n}, {n}): that is the slope by the times, and the slope by the "
                        "parameters is asked for.")
        trial.close(result, _exact_sensitivities(p, t), rtol=1e-3, atol=2e-3)
    ratio = faster(trial, answer, defined(_SENSITIVITIES, "sensitivities"), lambda: _oscillator(trial, 1000), 10,
                   "Which mode needs one sweep for each position, and which one for each parameter?", rtol=1e-3,
                   atol=2e-3)
    return f"Right, and {times(ratio.estimate)} as fast: 4 sweeps instead of 1000."


SENSITIVITIES = Exercise(
    id="04.3", title="Tall or wide?", level="speed", answer="sensitivities", starter=_SENSITIVITIES.lstrip(),
    task="""
Four parameters, a thousand positions: `sensitivities(p, t)` is the Jacobian of the model of section 6, of shape
`(len(t), 4)`, float32. The starter is compiled and right. Make it **10 times as fast** for 1000 times t.""",
    hints=(
        "How many rows has this Jacobian, how many columns? Which of them does reverse mode fill in one sweep?",
        "A sweep of forward mode fills one column, and there are only four.",
        "`jax.jacfwd` instead of `jax.jacrev`; leave `@jax.jit` where it is."),
    solution='''
@jax.jit
def sensitivities(p, t):
    """How much each position moves when a parameter moves: shape (len(t), 4)."""
    def position(p):
        return p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3])
    return jax.jacfwd(position)(p)
''',
    explanation="""
One word. Reverse mode pulls a thousand adjoints back, one for each position, to fill a thousand short rows. Forward
mode pushes four directions through, and each comes out as a whole column.""",
    check=_check_sensitivities)


# ---------------------------------------------------------------------------------------------------------------------
# 04.4 A quarter of the memory

_THRIFTY = '''
def thrifty(ws, x):
    """The gradient of a deep network's mean output with respect to its weights ws; shape of ws."""
    ...     # below, right but hungry: make do with less
    def layer(x, w):
        return jnp.tanh(x @ w), None
    def network(ws):
        return jax.lax.scan(layer, x, ws)[0].mean()
    return jax.grad(network)(ws)
'''


def _deep(trial, depth, width=8, rows=256):
    """Weights of so many layers, and rows of numbers to go through them."""
    ws = np.eye(width) + trial.rng.normal(0, 0.1, (depth, width, width))
    return on_cpu(ws.astype(np.float32), trial.rng.normal(0, 1, (rows, width)).astype(np.float32))


def _exact_deep(ws, x):
    """The gradient by hand: there, keeping each layer's output, and back."""
    kept = [np.asarray(x, float)]
    for w in np.asarray(ws, float):
        kept.append(np.tanh(kept[-1] @ w))
    bar, found = np.full(kept[-1].shape, 1 / kept[-1].size), []
    for w, before, after in zip(np.asarray(ws, float)[::-1], kept[-2::-1], kept[:0:-1], strict=True):
        inside = bar * (1 - after**2)
        found.append(before.T @ inside)
        bar = inside @ w.T
    return np.stack(found[::-1]).astype(np.float32)


def _scratch(fn, *args):
    """Bytes that the compiled program needs besides its inputs and outputs."""
    import jax

    return jax.jit(fn).lower(*args).compile().memory_analysis().temp_size_in_bytes


@functools.cache
def _scratch_of_the_starter(*shapes):
    return _scratch(defined(_THRIFTY, "thrifty"), *on_cpu(*(np.zeros(shape, np.float32) for shape in shapes)))


def _check_thrifty(answer, trial):
    for depth, width, rows in ((16, 4, 20), (48, 7, 12)):
        ws, x = _deep(trial, depth, width, rows)
        result = trial.call(answer, ws, x)
        is_jax(trial, result)
        trial.close(result, _exact_deep(ws, x), f"the gradient for {depth} layers", rtol=1e-3, atol=1e-6)
    big = _deep(trial, 128)
    share = _scratch(answer, *big) / _scratch_of_the_starter(*(part.shape for part in big))
    if share > 0.25:
        raise Wrong(f"The gradient is right, and takes {share:.0%} of the starter's scratch memory where 25 % is asked "
                    f"for; {_why_hungry(answer, trial, share)}.")
    return f"Right, with {share:.0%} of the starter's scratch memory."


def _why_hungry(answer, trial, share):
    lengths = [program_length(trial, answer, *_deep(trial, depth)) for depth in (32, 64)]
    if None not in lengths and lengths[1] > 1.7 * lengths[0]:
        return ("the loop is Python's, so the compiler gets all layers laid out and may compute all of them again "
                "at once: let `jax.lax.scan` go over the blocks")
    if share > 0.8:
        return "a checkpoint around everything computes everything again, and then keeps it all"
    return "if each layer is a checkpoint, each layer's input is still kept: put it around a block of layers"


THRIFTY = Exercise(
    id="04.4", title="A quarter of the memory", level="write", answer="thrifty", starter=_THRIFTY.lstrip(),
    task="""
The starter computes a right gradient, and keeps what every layer computed. Write it so that it needs **at most a
quarter of the scratch memory** for 128 layers, as the compiler plans it
(`jax.jit(thrifty).lower(ws, x).compile().memory_analysis().temp_size_in_bytes`). `ws` has the shape
`(depth, width, width)`, where the depth is a multiple of 16; `x` has the shape `(rows, width)`.""",
    hints=(
        "`jax.checkpoint(fn)` is fn, but a gradient through it keeps only fn's inputs. Around which function should it "
        "go?",
        "Blocks of layers: reshape `ws` to (blocks, layers of a block, width, width), and scan over the blocks. Inside "
        "a block, another scan runs over its layers.",
        "`block = jax.checkpoint(lambda x, ws: jax.lax.scan(layer, x, ws))`, and "
        "`jax.lax.scan(block, x, ws.reshape(-1, 16, *ws.shape[1:]))`."),
    solution='''
def thrifty(ws, x):
    """The gradient of a deep network's mean output with respect to its weights ws; shape of ws."""
    def layer(x, w):
        return jnp.tanh(x @ w), None
    block = jax.checkpoint(lambda x, ws: jax.lax.scan(layer, x, ws))
    def network(ws):
        blocks = ws.reshape(-1, 16, *ws.shape[1:])
        return jax.lax.scan(block, x, blocks)[0].mean()
    return jax.grad(network)(ws)
''',
    explanation="""
128 layers in 8 blocks of 16: eight inputs are kept, and while the way back is inside a block, what its 16 layers
computed. The two numbers add up to least when they are about equal, near the root of the depth. The price is one more
way there.""",
    check=_check_thrifty)


# ---------------------------------------------------------------------------------------------------------------------
# 04.5 How hard each example pulls

_PULLS = '''
def loss_of_one(p, x, y):
    """The squared error of a small network for one example."""
    return (jnp.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2

@jax.jit
def pull_of_one(p, x, y):
    """The length of one example's gradient, over all parameters."""
    slopes = jax.grad(loss_of_one)(p, x, y)
    return jnp.sqrt((slopes["w1"] ** 2).sum() + (slopes["w2"] ** 2).sum())

def pulls(p, xs, ys):
    """The length of each example's gradient: shape (examples,)."""
    ...     # below, one call for each example: make it faster
    return jnp.stack([pull_of_one(p, x, y) for x, y in zip(xs, ys)])
'''


def _exact_parts(p, xs, ys):
    """The lengths of each example's gradients with respect to w1 and to w2, and each of the two averaged first."""
    w1, w2, xs, ys = (np.asarray(part, float) for part in (p["w1"], p["w2"], xs, ys))
    hidden = np.tanh(xs @ w1)
    twice = 2 * (hidden @ w2 - ys)[:, None]
    inside, outside = twice * w2 * (1 - hidden**2), twice * hidden
    by_w1 = xs[:, :, None] * inside[:, None, :]
    return np.sqrt((by_w1**2).sum((1, 2))), np.sqrt((outside**2).sum(1)), by_w1.mean(0), outside.mean(0)


def _examples(trial, n, features=16, width=8):
    parts = [trial.rng.normal(0, 0.5, shape) for shape in [(features, width), width, (n, features), n]]
    w1, w2, xs, ys = on_cpu(*(part.astype(np.float32) for part in parts))
    return {"w1": w1, "w2": w2}, xs, ys


def _check_pulls(answer, trial):
    not_unrolled(trial, answer, "examples", lambda n: _examples(trial, n), "`jax.vmap`")
    for n, features in ((5, 3), (1, 4), (int(trial.rng.integers(6, 20)), 5)):
        args = _examples(trial, n, features)
        result = trial.call(answer, *args)
        is_jax(trial, result)
        _judge_pulls(trial, np.asarray(result), n, *_exact_parts(*args))
    ratio = faster(trial, answer, defined(_PULLS, "pulls"), lambda: _examples(trial, 64), 3,
                   "All examples should go through one call: `jax.vmap`.", rtol=1e-3)
    return f"Right, and {times(ratio.estimate)} as fast: one call, and one program, for all examples."


def _judge_pulls(trial, result, n, by_w1, by_w2, mean_w1, mean_w2):
    if result.shape == () and n > 1:
        of_mean = np.sqrt((mean_w1**2).sum() + (mean_w2**2).sum())
        what = "that of the mean gradient" if np.isclose(result, of_mean, rtol=1e-3) else "one length for all"
        raise Wrong(f"One number came back, {what}: differentiate the loss of one example, and let `vmap` go over "
                    "them.")
    right = np.sqrt(by_w1**2 + by_w2**2)
    if result.shape == (n,):
        for wrong, sentence in (
                (right**2, "These are the squares of the lengths: the root is missing."),
                (by_w1 + by_w2, "You add the lengths for w1 and w2, but lengths add up as squares do: √(a² + b²)."),
                (by_w1, "That is the length for w1 alone: w2 belongs to the gradient as well."),
                (by_w2, "That is the length for w2 alone: w1 belongs to the gradient as well.")):
            if n > 1 and np.allclose(result, wrong, rtol=1e-3):
                raise Wrong(sentence)
    trial.close(result, right.astype(np.float32), f"the result for {n} examples", rtol=1e-3)


PULLS = Exercise(
    id="04.5", title="How hard each example pulls", level="speed", answer="pulls", starter=_PULLS.lstrip(),
    task="""
An example whose gradient is much longer than the others' is often mislabelled. `pulls(p, xs, ys)` returns the length of
each example's gradient over **all** parameters, w1 and w2 together, in an array of shape `(examples,)`, float32. `p` is
a dictionary. The starter calls a compiled function for each example. Make it **3 times as fast** for 64 examples; it
must work for any number of them.""",
    hints=(
        "What does each call cost, even if it has next to nothing to compute? How many calls are there?",
        "`vmap` goes over a function of one example. There is one in the starter already; which of its arguments are "
        "the same for all examples?",
        "`jax.vmap(pull_of_one, in_axes=(None, 0, 0))`, where `None` stands for the whole dictionary. Compile that "
        "with `jax.jit`, once, not in each call."),
    solution='''
def loss_of_one(p, x, y):
    """The squared error of a small network for one example."""
    return (jnp.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2

def pull_of_one(p, x, y):
    """The length of one example's gradient, over all parameters."""
    slopes = jax.grad(loss_of_one)(p, x, y)
    return jnp.sqrt((slopes["w1"] ** 2).sum() + (slopes["w2"] ** 2).sum())

pulls = jax.jit(jax.vmap(pull_of_one, in_axes=(None, 0, 0)))
''',
    explanation="""
You write for one example, and `vmap` does it for all. The loop's time was the price of its calls. And because the
lengths are taken inside, XLA need not write all the gradients to memory: only 64 numbers come back.""",
    check=_check_pulls)


# ---------------------------------------------------------------------------------------------------------------------
# 04.6 A rule of your own

_CLIPPED = '''
def clip_gradient(x, limit):
    """x itself; on the way back, each entry of the gradient is clipped to -limit … limit."""
    ...
'''


def _gradient(trial, loss, x):
    """The gradient of `loss`, which goes through the learner's function."""
    import jax

    try:
        return trial.call(jax.grad(loss), x)
    except Wrong as wrong:
        if "rule" in str(wrong) and "mplement" in str(wrong):
            raise Wrong("Clipping has no transpose, so a forward rule that clips cannot be run backwards: state the "
                        "reverse rule, with `jax.custom_vjp`.") from None
        told = re.sub(r"when called as `loss\(.*\)`", "when a gradient was taken through it", str(wrong))
        raise Wrong(told) from None


def _check_clipped(answer, trial):
    import jax

    low = float(trial.rng.uniform(0.3, 0.8))
    for shape in ((), (7,), (3, 4)):
        _passes_unchanged(trial, answer, on_cpu(trial.rng.normal(0, 3, shape).astype(np.float32))[0], low)
    weights = trial.rng.normal(0, 2, (3, 5)).astype(np.float32)
    weights[0, 0], weights[2, 2] = 10, 0.1
    for limit, scale in ((low, 1), (3 * low, 1), (low, 3)):
        x, = on_cpu(trial.rng.normal(0, 1, weights.shape).astype(np.float32))

        def loss(x, limit=limit, scale=scale):
            return (weights * answer(scale * x, limit)).sum()
        got = _gradient(trial, loss, x)
        _judge_gradient(trial, np.asarray(got), weights, limit, scale)
    five = on_cpu(np.zeros(5, np.float32))
    slope = jax.grad(lambda x: 5 * answer(x, low).sum())
    for name, under in {"jit": jax.jit, "vmap": jax.vmap}.items():
        trial.close(trial.call(under(slope), *five), np.full(5, low, np.float32), f"the gradient under `{name}`")
    return "Right: x passes unchanged, and the gradient comes back clipped, entry by entry, under jit and vmap too."


def _passes_unchanged(trial, answer, x, limit):
    got = trial.call(answer, x, limit)
    is_jax(trial, got)
    if np.shape(got) == x.shape and np.allclose(got, np.clip(x, -limit, limit)) and not np.allclose(got, x):
        raise Wrong("You clip the value: on the way there x passes unchanged, and only what comes back is clipped.")
    trial.close(got, np.asarray(x), "the value", rtol=1e-6)


def _judge_gradient(trial, got, weights, limit, scale):
    """weights is what arrives at the function from above, and scale what comes before it."""
    want = scale * np.clip(weights, -limit, limit)
    if got.shape == want.shape and not np.allclose(got, want, rtol=1e-4):
        if np.allclose(got, scale * weights, rtol=1e-4):
            raise Wrong("The value is right, but the gradient passes unclipped: automatic differentiation sees no "
                        "reason to clip, so state a rule of your own with `jax.custom_vjp`.")
        if np.ptp(got / weights) < 1e-3 * abs(got / weights).max():
            raise Wrong("Your gradient is scaled as a whole: clip each entry for itself, as `jnp.clip` does.")
        if np.allclose(got, scale * np.clip(weights, -1, 1), rtol=1e-4):
            raise Wrong(f"With a limit of {limit:.2f} your gradient is clipped to -1 … 1: use the argument `limit`.")
    after = f" through {scale} · x, which comes before the clipping," if scale > 1 else ""
    trial.close(got, want, f"the gradient{after} with a limit of {limit:.2f}")


CLIPPED = Exercise(
    id="04.6", title="A rule of your own", level="write", answer="clip_gradient", starter=_CLIPPED.lstrip(),
    task="""
Some trainings survive only because no single step can be huge. Write `clip_gradient(x, limit)`: it returns the array x
unchanged, but a gradient that comes back through it is clipped, entry by entry, to the range from `-limit` to `limit`.
`limit` is a plain number above 0. It must work for any shape of x, also under `jit` and `vmap`.""",
    hints=(
        "The value and its gradient no longer belong together, so automatic differentiation can't find this rule. You "
        "state it: forwards or backwards?",
        "`jax.custom_vjp` takes two functions: one returns the value and what is to be kept, the other gets what was "
        "kept and the gradient g that arrives, and returns a tuple with a gradient for each input.",
        "Define the custom function of x alone *inside* `clip_gradient`, so that its rule sees `limit`. There is "
        "nothing to keep: return `x, None`, and `(jnp.clip(g, -limit, limit),)` on the way back."),
    solution='''
def clip_gradient(x, limit):
    """x itself; on the way back, each entry of the gradient is clipped to -limit … limit."""
    @jax.custom_vjp
    def same(x):
        return x
    def there(x):
        return x, None
    def back(kept, g):
        return (jnp.clip(g, -limit, limit),)
    same.defvjp(there, back)
    return same(x)
''',
    explanation="""
`custom_jvp` won't do: a forward rule is turned round by transposing it, so it must be linear in the tangent, and
clipping isn't. `jax.custom_vjp` asks for no such thing. The same trick, with another `back`, gives a rounding that
lets gradients pass, or a layer that turns them round.""",
    check=_check_clipped)


EXERCISES = [SLOPES, GROWTH, SENSITIVITIES, THRIFTY, PULLS, CLIPPED]
