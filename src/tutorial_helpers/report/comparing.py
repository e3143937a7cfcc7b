"""Machines side by side: which measurements can be compared, how they compare, and what to mind before believing it."""

from collections import Counter
from pathlib import Path
from statistics import median

from ..results import Ratio, factor, seconds, times
from . import charts
from .measurements import FormatError, read, samples, sound, usable

_SHOWN = 40  # rows of one figure; the table holds all
# The two figures of the first page, by the names of their measurements, and the floor under the first.
WATERFALL, FLOOR, LADDER = "02/fall", "memory alone", "01/ladder_times"
GAINS = ((WATERFALL, "The largest gain in one step of the waterfall: ", "previous_over_this"),
         (LADDER, "The fastest rung of the ladder: ", "first_over_this"))


def chosen_files(names, own):
    """The files that the names stand for: paths, short names of samples, or `samples` for all of them.

    Without names: the machine's own report, then the samples. Raises FormatError for a name that is neither.
    """
    shipped = samples()
    if not names and not Path(own).is_file():
        raise FormatError(f"There is no report of this machine yet ({own}): make one without --compare, or name two "
                          "files.")
    names = list(names) or [str(own), "samples"]
    found = []
    for name in names:
        if name == "samples":
            found += shipped.values()
        elif name in shipped and not Path(name).exists():
            found.append(shipped[name])
        elif Path(name).is_file():
            found.append(Path(name))
        else:
            raise FormatError(f"{name} is neither a file nor a sample; the samples are {', '.join(shipped) or 'none'}.")
    if len(found) > len(charts.MACHINES):
        raise FormatError(f"At most {len(charts.MACHINES)} reports fit beside each other; these are {len(found)}.")
    if len(found) < 2:
        raise FormatError("A comparison needs two files at least: report --compare A.json B.json.")
    return found


def side_by_side(paths):
    """Everything that templates/compare.html.j2 shows. Raises FormatError for a file that cannot be read."""
    files = [read(path) for path in paths]
    names = [f"{charts.MACHINES[i]}: {data['label']}" for i, data in enumerate(files)]
    rows = [row(key, found, files) for key, found in matched(files).items()]
    compared = [entry for entry in rows if any(entry["ratios"])]
    titles = {book["name"]: book["title"] for data in reversed(files) for book in data["notebooks"]}
    by_book = {name: found for name in sorted(titles)
               if (found := [entry for entry in compared if entry["notebook"] == name])}
    overview = [(f"{name[:2]} · {titles[name]}", middles(found), "", "") for name, found in by_book.items()]
    return {"machines": [machine(data, name) for data, name in zip(files, names, strict=True)], "names": names,
            "warnings": warnings(files) + left_out(rows), "claims": claims(files),
            "gains": [found for name, title, kind in GAINS if (found := gain(files, name, title, kind))],
            "overview": overview and to_first(overview, headline(compared), names),
            "figures": [figure(titles[name], name, found, names) for name, found in by_book.items()]}


def to_first(rows, finding, names, title=""):
    return charts.ratios(rows, finding, range(1, len(names)),
                         f"times as long as on {names[0]}, logarithmic; left is faster", "as on A", title)


def headline(rows):
    """The median ratio of each machine, in a sentence."""
    told = []
    for i in range(len(rows[0]["ratios"])):
        values = [entry["ratios"][i].estimate for entry in rows if entry["ratios"][i]]
        name = charts.MACHINES[i + 1]
        told.append(f"{name} takes {times(median(values))} as long as A (the median of {len(values)})."
                    if values else f"Nothing of {name} can be compared.")
    return " ".join(told)


def gain(files, name, title, kind):
    """What each step of a measurement gains on each machine; None when fewer than two machines made it."""
    entries = [next((entry for entry in data["measurements"] if entry["name"] == name), None) for data in files]
    columns = [i for i, entry in enumerate(entries) if entry]
    if len(columns) < 2:
        return None
    labels = dict.fromkeys(case["label"] for i in columns for case in entries[i]["cases"])
    rows, trusted = [], {}
    for label in labels:
        cases = [next((case for case in entries[i]["cases"] if case["label"] == label), None) for i in columns]
        found = [step if case and usable((step := charts.ratio(case, kind)).estimate) else None for case in cases]
        note = ", ".join(dict.fromkeys(c["kind"] for case in cases if case for c in case["caveats"]))
        trusted[label] = [bool(case) and sound(case) for case in cases]
        if any(found) and label != FLOOR:
            rows.append((label, found, f"⚠ {note}" if note else "", ""))
    finding = title + "; ".join(f"{charts.MACHINES[i]} {best}" for i, best in zip(columns, (
        max(((found[k].estimate, label) for label, found, *_ in rows if found[k] and trusted[label][k]),
            default=(0, "none"))[1]
        for k in range(len(columns))), strict=True)) + "."
    against = "the first" if kind == "first_over_this" else "the step before"
    return rows and charts.ratios(rows, finding, columns, f"times as fast as {against}, logarithmic; right is faster",
                                  f"as fast as {against}")


def machine(data, name):
    facts = data["machine"]
    versions = facts["versions"]
    known = [f"{label} {versions[key]}" for label, key in (
        ("Python", "python"), ("NumPy", "numpy"), ("JAX", "jax"), ("TensorFlow", "tensorflow"),
        ("TensorFlow", "tensorflow-cpu"), ("Numba", "numba"), ("Cython", "Cython")) if key in versions]
    return {"name": name, "cpu": facts["cpu"], "cores": facts["cores"], "gpus": ", ".join(facts["gpus"]) or "none",
            "memory": f"{facts['memory_bytes'] / 2**30:.3g} GiB", "size": data["size"], "date": data["date"][:10],
            "versions": known, "collection": data["tutorial_helpers"],
            "overrides": ", ".join(f"{key}={value}" for key, value in facts["overrides"].items()) or "none"}


def matched(files):
    """{(name, size, label): [(measurement, case) or None for each file]}, in the order of the files."""
    found = {}
    for i, data in enumerate(files):
        for entry in data["measurements"]:
            for case in entry["cases"]:
                key = entry["name"], entry["size"], case["label"]
                found.setdefault(key, [None] * len(files))[i] = entry, case
    return found


def row(key, found, files):
    """One measurement on all machines: its ratio to the first one's where that means something, else the reason."""
    name, size, label = key
    entry = next(pair[0] for pair in found if pair)
    reasons = [reason(found[0], pair, files[0], data) for pair, data in zip(found[1:], files[1:], strict=True)]
    ratios = [None if why else against(found[0][1], pair[1]) for why, pair in zip(reasons, found[1:], strict=True)]
    return {"notebook": entry["notebook"], "name": name, "section": entry["section"] or name, "case": label,
            "label": label + (f", size {size:,.6g}" if size else ""), "times": [time_of(pair) for pair in found],
            "reasons": reasons, "ratios": ratios}


def reason(first, other, data, more):
    """Why two cases cannot be compared, or None."""
    if first is None or other is None:
        return "not measured everywhere"
    if parameters(data, first[0]["notebook"]) != parameters(more, other[0]["notebook"]):
        return "other parameters"
    if first[1]["argument_bytes"] != other[1]["argument_bytes"]:
        return "arrays of another size"
    if not sound(first[1]) or not sound(other[1]):
        return "a caveat disqualifies a number"
    return None


def parameters(data, notebook):
    return next((book.get("parameters", {}) for book in data["notebooks"] if book["name"] == notebook), {})


def against(first, other):
    """How many times as long the other takes; the ends of the two intervals bound it."""
    (low, high), (floor, top) = charts.ends(first), charts.ends(other)
    return Ratio(other["seconds"] / first["seconds"], floor / high, top / low)


def time_of(pair):
    if pair is None:
        return "–"
    case = pair[1]
    time = seconds(case["seconds"]) if usable(case["seconds"]) else "?"
    return time + (f" ⚠ {charts.kinds(case)}" if case["caveats"] else "")


def middles(rows):
    """For each other machine the median of the ratios, between the smallest and the largest tenth."""
    found = []
    for i in range(len(rows[0]["ratios"])):
        values = sorted(entry["ratios"][i].estimate for entry in rows if entry["ratios"][i])
        tenth = len(values) // 10
        found.append(Ratio(median(values), values[tenth], values[-1 - tenth]) if values else None)
    return found


def figure(title, notebook, rows, names):
    """The notebook's measurements; of a sweep, the largest size stands for the others."""
    last = {(entry["name"], entry["case"]): entry for entry in rows}
    shown = list(last.values())[:_SHOWN]
    groups = group_names(rows)
    drawn = to_first([(entry["label"], entry["ratios"], "", groups[entry["name"]]) for entry in shown],
                     headline(rows), names, title)
    table = [[groups[entry["name"]], entry["label"], *entry["times"],
              *(f"{factor(one.estimate)} ({factor(one.low)} to {factor(one.high)})" if one else "–"
                for one in entry["ratios"])] for entry in rows]
    return drawn | {"notebook": notebook, "table": table, "heads": [
        "section", "measured", *(charts.MACHINES[i] for i in range(len(names))),
        *(f"{charts.MACHINES[i]} / A" for i in range(1, len(names)))]}


def group_names(rows):
    """{measurement: its section}, numbered where a section has several measurements."""
    sections = {}
    for entry in rows:
        sections.setdefault(entry["section"], {})[entry["name"]] = None
    return {name: section + (f" ({i} of {len(names)})" if len(names) > 1 else "")
            for section, names in sections.items() for i, name in enumerate(names, 1)}


def claims(files):
    """The article's claims with each machine's verdict, those that machines disagree about first."""
    from ..claims import CLAIMS
    from .site import overall

    found = []
    for claim in CLAIMS.values():
        told = [overall([entry for entry in data["claims"] if entry["id"] == claim.id]) for data in files]
        judged = {verdict for verdict in told if verdict in ("holds", "does not hold", "depends")}
        evidence = [[entry["evidence"] for entry in data["claims"] if entry["id"] == claim.id] for data in files]
        found.append({"id": claim.id, "says": claim.says, "verdicts": told, "evidence": evidence,
                      "agree": len(judged) < 2})
    return sorted(found, key=lambda entry: entry["agree"])


# ---------------------------------------------------------------------------------------------------------------------
# What to mind


def warnings(files):
    """Sentences about everything that differs besides the machine."""
    told = []
    names = charts.MACHINES[:len(files)]

    def differ(what, values, then):
        values = ["none" if value in (None, "") else str(value) for value in values]
        if len(set(values)) > 1:
            told.append(f"{what} differs: " + ", ".join(f"{name} {value}" for name, value in
                                                        zip(names, values, strict=True)) + f". {then}".rstrip())

    differ("The size of the run", [data["size"] for data in files],
           "Measurements got more or less time, and arrays may have other sizes.")
    differ("The version of the notebooks", [data["tutorial_helpers"] for data in files],
           "The same name may stand for another measurement.")
    for library in ("python", "numpy", "jax", "tensorflow", "tensorflow-cpu", "numba", "Cython"):
        label = {"python": "Python", "numpy": "NumPy", "jax": "JAX", "tensorflow": "TensorFlow",
                 "tensorflow-cpu": "TensorFlow", "numba": "Numba"}.get(library, library)
        differ(f"The version of {label}", [data["machine"]["versions"].get(library) for data in files],
               "")
    if any(line.startswith("The version of ") for line in told):
        told.append("Where versions differ, a ratio is one of machine and version together.")
    differ("An environment setting", [" ".join(f"{key}={value}" for key, value in data["machine"]["overrides"].items())
                                      for data in files], "It changes what libraries do.")
    missing = {}
    for name, data in zip(names, files, strict=True):
        stopped = ", ".join(book["name"][:2] for book in data["notebooks"] if book["status"] != "ran")
        missing.setdefault(stopped, []).append(name)
    return told + [f"On {' and '.join(which)} notebook{'s' * (len(stopped) > 2)} {stopped} did not run to the end."
                   for stopped, which in missing.items() if stopped]


def left_out(rows):
    """How many measurements have no ratio, and why."""
    counted = Counter(why for entry in rows for why in set(filter(None, entry["reasons"])))
    words = {"not measured everywhere": "were not measured on both machines",
             "other parameters": "were made with other parameters",
             "arrays of another size": "worked on arrays of another size",
             "a caveat disqualifies a number": "carry a caveat that disqualifies the number"}
    return [f"{count} of {len(rows)} measurements {words[why]}: they have no ratio." for why, count in counted.items()]
