"""Formats of keys and tokens that ``detect-secrets`` does not have, or has in an older form.

Each format is what the service documents, or what its tokens have in common: a fixed opening and a
number of random characters. A secret access key of AWS and a private key in PEM form have no fixed
opening, so they have functions of their own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from remnant.canaries.natural.match import LONGEST_BLOCK, Match, is_letter_or_digit

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
