"""The GitHub workflow: it cannot run here, so its form is checked, and that what it calls is there."""

import subprocess
import sys

import pytest
from ruamel.yaml import YAML

import matrix
import pages

WORKFLOW = pages.ROOT / ".github" / "workflows" / "tests.yml"


@pytest.fixture(scope="module")
def jobs():
    return YAML(typ="safe").load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]


def valid(path):
    """Whether the schema for workflows, which check-jsonschema brings along, admits this file."""
    return subprocess.run([sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows",
                           str(path)], capture_output=True).returncode == 0


def test_its_form(tmp_path):
    assert valid(WORKFLOW)
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOW.read_text().replace("runs-on:", "run-on:", 1))
    assert not valid(broken)


def test_every_row_has_its_job(jobs):
    said = [entry["rows"] for entry in jobs["linux"]["strategy"]["matrix"]["include"]]
    assert {row.name for row in matrix.chosen(said)} == {row.name for row in matrix.rows()}


def test_each_system_runs_the_pages_that_it_should(jobs):
    assert {job["runs-on"].split("-")[0] for job in jobs.values()} == {"ubuntu", "macos", "windows"}
    for name in ("macos", "windows"):
        commands = " ".join(step.get("run", "") for step in jobs[name]["steps"])
        assert "tests/helpers" in commands and "notebooks/0[0-4]_*.ipynb" in commands


def test_windows_installs_as_the_readme_says(jobs):
    readme = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    install = next(step["run"] for step in jobs["windows"]["steps"] if "pip install" in step.get("run", ""))
    assert install.removeprefix("python ") in readme
