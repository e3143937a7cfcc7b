"""A figure says what its data says, in words and in lines, and its texts can be read."""

import io
import itertools
import math
import subprocess
import sys
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from tutorial_helpers import (
    Caveat,
    Comparison,
    Figure,
    Sweep,
    Timing,
    drawing,
    explore,
    plot_break_even,
    plot_comparison,
    plot_lines,
    plot_stages,
    plot_sweep,
    plot_waterfall,
    results,
    stamp,
)

NOISY, DTYPE = Caveat("noisy", "Close other programs."), Caveat("dtype-mismatch", "Compare equal precisions.")


def timing(label, seconds, spread=0.02, count=20, caveats=(), seed=1):
    """A Timing whose median is `seconds`; its samples lie evenly around that on a log axis, shuffled by `seed`."""
    order = np.random.default_rng(seed).permutation(count)
    samples = tuple(seconds * np.exp(spread * np.linspace(-1, 1, count)[order]))
    return Timing(label, 3 * seconds, samples, samples, tuple(caveats))


def comparison(**seconds):
    return Comparison([timing(label.replace("_", " "), value) for label, value in seconds.items()])


RACE = Comparison([timing("NumPy float64", 0.560, caveats=[DTYPE]), timing("NumPy float32", 0.064),
                   timing("jax.jit", 0.192, spread=0.4, caveats=[NOISY]), timing("tf.function", 0.026),
                   timing("written out, buffer reused", 0.0085), timing("add", 0.0075)])
STEPS = ["NumPy float64", "NumPy float32", "jax.jit", "tf.function", "written out, buffer reused"]
SIZES = Sweep({n: Comparison([timing("NumPy", 1e-6 + 2e-9 * n), timing("JAX jit", 9e-6 + 5e-10 * n),
                              timing("JAX eager", 5e-5 + 3e-9 * n, caveats=[NOISY] if n < 100 else [])])
               for n in (10, 100, 1000, 10_000, 100_000, 1_000_000)})
COSTS = {"CPython": (0.0, 0.8), "C": (0.12, 0.001), "Cython": (3.2, 0.02), "worse": (2.0, 0.9)}
STAGES = {"first call": {"trace": 0.03, "lower": 0.02, "compile": 0.21, "run": 0.02}, "second call": {"run": 0.021}}
X = np.linspace(-3, 3, 50)

GALLERY = {
    "comparison": lambda: plot_comparison(RACE, "Who waits for what?", notes={"tf.function": "built in 120 ms"}),
    "comparison with a limit": lambda: plot_comparison(RACE, "Against the limit", limit="add"),
    "one case": lambda: plot_comparison(comparison(only_one=3e-9), "One case"),
    "twelve long cases": lambda: plot_comparison(Comparison([
        timing(f"case {i} under a label that goes on and on and on", 10.0 ** (-i / 2)) for i in range(12)]),
        "Twelve cases under a title that is so long that it needs a second line before it can be read in full"),
    "waterfall": lambda: plot_waterfall(RACE, STEPS, "One cause at a time", limit="add"),
    "waterfall of two": lambda: plot_waterfall(RACE, STEPS[:2], "Half the bits"),
    "sweep": lambda: plot_sweep(SIZES, "From which size on?", crossover=("JAX jit", "NumPy")),
    "break-even": lambda: plot_break_even(COSTS, "When has it paid?", "CPython"),
    "stages": lambda: plot_stages(STAGES, "The first call"),
    "lines": lambda: plot_lines(X, {"sine": np.sin(X), "cosine": (np.cos(X), np.cos(X) - 0.1, np.cos(X) + 0.1)},
                                "Waves", "angle (rad)", "height", alt="The cosine leads."),
    "twelve lines": lambda: plot_lines(X, {f"line number {i}": np.sin(X + i / 9) for i in range(12)}, "Lines", "x",
                                       "y"),
    "log lines": lambda: plot_lines([1, 10, 10**7], {"squares": [1, 100, 10.0**14], "itself": [1, 10, 10**7]},
                                    "Growth", "n", "bytes", logx=True, logy=True),
}


@pytest.fixture(scope="module", params=GALLERY)
def figure(request):
    return GALLERY[request.param]()


def texts(figure, gid=None):
    """The visible texts, of one kind if `gid` is given."""
    from matplotlib.text import Text

    ticks = [label for axis in (figure.drawing.axes[0].xaxis, figure.drawing.axes[0].yaxis)
             for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
             for label in (tick.label1, tick.label2)
             if not axis.get_view_interval().min() <= tick.get_loc() <= axis.get_view_interval().max()]
    found = [text for text in figure.drawing.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in found if text not in ticks and (gid is None or text.get_gid() == gid)]


def strings(figure, gid=None):
    return [text.get_text() for text in texts(figure, gid)]


# ---------------------------------------------------------------------------------------------------------------------
# All figures


def test_no_text_covers_another_or_leaves_the_picture(figure):
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts(figure)]
    assert len(boxes) > 4
    page = figure.drawing.bbox
    assert [text for text, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > page.x1 or box.y1 > page.y1] == []
    covered = [(a, b) for (a, one), (b, two) in itertools.combinations(boxes, 2)
               if min(one.x1, two.x1) - max(one.x0, two.x0) > 2 and min(one.y1, two.y1) - max(one.y0, two.y0) > 3]
    assert covered == []


def test_the_picture_is_small_sharp_and_on_white(figure):
    image = Image.open(io.BytesIO(figure.png))
    assert image.format == "PNG" and len(figure.png) < 100_000
    assert image.size == tuple(2 * side for side in figure.size)
    corners = [image.convert("RGB").getpixel((x, y)) for x in (0, image.width - 1) for y in (0, image.height - 1)]
    assert set(corners) == {(255, 255, 255)}


def test_the_finding_is_in_the_picture_and_in_the_alt_text(figure):
    shown = " ".join(" ".join(strings(figure)).split())
    assert figure.caption in figure.alt
    assert " ".join(figure.caption.split()) in shown
    assert figure.alt.endswith(".") and "\n" not in figure.alt and "nan" not in figure.alt


def test_the_small_print_names_the_machine_and_axes_have_names(figure):
    shown = " ".join(strings(figure))
    assert all(part in shown for part in stamp().split(" · "))
    axes = figure.drawing.axes[0]
    assert axes.get_xlabel()
    assert ("log scale" in axes.get_xlabel()) == (axes.get_xscale() == "log")
    assert ("log scale" in axes.get_ylabel()) == (axes.get_yscale() == "log")


def test_a_figure_displays_itself_with_its_alt_text(figure, tmp_path):
    data, metadata = figure._repr_mimebundle_()
    assert b64decode(data["image/png"]) == figure.png
    width, height = figure.size
    assert metadata == {"image/png": {"alt": figure.alt, "width": width, "height": height}}
    assert data["text/plain"] == repr(figure) == figure.alt
    assert data["text/html"].startswith("<img alt=") and data["image/png"] in data["text/html"]
    figure.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes() == figure.png


def test_alt_text_is_escaped_in_html():
    shown = plot_comparison(comparison(a=1e-3, b=2e-3), 'Is "a" < "b" & c?')
    html = shown._repr_mimebundle_()[0]["text/html"]
    assert 'alt="Is &quot;a&quot; &lt; &quot;b&quot; &amp; c?' in html


def test_drawing_touches_no_state_of_matplotlib():
    code = ("import sys, tutorial_helpers, matplotlib\n"
            "names = [name for name in matplotlib.rcParams if name != 'backend']  # to ask for that one chooses it\n"
            "before = [matplotlib.rcParams[name] for name in names]\n"
            "tutorial_helpers.plot_stages({'a': {'run': 1.0}}, 'Title')\n"
            "assert [matplotlib.rcParams[name] for name in names] == before\n"
            "assert 'matplotlib.pyplot' not in sys.modules\n")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, tutorial_helpers.plotting; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# ---------------------------------------------------------------------------------------------------------------------
# Colours


def luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_coloured_text_has_contrast():
    from matplotlib.colors import to_rgb

    inks = [drawing.dark(colour) for colour in (*drawing.COLOURS, drawing.LEVEL)]
    inks += [drawing.INK, drawing.FAINT, drawing.WARN]
    assert all(1.05 / (luminance(to_rgb(ink)) + 0.05) >= 4.5 for ink in inks)


def test_colours_stay_apart_for_the_colour_blind():
    from matplotlib.colors import to_rgb

    # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB: protanopia, deuteranopia
    sights = [np.eye(3),
              [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
              [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]]
    linear = np.array([to_rgb(colour) for colour in drawing.COLOURS]) ** 2.2
    for sight in sights:
        seen = np.clip(linear @ np.transpose(sight), 0, 1) ** (1 / 2.2)
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.15


def test_lines_differ_in_more_than_colour():
    lines = GALLERY["twelve lines"]().drawing.axes[0].lines[:12]
    styles = [(line.get_color(), line.get_linestyle()) for line in lines]
    assert len(set(styles)) == 12
    assert len({style for _, style in styles[:4]}) == 4


# ---------------------------------------------------------------------------------------------------------------------
# Comparison


def test_comparison_orders_by_time_and_says_how_many_times():
    figure = plot_comparison(comparison(middle=0.02, slow=0.2, fast=0.01), "Title")
    assert strings(figure, "row") == ["fast", "middle", "slow"]
    assert strings(figure, "value") == ["10.0 ms", "20.0 ms", "2.0×", "200 ms", "20×", "time", "vs. fastest"]
    assert "slow takes 20 times as long as fast" in figure.caption
    assert "fast 10.0 ms; middle 20.0 ms; slow 200 ms." in figure.alt


def test_comparison_keeps_the_order_that_is_asked_for():
    assert strings(plot_comparison(comparison(a=3.0, b=2.0, c=1.0), "Title", labels=["a", "c"]), "row") == ["a", "c"]


def test_what_cannot_be_told_apart_is_marked_alike():
    pair = timing("a", 1.0, 0.3), timing("b", 1.01, 0.3, seed=2)
    figure = plot_comparison(Comparison([*pair, timing("c", 9.0)]), "Title")
    markers = [line.get_marker() for line in figure.drawing.axes[0].lines if line.get_marker() in ("D", "o")]
    assert markers == ["D", "D", "o"]
    close = plot_comparison(Comparison(pair), "Title")
    assert "too close to call" in close.caption and "times as long" not in close.caption


def test_spread_and_interval_are_drawn():
    timed = timing("noisy one", 0.1, 0.5)
    lines = plot_comparison(Comparison([timed, timing("b", 0.2)]), "Title").drawing.axes[0].lines
    drawn = [tuple(line.get_xdata()) for line in lines]
    assert timed.interval in drawn
    assert tuple(np.quantile(timed.samples, (0.05, 0.95))) in drawn


def test_caveats_stand_at_their_row_and_in_the_alt_text():
    figure = GALLERY["comparison"]()
    rows = strings(figure, "row")
    assert rows[rows.index("NumPy float64") + 1] == "⚠ dtype-mismatch"
    assert rows[rows.index("jax.jit") + 1] == "⚠ noisy"
    assert sum("⚠" in row for row in rows) == 2
    assert "NumPy float64 560 ms (caveat: dtype-mismatch)" in figure.alt
    assert "Mind the caveats of NumPy float64 (dtype-mismatch)." in figure.caption


def test_notes_and_limit():
    figure = plot_comparison(RACE, "Title", limit="add", notes={"jax.jit": "built in 3 s"})
    rows = strings(figure, "row")
    assert "add" not in rows and rows[rows.index("jax.jit") + 1] == "built in 3 s"
    assert strings(figure, "limit") == ["limit: add, 7.50 ms"]
    at = [line.get_xdata()[0] for line in figure.drawing.axes[0].lines if list(line.get_ydata()) == [0, 1]]
    assert pytest.approx(RACE["add"].steady) in at
    assert "written out, buffer reused takes 1.13 times as long as the limit." in figure.caption


def test_extremes_are_drawn():
    with np.errstate(all="raise"):
        odd = Timing("once", 1.0, (2.0,), (2.0,))
        figure = plot_comparison(Comparison([odd, timing("fast", 2e-6, spread=0)]), "A ratio of a million")
    assert "1,000,000×" in strings(figure, "value") and odd.interval == (2.0, 2.0)


def test_close_values_look_close():
    axes = plot_comparison(comparison(a=1.0, b=1.05), "Title").drawing.axes[0]
    low, high = axes.get_xlim()
    assert high / low >= 4.99
    assert len([tick for tick in axes.get_xticks() if low <= tick <= high]) >= 2


def test_an_unknown_label():
    with pytest.raises(KeyError):
        plot_comparison(RACE, "Title", limit="nobody")


# ---------------------------------------------------------------------------------------------------------------------
# Waterfall


def test_waterfall_writes_each_factor_on_its_step():
    way = {"first": 0.8, "second": 0.1, "third": 0.2, "last": 0.05}
    figure = plot_waterfall(comparison(**way), list(way), "Title")
    steps = strings(figure, "step")
    assert [step.split(" (")[0] for step in steps] == ["8.0× faster", "2.0× slower", "4.0× faster"]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in figure.drawing.axes[0].patches]
    assert bars == [pytest.approx(ends) for ends in ((0.8, 0.1), (0.1, 0.2), (0.2, 0.05))]
    assert figure.caption.startswith("From 800 ms to 50.0 ms: 16× faster")
    assert "Largest step: second, 8.0× faster" in figure.caption
    assert "third 200 ms, 2.0× slower" in figure.alt


def test_slower_steps_are_hatched_too():
    bars = GALLERY["waterfall"]().drawing.axes[0].patches[:4]
    assert [bool(bar.get_hatch()) for bar in bars] == [False, True, False, False]


def test_a_step_that_is_no_step_is_called_so():
    both = Comparison([timing("a", 1.0), timing("b", 0.5, 0.01), timing("c", 0.501, 0.3, seed=2)])
    steps = strings(plot_waterfall(both, ["a", "b", "c"], "Title"), "step")
    assert steps[0].startswith("2.0× faster (") and steps[1].startswith("too close to call (")


def test_waterfall_needs_two_labels():
    with pytest.raises(ValueError, match="at least two labels"):
        plot_waterfall(RACE, ["add"], "Title")


# ---------------------------------------------------------------------------------------------------------------------
# Sweep, break-even, stages, lines


def test_sweep_marks_the_crossing_with_its_uncertainty():
    figure, cross = GALLERY["sweep"](), SIZES.crossover("JAX jit", "NumPy")
    assert 2000 < cross.estimate < 9000
    assert figure.caption.startswith(f"JAX jit overtakes NumPy at about {drawing.count(cross.estimate)} elements (")
    axes = figure.drawing.axes[0]
    at = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert at == [pytest.approx(cross.estimate)]
    assert (band.x0, band.x1) == (pytest.approx(cross.low), pytest.approx(cross.high))
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_sweep_without_a_crossing_says_so():
    figure = plot_sweep(SIZES, "Title", crossover=("JAX eager", "JAX jit"))
    assert "JAX eager does not overtake JAX jit between 10 and 1,000,000 elements." in figure.caption
    assert "The fastest is NumPy at 10 elements and JAX jit at 1,000,000." in figure.caption
    assert figure.drawing.axes[0].patches[:] == []


def test_a_sweeps_table_says_where_each_caveat_was_found():
    noisy = Caveat("noisy", "it varies")
    table = Sweep({n: Comparison([timing("a", n, caveats=[noisy] * (n > 1)), timing("b", n, caveats=[noisy] * (n > 2))])
                   for n in (1, 1000, 2000)})._repr_html_()
    assert table.count("<li>") == 1 and "<b>a at 1,000, 2,000 · b at 1,000, 2,000</b>, noisy: it varies" in table


def test_sweep_draws_every_curve_its_band_and_its_caveats():
    figure = plot_sweep(SIZES, "Title")
    axes = figure.drawing.axes[0]
    assert [list(line.get_xdata()) for line in axes.lines[:3]] == [SIZES.sizes] * 3
    assert list(axes.lines[0].get_ydata()) == [SIZES[n]["NumPy"].steady for n in SIZES.sizes]
    assert len(axes.collections) == 3
    assert set(strings(figure, "label")) == {"NumPy", "JAX jit", "JAX eager\n⚠ noisy"}


def test_a_case_that_is_missing_at_some_sizes():
    sizes = {1: comparison(a=1.0, b=2.0), 10: comparison(a=3.0), 100: comparison(a=9.0, b=4.0)}
    line = plot_sweep(Sweep(sizes), "Title").drawing.axes[0].lines[1]
    assert [math.isnan(y) for y in line.get_ydata()] == [False, True, False]


def test_break_even_counts_the_calls():
    figure = GALLERY["break-even"]()
    # C pays 0.12 s once and gains 0.799 s a call: at once. Cython: 3.2 / 0.78 = 4.1 calls, so from the fifth.
    assert figure.caption == "Ahead of CPython: from the first call, C; from call 5 on, Cython; never, worse."
    assert strings(figure, "crossing") == ["5 calls"]
    ring = next(line for line in figure.drawing.axes[0].lines if line.get_markersize() == 8)
    n = ring.get_xdata()[0]
    assert ring.get_ydata()[0] == pytest.approx(n * 0.8) == pytest.approx(3.2 + n * 0.02)
    assert "Cython 3.20 s to build and 20.0 ms per call" in figure.alt


def test_break_even_up_to_a_number_of_calls():
    figure = plot_break_even({"a": (0, 1.0), "b": (500, 0.5)}, "Title", "a", calls=50)
    assert figure.drawing.axes[0].lines[0].get_xdata()[-1] == pytest.approx(50)
    assert "from call 1,000 on, b" in figure.caption and strings(figure, "crossing") == []


def test_stages_add_up():
    figure = GALLERY["stages"]()
    assert strings(figure, "value") == ["280 ms", "21.0 ms"]
    assert figure.caption == "Longest: first call. It takes 280 ms, 75 % of it for compile."
    bars = [bar for bar in figure.drawing.axes[0].patches if bar.get_width() and bar.get_height()]
    assert [bar.get_width() for bar in bars[:5]] == pytest.approx([30, 20, 210, 20, 21])
    assert [bar.get_x() for bar in bars[:5]] == pytest.approx([0, 30, 50, 260, 0], abs=1e-9)
    assert bars[3].get_facecolor() == bars[4].get_facecolor() and bars[3].get_hatch() == bars[4].get_hatch()
    assert figure.drawing.axes[0].get_xlabel() == "time (ms)"


def test_lines_draw_values_bands_and_gaps():
    y = np.array([1.0, math.nan, 3.0])
    figure = plot_lines([1, 2, 3], {"a": y, "b": (y, y - 1, y + 1)}, "Title", "x (m)", "y (s)", alt="It rises.")
    axes = figure.drawing.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x (m)", "y (s)")
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), y)
    assert axes.collections[1].get_datalim(axes.transData).y1 == 4
    assert figure.caption == "It rises." and "a from 1 to 3" in figure.alt


@pytest.mark.parametrize("value, text", [(0.00093, "0.00093"), (0.5, "0.50"), (1.004, "1.00"), (1.126, "1.13"),
                                         (2.94, "2.9"), (31.4, "31"), (367.9, "370"), (1e6, "1,000,000"),
                                         (math.inf, "?")])
def test_factors_keep_the_digits_that_matter(value, text):
    assert results.factor(value) == text


@pytest.mark.parametrize("value, text", [(1e-9, "1 ns"), (2e-5, "20 µs"), (1e-3, "1 ms"), (0.5, "500 ms"), (2, "2 s"),
                                         (1000, "1,000 s"), (1e-10, "0.1 ns")])
def test_round_durations_for_axes(value, text):
    assert drawing.duration(value) == text


def test_numbers_for_axes():
    assert [drawing.power(v) for v in (0.01, 5, 10_000)] == ["0.01", "5", "10,000"]
    assert [drawing.power(v, wide=True) for v in (1e-5, 10, 2e6)] == ["10⁻⁵", "10¹", "2×10⁶"]


# ---------------------------------------------------------------------------------------------------------------------
# Explore


def test_without_a_kernel_the_default_is_shown(capsys):
    explore(lambda n: plot_lines([1, n], {"y": [1, 2]}, f"Up to {n}", "x", "y"), n=[7, 8, 9])
    assert capsys.readouterr().out.startswith("Up to 7.")


def test_a_control_without_options():
    with pytest.raises(ValueError, match="'n' has no options"):
        explore(lambda n: None, n=[])


DRAW = """
import gc, sys, types, ipywidgets
{before}
from tutorial_helpers import explore, plot_lines
def draw(n, who):
    return plot_lines([0, n], {{who: [0, 1]}}, f"{{who}} up to {{n}}", "x", "y")
explore(draw, n=range(3, 9), who=["Ada", "Grace"])
"""
MOVE = """
slider, buttons, *_ = [w for kind in (ipywidgets.SelectionSlider, ipywidgets.ToggleButtons)
                    for w in gc.get_objects() if isinstance(w, kind)]
assert slider.description == "n" and not slider.continuous_update
slider.value = 8
buttons.value = "Grace"
"""
SHOW = """
out, = [w for w in gc.get_objects() if isinstance(w, ipywidgets.Output)]
print(out.outputs[0]["metadata"]["image/png"]["alt"], len(out.outputs))
"""


def run_cells(*sources):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    return nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute().cells


def alts(cell):
    return [output.metadata["image/png"]["alt"].split(".")[0] for output in cell.outputs if "image/png" in output.data]


def test_moving_a_control_redraws_the_figure_in_place():
    assert alts(run_cells(DRAW.format(before=""))[0]) == ["Ada up to 3"]
    cells = run_cells(DRAW.format(before=""), MOVE)
    assert alts(cells[0]) == ["Grace up to 8"] and cells[1].outputs == []
    assert "application/vnd.jupyter.widget-view+json" in cells[0].outputs[0].data


def test_on_colab_the_figure_is_redrawn_in_an_output_widget():
    before = "sys.modules['google.colab'] = types.ModuleType('google.colab')"
    cells = run_cells(DRAW.format(before=before), MOVE, SHOW)
    assert cells[2].outputs[0].text.startswith("Grace up to 8.") and cells[2].outputs[0].text.endswith(" 1\n")


def test_without_ipywidgets_the_default_is_shown():
    draw = DRAW.format(before="sys.modules['ipywidgets'] = None").replace(", ipywidgets", "")
    cells = run_cells(draw)
    assert alts(cells[0]) == ["Ada up to 3"] and len(cells[0].outputs) == 1


def test_a_figure_is_a_figure():
    assert all(isinstance(make(), Figure) for make in list(GALLERY.values())[:2])
