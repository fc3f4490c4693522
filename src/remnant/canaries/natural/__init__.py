"""Secrets that nobody planted: cards, numbers, addresses and keys that stand in real text."""

from remnant.canaries.natural.cleaned_copies import (
    CleanedCopies,
    CleanedFile,
    write_cleaned,
)
from remnant.canaries.natural.found import FoundSecret, Place
from remnant.canaries.natural.match import KINDS, Match
from remnant.canaries.natural.reading import BINARY
from remnant.canaries.natural.redacting import Redacted, redact
from remnant.canaries.natural.scanning import (
    Scan,
    ScannedFile,
    SkippedFile,
    find_secrets,
    scan,
    scan_files,
)

__all__ = [
    "BINARY",
    "KINDS",
    "CleanedCopies",
    "CleanedFile",
    "FoundSecret",
    "Match",
    "Place",
    "Redacted",
    "Scan",
    "ScannedFile",
    "SkippedFile",
    "find_secrets",
    "redact",
    "scan",
    "scan_files",
    "write_cleaned",
]
