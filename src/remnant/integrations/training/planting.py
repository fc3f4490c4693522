"""Puts canaries into the data of a training, whatever holds the data and whatever its rows are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import IterableDataset

from remnant.canaries.already_present import Standing
from remnant.canaries.canary_set import PlantedTexts
from remnant.canaries.insertion import Where, new_order, place_canaries
from remnant.canaries.own_texts import OwnTexts
from remnant.canaries.planted_dataset import PlantedDataset
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import Self


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


Whole = NDArray[np.int64]
_BETWEEN = 16  # rows of a stream between two canaries, on average, where its length is unknown


@dataclass(frozen=True, slots=True)
class PlantedRows:
    """Data with canaries in it.

    Attributes:
        data: Of the same type as what was given, where that can be.
        rows: How many rows it has; None for a stream.
        copies: How many of them are canaries.
        stream: Counts what is yielded, where the data is a stream; else None.
    """

    data: Any
    rows: int | None
    copies: int
    stream: PlantedStream | None = None


class _Placing(TypedDict, total=False):
    """What ``place_canaries`` takes: a generator, or the place of each copy."""

    rng: np.random.Generator
    positions: Whole


@dataclass(frozen=True, slots=True, eq=False)
class StaggeredWindows:
    """Windows of the data's order; all copies of a canary are in one of them.

    Window k of n begins at k/n of the data and covers the first half of what is left until the
    next, so that data without canaries lies between two windows and after the last.

    Attributes:
        window: The window of each canary, shape ``(canaries,)``.
        places: Where each copy is, as a share of the data, in the order of ``canary_set.copies``.
        count: How many windows there are.
    """

    window: Whole
    places: NDArray[np.float64]
    count: int

    @classmethod
    def draw(cls, canary_set: PlantedTexts, *, count: int, rng: np.random.Generator) -> Self:
        """Deal canaries of each number of repeats evenly to windows, at random.

        Args:
            canary_set: What is planted.
            count: How many windows there are.
            rng: Deals the canaries, and places each one's copies evenly in its window.

        Example:
            >>> from remnant.canaries import Template, make_canary_set
            >>> planted = make_canary_set(
            ...     Template("{hex:8}"), repeats=[2], per_repeat=4, controls=0, seed=0)
            >>> windows = StaggeredWindows.draw(planted, count=2, rng=np.random.default_rng(0))
            >>> sorted(windows.window.tolist())
            [0, 0, 1, 1]
        """
        repeats = np.array(canary_set.repeats, dtype=np.int64)
        window = np.zeros(len(repeats), dtype=np.int64)
        for level in np.unique(repeats):
            mine = rng.permutation(np.flatnonzero(repeats == level))
            window[mine] = np.arange(len(mine)) % count
        offsets = rng.random(len(repeats))
        within = [
            (np.arange(often) + offset) / often
            for often, offset in zip(repeats, offsets, strict=True)
        ]
        inside = np.concatenate(within) if within else np.zeros(0)
        return cls(window, (np.repeat(window, repeats) + inside / 2) / count, count)

    def rows(self, among: int) -> Whole:
        """Return the row before which each copy goes.

        Args:
            among: How many rows the data has.

        Raises:
            InvalidInput: The data has fewer rows than half windows.
        """
        if among < 2 * self.count:
            raise InvalidInput(
                f"The data has {among} rows, too few for windows={self.count}.",
                hint="Ask for fewer windows, or train on more data.",
            )
        return np.floor(self.places * among).astype(np.int64)


def plant(
    data: Any,
    canary_set: PlantedTexts,
    *,
    rng: np.random.Generator,
    field: str | None = None,
    tokenizer: Any = None,
    make_example: Callable[[str], Any] | None = None,
    windows: StaggeredWindows | None = None,
) -> PlantedRows:
    """Add the canaries to the data, each copy as a row of its own in a random place.

    Args:
        data: A list of texts or rows, a ``datasets.Dataset``, or a PyTorch dataset, map-style or
            iterable.
        canary_set: What is planted.
        rng: Chooses the places, and the row whose other fields canary rows have.
        field: The field that takes canaries.
        tokenizer: For rows of tokens.
        make_example: Turns a text into a row; for rows of any other kind.
        windows: Where the copies of each canary go together; by default anywhere.

    Raises:
        InvalidInput: The data is empty, has no text, or holds a canary or control already; or
            windows are to be placed in a stream, or in too few rows.
    """
    if windows is not None and _is_stream(data):
        raise InvalidInput(
            'plan="staggered" needs data whose length is known, and this is a stream.',
            hint="Pass a list or a map-style dataset, or leave plan= out.",
        )
    if _is_stream(data):
        planted_stream = PlantedStream(
            data, canary_set, rng=rng, field=field, tokenizer=tokenizer, make_example=make_example
        )
        stream: Any = planted_stream
        library = sys.modules.get("datasets")
        if library is not None and isinstance(data, library.IterableDataset):
            features = data.features
            stream = library.IterableDataset.from_generator(stream.__iter__, features=features)
        return PlantedRows(stream, None, len(canary_set.copies), planted_stream)
    if isinstance(data, str | bytes | Mapping) or not hasattr(data, "__getitem__"):
        raise InvalidInput(
            f"data is a {type(data).__name__}, into which no canary can be planted.",
            hint="Pass a list of texts or rows, a datasets.Dataset (one split) or a PyTorch "
            "dataset.",
        )
    if len(data) == 0:
        raise InvalidInput("The data has no rows.", hint="Pass the training data.")
    place = _Placing(rng=rng) if windows is None else _Placing(positions=windows.rows(len(data)))
    library = sys.modules.get("datasets")
    if library is not None and isinstance(data, library.Dataset):
        return _into_dataset(
            library, data, canary_set, rng=rng, place=place, field=field, tokenizer=tokenizer
        )
    if make_example is None:
        kind = row_kind(data[int(rng.integers(len(data)))], field=field, tokenizer=tokenizer)
        make_example = kind.row
        if isinstance(data, Sequence):
            _refuse_standing(data, kind, canary_set)
    if isinstance(data, list | tuple):
        where = place_canaries(canary_set, among=len(data), **place)
        rows = [make_example(canary.text) for canary in canary_set.canaries]
        planted: Any = [
            data[i] if i < len(data) else rows[i - len(data)]
            for i in new_order(where, among=len(data)).tolist()
        ]
        return PlantedRows(planted, len(planted), len(where))
    planted = PlantedDataset(data, canary_set, make_example=make_example, **place)
    return PlantedRows(planted, len(planted), len(planted.where))


def _into_dataset(
    library: Any,
    dataset: Any,
    canary_set: PlantedTexts,
    *,
    rng: np.random.Generator,
    place: _Placing,
    field: str | None,
    tokenizer: Any,
) -> PlantedRows:
    plain = dataset.with_format(None)
    kind = row_kind(plain[int(rng.integers(len(plain)))], field=field, tokenizer=tokenizer)
    _refuse_standing(plain, kind, canary_set)
    where: Where = place_canaries(canary_set, among=len(plain), **place)
    rows = [kind.row(canary.text) for canary in canary_set.canaries]
    added = library.Dataset.from_list(rows, features=dataset.features)
    joined = library.concatenate_datasets([plain, added], info=dataset.info, split=dataset.split)
    chosen = joined.select(new_order(where, among=len(plain)))
    shape = dataset.format
    data = chosen.with_format(
        shape["type"],
        columns=shape["columns"],
        output_all_columns=shape["output_all_columns"],
        **shape["format_kwargs"],
    )
    return PlantedRows(data, len(data), len(where))


class PlantedStream(IterableDataset[Any]):
    """A stream of rows with canaries among them, for data that has no length.

    Each pass over it plants all copies once. The gaps between two copies are random; copies that
    are left when the stream ends come last, so that none is lost.

    Attributes:
        copies: How many copies one pass plants.
        density: Copies among the rows, as a share, until all of them are planted.
        yielded: How many copies the passes in this process have yielded so far.
        yielded_rows: How many rows they have yielded, copies included.
    """

    def __init__(
        self,
        stream: Any,
        canary_set: PlantedTexts,
        *,
        rng: np.random.Generator,
        field: str | None,
        tokenizer: Any,
        make_example: Callable[[str], Any] | None,
    ) -> None:
        self._stream = stream
        self._texts = [canary.text for canary in canary_set.canaries]
        self._copies = rng.permutation(canary_set.copies)
        self._gaps = rng.geometric(1 / _BETWEEN, size=len(self._copies))
        self._field, self._tokenizer, self._make_example = field, tokenizer, make_example
        self.copies = len(self._copies)
        self.density = 1 / (_BETWEEN + 1)
        self.yielded = self.yielded_rows = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows():
            self.yielded_rows += 1
            yield row

    def _rows(self) -> Iterator[Any]:
        waiting = list(zip(self._gaps.tolist(), self._copies.tolist(), strict=True))[::-1]
        make = self._make_example
        since = 0
        for row in self._stream:
            if make is None:
                make = row_kind(row, field=self._field, tokenizer=self._tokenizer).row
            while waiting and since >= waiting[-1][0]:
                yield self._canary(make, waiting.pop()[1])
                since = 0
            since += 1
            yield row
        if make is None:
            raise InvalidInput("The data has no rows.", hint="Pass the training data.")
        while waiting:
            yield self._canary(make, waiting.pop()[1])

    def _canary(self, make: Callable[[str], Any], canary: int) -> Any:
        self.yielded += 1
        return make(self._texts[canary])


def first_row(data: Any) -> Any:
    """Return a row of data that has a length.

    Raises:
        InvalidInput: It is a stream, no data set, or empty.
    """
    if _is_stream(data) or not hasattr(data, "__getitem__") or isinstance(data, str | Mapping):
        raise InvalidInput(
            f"data is a {type(data).__name__}; images are planted into a map-style dataset.",
            hint="Pass a list, or a PyTorch dataset with a length.",
        )
    if len(data) == 0:
        raise InvalidInput("The data has no rows.", hint="Pass the training data.")
    return data[0]


def _is_stream(data: Any) -> bool:
    """Whether data can only be iterated."""
    if isinstance(data, IterableDataset):
        return True
    library = sys.modules.get("datasets")
    if library is not None and isinstance(data, library.IterableDataset):
        return True
    return hasattr(data, "__iter__") and not hasattr(data, "__len__")


def _refuse_standing(rows: Any, kind: RowKind, canary_set: PlantedTexts) -> None:
    """Refuse data that holds a canary or control already."""
    looked = Standing(canary_set)
    for row in rows:
        for text in kind.texts(row):
            looked.look(text)
    if isinstance(canary_set, OwnTexts):
        looked.refuse("data", hint="Remove them from the data: the audit plants them itself.")
    looked.refuse("data")
