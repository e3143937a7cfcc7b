"""Answers to page 03's exercises as learners give them: wrong ones with what they must be told, and right ones."""

SCAN = """
@jax.jit
def smoothed(x):
    def step(y, value):
        y = y + 0.2 * (value - y)
        return {carry}, y
    return jax.lax.scan(step, {start}, x)[1]
"""

WINDOWS = """
import functools
{decorate}
def window_means(x, width, scale):
    runs = jnp.stack([x[i:{end}] for i in range(width)])
    return scale * runs.mean(axis=0)
"""

END = "len(x) - width + 1 + i"

DECAYED = """
import tensorflow as tf
def decayed(step, weights, rates):
    for rate in rates:
        weights = {step}
    return weights
"""

COLLATZ = """
def collatz_steps(n):
    def one_step(state):
        n, steps = state
        return jnp.where(n % 2 == 0, {half}, 3 * n + 1), {count}
    return jax.lax.while_loop(lambda state: {cond}, one_step, (n, {start}))[1]
"""


def collatz(half="n // 2", count="steps + 1", cond="state[0] != 1", start="jnp.int32(0)"):
    """Source of an answer to 03.6."""
    return COLLATZ.format(half=half, count=count, cond=cond, start=start)


SPREAD = """
@jax.jit
def inner(x, n):
    real = jnp.arange(len(x)) < n
    return {inner}

def spread(x):
    wide = np.zeros({size}, np.float32)
    wide[:len(x)] = x
    return inner(wide, len(x))
"""

MASKED = "jnp.where(real, x, -jnp.inf).max() - jnp.where(real, x, 0).sum() / n"
POWER = "1 << (len(x) - 1).bit_length()"

WRONG = {
    "03.1": [
        ("waves = (1, 1)", "more than 1"),
        ("waves = (2, 1)", "more than 2"),
        ("waves = (3, 3)", "drops what does not reach the result"),
        ("waves = (3, 2)", "only once"),
        ("waves = (1, 3)", "the other way round"),
        ("waves = (4, 1)", "holds fewer"),
        ("waves = (3, 0)", "Some sine must be left"),
        ("waves = '3, 1'", "tuple of 2"),
    ],
    "03.2": [
        ("@jax.jit\ndef smoothed(x):\n    y, out = x[0], []\n    for i in range(len(x)):\n"
         "        y = y + 0.2 * (x[i] - y)\n        out.append(y)\n    return jnp.array(out)\n", "writes the loop out"),
        (SCAN.format(carry="y", start="0.0"), "should be"),
        (SCAN.format(carry="value", start="x[0]"), "should be"),
        (SCAN.format(carry="y", start="x[0]").replace("[1]", "[0]"), "has shape ()"),
        (SCAN.format(carry="y", start="x[0]").replace("[1]\n", "\n"), "but is a tuple"),
        (SCAN.format(carry="y", start="x[0]").replace("0.2", "0.8"), "for 2 numbers"),
        ("def smoothed(x):\n    y, out = float(x[0]), []\n    for v in x.tolist():\n        y = y + 0.2 * (v - y)\n"
         "        out.append(y)\n    return jnp.array(out, jnp.float32)\n", "inside `jax.jit`"),
        ("def smoothed(x):\n    return np.asarray(x)\n", "must be a JAX array"),
    ],
    "03.3": [
        ("half_traces = 7", "Seven calls"),
        ("half_traces = 6", "1.0 and 2.0 share"),
        ("half_traces = 4", "one more signature"),
        ("half_traces = 3", "Two more"),
        ("half_traces = 1", "only if all seven"),
        ("half_traces = 0", "first call traces"),
        ("half_traces = '5'", "without quotes"),
        ("half_traces = 5.5", "whole number"),
    ],
    "03.4": [
        (WINDOWS.format(end=END, decorate="@jax.jit"), "raised TracerIntegerConversionError"),
        (WINDOWS.format(end=END, decorate="@functools.partial(jax.jit, static_argnames=('width', 'scale'))"),
         "compilations"),
        ("def window_means(x, width, scale):\n    def mean(x):\n"
         "        return jnp.stack([x[i:len(x) - width + 1 + i] for i in range(width)]).mean(axis=0)\n"
         "    return scale * jax.jit(mean)(x)\n", "no compiled function is kept"),
        (WINDOWS.format(end="len(x) - width + i", decorate="@functools.partial(jax.jit, static_argnames='width')"),
         "has shape"),
        (WINDOWS.format(end=END, decorate="@functools.partial(jax.jit, static_argnames='scale')"),
         "raised TracerIntegerConversionError"),
        ("import functools\n@functools.partial(jax.jit, static_argnames='width')\n"
         "def window_means(x, width, scale):\n"
         "    return scale * jnp.convolve(x, jnp.ones(width) / width, mode='same')\n", "has shape"),
        ("def window_means(x, width, scale):\n    x = np.asarray(x)\n"
         "    runs = np.lib.stride_tricks.sliding_window_view(x, width)\n"
         "    return (scale * runs.mean(axis=1)).astype(np.float32)\n", "must be a JAX array"),
    ],
    "03.5": [
        (DECAYED.format(step="step(weights, float(rate))"), "8 traces"),
        (DECAYED.format(step="step(weights, np.float64(rate))"), "raised"),
        (DECAYED.format(step="step.python_function(weights, rate)"), "never called"),
        (DECAYED.format(step="step(weights, tf.constant(sum(rates), tf.float32))"), "should be"),
        (DECAYED.format(step="step(weights, tf.constant(rate, tf.float32))").replace("return weights",
                                                                                  "return weights.numpy()"),
         "TensorFlow tensor"),
    ],
    "03.6": [
        ("@jax.jit\ndef collatz_steps(n):\n    steps = 0\n    while n != 1:\n"
         "        n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)\n        steps += 1\n    return steps\n",
         "raised TracerBoolConversionError"),
        (collatz(half="n / 2"), "raised TypeError"),
        (collatz(half="(n / 2).astype(jnp.int32)", start="jnp.float32(0)"), "has dtype float32"),
        (collatz(cond="(state[0] != 1) & (state[1] < 100)"), "for 27"),
        (collatz(cond="state[0] != 0"), "did not return"),
        (collatz(count="steps"), "for 2 is 0"),
        ("import functools\n@functools.partial(jax.jit, static_argnums=0)\ndef collatz_steps(n):\n    steps = 0\n"
         "    while n != 1:\n        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1\n    return steps\n",
         "raised"),
        (collatz().replace("[1]\n", "\n"), "has shape"),
    ],
    "03.7": [
        ("@jax.jit\ndef spread(x):\n    return jnp.max(x) - jnp.mean(x)\n", "The first 12 lengths"),
        (SPREAD.format(inner="x.max() - x.mean()", size=POWER), "should be"),
        (SPREAD.format(inner="jnp.where(real, x, 0).max() - jnp.where(real, x, 0).sum() / n", size=POWER), "should be"),
        (SPREAD.format(inner=MASKED, size="512"), "raised ValueError"),
        ("@jax.jit\ndef inner(x, n):\n    real = jnp.arange(len(x)) < n\n    return " + MASKED + "\n"
         "def spread(x):\n    return inner(jnp.pad(x, (0, 1024 - len(x))), len(x))\n", "`jnp.pad` compiles"),
        ("def spread(x):\n    return x.max() - x.mean()\n", "must be a JAX array"),
        (SPREAD.format(inner=MASKED, size=POWER).replace("@jax.jit", "from functools import partial\n"
                                                         "@partial(jax.jit, static_argnums=1)"),
         "compilations"),
    ],
}

RIGHT = {
    "03.1": ["waves = (3, 1)", "waves = [3, np.int64(1)]"],
    "03.2": [
        "@jax.jit\ndef smoothed(x):\n    i = jnp.arange(len(x))\n    age = i[:, None] - i\n"
        "    weights = jnp.where(age >= 0, jnp.where(i == 0, 1, 0.2) * 0.8 ** age, 0)\n    return weights @ x\n",
        "def body(i, state):\n    y, x, out = state\n    y = y + 0.2 * (x[i] - y)\n    return y, x, out.at[i].set(y)\n"
        "@jax.jit\ndef smoothed(x):\n"
        "    return jax.lax.fori_loop(0, len(x), body, (x[0], x, jnp.zeros_like(x)))[2]\n",
        "@jax.jit\ndef smoothed(x):\n    def both(first, then):\n"
        "        return first[0] * then[0], first[1] * then[0] + then[1]\n"
        "    keep, add = jnp.full_like(x, 0.8).at[0].set(0), (0.2 * x).at[0].set(x[0])\n"
        "    return jax.lax.associative_scan(both, (keep, add))[1]\n",
    ],
    "03.3": ["half_traces = 5", "half_traces = len({('f', (3,)), ('f', (3, 1)), 'weak f', 'weak i', 'f'})"],
    "03.4": [
        WINDOWS.format(end=END, decorate="@functools.partial(jax.jit, static_argnums=1)"),
        "import functools\n@functools.partial(jax.jit, static_argnums=1)\ndef means(x, width):\n"
        "    return jnp.convolve(x, jnp.ones(width) / width, mode='valid')\n"
        "def window_means(x, width, scale):\n    return scale * means(x, width)\n",
    ],
    "03.5": [
        DECAYED.format(step="step(weights, np.float32(rate))"),
        "import tensorflow as tf\ndef decayed(step, weights, rates):\n"
        "    for rate in tf.unstack(tf.convert_to_tensor(rates, tf.float32)):\n        weights = step(weights, rate)\n"
        "    return weights\n",
    ],
    "03.6": [
        collatz(cond="state[0] > 1"),
        "@jax.jit\ndef collatz_steps(n):\n    def one_step(state):\n        n, steps = state\n"
        "        n = jax.lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)\n        return n, steps + 1\n"
        "    return jax.lax.while_loop(lambda state: state[0] != 1, one_step, (n, 0))[1]\n",
    ],
    "03.7": [
        SPREAD.format(inner=MASKED, size="1024"),
        "@jax.jit\ndef inner(x, n):\n    return x.max() - jnp.nanmean(jnp.where(jnp.arange(len(x)) < n, x, jnp.nan))\n"
        "def spread(x):\n    buckets = [10, 100, 300, 1000]\n    size = next(b for b in buckets if len(x) <= b)\n"
        "    return inner(np.pad(x, (0, size - len(x)), mode='edge'), len(x))\n",
    ],
}
