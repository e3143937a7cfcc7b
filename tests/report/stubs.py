"""A small collection of notebooks, and what a measurements file holds."""

import sys

import nbformat

OPENING = ("# {}\n\n[![Open](https://example.org/badge.svg)](https://example.org/)\n\n"
           "**You need** patience.\\\n**Minutes** 7")
IMPORTS = "import numpy as np\nfrom tutorial_helpers import Case, compare, judge, sweep"

RUNGS = [OPENING.format("Rungs"), "n = 1000", f"""{IMPORTS}
from tutorial_helpers import plot_comparison
print(n)""", "md:## 6. One loop up the ladder", """
ladder_times = compare(Case("pure Python", lambda a: sum(x for x in a), list(range(n))),
                       Case("Python built-ins", sum, list(range(n))),
                       Case("NumPy", lambda a: int(a.sum()), np.arange(n)), budget=0.05)
plot_comparison(ladder_times, "One loop")""", """
judge("S02", "holds", f"A factor of {ladder_times.ratio('pure Python', 'NumPy').estimate:.0f}.")
judge("S09", "holds", "It took 3 ms.")"""]
FALL = [OPENING.format("Fall of a *number*"), "side = 100",
        "md:See [rungs](01_rungs.ipynb).\n\n## 2. The waterfall: `one` cause\n\n```python\nreturn 1  # note\n```",
        f"""{IMPORTS}
x = np.ones((side, side))
y = x.astype("f4")
fall = compare(Case("NumPy float64", lambda x: np.sin(x) + np.cos(x), x, check=False),
               Case("NumPy float32", lambda x: np.sin(x) + np.cos(x), y, check=False),
               Case("no wait", lambda y: (v for v in y), y, check=False),
               Case("memory alone", np.negative, y, check=False), budget=0.05)""", """
judge("S09", "does not hold", "<script>alert('S09')</script> See https://example.org/x.")""", """
sizes = sweep(lambda n: [Case("a", np.sin, np.ones(n)), Case("b", np.cos, np.ones(n), check=False)], [100, 10_000],
              budget=0.02)"""]
BAD = [OPENING.format("Bad"), "other = 1", "from tutorial_helpers import judge\njudge('S22', 'holds', 'It was so.')",
       "import warnings\nwarnings.warn('hm')\n1 / 0", "judge('S15', 'holds', 'It is never reached.')"]
HUGE = [OPENING.format("Huge"), "amount = 10**18", "room = bytearray(amount)"]


def write(folder, name, cells):
    """A notebook: a title, a parameters cell, then code, or text where a cell begins with md:."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_markdown_cell(cell.removeprefix("md:")) if number == 0 or cell.startswith("md:")
                      else nbformat.v4.new_code_cell(cell.strip()) for number, cell in enumerate(cells)]
    notebook.cells[1].metadata.tags = ["parameters"]
    nbformat.write(notebook, folder / f"{name}.ipynb")


def command(*arguments):
    """The words that start `report` in a process of its own."""
    return [sys.executable, "-m", "tutorial_helpers", "report", *map(str, arguments)]


def case(label, seconds, **more):
    return {"label": label, "seconds": seconds, "interval": [0.9 * seconds, 1.1 * seconds], "first_call": 2 * seconds,
            "argument_bytes": 800, "compiles": 0, "cores_busy": 1.0, "caveats": [], **more}


def caveat(kind):
    return {"kind": kind, "sentence": "Something happened."}


PLAIN = {
    "format": "tutorial_helpers/measurements", "version": 1, "label": "A", "date": "2026-01-02T03:04:05+00:00",
    "tutorial_helpers": "0.1.0", "size": "quick",
    "machine": {"cpu": "Some CPU", "cores": 2, "memory_bytes": 2**33, "gpus": [], "devices": {"jax": ["cpu:0 cpu"]},
                "versions": {"python": "3.11.1", "numpy": "2.1.0", "jax": "0.10.0"}, "overrides": {}},
    "notebooks": [{"name": "02_fall", "title": "Fall", "status": "ran", "seconds": 3.0, "memory_bytes": 2**27,
                   "parameters": {}}],
    "claims": [{"id": "S20", "notebook": "02_fall", "cell": 3, "verdict": "holds", "evidence": "It took 3 ms."}],
    "measurements": [
        {"name": "02/fall", "notebook": "02_fall", "section": "2. Fall", "cell": 2, "kind": "compare", "size": None,
         "cases": [case("slow", 0.01),
                   case("fast", 0.001, first_over_this=[10, 9, 11], previous_over_this=[10, 9, 11])]},
        {"name": "02/sizes", "notebook": "02_fall", "section": "3. Sizes", "cell": 4, "kind": "sweep", "size": 100,
         "cases": [case("a", 0.5)]},
        {"name": "02/sizes", "notebook": "02_fall", "section": "3. Sizes", "cell": 4, "kind": "sweep", "size": 1000,
         "cases": [case("a", 0.7)]}],
}
