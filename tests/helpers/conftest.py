"""Fixtures for the helper package's tests."""

import numpy as np
import pytest

from tutorial_helpers import prepare

prepare()


@pytest.fixture
def rng():
    """Random numbers that are the same in every run."""
    return np.random.default_rng(0)
