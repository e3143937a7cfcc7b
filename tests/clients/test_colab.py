"""Google Colab's versions, and the newest ones: a page alone installs the helpers, moves no version, runs to the end.

The whole pages need environments of 2.5 GB each: `make test-all ROWS="colab newest"`.
"""

import functools
import http.server
import importlib.metadata
import json
import re
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import environments
import faults
import kernels
import matrix
import pages

CONSTRAINTS = pages.ROOT / environments.CONSTRAINTS


def constraints():
    """Name → the version that Colab preinstalls."""
    lines = [line for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_the_versions_have_a_date():
    first = CONSTRAINTS.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("#") and re.search(r"\b20\d\d-\d\d-\d\d\b", first)
    assert environments.RECIPES["colab"].python in first


def test_the_package_admits_what_colab_has():
    project, there = pages.project(), constraints()
    wanted = [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["notebooks"]]
    assert [str(one) for one in wanted
            if (name := canonicalize_name(one.name)) in there and not one.specifier.contains(there[name])] == []
    assert {"jax", "jaxlib", "tensorflow-cpu", "numpy", "numba", "cython", "ipywidgets", "ipython"} <= set(there)


# ---------------------------------------------------------------------------------------------------------------------
# The first cell, without a network: the helpers' requirements are there, and what builds the package is as well


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A kernel of an environment that has everything but the helper package."""
    python = faults.without(tmp_path_factory.mktemp("bare"), "tutorial_helpers")
    return functools.partial(kernels.Kernel, python)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The checkout packed as a public address serves it: one folder in a zip file."""
    path = tmp_path_factory.mktemp("archive") / "v0.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            packed.write(pages.ROOT / name, f"repo-0/{name}")
        for file in sorted((pages.ROOT / "src").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, f"repo-0/{file.relative_to(pages.ROOT)}")
    return path


@pytest.fixture
def address(archive):
    """The archive's address on a server of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=archive.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{archive.name}"
        server.shutdown()


@pytest.mark.parametrize("source", ["folder", "address"])
def test_the_first_cell_installs_from(source, bare, archive, address, tmp_path):
    if source == "folder":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(tmp_path)
    settings = {"TUTORIAL_HELPERS_SOURCE": str(tmp_path / "repo-0") if source == "folder" else address,
                "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    remove = "subprocess.run([sys.executable, '-m', 'pip', 'uninstall', '-qy', 'tutorial-helpers']).returncode"
    seen = kernels.run(["import importlib.util; print(importlib.util.find_spec('tutorial_helpers'))",
                        pages.first_cell(), "import tutorial_helpers; print(tutorial_helpers.__file__)", remove],
                       bare(environment=settings))
    assert seen.problems == []
    assert kernels.text_of(seen.cells[0]) == "None\n"
    assert Path(kernels.text_of(seen.cells[2]).strip()).is_relative_to(Path(bare().python).parent.parent)


# ---------------------------------------------------------------------------------------------------------------------
# What an installation must not do


@pytest.mark.parametrize("after, said", [
    ({"numpy": "2.1.3", "jax": "0.7.2", "tutorial-helpers": "0.1.0", "small": "1"}, []),
    ({"numpy": "2.4.0", "jax": "0.7.2"}, ["numpy went from 2.1.3 to 2.4.0."]),
    ({"jax": "0.7.2"}, ["numpy went from 2.1.3 to nothing."]),
    ({"numpy": "2.1.3", "jax": "0.7.2", "large": "1"}, ["large was installed and is not small and pure Python."]),
])
def test_what_an_installation_must_not_do(monkeypatch, after, said):
    monkeypatch.setattr(environments, "small_and_pure", lambda folder, name: name == "small")
    assert matrix.changes({"numpy": "2.1.3", "jax": "0.7.2"}, after, None) == said


def test_small_and_pure():
    here = Path(sys.prefix)
    assert environments.small_and_pure(here, "py-cpuinfo")
    assert not environments.small_and_pure(here, "numpy"), "compiled"
    assert not environments.small_and_pure(here, "jax"), "pure, but large"


def test_what_is_installed_here():
    there = environments.freeze(Path(sys.prefix))
    assert there["numpy"] == importlib.metadata.version("numpy") and "tutorial-helpers" in there
    assert json.loads(json.dumps(there)) == there


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", matrix.chosen(["colab", "newest"]), ids=lambda row: row.name)
def test_a_whole_page(row):
    matrix.check(row)
