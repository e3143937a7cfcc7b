"""The pages of a report: the first page, and the comparison of machines."""

from collections import Counter

from ..claims import CLAIMS, VERDICTS
from ..drawing import count as rounded
from ..results import seconds
from . import charts
from .comparing import FLOOR, LADDER, WATERFALL
from .html import anchor, render
from .pace import minutes

NOT_JUDGED = "not judged"
MARKS = VERDICTS | {NOT_JUDGED: "·"}


def write_index(data, pages, out, problems):
    """Write index.html: the machine, the claims, the two figures, the notebooks, and what went wrong."""
    books = [notebook(book, page, data) for book, page in zip(data["notebooks"], pages, strict=True)]
    claims = [claim_row(claim, data, pages) for claim in CLAIMS.values()]
    tally = Counter(claim["verdict"] for claim in claims)
    failed = [f"{book['name']} failed: {book['error']}." for book in data["notebooks"] if book["status"] == "failed"]
    render("index.html.j2", out / "index.html", data=data, machine=machine_rows(data), facts=main_facts(data),
           books=books, claims=claims, tally=[(verdict, MARKS[verdict], tally[verdict]) for verdict in MARKS
                                              if tally[verdict]], problems=[*problems, *failed],
           waterfall=figure(data, WATERFALL, lambda entry: charts.waterfall(entry, FLOOR)),
           ladder=figure(data, LADDER, charts.ladder),
           missing={name: missing(data, name) for name in (WATERFALL, LADDER)})


def write_comparison(context, out):
    """Write compare.html from what comparing.side_by_side() found."""
    render("compare.html.j2", out / "compare.html", marks=MARKS, **context)


def overall(entries):
    """One verdict from those of several notebooks: theirs if they agree, else "depends"."""
    told = {entry["verdict"] for entry in entries}
    judged = told - {"not measured here"}
    if not told:
        return NOT_JUDGED
    return next(iter(judged or told)) if len(judged) < 2 else "depends"


def claim_row(claim, data, pages):
    """A claim with its verdicts; where there is none, why."""
    entries = [entry | {"link": f"notebooks/{entry['notebook']}.html{anchor(entry.get('cell'))}",
                        "mark": MARKS[entry["verdict"]], "number": entry["notebook"][:2]}
               for entry in data["claims"] if entry["id"] == claim.id]
    verdict = overall(entries)
    return {"id": claim.id, "says": claim.says, "entries": entries, "verdict": verdict, "mark": MARKS[verdict],
            "why": "" if entries else unjudged(claim.id, data, pages),
            "split": len({entry["verdict"] for entry in entries}) > 1}


def unjudged(id, data, pages):
    """Why nothing was found about a claim."""
    status = {book["name"]: book["status"] for book in data["notebooks"]}
    homes = [page.name for page in pages if id in page.claims]
    if not homes:
        return "No notebook of this folder judges it."
    if all(status[name] == "not run" for name in homes):
        return f"Its notebook, {' or '.join(homes)}, did not run."
    stopped = [name for name in homes if status[name] == "failed"]
    if stopped:
        return f"Its notebook, {stopped[0]}, failed before it came to this."
    return f"{' and '.join(homes)} ran without a verdict: a tool that the measurement needs is missing here."


def main_facts(data):
    """The machine in one line."""
    facts, versions = data["machine"], data["machine"]["versions"]
    known = {"Python": versions.get("python"), "NumPy": versions.get("numpy"), "JAX": versions.get("jax"),
             "TensorFlow": versions.get("tensorflow") or versions.get("tensorflow-cpu")}
    return " · ".join([facts["cpu"], f"{facts['cores']} core{'s' * (facts['cores'] > 1)}",
                       f"{facts['memory_bytes'] / 2**30:.3g} GiB", ", ".join(facts["gpus"]) or "no GPU",
                       *(f"{name} {version}" for name, version in known.items() if version)])


def machine_rows(data):
    """(what, finding) about the machine, as the first page shows it."""
    facts = data["machine"]
    versions = [f"{name} {version}" for name, version in facts["versions"].items()]
    devices = [device for found in facts["devices"].values() for device in found if not device.startswith("cpu")]
    rows = [("Processor", facts["cpu"]), ("Cores usable", str(facts["cores"])),
            ("Memory", f"{facts['memory_bytes'] / 2**30:.3g} GiB"),
            ("GPU", ", ".join(facts["gpus"]) or ", ".join(dict.fromkeys(devices)) or "none"),
            ("System", " ".join(filter(None, [facts.get("system", ""), facts.get("architecture", "")]))),
            ("Size of the run", data["size"]), ("Date", data["date"][:10]), ("Versions", " · ".join(versions))]
    if facts["overrides"]:
        rows.append(("Settings that change results", " · ".join(f"{name}={value}" for name, value in
                                                                facts["overrides"].items())))
    return rows


def notebook(book, page, data):
    """A notebook's line on the first page, with everything that it measured."""
    entries = [entry for entry in data["measurements"] if entry["notebook"] == book["name"]]
    rows = [[entry["section"], f"{case['label']}" + (f", size {entry['size']:,.6g}" if entry["size"] else ""),
             seconds(case["seconds"]) if case["seconds"] is not None else "?", charts.interval(case),
             seconds(case["first_call"]) if case["first_call"] is not None else "?", charts.kinds(case)]
            for entry in entries for case in entry["cases"] if case["seconds"] is not None]
    spent = [f"{minutes(book['seconds'])} min", f"{rounded(book['memory_bytes'] / 2**20)} MiB"] \
        if book.get("seconds") else []
    chosen = ", ".join(f"{name} = {value}" for name, value in book.get("parameters", {}).items())
    return {"name": book["name"], "number": book["name"][:2], "title": book["title"], "status": book["status"],
            "link": f"notebooks/{book['name']}.html" if book["status"] != "not run" else None,
            "source": f"notebooks/{book['name']}.ipynb", "spent": spent, "error": book.get("error"), "chosen": chosen,
            "needs": page.needs, "rows": rows, "measured": len(rows)}


def figure(data, name, draw):
    """A figure of the measurement called `name`, or None when it was not made."""
    entry = next((entry for entry in data["measurements"] if entry["name"] == name), None)
    drawn = entry and draw(entry)
    return drawn and drawn | {"link": f"notebooks/{entry['notebook']}.html{anchor(entry.get('cell'))}"}


def missing(data, name):
    """Why a figure is missing."""
    book = next((book for book in data["notebooks"] if book["name"].startswith(name[:2])), None)
    return f"It comes from notebook {name[:2]}, which " + (
        "is not in this folder." if book is None else "did not run." if book["status"] == "not run" else
        "failed before it came to this." if book["status"] == "failed" else "did not make it here.")
