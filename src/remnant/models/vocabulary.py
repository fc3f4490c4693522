"""A language model's vocabulary: its symbols, and the encoding of texts as tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require

UNKNOWN = "<unk>"
WORDS_AND_DIGITS = "words and digits"
KINDS = ("characters", "words", WORDS_AND_DIGITS)
_WORD_OR_DIGIT = re.compile(r"[0-9]|[^\s0-9]+")
_CODE_POINT = np.dtype("<u4")  # one character of UTF-32
_NUMPYS_FROM = 256  # shorter texts are quicker in a plain loop

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
    """An ordered set of symbols, either single characters or whole words.

    Words are split at white space, and joined with one blank when decoded. With "words and digits"
    each digit is a word of its own, so that ten symbols cover all numbers. A token is the index of
    its symbol in ``symbols``.

    Attributes:
        kind: ``"characters"``, ``"words"`` or ``"words and digits"``.
        symbols: All symbols, in the order of their tokens. If the word ``<unk>`` is one of them,
            every unknown word is encoded as ``<unk>``.

    Guarantees:
        * ``decode(encode(text))`` is ``text`` for characters, and ``" ".join(text.split())`` for
          words that are all known.
        * ``encode(x + y) == encode(x) + encode(y)`` for characters; for words wherever ``x`` ends
          or ``y`` begins with white space; for words and digits also next to a digit.
        * An error quotes one missing character, never a word.

    Raises:
        InvalidInput: No symbol, a repeated one, or one that its kind does not allow.

    Example:
        >>> letters = Vocabulary.of_characters("banana")
        >>> letters.symbols, letters.encode("nab"), letters.decode([1, 0, 2])
        (('a', 'b', 'n'), [2, 0, 1], 'ban')
    """

    kind: str
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(f"kind={self.kind!r} is not one of {', '.join(KINDS)}.")
        faults = [] if self.symbols else ["symbols is empty"]
        if len(set(self.symbols)) != len(self.symbols):
            faults.append("a symbol is there twice")
        if self.kind == "characters" and any(len(symbol) != 1 for symbol in self.symbols):
            faults.append("a symbol is not a single character")
        if self.kind != "characters" and any(
            self.cut(symbol) != [symbol] for symbol in self.symbols
        ):
            digits = ", or a digit beside others" if self.kind == WORDS_AND_DIGITS else ""
            faults.append(f"a word is empty or has white space{digits} in it")
        require(faults)

    @classmethod
    def of_characters(cls, text: str) -> Vocabulary:
        """Return the characters of ``text``, in the order of their code points."""
        return cls("characters", tuple(sorted(set(text))))

    @classmethod
    def of_words(
        cls,
        text: str,
        *,
        at_most: int | None = None,
        unknown: bool = False,
        digits_apart: bool = False,
    ) -> Vocabulary:
        """Return the words of ``text``, the most frequent first, equally frequent ones sorted.

        Args:
            text: Cut at white space.
            at_most: Keep only this many words, the most frequent ones.
            unknown: Put ``<unk>`` first, which stands for all other words.
            digits_apart: Use the kind "words and digits".

        Example:
            >>> Vocabulary.of_words("to be or not to be", at_most=2, unknown=True).symbols
            ('<unk>', 'be', 'to')
        """
        if at_most is not None and at_most < 1:
            raise InvalidInput(f"at_most={at_most} is less than 1.", hint="Keep one word or more.")
        kind = WORDS_AND_DIGITS if digits_apart else "words"
        counts = Counter(_words(kind, text))
        if unknown:
            counts.pop(UNKNOWN, None)
        words = sorted(counts, key=lambda word: (-counts[word], word))[:at_most]
        return cls(kind, (UNKNOWN, *words) if unknown else tuple(words))

    def cut(self, text: str) -> list[str]:
        """Return the symbols that a text is made of, known or not."""
        return list(text) if self.kind == "characters" else _words(self.kind, text)

    @property
    def size(self) -> int:
        """Number of symbols."""
        return len(self.symbols)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The symbols, under the attribute name that tokenizers use."""
        return self.symbols

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``.

        Raises:
            InvalidInput: A character or word is not in the vocabulary.
        """
        if self.kind == "characters" and len(text) < _NUMPYS_FROM:
            numbers = self._numbers
            tokens = [numbers.get(character, -1) for character in text]
            if -1 in tokens:
                raise self._lacking(set(text) - numbers.keys())
            return tokens
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of every text, as ``encode`` does for one.

        Raises:
            InvalidInput: A character or word is not in the vocabulary.
        """
        if self.kind != "characters":
            return [self.encode(text) for text in texts]
        whole = self.encode_array("".join(texts)).tolist()
        ends = list(accumulate(map(len, texts), initial=0))
        return [whole[start:end] for start, end in pairwise(ends)]

    def encode_array(self, text: str) -> Ids:
        """Return the tokens of ``text`` as int64: for whole corpora.

        Raises:
            InvalidInput: A character or word is not in the vocabulary.
        """
        if self.kind != "characters":
            other = self._numbers.get(UNKNOWN, -1)
            numbers = self._numbers
            words = [numbers.get(word, other) for word in self.cut(text)]
            ids = np.asarray(words, dtype=np.int64)
            if (ids < 0).any():
                raise InvalidInput(
                    f"{int((ids < 0).sum())} of {len(ids)} words are not in the vocabulary.",
                    hint="Use words that it has, or make it with unknown=True.",
                )
            return ids
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=_CODE_POINT)
        table = self._table
        ids = table[np.minimum(codes, len(table) - 1)]
        if (ids < 0).any():
            raise self._lacking(map(chr, np.unique(codes[ids < 0]).tolist()))
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of tokens.

        Raises:
            InvalidInput: A token is not one of the vocabulary's.
        """
        tokens = [int(i) for i in ids]
        if tokens and not 0 <= min(tokens) <= max(tokens) < self.size:
            raise InvalidInput(
                f"a token is outside 0 to {self.size - 1}.", hint="Use the model's own vocabulary."
            )
        between = "" if self.kind == "characters" else " "
        return between.join(self.symbols[i] for i in tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which ``from_dict`` makes it again."""
        return {"kind": self.kind, "symbols": list(self.symbols)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Vocabulary:
        """Make a vocabulary from what ``to_dict`` returned.

        Raises:
            InvalidInput: The data are not a vocabulary's.
        """
        symbols = data.get("symbols") if isinstance(data, Mapping) else None
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise InvalidInput("the vocabulary is not a kind with a list of symbols.")
        return cls(str(data.get("kind")), tuple(symbols))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @cached_property
    def _table(self) -> Ids:
        """The token of each code point, -1 where there is none; the last entry is always -1."""
        codes = [ord(symbol) for symbol in self.symbols]
        table = np.full(max(codes) + 2, -1, dtype=np.int64)
        table[codes] = np.arange(self.size)
        return table

    def _lacking(self, characters: Iterable[str]) -> InvalidInput:
        """Return an error that names only the first character: together they could be a secret."""
        first, *others = sorted(characters)
        more = f" and {len(others)} more characters of this text" if others else ""
        return InvalidInput(
            f"The vocabulary has no {first!r} (U+{ord(first):04X}){more}.",
            hint="Use characters of the text that the model was trained on.",
        )


def _words(kind: str, text: str) -> list[str]:
    return _WORD_OR_DIGIT.findall(text) if kind == WORDS_AND_DIGITS else text.split()
