"""Every built page has the parts that readers rely on, and nothing that only this machine would show."""

import re
from itertools import pairwise

import nbformat
import pytest

import pages

BUILT = pages.notebooks()
OPENING = ["**You will**", "**You need**", "**You learn**", "**Minutes**"]

pytestmark = pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def markdown(notebook):
    """The text of all markdown cells, without fenced code."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.sub(r"^(`{3,}|~{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(notebook):
    """(level, title) of every heading in order."""
    found = re.findall(r"^(#{1,6}) +(.+?)\s*$", markdown(notebook), flags=re.MULTILINE)
    return [(len(marks), title) for marks, title in found]


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_nothing_stored_that_should_not_be(path, notebook):
    assert pages.problems(notebook) == []
    assert path.stat().st_size <= pages.LARGEST
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert "version" not in notebook.metadata.language_info


def test_opening(path, notebook):
    assert notebook.cells[0].source.startswith("# ")
    opening = markdown(notebook).split("\n## ")[0]
    assert pages.badges(path.stem) in opening
    assert [mark for mark in OPENING if mark not in opening] == []
    assert re.search(r"^\*\*Minutes\*\*\D*\d+", opening, re.MULTILINE)


def test_first_cell_makes_the_page_stand_alone(path, notebook):
    assert code_cells(notebook)[0].source == pages.first_cell()


def test_one_parameters_cell(path, notebook):
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert [cell.cell_type for cell in tagged] == ["code"]


def test_headings_in_order(path, notebook):
    levels = [level for level, _ in headings(notebook)]
    assert levels.count(1) == 1 and levels[0] == 1
    assert [title for (above, _), (level, title) in pairwise(headings(notebook)) if level > above + 1] == []


def test_numbered_sections_count_up(path, notebook):
    numbers = [int(title.split(".")[0]) for level, title in headings(notebook) if level == 2 and title[0].isdigit()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_ledger_and_recap(path, notebook):
    titles = [title for level, title in headings(notebook) if level == 2]
    assert "What the article claimed" in titles and "Recap" in titles
    after = False
    for cell in notebook.cells:
        after = after or "## What the article claimed" in cell.source
        if after and cell.cell_type == "code" and "ledger(" in cell.source:
            return
    pytest.fail("no ledger(...) cell follows the heading 'What the article claimed'")


def test_alt_text_of_images_in_the_text(path, notebook):
    text = markdown(notebook)
    assert re.findall(r"!\[\s*\]\([^)]*\)", text) == []
    assert [tag for tag in re.findall(r"<img\b[^>]*>", text) if not re.search(r"alt=[\"'][^\"']+", tag)] == []
