"""The engine: whatever a learner's code does, the answer is one sentence, and the kernel lives on."""

import html
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tutorial_helpers.exercises import catalogue, exercise, guard, trial
from tutorial_helpers.exercises.engine import Exercise, Feedback, Note, Trial, Wrong

STARTER = "def ordered(x):\n    ...\n"


def check_order(answer, trial):
    x = trial.rng.random(5).astype(np.float32)
    trial.close(trial.call(answer, x), np.sort(x))
    return "In order, and float32 as before."


def make(check=check_order, **changes):
    settings = {"id": "02.3", "title": "In order", "level": "write", "task": "Sort **x** with `a < b`.",
                "answer": "ordered", "starter": STARTER, "hints": ["Look at `np.sort`.", "It returns a copy."],
                "solution": "def ordered(x):\n    return np.sort(x)\n", "explanation": "It *copies* first.",
                "check": check}
    return Exercise(**{**settings, **changes})


@pytest.fixture(autouse=True)
def few_seconds(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_HELPERS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(trial, "CALL_LIMIT", 0.3)
    monkeypatch.setattr(guard, "_LOOK", 0.05)
    monkeypatch.setattr(guard, "_GRACE", 0.5)


@pytest.fixture
def ex():
    return make()


def defined(source, name="ordered"):
    space = {"np": np, "time": time}
    exec(compile(source, "<cell>", "exec"), space)
    return space[name]


def calling(body):
    """A function of x with this body."""
    return defined("def ordered(x):\n" + "\n".join("    " + line for line in body.splitlines()))


MISBEHAVES = {
    "raises": ("return 1 / 0", "raised ZeroDivisionError: division by zero when called as `ordered(array(["),
    "raises without a word": ("raise ValueError", "raised ValueError when called"),
    "raises many lines": ("raise ValueError('\\n\\nfirst\\nsecond')", "raised ValueError: first when called"),
    "raises what is no Exception": ("class Odd(BaseException): pass\nraise Odd('hm')", "raised Odd: hm"),
    "forgets to return": ("np.sort(x)", "The result is None: does your function `return` it?"),
    "returns ...": ("y = x\nreturn ...", "still `...`"),
    "a generator": ("yield from x", "is a generator, with its work still to be done"),
    "a coroutine": ("async def later(): return x\nlate = later()\nlate.close()\nreturn late", "is a coroutine"),
    "a function": ("return lambda: x", "is a function: call it"),
    "a text": ("return 'sorted'", "is a str, not numbers"),
    "objects": ("return np.array([None] * 5)", "not numbers"),
    "a list": ("return sorted(x)", "must be a NumPy array, not a list"),
    "another shape": ("return np.sort(x)[:, None]", "has shape (5, 1), but (5,) is needed"),
    "another dtype": ("return np.sort(x).astype(float)", "has dtype float64, but float32 is needed"),
    "other values": ("return np.sort(x)[::-1]", "The result at [0] is "),
    "not a number": ("return np.sort(x) * np.nan", "The result at [0] is nan"),
    "changes its input": ("x.sort()\nreturn x", "changes its argument number 1 in place"),
    "exits": ("exit()", "raises SystemExit, which would end the program"),
    "interrupts": ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
    "recursion": ("return ordered(x)", "calls itself again and again"),
    "asks": ("return input('x? ')", "input() finds nobody to answer"),
    "no memory": ("return np.empty(2**62, np.int8)", "more memory than there is"),
}


@pytest.mark.parametrize("body, said", MISBEHAVES.values(), ids=MISBEHAVES)
def test_whatever_it_does_the_answer_is_one_sentence(ex, capfd, body, said):
    feedback = ex.check(calling(body))
    assert feedback.passed is False and feedback.error is None
    assert said in feedback.sentence and "\n" not in feedback.sentence
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("source, said", [
    ("def ordered(): return 1", "must take 1 argument, but yours is written as `ordered()`"),
    ("def ordered(x, y): return x", "must take 1 argument, but yours is written as `ordered(x, y)`"),
    ("ordered = np.ones(3)", "A function is needed here, and this is a NumPy array of shape (3,): hand over `ordered`"),
    ("ordered = 3", "A function is needed here, and this is an int"),
    ("ordered = None", "and this is None"),
    ("class ordered: pass", "must take 1 argument"),
])
def test_what_is_no_such_function(ex, source, said):
    feedback = ex.check(defined(source))
    assert feedback.passed is False and said in feedback.sentence


def test_the_line_that_raised_is_shown(ex):
    import linecache
    source = "def ordered(x):\n    y = x + 1\n    return np.sort(y)[7]\n"
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    assert "in the line `return np.sort(y)[7]`" in ex.check(defined(source)).sentence


ENDLESS = {
    "a loop": "while True:\n    pass",
    "a bare except": "while True:\n    try:\n        sum(range(1000))\n    except:\n        pass",
    "bare excepts in each other": """
while True:
    try:
        while True:
            try:
                for i in range(10**6): pass
            finally:
                try:
                    x.sum()
                except BaseException:
                    continue
    except:
        continue
""",
    "an except that loops": "while True:\n    try:\n        1 / 0\n    except:\n        while True:\n            pass",
    "naps": "while True:\n    try:\n        time.sleep(0.01)\n    except BaseException:\n        pass",
    "a flood": "while True:\n    print('hello ' * 10)",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_loop_without_end_is_ended(ex, body, capfd):
    start = time.perf_counter()
    feedback = ex.check(calling(body))
    assert time.perf_counter() - start < 5
    assert feedback.passed is False and "did not return within 0.3 s" in feedback.sentence
    assert "keeps a core busy" not in feedback.sentence
    assert [thread for thread in threading.enumerate() if thread.name == "exercise"] == [], "it is really gone"
    assert len(feedback.printed) < 600 and capfd.readouterr() == ("", "")


def test_compiled_code_that_does_not_return_is_left_behind(ex):
    feedback = ex.check(calling("time.sleep(1.5)"))
    assert feedback.passed is False and "keeps a core busy" in feedback.sentence and "restart" in feedback.sentence
    assert ex.check(calling("return np.sort(x)")).passed is True, "meanwhile others can be checked"


def test_a_check_as_a_whole_has_an_end(monkeypatch):
    from tutorial_helpers.exercises import engine
    monkeypatch.setattr(engine, "CHECK_LIMIT", 0.2)

    def forever(answer, trial):
        while True:
            pass
    assert "The check did not end within 0.2 s" in make(check=forever).check(len).sentence


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs a signal to the main thread")
def test_the_stop_button_ends_a_check(ex, monkeypatch):
    monkeypatch.setattr(trial, "CALL_LIMIT", 60)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = set(threading.enumerate())
    start = time.perf_counter()
    feedback = ex.check(calling(ENDLESS["a bare except"]))
    assert time.perf_counter() - start < 5
    assert feedback.passed is None and "You stopped the check" in feedback.sentence
    assert not any(thread.name == "exercise" for thread in set(threading.enumerate()) - before)


def test_what_it_prints_is_shown_and_kept_short(ex, capfd):
    import builtins
    before = sys.stdout, sys.stderr, builtins.input
    feedback = ex.check(calling("print('x is', x.dtype)\nprint('to stderr', file=sys.stderr)\nreturn x"
                                .replace("print('to", "import sys; print('to")))
    assert feedback.printed == "x is float32" and "Your code printed: x is float32" in str(feedback)
    many = ex.check(calling("for i in range(10000): print(i)\nreturn x")).printed
    assert many.splitlines()[:3] == ["0", "1", "2"] and "48,871 characters more" in many and len(many) < 100
    assert (sys.stdout, sys.stderr, builtins.input) == before
    assert capfd.readouterr() == ("", "")


def test_a_check_that_fails_itself_says_so_and_keeps_the_exception():
    def fails(answer, trial):
        return answer.no_such_attribute
    feedback = make(check=fails).check(len)
    assert feedback.passed is False and "AttributeError" in feedback.sentence
    assert isinstance(feedback.error, AttributeError)


def test_an_object_that_cannot_be_looked_at(ex):
    class Nasty:
        def __getattr__(self, name):
            raise RuntimeError("no")

        def __call__(self, x):
            return np.sort(x)
    feedback = ex.check(Nasty())
    assert feedback.passed is False and "RuntimeError" in feedback.sentence


CELLS = {
    "prepare": """
import numpy as np, jax, numba
from tutorial_helpers.exercises import guard, trial
from tutorial_helpers.exercises.engine import Exercise
def check(answer, trial):
    x = trial.rng.random(5).astype(np.float32)
    trial.close(np.asarray(trial.call(answer, x)), np.sort(x))
def speed(answer, trial):
    trial.faster(answer, lambda x: [np.sin(x) for _ in range(30)][0], lambda: (trial.rng.random(9999),), 3, budget=0.05)
settings = dict(title="t", level="write", task="t", answer="f", starter="f = ...", hints=["1", "2"], solution="",
                explanation="")
ex, ex_speed = Exercise(id="02.3", check=check, **settings), Exercise(id="02.4", check=speed, **settings)
""",
    "jax": "ex.check(jax.jit(jax.numpy.sort))",
    "numba": "ex.check(numba.njit(lambda x: np.sort(x)))",
    "print": "ex.check(lambda x: print('hello') or np.sort(x))",
    "clock": "ex_speed.check(np.sin)",
    "stop": """
trial.CALL_LIMIT = 60
def f(x):
    while True:
        try:
            sum(range(1000))
        except:
            pass
ex.check(f)""",
    "endless jax": """
trial.CALL_LIMIT, guard._GRACE = 1.5, 0.3
ex.check(jax.jit(lambda x: x + jax.lax.while_loop(lambda n: n > 0, lambda n: n % 7 + 1, 1)))""",
    "endless numba": """
@numba.njit
def f(x):
    n = 1
    while n > 0:
        n = n % 7 + 1
    return x + n
ex.check(f)""",
    "alive": "ex.check(lambda x: np.sort(x))",
}


@pytest.fixture(scope="module")
def answers():
    """What each of CELLS shows in a real kernel, and what arrives on its streams."""
    from jupyter_client.manager import start_new_kernel
    shown = {}
    manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
    try:
        for name, source in CELLS.items():
            parts = shown[name] = []

            def keep(message, parts=parts):
                content = message["content"]
                parts.append(content.get("text") or content.get("data", {}).get("text/plain")
                             or content.get("ename") or "")
            if name == "stop":
                threading.Timer(1.0, manager.interrupt_kernel).start()
            reply = client.execute_interactive(source, output_hook=keep, timeout=60)
            assert reply["content"]["status"] == "ok", (name, reply["content"])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return {name: "".join(parts) for name, parts in shown.items()}


@pytest.mark.parametrize("cell, said", [
    ("prepare", ""), ("jax", "✓ 02.3 Passed. Right."), ("numba", "✓ 02.3 Passed. Right."),
    ("print", "✓ 02.3 Passed. Right.\nYour code printed: hello"), ("clock", "✓ 02.4 Passed. Right."),
    ("stop", "· 02.3 Open. You stopped the check, so nothing was judged."),
    ("endless jax", "keeps a core busy"), ("endless numba", "keeps a core busy"), ("alive", "✓ 02.3 Passed. Right.")])
def test_in_a_kernel(answers, cell, said):
    assert answers[cell] == said or (said.startswith("keeps") and said in answers[cell]
                                     and answers[cell].startswith("✗ 02.3 Not yet. `"))


PROFILED = """
import sys, time
from tutorial_helpers.exercises import guard
def endless():
    while True:
        pass
guard._GRACE = 0.3
for work in (endless, lambda: time.sleep(5)):
    print(guard.Guard(0.1, "late").run(work)[2:5])
calls = []
sys.setprofile(lambda frame, event, value: calls.append(event))
for _ in range(1000):
    (lambda: None)()
sys.setprofile(None)
print(calls.count("call"))
"""


def test_a_profiler_works_after_code_was_stopped():
    # An exception that was cancelled on its way leaves CPython's flag up: under a profiler Python 3.11 then never ends.
    run = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60)
    assert run.stdout.splitlines() == ["('late', False, False)", "('late', False, True)", "1000"], run.stderr


# -- attempted or not


@pytest.mark.parametrize("source", [
    STARTER, "def ordered(x):\n    # to do\n\n    ...\n", "ordered = ...",
    "import functools\ndef wrap(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n"
    "@wrap\ndef ordered(x):\n    ...\n", "import jax\n@jax.jit\ndef ordered(x):\n    ...\n",
    "import numba\n@numba.njit\ndef ordered(x):\n    ...\n"])
def test_an_untouched_starter_is_recognised(ex, source, tmp_path):
    feedback = ex.check(defined(source))
    assert feedback.passed is None
    assert feedback.sentence.startswith("Not attempted yet: put your answer where the `...`")
    assert list(tmp_path.iterdir()) == [], "and nothing is written"


@pytest.mark.parametrize("source", [
    "def ordered(x):\n    return None, 1\n", "def ordered(x):\n    return ...\n", "def ordered(x):\n    return x\n",
    "ordered = len", "ordered = [3, ...]"])
def test_what_was_begun_counts_as_attempted(ex, source):
    assert ex.check(defined(source)).passed is False


def test_a_longer_starter_is_recognised_wherever_it_stands():
    starter = "def ordered(x, n=3):\n    total = 0.0\n    for i in range(n):\n        ...\n    return total\n"
    ex = make(starter=starter)
    assert ex.check(defined("\n\nz = 1\n" + starter)).passed is None
    assert ex.check(defined(starter.replace("0.0", "0"))).passed is False
    assert ex.check(defined(starter.replace("...", "total += x"))).passed is False


def test_values_that_are_not_filled_in():
    ex = make(level="read", starter="counts = {'sin': ..., 'cos': ...}", answer="counts",
              check=lambda answer, trial: trial.close(answer, {"sin": 1, "cos": 1}, "the count"))
    assert ex.check({"sin": ..., "cos": ...}).passed is None
    assert ex.check({"sin": 1, "cos": ...}).sentence == "The count['cos'] is still `...`: put your own in its place."
    assert ex.check({"sin": 1}).sentence == "The count must have the keys 'sin', 'cos'; yours has 'sin'."
    assert ex.check({"sin": 1, "cos": 1}).passed is True
    assert "A value is needed" in ex.check(lambda: 1).sentence


def test_check_without_an_answer(ex):
    assert ex.check().passed is None and "`ex.check(ordered)`" in ex.check().sentence


# -- hints, solution, display


def test_hints_come_one_by_one(ex):
    first, second, every = str(ex.hint()), str(ex.hint()), str(ex.hint())
    assert "Hint 1 of 2" in first and "np.sort" in first and "1 more" in first and "copy" not in first
    assert "Hint 2 of 2" in second and "last" in second and "solution(show=True)" in second
    assert "np.sort" in every and "copy" in every


def test_the_solution_asks_first_and_is_remembered(ex):
    from tutorial_helpers import learner
    assert "np.sort(x)" not in str(ex.solution()) and "show=True" in str(ex.solution())
    assert learner.progress().data["exercises"] == {}
    shown = ex.solution(show=True)
    assert "```python\ndef ordered" in shown._repr_markdown_() and "It *copies* first." in shown._repr_markdown_()
    assert "    return np.sort(x)" in str(shown) and "It copies first." in str(shown)
    assert learner.progress().data["exercises"]["02.3"]["solution"] is True


def test_what_a_check_leaves_in_the_progress(ex):
    from tutorial_helpers import learner
    ex.check(calling("return x"))
    ex.check(calling("return np.sort(x)"))
    ex.hint()
    entry = learner.progress().data["exercises"]["02.3"]
    assert entry["done"] and entry["tries"] == 2 and entry["hints"] == 1


def test_a_progress_that_cannot_be_kept_is_said_below_the_answer(ex, tmp_path):
    from tutorial_helpers import learner
    (tmp_path / "data").write_text("in the way")
    feedback = ex.check(calling("return np.sort(x)"))
    learner._unwritten.clear()
    assert feedback.passed is True and "only until this kernel ends" in str(feedback)


def test_an_exercise_shows_its_task_the_same_each_time(ex):
    text, shown = str(ex), ex._repr_markdown_()
    assert shown == make()._repr_markdown_() and "Sort **x** with `a < b`." in shown
    assert "02.3" in text and "In order" in text and "Sort x with `a < b`." in text and "write code" in text
    assert "ex.hint()" in text


def test_feedback_is_readable_without_colour_and_is_escaped():
    feedback = Feedback("02.3", False, "`a < b` is <wrong> & so `on`.", printed="<b>", note="kept in `x`")
    shown = feedback._repr_html_()
    assert "✗ 02.3 Not yet." in shown and "<code>a &lt; b</code> is &lt;wrong&gt; &amp; so <code>on</code>." in shown
    assert "<pre>&lt;b&gt;</pre>" in shown and 'role="status"' in shown
    assert [str(Feedback("02.3", passed, "")).split(".")[0] for passed in (True, False, None)] == [
        "✓ 02", "✗ 02", "· 02"]
    assert html.escape("an odd ` stays") in Feedback("02.3", True, "an odd ` stays")._repr_html_()
    assert str(Note("**a** *b* 2*x*y `c`")) == "a b 2*x*y `c`"


def test_a_library_that_is_missing_is_one_sentence():
    ex = make(needs="no_such_library")
    assert str(ex) == ("Exercise 02.3 (In order) needs no_such_library, not installed here: run "
                       "`%pip install no_such_library` and restart the kernel to try it.")
    assert ex.check(len).passed is None and ex.check(len).sentence == str(ex)


@pytest.mark.parametrize("changes", [{"id": "2.3"}, {"id": "one"}, {"level": "hard"}, {"hints": ["only one"]}])
def test_an_incomplete_entry_is_refused(changes):
    with pytest.raises(ValueError):
        make(**changes)


def test_exercises_are_found_by_their_id():
    entry = catalogue()[0]
    assert exercise(entry.id) is entry
    for wrong in ("00.99", "00", 0, None, "zz"):
        with pytest.raises(ValueError, match=r"There is no exercise") as raised:
            exercise(wrong)
        assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
    with pytest.raises(ValueError, match=entry.id):
        exercise("00.99")


# -- what a check can ask for


@pytest.mark.parametrize("got, want, said", [
    (1.0, 1.0, None), (np.float64(1), 1.0, None), (1, 1.0, "dtype int64, but float64"), (True, 1, "dtype bool"),
    (1.0 + 1e-12, 1.0, None), (1.001, 1.0, "is 1.001, but should be 1"), (float("nan"), float("nan"), None),
    (np.inf, np.inf, None), (-np.inf, np.inf, "-inf"), ("a", "a", None), ("a", "b", "must be 'b', not 'a'"),
    (3, None, "must be None, not 3"),
    ((1, 2), (1, 2), None), ([1, 2], (1, 2), None), ((1, 2, 3), (1, 2), "must have 2 parts; yours has 3"),
    (5, (1, 2), "must be a tuple of 2, not an int"), ((1, 3), (1, 2), "The result[1] is 3, but should be 2"),
    ([1], {"a": 1}, "must be a dict, not a list"), ({"a": 1}, {"b": 1}, "the keys 'b'; yours has 'a'"),
    (np.array([1, 2, 4]), np.array([1, 2, 3]), "at [2] is 4, but should be 3 (1 of 3 elements differ)"),
    (np.array([1, 2]), np.array([1, 2.0]), "dtype int64"), (np.float32([1e-9, 1]), np.float32([0, 1]), None),
    (np.float32([1e-3, 1]), np.float32([0, 1]), "at [0]"), (np.array([1 + 1j]), np.array([1 + 2j]), "1+1j"),
])
def test_close(got, want, said):
    if said is None:
        assert Trial().close(got, want) is None
        return
    with pytest.raises(Wrong) as wrong:
        Trial().close(got, want)
    assert said in str(wrong.value)


def test_close_leaves_open_what_it_is_told_to():
    Trial().close(np.float32([1.01]), np.float64([1]), rtol=0.02, dtype=False)
    Trial().close(np.array([5]), np.array([6]), atol=1)
    with pytest.raises(Wrong, match=r"The mean is 1.01"):
        Trial().close(1.01, 1.0, "the mean", rtol=1e-3)


def test_close_and_same_type_know_the_libraries():
    import jax
    import jax.numpy as jnp
    ones = np.ones(3, np.float32)
    Trial().close(jnp.ones(3), ones)
    Trial().close(jnp.ones(3, jnp.bfloat16), jnp.ones(3, jnp.bfloat16))
    Trial().same_type(jnp.ones(3), jnp.ones(1))
    with pytest.raises(Wrong, match=r"The result must be a JAX array, but is a NumPy array"):
        Trial().same_type(ones, jnp.ones(1))
    leaked = []
    jax.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(Wrong, match="still tracing"):
        Trial().close(leaked[0], 1.0)


@pytest.mark.parametrize("answer, said", [
    (3, None), (3.0, None), (np.int64(3), None), (np.array(3), None), (np.array([3]), None),
    ("3", "without quotes"), (True, "must be a number, not a bool"), (None, "not None"), (..., "still `...`"),
    (float("nan"), "finite"), ([3], "not a list"), (np.ones(2), "not an array of shape (2,)"), (3.5, "whole number"),
])
def test_number(answer, said):
    if said is None:
        assert Trial().number(answer, integer=True) == 3
        return
    with pytest.raises(Wrong) as wrong:
        Trial().number(answer, integer=True)
    assert said in str(wrong.value)


def test_word():
    assert Trial().word(" TypeError ") == "typeerror" and Trial().word(TypeError, ["TypeError"]) == "TypeError"
    assert Trial().word("`float32`", ["float32", "float64"]) == "float32"
    with pytest.raises(Wrong, match="must be one of 'a', 'b', not 'c'"):
        Trial().word("c", ["a", "b"])
    with pytest.raises(Wrong, match="must be a word in quotes, not an int"):
        Trial().word(3)


def test_call_notices_changes_of_all_inputs_and_can_allow_them():
    for change, value in (("x[0] = 9", np.zeros(2)), ("x.append(1)", [1]), ("x['b'] = np.ones(2)", {"a": np.ones(2)}),
                          ("x['a'][0] = 7", {"a": np.ones(2)}), ("x.resize(3, refcheck=False)", np.zeros(2))):
        with pytest.raises(Wrong, match="argument number 2 in place"):
            Trial().call(defined(f"def f(a, x):\n    {change}", "f"), 1, value)
    Trial().call(defined("def f(x):\n    x[0] = 9", "f"), np.zeros(2), may_change=True)
    Trial().call(lambda *values: None, np.array([np.nan]), [float("nan")], {"a": np.array([np.nan])}, {1}, "text")


REFERENCE = """
import functools, numpy as np
def reference(x): return x
def helper(x): return reference(x)
alias = reference
class Caller:
    def __init__(self, f): self.f = f
    def __call__(self, x): return self.f(x)
class Method:
    def __call__(self, x): return reference(x)
def closing(f):
    def ordered(x): return f(x)
    return ordered
"""


@pytest.mark.parametrize("source, found", [
    ("def ordered(x): return reference(x)", True), ("ordered = reference", True),
    ("def ordered(x): return helper(x)", True), ("def ordered(x): return alias(x)", True),
    ("def ordered(x): return globals()['reference'](x)", True), ("def ordered(x): return x", False),
    ("def ordered(x): return [reference(y) for y in x]", True), ("ordered = functools.partial(reference)", True),
    ("ordered = closing(reference)", True), ("def ordered(x, f=reference): return f(x)", True),
    ("ordered = Caller(reference)", True), ("ordered = Method()", True), ("ordered = np.vectorize(reference)", True),
    ("table = {'f': reference}\ndef ordered(x): return table['f'](x)", True),
    ("def ordered(x):\n    'not the reference'\n    return np.sort(x)", False),
    ("import jax\n@jax.jit\ndef ordered(x): return reference(x)", True),
    ("def ordered(x): return ordered(x) or helper", True),
])
def test_uses(source, found):
    fn = defined(REFERENCE + source)
    assert Trial().uses(fn, "nothing", "reference") == ("reference" if found else "")


def test_uses_sees_attributes():
    assert Trial().uses(lambda x: np.linalg.norm(x), "norm") == "norm"
    assert Trial().uses(np.sort, "sort") == "sort"
    assert Trial().uses(np.sort, "argsort") == ""


# -- speed


def slow(x):
    total = np.zeros_like(x)
    for _ in range(40):
        total = total + np.sin(x)
    return total


def quick(x):
    return 40 * np.sin(x)


def faster(fn, factor=4):
    """trial.faster with arrays that differ from call to call."""
    tried = Trial()
    return tried.faster(fn, slow, lambda: (tried.rng.random(20_000),), factor, "your function", budget=0.05), tried


def test_a_faster_function_is_measured():
    ratio, tried = faster(quick)
    assert ratio.estimate > 4 and ratio.low <= ratio.estimate <= ratio.high
    assert tried.speedups == [ratio]


def test_the_ratio_reaches_the_progress():
    from tutorial_helpers import learner

    def check(answer, trial):
        ratio = trial.faster(answer, slow, lambda: (trial.rng.random(20_000),), 4, budget=0.05)
        return f"{ratio.estimate:.1f}"
    feedback = make(check=check, level="speed").check(quick)
    assert feedback.passed is True, feedback
    assert f"{learner.progress().data['exercises']['02.3']['speedup'][0]:.1f}" == feedback.sentence


kept, counted = {}, [0]


def remembers_the_shape(x):
    return kept.setdefault(x.shape, slow(x))


def remembers_later(x):
    counted[0] += 1
    if counted[0] > 5:
        return kept["late"]
    kept["late"] = quick(x)
    return kept["late"]


GAMES = {
    "takes as long": (lambda x: slow(x), "4.0 times as fast is asked for"),
    "takes longer": (lambda x: slow(x) + slow(x) - slow(x), "times as long as the given version"),
    "returns its input": (lambda x: x, "must give what the slow version gives. The result at [0]"),
    "remembers": (remembers_the_shape, "hands back the answer to an earlier call"),
    "remembers after a while": (remembers_later, "after many calls"),
    "fewer bits": (lambda x: quick(x.astype(np.float32)), "dtype float32, but float64 is needed"),
    "fewer bits, dressed up": (lambda x: quick(x.astype(np.float32)).astype(float), "The result at [0]"),
    "a part of the work": (lambda x: np.append(quick(x[:-1]), 0.0), "1 of 20,000 elements differ"),
    "another size": (lambda x: quick(x[:100]), "has shape (100,), but (20000,) is needed"),
    "changes its input": (lambda x: np.multiply(quick(x), 1, out=x), "changes its argument"),
    "leaves it for later": (lambda x: (y for y in quick(x)), "is a generator"),
}


@pytest.mark.parametrize("fn, said", GAMES.values(), ids=GAMES)
def test_what_is_not_faster_or_not_the_same(fn, said):
    kept.clear()
    counted[0] = 0
    with pytest.raises(Wrong) as wrong:
        faster(fn)
    assert said in str(wrong.value) and "\n" not in str(wrong.value)


def test_a_caveat_that_means_the_work_was_not_done_is_named():
    import jax

    def compiles_each_time(x):
        return np.asarray(jax.jit(lambda y: y + len(kept))(x)) - len(kept)
    tried = Trial()
    with pytest.raises(Wrong, match=r"time of it does not count \(recompiles\)"):
        tried.faster(compiles_each_time, lambda x: x.copy(), lambda: (tried.rng.random(9, np.float32),), 2, "it",
                     budget=0.05)
