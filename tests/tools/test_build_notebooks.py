"""make notebooks: what is built, what is refused, and what is left alone."""

import base64
import functools
import json

import nbformat
import pytest
from click.testing import CliRunner

import build_notebooks
import pages

DOT = base64.b64encode(b"not really a picture").decode()
FIGURE = 'from IPython.display import display; display({{"image/png": "{}", "text/plain": "F"}}, raw=True, metadata={})'


@pytest.fixture
def build(page):
    """Build a page with this code; the problems found and the path of the .ipynb."""

    def build_code(code, timeout=60):
        text = page(code)
        return build_notebooks.build(text, timeout), pages.built(text)

    return build_code


def test_the_same_text_gives_the_same_file(build):
    found, path = build("print(size)")
    assert found == []
    first = path.read_bytes()
    assert build("print(size)") == ([], path)
    assert path.read_bytes() == first
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[-1].outputs[0].text == "3\n"
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert [cell.id for cell in notebook.cells] == [f"cell-{i:03d}" for i in range(len(notebook.cells))]
    assert pages.problems(notebook) == []


@pytest.mark.parametrize("code, said", [
    ("import sys; print('careful', file=sys.stderr)", "Cell 3 wrote to stderr: careful"),
    ("import warnings; warnings.warn('hm')", "Cell 3 wrote to stderr"),
    ("1 / 0", "Cell 3 raised ZeroDivisionError: division by zero"),
    ("import json; print(json.__file__.replace('lib', 'site-packages'))", "shows a path of this machine"),
    ("print('/home/somebody/x')", "shows a path of this machine: /home/somebody/x"),
    ("open('left.txt', 'w').close()", "The notebook leaves left.txt behind"),
    ("print('x' * 2**20)", "at most 1 MiB is allowed"),
    (FIGURE.format(DOT, "{}"), "Cell 3 has a figure (image/png) without alt text"),
    ("from IPython.display import HTML; HTML('<img src=data:>')", "Cell 3 has a figure (<img>) without alt text"),
    ("from IPython.display import HTML; HTML('<img alt=\" \" src=data:>')", "(<img>) without alt text"),
    ("import time; time.sleep(30)", "Cell 3: A cell timed out"),
    ("import os; os._exit(1)", "Cell 3: Kernel died"),
])
def test_refused_and_not_written(build, code, said):
    found, path = build(code, timeout=10)
    assert any(said in problem for problem in found), found
    assert not path.exists()


def test_a_failed_build_keeps_the_old_page(build):
    _, path = build("print(size)")
    before = path.read_bytes()
    assert build("1 / 0")[0]
    assert path.read_bytes() == before


def test_figures_with_alt_text_stay_and_widgets_go(build):
    widget = "import ipywidgets, json; from IPython.display import display; slider = ipywidgets.IntSlider()\n"
    show = f"display({{'{build_notebooks.WIDGET}': dict(model_id=slider.model_id, version_major=2, version_minor=0), "
    show += "'text/plain': 'W', 'text/html': '<b>default</b>'}, raw=True)\nslider"
    found, path = build(widget + show + "\n" + FIGURE.format(DOT, '{"image/png": {"alt": "a dot"}}'))
    assert found == []
    outputs = json.loads(path.read_text())["cells"][-1]["outputs"]
    assert [sorted(output["data"]) for output in outputs] == [["text/html", "text/plain"], ["image/png", "text/plain"]]


def test_a_figure_is_stored_once_with_its_alt_text(build):
    code = "from tutorial_helpers import plot_lines\nplot_lines([1, 2], {'y': [1, 2]}, 'T', 'x', 'y', alt='It rises.')"
    found, path = build(code)
    assert found == []
    data = json.loads(path.read_text())["cells"][-1]["outputs"][0]["data"]
    assert sorted(data) == ["text/html", "text/plain"] and "It rises." in "".join(data["text/html"])


def test_only_what_changed_is_built_anew(page, monkeypatch, project):
    first, second = page("print(size)", "90_first"), page("print(size)", "91_second")
    monkeypatch.setattr(pages, "texts", functools.partial(pages.texts, project))

    def make(*arguments):
        result = CliRunner().invoke(build_notebooks.main, list(arguments))
        lines = [line for line in result.output.splitlines() if ": built" in line or ": up to date" in line]
        return result.exit_code, [": built" in line for line in lines]

    assert make("91") == (0, [True])
    assert make() == (0, [True, False])
    second.write_text(second.read_text().replace("[parameters]", "[parameters, nbval-ignore-output]"))
    assert make() == (0, [False, True])
    assert make("90", "--all") == (0, [True])
    assert make("--all") == (0, [True, True])
    assert make("55")[0] == 1
    first.write_text(first.read_text().replace("print(size)", "1 / 0"))
    second.write_text(second.read_text().replace("print(size)", "print(size + 1)"))
    status, _ = make()
    assert status == 1, "the first page fails"
    assert "size + 1" in pages.built(second).read_text(), "and the second is built all the same"
