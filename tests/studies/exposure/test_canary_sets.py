"""The exposure of whole canary sets, on models whose costs are written down."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from remnant.canaries import Canary, CanarySet, Template
from remnant.measures import pooled_exposure_test
from remnant.studies.exposure import audit as exposure_audit
from remnant.studies.exposure.audit import measure_exposure
from remnant.studies.exposure.canary_sets import _group, measure_canaries
from remnant.studies.exposure.result import CanaryExposure

TEMPLATE = Template("{digits:4}")


class Lover:
    """A model of digits that knows one secret: each digit of it is likely where it belongs."""

    def __init__(self, secret, share=0.99):
        self.secret, self.share = secret, share

    def encode(self, text):
        return [int(c) for c in text]

    def start(self, prefix_ids):
        return self._answers(torch.ones(1, dtype=torch.bool), 0), (torch.ones(1).bool(), 0)

    def step(self, state, token_ids):
        knows, at = state
        knows = knows & (token_ids == int(self.secret[at]))
        return self._answers(knows, at + 1), (knows, at + 1)

    def take(self, state, rows):
        return state[0][rows], state[1]

    def _answers(self, knows, at):
        # Unequal odds, so that few secrets tie.
        odds = torch.linspace(1.0, 2.0, 10, dtype=torch.float64).repeat(len(knows), 1)
        odds = odds / odds.sum(1, keepdim=True)
        if at < len(self.secret):
            odds[knows] *= 1 - self.share
            odds[knows, int(self.secret[at])] += self.share
        return odds.log()


def drawn(planted, repeats, controls):
    canaries = [Canary(TEMPLATE.text(s), s) for s in (*planted, *controls)]
    return CanarySet(
        template=TEMPLATE,
        canaries=tuple(canaries[: len(planted)]),
        repeats=tuple(repeats),
        controls=tuple(canaries[len(planted) :]),
        seed=0,
    )


@pytest.fixture
def canaries():
    return drawn(["0000", "4711", "2222"], [1, 16, 1], ["1234", "9876"])


def rng():
    return np.random.default_rng(0)


def test_each_agrees_with_an_audit_of_all_and_the_groups_with_their_members(canaries):
    model = Lover("4711")
    found = measure_canaries(model, canaries, rng=rng(), method="exact")
    names = ["canary 1", "canary 2", "canary 3", "control 1", "control 2"]
    assert [one.name for one in found.each] == names
    assert [one.repeats for one in found.each] == [1, 16, 1, 0, 0]
    secrets = ["0000", "4711", "2222", "1234", "9876"]
    audit = measure_exposure(
        model, TEMPLATE, secrets=secrets, rng=rng(), method="exact", references=0
    )
    named = zip(audit.each, names, [1, 16, 1, 0, 0], strict=True)
    assert list(found.each) == [replace(one, name=n, repeats=times) for one, n, times in named]
    assert found.each[1].rank == 1
    assert [(group.repeats, group.n) for group in found.groups] == [(1, 2), (16, 1), (0, 2)]
    bits = [found.each[0].bits, found.each[2].bits]
    assert found.groups[0].mean_bits == pytest.approx(sum(bits) / 2)
    assert found.groups[0].median_bits == pytest.approx(sum(bits) / 2), "of two, the mean"
    assert found.groups[0].p_value == pytest.approx(pooled_exposure_test(bits).p_value)


def test_exact_ranks_need_no_references_unless_a_fit_is_asked_for(canaries):
    model = Lover("4711")
    found = measure_canaries(model, canaries, rng=rng())
    assert (found.method, found.n_references) == ("exact", 256)
    fitted = measure_canaries(model, canaries, rng=rng(), fit=True, references=2000)
    assert (fitted.method, fitted.n_references) == ("exact", 2000)
    assert fitted.extrapolated is not None
    asked = measure_canaries(model, canaries, rng=rng(), method="exact")
    assert (asked.method, asked.n_references, asked.nodes < found.nodes) == ("exact", 0, True)


@pytest.mark.parametrize("method", ["auto", "sampled"])
def test_nothing_is_fitted_unless_a_fit_is_asked_for(canaries, method, monkeypatch):
    fits = []
    fit = exposure_audit.extrapolated_exposure

    def counted(**losses):
        fits.append(len(losses["reference_losses"]))
        return fit(**losses)

    monkeypatch.setattr(exposure_audit, "extrapolated_exposure", counted)
    options = {"method": method, "references": 500}
    plain = measure_canaries(Lover("4711"), canaries, rng=rng(), fit=False, **options)
    assert (plain.extrapolated, fits) == (None, [])
    assert {one.skew_normal_bits for one in plain.each} == {None}
    fitted = measure_canaries(Lover("4711"), canaries, rng=rng(), fit=True, **options)
    assert fitted.extrapolated is not None
    assert fits == [500]
    assert [one.bits for one in fitted.each] == [one.bits for one in plain.each]


def test_a_saturated_canary_is_ranked_in_a_walk_of_its_own(canaries):
    model = Lover("4711", share=1 - 1e-6)
    found = measure_canaries(model, canaries, rng=rng(), references=500, max_nodes=300)
    assert (found.method, found.walked) == ("sampled", ("canary 2",))
    assert [one.method for one in found.each] == [
        *("sampled", "exact", "sampled"),
        *("sampled", "sampled"),
    ]
    assert found.each[1].rank == 1
    assert found.each[1].bits == math.log2(10_000)
    assert not found.groups[1].at_least
    sampled = measure_canaries(model, canaries, rng=rng(), references=500, method="sampled")
    assert sampled.walked == ()
    assert sampled.each[1].saturated
    assert sampled.groups[1].at_least
    others = [0, 2, 3, 4]
    assert [found.each[at] for at in others] == [sampled.each[at] for at in others]


def test_calibrated_costs_are_sampled_once(canaries):
    model, other = Lover("4711"), Lover("0000", share=0.5)
    found = measure_canaries(model, canaries, rng=rng(), references=400, reference_models=[other])
    assert (found.method, found.calibrated, found.n_references) == ("sampled", True, 400)
    assert found.walked == ()


def test_too_few_shared_references_leave_a_group_untested(canaries):
    found = measure_canaries(Lover("4711"), canaries, rng=rng(), references=25, method="sampled")
    once, often, controls = found.groups
    assert once.p_value is None
    assert "shared_references=25" in (once.p_value_reason or "")
    assert often.p_value is not None
    assert (controls.p_value, controls.mean_bits >= 0) == (None, True)


def test_exact_bits_in_the_place_of_saturated_ones_keep_the_size_of_the_test():
    generator = np.random.default_rng(0)
    canaries, references, runs = 5, 100, 4000
    rejected = 0
    for _ in range(runs):
        shares = generator.random((canaries, 1))
        k = (generator.random(references) <= shares).sum(1)
        bits = np.where(k > 0, np.log2((references + 1) / (k + 1)), -np.log2(shares[:, 0]))
        rows = [
            CanaryExposure(
                name="canary",
                trial=0,
                repeats=1,
                uses=0,
                bits=b,
                low=b,
                high=b,
                rank=None if n else 1,
                cost=1.0,
                saturated=False,
                skew_normal_bits=None,
                twin_bits=None,
            )
            for n, b in zip(k.tolist(), bits.tolist(), strict=True)
        ]
        p_value = _group(rows, references).p_value
        assert p_value is not None
        rejected += p_value <= 0.05
    assert rejected / runs < 0.06  # 0.055 at most by shared references; the error is 0.0036


def test_a_walk_that_a_budget_ended_gives_bounds_that_are_not_tested(canaries):
    found = measure_canaries(Lover("4711"), canaries, rng=rng(), method="exact", max_nodes=20)
    assert [one.ended for one in found.each] == [True] * 5
    assert not any(one.exact for one in found.each)
    for one in found.each:
        assert one.rank_low < one.rank
        assert one.at_least == one.low
    for group in found.groups:
        assert (group.at_least, group.p_value) == (True, None)
        assert group.p_value_reason == "a budget ended the walk, and bounds are not tested"
    whole = measure_canaries(Lover("4711"), canaries, rng=rng(), method="exact")
    assert [(one.ended, one.exact, one.at_least) for one in whole.each] == [(False, True, None)] * 5
    for bound, one in zip(found.each, whole.each, strict=True):
        assert bound.rank_low <= one.rank <= bound.rank


def test_a_saturated_value_is_at_least_the_lower_end_of_its_interval(canaries):
    model = Lover("4711", share=1 - 1e-6)
    found = measure_canaries(model, canaries, rng=rng(), references=500, method="sampled")
    one, group = found.each[1], found.groups[1]
    assert one.saturated
    assert one.at_least == one.low < one.bits
    assert (group.mean_low, group.mean_bits) == (one.low, one.bits)
    assert found.groups[0].mean_low == found.groups[0].mean_bits
    assert group.median_bits == one.low, "saturated values enter with their lower ends"
    assert group.median.at_least


@pytest.mark.parametrize("references", [9995, 20_000])
def test_sampling_that_drew_all_secrets_is_exact(canaries, references):
    model = Lover("4711")
    sampled = measure_canaries(model, canaries, rng=rng(), method="sampled", references=references)
    assert (sampled.method, sampled.reason) == ("exact", "exact: all 10 000 secrets were scored")
    exact = measure_canaries(model, canaries, rng=rng(), method="exact")
    for one, other in zip(sampled.each, exact.each, strict=True):
        assert (one.method, one.ended, one.exact) == ("exact", False, True)
        assert one.rank_low <= other.rank <= one.rank
        assert one.bits == pytest.approx(other.bits, abs=0.01)
    fewer = measure_canaries(model, canaries, rng=rng(), method="sampled", references=9994)
    assert fewer.method == "sampled"
