"""What the learner did so far, and progress(), which shows it. One small JSON file; nothing leaves the machine.

The file lies in the user's data folder, or in the folder that TUTORIAL_HELPERS_DATA names. Every change is made to
what the file holds at that moment, under a lock and by replacing the file as a whole, so that two notebooks at once
lose nothing. A file that is damaged, or from a newer version, is renamed and never deleted. Where the folder cannot be
written, everything is kept in memory, and tried again with the next change.
"""

import contextlib
import datetime
import html
import json
import math
import numbers
import os
import re
import threading
import time
from pathlib import Path

from .files import replace, write_whole

__all__ = ["Progress", "guessed", "hinted", "predicted", "progress", "saw_solution", "tried"]

SCHEMA = 1
_NAME = "progress.json"
_WAIT = 5.0  # seconds to wait for another notebook that is writing

_unwritten = []  # changes that are not in the file yet
_told = set()  # what needs to be said once only
_here = threading.RLock()


# ---------------------------------------------------------------------------------------------------------------------
# What happens. Each returns a sentence for the learner, or "".


def tried(id, passed, speedup=None):
    """An answer to the exercise `id` was judged; speedup: the Ratio that was measured, if that was the task."""
    def change(data):
        entry = _exercise(data, id)
        entry["tries"] += not entry["done"]
        if passed and not entry["done"]:
            entry["done"] = _now()
        if passed and speedup and all(math.isfinite(x) and x > 0 for x in speedup) and (
                not entry["speedup"] or speedup[0] > entry["speedup"][0]):
            entry["speedup"] = [float(x) for x in speedup]
    return _keep(change)


def hinted(id, count):
    """The first `count` hints of the exercise `id` were shown."""
    def change(data):
        entry = _exercise(data, id)
        entry["hints"] = max(entry["hints"], int(count))
    return _keep(change)


def saw_solution(id):
    """The solution of the exercise `id` was shown."""
    def change(data):
        _exercise(data, id)["solution"] = True
    return _keep(change)


def guessed(id, guess):
    """A prediction was made: a number, or a choice."""
    def change(data):
        data["predictions"][id] = {"guess": guess, "actual": None, "factor": None, "when": _now()}
    return _keep(change)


def predicted(id, guess, actual, factor=None):
    """A prediction met its measurement. factor: guess / actual, for numbers."""
    def change(data):
        data["predictions"][id] = {"guess": guess, "actual": actual, "factor": factor, "when": _now()}
    return _keep(change)


def guess_of(id):
    """The guess that was kept for a prediction, or None."""
    return _current()[0]["predictions"].get(id, {}).get("guess")


def progress():
    """What was done so far, as one figure. progress().export() writes it to a file."""
    return Progress(*_current())


# ---------------------------------------------------------------------------------------------------------------------
# The file


def folder():
    """The folder of the progress file."""
    import platformdirs

    return Path(os.environ.get("TUTORIAL_HELPERS_DATA") or platformdirs.user_data_dir("tutorial_helpers", False))


def _empty():
    return {"schema": SCHEMA, "exercises": {}, "predictions": {}}


def _exercise(data, id):
    return data["exercises"].setdefault(id, {"done": None, "tries": 0, "hints": 0, "solution": False, "speedup": None})


def _now():
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _keep(change):
    """Make a change to the file, or in memory if that fails. Returns what there is to say."""
    with _here:
        _unwritten.append(change)
        try:
            home = folder()
            home.mkdir(parents=True, exist_ok=True)
            with _locked(home / "progress.lock"):
                data, said = _read(home / _NAME)
                if said:
                    said += f" It is kept as {_set_aside(home / _NAME)}, and a new one is begun."
                for each in _unwritten:
                    each(data)
                _write(home / _NAME, data)
            _unwritten.clear()
        except OSError as error:
            reason = error.strerror or str(error)
            return _once(f"Your progress can't be written to {folder()} ({reason.lower()}), so it is kept only until "
                         "this kernel ends. `progress().export(\"a path\")` saves it elsewhere.")
        return " ".join(filter(None, [said, _once(_passing())]))


def _current():
    """What the file holds and what waits to be written to it; and a sentence if the file cannot be read."""
    with _here:
        try:
            data, said = _read(folder() / _NAME)
        except OSError as error:
            data, said = _empty(), f"The progress file can't be read ({(error.strerror or str(error)).lower()})."
        for change in _unwritten:
            change(data)
    return data, said


def _read(path):
    """The file's data, or empty data and a sentence on what is wrong with it."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return _empty(), ""
    try:
        data = json.loads(text)
        problem = _problem(data)
    except (ValueError, RecursionError):
        problem = "it isn't the JSON that it should be"
    return (_empty(), f"The progress file can't be used: {problem}.") if problem else (data, "")


def _write(path, data):
    write_whole(path, json.dumps(data, indent=1, sort_keys=True))


def _set_aside(path):
    """Rename the file to a name that is free; returns that name."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    for count in range(1000):
        kept = path.with_name(f"progress-set-aside-{stamp}{f'-{count}' if count else ''}.json")
        if not kept.exists():
            replace(path, kept)
            return kept.name
    raise OSError(f"{path.parent} is full of files that were set aside")


@contextlib.contextmanager
def _locked(path):
    """Hold the lock of that file against other threads and processes. The file itself stays empty."""
    with open(path, "a+b") as file:
        until = time.monotonic() + _WAIT
        while not (unlock := _lock(file)):
            if time.monotonic() > until:
                raise OSError("another notebook is writing to it, and doesn't come to an end")
            time.sleep(0.01)
        try:
            yield
        finally:
            unlock()


def _lock(file):
    """Lock an open file if it is free: returns what unlocks it, or None."""
    try:
        if os.name == "nt":
            import msvcrt
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            return lambda: (file.seek(0), msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1))
        import fcntl
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lambda: fcntl.flock(file, fcntl.LOCK_UN)
    except (BlockingIOError, PermissionError):
        return None
    except OSError:  # a file system that knows no locks: better without than not at all
        return lambda: None


def _once(sentence):
    if not sentence or sentence in _told:
        return ""
    _told.add(sentence)
    return sentence


def _passing():
    """Where nothing lasts: a sentence that says so."""
    for variable, name in (("COLAB_RELEASE_TAG", "Colab"), ("BINDER_SERVICE_HOST", "Binder")):
        if os.environ.get(variable):
            return (f"{name} forgets your progress when the session ends. `progress().export()` writes it to a file "
                    "that you can download.")
    return ""


# ---------------------------------------------------------------------------------------------------------------------
# Is a file what it should be?


def _problem(data):
    """What is wrong with the data of a file, or None."""
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        return "it isn't a progress file"
    if data["schema"] > SCHEMA:
        return "a newer version of the helpers wrote it"
    for part, valid, name in (("exercises", _valid_exercise, r"\d\d\.\d+"), ("predictions", _valid_prediction, ".+")):
        entries = data.get(part)
        if not isinstance(entries, dict):
            return f"it holds no {part}"
        for id, entry in entries.items():
            if not (re.fullmatch(name, id) and isinstance(entry, dict) and valid(entry)):
                return f"its entry for {id} under {part} isn't valid"
    return None


def _valid_exercise(entry):
    speedup = entry.get("speedup", "missing")
    return (_optional(entry.get("done", 0), str) and _whole(entry.get("tries")) and _whole(entry.get("hints"))
            and isinstance(entry.get("solution"), bool)
            and (speedup is None or (isinstance(speedup, list) and len(speedup) == 3 and all(map(_positive, speedup)))))


def _valid_prediction(entry):
    factor = entry.get("factor", "missing")
    return (_value(entry.get("guess")) and ("actual" in entry and (entry["actual"] is None or _value(entry["actual"])))
            and (factor is None or _positive(factor)) and isinstance(entry.get("when"), str))


def _optional(value, kind):
    return value is None or isinstance(value, kind)


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _positive(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _value(value):
    return isinstance(value, str) or _positive(value)


# ---------------------------------------------------------------------------------------------------------------------
# Showing and exporting it


class Progress:
    """What was done so far; shows itself as one figure.

    data: {"exercises": {id: …}, "predictions": {id: …}}, as the file holds it. note: what there is to say about it.
    """

    def __init__(self, data, said=""):
        self.data, self.note = data, " ".join(filter(None, [said, _passing()]))

    @property
    def figure(self):
        """The figure, a plotting.Figure."""
        from .exercises import catalogue
        from .progress_figure import draw
        return draw(self.data, states_of(self.data, catalogue()))

    def __repr__(self):
        return "\n".join(filter(None, [self.figure.alt, self.note]))

    def _repr_mimebundle_(self, include=None, exclude=None):
        data, metadata = self.figure._repr_mimebundle_()
        if self.note:
            data["text/html"] += f"<br><small>{html.escape(self.note)}</small>"
            data["text/plain"] += f"\n{self.note}"
        return data, metadata

    def export(self, path=None):
        """Write it to a JSON file, for example to hand in at a workshop. Nothing is sent anywhere.

        path: the file, or a folder for it; by default the current folder. Returns an Exported, which says where.
        """
        name = f"tutorial-progress-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
        target = Path(name if path is None else path).expanduser()
        target = (target / name if target.is_dir() else target).absolute()
        try:
            _write(target, {**self.data, "exported": _now()})
        except OSError as error:
            return Exported(None, f"{target} can't be written ({(error.strerror or str(error)).lower()}): name another "
                                  "file, as in progress().export(\"a path\").")
        return Exported(target, f"Your progress is in {target}. It was sent nowhere: it is yours to hand on.")


class Exported:
    """Where an export went: `path`, or None; and the `sentence` that it shows."""

    def __init__(self, path, sentence):
        self.path, self.sentence = path, sentence

    def __repr__(self):
        return self.sentence


def states():
    """For every exercise of the catalogue: (exercise, "done" | "tried" | "open", its entry or None)."""
    from .exercises import catalogue
    return states_of(_current()[0], catalogue())


def states_of(data, exercises):
    """As states(), for given data and exercises."""
    rows = []
    for each in exercises:
        entry = data["exercises"].get(each.id)
        state = "open" if entry is None else "done" if entry["done"] else "tried"
        rows.append((each, state, entry))
    return rows
