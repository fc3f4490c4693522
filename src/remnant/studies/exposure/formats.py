"""Exposures in print."""

from __future__ import annotations

import json
import math
import re

from remnant.report.blocks import Cell
from remnant.report.numerals import SPACE, bits_number, count_text, printable, whole_text
from remnant.studies.exposure.result import ExposureBits

_CLOSE = 0.005  # bits; ends that print alike
WHOLE_TEXTS = "the model scores whole texts only"  # why a served model is sampled


def exposure_number(exposure: ExposureBits) -> str:
    """An exposure without its unit, such as ``11.20`` or ``at least 11.20``.

    Example:
        >>> exposure_number(ExposureBits(11.2, at_least=True))
        'at least 11.20'
    """
    return f"{'at least ' if exposure.at_least else ''}{bits_number(exposure.value)}"


def exposure_text(exposure: ExposureBits) -> str:
    """The same with its unit."""
    return f"{exposure_number(exposure)}{SPACE}bits"


def interval_text(exposure: ExposureBits) -> str:
    """The interval, such as ``11.20 to 14.10`` or ``from 11.20``; a dash where there is none.

    Example:
        >>> interval_text(ExposureBits(12.0, 11.2, 14.1)), interval_text(ExposureBits(12.0))
        ('11.20 to 14.10', '–')
        >>> interval_text(ExposureBits(12.0, 12.0, 12.0))
        'exact'
    """
    if exposure.low is None:
        return "–"
    if exposure.high is None:
        return f"from {bits_number(exposure.low)}"
    if exposure.high - exposure.low < _CLOSE:
        return "exact"
    return f"{bits_number(exposure.low)} to {bits_number(exposure.high)}"


def exposure_cell(exposure: ExposureBits) -> Cell:
    """The exposure with its interval in small print, where it has one."""
    interval = "" if exposure.low is None else interval_text(exposure)
    return Cell(exposure_number(exposure), interval)


def mean_cell(mean: ExposureBits) -> Cell:
    """A mean exposure with its interval over training runs in small print, where it has one."""
    spread = ""
    if mean.low is not None and mean.high is not None:
        spread = f"{bits_number(mean.low)} to {bits_number(mean.high)}"
    return Cell(exposure_number(mean), spread)


def repeats_text(repeats: int) -> str:
    """How often a canary was planted, in a table."""
    return count_text(repeats) if repeats else "never"


def space_text(space: int | None, bits: float) -> str:
    """The size of a space, such as ``10 000 secrets (13.3 bits)``."""
    many = f"about 2^{math.floor(bits)}" if space is None else whole_text(space)
    return f"{many} {'secret' if space == 1 else 'secrets'} ({bits:.1f} bits)."


def secret_text(text: str) -> str:
    """A secret in a cell; double spaces and non-breaking hyphens, which a terminal loses, as codes.

    Example:
        >>> secret_text("a b"), secret_text("a  b")
        ('a b', '"a \\\\u0020b"')
    """
    if "  " not in text and "\N{NON-BREAKING HYPHEN}" not in text:
        return printable(text)
    quoted = json.dumps(text, ensure_ascii=not text.isprintable())
    return re.sub("(?<= ) |\N{NON-BREAKING HYPHEN}", _code, quoted)


def _code(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
