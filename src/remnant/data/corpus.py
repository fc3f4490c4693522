"""The texts that a recipe can name: Python's standard library, or a file of the data folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remnant.data.text import HELD_OUT, Corpus, read_text, standard_library_text
from remnant.errors import InvalidInput, PlanError

STANDARD_LIBRARY = "standard-library"


def load_corpus(
    name: str, *, folder: Path | None = None, characters: int | None = None, seed: int = 0
) -> Corpus:
    """Load a text and cut it into a part to train on and a tenth as much to judge by.

    Args:
        name: ``standard-library``, or a file's name in ``folder``.
        folder: Holds the file.
        characters: Length of the training part; all that there is of a file, if not given.
        seed: Which files of the standard library come first. A file is read from its beginning,
            and judged by what follows.

    Raises:
        PlanError: A file without a folder.
        InvalidInput: The file is missing, empty, not text, or too short.
    """
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
