"""Keys and tokens: by the patterns of those who give them out, and by how random they look.

Patterns and the measure of randomness are those of ``detect-secrets``. Nothing is sent anywhere to
see whether a key is good.

Formats that ``detect-secrets`` does not have, or has in an older form, are below. Each is what the
service documents, or what its tokens have in common: a fixed opening and a number of random
characters. A secret access key of AWS and a private key in PEM form have no fixed
opening, so they have functions of their own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
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

LEAST_ENTROPY = 2.5  # bits per character; placeholders such as sk-xxxxxxxx have less
_WORD = "[A-Za-z0-9_-]"


@dataclass(frozen=True, slots=True)
class TokenFormat:
    """The form of one service's tokens.

    Attributes:
        service: Who gives them out.
        anchors: Texts without any of these hold no such token; searching for them is fast.
        pattern: Its group ``opening`` is the part that all tokens share.
        mixed: Whether the rest must have a letter and a digit, because the opening is short.
    """

    service: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    mixed: bool = False


def _format(
    service: str, anchors: str, opening: str, rest: str, *, mixed: bool = False
) -> TokenFormat:
    pattern = re.compile(f"(?P<opening>{opening}){rest}")
    return TokenFormat(service, tuple(anchors.split()), pattern, mixed)


FORMATS: tuple[TokenFormat, ...] = (
    _format("Anthropic", "sk-ant-", r"sk-ant-[a-z]{2,12}[0-9]{2}-", _WORD + "{20,250}"),
    _format(
        "OpenAI",
        "sk-",
        "sk-(?:proj|svcacct|admin|None)-",
        _WORD + "{40,250}",
        mixed=True,
    ),
    # Before there were projects; services with the same interface use this form too.
    _format("OpenAI", "sk-", "sk-", f"[A-Za-z0-9]{{32,64}}(?!{_WORD})", mixed=True),
    _format("Hugging Face", "hf_ api_org_", "(?:hf|api_org)_", r"[A-Za-z0-9]{34}(?!\w)"),
    _format("GitHub", "github_pat_", "github_pat_", "[A-Za-z0-9_]{50,250}"),
    _format("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_", r"[A-Za-z0-9]{36,250}(?!\w)"),
    _format("GitLab", "glpat-", "glpat-", _WORD + r"{27,300}\.[0-9a-z]{2}\.?[0-9a-z]{7,9}(?!\w)"),
    _format("Slack", "xox", r"xoxe\.xox[bp]-|xox[a-z]-", r"[0-9]{1,14}-[A-Za-z0-9-]{10,250}"),
    _format("Slack", "xapp-", "xapp-", "[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[A-Za-z0-9]{32,128}"),
    _format(
        "Slack",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/",
        "[A-Za-z0-9_/]{20,100}",
    ),
    _format("Google", "AIza", "AIza", _WORD + "{35}(?![A-Za-z0-9_-])"),
    _format("Google", "GOCSPX-", "GOCSPX-", _WORD + "{28}(?![A-Za-z0-9_-])"),
    _format("Stripe", "k_live_", "[rs]k_live_", r"[A-Za-z0-9]{24,250}(?!\w)"),
    _format("Stripe", "whsec_", "whsec_", r"[A-Za-z0-9+/]{32,64}={0,2}(?!\w)"),
    _format("npm", "npm_", "npm_", r"[A-Za-z0-9]{36}(?!\w)"),
)

_AWS_SECRET = re.compile("(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_LENGTH = 40
_AWS_ENTROPY = 4.0  # bits per character; 40 random ones have 4.3 and more
_AWS_BEFORE = 100  # characters in which the secret is named, or its id stands
_AWS_ANCHORS = (
    *("aws", "AWS", "Aws", "amazon", "Amazon", "AMAZON", "access", "Access", "ACCESS"),
    *("AKIA", "ASIA"),
)
_AWS_NAMED = re.compile(
    r"(?i:(?:(?<![a-z])aws|amazon)[^\n]{0,40}(?:key|secret|token|pass|pwd)[^\n]{0,20}"
    r"|secret[ _-]?access[ _-]?key[^\n]{0,20})\Z"
    r"|(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9/+](?:[^\n]{0,60}\n)?[^\n]{0,60}\Z"
)

_PEM_BEGIN = re.compile("-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile("-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_ENTROPY = 4.0
_PEM_SHORTEST = 48  # characters of base64; an Ed25519 key has 64
_PEM_LINE = re.compile(r"^[ \t\"']*[A-Z][A-Za-z-]{2,20}: [^\n\\]*", re.MULTILINE)
# Line ends, also escaped ones, and what code and mail put around lines.
_PEM_SIGNS = re.compile(r"\\[nrt]|[\"'`][ \t]+\+\s|[\s\"'`\\>|#,;()]")
_PEM_BODY = re.compile("[A-Za-z0-9+/=-]*")
_PEM_WITHOUT_END = re.compile(r"(?:(?:\\[nr]|[\s\"'>|#,])*[A-Za-z0-9+/]{32,76}={0,2})+")


def find_tokens(text: str) -> Iterator[Match]:
    """Yield tokens in the formats above; placeholders of one repeated character are none.

    Example:
        >>> [match.service for match in find_tokens("token: " + "hf_" + "aBcDeFgHiJ" * 3 + "kLmN")]
        ['Hugging Face']
        >>> list(find_tokens("token: " + "hf_" + "x" * 34))
        []
    """
    for form in FORMATS:
        if not any(anchor in text for anchor in form.anchors):
            continue
        for match in form.pattern.finditer(text):
            known = len(match["opening"])
            rest = match[0][known:]
            if is_letter_or_digit(text, match.start() - 1):
                continue
            if entropy(rest) < LEAST_ENTROPY or (form.mixed and not _mixed(rest)):
                continue
            yield Match(
                "key", match.start(), match.end(), match[0], known=known, service=form.service
            )


def find_aws_secrets(text: str) -> Iterator[Match]:
    """Yield 40 random characters that are named as AWS's secret key, or follow an access key id.

    They may be in quotes or not, as in ``AWS_SECRET_ACCESS_KEY=...``.
    """
    for start in sorted(_aws_candidates(text)):
        secret = text[start : start + _AWS_LENGTH]
        if not (_mixed(secret) and entropy(secret) >= _AWS_ENTROPY) or secret.lower() == secret:
            continue
        if _AWS_NAMED.search(text, max(0, start - _AWS_BEFORE), start):
            yield Match("key", start, start + _AWS_LENGTH, secret, service="AWS")


def _aws_candidates(text: str) -> set[int]:
    """Return where 40 such characters begin shortly after a word that may name them."""
    starts: set[int] = set()
    for anchor in _AWS_ANCHORS:
        at = text.find(anchor)
        while at >= 0:
            furthest = at + _AWS_BEFORE + _AWS_LENGTH + 1
            starts.update(match.start() for match in _AWS_SECRET.finditer(text, at, furthest))
            at = text.find(anchor, at + 1)
    return starts


def find_private_keys(text: str) -> Iterator[Match]:
    r"""Yield private keys in PEM form as whole blocks, with line ends or ``\n`` between lines.

    Two blocks with the same base64 are the same key, however their lines are indented. A block
    without its last line counts up to where its base64 ends. The first and last line are no secret.
    """
    for begin in _PEM_BEGIN.finditer(text):
        furthest = begin.start() + LONGEST_BLOCK
        end = _PEM_END.search(text, begin.end(), furthest)
        inner = "" if end is None else text[begin.end() : end.start()]
        body = _PEM_SIGNS.sub("", _PEM_LINE.sub("", inner))
        last, tail = (0, 0) if end is None else (end.end(), len(end[0]))
        if not _PEM_BODY.fullmatch(body) or end is None:
            cut = _PEM_WITHOUT_END.match(text, begin.end(), furthest)
            if cut is None:
                continue
            body, last, tail = _PEM_SIGNS.sub("", cut[0]), cut.end(), 0
        if len(body) >= _PEM_SHORTEST and entropy(body) >= _PEM_ENTROPY:
            known = len(begin[0])
            start = begin.start()
            yield Match("key", start, last, body, known=known, tail=tail, service="PEM")


def entropy(text: str) -> float:
    """Return Shannon's entropy of a text's characters, in bits per character.

    Example:
        >>> entropy("xxxx"), entropy("abcd")
        (0.0, 2.0)
    """
    shares = [count / len(text) for count in Counter(text).values()]
    return abs(-math.fsum(share * math.log2(share) for share in shares))


def _mixed(text: str) -> bool:
    """Whether a text has both letters and other characters that are no separators."""
    letters = any(character.isalpha() for character in text)
    return letters and any(character.isdigit() or character in "+/" for character in text)


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
