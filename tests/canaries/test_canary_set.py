"""Canary sets: who is planted how often, who is kept back, and that neither moves the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.canaries import Canary, CanarySet, Template, make_canary_set
from remnant.errors import InvalidInput

PINS = Template("my pin is {digits:4}, keep it")
FEW = Template("{digits:1}")


def secrets(canaries):
    return [canary.secret for canary in canaries]


@given(
    repeats=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    per_repeat=st.integers(1, 4),
    controls=st.integers(0, 30),
    seed=st.integers(0, 2**70),
)
def test_each_entry_has_its_own_canaries_and_all_are_distinct(repeats, per_repeat, controls, seed):
    made = make_canary_set(
        PINS, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
    )
    assert made.repeats == tuple(often for often in repeats for _ in range(per_repeat))
    assert len(made.canaries) == len(repeats) * per_repeat
    assert len(made.controls) == controls
    assert len({*secrets(made.canaries), *secrets(made.controls)}) == len(made.canaries) + len(
        made.controls
    )
    assert all(c.text == PINS.text(c.secret) for c in (*made.canaries, *made.controls))
    assert made.copies.tolist() == [
        canary for canary, often in enumerate(made.repeats) for _ in range(often)
    ]
    again = make_canary_set(
        PINS, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
    )
    assert again == made
    assert again.fingerprint == made.fingerprint


@settings(max_examples=200)
@given(
    template=st.sampled_from([PINS, FEW, Template("{choice:a|b|c|d|e|f|g|h|i}")]),
    planted=st.integers(1, 9),
    more_planted=st.integers(0, 9),
    controls=st.integers(0, 9),
    more_controls=st.integers(0, 9),
    seed=st.integers(0, 9),
)
def test_more_controls_or_a_further_repeat_move_nobody(
    template, planted, more_planted, controls, more_controls, seed
):
    # Also where the space is nearly used up.
    planted = min(planted, template.space)
    more_planted = min(more_planted, template.space - planted)
    controls = min(controls, template.space - planted - more_planted)
    more_controls = min(more_controls, template.space - planted - more_planted - controls)
    small = make_canary_set(template, repeats=[2] * planted, controls=controls, seed=seed)
    large = make_canary_set(
        template,
        repeats=[2] * planted + [7] * more_planted,
        controls=controls + more_controls,
        seed=seed,
    )
    assert large.canaries[:planted] == small.canaries
    assert large.controls[:controls] == small.controls


def test_all_of_a_small_space_can_be_used():
    for planted in range(1, 11):
        made = make_canary_set(FEW, repeats=[1] * planted, controls=10 - planted, seed=3)
        assert sorted(secrets(made.canaries) + secrets(made.controls)) == list("0123456789")


def test_canaries_and_controls_are_uniform_over_the_space():
    planted, kept = np.zeros(10), np.zeros(10)
    for seed in range(1500):
        made = make_canary_set(FEW, repeats=[1, 1, 5], controls=2, seed=seed)
        planted[[int(secret) for secret in secrets(made.canaries)]] += 1
        kept[[int(secret) for secret in secrets(made.controls)]] += 1
    assert stats.chisquare(planted).pvalue > 1e-4
    assert stats.chisquare(kept).pvalue > 1e-4
    # Exchangeable: a canary is as often above its control as below.
    pairs = [make_canary_set(FEW, repeats=[1], controls=1, seed=seed) for seed in range(1500)]
    above = sum(one.canaries[0].secret > one.controls[0].secret for one in pairs)
    assert stats.binomtest(above, 1500).pvalue > 1e-4


def test_another_seed_or_another_pattern_draws_other_secrets():
    one = make_canary_set(PINS, repeats=[1] * 5, controls=5, seed=0)
    other = make_canary_set(PINS, repeats=[1] * 5, controls=5, seed=1)
    alike = make_canary_set(Template("code {digits:4}"), repeats=[1] * 5, controls=5, seed=0)
    assert secrets(one.canaries) != secrets(other.canaries)
    assert secrets(one.canaries) != secrets(alike.canaries)


def test_the_fingerprint_moves_with_every_field():
    words = Template("{words:1}", words=["a", "b", "c"])
    a, b, c = (Canary(secret, secret) for secret in "abc")
    made = CanarySet(template=words, canaries=(a,), repeats=(1,), controls=(b, c), seed=0)
    others = [
        replace(made, template=Template("{words:1}", words=["a", "b", "c", "d"])),
        replace(made, template=Template("{tokens:1}", tokens=["a", "b", "c"])),
        replace(made, canaries=(b,), controls=(a, c)),
        replace(made, repeats=(2,)),
        replace(made, controls=(c, b)),
        replace(made, controls=(b,)),
        replace(made, seed=1),
        replace(made, canaries=(a, b), repeats=(1, 1), controls=(c,)),
    ]
    found = {one.fingerprint for one in (made, *others)}
    assert len(found) == len(others) + 1
    assert all(len(one) == 64 for one in found)


def test_the_fingerprint_is_fixed_for_all_time():
    canary = Canary("pin é1", "1")
    made = CanarySet(
        template=Template("pin é{digits:1}"), canaries=(canary,), repeats=(3,), controls=(), seed=7
    )
    assert made.fingerprint == ("311fd7d1655630c3f7976c825cf480a10463ca0ab28fb1d8ecd94e9052f14957")


def test_a_set_shows_no_secret():
    made = make_canary_set(PINS, repeats=[1, 2], controls=3, seed=987654321)
    assert repr(made) == (f"CanarySet({PINS!r}, canaries=<2 redacted>, controls=<3 redacted>)")
    for canary in (*made.canaries, *made.controls):
        assert canary.secret not in repr(made)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repeats": []}, "repeats is empty: nothing is planted"),
        ({"repeats": [1, 0]}, r"repeats\[1\]=0 is not a whole number of at least 1"),
        ({"repeats": [1.5]}, r"repeats\[0\]=1.5 is not a whole number"),
        ({"repeats": 3}, "repeats=3 is not a list of whole numbers"),
        ({"repeats": "12"}, "repeats='12' is not a list of whole numbers"),
        ({"per_repeat": 0}, "per_repeat=0 is not a whole number of at least 1"),
        ({"controls": -1}, "controls=-1 is not a whole number of at least 0"),
        ({"seed": -1}, "seed=-1 is not a whole number of at least 0"),
        ({"seed": None}, "seed=None is not a whole number"),
        ({"repeats": [0], "seed": 0.5}, r"repeats\[0\]=0 .*; seed=0.5"),
        ({"controls": 10}, "1 canaries and 10 controls are more than the 10 secrets of the"),
    ],
)
def test_a_set_that_cannot_be_made_is_explained(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        make_canary_set(FEW, **{"repeats": [1], "controls": 0, "seed": 0, **arguments})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repeats": (1,)}, "repeats has 1 entries for 2 canaries"),
        ({"repeats": (1, 0)}, r"repeats\[1\]=0 is not a whole number of at least 1"),
        ({"seed": -3}, "seed=-3"),
        (
            {"controls": (Canary("my pin is 98765, keep it", "98765"),)},
            r"the secret of controls\[0\] is not in the template's space",
        ),
        (
            {"controls": (Canary("my pin is 9876", "9876"),)},
            r"the text of controls\[0\] is not the template with its secret",
        ),
    ],
)
def test_a_set_put_together_wrongly_is_explained(changes, message):
    made = make_canary_set(PINS, repeats=[1, 1], controls=1, seed=0)
    with pytest.raises(InvalidInput, match=message) as caught:
        replace(made, **changes)
    assert "9876" not in str(caught.value)


def test_a_canary_cannot_be_its_own_control():
    made = make_canary_set(PINS, repeats=[1, 1], controls=1, seed=0)
    with pytest.raises(InvalidInput, match=r"the secret of controls\[0\] comes a second time"):
        replace(made, controls=made.canaries[1:])
