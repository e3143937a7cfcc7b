"""The clock on good and on bad input."""

import os
import signal
import threading
import time
import timeit

import numpy as np
import pytest

import tutorial_helpers.timing as timing
from tutorial_helpers import Case, Comparison, MeasurementError, Sweep, compare, measure, seconds, sweep
from tutorial_helpers.results import Timing, _crossing, median_interval, times

QUICK = 0.05


def busy(n):
    """Pure Python work whose time grows with n."""
    return sum(range(n))


# -- what it measures


def test_a_no_op_costs_what_timeit_says():
    def nothing():
        pass
    ours = measure(nothing, budget=0.2).steady
    theirs = min(timeit.repeat(nothing, number=100_000, repeat=5)) / 100_000
    assert abs(ours - theirs) < 100e-9  # benchmarks/accuracy.py holds it to 20 ns, on a quiet machine


def test_sleep_takes_as_long_as_it_says():
    found = measure(time.sleep, 0.02, budget=0.2)
    assert 0.02 <= found.steady < 0.04
    assert found.interval[0] <= found.steady <= found.interval[1]
    assert found.cores_busy < 0.5


def test_twice_the_work_takes_twice_as_long():
    pair = compare(Case("twice", lambda: (busy(20_000), busy(20_000))[0]), Case("once", busy, 20_000), budget=0.3)
    ratio = pair.ratio("twice", "once")
    assert 1.5 < ratio.estimate < 2.7
    assert ratio.low <= ratio.estimate <= ratio.high
    assert pair.fastest == "once"
    assert "twice takes" in pair.verdict("twice", "once") == pair.verdict("once", "twice")


def test_the_same_work_is_too_close_to_call_most_of_the_time():
    held = 0
    for _ in range(20):
        _, low, high = compare(Case("a", busy, 2000), Case("b", busy, 2000), budget=QUICK).ratio("a", "b")
        held += low <= 1 <= high
    assert held >= 14  # 95 % of 20 is 19; fewer than 14 would be a one in 10,000 accident


def test_it_waits_for_asynchronous_work_wherever_it_is():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((700, 700))
    f = jax.jit(lambda x: x @ x @ x @ x)

    class Holder:
        def __init__(self, value):
            self.deep = {"list": [value]}
    waited = compare(Case("plain", f, x), Case("held", lambda x: Holder(f(x)), x),
                     Case("host", lambda x: np.asarray(f(x)), x), budget=0.2, tolerance=1)
    assert 0.5 < waited.ratio("held", "plain").estimate < 2
    assert 0.5 < waited.ratio("host", "plain").estimate < 2


def test_the_first_call_and_its_stages_stand_apart():
    jax = pytest.importorskip("jax")

    def f(x):
        for _ in range(50):
            x = jax.numpy.sin(x) + 1
        return x
    found = measure(jax.jit(f), jax.numpy.ones(10), budget=QUICK)
    assert found.first_call > 10 * found.steady
    assert set(found.stages) == {"trace", "lower", "compile", "run"}
    assert all(part >= 0 for part in found.stages.values())
    assert sum(found.stages.values()) == pytest.approx(found.first_call, rel=0.05)
    assert found.compiles == 0


def test_donated_input_is_carried_on():
    jax = pytest.importorskip("jax")
    f = jax.jit(lambda x: x * 0.5, donate_argnums=0)
    assert measure(f, jax.numpy.ones(1000), carry=True, budget=QUICK).compiles == 0
    assert measure(f, setup=lambda: (jax.numpy.ones(1000),), budget=QUICK).steady > 0


def test_calls_that_do_not_wait_are_not_piled_up():
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((700, 700))
    f = jax.jit(lambda x: x @ x @ x)
    made = []

    def forgetful(x):
        made.append(f(x))
    measure(forgetful, x, budget=0.3)
    assert len(made) < 200


def test_setup_is_not_timed_and_runs_before_every_call():
    made = []

    def prepare():
        time.sleep(0.005)
        made.append(1)
        return ([3, 1, 2],)
    found = measure(list.sort, setup=prepare, budget=0.01)
    assert found.steady < 0.001
    assert len(made) >= len(found.samples)


def test_a_slow_function_gets_a_single_sample_that_says_so():
    found = measure(time.sleep, 0.3, budget=0.01)
    assert found.samples == (found.first_call,)
    assert [c.kind for c in found.caveats] == ["few-samples"]
    assert "once" in found.caveats[0].sentence


def test_the_order_within_rounds_changes():
    order = []
    cases = [Case(label, lambda label=label: (order.append(label), time.sleep(0.002))[0]) for label in "abc"]
    compare(*cases, budget=0.05)
    rounds = {tuple(order[i:i + 3]) for i in range(6, len(order) - 2, 3)}
    assert len(rounds) > 1


# -- interval


def test_the_interval_agrees_with_scipy_for_independent_samples(rng):
    from scipy.stats import quantile_test
    samples = rng.exponential(size=25)
    expected = quantile_test(samples, p=0.5).confidence_interval(0.95)
    assert median_interval(samples) == (expected.low, expected.high)


def test_the_interval_covers_the_median_of_skewed_and_of_autocorrelated_samples(rng):
    def covered(draw, truth, repeats=300):
        hits = sum(low <= truth <= high for low, high in (median_interval(draw()) for _ in range(repeats)))
        return hits / repeats

    def autocorrelated(n=60, r=0.6):
        x = np.empty(n)
        x[0] = rng.normal()
        for i in range(1, n):
            x[i] = r * x[i - 1] + np.sqrt(1 - r * r) * rng.normal()
        return x
    assert covered(lambda: rng.lognormal(size=41), 1.0) > 0.92
    assert covered(autocorrelated, 0.0) > 0.85


def test_few_samples_give_their_extremes():
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_interval([1.0]) == (1.0, 1.0)


# -- bad input


@pytest.mark.parametrize("call, says", [
    (lambda: Case("a", 3), "needs a function"),
    (lambda: measure(3), "needs a function"),
    (lambda: compare(), "at least one case"),
    (lambda: compare(len), "Case objects"),
    (lambda: compare(Case("a", len, ""), Case("a", len, "")), "'a'"),
    (lambda: sweep(lambda n: [], []), "at least one size"),
    (lambda: Case("a", len, "", setup=tuple), "setup="),
    (lambda: Case("a", list, carry=True), "no"),
    (lambda: measure(list, budget=0), "greater than 0"),
    (lambda: measure(len, 3, name="length"), "'length' raised TypeError"),
    (lambda: measure(lambda: 1 / 0, name="ratio"), "'ratio' raised ZeroDivisionError"),
])
def test_bad_input_gets_one_clear_sentence(call, says):
    with pytest.raises(MeasurementError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_an_exception_on_the_third_call_names_the_case_and_keeps_the_rest():
    calls = iter(range(100))

    def third():
        if next(calls) == 2:
            raise ValueError("no more")
        time.sleep(0.001)
    with pytest.raises(MeasurementError, match="'bad' raised ValueError: no more") as caught:
        compare(Case("good", time.sleep, 0.001), Case("bad", third), budget=QUICK)
    assert isinstance(caught.value.__cause__, ValueError)
    assert set(caught.value.partial.labels) <= {"good", "bad"}


def test_a_failing_size_keeps_the_sizes_before_it():
    def cases(n):
        return [Case("f", busy if n < 100 else len, n)]
    with pytest.raises(MeasurementError, match=r"size 100.*'f' raised TypeError") as caught:
        sweep(cases, [10, 20, 100], budget=QUICK)
    assert caught.value.partial.sizes == [10, 20]


def test_a_donated_input_without_a_mend_is_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(MeasurementError, match=r"donates its input.*carry=True"):
        measure(jax.jit(lambda x: x + 1, donate_argnums=0), jax.numpy.ones(1000), name="d", budget=QUICK)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timer")
def test_a_function_that_does_not_return_is_given_up():
    start = time.perf_counter()
    with pytest.raises(MeasurementError, match=r"'stuck' did not return within 0.3 s"):
        measure(time.sleep, 30, name="stuck", ceiling=0.3)
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no interval timer")
def test_even_a_function_that_catches_exceptions_is_given_up():
    def stubborn():
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                continue
    with pytest.raises(MeasurementError, match="did not return"):
        measure(stubborn, ceiling=0.3)


def test_an_interrupt_keeps_what_was_measured():
    calls = iter(range(10_000))

    def interrupted():
        if next(calls) == 12:
            raise KeyboardInterrupt
        time.sleep(0.002)
    found = compare(Case("steady", time.sleep, 0.002), Case("cut", interrupted), budget=0.2)
    assert "cut-short" in {caveat.kind for caveat in found.caveats}
    assert found["steady"].samples


def test_it_works_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(measure(busy, 100, budget=QUICK)))
    thread.start()
    thread.join(20)
    assert found and found[0].steady > 0


# -- showing, saving, loading


def test_a_comparison_saves_and_loads(tmp_path):
    before = compare(Case("a", busy, 1000), Case("<b>", busy, 3000), budget=QUICK)
    before.save(tmp_path / "c.json")
    after = Comparison.load(tmp_path / "c.json")
    assert after.labels == before.labels
    assert after.ratio("<b>", "a") == before.ratio("<b>", "a")
    assert after.machine == before.machine
    assert {"cpu", "cores", "memory_bytes", "devices", "versions", "threads", "date"} <= set(after.machine)
    assert "&lt;b&gt;" in before._repr_html_() and "values-differ" in repr(before)


def test_a_sweep_saves_and_loads(tmp_path):
    before = sweep(lambda n: [Case("a", busy, n), Case("b", busy, 1000)], [100, 10_000], budget=QUICK, tolerance=1e9)
    before.save(tmp_path / "s.json")
    after = Sweep.load(tmp_path / "s.json")
    assert after.sizes == [100, 10_000]
    assert after.crossover("b", "a") == before.crossover("b", "a")
    assert 100 < after.crossover("b", "a").estimate < 10_000
    assert after.crossover("a", "b") is None
    assert "10,000" in repr(before) and "10,000" in before._repr_html_()


@pytest.mark.parametrize("content, says", [
    ("not json", "not a JSON file"), ("[]", "holds no comparison"), ('{"schema": "other/9"}', "holds no comparison"),
    ('{"schema": "tutorial_helpers/1", "kind": "comparison"}', "not a complete"),
    ('{"schema": "tutorial_helpers/1", "kind": "comparison", "machine": {}, "timings": [{"label": "a",'
     ' "samples": ["x"], "rounds": [], "first_call": 1}]}', "not a complete"),
])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, content, says):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(MeasurementError, match=says):
        Comparison.load(tmp_path / "bad.json")
    with pytest.raises(MeasurementError, match="cannot be read"):
        Comparison.load(tmp_path / "missing.json")


def test_saving_replaces_a_file_only_once_complete(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    found = compare(Case("a", busy, 10), budget=QUICK)
    found.save(path)
    kept = path.read_text()
    monkeypatch.setattr(os, "fsync", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.save(path)
    assert path.read_text() == kept
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize("t, text", [(0.00321, "3.21 ms"), (12.0, "12.0 s"), (5e-9, "5.00 ns"), (0.9999, "1.00 s"),
                                     (999.6e-6, "1.00 ms"), (1.234e-7, "123 ns"), (float("nan"), "–")])
def test_durations_read_well(t, text):
    assert seconds(t) == text


@pytest.mark.parametrize("timing, factor", [(Timing("no round ended", 1.0, (2.0,), ()), "1.00"),
                                            (Timing("below the clock", 0.0, (0.0,), (0.0,)), "0")])
def test_a_table_is_shown_of_whatever_was_measured(timing, factor):
    assert repr(timing).splitlines()[1].removeprefix(timing.label).split()[7] == factor


@pytest.mark.parametrize("factor, text", [(2.96, "3.0 times"), (367.4, "370 times"), (1.0491, "1.05 times"),
                                          (0.931, "0.93 times"), (1.996, "2.0 times"),
                                          (12.3, "12 times"), (12345.0, "12,000 times")])
def test_factors_read_well(factor, text):
    assert times(factor) == text


def test_a_crossing_is_the_last_one_and_lies_between_the_sizes():
    assert _crossing([10, 100, 1000], [2, 1.5, 0.5]) == pytest.approx(100 * 10 ** (np.log(1.5) / np.log(3)))
    assert _crossing([10, 100], [2, 1.5]) is None
    assert _crossing([10, 100], [0.5, 0.4]) is None
    assert 100 < _crossing([10, 100, 1000, 10_000], [2, 1.5, 0.5, 0.4]) < 1000


def test_the_generated_loop_calls_exactly_as_often_as_it_says():
    calls = []
    for count, prepared in ((0, False), (2, False), (1, True)):
        calls.clear()
        args = tuple(range(count))
        batch = [args] * 7 if prepared else None
        loop = timing._loop(count, False, False, prepared)
        loop(7, lambda *given: calls.append(given), args, None, batch)
        assert calls == [args] * 7
