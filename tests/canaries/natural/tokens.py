"""Synthetic tokens of each format, made from a seed: no file of ours holds one."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable

import numpy as np

LETTERS, DIGITS, UPPER = string.ascii_letters, string.digits, string.ascii_uppercase
ALPHANUMERIC, HEX = LETTERS + DIGITS, DIGITS + "abcdef"
WORD, BASE64 = ALPHANUMERIC + "-_", ALPHANUMERIC + "+/"


def drawn(rng: np.random.Generator, many: int, alphabet: str = ALPHANUMERIC) -> str:
    return "".join(rng.choice(list(alphabet), size=many))


def _opened(opening: str, many: int, alphabet: str = ALPHANUMERIC) -> Callable[..., str]:
    # The body does not end in a sign, which a sentence could have put there.
    last = alphabet.replace("-", "").replace("_", "")
    return lambda rng: opening + drawn(rng, many - 1, alphabet) + drawn(rng, 1, last)


def _openai(opening: str, many: int, alphabet: str) -> Callable[..., str]:
    def make(rng):
        return (
            f"{opening}{drawn(rng, many, alphabet)}T3Blbk" + "FJ" + drawn(rng, many, ALPHANUMERIC)
        )

    return make


def _jwt(rng: np.random.Generator) -> str:
    parts = [
        json.dumps({"alg": "HS256", "typ": "JWT"}).encode(),
        json.dumps({"sub": drawn(rng, 10, DIGITS)}).encode(),
        rng.bytes(32),
    ]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def pem(rng: np.random.Generator, *, name: str = "RSA ", size: int = 1190) -> str:
    body = base64.b64encode(rng.bytes(size)).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join(
        [f"-----BEGIN {name}PRIV" + "ATE KEY-----", *lines, f"-----END {name}PRIV" + "ATE KEY-----"]
    )


# The service, how a token is made, and how much of its beginning is no secret.
TOKENS: dict[str, tuple[str, Callable[[np.random.Generator], str], int]] = {
    "openai project": ("OpenAI", _openai("sk-" + "proj-", 74, WORD), 8),
    "openai service account": ("OpenAI", _openai("sk-" + "svcacct-", 58, WORD), 11),
    "openai": ("OpenAI", _openai("sk" + "-", 20, ALPHANUMERIC), 3),
    "anthropic": ("Anthropic", _opened("sk-" + "ant-api03-", 95, WORD), 13),
    "hugging face": ("Hugging Face", _opened("h" + "f_", 34, LETTERS), 3),
    "github classic": ("GitHub", _opened("gh" + "p_", 36), 4),
    "github oauth": ("GitHub", _opened("gh" + "o_", 36), 4),
    "github user": ("GitHub", _opened("gh" + "u_", 36), 4),
    "github server": ("GitHub", _opened("gh" + "s_", 36), 4),
    "github refresh": ("GitHub", _opened("gh" + "r_", 76), 4),
    "github fine-grained": (
        "GitHub",
        lambda rng: "github" + f"_pat_{drawn(rng, 22)}_{drawn(rng, 59)}",
        11,
    ),
    "gitlab": ("GitLab", _opened("gl" + "pat-", 20, WORD), 6),
    "gitlab routable": (
        "GitLab",
        lambda rng: f"gl{'pat'}-{drawn(rng, 30, WORD)}.01.{drawn(rng, 9, DIGITS)}",
        6,
    ),
    "aws id": ("AWS", _opened("AK" + "IA", 16, UPPER + "234567"), 4),
    "slack bot": (
        "Slack",
        lambda rng: f"xo{'xb'}-{drawn(rng, 12, DIGITS)}-{drawn(rng, 13, DIGITS)}-{drawn(rng, 24)}",
        5,
    ),
    "slack refresh": (
        "Slack",
        lambda rng: f"xo{'xe'}-1-{drawn(rng, 146, UPPER + DIGITS)}",
        5,
    ),
    "slack app": (
        "Slack",
        lambda rng: (
            f"xa{'pp'}-1-A{drawn(rng, 10, UPPER + DIGITS)}-{drawn(rng, 13, DIGITS)}"
            f"-{drawn(rng, 64, HEX)}"
        ),
        5,
    ),
    "slack webhook": (
        "Slack",
        lambda rng: (
            f"https://hooks.{'slack'}.com/services/T{drawn(rng, 10, UPPER + DIGITS)}"
            f"/B{drawn(rng, 10, UPPER + DIGITS)}/{drawn(rng, 24)}"
        ),
        33,
    ),
    "google api": ("Google", _opened("AI" + "za", 35, WORD), 4),
    "google oauth": ("Google", _opened("GOC" + "SPX-", 28, WORD), 7),
    "stripe": ("Stripe", _opened("sk_" + "live_", 24), 8),
    "stripe of today": ("Stripe", _opened("sk_" + "live_", 99), 8),
    "stripe restricted": ("Stripe", _opened("rk_" + "live_", 99), 8),
    "stripe webhook": ("Stripe", _opened("wh" + "sec_", 32), 6),
    "jwt": ("JWT", _jwt, 3),
    "npm": ("npm", _opened("np" + "m_", 36), 4),
    "pypi": ("PyPI", _opened("py" + "pi-AgEIcHlwaS5vcmc", 150, WORD), 5),
}
