"""A measurement is called by what its cell calls it, so that the same one has the same name on every machine."""

import nbformat
import pytest

from tutorial_helpers.report.naming import named_measurements


def line(cell, kind="compare", sizes=(None,)):
    return {"kind": kind, "cell": cell, "points": [{"size": size, "cases": [size]} for size in sizes]}


def names(source, lines):
    """Names of what one cell recorded, after a parameters cell and text."""
    cells = [nbformat.v4.new_markdown_cell("## 2. A *section* of `many` words: yes\n\ntext"),
             nbformat.v4.new_code_cell("n = 1", execution_count=1),
             nbformat.v4.new_code_cell(source, execution_count=2)]
    return named_measurements("02_x", nbformat.v4.new_notebook(cells=cells), lines)


@pytest.mark.parametrize("source, count, wanted", [
    ("fall = compare(a, b)", 1, ["02/fall"]),
    ("each = measure(f).steady", 1, ["02/each"]),
    ("found[key] = compare(a)\nprint(1)", 1, ["02/found"]),
    ("for key in keys:\n    found[key] = compare(a)", 3, ["02/found", "02/found.2", "02/found.3"]),
    ("wins = {k: compare(k) for k in ks}", 2, ["02/wins", "02/wins.2"]),
    ("a = compare(x)\nb = measure(y)", 2, ["02/a", "02/b"]),
    ("compare(x)", 1, ["02/a-section-of-many"]),
    ("race(x)", 2, ["02/a-section-of-many", "02/a-section-of-many.2"]),
    ("a = compare(x)\ncompare(y)", 2, ["02/a-section-of-many", "02/a-section-of-many.2"]),
    ("%matplotlib inline\nfall = compare(a)", 1, ["02/fall"]),
    ("not python(", 1, ["02/a-section-of-many"]),
])
def test_names(source, count, wanted):
    found = names(source, [line(2)] * count)
    assert [entry["name"] for entry in found] == wanted
    assert {entry["section"] for entry in found} == {"2. A section of many words: yes"}


def test_sizes_of_a_sweep_share_a_name():
    found = names("s = sweep(f, [1, 2])", [line(2, "sweep", (1, 2))])
    assert [(entry["name"], entry["size"]) for entry in found] == [("02/s", 1), ("02/s", 2)]


def test_a_notebook_that_left_nothing_behind():
    assert named_measurements("02_x", None, [line(7)])[0]["name"] == "02/start"


def test_the_two_figures_of_the_first_page_are_still_called_so():
    import pages
    from tutorial_helpers.report.comparing import FLOOR, LADDER, WATERFALL

    for name in (WATERFALL, LADDER):
        number, variable = name.split("/")
        text, = (path.read_text(encoding="utf-8") for path in pages.texts(only=(number,)))
        assert f"\n{variable} = compare(" in text
    assert f'"{FLOOR}"' in pages.texts(only=("02",))[0].read_text(encoding="utf-8")
