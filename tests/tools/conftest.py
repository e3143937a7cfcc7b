"""A small copy of the project with one page of its own, for tools to work on."""

import shutil

import pytest

import build_notebooks
import pages

STUB = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A page for tests

{badges}

**Minutes** 1

```{{code-cell}} ipython3
{first_cell}
```

```{{code-cell}} ipython3
:tags: [parameters]

size = 3
```

```{{code-cell}} ipython3
{code}
```
"""


@pytest.fixture
def project(tmp_path):
    """Everything of the project that a tool may rewrite, without its pages."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "environment.yml"):
        shutil.copy(pages.ROOT / name, root)
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("binder", "src", "tools"):
        shutil.copytree(pages.ROOT / name, root / name, ignore=ignore)
    (root / "notebooks" / "text").mkdir(parents=True)
    return root


@pytest.fixture
def page(project):
    """Write a page's text with the given code in its last cell; its path."""

    def write(code, stem="90_stub"):
        text = project / "notebooks" / "text" / f"{stem}.md"
        parts = {"badges": pages.badges(stem, project), "first_cell": pages.first_cell(project), "code": code}
        text.write_text(STUB.format(**parts), encoding="utf-8")
        return text

    return write


@pytest.fixture
def unexecuted(project, page):
    """A page's text and its .ipynb, written without running it."""
    text = page("print(size)")
    pages.write_notebook(build_notebooks.convert(text), pages.built(text))
    return text
