"""Text to train language models on: Python's own library or a file, in windows of tokens."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.data.own_files import Origin
from remnant.errors import InvalidInput

_LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
HELD_OUT = 10  # the validation part is this many times smaller

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A text in two parts that have no file in common.

    Attributes:
        train: What a model is trained on.
        validation: What it is stopped and judged by.
        origin: The user's own files that it was read from; None for other texts.
    """

    train: str
    validation: str
    origin: Origin | None = None


def standard_library_text(*, characters: int, seed: int = 0) -> Corpus:
    """Return source text of Python's own standard library, which every machine has.

    Files are taken in an order drawn from ``seed``, without tests, installed packages and files
    that are not plain ASCII.

    Args:
        characters: Length of the training part; the validation part is a tenth of it.
        seed: Which files come first, and which part they are in.

    Guarantees:
        * The same installation of Python gives the same text.
        * No file is in both parts.

    Raises:
        InvalidInput: The library does not hold so much, or its source is not installed.

    Example:
        >>> corpus = standard_library_text(characters=1000)
        >>> len(corpus.train), len(corpus.validation)
        (1000, 100)
    """
    if characters < HELD_OUT:
        raise InvalidInput(
            f"characters={characters} is less than {HELD_OUT}.", hint="Ask for a longer text."
        )
    files = _known_files(Path(sysconfig.get_path("stdlib")))
    order = np.random.default_rng(seed).permutation(len(files))
    texts = _plain_texts([files[int(place)] for place in order])
    train = _gather(texts, characters)
    validation = _gather(texts, characters // HELD_OUT)
    if len(validation) < characters // HELD_OUT:
        raise InvalidInput(
            f"characters={characters} and a tenth more are not in Python's library, which has "
            f"{len(train) + len(validation)}.",
            hint="Ask for less, or give a text of your own.",
        )
    return Corpus(train, validation)


def read_text(path: str | Path) -> str:
    r"""Read a text file in UTF-8; every end of line becomes ``\n``.

    Raises:
        InvalidInput: It is missing, empty, not text, or in another encoding.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
    except FileNotFoundError as fault:
        raise InvalidInput(f"{file} is not there.", hint="Pass the path of a text file.") from fault
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}.") from fault
    if b"\0" in raw:
        raise InvalidInput(f"{file} is not text: it holds zero bytes.", hint="Save it as UTF-8.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput(
            f"{file} is not UTF-8 at byte {fault.start}.", hint="Save it as UTF-8."
        ) from fault
    if not text.strip():
        raise InvalidInput(f"{file} is empty.", hint="Pass a file with text in it.")
    return _plain_ends(text)


def windows(ids: ArrayLike, *, length: int) -> Ids:
    """Cut tokens into windows of ``length`` inputs and the token after each of them.

    Inputs are ``[:, :-1]`` and labels ``[:, 1:]``. The last token of a window is the first of the
    next one, so that every token but the first is a label once; what is left over is dropped.

    Returns:
        int64 ``(n, length + 1)``.

    Raises:
        InvalidInput: There are too few tokens for one window.

    Example:
        >>> windows(range(6), length=2).tolist()
        [[0, 1, 2], [2, 3, 4]]
    """
    tokens = np.asarray(ids, dtype=np.int64)
    if length < 1 or tokens.ndim != 1 or len(tokens) <= length:
        raise InvalidInput(
            f"{tokens.size} tokens do not make a window of length={length} and one more.",
            hint="Give a longer text or a shorter length.",
        )
    return np.lib.stride_tricks.sliding_window_view(tokens, length + 1)[::length].copy()


def plant(window_ids: ArrayLike, canary_ids: ArrayLike, *, at: int) -> Ids:
    """Return a window with a canary put in; the text after ``at`` moves back, its end is cut off.

    Nothing predicts the first token of a window: plant at 1 or later where all of the canary is to
    be learnt.

    Raises:
        InvalidInput: The canary is empty or does not fit.

    Example:
        >>> plant([1, 2, 3, 4, 5], [8, 9], at=1).tolist()
        [1, 8, 9, 2, 3]
    """
    window = np.asarray(window_ids, dtype=np.int64)
    canary = np.asarray(canary_ids, dtype=np.int64)
    if window.ndim != 1 or canary.ndim != 1 or len(canary) == 0:
        raise InvalidInput("window_ids and canary_ids must be one row of tokens each.")
    if not 0 <= at <= len(window) - len(canary):
        raise InvalidInput(
            f"a canary of {len(canary)} tokens does not fit at={at} into a window of "
            f"{len(window)}.",
            hint="Use a longer window or an earlier place.",
        )
    return np.concatenate([window[:at], canary, window[at : len(window) - len(canary)]])


@lru_cache(maxsize=1)
def _known_files(folder: Path) -> list[Path]:
    """The files of a library that does not change while it is used."""
    return _library_files(folder)


def _library_files(folder: Path) -> list[Path]:
    inner = ((path.relative_to(folder), path) for path in folder.rglob("*.py"))
    kept = [(name, path) for name, path in inner if not _LEFT_OUT & set(name.parts)]
    return [path for _, path in sorted(kept, key=lambda pair: pair[0].as_posix())]


def _plain_texts(files: list[Path]) -> Iterator[str]:
    """Yield the text of each file that is plain ASCII and can be read."""
    for file in files:
        try:
            text = file.read_bytes().decode("ascii")
        except (OSError, UnicodeDecodeError):
            continue
        if text.strip():
            yield _plain_ends(text)


def _gather(texts: Iterator[str], characters: int) -> str:
    parts, length = [], 0
    while length < characters and (text := next(texts, None)) is not None:
        parts.append(text)
        length += len(text)
    return "".join(parts)[:characters]


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
