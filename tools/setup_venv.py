"""Make .venv, or bring it up to date: `make` runs this before everything else. Standard library and pip only.

A stamp inside .venv, written after success only, says what was installed. While it fits, nothing is done.
"""

import argparse
import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)
NEEDED_GB = 4.0  # .venv itself takes about 3; the rest is room for downloads and unpacking
FULL_SIGNS = ("No space left", "Errno 28", "Disk quota exceeded", "Errno 122")
NETWORK_SIGNS = ("NewConnectionError", "Max retries", "ConnectionError", "Temporary failure", "timed out", "ProxyError",
                 "NameResolutionError", "SSLError")


class SetupError(Exception):
    """One sentence that says what is wrong and what to do; `harmless` when .venv is as it was before."""

    def __init__(self, sentence, harmless=False):
        super().__init__(sentence)
        self.harmless = harmless


def short(version):
    return ".".join(str(part) for part in version[:2])


def check_python(version=None, which=shutil.which):
    """Refuse a Python that the pinned packages do not exist for, naming one on this machine that would do."""
    version = version or sys.version_info
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return
    candidates = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    found = next((name for name in candidates if which(name) and runs(name)), None)
    advice = f"run make again with PYTHON={found}" if found else "install one and name it, as in make PYTHON=python3.12"
    raise SetupError(f"Python {short(version)} will not do, the packages need {short(OLDEST)} to {short(NEWEST)}: "
                     f"{advice}.")


def runs(python, *arguments):
    """Whether this interpreter starts (and runs the arguments, if any) without an error."""
    command = [str(python), *(arguments or ("-c", ""))]
    try:
        return subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def venv_python(venv):
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def venv_version(venv):
    """(3, 12) for a .venv whose interpreter starts, None for anything else."""
    code = "import sys; print(*sys.version_info[:2], sys.prefix != sys.base_prefix)"
    try:
        run = subprocess.run([str(venv_python(venv)), "-c", code], capture_output=True, text=True, timeout=60)
        major, minor, inside = run.stdout.split()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return (int(major), int(minor)) if inside == "True" else None


def fingerprint(root, version):
    """Changes with the requirements, the package's metadata, the Python version and the folder."""
    content = [(root / name).read_bytes() for name in ("requirements.txt", "pyproject.toml")]
    return hashlib.sha256(b"\0".join([*content, short(version).encode(), str(root).encode()])).hexdigest()


def read(path):
    return path.read_text() if path.exists() else None


def check_disk(folder, needed_gb=NEEDED_GB, usage=shutil.disk_usage):
    free = usage(folder).free / 1e9
    if free < needed_gb:
        raise SetupError(f"The disk has {free:.1f} GB free and the installation needs about {needed_gb:.1f}: "
                         f"free some space at {folder} and run make again.")


def create(venv):
    """An empty environment; pip comes in a second step, because Debian ships Pythons without ensurepip."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    if importlib.util.find_spec("venv") is None or not runs(base, "-m", "venv", "--without-pip", str(venv)):
        raise SetupError(f"This Python cannot make a virtual environment: {debian_hint('venv')}.")


def debian_hint(what):
    return (f"install its {what} package (Debian, Ubuntu: sudo apt-get install python{short(sys.version_info)}-venv) "
            "and run make again")


def add_pip(venv):
    """pip for the environment: from ensurepip, else from a pip outside it."""
    python = venv_python(venv)
    if runs(python, "-m", "pip", "--version") or runs(python, "-m", "ensurepip", "--upgrade", "--default-pip"):
        return
    for outer in ([sys.executable, "-m", "pip"], ["pip3"], ["pip"]):
        if runs(*outer, "--python", str(python), "install", "--quiet", "pip"):
            return
    raise SetupError(f"This Python has no pip to put into .venv: {debian_hint('venv')}.")


def pip(venv, *arguments):
    """Run pip with its progress visible; turn a failure into one sentence."""
    settings = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    process = subprocess.Popen([str(venv_python(venv)), "-m", "pip", *arguments], cwd=str(venv.parent),
                               env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True, errors="replace")
    said = []
    for line in process.stderr:
        said.append(line)
        sys.stderr.write(line)
    if process.wait() != 0:
        raise failure("".join(said), venv.parent)


def failure(said, folder):
    """The error for what pip, or the system, said."""
    if any(sign in said for sign in FULL_SIGNS):
        return SetupError(f"The disk is full: make about {NEEDED_GB:.1f} GB free at {folder} and in "
                          f"{tempfile.gettempdir()}, then run make again.")
    if any(sign in said for sign in NETWORK_SIGNS):
        return SetupError("The packages could not be fetched: check the network connection, then run make again.", True)
    if "No matching distribution" in said or "Could not find a version" in said:
        return SetupError("A package was not found (see above): check the network connection, and that this is 64-bit "
                          "Linux, Windows or a Mac with Apple silicon, then run make again.", True)
    return SetupError("The installation failed for the reason that is given above: mend it, then run make again.")


@contextlib.contextmanager
def one_at_a_time(root):
    """Let a second `make` wait instead of installing into the same folder."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    (root / "build").mkdir(exist_ok=True)
    with open(root / "build" / "setup.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Another make is setting up .venv: waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up_to_date(root, chosen):
    """Whether .venv holds what the files ask for (and has the chosen Python, if one was chosen)."""
    venv = root / ".venv"
    version = venv_version(venv)
    if version is None or (chosen and version != tuple(sys.version_info[:2])):
        return False
    return read(venv / "stamp") == fingerprint(root, version)


def install(root, chosen):
    """Bring .venv up to date, from nothing if need be."""
    venv = root / ".venv"
    unfinished = venv / "unfinished"
    version = venv_version(venv)
    reason = None
    if unfinished.exists():
        reason = "The last installation broke off: starting it again."
    elif venv.exists() and version is None:
        reason = "The Python of .venv is gone: making .venv anew."
    elif version and chosen and version != tuple(sys.version_info[:2]):
        reason = f".venv has Python {short(version)}: making it anew with {short(sys.version_info)}."
    elif version and not OLDEST <= version <= NEWEST:
        reason = f".venv has Python {short(version)}, which will not do: making it anew."
    if reason:
        check_python()
        print(reason, flush=True)
        shutil.rmtree(venv)
        version = None
    if version is None:
        check_python()
        check_disk(root)
        print(f"Making .venv with Python {short(sys.version_info)}: about 3 GB, a few minutes, only this once.",
              flush=True)
        venv.mkdir()
        unfinished.touch()
        create(venv)
        version = tuple(sys.version_info[:2])
    else:
        print("Bringing .venv up to date.", flush=True)
    unfinished.touch()
    (venv / "stamp").unlink(missing_ok=True)
    add_pip(venv)
    try:
        pip(venv, "install", "--requirement", "requirements.txt")
        pip(venv, "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")
    except SetupError as error:
        if error.harmless:
            unfinished.unlink()
        raise
    (venv / "stamp").write_text(fingerprint(root, version))
    unfinished.unlink()
    print("The installation is complete.", flush=True)


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chosen", action="store_true", help="the Python running this was chosen: .venv must have it")
    chosen = parser.parse_args(arguments).chosen
    try:
        if chosen:
            check_python()
        if not up_to_date(root, chosen):
            with one_at_a_time(root):
                if not up_to_date(root, chosen):
                    install(root, chosen)
    except SetupError as error:
        return str(error)
    except KeyboardInterrupt:
        return "Stopped: the next make takes the installation up again."
    except OSError as error:
        print(error, file=sys.stderr)
        return str(failure(str(error), root))
    return 0


if __name__ == "__main__":
    sys.exit(main())
