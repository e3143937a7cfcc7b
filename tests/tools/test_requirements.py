"""The pinned versions: compiled from pyproject.toml, the same on Binder, and within the ranges everywhere."""

import re

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pages


def pins(name):
    lines = [line.split("#")[0].strip() for line in (pages.ROOT / name).read_text().splitlines()]
    return [Requirement(line) for line in lines if line]


def versions(requirements, python, system="linux", machine="x86_64"):
    """Name → exact version on one system."""
    environment = {**default_environment(), "python_version": python, "python_full_version": f"{python}.9",
                   "sys_platform": system, "platform_machine": machine}
    chosen = [pin for pin in requirements if pin.marker is None or pin.marker.evaluate(environment)]
    found = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in chosen}
    assert len(found) == len(chosen), "two versions of one package"
    return found


def ranges(extras, python, system="linux", machine="x86_64"):
    project = pages.project()
    environment = {**default_environment(), "python_version": python, "sys_platform": system,
                   "platform_machine": machine}
    lines = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    wanted = [Requirement(line) for line in lines]
    return [one for one in wanted if one.marker is None or one.marker.evaluate(environment)]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("system, machine", [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"),
                                             ("win32", "AMD64")])
def test_every_range_has_one_pin_within_it(python, system, machine):
    pinned = versions(pins("requirements.txt"), python, system, machine)
    for wanted in ranges(["notebooks", "lab", "run", "test"], python, system, machine):
        version = pinned[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version, prereleases=True), (wanted, version)


def test_only_exact_versions_and_no_trace_of_a_machine():
    for name in ("requirements.txt", "binder/requirements.txt"):
        assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pins(name))
        text = (pages.ROOT / name).read_text()
        assert "make requirements" in text.splitlines()[1]
        assert "file:" not in text and "index" not in text.split("\n", 3)[2] and not re.search(r"(^|\s)/\w", text)


def test_binder_is_small_and_has_the_same_versions():
    python = (pages.ROOT / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    everything, binder = (versions(pins(name), python) for name in ("requirements.txt", "binder/requirements.txt"))
    assert binder.items() <= everything.items()
    assert "tensorflow" not in binder and "playwright" not in binder and len(binder) < len(everything) * 0.6
    assert {canonicalize_name(wanted.name) for wanted in ranges(["notebooks"], python)} <= set(binder)


def test_colab_moves_no_version():
    """Installing the package on Colab must leave every version there as it is."""
    colab = {"ipython": "7.34.0", "ipywidgets": "7.7.1", "matplotlib": "3.10.0", "numpy": "2.1.3", "psutil": "5.9.5",
             "scipy": "1.16.3", "cython": "3.0.12", "jax": "0.7.2", "jaxlib": "0.7.2", "numba": "0.61.2",
             "tensorflow-cpu": "2.20.0", "ipykernel": "6.17.1"}
    for wanted in ranges(["notebooks"], "3.13"):
        name = canonicalize_name(wanted.name)
        assert name not in colab or wanted.specifier.contains(colab[name]), wanted
