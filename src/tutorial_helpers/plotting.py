"""One function per figure: labelled with units, spread drawn, stamped with the machine, with alt text.

Every figure says its finding in one line that is computed from the data, so that it cannot disagree with the
picture. Colour is never the only channel: markers, line styles, hatches and direct labels repeat what it says.
"""

import itertools
import math
import sys
import time

from .drawing import (
    COLOURS,
    FAINT,
    FAST,
    HATCHES,
    INK,
    LEVEL,
    SLOW,
    SPREAD,
    UNITS,
    Figure,
    caveat_kinds,
    clear,
    count,
    dark,
    draw_curves,
    duration,
    end,
    log_scale,
    mark,
    middle,
    mind,
    picture,
    power,
    put_limit,
    put_right,
    put_rows,
    stack,
    step,
    time_scale,
    warned,
    whole,
)
from .results import factor, seconds, times

__all__ = ["Figure", "explore", "plot_break_even", "plot_comparison", "plot_lines", "plot_stages", "plot_sweep",
           "plot_waterfall"]


def plot_comparison(comparison, title, limit=None, labels=None, notes=None):
    """Seconds per call of each case on a log axis, the fastest first.

    comparison: of at least one case. limit: label of the case to draw as a line that the others run up against.
    labels: which cases to show, in this order. notes: {label: small text under it}. Returns a Figure; raises KeyError
    for a label that was not measured.
    """
    shown = list(labels) if labels else sorted(comparison.labels, key=lambda label: comparison[label].steady)
    shown = [label for label in shown if label != limit]
    timings = {label: comparison[label] for label in [*shown, *([limit] if limit else [])]}
    best, worst = (choose(shown, key=lambda label: timings[label].steady) for choose in (min, max))
    tied = {label for label in shown if label == best or not clear(comparison.ratio(label, best))}
    finding = (comparison.verdict(worst, best) if worst != best
               else f"{best} takes {seconds(timings[best].steady)} a call.")
    if limit:
        finding += f" {best} takes {times(comparison.ratio(best, limit).estimate)} as long as the limit."
    finding += mind(timings[label] for label in dict.fromkeys([best, worst]))
    rows, height = stack(shown, 0.4, timings, notes)

    def draw(ax):
        put_rows(ax, rows, height)
        for label, (y, _) in zip(shown, rows, strict=True):
            timing, ratio = timings[label], comparison.ratio(label, limit or best).estimate
            colour, marker = (FAST, "D") if label in tied else (COLOURS[0], "o")
            ax.plot(middle(timing.samples), [y, y], color=colour, linewidth=1.2, alpha=0.7, solid_capstyle="butt")
            ax.plot(timing.interval, [y, y], color=colour, linewidth=5, alpha=0.4, solid_capstyle="butt")
            ax.plot([timing.steady], [y], marker=marker, markersize=7, color="white" if timing.caveats else colour,
                    markeredgecolor=colour, markeredgewidth=1.6)
            put_right(ax, y, seconds(timing.steady), "" if label == (limit or best) else f"{factor(ratio)}×")
        put_right(ax, 0, "time", f"vs. {'limit' if limit else 'fastest'}" if len(timings) > 1 else "", head=True)
        time_scale(ax, timings.values())
        if limit:
            put_limit(ax, timings[limit])

    told = "; ".join(f"{label} {seconds(timings[label].steady)}{warned(timings[label])}" for label in
                     sorted(timings, key=lambda label: timings[label].steady))
    key = " · ".join(["◆ fastest, or too close to call"] * (len(shown) > 1) + [SPREAD]
                     + ["hollow: has a caveat"] * any(timings[label].caveats for label in shown))
    alt = f"{end(title)} {finding} Time per call, from fastest to slowest: {told}."
    return picture(draw, title, finding, alt, height, comparison.machine, key)


def plot_waterfall(comparison, labels, title, limit=None):
    """From the first label's time to the last one's on a log axis, one cause at a time, each step with its factor.

    labels: cases of the comparison, each the one before it with one more cause taken away. limit: label of the case
    to draw as a line. Returns a Figure; raises KeyError for a label that was not measured, ValueError for fewer than
    two labels.
    """
    labels = list(labels)
    if len(labels) < 2:
        raise ValueError("A waterfall needs at least two labels: the number to explain and what is left of it.")
    timings = {label: comparison[label] for label in [*labels, *([limit] if limit else [])]}
    steps = [comparison.ratio(before, after) for before, after in itertools.pairwise(labels)]
    first, last = labels[0], labels[-1]
    cause, largest = max(zip(labels[1:], steps, strict=True), key=lambda item: abs(math.log(item[1].estimate)))
    finding = (f"From {seconds(timings[first].steady)} to {seconds(timings[last].steady)}: "
               f"{step(comparison.ratio(first, last))}. Largest step: {cause}, {step(largest)}.")
    if limit and any(caveat.kind == "nothing-to-wait-for" for caveat in timings[last].caveats):
        finding += " The last clock stopped before the work was done, so it says nothing about the limit."
    elif limit:
        finding += f" What is left is {times(comparison.ratio(last, limit).estimate)} the limit."
    rows, height = stack(labels, 0.5, timings)

    def draw(ax):
        put_rows(ax, rows, height)
        old, before = rows[0][0], timings[first].steady
        for label, (y, _), ratio in zip(labels, rows, [None, *steps], strict=True):
            now = timings[label].steady
            if ratio:
                colour = LEVEL if not clear(ratio) else FAST if ratio.estimate > 1 else SLOW
                ax.plot([before, before], [old, y], color=LEVEL, linewidth=0.9, linestyle=":", zorder=1)
                ax.barh(y + 0.06, now - before, left=before, height=0.17, color=colour, edgecolor="white", linewidth=0,
                        hatch="" if ratio.estimate > 1 else "////")
                text = ax.annotate(step(ratio), (math.sqrt(before * now), y), xytext=(0, 6), ha="center", va="center",
                                   textcoords="offset points", fontsize=8.5, fontweight="bold", color=dark(colour))
                mark(text, "step")
            at = y + 0.06 if ratio else y
            ax.plot(timings[label].interval, [at, at], color=INK, linewidth=5, alpha=0.3, solid_capstyle="butt")
            ax.plot([now], [at], marker="o", color=INK, markersize=6.5)
            put_right(ax, y, seconds(now))
            old, before = at, now
        put_right(ax, 0, "time", head=True)
        time_scale(ax, timings.values())
        if limit:
            put_limit(ax, timings[limit])

    told = "; ".join(f"{label} {seconds(timings[label].steady)}{warned(timings[label])}, {step(ratio)}"
                     for label, ratio in zip(labels[1:], steps, strict=True))
    alt = (f"{end(title)} {finding} Step by step: {first} {seconds(timings[first].steady)}{warned(timings[first])}; "
           f"{told}.")
    key = "grey: 95 % interval of the median · in brackets: 95 % interval of the factor"
    return picture(draw, title, finding, alt, height, comparison.machine, key)


def plot_sweep(sweep, title, xlabel="elements", crossover=None):
    """Seconds per call over sizes on log axes: a curve with its 95 % band for each case.

    xlabel: what a size counts. crossover: a pair of labels (a, b); the size from which a takes less time than b is
    marked with its uncertainty. Returns a Figure; raises KeyError for a label that was not measured.
    """
    sizes, series, caveats = list(sweep.sizes), {}, {}
    for label in sweep.labels:
        found = [sweep[n][label] if label in sweep[n].labels else None for n in sizes]
        series[label] = [(timing.steady, *timing.interval) if timing else (math.nan,) * 3 for timing in found]
        caveats[label] = caveat_kinds(*filter(None, found))
    first = f"{count(sizes[0])} {xlabel.removesuffix('s') if sizes[0] == 1 else xlabel}"
    span = f"{count(sizes[0])} and {count(sizes[-1])} {xlabel}"
    small, large = (min(sweep[n].labels, key=lambda label: sweep[n][label].steady) for n in (sizes[0], sizes[-1]))
    finding = (f"The fastest is {small} at {first} and {large} at {count(sizes[-1])}."
               if small != large else f"{small} is the fastest between {span}.")
    cross = None
    if crossover:
        a, b = crossover
        sweep[sizes[0]][a], sweep[sizes[0]][b]
        cross = sweep.crossover(a, b)
        finding = (f"{a} overtakes {b} at about {count(cross.estimate)} {xlabel} "
                   f"({count(cross.low)} to {count(cross.high)})." if cross else
                   f"{a} does not overtake {b} between {span}. {finding}")

    def draw(ax):
        ends = draw_curves(ax, sizes, series, caveats)
        log_scale(ax, "y", duration)
        log_scale(ax, "x", power)
        ax.set(xlabel=f"{xlabel} (log scale)", ylabel="time per call (log scale)")
        if cross:
            ax.axvspan(cross.low, cross.high, color=INK, alpha=0.09, linewidth=0)
            ax.axvline(cross.estimate, color=FAINT, linewidth=1, linestyle="--")
            mark(ax.annotate(f"{count(cross.estimate)} {xlabel}", (cross.estimate, 1), va="bottom", ha="center",
                              xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points",
                              fontsize=9, fontweight="bold"), "crossing")
        return ends

    told = "; ".join(f"{label} from {seconds(rows[0][0])} to {seconds(rows[-1][0])}"
                     + (f" (caveat: {caveats[label]})" if caveats[label] else "") for label, rows in series.items())
    key = "bands: 95 % interval of the median" + (" · grey: uncertainty of the crossing" if cross else "")
    alt = f"{end(title)} {finding} Time per call between {span}: {told}."
    return picture(draw, title, finding, alt, max(3.1, 0.24 * len(series)), sweep[sizes[0]].machine, key)


def plot_break_even(costs, title, baseline, calls=None):
    """Total time against the number of calls: from which call on has it paid to build something first?

    costs: {label: (seconds to build, seconds per call)}. baseline: the label that the others have to beat. calls: the
    largest number of calls drawn. Returns a Figure; raises KeyError when costs has no such baseline.
    """
    build, each = costs[baseline]
    even = {label: (b - build) / (each - e) if e < each else (-math.inf if b < build and e == each else math.inf)
            for label, (b, e) in costs.items() if label != baseline}
    inside = [n for n in even.values() if 1 < n < math.inf]
    top = calls or 10 ** math.ceil(math.log10(3 * max([30, *inside])))
    told = {}
    for label, n in even.items():
        when = "never" if n == math.inf else f"from call {whole(n)} on" if n > 1 else "from the first call"
        told.setdefault(when, []).append(label)
    finding = f"Ahead of {baseline}: {'; '.join(f'{when}, {_list(which)}' for when, which in told.items())}."
    x = [top ** (i / 200) for i in range(201)]

    def draw(ax):
        ends = draw_curves(ax, x, {label: [(b + n * e,) * 3 for n in x] for label, (b, e) in costs.items()}, dots=False)
        crossings = sorted((n, costs[label][0] + n * costs[label][1]) for label, n in even.items() if 1 < n <= top)
        for n, total in crossings:
            ax.plot([n], [total], marker="o", markersize=8, color="white", markeredgecolor=INK, markeredgewidth=1.5,
                    zorder=5)
        for group in _close_together(crossings, width=0.1 * math.log(top)):
            counts = _list(list(dict.fromkeys(whole(n) for n, _ in group)))
            mark(ax.annotate(f"{counts} calls", group[-1], xytext=(8, -12), textcoords="offset points", fontsize=9,
                             fontweight="bold"), "crossing")
        log_scale(ax, "y", duration)
        log_scale(ax, "x", power)
        ax.set(xlabel="number of calls (log scale)", ylabel="building and calling in all (log scale)")
        return ends

    parts = "; ".join(f"{label} {seconds(b)} to build and {seconds(e)} per call" for label, (b, e) in costs.items())
    return picture(draw, title, finding, f"{end(title)} {finding} {parts}.", max(3.1, 0.24 * len(costs)))


def _close_together(crossings, width):
    """Crossings in groups whose labels would lie on top of each other: closer than `width`, on a log axis."""
    groups = []
    for crossing in crossings:
        if groups and math.log(crossing[0] / groups[-1][0][0]) < width:
            groups[-1].append(crossing)
        else:
            groups.append([crossing])
    return groups


def plot_stages(stages, title):
    """Where the time goes: a bar for each label, stacked from its stages, on a linear axis.

    stages: {label: {stage: seconds}}; a stage has the same colour and hatch in all bars. Returns a Figure.
    """
    names = list(dict.fromkeys(name for parts in stages.values() for name in parts))
    totals = {label: sum(parts.values()) for label, parts in stages.items()}
    longest = max(totals, key=totals.get)
    most = max(stages[longest], key=stages[longest].get)
    share = stages[longest][most] / totals[longest] if totals[longest] else 0
    finding = f"Longest: {longest}. It takes {seconds(totals[longest])}, {100 * share:.0f} % of it for {most}."
    unit, scale = next((unit, scale) for unit, scale in UNITS if totals[longest] >= scale or unit == "ns")
    rows, height = stack(stages, 0.44)

    def draw(ax):
        put_rows(ax, rows, height)
        for (label, parts), (y, _) in zip(stages.items(), rows, strict=True):
            left = 0
            for name, length in parts.items():
                i = names.index(name)
                ax.barh(y, length / scale, left=left, height=0.25, color=COLOURS[i % len(COLOURS)], edgecolor="white",
                        hatch=HATCHES[i % len(HATCHES)], linewidth=0.8)
                left += length / scale
            put_right(ax, y, seconds(totals[label]))
        ax.set_xlim(0, 1.02 * totals[longest] / scale or 1)
        ax.set_xlabel(f"time ({unit})")
        for i, name in enumerate(names):
            ax.bar(0, 0, color=COLOURS[i % len(COLOURS)], hatch=HATCHES[i % len(HATCHES)], edgecolor="white",
                   label=name)
        ax.legend(loc="lower left", bbox_to_anchor=(-0.01, 1), ncols=5, frameon=False, handlelength=1.5,
                  handleheight=1, borderaxespad=0.1, columnspacing=1.6)

    told = "; ".join(f"{label}: " + ", ".join(f"{name} {seconds(length)}" for name, length in parts.items())
                     for label, parts in stages.items())
    return picture(draw, title, finding, f"{end(title)} {finding} {told}.", height)


def plot_lines(x, series, title, xlabel, ylabel, logx=False, logy=False, alt=None):
    """Lines over x, for what has no figure of its own.

    x: numbers. series: {label: y} or {label: (y, low, high)} with a band, each as long as x. alt: the finding in a
    sentence that the caller has computed; it is printed under the title. Returns a Figure.
    """
    import numpy as np

    x, rows = np.asarray(x, float), {}
    for label, values in series.items():
        banded = isinstance(values, tuple) and len(values) == 3 and np.ndim(values[0]) == 1
        rows[label] = np.broadcast_arrays(*values) if banded else [values] * 3
        rows[label] = np.asarray(rows[label], float).T

    def draw(ax):
        ends = draw_curves(ax, x, rows, dots=len(x) <= 30)
        if logx:
            log_scale(ax, "x", power)
        if logy:
            log_scale(ax, "y", power)
        ax.set(xlabel=xlabel + " (log scale)" * logx, ylabel=ylabel + " (log scale)" * logy)
        return ends

    told = "; ".join(f"{label} from {r[0, 0]:.3g} to {r[-1, 0]:.3g}" for label, r in rows.items())
    whole = f"{end(title)} {alt or ''} {ylabel} for {xlabel} from {x[0]:.3g} to {x[-1]:.3g}: {told}."
    return picture(draw, title, alt or "", whole, max(3.1, 0.24 * len(rows)))


def explore(draw, **controls):
    """A figure under controls that redraw it: draw(**values) → Figure, called again whenever a control moves.

    controls: for each argument of draw its options; numbers make a slider, anything else buttons. The first option is
    the one shown first, and the picture that a page without a kernel keeps. draw should redraw what was measured
    before and measure nothing. Raises ValueError for a control without options.
    """
    options = {name: list(values) for name, values in controls.items()}
    for name, values in options.items():
        if not values:
            raise ValueError(f"The control {name!r} has no options to choose from.")
    start = time.perf_counter()
    figure = draw(**{name: values[0] for name, values in options.items()})
    slow = time.perf_counter() - start > 0.05
    from IPython import get_ipython
    from IPython.display import display

    try:
        import ipywidgets
    except ImportError:
        ipywidgets = None
    if ipywidgets is None or not hasattr(get_ipython(), "kernel"):
        display(figure)
        return

    def control(name, values):
        number = len(values) > 1 and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        shown = [(f"{v:,}" if isinstance(v, int) else f"{v:g}", v) if number else (str(v), v) for v in values]
        # Not a menu: it would lose the arrow keys to JupyterLab, github.com/jupyter-widgets/ipywidgets/issues/3912.
        kind, extra = ipywidgets.ToggleButtons, {"style": {"description_width": "initial", "button_width": "auto"}}
        if number:
            kind, extra = ipywidgets.SelectionSlider, {"style": {"description_width": "initial"},
                                                       "layout": {"width": "min(480px, 95%)"},
                                                       "continuous_update": not slow}
        return kind(options=shown, value=values[0], description=name.replace("_", " "), **extra)

    widgets = {name: control(name, values) for name, values in options.items()}
    box = ipywidgets.VBox(list(widgets.values()))
    if "google.colab" in sys.modules:  # there, a display that is updated from a widget's callback gets lost
        out = ipywidgets.Output()
        display(ipywidgets.VBox([box, out]))

        def show(figure):
            with out:
                out.clear_output(wait=True)
                display(figure)

        show(figure)
    else:
        view = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
        names = ", ".join(widget.description for widget in widgets.values())
        display({"application/vnd.jupyter.widget-view+json": view,
                 "text/plain": f"Controls of the figure below, live in a running notebook: {names}"}, raw=True)
        show = display(figure, display_id=True).update
    for widget in widgets.values():
        widget.observe(lambda _: show(draw(**{name: widget.value for name, widget in widgets.items()})), "value")


def _list(names):
    """a, b and c"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
