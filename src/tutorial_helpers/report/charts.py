"""Figures of a report as rows on a logarithmic axis: made of HTML, so that they fit a phone and follow light and dark.

Each function returns a plain dictionary for templates/chart.html.j2: title, finding, alt, rows, ticks, limit and the
table of the same numbers. Positions are percentages of the axis.
"""

import math

from ..drawing import duration, step
from ..results import Ratio, factor, seconds
from .measurements import sound, usable

MACHINES = "ABCDEF"  # as many as style.css has markers for


class Axis:
    """A logarithmic axis over positive numbers, with a little room at both ends."""

    def __init__(self, values, write, least=4.0):
        low, high = min(values), max(values)
        room = max(1.12, math.sqrt(least * low / high) if high < least * low else 1.0)
        self.low, self.high, self.write = low / room, high * room, write

    def at(self, value):
        value = min(max(value, self.low), self.high)
        return round(100 * math.log(value / self.low) / math.log(self.high / self.low), 2)

    @property
    def ticks(self):
        """At most seven round numbers: [{"at": percent, "label": text}]."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in decades for digit in digits]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= 6:
                break
        ticks, room = [], 0.0
        for value in found[::math.ceil(len(found) / 6)]:
            at = self.at(value)
            ticks.append({"at": at, "label": self.write(value) if at >= room else ""})  # a phone is narrow
            room = at + 15 if at >= room else room
        return ticks


def waterfall(measurement, limit):
    """One cause at a time, from the first case to the last; `limit` is the label of the floor under it."""
    cases = [case for case in measurement["cases"] if case["label"] != limit]
    floor = next((case for case in measurement["cases"] if case["label"] == limit), None)
    if len(cases) < 2 or not all(usable(case["seconds"]) for case in measurement["cases"]):
        return None
    axis = Axis([value for case in measurement["cases"] for value in (case["seconds"], *ends(case))], duration)
    steps = [ratio(case, "previous_over_this") for case in cases[1:]]
    whole = ratio(cases[-1], "first_over_this")
    largest = max(range(len(steps)), key=lambda i: abs(math.log(steps[i].estimate)))
    finding = (f"From {seconds(cases[0]['seconds'])} to {seconds(cases[-1]['seconds'])}: {step(whole)}. The largest "
               f"step is {cases[largest + 1]['label']}, {step(steps[largest])}.")
    rows, before = [], None
    for case, change in zip(cases, [None, *steps], strict=True):
        here = axis.at(case["seconds"])
        row = base_row(case, axis)
        if change:
            tone = "level" if change.low <= 1 <= change.high else "fast" if change.estimate > 1 else "slow"
            row |= {"bar": span(before, here), "tone": tone, "step": step(change),
                    "step_at": place((before + here) / 2)}
        rows.append(row)
        before = here
    table = [[case["label"], seconds(case["seconds"]), interval(case), step(change) if change else "",
              kinds(case)] for case, change in zip(cases, [None, *steps], strict=True)]
    if floor:
        table.append([floor["label"], seconds(floor["seconds"]), interval(floor), "", kinds(floor)])
    told = "; ".join(f"{row[0]} {row[1]}" + (f", {row[3]}" if row[3] else "") for row in table)
    return {"finding": finding, "alt": f"{finding} Step by step: {told}.", "rows": rows, "ticks": axis.ticks,
            "limit": floor and {"at": axis.at(floor["seconds"]), "label": f"{limit}: {seconds(floor['seconds'])}"},
            "axis": "time of one call, logarithmic", "heads": ["step", "one call", "95 % interval", "against the step "
                                                               "before", "caveats"], "table": table}


def ladder(measurement):
    """One task in several ways, in the order of the lesson; the first is what the others are compared with."""
    cases = [case for case in measurement["cases"] if usable(case["seconds"])]
    if len(cases) < 2:
        return None
    axis = Axis([value for case in cases for value in (case["seconds"], *ends(case))], duration)
    first, best = cases[0], min(cases, key=lambda case: case["seconds"])
    gains = [None, *(ratio(case, "first_over_this") for case in cases[1:])]
    rows = []
    for case, gain in zip(cases, gains, strict=True):
        tone = "best" if case is best else "plain"
        rows.append(base_row(case, axis) | {"bar": span(0, axis.at(case["seconds"])), "tone": tone,
                                            "more": f"{factor(gain.estimate)}×" if gain else "1×"})
    finding = f"Against {first['label']}, the fastest rung is {best['label']}: {step(gains[cases.index(best)])}." \
        if best is not first else f"No rung is faster than {first['label']}."
    table = [[case["label"], seconds(case["seconds"]), interval(case), step(gain) if gain else "",
              seconds(case["first_call"]) if usable(case["first_call"]) else "", kinds(case)]
             for case, gain in zip(cases, gains, strict=True)]
    told = "; ".join(f"{row[0]} {row[1]}" for row in table)
    return {"finding": finding, "alt": f"{finding} One call: {told}.", "rows": rows, "ticks": axis.ticks, "limit": None,
            "axis": "time of one call, logarithmic", "table": table,
            "heads": ["rung", "one call", "95 % interval", f"against {first['label']}", "first call", "caveats"]}


def ratios(rows, finding, columns, axis_name, limit, title=""):
    """One marker per machine on a common axis of ratios.

    rows: (label, [Ratio or None for each column], note, group); a group that is not the one before becomes a heading.
    columns: the machines' numbers. limit: what the line at 1 is called.
    """
    values = [value for _, found, *_ in rows for one in found if one for value in one if usable(value)]
    axis = Axis([1.0, *values], lambda value: f"{factor(value)}×", least=9)
    drawn, table, before = [], [], ""
    for label, found, note, group in rows:
        told = [f"{factor(one.estimate)}×" if one else "–" for one in found]
        if group != before:
            drawn.append({"group": group})
        before = group
        drawn.append({"label": label, "note": note, "more": "",
                      "dots": [{"at": axis.at(one.estimate), "interval": span(axis.at(one.low), axis.at(one.high)),
                                "machine": machine} for machine, one in zip(columns, found, strict=True) if one],
                      "value": " · ".join(f"{MACHINES[i]}\N{NO-BREAK SPACE}{text}"
                                          for i, text in zip(columns, told, strict=True))})
        table.append([f"{group}: {label}" if group else label, *(
            f"{factor(one.estimate)} ({factor(one.low)} to {factor(one.high)})" if one else "–" for one in found)])
    told = "; ".join(f"{row['label']} {row['value']}" for row in drawn if "label" in row)
    return {"title": title, "finding": finding, "alt": f"{title} {finding} {told}.".strip(), "rows": drawn,
            "ticks": axis.ticks, "limit": {"at": axis.at(1), "label": limit}, "table": table, "axis": axis_name,
            "heads": ["measured", *(MACHINES[i] for i in columns)]}


# ---------------------------------------------------------------------------------------------------------------------


def base_row(case, axis):
    return {"label": case["label"], "note": f"⚠ {kinds(case)}" if case["caveats"] else "",
            "dot": axis.at(case["seconds"]), "interval": span(*map(axis.at, ends(case))),
            "value": seconds(case["seconds"]), "more": "", "hollow": not sound(case)}


def ratio(case, name):
    values = case.get(name) or []
    return Ratio(*values) if len(values) == 3 and all(map(usable, values)) else Ratio(math.nan, math.nan, math.nan)


def ends(case):
    """The interval, or the number itself where there is none."""
    return [value if usable(value) else case["seconds"] for value in case["interval"]]


def interval(case):
    return " to ".join(seconds(value) for value in ends(case))


def kinds(case):
    return ", ".join(dict.fromkeys(caveat["kind"] for caveat in case["caveats"]))


def span(a, b):
    return {"at": min(a, b), "width": round(max(0.4, abs(b - a)), 2)}


def place(at):
    """Where text centred at a percentage may stand, so that it does not leave the axis."""
    return {"at": round(min(max(at, 0), 100), 2), "side": "left" if at < 30 else "right" if at > 70 else "middle"}
