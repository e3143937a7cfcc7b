"""Predictions: a guess before the measurement, and how far off it was after it."""

import html
import math
import numbers
import re
import sys

from . import learner
from .results import Ratio, times

__all__ = ["Prediction", "predict"]

_GUESSES = {}  # id → guess, so that running a cell again does not forget what was guessed
_WIDGET = "application/vnd.jupyter.widget-view+json"
_CLOSE = 1.25  # a guess within this factor counts as right


def predict(id, question, choices=None, unit=""):
    """Ask for a guess before a measurement.

    id: the notebook's number and a word, as in "02.waterfall". choices: the answers to choose from; without them the
    guess is a number greater than 0. unit: what follows the number, such as "times" or "ms".
    Returns a Prediction. As a cell's last line it shows the question with buttons or a field; calling it does the
    same: `guess(3)`. A guess of an earlier session is remembered. Raises ValueError for a malformed id, fewer than
    two choices, or one that occurs twice.
    """
    if not isinstance(id, str) or not re.fullmatch(r"\d\d\.[a-z][a-z0-9_-]*", id):
        raise ValueError(f"A prediction needs an id such as '02.waterfall', not {id!r}.")
    if choices is not None:
        choices = [str(choice) for choice in choices]
        if len(choices) < 2 or len(set(choices)) < len(choices):
            raise ValueError(f"Prediction {id} needs two choices or more, each different.")
    return Prediction(id, question, choices, unit)


class Prediction:
    """One question with the learner's guess, None until there is one. Made by predict()."""

    def __init__(self, id, question, choices, unit):
        self.id, self.question, self.choices, self.unit = id, question, choices, unit
        self._answer = ""  # what reveal() said
        if id not in _GUESSES:
            _GUESSES[id] = learner.guess_of(id)

    @property
    def guess(self):
        """The guess: a number, one of the choices, or None."""
        guess = _GUESSES.get(self.id)  # perhaps made before the question was put in another way
        return guess if (guess in self.choices if self.choices else isinstance(guess, numbers.Real)) else None

    def __call__(self, guess):
        """Take a guess: a number, or a choice, named in full, by its beginning or by its place from 1 on.

        Returns a Said that confirms it, or says what a guess must be; an earlier guess then stays.
        """
        if self._answer:
            return Said(f"{self._answer} That is known by now, so this guess isn't counted.")
        try:
            taken = self._choice(guess) if self.choices else self._number(guess)
        except ValueError as error:
            return Said(str(error))
        _GUESSES[self.id] = taken
        return Said(f"Noted: {self._shown(taken)}.", learner.guessed(self.id, taken))

    def reveal(self, actual):
        """Say what was measured and how far off the guess was.

        actual: a number in the prediction's unit, a Ratio, or one of the choices.
        Returns a Said. Raises ValueError if `actual` is not what was asked for.
        """
        low = high = None
        if self.choices:
            actual = self._choice(actual)
            self._answer = f"Here it was: {actual}."
        else:
            if isinstance(actual, Ratio):
                actual, low, high = actual
            actual = self._number(actual)
            self._answer = f"Here it was {self._shown(actual)}."
        if self.guess is None:
            return Said(f"No guess this time. {self._answer}")
        factor = None if self.choices else self.guess / actual
        note = learner.predicted(self.id, self.guess, actual, factor)
        judged = self._judged(actual, factor, low, high)
        return Said(f"You said {self._shown(self.guess)}. {self._answer} {judged}", note)

    def _judged(self, actual, factor, low, high):
        if factor is None:
            return "Well guessed!" if self.guess == actual else "Now find out why."
        if 1 / _CLOSE <= factor <= _CLOSE or (low is not None and low <= self.guess <= high):
            return "Well guessed!"
        return f"The guess was {times(max(factor, 1 / factor))} too {'high' if factor > 1 else 'low'}."

    # -- guesses

    def _number(self, value):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, bool) or not (math.isfinite(number) and number > 0):
            raise ValueError(f"A number greater than 0 is asked for, as in guess(3), not {str(value)[:40]!r}.")
        return number

    def _choice(self, value):
        if isinstance(value, numbers.Integral) and not isinstance(value, bool) and 1 <= value <= len(self.choices):
            return self.choices[value - 1]
        text = str(value).strip().casefold()
        exact = [choice for choice in self.choices if choice.casefold() == text]
        begun = exact or [choice for choice in self.choices if text and choice.casefold().startswith(text)]
        if len(begun) != 1:
            listed = ", ".join(f"{i}: {choice!r}" for i, choice in enumerate(self.choices, 1))
            raise ValueError(f"{str(value)[:40]!r} is none of the choices. Say one of them or its number: {listed}.")
        return begun[0]

    def _shown(self, value):
        if self.choices:
            return value
        if self.unit == "times":
            return times(value)
        digits = f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"
        return f"{digits} {self.unit}".rstrip()

    # -- on the page

    def _how(self):
        call = "guess(1)" if self.choices else "guess(3)"
        return f"By keyboard or without buttons: `{call}` in a cell of its own does the same. You may also skip it."

    def _how_html(self):
        return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(self._how()))

    def __repr__(self):
        lines = [f"Your guess: {self.question}"]
        lines += [f"  {i}. {choice}" for i, choice in enumerate(self.choices or [], 1)]
        return "\n".join([*lines, self._how().replace("`", "")])

    def _repr_html_(self):
        listed = "".join(f"<li>{html.escape(choice)}</li>" for choice in self.choices or [])
        return (f"<b>Your guess:</b> {html.escape(self.question)}" + (f"<ol>{listed}</ol>" if listed else "<br>")
                + f"<small>{self._how_html()}</small>")

    def _ipython_display_(self):
        from IPython.display import display

        form = self._form()
        # The text stands beside the buttons as a fallback, for pages without a kernel.
        data = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if form is None:
            display(data, raw=True)
            return
        view = {"version_major": 2, "version_minor": 0, "model_id": form.model_id}
        if "google.colab" in sys.modules:  # there, HTML beside a widget could be the one that is shown
            del data["text/html"]
        display({**data, _WIDGET: view}, raw=True)

    def _form(self):
        """Question, buttons or a field, and a line for the answer; None where there are no live widgets."""
        from IPython import get_ipython
        try:
            import ipywidgets as w
        except ImportError:
            return None
        if not hasattr(get_ipython(), "kernel"):
            return None
        answer = w.HTML()

        def take(value):
            answer.value = self(value)._repr_html_()

        wide = {"layout": {"width": "auto"}}
        if self.choices:
            buttons = [w.Button(description=choice, tooltip=f"Guess: {choice}", **wide) for choice in self.choices]
            for button in buttons:
                button.on_click(lambda pressed: take(pressed.description))
            row = buttons
        else:
            field = w.Text(placeholder="a number, then Enter", description="Your guess:", continuous_update=False,
                           style={"description_width": "initial"}, layout={"width": "18em"})
            field.observe(lambda change: change["new"].strip() and take(change["new"].replace(",", ".")), "value")
            row = [field, w.Label(self.unit)]
        if self.guess is not None:
            answer.value = f"Noted before: {html.escape(self._shown(self.guess))}."
        return w.VBox([w.HTML(f"<b>Your guess:</b> {html.escape(self.question)}"),
                       w.HBox(row, layout={"flex_flow": "row wrap"}), answer,
                       w.HTML(f"<small>{self._how_html()}</small>")])


class Said:
    """A short answer to a guess; `note` says what there is to know about keeping it."""

    def __init__(self, sentence, note=""):
        self.sentence, self.note = sentence, note or ""

    def __repr__(self):
        return "\n".join(filter(None, [self.sentence, self.note]))

    def _repr_html_(self):
        note = f"<br><small>{html.escape(self.note)}</small>" if self.note else ""
        return f'<span role="status">{html.escape(self.sentence)}</span>{note}'
