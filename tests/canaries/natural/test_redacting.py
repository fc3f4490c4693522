"""Secrets in a text become placeholders, wherever and however they are written."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remnant.canaries.natural import KINDS, find_secrets, redact
from remnant.canaries.natural.redacting import KnownSecrets, Span, joined_spans
from remnant.canaries.natural.scanning import control_texts
from remnant.canaries.natural.spelling import bare, unescaped_with_places
from remnant.errors import InvalidInput

# Made up, and in parts: no file of ours holds one whole.
SECRETS = {
    "card": "4929 " + "0714 3683 5574",
    "ssn": "536-90-" + "4399",
    "iban": "GB29 NWBK " + "6016 1331 9268 19",
    "email": "r.okafor71@" + "mailbox.org",
    "phone": "(650) 253" + "-0000",
    "key": "AK" + "IA" + "QZ7TM4KDW8RB2XNC",
    "random": '"9f8b1c7d' + 'e2a603547b1e9ac4"',
}
PARTS = st.one_of(
    st.sampled_from(
        ["", "a", "words, ", "\n", "\r\n", "é ", "7 ", '"', "0,", "https://me:", "@x "]
    ),
    st.sampled_from([f" {secret} " for secret in SECRETS.values()]),
    st.sampled_from(list(SECRETS.values())),
    st.sampled_from(["650", "253", "0000", "-", "@", "4929071436835574", "9f8b1c7de2a60354"]),
)
TEXTS = st.lists(PARTS, max_size=8).map("".join)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_placeholder(kind):
    cleaned = redact(control_texts()[kind])
    assert cleaned.text.replace('"', "") == f"the {kind} is [{kind.upper()}] today"
    assert cleaned.counts == {kind: 1}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS)
def test_a_second_scan_finds_nothing_and_a_second_cleaning_changes_nothing(text):
    cleaned = redact(text)
    assert find_secrets(cleaned.text) == []
    assert redact(cleaned.text) == (cleaned.text, {})
    assert bool(cleaned.counts) == bool(find_secrets(text))
    for kind in KINDS:
        assert cleaned.text.count(f"[{kind.upper()}]") == cleaned.counts.get(kind, 0)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("card", "x4929071436835574y"),
        ("card", "4929 07143683 5574"),
        ("ssn", "536904399"),
        ("ssn", "536.90.4399"),
        ("iban", "gb29nwbk60161331926819"),
        ("iban", "29-NWBK-6016-1331-9268-19"),
        ("email", "R.Okafor71 @ mailbox.org"),
        ("phone", "6502530000"),
        ("phone", "no. 650/253/0000x"),
        ("key", "akiaqz7tm4kdw8rb2xnc"),
        ("key", "QZ7TM4KDW8RB2XNC"),
        ("random", "9f8b1c7d e2a60354 7b1e9ac4"),
    ],
)
def test_another_spelling_that_the_finders_miss_is_replaced_too(kind, other):
    secret = SECRETS[kind]
    text = f"{secret} then {other} end"
    cleaned = redact(text)
    assert cleaned.counts == {kind: 2}
    assert bare(secret) not in bare(cleaned.text)
    assert cleaned.text.endswith(" end")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # Words: the part of an address before the @, and a password without a digit.
        ("mail@firm.org is my mail", "[EMAIL] is my mail"),
        ("https://me:letmein@host.org letmein", "https://me:[KEY]@host.org letmein"),
        # Distinctive ones are replaced, the short ones among them only as whole words.
        ("https://me:hunter22@host.org hunter22", "https://me:[KEY]@host.org [KEY]"),
        ("https://me:abc123@host.org xabc1234", "https://me:[KEY]@host.org xabc1234"),
        # Digits far from each other are not one number.
        ("536-90-4399 and 536 of 90 in 4399", "[SSN] and 536 of 90 in 4399"),
    ],
)
def test_harmless_text_stays(text, cleaned):
    assert redact(text).text == cleaned


def test_kinds_and_region_choose():
    text = f"{SECRETS['card']}, {SECRETS['ssn']} and 020 8366 1177"
    assert redact(text, kinds=["ssn"]).text == f"{SECRETS['card']}, [SSN] and 020 8366 1177"
    assert redact(text, kinds=["phone"], region="GB").counts == {"phone": 1}
    assert redact("+44 20 8366 1177 or 020 8366 1177, 02083661177").counts == {"phone": 3}
    for text in (None, ["a text"], Path("notes.txt")):
        with pytest.raises(InvalidInput, match=f"text is of type {type(text).__name__}"):
            redact(text)
    with pytest.raises(InvalidInput, match="kinds='cat' is not one of"):
        redact(text, kinds=["cat"])


def test_a_private_key_is_one_placeholder_and_its_base64_another():
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + "VJTUt9Us8cKj"
    begin, end = ("-----" + word + " PRIVATE KEY-----" for word in ("BEGIN", "END"))
    cleaned = redact(f"a\n{begin}\n{body}\n{end}\nb {body[:30]}\r\n{body[30:]} c")
    assert cleaned == ("a\n[KEY]\nb [KEY] c", {"key": 2})


def test_known_secrets_agree_with_their_definition():
    known = KnownSecrets({"abc123": "key", "abc123456": "key", "letters": "key", "12345": "ssn"})
    text = "abc-123, xabc123 ABC 123 456 letters 12345 a.b.c1,2.3"
    assert [text[span.start : span.end] for span in known.spans(text)] == [
        *("abc-123", "ABC 123 456", "a.b.c1,2.3"),
    ]


def test_spans_that_overlap_are_joined():
    spans = [Span(4, 9, "card"), Span(8, 12, "phone"), Span(12, 13, "ssn"), Span(5, 6, "key")]
    assert joined_spans(spans) == [(4, 12, "card"), (12, 13, "ssn")]


@pytest.mark.parametrize(
    "written",
    [
        lambda text: quote(text, safe=""),
        lambda text: "".join(f"\\u{ord(sign):04X}" for sign in text),
        lambda text: "".join(f"&#{ord(sign)};" for sign in text),
        lambda text: "".join(f"&#x{ord(sign):x};" for sign in text),
        lambda text: text.replace("-", "\\x2d").replace("@", "\\x40").replace("+", "\\x2B"),
    ],
)
@pytest.mark.parametrize(
    "secret", ["ann.lee+tax@uni-mail.edu", "4539 1488 " + "0343 6467", SECRETS["ssn"]]
)
def test_a_known_secret_with_escapes_is_replaced_too(secret, written):
    text = f"It is {secret}, or <{written(secret)}>; 100%25 sure."
    cleaned = redact(text).text
    assert re.fullmatch(r"It is \[(\w+)\], or <\[\1\]>; 100%25 sure\.", cleaned), cleaned


def test_texts_without_escapes_are_not_looked_at_twice():
    assert unescaped_with_places("100 % & more; &#300; C:\\users") is None
    plain, places = unescaped_with_places("a%40b&#x2E;c")
    assert plain == "a@b.c"
    assert places == [0, 1, 4, 5, 11, 12]


ARABIC = {ord(str(value)): chr(0x660 + value) for value in range(10)}
FULL_WIDTH = {ord(str(value)): chr(0xFF10 + value) for value in range(10)}


@pytest.mark.parametrize("script", [ARABIC, FULL_WIDTH], ids=["arabic", "full-width"])
@pytest.mark.parametrize("kind", ["card", "ssn", "iban", "phone"])
def test_digits_of_other_scripts_are_digits(kind, script):
    secret = SECRETS[kind]
    other = secret.translate(script)
    assert not set("0123456789") & set(other)
    assert [match.value for match in find_secrets(other)] == [
        match.value for match in find_secrets(secret)
    ]
    assert redact(f"the number {other} here").text == f"the number [{kind.upper()}] here"
    # Found once in ASCII, replaced where it occurs in the other script and within a word.
    both = redact(f"{secret} and x{bare(secret).translate(script)}y")
    assert both.text == f"[{kind.upper()}] and x[{kind.upper()}]y"


@pytest.mark.parametrize(
    "gap", ["\n", "\r\n", "\n        ", " \\\n\t\t", "\n  # ", "\n> > ", "-\n    "]
)
@pytest.mark.parametrize("kind", ["card", "ssn", "key", "email"])
def test_a_known_secret_is_found_where_it_is_wrapped_over_lines(kind, gap):
    secret = SECRETS[kind]
    for at in (5, len(secret) - 3):
        wrapped = secret[:at] + gap + secret[at:]
        cleaned = redact(f"{secret}; {wrapped}; the end")
        mark = f"[{kind.upper()}]"
        assert cleaned.text == f"{mark}; {mark}; the end"


def test_what_is_far_apart_or_two_lines_away_is_not_one_secret():
    secret = SECRETS["ssn"]
    for gap in ("\n" + " " * 81, "\n\n  ", "     ", "\n and \n"):
        text = f"{secret}; 536{gap}904399;"
        assert redact(text).text == f"[SSN]; 536{gap}904399;"


def test_an_encoded_secret_is_not_found():
    """As ``remnant scan --redact`` and docs/how-to/scanning.md say: nothing is decoded."""
    secret = SECRETS["ssn"]
    for encoded in (base64.b64encode(secret.encode()).decode(), secret.encode().hex()):
        assert encoded in redact(f"{secret} {encoded}").text
