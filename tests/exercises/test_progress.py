"""Progress: nothing is lost, nothing is deleted, nothing leaves the machine."""

import io
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from PIL import Image

from tutorial_helpers import learner
from tutorial_helpers.__main__ import main
from tutorial_helpers.exercises import catalogue
from tutorial_helpers.learner import progress
from tutorial_helpers.results import Ratio

ENTRY = {"done": None, "tries": 1, "hints": 0, "solution": False, "speedup": None}


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_HELPERS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(learner, "_unwritten", [])
    monkeypatch.setattr(learner, "_told", set())
    for name in ("COLAB_RELEASE_TAG", "BINDER_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "data"


def kept(folder):
    return json.loads((folder / "progress.json").read_text(encoding="utf-8"))


def test_what_is_kept(folder):
    assert learner.tried("02.3", False) == ""
    learner.hinted("02.3", 2)
    learner.hinted("02.3", 1)
    learner.tried("02.3", True, Ratio(4.0, 3.9, 4.1))
    learner.tried("02.3", True, Ratio(3.0, 2.9, 3.1))
    learner.tried("02.3", False)
    learner.saw_solution("02.4")
    entry = kept(folder)["exercises"]["02.3"]
    assert entry["done"] and entry == {"done": entry["done"], "tries": 2, "hints": 2, "solution": False,
                                       "speedup": [4.0, 3.9, 4.1]}
    states = {each.id: state for each, state, _ in learner.states()}
    assert (states["02.3"], states["02.4"], states["02.5"]) == ("done", "tried", "open")


def test_a_new_guess_forgets_the_old_comparison(folder):
    learner.predicted("02.waterfall", 10.0, 5.0, 2.0)
    learner.guessed("02.waterfall", 4.0)
    assert kept(folder)["predictions"]["02.waterfall"]["actual"] is None


def test_looking_writes_nothing(folder):
    assert "0 of" in progress().figure.alt
    assert repr(progress()) and learner.states() and learner.guess_of("02.waterfall") is None
    assert not folder.exists()


def test_two_notebooks_at_once_lose_nothing(folder):
    many = """
import sys
from tutorial_helpers import learner
for i in range(25):
    said = learner.tried("02.1", False)
    said += learner.hinted(f"{sys.argv[1]}.{i + 10}", 1)
    assert said == "", said
"""
    running = [subprocess.Popen([sys.executable, "-c", many, f"{n:02}"]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    entries = kept(folder)["exercises"]
    assert entries["02.1"]["tries"] == 100 and len(entries) == 101
    assert sorted(path.name for path in folder.iterdir()) == ["progress.json", "progress.lock"]


DAMAGED = {
    "cut off": b'{"schema": 1, "exercises": {"02.3": {"tr',
    "nothing": b"",
    "no text": b"\xff\xfe\x00{",
    "a list": b"[]",
    "no schema": b'{"exercises": {}, "predictions": {}}',
    "a part missing": b'{"schema": 1, "exercises": {}}',
    "an entry of another kind": b'{"schema": 1, "exercises": {"02.3": 7}, "predictions": {}}',
    "a field of another kind": json.dumps({"schema": 1, "exercises": {"02.3": {**ENTRY, "tries": "two"}},
                                           "predictions": {}}).encode(),
    "a field missing": b'{"schema": 1, "exercises": {"02.3": {"tries": 2}}, "predictions": {}}',
    "no finite number": b'{"schema": 1, "exercises": {}, "predictions": {"02.x": {"guess": NaN, "actual": null, '
                        b'"factor": null, "when": ""}}}',
    "deeply nested": b"[" * 100_000,
    "newer": b'{"schema": 2, "exercises": {}, "predictions": {}, "badges": []}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_cannot_be_used_is_set_aside_and_never_deleted(folder, text):
    folder.mkdir()
    file = folder / "progress.json"
    file.write_bytes(text)
    assert "can't be used" in progress().note
    assert file.read_bytes() == text, "looking at it leaves it alone"
    said = learner.tried("02.3", True)
    aside = [path for path in folder.iterdir() if "aside" in path.name]
    assert len(aside) == 1 and aside[0].read_bytes() == text and aside[0].name in said
    assert kept(folder)["exercises"]["02.3"]["done"]
    assert learner.tried("02.3", True) == ""
    file.write_bytes(text)
    learner.tried("02.3", True)
    assert len([path for path in folder.iterdir() if "aside" in path.name]) == 2, "the first one is not overwritten"


def test_what_a_later_version_of_this_schema_adds_stays(folder):
    folder.mkdir()
    more = {"schema": 1, "exercises": {"02.3": {**ENTRY, "stars": 3}}, "predictions": {}, "badges": [1]}
    (folder / "progress.json").write_text(json.dumps(more))
    learner.tried("02.3", True)
    assert kept(folder)["badges"] == [1] and kept(folder)["exercises"]["02.3"]["stars"] == 3


def test_a_folder_that_cannot_be_written_loses_nothing_while_the_kernel_lives(folder):
    folder.write_text("a file where the folder should be")
    said = learner.tried("02.3", True, Ratio(5.0, 4, 6))
    assert "only until this kernel ends" in said and str(folder) in said
    assert learner.tried("02.4", True) == "", "said once"
    assert [each.id for each, state, _ in learner.states() if state == "done"] == ["02.3", "02.4"]
    folder.unlink()
    learner.hinted("02.5", 1)
    assert set(kept(folder)["exercises"]) == {"02.3", "02.4", "02.5"}, "written as soon as it can be"


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    learner.tried("02.3", True)
    before = (folder / "progress.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    assert "no space left" in learner.tried("02.4", True)
    assert (folder / "progress.json").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["progress.json", "progress.lock"]


def test_a_notebook_that_hangs_while_it_writes_blocks_no_other(folder, monkeypatch):
    monkeypatch.setattr(learner, "_WAIT", 0.1)
    folder.mkdir()
    with learner._locked(folder / "progress.lock"):
        assert "another notebook" in learner.tried("02.3", True)
    learner.tried("02.4", True)
    assert set(kept(folder)["exercises"]) == {"02.3", "02.4"}


def test_export(folder, tmp_path, monkeypatch):
    learner.tried("02.3", True, Ratio(5.0, 4, 6))
    written = progress().export(tmp_path / "mine.json")
    assert str(written.path) in str(written) and "sent nowhere" in str(written)
    exported = json.loads(written.path.read_text(encoding="utf-8"))
    assert exported["exercises"] == kept(folder)["exercises"] and exported["exported"]
    monkeypatch.chdir(tmp_path)
    assert progress().export().path.parent == tmp_path
    refused = progress().export(tmp_path / "nowhere" / "mine.json")
    assert refused.path is None and "can't be written" in str(refused)


@pytest.mark.parametrize("variable, name", [("COLAB_RELEASE_TAG", "Colab"), ("BINDER_SERVICE_HOST", "Binder")])
def test_on_a_borrowed_machine_it_says_so(monkeypatch, variable, name):
    monkeypatch.setenv(variable, "x")
    assert f"{name} forgets" in learner.tried("02.3", True)
    assert learner.tried("02.3", True) == "", "said once"
    data, _ = progress()._repr_mimebundle_()
    assert f"{name} forgets" in data["text/html"] and f"{name} forgets" in data["text/plain"]


def test_the_figure_says_in_words_what_it_shows():
    learner.tried("02.3", True, Ratio(38.0, 33, 44))
    learner.predicted("01.ladder", 5, 80, 5 / 80)
    learner.predicted("00.winner", "JAX", "NumPy")
    figure = progress().figure
    assert f"1 of {len(catalogue())} exercises done" in figure.alt and "0 of 1 choices right" in figure.alt
    assert "best speed-up in 02.3: 38 times" in figure.alt and "guess 01.ladder: 16 times too low" in figure.alt
    names = [label.get_text() for ax in figure.drawing.axes for label in ax.get_yticklabels()]
    assert "01.ladder" in names and any(name.startswith("02.3") for name in names)


def test_nothing_is_cut_off_the_figure():
    for page in range(6):
        learner.tried(f"{page:02}.1", True, Ratio(10.0**page, 10.0**page / 2, 20.0**page))
        learner.predicted(f"{page:02}.far", 1, 10.0**page, 10.0**-page)
        learner.predicted(f"{page:02}.high", 1, 1, 10.0**page)
    figure = progress().figure
    drawing = figure.drawing
    drawing.canvas.draw()
    width, height = drawing.bbox.size
    drawn = [*drawing.texts, *(text for ax in drawing.axes for text in (
        *ax.texts, *ax.get_yticklabels(), ax.xaxis.label, ax._left_title))]
    assert len(drawn) > 60
    for text in drawn:
        box = text.get_window_extent()
        inside = box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height
        assert inside or not text.get_text().strip(), text.get_text()


def test_the_figure_is_a_picture_with_alt_text():
    data, metadata = progress()._repr_mimebundle_()
    assert Image.open(io.BytesIO(progress().figure.png)).size[0] > 1000
    assert metadata["image/png"]["alt"] in data["text/plain"]


def test_no_socket_is_opened(monkeypatch, tmp_path):
    import socket

    def never(*_, **__):
        raise AssertionError("a socket was opened")
    monkeypatch.setattr(socket, "socket", never)
    learner.tried("02.3", True)
    progress().export(tmp_path / "out.json")


def test_the_command_lists_every_exercise_with_its_state():
    learner.tried("02.3", True, Ratio(38.0, 33, 44))
    learner.saw_solution("02.4")
    lines = CliRunner().invoke(main, ["exercises"]).output.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [each.id for each in catalogue()]
    assert all(each.title in line for each, line in zip(catalogue(), lines, strict=False))
    by_id = {line.split()[0]: line for line in lines}
    assert "✓ done" in by_id["02.3"] and "38 times as fast" in by_id["02.3"]
    assert "… tried" in by_id["02.4"] and "solution seen" in by_id["02.4"] and "· open" in by_id["02.5"]
    assert lines[-1].startswith(f"1 of {len(catalogue())} done.")
    some = CliRunner().invoke(main, ["exercises", "03", "04"]).output.splitlines()
    assert {line[:2] for line in some[:-1]} == {"03", "04"}
    assert CliRunner().invoke(main, ["exercises", "99"]).exit_code == 1
