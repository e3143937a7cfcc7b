"""The one figure of a learner's progress: exercises as tiles, guesses on a ratio axis, best speed-ups as bars."""

import statistics

from .drawing import COLOURS, FAINT, INK, SCALE, STYLE, WIDTH, Figure, _log_ticks, dark, log_scale, power
from .exercises import PAGES
from .results import times

DONE, TRIED, OPEN = COLOURS[2], COLOURS[4], "#ececec"

_ROW = 0.27  # inches
_LEFT, _RIGHT = 1.75, 0.75  # inches for labels beside the panels
_HEAD, _FOOT = 0.32, 0.5  # inches above a panel for its title, below it for its axis
_WELL = 1.25  # a guess within this factor counts as right


def draw(data, states):
    """The Figure for what a progress file holds. states: (exercise, state, entry) for every exercise."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    guesses = {id: entry["factor"] for id, entry in sorted(data["predictions"].items()) if entry["factor"]}
    choices = [entry for entry in data["predictions"].values() if isinstance(entry["actual"], str)]
    best = {each.id: (each.title, entry["speedup"]) for each, _, entry in states if entry and entry["speedup"]}
    pages = {}
    for each, state, entry in states:
        pages.setdefault(each.page, []).append((each, state, entry))
    panels = [(len(pages), _tiles, pages, 0.1)]
    panels += [(len(guesses), _guesses, guesses, _FOOT)] if guesses else []
    panels += [(len(best), _speedups, best, _FOOT)] if best else []
    finding = _finding(pages, guesses, choices, best)
    total = round(0.62 + sum(_ROW * rows + _HEAD + foot for rows, _, _, foot in panels), 2)
    with matplotlib.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, total), dpi=100 * SCALE)
        FigureCanvasAgg(drawing)
        drawing.text(0.1 / WIDTH, 1 - 0.1 / total, "Your progress", size=12.5, weight="bold", color=INK, va="top")
        drawing.text(0.1 / WIDTH, 1 - 0.36 / total, finding, size=9.5, color=INK, va="top")
        top = total - 0.55
        for rows, panel, content, foot in panels:
            height = _ROW * rows
            top -= _HEAD + height
            ax = drawing.add_axes((_LEFT / WIDTH, top / total, 1 - (_LEFT + _RIGHT) / WIDTH, height / total))
            panel(ax, content)
            _log_ticks(ax.xaxis)
            top -= foot
        return Figure(drawing, f"Your progress. {finding} {_told(pages, guesses, choices, best)}", finding)


def _tiles(ax, pages):
    """A row for each notebook, a tile for each exercise; its state is written as a sign as well as coloured."""
    from matplotlib.patches import FancyBboxPatch

    ax.set_title("Exercises: ✓ done, … tried, (✓) done after seeing the solution", loc="left", size=9.5, color=FAINT)
    across = max(6, *(len(entries) for entries in pages.values())) if pages else 6
    for row, entries in enumerate(pages.values()):
        for column, (each, state, entry) in enumerate(entries):
            colour = {"done": DONE, "tried": TRIED, "open": OPEN}[state]
            ax.add_patch(FancyBboxPatch((column + 0.06, row + 0.1), 0.88, 0.8, facecolor=colour, edgecolor="#b0b0b0",
                                        boxstyle="round,pad=0,rounding_size=0.1", linewidth=0.6))
            tick = "✓" if not (entry and entry["solution"]) else "(✓)"
            number = each.id.split(".")[1]
            sign = {"done": f"{number} {tick}", "tried": f"{number} …", "open": number}[state]
            ax.text(column + 0.5, row + 0.5, sign, ha="center", va="center", size=9, color=FAINT if state == "open"
                    else "white" if state == "done" else INK, weight="normal" if state == "open" else "bold")
        done = sum(state == "done" for _, state, _ in entries)
        ax.text(across + 0.15, row + 0.5, f"{done} of {len(entries)}", va="center", size=9.5)
    ax.set(xlim=(0, across), ylim=(max(len(pages), 1), 0), xticks=[], yticks=[row + 0.5 for row in range(len(pages))],
           yticklabels=[f"{page} {PAGES.get(page, '')}" for page in pages])
    ax.grid(False)
    ax.tick_params(length=0, labelcolor=INK)
    ax.spines[:].set_visible(False)


def _guesses(ax, guesses):
    """Each guess divided by what was measured, on a ratio axis with 1 in the middle."""
    ax.set_title("Guesses: how far from what was measured", loc="left", size=9.5, color=FAINT)
    widest = max(10.0, *(max(factor, 1 / factor) ** 2.2 for factor in guesses.values()))  # room for the words
    ax.axvspan(1 / _WELL, _WELL, color=DONE, alpha=0.25, linewidth=0)
    ax.axvline(1, color=DONE, linewidth=1.5)
    for row, factor in enumerate(guesses.values()):
        ax.plot([1, factor], [row, row], color=FAINT, linewidth=1.2)
        ax.plot(factor, row, "o", color=COLOURS[0])
        side = 1 if factor >= 1 else -1
        ax.annotate(_off(factor), (factor, row), (7 * side, 0), textcoords="offset points", va="center", size=9,
                    ha="left" if side > 0 else "right", color=dark(COLOURS[0]))
    ax.set_xlim(1 / widest, widest)
    log_scale(ax, "x", lambda value, _: "exact" if abs(value - 1) < 1e-9
              else f"{power(max(value, 1 / value), widest > 1e4)}×")
    ax.set_xlabel("too low  ←   log scale   →  too high")
    _rows(ax, guesses)


def _speedups(ax, best):
    """The best speed-up of each exercise that measures one, with its 95 % interval."""
    ax.set_title("Best speed-ups: how many times as fast as the given code", loc="left", size=9.5, color=FAINT)
    ax.set_xlim(1, 2.5 * max(8.0, *(speedup[2] for _, speedup in best.values())))
    for row, (_, (estimate, low, high)) in enumerate(best.values()):
        ax.barh(row, estimate - 1, left=1, height=0.5, color=COLOURS[0])
        ax.plot([low, high], [row, row], color=INK, linewidth=1.5)
        ax.annotate(f"{times(estimate)}", (max(estimate, high), row), (6, 0), textcoords="offset points", va="center",
                    size=9)
    low, high = ax.get_xlim()
    log_scale(ax, "x", lambda value, _: f"{power(value, high > 1e5)}×")
    ax.set_xlim(low, high)
    ax.set_xlabel("log scale")
    _rows(ax, [f"{id} {title if len(title) <= 17 else title[:16] + '…'}" for id, (title, _) in best.items()])


def _rows(ax, labels):
    ax.set(ylim=(len(labels) - 0.5, -0.5), yticks=range(len(labels)), yticklabels=list(labels))
    ax.tick_params(axis="y", length=0, labelcolor=INK)


def _off(factor):
    return "well guessed" if 1 / _WELL <= factor <= _WELL else f"{times(max(factor, 1 / factor))} too " \
        + ("high" if factor > 1 else "low")


def _finding(pages, guesses, choices, best):
    every = [state for entries in pages.values() for _, state, _ in entries]
    parts = [f"{every.count('done')} of {len(every)} exercises done"]
    if guesses:
        typical = statistics.median(max(factor, 1 / factor) for factor in guesses.values())
        parts.append("guesses typically off by a factor of " + times(typical).removesuffix(" times"))
    if choices:
        parts.append(f"{sum(entry['guess'] == entry['actual'] for entry in choices)} of {len(choices)} choices right")
    if best:
        parts.append(f"best speed-up {times(max(speedup[0] for _, speedup in best.values()))}")
    return "; ".join(parts) + "."


def _told(pages, guesses, choices, best):
    """What the panels show, in words."""
    parts = [f"Notebook {page}: {sum(state == 'done' for _, state, _ in entries)} of {len(entries)} exercises done"
             for page, entries in pages.items()]
    parts += [f"guess {id}: {_off(factor)}" for id, factor in guesses.items()]
    parts += [f"best speed-up in {id}: {times(speedup[0])}" for id, (_, speedup) in best.items()]
    return "; ".join(parts) + "." if parts else ""
