"""What the exercises of page 00 claim about the clock is what the clock says."""

import functools

import numpy as np

from tutorial_helpers import measure
from tutorial_helpers.exercises import page_00


def test_the_clock_agrees_with_the_diagnosis():
    import jax
    space = {"np": np, "jax": jax, "jnp": jax.numpy, "measure": functools.partial(measure, budget=0.02)}
    exec(page_00._FIVE, space)
    for letter, word in page_00._KEY.items():
        kinds = {caveat.kind for caveat in space[letter]().caveats} & set(page_00._WORDS)
        assert kinds == ({word} - {"honest"}), letter
