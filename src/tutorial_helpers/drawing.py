"""What every figure of plotting.py is made with: the picture itself, its rows, curves and axes, its numbers in words.

matplotlib is imported when the first figure is drawn. Its Figure is used directly: no back end, no pyplot, no
setting of the learner's is touched.
"""

import html
import io
import itertools
import math
import textwrap
from base64 import b64encode

from .results import factor, seconds

WIDTH, SCALE = 7.6, 2  # inches of 100 logical pixels; every logical pixel is drawn as 2 × 2 for sharp screens
INK, FAINT, GRID, WARN = "#1b1b1b", "#5f5f5f", "#e4e4e4", "#9c3d00"
# The first seven: Okabe and Ito, 2008. Nine in all, so that with four dashes 36 lines differ.
COLOURS = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#3b3b3b", "#8a6d3b", "#6a3d9a"
SLOW, FAST, LEVEL = COLOURS[1], COLOURS[2], "#8a8a8a"
MARKERS, DASHES, HATCHES = "osD^vPX*", ("-", "--", "-.", ":"), ("", "////", "....", "xx", "\\\\\\\\", "oo", "++", "--")
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 9.5, "text.color": INK, "text.usetex": False, "text.parse_math": False,
    "axes.edgecolor": "#b0b0b0", "axes.labelcolor": FAINT, "axes.labelsize": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.8,
    "xtick.color": FAINT, "ytick.color": FAINT, "xtick.labelsize": 9, "ytick.labelsize": 9, "figure.facecolor": "white",
    "axes.facecolor": "white", "hatch.linewidth": 0.7, "lines.linewidth": 1.8, "lines.markersize": 5.5,
    "lines.markeredgecolor": "white", "lines.markeredgewidth": 0.6, "axes.unicode_minus": True,
}


class Figure:
    """A finished picture: `png` (bytes), `alt` (what it shows, in words), `caption` (its finding in one line).

    `drawing` is the matplotlib figure that it was made from, `size` its width and height in logical pixels.
    """

    def __init__(self, drawing, alt, caption=""):
        self.drawing, self.alt, self.caption = drawing, " ".join(alt.split()), caption
        self.size = tuple(round(100 * side) for side in drawing.get_size_inches())
        self.png = _png(drawing)

    def save(self, path):
        """Write the picture to the file `path`, in PNG format."""
        with open(path, "wb") as file:
            file.write(self.png)

    def __repr__(self):
        return self.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        # JupyterLab and Colab ignore the metadata's alt text, nbconvert and GitHub know it; HTML serves the former.
        (width, height), png = self.size, b64encode(self.png).decode()
        image = (f'<img alt="{html.escape(self.alt)}" width="{width}" style="max-width: 100%; height: auto" '
                 f'src="data:image/png;base64,{png}">')
        return ({"image/png": png, "text/html": image, "text/plain": self.alt},
                {"image/png": {"alt": self.alt, "width": width, "height": height}})


def picture(draw, title, finding, alt, height, machine=None, key=""):
    """Draw on axes `height` inches high, between title and finding above and small print below."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    from .machine import stamp

    heads = [(line, 12.5, INK, "bold") for line in textwrap.wrap(title, 70)]
    heads += [(line, 9.5, INK, "normal") for line in textwrap.wrap(finding, 106)]
    feet = [(line, 7.5, FAINT, "normal") for line in textwrap.wrap(key, 130)]
    feet += [(line, 6.8, FAINT, "normal") for line in textwrap.wrap(stamp(machine), 145)]
    head, foot = (sum(line[1] for line in lines) * 1.36 / 72 + 0.16 for lines in (heads, feet))
    with matplotlib.rc_context(STYLE):
        drawing = Drawing(figsize=(WIDTH, 2 * height), dpi=100 * SCALE)
        FigureCanvasAgg(drawing)
        ax = drawing.add_axes((0.3, 0.25, 0.5, 0.5))
        curves = draw(ax) or []
        for axis in (ax.xaxis, ax.yaxis):
            _log_ticks(axis)
        inner, outer = ax.bbox, ax.get_tightbbox()  # what sticks out of the axes needs room around them
        left, right, below, above = (side / drawing.dpi + 0.06 for side in (
            inner.x0 - outer.x0, outer.x1 - inner.x1, inner.y0 - outer.y0, outer.y1 - inner.y1))
        total = (math.ceil(100 * (head + above + height + below + foot)) + 0.01) / 100  # whole pixels
        drawing.set_size_inches(WIDTH, total)
        ax.set_position((left / WIDTH, (foot + below) / total, 1 - (left + right) / WIDTH, height / total))
        for lines, top in ((heads, total - 0.1), (feet, foot - 0.04)):
            for text, size, colour, weight in lines:
                drawing.text(0.1 / WIDTH, top / total, text, size=size, color=colour, weight=weight, va="top")
                top -= size * 1.36 / 72
        _spread(ax, curves)
        return Figure(drawing, alt, finding)


def _png(drawing):
    """The drawing as a PNG with a palette of its own, a third of the size of one in full colour."""
    import numpy as np
    from PIL import Image

    drawing.canvas.draw()
    image = Image.fromarray(np.asarray(drawing.canvas.buffer_rgba())[..., :3])
    out = io.BytesIO()
    image = image.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    image.putpalette([255 if level > 250 else level for level in image.getpalette()])  # white paper, not 99 % white
    image.save(out, "png", optimize=True)
    type(drawing.canvas)(drawing)  # a new canvas: the drawn one, known to every text, would keep 8 MB of pixels
    for text in drawing.findobj(lambda artist: hasattr(artist, "_renderer")):
        text._renderer = None
    return out.getvalue()


def draw_curves(ax, x, series, caveats=None, dots=True):
    """A line with its band for each label; series {label: rows of (y, low, high)}. Returns what _spread needs."""
    ends = []
    for i, (label, rows) in enumerate(series.items()):
        colour, (y, low, high) = COLOURS[i % len(COLOURS)], zip(*rows, strict=True)
        ax.plot(x, y, color=colour, linestyle=DASHES[i % len(DASHES)], marker=MARKERS[i % len(MARKERS)] if dots else "")
        ax.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
        shown = [k for k, value in enumerate(y) if math.isfinite(value)]
        if shown:
            text = "\n".join(textwrap.wrap(label, 24)) + (f"\n⚠ {caveats[label]}" if caveats and caveats[label] else "")
            text = ax.annotate(text, (1, 0.5), xycoords="axes fraction", xytext=(24, 0), textcoords="offset points",
                               va="center", color=dark(colour), fontsize=9, linespacing=1.1)
            ends.append((mark(text, "label"), x[shown[-1]], y[shown[-1]], colour, DASHES[i % len(DASHES)]))
    ax.margins(x=0.02)
    return ends


def _spread(ax, ends):
    """Move the labels to the right of the axes apart, and join each with the end of its line."""
    boxes = []
    for text, x, y, *look in ends:
        at = ax.transAxes.inverted().transform(ax.transData.transform((x, y)))
        boxes.append([at[1], 1.1 * text.get_window_extent().height / ax.bbox.height, text, at, look])
    boxes.sort(key=lambda box: box[0])
    for _ in range(500):
        for a, b in itertools.pairwise(boxes):
            push = max(0, (a[1] + b[1]) / 2 - (b[0] - a[0])) / 2
            a[0], b[0] = a[0] - push, b[0] + push
        if boxes:
            boxes[0][0] = max(boxes[0][0], boxes[0][1] / 2)
            boxes[-1][0] = min(boxes[-1][0], 1 - boxes[-1][1] / 2)
    point = 100 * SCALE / 72 / ax.bbox.width
    for y, _, text, at, (colour, dash) in boxes:
        text.xy = (1, y)
        ax.plot([at[0] + 5 * point, 1 + 20 * point], [at[1], y], transform=ax.transAxes, color=colour, linewidth=1,
                linestyle=dash, clip_on=False)


def stack(labels, least, timings=None, notes=None):
    """Rows of text, each at least `least` inches high: [(centre, [(line, size, colour)])], and the height of all."""
    rows, top = [], 0.04
    for label in labels:
        found = caveat_kinds(timings[label]) if timings else ""
        lines = [(line, 9.5, INK) for line in textwrap.wrap(label, 30) or [""]]
        lines += [(line, 8, FAINT) for line in textwrap.wrap((notes or {}).get(label, ""), 38)]
        lines += [(line, 8, WARN) for line in textwrap.wrap(f"⚠ {found}", 38) if found]
        height = max(least, 0.14 + sum(size for _, size, _ in lines) * 1.27 / 72)
        rows.append((top + height / 2, lines))
        top += height
    return rows, top + 0.04


def put_rows(ax, rows, height):
    """Make the vertical axis measure inches from the top, and write the rows' texts to its left."""
    ax.set_ylim(height, 0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    for centre, lines in rows:
        ax.axhline(centre, color=GRID, linewidth=0.8, zorder=0.5)
        up = sum(size for _, size, _ in lines) * 1.27 / 2
        for text, size, colour in lines:
            mark(ax.annotate(text, (0, centre), xycoords=ax.get_yaxis_transform(), xytext=(-8, up - size * 1.27 / 2),
                              textcoords="offset points", ha="right", va="center", size=size, color=colour), "row")
            up -= size * 1.27


def put_right(ax, y, *columns, head=False):
    """Write up to two columns to the right of the row at y."""
    style = {"size": 8, "color": FAINT, "va": "bottom"} if head else {"size": 9.5, "va": "center"}
    for offset, text in zip((62, 126), columns, strict=False):
        if text:
            mark(ax.annotate(text, (1, y), xycoords=ax.get_yaxis_transform(), xytext=(offset, 2 * head), ha="right",
                              textcoords="offset points", **style), "value")


def put_limit(ax, timing):
    """A dashed line at a limit's time, named above the axes."""
    at = timing.steady
    low, high = ax.get_xlim()
    late = math.log(at / low) > 0.5 * math.log(high / low)
    ax.axvline(at, color=INK, linewidth=1.3, linestyle=(0, (5, 3)), zorder=1)
    ax.axvspan(*timing.interval, color=INK, alpha=0.12, linewidth=0)
    found = caveat_kinds(timing)
    said = f"limit: {timing.label.removeprefix('limit: ')}, {seconds(at)}" + (f" ⚠ {found}" if found else "")
    mark(ax.annotate(said, (at, 1), size=8.5,
                      xycoords=("data", "axes fraction"), xytext=(4 if late else -4, 3), textcoords="offset points",
                      ha="right" if late else "left", va="bottom"), "limit")


def mark(text, name):
    """Give a text a name to be found by, and a white rim to be read on lines."""
    from matplotlib.patheffects import withStroke

    text.set(gid=name, path_effects=[withStroke(linewidth=2.5, foreground="white")])
    return text


def time_scale(ax, timings):
    values = [value for timing in timings for value in (timing.steady, *timing.interval, *middle(timing.samples))]
    values = [value for value in values if math.isfinite(value) and value > 0]
    ax.set_xlim(min(values) / 1.3, max(values) * 1.3)
    log_scale(ax, "x", duration)
    ax.set_xlabel("time per call (log scale)")


def log_scale(ax, name, write):
    """Make an axis logarithmic and at least a factor of 5 long, so that what is close looks close."""
    getattr(ax, f"set_{name}scale")("log")
    low, high = getattr(ax, f"get_{name}lim")()
    room = max(0.0, math.log(5 / (high / low)) / 2)
    getattr(ax, f"set_{name}lim")(low / math.exp(room), high * math.exp(room))
    wide = not 1e-4 < low <= high < 1e5
    getattr(ax, f"{name}axis").set_major_formatter(lambda value, _: write(value, wide))


def _log_ticks(axis):
    from matplotlib.ticker import LogLocator, NullFormatter

    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1,) if high / low > 60 else (1, 2, 5), numticks=10))
        axis.set_minor_locator(LogLocator(subs=range(1, 10), numticks=100))
        axis.set_minor_formatter(NullFormatter())


# ---------------------------------------------------------------------------------------------------------------------
# Numbers in words

UNITS = ("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)
SPREAD = "thick: 95 % interval of the median · thin: middle 90 % of the samples"


def middle(samples):
    """5 % and 95 % quantile."""
    import numpy as np

    return tuple(np.quantile(samples, (0.05, 0.95))) if len(samples) else (math.nan, math.nan)


def clear(ratio):
    """Whether the interval of a ratio leaves out 1."""
    return ratio.low > 1 or ratio.high < 1


def step(ratio):
    """A ratio before / after with its interval: "2.9× faster (2.8 to 3.1)"."""
    known = math.isfinite(ratio.low) and math.isfinite(ratio.high)
    if known and not clear(ratio):
        return f"too close to call ({factor(ratio.low)} to {factor(ratio.high)})"
    up = ratio.estimate >= 1
    middle, *ends = ratio if up else (1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low)
    spread = f" ({factor(ends[0])} to {factor(ends[1])})" if known else ""
    return f"{factor(middle)}× {'faster' if up else 'slower'}{spread}"


def count(value):
    """A number to two digits, with commas: 3,200."""
    digits = 10 ** max(0, math.floor(math.log10(value)) - 1) if value > 0 else 1
    return f"{round(value / digits) * digits:,.0f}"


def whole(value):
    return f"{math.ceil(value):,}" if value < 1000 else count(value)


def duration(value, wide=False):
    """A round duration, for an axis: 20 µs."""
    unit, scale = next((unit, scale) for unit, scale in UNITS if value >= scale * (1 - 1e-9) or unit == "ns")
    return f"{value / scale:,.0f} {unit}" if value / scale >= 1000 else f"{value / scale:.3g} {unit}"


def power(value, wide=False):
    """A round number, for an axis: 2,000, or 2×10³ where the axis is wide."""
    if not wide:
        return f"{value:,.6g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    first = round(value / 10.0**exponent)
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if first == 1 else f"{first}×10{raised}"


def caveat_kinds(*timings):
    return ", ".join(dict.fromkeys(caveat.kind for timing in timings for caveat in timing.caveats))


def warned(timing):
    return f" (caveat: {caveat_kinds(timing)})" if timing.caveats else ""


def mind(timings):
    """What to keep in mind before believing a finding about these cases."""
    told = [f"{timing.label} ({caveat_kinds(timing)})" for timing in timings if timing.caveats]
    return f" Mind the caveats of {' and '.join(told)}." if told else ""


def end(text):
    """`text` as a sentence of its own."""
    return text if text.rstrip().endswith((".", "?", "!")) else f"{text}."


def dark(colour):
    """`colour`, darkened until text in it reads well on white (contrast 4.5 to 1)."""
    from matplotlib.colors import to_hex, to_rgb

    def luminance(rgb):
        return sum(weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
                   for weight, c in zip((0.2126, 0.7152, 0.0722), rgb, strict=True))

    rgb = to_rgb(colour)
    while 1.05 / (luminance(rgb) + 0.05) < 4.5:
        rgb = tuple(0.95 * c for c in rgb)
    return to_hex(rgb)
