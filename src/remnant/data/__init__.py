"""Real data, read from where it is: scikit-learn, IDX files, PNG sheets, text."""

from remnant.data.catalogue import DATA_SETS, load_images
from remnant.data.corpus import STANDARD_LIBRARY, corpus_fingerprint, load_corpus
from remnant.data.duplicates import Duplicates, find_duplicates
from remnant.data.images import AuditData, Images
from remnant.data.text import Corpus, plant, read_text, standard_library_text, windows

__all__ = [
    "DATA_SETS",
    "STANDARD_LIBRARY",
    "AuditData",
    "Corpus",
    "Duplicates",
    "Images",
    "corpus_fingerprint",
    "find_duplicates",
    "load_corpus",
    "load_images",
    "plant",
    "read_text",
    "standard_library_text",
    "windows",
]
