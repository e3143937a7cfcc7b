"""Building native code and looking at it: what the interpreter-and-compiler lesson rests on."""

import ctypes
import importlib.util
import re
import sys

import pytest

from tutorial_helpers import native

PAIRS = """
int pairs(const float *x, const float *y, int n, float r)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            float dx = x[i] - x[j], dy = y[i] - y[j];
            count += dx * dx + dy * dy < r * r;
        }
    return count;
}
"""
needs_c = pytest.mark.skipif(native.compiler() is None, reason="needs a C compiler")
needs_cython = pytest.mark.skipif(importlib.util.find_spec("Cython") is None or native.compiler() is None,
                                  reason="needs Cython and a C compiler")


@needs_c
def test_a_c_library_computes_and_knows_its_compile_time():
    built = native.c_library(PAIRS, "-O3")
    x, y = (ctypes.c_float * 3)(0, 3, 10), (ctypes.c_float * 3)(0, 4, 10)
    assert built.load.pairs(x, y, 3, ctypes.c_float(5.5)) == 1
    assert built.seconds > 0 and built.path.exists()


@needs_c
def test_two_builds_of_the_same_source_are_two_libraries():
    first, second = (native.c_library(f"int f(void) {{ return {n}; }}").load for n in (1, 2))
    assert (first.f(), second.f()) == (1, 2)


@needs_c
def test_a_refused_source_says_why_and_where_without_a_path():
    with pytest.raises(native.CompileError, match=r":2:.*unknown") as refused:
        native.c_library("int f(void) {\n  return unknown; }")
    assert "/" not in str(refused.value).split("error")[0]


@needs_cython
def test_cython_rates_lines_that_talk_to_python():
    built = native.cython_module("def plain(a):\n    return a * a\n\ncpdef long typed(long a):\n"
                                 "    cdef long b = a * a\n    return b\n", "-O1")
    assert built.module.plain(3) == built.module.typed(3) == 9
    assert built.scores[2] > built.scores[5] == 0
    assert "a" in str(built.line_c(5)) and built.line_c(5).count("PyNumber") == 0
    assert built.line_c(2).count(r"PyNumber_Multiply|Multiply") > 0
    assert built.seconds == built.translate_seconds + built.compile_seconds


@needs_cython
def test_a_cython_module_loads_in_another_process():
    built = native.cython_module("def pairs():\n    return 7\n", "-O1")
    assert native.run_apart(f"{built.load}\nprint(pairs())").said == "7"


@needs_cython
def test_cython_says_what_it_refused():
    with pytest.raises(native.CompileError, match=r"pyx:2:.*nowhere"):
        native.cython_module("def f():\n    return nowhere\n")


def test_a_process_apart_tells_its_answer_and_its_memory():
    small = native.run_apart("print(6 * 7)")
    large = native.run_apart("kept = bytearray(b'x') * 50_000_000\nprint(len(kept))")
    assert (small.said, large.said) == ("42", "50000000")
    assert large.resident - small.resident > 40_000_000
    assert small.resident <= small.peak and small.seconds > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a peak")
def test_the_peak_remembers_memory_that_was_given_back():
    run = native.run_apart("kept = bytearray(b'x') * 80_000_000\ndel kept\nprint('done')")
    assert run.peak - run.resident > 60_000_000


def test_a_failing_process_says_why():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        native.run_apart("1 / 0")


@needs_c
def test_the_vector_loop_does_more_pairs_in_a_turn():
    scalar, vector = native.inner_loop(PAIRS, "-O3", "-fno-tree-vectorize"), native.inner_loop(PAIRS, "-O3")
    if not (scalar.available and vector.available):
        pytest.skip("this compiler's loop is not recognised")
    assert scalar.count("one subtraction") >= 2
    assert vector.count(r"; (4|8|16) subtractions") >= 2
    assert not re.search(r"; *$", str(vector), re.MULTILINE)


@needs_c
def test_a_source_without_such_a_loop_is_said_to_have_none():
    assert not native.inner_loop("int one(void) { return 1; }", "-O3").available


@needs_c
def test_passports(tmp_path):
    import py_compile
    source = tmp_path / "pairs.py"
    source.write_text("x = 1\n")
    bytecode = py_compile.compile(str(source))
    library = native.c_library("int f(void) { return 1; }").path
    text, code, machine = map(native.passport, (source, bytecode, library))
    assert text["processor"] == code["processor"] == "any" and text["Python"] == "any"
    assert code["Python"] == f"CPython {sys.version_info.major}.{sys.version_info.minor}"
    assert machine["processor"] != "any" and machine["kind"].startswith("machine code")


@needs_c
def test_a_library_for_another_processor_is_refused():
    library = native.c_library("int f(void) { return 1; }").path
    other = native.for_another_processor(library)
    assert native.passport(other)["processor"] != native.passport(library)["processor"]
    with pytest.raises(OSError):
        ctypes.CDLL(str(other))


def test_what_is_missing_is_said_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(native, "compiler", lambda: None)
    assert native.find_c("the C part") is None and native.find_cython("the Cython part") is None
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and "the C part is skipped" in said[0] and "C compiler" in said[1]
    with pytest.raises(native.CompileError, match="no C compiler"):
        native.c_library("int f(void) { return 1; }")


def test_cells_run_only_with_what_they_need():
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    try:
        native.offer_needs()
        native.offer_needs()  # a second run of the page's first cells changes nothing
        shell.user_ns.update(here="1.0", gone=None)
        assert "ran = 1" in shell.transform_cell("# needs here\nran = 1\n")
        skipped = shell.transform_cell("# needs here, gone\nran = 2\n")
        assert "ran" not in skipped and "this cell needs gone" in skipped
        assert "ran = 3" in shell.transform_cell("# any other comment\nran = 3\n")
    finally:
        InteractiveShell.clear_instance()


def test_a_table_shows_itself_as_text_and_as_html():
    table = native.Table([{"a": 1, "b": "<x>"}, {"a": 22, "b": "y"}], caption="Numbers")
    assert repr(table).splitlines() == ["Numbers", "a   b", "1   <x>", "22  y"]
    assert "&lt;x&gt;" in table._repr_html_() and "<caption" in table._repr_html_()


@pytest.mark.parametrize("line, meaning", [
    ("vcmpps ymm1, ymm2, ymm3, 1", "8 comparisons at once: all bits 1 where closer, else 0"),
    ("vcmpps k1, zmm0, zmm5, 1", "16 comparisons at once: one bit each, 1 where closer"),
    ("vmovdqa32 zmm1{k1}{z}, zmm6", "16 answers from the mask: −1 where closer, else 0"),
    ("vmovaps ymm1, ymm2", "copy a register"), ("vsubps zmm1, zmm10, [rcx+rax]", "16 subtractions"),
    ("subss xmm0, [rdx]", "one subtraction")])
def test_instructions_are_explained(line, meaning):
    assert native._explain(line) == meaning
