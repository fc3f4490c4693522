"""The tokens of a template's choices, checked not to depend on the neighbouring choices.

Exact rank needs the tokens of every secret without listing all secrets. That works if each choice
of each hole has its own tokens: the tokens of a text are then the prefix's, followed by those of
its choices. A tokenizer that merges a choice with its neighbours is detected here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries.template import Template
from remnant.errors import InvalidInput, RemnantError

Ids = tuple[int, ...]
Encode = Callable[[str], list[int]]
_ALL_PAIRS = 1 << 14
_PAIRS = 1024
_WHOLES = 128
_AGAIN = 64
_FAULTS = (KeyError, ValueError, IndexError, UnicodeError, TypeError, RuntimeError)


class MergedTokens(InvalidInput):
    """The space is not a tree of tokens, so that only sampling can be used."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokenization:
    """The tokens of a template.

    Attributes:
        prefix: Tokens before the first one that depends on a hole.
        pieces: For each slot from the first hole to the end of the template, the tokens of each of
            its choices; literals have one.
        texts: The choices themselves, in the same order.
        folded: The literal blanks at the end of the prefix that the pieces begin with.
    """

    prefix: Ids
    pieces: tuple[tuple[Ids, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    folded: str


def encoded(model_encode: Encode, text: str) -> Ids:
    """Return the tokens of ``text``.

    Raises:
        InvalidInput: The model cannot encode a character; the text is not quoted.
    """
    try:
        return tuple(map(int, model_encode(text)))
    except RemnantError:
        raise
    except _FAULTS as fault:
        raise InvalidInput(
            f"The model cannot encode a text of {len(text)} characters of this template "
            f"({type(fault).__name__}).",
            hint="Use a template whose characters are all in the model's vocabulary.",
        ) from None


def tokenize(encode: Encode, template: Template, *, rng: np.random.Generator) -> Tokenization:
    """Find the tokens of every choice, and check that they do not depend on the neighbours.

    Each choice is read in its place, after the first choices of the slots before it. Then all pairs
    of choices in neighbouring slots (1 024 pairs, drawn at random, where there are more than 16 384
    or the same were looked at before) and 128 whole texts, drawn at random, must have the tokens
    that their pieces add up to.

    Most subword tokenizers join a blank at the end of a literal to the word after it. The blank is
    then moved to the choices, and tokens that all choices begin with are moved to the prefix.

    Raises:
        MergedTokens: They do depend on the neighbours.
        InvalidInput: A choice cannot be encoded, or two of a slot have the same tokens.
    """
    parts = [slot.choices for slot in template.slots]
    if template.suffix:
        parts.append((template.suffix,))
    try:
        return _pieces(encode, template.prefix, parts, rng, folded="")
    except MergedTokens:
        blanks, moved = _blanks_moved(template.prefix, parts)
        if moved == parts:
            raise
        prefix = template.prefix[: len(template.prefix) - len(blanks)]
        return _pieces(encode, prefix, moved, rng, folded=blanks)


def _blanks_moved(
    prefix: str, parts: Sequence[tuple[str, ...]]
) -> tuple[str, list[tuple[str, ...]]]:
    """Give the blanks at the end of each literal to the choices after it."""
    first = carried = prefix[len(prefix.rstrip(" ")) :]
    moved = []
    for place, choices in enumerate(parts):
        choices = tuple(carried + choice for choice in choices)
        carried = ""
        if len(choices) == 1 and place + 1 < len(parts):
            stripped = choices[0].rstrip(" ")
            carried, choices = choices[0][len(stripped) :], (stripped,)
        moved.append(choices)
    return first, moved


def _pieces(
    encode: Encode,
    prefix: str,
    parts: Sequence[tuple[str, ...]],
    rng: np.random.Generator,
    *,
    folded: str,
) -> Tokenization:
    context, context_ids = prefix, encoded(encode, prefix)
    start = context_ids
    pieces: list[tuple[Ids, ...]] = []
    before: tuple[str, Ids] | None = None
    known: dict[tuple[str, ...], tuple[Ids, ...]] = {}
    paired: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for place, choices in enumerate(parts):
        tokens = known.get(choices)
        if tokens is None or not _still(encode, context, context_ids, choices, tokens, rng):
            tokens = tuple(
                _continuation(encode, context, context_ids, choice) for choice in choices
            )
            known[choices] = tokens
        if len(set(tokens)) < len(tokens):
            raise InvalidInput(
                f"The model's tokenizer gives two choices of hole part {place + 1} the same "
                "tokens.",
                hint="Characters that it does not know look alike to it; leave them out.",
            )
        if before is not None:
            pair = (parts[place - 1], choices)
            every = _PAIRS if pair in paired else _ALL_PAIRS
            paired.add(pair)
            left, right = (parts[place - 1], pieces[-1]), (choices, tokens)
            _check_pairs(encode, before, left, right, rng, every=every)
        before = context, context_ids
        pieces.append(tokens)
        context, context_ids = context + choices[0], context_ids + tokens[0]
    _check_wholes(encode, prefix, start, parts, pieces, rng)
    return Tokenization(start, tuple(pieces), tuple(tuple(p) for p in parts), folded)


def _continuation(encode: Encode, context: str, context_ids: Ids, choice: str) -> Ids:
    ids = encoded(encode, context + choice)
    if ids[: len(context_ids)] != context_ids:
        known = len(context_ids) - 1
        if known >= 0 and ids[:known] == context_ids[:known] and ids[-1] == context_ids[-1]:
            raise MergedTokens(
                f"encode seems to end every text with token {ids[-1]}, so that no text is the "
                "beginning of another.",
                hint="Let encode add no special tokens.",
            )
        raise _merged()
    return ids[len(context_ids) :]


def _still(
    encode: Encode,
    context: str,
    context_ids: Ids,
    choices: tuple[str, ...],
    pieces: tuple[Ids, ...],
    rng: np.random.Generator,
) -> bool:
    """Return whether a sample of the choices of an earlier slot has the same tokens here."""
    some = rng.choice(len(choices), size=min(len(choices), _AGAIN), replace=False)
    return all(_continuation(encode, context, context_ids, choices[i]) == pieces[i] for i in some)


def _check_pairs(
    encode: Encode,
    context: tuple[str, Ids],
    left: tuple[tuple[str, ...], tuple[Ids, ...]],
    right: tuple[tuple[str, ...], tuple[Ids, ...]],
    rng: np.random.Generator,
    *,
    every: int,
) -> None:
    text, ids = context
    for first, second in _some_pairs(len(left[0]), len(right[0]), rng, every):
        joined = encoded(encode, text + left[0][first] + right[0][second])
        if joined != ids + left[1][first] + right[1][second]:
            raise _merged()


def _some_pairs(
    left: int, right: int, rng: np.random.Generator, every: int
) -> Iterator[tuple[int, int]]:
    if left * right <= every:
        yield from ((first, second) for first in range(left) for second in range(right))
    else:
        drawn = zip(rng.integers(left, size=_PAIRS), rng.integers(right, size=_PAIRS), strict=True)
        yield from ((int(first), int(second)) for first, second in drawn)


def _check_wholes(
    encode: Encode,
    prefix: str,
    start: Ids,
    parts: Sequence[tuple[str, ...]],
    pieces: Sequence[tuple[Ids, ...]],
    rng: np.random.Generator,
) -> None:
    for _ in range(_WHOLES):
        drawn = [int(rng.integers(len(choices))) for choices in parts]
        text = prefix + "".join(c[d] for c, d in zip(parts, drawn, strict=True))
        ids = start + tuple(i for p, d in zip(pieces, drawn, strict=True) for i in p[d])
        if encoded(encode, text) != ids:
            raise _merged()


def _merged() -> MergedTokens:
    return MergedTokens(
        "The tokenizer joins characters across the edge of a hole, so that a choice has no tokens "
        "of its own and the space is no tree of tokens.",
        hint="Measure by sampling (method='sampled'), or use holes that the tokenizer keeps apart.",
    )
