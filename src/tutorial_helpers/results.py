"""What the clock returns: timings, comparisons and sweeps, which show, save and load themselves."""

import dataclasses
import functools
import html
import json
import math
from collections import namedtuple

import numpy as np

from .caveats import Caveat
from .files import write_whole

_SCHEMA = "tutorial_helpers/1"


class MeasurementError(RuntimeError):
    """A measurement could not be made. `partial` holds what was measured before, or None."""

    def __init__(self, message, partial=None):
        super().__init__(message)
        self.partial = partial


Ratio = namedtuple("Ratio", "estimate low high")
Crossover = namedtuple("Crossover", "estimate low high")


def seconds(t, digits=3):
    """A duration in readable units.

    >>> seconds(0.00321)
    '3.21 ms'
    """
    if not math.isfinite(t):
        return "–"
    units = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)]
    unit, size = next((pair for pair in units if abs(t) >= pair[1] * (1 - 0.5 * 10**-digits)), units[-1])
    return f"{_significant(t / size, digits)} {unit}"


def _significant(value, digits=3):
    if value == 0:
        return "0"
    value = float(f"{value:.{digits}g}")  # before counting digits, since 0.9996 rounds to 1.00
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, places)}f}"


def factor(value):
    """The digits of a factor. Two are what a ratio on a shared machine is good for; near 1 that is three, of which the
    last two say by how much it differs.

    >>> factor(0.93), factor(1.04), factor(2.96), factor(1234)
    ('0.93', '1.04', '3.0', '1,200')
    """
    if not math.isfinite(value) or value <= 0:
        return "?"
    return _significant(value, 3 if 0.995 <= value < 1.995 else 2)


def times(value):
    """A factor in words.

    >>> times(2.96)
    '3.0 times'
    """
    return f"{factor(value)} times"


def median_interval(samples, confidence=0.95):
    """A confidence interval for the median of skewed, autocorrelated samples, as (low, high).

    Order statistics bound a median whatever the distribution: the number of samples below it is binomial (Conover,
    Practical Nonparametric Statistics, 3rd ed., section 3.2; scipy.stats.quantile_test gives the same interval). For
    correlated samples the count is replaced by the effective one, n (1 - r) / (1 + r), with r the lag-one
    autocorrelation of the ranks (Bayley and Hammersley, Supplement to the JRSS 8, 1946). Fewer than six samples
    cannot give 95 %: their extremes are returned.
    """
    values = np.sort(np.asarray(samples, float))
    n = len(values)
    if n < 6:
        return float(values[0]), float(values[-1])
    from scipy.stats import binom
    effective = max(6, round(n * _independent_share(samples)))
    below = int(binom.ppf((1 - confidence) / 2, effective, 0.5))
    if binom.cdf(below, effective, 0.5) > (1 - confidence) / 2:
        below -= 1
    share = max(0.0, below / effective)  # this share of the samples lies below the interval
    index = math.floor(share * n)
    return float(values[index]), float(values[n - 1 - index])


def _independent_share(samples):
    """Which share of autocorrelated samples counts as independent, between 0 and 1."""
    if len(samples) < 12:
        return 1.0
    ranks = np.argsort(np.argsort(samples)).astype(float)
    ranks -= ranks.mean()
    r = float(ranks[:-1] @ ranks[1:] / (ranks @ ranks))
    return (1 - r) / (1 + r) if r > 2 / math.sqrt(len(samples)) else 1.0


@dataclasses.dataclass(frozen=True)
class Timing:
    """One case's times, in seconds per call.

    first_call: the first call, compilation included. samples: steady samples, each the mean of `calls_per_sample`
    calls. rounds: median sample of each round, for paired ratios. stages: how a first call that JAX compiled was spent
    (trace, lower, compile, run). compiles: compilations seen during the steady samples. harness: what loop and wait
    cost per call (included in the samples). cores_busy: processor time per elapsed time. argument_bytes: of
    the arrays among the arguments. caveats: what to know before believing it.
    """

    label: str
    first_call: float
    samples: tuple
    rounds: tuple
    caveats: tuple = ()
    stages: dict = dataclasses.field(default_factory=dict)
    compiles: int = 0
    calls_per_sample: int = 1
    harness: float = 0.0
    cores_busy: float = float("nan")
    argument_bytes: int = 0

    @functools.cached_property
    def steady(self):
        """Median seconds per call."""
        return float(np.median(self.samples))

    @functools.cached_property
    def interval(self):
        """95 % interval of the median, (low, high) in seconds. See median_interval."""
        return median_interval(self.samples)

    def __repr__(self):
        return _text([self])

    def _repr_html_(self):
        return _html([self])


class Comparison:
    """Timings of several cases that were run in the same rounds. comparison[label] is that case's Timing."""

    def __init__(self, timings, machine=None):
        from .machine import describe
        self.timings = tuple(timings)
        self.machine = machine or describe()

    @property
    def labels(self):
        return [timing.label for timing in self.timings]

    def __getitem__(self, label):
        for timing in self.timings:
            if timing.label == label:
                return timing
        raise KeyError(f"no case is called {label!r}; there are {', '.join(map(repr, self.labels))}")

    def __iter__(self):
        return iter(self.timings)

    def __len__(self):
        return len(self.timings)

    @property
    def caveats(self):
        """All cases' caveats."""
        return tuple(caveat for timing in self.timings for caveat in timing.caveats)

    @property
    def fastest(self):
        """Label of the case with the smallest median."""
        return min(self.timings, key=lambda timing: timing.steady).label

    def ratio(self, a, b):
        """How many times as long `a` takes as `b`: Ratio(estimate, low, high), 95 %, from paired rounds."""
        paired = _paired(self[a], self[b])
        return Ratio(float(np.median(paired)), *median_interval(paired))

    def verdict(self, a, b):
        """A sentence on whether `a` takes longer than `b`, computed from the measurement."""
        estimate, low, high = self.ratio(a, b)
        if low <= 1 <= high:
            return f"{a} and {b} are too close to call here (ratio {low:.2f} to {high:.2f})."
        if estimate < 1:
            return self.verdict(b, a)
        return f"{a} takes {times(estimate)} as long as {b} here (95 % interval {_significant(low)} to " \
               f"{_significant(high)})."

    def __repr__(self):
        return _text(self.timings)

    def _repr_html_(self):
        return _html(self.timings)

    def save(self, path):
        """Write everything to a JSON file, replacing it only once complete."""
        write_whole(path, json.dumps({"schema": _SCHEMA, "kind": "comparison", **self._plain()}, indent=1))

    @classmethod
    def load(cls, path):
        """Read what save() wrote. Raises MeasurementError for anything else."""
        return cls._from(_read(path, "comparison"), path)

    def _plain(self):
        return {"machine": self.machine, "timings": [dataclasses.asdict(timing) for timing in self.timings]}

    @classmethod
    def _from(cls, data, path):
        try:
            return cls([_timing(entry) for entry in data["timings"]], dict(data["machine"]))
        except (KeyError, TypeError, ValueError) as error:
            raise MeasurementError(f"{path} is not a complete measurement file ({error}).") from error


class Sweep:
    """Comparisons of the same cases at several sizes. sweep[n] is the Comparison at size n."""

    def __init__(self, comparisons):
        self.comparisons = dict(sorted(comparisons.items()))

    @property
    def sizes(self):
        return list(self.comparisons)

    @property
    def labels(self):
        return next(iter(self.comparisons.values())).labels if self.comparisons else []

    @property
    def caveats(self):
        return tuple(caveat for comparison in self.comparisons.values() for caveat in comparison.caveats)

    def __getitem__(self, size):
        return self.comparisons[size]

    def crossover(self, a, b):
        """The size from which `a` takes less time than `b`, up to the largest measured.

        Interpolated between sizes on log axes. Returns Crossover(estimate, low, high), where low and high follow from
        the ends of the ratios' intervals; None if `a` does not overtake `b` within the sizes measured.
        """
        ratios = [self[n].ratio(a, b) for n in self.sizes]
        estimate = _crossing(self.sizes, [r.estimate for r in ratios])
        if estimate is None:
            return None
        low = _crossing(self.sizes, [r.low for r in ratios])
        high = _crossing(self.sizes, [r.high for r in ratios])
        return Crossover(estimate, min(estimate, low or self.sizes[0]), max(estimate, high or self.sizes[-1]))

    def __repr__(self):
        return "\n".join(f"size {n:,}\n{comparison!r}\n" for n, comparison in self.comparisons.items())

    def _repr_html_(self):
        heads = "".join(f"<th scope='col'>{html.escape(label)}</th>" for label in self.labels)
        rows = "".join(
            f"<tr><th scope='row'>{n:,}</th>" + "".join(f"<td>{seconds(comparison[label].steady)}</td>"
                                                        for label in self.labels) + "</tr>"
            for n, comparison in self.comparisons.items())
        return (f"<table><caption>Median time of one call, by size</caption><tr><th scope='col'>size</th>{heads}</tr>"
                f"{rows}</table>{self._notes()}")

    def _notes(self):
        """Each caveat once, with the sizes and cases that it was found at."""
        where = {}
        for n, comparison in self.comparisons.items():
            for label, caveat in _labelled(comparison.timings):
                where.setdefault(caveat, {}).setdefault(label, []).append(f"{n:,}")
        return _listed((" · ".join(f"{label} at {', '.join(sizes)}" for label, sizes in places.items()), caveat)
                       for caveat, places in where.items())

    def save(self, path):
        """Write everything to a JSON file, replacing it only once complete."""
        write_whole(path, json.dumps({"schema": _SCHEMA, "kind": "sweep", "sizes": [
            {"size": n, **comparison._plain()} for n, comparison in self.comparisons.items()]}, indent=1))

    @classmethod
    def load(cls, path):
        """Read what save() wrote. Raises MeasurementError for anything else."""
        data = _read(path, "sweep")
        try:
            return cls({entry["size"]: Comparison._from(entry, path) for entry in data["sizes"]})
        except (KeyError, TypeError) as error:
            raise MeasurementError(f"{path} is not a complete measurement file ({error}).") from error


def _crossing(sizes, ratios):
    """Where the ratio falls through 1 for the last time, to stay below; None if it never does or never was above."""
    logs = np.log(np.asarray(ratios, float))
    if not len(logs) or logs[-1] > 0 or not (logs > 0).any():
        return None
    last = int(np.flatnonzero(logs > 0)[-1])
    x0, x1 = np.log(sizes[last]), np.log(sizes[last + 1])
    return float(np.exp(x0 + (x1 - x0) * logs[last] / (logs[last] - logs[last + 1])))


# ---------------------------------------------------------------------------------------------------------------------
# Tables


_HEADS = ["case", "one call", "95 % interval", "× fastest", "first call", "cores busy", "caveats"]


def _paired(first, second):
    """How many times as long one Timing takes as another, round by round; by their medians before any round ended."""
    pairs = list(zip(first.rounds, second.rounds, strict=False)) or [(first.steady, second.steady)]
    return [x / (y or 1e-12) for x, y in pairs]


def _row(timing, fastest):
    low, high = timing.interval
    kinds = ", ".join(dict.fromkeys(caveat.kind for caveat in timing.caveats))
    busy = timing.cores_busy
    return [timing.label, seconds(timing.steady), f"{seconds(low)} to {seconds(high)}",
            _significant(float(np.median(_paired(timing, fastest)))), seconds(timing.first_call),
            f"{busy:.1f}" if math.isfinite(busy) else "–", kinds]


def _table(timings):
    fastest = min(timings, key=lambda timing: timing.steady, default=None)
    return [_row(timing, fastest) for timing in timings]


def _text(timings):
    rows = [_HEADS, *_table(timings)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(w) if i in (0, 6) else cell.rjust(w) for i, (cell, w) in
                       enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    notes = [f"⚠ {label}: {caveat.kind}: {caveat.sentence}" for label, caveat in _labelled(timings)]
    return "\n".join(lines + notes)


def _html(timings):
    heads = "".join(f"<th scope='col'>{head}</th>" for head in _HEADS)
    rows = "".join(f"<tr><th scope='row' style='text-align:left'>{html.escape(row[0])}</th>"
                   + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:6])
                   + f"<td style='text-align:left'>{html.escape(row[6])}</td></tr>" for row in _table(timings))
    return f"<table><tr>{heads}</tr>{rows}</table>{_listed(_labelled(timings))}"


def _labelled(timings):
    return [(timing.label, caveat) for timing in timings for caveat in timing.caveats]


def _listed(found):
    """(where, Caveat) pairs as a list; nothing where there is none."""
    notes = "".join(f"<li>⚠ <b>{html.escape(where)}</b>, {html.escape(c.kind)}: {html.escape(c.sentence)}</li>"
                    for where, c in found)
    return f"<ul>{notes}</ul>" if notes else ""


# ---------------------------------------------------------------------------------------------------------------------
# Files


def _read(path, kind):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise MeasurementError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"{path} is not a JSON file.") from error
    if not isinstance(data, dict) or data.get("schema") != _SCHEMA or data.get("kind") != kind:
        raise MeasurementError(f"{path} holds no {kind} saved by this package (schema {_SCHEMA}).")
    return data


def _timing(entry):
    fields = {field.name for field in dataclasses.fields(Timing)}
    known = {name: value for name, value in entry.items() if name in fields}
    numbers = [*known["samples"], *known["rounds"], known["first_call"]]
    if not known["samples"] or not all(isinstance(value, (int, float)) for value in numbers):
        raise ValueError("samples must be numbers")
    return Timing(**{**known, "samples": tuple(known["samples"]), "rounds": tuple(known["rounds"]),
                     "caveats": tuple(Caveat(**caveat) for caveat in known.get("caveats", ()))})
