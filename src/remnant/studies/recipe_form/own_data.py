"""Checks a user's own files before a recipe is written that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remnant.data.corpus import load_own_text
from remnant.data.own_files import FILES, OwnFiles
from remnant.data.own_images import own_images
from remnant.data.own_questions import own_questions
from remnant.data.pairs import load_own_pairs
from remnant.data.speech.wav import read_wav_folder
from remnant.studies.registry import recipe_of
from remnant.studies.shared.settings import DataSettings
from remnant.studies.shared.text_settings import (
    PairFileSettings,
    QuestionFileSettings,
    TextFileSettings,
)


def check_own_files(question: str, path: Path) -> None:
    """Read files as a new recipe of a question would, with the defaults of its ``[data]``.

    Args:
        question: The question.
        path: File or folder to train on.

    Raises:
        InvalidInput: There is no such question; or the files are not there, damaged, or not of a
            kind that the question reads.
        MissingField: The files can be read, and lack a field that the defaults name.
    """
    made: Any = recipe_of(question).sections["data"]
    data, files = made(name=FILES, path=str(path)), OwnFiles(path=str(path))
    if isinstance(data, DataSettings):
        own_images(files, inputs=data.inputs, labels=data.labels)
    elif isinstance(data, TextFileSettings):
        load_own_text(files, field=data.text)
    elif isinstance(data, PairFileSettings):
        load_own_pairs(files, source=data.source, target=data.target)
    elif isinstance(data, QuestionFileSettings):
        own_questions(files, data.fields)
    else:
        files.read(lambda folder: (read_wav_folder(folder), ()))
