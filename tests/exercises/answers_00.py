"""Answers to the exercises of page 00 as learners give them."""

JUMP = "def largest_jump(temperatures):\n    "
CASE = "from tutorial_helpers import Case\n"
SORT = CASE + "def sorting_case(data):\n    "
CLOSE = "from tutorial_helpers.results import median_interval\ndef too_close(a, b):\n    "


def cases(numpy_side, jax_side, made, x="np.random.default_rng(0).uniform(0, 1, n)"):
    """Source of an attempt at 00.4."""
    return f"""{CASE}
def cases(n):
    x = {x}
    {numpy_side}
    {jax_side}
    return {made}
"""


FLOAT32 = "np.random.default_rng(0).uniform(0, 1, n).astype(np.float32)"
NUMPY = "numpy_waves = lambda x: np.sin(x) + np.cos(x) * np.sqrt(x)"
JAX = "jax_waves = jax.jit(lambda x: jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x))"
EACH_TIME = "jax_waves = lambda x: jax.jit(lambda x: jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x))(x)"
BOTH = '[Case("NumPy", numpy_waves, x), Case("JAX", jax_waves, jnp.asarray(x))]'

WRONG = {
    "00.1": [
        (JUMP + "return np.diff(temperatures).max()", "falls count as well"),
        (JUMP + "return abs(np.diff(temperatures).max())", "falls count as well"),
        (JUMP + "return np.ptp(temperatures)", "only neighbours count"),
        (JUMP + "return np.abs(np.diff(temperatures))", "must be one number"),
        (JUMP + "return np.abs(np.diff(temperatures)).max()", "A single temperature has no neighbour"),
        (JUMP + "print(np.abs(np.diff(temperatures)).max(initial=0))", "must be a number, not None"),
        (JUMP + "return np.abs(np.diff(temperatures.astype(np.float32))).max(initial=0)", "16 digits became 7"),
        (JUMP + "temperatures[1:] -= temperatures[:-1].copy()\n    return np.abs(temperatures[1:]).max(initial=0)",
         "changes its argument"),
        (JUMP + "return max(np.abs(np.diff(temperatures)), default=0.0)", "is asked for"),
        (JUMP + "steps = zip(temperatures.tolist(), temperatures[1:].tolist())\n"
                "    return max((abs(b - a) for a, b in steps), default=0.0)", "is asked for"),
        ("known = {}\n" + JUMP + "n = len(temperatures)\n"
         "    if n not in known:\n        known[n] = np.abs(np.diff(temperatures)).max(initial=0)\n    return known[n]",
         "the answer to an earlier call"),
    ],
    "00.2": [
        ('diagnosis = dict.fromkeys("ABCDE", "honest")', "1 of 5 are right. Look at A"),
        ('diagnosis = {"A": "transfer", "B": "input-changed", "C": "input-changed", "D": "recompiles", '
         '"E": "constant-folded"}', "4 of 5 are right. Look at B: `np.cos` makes a new array"),
        ('diagnosis = {"A": "transfer", "B": "honest", "C": "honest", "D": "recompiles", "E": "constant-folded"}',
         "makes one call's argument fresh"),
        ('diagnosis = {"A": "transfer", "B": "honest", "C": "input-changed", "D": "recompiles", "E": "cached-result"}',
         "Python remembers nothing here"),
        ('diagnosis = {"A": "transfer", "B": "honest", "C": "input-changed", "D": "constant-folded", '
         '"E": "constant-folded"}', "is done again in every call"),
        ('diagnosis = {"A": "dtype-mismatch", "B": "honest", "C": "input-changed", "D": "recompiles", '
         '"E": "constant-folded"}', "What kind of array is it?"),
        ('diagnosis = {"A": "transfer", "B": "honest", "C": "input-changed"}', "nothing yet about D, E"),
        ('diagnosis = {"A": "transfer", "B": "ok", "C": "input-changed", "D": "recompiles", "E": "constant-folded"}',
         "The word for B must be one of"),
        ('diagnosis = "B"', "must be a dictionary"),
    ],
    "00.3": [
        (SORT + 'return Case("sort", lambda a: a.sort(), data.copy())', "with `setup=`"),
        (SORT + 'return Case("sort", lambda a: a.copy().sort(), data)', "the copying is on the clock"),
        (SORT + 'return Case("sort", np.sort, setup=lambda: (data.copy(),))', "should still sort in place"),
        (SORT + 'return Case("sort", lambda a: a.sort(), setup=lambda: data.copy())', "The comma makes the tuple"),
        (SORT + 'return Case("sort", lambda a: a.sort(), setup=lambda: (data,))', "the same memory each time"),
        (SORT + 'copy = data.copy()\n    return Case("sort", lambda a: a.sort(), setup=lambda: (copy,))',
         "the same memory each time"),
        (SORT + 'return Case("sort", lambda a: a.sort(), setup=lambda: (np.sort(data),))', "sorted already"),
        (SORT + 'return Case("sort", lambda a: a.sort(), setup=lambda: (data[:100].copy(),))', "not the numbers of"),
        (SORT + 'return Case("sort", lambda a: a.sort(), data, setup=lambda: (data.copy(),))', "setup= makes all"),
        (SORT + "return data.copy().sort()", "must return a `Case`, not None"),
    ],
    "00.4": [
        (cases(NUMPY, "def jax_waves(x): JIT(x)".replace("JIT", "jax.jit(lambda x: x)"), BOTH, FLOAT32),
         "The JAX case returns nothing"),
        (cases(NUMPY, EACH_TIME, BOTH, FLOAT32), "still objects, recompiles"),
        (cases(NUMPY, JAX, '[Case("NumPy", numpy_waves, x), Case("JAX", jax_waves, x)]', FLOAT32),
         "still objects, transfer"),
        (cases(NUMPY, JAX, BOTH), "still objects, dtype-mismatch"),
        (cases(NUMPY, JAX, '[Case("NumPy", numpy_waves, x), Case("JAX", jax.jit(lambda: jax_waves(x)))]', FLOAT32),
         "takes no argument"),
        (cases(NUMPY, "jax_waves = lambda x: jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x)", BOTH, FLOAT32),
         "one operation after the other"),
        (cases(NUMPY, JAX, BOTH, "np.random.default_rng(0).uniform(0, 1, 1_000_000).astype(np.float32)"),
         "an argument of shape (1000000,)"),
        (cases(NUMPY, JAX, '[Case("NumPy", numpy_waves, x), Case("JAX", numpy_waves, x)]', FLOAT32),
         "the work is to be done by JAX"),
        (cases(NUMPY, "jax_waves = jax.jit(jnp.sin)", BOTH, FLOAT32), "no longer computes"),
        (cases(NUMPY, JAX, BOTH.replace(', Case("JAX", jax_waves, jnp.asarray(x))', ""), FLOAT32),
         "a list of two Cases"),
        (cases(NUMPY, JAX, f"compare(*{BOTH}, budget=0.01)", FLOAT32).replace("import Case", "import Case, compare"),
         "a list of two Cases"),
    ],
    "00.5": [
        (CLOSE + "(low, high), (l, h) = median_interval(a), median_interval(b)\n    return low <= h and l <= high",
         "Compare within the rounds"),
        (CLOSE + "return median_interval(a / b)[0] <= 1", "an interval can miss 1 on either side"),
        (CLOSE + "return abs(np.median(a / b) - 1) < 0.02", "how sure it is are two questions"),
        (CLOSE + "return abs((a > b).mean() - 0.5) < 0.02", "look at the interval, not at the estimate"),
        (CLOSE + "return (a / b).min() <= 1 <= (a / b).max()", "the smallest and the largest ratio"),
        (CLOSE + "low, high = median_interval(a / b)\n    return not low <= 1 <= high", "that is too close to call"),
        (CLOSE + "low, high = median_interval(a / b)\n    return 'too close' if low <= 1 <= high else 'clear'",
         "must be True or False, not a str"),
        (CLOSE + "return median_interval(a - b)", "must be True or False, not a tuple"),
        (CLOSE + "return True", "Compare within the rounds"),
    ],
}

RIGHT = {
    "00.1": [
        JUMP + "if len(temperatures) < 2:\n        return 0.0\n"
               "    return np.abs(temperatures[1:] - temperatures[:-1]).max()",
        JUMP + "steps = np.diff(temperatures, prepend=temperatures[0])\n"
               "    return float(max(steps.max(), -steps.min()))",
        JUMP + "return float(np.linalg.norm(np.diff(temperatures), np.inf)) if temperatures.size > 1 else 0",
    ],
    "00.2": [
        'diagnosis = dict(a="transfer", b="honest", c="input-changed", d="recompiles", e="Constant-Folded")',
        'diagnosis = dict(zip("ABCDE", ["transfer", "honest", "input-changed", " recompiles ", "constant-folded"]))',
    ],
    "00.3": [
        SORT + 'def fresh():\n        return (np.array(data),)\n    return Case("fresh", np.ndarray.sort, setup=fresh)',
        SORT + 'def sort(a):\n        a.sort(kind="stable")\n        return a\n'
               '    return Case("fresh", sort, setup=lambda: [data.copy()])',
        SORT + 'kept = data.tolist()\n    def sort(a):\n        a[:] = np.sort(a)\n'
               '    return Case("fresh", sort, setup=lambda: (np.array(kept),))',
    ],
    "00.4": [
        cases(NUMPY, "@jax.jit\n    def jax_waves(x): return jnp.sin(x) + jnp.cos(x) * jnp.sqrt(x)",
              '(Case("numpy", numpy_waves, np.asarray(x)), Case("jax", jax_waves, x))',
              "jax.random.uniform(jax.random.key(1), (n,))"),
        cases("def waves(x, xp=np): return xp.sin(x) + xp.cos(x) * xp.sqrt(x)",
              "fast = jax.jit(lambda x: waves(x, jnp)); jx = jax.device_put(x)",
              '[Case("NumPy", waves, x), Case("JAX", lambda x: fast(x).block_until_ready(), jx)]', FLOAT32),
    ],
    "00.5": [
        "from scipy.stats import binomtest\ndef too_close(a, b):\n"
        "    return bool(binomtest(int((a > b).sum()), len(a)).pvalue > 0.05)",
        "from scipy.stats import wilcoxon\ndef too_close(a, b):\n    return wilcoxon(np.log(a / b)).pvalue > 0.05",
        CLOSE + "low, high = median_interval([x / y for x, y in zip(a, b)])\n    return not (low > 1 or high < 1)",
    ],
}
