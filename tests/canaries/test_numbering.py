"""Mixed radix: when it may be used, and that it is exact where it is."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries.holes import Slot
from remnant.canaries.template import Place, mirrored, mixed_radix, one_way_only, places_of

CHOICES = st.lists(st.text(alphabet="ab ", max_size=3), min_size=1, max_size=4, unique=True)


@st.composite
def slot_rows(draw):
    slots = [Slot("choice", tuple(draw(CHOICES)))]
    for _ in range(draw(st.integers(0, 3))):
        between = draw(st.sampled_from(["", "", "-", " ", "ab"]))
        slots += [Slot("literal", (between,))] if between else []
        slots.append(Slot("choice", tuple(draw(CHOICES))))
    return slots


@settings(max_examples=300)
@given(slot_rows())
def test_it_is_used_only_where_fillings_and_secrets_correspond(slots):
    fillings = ["".join(filling) for filling in product(*(slot.choices for slot in slots))]
    numbering = mixed_radix(slots)
    if numbering is None:
        return
    assert len(set(fillings)) == len(fillings) == numbering.space
    assert list(numbering.secrets()) == fillings
    assert [numbering.secret_at(index) for index in range(numbering.space)] == fillings
    assert [numbering.index_of(secret) for secret in fillings] == list(range(numbering.space))


@settings(max_examples=300)
@given(slot_rows(), st.text(alphabet="ab -", max_size=8))
def test_a_text_is_read_only_if_it_is_a_secret(slots, text):
    numbering = mixed_radix(slots)
    if numbering is not None:
        fillings = {"".join(filling) for filling in product(*(slot.choices for slot in slots))}
        assert (numbering.index_of(text) is not None) == (text in fillings)


@settings(max_examples=300)
@given(CHOICES, st.sampled_from(["", " ", "b"]))
def test_prefix_free_agrees_with_its_definition(choices, after):
    whole = [choice + after for choice in choices]
    free = not any(
        i != j and b.startswith(a) for i, a in enumerate(whole) for j, b in enumerate(whole)
    )
    last = Place(("x", "xy"), "")
    assert one_way_only([Place(tuple(choices), after), last]) == free


def test_the_last_place_need_not_be_prefix_free():
    assert mixed_radix([Slot("digits", ("0", "1")), Slot("choice", ("", "1", "11"))]).space == 6


def test_words_with_a_blank_before_each_are_read_from_the_right():
    slots = [Slot("tokens", (" a", " ab", " b"))] * 3
    assert not one_way_only(places_of(slots))
    assert one_way_only(places_of(mirrored(slots)))
    numbering = mixed_radix(slots)
    assert numbering.space == 27
    assert numbering.secret_at(5) == " a ab b"
    assert numbering.index_of(" a ab b") == 5


ROWS = {
    "digits": [Slot("digits", tuple("0123456789"))] * 10,
    "groups": [Slot("digits", tuple("0123456789")), Slot("literal", ("-",))] * 4
    + [Slot("letters", tuple("abc"))] * 2,
    "words": [Slot("words", tuple(f"w{i}." for i in range(1200)))] * 2
    + [Slot("choice", ("x", "yz"))] * 3,
}


@pytest.mark.parametrize("name", ROWS)
def test_secrets_are_those_read_place_by_place(name):
    slots, numbering = ROWS[name], mixed_radix(ROWS[name])
    for index in range(0, numbering.space, numbering.space // 997 + 1):
        left, parts = index, []
        for slot in reversed(slots):
            left, digit = divmod(left, len(slot.choices))
            parts.append(slot.choices[digit])
        assert numbering.secret_at(index) == "".join(reversed(parts))
        assert numbering.index_of(numbering.secret_at(index)) == index


@pytest.mark.parametrize("choices", [(("a", "ab"), ("b", "bb")), (("", "a"), ("a", "aa"))])
def test_an_ambiguous_row_is_left_to_the_automaton(choices):
    assert mixed_radix([Slot("choice", one) for one in choices]) is None
