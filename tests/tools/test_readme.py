"""The README's table agrees with the pages, its commands with the Makefile."""

import re
import subprocess

import pages
import picture

README = (pages.ROOT / "README.md").read_text(encoding="utf-8")


def opening(text):
    """Number, title and minutes of a page, as the table should have them."""
    source = text.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", source.split("---", 2)[2], re.MULTILINE).group(1)
    minutes = re.search(r"^\*\*Minutes\*\*\D*(\d+)", source, re.MULTILINE).group(1)
    return f"| [{text.stem[:2]} · {title}](notebooks/{text.stem}.ipynb) | {minutes} | "


def test_the_table_agrees_with_the_pages():
    rows = [line for line in README.splitlines() if line.startswith("| [")]
    starts = [opening(text) for text in pages.texts()]
    assert [row[:len(start)] for row, start in zip(rows, starts, strict=False)] == starts, "\n".join(starts)
    assert len(rows) == len(starts)
    assert all(len(row) > len(start) + 5 for row, start in zip(rows, starts, strict=True)), "say what each page needs"


def test_files_that_it_links_to_exist():
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", README)
    assert [link for link in links if not (pages.ROOT / link).exists()] == []


def test_its_picture_is_the_one_in_the_notebook():
    assert picture.PICTURE.read_bytes() == picture.waterfall()


def test_every_image_has_alt_text():
    assert re.findall(r"!\[\s*\]\(", README) == []


def test_every_make_target_that_it_names_exists():
    named = set(re.findall(r"`make ([a-z]+)", README))
    listed = subprocess.run(["make", "help"], cwd=pages.ROOT, capture_output=True, text=True, check=True).stdout
    assert named and [name for name in named if f"make {name}" not in listed] == []
