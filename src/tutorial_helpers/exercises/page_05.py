"""Exercises of page 05: shared memory, an honest border, borrowed gradients, loops, masks, all at once."""

import re

import numpy as np

from .. import frameworks
from ..companions import aligned
from ..results import times
from .engine import Exercise, Wrong
from .given import defined, faster, is_jax, not_unrolled, on_cpu
from .trial import described

# ---------------------------------------------------------------------------------------------------------------------
# 05.1 Whose memory is it?

_MEMORY = '''
nd = np.arange(12, dtype=np.float32).reshape(3, 4)
jd = jax.device_put(jnp.array(nd), jax.devices("cpu")[0])

whose = {
    "nd[1:]": ...,
    "nd[[1, 2]]": ...,
    "nd.T.reshape(-1)": ...,
    "nd.astype(np.float32)": ...,
    "np.asarray(jd)": ...,
    "jd[1:]": ...,
    "jnp.array(nd)": ...,
}
'''

_WHOSE = {
    "nd[1:]": "a slice of a NumPy array is a new note on the old memory. It starts at another address, so compare "
              "ranges, as `np.shares_memory` does",
    "nd[[1, 2]]": "a list of rows could name any rows in any order, and no strides describe that",
    "nd.T.reshape(-1)": "turning is a matter of strides, but then reading the turned array row by row is not",
    "nd.astype(np.float32)": "`astype` copies even where the dtype is right already, unless you say `copy=False`",
    "np.asarray(jd)": "NumPy asks JAX for its memory, and may read it, not write",
    "jd[1:]": "a slice of a JAX array is computed, like any other operation, and has memory of its own",
    "jnp.array(nd)": "`jnp.array` copies, so that the JAX array cannot change with yours",
}


def _overlap(one, other):
    """Do two arrays, of any libraries, use the same memory?"""
    (low, high), (first, last) = (frameworks.adapter_of(array).span(array) for array in (one, other))
    return low < last and first < high


def _check_memory(answer, trial):
    import jax.numpy as jnp

    if not isinstance(answer, dict) or set(answer) != set(_WHOSE):
        raise Wrong("Your answer must be the starter's dictionary, with \"shared\" or \"copied\" for each of its seven "
                    "lines.")
    nd = np.arange(12, dtype=np.float32).reshape(3, 4)
    space = {"np": np, "jnp": jnp, "nd": nd, "jd": on_cpu(nd.copy())[0]}
    for line, why in _WHOSE.items():
        if answer[line] is Ellipsis:
            raise Wrong(f"`{line}` has no answer yet: put \"shared\" or \"copied\" in its place.")
        given = trial.word(answer[line], ("shared", "copied"), f"the answer to `{line}`")
        found = eval(line, space)
        right = "shared" if _overlap(found, space["jd" if "jd" in line else "nd"]) else "copied"
        if given != right:
            raise Wrong(f"`{line}` is not {given}: {why}.")
    return "Right, all seven: NumPy hands out views where strides allow it, and JAX computes new arrays."


MEMORY = Exercise(
    id="05.1", title="Whose memory is it?", level="read", answer="whose", starter=_MEMORY.lstrip(),
    task="""
`nd` is a NumPy array, and `jd` is a JAX array in the processor's memory. For each line, does the result use the memory
of the array that it was made from (`"shared"`), or memory of its own (`"copied"`)?""",
    hints=(
        "An array is a block of memory and a note: address, shape, dtype, strides. Could a new note on the old block "
        "describe the result?",
        "JAX's arrays are immutable, so a copy is never noticed, except by the clock. Who may hand out views, and who "
        "computes?",
        "Ask: `np.shares_memory(nd[1:], nd)` for NumPy; for JAX, compare `address(…)` of both."),
    solution='''
nd = np.arange(12, dtype=np.float32).reshape(3, 4)

whose = {
    "nd[1:]": "shared" if np.shares_memory(nd[1:], nd) else "copied",
    "nd[[1, 2]]": "copied",
    "nd.T.reshape(-1)": "copied",
    "nd.astype(np.float32)": "copied",
    "np.asarray(jd)": "shared",
    "jd[1:]": "copied",
    "jnp.array(nd)": "copied",
}
''',
    explanation="""
A view costs nothing and holds on to the whole block: `nd[1:]` keeps all of `nd` alive. Equal addresses prove that
memory is shared, but different ones don't prove the contrary, as `nd[1:]` shows. Inside `jit`, XLA may turn JAX's
copies into views again, or into nothing at all.""",
    check=_check_memory)


# ---------------------------------------------------------------------------------------------------------------------
# 05.2 Share if you can, and say so

_TO_JAX = '''
def to_jax(a):
    """A NumPy array as a JAX array, shared where that is possible, and whether it is shared."""
    ...     # below, right for some arrays only: mend it
    return jnp.from_dlpack(a), True
'''


def _suspects(trial):
    """NumPy arrays of several kinds, by name; the first one is shared by every version of JAX."""
    n = int(trial.rng.integers(40, 80))
    numbers = aligned(trial.rng.normal(0, 1, n).astype(np.float32))
    read_only = aligned(numbers)
    read_only.flags.writeable = False
    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    return {"a float32 array at a multiple of 64 bytes": numbers, "a matrix of int32": aligned(matrix),
            "a float32 array 4 bytes off": aligned(numbers, offset=4),
            "a float64 array": aligned(numbers.astype(float)), "every second element": numbers[::2],
            "an array read backwards": numbers[::-1], "a read-only array": read_only,
            "a turned matrix": aligned(numbers[:32].reshape(4, 8)).T}


def _check_to_jax(answer, trial):
    import jax

    found = set()
    with jax.default_device(jax.devices("cpu")[0]):
        for place, (what, a) in enumerate(_suspects(trial).items()):
            found.add(_judge_border(answer, trial, what, a, must_share=place < 1))
    if found == {True}:
        raise Wrong("For all of eight kinds of array your answer is that they are shared; this version of JAX cannot.")
    return "Right for eight kinds of array: shared where JAX could, copied where it couldn't, and you said which."


def _judge_border(answer, trial, what, a, must_share):
    try:
        pair = trial.call(answer, a)
    except Wrong as wrong:
        if "raised" not in str(wrong):
            raise
        raise Wrong(f"For {what}, `from_dlpack` may refuse: catch the exception, and copy instead. ({wrong})") from None
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise Wrong(f"Two things are to come back, the JAX array and True or False; {described(pair)} came back.")
    array, said = pair
    is_jax(trial, array, "the first part")
    if not isinstance(said, (bool, np.bool_)):
        raise Wrong(f"The second part says whether the memory is shared, so it must be True or False, not "
                    f"{described(said)}.")
    want = a.astype(np.float32) if a.dtype == np.float64 else a
    trial.close(array, np.ascontiguousarray(want), f"{what}, in JAX,")
    shared = _overlap(array, a)
    if said and not shared:
        raise Wrong(f"You say that {what} is shared, but the JAX array has memory of its own: don't guess, compare the "
                    "addresses.")
    if shared and not said:
        raise Wrong(f"You say that {what} is copied, but the JAX array lies in its memory, so whoever writes to the "
                    "one changes the other.")
    if must_share and not shared:
        raise Wrong(f"You copy {what}, which JAX can share: try `jnp.from_dlpack` first.")
    return shared


TO_JAX = Exercise(
    id="05.2", title="Share if you can, and say so", level="write", answer="to_jax", starter=_TO_JAX.lstrip(),
    task="""
A border that tells the truth: `to_jax(a)` returns a pair. The first part is the NumPy array `a` as a JAX array,
**shared where `jnp.from_dlpack` shares it** and copied where not, with the same values (float64 may become float32).
The second is `True` if the two share memory, else `False`. It will be tried on eight kinds of array: aligned or not, of
several dtypes, with steps, backwards, turned, read-only.""",
    hints=(
        "There are three fates: shared, silently copied, refused. How does your program notice each of them?",
        "Refused: an exception; `jnp.array` copies then. Silently copied: nothing tells you, except the address of the "
        "first element.",
        "`address(x)` of this page takes arrays of both kinds."),
    solution='''
from tutorial_helpers.companions import address

def to_jax(a):
    """A NumPy array as a JAX array, shared where that is possible, and whether it is shared."""
    try:
        array = jnp.from_dlpack(a)
    except Exception:                       # refused; what is refused, and how, depends on the versions
        array = jnp.array(a)
    return array, address(array) == address(a)
''',
    explanation="""
Dtype, strides and alignment decide, and the rules change with the versions. A program that needs to know asks for the
memory itself: both arrays begin with the same element, so if they share their memory, they share its address.""",
    check=_check_to_jax)


# ---------------------------------------------------------------------------------------------------------------------
# 05.3 Lend a gradient

_BORROW = '''
def borrow(fn):
    """A JAX function for a framework of NumPy arrays: forward(*xs) → (result, backward), backward(g) → gradients."""
    ...
'''


def _lent():
    """JAX functions to lend, with the shapes of their inputs."""
    import jax.numpy as jnp

    return [("x · sin(x)", lambda x: x * jnp.sin(x), [(6,)]),
            # An eighth, since where tanh is flat its gradient is a difference of nearly equal numbers.
            ("tanh(a @ x / 8)", lambda a, x: jnp.tanh(a @ x / 8), [(3, 4), (4,)]),
            ("a pendulum's energy", lambda g, speed, angle: speed**2 / 2 + g * (1 - jnp.cos(angle)), [(), (), (5,)]),
            ("the sum of x²", lambda x: (x * x).sum(), [(2, 3)])]


def _check_borrow(answer, trial):
    for name, fn, shapes in _lent():
        forward = trial.call(answer, fn)
        if not callable(forward):
            raise Wrong(f"`borrow(fn)` must return a function, `forward`, and {described(forward)} came back.")
        runs = [_forward(trial, name, fn, forward, shapes) for _ in range(2)]
        for xs, shape, backward in runs:        # the first one again, after the second
            for scale in (1.0, 3.0):
                _backward(trial, name, fn, backward, xs, scale * trial.rng.normal(0, 1, shape))
    return "Right: four functions lent, each with its gradient, to whatever arrives from outside."


def _random(trial, shape):
    return np.asarray(trial.rng.uniform(-2, 2, shape), np.float32)


def _forward(trial, name, fn, forward, shapes):
    xs = [_random(trial, shape) for shape in shapes]
    pair = _named_call(trial, "forward", forward, *xs)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
        raise Wrong("`forward(*xs)` must return two things: the result, and the function `backward`.")
    want = np.asarray(fn(*xs))
    if not isinstance(pair[0], (np.ndarray, np.generic)):
        raise Wrong(f"The framework knows NumPy arrays only, and the result is {described(pair[0])}: hand it over with "
                    "`np.asarray`.")
    trial.close(pair[0], want, f"the result of {name}")
    return xs, want.shape, pair[1]


def _named_call(trial, name, fn, *args):
    """trial.call, with the function named as the task names it."""
    try:
        return trial.call(fn, *args)
    except Wrong as wrong:
        told = rf"`{name}` raised \1 when called as `{name}("
        raise Wrong(re.sub(r"Your function raised (.*) when called as `.*?\(", told, str(wrong))) from None


def _backward(trial, name, fn, backward, xs, g):
    import jax

    g = np.asarray(g, np.float32)
    got = _named_call(trial, "backward", backward, g)
    pull = jax.vjp(fn, *xs)[1]
    want, for_ones = (tuple(map(np.asarray, pull(bar))) for bar in (g, np.ones_like(g)))
    if not isinstance(got, (tuple, list)):
        raise Wrong(f"`backward(g)` must return a tuple with a gradient for each input, even for one; {described(got)} "
                    "came back.")
    if len(got) != len(xs):
        raise Wrong(f"{name} has {len(xs)} input{'s' * (len(xs) > 1)}, and your `backward` returned {len(got)} "
                    f"gradient{'s' * (len(got) != 1)}: one for each is needed.")
    if any(not isinstance(one, (np.ndarray, np.generic)) for one in got):
        raise Wrong("The framework knows NumPy arrays only, and your gradients are something else: hand each over with "
                    "`np.asarray`.")
    same_shapes = [np.shape(one) for one in got] == [one.shape for one in want]
    if same_shapes and not _all_close(got, want) and _all_close(got, for_ones):
        raise Wrong(f"For {name} your gradients ignore `g`: they are those of the sum of the result, as if g were all "
                    "ones.")
    for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        trial.close(mine, theirs, f"the gradient of {name} with respect to input {i}")


def _all_close(got, want):
    return all(np.allclose(one, other, rtol=1e-3, atol=1e-4) for one, other in zip(got, want, strict=True))


BORROW = Exercise(
    id="05.3", title="Lend a gradient", level="write", answer="borrow", starter=_BORROW.lstrip(),
    task="""
A friend's framework knows nothing but NumPy. For each function it wants two things: on the way there
`result, backward = forward(*xs)`, and on the way back `backward(g)`, which returns a **tuple** with the gradient for
each of the inputs, when *g*, of the result's shape, arrives from outside. Write `borrow(fn)`, which returns such a
`forward` for any JAX function `fn`. Everything that goes in or out is a NumPy array of float32.""",
    hints=(
        "Section 2 met the same two wishes twice, in PyTorch and in TensorFlow. Which JAX function answers both?",
        "`result, pull = jax.vjp(fn, *xs)`; then `pull(g)` is a tuple of gradients, in JAX's arrays.",
        "Define `backward` inside `forward`, so that it remembers the `pull` of its own call, and convert with "
        "`np.asarray` on the way out."),
    solution='''
def borrow(fn):
    """A JAX function for a framework of NumPy arrays: forward(*xs) → (result, backward), backward(g) → gradients."""
    def forward(*xs):
        result, pull = jax.vjp(fn, *xs)
        def backward(g):
            return tuple(np.asarray(bar) for bar in pull(g))
        return np.asarray(result), backward
    return forward
''',
    explanation="""
`jax.grad` won't do: it wants a function with one number as its result, while here any result comes with any g.
`jax.vjp` is what `grad` itself is made of: `grad` pulls back a 1. PyTorch's `backward` and the function in TensorFlow's
`custom_gradient` are the same pair under other names.""",
    check=_check_borrow)


# ---------------------------------------------------------------------------------------------------------------------
# 05.4 Take Python out of the loop

_LEVELS = '''
@jax.jit
def next_level(level, inflow):
    """A leaking tank that holds 10 and can't hold less than 0."""
    return jnp.clip(0.95 * level + inflow, 0.0, 10.0)

def levels(start, inflows):
    """The level after each inflow."""
    ...     # below, a Python loop: make it faster
    found = []
    for inflow in inflows:
        start = next_level(start, inflow)
        found.append(start)
    return jnp.stack(found)
'''


def _tank(trial, n):
    return on_cpu(np.float32(trial.rng.uniform(2, 8)), trial.rng.normal(0.3, 2, n).astype(np.float32))


def _exact_levels(start, inflows):
    level, found = float(start), []
    for inflow in np.asarray(inflows, float):
        level = min(max(0.95 * level + inflow, 0.0), 10.0)
        found.append(level)
    return np.array(found, np.float32)


def _check_levels(answer, trial):
    not_unrolled(trial, answer, "inflows", lambda n: _tank(trial, n), "`lax.scan`")
    for n in (12, 1, int(trial.rng.integers(13, 30))):
        start, inflows = _tank(trial, n)
        result = trial.call(answer, start, inflows)
        if isinstance(result, tuple):
            raise Wrong("A pair came back: `lax.scan` returns the last state and what was gathered on the way, and "
                        "only the second is asked for.")
        is_jax(trial, result)
        want = _exact_levels(start, inflows)
        if n > 1 and result.shape == (n,) and np.allclose(result[1:], want[:-1], atol=1e-4) and \
                np.allclose(result[0], start):
            raise Wrong("Your levels are those before each inflow, the first of them the start: those after it are "
                        "needed.")
        if n > 1 and result.shape == (n + 1,):
            raise Wrong(f"For {n} inflows you return {n + 1} levels: leave out the start itself.")
        if result.shape == () and n > 1:
            raise Wrong("One level came back: `lax.scan` returns a pair, the last state and what was gathered on the "
                        "way.")
        trial.close(result, want, f"the result for {n} inflows", rtol=1e-3, atol=1e-4)
    ratio = faster(trial, answer, defined(_LEVELS, "levels"), lambda: _tank(trial, 100), 10,
                   "Python should start one program, not one for each inflow.", rtol=1e-3, atol=1e-4)
    return f"Right, and {times(ratio.estimate)} as fast: Python is out of the loop."


LEVELS = Exercise(
    id="05.4", title="Take Python out of the loop", level="speed", answer="levels", starter=_LEVELS.lstrip(),
    task="""
The game's loop in this section, made smaller: a tank that leaks, and can neither run over nor be emptier than empty.
`levels(start, inflows)` returns its level after each inflow, shape `(len(inflows),)`, float32. The starter calls a
compiled step for each inflow. Make it **10 times as fast** for 100 inflows; it must work for any number of them.""",
    hints=(
        "Each call of `next_level` computes next to nothing. What does the rest of its time go to?",
        "`jax.lax.scan(body, start, inflows)` runs the loop inside the compiled program. The body gets the state and "
        "one inflow, and returns a pair: the next state, and what is to be gathered.",
        "Here both are the same: `level = next_level(level, inflow)`, then `return level, level`. The gathered ones "
        "are `scan(…)[1]`. And `jax.jit` goes around the whole, once."),
    solution='''
@jax.jit
def levels(start, inflows):
    """The level after each inflow."""
    def body(level, inflow):
        level = jnp.clip(0.95 * level + inflow, 0.0, 10.0)
        return level, level
    return jax.lax.scan(body, start, inflows)[1]
''',
    explanation="""
A hundred calls have become one. `jit` around the Python loop would have run as fast, but its program would hold a
hundred copies of the step, one after the other, and take many times as long to compile. Without `jit`, `scan` would
trace and compile its body again in each call.""",
    check=_check_levels)


# ---------------------------------------------------------------------------------------------------------------------
# 05.5 A mask that holds

_MASKED = '''
def masked_mean(x, n):
    """The mean of the first n elements of x."""
    ...     # below, right outside of vmap and jit only: mend it
    return x[:n].mean()
'''


def _rows(trial, count, length):
    """Rows with a number of valid elements each, and rubbish behind them."""
    x = trial.rng.normal(3, 1, (count, length)).astype(np.float32)
    n = trial.rng.integers(1, length, count).astype(np.int32)
    n[0], n[1] = length, 1
    rubbish = np.arange(length) >= n[:, None]
    x[rubbish] = trial.rng.choice([np.nan, np.inf, 1e6], rubbish.sum())
    return x, n


def _check_masked(answer, trial):
    import jax

    for length in (8, int(trial.rng.integers(9, 30))):
        clean, n = trial.rng.normal(3, 1, (12, length)).astype(np.float32), np.arange(12, dtype=np.int32) % 8 + 1
        _judge_means(trial, _vmapped(trial, answer, clean, n), clean, n)
    x, n = _rows(trial, 12, length)
    # Once without jit, since XLA may make a choice of a product with a mask.
    means = np.asarray(_vmapped(trial, answer, x, n)), trial.call(answer, *on_cpu(x[1], n[1]))
    if not all(np.isfinite(found).all() for found in means):
        raise Wrong("With nan or inf behind the first n elements your mean is spoilt: 0 · nan is nan, so choose with "
                    "`where` instead of multiplying by a mask.")
    want = np.array([row[:k].mean() for row, k in zip(x, n, strict=True)])
    trial.close(means[0], want, "the means of rows with rubbish behind", rtol=1e-3)
    slope = np.asarray(trial.call(jax.jit(jax.vmap(jax.grad(answer))), *on_cpu(x, n)))
    if not np.isfinite(slope).all():
        raise Wrong("The means are right, but with nan or inf behind the first n elements the gradient is not finite: "
                    "choose the elements first, then compute.")
    trial.close(slope, ((np.arange(length) < n[:, None]) / n[:, None]).astype(np.float32), "the gradient", rtol=1e-3)
    return "Right: one program for all lengths, and nothing that lies behind the mask gets through, not even nan."


def _vmapped(trial, answer, x, n):
    import jax

    try:
        got = trial.call(jax.jit(jax.vmap(answer)), *on_cpu(x, n))
    except Wrong as wrong:
        if re.search("Tracer|Concret|static|slice|hape", str(wrong)):
            raise Wrong("Under `vmap` n is no number but stands for many, and a slice needs a length that is known: "
                        "keep all of x, and mask.") from None
        raise
    is_jax(trial, got, "the mean")
    if got.shape != n.shape:
        raise Wrong(f"One mean is to come back for each row; for {len(n)} rows yours have the shape {got.shape}.")
    return got


def _judge_means(trial, got, x, n):
    """For rows without rubbish, so that every way of getting it wrong shows itself."""
    got, length = np.asarray(got), x.shape[1]
    sums = np.array([row[:k].sum() for row, k in zip(x, n, strict=True)])
    if np.allclose(got, sums / length, rtol=1e-3):
        raise Wrong(f"You divide by {length}, the length of x: divide by n, the number of elements that count.")
    if np.allclose(got, x.mean(1), rtol=1e-3):
        raise Wrong("That is the mean of all of x: only the first n elements count.")
    more = np.array([row[:k + 1].sum() for row, k in zip(x, n, strict=True)])
    if any(np.allclose(got[n < length], (more / divisor)[n < length], rtol=1e-3) for divisor in (n, n + 1)):
        raise Wrong("Your mask lets one element too many through: indices begin with 0, so those below n are the first "
                    "n.")
    trial.close(got, (sums / n).astype(np.float32), "the means", rtol=1e-3)


MASKED = Exercise(
    id="05.5", title="A mask that holds", level="write", answer="masked_mean", starter=_MASKED.lstrip(),
    task="""
Rows of different lengths, stored in one array with rubbish behind. Write `masked_mean(x, n)`: the mean of the first n
elements of the vector x, float32, where n is at least 1. `jax.jit(jax.vmap(masked_mean))(rows, lengths)` must work, and
`jax.grad(masked_mean)` too, **even if nan and inf lie behind** the first n elements.""",
    hints=(
        "What made networks of different widths fit one `vmap`?",
        "`jnp.arange(len(x)) < n` is a mask of fixed shape, whatever n is. What do you divide by?",
        "0 · nan is nan, so don't multiply by the mask: `jnp.where(mask, x, 0.0)` chooses."),
    solution='''
def masked_mean(x, n):
    """The mean of the first n elements of x."""
    return jnp.where(jnp.arange(len(x)) < n, x, 0.0).sum() / n
''',
    explanation="""
The networks of this section multiply by their mask, which is fine as long as the masked units are finite. `where` holds
in any case, on the way back too: nothing behind the mask is computed with, so no slope of 0 meets an infinity. A
product with a mask of True and False may seem to hold too, because XLA makes a choice of it: don't lean on that.""",
    check=_check_masked)


# ---------------------------------------------------------------------------------------------------------------------
# 05.6 All candidates at once

_ERROR_OF = '''
@jax.jit
def error_of(degree, rate, x, y):
    """Mean squared error of a polynomial of this degree after 100 steps of gradient descent at this rate."""
    powers, mask = x[:, None] ** jnp.arange(6), jnp.arange(6) <= degree
    def step(_, c):
        return c - rate * mask * (powers.T @ (powers @ c - y)) / len(x)
    c = jax.lax.fori_loop(0, 100, step, jnp.zeros(6))
    return jnp.mean((powers @ c - y) ** 2)
'''

_SEARCH = _ERROR_OF + '''
def search(degrees, rates, x, y):
    """The error of each candidate."""
    ...     # below, one after the other: make it faster
    return jnp.stack([error_of(degree, rate, x, y) for degree, rate in zip(degrees, rates)])
'''


def _candidates(trial, n, points=16):
    x = np.linspace(-1, 1, points)
    y = np.sin(trial.rng.uniform(2, 3) * x) + 0.1 * trial.rng.normal(size=points)
    parts = trial.rng.integers(0, 6, n), trial.rng.uniform(0.1, 0.5, n), x, y
    return on_cpu(parts[0].astype(np.int32), *(part.astype(np.float32) for part in parts[1:]))


def _exact_errors(degrees, rates, x, y):
    x, y = np.asarray(x, float), np.asarray(y, float)
    powers, found = x[:, None] ** np.arange(6), []
    for degree, rate in zip(np.asarray(degrees), np.asarray(rates, float), strict=True):
        c = np.zeros(6)
        for _ in range(100):
            c -= rate * (np.arange(6) <= degree) * (powers.T @ (powers @ c - y)) / len(x)
        found.append(np.mean((powers @ c - y) ** 2))
    return np.array(found, np.float32)


def _check_search(answer, trial):
    not_unrolled(trial, answer, "candidates", lambda n: _candidates(trial, n), "`jax.vmap`")
    for n, points in ((5, 16), (1, 7), (int(trial.rng.integers(6, 12)), 12)):
        args = _candidates(trial, n, points)
        result = trial.call(answer, *args)
        is_jax(trial, result)
        if result.shape == (n, n) and n > 1:
            raise Wrong(f"You tried each degree with each rate, {n * n} pairs: candidate i is degree i with rate i.")
        if result.shape == () and n > 1:
            raise Wrong("One error came back: all of them are asked for, in the order of the candidates.")
        trial.close(result, _exact_errors(*args), f"the errors of {n} candidates", rtol=1e-3, atol=1e-5)
    ratio = faster(trial, answer, defined(_SEARCH, "search"), lambda: _candidates(trial, 100), 3,
                   "All candidates should be trained side by side, by one call.", rtol=1e-3, atol=1e-5)
    return f"Right, and {times(ratio.estimate)} as fast: one program trains all candidates side by side."


SEARCH = Exercise(
    id="05.6", title="All candidates at once", level="speed", answer="search", starter=_SEARCH.lstrip(),
    task="""
An architecture search in small: which degree has the polynomial that learns a curve best, and at which rate? A mask
makes all degrees one shape, as in this section. `search(degrees, rates, x, y)` returns the error of each candidate,
where candidate i has `degrees[i]` and `rates[i]`, in an array of shape `(len(degrees),)`, float32. Make it **3 times as
fast** for 100 candidates.""",
    hints=(
        "The starter calls `error_of` for each candidate. Which transformation makes one call of many?",
        "All candidates share x and y. What does `in_axes` say about an argument that isn't mapped?",
        "`jax.vmap(error_of, in_axes=(0, 0, None, None))`, compiled with `jax.jit` once, outside of any function."),
    solution=_ERROR_OF + '''
search = jax.jit(jax.vmap(error_of, in_axes=(0, 0, None, None)))
''',
    explanation="""
The hundred steps of a hundred trainings have become a hundred steps of one, with wider arrays. The mask wastes work: a
straight line computes the powers up to the fifth and throws them away. While the arrays are small, that is cheaper than
calling again.""",
    check=_check_search)


EXERCISES = [MEMORY, TO_JAX, BORROW, LEVELS, MASKED, SEARCH]
