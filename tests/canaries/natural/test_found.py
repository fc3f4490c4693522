"""The same secret is joined, and nothing of it shows."""

from __future__ import annotations

import hmac
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.canaries.natural.found import (
    MOST_PLACES,
    Joining,
    Place,
    fingerprint_of,
)
from remnant.canaries.natural.match import Match, without_overlaps
from remnant.errors import InvalidInput

SALT = b"0123456789abcdef"


def joined(words, *, context=4, **options):
    """Join words of a text as if each were a secret."""
    text = "".join(f"say {word};" for word in words)
    joining, at = Joining(context=context, **options), 0
    for number, word in enumerate(words):
        start = at + 4
        match = Match("phone", start, start + len(word), word.strip("0"))
        joining.add(match, text, Place("file", 1, start + 1))
        at = start + len(word) + 1
        assert number < len(words)
    return joining.joined(salt=SALT)


@given(words=st.lists(st.sampled_from(["12", "012", "0120", "34", "5"]), min_size=1, max_size=40))
def test_secrets_are_joined_by_value_and_counted(words):
    found = joined(words)
    counts = Counter(word.strip("0") for word in words)
    prints = {fingerprint_of("phone", value, salt=SALT): n for value, n in counts.items()}
    assert {one.fingerprint: one.count for one in found} == prints
    assert [one.count for one in found] == sorted(counts.values(), reverse=True)
    columns = [place.column for one in found for place in one.places]
    assert sorted(columns) == [
        5 + sum(len(word) + 5 for word in words[:at]) for at in range(len(words))
    ]
    for one in found:
        ways = Counter(
            word
            for word in words
            if fingerprint_of("phone", word.strip("0"), salt=SALT) == one.fingerprint
        )
        assert ways[one.way.written] == max(ways.values())
        assert one.way.context == "say "
        assert one.canary.text == f"say {one.way.written}"
        assert one.canary.secret in one.template


def test_a_fingerprint_is_a_keyed_digest_of_kind_and_value():
    whole = hmac.new(SALT, b"ssn\x00" + b"536904399", "sha256").hexdigest()
    assert fingerprint_of("ssn", "536904399", salt=SALT) == whole[:12]
    others = {
        fingerprint_of("ssn", "536904399", salt=SALT[::-1]),
        fingerprint_of("card", "536904399", salt=SALT),
        fingerprint_of("ssn", "536904398", salt=SALT),
        whole[:12],
    }
    assert len(others) == 4


def test_many_places_are_counted_and_the_first_are_kept():
    (found,) = joined(["77"] * (MOST_PLACES + 5))
    assert (found.count, len(found.places)) == (MOST_PLACES + 5, MOST_PLACES)


def test_a_context_without_the_secret_is_preferred_to_those_with_it():
    # Of context 12 each word but the first two has a part of the one before it in its context.
    found = joined(["71234"] * 4, context=12)
    assert [one.way.context for one in found] == ["say "]
    first, *_ = joined(["81234", *["71234"] * 4], context=12)
    assert first.way.context == "y 81234;say "


def test_a_context_begins_after_the_secret_where_there_is_no_other():
    joining = Joining(context=40)
    text = "ann.lee <Ann.Lee@uni.edu> or 'ann lee' at ann.lee@uni.edu"
    for start in (9, 42):
        match = Match("email", start, start + 15, "ann.lee@uni.edu", tail=8)
        joining.add(match, text, Place("file", 1, start + 1))
    (found,) = joining.joined(salt=SALT)
    assert (found.count, found.way.context) == (2, " <")
    alone = Joining(context=40)
    alone.add(match, text, Place("file", 1, 43))
    (found,) = alone.joined(salt=SALT)
    assert found.way.context == "' at "


def test_where_it_ended_the_last_time_the_context_begins():
    joining = Joining(context=40)
    match = Match("phone", 20, 25, "71234")
    joining.add(match, "it is 00712-34, say 71234", Place("file", 1, 21), since=14)
    (found,) = joining.joined(salt=SALT)
    assert found.way.context == ", say "


def test_too_many_secrets_are_data_and_refused():
    with pytest.raises(InvalidInput, match="more than 2 different secrets, 100% of them of kind"):
        joined(["1", "2", "3"], most=2)
    assert len(joined(["1", "2", "1"], most=2)) == 2


def test_nothing_shows_in_a_repr():
    (found,) = joined(["77123"])
    for shown in (found, found.way, found.canary, Match("phone", 0, 5, "77123")):
        assert "77123" not in repr(shown)
        assert "say" not in repr(shown)


@given(
    spans=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=12),
    far=st.integers(0, 5000),
)
def test_overlaps_go_to_the_first(spans, far):
    matches = [Match("key", far + a, far + a + n, "x") for a, n in spans]
    kept: list[Match] = []
    for one in matches:
        if all(one.end <= other.start or other.end <= one.start for other in kept):
            kept.append(one)
    assert list(without_overlaps(matches)) == kept
