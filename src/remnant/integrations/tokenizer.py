"""A Hugging Face tokenizer that refuses characters it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from remnant.errors import InvalidInput
from remnant.integrations.pretrained import read_tokenizer, usable

_BATCH = 4096


class HuggingFaceTokenizer:
    """Turns texts into tokens, and refuses what the tokenizer does not know.

    Args:
        tokenizer: A tokenizer of the transformers library.
        target: Read texts as the target of a translation, where the tokenizer knows a difference.

    Guarantees:
        * ``encode`` adds no special token.
        * A character that the tokenizer does not know, or silently drops, is an error: two secrets
          never look alike because of it.
    """

    def __init__(self, tokenizer: Any, *, target: bool = False) -> None:
        self._tokenizer = tokenizer
        self._target = target

    def encode(self, text: str) -> list[int]:
        """Return the tokens of ``text``; no special token is added.

        Raises:
            InvalidInput: The tokenizer does not know a character. The text is not quoted.
        """
        fast = bool(getattr(self._tokenizer, "is_fast", False))
        encoded = self._call(text, add_special_tokens=False, return_offsets_mapping=fast)
        ids = [int(token) for token in encoded["input_ids"]]
        unknown = self._tokenizer.unk_token_id
        lost = fast and _is_cut_short(text, encoded["offset_mapping"])
        if lost or (unknown is not None and unknown in ids):
            raise InvalidInput(
                f"The tokenizer does not know every character of a text of {len(text)} characters.",
                hint="Use a template whose characters are all in the model's vocabulary.",
            )
        return ids

    @cached_property
    def leading(self) -> tuple[int, ...]:
        """The special tokens that the tokenizer itself puts before a text, if any."""
        bare = self._call("a", add_special_tokens=False)["input_ids"]
        dressed = self._call("a", add_special_tokens=True)["input_ids"]
        starts = [
            start
            for start in range(len(dressed) - len(bare) + 1)
            if dressed[start : start + len(bare)] == bare
        ]
        return tuple(dressed[: starts[0]]) if bare and starts else ()

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The texts that are one token: they decode from it and encode to it, in its order.

        Special and added tokens are left out.
        """
        # Control tokens of a chat are often added ones that nobody marked as special.
        added = {*self._tokenizer.all_special_ids, *self._tokenizer.added_tokens_decoder}
        ids = [token for token in range(len(self._tokenizer)) if token not in added]
        texts: list[str] = []
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            with usable():
                decoded = self._tokenizer.batch_decode(
                    [[token] for token in batch], clean_up_tokenization_spaces=False
                )
            again = self._call(decoded, add_special_tokens=False)["input_ids"]
            texts += [
                text
                for token, text, encoded in zip(batch, decoded, again, strict=True)
                if text and encoded == [token]
            ]
        return tuple(dict.fromkeys(texts))

    def _call(self, text: str | Sequence[str], **options: Any) -> Any:
        named = {"text_target": text} if self._target else {"text": text}
        with usable():
            return self._tokenizer(**named, return_attention_mask=False, verbose=False, **options)


def _is_cut_short(text: str, offsets: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a character other than a blank belongs to no token."""
    covered = [False] * len(text)
    for start, end in offsets:
        covered[start:end] = [True] * (end - start)
    return not all(c or text[i].isspace() for i, c in enumerate(covered))


def separate_tokens(tokens: Sequence[str]) -> list[str]:
    """Return the tokens that stay themselves side by side, to fill ``{tokens:n}`` with.

    A subword tokenizer cuts the text of several tokens otherwise than they were put together,
    unless each is a blank and a whole word. Those are returned where there are some, and otherwise
    all that can be printed: single characters always stay themselves.

    Example:
        >>> separate_tokens([" the", "th", "e", " key", " 'll"])
        [' the', ' key']
    """
    words = [text for text in tokens if text[:1] == " " and text[1:].isalpha()]
    return words or [text for text in tokens if text.isprintable()]


def load_hugging_face_tokenizer(
    folder: str | Path, *, target: bool = False
) -> HuggingFaceTokenizer:
    """Read the tokenizer of a local Hugging Face folder, without the model's weights.

    Raises:
        InvalidInput: The folder is missing, or holds no tokenizer that can be read.
        MissingExtra: transformers is not installed.
    """
    return HuggingFaceTokenizer(read_tokenizer(folder), target=target)
