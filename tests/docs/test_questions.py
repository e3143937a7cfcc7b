"""The index of questions: all of them are there, each leads to a section, and the section still shows the answer."""

import re

import pytest

import minutes
import pages

QUESTIONS = (pages.ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<id>[A-F]\d\d) \| (?P<question>.+?) \| (?P<where>.+?) \|$", re.MULTILINE)
LINK = re.compile(r"\[(\d\d) §(\d+)\]\(\.\./notebooks/(\S+?)\.ipynb\)")

# What the section must show: every pattern is found in its text or code. The first section is the main answer.
ANSWERS = {
    "A01": {"02 §3": [r"JAX eager", r"small\.ratio\(", r"dispatch"], "02 §4": [r"fusion", r"passes\("],
            "02 §6": [r"crossover", r"selu"]},
    "A02": {"02 §3": [r"jnp\.array\(np\.array\(", r"float\(a\[i\]\)"],
            "01 §9": [r"array\[i\]", r"jnp\.array\(np\.array"]},
    "A04": {"02 §3": [r"fori_loop", r"fresh body", r"under one jit"]},
    "B01": {"00 §3": [r"promise", r"looking at the first number", r"block_until_ready"], "02 §1": [r"wait\("]},
    "B03": {"00 §3": [r"recompiles", r"created_once"], "03 §4": [r"a new lambda", r"the same function, second time"],
            "01 §9": [r"compiled by the first call"]},
    "B06": {"00 §3": [r"dead-code", r"def ignoring\(m, unused\)", r"dot\\\("]},
    "B08": {"00 §3": [r"NumPy float64 argument", r"JAX argument", r"\btransfer\b"]},
    "C01": {"03 §5": [r"five_calls", r"jax\.debug\.print"], "01 §7": [r"seen\.append"]},
    "C02": {"03 §5": [r"offset = 10, a number", r"changed in place is frozen"], "01 §9": [r"FACTOR = 5"]},
    "C03": {"03 §4": [r"class HashOnly", r"frozen=True", r"__eq__"]},
    "C04": {"03 §4": [r"ten powers", r"static_argnames", r"a list", r"a tuple", r"hashable"]},
    "C05": {"03 §4": [r"a new lambda", r"a new partial", r"a bound method", r"function object"]},
    "C06": {"03 §4": [r"weak_type", r"compiles \*twice\*", r"jax_explain_cache_misses"]},
    "C07": {"03 §6": [r"changing shapes", r"next power of two", r"mask"]},
    "C08": {"03 §3": [r"JAX, Python for", r"JAX, fori_loop", r"unrolled"]},
    "C09": {"03 §5": [r"if x > 0", r"range\(int\(x\)\)", r"TracerBoolConversionError", r"lax\.cond"],
            "04 §1": [r"snippets", r"Under `grad` alone"]},
    "C10": {"03 §5": [r"UnexpectedTracerError", r"checking_leaks", r"split_global_key"]},
    "C11": {"02 §7": [r"x\[x > 0\]", r"x\.at\[x < 0\]\.set", r"jnp\.where", r"nonzero\(x > 0, size="]},
    "C12": {"04 §2": [r"single_where", r"double_where", r"lax\.cond", r"vmap"], "04 §5": [r"custom_jvp"]},
    "C14": {"02 §7": [r"x\.at\[0\]\.set", r"donate_argnums", r"a\[0\] = 1", r"JAX eager"]},
    "C16": {"02 §7": [r"jax\.random\.split", r"frozen\(0\.0\)"], "03 §5": [r"a key in a global"]},
    "C17": {"02 §7": [r"JAX_ENABLE_X64", r"jax_enable_x64", r"subprocess\.run"]},
    "D01": {"03 §4": [r"Python 1\.5", r"step counter or learning rate", r"reduce_retracing, Python"]},
    "D03": {"03 §5": [r"np\.random", r"tf\.data", r"tf\.print", r"tf\.py_function"]},
    "D04": {"03 §5": [r"created inside", r"tf\.Variable", r"if self\.total is None"]},
    "D06": {"03 §4": [r"input_signature", r"reduce_retracing", r"TensorSpec\(\[None\]", r"TypeError"]},
    "D08": {"03 §1": [r"one operation, 4 × 4", r"one matrix product", r"jit_compile=True"]},
    "D09": {"03 §5": [r"memory_growth", r"TF, Python number", r"TF, tensor"]},
    "D10": {"03 §5": [r"AutoGraph", r"autograph=False", r"exec\(", r"TensorArray"]},
    "D11": {"03 §7": [r"model\.predict", r"model\(x\)", r"memory_added"]},
    "E01": {"01 §4": [r"\.pyc", r"loop, from source", r"marshal"], "01 §1": [r"bytecode"]},
    "E02": {"01 §1": [r"adaptive=True", r"plain dis still shows"]},
    "E03": {"01 §1": [r"_jit", r"PYTHON_JIT=1", r"has no JIT"]},
    "E04": {"01 §6": [r"Cython, untyped", r"Cython, typed"], "01 §7": [r"Cython's score"],
            "01 §9": [r"int_hints", r"exp_numpy"]},
    "E06": {"01 §9": [r"restype", r"one call per element", r"the whole loop"]},
    "E07": {"01 §9": [r"global interpreter lock", r"PyDLL", r"ThreadPoolExecutor", r"free-threaded"]},
    "E08": {"01 §9": [r"numba\.njit", r"FACTOR", r"late\.first_call"]},
    "F10": {"05 §3": [r"PREALLOCATE", r"set_memory_growth", r"set_visible_devices", r"nvidia-smi"]},
}
LATER = ["F01", "F02", "F04", "F05", "F06", "F08", "F09", "F11"]
ROWS = {row["id"]: row for row in ROW.finditer(QUESTIONS)}


@pytest.fixture(scope="module")
def contents():
    """{"02 §3": everything in that section's cells}."""
    found = {}
    for text in pages.texts():
        for section in minutes.sections(pages.read_text(text)):
            if section.title[0].isdigit():
                found[f"{text.stem[:2]} §{section.title.split('.')[0]}"] = "\n".join([*section.text, *section.code])
    return found


def test_all_forty_six_are_there_once_and_in_order():
    expected = sorted([*ANSWERS, *LATER])
    assert len(expected) == 46
    assert [row["id"] for row in ROW.finditer(QUESTIONS)] == expected


@pytest.mark.parametrize("question", ANSWERS)
def test_it_leads_to_a_section_that_still_shows_the_answer(question, contents):
    links = LINK.findall(ROWS[question]["where"])
    assert [f"{page} §{section}" for page, section, _ in links] == list(ANSWERS[question])
    for page, _, stem in links:
        assert stem.startswith(page) and (pages.ROOT / "notebooks" / f"{stem}.ipynb").exists()
    for section, patterns in ANSWERS[question].items():
        gone = [pattern for pattern in patterns if not re.search(pattern, contents[section])]
        assert not gone, f"{section} no longer shows {gone}"


def test_a_deleted_answer_is_noticed(contents):
    """The patterns of one question are not found in just any section."""
    for question, places in ANSWERS.items():
        patterns = next(iter(places.values()))
        elsewhere = [name for name, text in contents.items()
                     if name not in places and all(re.search(pattern, text) for pattern in patterns)]
        assert not elsewhere, f"{question}: {elsewhere} would pass as well"


@pytest.mark.parametrize("question", LATER)
def test_what_waits_for_a_later_part_says_so(question):
    assert ROWS[question]["where"].startswith("a later part, on ")
