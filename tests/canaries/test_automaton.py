"""The automaton counts texts, not fillings: against all fillings, as a set."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.canaries import automaton
from remnant.canaries.automaton import Automaton
from remnant.canaries.holes import Slot
from remnant.errors import InvalidInput

SLOTS = st.lists(
    st.lists(st.text(alphabet="abé", max_size=4), min_size=1, max_size=5, unique=True),
    min_size=1,
    max_size=4,
).map(lambda many: [Slot("choice", tuple(choices)) for choices in many])


@settings(max_examples=300)
@given(SLOTS, st.text(alphabet="abéc", max_size=8))
def test_it_agrees_with_the_set_of_all_fillings(slots, text):
    distinct = sorted({"".join(filling) for filling in product(*(s.choices for s in slots))})
    found = Automaton(slots)
    assert found.space == len(distinct)
    assert list(found.secrets()) == distinct
    assert [found.index_of(secret) for secret in distinct] == list(range(len(distinct)))
    assert (found.index_of(text) is not None) == (text in distinct)


def test_a_space_with_a_known_count_far_beyond_enumeration():
    # Between n and 2n letters a: one text for each length.
    assert Automaton([Slot("choice", ("a", "aa"))] * 300).space == 301
    # Every text of n to 2n letters over two letters.
    both = Automaton([Slot("choice", ("a", "b", "aa", "ab", "ba", "bb"))] * 100)
    assert both.space == 2**201 - 2**100
    last = both.secret_at(both.space - 1)
    assert last == "b" * 200
    middle = both.space // 3
    assert both.index_of(both.secret_at(middle)) == middle


def test_more_states_than_allowed_are_refused(monkeypatch):
    slots = [Slot("choice", ("a", "ab", "abb", "b", "bab"))] * 6
    assert Automaton(slots).space > 1000
    monkeypatch.setattr(automaton, "MOST_STATES", 40)
    with pytest.raises(InvalidInput, match=r"would take more than 40 states\. Use choices none of"):
        Automaton(slots)
