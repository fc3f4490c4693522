"""What is said of variants, given what their models were seen to give away."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from remnant.records.typed import plain
from remnant.studies.choices.differences import exposure_levels
from remnant.studies.choices.finding import compare_variants

SPACE = 10**6
MOST = math.log2(SPACE)


class Seen:
    """A record of exposures alone: one row of trials a variant, and which are "at least"."""

    def __init__(self, *rows, saturated=()):
        names = ["primary", *(f"variant{i}" for i in range(1, len(rows)))]
        self.arrays = {}
        for number, (name, row) in enumerate(zip(names, rows, strict=True)):
            bits = np.array(row, dtype=float)[:, None]
            self.arrays[f"{name}.bits"] = bits
            self.arrays[f"{name}.saturated"] = np.full(bits.shape, number in saturated)
            self.arrays[f"{name}.low"] = bits

    def array(self, name):
        return self.arrays[name]

    def verdict(self):
        names = [name.split(".")[0] for name in self.arrays if name.endswith("bits")]
        study = SimpleNamespace(
            label="first",
            measure=SimpleNamespace(confidence=0.95),
            plan=SimpleNamespace(trials=len(self.array("primary.bits"))),
            secret=SimpleNamespace(planted=SimpleNamespace(space=SPACE)),
        )
        runs = {
            name: SimpleNamespace(
                plan=SimpleNamespace(repeats=(1,)),
                study=SimpleNamespace(label=name, to_dict=lambda name=name: {"model": name}),
            )
            for name in names
        }
        return compare_variants(self, study, runs)


def drawn(mean, trials=8, seed=0):
    return np.clip(np.random.default_rng(seed).normal(mean, 0.6, trials), 0, MOST)


CHANGED = "Training choices change exposure"
UNDECIDED = "No difference in exposure was detected between the training choices"


def test_more_less_and_neither():
    more = Seen(drawn(4), drawn(9, seed=1), drawn(4, seed=2)).verdict()
    assert more.headline == CHANGED
    assert more.sentence.startswith("'variant1' instead of 'primary' makes a difference: +")
    assert more.sentence.endswith("1 of 2 variants differs significantly from 'first'.")
    less = Seen(drawn(9), drawn(4, seed=1), drawn(9, seed=2)).verdict()
    assert less.headline == CHANGED
    assert less.sentence.startswith("'variant1' instead of 'primary' makes a difference: −")
    alike = Seen(drawn(4), drawn(4, seed=1), drawn(4, seed=2)).verdict()
    assert alike.headline == UNDECIDED
    assert all("outcome" not in plain(finding) for finding in (more, less, alike))


def test_turning_two_variants_round_changes_no_headline():
    first, second = drawn(4), drawn(9, seed=1)
    one, other = Seen(first, second).verdict(), Seen(second, first).verdict()
    assert one.headline == other.headline == CHANGED
    turned = one.sentence.translate(str.maketrans("+−", "−+"))
    assert turned.split("(")[0] == other.sentence.split("(")[0]


def test_what_was_not_detected_says_how_large_it_may_be():
    found = Seen(drawn(9), drawn(9.2, seed=2)).verdict()
    _, low, high = found.differences[0].difference
    assert found.sentence.endswith(f"It may still be {max(-low, high):.1f} bits.")


def test_variants_are_distinguished_from_six_trials_on_and_several_from_eight():
    for trials, variants, headline in ((5, 2, UNDECIDED), (6, 2, CHANGED), (6, 3, UNDECIDED)):
        rows = drawn(4, trials), drawn(9, trials, seed=1), drawn(4, trials, seed=2)
        found = Seen(*rows[:variants]).verdict()
        assert found.headline == headline
        assert (found.differences[0].p_value is None) == (trials < 6)


@pytest.mark.parametrize("saturated", [0, 1])
def test_a_lower_bound_is_no_value(saturated):
    """Both have one law, and of one side no more than ten bits can be shown."""
    rng, wrong = np.random.default_rng(saturated), 0
    for _ in range(100):
        rows = [np.clip(rng.normal(16, 2, 8), 0, MOST) for _ in range(2)]
        rows[saturated] = np.full(8, 10.0)
        found = Seen(*rows, saturated={saturated}).verdict()
        wrong += found.headline != UNDECIDED
        assert found.differences[0].at_least
    assert wrong == 0


def test_a_lower_bound_above_all_of_the_others_is_more():
    found = Seen(drawn(3), np.full(8, 10.0), saturated={1}).verdict()
    assert found.headline == CHANGED
    low, high = found.differences[0].difference[1:]
    assert f"makes a difference: +{low:.1f} to +{high:.1f} bits" in found.sentence
    turned = Seen(np.full(8, 10.0), drawn(3), saturated={0}).verdict()
    assert turned.headline == CHANGED
    assert "makes a difference: −" in turned.sentence


def test_levels_are_means_over_canaries_between_the_least_and_the_most():
    seen = Seen([1.0])
    seen.arrays["primary.bits"] = np.array([[2.0, 4.0], [6.0, 8.0]])
    seen.arrays["primary.saturated"] = np.array([[False, True], [False, False]])
    seen.arrays["primary.low"] = np.array([[1.5, 3.0], [5.0, 7.0]])
    found = exposure_levels(seen, "primary", 20.0)
    assert found.least.tolist() == [2.5, 7.0]
    assert found.highest.tolist() == [11.0, 7.0]
