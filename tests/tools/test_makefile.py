"""make: its list, its refusals, and JupyterLab as it really starts."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import pytest

import pages
import setup_venv

# These tests may themselves run under a make with arguments: leave those behind.
OUTER = ("MAKE", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "LAB_ARGS", "TEST_ARGS", "RUN_ARGS", "PYTHON")
CLEAN = {name: value for name, value in os.environ.items() if name not in OUTER}


def make(*arguments, **environment):
    return subprocess.run(["make", "--no-print-directory", *arguments], cwd=pages.ROOT, capture_output=True, text=True,
                          env={**CLEAN, **environment})


def test_make_alone_lists_the_targets():
    lines = make().stdout.splitlines()
    targets = ["help", "lab", "test", "test-browser", "test-all", "run", "notebooks", "accuracy", "doctor", "slides",
                "minutes", "glossary", "links", "lint", "requirements", "clean"]
    assert [line.split()[1] for line in lines] == targets


@pytest.mark.parametrize("python", ["python9.9", "/nowhere/python3"])
def test_a_python_that_is_not_there(python):
    result = make("lab", PYTHON=python)
    assert result.returncode != 0
    assert result.stderr.splitlines()[0] == (f"{python} is missing here, or too old: name a Python from 3.11 to 3.13, "
                                             "for example PYTHON=python3.12.")


def test_only_a_chosen_python_must_match():
    assert "--chosen" not in make("-n", "lab").stdout
    assert "--chosen" in make("-n", "lab", "PYTHON=python3.12").stdout
    assert "--chosen" in make("-n", "lab", PYTHON="python3.12").stdout


@pytest.mark.parametrize("uid, root", [("0", True), ("1000", False)])
def test_allow_root_only_as_root(tmp_path, uid, root):
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {uid}\n")
    (tmp_path / "id").chmod(0o755)
    said = make("-n", "lab", "LAB_ARGS=--port=8901", PATH=f"{tmp_path}:{os.environ['PATH']}").stdout
    assert ("--allow-root" in said) is root
    assert said.rstrip().endswith("--port=8901") and "--ip=127.0.0.1" in said


def installed_by_make():
    """Whether these tests run in the .venv that make keeps, so that calling make installs nothing."""
    return sys.prefix == str(pages.ROOT / ".venv") and setup_venv.up_to_date(pages.ROOT, False)


@pytest.fixture
def lab(tmp_path):
    """A running `make lab`: its address with the token, and its process."""
    if not installed_by_make():
        pytest.skip("runs in the .venv that make keeps")
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(["make", "lab", "LAB_ARGS=--no-browser --port=8931"], cwd=pages.ROOT, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**CLEAN, "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
                                        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")})
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"http://127\.0\.0\.1:\S+", log.read_text())):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield found.group(), process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def fetch(url):
    """Status and body of a request."""
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def test_lab_serves_the_first_page_to_who_has_the_token_only(lab):
    url, process = lab
    page, token = url.split("?token=")
    assert len(token) >= 32
    assert page.endswith("00_start_here.ipynb")
    status, body = fetch(url)
    assert status == 200 and b"jupyter" in body.lower()
    server = page.split("/lab")[0]
    name = page.split("/lab/tree/")[1]
    assert fetch(f"{server}/api/contents/{name}?token={token}")[0] == 200
    assert fetch(f"{server}/lab/api/news?token={token}")[1] == b'{"news": []}', "nothing is fetched"
    assert json.loads(fetch(f"{server}/lab/api/update?token={token}")[1])["notification"] is None
    assert fetch(f"{server}/api/contents/{name}")[0] == 403
    assert fetch(f"{server}/api/contents/{name}?token={'0' * len(token)}")[0] == 403
    listening = [connection.laddr.ip for child in psutil.Process(process.pid).children(recursive=True)
                 for connection in child.net_connections("inet") if connection.status == psutil.CONN_LISTEN]
    assert listening and set(listening) == {"127.0.0.1"}


def test_a_second_call_starts_at_once():
    if not installed_by_make():
        pytest.skip("runs in the .venv that make keeps")
    start = time.perf_counter()
    assert make("setup").stdout == ""
    assert time.perf_counter() - start < 3
