"""make links REPO=owner/name: complete, reversible, and strict about the name."""

import pytest
from click import ClickException
from click.testing import CliRunner

import build_notebooks
import links
import pages

NEW = "some-owner/fast.and-slow"


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_address_in_this_project_agrees_everywhere():
    """The pages, the README and the rest name one repository, the one in pyproject.toml."""
    slug = links.slug_of(pages.ROOT)
    assert links.VALID.fullmatch(slug)
    for text in pages.texts():
        assert pages.badges(text.stem) in text.read_text(encoding="utf-8")
    assert pages.ROOT / "README.md" in links.carriers(pages.ROOT, slug)


def test_complete(project, unexecuted):
    old = links.slug_of(project)
    links.main.callback(NEW, project)
    assert pages.address(project) == f"https://github.com/{NEW}"
    for path, text in contents(project).items():
        assert f"/{old}".encode() not in text, path
    assert f"/gh/{NEW}/main" in pages.built(unexecuted).read_text()
    for path in (unexecuted, pages.built(unexecuted)):
        assert f"{NEW}/archive/refs/tags/v" in path.read_text()
        assert f"/github/{NEW}/blob/main/notebooks/90_stub.ipynb" in path.read_text()
    assert f"github.com/{NEW}" in (project / "README.md").read_text()
    assert pages.essence(pages.read_text(unexecuted))[1][1] == pages.first_cell(project)


def test_reversible(project, unexecuted):
    old, before = links.slug_of(project), contents(project)
    links.main.callback(NEW, project)
    assert contents(project) != before
    links.main.callback(old, project)
    assert contents(project) == before


def test_links_to_the_glossary_follow(project, unexecuted):
    text, link = unexecuted.read_text(), "/blob/main/docs/glossary.md#fusion"
    unexecuted.write_text(f"{text}\nLoops are [fused]({pages.address(project)}{link}).\n")
    pages.write_notebook(build_notebooks.convert(unexecuted), pages.built(unexecuted))
    links.main.callback(NEW, project)
    for path in (unexecuted, pages.built(unexecuted)):
        assert f"[fused](https://github.com/{NEW}{link})" in path.read_text()


def test_outputs_and_longer_names_stay(project, unexecuted):
    old = links.slug_of(project)
    note = project / "NOTE.md"
    note.write_text(f"https://github.com/{old}-fork https://github.com/{old}. {old} https://github.com/{old}.git\n")
    links.main.callback(NEW, project)
    assert note.read_text() == (f"https://github.com/{old}-fork https://github.com/{NEW}. {old} "
                                f"https://github.com/{NEW}.git\n")


def test_a_new_version_reaches_the_first_cells(project, unexecuted):
    settings = project / "pyproject.toml"
    version = pages.project(project)["version"]
    settings.write_text(settings.read_text().replace(f'version = "{version}"', 'version = "9.8.7"'))
    links.main.callback(None, project)
    for path in (unexecuted, pages.built(unexecuted)):
        assert "v9.8.7.zip" in path.read_text()


@pytest.mark.parametrize("name", ["owner", "owner/", "/name", "own er/name", "a/b/c", "-a/b", "a/..", "a/b.git",
                                  "https://github.com/a/b", "a/b;rm", ""])
def test_a_malformed_name_is_refused_in_one_sentence(name):
    before = (pages.ROOT / "pyproject.toml").read_bytes()
    result = CliRunner().invoke(links.main, ["--", name])
    assert result.exit_code == 1
    assert result.output == f"Error: {name!r} does not name a GitHub repository: write make links REPO=owner/name.\n"
    assert (pages.ROOT / "pyproject.toml").read_bytes() == before


def test_a_name_that_is_linked_already_is_refused(project, unexecuted):
    (project / "NOTE.md").write_text("see https://github.com/someone/else for more\n")
    before = contents(project)
    with pytest.raises(ClickException, match=r"NOTE\.md already links to someone/else"):
        links.main.callback("someone/else", project)
    assert contents(project) == before
