"""What the adapters know of each library's arrays, and that they import nothing themselves."""

import dataclasses
import functools
import subprocess
import sys

import numpy as np
import pytest

from tutorial_helpers import frameworks, machine, optional, wait

jax = optional("jax")
tf = optional("tensorflow")
torch = optional("torch")
numba = optional("numba")


def arrays():
    """One float32 array of four elements from each library that is installed."""
    made = [("numpy", np.ones(4, np.float32))]
    if jax:
        made.append(("jax", jax.numpy.ones(4)))
    if tf:
        made += [("tensorflow", tf.ones(4)), ("tensorflow", tf.Variable(tf.ones(4)))]
    if torch:
        made.append(("torch", torch.ones(4)))
    return made


@pytest.mark.parametrize("library, array", arrays(), ids=lambda v: type(v).__name__ if hasattr(v, "shape") else v)
def test_an_adapter_describes_its_array(library, array):
    adapter = frameworks.adapter_of(array)
    assert adapter.module == library
    assert adapter.dtype(array) == "float32"
    assert adapter.nbytes(array) == 16
    assert adapter.device(array) in ("cpu", "gpu", "tpu")
    assert np.array_equal(adapter.numpy(array), np.ones(4))
    assert adapter.wait(array) is None


@dataclasses.dataclass
class Pair:
    left: object
    right: object


class Slots:
    __slots__ = ("held",)


def test_arrays_are_found_wherever_they_are():
    a, b, c, d, e = (np.full(2, i) for i in range(5))
    slots = Slots()
    slots.held = d
    loop = {"a": a, "list": [b, (c, None, "text", 3)], "slots": slots, "pair": Pair(e, None)}
    loop["self"] = loop
    assert {int(leaf[0]) for leaf in frameworks.leaves(loop)} == {0, 1, 2, 3, 4}
    assert frameworks.leaves(lambda: a) == []


def test_wait_returns_what_it_was_given():
    value = {"x": [array for _, array in arrays()], "text": "y"}
    assert wait(value) is value


@pytest.mark.skipif(not jax, reason="JAX is not installed")
def test_wait_really_waits(monkeypatch):
    waited = []
    kind = type(jax.numpy.ones(1))
    original = kind.block_until_ready
    monkeypatch.setattr(kind, "block_until_ready", lambda self: waited.append(1) or original(self))
    wait(Pair(jax.numpy.ones(3), [jax.numpy.zeros(2)]))
    assert len(waited) == 2


@pytest.mark.skipif(not jax, reason="JAX is not installed")
def test_random_keys_and_small_floats_are_arrays_too():
    key = jax.random.key(0)
    assert frameworks.adapter_of(key).numpy(key).dtype == np.uint32
    assert frameworks.adapter_of(key).dtype(jax.numpy.ones(2, "bfloat16")) == "bfloat16"


def test_spans_tell_views_from_copies():
    numpy = frameworks.adapter_of(np.ones(1))
    x = np.arange(10.0)
    low, high = numpy.span(x)
    assert high - low == 80
    assert low <= numpy.span(x[::-2])[0] < high
    copied = numpy.span(x.copy())
    assert copied[1] <= low or copied[0] >= high
    assert numpy.nbytes(np.broadcast_to(np.float32(1), (1000, 1000))) == 4
    assert numpy.span(np.ones(0)) is None


def test_what_a_function_reaches():
    captured, unused = np.ones(3), np.zeros(3)

    def inner():
        return captured

    def outer():
        return inner() + len(sys.argv)
    found = frameworks.reachable(outer)
    assert any(value is captured for value in found)
    assert any(value is sys for value in found)
    assert not any(value is unused for value in found)
    assert any(value is captured for value in frameworks.reachable(functools.partial(np.add, captured)))


@pytest.mark.skipif(not numba, reason="Numba is not installed")
def test_compilations_of_a_captured_numba_function_are_counted():
    f = numba.njit(lambda x: x + 1)

    def run(x):
        return f(x)
    before = frameworks.compilations(run)
    run(1)
    assert frameworks.compilations(run) == before + 1
    run(2)
    assert frameworks.compilations(run) == before + 1
    assert frameworks.traces_in_one_call(lambda: run(1.5)) >= 1
    assert frameworks.traces_in_one_call(lambda: run(2.5)) == 0


@pytest.mark.skipif(not tf, reason="TensorFlow is not installed")
def test_traces_of_tensorflow_are_counted():
    f = tf.function(lambda x: x + 1)
    before = frameworks.compilations(lambda: f)
    assert frameworks.traces_in_one_call(lambda: f(tf.ones(2))) == 1
    assert frameworks.traces_in_one_call(lambda: f(tf.ones(2))) == 0
    assert frameworks.compilations(lambda: f) == before + 1


@pytest.mark.skipif(not jax, reason="JAX is not installed")
def test_work_that_is_dead_or_constant_is_told_apart():
    data = jax.numpy.ones(1000)
    x = jax.numpy.ones(1000)
    live = frameworks.jax_work(jax.jit(lambda x: jax.numpy.sin(x)), (x,))
    assert live["total"] > 0 and live["dead"] == live["constant"] == 0
    constant = frameworks.jax_work(jax.jit(lambda x: x[0] + jax.numpy.sin(data).sum()), (x,))
    assert constant["constant"] > 0.4 * constant["total"]

    def dead(x):
        x.reshape(10, 100) @ x.reshape(100, 10)
        return x + 1
    assert frameworks.jax_work(jax.jit(dead), (x,))["dead"] > 1000
    assert frameworks.jax_work(len, (x,)) is None


def test_a_missing_library_gets_one_line(capsys):
    assert optional("no_such_library", shows="the second table") is None
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "no_such_library is not installed" in out and "the second table" in out and "%pip install" in out


def test_a_broken_library_gets_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_library.py").write_text("raise OSError('libfoo.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    assert optional("broken_library") is None
    assert "does not load (OSError: libfoo.so" in capsys.readouterr().out


def test_a_library_that_memory_does_not_suffice_for_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(machine, "memory_free", lambda: 300 * 2**20)
    monkeypatch.setitem(frameworks._TAKES, "wave", 600 * 2**20)
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    assert optional("wave", shows="the sound") is None
    said = capsys.readouterr().out
    assert said.startswith("wave takes about 600 MiB and 300 are free, so the sound is skipped. To see it, close other")
    monkeypatch.setattr(machine, "memory_free", lambda: 700 * 2**20)
    assert optional("wave").__name__ == "wave" and capsys.readouterr().out == ""
    monkeypatch.setattr(machine, "memory_free", lambda: 0)
    assert optional("wave").__name__ == "wave", "what is loaded already takes no more"


def test_noise_of_native_code_is_held_back_while_a_library_loads(tmp_path):
    (tmp_path / "chatty.py").write_text("import os\nos.write(2, b'I0000 some log line\\n')\n")
    code = "from tutorial_helpers import optional\nprint(optional('chatty').__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("chatty\n", "")


def test_measuring_plain_python_imports_no_framework():
    code = ("import sys, tutorial_helpers as t\nt.measure(len, 'abc', budget=0.01)\n"
            "print(sorted({'jax', 'tensorflow', 'torch', 'numba'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("name", ["numpy", "jax", "tensorflow", "torch"])
def test_a_host_array_becomes_one_of_the_librarys_own(name):
    pytest.importorskip(name)
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    adapter = frameworks.adapter_for(name)
    own = adapter.put(host)
    assert adapter.owns(own) and adapter.dtype(own) == "float32" and np.array_equal(adapter.numpy(own), host)
