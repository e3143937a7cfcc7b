"""Run pytest and note how it went in a JSON file: python tools/record.py OUT ARGUMENTS…

Its own folder is importable here, but not in the kernels that it starts: nothing is put on PYTHONPATH.
"""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from tutorial_helpers.collection import PeakMemory


class Recorder:
    """A pytest plugin: counts, the first failures, seconds, and the most memory that all children held."""

    def __init__(self, out):
        self.out = Path(out)
        self.failures, self.passed, self.skipped = [], 0, 0

    def pytest_sessionstart(self):
        self.start, self.memory = time.perf_counter(), PeakMemory()
        self.memory.__enter__()

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        self.skipped += report.skipped
        if report.failed:
            self.failures.append(f"{report.nodeid.rsplit('/', 1)[-1]}: {reason(report)}")

    def pytest_collectreport(self, report):
        if report.failed:
            self.failures.append(f"{report.nodeid}: {reason(report)}")

    def pytest_sessionfinish(self, exitstatus):
        self.memory.__exit__()
        self.out.write_text(json.dumps({
            "passed": self.passed, "skipped": self.skipped, "failures": self.failures, "memory": self.memory.peak,
            "seconds": round(time.perf_counter() - self.start, 1), "status": int(exitstatus)}))


def reason(report):
    """What says most about a failure: the line that pytest marks, or nbval's comparison or last line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", report.longreprtext)
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=<>")]
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    compared = [line for line in lines if " == " in line]
    return "".join(marked[:1] or compared[-1:] or lines[-1:] or ["no reason given"])[:300]


if __name__ == "__main__":
    # The project's conftest.py counts for pages elsewhere as well, by `-p conftest`.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    sys.exit(pytest.main(sys.argv[2:], plugins=[Recorder(sys.argv[1])]))
