"""Finished measurements and verdicts are recorded where that was asked for, and nowhere else."""

import json

import pytest

from tutorial_helpers import Case, compare, judge, measure, sweep
from tutorial_helpers.recording import VARIABLE


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Ask for a record; returns a function that reads it."""
    path = tmp_path / "lines"
    monkeypatch.setenv(VARIABLE, str(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_nothing_is_recorded_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    measure(sum, [1, 2], budget=0.01)
    judge("S09", "holds", "It took 3 ms.")
    assert list(tmp_path.iterdir()) == []


def test_each_measurement_is_one_line(record):
    both = compare(Case("a", sum, [1, 2]), Case("b", lambda x: sum(x) + 0, [1, 2]), budget=0.02)
    alone = measure(sum, [1, 2], name="alone", budget=0.01)
    compared, measured = record()
    assert [compared["kind"], measured["kind"]] == ["compare", "measure"]
    first, second = compared["points"][0]["cases"]
    assert [first["label"], second["label"]] == ["a", "b"] and "first_over_this" not in first
    assert first["seconds"] == pytest.approx(both["a"].steady, rel=1e-4)
    assert first["interval"] == pytest.approx(both["a"].interval, rel=1e-4)
    assert second["first_over_this"] == pytest.approx(both.ratio("a", "b"), rel=1e-4)
    assert measured["points"][0]["cases"][0]["first_call"] == pytest.approx(alone.first_call, rel=1e-4)
    assert "samples" not in str(compared) and compared["cell"] is None


def test_a_sweep_is_recorded_once_and_with_its_sizes(record):
    import numpy as np

    sweep(lambda n: [Case("a", np.sin, np.ones(n))], np.array([10, 20]), budget=0.01)
    line, = record()
    assert line["kind"] == "sweep" and [point["size"] for point in line["points"]] == [10, 20]
    assert [point["cases"][0]["argument_bytes"] for point in line["points"]] == [80, 160]


def test_a_comparison_within_a_measured_function_is_not_recorded_apart(record):
    measure(lambda: compare(Case("inner", sum, [1]), budget=0.001), name="outer", budget=0.001)
    assert [line["points"][0]["cases"][0]["label"] for line in record()] == ["outer"]


def test_caveats_verdicts_and_order(record):
    measure(lambda: (i for i in "abc"), budget=0.01)
    judge("S09", "depends", "It took  3 ms.")
    measured, judged = record()
    found = measured["points"][0]["cases"][0]["caveats"]
    assert found[0]["kind"] == "nothing-to-wait-for" and len(found[0]["sentence"]) > 20
    assert judged == {"kind": "claim", "id": "S09", "verdict": "depends", "evidence": "It took 3 ms.", "cell": None}


def test_a_failed_measurement_leaves_no_line_and_the_next_one_does(record):
    with pytest.raises(RuntimeError):
        measure(lambda: 1 / 0, budget=0.01)
    measure(sum, [1, 2], budget=0.01)
    assert len(record()) == 1


def test_a_record_that_cannot_be_written_does_not_stop_the_lesson(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing" / "lines"))
    assert measure(sum, [1, 2], budget=0.01).steady > 0
    assert "could not be written" in capsys.readouterr().err
