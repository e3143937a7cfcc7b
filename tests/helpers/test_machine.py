"""What is said of the machine."""

import os
import subprocess
import sys
import time

import pytest

from tutorial_helpers import compiler, describe, doctor, largest, machine, measure, prepare, stamp


def test_a_description_is_plain_and_complete():
    import json
    facts = describe()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cores"] >= 1 and facts["cpu"] and 0 < facts["memory_free_bytes"] <= facts["memory_bytes"]
    assert facts["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))


def test_the_doctor_names_overrides_and_what_is_missing(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    report = doctor()
    text = repr(report)
    assert "OMP_NUM_THREADS=1" in text and "XLA_FLAGS=" in text
    assert "No C compiler" in text and "sudo apt install gcc" in text
    assert "Cores usable" in text and "<table>" in report._repr_html_()


def test_what_prepare_sets_is_no_override(monkeypatch):
    for name in machine._PREPARED:
        monkeypatch.delenv(name, raising=False)
    prepare()
    assert not set(machine._PREPARED) & set(machine.overrides())
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    prepare()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert machine.overrides()["TF_CPP_MIN_LOG_LEVEL"] == "0"


def test_sizes_fit_into_memory(monkeypatch):
    monkeypatch.setattr(machine, "memory_free", lambda: 400)
    assert largest([10, 50, 100, 200], lambda n: n) == 100
    assert largest([1000, 500], lambda n: n) == 500
    monkeypatch.setattr(machine, "memory_free", lambda: 2**50)
    assert largest([2**29, 2**31], lambda n: n) == 2**29
    with pytest.raises(ValueError, match="at least one"):
        largest([], lambda n: n)


def test_a_compiler_is_found_only_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler() is None
    fake = tmp_path / "gcc"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert compiler() == str(fake)


def test_the_memory_bound_is_an_upper_bound():
    import time

    import numpy as np
    x, y = np.ones(2**23), np.ones(2**23)
    best = min(_timed(time.perf_counter, lambda: np.copyto(x, y)) for _ in range(5))
    assert 2 * x.nbytes / best < 2 * machine.memory_rate(2 * x.nbytes)
    assert all(rate > 1e8 for rate in machine.bandwidth().values())


def _timed(clock, call):
    start = clock()
    call()
    return clock() - start


def test_the_stamp_is_one_line_with_cores_and_date():
    line = stamp()
    assert "\n" not in line and "core" in line and describe()["date"][:10] in line


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no processor masks on this system")
def test_cores_follow_the_scheduler_mask():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" \
           "from tutorial_helpers import machine; print(machine.cores())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "1\n"


def test_size_scales_the_work(monkeypatch):
    monkeypatch.setattr(machine, "memory_free", lambda: 2**40)
    chosen = {}
    for name in ("quick", "standard", "large"):
        monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", name)
        assert machine.size().name == name
        chosen[name] = machine.largest([2**26, 2**29, 2**32], lambda n: n)
    assert chosen == {"quick": 2**26, "standard": 2**29, "large": 2**32}
    monkeypatch.delenv("TUTORIAL_HELPERS_SIZE")
    assert machine.size().name == "standard"


def test_size_refuses_an_unknown_name(monkeypatch):
    monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", "tiny")
    with pytest.raises(ValueError, match="quick, standard, large"):
        machine.size()


def test_size_scales_a_measurement(monkeypatch):
    samples = {}
    for name in ("quick", "large"):
        monkeypatch.setenv("TUTORIAL_HELPERS_SIZE", name)
        samples[name] = len(measure(time.sleep, 0.002, budget=0.1).samples)
    assert samples["large"] > 3 * samples["quick"]
