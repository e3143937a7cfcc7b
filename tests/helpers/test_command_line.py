"""python -m tutorial_helpers: list, and run with its failures, parameters and memory."""

import os
import subprocess
import sys

import nbformat
import pytest
from click.testing import CliRunner

from tutorial_helpers.__main__ import main
from tutorial_helpers.collection import pages, read_page, run_page
from tutorial_helpers.report.command import parsed

OPENING = "# Good page\n\n**You need** patience.\\\n**Minutes** 7"
GOOD = [OPENING, "size = 3", "import os; print(size * 2, os.listdir())"]


def write(folder, name, cells):
    """A notebook with a title, a parameters cell and code."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_markdown_cell(cells[0])] + [nbformat.v4.new_code_cell(code) for code in cells[1:]]
    notebook.cells[1].metadata.tags = ["parameters"]
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "00_good", GOOD)
    write(tmp_path, "01_bad", ["# Bad page", "other = 1", "import warnings; warnings.warn('hm')", "1 / 0"])
    write(tmp_path, "02_also_good", GOOD)
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_list(folder):
    lines = call("list", "--folder", folder).output.splitlines()
    assert [line.split()[0] for line in lines] == ["00_good", "01_bad", "02_also_good"]
    assert "7 min" in lines[0] and lines[0].endswith("Good page")
    assert read_page(folder / "00_good.ipynb").needs == "patience."


def test_a_failing_notebook_is_named_and_stops_nothing(folder):
    command = [sys.executable, "-m", "tutorial_helpers", "run", "--folder", folder, "--out", folder / "out"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["00_good", "01_bad", "02_also_good"]
    assert "code cell 3 raised ZeroDivisionError: division by zero" in lines[1]
    assert run.stderr.splitlines()[-1].startswith("1 of 3 notebooks failed: 01_bad.")
    assert "Warning" not in run.stderr and "Traceback" not in run.stderr
    assert {path.name for path in (folder / "out").iterdir()} == {"00_good.ipynb", "01_bad.ipynb", "02_also_good.ipynb"}


def test_each_runs_in_an_empty_folder_with_its_parameters(folder):
    result = call("run", "00", "-p", "size", "21", "--folder", folder, "--out", folder / "out")
    assert result.exit_code == 0, result.output
    assert "All 1 notebooks ran to the end" in result.output
    executed = nbformat.read(folder / "out" / "00_good.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text == "42 []\n"


def test_refusals_are_one_sentence(folder):
    result = call("run", "07", "--folder", folder, "--out", folder / "out")
    assert result.exit_code == 1
    assert result.output.strip() == "Error: No notebook starts with '07'; there are 00_good, 01_bad, 02_also_good."


def test_a_parameter_that_no_notebook_has_is_named_and_the_rest_runs(folder):
    result = call("run", "00", "-p", "sise", "3", "--folder", folder, "--out", folder / "out")
    assert result.exit_code == 1
    assert result.output.startswith("No chosen notebook has a parameter 'sise', so it is left out; there is size.")
    assert (folder / "out" / "00_good.ipynb").exists()


def test_no_notebooks_at_all(tmp_path):
    result = call("list", "--folder", tmp_path / "nowhere")
    assert result.exit_code == 1 and "holds no notebooks" in result.output


def test_memory_counts_the_kernel_and_its_children(tmp_path):
    hold = "import time; x = b'1' * 300_000_000; time.sleep(1)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    write(tmp_path, "00_big", ["# Big", "size = 1", start])
    (tmp_path / "out").mkdir()
    result = run_page(pages(tmp_path)[0], tmp_path / "out")
    assert result.error is None
    assert 300e6 < result.memory < 1e9
    assert result.seconds > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_just_forked_does_not_count_twice():
    hold = "import os, time; x = b'1' * 300_000_000; os.fork() or time.sleep(1) or os._exit(0); time.sleep(1)"
    code = f"""if True:
        import subprocess, sys
        from tutorial_helpers import collection
        with collection.PeakMemory() as memory:
            subprocess.run([sys.executable, "-c", {hold!r}], check=True)
        print(memory.peak)
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 300e6 < int(run.stdout) < 500e6


def test_what_takes_the_last_memory_is_ended():
    code = """if True:
        import subprocess, sys
        from tutorial_helpers import collection
        collection.memory_free = lambda: 0
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        with collection.PeakMemory() as memory:
            print(child.wait(timeout=30) != 0, memory.ran_out, collection._too_large(memory))
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.startswith("True True It held 0.0 GiB when it was stopped: choose a smaller"), run.stderr


def test_a_cell_that_takes_too_long_and_a_kernel_that_dies(tmp_path):
    write(tmp_path, "00_slow", ["# Slow", "size = 1", "import time; time.sleep(60)"])
    write(tmp_path, "01_dead", ["# Dead", "size = 1", "import os; os._exit(1)"])
    slow, dead = (run_page(page, tmp_path, timeout=2) for page in pages(tmp_path))
    assert "timed out" in slow.error and slow.seconds < 30
    assert "died" in dead.error.lower()


@pytest.mark.parametrize("text, value", [("3", 3), ("1e-3", 1e-3), ("false", False), ("[1]", [1]), ("sin", "sin")])
def test_parameter_values(text, value):
    assert parsed(text) == value
