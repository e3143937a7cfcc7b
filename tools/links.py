"""Write the public address everywhere: pyproject.toml, pages, first cells, badges, README, binder.

Without REPO, bring everything in step with pyproject.toml (after a change of version, say).
"""

import re

import click
import nbformat

import pages

VALID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
KINDS = {".md", ".toml", ".txt", ".yml", ".yaml", ".py", ".ipynb", ".cfg", ".cff", ".json", ".html", ""}
IGNORED = {".git", "build", "dist", "__pycache__", "node_modules", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache"}


def files(root):
    """Every text file of the project that could carry the address."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and path.suffix in KINDS and not any(p in IGNORED or p.startswith(".venv") for p in parts):
            yield path


def pattern(slug):
    """The places where `owner/name` is an address of the repository, and not a part of a longer name."""
    before, after = r"((?:github\.com|githubusercontent\.com|/github|/gh)/)", r"(?![\w-]|\.(?!git\b)\w)"
    return re.compile(before + re.escape(slug) + after)


def slug_of(root):
    """`owner/name` as pyproject.toml has it."""
    return pages.address(root).removeprefix("https://github.com/")


def carriers(root, slug):
    """The files that carry the address of this repository."""
    return [path for path in files(root) if pattern(slug).search(path.read_text(encoding="utf-8", errors="ignore"))]


def rewrite(root, new):
    """Replace the address in every file; the files that changed."""
    old = slug_of(root)
    if new != old and (taken := carriers(root, new)):
        raise click.ClickException(f"{taken[0].relative_to(root)} already links to {new} as to another project: "
                                   "reword that link, or the change could not be undone.")
    changed = set()
    for path in carriers(root, old) if new != old else []:
        if path.suffix != ".ipynb":
            # Bytes, so that line ends stay as they are.
            before = path.read_bytes().decode("utf-8")
            path.write_bytes(pattern(old).sub(rf"\g<1>{new}", before).encode("utf-8"))
            changed.add(path)
    changed |= {text for text in pages.texts(root) if sync_text(text, root)}
    changed |= {path for path in pages.notebooks(root) if sync_notebook(path, root, old, new)}
    return sorted(changed)


def sync_source(source, stem, root):
    """A cell's source (or a whole text) with this page's badges."""
    return re.sub(re.escape(pages.COLAB) + r"\(\S*\) · " + re.escape(pages.BINDER) + r"\(\S*\)",
                  lambda _: pages.badges(stem, root), source)


def sync_text(text, root):
    """Bring badges and first cell of a source in step; whether that changed it."""
    before = text.read_text(encoding="utf-8")
    after = sync_source(before, text.stem, root)
    block = re.escape(pages.FIRST_CELL_START) + r"\n.*?(?=\n```)"
    after = re.sub(block, lambda _: pages.first_cell(root), after, count=1, flags=re.DOTALL)
    if after != before:
        text.write_text(after, encoding="utf-8")
    return after != before


def sync_notebook(path, root, old, new):
    """The same for a built page, cell by cell: its outputs stay as they are."""
    notebook = nbformat.read(path, as_version=4)
    before = [cell.source for cell in notebook.cells]
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.startswith(pages.FIRST_CELL_START):
            cell.source = pages.first_cell(root)
        else:
            cell.source = pattern(old).sub(rf"\g<1>{new}", sync_source(cell.source, path.stem, root))
    changed = before != [cell.source for cell in notebook.cells]
    if changed:
        pages.write_notebook(notebook, path)
    return changed


@click.command(help=__doc__)
@click.argument("repo", required=False)
def main(repo, root=pages.ROOT):
    old = slug_of(root)
    if repo is not None and (not VALID.fullmatch(repo) or repo.endswith(".git")):
        raise click.ClickException(f"{repo!r} does not name a GitHub repository: write make links REPO=owner/name.")
    changed = rewrite(root, repo or old)
    for path in changed:
        click.echo(f"rewrote {path.relative_to(root)}")
    click.echo(f"{len(changed)} files changed; the address is {pages.address(root)}")
    for path in carriers(root, old) if old != (repo or old) else []:
        click.echo(f"{path.relative_to(root)} still shows the old address in an output: build it anew.", err=True)


if __name__ == "__main__":
    main()
