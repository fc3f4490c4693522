"""``plant`` is a draw and an insertion in one."""

from __future__ import annotations

import numpy as np

from remnant import Template, plant
from remnant.canaries import insert_into_texts, make_canary_set

TEXTS = [f"text {at}" for at in range(20)]


def test_it_gives_what_its_two_steps_give():
    planted = plant(TEXTS, "pin {digits:4}", repeats=[1, 3], controls=5, seed=7)
    drawn = make_canary_set(Template("pin {digits:4}"), repeats=[1, 3], controls=5, seed=7)
    texts, where = insert_into_texts(TEXTS, drawn, rng=np.random.default_rng(7))
    assert planted.canaries.fingerprint == drawn.fingerprint
    assert planted.texts == texts
    np.testing.assert_array_equal(planted.where, where)


def test_the_texts_stay_and_no_repr_holds_a_secret():
    planted = plant(TEXTS, Template("pin {digits:4}"), repeats=[2])
    (canary,) = planted.canaries.canaries
    assert [text for text in planted.texts if text != canary.text] == TEXTS
    assert planted.texts.count(canary.text) == 2
    assert canary.secret not in repr(planted)


def test_without_a_seed_each_call_draws_other_canaries():
    first, second = (plant(TEXTS, "pin {digits:9}").canaries.fingerprint for _ in range(2))
    assert first != second
