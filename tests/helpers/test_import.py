"""Importing the package is instant, silent and without side effects."""

import subprocess
import sys
from importlib.metadata import version

import tutorial_helpers

CODE = """
import os, sys, time
before = dict(os.environ)
start = time.perf_counter()
import tutorial_helpers
seconds = time.perf_counter() - start
heavy = ("jax", "jaxlib", "tensorflow", "torch", "numba", "Cython", "matplotlib.pyplot")
print(seconds, [name for name in heavy if name in sys.modules], dict(os.environ) == before)
"""


def fresh_import():
    run = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert len(run.stdout.splitlines()) == 1
    return run.stdout.split(maxsplit=1)


def test_import_is_instant_silent_and_changes_nothing():
    runs = [fresh_import() for _ in range(3)]
    assert min(float(seconds) for seconds, _ in runs) < 0.3
    assert {rest.strip() for _, rest in runs} == {"[] True"}


def test_one_version():
    assert tutorial_helpers.__version__ == version("tutorial-helpers")


def test_every_public_name_exists():
    assert [name for name in tutorial_helpers.__all__ if not hasattr(tutorial_helpers, name)] == []
