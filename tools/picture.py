"""Write docs/picture.png, the README's picture: the waterfall figure as it is stored in notebook 02."""

import base64
import re

import nbformat

import pages

PICTURE = pages.ROOT / "docs" / "picture.png"
PAGE = pages.ROOT / "notebooks" / "02_numpy_vs_jax.ipynb"


def waterfall(notebook=PAGE):
    """The PNG bytes of the notebook's first waterfall figure."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code" and "plot_waterfall(" in cell.source:
            for output in cell.outputs:
                found = re.search(r"base64,([^\"]+)", output.get("data", {}).get("text/html", ""))
                if found:
                    return base64.b64decode(found.group(1))
    raise SystemExit(f"{notebook.name} holds no waterfall figure: run make notebooks first.")


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(waterfall())
