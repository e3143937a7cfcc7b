"""report, from the command line: it runs, measures, judges, says what failed, keeps what ran, and can be resumed."""

import json
import os
import signal
import subprocess
import time

import psutil
import pytest
from click.testing import CliRunner
from stubs import OPENING, command, write

from tutorial_helpers import machine
from tutorial_helpers.__main__ import main
from tutorial_helpers.collection import pages
from tutorial_helpers.report import running, site
from tutorial_helpers.report.measurements import read


@pytest.fixture(scope="module")
def data(made):
    return read(made.out / "measurements.json")


def test_a_failing_notebook_stops_nothing_and_is_named(made):
    assert made.returncode == 1
    lines = made.stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["01_rungs", "02_fall", "03_bad", "04_huge"]
    assert "code cell 3 raised ZeroDivisionError: division by zero" in lines[2]
    assert "2 of 4 notebooks failed: 03_bad, 04_huge." in made.stderr
    assert lines[-1].endswith("index.html: open it in a browser.")
    assert "Traceback" not in made.stderr and "Warning" not in made.stderr


def test_too_much_memory_is_said_clearly(made):
    line = made.stdout.splitlines()[3]
    assert "MemoryError" in line and "choose a smaller --size or parameter" in line and "GiB that are free" in line


def test_a_parameter_that_no_notebook_has_is_said_first_and_the_rest_runs(made, data):
    assert made.stderr.splitlines()[0] == ("No chosen notebook has a parameter 'sise', so it is left out; there are "
                                           "amount, n, other, side.")
    assert {book["name"]: book["parameters"] for book in data["notebooks"]} == {
        "01_rungs": {}, "02_fall": {"side": 40}, "03_bad": {}, "04_huge": {}}
    assert [entry["argument_bytes"] for entry in data["measurements"][1]["cases"]][:2] == [40 * 40 * 8, 40 * 40 * 4]


def test_progress_names_notebook_cell_and_times(made):
    assert "02_fall (2 of 4), cell 1 of 6, 0:" in made.stderr and " gone, about 0:" in made.stderr


def test_everything_measured_is_in_the_file(data):
    assert [(entry["name"], entry["size"]) for entry in data["measurements"]] == [
        ("01/ladder_times", None), ("02/fall", None), ("02/sizes", 100), ("02/sizes", 10_000)]
    assert data["measurements"][1]["section"] == "2. The waterfall: one cause"
    assert data["size"] == "quick" and data["label"] == "A <b>machine</b>"
    ran = {book["name"]: book["status"] for book in data["notebooks"]}
    assert ran == {"01_rungs": "ran", "02_fall": "ran", "03_bad": "failed", "04_huge": "failed"}


def test_verdicts_are_in_the_file_even_of_a_notebook_that_failed_later(data):
    assert {(claim["id"], claim["notebook"]): claim["verdict"] for claim in data["claims"]} == {
        ("S02", "01_rungs"): "holds", ("S09", "01_rungs"): "holds", ("S09", "02_fall"): "does not hold",
        ("S22", "03_bad"): "holds"}


def test_each_claim_without_a_verdict_says_why(made, data):
    everything = pages(made.folder)
    rows = {claim.id: site.claim_row(claim, data, everything) for claim in site.CLAIMS.values()}
    assert len(rows) == 28
    assert rows["S15"]["why"] == "Its notebook, 03_bad, failed before it came to this."
    assert rows["S01"]["why"] == "No notebook of this folder judges it."
    assert rows["S09"]["verdict"] == "depends" and rows["S09"]["split"], "two notebooks disagree"
    data = dict(data, claims=[], notebooks=[dict(book, status="not run") for book in data["notebooks"]])
    assert site.unjudged("S02", data, everything) == "Its notebook, 01_rungs, did not run."


def test_one_notebook_more_joins_the_report(made, tmp_path):
    """The others' results are kept, unless they were made with other settings."""
    before = {path.name: path.read_bytes() for path in (made.out / "notebooks").glob("02*")}
    write(made.folder, "05_more", [OPENING.format("More"), "m = 1"])
    try:
        run = CliRunner().invoke(main, ["report", "05", "--size", "quick", "--folder", str(made.folder), "--out",
                                        str(made.out)])
        assert run.exit_code == 0, run.output
        data = read(made.out / "measurements.json")
        assert [book["status"] for book in data["notebooks"]] == ["ran", "ran", "failed", "failed", "ran"]
        assert before == {path.name: path.read_bytes() for path in (made.out / "notebooks").glob("02*")}
        run = CliRunner().invoke(main, ["report", "05", "--size", "standard", "--folder", str(made.folder), "--out",
                                        str(tmp_path / "none"), "-p", "m", "x y"])
        assert run.exit_code == 0 and [book["status"] for book in read(
            tmp_path / "none" / "measurements.json")["notebooks"]] == ["not run"] * 4 + ["ran"]
        order = running.Order(pages(made.folder), [], made.out, "standard")
        assert running.usable_records(order, {})[0] == []
        assert "size (quick, not standard)" in running.usable_records(order, {})[1][0]
    finally:
        (made.folder / "05_more.ipynb").unlink()


@pytest.mark.parametrize("named, status", [(True, 1), (False, 0)])
def test_a_size_that_memory_cannot_hold(made, tmp_path, monkeypatch, capsys, named, status):
    monkeypatch.setattr(machine, "memory_free", lambda: 2**31)
    order = running.Order(pages(made.folder), [], tmp_path, "large", size_named=named)
    assert running.make_report(order) == status
    assert "arrays of up to 4 GiB, but a quarter of the free memory is 0.5 GiB" in capsys.readouterr().err
    assert list(running.check_size("quick")) == []


@pytest.mark.parametrize("arguments, said", [
    (["07"], "No notebook starts with '07'"), (["--size", "enormous"], "'enormous' is not one of"),
    (["--folder", "nowhere"], "nowhere holds no notebooks"), (["--out", "/dev/null/out"], "cannot be written: "),
])
def test_refusals(made, arguments, said):
    folder = [] if "--folder" in arguments else ["--folder", str(made.folder)]
    run = CliRunner().invoke(main, ["report", *arguments, *folder])
    assert run.exit_code != 0 and said in run.output


SLOW = [OPENING.format("Slow"), "m = 1", "import os, time\nfrom tutorial_helpers import judge",
        "judge('S22', 'holds', 'So.')\nwhile not os.path.exists(os.environ['GO_ON']):\n    time.sleep(0.05)"]


def test_interrupt_and_resume(tmp_path):
    """A real Ctrl-C in the middle of the second notebook."""
    write(tmp_path, "01_fast", [OPENING.format("Fast"), "n = 1", "import time\nprint(time.time())"])
    write(tmp_path, "02_slow", SLOW)
    out, go_on = tmp_path / "out", tmp_path / "go on"
    words = command("--folder", tmp_path, "--out", out)
    environment = {**os.environ, "GO_ON": str(go_on)}
    process = subprocess.Popen([*words, "--size", "quick"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=environment)
    deadline = time.monotonic() + 60
    while not ((out / "notebooks" / "01_fast.json").exists() and psutil.Process(process.pid).children()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.7)
    kernels = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    assert f"Interrupted: 1 of 2 notebooks are finished and kept in {out}." in said and "--resume goes on" in said
    assert psutil.wait_procs(kernels, timeout=10)[1] == [], "a kernel is left behind"
    assert {path.name for path in (out / "notebooks").iterdir()} == {"01_fast.ipynb", "01_fast.html", "01_fast.json"}
    text = (out / "index.html").read_text(encoding="utf-8")
    assert "The run was interrupted" in text and "02_slow, did not run" in text, "the claim that it judges"

    def resume(*options):
        return CliRunner(env={"GO_ON": str(go_on)}).invoke(main, [*words[3:], *options, "--resume"])

    for different, named in ((["--size", "standard"], "size (quick, not standard)"),
                             (["--size", "quick", "-p", "n", "2"], "parameters (none, not n=2)")):
        refused = resume(*different)
        assert refused.exit_code == 1 and "--resume would mix results: 01_fast" in refused.output
        assert named in refused.output

    go_on.touch()
    first = (out / "notebooks" / "01_fast.ipynb").read_bytes()
    resumed = resume("--size", "quick")
    assert resumed.exit_code == 0, resumed.output
    assert resumed.output.splitlines()[0].split() == ["01_fast", "finished", "before"]
    assert first == (out / "notebooks" / "01_fast.ipynb").read_bytes()
    assert [book["status"] for book in read(out / "measurements.json")["notebooks"]] == ["ran", "ran"]


def test_a_damaged_note_of_an_earlier_run_starts_a_new_one(made, tmp_path, capsys):
    (tmp_path / "run.json").write_text("{")
    everything = pages(made.folder)
    order = running.Order(everything, everything, tmp_path, "quick", resume=True)
    assert running.what_to_run(order, {})[1] == everything
    assert "holds no interrupted run, so this one starts from the beginning" in capsys.readouterr().err


def test_what_counts_as_finished(made, tmp_path):
    """Not a notebook that changed, that failed, or whose file is damaged."""
    everything = pages(made.folder)
    run_id = json.loads((made.out / "run.json").read_text())["run"]
    order = running.Order(everything, everything, tmp_path, "quick")
    (tmp_path / "notebooks").mkdir()
    for name, status in {"01_rungs": True, "03_bad": False}.items():
        text = (made.out / "notebooks" / f"{name}.json").read_text()
        page = next(page for page in everything if page.name == name)
        record = json.loads(text)
        target = tmp_path / "notebooks" / f"{name}.json"
        target.write_text(text)
        wanted = record["settings"]
        assert running.finished(order, page, wanted, record["run"]) is status
        assert not running.finished(order, page, wanted, f"not {run_id}")
        target.write_text(json.dumps(record | {"digest": "another"}))
        assert not running.finished(order, page, wanted, record["run"])
        target.write_text(text[:100])
        assert not running.finished(order, page, wanted, record["run"])
