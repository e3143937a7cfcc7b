"""Names for measurements that are the same on every machine, so that reports can be set side by side."""

import ast
import re

_TOOLS = ("compare", "measure", "sweep")


def named_measurements(page, notebook, lines):
    """The recorded measurements with names that are the same on every machine, and the headings above their cells.

    A measurement is called after the variable that its cell puts it in, as in 02/fall; where there is none, after the
    section. Names that come up again are numbered. So a cell more or less elsewhere changes no name.
    """
    cells = _cells(notebook)
    by_cell = {}
    for line in lines:
        if line["kind"] in _TOOLS:
            by_cell.setdefault(line["cell"], []).append(line)
    entries, taken = [], {}
    for number, group in by_cell.items():
        section, source = cells.get(number, ("", ""))
        for stem, line in zip(_stems(source, len(group), _slug(section)), group, strict=True):
            taken[stem] = taken.get(stem, 0) + 1
            name = f"{page[:2]}/{stem}" + (f".{taken[stem]}" if taken[stem] > 1 else "")
            entries += [{"name": name, "notebook": page, "section": section, "cell": number, "kind": line["kind"],
                         "size": point["size"], "cases": point["cases"]} for point in line["points"]]
    return entries


def _cells(notebook):
    """{execution count: (heading above, source)}"""
    found, section = {}, ""
    for cell in notebook.cells if notebook else ():
        if cell.cell_type == "markdown":
            heads = re.findall(r"^#{2,3} (.+)$", cell.source, re.MULTILINE)
            section = re.sub(r"[`*]", "", heads[-1]).strip() if heads else section
        elif cell.cell_type == "code":
            found[cell.execution_count] = section, cell.source
    return found


def _slug(section):
    """The first words of a heading: "One big operation: whose …" → one-big-operation-whose"""
    return "-".join(re.findall(r"[a-z]\w*", section.lower())[:4]) or "start"


def _stems(source, count, section):
    """Names for `count` measurements made by a cell, from the variables that it assigns them to."""
    try:
        tree = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE))
    except SyntaxError:
        tree = ast.Module([], [])
    variables = [_target(node) for node in ast.walk(tree) if isinstance(node, ast.Assign) and _measures(node.value)]
    calls = sum(_measures(node, itself=True) for node in ast.walk(tree))
    if calls == len(variables) == count or calls == len(variables) == 1:
        return [variable or section for variable in variables] * (1 if calls == count else count)
    return [section] * count


def _measures(node, itself=False):
    nodes = [node] if itself else ast.walk(node)
    return any(isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in _TOOLS
               for part in nodes)


def _target(node):
    target = node.targets[0]
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
