"""What the checks of several pages share: a starter's function as the baseline, arrays on the processor, programs."""

import numpy as np

from .. import frameworks
from .engine import Wrong
from .trial import _capital, named


def defined(source, name):
    """The function `name` that a starter defines: what a learner begins with is what the answer has to beat."""
    import jax
    import jax.numpy as jnp

    space = {"np": np, "jax": jax, "jnp": jnp}
    exec(source, space)
    return space[name]


def on_cpu(*arrays):
    """The arrays as JAX's, on the processor, so that a GPU in the machine changes nothing. Returns a list."""
    import jax

    return list(jax.device_put(arrays, jax.devices("cpu")[0]))


def is_jax(trial, result, what="the result"):
    """Wrong unless the result is an array of JAX."""
    import jax.numpy as jnp

    trial.same_type(result, jnp.zeros(1), what)


def program_length(trial, fn, *args):
    """Operations in the program that JAX records of fn, those of inner programs included; None if it cannot be."""
    import jax

    try:
        return _length(trial.call(jax.make_jaxpr(fn), *args).jaxpr)
    except Wrong:  # such as a function that leaves JAX on the way
        return None


def _length(jaxpr):
    return sum(1 + sum(map(_length, _inner(equation))) for equation in jaxpr.eqns)


def _inner(equation):
    """The programs that one operation runs: a loop's body, a compiled function, the branches of a cond."""
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else [value]:
            part = getattr(part, "jaxpr", part)
            if hasattr(part, "eqns"):
                yield part


def not_unrolled(trial, answer, what, make_args, remedy):
    """Wrong if JAX records a program that grows with the number of rounds, which would take very long to compile.

    A plain Python loop over compiled steps looks the same here, but isn't compiled as a whole: the clock judges it.
    """
    if frameworks.compiler_of(answer) is None:
        return
    lengths = [program_length(trial, answer, *make_args(n)) for n in (10, 20)]
    if None not in lengths and lengths[1] > 1.7 * lengths[0]:
        raise Wrong(f"The loop is still Python's: for twice the {what}, JAX records twice as long a program, and "
                    f"compiles all of it. Use {remedy}.")


def faster(trial, answer, baseline, make_args, factor, advice, **options):
    """trial.faster, where an answer that is right but too slow also hears why.

    advice: the sentence for a compiled function that is too slow; one that is not compiled hears of `jit` instead.
    """
    what = f"your `{named(answer)}`"
    _look_at_two_calls(trial, answer, make_args, what)
    try:
        return trial.faster(answer, baseline, make_args, factor, what, **options)
    except Wrong as wrong:
        if "is asked for" not in str(wrong):
            raise
        if frameworks.compiler_of(answer) is None:
            advice = "Python goes through it again in each call: compile the whole of it with `jax.jit`, once."
        raise Wrong(f"{wrong} {advice}") from None


def _look_at_two_calls(trial, answer, make_args, what):
    """Wrong for an answer that compiles in each call or remembers: said at once, without a measurement."""
    first = np.asarray(trial.call(answer, *make_args()))
    before = frameworks.jax_events()["compiles"]
    second = np.asarray(trial.call(answer, *make_args()))
    if np.array_equal(first, second):
        raise Wrong(f"{_capital(what)} hands back the answer to an earlier call: compute it from the arguments each "
                    "time.")
    if frameworks.jax_events()["compiles"] > before:
        raise Wrong(f"{_capital(what)} compiles something in each call, which takes far longer than the work: make "
                    "the compiled function once, outside of it.")
