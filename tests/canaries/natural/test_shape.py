"""From a secret to its template."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.natural.found import (
    bits_of,
    check_bits,
    runs_of,
    secret_in,
    shape_text,
    template_of,
)
from remnant.canaries.natural.match import KINDS
from remnant.errors import NotEnoughEvidence

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \u0660\u0665\uff19"


@given(
    kind=st.sampled_from(KINDS),
    opening=st.text(CHARACTERS, max_size=5),
    middle=st.text(CHARACTERS, max_size=12),
    tail=st.text(CHARACTERS, max_size=5),
    context=st.text(CHARACTERS + "\n{}é", max_size=9),
)
def test_the_secret_is_in_its_template_whose_space_has_the_stated_bits(
    kind, opening, middle, tail, context
):
    written = opening + "7" + middle + tail  # a digit is a hole of every kind
    runs = runs_of(kind, written, known=len(opening), tail=len(tail))
    assert "".join(run.text for run in runs) == written
    template = template_of(runs, context=context)
    text = context + written
    assert template.text(secret_in(template, text)) == text
    assert bits_of(runs) == pytest.approx(math.log2(template.space))
    assert template.prefix.startswith(context + opening)
    assert template.suffix.endswith(tail)


@pytest.mark.parametrize(
    ("kind", "written", "known", "tail", "pattern", "shown"),
    [
        ("card", "4111 1111", 0, 0, "{digits:4} {digits:4}", "{digits:4} {digits:4}"),
        ("phone", "+1 650", 2, 0, "+1 {digits:3}", "+… {digits:3}"),
        ("phone", "650 ext 1", 0, 0, "{digits:3} ext {digits:1}", "{digits:3} … {digits:1}"),
        ("email", "a.b7@uni.de", 0, 7, "{letters:1}.{letters:1}{digits:1}@uni.de", None),
        ("key", "sk_ab12", 3, 0, "sk_{hex:4}", "…_{16 characters:4}"),
        ("key", "sk_aZ12", 3, 0, "sk_{tokens:4}", "…_{62 characters:4}"),
        ("random", "zzz=", 0, 1, "{letters:3}=", "{26 characters:3}="),
    ],
)
def test_what_is_secret_in_each_kind(kind, written, known, tail, pattern, shown):
    runs = runs_of(kind, written, known=known, tail=tail)
    assert template_of(runs, context="").pattern == pattern
    assert shape_text(runs) == (shown or "{letters:1}.{letters:1}{digits:1}@….…")


def test_a_check_takes_bits():
    assert check_bits("card") == math.log2(10)
    assert check_bits("iban") == math.log2(100)
    valid = sum(n not in (0, 666) for n in range(900)) * 99 * 9999
    assert check_bits("ssn") == pytest.approx(math.log2(10**9 / valid))
    assert {check_bits(kind) for kind in ("email", "phone", "key", "random")} == {0.0}


def test_a_key_longer_than_a_template_has_none():
    runs = runs_of("key", "ab" * 600, known=0, tail=0)
    assert bits_of(runs) == pytest.approx(1200 * 4)
    with pytest.raises(NotEnoughEvidence, match="more than the 1000 places"):
        template_of(runs, context="")
