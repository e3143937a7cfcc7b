"""The clock must flag benchmarks that lie, with the right kind, and leave honest ones alone."""

import concurrent.futures
import dataclasses
import time

import numpy as np
import pytest

from tutorial_helpers import Case, compare, measure, optional, prepare

prepare()
jax = pytest.importorskip("jax")
jnp = jax.numpy
tf = optional("tensorflow")
numba = optional("numba")

# What depends on who else uses the machine, not on the benchmark.
WEATHER = {"noisy"}
BUDGET = 0.05

small = np.linspace(-1, 1, 100, dtype=np.float32)
middle = np.linspace(-1, 1, 300_000, dtype=np.float32)
large = np.linspace(-1, 1, 4_000_000, dtype=np.float32)
pool = concurrent.futures.ThreadPoolExecutor(1)
memory = {}


def _names(code):
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if hasattr(c, "co_names")))


@pytest.fixture(scope="module", autouse=True)
def no_work_left_behind():
    """A lie that does not wait leaves work behind, which must not run on beside the next module's measurements."""
    yield
    pool.shutdown(cancel_futures=True)


def skip_what_is_missing(make):
    used = _names(make.__code__)
    if (tf is None and "tf" in used) or (numba is None and "numba" in used):
        pytest.skip("the library is not installed")


def kinds(found):
    return {caveat.kind for caveat in found.caveats} - WEATHER


# ---------------------------------------------------------------------------------------------------------------------
# Lies


def jit_inside():
    return lambda x: jax.jit(lambda y: y + 1)(x), (jnp.asarray(small),)


def fresh_scan_body():
    return lambda x: jax.lax.scan(lambda c, t: (c + t, c), 0.0, x), (jnp.asarray(small),)


def growing_shape():
    f, sizes = jax.jit(lambda x: x * 2), iter(range(3, 100_000))
    return lambda: f(np.ones(next(sizes), np.float32)).block_until_ready(), ()


def static_counter():
    f, steps = jax.jit(lambda x, n: x * n, static_argnums=1), iter(range(100_000))
    return lambda x: f(x, next(steps)), (jnp.asarray(small),)


def tf_function_inside():
    return lambda x: tf.function(lambda y: y + 1)(x), (tf.constant(small),)


def tf_python_counter():
    f, steps = tf.function(lambda x, n: x * n), iter(range(100_000))
    return lambda x: f(x, next(steps)), (tf.constant(small),)


def njit_inside():
    return lambda x: numba.njit(lambda y: y + 1)(x), (small,)


def no_arguments_jax():
    return jax.jit(lambda: jnp.sin(jnp.ones((500, 500))).sum()), ()


def captured_data():
    data = jnp.asarray(middle)
    return jax.jit(lambda s: s + jnp.sin(data).sum()), (jnp.float32(1),)


def static_only():
    return jax.jit(lambda n: jnp.arange(n).sum(), static_argnums=0), (1000,)


def no_arguments_tf():
    return tf.function(lambda: tf.reduce_sum(tf.sin(tf.ones((500, 500))))), ()


def python_number_tf():
    return tf.function(lambda n: tf.reduce_sum(tf.ones((n, n)))), (500,)


def unreturned_product():
    def f(x):
        x @ x
        return x[0]
    return jax.jit(f), (jnp.ones((300, 300)),)


def unreturned_loop():
    def f(x):
        y = x
        for _ in range(10):
            y = jnp.sin(y)
        return x + 1
    return jax.jit(f), (jnp.asarray(middle),)


def forgets_to_return_jax():
    f = jax.jit(lambda x: jnp.sin(x))

    def run(x):
        f(x)
    return run, (jnp.asarray(middle),)


def forgets_to_return_tf():
    def run(x):
        tf.sin(x)
    return run, (tf.constant(middle),)


def future():
    return lambda x: pool.submit(np.sort, x), (small,)


def generator():
    return lambda x: (np.sin(row) for row in x), (middle,)


def coroutine():
    async def work(x):
        return np.sin(x)

    def run(x):
        pending = work(x)
        opened.append(pending)
        return pending
    opened = []
    return run, (middle,)


def lazy_map():
    return lambda xs: map(abs, xs), (list(range(1000)),)


def host_array_jax():
    return jax.jit(lambda x: x * 2), (middle,)


def host_pytree_jax():
    return jax.jit(lambda d: d["a"] + d["b"]), ({"a": middle, "b": middle},)


def host_array_eager():
    return jnp.sin, (middle,)


def host_array_tf():
    return tf.function(lambda x: x * 2), (middle,)


def narrowed():
    return jnp.sin, (middle.astype(np.float64),)


def empty_promise():
    return lambda n: np.empty(n), (30_000_000,)


def zeros_promise():
    return lambda n: np.zeros(n), (30_000_000,)


def memo_numpy():
    def f(x):
        if "y" not in memory:
            memory["y"] = np.sin(x)
        return memory["y"]
    return f, (large,)


def memo_jax():
    memory["j"] = jnp.sin(jnp.asarray(large))
    return lambda x: memory["j"], (jnp.asarray(large),)


def memo_float():
    memory["sum"] = float(large.sum())
    return lambda x: memory["sum"], (large,)


def sorts_in_place():
    return lambda x: x.sort(), (np.random.default_rng(0).random(10_000),)


def adds_in_place():
    def f(x):
        x += 1
    return f, (np.zeros(1000),)


def nan_result():
    return np.sqrt, (np.full(100, np.nan),)


def nan_jax():
    return jax.jit(lambda x: jnp.sin(x) / x), (jnp.zeros(100),)


def growing_list():
    kept = []

    def f():
        kept.extend(range(300))
        return sum(kept)
    return f, ()


def sleeps():
    return lambda: time.sleep(0.6), ()


LIES = [
    ("recompiles", jit_inside), ("recompiles", fresh_scan_body), ("recompiles", growing_shape),
    ("recompiles", static_counter), ("recompiles", tf_function_inside), ("recompiles", tf_python_counter),
    ("recompiles", njit_inside),
    ("constant-folded", no_arguments_jax), ("constant-folded", captured_data), ("constant-folded", static_only),
    ("constant-folded", no_arguments_tf), ("constant-folded", python_number_tf),
    ("dead-code", unreturned_product), ("dead-code", unreturned_loop),
    ("nothing-to-wait-for", forgets_to_return_jax), ("nothing-to-wait-for", forgets_to_return_tf),
    ("nothing-to-wait-for", future), ("nothing-to-wait-for", generator), ("nothing-to-wait-for", coroutine),
    ("nothing-to-wait-for", lazy_map),
    ("transfer", host_array_jax), ("transfer", host_pytree_jax), ("transfer", host_array_eager),
    ("transfer", host_array_tf),
    ("dtype-mismatch", narrowed),
    ("faster-than-memory", empty_promise), ("faster-than-memory", zeros_promise),
    ("faster-than-memory", memo_numpy), ("cached-result", memo_numpy), ("cached-result", memo_jax),
    ("cached-result", memo_float),
    ("input-changed", sorts_in_place), ("input-changed", adds_in_place),
    ("not-finite", nan_result), ("not-finite", nan_jax),
    ("drifting", growing_list), ("few-samples", sleeps),
]


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("kind, make", LIES, ids=[f"{kind}-{make.__name__}" for kind, make in LIES])
def test_a_lie_is_flagged(kind, make):
    skip_what_is_missing(make)
    memory.clear()
    fn, args = make()
    assert kind in kinds(measure(fn, *args, budget=BUDGET))


def f32_against_f64():
    return Case("a", np.sin, middle), Case("b", np.sin, middle.astype(np.float64))


def jax_against_numpy_default():
    return Case("a", np.sin, middle.astype(np.float64)), Case("b", jax.jit(jnp.sin), jnp.asarray(middle))


def tf_half():
    return Case("a", tf.abs, tf.constant(middle)), Case("b", tf.abs, tf.constant(middle.astype(np.float16)))


def other_function():
    return Case("a", np.sin, middle), Case("b", np.cos, middle)


def other_shape():
    return Case("a", np.sin, middle), Case("b", lambda x: np.sin(x[:-1]), middle)


def one_wrong_element():
    def wrong(x):
        y = np.sin(x)
        y[1234] += 0.1
        return y
    return Case("a", np.sin, middle), Case("b", jax.jit(lambda x: jnp.sin(x).at[1234].add(0.1)), jnp.asarray(middle))


def other_count():
    return Case("a", lambda x: (x + 1, x + 2), middle), Case("b", lambda x: (x + 1,), middle)


def other_number():
    return Case("a", lambda: 3), Case("b", lambda: 4)


PAIRS = [("dtype-mismatch", f32_against_f64), ("dtype-mismatch", jax_against_numpy_default),
         ("dtype-mismatch", tf_half), ("values-differ", other_function), ("values-differ", other_shape),
         ("values-differ", one_wrong_element), ("values-differ", other_count), ("values-differ", other_number)]


@pytest.mark.parametrize("kind, make", PAIRS, ids=[f"{kind}-{make.__name__}" for kind, make in PAIRS])
def test_an_unfair_pair_is_flagged(kind, make):
    skip_what_is_missing(make)
    assert kind in kinds(compare(*make(), budget=BUDGET))


def test_only_the_case_that_compiles_is_blamed_for_it():
    born_again = Case("born again", *jit_inside()[:1], *jit_inside()[1])
    pair = compare(born_again, Case("honest", jax.jit(lambda x: x + 1), jnp.asarray(small)), budget=BUDGET)
    assert "recompiles" in kinds(pair["born again"])
    assert not kinds(pair["honest"]) and pair["honest"].compiles == 0


class OnGpu(np.ndarray):
    """Stands in for an array on another device, which a machine without one cannot make."""


@pytest.mark.parametrize("other", ["gpu", "tpu"])
def test_unequal_devices_are_flagged(monkeypatch, other):
    from tutorial_helpers import frameworks

    numpy = frameworks._ADAPTERS[0]
    monkeypatch.setattr(type(numpy), "device", lambda self, value: other if isinstance(value, OnGpu) else "cpu")
    pair = compare(Case("a", np.sin, middle), Case("b", lambda x: np.sin(x).view(OnGpu), middle), budget=BUDGET)
    assert kinds(pair["b"]) | kinds(pair["a"]) == {"device-mismatch"}


# ---------------------------------------------------------------------------------------------------------------------
# Honest benchmarks


@dataclasses.dataclass
class Holder:
    values: object


class Slotted:
    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values


def numpy_buffer():
    out = np.empty_like(large)
    return lambda x, y: np.add(x, y, out=out), (large, large)


def jax_through_lambda():
    f = jax.jit(lambda x: jnp.tanh(x) + 1)
    return lambda x: f(x), (jnp.asarray(middle),)


def hoisted_scan():
    f = jax.jit(lambda x: jax.lax.scan(lambda c, t: (c + t, c), 0.0, x))
    return f, (jnp.asarray(small),)


def tf_xla():
    return tf.function(lambda x: tf.sin(x) + tf.cos(x), jit_compile=True), (tf.constant(middle),)


def numba_sum():
    @numba.njit
    def total(x):
        t = 0.0
        for v in x:
            t += v
        return t
    return total, (middle,)


def jax_weight_from_outside():
    weight = jnp.float32(3)
    return jax.jit(lambda x: jnp.sin(x) * weight), (jnp.asarray(middle),)


def random_draw():
    return jax.jit(lambda key: jax.random.normal(key, (1000,))), (jax.random.key(0),)


HONEST = {
    "python no-op": lambda: (lambda: None, ()),
    "python sum": lambda: (sum, (list(range(1000)),)),
    "python sorted": lambda: (sorted, (list(range(100, 0, -1)),)),
    "python string": lambda: (str.upper, ("abc" * 100,)),
    "python dict": lambda: (dict, ([(i, i) for i in range(100)],)),
    "python returns a constant": lambda: (lambda x: True, (1,)),
    "python returns its argument": lambda: (lambda x: x, (1.5,)),
    "sleep": lambda: (time.sleep, (0.002,)),
    "numpy scalar": lambda: (np.sin, (np.float32(1),)),
    "numpy small": lambda: (np.sin, (small,)),
    "numpy in cache": lambda: (np.add, (middle, middle)),
    "numpy large": lambda: (np.add, (large, large)),
    "numpy float64": lambda: (np.sin, (middle.astype(np.float64),)),
    "numpy complex": lambda: (np.abs, (middle.astype(np.complex64),)),
    "numpy integers": lambda: (np.cumsum, (np.arange(100_000),)),
    "numpy buffer reused": numpy_buffer,
    "numpy out argument": lambda: (np.negative, (large, np.empty_like(large))),
    "numpy view": lambda: (lambda x: x[::2], (large,)),
    "numpy transpose": lambda: (np.transpose, (large.reshape(2000, 2000),)),
    "numpy one element": lambda: (lambda x: x[17], (large,)),
    "numpy binary search": lambda: (np.searchsorted, (large, 0.3)),
    "numpy broadcast view": lambda: (np.broadcast_to, (np.float32(1), (10_000, 10_000))),
    "numpy reduction": lambda: (np.sum, (large,)),
    "numpy sort of a copy": lambda: (np.sort, (np.random.default_rng(0).random(10_000),)),
    "numpy matmul": lambda: (np.matmul, (large[:250_000].reshape(500, 500), large[:250_000].reshape(500, 500))),
    "numpy to float": lambda: (lambda x: float(x.sum()), (middle,)),
    "numpy tuple": lambda: (np.divmod, (middle, np.float32(0.3))),
    "numpy copy in cache": lambda: (np.copy, (middle,)),
    "jax scalar": lambda: (jax.jit(lambda x: x + 1), (1.0,)),
    "jax eager": lambda: (jnp.sin, (jnp.asarray(small),)),
    "jax eager large": lambda: (jnp.add, (jnp.asarray(large), jnp.asarray(large))),
    "jax jit": lambda: (jax.jit(lambda x: jnp.sin(x) * 2), (jnp.asarray(middle),)),
    "jax jit large": lambda: (jax.jit(lambda x: x + 1), (jnp.asarray(large),)),
    "jax lambda around jit": jax_through_lambda,
    "jax pytree": lambda: (jax.jit(lambda d: {"s": d["a"].sum(), "p": d["a"] * d["b"]}),
                           ({"a": jnp.asarray(middle), "b": jnp.asarray(middle)},)),
    "jax grad": lambda: (jax.jit(jax.grad(lambda x: jnp.sin(x).sum())), (jnp.asarray(middle),)),
    "jax eager grad": lambda: (jax.grad(lambda x: jnp.sin(x).sum()), (jnp.asarray(small),)),
    "jax vmap": lambda: (jax.jit(jax.vmap(jnp.dot)), (jnp.ones((50, 30)), jnp.ones((50, 30)))),
    "jax scan": hoisted_scan,
    "jax identity": lambda: (jax.jit(lambda x: x), (jnp.asarray(large),)),
    "jax slice": lambda: (jax.jit(lambda x: x[:5]), (jnp.asarray(large),)),
    "jax to host": lambda: (lambda x: float(jnp.sum(x)), (jnp.asarray(middle),)),
    "jax random": random_draw,
    "jax weight from outside": jax_weight_from_outside,
    "jax in a dataclass": lambda: (lambda x: Holder(jnp.sin(x)), (jnp.asarray(middle),)),
    "jax in slots": lambda: (lambda x: Slotted(jnp.sin(x)), (jnp.asarray(middle),)),
    "jax static flag": lambda: (jax.jit(lambda x, up: x + 1 if up else x - 1, static_argnums=1),
                                (jnp.asarray(middle), True)),
    "tf eager": lambda: (tf.sin, (tf.constant(small),)),
    "tf eager large": lambda: (tf.add, (tf.constant(large), tf.constant(large))),
    "tf function": lambda: (tf.function(lambda x: tf.sin(x) + 1), (tf.constant(middle),)),
    "tf function on xla": tf_xla,
    "tf to host": lambda: (lambda x: tf.reduce_sum(x).numpy(), (tf.constant(middle),)),
    "tf reshape": lambda: (lambda x: tf.reshape(x, (2000, 2000)), (tf.constant(large),)),
    "tf variable": lambda: (lambda v: v.assign_add(tf.ones(3)), (tf.Variable(tf.zeros(3)),)),
    "numba": numba_sum,
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_benchmark_has_no_caveat(name):
    skip_what_is_missing(HONEST[name])
    fn, args = HONEST[name]()
    found = measure(fn, *args, budget=BUDGET)
    assert not kinds(found), found


HONEST_PAIRS = {
    "in place on fresh arguments": lambda: [Case("a", list.sort, setup=lambda: ([3, 1, 2],)),
                                            Case("b", lambda x: x.sort(), setup=lambda: (small[::-1].copy(),))],
    "numpy and jit": lambda: [Case("a", np.sin, middle), Case("b", jax.jit(jnp.sin), jnp.asarray(middle))],
    "loop and numpy": lambda: [Case("a", lambda v: sum(v), small.tolist()), Case("b", np.sum, small.astype(float))],
    "tf and jit": lambda: [Case("a", tf.sin, tf.constant(middle)), Case("b", jax.jit(jnp.sin), jnp.asarray(middle))],
    "sort and setup": lambda: [Case("a", np.sort, large[:1000][::-1].copy()),
                               Case("b", lambda x: (x.sort(), x)[1], setup=lambda: (large[:1000][::-1].copy(),))],
    "donation": lambda: [Case("a", jax.jit(lambda x: x * 0.5), jnp.ones(300_000)),
                         Case("b", jax.jit(lambda x: x * 0.5, donate_argnums=0), jnp.ones(300_000), carry=True)],
    "random": lambda: [Case("a", lambda: np.random.default_rng().random(100), check=False),
                       Case("b", lambda: np.random.default_rng().random(100), check=False)],
    "float64 both": lambda: [Case("a", np.sin, middle.astype(float)), Case("b", np.sin, middle.astype(float))],
}


@pytest.mark.parametrize("name", HONEST_PAIRS)
def test_an_honest_pair_has_no_caveat(name):
    skip_what_is_missing(HONEST_PAIRS[name])
    found = compare(*HONEST_PAIRS[name](), budget=BUDGET)
    assert not kinds(found), found


def test_the_suite_is_as_large_as_promised():
    assert len(LIES) + len(PAIRS) >= 25
    assert len(HONEST) + len(HONEST_PAIRS) >= 40
    seen = [kind for kind, _ in [*LIES, *PAIRS]]
    twice = {"nothing-to-wait-for", "recompiles", "constant-folded", "transfer", "dtype-mismatch", "values-differ",
             "faster-than-memory", "dead-code", "cached-result", "input-changed", "not-finite"}
    assert all(seen.count(kind) >= 2 for kind in twice)
