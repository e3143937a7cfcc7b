"""How far a run is, and how long it will take."""

import io

import pytest

from tutorial_helpers.collection import Page
from tutorial_helpers.machine import SIZES
from tutorial_helpers.report.pace import Pace, expected_cells, minutes


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_the_estimate_follows_what_was_seen(clock):
    pace = Pace({"a": [10.0] * 10, "b": [10.0] * 10}, io.StringIO(), clock)
    pace.start("a")
    assert pace.remaining() == pytest.approx(200)
    for index in range(1, 10):
        clock.now += 20  # everything takes twice as long as expected
        pace.cell(index)
    clock.now += 20
    pace.done()
    assert 160 < pace.remaining() < 200
    pace.start("b")
    clock.now += 500  # a cell that takes ever longer never makes it negative
    assert pace.remaining() >= 0


def test_a_terminal_shows_one_line_with_notebook_cell_and_times(clock):
    out = Terminal()
    pace = Pace({"a": [1.0, 1.0], "b": [1.0] * 3}, out, clock)
    pace.start("a")
    pace.done()
    clock.now = 75
    pace.start("b")
    pace.cell(1)
    pace.close()
    assert "b (2 of 2), cell 2 of 3" in out.getvalue() and "1:15 gone, about 0:" in out.getvalue()
    assert "\n" not in out.getvalue().strip()


def test_without_a_terminal_lines_are_few(clock):
    out = io.StringIO()
    pace = Pace({"a": [1.0] * 100}, out, clock)
    pace.start("a")
    for index in range(100):
        clock.now += 0.5
        pace.cell(index)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2 and lines[0] == "a (1 of 1), cell 1 of 100, 0:00 gone, about 1:40 left"


def test_what_a_page_is_expected_to_take():
    page = Page(None, "", None, "", cells=(None, False, True))
    quick, large = (sum(expected_cells(page, SIZES[name])) for name in ("quick", "large"))
    assert 0 < quick < large
    assert expected_cells(page, SIZES["quick"], [1, 2, 3]) == [1, 2, 3]
    assert expected_cells(page, SIZES["quick"], [1, 2]) != [1, 2], "the page has changed since"
    assert minutes(3599) == "59:59"
