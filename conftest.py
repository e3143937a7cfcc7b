"""Pytest for the notebooks: nbval compares outputs; a cell that writes to stderr fails as well, compared or not."""

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    for output in getattr(item, "test_outputs", None) or []:
        if output.get("output_type") == "stream" and output.get("name") == "stderr":
            pytest.fail(f"the cell wrote to stderr: {output['text'][:500]}", pytrace=False)
    return result
