"""A report of a small collection that is made once, and a measurements file to change."""

import copy
import subprocess

import pytest
from stubs import BAD, FALL, HUGE, PLAIN, RUNGS, command, write


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A finished run with two good notebooks, a bad one and one that needs too much memory: what it said, and where."""
    folder = tmp_path_factory.mktemp("collection")
    for name, cells in {"01_rungs": RUNGS, "02_fall": FALL, "03_bad": BAD, "04_huge": HUGE}.items():
        write(folder, name, cells)
    run = subprocess.run(command("--folder", folder, "--out", folder / "out", "--size", "quick", "-p", "side", 40,
                                 "-p", "sise", 40, "--label", "A <b>machine</b>"), capture_output=True, text=True)
    run.out, run.folder = folder / "out", folder
    return run


@pytest.fixture
def plain():
    """The contents of a measurements file, to be changed freely."""
    return copy.deepcopy(PLAIN)


@pytest.fixture
def twice(plain):
    """The same machine with everything taking twice as long."""
    other = copy.deepcopy(plain)
    other["label"] = "B"
    for entry in other["measurements"]:
        for found in entry["cases"]:
            found["seconds"] *= 2
            found["interval"] = [2 * value for value in found["interval"]]
    return other
