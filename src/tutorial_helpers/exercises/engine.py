"""An exercise: its task, staged hints, reference solution, and a check that answers in one sentence."""

import html
import importlib.util
import re
import types

from . import LEVELS
from .guard import Guard, Stopped
from .trial import Trial, Wrong, described, unwrapped

__all__ = ["Exercise", "Feedback", "Trial", "Wrong"]

CHECK_LIMIT = 150.0  # seconds for a whole check

_NOTHING = object()
_MARKS = {True: "✓", False: "✗", None: "·"}
_WORDS = {True: "Passed", False: "Not yet", None: "Open"}


class Feedback:
    """The answer to ex.check(…): `passed` (True, False, or None when there was nothing to judge) and one `sentence`.

    printed: the beginning of what the learner's code printed. note: what there is to say about keeping progress.
    error: an exception by which the check itself failed, or None.
    """

    def __init__(self, id, passed, sentence, printed="", note="", error=None):
        self.id, self.passed, self.sentence = id, passed, sentence
        self.printed, self.note, self.error = printed, note, error

    @property
    def _head(self):
        return f"{_MARKS[self.passed]} {self.id} {_WORDS[self.passed]}."

    def __repr__(self):
        lines = [f"{self._head} {self.sentence}"]
        if self.printed:
            lines.append(f"Your code printed: {self.printed}")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def _repr_html_(self):
        colour = {True: "#009e73", False: "#d55e00", None: "#767676"}[self.passed]
        parts = [f"<b>{html.escape(self._head)}</b> {_inline(self.sentence)}"]
        if self.printed:
            parts.append(f"Your code printed:<pre>{html.escape(self.printed)}</pre>")
        if self.note:
            parts.append(f"<small>{_inline(self.note)}</small>")
        return (f'<div role="status" style="border-left: 4px solid {colour}; padding: 0.2em 0.8em">'
                f"{'<br>'.join(parts)}</div>")


class Note:
    """A hint or a solution: markdown in a notebook, plain text in a terminal."""

    def __init__(self, markdown):
        self.markdown = markdown

    def __repr__(self):
        return plain(self.markdown)

    def _repr_markdown_(self):
        return self.markdown


class Exercise:
    """One exercise of a notebook. In a notebook, exercise(id) hands it out.

    id: the notebook's number and the exercise's, as in "02.3". level: "read", "write" or "speed". task, explanation:
    markdown. answer: the name that the starter defines. starter, solution: source code that defines it. hints: at
    least two, the first one the weakest. needs: modules that it cannot do without. check: (answer, trial) → a
    sentence on what was right, or None; raises Wrong.

    Raises ValueError for an entry that is incomplete.
    """

    def __init__(self, id, title, level, task, answer, starter, hints, solution, explanation, check, needs=()):
        if level not in LEVELS or not re.fullmatch(r"\d\d\.\d+", id):
            raise ValueError(f"Exercise {id!r} needs an id such as '02.3' and a level out of {', '.join(LEVELS)}.")
        hints, needs = tuple(hints), (needs,) if isinstance(needs, str) else tuple(needs)
        if len(hints) < 2:
            raise ValueError(f"Exercise {id} needs two hints or more.")
        self.id, self.title, self.level, self.task, self.answer = id, title, level, task.strip(), answer
        self.starter, self.hints, self.reference = starter, hints, solution
        self.explanation, self.needs, self._check, self._hinted = explanation.strip(), needs, check, 0

    @property
    def page(self):
        """The notebook's number, such as "02"."""
        return self.id.split(".")[0]

    # -- what the learner reads

    def _repr_markdown_(self):
        return self.missing() or (f"**Exercise {self.id} · {self.title}** ({LEVELS[self.level]})\n\n{self.task}\n\n"
                                  "*Fill in the next cell, then run the one after it. Stuck? `ex.hint()` gives a "
                                  "nudge.*")

    def __repr__(self):
        return plain(self._repr_markdown_())

    def missing(self):
        """One sentence on the libraries that are not installed, or ""."""
        names = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if not names:
            return ""
        from ..frameworks import _INSTALL
        install = " ".join(_INSTALL.get(name, name) for name in names)
        return (f"Exercise {self.id} ({self.title}) needs {' and '.join(names)}, not installed here: run "
                f"`%pip install {install}` and restart the kernel to try it.")

    def hint(self):
        """The next hint, and how many remain."""
        if self._hinted >= len(self.hints):
            every = "\n".join(f"{i}. {text}" for i, text in enumerate(self.hints, 1))
            return Note(f"**All hints of {self.id}**\n\n{every}\n\n`ex.solution(show=True)` shows a solution.")
        self._hinted += 1
        left = len(self.hints) - self._hinted
        more = f"{left} more: call `ex.hint()` again." if left else "That was the last one; `ex.solution(show=True)` " \
            "shows a solution."
        self._keep("hinted", self._hinted)
        return Note(f"**Hint {self._hinted} of {len(self.hints)}.** {self.hints[self._hinted - 1]}\n\n*{more}*")

    def solution(self, show=False):
        """The reference solution and why it works; without show=True only a question."""
        if not show:
            return Note(f"This shows the whole solution of {self.id}, and cannot be unseen. `ex.hint()` gives less "
                        "away. If you do want it: `ex.solution(show=True)`.")
        self._keep("saw_solution")
        return Note(f"**A solution of {self.id}**\n\n```python\n{self.reference.strip()}\n```\n\n{self.explanation}")

    # -- checking

    def check(self, answer=_NOTHING):
        """Judge an answer. Returns a Feedback, and raises nothing, whatever the answer does."""
        if self.missing():
            return Feedback(self.id, None, self.missing())
        if answer is _NOTHING:
            return Feedback(self.id, None, f"Hand your answer over: `ex.check({self.answer})`.")
        try:
            return self._answered(answer)
        except Exception as error:  # an object that can't even be looked at
            return Feedback(self.id, False, f"The check can make nothing of this answer ({type(error).__name__}): read "
                                            "the task again for what it must be.", error=error)

    def _answered(self, answer):
        if self.untouched(answer):
            do = "put your answer where the `...` stands" if "..." in self.starter else "change the starter cell"
            return Feedback(self.id, None, f"Not attempted yet: {do}, and run both cells again.")
        feedback = self._judged(answer)
        if feedback.passed is not None:
            best = feedback.passed and max(feedback.speedups, default=None)
            feedback.note = self._keep("tried", feedback.passed, best or None)
        return feedback

    def untouched(self, answer):
        """Is this still the starter's answer: `...`, or the starter's function unchanged?"""
        values = list(answer.values()) if isinstance(answer, dict) else answer
        if isinstance(values, (list, tuple)) and values:
            return all(value is Ellipsis for value in values)
        if answer is Ellipsis:
            return True
        code = getattr(unwrapped(answer), "__code__", None)
        return isinstance(code, types.CodeType) and any(_same_code(code, other) for other in self._starter_codes())

    def _starter_codes(self):
        module = compile(self.starter, "<starter>", "exec", dont_inherit=True)
        return [code for code in module.co_consts if isinstance(code, types.CodeType) and code.co_name == self.answer]

    def _misfit(self, answer):
        """A sentence for a value where a function belongs, or a function where a value does; else ""."""
        if self._starter_codes() and not callable(answer):
            return (f"A function is needed here, and this is {described(answer)}: hand over `{self.answer}` itself, "
                    f"without calling it, as in `ex.check({self.answer})`.")
        if self.level == "read" and isinstance(answer, (types.FunctionType, types.MethodType)):
            return "A value is needed here, and this is a function: call it, and hand over what it returns."
        return ""

    def _judged(self, answer):
        misfit = self._misfit(answer)
        if misfit:
            return _Judged(self.id, False, misfit)
        guard = Guard(CHECK_LIMIT, f"The check did not end within {CHECK_LIMIT:g} s.")
        trial = Trial(guard)
        outcome = guard.run(lambda: self._check(answer, trial))
        passed, sentence, error = self._verdict(outcome, answer)
        if outcome.left_running:
            sentence += (" It could not be stopped and keeps a core busy, which also spoils later measurements: "
                         "restart the kernel to end it.")
        feedback = _Judged(self.id, passed, sentence, outcome.printed, error=error)
        feedback.speedups = trial.speedups
        return feedback

    def _verdict(self, outcome, answer):
        if outcome.interrupted:
            return None, "You stopped the check, so nothing was judged.", None
        if outcome.late:
            return False, outcome.late, None
        if outcome.error is None:
            return True, (outcome.value if isinstance(outcome.value, str) else "Right."), None
        if isinstance(outcome.error, Wrong):
            return False, str(outcome.error), None
        kind = "stopped" if isinstance(outcome.error, Stopped) else type(outcome.error).__name__
        return False, (f"The check can make nothing of this answer, {described(answer)} ({kind}: "
                       f"{str(outcome.error)[:120]}): read the task again for what it must be."), outcome.error

    def _keep(self, what, *details):
        from .. import learner
        return getattr(learner, what)(self.id, *details)


class _Judged(Feedback):
    """A Feedback that also knows the speed-ups measured on the way."""

    speedups = ()


def _same_code(a, b):
    """Do two code objects do the same, wherever they stand?"""
    if (a.co_code, a.co_names, a.co_varnames, a.co_argcount) != (b.co_code, b.co_names, b.co_varnames, b.co_argcount):
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    return all(_same_code(x, y) if isinstance(x, types.CodeType) and isinstance(y, types.CodeType)
               else type(x) is type(y) and x == y for x, y in zip(a.co_consts, b.co_consts, strict=True))


def _inline(text):
    """A sentence as HTML: what stands between backticks is code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return html.escape(text)
    return "".join(f"<code>{html.escape(piece)}</code>" if i % 2 else html.escape(piece)
                   for i, piece in enumerate(pieces))


def plain(markdown):
    """Markdown as plain text: emphasis and code marks go, everything else stays."""
    kept = []
    for i, piece in enumerate(re.split(r"(```.*?```)", markdown, flags=re.S)):
        if i % 2:
            kept.append("\n".join("    " + line for line in piece.splitlines()[1:-1]))
        else:
            kept.append(re.sub(r"(`[^`]*`)|(?<![\w*])(\*\*|\*)(?=\S)(.+?)(?<=\S)\2(?![\w*])",
                               lambda found: found[1] or found[3], piece, flags=re.S))  # `*args` in code stays
    return "".join(kept)
