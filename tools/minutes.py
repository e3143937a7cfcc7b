"""Count how many minutes each section of a page takes, and write them into docs/instructor.md, the pages and README.

With RUN, a folder of notebooks that `make run` executed, take the seconds that each section's cells ran from there
and store them in docs/minutes.json; without it, use the ones stored.
"""

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import click
import nbformat

import pages
from tutorial_helpers import machine

WORDS_A_MINUTE = 150
LINES_A_MINUTE = 30
EXERCISE_MINUTES = {"read": 3, "write": 6, "speed": 10}
RULE = (
    f"A minute for every {WORDS_A_MINUTE} words of text (about 240 is usual for prose, but these pages are read to be "
    f"understood), for every {LINES_A_MINUTE} lines of code, and for every question that the page asks (a guess, a "
    "prediction, an answer to unfold); to that comes the time that the cells run. Each section is rounded up to whole "
    f"minutes. Exercises are counted apart: {EXERCISE_MINUTES['read']} minutes where something is to be read off, "
    f"{EXERCISE_MINUTES['write']} where a function is to be written, {EXERCISE_MINUTES['speed']} where one is to be "
    "made fast.")
OPENING = "Opening"
OWN_LINE = re.compile(r"^\*\*Minutes\*\* .*$", re.MULTILINE)  # not counted: it tells what is


@dataclass
class Section:
    """One section of a page: what it holds, and how long its cells ran."""

    title: str
    text: list = field(default_factory=list)  # the markdown
    code: list = field(default_factory=list)  # the source of code cells
    questions: int = 0
    exercises: list = field(default_factory=list)  # ids
    seconds: float = 0.0

    @property
    def words(self):
        """Words of prose: no code blocks, no addresses, no markup."""
        text = OWN_LINE.sub("", "\n\n".join(self.text))
        text = re.sub(r"^```.*?^```", " ", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"(?<=\])\([^)\s]*\)|https?://\S+|<[^>]+>", " ", text)
        return sum(bool(re.search(r"\w", word)) for word in text.split())

    @property
    def lines(self):
        """Lines of code that are not empty."""
        return sum(bool(line.strip()) for source in self.code for line in source.splitlines())

    @property
    def minutes(self):
        """Whole minutes without the exercises."""
        exact = self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE + self.questions + self.seconds / 60
        return max(1, math.ceil(exact))

    @property
    def practice(self):
        """Minutes for the exercises."""
        return sum(EXERCISE_MINUTES[level_of(name)] for name in self.exercises)


def level_of(name):
    """An exercise's level by its id."""
    from tutorial_helpers.exercises import exercise

    return exercise(name).level


def pieces(markdown):
    """(title, text) of each part of a markdown cell; the title is None before its first heading of level two."""
    found, title, lines, fenced = [], None, [], False
    for line in markdown.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            found.append((title, "\n".join(lines)))
            title, lines = line[3:].strip(), []
        lines.append(line)
    return [part for part in [*found, (title, "\n".join(lines))] if part[1].strip()]


def prompts(text):
    """How often a piece of text asks the reader to stop and think; a prediction and its answer are one question."""
    return max(len(re.findall(r"\*\*(?:Predict|Guess)", text)), text.count("<summary>"))


def sections(notebook, seconds_of=lambda cell: 0.0):
    """The sections of a notebook in order, its opening first."""
    found, asked = [Section(OPENING)], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for title, text in pieces(cell.source):
                if title is not None:
                    found.append(Section(title))
                found[-1].text.append(text)
                found[-1].questions += prompts(text)
                asked = "**Predict" in text or "**Guess" in text
            continue
        here = found[-1]
        here.code.append(cell.source)
        here.exercises += re.findall(r"\bexercise\(\"([\d.]+)\"\)", cell.source)
        here.questions += not asked and bool(re.search(r"\bpredict\(", cell.source))
        here.seconds += seconds_of(cell)
        asked = False
    return found


def stored(root=pages.ROOT):
    """docs/minutes.json: when, where and how long each section's cells ran."""
    return json.loads((root / "docs" / "minutes.json").read_text(encoding="utf-8"))


def page_sections(text, root=pages.ROOT):
    """The sections of a page's source with the stored seconds of their cells.

    Raises: KeyError for a section with code that was never measured.
    """
    seconds = stored(root)["seconds"].get(text.stem, {})
    found = sections(pages.read_text(text))
    for section in found:
        section.seconds = seconds[section.title] if section.code else 0.0
    return found


def measured(folder):
    """What docs/minutes.json holds, from the notebooks that papermill executed into `folder`."""
    seconds, dates = {}, []
    for path in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        found = sections(notebook, lambda cell: cell.metadata.get("papermill", {}).get("duration") or 0.0)
        seconds[path.stem] = {section.title: round(section.seconds, 1) for section in found if section.code}
        dates.append(notebook.metadata.papermill.start_time[:10])
    if not seconds:
        raise click.ClickException(f"{folder} holds no executed notebook: call make run first.")
    return {"date": max(dates), "machine": machine.stamp().rsplit(" · ", 1)[0], "size": machine.size().name,
            "seconds": seconds}


def total(found):
    """Minutes of a whole page to the nearest five: (without the exercises, for the exercises)."""
    return tuple(5 * round(sum(part) / 5) for part in
                 zip(*((section.minutes, section.practice) for section in found), strict=True))


def table(found):
    """The guide's table of one page."""
    rows = ["| section | minutes | words | lines of code | questions | cells run | exercises |",
            "|---|---:|---:|---:|---:|---:|---:|"]
    for one in found:
        practice = f"{len(one.exercises)}: {one.practice} min" if one.exercises else ""
        rows.append(f"| {one.title} | {one.minutes} | {one.words} | {one.lines} | {one.questions or ''} | "
                    f"{one.seconds:.0f} s | {practice} |")
    rows.append(f"| **All** | **{sum(one.minutes for one in found)}** | {sum(one.words for one in found)} | "
                f"{sum(one.lines for one in found)} | {sum(one.questions for one in found)} | "
                f"{sum(one.seconds for one in found):.0f} s | {sum(one.practice for one in found)} min |")
    return "\n".join(rows)


def filled(guide, root=pages.ROOT):
    """The guide's text with every part between markers made anew."""
    parts = {text.stem[:2]: table(page_sections(text, root)) for text in pages.texts(root)}
    about = stored(root)
    parts["rule"] = f"{RULE} Cells were timed on {about['date']}: {about['machine']}, size {about['size']}."
    for name, content in parts.items():
        block = re.compile(rf"(<!-- minutes {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if len(block.findall(guide)) != 1:
            raise click.ClickException(f"docs/instructor.md needs one <!-- minutes {name} --> with an <!-- end -->.")
        guide = block.sub(lambda start, content=content: start[1] + content + "\n", guide)
    return guide


def told(found):
    """A page's line about its minutes."""
    plain, practice = total(found)
    return f"**Minutes** {plain}" + (f", and {practice} more for the exercises" if practice else "")


def update(path, change):
    """Rewrite a text file if `change` changes it; whether it did."""
    before = path.read_text(encoding="utf-8")
    after = change(before)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before


def write(root=pages.ROOT):
    """Bring the pages' openings, README's table and the guide in step; the files that changed."""
    changed, readme = [], root / "README.md"
    for page in pages.texts(root):
        changed += [page] * update(page, lambda text, page=page: OWN_LINE.sub(told(page_sections(page, root)), text, 1))
        row = re.compile(rf"^(\| \[[^\]]*\]\(notebooks/{page.stem}\.ipynb\) \|) \d+ \|", re.MULTILINE)
        cell = rf"\g<1> {total(page_sections(page, root))[0]} |"
        changed += [readme] * update(readme, lambda text, row=row, cell=cell: row.sub(cell, text))
    guide = root / "docs" / "instructor.md"
    return changed + [guide] * update(guide, lambda text: filled(text, root))


@click.command(help=__doc__)
@click.argument("run", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(run, root=pages.ROOT):
    if run:
        path = root / "docs" / "minutes.json"
        path.write_text(json.dumps(measured(run), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for path in dict.fromkeys(write(root)):
        click.echo(f"rewrote {path.relative_to(root)}")


if __name__ == "__main__":
    main()
