"""Answers that learners would give to the exercises of page 04: wrong ones with what they are told, and right ones."""


def _slopes(**changed):
    """The dictionary of 04.1, with some lines changed."""
    lines = {"abs": ("jnp.abs(x)", "jax.grad(jnp.abs)(0.0)"), "root": ("jnp.sqrt(x * x)", "jnp.nan"),
             "sign": ("x * jnp.sign(x)", "0"), "maximum": ("jnp.maximum(x, 0.0)", "0.5"),
             "relu": ("jax.nn.relu(x)", "0.0"), "where": ("jnp.where(x > 0, jnp.sqrt(x), 0.0)", "'nan'")}
    return "kink_slopes = {" + ", ".join(f"{line!r}: {changed.get(name, value)}"
                                    for name, (line, value) in lines.items()) + "}"


def _growth(*body):
    return "\n    ".join(["def growth_factor(x):", *body])


def _sensitivities(result, before="@jax.jit"):
    return f"""
{before}
def sensitivities(p, t):
    def position(p):
        return p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3])
    return {result}
"""


def _thrifty(*body):
    head = ["def thrifty(ws, x):", "layer = lambda x, w: (jnp.tanh(x @ w), None)"]
    return "\n    ".join([*head, *body])


_LOSS = """
def loss_of_one(p, x, y):
    return (jnp.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2
each = jax.vmap(jax.grad(loss_of_one), in_axes=(None, 0, 0))
"""


def _pulls(result, before="@jax.jit"):
    return f"{_LOSS}{before}\ndef pulls(p, xs, ys):\n    slopes = each(p, xs, ys)\n    return {result}\n"


_LENGTH = 'jnp.sqrt((slopes["w1"] ** 2).sum((1, 2)) + (slopes["w2"] ** 2).sum(1))'
_CUSTOM = """
def clip_gradient(x, limit):
    @jax.custom_vjp
    def same(x):
        return x
    def there(x):
        return x, None
    def back(kept, g):
        return {}
    same.defvjp(there, back)
    return same(x)
"""

WRONG = {
    "04.1": [
        (_slopes(root="1.0"), "inf · 0"),
        (_slopes(maximum="0.0"), "shares the adjoint"),
        (_slopes(relu="0.5"), "a rule of its own"),
        (_slopes(where="0.0"), "not chosen"),
        (_slopes(sign="1.0"), "rule for products"),
        (_slopes(abs="float('nan')"), "at a kink a library must choose"),
        (_slopes(abs="..."), "has no answer yet"),
        (_slopes(relu="'none'"), "is no number"),
        ("kink_slopes = [1.0, 0.0]", "starter's dictionary"),
    ],
    "04.2": [
        (_growth("return jnp.expm1(x) / x"), "At 0 your function returns"),
        (_growth("return jnp.where(x == 0, 1.0, jnp.expm1(x) / x)"), "the slope is nan"),
        (_growth("safe = jnp.where(x == 0, 1.0, x)", "return jnp.where(x == 0, 1.0, jnp.expm1(safe) / safe)"),
         "the slope is 0, but 0.5"),
        (_growth("safe = jnp.where(x == 0, 1.0, x)", "return jnp.where(x == 0, 1 + x / 2, jnp.expm1(safe) / safe)"),
         "nearly equal size"),
        (_growth("return 1 + x / 2 + x**2 / 6 + x**3 / 24"), "a series is good near 0 only"),
        (_growth("return 1 + x / 2 if abs(x) < 1e-3 else jnp.expm1(x) / x"), "choose with `jnp.where`"),
        (_growth("return jnp.where(x == 0, 1 + x, 1.0)"), "At 0 the slope is 1, but"),
        (_growth("return jnp.expm1(x, x) / x"), "raised TypeError"),
        (_growth("return jnp.ones(3)"), "one number is to come back"),
    ],
    "04.3": [
        (_sensitivities("jax.vmap(jax.vjp(position, p)[1])(jnp.eye(len(t)))[0]"), "Which mode"),
        (_sensitivities("jax.jacfwd(position)(p).T"), "Transpose it"),
        (_sensitivities("jax.jacfwd(lambda t: p[0] * jnp.exp(-p[1] * t) * jnp.cos(p[2] * t + p[3]))(t)"),
         "the slope by the times"),
        (_sensitivities("jax.jacfwd(position)(p).sum(1)"), "has shape"),
        (_sensitivities("jax.jacfwd(position)(p).astype(jnp.float16)"), "dtype"),
        (_sensitivities("jax.jacfwd(position)(p)") + """
kept, quick = {}, sensitivities
def sensitivities(p, t):
    return kept.setdefault(len(t), quick(p, t))
""", "earlier call"),
        (_sensitivities("jax.jit(jax.jacfwd(position))(p)", before=""), "compiles something in each call"),
    ],
    "04.4": [
        (_thrifty("whole = jax.checkpoint(lambda ws: jax.lax.scan(layer, x, ws)[0].mean())",
                  "return jax.grad(whole)(ws)"), "then keeps it all"),
        (_thrifty("return jax.grad(lambda ws: jax.lax.scan(jax.checkpoint(layer), x, ws)[0].mean())(ws)"),
         "each layer is a checkpoint"),
        (_thrifty("block = jax.checkpoint(lambda x, ws: jax.lax.scan(layer, x, ws))",
                  "return jax.grad(lambda ws: jax.lax.scan(block, x, ws.reshape(8, 16, *ws.shape[1:]))[0].mean())(ws)"),
         "raised TypeError"),
        (_thrifty("block = jax.checkpoint(lambda x, ws: jax.lax.scan(layer, x, ws)[0])",
                  "def network(ws):",
                  "    h = x",
                  "    for i in range(0, len(ws), 16):",
                  "        h = block(h, ws[i:i + 16])",
                  "    return h.mean()",
                  "return jax.grad(network)(ws)"), "the loop is Python's"),
        (_thrifty("return jnp.zeros_like(ws)"), "The gradient for 16 layers"),
        (_thrifty("block = jax.checkpoint(lambda x, ws: jax.lax.scan(layer, x, ws))",
                  "return jax.lax.scan(block, x, ws.reshape(-1, 16, *ws.shape[1:]))[0].mean()"), "shape ()"),
    ],
    "04.5": [
        (_LOSS + f"""
def pulls(p, xs, ys):
    @jax.jit
    def all_at_once(p, xs, ys):
        slopes = each(p, xs, ys)
        return {_LENGTH}
    return all_at_once(p, xs, ys)
""", "compiles something in each call"),
        (_LOSS + """
@jax.jit
def pulls(p, xs, ys):
    all = [jax.grad(loss_of_one)(p, x, y) for x, y in zip(xs, ys)]
    return jnp.stack([jnp.sqrt((slopes["w1"] ** 2).sum() + (slopes["w2"] ** 2).sum()) for slopes in all])
""", "still Python's"),
        (_LOSS + """
@jax.jit
def pulls(p, xs, ys):
    slopes = jax.grad(lambda p: jax.vmap(loss_of_one, in_axes=(None, 0, 0))(p, xs, ys).mean())(p)
    return jnp.sqrt((slopes["w1"] ** 2).sum() + (slopes["w2"] ** 2).sum())
""", "that of the mean gradient"),
        (_pulls('(slopes["w1"] ** 2).sum((1, 2)) + (slopes["w2"] ** 2).sum(1)'), "the root is missing"),
        (_pulls('jnp.linalg.norm(slopes["w1"], axis=(1, 2)) + jnp.linalg.norm(slopes["w2"], axis=1)'), "as squares do"),
        (_pulls('jnp.linalg.norm(slopes["w1"], axis=(1, 2))'), "w2 belongs to"),
        (_LOSS + "pulls = jax.jit(jax.vmap(jax.grad(loss_of_one)))", "raised ValueError"),
        (_pulls(_LENGTH) + """
kept, quick = {}, pulls
def pulls(p, xs, ys):
    return kept.setdefault(xs.shape, quick(p, xs, ys))
""", "earlier call"),
    ],
    "04.6": [
        ("def clip_gradient(x, limit):\n    return jnp.clip(x, -limit, limit)", "You clip the value"),
        ("def clip_gradient(x, limit):\n    return x", "passes unclipped"),
        (_CUSTOM.format("(g * jnp.minimum(1, limit / jnp.linalg.norm(g)),)"), "scaled as a whole"),
        (_CUSTOM.format("(jnp.clip(g, -1, 1),)"), "use the argument"),
        (_CUSTOM.format("jnp.clip(g, -limit, limit)"), "raised"),
        (_CUSTOM.format("(jnp.clip(kept, -limit, limit),)").replace("x, None", "x, x"), "The gradient with a limit"),
        (_CUSTOM.format("(jnp.clip(x, -limit, limit),)"), "when a gradient was taken through it"),
        (_CUSTOM.format("(jnp.clip(g, -limit, limit),)").replace("same(x)\n", "same(2 * x)\n"), "The value"),
        ("""
def clip_gradient(x, limit):
    @jax.custom_jvp
    def same(x):
        return x
    @same.defjvp
    def rule(primals, tangents):
        return primals[0], jnp.clip(tangents[0], -limit, limit)
    return same(x)
""", "no transpose"),
        ("def clip_gradient(x):\n    return x", "must take 2 arguments"),
    ],
}

RIGHT = {
    "04.1": [
        _slopes(),
        """
lines = ["jnp.abs(x)", "jnp.sqrt(x * x)", "x * jnp.sign(x)", "jnp.maximum(x, 0.0)", "jax.nn.relu(x)",
         "jnp.where(x > 0, jnp.sqrt(x), 0.0)"]
kink_slopes = {line: jax.grad(eval("lambda x: " + line))(0.0) for line in lines}
""",
    ],
    "04.2": [
        """
points, weights = np.polynomial.legendre.leggauss(20)
def growth_factor(x):
    return jnp.sum(jnp.float32(weights / 2) * jnp.exp(jnp.float32((points + 1) / 2) * x))
""",
        """
def series(x, shift):
    total, term = 0.0, 1.0
    for k in range(14):
        total += term / (k + 1 + shift)
        term = term * x / (k + 1)
    return total
@jax.custom_jvp
def growth_factor(x):
    far = jnp.where(abs(x) < 1, 1.0, x)
    return jnp.where(abs(x) < 1, series(x, 0), jnp.expm1(far) / far)
@growth_factor.defjvp
def rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    far = jnp.where(abs(x) < 1, 1.0, x)
    slope = jnp.where(abs(x) < 1, series(x, 1), (jnp.exp(far) - growth_factor(far)) / far)
    return growth_factor(x), slope * dx
""",
    ],
    "04.3": [
        _sensitivities("jax.vmap(lambda v: jax.jvp(position, (p,), (v,))[1], out_axes=1)(jnp.eye(4))"),
        """
@jax.jit
def sensitivities(p, t):
    fading, angle = p[0] * jnp.exp(-p[1] * t), p[2] * t + p[3]
    position, turned = fading * jnp.cos(angle), -fading * jnp.sin(angle)
    return jnp.stack([position / p[0], -t * position, t * turned, turned], axis=1)
""",
    ],
    "04.4": [
        _thrifty("@jax.checkpoint",
                 "def part(h, ws):",
                 "    for w in ws:",
                 "        h, _ = layer(h, w)",
                 "    return h, None",
                 "def network(ws):",
                 "    return jnp.mean(jax.lax.scan(part, x, ws.reshape(len(ws) // 8, 8, *ws.shape[1:]))[0])",
                 "return jax.grad(network)(ws)"),
        "@jax.jit\n" + _thrifty(
            "block = jax.remat(lambda x, ws: jax.lax.scan(jax.remat(layer), x, ws))",
            "network = lambda ws: jax.lax.scan(block, x, ws.reshape(-1, 8, *ws.shape[1:]))[0].mean()",
            "return jax.vjp(network, ws)[1](jnp.float32(1))[0]"),
    ],
    "04.5": [
        _pulls("jnp.sqrt(sum((part.reshape(len(xs), -1) ** 2).sum(1) for part in jax.tree.leaves(slopes)))"),
        """
@jax.jit
def pulls(p, xs, ys):
    hidden = jnp.tanh(xs @ p["w1"])
    inside = jnp.linalg.norm(xs, axis=1) * jnp.linalg.norm(p["w2"] * (1 - hidden ** 2), axis=1)
    return 2 * jnp.abs(hidden @ p["w2"] - ys) * jnp.hypot(inside, jnp.linalg.norm(hidden, axis=1))
""",
    ],
    "04.6": [
        """
from functools import partial

@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip_gradient(x, limit):
    return x

clip_gradient.defvjp(lambda x, limit: (x, ()), lambda limit, kept, g: (jnp.maximum(jnp.minimum(g, limit), -limit),))
""",
        """
@jax.custom_vjp
def clip_gradient(x, limit):
    return jnp.asarray(x)

def there(x, limit):
    return x, limit

def back(limit, g):
    return jnp.where(jnp.abs(g) > limit, limit * jnp.sign(g), g), None

clip_gradient.defvjp(there, back)
""",
    ],
}
