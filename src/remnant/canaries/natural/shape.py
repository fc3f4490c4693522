"""From a secret as it was written to its template: what is secret in it, and what it could be.

Telephone numbers, cards and social security numbers: each digit could be another one. Addresses and
IBANs: each digit another digit, each letter another letter of its case. Keys: each character any of
the smallest alphabet that holds them all. Everything else stays as it is.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from remnant.canaries.holes import ALPHABETS, MOST_SLOTS
from remnant.canaries.template import Template
from remnant.errors import NotEnoughEvidence

_UPPER = "{choice:" + "|".join(string.ascii_uppercase) + "}"
_ALPHABETS = (
    string.digits,
    "0123456789abcdef",
    "0123456789ABCDEF",
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase,
    string.digits + string.ascii_letters,
    string.digits + string.ascii_letters + "-_",
    string.digits + string.ascii_letters + "+/",
    string.digits + string.ascii_letters + "+/-_.=",
    string.digits + string.ascii_letters + string.punctuation,
)
_NAMED = {"".join(alphabet): name for name, alphabet in ALPHABETS.items()}
_DIGITS_ALONE = {"card", "ssn", "phone"}
_IN_ONE_ALPHABET = {"key", "random"}
# Of how many fillings one passes the kind's check: Luhn's digit, the IBAN's two check digits, and
# the areas, groups and serial numbers that are given out.
_CHECKED = {"card": 10.0, "iban": 100.0, "ssn": 10**9 / (898 * 99 * 9999)}


@dataclass(frozen=True, slots=True)
class CharacterRun:
    """Characters of one kind that stand together.

    Attributes:
        kind: ``"literal"``, ``"digits"``, ``"numerals"`` (digits of another script),
            ``"letters"``, ``"upper"`` or ``"alphabet"``.
        text: The characters.
    """

    kind: str
    text: str


def runs_of(kind: str, written: str, *, known: int, tail: int) -> list[CharacterRun]:
    """Cut a secret into what could be otherwise and what stays; joined, they are the secret."""
    last = len(written) - tail
    middle = written[known:last]
    if kind in _IN_ONE_ALPHABET:
        inner = [CharacterRun("alphabet", middle)]
    else:
        classes = [_class(kind, character) for character in middle]
        pairs = groupby(zip(classes, middle, strict=True), key=lambda pair: pair[0])
        inner = [CharacterRun(name, "".join(c for _, c in many)) for name, many in pairs]
    around = [
        CharacterRun("literal", written[:known]),
        *inner,
        CharacterRun("literal", written[last:]),
    ]
    return [run for run in around if run.text]


def bits_of(runs: Sequence[CharacterRun]) -> float:
    """Return the base-2 logarithm of how many secrets there could be.

    Example:
        >>> round(bits_of(runs_of("ssn", "536-90-4399", known=0, tail=0)), 1)
        29.9
    """
    sizes = {"literal": 1, "digits": 10, "numerals": 10, "letters": 26, "upper": 26}
    return math.fsum(
        len(run.text) * math.log2(sizes.get(run.kind) or len(_alphabet(run.text))) for run in runs
    )


def check_bits(kind: str) -> float:
    """Return how many of these bits a check takes: so much less is really unknown.

    Example:
        >>> round(check_bits("card"), 2), check_bits("phone")
        (3.32, 0.0)
    """
    return math.log2(_CHECKED.get(kind, 1.0))


def fits_template(runs: Sequence[CharacterRun]) -> bool:
    """Whether a secret is no longer than a template can be."""
    return sum(len(run.text) for run in runs if run.kind != "literal") <= MOST_SLOTS


def template_of(runs: Sequence[CharacterRun], *, context: str) -> Template:
    """Return the template of a secret, after the text that stands before it.

    Guarantees:
        * The secret is in the template's space, which has ``2 ** bits_of(runs)`` secrets.

    Raises:
        NotEnoughEvidence: It is longer than a template can be.
    """
    if not fits_template(runs):
        raise NotEnoughEvidence(f"It has more than the {MOST_SLOTS} places of a template.")
    alphabets = [_alphabet(run.text) for run in runs if run.kind == "alphabet"]
    unnamed = [alphabet for alphabet in alphabets if alphabet not in _NAMED]
    return Template(
        _escaped(context) + "".join(map(_hole, runs)), tokens=tuple(unnamed[0]) if unnamed else None
    )


def shape_text(runs: Sequence[CharacterRun]) -> str:
    """Return the form of a secret for everybody's eyes: letters and digits that stay are dots.

    Example:
        >>> shape_text(runs_of("email", "ann.b7@uni.edu", known=0, tail=8))
        '{letters:3}.{letters:1}{digits:1}@….…'
    """
    return "".join(_told(run) for run in runs)


def _told(run: CharacterRun) -> str:
    if run.kind == "literal":
        return re.sub(r"[^\W_]+", "…", run.text)
    if run.kind == "alphabet":
        return "{" + f"{len(_alphabet(run.text))} characters:{len(run.text)}" + "}"
    kind = "digits" if run.kind == "numerals" else run.kind
    return "{" + f"{kind}:{len(run.text)}" + "}"


def _class(kind: str, character: str) -> str:
    if character.isdecimal():
        return "digits" if character in string.digits else "numerals"
    if kind in _DIGITS_ALONE or character not in string.ascii_letters:
        return "literal"
    return "letters" if character in string.ascii_lowercase else "upper"


def _alphabet(text: str) -> str:
    for alphabet in _ALPHABETS:
        if set(text) <= set(alphabet):
            return alphabet
    return "".join(sorted({*_ALPHABETS[-1], *text}))


def _hole(run: CharacterRun) -> str:
    many = len(run.text)
    if run.kind == "literal":
        return _escaped(run.text)
    if run.kind == "upper":
        return _UPPER * many
    if run.kind == "numerals":
        return "".join(map(_digits_like, run.text))
    if run.kind != "alphabet":
        return f"{{{run.kind}:{many}}}"
    return f"{{{_NAMED.get(_alphabet(run.text), 'tokens')}:{many}}}"


def _digits_like(character: str) -> str:
    """The hole of a digit of another script: any digit of that script."""
    nought = ord(character) - unicodedata.decimal(character)
    return "{choice:" + "|".join(chr(nought + value) for value in range(10)) + "}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def secret_in(template: Template, text: str) -> str:
    """Return what fills a template's holes in one of its whole texts."""
    return text[len(template.prefix) : len(text) - len(template.suffix)]
