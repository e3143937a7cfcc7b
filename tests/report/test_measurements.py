"""The format of measurements.json: described, versioned, and checked when it is read."""

import json

import jsonschema
import pytest

import pages
from tutorial_helpers.report.measurements import FormatError, check, read, samples, schema, write


def remove(*path):
    """A change that takes a property away."""
    def change(data):
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]
    return change


def put(value, *path):
    """A change that replaces a value."""
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value
    return change


DAMAGE = [
    (put("comparison", "format"), "holds no measurements of this collection"),
    (remove("format"), "holds no measurements of this collection"),
    (put(2, "version"), "has version 2 of the format, and this program reads version 1"),
    (remove("version"), "has version None"),
    (remove("machine"), "'machine' is a required property"),
    (put("huge", "size"), "damaged at size"),
    (put(0, "machine", "cores"), "damaged at machine/cores"),
    (put("maybe", "claims", 0, "verdict"), "damaged at claims/0/verdict"),
    (put("S1", "claims", 0, "id"), "damaged at claims/0/id"),
    (put("0.1", "measurements", 0, "cases", 0, "seconds"), "damaged at measurements/0/cases/0/seconds"),
    (put(-1, "measurements", 0, "cases", 0, "seconds"), "damaged at measurements/0/cases/0/seconds"),
    (put([1, 2, 3], "measurements", 0, "cases", 0, "interval"), "damaged at measurements/0/cases/0/interval"),
    (put([], "measurements", 0, "cases"), "damaged at measurements/0/cases"),
    (put({"a": 1}, "measurements"), "damaged at measurements"),
    (put("x" * 5000, "label"), "damaged at label"),
]


@pytest.mark.parametrize("change, said", DAMAGE)
def test_damage_is_named_in_one_sentence(plain, change, said):
    change(plain)
    with pytest.raises(FormatError) as raised:
        check(plain, "x.json")
    text = str(raised.value)
    assert said in text and "x.json" in text
    assert len(text) < 300 and "\n" not in text and text.endswith(".")


@pytest.mark.parametrize("content, said", [
    (b"", "is not a JSON file"), (b"{", "is not a JSON file"), (b"\xff\xfe\x00", "is not a JSON file"),
    (b'{"format": NaN}', "is not a JSON file"), (b"[" * 100_000, "is not a JSON file"),
    (b"[]", "holds no measurements"), (b"null", "holds no measurements"),
    (b'{"schema": "tutorial_helpers/1", "kind": "comparison"}', "holds no measurements"),
])
def test_foreign_files_are_refused_in_one_sentence(tmp_path, content, said):
    path = tmp_path / "foreign.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=said):
        read(path)


def test_files_that_are_not_there_or_far_too_large(tmp_path, monkeypatch):
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        read(tmp_path / "nowhere.json")
    (tmp_path / "large.json").write_text(" " * 2000)
    monkeypatch.setattr("tutorial_helpers.report.measurements.LARGEST", 1000)
    with pytest.raises(FormatError, match="larger than any"):
        read(tmp_path / "large.json")


def test_what_is_written_can_be_read(tmp_path, plain):
    plain["machine"]["cpu"] = 'Prozeßor "Ω"'
    write(plain, tmp_path / "a.json")
    assert read(tmp_path / "a.json") == plain
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_wrong_file_is_never_written(tmp_path, plain):
    del plain["claims"]
    with pytest.raises(FormatError):
        write(plain, tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


def test_unknown_properties_do_not_disturb(plain):
    plain["measurements"][0]["cases"][0]["joules"] = 3
    assert check(plain) is plain


def test_the_schema_is_one_and_describes_itself():
    jsonschema.Draft202012Validator.check_schema(schema())
    text = (pages.ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    assert [name for name in schema()["properties"] if f"`{name}`" not in text] == []


def test_the_samples_are_what_they_say():
    found = samples()
    assert len(found) >= 2
    for name, path in found.items():
        data = read(path)
        assert data["label"] and data["measurements"], name
        assert data["machine"]["overrides"] == {}, name
        assert all(book["status"] != "failed" for book in data["notebooks"]), name
        assert path.stat().st_size < 600_000
        assert not pages.MACHINE_PATH.search(json.dumps(data, ensure_ascii=False)), name
