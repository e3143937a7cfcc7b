"""The claims are all there, a verdict is one of four, and the ledger says only what was judged."""

import re
from html.parser import HTMLParser

import pytest

from tutorial_helpers import claims, judge, ledger


@pytest.fixture(autouse=True)
def nothing_judged(monkeypatch):
    monkeypatch.setattr(claims, "_judgements", {})


class Cells(HTMLParser):
    """Collects the text of table cells, row by row, and what tags and links there are."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.links, self.inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def test_every_claim_once_each_a_sentence():
    assert list(claims.CLAIMS) == [f"S{number:02}" for number in range(1, 29)]
    says = [claim.says for claim in claims.CLAIMS.values()]
    assert len(set(says)) == 28
    assert all(text.endswith(".") and "\n" not in text and 15 <= len(text) < 200 for text in says)
    assert all(claim.kind and set(claim.kind) <= set(claims.KINDS) for claim in claims.CLAIMS.values())


def test_the_article_s_own_numbers():
    assert "401 ms" in claims.CLAIMS["S20"].says and "2.15 ms" in claims.CLAIMS["S20"].says
    assert all(number in claims.CLAIMS["S22"].says for number in ("780 ms", "2.12 ms", "3.36 ms", "367"))
    assert round(780 / 2.12, -0) == pytest.approx(367, abs=1.5)


@pytest.mark.parametrize("verdict", ["holds", "does not hold", "depends", "not measured here"])
def test_a_verdict_is_shown_with_its_evidence(verdict):
    assert judge("S20", verdict, "It took 3.1 ms here.") is None
    table = Cells(ledger("S20")._repr_html_())
    row = table.rows[1]
    assert row[0] == "S20" and row[1] == claims.CLAIMS["S20"].says and row[3] == "It took 3.1 ms here."
    assert row[2].endswith(verdict)
    assert re.search(rf"S20 .*\n.* {verdict}: It took 3\.1 ms here\.", repr(ledger("S20")))


def test_the_last_judgement_wins():
    judge("S01", "holds", "First run.")
    judge("S01", "does not hold", "Second run.")
    assert "Second run." in repr(ledger("S01")) and "First run." not in repr(ledger("S01"))


def test_a_claim_without_judgement_says_so():
    judge("S01", "holds", "Yes.")
    table = Cells(ledger("S02", "S01")._repr_html_())
    assert [row[0] for row in table.rows[1:]] == ["S02", "S01"]
    assert "not judged yet" in table.rows[1][2] and table.rows[1][3] == ""
    assert "not judged yet" not in table.rows[2][2]


def test_without_names_all_claims_and_none_twice():
    assert len(ledger().rows) == 28
    assert len(ledger("S03", "S03").rows) == 1


def test_a_ledger_keeps_what_it_showed():
    judge("S01", "holds", "Before.")
    shown = ledger("S01")
    judge("S01", "depends", "After.")
    assert "Before." in repr(shown)


@pytest.mark.parametrize("arguments, problem", [
    (("S20", "true", "It took 3 ms."), "'holds', 'does not hold', 'depends', 'not measured here'"),
    (("S20", "Holds", "It took 3 ms."), "not 'Holds'"),
    (("S29", "holds", "It took 3 ms."), "no claim 'S29'"),
    (("S20", "holds", "  "), "evidence"),
    (("S20", "holds", 3.1), "evidence"),
])
def test_what_cannot_be_recorded_raises_one_sentence(arguments, problem):
    with pytest.raises(ValueError) as caught:
        judge(*arguments)
    assert problem in str(caught.value) and "\n" not in str(caught.value)
    assert claims._judgements == {}


def test_an_unknown_claim_in_a_ledger():
    with pytest.raises(ValueError, match="no claim 'S99'"):
        ledger("S01", "S99")


def test_evidence_is_text_and_addresses_are_links():
    judge("S11", "does not hold", "See <b>https://numpy.org/doc/?a=1&b=2</b>, and (https://example.org/x).")
    table = Cells(ledger("S11")._repr_html_())
    assert table.links == ["https://numpy.org/doc/?a=1&b=2", "https://example.org/x"]
    assert table.rows[1][3] == "See <b>https://numpy.org/doc/?a=1&b=2</b>, and (https://example.org/x)."


def test_the_table_can_be_read_aloud():
    tags = Cells(ledger("S01", "S02")._repr_html_()).tags
    assert [tag for tag, _ in tags].count("caption") == 1
    assert [attrs["scope"] for tag, attrs in tags if tag == "th"] == ["col"] * 4 + ["row"] * 2
    heads = Cells(ledger("S01")._repr_html_()).rows[0]
    assert all(heads)
