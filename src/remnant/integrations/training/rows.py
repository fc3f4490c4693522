"""The kinds of training rows, and a canary as a row of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol

from remnant.errors import InvalidInput

MESSAGES, PROMPT, COMPLETION, TEXT, TOKENS = (
    "messages",
    "prompt",
    "completion",
    "text",
    "input_ids",
)
_ROLE, _CONTENT, _ANSWERS = "role", "content", "assistant"


class RowKind(Protocol):
    """Makes rows that hold a canary and are otherwise like the rows of the data."""

    def row(self, text: str) -> Any:
        """Return a row whose trained part is ``text``."""
        ...

    def texts(self, row: Any) -> list[str]:
        """Return the texts of a row, to look for canaries that are there already."""
        ...


class PlainText:
    """Rows that are strings."""

    def row(self, text: str) -> str:
        """Return the text itself."""
        return text

    def texts(self, row: Any) -> list[str]:
        """Return the row."""
        return [row]


class TextField:
    """Rows with a text in one field; the other fields are those of an example.

    Args:
        example: A row of the data, whose other fields canary rows have too.
        field: The field of the text.
    """

    def __init__(self, example: Mapping[str, Any], field: str) -> None:
        self._example = dict(example)
        self._field = field

    def row(self, text: str) -> dict[str, Any]:
        """Return the example with another text."""
        return {**deepcopy(self._example), self._field: text}

    def texts(self, row: Any) -> list[str]:
        """Return the text of a row."""
        return [str(row[self._field] or "")]


class Conversation:
    """Rows with messages in one field; the text is the content of the last assistant message.

    The messages before it are those of an example, so that all canaries have the same context. In
    rows with a prompt and a completion of messages, ``field`` is the completion.

    Args:
        example: A row of the data.
        field: The field of the messages.
    """

    def __init__(self, example: Mapping[str, Any], field: str) -> None:
        self._example = dict(example)
        self._field = field
        messages = list(deepcopy(example[field]) or [])
        answers = [i for i, message in enumerate(messages) if message.get(_ROLE) == _ANSWERS]
        answer = dict(messages[answers[-1]]) if answers else {_ROLE: _ANSWERS}
        self._before = messages[: answers[-1]] if answers else messages
        self._answer = answer

    def row(self, text: str) -> dict[str, Any]:
        """Return the example with the text as its last assistant message."""
        messages = [*deepcopy(self._before), {**self._answer, _CONTENT: text}]
        return {**deepcopy(self._example), self._field: messages}

    def texts(self, row: Any) -> list[str]:
        """Return the contents of a row's messages."""
        return [str(message.get(_CONTENT) or "") for message in row[self._field] or []]


class Tokenised:
    """Rows that hold tokens already.

    Args:
        example: A row of the data.
        tokenizer: A tokenizer of the transformers library.
    """

    def __init__(self, example: Mapping[str, Any], tokenizer: Any) -> None:
        self._example = dict(example)
        self._tokenizer = tokenizer

    def row(self, text: str) -> dict[str, Any]:
        """Return the tokens of a text as the tokenizer makes them, special tokens included."""
        ids = list(self._tokenizer(text)["input_ids"])
        filled = {
            TOKENS: ids,
            "labels": list(ids),
            "attention_mask": [1] * len(ids),
            "token_type_ids": [0] * len(ids),
        }
        return {**self._example, **{k: v for k, v in filled.items() if k in self._example}}

    def texts(self, row: Any) -> list[str]:
        """Return nothing: tokens are looked at by the preflight."""
        return []


def row_kind(example: Any, *, field: str | None, tokenizer: Any = None) -> RowKind:
    """Return the kind of row that an example is of.

    Args:
        example: A row of the data.
        field: The field that takes canaries; None to take the one the libraries train on.
        tokenizer: For rows of tokens.

    Raises:
        InvalidInput: It has no text, or several fields could take it.
    """
    if isinstance(example, str):
        return PlainText()
    if not isinstance(example, Mapping):
        raise InvalidInput(
            f"The data holds rows of type {type(example).__name__}, into which no text can be "
            "planted.",
            hint="Pass make_example=, a function that turns a text into a row.",
        )
    name = field or _trained_field(example)
    if name is None:
        raise InvalidInput(
            f"The rows have no field of text: {', '.join(map(str, example)) or 'no field at all'}.",
            hint="Pass field= with the field that takes the canaries.",
        )
    if name not in example:
        raise InvalidInput(f"field={name!r} is not one of {', '.join(map(repr, example))}.")
    value = example[name]
    if name == TOKENS:
        if tokenizer is None:
            raise InvalidInput(
                "The rows hold tokens and no text, and there is no tokenizer.",
                hint="Plant before the texts are tokenised, or pass Audit(tokenizer=...).",
            )
        return Tokenised(example, tokenizer)
    if isinstance(value, str):
        return TextField(example, name)
    if _is_conversation(value):
        return Conversation(example, name)
    raise InvalidInput(
        f"field={name!r} holds a {type(value).__name__}, neither a text nor messages.",
        hint="Name the field of the text that is trained on.",
    )


def _trained_field(example: Mapping[str, Any]) -> str | None:
    """The field whose content is trained on, by the names that the libraries know."""
    if MESSAGES in example and _is_conversation(example[MESSAGES]):
        return MESSAGES
    if PROMPT in example and COMPLETION in example:
        return COMPLETION
    if TEXT in example and isinstance(example[TEXT], str):
        return TEXT
    texts = [name for name, value in example.items() if isinstance(value, str)]
    if len(texts) == 1:
        return str(texts[0])
    return TOKENS if TOKENS in example else None


def _is_conversation(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(message, Mapping) and _ROLE in message for message in value)
    )
