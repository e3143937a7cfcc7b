"""make test-all: which rows there are, what is kept, and what the table says; on a small project of its own."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import click
import nbformat
import pytest
from click.testing import CliRunner

import build_notebooks
import environments
import matrix
import pages
from environments import Missing


def test_every_page_runs_everywhere():
    rows = {row.name for row in matrix.rows()}
    for stem in [path.stem for path in pages.notebooks()]:
        assert {f"{place}/{stem}" for place in environments.RECIPES} <= rows
        assert f"faults/HOME-read-only/{stem}" in rows
    assert {"3.11/tests", "3.12/tests", "3.13/tests", "lowest/tests"} <= rows and "colab/tests" not in rows
    assert "faults/no-gcc/01_interpreter_vs_compiler" in rows and "faults/no-gcc/00_start_here" not in rows
    requires = pages.project()["requires-python"]
    assert requires == ">=3.11,<3.14" and environments.RECIPES["lowest"].python == "3.11"


def test_rows_are_chosen_by_the_start_of_their_names():
    assert {row.place for row in matrix.chosen(["colab", "binder/00"])} == {"colab", "binder"}
    assert [row.task for row in matrix.chosen(["binder/00"])] == ["00_start_here"]
    assert matrix.chosen([]) == matrix.rows()
    with pytest.raises(click.ClickException, match=r"'mars'; they start with 3\.11, .*colab.*faults\."):
        matrix.chosen(["mars"])


@pytest.mark.parametrize("version, digits", [("3.11", (3, 11)), (".".join(map(str, sys.version_info[:2])), None)])
def test_an_interpreter_is_one_that_starts(version, digits):
    try:
        assert environments.version_of(environments.interpreter(version)) == (digits or tuple(sys.version_info[:2]))
    except Missing as sentence:
        assert version == "3.11" and "There is no Python 3.11 here" in str(sentence)


def test_a_stand_in_without_a_python_is_passed_over(tmp_path, monkeypatch):
    stand_in = tmp_path / "python3.9"
    stand_in.write_text("#!/bin/sh\nexit 127\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(environments, "candidates", lambda version: [str(stand_in), str(tmp_path / "none")])
    with pytest.raises(Missing, match=r"There is no Python 3\.9 here: install it"):
        environments.interpreter("3.9")


def test_only_requirements_count_for_what_is_installed(project):
    recipe = environments.RECIPES["newest"]
    before, toml = recipe.digest(project), project / "pyproject.toml"
    toml.write_text(toml.read_text().replace("line-length = 120", "line-length = 100"))
    assert recipe.digest(project) == before
    toml.write_text(toml.read_text().replace('"numpy>=2.0"', '"numpy>=2.1"'))
    assert recipe.digest(project) != before


# ---------------------------------------------------------------------------------------------------------------------
# Rows that run


@pytest.fixture
def tried(project, page, tmp_path, monkeypatch):
    """Try a page with the given code in a place whose environment is this one; `matrix` is what tries it."""
    here = Path(sys.prefix)
    monkeypatch.setattr(matrix, "tidy", lambda folder, versions: None)  # nothing is to be removed from here
    for name in ("conftest.py", "requirements.txt", str(environments.CONSTRAINTS)):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pages.ROOT / name, project / name)
    made = matrix.Matrix(project, tmp_path / "matrix", say=lambda text: None)
    monkeypatch.setattr(made, "environment", lambda name: here)
    known = {"versions": environments.freeze(here)}
    made._ready = {"colab": known, "binder": known}
    monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", "quick")

    def attempt(code, place, output=None, afresh=False):
        text = page(code)
        notebook = build_notebooks.convert(text)
        for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
            cell.execution_count = number + 1
        notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text=output)] if output else []
        pages.write_notebook(notebook, pages.built(text))
        return made.run(matrix.Row(place, text.stem), afresh)

    attempt.matrix = made
    return attempt


def test_a_page_alone_within_limits(tried):
    code = ("import os, resource; print(os.listdir(), size)\n"
            "print(len(os.sched_getaffinity(0)), resource.getrlimit(resource.RLIMIT_DATA)[0])")
    output = f"['90_stub.ipynb'] 3\n1 {matrix.LIMIT}\n"
    good = tried(code, "binder", output)
    if good.state == "not run":
        pytest.skip(good.said[0])
    assert (good.state, good.said) == ("passed", [])
    assert good.seconds > 0 and good.memory > 2**24 and good.size == "quick"
    kept = tried(code, "binder", output)
    assert kept == good and kept is not good


def test_what_fails_alone(tried):
    cells = ["1 / 0", ":tags: [nbval-ignore-output]\nimport sys; print('oh', file=sys.stderr)",
             "open('left', 'w').close()\nprint(size)"]
    result = tried("\n```\n\n```{code-cell} ipython3\n".join(cells), "colab", "4\n")
    ends = ["ZeroDivisionError: division by zero", "the cell wrote to stderr: oh", r"'4\n' == '3\n'",
            "left is left behind."]
    assert result.state == "failed" and len(result.said) == len(ends)
    assert "90_stub.ipynb::Cell 2" in result.said[0]
    assert [end for said, end in zip(result.said, ends, strict=True) if not said.endswith(end)] == []


def test_a_page_as_make_test_runs_it(tried):
    result = tried("print(size)", "3.12", "4\n")
    assert result.state == "failed" and "Cell 2" in result.said[0]


def test_a_page_with_a_fault(tried):
    failed = tried("size.count", "Run All twice")
    assert failed.state == "failed" and len(failed.said) == 2, "once in each run"
    assert tried("size", "Run All twice").state == "passed"


def test_an_environment_is_tidied_after_each_page(tmp_path, monkeypatch):
    there = {"numpy": "2.1.3", "py-cpuinfo": "9.0.0"}
    removed = []

    def call(*command, **options):
        removed.extend(command[command.index("--yes") + 1:])
        for name in removed:
            there.pop(name, None)

    monkeypatch.setattr(environments, "freeze", lambda folder: dict(there))
    monkeypatch.setattr(environments, "call", call)
    matrix.tidy(tmp_path, {"numpy": "2.1.3"})
    assert removed == ["py-cpuinfo"]
    (tmp_path / "stamp.json").touch()
    with pytest.raises(RuntimeError, match="made anew next time"):
        matrix.tidy(tmp_path, {"numpy": "2.0.0"})
    assert not (tmp_path / "stamp.json").exists()


def test_what_cannot_run_is_said_and_asked_for_once(tried, monkeypatch):
    asked = []

    def ready(recipe, *arguments):
        asked.append(recipe.name)
        raise Missing("There is no Python 3.13 here: install it.")

    monkeypatch.setattr(environments, "ready", ready)
    bare = matrix.Matrix(tried.matrix.root, tried.matrix.folder)
    tried("size", "Run All twice")
    results = [bare.run(matrix.Row("colab", "90_stub")) for _ in range(2)]
    assert [result.state for result in results] == ["not run"] * 2 and asked == ["colab"]
    assert matrix.line(results[0]).endswith("not run: There is no Python 3.13 here: install it.")


def test_the_table():
    results = [matrix.Result("colab", "00_start_here", "passed", 12.4, 700 * 2**20),
               matrix.Result("no gcc", "01_x", "failed", 3.0, 2**20, ["Cell 3 said a|b.", "Cell 4."])]
    known = {"colab": {"python": "3.13.0", "bytes": 2.5e9, "seconds": 33.6, "date": "2026-01-01"}}
    lines = matrix.table(results, known).splitlines()
    assert lines[2] == "| colab | 00_start_here | 12 | 700 | passed |"
    assert lines[3] == "| no gcc | 01_x | 3 | 1 | failed: Cell 3 said a\\|b. |"
    assert lines[-1] == "- colab: Google Colab's versions; Python 3.13.0, 2.5 GB, installed in 34 s (2026-01-01)"
    said = "no gcc 01_x 3 s 1 MiB failed: Cell 3 said a|b. (and 1 more)"
    assert " ".join(matrix.line(results[1]).split()) == said
    assert json.loads(json.dumps(dataclasses.asdict(results[1])))["said"] == results[1].said


def test_the_command_line_lists_and_refuses():
    runner = CliRunner()
    assert runner.invoke(matrix.main, ["--list", "faults/one-core/00"]).output == "faults/one-core/00_start_here\n"
    refused = runner.invoke(matrix.main, ["mars"])
    assert refused.exit_code == 1 and "No row starts with 'mars'" in refused.output
