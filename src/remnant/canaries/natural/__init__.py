"""Secrets that nobody planted: cards, numbers, addresses and keys that stand in real text."""

from remnant.canaries.natural.found import FoundSecret, Place
from remnant.canaries.natural.match import KINDS, Match
from remnant.canaries.natural.scanning import (
    Scan,
    ScannedFile,
    SkippedFile,
    find_secrets,
    scan_files,
)

__all__ = [
    "KINDS",
    "FoundSecret",
    "Match",
    "Place",
    "Scan",
    "ScannedFile",
    "SkippedFile",
    "find_secrets",
    "scan_files",
]
