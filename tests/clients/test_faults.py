"""What a learner sees when something is missing, short or in the wrong order, and that the rest of a page still works.

Each fault is a real one (tools/faults.py says how it is made), tried here on the cells that it touches and a few beside
them. `make test-all ROWS=faults` tries whole pages.
"""

import functools
import tempfile

import nbformat
import pytest

import kernels
import matrix
import pages
from environments import Missing
from faults import FAULTS, can, out_of_order, restarted

ROWS = [row for row in matrix.rows() if row.place in FAULTS]


@functools.cache
def page(number):
    """The page as its text has it: what is tested here needs no output."""
    text, = pages.texts(only=[number])
    return pages.read_text(text)


def cells(number, *codes):
    """The page's opening and those of its code cells that hold one of these texts, as a page of its own."""
    opening = kernels.sections(page(number))[""]
    code = kernels.code_cells(page(number))
    wanted = []
    for text in codes:
        found = [cell for cell in code if text in cell.source]
        assert found, f"page {number} no longer has a cell with {text!r}"
        wanted.append(found[0])
    return [cell for cell in code if cell in opening or cell in wanted]


def run(fault, *sources):
    """Run cells, or lines of code, with a fault; nothing may go wrong in any of them. A line ## starts a section."""
    notebook = nbformat.v4.new_notebook(cells=[as_cell(one) for one in sources])
    with tempfile.TemporaryDirectory() as folder:
        try:
            kernel = FAULTS[fault].kernel(folder)
        except Missing as sentence:
            pytest.skip(str(sentence))
        outcome = kernels.run(FAULTS[fault].cells(notebook), kernel, timeout=60)
    assert outcome.problems == []
    return outcome


def as_cell(source):
    """A new cell with the code of another one, with these lines of code, or with this heading."""
    source = source if isinstance(source, str) else source.source
    return (nbformat.v4.new_markdown_cell if source.startswith("## ") else nbformat.v4.new_code_cell)(source)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", "quick")


def test_without_a_compiler():
    seen = run("no gcc", *cells("01", "def attempt(text)", "three_lines", 'judge("S05"', "FACTOR = 2"),
               "from tutorial_helpers import doctor, ledger", "doctor()", 'ledger("S05")')
    assert "There is no C compiler here, so everything in C" in seen.text and "sudo apt install gcc" in seen.text
    assert "Cython modules cannot be built here" in seen.text and "install a C compiler" in seen.text
    assert seen.after("three_lines") == "Skipped: this cell needs gcc; the start of the page says how to get it.\n"
    assert "No C compiler" in seen.after("doctor()")
    assert seen.after("def attempt").count("line 1 ran") == 1 and "FACTOR was 2: 20" in seen.after("FACTOR = 2")
    assert "two lines ran" in seen.after('ledger("S05")')


@pytest.mark.parametrize("fault, named, needs, cell, rest", [
    ("no Cython", "install Cython (`%pip install Cython`)", "cython", "hinted = [", "FACTOR = 2"),
    ("no Numba", "numba is not installed", "numba", "FACTOR = 2", "def attempt(text)"),
])
def test_without_a_library_of_page_01(fault, named, needs, cell, rest):
    seen = run(fault, *cells("01", cell, rest), "from tutorial_helpers import doctor", "doctor()")
    assert named in seen.text
    assert seen.after(cell) == f"Skipped: this cell needs {needs}; the start of the page says how to get it.\n"
    assert f"{fault.removeprefix('no ')} is not installed" in seen.after("doctor()")
    assert seen.after(rest) and "Skipped" not in seen.after(rest)


def test_without_tensorflow():
    seen = run("no TensorFlow", *cells("04", 'optional("tensorflow"', "tf_slopes = ", "def tf_slope", "def jax_loss"),
               "print(*(round(float(one.std()), 3) for one in gradient(*on_jax)))")
    assert "tensorflow is not installed, so the TensorFlow half of section 4 is skipped." in seen.text
    assert "`%pip install tensorflow-cpu`" in seen.text
    assert "With TensorFlow, this cell shows sin(x)/x differentiated by a tape" in seen.after("tf_slopes = ")
    assert "With TensorFlow, this cell shows nan from a single" in seen.after("def tf_slope")
    assert len(seen.text.splitlines()[-1].split()) == 2, "the two gradients by JAX"


def test_home_takes_no_file():
    seen = run("HOME read-only", *cells("00", "def loop(numbers)", "squares = compare(", "plot_comparison(squares"),
               "import os; home = os.path.expanduser('~')", "print(os.path.isdir(home), os.access(home, os.W_OK))",
               "import pathlib, matplotlib; folder = pathlib.Path(matplotlib.get_configdir())",
               "print(folder.is_dir(), str(folder).startswith(home))")
    assert seen.after("print(os.path.isdir(home)") == "True False\n", "the fault is there"
    assert "<img" in seen.after("plot_comparison(squares"), "the figure is drawn, without a warning"
    assert seen.after("print(folder.is_dir()") == "True False\n", "Matplotlib keeps its fonts in a temporary folder"


def test_no_network_after_the_installation():
    probe = ("import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 5)\n"
             "except OSError as error:\n    print('no network:', type(error).__name__)")
    seen = run("no network", probe, *cells("00", "doctor()", "def loop(numbers)", "squares = compare("))
    assert "no network: " in seen.after(probe), "the fault is there"
    assert "This machine" in seen.after("doctor()") and "NumPy" in seen.after("squares = compare(")


def test_no_gpu_visible():
    seen = run("no GPU visible", *cells("00", "doctor()"), "print({device.platform for device in jax.devices()})")
    assert seen.after("device.platform") == "{'cpu'}\n"
    assert "CUDA_VISIBLE_DEVICES=" in seen.after("doctor()")


def test_one_core():
    seen = run("one core", *cells("00", "doctor()", "def loop(numbers)", "squares = compare("))
    assert "One core: whatever gains from threads elsewhere gains nothing here." in seen.after("doctor()")
    assert "Python loop" in seen.after("squares = compare(")


def test_one_gib_free(monkeypatch):
    monkeypatch.delenv("TUTORIAL_HELPERS_SIZE")  # the size that learners have
    seen = run("1 GiB free", *cells("02", "N = largest("), "## 1. More",
               "from tutorial_helpers import doctor", "doctor()",
               "print(int((jnp.ones((N, N)) + 1).sum()))",
               "try:\n    bytearray(2**30)\nexcept MemoryError:\n    print('too much')")
    assert "Arrays of 2000 × 2000" in seen.after("N = largest("), "5000 × 5000 with 4 GiB or more"
    assert "Under 2 GiB of memory free" in seen.after("doctor()")
    assert seen.after("jnp.ones") == "8000000\n"
    assert seen.after("bytearray") == "too much\n", "the fault is there"


def test_cells_run_twice():
    """Each cell twice at once, and all of it once more."""
    some = cells("00", "def loop(numbers)", "squares = compare(", 'squares.verdict("Python loop", "NumPy")')
    each = FAULTS["each cell twice"].cells(nbformat.v4.new_notebook(cells=some))
    seen = run("Run All twice", *each)
    assert len(seen.cells) == 4 * len(some)
    verdicts = [kernels.text_of(cell) for cell in seen.cells if "squares.verdict" in cell.source]
    assert len(verdicts) == 4 and all("Python loop takes" in verdict for verdict in verdicts)


def test_sections_from_last_to_first():
    titles = list(kernels.sections(page("01")))
    order = [next(title for title, there in kernels.sections(page("01")).items() if cell in there)[:1]
             for cell in out_of_order(page("01"))]
    assert "".join(dict.fromkeys(order)).startswith("678954321"), titles
    assert len(order) == len(kernels.code_cells(page("01")))
    some = cells("01", "def attempt(text)", "def area(width", "cold, floats, ints")
    opening = kernels.sections(page("01"))[""]
    seen = run("out of order", *opening, *[cell for cell in reversed(some) if "attempt" in cell.source],
               *[cell for cell in some if "attempt" not in cell.source and cell not in opening])
    assert "after 1000 float calls" in seen.text


def test_kernel_restarted_in_the_middle(tmp_path):
    """Names are gone, and the page says which; nothing else of the first half is in the way of a second one."""
    opening = kernels.sections(page("01"))[""]
    attempt, = [cell for cell in kernels.code_cells(page("01")) if "def attempt(text)" in cell.source]
    judged, = [cell for cell in kernels.code_cells(page("01")) if 'judge("S05"' in cell.source]
    with kernels.Session(kernels.Kernel(), tmp_path, timeout=60) as session:
        for cell in opening:
            session.run(cell)
        before = kernels.text_of(session.run("print(folder, folder.is_dir())")).split()
        assert before[1] == "True"
        session.restart()
        assert kernels.text_of(session.run(judged)) == "NameError: name 'judge' is not defined"
        assert not kernels.text_of(session.run(f"import os; print(os.listdir({before[0]!r}))")).startswith("[")
        again = [session.run(cell) for cell in [*opening, attempt, judged]]
    assert [problem for cell in again for problem in kernels.complaints(cell)] == []
    assert "line 2 ran" in kernels.text_of(again[-2])


def test_a_restart_is_among_the_cells():
    whole = kernels.code_cells(page("00"))
    assert restarted(page("00"))[len(whole) // 2:] == [kernels.RESTART, *whole]


def test_the_guard_stands_in_where_no_namespace_can_be_had(monkeypatch):
    monkeypatch.setattr("faults.can", lambda *command: False)
    seen = run("no network", "import socket",
               "try:\n    socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as error:\n    print(error)")
    assert "is beyond this machine" in seen.text


def test_a_fault_that_cannot_be_had_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Missing, match="taskset"):
        FAULTS["one core"].kernel(tmp_path)
    assert can("true") and not can("false") and not can("no-such-command")


def test_what_is_wrong_is_found():
    outcome = kernels.run(["1 / 0", "import sys; print('oh', file=sys.stderr)", "open('left', 'w').close()",
                           "print('the rest')", "import os; os._exit(1)", "print('no more')"])
    found = ["raised ZeroDivisionError: division by zero", "wrote to stderr: oh", "Kernel died", "left is left behind."]
    assert len(outcome.problems) == len(found)
    assert all(part in problem for part, problem in zip(found, outcome.problems, strict=True))
    assert "the rest" in outcome.text and "no more" not in outcome.text


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_whole_page(row):
    matrix.check(row)
