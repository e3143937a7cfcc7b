"""The instructor's guide: its minutes are the counted ones, its schedules add up, every section has its notes."""

import json
import re
import shutil

import pytest

import minutes
import pages

GUIDE = (pages.ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
LABELS = ["Point", "Ask", "Stuck", "Machines disagree"]
SCHEDULES = {"90 minutes": 90, "Half a day": 210, "A full day": 420}
COUNTED = {text.stem: minutes.page_sections(text) for text in pages.texts()}
PAGE = '# T\n\n**Minutes** 1\n\n## 1. One\n\n**Predict.** {words}\n\n```{{code-cell}} ipython3\nx = 1\n\ny = 2\n```\n'


def numbered(stem):
    return {int(one.title.split(".")[0]): one for one in COUNTED[stem] if one.title[0].isdigit()}


def test_the_tables_are_the_counted_ones():
    assert minutes.filled(GUIDE) == GUIDE, "run: make minutes"


@pytest.mark.parametrize("stem", COUNTED)
def test_pages_and_readme_tell_the_same_minutes(stem):
    found = COUNTED[stem]
    text = (pages.ROOT / "notebooks" / "text" / f"{stem}.md").read_text(encoding="utf-8")
    assert minutes.told(found) in text.splitlines(), "run: make minutes"
    readme = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    assert f"](notebooks/{stem}.ipynb) | {minutes.total(found)[0]} |" in readme, "run: make minutes"


@pytest.mark.parametrize("stem", COUNTED)
def test_every_section_has_its_notes(stem):
    part = GUIDE.split(f"<!-- minutes {stem[:2]} -->")[1].split("\n## ")[0]
    notes = dict(re.findall(r"^#### (.+?)$(.*?)(?=^#### |\Z)", part, re.MULTILINE | re.DOTALL))
    assert list(notes) == [one.title for one in numbered(stem).values()]
    for title, text in notes.items():
        assert re.findall(r"^- \*\*(.+?)\.\*\*", text, re.MULTILINE) == LABELS, title


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_add_up(name):
    """Each slot starts where the one before ends, lasts at least as long as its sections, and the sum is right."""
    part = GUIDE.split(f"\n### {name}\n")[1].split("\n##")[0]
    clock, taught, needed = 0, 0, 0
    for hours, mins, length, what in re.findall(r"^\| (\d+):(\d\d) \| (\d+) \| (.+) \|$", part, re.MULTILINE):
        assert 60 * int(hours) + int(mins) == clock, what
        clock += int(length)
        stems = {stem[:2]: stem for stem in COUNTED}
        counted = [numbered(stems[page])[int(number)].minutes for page, number in re.findall(r"(\d\d) §(\d+)", what)]
        assert sum(counted) <= int(length) <= (2 * sum(counted) + 8 if counted else 60), what
        taught, needed = taught + int(length) * bool(counted), needed + sum(counted)
    assert clock == SCHEDULES[name]
    assert taught >= needed * (1.15 if name == "90 minutes" else 1.3), "the guide promises some room"
    assert part.count("| Break |") == (0 if name == "90 minutes" else 2)


def test_links_lead_somewhere():
    headings = re.findall(r"^#+ (.+)$", GUIDE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert [link for link in re.findall(r"\]\(#([^)]+)\)", GUIDE) if link not in anchors] == []
    assert [link for link in re.findall(r"\]\(([^)#:]+)\)", GUIDE) if not (pages.ROOT / "docs" / link).exists()] == []


def test_stored_times_name_their_machine():
    stored = minutes.stored()
    assert set(stored) == {"date", "machine", "size", "seconds"} and set(stored["seconds"]) == set(COUNTED)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stored["date"]) and "core" in stored["machine"]
    assert all(0 <= seconds < 120 for page in stored["seconds"].values() for seconds in page.values())


def section(markdown, code=(), seconds=0.0):
    found = minutes.Section("S", [markdown], list(code))
    found.seconds, found.questions = seconds, minutes.prompts(markdown)
    return found


def test_the_rule():
    assert section("word " * 150).minutes == 1 and section("word " * 151).minutes == 2
    assert section("", ["x = 1\n\n" * 31]).minutes == 2
    assert section("**Predict.** Two?").minutes == 2 and section("", seconds=61).minutes == 2
    assert section("a `b` [c d](https://e.f/g) <i>h</i>\n```\nno words here\n```\n| i | j |").words == 7
    assert str(minutes.WORDS_A_MINUTE) in minutes.RULE and str(minutes.LINES_A_MINUTE) in minutes.RULE


def test_a_question_and_its_answer_are_one():
    assert minutes.prompts("**Guess** it.\n\n<details><summary>Answer</summary>\n\n7\n\n</details>") == 1
    assert minutes.prompts("**Guess first:** a. **Predict.** b.") == 2 and minutes.prompts("A guess.") == 0


def test_cells_are_split_at_sections():
    notebook = minutes.nbformat.v4.new_notebook()
    markdown, code = minutes.nbformat.v4.new_markdown_cell, minutes.nbformat.v4.new_code_cell
    notebook.cells = [markdown("# T\n\nopening"), code("a = 1"), markdown("end\n\n## 1. One\n\n**Predict.** x"),
                      code('predict("00.x", "?")'), code("b\nc"), markdown("```\n## not a heading\n```"),
                      code('predict("00.y", "?")\nexercise("00.1")')]
    opening, one = minutes.sections(notebook, lambda cell: 1.5)
    assert (opening.title, opening.lines, opening.seconds) == ("Opening", 1, 1.5)
    assert (one.title, one.lines, one.seconds, one.questions, one.exercises) == ("1. One", 5, 4.5, 2, ["00.1"])


@pytest.fixture
def project(tmp_path):
    """A project of one page that was executed."""
    for folder in ("docs", "notebooks/text", "run"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks" / "text" / "90_stub.md").write_text(PAGE.format(words="word " * 500))
    (tmp_path / "README.md").write_text("| [90 · T](notebooks/90_stub.ipynb) | 1 | x |\n")
    marks = "\n".join(f"<!-- minutes {name} -->\nstale\n<!-- end -->" for name in ("rule", "90"))
    (tmp_path / "docs" / "instructor.md").write_text(marks)
    notebook = pages.read_text(tmp_path / "notebooks" / "text" / "90_stub.md")
    notebook.metadata["papermill"] = {"start_time": "2025-01-02T03:04:05"}
    notebook.cells[-1].metadata["papermill"] = {"duration": 125.04}
    pages.write_notebook(notebook, tmp_path / "run" / "90_stub.ipynb")
    return tmp_path


def test_the_command(project, capsys):
    minutes.main.callback(project / "run", project)
    assert json.loads((project / "docs" / "minutes.json").read_text())["seconds"] == {"90_stub": {"1. One": 125.0}}
    guide = (project / "docs" / "instructor.md").read_text()
    assert "| 1. One | 7 | 503 | 2 | 1 | 125 s |  |" in guide and "2025-01-02" in guide and "stale" not in guide
    assert "**Minutes** 10" in (project / "notebooks" / "text" / "90_stub.md").read_text()
    assert "| 10 | x |" in (project / "README.md").read_text()
    assert len(capsys.readouterr().out.splitlines()) == 3
    minutes.main.callback(None, project)
    assert capsys.readouterr().out == "", "a second time nothing changes"


def test_a_section_that_was_never_measured_is_an_error(project):
    shutil.copy(pages.ROOT / "docs" / "minutes.json", project / "docs")
    with pytest.raises(KeyError):
        minutes.write(project)
