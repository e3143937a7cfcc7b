"""Fixtures for the helper package's tests."""

import numpy as np
import pytest

from tutorial_helpers import prepare

prepare()


@pytest.fixture(autouse=True)
def standard_size(monkeypatch):
    """The helpers are tested at their standard size, whatever size the notebooks are run with."""
    monkeypatch.delenv("TUTORIAL_HELPERS_SIZE", raising=False)


@pytest.fixture
def rng():
    """Random numbers that are the same in every run."""
    return np.random.default_rng(0)
