"""Views show what the machine will do, say nothing of this computer, and can be searched."""

import ctypes
import re
import shutil
import subprocess
import sys

import pytest

from tutorial_helpers import View, assembly, bytecode, hlo, inspecting, jaxpr, stablehlo, tf_graph, tf_hlo

MACHINE = re.compile(r"0x[0-9a-f]{6,}|/home/|/tmp/|/root/|/usr/|\.py\b|site-packages|source_file|stack_frame")


def inner(x, y):
    """Something with a nested function, a call and arithmetic."""
    def square(t):
        return t * t

    return square(x) + y


def anonymous(view):
    assert not MACHINE.search(view.text), MACHINE.search(view.text)
    return True


# ---------------------------------------------------------------------------------------------------------------------
# View


def test_a_view_counts_and_filters_lines():
    view = View("name", "one add\ntwo mul\nthree add add\n")
    assert view.count("add") == 3 and view.count("^t") == 2 and view.count("div") == 0
    assert view.lines("add").text == "one add\nthree add add"
    assert view.lines("add").count("add") == 3
    assert view.head(2).text == str(view.head(2)) == "one add\ntwo mul"
    assert str(view) == view.text == "one add\ntwo mul\nthree add add"


def test_short_text_is_shown_whole():
    view = View("name", "\n".join(map(str, range(40))))
    assert repr(view) == view.text
    assert "<details>" not in view._repr_html_()


def test_long_text_is_folded_not_lost():
    view = View("name", "\n".join(f"line {n} <x>" for n in range(100)))
    assert repr(view).splitlines()[:40] == view.text.splitlines()[:40]
    assert "… and 60 more" in repr(view) and len(repr(view).splitlines()) == 41
    page = view._repr_html_()
    before, after = page.split("<details>")
    assert before.count("line ") == 40 and after.count("line ") == 60 and "60 more lines</summary>" in after
    assert "<x>" not in page and page.count("&lt;x&gt;") == 100


def test_an_empty_view():
    view = View("nothing", "")
    assert repr(view) == "" and view.count("x") == 0 and view.lines("x").text == ""


# ---------------------------------------------------------------------------------------------------------------------
# Python


def test_bytecode_shows_the_multiplication_and_the_inner_function():
    view = bytecode(inner)
    assert view.count(r"\bBINARY_OP\b.*\(\*\)") == 1 and view.count(r"\bBINARY_OP\b.*\(\+\)") == 1
    assert view.count("Disassembly of <code object square at 0x…") == 1
    assert anonymous(view)


def test_adaptive_bytecode_shows_what_the_interpreter_specialised():
    def add(x, y):
        return x + y

    assert bytecode(add, adaptive=True).count("BINARY_OP_ADD") == 0
    for _ in range(200):
        add(1.5, 2.5)
    assert bytecode(add, adaptive=True).count("BINARY_OP_ADD_FLOAT") == 1
    assert bytecode(add).count("BINARY_OP_ADD") == 0


def test_bytecode_of_wrapped_functions_is_that_of_the_python_function():
    jax = pytest.importorskip("jax")
    assert bytecode(jax.jit(inner)).text == bytecode(inner).text


def test_bytecode_of_numba_and_of_a_method():
    numba = pytest.importorskip("numba")
    assert bytecode(numba.njit(inner)).text == bytecode(inner).text
    assert bytecode(View("a", "b").head).count("splitlines") == 1


@pytest.mark.parametrize("fn", [len, sum, "text".join, 3])
def test_what_has_no_bytecode(fn):
    with pytest.raises(TypeError, match="no bytecode") as caught:
        bytecode(fn)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------------
# JAX


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def wave(x, y):
    import jax.numpy as jnp
    return jnp.sin(x) + jnp.cos(y)


@pytest.mark.parametrize("jitted", [False, True])
def test_jax_on_its_way_to_machine_code(jax, jitted):
    fn, x = jax.jit(wave) if jitted else wave, jax.numpy.ones(1000)
    traced, lowered, compiled = jaxpr(fn, x, x), stablehlo(fn, x, x), hlo(fn, x, x)
    assert (traced.count(r"= sin\b"), traced.count(r"= cos\b"), traced.count(r"= add\b")) == (1, 1, 1)
    assert (lowered.count("stablehlo.sine"), lowered.count("stablehlo.add"), lowered.count("func.func")) == (1, 1, 1)
    assert compiled.count("^ENTRY") == 1 and compiled.count(r"\bfusion\(") == 1
    assert all(map(anonymous, (traced, lowered, compiled)))
    assert "wave" in traced.name and "wave" in compiled.name


def test_optimised_hlo_leaves_out_dead_work(jax):
    def dead(x):
        x @ x
        return x + 1

    assert hlo(dead, jax.numpy.ones((50, 50))).count(r"\bdot\(") == 0
    assert jaxpr(dead, jax.numpy.ones((50, 50))).count("dot_general") == 1


def test_static_arguments_of_a_jitted_function(jax):
    fn = jax.jit(lambda x, n: x**n, static_argnums=1)
    assert jaxpr(fn, jax.numpy.ones(3), 3).count("integer_pow") == 1
    assert hlo(fn, jax.numpy.ones(3), 3).count("multiply") >= 1


def test_metadata_keeps_the_operation_and_loses_the_place():
    text = ('HloModule jit_f\n\nFileNames\n1 "/home/me/f.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
            "1 {file_name_id=1 function_name_id=1 line=3}\n\nStackFrames\n1 {file_location_id=1}\n\n\n"
            'ENTRY %m {\n  %a = add(%x), metadata={op_name="jit(f)/add" source_file="/home/me/f.py" source_line=3 '
            'source_end_line=3 source_column=4 source_end_column=9}\n  %b = neg(%a), metadata={op_name="neg" '
            'stack_frame_id=2}\n  ROOT %c = sin(%b), metadata={source_file="/home/me/f.py" source_line=4}\n'
            '  %d = tan(%b), metadata={source_line=4 op_name="tan"}\n}')
    assert inspecting._anonymous(text) == (
        'HloModule jit_f\n\nENTRY %m {\n  %a = add(%x), metadata={op_name="jit(f)/add"}\n'
        '  %b = neg(%a), metadata={op_name="neg"}\n  ROOT %c = sin(%b)\n  %d = tan(%b), metadata={op_name="tan"}\n}')


# ---------------------------------------------------------------------------------------------------------------------
# TensorFlow


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


def test_the_graph_of_a_tf_function(tf):
    def tf_wave(x, y):
        return tf.sin(x) + tf.cos(y)

    x = tf.ones(10)
    for fn in (tf_wave, tf.function(tf_wave), tf.function(tf_wave, jit_compile=True)):
        view = tf_graph(fn, x, x)
        assert view.lines("^Sin").text == "Sin = Sin(x) → float32(10,)"
        assert view.lines("= AddV2").text == "add = AddV2(Sin, Cos) → float32(10,)"
        compiled = tf_hlo(fn, x, x)
        assert compiled.count("^ENTRY") == 1 and compiled.count(r"\bfusion\(") == 1
        assert anonymous(view) and anonymous(compiled)


def test_the_graph_of_a_loop_shows_its_body(tf):
    def halve(x):
        while tf.reduce_sum(x) > 1:
            x = x / 2
        return x

    view = tf_graph(halve, tf.ones(10))
    assert view.count(r"While\(") == 1 and view.count("^inside ") == 2 and view.count(r"= RealDiv\(") == 1


# ---------------------------------------------------------------------------------------------------------------------
# Assembly


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("library")
    (folder / "f.c").write_text("long twice(long x) { return 2 * x; }\nlong other(long x) { return x / 7; }\n")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", folder / "f.so", folder / "f.c"], check=True)
    return folder / "f.so"


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_assembly_of_one_function(library):
    assert ctypes.CDLL(str(library)).twice(21) == 42
    view = assembly(library, "twice")
    assert view.available and view.count(r"\bret\b") >= 1 and view.count("<twice>:") == 1
    assert view.count("<other>") == 0 and len(view.text.splitlines()) < 12
    assert str(library) not in view.text and anonymous(view)
    with pytest.raises(ValueError, match="no function 'thrice'"):
        assembly(library, "thrice")


def test_assembly_without_objdump_says_what_is_missing(library, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    view = assembly(library, "twice")
    assert not view.available and "objdump is missing" in view.text and "apt install binutils" in view.text
    assert not view.head().available and view.count("<twice>:") == 0


def test_assembly_of_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        assembly(tmp_path / "none.so", "f")


# ---------------------------------------------------------------------------------------------------------------------
# Missing frameworks


@pytest.mark.parametrize("view, module, name", [(jaxpr, "jax", "JAX"), (stablehlo, "jax", "JAX"), (hlo, "jax", "JAX"),
                                                (tf_graph, "tensorflow", "TensorFlow"),
                                                (tf_hlo, "tensorflow", "TensorFlow")])
def test_a_missing_framework_is_one_sentence(view, module, name, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        view(inner, 1, 2)
    assert str(caught.value) == f"This view needs {name}, which is not installed: pip install {module}"
