"""Machines side by side: ratios where they mean something, and a word about everything that differs."""

import json

import pytest
from click.testing import CliRunner
from stubs import caveat

from tutorial_helpers.__main__ import main
from tutorial_helpers.report import comparing
from tutorial_helpers.report.measurements import FormatError, samples


@pytest.fixture
def compared(tmp_path):
    """Compare contents as if they were files."""
    def compare(*contents):
        paths = []
        for number, data in enumerate(contents):
            paths.append(tmp_path / f"{number}.json")
            paths[-1].write_text(json.dumps(data))
        return comparing.side_by_side(paths)
    return compare


def ratio_rows(found):
    """{label: text of the ratio} of the first notebook's table."""
    return {row[1]: row[-1] for row in found["figures"][0]["table"]}


def test_the_same_versions_and_sizes_give_ratios_and_no_warning(compared, plain, twice):
    found = compared(plain, twice)
    assert found["warnings"] == []
    assert ratio_rows(found) == dict.fromkeys(["slow", "fast", "a, size 100", "a, size 1,000"], "2.0 (1.64 to 2.4)")
    assert found["overview"]["finding"] == "B takes 2.0 times as long as A (the median of 4)."
    assert all(claim["agree"] for claim in found["claims"])


def test_a_figure_shows_the_largest_size_of_a_sweep_and_its_table_all(compared, plain, twice):
    figure = compared(plain, twice)["figures"][0]
    assert [row["label"] for row in figure["rows"] if "label" in row] == ["slow", "fast", "a, size 1,000"]
    assert [row["group"] for row in figure["rows"] if "group" in row] == ["2. Fall", "3. Sizes"]
    assert len(figure["table"]) == 4 and all("2.0" in row["value"] for row in figure["rows"] if "label" in row)


def test_what_helps_is_compared_within_each_machine(compared, plain, twice):
    twice["measurements"][0]["cases"][1]["previous_over_this"] = [0.5, 0.4, 0.6]
    gains, = compared(plain, twice)["gains"]
    row, = gains["rows"]
    assert row["label"] == "fast" and row["value"].replace("\N{NO-BREAK SPACE}", " ") == "A 10× · B 0.50×"


def test_what_a_caveat_disqualifies_helps_nobody(compared, plain, twice):
    slower = dict(plain["measurements"][0]["cases"][1], label="honest", previous_over_this=[3, 2, 4])
    for data in (plain, twice):
        data["measurements"][0]["cases"].append(dict(slower))
    twice["measurements"][0]["cases"][1]["caveats"].append(caveat("nothing-to-wait-for"))
    gains, = compared(plain, twice)["gains"]
    assert gains["finding"] == "The largest gain in one step of the waterfall: A fast; B honest."


@pytest.mark.parametrize("change, said", [
    (lambda data: data.update(size="standard"), "The size of the run differs: A quick, B standard."),
    (lambda data: data["machine"]["versions"].update(jax="0.7.2"), "The version of JAX differs: A 0.10.0, B 0.7.2."),
    (lambda data: data["machine"]["versions"].pop("jax"), "The version of JAX differs: A 0.10.0, B none."),
    (lambda data: data.update(tutorial_helpers="0.2.0"), "The version of the notebooks differs"),
    (lambda data: data["machine"]["overrides"].update(OMP_NUM_THREADS="1"), "A none, B OMP_NUM_THREADS=1."),
    (lambda data: data["notebooks"][0].update(status="failed"), "On B notebook 02 did not run to the end."),
])
def test_differences_besides_the_machine_are_warned_of(compared, plain, twice, change, said):
    change(twice)
    assert any(said in warning for warning in compared(plain, twice)["warnings"])


@pytest.mark.parametrize("change, said", [
    (lambda case: case["caveats"].append(caveat("cached-result")), "1 of 4 measurements carry a caveat"),
    (lambda case: case.update(argument_bytes=400), "1 of 4 measurements worked on arrays of another size"),
    (lambda case: case.update(label="other"), "2 of 5 measurements were not measured on both"),
    (lambda case: case.update(seconds=None), "1 of 4 measurements carry a caveat"),
])
@pytest.mark.parametrize("which", [0, 1])
def test_numbers_that_cannot_be_compared_have_no_ratio(compared, plain, twice, change, said, which):
    change((plain, twice)[which]["measurements"][0]["cases"][0])
    found = compared(plain, twice)
    assert any(warning.startswith(said) for warning in found["warnings"])
    assert "slow" not in ratio_rows(found) and ratio_rows(found)["fast"] == "2.0 (1.64 to 2.4)"


def test_a_caveat_that_says_how_sure_a_number_is_disqualifies_nothing(compared, plain, twice):
    twice["measurements"][0]["cases"][0]["caveats"].append(caveat("noisy"))
    found = compared(plain, twice)
    assert ratio_rows(found)["slow"] == "2.0 (1.64 to 2.4)"
    assert "⚠ noisy" in found["figures"][0]["table"][0][3]


def test_other_parameters_are_another_measurement(compared, plain, twice):
    twice["notebooks"][0]["parameters"] = {"side": 3}
    found = compared(plain, twice)
    assert found["figures"] == [] and "4 of 4 measurements were made with other parameters" in found["warnings"][-1]


def test_verdicts_that_differ_come_first(compared, plain, twice):
    twice["claims"][0]["verdict"] = "does not hold"
    claims = compared(plain, twice)["claims"]
    assert claims[0]["id"] == "S20" and claims[0]["verdicts"] == ["holds", "does not hold"]
    assert len(claims) == 28 and all(claim["agree"] for claim in claims[1:])


def test_names_of_samples(tmp_path):
    shipped = list(samples().values())
    assert comparing.chosen_files(["samples"], tmp_path) == shipped
    assert comparing.chosen_files(list(samples()), tmp_path) == shipped
    own = tmp_path / "own.json"
    own.touch()
    assert comparing.chosen_files([], own) == [own, *shipped]
    with pytest.raises(FormatError, match="neither a file nor a sample; the samples are "):
        comparing.chosen_files(["nowhere.json"], own)
    with pytest.raises(FormatError, match="two files at least"):
        comparing.chosen_files([str(own)], own)
    with pytest.raises(FormatError, match="no report of this machine yet"):
        comparing.chosen_files([], tmp_path / "none.json")
    with pytest.raises(FormatError, match="At most 6"):
        comparing.chosen_files([str(own)] * 7, own)


def test_the_command(tmp_path, plain, twice):
    twice["label"] = "<img src=x onerror=alert(1)>"
    for name, data in (("a.json", plain), ("b.json", twice), ("c.json", {})):
        (tmp_path / name).write_text(json.dumps(data))
    a, b, c = (str(tmp_path / name) for name in ("a.json", "b.json", "c.json"))
    run = CliRunner().invoke(main, ["report", "--compare", a, b, "--out", str(tmp_path / "out")])
    assert run.exit_code == 0 and "compare.html" in run.output
    text = (tmp_path / "out" / "compare.html").read_text(encoding="utf-8")
    assert "<img" not in text and "&lt;img src=x" in text
    run = CliRunner().invoke(main, ["report", "--compare", a, c, "--out", str(tmp_path / "out")])
    assert run.exit_code == 1 and run.output.startswith("Error: ") and run.output.count("\n") == 1
    run = CliRunner().invoke(main, ["report", "--samples"])
    assert run.exit_code == 0 and [line.split()[0] for line in run.output.splitlines()] == list(samples())
