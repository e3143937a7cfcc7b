"""Binder: what binder/ asks for is what repo2docker reads, and pages fit into what a server there has.

The whole pages need an installation as repo2docker makes it, about 2.5 GB: `make test-all ROWS=binder`.
"""

import os
import re
import subprocess
import sys

import pytest

import environments
import faults
import kernels
import matrix
import pages

BINDER = pages.ROOT / "binder"
# https://repo2docker.readthedocs.io/en/latest/configuration/
READ_BY_REPO2DOCKER = {"environment.yml", "Pipfile", "Pipfile.lock", "requirements.txt", "setup.py", "Project.toml",
                       "REQUIRE", "install.R", "apt.txt", "DESCRIPTION", "postBuild", "start", "runtime.txt",
                       "default.nix", "Dockerfile"}


def test_the_folder_holds_only_what_repo2docker_reads():
    there = {path.name for path in BINDER.iterdir()}
    assert there <= READ_BY_REPO2DOCKER
    # Each of these would make repo2docker pass over requirements.txt, runtime.txt or both.
    assert not there & {"Dockerfile", "default.nix", "environment.yml", "Pipfile", "Pipfile.lock", "setup.py"}


def test_each_file_is_as_repo2docker_reads_it():
    script = BINDER / "postBuild"
    assert os.access(script, os.X_OK) and script.read_text().startswith("#!")
    assert re.fullmatch(r"python-3\.\d+\n", (BINDER / "runtime.txt").read_text())
    packages = (BINDER / "apt.txt").read_text().splitlines()
    assert packages and all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in packages)


def test_the_package_supports_its_python():
    assert environments.binder_python() in {recipe.python for recipe in environments.RECIPES.values()
                                            if recipe.install is environments.pinned}


def test_a_debian_package_that_is_not_there_is_named(monkeypatch, tmp_path):
    if not faults.can("dpkg-query", "--version"):
        pytest.skip("This is no Debian.")
    with pytest.raises(environments.Missing, match=r"names no-such-package.*sudo apt-get install no-such-package"):
        environments.need_debian(["no-such-package"])
    environments.need_debian(["dpkg"])


def limits():
    try:
        return faults.limited(matrix.LIMIT, cores=1)
    except environments.Missing as sentence:
        pytest.skip(str(sentence))


def test_two_gib_and_one_core_without_privileges():
    code = "import os; print(len(os.sched_getaffinity(0)))\nfor gib in (1, 2):\n    bytearray(gib * 2**30); print(gib)"
    done = subprocess.run([*limits(), sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "1"] and done.stderr.rstrip().endswith("MemoryError")


def test_a_page_knows_its_limits():
    seen = kernels.run(["from tutorial_helpers import machine; print(machine.cores(), machine.memory_free() / 2**30)"],
                       kernels.Kernel(prefix=limits()))
    cores, free = map(float, seen.text.split())
    assert seen.problems == [] and cores == 1 and 1 < free < 2


def test_the_readme_says_what_an_installation_takes():
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    line, = [line for line in text.splitlines() if "binder/" in line and " GB" in line]
    assert re.search(r"measured.* 20\d\d-\d\d-\d\d", line)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", matrix.chosen(["binder"]), ids=lambda row: row.name)
def test_a_whole_page(row):
    matrix.check(row)
