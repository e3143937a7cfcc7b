"""The glossary: each term is explained, and linked where a page uses it first."""

import re
import shutil

import pytest

import glossary
import pages

TEXT = (pages.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = glossary.entries(TEXT)
TERMS = glossary.glossary()
ADDRESS = "https://github.com/someone/something"


def sentences(text):
    return re.findall(r"[.!?](?=[\s)]|$)", text.replace("e.g.", ""))


@pytest.mark.parametrize("term", ENTRIES)
def test_an_entry_is_a_few_plain_sentences(term):
    _, explanation = ENTRIES[term]
    assert 1 <= len(sentences(explanation)) <= 4 and 8 <= len(explanation.split()) <= 70


def test_entries_are_found_sorted_and_have_anchors_of_their_own():
    assert len(ENTRIES) == TEXT.count("\n### ") >= 60
    assert list(ENTRIES) == sorted(ENTRIES, key=str.lower)
    slugs = [glossary.slug(term) for term in ENTRIES]
    assert len(set(slugs)) == len(slugs) and all(re.fullmatch(r"[\w-]+", slug) for slug in slugs)
    forms = [form for forms in TERMS.values() for form in forms]
    assert len(set(forms)) == len(forms), "one form belongs to two terms"


def test_every_term_occurs_on_some_page():
    everything = "\n".join(text.read_text(encoding="utf-8") for text in pages.texts())
    unused = [term for term, forms in TERMS.items() if not any(form.lower() in everything.lower() for form in forms)]
    assert unused == []


@pytest.mark.parametrize("page", pages.texts(), ids=lambda path: path.stem)
def test_each_first_use_is_linked(page):
    text = page.read_text(encoding="utf-8")
    assert glossary.linked(text, TERMS, pages.address()) == text, "run: make glossary"
    anchors = [anchor for _, anchor in glossary.LINK.findall(text)]
    assert len(anchors) >= 8 and set(anchors) <= {glossary.slug(term) for term in TERMS}


@pytest.mark.parametrize("hidden", [
    "# About fusion", "`fusion`", "```\nfusion\n```", "[fusion](https://example.org)", "![fusion](x.png)",
    "<p>fusion</p>", "<details><summary>fusion</summary>\nfusion",
    '+++ {"tags": ["fusion"]}', "confusion", "fusion-like",
    "https://example.org/fusion", "a ``b ` fusion`` c"])
def test_what_is_no_prose_is_left_alone(hidden):
    text = f"{hidden}\n\nHere is fusion, and fusion again."
    after = glossary.linked(text, {"fusion": ["fusion"]}, ADDRESS)
    assert after == f"{hidden}\n\nHere is [fusion]({ADDRESS}/blob/main/docs/glossary.md#fusion), and fusion again."


@pytest.mark.parametrize("text, there", [
    ("*Fused* loops", "*[Fused](A#fusion)* loops"),
    ("the compilation\ncache", "the [compilation\ncache](A#compilation-cache)"),
    ("a compilation cache, a cache", "a [compilation cache](A#compilation-cache), a [cache](A#cache)"),
    ("a jit and a JIT", "a jit and a [JIT](A#just-in-time-compiler)"),
    ("| fused | (fusion) |", "| [fused](A#fusion) | (fusion) |"), ("nothing", "nothing")])
def test_forms(text, there):
    terms = {"fusion": ["fusion", "fused"], "cache": ["cache"], "compilation cache": ["compilation cache"],
             "just-in-time compiler": ["just-in-time compiler", "JIT"]}
    assert glossary.linked(text, terms, ADDRESS) == there.replace("A#", f"{ADDRESS}/blob/main/docs/glossary.md#")


def test_an_earlier_use_takes_the_link_over():
    once = glossary.linked("About fusion.", TERMS, ADDRESS)
    after = glossary.linked(f"Loops are fused.\n\n{once}", TERMS, ADDRESS)
    assert after.count("#fusion") == 1 and after.startswith("Loops are [fused](")
    assert glossary.linked(after, TERMS, ADDRESS) == after


def test_the_command(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "notebooks" / "text").mkdir(parents=True)
    (tmp_path / "docs" / "glossary.md").write_text("# G\n\n### fusion\n\n*Also: fused.*\n\nMany in one.\n")
    shutil.copy(pages.ROOT / "pyproject.toml", tmp_path)
    page = tmp_path / "notebooks" / "text" / "90_stub.md"
    page.write_text("---\ntitle: fused\n---\n\nAll fused.\n")
    glossary.main.callback(tmp_path)
    assert page.read_text().endswith(f"All [fused]({pages.address()}/blob/main/docs/glossary.md#fusion).\n")
    glossary.main.callback(tmp_path)
    assert capsys.readouterr().out == "90_stub: 1 terms, rewritten\n90_stub: 1 terms\n"
