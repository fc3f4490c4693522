"""Canaries that are equal to others are counted once."""

from __future__ import annotations

import pytest

from remnant.canaries import Canary, CanarySet, Template, distinct_canaries, make_canary_set


def made(pattern, planted, controls=()):
    template = Template(pattern)
    return CanarySet(
        template=template,
        canaries=tuple(Canary(template.text(secret), secret) for secret, _ in planted),
        repeats=tuple(repeats for _, repeats in planted),
        controls=tuple(Canary(template.text(secret), secret) for secret in controls),
        seed=0,
    )


PINS = made("my pin is {digits:2}", [("11", 4), ("22", 1)], ["33", "44"])


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        ("my pin is {digits:2}", "22"),
        ("My  PIN is {digits:2}", "22"),
        ("and my pin is {digits:2}.", "22"),
        ("pin is {digits:2}", "22"),
        ("my pin is 2{digits:1}", "2"),
    ],
)
def test_the_same_text_is_one_canary(pattern, other):
    found = distinct_canaries({1: PINS, 2: made(pattern, [(other, 3)])})
    assert (list(found.sets), found.canaries, found.controls) == ([1], 1, 0)
    assert found.sentence.startswith("1 canary was equal to another and was left out")
    apart = distinct_canaries({1: PINS, 2: made("room {digits:2}", [("22", 3)])})
    assert (apart.sets[2].repeats, apart.sentence) == ((3,), "")


def test_sets_without_equals_stay_as_they_are():
    sets = {1: PINS, 5: make_canary_set(Template("id {hex:8}"), repeats=[1], controls=3, seed=0)}
    assert distinct_canaries(sets).sets == sets


def test_a_set_that_comes_twice_is_one():
    found = distinct_canaries({1: PINS, 2: PINS})
    assert (found.sets, found.canaries, found.controls) == ({1: PINS}, 2, 2)
    assert found.sentence == (
        "2 canaries and 2 controls were equal to others and were left out, so that each is counted "
        "once."
    )


def test_equal_canaries_keep_the_smallest_of_their_repeats():
    found = distinct_canaries({1: PINS, 2: made("my pin is {digits:2}", [("11", 1), ("55", 2)])})
    assert found.sets[1].repeats == (1, 1)
    assert found.sets[2].repeats == (2,)


def test_a_control_that_another_set_plants_is_no_control():
    found = distinct_canaries({1: PINS, 2: made("my pin is {digits:2}", [("33", 1)])})
    assert [control.secret for control in found.sets[1].controls] == ["44"]
    assert (found.canaries, found.controls) == (0, 1)


def test_secrets_that_differ_by_case_are_two_of_one_template():
    names = made("{choice:Ann|ann|bob}", [("Ann", 1), ("ann", 1)])
    assert distinct_canaries({1: names}).sets == {1: names}
