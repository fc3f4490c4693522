"""Real data, read from where it is: scikit-learn, IDX files, PNG sheets, text."""

from __future__ import annotations

import warnings
from typing import Any

from remnant.data.catalogue import DATA_SETS, load_images
from remnant.data.corpus import STANDARD_LIBRARY, corpus_fingerprint, load_corpus
from remnant.data.duplicates import Duplicates, find_duplicates
from remnant.data.images import AuditData, Images
from remnant.data.question import LETTERS, MultipleChoice
from remnant.data.questions import QUESTION_SETS, Questions, load_questions
from remnant.data.scores import read_curve, read_scores
from remnant.data.text import Corpus, plant, read_text, standard_library_text, windows

__all__ = [
    "DATA_SETS",
    "LETTERS",
    "QUESTION_SETS",
    "STANDARD_LIBRARY",
    "AuditData",
    "Corpus",
    "Duplicates",
    "Images",
    "MultipleChoice",
    "Questions",
    "corpus_fingerprint",
    "find_duplicates",
    "load_corpus",
    "load_images",
    "load_questions",
    "plant",
    "read_curve",
    "read_scores",
    "read_text",
    "standard_library_text",
    "windows",
]


def __getattr__(name: str) -> Any:
    if name != "Question":
        raise AttributeError(f"module 'remnant.data' has no attribute {name!r}")
    warnings.warn(
        "remnant.data.Question is called MultipleChoice now; the old name will be removed.",
        DeprecationWarning,
        stacklevel=2,
    )
    return MultipleChoice
