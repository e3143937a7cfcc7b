"""The article's 28 claims, what a notebook found about each, and the ledger at a notebook's foot.

The sentences are ours, the claims are the article's. A verdict is recorded in this process only and by code
that has just measured something: a ledger shows what was found here and now.
"""

import html
import re
from dataclasses import dataclass
from typing import NamedTuple

from . import recording

VERDICTS = {"holds": "✓", "does not hold": "✗", "depends": "≈", "not measured here": "–"}
KINDS = {"M": "measured", "D": "demonstrated", "F": "checked against sources"}


class Claim(NamedTuple):
    """One thing that the article says; `kind` lists how it can be checked, in letters of KINDS."""

    id: str
    says: str
    kind: str


class Judgement(NamedTuple):
    """A verdict (one of VERDICTS) and the sentence with the number or the source behind it."""

    verdict: str
    evidence: str


CLAIMS = {claim.id: claim for claim in (
    Claim("S01", "An interpreter runs a program without compiling it first.", "M"),
    Claim("S02", "Interpreted code runs more slowly than compiled code.", "M"),
    Claim("S03", "An interpreter is frugal with memory, because it loads each variable only when it needs it.", "M"),
    Claim("S04", "An interpreted program is not tied to an operating system or a build environment.", "D"),
    Claim("S05", "An interpreter executes one statement at a time.", "D"),
    Claim("S06", "A compiler takes long, because it compiles the whole program.", "M"),
    Claim("S07", "A compiled program needs much memory, because it loads all its libraries and variables.", "M"),
    Claim("S08", "A compiled program depends on the operating system and the build environment.", "D"),
    Claim("S09", "Python is slow.", "M"),
    Claim("S10", "Cython makes Python code faster by compiling it to C.", "M"),
    Claim("S11", "NumPy and scikit-learn owe their speed to Cython.", "F"),
    Claim("S12", "Large libraries write the critical part in C for each platform and call it from Python.", "D"),
    Claim("S13", "TensorFlow builds its C++ and its Python together with Bazel.", "F"),
    Claim("S14", "A just-in-time compiler makes machine code of parts of a program while the program runs.", "D"),
    Claim("S15", "In TensorFlow 2, the decorator @tf.function is the just-in-time compiler.", "D"),
    Claim("S16", "In JAX, the decorator @jit compiles a function just in time, with XLA.", "D"),
    Claim("S17", "Just-in-time compilation is not free: making the machine code has an overhead.", "M"),
    Claim("S18", "Complex code may gain little from a just-in-time compiler.", "M"),
    Claim("S19", "A just-in-time compiler is easier to build with and to customise than Cython.", "D"),
    Claim("S20", "Moving one sum of a sine and a cosine from NumPy to jax.numpy took it from 401 ms to 2.15 ms.", "M"),
    Claim("S21", "JAX wins because it optimises what NumPy cannot, such as loops, and because it uses the GPU.", "M"),
    Claim("S22", "sin(x) + cos(y) takes 780 ms in NumPy, 2.12 ms under JAX jit, 3.36 ms under tf.function: "
                 "jit is about 367 times as fast as NumPy.", "M"),
    Claim("S23", "JAX's compiler is TensorFlow's XLA, taken out and made a module of its own.", "FD"),
    Claim("S24", "JAX jit is the fastest, tf.function comes next, and NumPy is hopelessly slow.", "M"),
    Claim("S25", "JAX depends on no deep-learning framework and can be used beside PyTorch and others.", "D"),
    Claim("S26", "DeepMind rebuilt its code on JAX and published libraries such as RLax and Haiku.", "FD"),
    Claim("S27", "JAX suits new architectures and research such as neural architecture search.", "D"),
    Claim("S28", "JAX is XLA plus automatic differentiation: it takes gradients, and gradients of gradients.", "MD"),
)}

_judgements: dict[str, Judgement] = {}


def judge(id, verdict, evidence):
    """Record what was found about a claim; a later judgement of the same claim replaces an earlier one.

    Arguments: `id` such as "S20"; `verdict` one of "holds", "does not hold", "depends", "not measured here";
    `evidence`, the sentence with the number behind it (an address in it becomes a link).
    Raises: ValueError for an unknown claim or verdict, or without evidence.
    """
    _known(id)
    if verdict not in VERDICTS:
        raise ValueError(f"The verdict on {id} must be one of {', '.join(map(repr, VERDICTS))}, not {verdict!r}.")
    if not isinstance(evidence, str) or not evidence.strip():
        raise ValueError(f"The verdict on {id} needs a sentence of evidence: the number or the source behind it.")
    _judgements[id] = Judgement(verdict, " ".join(evidence.split()))
    recording.verdict(id, *_judgements[id])


def ledger(*ids):
    """The claims `ids` (all of them when none is named) with the verdicts recorded so far, as a table.

    Raises: ValueError for an unknown claim.
    """
    chosen = [_known(id) for id in dict.fromkeys(ids or CLAIMS)]
    return Ledger([(claim, _judgements.get(claim.id)) for claim in chosen])


@dataclass(frozen=True)
class Ledger:
    """Rows of (Claim, Judgement or None); shows itself as an HTML table or as text."""

    rows: list

    def __repr__(self):
        lines = []
        for claim, judgement in self.rows:
            mark, verdict, evidence = _cells(judgement)
            lines += [f"{claim.id}  {claim.says}", f"     {mark} {verdict}" + (f": {evidence}" if evidence else "")]
        return "\n".join(lines)

    def _repr_html_(self):
        head = "".join(f'<th scope="col" {_LEFT}>{name}</th>'
                       for name in ("Claim", "The article says", "Found here", "Because"))
        body = []
        for claim, judgement in self.rows:
            mark, verdict, evidence = _cells(judgement)
            body.append(f'<tr><th scope="row" {_LEFT}>{claim.id}</th><td {_LEFT}>{html.escape(claim.says)}</td>'
                        f'<td {_LEFT}><span aria-hidden="true">{mark}</span>&nbsp;<b>{verdict}</b></td>'
                        f"<td {_LEFT}>{_linked(evidence)}</td></tr>")
        return (f'<table><caption {_LEFT}>The article\'s claims, judged by what ran above</caption>'
                f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>")


_LEFT = 'style="text-align: left; vertical-align: top"'


def _known(id):
    if id not in CLAIMS:
        raise ValueError(f"There is no claim {id!r}: the article's claims are S01 to S{len(CLAIMS):02}.")
    return CLAIMS[id]


def _cells(judgement):
    if judgement is None:
        return "·", "not judged yet", ""
    return VERDICTS[judgement.verdict], *judgement


def _linked(text):
    pieces = re.split(r"(https?://[^\s<>]*[^\s<>.,;:)])", text)
    return "".join(f'<a href="{html.escape(piece)}">{html.escape(piece)}</a>' if number % 2 else html.escape(piece)
                   for number, piece in enumerate(pieces))
