"""Reading a pattern: its literals, its holes, and what may stand in each.

A pattern is text with holes, ``{kind:argument}``; ``{{`` and ``}}`` are literal braces.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from remnant.errors import InvalidInput, require

ALPHABETS = {
    "digits": tuple(string.digits),
    "letters": tuple(string.ascii_lowercase),
    "hex": tuple("0123456789abcdef"),
}
VOCABULARIES = ("words", "tokens")
KINDS = (*ALPHABETS, *VOCABULARIES, "choice")
MOST_SLOTS = 1000
_SHOWN = 40  # characters of a faulty hole that a message repeats


@dataclass(frozen=True, slots=True)
class Slot:
    """One place of a secret, and all that may stand there.

    Attributes:
        kind: ``literal``, ``digits``, ``letters``, ``hex``, ``words``, ``tokens`` or ``choice``.
        choices: What may stand there, distinct, in the order given; a literal has one.
    """

    kind: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole as it was written: ``{kind:argument}``."""

    kind: str
    argument: str | None

    def __str__(self) -> str:
        inner = self.kind if self.argument is None else f"{self.kind}:{self.argument}"
        return "{" + (inner if len(inner) <= _SHOWN else f"{inner[:_SHOWN]}...") + "}"


def split(pattern: str) -> list[str | Hole]:
    """Cut a pattern into literals and holes, in order; literals are never empty.

    Raises:
        InvalidInput: A brace has no partner.

    Example:
        >>> split("id {{{digits:3}}}")
        ['id {', Hole(kind='digits', argument='3'), '}']
    """
    parts: list[str | Hole] = []
    literal: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at : at + 2] in ("{{", "}}"):
            literal.append(pattern[at])
            at += 2
        elif pattern[at] == "{":
            if literal:
                parts.append("".join(literal))
                literal = []
            hole, at = _hole(pattern, at)
            parts.append(hole)
        elif pattern[at] == "}":
            raise _unbalanced(at, "}", "closes no hole")
        else:
            literal.append(pattern[at])
            at += 1
    return parts if not literal else [*parts, "".join(literal)]


def slots_of(
    pattern: str, vocabularies: Mapping[str, tuple[str, ...] | None]
) -> tuple[str, tuple[Slot, ...], str]:
    """Read a pattern: the text before its first hole, its slots, the text after its last hole.

    A hole of n places is n slots; the literals between holes are slots with one choice.

    Raises:
        InvalidInput: Every fault of the pattern and of its vocabularies, in one message.
    """
    parts = split(pattern)
    holes = [part for part in parts if isinstance(part, Hole)]
    faults = [fault for hole in holes for fault in _hole_faults(hole)]
    for kind in VOCABULARIES:
        used = any(hole.kind == kind for hole in holes)
        faults += _vocabulary_faults(kind, vocabularies[kind], used=used)
    if not holes:
        faults.append("pattern has no hole, so that nothing in it is secret")
    require(faults, hint=None if holes else 'Write one such as "{digits:9}".')
    first = 1 if isinstance(parts[0], str) else 0
    last = len(parts) - (1 if isinstance(parts[-1], str) else 0)
    slots: list[Slot] = []
    for part in parts[first:last]:
        slots += _slots(part, vocabularies)
        if len(slots) > MOST_SLOTS:
            raise InvalidInput(f"pattern has more than {MOST_SLOTS} slots.", hint="Ask for fewer.")
    return "".join(map(str, parts[:first])), tuple(slots), "".join(map(str, parts[last:]))


def _vocabulary_faults(kind: str, given: Sequence[str] | None, *, used: bool) -> list[str]:
    hole = "{" + kind + ":n}"
    if given is None:
        return [f"pattern has a {hole} hole and {kind}= was not given"] if used else []
    if not used:
        return [f"{kind}= was given and pattern has no {hole} hole"]
    if not given:
        return [f"{kind}= is empty"]
    if "" in given:
        return [f"{kind}[{given.index('')}] is an empty string"]
    return _repeated(given, f"{kind}=")


def _hole(pattern: str, start: int) -> tuple[Hole, int]:
    for end in range(start + 1, len(pattern)):
        if pattern[end] == "{":
            raise _unbalanced(end, "{", f"stands inside the hole that opens at {start + 1}")
        if pattern[end] == "}":
            kind, colon, argument = pattern[start + 1 : end].partition(":")
            return Hole(kind, argument if colon else None), end + 1
    raise _unbalanced(start, "{", "is never closed")


def _unbalanced(at: int, brace: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"pattern has unbalanced braces: the {brace!r} at character {at + 1} {why}.",
        hint="Write {{ and }} for braces that are part of the text.",
    )


def _hole_faults(hole: Hole) -> list[str]:
    if hole.kind not in KINDS:
        return [f"{hole} is a hole of unknown kind; the kinds are {', '.join(KINDS)}"]
    if hole.kind == "choice":
        if not hole.argument:
            return [f"{hole} has no choices; write them as {{choice:a|b|c}}"]
        return _repeated(hole.argument.split("|"), str(hole))
    count = (hole.argument or "").lstrip("0")
    if not (count.isascii() and count.isdigit()):
        return [f"the count in {hole} is not a whole number of at least 1"]
    # The length comes first: int() itself refuses thousands of digits.
    if len(count) > len(str(MOST_SLOTS)) or int(count) > MOST_SLOTS:
        return [f"the count in {hole} is more than {MOST_SLOTS}"]
    return []


def _repeated(given: Sequence[str], where: str) -> list[str]:
    ordered = sorted(given)
    twice = sum(choice == other for choice, other in pairwise(ordered))
    return [f"{where} holds {twice} choice(s) more than once"] if twice else []


def _slots(part: str | Hole, vocabularies: Mapping[str, tuple[str, ...] | None]) -> list[Slot]:
    if isinstance(part, str):
        return [Slot("literal", (part,))]
    argument = part.argument or ""
    if part.kind == "choice":
        return [Slot("choice", tuple(argument.split("|")))]
    slot = Slot(part.kind, ALPHABETS.get(part.kind) or vocabularies[part.kind] or ())
    if part.kind != "words":
        return [slot] * int(argument)
    return [slot, *[Slot("literal", (" ",)), slot] * (int(argument) - 1)]
