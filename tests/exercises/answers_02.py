"""Answers to page 02's exercises as learners give them: wrong ones with what they must be told, and right ones."""


def dtypes(**changed):
    """Source of an answer to 02.2 that is right but for the lines given as letters: a to f."""
    lines = {"a": "n32 * 2.5", "b": "n32 * np.sqrt(2)", "c": "n32 * np.arange(3)", "d": "j32 * np.sqrt(2)",
             "e": "j32 * jnp.arange(3)", "f": "jnp.asarray(np.ones(3))"}
    right = {"a": "float32", "b": "float64", "c": "float64", "d": "float32", "e": "float32", "f": "float32"}
    return f"dtypes = {({lines[letter]: {**right, **changed}[letter] for letter in lines})!r}\n"


STOPWATCH = """
import time
def seconds_per_call(fn, *args):
    {before}
    start = time.perf_counter()
    {call}
    return {scale}(time.perf_counter() - start)
"""


def stopwatch(call, before="pass", scale=""):
    """Source of an answer to 02.1."""
    return STOPWATCH.format(before=before, call=call, scale=scale)


SOFTEN = """
{decorate}
def soften(x):
    top = {top}
    t = x / top
    for _ in range({rounds}):
        t = 0.5 * t * (3 - t * t)
    return top * t
"""


def soften(top="jnp.abs(x).max()", rounds=6, decorate="@jax.jit"):
    """Source of an answer to 02.4."""
    return SOFTEN.format(top=top, rounds=rounds, decorate=decorate)


SWING = """
@jax.jit
def swing(angle, speed, steps):
    def step(_, state):
        angle, speed = state
        new_speed = speed - 0.05 * jnp.sin(angle)
        return angle + 0.05 * {speed}, new_speed
    return jax.lax.fori_loop(0, {steps}, step, (angle, speed))
"""

BLEND = """
from functools import partial
{decorate}
def blend(state, update):
    return 0.9 * state + 0.1 * update
"""

WRONG = {
    "02.1": [
        (stopwatch("result = fn(*args)", "fn(*args)"), "stopped before an array was there"),
        (stopwatch("result = fn(*args)"), "ms of compilation"),
        (stopwatch("jax.block_until_ready(fn(*args))"), "ms of compilation"),
        (stopwatch("fn(*args).block_until_ready()", "fn(*args).block_until_ready()"), "returns a tuple of arrays"),
        (stopwatch("jax.block_until_ready(fn(*args))", "fn(*args)"), "still busy with an earlier call"),
        (stopwatch("jax.block_until_ready(fn(*args))", "jax.block_until_ready(fn(*args))", "1000 * "), "milliseconds"),
        (stopwatch("jax.block_until_ready(fn())", "jax.block_until_ready(fn())"), "pass them on"),
        ("def seconds_per_call(fn, *args):\n    return 0.025\n", "never calls"),
        (stopwatch("print(fn(*args))", "fn(*args)", "print"), "hands nothing back"),
    ],
    "02.2": [
        (dtypes(b="float32"), "np.float64"),
        (dtypes(a="float64"), "adapts"),
        (dtypes(c="float32"), "64-bit integers"),
        (dtypes(d="float64"), "narrows"),
        (dtypes(e="float64"), "32 bits"),
        (dtypes(f="float64"), "without a word"),
        (dtypes(a="single precision"), "is no dtype"),
        ("dtypes = ['float32', 'float64', 'float64', 'float32', 'float32', 'float32']", "the starter's dictionary"),
    ],
    "02.3": [
        ("megabytes = (176, 48)", "computes it twice"),
        ("megabytes = (144, 48)", "Writing counts"),
        ("megabytes = (240, 48)", "one number, not an array"),
        ("megabytes = (224, 32)", "two inputs"),
        ("megabytes = (448, 96)", "you have counted 8"),
        ("megabytes = (48, 224)", "the other way round"),
        ("megabytes = (14, 3)", "multiply by the 16 MB"),
        ("megabytes = (224, 80)", "nothing in between"),
        ("megabytes = (80, 48)", "there are five operations"),
        ("megabytes = 224", "2"),
    ],
    "02.4": [
        (soften("float(jnp.abs(x).max())"), "raised ConcretizationTypeError"),
        (soften(decorate="") + "inner = soften\ndef soften(x):\n    return jax.jit(lambda x: inner(x))(x)\n",
         "recompiles"),
        (soften("x.max()"), "should be"),
        (soften(rounds=5), "should be"),
        ("def soften(x):\n    return x\n", "should be"),
        (soften("float(jnp.abs(x).max())", decorate="") + "kept = {}\nslow = soften\ndef soften(x):\n"
         "    if x.shape not in kept:\n        kept[x.shape] = slow(x)\n    return kept[x.shape]\n",
         "hands back the answer to an earlier call"),
        (soften("np.abs(x).max()", decorate="").replace("return top * t", "return np.asarray(top * t)"), "JAX array"),
        (soften().replace("return top * t", "return (top * t).astype(jnp.float16)"), "has dtype float16"),
    ],
    "02.5": [
        (SWING.format(speed="speed", steps="steps"), "should be"),
        (SWING.format(speed="new_speed", steps="400"), "`swing(…, 1)`[0]"),
        (SWING.format(speed="new_speed", steps="steps").replace("(angle, speed))", "(angle, speed))[0]"),
         "tuple of 2"),
        ("@jax.jit\ndef swing(angle, speed, steps):\n    for _ in range(steps):\n"
         "        speed = speed - 0.05 * jnp.sin(angle)\n        angle = angle + 0.05 * speed\n"
         "    return angle, speed\n",
         "raised TracerIntegerConversionError"),
        ("def swing(angle, speed, steps):\n    angle, speed = np.array(angle), np.array(speed)\n"
         "    for _ in range(steps):\n        speed = speed - np.float32(0.05) * np.sin(angle)\n"
         "        angle = angle + np.float32(0.05) * speed\n    return angle, speed\n", "must be a JAX array"),
        ("def step(state):\n    speed = state[1] - 0.05 * jnp.sin(state[0])\n"
         "    return state[0] + 0.05 * speed, speed\n"
         "def swing(angle, speed, steps):\n    state = angle, speed\n    while steps:\n        state = step(state)\n"
         "        steps = steps - 1\n    return state\n", "is asked for"),
    ],
    "02.6": [
        (BLEND.format(decorate="@jax.jit"), "still there"),
        (BLEND.format(decorate="@partial(jax.jit, donate_argnums=1)"), "`update` is gone"),
        ("def blend(state, update):\n    result = 0.9 * state + 0.1 * update\n    state.delete()\n    return result\n",
         "does not lie in its memory"),
        ("def blend(state, update):\n"
         "    return jax.jit(lambda s, u: 0.9 * s + 0.1 * u, donate_argnums=0)(state, update)\n", "compiles again"),
        (BLEND.format(decorate="").replace("return", "state[:] =") + "    return state\n", "raised TypeError"),
        (BLEND.format(decorate="@partial(jax.jit, donate_argnums=0)").replace("0.9", "0.95"), "should be"),
    ],
    "02.7": [
        ("def close_ring(u):\n    u[u < 0] = 0.0\n    u[-1] = u[0]\n    return u\n", "raised TypeError"),
        ("def close_ring(u):\n    u = jnp.where(u < 0, 0.0, u)\n    return u.at[-1].set(u[0])\n", "has dtype float32"),
        ("def close_ring(u):\n    return jnp.where(u < 0, 0, u).at[-1].set(u[0])\n", "should be"),
        ("def close_ring(u):\n    u = jnp.where(u < 0, 0, u)\n    u.at[-1].set(u[0])\n    return u\n", "[3] is"),
        ("def close_ring(u):\n    u = np.array(u)\n    u[u < 0] = 0\n    u[-1] = u[0]\n    return jnp.asarray(u)\n",
         "not inside `jax.jit`"),
        ("def close_ring(u):\n    u = u[u >= 0]\n    return u.at[-1].set(u[0])\n", "has shape"),
    ],
}

RIGHT = {
    "02.1": [
        stopwatch("[a.block_until_ready() for a in jax.tree.leaves(fn(*args))]",
                  "[a.block_until_ready() for a in jax.tree.leaves(fn(*args))]"),
        "import time\nfrom tutorial_helpers import wait\ndef seconds_per_call(fn, *args):\n    wait(fn(*args))\n"
        "    samples = []\n    for _ in range(5):\n        start = time.perf_counter()\n        wait(fn(*args))\n"
        "        samples.append(time.perf_counter() - start)\n    return np.median(samples)\n",
    ],
    "02.2": [
        dtypes(),
        "n32, j32 = np.ones(3, np.float32), jnp.ones(3)\n"
        "lines = ['n32 * 2.5', 'n32 * np.sqrt(2)', 'n32 * np.arange(3)', "
        "'j32 * np.sqrt(2)', 'j32 * jnp.arange(3)', 'jnp.asarray(np.ones(3))']\n"
        "dtypes = {line: eval(line).dtype for line in lines}\n",
    ],
    "02.3": ["megabytes = (224, 48)", "megabytes = [14 * 2000**2 * 4 / 1e6, 3 * 2000 * 2000 * 4e-6]"],
    "02.4": [
        "def rounds(t):\n    return jax.lax.fori_loop(0, 6, lambda _, t: 0.5 * t * (3 - t * t), t)\n"
        "soften = jax.jit(lambda x: jnp.max(jnp.abs(x)) * rounds(x / jnp.max(jnp.abs(x))))\n",
        "@jax.jit\ndef pushed(x, top):\n    t = x / top\n    for _ in range(6):\n        t = t * (1.5 - 0.5 * t * t)\n"
        "    return t * top\nlargest = jax.jit(lambda x: jnp.maximum(x.max(), -x.min()))\n"
        "def soften(x):\n    return pushed(x, largest(x))\n",
    ],
    "02.5": [
        SWING.format(speed="new_speed", steps="steps"),
        "import functools\n@functools.partial(jax.jit, static_argnames='steps')\ndef swing(angle, speed, steps):\n"
        "    def step(state, _):\n        a, v = state\n        v = v - 0.05 * jnp.sin(a)\n"
        "        return (a + 0.05 * v, v), None\n    return jax.lax.scan(step, (angle, speed), length=steps)[0]\n",
    ],
    "02.6": [
        BLEND.format(decorate="@partial(jax.jit, donate_argnames='state')"),
        "mean = jax.jit(lambda s, u: s + 0.1 * (u - s), donate_argnums=(0,))\n"
        "def blend(state, update):\n    return mean(state, update)\n",
    ],
    "02.7": [
        "@jax.jit\ndef close_ring(u):\n    u = jnp.maximum(u, 0)\n    return u.at[-1].set(u[0])\n",
        "def close_ring(u):\n    v = jnp.clip(u, 0)\n    return jnp.concatenate([v[:-1], v[:1]])\n",
    ],
}
