"""Pytest for the notebooks: nbval compares outputs; a cell that writes to stderr fails as well, compared or not."""

import os
import tempfile

import pytest


def pytest_configure(config):
    """Whatever is tested, and every kernel that a test starts, keeps a progress of its own, not the user's."""
    held = tempfile.TemporaryDirectory(prefix="progress-")
    os.environ["TUTORIAL_HELPERS_DATA"] = os.path.join(held.name, "tutorial_helpers")
    config.add_cleanup(held.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    for output in getattr(item, "test_outputs", None) or []:
        if output.get("output_type") == "stream" and output.get("name") == "stderr":
            pytest.fail(f"the cell wrote to stderr: {output['text'][:500]}", pytrace=False)
    return result
