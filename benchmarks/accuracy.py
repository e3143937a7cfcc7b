"""How accurate is the clock? Prints one table; run it on a quiet machine: `make accuracy`.

1. Against pyperf on six workloads from 100 ns to 100 ms: medians within 5 % (within 50 ns below 1 µs).
2. A against A, 200 times for each of three workloads: the ratio's interval holds 1 in 90 to 99 % of them.
3. A against exactly twice the work, while another process loads a core on and off: ratio within 5 % of 2.0.
4. A no-op: within 20 ns of what timeit says.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import timeit

import click

from tutorial_helpers import Case, compare, measure, seconds, stamp

SETUP = """
import json, random
random.seed(0)
ten = list(range(10))
words = [f"word{i}" for i in range(2000)]
numbers = [random.random() for _ in range(20_000)]
"""
WORKLOADS = {
    "sort 10 sorted integers": "sorted(ten)",
    "sum of 100 integers": "sum(range(100))",
    "join 2,000 words": "' '.join(words)",
    "dump 2,000 words as JSON": "json.dumps(words)",
    "sort 20,000 floats": "sorted(numbers)",
    "sum of 6,000,000 integers": "sum(range(6_000_000))",
}


def pyperf_median(statement):
    """Median seconds per loop according to pyperf, in one worker process."""
    import pyperf
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        subprocess.run([sys.executable, "-m", "pyperf", "timeit", "--quiet", "--processes", "1", "--values", "10",
                        "-o", path, "-s", SETUP, statement], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return pyperf.Benchmark.load(path).median()


def our_median(statement):
    """Our median, in a fresh process too."""
    # A call of a function around the statement costs what an empty function costs; pyperf has its statement inline.
    code = (f"{SETUP}\nfrom tutorial_helpers import measure\n"
            f"def work():\n    {statement}\n"
            f"print(measure(work, budget=0.5).steady - measure(lambda: None, budget=0.1).steady)")
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def against_pyperf(pairs=11):
    """Alternate fresh processes of both; each tool's quietest median counts, since other programs only add time."""
    for name, statement in WORKLOADS.items():
        both = [(pyperf_median(statement), our_median(statement)) for _ in progress(range(pairs), f"pyperf: {name}")]
        theirs, ours = map(min, zip(*both, strict=True))
        good = abs(ours - theirs) <= (50e-9 if theirs < 1e-6 else 0.05 * theirs)
        yield f"pyperf: {name}", f"{seconds(theirs)} by pyperf", seconds(ours), f"{ours / theirs - 1:+.1%}", good


def a_against_a(repeats):
    import numpy as np
    x = np.linspace(-1, 1, 100_000, dtype=np.float32)
    for name, fn, args in [("sum of 1,000 integers", lambda: sum(range(1000)), ()),
                           ("NumPy sine of 100,000 float32", np.sin, (x,)),
                           ("sort 2,000 floats", sorted, (list(np.sin(np.arange(2000.0))),))]:
        held = 0
        for _ in progress(range(repeats), f"A against A: {name}"):
            _, low, high = compare(Case("a", fn, *args), Case("b", fn, *args), budget=0.1).ratio("a", "b")
            held += low <= 1 <= high
        yield f"A against A: {name}", "90 to 99 %", f"{held / repeats:.1%}", "", 0.90 <= held / repeats <= 0.99


def load_a_core(stop):
    """Keep a core busy for random stretches until told to stop."""
    import random
    while not stop.is_set():
        end = time.perf_counter() + random.uniform(0.02, 0.3)
        while time.perf_counter() < end:
            pass
        time.sleep(random.uniform(0.02, 0.3))


def twice_the_work():
    def once():
        return sum(range(20_000))

    def twice():
        sum(range(20_000))
        return sum(range(20_000))
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    busy = [context.Process(target=load_a_core, args=(stop,)) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    try:
        ratio = compare(Case("twice", twice), Case("once", once), budget=3.0).ratio("twice", "once")
    finally:
        stop.set()
        for process in busy:
            process.join()
    yield "twice the work, other cores loaded on and off", "2.00 ± 5 %", f"{ratio.estimate:.3f}", "", \
        abs(ratio.estimate - 2) <= 0.1


def no_op():
    def nothing():
        pass
    theirs = min(timeit.repeat(nothing, number=200_000, repeat=7)) / 200_000
    ours = measure(nothing).steady
    yield "no-op", f"{seconds(theirs)} by timeit", seconds(ours), f"{(ours - theirs) * 1e9:+.1f} ns", \
        abs(ours - theirs) < 20e-9


def progress(items, label):
    with click.progressbar(items, label=f"{label:<48}", file=sys.stderr) as bar:
        yield from bar


@click.command()
@click.option("--repeats", default=200, show_default=True, help="How often A is measured against A.")
@click.option("--json", "path", type=click.Path(), help="Also write the rows to this file.")
def main(repeats, path):
    """Print how accurate the clock is on this machine."""
    rows = []
    print(stamp())
    for part in (no_op(), against_pyperf(), twice_the_work(), a_against_a(repeats)):
        for row in part:
            rows.append(row)
            name, expected, found, difference, good = row
            print(f"{'ok ' if good else 'OFF'}  {name:<48}  {expected:>24}  {found:>10}  {difference:>9}", flush=True)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    sys.exit(0 if all(row[-1] for row in rows) else 1)


if __name__ == "__main__":
    main()
