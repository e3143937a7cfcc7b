"""The environments that the collection is tried in: which Python and packages each has, finding and installing them."""

import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pages
import setup_venv

CONSTRAINTS = Path("tests/clients/colab-constraints.txt")
EXTRAS = ("notebooks", "lab", "run", "test")
# repo2docker's own base has these; binder/ must not have to name them.
REPO2DOCKER = ("ipykernel",)


class Missing(Exception):
    """One sentence: what this machine lacks for an environment."""


@dataclass(frozen=True)
class Recipe:
    """An environment: its Python, one line about it, the files it follows, and how its packages are installed."""

    name: str
    python: str
    about: str
    files: tuple[str, ...]
    install: Callable
    alone: bool  # whether pages are tried alone in an empty folder, without the project's tests
    refresh: Callable | None = None  # what is done again when only the project's own code has changed

    def digest(self, root=pages.ROOT):
        """Changes with everything that decides what is installed."""
        content = [self.python, inspect.getsource(self.install), *(wanted(root / name) for name in self.files)]
        return hashlib.sha256("\0".join(content).encode()).hexdigest()[:16]


def wanted(path):
    """What a file asks to be installed: of pyproject.toml the requirements alone, of another file all of it."""
    if path.name != "pyproject.toml":
        return path.read_text(encoding="utf-8")
    project = pages.project(path.parent)
    return json.dumps([project["requires-python"], project["dependencies"], project["optional-dependencies"]])


def source_digest(root=pages.ROOT):
    """Changes with the code that is installed as the package."""
    whole = hashlib.sha256((root / "pyproject.toml").read_bytes())
    for path in sorted((root / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def found(folder):
    """The interpreter of an environment."""
    return setup_venv.venv_python(folder)


def call(*command, **options):
    """Run a command; its output, or RuntimeError with the end of what it wrote."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        said = "\n".join((done.stdout + "\n" + done.stderr).strip().splitlines()[-15:])
        raise RuntimeError(f"{Path(command[0]).name} {command[1]} … failed:\n{said}")
    return done.stdout


def version_of(python):
    """(3, 12) for an interpreter that starts, else None: pyenv's stand-ins exist without a Python behind them."""
    try:
        code = "import sys; print(sys.version_info[0], sys.version_info[1])"
        return tuple(map(int, subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60,
                                             check=True).stdout.split()))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def candidates(version):
    """Where a Python of this version may lie."""
    yield getattr(sys, "_base_executable", None) or sys.executable
    yield from filter(None, [shutil.which(f"python{version}"), shutil.which("python3")])
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob(f"versions/{version}.*/bin/python"), reverse=True)
    if uv := uv_command():
        said = subprocess.run([*uv, "python", "find", "--no-python-downloads", version], capture_output=True, text=True)
        yield from said.stdout.split("\n")[:1] if said.returncode == 0 else []
    if shutil.which("py"):  # Windows' launcher
        said = subprocess.run(["py", f"-{version}", "-c", "import sys; print(sys.executable)"], capture_output=True,
                              text=True)
        yield from said.stdout.split("\n")[:1] if said.returncode == 0 else []


def interpreter(version):
    """The path of a Python such as "3.12". Raises: Missing."""
    wanted = tuple(map(int, version.split(".")))
    for candidate in candidates(version):
        if version_of(candidate) == wanted:
            return str(candidate)
    raise Missing(f"There is no Python {version} here: install it (Debian, Ubuntu: python{version}; or "
                  f"uv python install {version}).")


def uv_command():
    """uv, without this machine's settings, or None."""
    uv = shutil.which("uv")
    return [uv, "--no-config"] if uv and setup_venv.runs(uv, "--version") else None


def create(folder, python):
    """An empty environment with pip in it."""
    if uv := uv_command():
        call(*uv, "venv", "--quiet", "--seed", "--python", python, folder)
    else:
        call(python, "-m", "venv", folder)


def install(folder, *arguments):
    """Install with uv where it is there, for it is several times as fast, else with pip."""
    if uv := uv_command():
        # Compiled now, so that no page pays for it: some systems never store compiled modules on import.
        call(*uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", found(folder), *arguments,
             env=plain())
    else:
        call(found(folder), "-m", "pip", "install", "--quiet", *arguments, env=plain())


def plain():
    """The environment variables for an installer: nothing that points at another Python."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def freeze(folder):
    """Name → version of everything that is installed there, the project itself included."""
    listed = json.loads(call(found(folder), "-m", "pip", "list", "--format=json", env=plain()))
    return {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in listed}


SMALL = 2 * 2**20  # bytes of a package that is worth no question
WEIGH = """\
import importlib.metadata, sys
one = importlib.metadata.distribution(sys.argv[1])
paths = [file.locate() for file in one.files]
print("Root-Is-Purelib: true" in (one.read_text("WHEEL") or ""), sum(p.stat().st_size for p in paths if p.exists()))"""


def small_and_pure(folder, name):
    """Whether an installed package is pure Python and under 2 MiB, so that installing it can upset nothing."""
    pure, size = call(found(folder), "-c", WEIGH, name, env=plain()).split()
    return pure == "True" and int(size) < SMALL


def size_of(folder):
    """Bytes on the disk; a file with two names counts once."""
    seen, total = set(), 0
    for path in Path(folder).rglob("*"):
        status = path.lstat()
        if path.is_file() and not path.is_symlink() and (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            total += status.st_size
    return total


# ---------------------------------------------------------------------------------------------------------------------
# How each is installed


def pinned(folder, root):
    """As `make` does it."""
    install(folder, "-r", root / "requirements.txt")
    install(folder, "--no-deps", "--no-build-isolation", "--editable", root)


def lowest(folder, root):
    """The oldest version of everything that pyproject.toml names."""
    uv = uv_command()
    if uv is None:
        raise Missing("The lowest versions are found with uv: pip install uv.")
    python = ".".join(map(str, version_of(found(folder))))
    extras = [f"--extra={name}" for name in EXTRAS]
    text = call(*uv, "pip", "compile", "--quiet", "--resolution=lowest-direct", f"--python-version={python}", *extras,
                root / "pyproject.toml", env=plain())
    (folder / "lowest.txt").write_text(text, encoding="utf-8")
    install(folder, "-r", folder / "lowest.txt")
    install(folder, "--no-deps", "--no-build-isolation", "--editable", root)


def colab(folder, root):
    """What Colab preinstalls; the helpers come from each page's first cell."""
    install(folder, "-r", root / CONSTRAINTS)


def newest(folder, root):
    """The newest versions that the ranges admit, as someone who types `pip install jax tensorflow-cpu …` gets them."""
    project = pages.project(root)
    install(folder, "--upgrade", *project["dependencies"], *project["optional-dependencies"]["notebooks"], "ipykernel")


def binder(folder, root):
    """Exactly what repo2docker does with binder/: apt.txt, requirements.txt (pip, no cache), postBuild."""
    need_debian((root / "binder" / "apt.txt").read_text().split())
    python = found(folder)
    call(python, "-m", "pip", "install", "--quiet", *REPO2DOCKER, env=plain())
    call(python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", root / "binder" / "requirements.txt",
         env=plain())
    post_build(folder, root)


def post_build(folder, root):
    """binder/postBuild, which installs the project itself."""
    path = os.pathsep.join([str(found(folder).parent), os.environ["PATH"]])
    call(root / "binder" / "postBuild", cwd=root, env={**plain(), "PATH": path})


def need_debian(packages):
    """Refuse where a Debian package is absent. Elsewhere than on Debian nothing can be said."""
    if shutil.which("dpkg-query") is None:
        return
    for name in packages:
        said = subprocess.run(["dpkg-query", "-W", "-f=${Status}", name], capture_output=True, text=True).stdout
        if "ok installed" not in said:
            raise Missing(f"binder/apt.txt names {name}, which is not installed here: sudo apt-get install {name}.")


def binder_python(root=pages.ROOT):
    """The Python that binder/runtime.txt names, such as "3.12"."""
    return (root / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")


_PINNED = ("requirements.txt",)
RECIPES = {recipe.name: recipe for recipe in [
    *(Recipe(version, version, f"requirements.txt on Python {version}", _PINNED, pinned, False)
      for version in ("3.11", "3.12", "3.13")),
    Recipe("lowest", "3.11", "the lowest versions that pyproject.toml admits", ("pyproject.toml",), lowest, False),
    Recipe("colab", "3.13", "Google Colab's versions", (str(CONSTRAINTS),), colab, True),
    Recipe("newest", "3.12", "the newest versions that pip gives", ("pyproject.toml",), newest, True),
    Recipe("binder", binder_python(), "what binder/ installs, 2 GiB of memory, one core",
           ("binder/requirements.txt", "binder/runtime.txt", "binder/apt.txt", "binder/postBuild"), binder, True,
           post_build)]}


def ready(recipe, folder, root=pages.ROOT, say=print):
    """Make the environment in `folder`, unless it is there already; what is known about it.

    {"digest", "source", "python", "seconds", "bytes", "date", "versions"}. Raises: Missing, RuntimeError with what an
    installer said.
    """
    folder = Path(folder)
    stamp = folder / "stamp.json"
    known = json.loads(stamp.read_text()) if stamp.exists() else {}
    if known.get("digest") != recipe.digest(root) or version_of(found(folder)) is None:
        known = made(recipe, folder, root, say)
    elif recipe.refresh and known["source"] != source_digest(root):
        recipe.refresh(folder, root)
        known["source"] = source_digest(root)
    stamp.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return known


def made(recipe, folder, root, say):
    """Make an environment from nothing; what is known about it."""
    python = interpreter(recipe.python)
    say(f"Installing {recipe.about}.")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        setup_venv.check_disk(root)
    except setup_venv.SetupError as error:
        raise RuntimeError(str(error)) from None
    folder.parent.mkdir(parents=True, exist_ok=True)
    source, start = source_digest(root), time.perf_counter()
    create(folder, python)
    recipe.install(folder, root)
    return {"digest": recipe.digest(root), "source": source, "seconds": round(time.perf_counter() - start, 1),
            "bytes": size_of(folder), "date": time.strftime("%Y-%m-%d"), "versions": freeze(folder),
            "python": call(found(folder), "-V").split()[1]}
