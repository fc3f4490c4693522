"""A secret is the same in any spelling."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.natural.spelling import (
    ANYWHERE,
    ascii_digits,
    bare,
    bare_with_places,
    since_last,
    spans_of,
)

SIGNS = st.sampled_from(["", " ", "-", ".", " - ", "_", "/"])
TEXTS = st.text(st.sampled_from("ab1-_ /\u00fc\u0308\u00df\u0130\ufb01\uff11\u00c5"), max_size=12)


@given(text=st.one_of(TEXTS, st.text(max_size=20)))
def test_each_character_is_spelt_alone(text):
    whole, places = bare_with_places(text)
    assert whole == bare(text) == "".join(map(bare, text))
    assert len(places) == len(whole)
    assert all(bare(text[at]).find(one) >= 0 for one, at in zip(whole, places, strict=True))


@given(digits=st.text("0123456789", min_size=ANYWHERE, max_size=10), data=st.data())
def test_signs_between_letters_and_digits_change_nothing(digits, data):
    written = digits[0] + "".join(data.draw(SIGNS) + digit for digit in digits[1:])
    text = f"x {written} y"
    assert bare(written) == digits
    assert (2, 2 + len(written)) in spans_of(digits, text)
    assert bare(text[since_last(digits, text) :]) == "y"


def test_case_and_marks_change_nothing():
    assert bare("M\u00dcLLER") == bare("mu\u0308ller") == "muller"
    assert list(spans_of(bare("M\u00fcller"), "an mu\u0308ller.txt")) == [(3, 10)]


def test_few_letters_count_where_they_stand_alone():
    assert list(spans_of("ann", "hosanna, ann7 and Ann.")) == [(18, 21)]
    assert list(spans_of("anna", "hosanna")) == [(3, 7)]
    assert list(spans_of("", "anything")) == []
    assert since_last("ann", "hosanna") == 0


@given(st.text())
def test_digits_of_all_scripts_become_ascii_ones_at_their_places(text):
    expected = "".join(
        str(unicodedata.decimal(character)) if character.isdecimal() else character
        for character in text
    )
    assert ascii_digits(text) == expected
