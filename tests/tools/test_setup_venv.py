"""The installation behind every make target: quick when nothing changed, repaired when broken, else one sentence."""

import os
import signal
import subprocess
import sys
import time
from collections import namedtuple

import pytest

import setup_venv

# A build backend that needs nothing but Python, so that these tests install a package without a network.
BACKEND = '''
import base64, hashlib, pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name, info = "tiny-1.0-py3-none-any.whl", "tiny-1.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("tiny.pth", str(pathlib.Path.cwd()))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
'''
PROJECT = '''
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1.0"
'''
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def root(tmp_path):
    """A project whose installation takes seconds: no requirement, a package without dependencies."""
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "backend.py").write_text(BACKEND)
    return tmp_path


def works(root):
    return setup_venv.runs(setup_venv.venv_python(root / ".venv"), "-c", "import backend, pip")


def test_install_reuse_repair(root, capfd):
    assert setup_venv.main([], root) == 0
    assert works(root)
    assert "Making .venv" in capfd.readouterr().out

    start = time.perf_counter()
    assert setup_venv.main([], root) == 0
    assert time.perf_counter() - start < 3
    assert capfd.readouterr() == ("", ""), "a second call does nothing"

    (root / "requirements.txt").write_text("# changed\n")
    assert setup_venv.main([], root) == 0
    assert "Bringing .venv up to date" in capfd.readouterr().out

    (root / "requirements.txt").write_text("nowhere @ file:///nowhere/nowhere.whl\n")
    sentence = setup_venv.main([], root)
    assert "then run make again" in sentence and len(sentence.splitlines()) == 1
    assert setup_venv.main([], root), "it stays an error"
    (root / "requirements.txt").write_text("")
    assert setup_venv.main([], root) == 0
    assert works(root)


def test_killed_while_it_installs(root, capfd):
    """Kill the whole process at a point where pip is at work; the next call mends it."""
    wait = "    import time; pathlib.Path('at-work').touch(); time.sleep(60)\n"
    slow = BACKEND.replace("    name, info", wait + "    name, info", 1)
    (root / "backend.py").write_text(slow)
    code = "import setup_venv, pathlib, sys; sys.exit(setup_venv.main([], pathlib.Path(sys.argv[1])))"
    process = subprocess.Popen([sys.executable, "-c", code, str(root)], cwd=setup_venv.ROOT / "tools",
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (root / "at-work").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (root / ".venv" / "stamp").exists()
    (root / "backend.py").write_text(BACKEND)
    (next((root / ".venv").rglob("site-packages")) / "pip" / "_internal" / "__init__.py").unlink()  # half unpacked
    assert setup_venv.main([], root) == 0
    assert "broke off" in capfd.readouterr().out
    assert works(root)


@pytest.fixture
def without_pip(monkeypatch):
    """Make environments and install nothing into them."""
    monkeypatch.setattr(setup_venv, "add_pip", lambda venv: None)
    monkeypatch.setattr(setup_venv, "pip", lambda *arguments: None)


def test_another_python_makes_it_anew(root, capfd, without_pip):
    assert setup_venv.main([], root) == 0
    assert setup_venv.main(["--chosen"], root) == 0, "the same version stays"
    capfd.readouterr()
    other = (3, 11) if sys.version_info[:2] != (3, 11) else (3, 12)
    python = setup_venv.venv_python(root / ".venv")
    python.unlink()
    python.write_text(f"#!/bin/sh\necho {other[0]} {other[1]} True\n")
    python.chmod(0o755)
    assert setup_venv.main(["--chosen"], root) == 0
    assert f".venv has Python {setup_venv.short(other)}: making it anew" in capfd.readouterr().out
    assert setup_venv.venv_version(root / ".venv") == sys.version_info[:2]


def test_a_python_that_went_away(root, capfd, without_pip):
    assert setup_venv.main([], root) == 0
    python = setup_venv.venv_python(root / ".venv")
    python.unlink()
    python.symlink_to(root / "gone")
    assert setup_venv.main([], root) == 0
    assert "is gone" in capfd.readouterr().out
    assert setup_venv.venv_version(root / ".venv") == sys.version_info[:2]


def test_pip_from_outside_where_python_has_no_ensurepip(root, monkeypatch):
    """Debian's Python without its venv package, but with pip."""
    really = setup_venv.runs
    outer = []
    monkeypatch.setattr(setup_venv, "runs", lambda python, *args: (
        False if "ensurepip" in args else outer.append(args) or True if "--python" in args else really(python, *args)))
    monkeypatch.setattr(setup_venv, "pip", lambda *args: None)
    assert setup_venv.main([], root) == 0
    assert outer[0][:2] == ("-m", "pip") and outer[0][-3:] == ("install", "--quiet", "pip")


def test_neither_ensurepip_nor_pip(root, monkeypatch):
    really = setup_venv.runs
    monkeypatch.setattr(setup_venv, "runs", lambda python, *args: "pip" not in args and "ensurepip" not in args
                        and "--python" not in args and really(python, *args))
    sentence = setup_venv.main([], root)
    assert "sudo apt-get install python3." in sentence and "run make again" in sentence


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0), (3, 9)])
def test_an_unsupported_python(version):
    with pytest.raises(setup_venv.SetupError) as error:
        setup_venv.check_python(version, which=lambda name: None)
    assert str(error.value) == (f"Python {version[0]}.{version[1]} will not do, the packages need 3.11 to 3.13: "
                                "install one and name it, as in make PYTHON=python3.12.")


def test_an_unsupported_python_beside_a_supported_one(monkeypatch):
    monkeypatch.setattr(setup_venv, "runs", lambda name: name == "python3.12")
    with pytest.raises(setup_venv.SetupError, match=r"run make again with PYTHON=python3\.12"):
        setup_venv.check_python((3, 10), which=lambda name: f"/usr/bin/{name}")


def test_too_little_disk(tmp_path):
    with pytest.raises(setup_venv.SetupError, match=r"1\.0 GB free and the installation needs about 4\.0"):
        setup_venv.check_disk(tmp_path, usage=lambda folder: Usage(9e9, 8e9, 1e9))


@pytest.mark.parametrize("said, advice, harmless", [
    ("ERROR: Could not install … OSError: [Errno 28] No space left on device", "The disk is full", False),
    ("WARNING: Retrying … NewConnectionError\nERROR: No matching distribution found for absl-py", "network", True),
    ("ERROR: No matching distribution found for jaxlib==0.10.2", "A package was not found", True),
    ("error: metadata-generation-failed", "reason that is given above", False),
])
def test_what_pip_says_becomes_one_sentence(tmp_path, said, advice, harmless):
    error = setup_venv.failure(said, tmp_path)
    assert advice in str(error) and len(str(error).splitlines()) == 1 and str(error).endswith("run make again.")
    assert error.harmless is harmless
