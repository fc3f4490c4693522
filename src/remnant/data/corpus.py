"""The texts that a recipe can name: Python's standard library, or a file of the data folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remnant.data.duplicates import find_duplicates
from remnant.data.text import HELD_OUT, Corpus, read_text, standard_library_text
from remnant.errors import InvalidInput, PlanError

STANDARD_LIBRARY = "standard-library"
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
    found = _load(name, folder, characters, seed)
    return Corpus(without_duplicates(found.train), found.validation) if deduplicate else found


def without_duplicates(text: str) -> str:
    r"""Return a text less the passages that are near-duplicates of an earlier one.

    A passage is what stands between blank lines, or a line where there are none. Passages of fewer
    than ten words are kept.

    Raises:
        MissingExtra: datasketch or rapidfuzz is not installed.

    Example:
        >>> said = "one two three four five six seven eight nine ten eleven twelve"
        >>> without_duplicates(f"{said}\n{said}\nsomething else").count("\n")
        1
    """
    between = "\n\n" if "\n\n" in text else "\n"
    passages = text.split(between)
    long = [at for at, passage in enumerate(passages) if len(passage.split()) >= _SHORT]
    keep = set(find_duplicates([passages[at] for at in long]).keep.tolist()) if long else set()
    dropped = {at for number, at in enumerate(long) if number not in keep}
    return between.join(passage for at, passage in enumerate(passages) if at not in dropped)


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
    """Return a digest of both parts."""
    digest = hashlib.sha256()
    for part in (corpus.train, corpus.validation):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()[:16]
