"""What makes the compilers trace and compile again, what they refuse, and how that is told."""

import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from tutorial_helpers import Case, compare, hlo  # noqa: E402
from tutorial_helpers.inspecting import View  # noqa: E402
from tutorial_helpers.tracing import (  # noqa: E402
    attempt,
    brief,
    calls_to_pay_off,
    machine_code,
    memory_added,
    memory_growth,
    operations,
    side_by_side,
    tf_stages,
    trace_table,
    traced,
)


def double(x):
    traced()
    return x * 2


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def test_a_new_shape_is_traced_and_compiled_and_the_same_again_is_not():
    fn = jax.jit(lambda x: double(x))
    seen = trace_table({n: ((fn, np.ones(size, np.float32)), None) for n, size in [("3", 3), ("3 again", 3), ("4", 4)]})
    assert seen.traced("jax") == ["3", "4"]
    assert [call.jax.compiled for call in seen.found.values()] == [True, False, True]
    assert "TensorFlow: traced?" not in seen.columns


def test_a_traced_call_may_find_its_machine_code_but_never_the_reverse():
    fn = jax.jit(double)
    seen = trace_table({"first": ((fn, np.float32(1)), None), "second": ((fn, np.float32(2)), None)})
    assert not seen["second"].jax.traced and not seen["second"].jax.compiled


def test_a_failing_call_is_told_by_the_name_of_its_error():
    seen = trace_table({"text": ((jax.jit(double), "word"), None)})
    assert isinstance(seen["text"].jax.error, TypeError)
    assert seen.rows[0]["JAX: traced?"] == "✗ TypeError"


def test_only_xla_compiles_in_tensorflow(tf):
    plain, xla = tf.function(double), tf.function(double, jit_compile=True)
    x = np.ones(3, np.float32)
    seen = trace_table({name: (None, (fn, x)) for name, fn in [("plain", plain), ("xla", xla), ("xla again", xla)]})
    assert seen.traced("tensorflow") == ["plain", "xla"]
    assert [call.tensorflow.compiled for call in seen.found.values()] == [False, True, False]


def test_xla_compiles_for_each_length_behind_one_trace(tf):
    fn = tf.function(double, jit_compile=True, input_signature=[tf.TensorSpec([None], tf.float32)])
    seen = trace_table({n: (None, (fn, np.ones(n, np.float32))) for n in (3, 4)})
    assert seen.traced("tensorflow") == [3]
    assert seen[4].tensorflow.compiled


def test_side_by_side_keeps_results_and_exceptions(tf):
    tried = side_by_side({"if": (lambda: jax.jit(lambda x: x if x > 0 else -x)(1.0), lambda: tf.constant(1.0)),
                          "one side": (lambda: 1, None)})
    assert isinstance(tried["if"].jax, jax.errors.TracerBoolConversionError)
    assert float(tried["if"].tensorflow) == 1
    assert tried.rows[0]["JAX"].startswith("✗ TracerBoolConversionError: ")
    assert tried.rows[1] == {"": "one side", "JAX": "1", "TensorFlow": "–"}


def test_without_tensorflow_its_column_says_so_and_its_functions_do_not_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    tried = side_by_side({"row": (lambda: 1, lambda: pytest.fail("ran"))})
    assert tried.rows == [{"": "row", "JAX": "1", "TensorFlow": "not installed"}]
    assert "TensorFlow: traced?" not in trace_table({"row": ((jax.jit(double), 1.0), (None, 1.0))}).columns


def test_other_heads_name_other_columns():
    tried = side_by_side({"row": (lambda: 1, lambda: 2)}, heads=("a list", "a tuple"))
    assert tried.rows == [{"": "row", "a list": "1", "a tuple": "2"}]


def test_tensorflows_reason_is_found_below_the_users_own_lines(tf):
    @tf.function
    def fn(x):
        return tf.Variable(1.0) + x
    assert brief(attempt(fn, tf.constant(1.0))).startswith("✗ ValueError: tf.function only supports")


@pytest.mark.parametrize(("value", "text"), [
    (None, "–"), (3, "3"), ((1, 2), "1, 2"), (np.arange(3), "[0 1 2]"), (ValueError(), "✗ ValueError: no message"),
    (KeyError("at 0x7fe9bc1f25c0"), "✗ KeyError: 'at 0x…'")])
def test_brief(value, text):
    assert brief(value) == text


def test_brief_cuts_long_messages():
    assert len(brief(ValueError("x" * 500))) <= 110


def test_operations_counts_what_hlo_computes():
    found = operations(hlo(lambda x: jnp.sin(x) + jnp.cos(x), jnp.ones((8, 8))))
    assert found["sine"] == found["cosine"] == found["add"] == 1
    assert operations("  ROOT %t = (f32[2]{0}, f32[2]{0}) tuple(%a, %b)\n  b.1 = f32[] constant(1)") == {
        "tuple": 1, "constant": 1}


def test_machine_code_is_the_processors_or_says_that_it_is_not():
    view = machine_code(lambda x: x * x + 2 * x, jnp.ones((64, 64)))
    assert isinstance(view, View) and view.text
    if view.available:
        assert view.count(r"^ +[0-9a-f]+:") > 5
    else:
        assert "objdump" in view.text


def test_tf_stages_names_who_compiles(tf):
    x = tf.ones(4)
    assert set(tf_stages(lambda x: x + 1, x)) == {"trace", "optimise graph", "run"}
    assert set(tf_stages(lambda x: x + 1, x, jit_compile=True)) == {"trace", "compile", "run"}


def test_calls_to_pay_off():
    class Told(dict):
        pass
    from types import SimpleNamespace as Timing
    told = Told(slow=Timing(first_call=2.0, steady=2.0), fast=Timing(first_call=11.0, steady=1.0))
    assert calls_to_pay_off(told, "fast", "slow") == 10   # 11 + 9 = 20 = 10 × 2
    assert calls_to_pay_off(told, "slow", "fast") is None


def test_memory_that_is_kept_is_seen():
    kept = []
    peak, after = memory_added(lambda: kept.append(np.ones(8 * 2**20)))
    assert peak >= after > 50 * 2**20
    grown = memory_growth(lambda x, k: kept.append(np.full(2**20, k)), None, [1.0, 2.0, 3.0])
    assert len(grown) == 3 and grown[-1] > 15


def test_a_recompiling_neighbour_is_not_blamed_on_others():
    sizes = iter(range(10, 10_000))
    steady, anew = jax.jit(lambda x: x * 3), jax.jit(lambda x: x * 2)
    found = compare(Case("steady", steady, jnp.ones(5), check=False),
                    Case("anew", anew, setup=lambda: (np.ones(next(sizes), np.float32),), check=False), budget=0.05)
    assert "recompiles" in [caveat.kind for caveat in found["anew"].caveats]
    assert "recompiles" not in [caveat.kind for caveat in found["steady"].caveats]
