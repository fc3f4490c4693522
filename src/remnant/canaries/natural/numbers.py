"""Numbers and addresses by their rules: payment cards, SSNs, IBANs, telephones, e-mail.

Cards, SSNs and IBANs have the rules of ``python-stdnum``: Luhn's check digit, the SSNs that are
never given out, the IBAN's check digits and the form that each country gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from remnant.canaries.natural.match import Match, missing
from remnant.errors import InvalidInput

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
        if _is_under_one(text, match.start(), match.end()):
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


def _is_under_one(text: str, start: int, end: int) -> bool:
    """Whether a number is what follows the comma of a number below one."""
    nought = _NOUGHT.search(text, max(0, start - 3), start)
    return nought is not None and text[end : end + 1] != ","


def _is_iban(iban: object, written: str) -> bool:
    valid: bool = iban.is_valid(written, check_country=False)  # type: ignore[attr-defined]
    return valid


# Seven digits close together: without them the library need not look at a line.
_SEVEN = re.compile(r"(?:[0-9][^0-9\n]{0,4}){6}[0-9]")
# The library's time grows with the square of a line: it gets a window, with more than a number's
# length before it and at its end.
_BEFORE, _WINDOW = 100, 500
# A decimal that is a whole field of a row: the library takes no number across these separators.
_DECIMAL = re.compile(
    r"(?<![^,;\t\n]) *-?([0-9]{1,20})\.([0-9]{1,20})(?:[eE]-?[0-9]{1,3})? *(?=[,;\t\r\n]|\Z)"
)
_DIGITS = re.compile("[0-9]")
_SHORTEST_NUMBER = 3  # digits; the library takes no shorter ones
# Letters of alphabets, with their marks; scripts without blanks have no end of a word.
_LETTERS = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u052f\u1e00-\u1fff"
_SIGN = rf"[{_LETTERS}0-9_%+-]"
_ADDRESS = re.compile(
    rf"(?<![{_LETTERS}0-9._%+@-]){_SIGN}(?:[{_LETTERS}0-9._%+-]{{0,62}}{_SIGN})?"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
    rf"[A-Za-z]{{2,24}}(?![{_LETTERS}0-9@-])"
)
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")  # of another script: its place would have no template
_POINT, _COMMA = re.compile(r"[0-9]\.\Z"), re.compile(r"(?<![0-9.,])[0-9]{1,20},\Z")
# Names that RFC 2606 keeps back: nobody can be reached there.
_NOBODYS = re.compile(
    r"(?:^|\.)(?:example\.(?:com|net|org)|example|invalid|test|localhost)$", re.IGNORECASE
)


def check_region(region: str) -> None:
    """Refuse a country that the library does not know.

    Raises:
        InvalidInput: It is not one of its two-letter codes.
        MissingExtra: ``phonenumbers`` is not installed.
    """
    try:
        import phonenumbers
    except ImportError as fault:
        raise missing(fault) from None
    if region not in phonenumbers.SUPPORTED_REGIONS:
        raise InvalidInput(
            f"region={region!r} is not the two-letter code of a country.",
            hint="Pass one such as US, GB or DE.",
        )


def find_emails(text: str) -> Iterator[Match]:
    """Yield e-mail addresses, but for those at names that nobody can have, such as example.com.

    What stands before the ``@`` is the secret.

    Example:
        >>> [(match.start, match.tail) for match in find_emails("to: ann@uni.edu, bob@example.com")]
        [(4, 8)]
    """
    for match in _ADDRESS.finditer(text):
        local, _, domain = match[0].rpartition("@")
        if ".." not in local and not _NOBODYS.search(domain):
            value, tail = match[0].lower(), len(domain) + 1
            yield Match("email", match.start(), match.end(), value, tail=tail)


def find_phones(text: str, *, region: str) -> Iterator[Match]:
    """Yield telephone numbers that exist by their country's plan, grouped as it groups them.

    Args:
        text: Where to look; numbers stand on one line.
        region: The country of numbers without an international code.

    The international code is no secret.

    Example:
        >>> matches = find_phones("call (650) 253-0000 or +44 20 8366 1177", region="US")
        >>> [(match.start, match.end, match.known) for match in matches]
        [(5, 19, 0), (23, 39, 3)]
    """
    try:
        from phonenumbers import Leniency, PhoneNumberFormat, PhoneNumberMatcher, format_number
    except ImportError as fault:
        raise missing(fault) from None
    looked = _without_decimals(text, region)
    done = 0  # what begins before was looked at
    for near in _SEVEN.finditer(looked):
        if near.end() <= done:
            continue
        first = max(near.start(), done)
        start = max(text.rfind("\n", 0, first) + 1, first - _BEFORE)
        ended = text.find("\n", first, first + _WINDOW)
        part = text[start : ended if ended >= 0 else first + _WINDOW]
        until = ended if ended >= 0 else first + _WINDOW - _BEFORE
        seen = looked[start : start + len(part)]
        for match in PhoneNumberMatcher(seen, region, leniency=Leniency.STRICT_GROUPING):
            written = match.raw_string
            if not done <= start + match.start < until:
                continue
            if _OTHER_DIGIT.search(written) or _is_fraction(part, match.start, match.end):
                continue
            yield Match(
                "phone",
                start + match.start,
                start + match.end,
                format_number(match.number, PhoneNumberFormat.RFC3966),
                known=_code(written, str(match.number.country_code)),
            )
        done = until


def _without_decimals(text: str, region: str) -> str:
    """Take the digits out of decimals that are fields of a row and cannot be telephone numbers.

    The library would try every part of each of them, which is slow. All places stay where they are.

    Guarantees:
        * The library finds the same in what is returned, but for digits behind a decimal point,
          which are no telephone number.

    Example:
        >>> _without_decimals("0.941715,650.2530000", "US")
        '-.------,650.2530000'
    """
    may_be = _may_be_number(region)

    def masked(decimal: re.Match[str]) -> str:
        whole, fraction = decimal[1], decimal[2]
        if may_be(whole + fraction) or may_be(whole):
            return decimal[0]
        return _DIGITS.sub("-", decimal[0])

    return _DECIMAL.sub(masked, text)


@cache
def _may_be_number(region: str) -> Callable[[str], bool]:
    """Return a quick check whether digits could be a valid number as it is dialled in a country.

    It lets too many pass, and none too few: those that begin with the code for calls abroad, or
    with a prefix that is more than plain digits, are always let pass.
    """
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    own = PhoneMetadata.metadata_for_region(region)
    if own is None:
        return lambda digits: True
    code = str(own.country_code)
    alike = map(PhoneMetadata.metadata_for_region, COUNTRY_CODE_TO_REGION_CODE[int(code)])
    general = [metadata.general_desc for metadata in alike if metadata is not None]
    patterns = {
        description.national_number_pattern or ""
        for description in general
        if description is not None
    }
    abroad, dialled = own.international_prefix, own.national_prefix_for_parsing or ""
    before = f"(?:{code}|{dialled})*" if dialled.isdigit() else f"(?:{code})*"
    forms = [f"{before}(?:{pattern})\\Z" for pattern in sorted(patterns)]
    forms += [abroad] if abroad else []
    forms += [dialled] if dialled and not dialled.isdigit() else []
    match = re.compile("|".join(f"(?:{form})" for form in forms)).match
    return lambda digits: len(digits) >= _SHORTEST_NUMBER and match(digits) is not None


def _is_fraction(text: str, start: int, end: int) -> bool:
    """Whether a number follows a decimal point, or a comma that parts no fields of a row."""
    if _POINT.search(text, max(0, start - 2), start):
        return True
    parts = not text[start:end].isdigit() or text[end : end + 1] == ","
    return not parts and _COMMA.search(text, max(0, start - 22), start) is not None


def _code(written: str, code: str) -> int:
    """Return how long the international code at the beginning is, 0 where there is none."""
    prefix = re.match(r"\D*\+\s*" + r"\D?".join(code), written)
    return 0 if prefix is None else prefix.end()
