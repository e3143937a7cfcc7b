"""What the README promises under "Safety": who reaches the server, what leaves the machine, what is run and loaded."""

import ast
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest

import lab
import pages
from tutorial_helpers.collection import read_page
from tutorial_helpers.report.measurements import read as read_measurements
from tutorial_helpers.results import Comparison, MeasurementError, Sweep

PACKAGE = pages.ROOT / "src" / "tutorial_helpers"
SOURCES = [*sorted((pages.ROOT / "src").rglob("*.py")), *sorted((pages.ROOT / "tools").rglob("*.py")),
           *sorted((pages.ROOT / "benchmarks").rglob("*.py")), *sorted((pages.ROOT / "docs").rglob("*.py"))]
NOTEBOOKS = pages.notebooks()


def relative(path):
    return str(path.relative_to(pages.ROOT))


# ---------------------------------------------------------------------------------------------------------------------
# No documented command listens beyond loopback, or without a token

HOST = r"[= ]['\"]?(?!127\.0\.0\.1|localhost|::1|\[::1\])"
EXPOSES = {
    "every address": r"(?<![\d.])0\.0\.0\.0|\[::\]|--bind[_-]all\b",
    "another address": rf"--(?:\w+\.)?(?:ip|host|bind|listen)\b{HOST}",
    "a token or password of its own": r"(?:Identity\w*|\w*App)\.(?:hashed_)?(?:token|password)\b|--no-token",
    "an open door": r"allow_unauthenticated_access|disable_check_xsrf|allow_remote_access|allow_origin|--certfile",
    "a server that asks for nothing":
        r"-m http\.server(?!.*--bind 127\.0\.0\.1)|--post serve|\bvoila\b|\btensorboard\b",
}
COMMANDS = [path for path in (
    pages.ROOT / "README.md", pages.ROOT / "Makefile", pages.ROOT / "environment.yml", pages.ROOT / "pyproject.toml",
    *sorted((pages.ROOT / ".ci").glob("*")), *sorted((pages.ROOT / ".github").rglob("*.y*ml")),
    *sorted((pages.ROOT / "binder").glob("*")), *sorted((pages.ROOT / "docs").rglob("*.md")), *pages.texts())
    if path.is_file()]


def exposures(text):
    """Each line that would let others in, with the reason."""
    return [f"{reason}: {line.strip()}" for line in text.splitlines() for reason, pattern in EXPOSES.items()
            if re.search(pattern, line)]


@pytest.mark.parametrize("path", COMMANDS, ids=relative)
def test_no_documented_command_lets_others_in(path):
    assert exposures(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", [
    "jupyter lab --ip=0.0.0.0", "jupyter lab --ip 192.168.0.7", "jupyter lab --ip='*'", "jupyter lab --ServerApp.ip=::",
    "jupyter lab --IdentityProvider.token=''", "jupyter notebook --NotebookApp.token=", "jupyter lab --LabApp.token=a",
    "jupyter server --ServerApp.password=''", "jupyter lab --PasswordIdentityProvider.hashed_password=x",
    "jupyter lab --IdentityProvider.hashed_password=x", "jupyter lab --ServerApp.disable_check_xsrf=True",
    "jupyter lab --ServerApp.allow_origin='*'", "python -m http.server 8000", "jupyter nbconvert a.ipynb --post serve",
    "voila notebooks/", "tensorboard --bind_all", "flask run --host=0.0.0.0"])
def test_a_command_that_lets_others_in_is_noticed(line):
    assert exposures(line)


@pytest.mark.parametrize("line", [
    "jupyter lab --ip=127.0.0.1", "jupyter lab --ip localhost", "make lab LAB_ARGS=\"--no-browser --port=8901\"",
    "python -m http.server --bind 127.0.0.1 8000", "It asks for the token that it prints."])
def test_a_command_that_does_not_is_let_pass(line):
    assert exposures(line) == []


def documented():
    """The commands that start JupyterLab: `make lab`, and those that the texts spell out."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in COMMANDS if path.suffix == ".md")
    spelled = re.findall(r"\bjupyter[ -]lab\b[^`\n]*(?=`)", texts) + re.findall(
        r"^\s*\$? ?jupyter[ -]lab\b.*$", texts, re.MULTILINE)
    return list(dict.fromkeys(["make lab", *(command.strip(" $").replace("\\", "/") for command in spelled)]))


def words_of(command):
    """A documented command as it is run here: on a port that is free, without opening the learner's browser."""
    options = ["--no-browser", f"--port={lab.free_port()}", "--ServerApp.port_retries=0"]
    if command == "make lab":
        return lab.make_lab_words(*options)
    root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    return [*lab.with_this_python(shlex.split(command.replace("jupyter-lab", "jupyter lab"))), *options, *root]


def test_the_commands_that_start_the_server_are_found():
    assert documented() == ["make lab", "jupyter lab notebooks/00_start_here.ipynb"]


@pytest.fixture(scope="module", params=documented())
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("safe") / "root"
    folder.joinpath("notebooks").mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(), folder / "notebooks" / "00_start_here.ipynb")
    running = lab.Server(folder, words_of(request.param)).start()
    yield running
    running.stop()


KEPT = ["api/contents/notebooks/00_start_here.ipynb", "api/kernels", "api/sessions", "api/terminals", "api/config/x",
        "lab/api/settings", "lab/api/workspaces"]


@pytest.mark.parametrize("path", KEPT)
def test_without_the_token_nothing_is_told(server, path):
    assert len(server.token) >= 32
    wrong = server.token[:-1] + ("0" if server.token[-1] != "0" else "1")
    assert lab.fetch(f"{server.url}{path}")[0] == 403
    assert lab.fetch(f"{server.url}{path}?token=")[0] == 403
    assert lab.fetch(f"{server.url}{path}?token={wrong}")[0] == 403
    assert lab.fetch(f"{server.url}{path}", Authorization=f"token {wrong}")[0] == 403
    assert lab.fetch(f"{server.url}{path}?token={server.token}")[0] in (200, 404)


def test_pages_lead_to_the_login(server):
    for path in ("lab", "lab/tree/notebooks/00_start_here.ipynb", "files/notebooks/00_start_here.ipynb"):
        with urllib.request.urlopen(server.url + path, timeout=30) as answer:
            assert "/login?" in answer.url


def test_a_page_from_elsewhere_cannot_pass_as_this_machine(server):
    """A name that somebody else points at 127.0.0.1 (DNS rebinding) gets nothing, even with the token."""
    assert lab.fetch(f"{server.url}api/kernels?token={server.token}", Host="elsewhere.example")[0] == 403


def test_listens_on_the_loopback_only_with_a_kernel_too(server):
    def start(token):
        return lab.fetch(f"{server.url}api/kernels", b"{}", Authorization=f"token {token}")[0]

    assert start("0" * 48) == 403
    assert start(server.token) == 201
    lab.eventually("The server's socket and the kernel's five did not appear", lambda: len(listening(server)) > 5)
    assert server.beyond() == []


def listening(server):
    return [each for each in server.connections() if each.status == "LISTEN"]


# ---------------------------------------------------------------------------------------------------------------------
# No socket leads elsewhere. (That no notebook opens one while it runs is tested in test_browser.py, under this guard.)


@pytest.mark.parametrize("attempt", [
    "urllib.request.urlopen('https://example.org')", "socket.create_connection(('192.0.2.1', 80))",
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))", "socket.socket().bind(('0.0.0.0', 0))",
    "socket.socket().bind(('', 0))", "socket.gethostbyname('example.org')",
    "socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))"])
def test_the_guard_refuses_and_tells(attempt, tmp_path):
    done = guarded(tmp_path, "-c", f"import socket, urllib.request\n{attempt}")
    assert "is beyond this machine" in done.stderr and done.returncode == 1
    assert (tmp_path / "log").read_text().count("\n") == 1


@pytest.mark.parametrize("attempt", ["bind(('127.0.0.1', 0))", "connect_ex(('127.0.0.1', 9))",
                                     "connect_ex(('localhost', 9))"])
def test_the_guard_lets_the_loopback_pass(attempt, tmp_path):
    done = guarded(tmp_path, "-c", f"import socket; socket.socket().{attempt}")
    assert done.returncode == 0 and (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("command", ["doctor", "list"])
def test_the_command_line_opens_no_socket(command, tmp_path):
    done = guarded(tmp_path, "-m", "tutorial_helpers", command)
    assert done.returncode == 0 and done.stdout, done.stderr
    assert (tmp_path / "log").read_text() == ""


def guarded(folder, *arguments):
    """A Python process under the guard, which writes to folder/log."""
    (folder / "log").touch()
    return subprocess.run([sys.executable, *arguments], cwd=pages.ROOT, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(lab.HERE / "guard"),
                               "TUTORIAL_GUARD_LOG": str(folder / "log")})


# ---------------------------------------------------------------------------------------------------------------------
# Nothing in the code could: no network library, no shell, no pickle

NETWORK = {"socket", "socketserver", "ssl", "http", "urllib.request", "urllib3", "requests", "httpx", "aiohttp",
           "ftplib", "smtplib", "telnetlib", "xmlrpc", "websocket", "websockets", "paramiko", "fsspec"}
PICKLES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "jsonpickle", "pandas.read_pickle"}
SHELLS = {"os.system", "os.popen", "os.startfile", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn",
          "asyncio.create_subprocess_shell", "commands.getoutput", "posix.system"}
SHELL_NAMES = {"sh", "bash", "dash", "zsh", "ksh", "fish", "csh", "cmd", "cmd.exe", "powershell", "pwsh"}
UNPICKLERS = {"torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "pd.read_pickle", "pandas.read_pickle",
              "joblib.load", "keras.models.load_model", "tf.keras.models.load_model", "shelve.open"}
MAGICS = {"system", "getoutput", "getoutput_split"}
SHELL_MAGICS = {"sh", "bash", "script", "sx", "system", "!", "cmd", "perl", "ruby", "html_shell"}


def offences(source):
    """What a piece of Python, or an IPython cell, must not do: one sentence each, with its line."""
    tree = ast.parse(plain_python(source))
    return [f"line {node.lineno}: {reason}" for node in ast.walk(tree) for reason in reasons(node)]


def plain_python(source):
    """IPython's own syntax (!ls, %%bash) as the calls that it stands for."""
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(source) if re.search(r"^\s*[!%]|=\s*[!%]", source, re.M) else source


def reasons(node):
    """Why one node of the syntax tree is refused."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names = {node.module or "", *(f"{node.module}.{name}" for name in names)}
        wanted = {".".join(parts[:count]) for name in names for parts in [name.split(".")] for count in (1, 2)}
        yield from (f"imports {name}, which reaches other machines" for name in sorted(wanted & NETWORK))
        yield from (f"imports {name}, which runs what it reads" for name in sorted(wanted & PICKLES))
        yield from (f"imports {name}, a shell" for name in sorted(names & SHELLS))
    if isinstance(node, ast.Call):
        yield from call_reasons(node, ast.unparse(node.func))


def call_reasons(node, name):
    """Why a call is refused."""
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    first = node.args[0] if node.args else None
    if name in SHELLS:
        yield f"{name} runs a shell"
    if "shell" in options and getattr(options["shell"], "value", True) is not False:
        yield f"{name} with shell="
    if isinstance(first, (ast.List, ast.Tuple)) and first.elts and isinstance(first.elts[0], ast.Constant) \
            and Path(str(first.elts[0].value)).name in SHELL_NAMES:
        yield f"{name} starts {first.elts[0].value}"
    if name.startswith("get_ipython()."):
        magic = getattr(first, "value", None)
        if name.rpartition(".")[2] in MAGICS or (
                "magic" in name and str(magic).split(" ")[0] in SHELL_MAGICS):
            yield f"{name}({magic!r}) runs a shell"
    if name in UNPICKLERS and not (name == "torch.load" and getattr(options.get("weights_only"), "value", 0) is True):
        yield f"{name} runs what it reads"
    if "allow_pickle" in options and getattr(options["allow_pickle"], "value", True) is not False:
        yield f"{name} with allow_pickle"


@pytest.mark.parametrize("source", [
    "import socket", "from urllib import request", "import urllib.request as u", "from http import client",
    "from http.client import HTTPConnection", "import requests", "import pickle", "from joblib import load",
    "import os\nos.system(text)", "from os import system",
    "subprocess.run(text, shell=True)", "subprocess.Popen(text, shell=flag)", "subprocess.run(['bash', '-c', text])",
    "subprocess.run(['/bin/sh', '-c', text])", "subprocess.getoutput(text)", "!ls", "files = !ls", "%%bash\nls",
    "%system ls", "%sx ls", "get_ipython().system(text)", "np.load(path, allow_pickle=True)", "torch.load(path)",
    "torch.load(path, weights_only=False)", "yaml.load(text)", "x = 1\nif x:\n    !echo {x}"])
def test_an_offence_is_noticed(source):
    assert offences(source)


@pytest.mark.parametrize("source", [
    "import os, sys, subprocess\nsubprocess.run([sys.executable, '-m', 'pip', 'install', source], check=True)",
    "subprocess.run(command, shell=False)", "np.load(path)", "torch.load(path, weights_only=True)", "%timeit f(x)",
    "%%cython\ndef f(int x): return x", "import urllib.parse", "yaml.safe_load(text)", "json.load(file)", "5 % 3"])
def test_what_is_no_offence(source):
    assert offences(source) == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_the_code_reaches_nobody_runs_no_shell_and_loads_no_pickle(path):
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_reach_nobody_run_no_shell_and_load_no_pickle(path):
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [(cell.splitlines()[0], each) for cell in cells for each in offences(cell)] == []


# ---------------------------------------------------------------------------------------------------------------------
# JSON that is read from disk is checked


# {the function that reads: what calls it with a path and must raise one sentence that names the file}
READERS = {
    "results.py:_read": [Comparison.load, Sweep.load],
    "report/measurements.py:read": [read_measurements],
    "collection.py:_kinds_and_sources": [read_page],
}
# What reads JSON that nobody else can have written, or is tested where it belongs.
OWN = {
    "collection.py:_publish": "a notebook that papermill has just written",
    "report/html.py:write_page": "a notebook that papermill has just written",
    "report/store.py:_executed": "a notebook that papermill has just written",
    "report/store.py:read_lines": "lines that the notebook has just recorded",
    "report/store.py:load": "records of an earlier run: a damaged one counts as none, see tests/report",
    "report/running.py:what_to_run": "the note of an earlier run: a damaged one counts as none, see tests/report",
    "learner.py:_read": "the progress file: a damaged one is set aside with a sentence, see tests/exercises",
    "report/measurements.py:schema": "a file of the package",
    "machine.py:cpu_name": "the output of a process that it starts",
}


READ = ("json.load", "json.loads", "nbformat.read")


def functions_that_read():
    """file:function of everything in the package that reads JSON or a notebook."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                    isinstance(call, ast.Call) and ast.unparse(call.func) in READ for call in ast.walk(node)):
                found.add(f"{path.relative_to(PACKAGE)}:{node.name}")
    return found


def test_every_reader_is_tested_here():
    assert functions_that_read() == set(READERS) | set(OWN)


HEAD = '"schema": "tutorial_helpers/1", "kind": '
MALFORMED = {
    "empty": b"", "cut off": b'{"cells": [', "no text": b"\x80\x04\x95\xff", "a pickle": b"cos\nsystem\n(S'true'\ntR.",
    "nothing": b"null", "a number": b"3", "a list": b"[]", "an empty object": b"{}",
    "something else": b'{"a": {"b": 1}}',
    "not a list": b'{"cells": 3}', "empty cells": b'{"cells": [{}]}', "numbers for cells": b'{"cells": [1, 2]}',
    "nested too deep": b"[" * 100_000, "no measurement": f'{{{HEAD}"comparison"}}'.encode(),
    "no timings": f'{{{HEAD}"comparison", "machine": {{}}, "timings": 7}}'.encode(),
    "an empty timing": f'{{{HEAD}"comparison", "machine": {{}}, "timings": [{{}}]}}'.encode(),
    "no sizes": f'{{{HEAD}"sweep"}}'.encode(), "sizes of another kind": f'{{{HEAD}"sweep", "sizes": "many"}}'.encode(),
    "an empty size": f'{{{HEAD}"sweep", "sizes": [{{"size": 3}}]}}'.encode(),
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("read", [each for readers in READERS.values() for each in readers],
                         ids=lambda read: read.__qualname__)
def test_a_malformed_file_gets_a_sentence_that_names_it(read, content, tmp_path):
    path = tmp_path / "damaged.json"
    path.write_bytes(content)
    with pytest.raises((ValueError, MeasurementError)) as caught:
        read(path)
    sentence = str(caught.value)
    assert str(path) in sentence and "\n" not in sentence and len(sentence) < len(str(path)) + 300


# ---------------------------------------------------------------------------------------------------------------------
# The README says so, in three lines

PROMISES = [("127.0.0.1", "token"), ("No notebook or helper opens a connection", "shell"),
            ("JSON", "checked", "pickle")]


def test_the_readme_says_it_in_three_lines():
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Safety\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL).group(1)
    lines = [line for line in section.splitlines() if line.strip()]
    assert len(lines) == 3 and all(line.startswith("- ") for line in lines)
    for line, words in zip(lines, PROMISES, strict=True):
        assert [word for word in words if word not in line] == [], line
