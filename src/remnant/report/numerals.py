"""Numbers in print: counts of any size, lags, shares, bits, probabilities; texts of others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

SPACE = "\N{NARROW NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 15
_LARGEST_SHOWN = 10**30
# What HTML forbids, and characters that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BREAK = re.compile(r"\s*[^\S ]\s*")  # blanks around anything but a space
PLAIN = str.maketrans({SPACE: " ", "\N{NO-BREAK SPACE}": " ", "\N{NON-BREAKING HYPHEN}": "-"})
"""Characters that a terminal may not show, and what stands for them."""


def count_text(count: int) -> str:
    """A whole number with its thousands set apart; a power of ten beyond 15 digits.

    Example:
        >>> count_text(10**6).replace("\\u202f", " "), count_text(10**18)
        ('1 000 000', '10¹⁸')
        >>> count_text(36**20).replace("\\u202f", " ")
        '1.34 × 10³¹'
    """
    digits = str(count)
    if len(digits) <= _LONGEST:
        return f"{count:,}".replace(",", SPACE)
    power = len(digits) - 1
    # Whole numbers are rounded as such: a float ends at 308 digits.
    leading = (count + 5 * 10 ** (power - 3)) // 10 ** (power - 2)
    if leading == 1000:
        leading, power = 100, power + 1
    if count == 10**power:
        return _power_of_ten(power)
    return f"{leading / 100:.2f}{SPACE}×{SPACE}{_power_of_ten(power)}"


def whole_text(number: int) -> str:
    """A whole number of any size, with all its digits up to 10³⁰.

    Example:
        >>> whole_text(10**15).replace("\\u202f", " "), whole_text(10**40)
        ('1 000 000 000 000 000', 'about 2^132')
    """
    if number >= _LARGEST_SHOWN:
        return f"about 2^{number.bit_length() - 1}"
    return f"{number:,}".replace(",", SPACE)


def small_text(value: float) -> str:
    """A small number that is not negative, to one or two digits.

    Example:
        >>> small_text(0.0), small_text(0.0123), small_text(2e-6).replace("\\u202f", " ")
        ('0', '0.012', '2 × 10⁻⁶')
    """
    if value == 0 or value >= 0.001:
        return f"{value:.2g}"
    digits, power = f"{value:.0e}".split("e")
    return f"{digits}{SPACE}×{SPACE}{_power_of_ten(int(power))}"


def power_text(value: float) -> str:
    """A positive number as two digits and a power of ten; the digits are left out where they are 1.

    Example:
        >>> power_text(1e-13), power_text(75400.0).replace("\\u202f", " ")
        ('10⁻¹³', '7.5 × 10⁴')
    """
    digits, power = f"{value:.1e}".split("e")
    ten = _power_of_ten(int(power))
    return ten if digits == "1.0" else f"{digits.removesuffix('.0')}{SPACE}×{SPACE}{ten}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent, such as ``74.1 %``; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.{digits}f}{SPACE}%"


def short_percent(value: float | None) -> str:
    """A share in percent with the digits it has, such as ``10 %`` or ``0.1 %``.

    Example:
        >>> short_percent(0.1).replace(SPACE, " "), short_percent(0.001).replace(SPACE, " ")
        ('10 %', '0.1 %')
    """
    return "–" if value is None else f"{100 * value:.6g}{SPACE}%"


def lag_text(lag: float) -> str:
    """A lag in print: whole numbers without a point, thousands set apart."""
    if lag != int(lag):
        return f"{lag:.1f}"
    return f"{int(lag):,}".replace(",", SPACE)


def bits_number(bits: float | None) -> str:
    """Bits without their unit; a dash where there are none.

    Example:
        >>> bits_number(19.934), bits_number(-0.0001), bits_number(None)
        ('19.93', '0.00', '–')
    """
    # Adding zero turns -0.0 into 0.0.
    return "–" if bits is None else f"{round(bits, 2) + 0.0:.2f}"


def bits_text(bits: float) -> str:
    """Bits with their unit, such as ``19.93 bits``."""
    return f"{bits_number(bits)}{SPACE}bits"


def times_text(count: int) -> str:
    """How often, such as ``once`` or ``16 times``."""
    return "once" if count == 1 else f"{count_text(count)} times"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A count and what is counted, such as ``1 canary`` or ``12 canaries``."""
    return f"{count_text(count)} {one if count == 1 else many or f'{one}s'}"


def epoch_text(epoch: float) -> str:
    """A number of epochs with the digits it has, such as ``6`` or ``0.25``."""
    return count_text(round(epoch)) if epoch == round(epoch) or epoch >= 100 else f"{epoch:.3g}"


def epochs_text(epochs: float) -> str:
    """Epochs with their unit, such as ``1 epoch`` or ``0.5 epochs``."""
    return f"{epoch_text(epochs)} epoch{'' if epochs == 1 else 's'}"


def pvalue_text(value: float | None) -> str:
    """A p-value with as many digits as matter; a dash where there is none.

    Example:
        >>> pvalue_text(0.4236), pvalue_text(0.0312), pvalue_text(1e-9).replace("\\u202f", " ")
        ('0.42', '0.031', '< 0.001')
    """
    if value is None:
        return "–"
    if value < 0.001:
        return f"<{SPACE}0.001"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def p_equals(value: float | None) -> str:
    """The same after its letter.

    Example:
        >>> p_equals(0.4236), p_equals(1e-9).replace("\\u202f", " ")
        ('p = 0.42', 'p < 0.001')
    """
    shown = pvalue_text(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def plain_spaces(text: str) -> str:
    """A text with plain spaces, as records, JSON and messages have it."""
    return text.replace(SPACE, " ")


def in_print(text: str) -> str:
    """A sentence with its numbers as they are printed everywhere.

    Sentences of verdicts are in records, where numbers are plain: shares get their space, small
    p-values their bound, false positive rates their unit, and signs are those of print. What is in
    quotes is a name, and stays as it is.

    Example:
        >>> shown = in_print("72.0% react (p <= 0.05), p = 2.2e-06 at FPR 0.1, -0.013 of 5 x 5")
        >>> shown.replace("\\u202f", " ")
        '72.0 % react (p ≤ 0.05), p < 0.001 at FPR 10 %, −0.013 of 5 × 5'
        >>> in_print("The key is K9-77%2F."), in_print("steps 3-5")
        ('The key is K9-77%2F.', 'steps 3-5')
        >>> in_print("5% of 'dropout p = 1e-05'").replace("\\u202f", " ")
        "5 % of 'dropout p = 1e-05'"
    """
    parts = _QUOTED.split(text)
    for pattern, shown in _IN_PRINT:
        parts[::2] = [pattern.sub(shown, part) for part in parts[::2]]
    return "".join(parts)


def _p_in_print(match: re.Match[str]) -> str:
    return p_equals(float(match[1]))


def _fpr_in_print(match: re.Match[str]) -> str:
    return f"FPR {short_percent(float(match[1]))}"


_QUOTED = re.compile(r"""((?<!\w)'[^'\n]*'(?!\w)|(?<!\w)"[^"\n]*"(?!\w)|“[^”\n]*”)""")
_IN_PRINT: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str] | str], ...] = (
    (re.compile(r"(?<=\d)[ \N{NO-BREAK SPACE}]?%(?!\w)"), f"{SPACE}%"),
    (re.compile(r"\bp = (\d+(?:\.\d+)?e-\d+)"), _p_in_print),
    (re.compile(r"\bFPR (0?\.\d+)(?![\d%])(?!\s?%)"), _fpr_in_print),
    (re.compile(r" <= (?=\d)"), " ≤ "),
    (re.compile(r" >= (?=\d)"), " ≥ "),
    (re.compile(r"(?<=\w) x (?=\d)"), " × "),
    (re.compile(r"(?<![\w.)\]-])-(?=\d+\.\d)"), "−"),
)


def _power_of_ten(power: int) -> str:
    return f"10{str(power).translate(_SUPERSCRIPTS)}"


def visible(text: str) -> str:
    """A text with codes for control characters."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_one_line(text: str) -> str:
    """A text without breaks, with plain spaces; blanks within it are kept, as it may be a name."""
    return _BREAK.sub(" ", text.translate(PLAIN))


def printable(text: str) -> str:
    """A text as it is, or in quotes and escaped where a line cannot show it as it is.

    Example:
        >>> printable("key 12"), printable("key 12\\n")
        ('key 12', '"key 12\\\\n"')
    """
    plain = text.isprintable() and text == text.strip()
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
