"""Link each term of docs/glossary.md where a page uses it first, in notebooks/text.

A use is a term or one of the forms that its entry lists, in the page's text: not in code, headings, HTML, addresses or
other links. Links to the glossary that stand elsewhere are taken away, so that a page can be edited freely.
"""

import re

import click

import pages

ENTRY = re.compile(r"^### (?P<term>.+?)\s*\n+(?:\*Also: (?P<also>.+?)\*\s*\n+)?(?P<text>.+?)(?=^#{2,3} |\Z)",
                   re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\][]+)\]\(https://github\.com/[^)\s]+/docs/glossary\.md#([\w-]+)\)")
# What is not text, in the order in which it is looked for.
HIDDEN = [
    re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL),  # jupytext's header
    re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL),  # code
    re.compile(r"^#+ .*$", re.MULTILINE),
    re.compile(r"^\+\+\+.*$", re.MULTILINE),
    re.compile(r"^<.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL),  # an HTML block ends at an empty line
    re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"!?\[(?:[^\][]|\[[^\]]*\]\([^)]*\))*\]\([^)\s]*\)"),
    re.compile(r"<[^>\s][^>]*>|https?://\S+"),
]


def slug(term):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", term.lower()).replace(" ", "-")


def entries(text):
    """{term: (forms that count as its use, explanation)} of a glossary's text."""
    found = {}
    for entry in ENTRY.finditer(text):
        also = entry["also"].rstrip(".").split(", ") if entry["also"] else []
        found[entry["term"]] = ([entry["term"], *also], entry["text"].strip())
    return found


def glossary(root=pages.ROOT):
    """The terms and their forms, from docs/glossary.md."""
    return {term: forms for term, (forms, _) in
            entries((root / "docs" / "glossary.md").read_text(encoding="utf-8")).items()}


def pattern(form):
    """Where a form is used: as a whole word, over line ends too; in any case unless it has capitals of its own."""
    words = r"\s+".join(map(re.escape, form.split()))
    return re.compile(rf"(?<![\w-]){words}(?![\w-])", 0 if form != form.lower() else re.IGNORECASE)


def visible(text):
    """The text with everything that is no prose blanked out, at the same length."""
    for hidden in HIDDEN:
        text = hidden.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), text)
    return text


def uses(text, terms):
    """{term: span of its first use} in a text. In "compilation cache" the longer term is used and not "cache"."""
    seen = visible(text)
    found = [(*match.span(), term) for term, forms in terms.items() for form in forms
             for match in pattern(form).finditer(seen)]
    first, end = {}, 0
    for start, stop, term in sorted(found, key=lambda use: (use[0], -use[1])):
        if start >= end:
            first.setdefault(term, (start, stop))
            end = stop
    return first


def linked(text, terms, address):
    """A page's text with the first use of each term linked, and with no other link to the glossary."""
    text = LINK.sub(r"\1", text)
    for term, (start, end) in sorted(uses(text, terms).items(), key=lambda use: -use[1][0]):
        text = f"{text[:start]}[{text[start:end]}]({address}/blob/main/docs/glossary.md#{slug(term)}){text[end:]}"
    return text


@click.command(help=__doc__)
def main(root=pages.ROOT):
    terms = glossary(root)
    for page in pages.texts(root):
        before = page.read_text(encoding="utf-8")
        after = linked(before, terms, pages.address(root))
        if after != before:
            page.write_text(after, encoding="utf-8")
        click.echo(f"{page.stem}: {len(LINK.findall(after))} terms" + (", rewritten" if after != before else ""))


if __name__ == "__main__":
    main()
