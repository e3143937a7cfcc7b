"""Every notebook as a learner meets it: in JupyterLab, in a real browser, by mouse and by keyboard.

The stub notebooks come first: they show that the driver notices what it is there to notice.
"""

import os
import runpy
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import lab
import pages
from tutorial_helpers.exercises import exercise

ANSWERS = pages.ROOT / "tests" / "exercises"
CONTROLS, EXERCISE = r"\bexplore\(", r"\bexercise\(.(\d\d\.\d+).\)"
PREDICTION = r"(\w+) = predict\(.(\d\d\.\w+)."

pytestmark = pytest.mark.timeout(1200)


def unavailable(sentence):
    """Skip where somebody runs the tests at home; fail in CI, which installs what they need."""
    (pytest.fail if os.environ.get("CI", "").lower() not in ("", "0", "false") else pytest.skip)(sentence)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """JupyterLab as `make lab` starts it, over copies of the notebooks."""
    if missing := lab.browser_missing():
        unavailable(missing)
    folder = tmp_path_factory.mktemp("lab") / "root"
    folder.joinpath("notebooks").mkdir(parents=True)
    for path in pages.notebooks():
        shutil.copy(path, folder / "notebooks")
    for name, notebook in STUBS.items():
        nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")
    words = lab.make_lab_words("--no-browser", f"--port={lab.free_port()}", "--ServerApp.port_retries=0",
                               "--LabApp.expose_app_in_browser=True")
    running = lab.Server(folder, words).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def open_tab(server):
    with lab.browser(server) as new_tab:
        yield new_tab


# ---------------------------------------------------------------------------------------------------------------------
# Stub notebooks


def stub(*cells):
    """A notebook of code cells, or of a markdown cell where the text starts with #."""
    made = [new_markdown_cell(text) if text.startswith("# ") else new_code_cell(text) for text in cells]
    return new_notebook(cells=made, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


GOOD = stub(
    "# A stub with one of each",
    "import numpy as np\nfrom tutorial_helpers import exercise, explore, plot_lines, predict",
    'guess = predict("99.many", "How many times?", unit="times")\nguess',
    "guess.reveal(6)",
    'guess = predict("99.which", "Which colour?", choices=["red", "green"])\nguess',
    'guess.reveal("red")',
    "def draw(power, colour):\n    return plot_lines([1, 2, 3], {colour: [1, 2**power, 3**power]}, f'To the {power}',"
    " 'x', 'y')",
    "explore(draw, power=[1, 2, 3], colour=['red', 'green'])",
    'ex = exercise("00.2")\nex',
    exercise("00.2").starter,
    f"ex.check({exercise('00.2').answer})",
)
BAD = stub(
    "# What must be noticed\n\n![far away](https://example.org/picture.png)",
    "from IPython.display import display, HTML, Javascript\nimport sys",
    "print('warned', file=sys.stderr)",
    "display(Javascript('console.error(\"the page complains\"); new WebSocket(\"wss://example.org/stream\")'))",
    "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\n"
    "except OSError as error:\n    print(error)",
    "1 / 0",
)
HANGS = stub("# What never ends", "1", "import time\ntime.sleep(600)", "2")
STUBS = {"stub_good": GOOD, "stub_bad": BAD, "stub_hangs": HANGS}


def finish(tab):
    """Open, run all and wait for the end."""
    tab.open().run_all()
    while not tab.poll():
        tab.page.wait_for_timeout(50)
    return tab


def test_the_driver_on_a_good_stub(open_tab):
    tab = finish(open_tab("stub_good"))
    look_at_the_run(tab)
    move_the_controls(tab)
    for how in (by_mouse, by_keyboard, by_call):
        assert "You said 3.0 times. Here it was 6.0 times." in guess(tab, "99.many", how)
        assert "You said red. Here it was: red. Well guessed!" in guess(tab, "99.which", how)
    solve(tab, "00.2")
    save_and_reopen(tab)
    assert tab.foreign == [] and tab.complaints == []
    tab.discard()


def test_what_the_driver_notices(open_tab, server):
    tab = open_tab("stub_bad")
    with pytest.raises(lab.LabError, match=r"stub_bad .* raised ZeroDivisionError"):
        finish(tab)
    assert any("wrote to stderr: warned" in fault for fault in tab.faults())
    assert tab.foreign == ["https://example.org/picture.png", "wss://example.org/stream"]
    assert any("the page complains" in complaint for complaint in tab.complaints)
    assert any("192.0.2.1" in line for line in server.beyond())
    server.guard_log.write_text("")
    tab.discard()


def test_a_cell_that_hangs_is_named(open_tab):
    tab = open_tab("stub_hangs")
    tab.patience = 3
    with pytest.raises(lab.LabError, match=r"^cell 2 of stub_hangs \(import time\) did not finish within 3 s\.$"):
        finish(tab)
    tab.discard()
    assert "stub_hangs" not in tab.sessions()


# ---------------------------------------------------------------------------------------------------------------------
# What is done on each page


def look_at_the_run(tab):
    """No error, nothing on stderr, every figure drawn and described, nothing in the way."""
    assert tab.faults() == []
    assert [tab.called(index) for index, alts in tab.figures().items() if not all(map(str.strip, alts))] == []
    tab.cell(0)
    tab.screenshot("top")
    assert tab.page.locator(".Toastify__toast").count() == 0, "Nothing pops up over the page."


def move_the_controls(tab):
    """Each slider and row of buttons, by keyboard and by mouse: figure and text must follow."""
    for number, index in enumerate(tab.find(CONTROLS), 1):
        cell = tab.cell(index)
        wait_for_controls(tab, index)
        for slider in cell.get_by_role("slider").all():
            tab.follows(index, lambda slider=slider: press(tab, slider, "ArrowRight"))
            tab.follows(index, lambda slider=slider: drag(tab, slider))
        for buttons in cell.locator(".widget-toggle-buttons").all():
            choice = buttons.get_by_role("button")
            tab.follows(index, lambda choice=choice: press(tab, choice.last, "Space"))
            tab.follows(index, lambda choice=choice: choice.first.click())
        tab.screenshot(f"widget-{number}", index)


def wait_for_controls(tab, index):
    """Wait until a cell shows its slider or its row of buttons."""
    tab.wait(f"The controls of {tab.called(index)} did not appear",
             "index => tutorial.cell(index).node.querySelector('[role=slider], .widget-toggle-button')", index)


def press(tab, control, key):
    """Press a key while the control has the keyboard."""
    control.focus()
    tab.page.keyboard.press(key)


def drag(tab, slider):
    """Drag the handle to the far end of its track."""
    handle = slider.bounding_box()
    track = slider.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]").bounding_box()
    tab.page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    tab.page.mouse.down()
    tab.page.mouse.move(track["x"] + track["width"], track["y"] + track["height"] / 2, steps=5)
    tab.page.mouse.up()


def by_mouse(tab, index):
    """Answer a prediction with the mouse, as far as that goes: a number is typed."""
    form = tab.cell(index).locator(".jp-OutputArea")
    if form.get_by_role("textbox").count():
        form.get_by_role("textbox").click()
        tab.page.keyboard.type("3")
        tab.cell(index).locator(".jp-InputArea .cm-content").click()  # leaving the field is enough
    else:
        form.get_by_role("button").first.click()


def by_keyboard(tab, index):
    """Answer a prediction from the keyboard, in its field or with its first button."""
    form = tab.cell(index).locator(".jp-OutputArea")
    if form.get_by_role("textbox").count():
        form.get_by_role("textbox").focus()
        tab.page.keyboard.type("3")
        tab.page.keyboard.press("Enter")
    else:
        press(tab, form.get_by_role("button").first, "Space")


def by_call(tab, index):
    """Answer a prediction as its text says, by a call in a cell of its own."""
    value = "1" if tab.cell(index).locator(".jp-OutputArea").get_by_role("button").count() else "3"
    tab.insert_below(index)
    tab.type(index + 1, f"guess({value})")
    assert "Noted: " in tab.run(index + 1)
    tab.delete(index + 1)


def guess(tab, id, how):
    """What the page reveals after a guess was made in this way."""
    index = next(iter(tab.find(rf"\bpredict\(.{id}.,")))
    name = tab.find(PREDICTION)[index].group(1)
    tab.run(index)  # all guesses of a page have the same name
    tab.wait(f"The buttons of {tab.called(index)} did not appear",
             "index => tutorial.cell(index).node.querySelector('.jp-OutputArea .jupyter-widgets')", index)
    how(tab, index)
    if how is not by_call:
        tab.wait(f"{tab.called(index)} took no notice of the guess",
                 "index => tutorial.cell(index).node.innerText.includes('Noted: ')", index)
    tab.screenshot(f"prediction-{id}", index)
    return tab.run(next(reveal for reveal in tab.find(rf"\b{name}\.reveal\(") if reveal > index))


def solve(tab, id):
    """A wrong answer gets its sentence, a right one its tick, and neither a traceback."""
    answers = runpy.run_path(str(ANSWERS / f"answers_{id[:2]}.py"))
    task = next(iter(tab.find(rf"exercise\(.{id}.\)")))
    starter, check = (next(index for index in tab.find(pattern) if index > task)
                      for pattern in (r"\.\.\.", r"\bex\.check\("))
    assert "Not attempted yet" in tab.output(check)
    tab.run(task)  # every exercise of a page is called ex
    wrong, fragment = answers["WRONG"][id][0]
    for source, wanted in ((wrong, fragment), (answers["RIGHT"][id][0], "✓")):
        tab.type(starter, source)
        tab.run(starter)
        said = tab.run(check)
        assert tab.faults() == []
        assert wanted.replace("`", "") in said, f"{id} says {said!r} to {source!r}"
    tab.screenshot(f"exercise-{id}", check)


def save_and_reopen(tab):
    """Everything is still there when the notebook is opened again, without its kernel."""
    before = stored(tab.cells())
    tab.save()
    saved = nbformat.read(tab.path, as_version=4)
    assert [problem for cell in saved.cells for output in cell.get("outputs", [])
            for problem in pages.output_problems(output) if "alt text" in problem] == []
    tab.shut()
    tab.reopen()
    assert stored(tab.cells()) == before
    assert all(alt.strip() for alts in tab.figures(tab.find(CONTROLS)).values() for alt in alts)
    for index in tab.find(CONTROLS):
        wait_for_controls(tab, index)


def stored(cells):
    """What of the cells a file keeps."""
    return [(cell["source"], cell["number"], [(output["type"], output["text"], output["kinds"])
                                              for output in cell["outputs"]]) for cell in cells]


# ---------------------------------------------------------------------------------------------------------------------
# Every notebook there is


@pytest.fixture(scope="module")
def runs(request, open_tab):
    """Runs the pages that this session's tests ask for, two at a time."""
    asked = dict.fromkeys(item.callspec.params["page"] for item in request.session.items
                          if item.path == request.path and "page" in getattr(item, "fixturenames", ()))
    return lab.Runs(open_tab, asked)


# The first page stands for all in `make test`, which is to be quick; `make test-browser` takes every one of them.
PAGES = [pytest.param(path.stem, marks=[pytest.mark.full] * (number > 0))
         for number, path in enumerate(pages.notebooks())]


@pytest.fixture(scope="module", params=PAGES)
def page(request, runs):
    """A notebook in its tab, all cells run."""
    tab = runs.finished(request.param)
    yield tab
    tab.discard()


@pytest.fixture
def tab(page, runs):
    """The same, in front, while the next notebooks go on in their tabs: a browser draws little behind the first."""
    runs.advance()
    page.page.bring_to_front()
    return page


def test_every_cell_runs_without_complaint(tab):
    look_at_the_run(tab)


def test_controls_move_figure_and_text(tab):
    if not tab.find(CONTROLS):
        pytest.skip("This page has no controls.")
    move_the_controls(tab)


def test_predictions_are_taken_and_revealed(tab):
    """One that asks for a number and one that gives a choice, where the page has both."""
    kinds = {"choices=" in tab.source(index): (index, match.group(1), match.group(2))
             for index, match in tab.find(PREDICTION).items()}
    if not kinds:
        pytest.skip("This page has no prediction.")
    for (index, name, id), how in zip(kinds.values(), (by_mouse, by_keyboard), strict=False):
        reveal = next(each for each in tab.find(rf"\b{name}\.reveal\(") if each > index)
        assert "No guess this time" in tab.output(reveal)
        assert "You said " in guess(tab, id, how)


def test_an_exercise_answers_back(tab):
    there = [exercise(match.group(1)) for match in tab.find(EXERCISE).values()]
    possible = [each for each in there if not each.missing()]
    if not possible:
        pytest.skip("This page has no exercise that can be tried here.")
    solve(tab, next((each.id for each in possible if each.level == "write"), possible[0].id))


def test_nothing_leads_beyond_this_machine(tab, server):
    assert server.beyond() == []


def test_outputs_are_there_after_saving_and_reopening(tab):
    save_and_reopen(tab)


def test_no_request_left_and_nothing_complained(tab):
    """Last of a page's tests, since it sums up all that the browser saw."""
    assert tab.foreign == [], "The browser asked for another address than the server's."
    assert tab.complaints == []
