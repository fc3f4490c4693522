"""The texts of a recipe: Python's standard library, a file of the data folder, or own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from remnant.data.duplicates import find_duplicates
from remnant.data.own_files import OwnFiles, data_files, with_origin
from remnant.data.rows import ROW_ENDINGS, has_rows, read_rows, text_values
from remnant.data.text import HELD_OUT, Corpus, read_text, standard_library_text
from remnant.errors import InvalidInput, PlanError

STANDARD_LIBRARY = "standard-library"
_TEXT_ENDINGS = (".txt", *ROW_ENDINGS)
_SHORT = 10  # passages of fewer words are alike by nature, and kept


def load_corpus(
    name: str,
    *,
    folder: Path | None = None,
    characters: int | None = None,
    seed: int = 0,
    deduplicate: bool = False,
) -> Corpus:
    """Load a text and cut it into a part to train on and a tenth as much to judge by.

    Args:
        name: ``standard-library``, or a file's name in ``folder``.
        folder: Holds the file.
        characters: Length of the training part; all that there is of a file, if not given.
        seed: Which files of the standard library come first. A file is read from its beginning,
            and judged by what follows.
        deduplicate: Drop passages of the training part that are near-duplicates of an earlier one,
            which makes it shorter.

    Raises:
        PlanError: A file without a folder.
        InvalidInput: The file is missing, empty, not text, or too short.
        MissingExtra: What finding duplicates takes is not installed.
    """
    corpus = _load(name, folder, characters, seed)
    return replace(corpus, train=without_duplicates(corpus.train)) if deduplicate else corpus


def load_own_text(
    files: OwnFiles,
    *,
    field: str = "text",
    characters: int | None = None,
    deduplicate: bool = False,
) -> Corpus:
    """Load the user's own text: a part to train on, and a part to judge by.

    A path is a file or a folder of files of one kind: JSON lines, CSV or TSV, of which one field is
    the text, or plain text. Rows and files are joined by line ends; blank ones are left out.

    Args:
        files: Where they are. Without a held-out part, a tenth as much as is trained on is held
            out, from what follows it.
        field: Of JSON lines and tables.
        characters: Length of the training part at most; all, if not given.
        deduplicate: As for ``load_corpus``.

    Raises:
        InvalidInput: A file is missing, damaged, or lacks the field; or there is too little text.
    """
    left_out = 0

    def read(path: Path) -> tuple[str, Sequence[Path]]:
        nonlocal left_out
        places = data_files(path, _TEXT_ENDINGS)
        texts = [text for place in places for text in _texts(place, field)]
        kept = [text for text in texts if text.strip()]
        left_out += len(texts) - len(kept)
        if not kept:
            raise InvalidInput(f"{path} has no text.", hint="Give a file with text in it.")
        return "\n".join(kept), places

    text, validation, origin = files.read(read)
    shares = HELD_OUT * len(text) // (HELD_OUT + 1) if validation is None else len(text)
    train = min(shares, characters or shares)
    if validation is None:
        validation = text[train : train + train // HELD_OUT]
    if not validation:
        raise InvalidInput(
            f"data.path: {files.path} has {len(text)} characters, too few to hold out a tenth.",
            hint="Give more text.",
        )
    kept = without_duplicates(text[:train]) if deduplicate else text[:train]
    return Corpus(kept, validation, replace(origin, left_out=left_out))


def _texts(path: Path, field: str) -> list[str]:
    if path.suffix.lower() == ".json":
        raise InvalidInput(
            f"{path} is JSON, of which rows cannot be read.",
            hint="Save it as JSON lines, one object a line, in a file that ends in .jsonl.",
        )
    if not has_rows(path):
        return [read_text(path)]
    return text_values(path, read_rows(path, {field: "data.text"}), field)


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """A text without what repeats in it.

    Attributes:
        text: What is left.
        passages: How many passages the text had.
        near_duplicates: How many of them were removed.
        repeated_lines: How many lines were removed after that; 0 where lines were not compared.
    """

    text: str
    passages: int
    near_duplicates: int
    repeated_lines: int


def deduplicated(text: str, *, line_characters: int | None = None) -> Deduplicated:
    r"""Remove near-duplicates among the passages of a text, and lines that repeat exactly.

    A passage is what is between blank lines, or a line where there are none. Passages of fewer than
    ten words are kept, so that short lines repeat unless ``line_characters`` is given.

    Args:
        text: The text.
        line_characters: Also remove a line of at least so many characters, blanks at both ends
            aside, that is the same as an earlier one; None keeps them.

    Raises:
        InvalidInput: ``line_characters`` is under 1.
        MissingExtra: datasketch or rapidfuzz is not installed.

    Example:
        >>> left = deduplicated("my pin is 12\nhi\nmy pin is 12\nhi", line_characters=8)
        >>> left.text, left.repeated_lines
        ('my pin is 12\nhi\nhi', 1)
    """
    if line_characters is not None and line_characters < 1:
        raise InvalidInput(f"line_characters={line_characters} is not at least 1.")
    between = "\n\n" if "\n\n" in text else "\n"
    passages = text.split(between)
    long = [at for at, passage in enumerate(passages) if len(passage.split()) >= _SHORT]
    keep = set(find_duplicates([passages[at] for at in long]).keep.tolist()) if long else set()
    dropped = {at for number, at in enumerate(long) if number not in keep}
    kept = between.join(passage for at, passage in enumerate(passages) if at not in dropped)
    lines = kept.split("\n")
    left = lines if line_characters is None else list(_unrepeated(lines, line_characters))
    return Deduplicated("\n".join(left), len(passages), len(dropped), len(lines) - len(left))


def _unrepeated(lines: Iterable[str], characters: int) -> Iterator[str]:
    seen: set[str] = set()
    for line in lines:
        words = line.strip()
        if len(words) < characters or words not in seen:
            yield line
        seen.add(words)


def without_duplicates(text: str) -> str:
    r"""Return a text less the passages that are near-duplicates of an earlier one.

    See ``deduplicated``.

    Raises:
        MissingExtra: datasketch or rapidfuzz is not installed.

    Example:
        >>> said = "one two three four five six seven eight nine ten eleven twelve"
        >>> without_duplicates(f"{said}\n{said}\nsomething else").count("\n")
        1
    """
    return deduplicated(text).text


def _load(name: str, folder: Path | None, characters: int | None, seed: int) -> Corpus:
    if name == STANDARD_LIBRARY:
        if characters is None:
            raise PlanError(f"text.characters is needed for the {STANDARD_LIBRARY}.")
        return standard_library_text(characters=characters, seed=seed)
    if folder is None:
        raise PlanError(f"{name} is read from a file.", hint="Pass --data FOLDER.")
    text = read_text(folder / name)
    train = len(text) * HELD_OUT // (HELD_OUT + 1) if characters is None else characters
    held_out = text[train : train + train // HELD_OUT]
    if len(held_out) < train // HELD_OUT or not held_out:
        raise InvalidInput(
            f"{folder / name} has {len(text)} characters, too few for {train} and a tenth more.",
            hint="Ask for fewer characters.",
        )
    return Corpus(text[:train], held_out)


def corpus_fingerprint(corpus: Corpus) -> str:
    """Return a digest of both parts, and of the user's own files."""
    digest = hashlib.sha256()
    for part in (corpus.train, corpus.validation):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return with_origin(digest.hexdigest()[:16], corpus.origin)
