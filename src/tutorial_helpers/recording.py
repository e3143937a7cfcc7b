"""What a report is made from: finished measurements and verdicts, appended to a file that was asked for.

$TUTORIAL_HELPERS_RECORD names the file; without it nothing is kept. One JSON object a line: small, since samples stay
in the notebook. A line is appended in one write, so that an interrupted notebook leaves whole lines behind.
"""

import contextvars
import functools
import json
import math
import os
import sys

VARIABLE = "TUTORIAL_HELPERS_RECORD"
_outermost = contextvars.ContextVar("outermost", default=True)  # a sweep's comparisons are kept once, with the sweep


def recorded(measurement):
    """Make measure(), compare() or sweep() keep what it returns."""
    @functools.wraps(measurement)
    def call(*args, **kwargs):
        if not os.environ.get(VARIABLE):
            return measurement(*args, **kwargs)
        before = _outermost.set(False)
        try:
            result = measurement(*args, **kwargs)
        finally:
            _outermost.reset(before)
        if _outermost.get():
            _keep({"kind": measurement.__name__, "points": _points(measurement.__name__, result)})
        return result
    return call


def verdict(id, verdict, evidence):
    """Keep what was found about a claim."""
    _keep({"kind": "claim", "id": id, "verdict": verdict, "evidence": evidence})


def _keep(entry):
    path = os.environ.get(VARIABLE)
    if not path:
        return
    line = json.dumps({**entry, "cell": _cell()}, ensure_ascii=False) + "\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
    except OSError as error:  # the lesson goes on; the report will miss this one
        print(f"A measurement could not be written to {path}: {error.strerror}.", file=sys.stderr)


def _cell():
    """The number of the running cell, as its In [ ] shows it; None outside a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return None
    # Not shell.execution_count: it names the running cell or the next one, depending on IPython's version.
    return max(1, len(shell.history_manager.input_hist_raw) - 1)


def _points(kind, result):
    """One entry for each size: its cases, and the devices that the frameworks saw."""
    if kind == "sweep":
        return [{"size": int(size) if size == int(size) else float(size), **_comparison(comparison)}
                for size, comparison in result.comparisons.items()]
    if kind == "measure":
        return [{"size": None, "devices": {}, "cases": [_case(result)]}]
    return [{"size": None, **_comparison(result)}]


def _comparison(comparison):
    labels = comparison.labels
    cases = [_case(timing) for timing in comparison]
    for case, label, before in zip(cases[1:], labels[1:], labels, strict=False):
        case["first_over_this"] = [_short(value) for value in comparison.ratio(labels[0], label)]
        case["previous_over_this"] = [_short(value) for value in comparison.ratio(before, label)]
    return {"devices": comparison.machine.get("devices", {}), "cases": cases}


def _case(timing):
    return {"label": timing.label, "seconds": _short(timing.steady),
            "interval": [_short(value) for value in timing.interval], "first_call": _short(timing.first_call),
            "argument_bytes": timing.argument_bytes, "compiles": timing.compiles,
            "cores_busy": _short(timing.cores_busy),
            "caveats": [{"kind": caveat.kind, "sentence": caveat.sentence} for caveat in timing.caveats]}


def _short(value):
    """Five significant digits; None for what is no number."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
