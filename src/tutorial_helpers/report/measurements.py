"""measurements.json: every measurement and verdict of one run, small enough to send, checked when it is read.

The format is described by measurements.schema.json beside this file, and in words by docs/measurements.md.
"""

import functools
import json
import math
from pathlib import Path

from ..files import write_whole

FORMAT, VERSION = "tutorial_helpers/measurements", 1
LARGEST = 64 * 2**20  # bytes; a real file has a hundredth of it

# A number with one of these caveats is not the time of the work that its label names.
DISQUALIFYING = {"nothing-to-wait-for", "constant-folded", "dead-code", "values-differ", "faster-than-memory",
                 "cached-result", "input-changed", "cut-short"}


class FormatError(ValueError):
    """A file is not a measurements file that this version can read; the message is one sentence."""


@functools.cache
def schema():
    """The format as a JSON Schema."""
    return json.loads(Path(__file__).with_name("measurements.schema.json").read_text(encoding="utf-8"))


def check(data, name="this file"):
    """Return `data` if it is a measurements file.

    Raises: FormatError, one sentence that names the first thing that is wrong.
    """
    import jsonschema

    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FormatError(f"{name} holds no measurements of this collection: \"format\" must be {FORMAT!r}.")
    if data.get("version") != VERSION:
        raise FormatError(f"{name} has version {_brief(data.get('version'))} of the format, and this program reads "
                          f"version {VERSION}: make the file anew, or update tutorial_helpers.")
    validator = jsonschema.Draft202012Validator(schema())
    error = jsonschema.exceptions.best_match(validator.iter_errors(data))
    if error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise FormatError(f"{name} is damaged at {place}: {_brief(error.message)}.")
    return data


def read(path):
    """The contents of a measurements file. Raises FormatError for anything else."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise FormatError(f"{path} is larger than any measurements file.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not a JSON file.") from error
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not a JSON file.") from error
    return check(data, str(path))


def write(data, path):
    """Check and write, a line for each entry. Raises FormatError rather than write a wrong file."""
    lines = []
    for key, value in check(data, path.name).items():
        entries = ",\n".join(f"  {_line(entry)}" for entry in value) if isinstance(value, list) else None
        lines.append(f" {_line(key)}: " + (f"[\n{entries}\n ]" if entries else _line(value)))
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _line(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def sound(case):
    """Whether nothing disqualifies a case's number."""
    return not DISQUALIFYING & {caveat["kind"] for caveat in case["caveats"]} and usable(case["seconds"])


def usable(value):
    return isinstance(value, (int, float)) and math.isfinite(value) and value > 0


def samples():
    """The measurements files that come with the package: {short name: path}."""
    return {path.stem: path for path in sorted(Path(__file__).with_name("samples").glob("*.json"))}


def _no_constant(name):
    raise ValueError(f"{name} is no JSON number")


def _brief(value):
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else text[:117] + "…"
