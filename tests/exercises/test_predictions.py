"""Predictions: a guess is taken by call or by button, and judged after the measurement."""

import json

import pytest

from tutorial_helpers import learner, predictions
from tutorial_helpers.predictions import predict
from tutorial_helpers.results import Ratio


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setattr(predictions, "_GUESSES", {})
    monkeypatch.setenv("TUTORIAL_HELPERS_DATA", str(tmp_path))


@pytest.fixture
def number():
    return predict("02.waterfall", "How many times as long?", unit="times")


@pytest.fixture
def choice():
    return predict("00.winner", "Which one is first?", choices=["NumPy", "JAX", "Numba", "about equal"])


def test_no_guess_is_fine(number, choice):
    assert str(number.reveal(3.2)) == "No guess this time. Here it was 3.2 times."
    assert str(choice.reveal("JAX")) == "No guess this time. Here it was: JAX."


@pytest.mark.parametrize("guess, actual, said", [
    (10, 3.2, "3.1 times too high"), (1, 50, "50 times too low"), (3, 3.2, "Well guessed"),
    (10, Ratio(3.2, 3.0, 3.4), "3.1 times too high"), (10, Ratio(6, 4, 12), "Well guessed")])
def test_how_far_off_a_number_was(number, guess, actual, said):
    number(guess)
    assert said in str(number.reveal(actual))


@pytest.mark.parametrize("guess", ["JAX", "jax", 2, "J"])
def test_a_choice_by_name_beginning_or_place(choice, guess):
    assert str(choice(guess)).startswith("Noted: JAX.")
    assert "Well guessed" in str(choice.reveal("JAX"))
    assert "Now find out why" in str(choice.reveal("NumPy"))


@pytest.mark.parametrize("guess", ["three", 0, -1, float("nan"), float("inf"), None, True, [3]])
def test_what_is_no_number_is_refused_and_the_old_guess_stays(number, guess):
    number(3)
    assert "greater than 0" in str(number(guess))
    assert number.guess == 3


@pytest.mark.parametrize("guess", ["Nu", 0, 5, "", "TensorFlow", None, True])
def test_what_is_no_choice_is_refused(choice, guess):
    assert "4: 'about equal'" in str(choice(guess))
    assert choice.guess is None


def test_asking_again_keeps_the_guess(number):
    number(7)
    assert predict("02.waterfall", "How many times as long?", unit="times").guess == 7


@pytest.mark.parametrize("id, choices", [("waterfall", None), ("2.x", None), ("02.x", ["one"]), ("02.x", ["a", "a"])])
def test_a_malformed_question_is_refused(id, choices):
    with pytest.raises(ValueError):
        predict(id, "?", choices=choices)


def test_the_static_page_says_how_to_answer(number, choice):
    assert "guess(3)" in repr(number) and "<code>guess(3)</code>" in number._repr_html_()
    assert "2. JAX" in repr(choice) and "<li>JAX</li>" in choice._repr_html_()
    assert "&lt;" in predict("02.x", "is a < b?")._repr_html_()


@pytest.fixture
def live(monkeypatch):
    """As in a notebook: widgets are live."""
    import types

    import IPython
    monkeypatch.setattr(IPython, "get_ipython", lambda: types.SimpleNamespace(kernel=object()))


def test_buttons_do_what_a_call_does(live, choice):
    form = choice._form()
    buttons = form.children[1].children
    assert [button.description for button in buttons] == choice.choices
    buttons[1].click()
    assert choice.guess == "JAX" and "Noted: JAX" in form.children[2].value


def test_the_field_takes_a_number_and_explains_what_is_none(live, number):
    form = number._form()
    field = form.children[1].children[0]
    field.value = "many"
    assert number.guess is None and "greater than 0" in form.children[2].value
    field.value = "2,5"
    assert number.guess == 2.5 and "Noted: 2.5 times" in form.children[2].value


def test_outside_a_notebook_only_text_is_shown(number, capsys):
    number._ipython_display_()
    assert "guess(3)" in capsys.readouterr().out


def test_guesses_and_errors_are_kept(number, choice, tmp_path):
    number(10)
    number.reveal(5)
    choice(1)
    choice.reveal("JAX")
    kept = json.loads((tmp_path / "progress.json").read_text())["predictions"]
    assert kept["02.waterfall"]["factor"] == 2 and kept["00.winner"]["actual"] == "JAX"
    assert json.loads((tmp_path / "progress.json").read_text())["predictions"] == learner.progress().data["predictions"]


def test_a_guess_of_an_earlier_session_is_remembered(number, choice, monkeypatch):
    number(7)
    choice("JAX")
    monkeypatch.setattr(predictions, "_GUESSES", {})
    assert predict("02.waterfall", "How many times as long?", unit="times").guess == 7
    assert predict("00.winner", "Which one?", choices=["NumPy", "PyTorch"]).guess is None, "no choice any more"
    assert predict("02.waterfall", "Which one?", choices=["NumPy", "PyTorch"]).guess is None


def test_a_guess_after_the_answer_is_not_counted(number):
    number(7)
    number.reveal(3.2)
    assert "isn't counted" in str(number(3.2)) and number.guess == 7


def test_a_measurement_that_is_no_answer_is_the_page_s_mistake(number, choice):
    with pytest.raises(ValueError):
        number.reveal("NumPy")
    with pytest.raises(ValueError):
        choice.reveal("TensorFlow")


def test_revealing_without_a_guess_keeps_nothing(number, tmp_path):
    number.reveal(5)
    assert list(tmp_path.iterdir()) == []
