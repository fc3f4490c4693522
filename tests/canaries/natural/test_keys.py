"""Keys by the patterns of those who give them out, and strings that look random."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from remnant.canaries.natural.keys import find_keys, find_random

ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
HEX = "0123456789abcdef"


def drawn(many: int, alphabet: str = ALPHANUMERIC) -> str:
    return "".join(np.random.default_rng(many).choice(list(alphabet), size=many))


def token() -> str:
    parts = [json.dumps({"alg": "HS256"}), json.dumps({"sub": "7"}), drawn(32)]
    coded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    return ".".join(coded)


KEYS = [
    ("AK" + "IA" + drawn(16, ALPHANUMERIC[:10] + ALPHANUMERIC[36:]), 4),
    ("gh" + "p_" + drawn(36), 4),
    ("sk_" + "live_" + drawn(24), 8),
    ("gl" + "pat-" + drawn(20), 6),
    ("S" + "G." + drawn(22) + "." + drawn(43), 3),
    ("AC" + drawn(32, HEX), 2),
    (drawn(32, HEX) + "-us" + "12", 0),
    (token(), 3),
]


@pytest.mark.parametrize(("key", "known"), KEYS)
def test_keys_by_pattern(key, known):
    text = f"the key = {key}; and so on"
    (found,) = find_keys(text)
    assert (found.kind, text[found.start : found.end]) == ("key", key)
    assert found.known == known


@pytest.mark.parametrize(("key", "known"), KEYS)
def test_what_is_part_of_a_longer_word_is_no_key(key, known):
    assert list(find_keys(f"a{key}")) == []


def test_a_password_in_an_address_of_the_web():
    (found,) = find_keys("see https://ann:tulip9@host.org/x")
    assert found.value == "tulip9"
    secret = drawn(40)
    (found,) = find_keys(f'aws_secret_key = "{secret}"')
    assert found.value == secret


def test_a_token_whose_parts_are_no_json_is_none():
    assert list(find_keys("eyJh" + drawn(9) + "." + drawn(20) + "." + drawn(20))) == []


def entropy(text: str) -> float:
    shares = np.unique(list(text), return_counts=True)[1] / len(text)
    return float(-(shares * np.log2(shares)).sum())


@pytest.mark.parametrize("quote", "'\"")
@pytest.mark.parametrize("inner", [drawn(40, HEX), drawn(64), drawn(46) + "=="])
def test_random_strings_in_quotes(quote, inner):
    text = f"x = {quote}{inner}{quote}"
    (found,) = {one.start: one for one in find_random(text)}.values()
    assert (found.value, found.tail) == (inner, len(inner) - len(inner.rstrip("=")))
    at = entropy(inner)
    assert list(find_random(text, min_entropy=at + 0.01)) == []
    assert list(find_random(text, min_entropy=at - 0.01)) != []


@pytest.mark.parametrize(
    "text",
    [
        drawn(40, HEX),
        f"'{drawn(15, HEX)}'",
        "'0123456789abcdef0123456789abcdef'",
        "'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'",
        "'thequickbrownfoxjumpedover'",
        f"'{drawn(40, HEX)}\"",
        "'" + "deadbeef" * 4 + "'",
        f"'{drawn(3000)}'",
    ],
)
def test_what_does_not_look_random(text):
    assert list(find_random(text)) == []
