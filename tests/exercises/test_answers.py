"""Every exercise against answers that learners would give: answers_NN.py lists wrong and right ones.

A wrong answer must get its own sentence, a right one must pass however it is written, and the untouched starter must
count as not attempted.
"""

import importlib.util
import linecache
import re
from pathlib import Path

import pytest

from tutorial_helpers.exercises import catalogue, exercise, trial

HERE = Path(__file__).parent


def answers(page):
    path = HERE / f"answers_{page}.py"
    spec = importlib.util.spec_from_file_location(f"answers_{page}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = {path.stem.removeprefix("answers_"): answers(path.stem.removeprefix("answers_"))
         for path in sorted(HERE.glob("answers_*.py"))}
ALL = [entry.id for entry in catalogue()]


@pytest.fixture(autouse=True)
def few_seconds(monkeypatch, tmp_path):
    """A loop without end costs its limit, so keep that short; measure briefly; keep nobody's progress."""
    monkeypatch.setattr(trial, "CALL_LIMIT", 4.0)
    monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", "quick")
    monkeypatch.setenv("TUTORIAL_HELPERS_DATA", str(tmp_path))


def checked(id, source):
    """The Feedback that a cell with this source, and the check after it, would get."""
    ex = exercise(id)
    for name in ex.needs:
        pytest.importorskip(name)
    import jax
    import numpy as np
    space = {"__name__": "__main__", "np": np, "jax": jax, "jnp": jax.numpy}
    file = f"<answer to {id} {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec", dont_inherit=True), space)
    feedback = ex.check(space[ex.answer])
    assert feedback.error is None, f"the check itself failed: {feedback.error!r}\n{source}"
    return feedback


@pytest.mark.parametrize("id", ALL)
def test_each_wrong_answer_gets_its_own_sentence(id):
    wrong = PAGES[id[:2]].WRONG[id]
    assert len(wrong) >= 4
    sentences = []
    for source, fragment in wrong:
        feedback = checked(id, source)
        assert feedback.passed is False, f"{feedback}\n{source}"
        assert fragment in feedback.sentence, f"{feedback.sentence}\n{source}"
        assert "Traceback" not in str(feedback) and "\n" not in feedback.sentence
        sentences.append(feedback.sentence)
    assert len(set(sentences)) >= 4, sentences


@pytest.mark.parametrize("id", ALL)
def test_right_answers_pass_however_they_are_written(id):
    right = PAGES[id[:2]].RIGHT[id]
    assert len(right) >= 2
    for source in [exercise(id).reference, *right]:
        feedback = checked(id, source)
        assert feedback.passed is True, f"{feedback}\n{source}"


@pytest.mark.parametrize("id", ALL)
def test_an_untouched_starter_is_not_attempted(id):
    feedback = checked(id, exercise(id).starter)
    assert feedback.passed is None and "Not attempted" in feedback.sentence


def test_each_entry_is_complete():
    assert len(ALL) == len(set(ALL))
    for entry in catalogue():
        assert entry.task and entry.explanation and entry.title, entry.id
        assert entry.answer in entry.starter and re.search(r"\.\.\.|return ", entry.starter), entry.id


def test_no_answers_are_left_over():
    for page, module in PAGES.items():
        ids = {id for id in ALL if id[:2] == page}
        assert set(module.WRONG) == ids and set(module.RIGHT) == ids
