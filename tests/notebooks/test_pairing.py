"""The text is the source: each .ipynb has the cells, kinds and tags of its text, and neither lacks the other."""

import nbformat
import pytest

import pages


def test_each_text_has_its_notebook_and_the_other_way_round():
    texts = [path.stem for path in pages.texts()]
    assert [path.stem for path in pages.notebooks()] == texts, "run: make notebooks"
    assert len({name[:2] for name in texts}) == len(texts), "two pages share a number"


@pytest.mark.parametrize("text", pages.texts(), ids=lambda path: path.stem)
def test_text_and_notebook_agree(text):
    assert pages.built(text).exists(), f"run: make notebooks ONLY={text.stem[:2]}"
    notebook = nbformat.read(pages.built(text), as_version=4)
    assert pages.essence(notebook) == pages.essence(pages.read_text(text)), f"run: make notebooks ONLY={text.stem[:2]}"
    assert pages.in_step(text, pages.built(text))


def test_every_page_starts_with_the_same_first_cell():
    assert [text.stem for text in pages.texts() if pages.first_cell() not in text.read_text(encoding="utf-8")] == []
