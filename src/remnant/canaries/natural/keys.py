"""Keys and tokens: by the patterns of those who give them out, and by how random they look.

Patterns and the measure of randomness are those of ``detect-secrets``. Nothing is sent anywhere to
see whether a key is good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from remnant.canaries.natural.match import LONGEST, Match, is_letter_or_digit, missing

HEX_ENTROPY, BASE64_ENTROPY = 3.0, 4.5  # bits a character, as the library has them
SHORTEST = 16  # characters of a random string
_PATTERNS = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector",
    "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
_VALUE_IN_A_GROUP = {"aws", "basic_auth"}  # elsewhere groups are but a part of the key
# The library's own pattern leaves the signature out.
_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_IN_THE_MIDDLE = "T3BlbkFJ"
_OPENING = re.compile(
    r"https://hooks\.slack\.com/services/|AccountKey=|A[3BCKS][A-Z]{2}(?=[A-Z0-9]{16}$)"
    r"|(?:[A-Za-z]{1,10}[-_.]){1,3}|(?:AC|SK)(?=[a-z0-9]{32}$)|eyJ"
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], bool], ...]:
    """The patterns, and whether the secret is what their group holds."""
    found = []
    for name, plugin in _PATTERNS.items():
        for pattern in _plugin(name, plugin).denylist:
            found.append((pattern, name in _VALUE_IN_A_GROUP and pattern.groups == 1))
    return tuple(found)


@cache
def _plugin(name: str, plugin: str) -> Any:
    try:
        return getattr(import_module(f"detect_secrets.plugins.{name}"), plugin)()
    except ImportError as fault:
        raise missing(fault) from None


def find_keys(text: str) -> Iterator[Match]:
    """Yield keys and tokens that have the form which a service gives its own.

    What each key of the service begins with is no secret.

    Example:
        >>> [(one.kind, one.known) for one in find_keys("id = AKIA" + "QZ7T" * 4)]
        [('key', 4)]
    """
    for pattern, in_a_group in _patterns():
        if _IN_THE_MIDDLE in pattern.pattern and _IN_THE_MIDDLE not in text:
            continue  # it would look for it from every place of a long word
        for found in pattern.finditer(text):
            start, end = found.span(1 if in_a_group else 0)
            if in_a_group or _stands_alone(text, start, end):
                yield from _key(text[start:end], start)
    valid = _plugin("jwt", "JwtTokenDetector").is_formally_valid
    for found in _JWT.finditer(text):
        if _stands_alone(text, found.start(), found.end()) and valid(found[0]):
            yield from _key(found[0], found.start())


def find_random(text: str, *, min_entropy: float | None = None) -> Iterator[Match]:
    """Yield strings in quotes, of hex digits or of base64, whose characters look random.

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
        for found in looked.regex.finditer(text):
            inner = found[2]
            if not SHORTEST <= len(inner) <= LONGEST or _is_alphabet(inner):
                continue
            if looked.calculate_shannon_entropy(inner) > limit:
                yield Match("random", found.start(2), found.end(2), inner, tail=_padding(inner))


def _key(written: str, start: int) -> Iterator[Match]:
    if not 0 < len(written) <= LONGEST:
        return
    opening = _OPENING.match(written)
    known = 0 if opening is None or opening.end() == len(written) else opening.end()
    tail = min(_padding(written), len(written) - known - 1)
    yield Match("key", start, start + len(written), written, known=known, tail=tail)


def _padding(written: str) -> int:
    """How many signs at the end only fill up base64."""
    filled = len(written) - len(written.rstrip("="))
    return filled if filled < len(written) else 0


def _is_alphabet(written: str) -> bool:
    """Whether most characters are followed by the next one, as in ``0123456789abcdef``."""
    steps = [ord(after) - ord(before) for before, after in pairwise(written)]
    return 2 * steps.count(1) > len(steps)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether it is no part of a longer word, which would be something else."""
    return not is_letter_or_digit(text, start - 1) and not is_letter_or_digit(text, end)
