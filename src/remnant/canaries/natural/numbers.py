"""Numbers with rules of their own: payment cards, US social security numbers, IBANs.

The rules are those of ``python-stdnum``: Luhn's check digit, the SSNs that are never given out, the
IBAN's check digits and the form that each country gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remnant.canaries.natural.match import Match, missing

_GAP = r"(?: ?- ?| )"  # between groups, the same between all of them
# No part of a longer number or word. A comma may part the fields of a row.
_ALONE = r"(?<![0-9A-Za-z.-])(?<![0-9]_)", r"(?![0-9A-Za-z]|[._-][0-9])"
_NOUGHT = re.compile(r"(?<![0-9A-Za-z.,_])0,\Z")
_CARD = re.compile(
    _ALONE[0]
    + rf"(?:[0-9]{{12,19}}|[0-9]{{4}}({_GAP})[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}"
    + rf"|[0-9]{{4}}({_GAP})[0-9]{{6}}\2[0-9]{{4,5}})"
    + _ALONE[1]
)
# The numbers that issuers give out begin so, and are so long.
_ISSUED = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"
    r"|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|35[0-9]{14}"
    r"|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}"
)
_SSN = re.compile(_ALONE[0] + r"[0-9]{3}( ?- ?)[0-9]{2}\1[0-9]{4}" + _ALONE[1])
_IBAN = re.compile(
    r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}"
    r"(?:[0-9A-Za-z]{11,30}(?![0-9A-Za-z])|(?: [0-9A-Za-z]{4}){2,7}(?: [0-9A-Za-z]{1,4})?)"
)


def find_cards(text: str) -> Iterator[Match]:
    """Yield numbers of payment cards: those that an issuer may give out, and that Luhn lets pass.

    Digits stand together, or in the groups that are printed on cards. They may be a field of a row
    with commas; the digits of ``0,4111...`` are a fraction, where no other comma follows.

    Example:
        >>> [match.kind for match in find_cards("4111 1111 1111 1111, 4111 1111 1111 1112")]
        ['card']
    """
    try:
        from stdnum import luhn
    except ImportError as fault:
        raise missing(fault) from None
    for match in _CARD.finditer(text):
        digits = re.sub("[^0-9]", "", match[0])
        if _is_fraction(text, match.start(), match.end()):
            continue
        if _ISSUED.fullmatch(digits) and luhn.is_valid(digits):
            yield Match("card", match.start(), match.end(), digits)


def find_ssns(text: str) -> Iterator[Match]:
    """Yield US social security numbers in three groups, those that are never given out aside.

    Example:
        >>> [match.start for match in find_ssns("000-12-3456 536-90-4399")]
        [12]
    """
    try:
        from stdnum.us import ssn
    except ImportError as fault:
        raise missing(fault) from None
    for match in _SSN.finditer(text):
        digits = re.sub("[^0-9]", "", match[0])
        if ssn.is_valid(ssn.format(digits)):
            yield Match("ssn", match.start(), match.end(), digits)


def find_ibans(text: str) -> Iterator[Match]:
    """Yield IBANs whose check digits are right and whose country gives them this form.

    They stand together or in groups of four. The country's code is no secret.

    Example:
        >>> [(match.start, match.end) for match in find_ibans("to BE31 4354 1116 1155 now")]
        [(3, 22)]
    """
    try:
        from stdnum import iban
    except ImportError as fault:
        raise missing(fault) from None
    for match in _IBAN.finditer(text):
        written = match[0]
        # A word after the last group looks like one more group.
        while " " in written and not _is_iban(iban, written):
            written = written.rpartition(" ")[0]
        if _is_iban(iban, written):
            end = match.start() + len(written)
            yield Match("iban", match.start(), end, iban.compact(written), known=2)


def _is_fraction(text: str, start: int, end: int) -> bool:
    """Whether a number is what follows the comma of a number below one."""
    nought = _NOUGHT.search(text, max(0, start - 3), start)
    return nought is not None and text[end : end + 1] != ","


def _is_iban(iban: object, written: str) -> bool:
    valid: bool = iban.is_valid(written, check_country=False)  # type: ignore[attr-defined]
    return valid
