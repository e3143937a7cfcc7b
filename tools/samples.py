"""Measure this machine in one setting and keep the measurements as a sample that comes with the package.

python tools/samples.py one-core "One core of a cloud server" --cpus 0 --size quick
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from pages import ROOT

SAMPLES = ROOT / "src" / "tutorial_helpers" / "report" / "samples"


@click.command()
@click.argument("name")
@click.argument("label")
@click.argument("only", nargs=-1)
@click.option("--cpus", help="Use these cores only, as in 0 or 0,2 (Linux).")
@click.option("--python", default=sys.executable, help="Interpreter whose libraries are measured.")
@click.option("--size", default="quick", show_default=True)
def main(name, label, only, cpus, python, size):
    """Run the notebooks (ONLY: those whose names start so) and keep their measurements as the sample NAME."""
    out = ROOT / "build" / "samples" / name
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("OPENBLAS_", "OMP_", "MKL_", "TUTORIAL_HELPERS_"))}
    if cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})  # inherited by everything that is started
    done = subprocess.run([python, "-m", "tutorial_helpers", "report", *only, "--size", size, "--label", label,
                           "--out", out, "--resume"], cwd=ROOT, env=environment)
    if done.returncode:
        raise click.ClickException(f"The report ended with status {done.returncode}, so nothing is kept; call it again "
                                   "to go on.")
    SAMPLES.mkdir(exist_ok=True)
    shutil.copyfile(out / "measurements.json", SAMPLES / f"{name}.json")
    click.echo(f"Kept {Path(SAMPLES, name).relative_to(ROOT)}.json")


if __name__ == "__main__":
    main()
