"""Keys and tokens: by the patterns of those who give them out, and by how random they look.

Patterns and the measure of randomness are those of ``detect-secrets``; ``token_formats`` has those
that it lacks. Nothing is sent anywhere to see whether a key is good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from remnant.canaries.natural.match import (
    LONGEST,
    LONGEST_BLOCK,
    SHORTEST_RANDOM,
    Match,
    is_letter_or_digit,
    missing,
    without_overlaps,
)
from remnant.canaries.natural.token_formats import (
    LEAST_ENTROPY,
    entropy,
    find_aws_secrets,
    find_private_keys,
    find_tokens,
)

HEX_ENTROPY, BASE64_ENTROPY = 3.0, 4.5  # bits a character, as the library has them
# The library's plugins, and the services whose keys they find. Left out are those of GitHub, OpenAI
# and Stripe, which know short tokens only.
_PLUGINS = {
    "aws": ("AWSKeyDetector", "AWS"),
    "azure_storage_key": ("AzureStorageKeyDetector", "Azure"),
    "basic_auth": ("BasicAuthDetector", "password in a URL"),
    "discord": ("DiscordBotTokenDetector", "Discord"),
    "gitlab_token": ("GitLabTokenDetector", "GitLab"),
    "mailchimp": ("MailchimpDetector", "Mailchimp"),
    "pypi_token": ("PypiTokenDetector", "PyPI"),
    "sendgrid": ("SendGridDetector", "SendGrid"),
    "slack": ("SlackDetector", "Slack"),
    "square_oauth": ("SquareOAuthDetector", "Square"),
    "telegram_token": ("TelegramBotTokenDetector", "Telegram"),
    "twilio": ("TwilioKeyDetector", "Twilio"),
}
# People choose them, so that they need not look random; the secret is a group of the pattern.
_PASSWORDS = "basic_auth"
_HINTS = {
    "mailchimp": re.compile("-us[0-9]"),
    "slack": re.compile("xox|hooks"),
    "telegram_token": re.compile(":[0-9A-Za-z_-]{35}"),
}
# The library's own pattern leaves the signature out.
_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_OPENING = re.compile(
    r"https://hooks\.slack\.com/services/|AccountKey=|A[3BCKS][A-Z]{2}(?=[A-Z0-9]{16}$)"
    r"|[A-Za-z]{1,10}[-_.]|(?:AC|SK)(?=[a-z0-9]{32}$)|eyJ"
)
_DOCUMENTED = "EXAMPLE"  # in the keys that AWS's documentation shows
# A line of a file of settings, as NAME=value; values of code have blanks around the sign.
_SETTING = re.compile(r"=([A-Za-z0-9+/_-]{16,2048}={0,2})[ \t]*\r?$", re.MULTILINE)
_SETTING_NAME = re.compile(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_.-]{0,99}\Z", re.MULTILINE)
_LONGEST_SETTING_NAME = 128
_HEX = re.compile("[0-9a-fA-F]+")
_VARIED = (re.compile("[0-9]"), re.compile("[A-Z]"), re.compile("[a-z]"))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern of the library.

    Attributes:
        in_a_group: Whether the secret is what its group holds.
        chosen: Whether people choose such secrets.
        hint: A part of each match that is found faster; None where the pattern itself is fast.
    """

    pattern: re.Pattern[str]
    service: str
    in_a_group: bool
    chosen: bool
    hint: re.Pattern[str] | None


@cache
def _patterns() -> tuple[_Pattern, ...]:
    return tuple(
        _Pattern(
            *(pattern, service, name == _PASSWORDS, name == _PASSWORDS),
            _HINTS.get(name),
        )
        for name, (plugin, service) in _PLUGINS.items()
        for pattern in _plugin(name, plugin).denylist
        if name != "aws" or pattern.groups == 0  # secrets of AWS are found with or without quotes
    )


@cache
def _plugin(name: str, plugin: str) -> Any:
    try:
        return getattr(import_module(f"detect_secrets.plugins.{name}"), plugin)()
    except ImportError as fault:
        raise missing(fault) from None


def find_keys(text: str) -> Iterator[Match]:
    """Yield keys and tokens that have the form which a service gives its own; none overlap.

    What each key of the service begins with is no secret.

    Example:
        >>> [(match.kind, match.known) for match in find_keys("id = AKIA" + "QZ7T" * 4)]
        [('key', 4)]
    """
    yield from without_overlaps([*_keys(text)])


def _keys(text: str) -> Iterator[Match]:
    for finder in (find_private_keys, find_tokens, find_aws_secrets):
        yield from (match for match in finder(text) if _DOCUMENTED not in match.value)
    for form in _patterns():
        if form.hint is not None and form.hint.search(text) is None:
            continue
        for match in form.pattern.finditer(text):
            start, end = match.span(1 if form.in_a_group else 0)
            if not form.in_a_group and not _stands_alone(text, start, end):
                continue
            if form.chosen or _looks_drawn(text[start:end]):
                yield from _key(text[start:end], start, form.service)
    valid = _plugin("jwt", "JwtTokenDetector").is_formally_valid
    for match in _JWT.finditer(text) if "eyJ" in text else ():
        if _stands_alone(text, match.start(), match.end()) and valid(match[0]):
            yield from _key(match[0], match.start(), "JWT")


def find_random(text: str, *, min_entropy: float | None = None) -> Iterator[Match]:
    """Yield strings of hex digits or of base64 whose characters look random.

    They are in quotes, or the value of a line ``NAME=value``, as files of settings have them.
    Numbers and alphabets do not count.

    Args:
        text: Where to look.
        min_entropy: Shannon's entropy in bits a character has to be above this; without it above
            3.0 for hex digits, which have 4 at most, and above 4.5 for base64.

    Example:
        >>> list(find_random("seed = '5f1d0c9e8b7a6342'"))
        [Match('random', 8, 24, value=<redacted>)]
        >>> list(find_random("word = 'antidisestablishment'"))
        []
    """
    for plugin, least in (
        ("HexHighEntropyString", HEX_ENTROPY),
        ("Base64HighEntropyString", BASE64_ENTROPY),
    ):
        looked = _plugin("high_entropy_strings", plugin)
        limit = least if min_entropy is None else min_entropy
        for match in looked.regex.finditer(text):
            inner = match[2]
            if (
                not SHORTEST_RANDOM <= len(inner) <= LONGEST
                or _is_alphabet(inner)
                or inner.isdigit()
            ):
                continue
            if looked.calculate_shannon_entropy(inner) > limit:
                yield Match("random", match.start(2), match.end(2), inner, tail=_padding(inner))
    yield from _random_settings(text, min_entropy)


def _random_settings(text: str, min_entropy: float | None) -> Iterator[Match]:
    """Yield the values without quotes of lines ``NAME=value``, but for paths and words."""
    for match in _SETTING.finditer(text):
        value, start = match[1], match.start()
        line = max(text.rfind("\n", 0, start) + 1, start - _LONGEST_SETTING_NAME)
        if not _SETTING_NAME.match(text, line, start):
            continue
        in_hex = _HEX.fullmatch(value) is not None
        if value[0] == "/" or _is_alphabet(value) or value.isdigit():
            continue
        if not in_hex and not all(some.search(value) for some in _VARIED):
            continue
        plugin = "HexHighEntropyString" if in_hex else "Base64HighEntropyString"
        least = HEX_ENTROPY if in_hex else BASE64_ENTROPY
        looked = _plugin("high_entropy_strings", plugin)
        limit = least if min_entropy is None else min_entropy
        if looked.calculate_shannon_entropy(value) > limit:
            yield Match("random", match.start(1), match.end(1), value, tail=_padding(value))


def _looks_drawn(written: str) -> bool:
    """Whether it is neither a placeholder nor an example of the service's documentation."""
    return entropy(written) >= LEAST_ENTROPY and _DOCUMENTED not in written


def _key(written: str, start: int, service: str) -> Iterator[Match]:
    if not 0 < len(written) <= LONGEST_BLOCK:
        return
    opening = _OPENING.match(written)
    known = 0 if opening is None or opening.end() == len(written) else opening.end()
    tail = min(_padding(written), len(written) - known - 1)
    yield Match(
        "key", start, start + len(written), written, known=known, tail=tail, service=service
    )


def _padding(written: str) -> int:
    """How many signs at the end only fill up base64."""
    filled = len(written) - len(written.rstrip("="))
    return filled if filled < len(written) else 0


def _is_alphabet(written: str) -> bool:
    """Whether most characters are followed by their neighbour in the alphabet, as in ``0123``."""
    steps = [ord(after) - ord(before) for before, after in pairwise(written)]
    return 2 * max(steps.count(1), steps.count(-1)) > len(steps)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether it is no part of a longer word, which would be something else."""
    return not is_letter_or_digit(text, start - 1) and not is_letter_or_digit(text, end)
