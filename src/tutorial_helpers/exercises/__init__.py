"""The exercises: one file per notebook, each entry with task, hints, reference solution and check."""

import difflib
import functools
import pkgutil
from importlib import import_module

__all__ = ["LEVELS", "PAGES", "catalogue", "exercise"]

LEVELS = {"read": "read a result", "write": "write code", "speed": "make it faster"}
PAGES = {"00": "Start here", "01": "Interpreter, compiler", "02": "NumPy, JAX", "03": "jit, tf.function",
         "04": "Autograd", "05": "Other frameworks"}


def exercise(id):
    """The exercise with this id, such as "02.3": the notebook's number and the exercise's.

    Raises ValueError for an unknown id, with the ids nearest to it.
    """
    page = str(id).split(".")[0]
    if page in _pages():
        for found in _of_page(page):
            if found.id == id:
                return found
    known = [entry.id for entry in catalogue()]
    near = [name for name in known if name.split(".")[0] == page] or difflib.get_close_matches(str(id), known, 5, 0.3)
    raise ValueError(f"There is no exercise {id!r}; near it there are: {', '.join(near or known) or 'none'}.")


def catalogue():
    """Every exercise, in the order of the notebooks."""
    return [entry for page in _pages() for entry in _of_page(page)]


@functools.cache
def _pages():
    return sorted(module.name.removeprefix("page_") for module in pkgutil.iter_modules(__path__)
                  if module.name.startswith("page_"))


@functools.cache
def _of_page(page):
    return tuple(import_module(f".page_{page}", __name__).EXERCISES)
