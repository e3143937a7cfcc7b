"""Answers that learners would give to the exercises of page 05: wrong ones with what they are told, and right ones."""

_MADE = """
nd = np.arange(12, dtype=np.float32).reshape(3, 4)
jd = jax.device_put(jnp.array(nd), jax.devices("cpu")[0])
"""


def _memory(**changed):
    """The dictionary of 05.1, with some lines changed."""
    lines = {"slice": ("nd[1:]", "shared"), "rows": ("nd[[1, 2]]", "copied"), "turned": ("nd.T.reshape(-1)", "copied"),
             "astype": ("nd.astype(np.float32)", "copied"), "asarray": ("np.asarray(jd)", "shared"),
             "jax": ("jd[1:]", "copied"), "array": ("jnp.array(nd)", "Copied ")}
    found = {line: changed.get(name, word) for name, (line, word) in lines.items()}
    return f"{_MADE}whose = {found!r}"


def _to_jax(result):
    return f"""
def to_jax(a):
    try:
        array = jnp.from_dlpack(a)
    except Exception:
        array = jnp.array(a)
    {result}
"""


def _borrow(*forward):
    return "\n        ".join(["def borrow(fn):\n    def forward(*xs):", *forward]) + "\n    return forward"


_STEP = """
@jax.jit
def next_level(level, inflow):
    return jnp.clip(0.95 * level + inflow, 0.0, 10.0)
def body(level, inflow):
    level = next_level(level, inflow)
    return level, level
"""
_ERROR = """
@jax.jit
def error_of(degree, rate, x, y):
    powers, mask = x[:, None] ** jnp.arange(6), jnp.arange(6) <= degree
    def step(_, c):
        return c - rate * mask * (powers.T @ (powers @ c - y)) / len(x)
    c = jax.lax.fori_loop(0, 100, step, jnp.zeros(6))
    return jnp.mean((powers @ c - y) ** 2)
"""

WRONG = {
    "05.1": [
        (_memory(slice="copied"), "another address"),
        (_memory(rows="shared"), "no strides"),
        (_memory(turned="shared"), "turning is a matter of strides"),
        (_memory(astype="shared"), "copy=False"),
        (_memory(asarray="copied"), "may read it, not write"),
        (_memory(jax="shared"), "memory of its own"),
        (_memory(array="both"), "must be one of"),
        (_memory(array=...), "has no answer yet"),
        ("whose = {'nd[1:]': 'shared'}", "seven lines"),
    ],
    "05.2": [
        ("def to_jax(a):\n    return jnp.array(a), False", "which JAX can share"),
        (_to_jax("return array, a.flags.c_contiguous"), "compare the addresses"),
        (_to_jax("return array, a.dtype == array.dtype"), "compare the addresses"),
        (_to_jax("return array, False"), "whoever writes"),
        (_to_jax("return array, array is a"), "whoever writes"),
        (_to_jax("return array"), "Two things"),
        (_to_jax("return np.asarray(array), True"), "must be a JAX array"),
        (_to_jax("return array, 'shared'"), "True or False, not a str"),
        (_to_jax("return array[::-1], np.shares_memory(np.asarray(array), a)"), "should be"),
        ("def to_jax(a):\n    raise BufferError('no')", "catch the exception"),
    ],
    "05.3": [
        (_borrow("grads = jax.grad(lambda *xs: fn(*xs).sum(), argnums=tuple(range(len(xs))))(*xs)",
                 "return np.asarray(fn(*xs)), lambda g: tuple(map(np.asarray, grads))"), "ignore `g`"),
        (_borrow("grads = jax.grad(lambda *xs: fn(*xs).sum(), argnums=tuple(range(len(xs))))(*xs)",
                 "return np.asarray(fn(*xs)), lambda g: tuple(np.asarray(g * bar) for bar in grads)"),
         "`backward` raised"),
        (_borrow("return jax.vjp(fn, *xs)"), "the result is a JAX array"),
        (_borrow("result, pull = jax.vjp(fn, *xs)", "return np.asarray(result), pull"),
         "your gradients are something else"),
        (_borrow("result, pull = jax.vjp(fn, *xs)", "return np.asarray(result), lambda g: np.asarray(pull(g)[0])"),
         "even for one"),
        (_borrow("result, pull = jax.vjp(fn, *xs)", "return np.asarray(result), lambda g: (np.asarray(pull(g)[0]),)"),
         "one for each is needed"),
        (_borrow("return np.asarray(fn(*xs))"), "two things"),
        (_borrow("global pull", "result, pull = jax.vjp(fn, *xs)",
                 "return np.asarray(result), lambda g: tuple(map(np.asarray, pull(g)))"), "The gradient of x · sin(x)"),
        (_borrow("grads = jax.grad(fn, argnums=tuple(range(len(xs))))(*xs)",
                 "return np.asarray(fn(*xs)), lambda g: tuple(np.asarray(g * bar) for bar in grads)"),
         "`forward` raised TypeError: Gradient only defined for scalar-output functions"),
        ("def borrow(fn):\n    return 'forward'", "must return a function"),
    ],
    "05.4": [
        (_STEP + "levels = jax.jit(lambda start, inflows: start + jnp.cumsum(inflows))", "should be"),
        (_STEP + "levels = jax.jit(lambda start, inflows: jax.lax.scan(body, start, inflows)[0])",
         "One level came back"),
        (_STEP + """
@jax.jit
def levels(start, inflows):
    return jax.lax.scan(lambda level, inflow: (next_level(level, inflow), level), start, inflows)[1]
""", "before each inflow"),
        (_STEP + """
@jax.jit
def levels(start, inflows):
    return jnp.concatenate([start[None], jax.lax.scan(body, start, inflows)[1]])
""", "leave out the start"),
        (_STEP + """
@jax.jit
def levels(start, inflows):
    found = []
    for inflow in inflows:
        start = next_level(start, inflow)
        found.append(start)
    return jnp.stack(found)
""", "still Python's"),
        (_STEP + """
def levels(start, inflows):
    return jax.jit(lambda start, inflows: jax.lax.scan(body, start, inflows)[1])(start, inflows)
""", "compiles something in each call"),
        (_STEP + "levels = jax.jit(lambda start, inflows: jax.lax.scan(body, start, inflows))", "A pair came back"),
    ],
    "05.5": [
        ("def masked_mean(x, n):\n    total = x[:n].sum()\n    return total / n", "a slice needs a length"),
        ("def masked_mean(x, n):\n    return x @ jnp.float32(jnp.arange(len(x)) < n) / n", "0 · nan is nan"),
        ("def masked_mean(x, n):\n    return jnp.where(jnp.arange(len(x)) < n, x, 0.0).mean()", "the length of x"),
        ("def masked_mean(x, n):\n    return jnp.where(jnp.arange(len(x)) <= n, x, 0.0).sum() / n",
         "one element too many"),
        ("def masked_mean(x, n):\n    return jnp.nanmean(x)", "the mean of all of x"),
        ("def masked_mean(x, n):\n    return jnp.where(jnp.arange(len(x)) < n, x, 0.0) / n", "shape"),
        ("def masked_mean(x, n):\n    return jnp.where(jnp.arange(len(x)) < n, x, 0.0).sum() / jnp.array(5.0)",
         "should be"),
        ("def masked_mean(x, n):\n    m = jnp.arange(len(x)) < n\n    return jnp.where(m, x, 0.0).sum() / n + "
         "jnp.where(m, 0.0, x - x).sum() * 0", "spoilt"),
        ("def masked_mean(x, n):\n    return jnp.where(jnp.arange(len(x)) < n, x, x * 0).sum() / n", "spoilt"),
        ("def masked_mean(x, n):\n    s = jnp.where(jnp.arange(len(x)) < n, jnp.sqrt(x * x), 0.0)\n"
         "    return jnp.where(jnp.arange(len(x)) < n, jnp.sign(x) * s, 0.0).sum() / n", "the gradient is not finite"),
    ],
    "05.6": [
        (_ERROR + "search = jax.jit(jax.vmap(error_of))", "raised ValueError"),
        (_ERROR + """
each = jax.vmap(error_of, in_axes=(0, None, None, None))
search = jax.jit(jax.vmap(each, in_axes=(None, 0, None, None)))
""", "each degree with each rate"),
        (_ERROR + """
@jax.jit
def search(degrees, rates, x, y):
    return jax.vmap(error_of, in_axes=(0, 0, None, None))(degrees, rates, x, y).min()
""", "One error came back"),
        (_ERROR + """
@jax.jit
def search(degrees, rates, x, y):
    return jnp.stack([error_of(degree, rate, x, y) for degree, rate in zip(degrees, rates)])
""", "still Python's"),
        (_ERROR + """
def search(degrees, rates, x, y):
    return jax.jit(lambda *args: jax.vmap(error_of, in_axes=(0, 0, None, None))(*args))(degrees, rates, x, y)
""", "compiles something in each call"),
        (_ERROR + """
@jax.jit
def search(degrees, rates, x, y):
    return jax.vmap(lambda degree: error_of(degree, rates[0], x, y))(degrees)
""", "should be"),
        (_ERROR + """
def search(degrees, rates, x, y):
    found = np.zeros(len(degrees), np.float32)
    for i in range(len(degrees)):
        found[i] = error_of(degrees[i], rates[i], x, y)
    return jnp.array(found)
""", "Python goes through it again"),
    ],
}

RIGHT = {
    "05.1": [
        _memory(),
        _MADE + """
def fate(result, source):
    result, source = np.asarray(result), np.asarray(source)
    return "shared" if np.shares_memory(result, source) else "copied"
whose = {line: fate(eval(line), jd if "jd" in line else nd) for line in
         ["nd[1:]", "nd[[1, 2]]", "nd.T.reshape(-1)", "nd.astype(np.float32)", "np.asarray(jd)", "jd[1:]",
          "jnp.array(nd)"]}
""",
    ],
    "05.2": [
        "from tutorial_helpers.companions import address\n" + _to_jax("return array, address(array) == address(a)"),
        _to_jax("return array, array.unsafe_buffer_pointer() == a.ctypes.data"),
        """
def to_jax(a):
    for way in (jnp.from_dlpack, jnp.asarray, jnp.array):
        try:
            array = way(a)
            return array, np.bool_(array.unsafe_buffer_pointer() == a.ctypes.data)
        except Exception:
            pass
""",
    ],
    "05.3": [
        """
def borrow(fn):
    there, back = jax.jit(lambda *xs: jax.vjp(fn, *xs)), jax.jit(lambda pull, g: pull(g))
    def forward(*xs):
        result, pull = there(*xs)
        return np.asarray(result), lambda g: tuple(map(np.asarray, back(pull, g)))
    return forward
""",
        _borrow("result, push = jax.linearize(fn, *xs)",
                "pull = jax.linear_transpose(push, *xs)",
                "return np.array(result), lambda g: [np.array(bar) for bar in pull(jnp.asarray(g))]"),
        _borrow("numbers = tuple(range(len(xs)))",
                "def backward(g):",
                "    return jax.tree.map(np.asarray, jax.grad(lambda *xs: (g * fn(*xs)).sum(), argnums=numbers)(*xs))",
                "return np.asarray(fn(*xs)), backward"),
    ],
    "05.4": [
        _STEP + "levels = jax.jit(lambda start, inflows: jax.lax.scan(body, start, inflows)[1])",
        """
@jax.jit
def levels(start, inflows):
    def step(i, found):
        before = jnp.where(i == 0, start, found[i - 1])
        return found.at[i].set(jnp.minimum(jnp.maximum(0.95 * before + inflows[i], 0), 10))
    return jax.lax.fori_loop(0, len(inflows), step, jnp.zeros_like(inflows))
""",
    ],
    "05.5": [
        "def masked_mean(x, n):\n    return jnp.mean(x, where=jnp.arange(x.size) < n)",
        "def masked_mean(x, n):\n    return jnp.sum(x, where=jnp.arange(x.size) < n) / n",
        "def masked_mean(x, n):\n    keep = jax.lax.iota(jnp.int32, len(x)) < n\n"
        "    return jax.lax.select(keep, x, jnp.zeros_like(x)) @ jnp.ones_like(x) / keep.sum()",
    ],
    "05.6": [
        _ERROR + """
@jax.jit
def search(degrees, rates, x, y):
    return jax.vmap(lambda degree, rate: error_of(degree, rate, x, y))(degrees, rates)
""",
        """
@jax.jit
def search(degrees, rates, x, y):
    powers, mask = x[:, None] ** jnp.arange(6), jnp.arange(6) <= degrees[:, None]
    def step(c, _):
        return c - rates[:, None] * mask * ((c @ powers.T - y) @ powers) / len(x), None
    c, _ = jax.lax.scan(step, jnp.zeros((len(rates), 6)), length=100)
    return ((c @ powers.T - y) ** 2).mean(1)
""",
    ],
}
