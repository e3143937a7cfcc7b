"""python -m tutorial_helpers doctor --trial: ready, or what to do about each fault, with the exit status to match."""

import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from tutorial_helpers import readiness
from tutorial_helpers.__main__ import main
from tutorial_helpers.collection import pages

GOOD = ["import os; assert os.environ['TUTORIAL_HELPERS_SIZE'] == 'quick' and not os.listdir()", "1 + 1"]


@pytest.fixture
def folder(tmp_path):
    """Write a first page with these code cells; the folder."""

    def write(*cells):
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_markdown_cell("# A page"), *map(nbformat.v4.new_code_cell, cells)]
        nbformat.write(notebook, tmp_path / "00_stub.ipynb")
        return tmp_path

    return write


@pytest.fixture
def roomy(monkeypatch):
    """Enough of everything, whatever machine runs the test."""
    monkeypatch.setattr(readiness.machine, "memory_free", lambda: 8 * 2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**40))
    monkeypatch.setattr(readiness.check_disk, "__defaults__", (lambda folder: SimpleNamespace(free=2**40),))


def call(folder):
    return CliRunner().invoke(main, ["doctor", "--trial", "--folder", str(folder)])


def test_ready(folder, roomy):
    result = call(folder(*GOOD))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[-1] == "ready"
    assert re.fullmatch(r"ok Trial run +\d+ s, \d+ MiB at most", lines[-2])
    assert any(line.startswith("ok jax ") for line in lines) and not any(line.startswith("!!") for line in lines)


def test_a_trial_that_fails(folder, roomy):
    result = call(folder("1 + 1", "raise ValueError('odd\\nindeed')"))
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "not ready: code cell 2 of 00_stub raised ValueError: odd."


def test_a_trial_that_does_not_end_and_one_whose_kernel_dies(folder):
    slow = readiness.trial(pages(folder("import time; time.sleep(60)"))[0], limit=2)
    assert slow.problem.startswith("00_stub was not done after 2 seconds (code cell 1)")
    dead = readiness.trial(pages(folder("1 + 1", "import os; os._exit(1)"))[0])
    assert dead.problem.startswith("00_stub ended at code cell 2:") and "\n" not in dead.problem


def test_faults_are_all_named_and_the_trial_waits(folder, roomy, monkeypatch):
    def version_of(name):
        return None if name == "jax" else "1.0" if name == "numpy" else readiness.installed(name)

    monkeypatch.setattr(readiness.check_libraries, "__defaults__", (version_of,))
    monkeypatch.setattr(readiness, "trial", lambda *_, **__: pytest.fail("it should wait"))
    result = call(folder(*GOOD))
    assert result.exit_code == 1
    last = result.output.splitlines()[-1]
    assert last.startswith("not ready: ") and 'jax is missing: python' in last and '-m pip install "jax>=' in last
    assert "numpy 1.0 does not fit" in last
    assert "!! jax            missing" in result.output


def test_no_pages(tmp_path, roomy):
    result = call(tmp_path)
    assert result.exit_code == 1
    assert "holds no notebooks" in result.output.splitlines()[-1]


def test_a_damaged_page(tmp_path, roomy):
    page = tmp_path / "00_stub.ipynb"
    page.write_text('{"cells": [')
    assert call(tmp_path).output.splitlines()[-1] == f"not ready: {page} is not a notebook. Fetch the notebooks anew."
    page.write_text('{"nbformat": 4, "nbformat_minor": 5, "cells": [{"cell_type": "code", "source": ""}]}')
    assert call(tmp_path).output.splitlines()[-1] == f"not ready: {page} is not a notebook. Fetch the notebooks anew."


@pytest.mark.parametrize("version, fine", [("3.10.14", False), ("3.11.0", True), ("3.13.9", True),
                                           ("3.14.0rc1", False)])
def test_python(version, fine):
    problem = readiness.check_python(version).problem
    assert (problem == "") is fine
    assert fine or (f"Python {version} will not do" in problem and ">=3.11" in problem)


def test_disk_and_memory():
    assert "make room" in readiness.check_disk(lambda folder: SimpleNamespace(free=10**8)).problem
    assert not readiness.check_disk(lambda folder: SimpleNamespace(free=10**10)).problem
    assert "0.5 GiB of memory free" in readiness.check_memory(2**29).problem
    assert not readiness.check_memory(2**32).problem


@pytest.mark.parametrize("line, version, problem", [
    ("jax>=0.7; extra == 'notebooks'", None, "jax is missing"),
    ("jax>=0.7; extra == 'notebooks'", "0.4.30", "jax 0.4.30 does not fit"),
    ("jax>=0.7; extra == 'notebooks'", "0.8.0rc1", ""),
    ("tensorflow-cpu>=2.20; extra == 'notebooks'", None, ""),
    ("tensorflow-cpu>=2.20; extra == 'notebooks'", "2.15", "tensorflow 2.15 does not fit"),
    ("numpy>=1.26", None, "numpy is missing")])
def test_one_library(line, version, problem):
    check = readiness.check_library(Requirement(line), version)
    assert check.problem.startswith(problem) and bool(check.problem) is bool(problem)
    assert check.problem or version or "will be missing" in check.finding


def test_a_compiler_that_is_missing_or_broken(monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'x.c:1:10: fatal error: math.h: No such file or directory' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    assert "cannot build (x.c:1:10: fatal error: math.h" in readiness.check_compiler().problem
    monkeypatch.setattr(readiness.machine, "compiler", lambda: None)
    none = readiness.check_compiler()
    assert not none.problem and none.finding.startswith("none: page 01 skips")


def test_a_kernel_that_is_another_python():
    def specs(*argv):
        return SimpleNamespace(get_kernel_spec=lambda name: SimpleNamespace(argv=argv))

    assert not readiness.check_kernel().problem
    assert not readiness.check_kernel(specs("python")).problem
    assert "kernelspec remove python3" in readiness.check_kernel(specs("/opt/old/bin/python3")).problem
