"""What is left of each notebook that ran: one JSON file per notebook, from which a report is built or resumed.

A notebook counts as finished once its file is there, and the file is written last, in one step. An interruption at any
moment therefore leaves each notebook either finished or as it was before.
"""

import contextlib
import json
import re

import nbformat

from .. import __version__, machine
from ..files import write_whole
from .measurements import FORMAT, VERSION
from .naming import named_measurements


def settings(size, parameters=None):
    """What must be equal for two notebooks' results to belong into one report."""
    facts = machine.describe()
    return {"size": size, "parameters": parameters or {}, "version": __version__, "processor": facts["cpu"],
            "cores": facts["cores"], "GPUs": facts["gpus"], **{f"version of {name}": version for name, version in
                                                               facts["versions"].items()}}


def differences(wanted, found):
    """In words, what differs between two settings(): ["size (quick, not standard)"]."""
    return [f"{name} ({_brief(found.get(name))}, not {_brief(wanted.get(name))})" for name in dict(wanted, **found)
            if wanted.get(name) != found.get(name)]


def _brief(value):
    if isinstance(value, dict):
        return " ".join(f"{name}={setting}" for name, setting in value.items()) or "none"
    return "none" if value in (None, [], ()) else str(value)


def path_of(out, name):
    return out / "notebooks" / f"{name}.json"


def load(out, name):
    """The record of a notebook, or None when there is none or it is damaged."""
    try:
        record = json.loads(path_of(out, name).read_text(encoding="utf-8"))
        return record if {"settings", "page", "measurements", "claims", "machine"} <= set(record) else None
    except (OSError, ValueError, TypeError):
        return None


def save(out, run, wanted, facts, lines, run_id):
    """Write the record of a notebook that has just run; `lines` are what it recorded. Returns the record."""
    page = {"name": run.page.name, "title": run.page.title, "status": "failed" if run.error else "ran",
            "date": facts["date"], "seconds": round(run.seconds, 2), "memory_bytes": run.memory,
            "parameters": wanted["parameters"], **({"error": run.error[:1000]} if run.error else {})}
    notebook, keys = _executed(out, run.page), ("id", "verdict", "evidence", "cell")
    record = {"settings": wanted, "run": run_id, "digest": run.page.digest, "cells": run.cells, "page": page,
              "machine": facts | {"devices": _devices(lines)},
              "claims": list({line["id"]: {"notebook": run.page.name, **{key: line[key] for key in keys}}
                              for line in lines if line["kind"] == "claim"}.values()),  # the last verdict counts
              "measurements": named_measurements(run.page.name, notebook, lines)}
    write_whole(path_of(out, run.page.name), json.dumps(record, ensure_ascii=False, allow_nan=False))
    return record


def facts_of_machine():
    """describe() without what could tell more than a reader needs: paths in environment settings."""
    facts = machine.describe()
    facts.pop("threads")
    return facts | {"overrides": {name: "…" if re.search(r"[/\\]", value) else value
                                  for name, value in facts["overrides"].items()}}


def read_lines(path):
    """What a notebook recorded; a last line that was cut off is left out."""
    lines = []
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
    return lines


def _executed(out, page):
    try:
        return nbformat.read(out / "notebooks" / page.path.name, as_version=4)
    except (OSError, ValueError):
        return None


def _devices(lines):
    found = {}
    for line in lines:
        for point in line.get("points", ()):
            found.update(point["devices"])
    return found


def collect(records, pages, size, label=None):
    """The contents of measurements.json, from the notebooks' records; pages without one count as not run."""
    known = {record["page"]["name"]: record for record in records}
    latest = max(records, key=lambda record: record["page"]["date"])
    facts = dict(latest["machine"], devices={})
    for record in records:
        facts["devices"].update(record["machine"]["devices"])
    notebooks = [known[page.name]["page"] if page.name in known else
                 {"name": page.name, "title": page.title, "status": "not run"} for page in pages]
    return {"format": FORMAT, "version": VERSION, "label": label or _label(facts), "date": facts["date"],
            "tutorial_helpers": latest["settings"]["version"], "size": size,
            "machine": {name: value for name, value in facts.items() if name != "date"}, "notebooks": notebooks,
            "claims": [claim for record in records for claim in record["claims"]],
            "measurements": [entry for record in records for entry in record["measurements"]]}


def _label(facts):
    parts = [facts["cpu"], f"{facts['cores']} core{'s' * (facts['cores'] > 1)}", *facts["gpus"][:1]]
    return ", ".join(parts + [f"JAX {facts['versions']['jax']}"] * ("jax" in facts["versions"]))
