"""A protect list is as short as it may be, and a new run keeps to the rate that it states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import protect_rule


def run(rng, *, n=400, memorised=40, shift=2.0, between=0.0):
    """One run's risks and truth: memorised samples stand out by ``shift``, give or take."""
    truth = np.arange(n) < memorised
    return rng.normal(size=n) + truth * (shift + between * rng.normal()), truth


def missed(rule, risk, truth):
    return float(np.mean(~rule.listed(risk)[truth]))


@pytest.mark.parametrize(
    ("runs", "between", "memorised"),
    [
        (1, 0.0, 40),
        (1, 0.0, 150),
        (2, 0.3, 40),
        (3, 0.0, 20),
        (3, 0.3, 60),
        (5, 0.5, 40),
        (7, 0.3, 150),
    ],
)
def test_a_new_run_keeps_to_the_stated_rate(runs, between, memorised):
    """One run knows nothing of how runs differ, so that it is only asked about alike ones."""
    rng = np.random.default_rng(runs + memorised)
    audits, confidence = 300, 0.9
    broken = 0
    for _ in range(audits):
        *made_on, new = [run(rng, memorised=memorised, between=between) for _ in range(runs + 1)]
        risks, truths = zip(*made_on, strict=True)
        rule = protect_rule(risks=risks, memorised=truths, miss=0.3, confidence=confidence)
        assert rule.stated <= 0.3
        assert rule.runs == runs
        broken += missed(rule, *new) > rule.stated
    # More breaches than chance would allow at the nominal rate fail the test.
    assert stats.binom.sf(broken - 1, audits, 1 - confidence) > 1e-3, broken / audits


def test_what_so_few_runs_cannot_exclude_is_said():
    """One run does not see a predictor that fails in 15 % of trainings; its list breaks for it."""
    rng = np.random.default_rng(1)
    audits, broken = 300, 0
    for _ in range(audits):
        shifts = np.where(rng.random(2) < 0.15, 0.0, 2.0)
        made_on, new = (run(rng, n=1000, memorised=100, shift=shift) for shift in shifts)
        rule = protect_rule(risks=[made_on[0]], memorised=[made_on[1]], miss=0.3)
        broken += missed(rule, *new) > rule.stated
    assert broken > 0.12 * audits, "more often than the 10 % that it states"
    some = [run(rng) for _ in range(2)]
    risks, truths = zip(*some, strict=True)
    one = protect_rule(risks=risks[:1], memorised=truths[:1], miss=0.3)
    assert one.not_excluded == "one training does not show how trainings differ"
    two = protect_rule(risks=risks, memorised=truths, miss=0.5)
    assert two.not_excluded.startswith("2 trainings cannot exclude that up to 78% of trainings ")
    whole = protect_rule(risks=[rng.normal(size=400)], memorised=truths[:1], miss=0.001)
    assert (whole.share, whole.not_excluded) == (1.0, "")


TIED = {
    "whole numbers": lambda risk, rng: np.round(risk),
    "four levels": lambda risk, rng: np.clip(np.round(risk), 0.0, 3.0),
    "counts": lambda risk, rng: rng.poisson(np.exp(0.7 * risk)).astype(float),
}


@pytest.mark.parametrize("tied", TIED)
@pytest.mark.parametrize(("runs", "between"), [(1, 0.0), (3, 0.0), (3, 0.15)])
def test_a_new_run_keeps_to_the_stated_rate_where_risks_tie(tied, runs, between):
    rng = np.random.default_rng(runs)
    audits, confidence, broken, left_out, stated_for = 300, 0.9, 0, [], []
    for _ in range(audits):
        drawn = [run(rng, memorised=40, between=between) for _ in range(runs + 1)]
        *made_on, new = [(TIED[tied](risk, rng), truth) for risk, truth in drawn]
        risks, truths = zip(*made_on, strict=True)
        rule = protect_rule(risks=risks, memorised=truths, miss=0.3, confidence=confidence)
        assert rule.listed(new[0]).sum() == round(rule.share * 400)
        left_out.append(missed(rule, *new))
        stated_for.append(rule.missed.mean())
        broken += left_out[-1] > rule.stated
    assert stats.binom.sf(broken - 1, audits, 1 - confidence) > 1e-3, broken / audits
    # What the rule counts for its own runs is what new ones miss on average, but for being chosen.
    assert abs(np.mean(left_out) - np.mean(stated_for)) < 0.03


def slow_bound(left_out, counts, confidence):
    """The definition, run by run: the largest of three predictions of the next one's rate."""
    runs, out, total = len(counts), sum(left_out), sum(counts)
    new = round(total / runs)
    found = [stats.betabinom.ppf(confidence, new, out + 1, total - out) / new]
    reach = stats.t.ppf(confidence, runs - 1) * np.sqrt(1 + 1 / runs)
    rates = [k / n for k, n in zip(left_out, counts, strict=True)]
    middle = (out + 1) / (total + 2)
    counting = np.mean([middle * (1 - middle) / n for n in counts])
    found.append(np.mean(rates) + reach * np.sqrt(max(np.var(rates, ddof=1), counting)))
    arcs = [
        np.arcsin(np.sqrt((k + 3 / 8) / (n + 3 / 4))) for k, n in zip(left_out, counts, strict=True)
    ]
    end = np.mean(arcs) + reach * np.std(arcs, ddof=1)
    found.append(np.sin(min(end, np.pi / 2)) ** 2)
    return min(max(found), 1.0)


@settings(max_examples=40)
@given(seed=st.integers(0, 999), runs=st.integers(2, 5), confidence=st.floats(0.6, 0.98))
def test_the_stated_rate_and_the_chance_are_those_of_the_definition(seed, runs, confidence):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 60, runs)
    made_on = [run(rng, n=300, memorised=size, between=0.4) for size in sizes]
    risks, truths = zip(*made_on, strict=True)
    rule = protect_rule(risks=risks, memorised=truths, miss=0.3, confidence=confidence)
    left_out = rule.missed * sizes
    assert rule.memorised.tolist() == sizes.tolist()
    if rule.share < 1:
        assert rule.stated == pytest.approx(slow_bound(left_out, sizes, confidence))
    # The chance of a rate is one less the confidence that would state it.
    n = round(sizes.mean())
    for missed in range(1, n + 1, 7):
        chance = rule.chance(missed=missed, memorised=n)
        if 1e-6 < chance < 0.4:
            assert slow_bound(left_out, sizes, 1 - chance * 0.999) >= missed / n - 1e-9
            assert slow_bound(left_out, sizes, 1 - chance * 1.001) <= missed / n + 1e-9
    chances = [rule.chance(missed=missed, memorised=n) for missed in range(n + 1)]
    assert chances[0] > 0.5
    assert np.all(np.diff(chances) <= 1e-12)


def test_the_list_is_no_longer_than_it_must_be():
    """The next shorter list of the grid would not stand, by the definition of the bound."""
    rng = np.random.default_rng(0)
    risk, truth = run(rng, n=1000, memorised=100)
    rule = protect_rule(risks=[risk], memorised=[truth], miss=0.2, confidence=0.9)

    def bound(share):
        order = np.argsort(-risk)[: round(share * risk.size)]
        out = 100 - truth[order].sum()
        return stats.betabinom.ppf(0.9, 100, out + 1, 100 - out) / 100

    assert rule.stated == pytest.approx(bound(rule.share))
    assert bound(rule.share) <= 0.2 < bound(rule.share - 0.005)
    assert rule.missed[0] == pytest.approx(missed(rule, risk, truth))
    assert rule.listed(risk).sum() == round(rule.share * 1000)


def test_runs_that_differ_need_a_longer_list_than_runs_that_agree():
    rng = np.random.default_rng(1)
    truth = np.arange(400) < 40
    noise = [rng.normal(size=400) for _ in range(3)]
    alike = [one + 2.0 * truth for one in noise]
    apart = [one + shift * truth for one, shift in zip(noise, (1.0, 2.0, 3.0), strict=True)]
    short, long = (
        protect_rule(risks=risks, memorised=[truth] * 3).share for risks in (alike, apart)
    )
    assert short < long


def test_risks_that_say_nothing_list_nearly_everything_and_few_memorised_list_all():
    rng = np.random.default_rng(2)
    truth = np.arange(400) < 40
    rule = protect_rule(risks=[rng.normal(size=400)], memorised=[truth], miss=0.1)
    assert rule.share > 0.9
    few = np.arange(400) < 2
    whole = protect_rule(risks=[rng.normal(size=400)], memorised=[few], miss=0.05)
    assert whole.share == 1.0
    assert whole.stated == 0.0
    assert whole.listed(rng.normal(size=9)).all()


@settings(max_examples=40)
@given(seed=st.integers(0, 999), scale=st.floats(0.1, 50), shift=st.floats(-9, 9))
def test_only_ranks_within_a_run_count(seed, scale, shift):
    rng = np.random.default_rng(seed)
    runs = [run(rng, n=120, memorised=20) for _ in range(2)]
    risks, truths = zip(*runs, strict=True)
    rule = protect_rule(risks=risks, memorised=truths)
    other = protect_rule(risks=[risks[0], scale * risks[1] + shift], memorised=truths)
    assert (other.share, other.stated) == (rule.share, rule.stated)


def test_of_samples_that_tie_at_the_end_as_many_as_there_is_room_for_are_listed():
    rng = np.random.default_rng(3)
    risk, truth = run(rng)
    rule = protect_rule(risks=[risk], memorised=[truth])
    tied = np.repeat([3.0, 2.0, 1.0], [1, 200, 199])
    room = round(rule.share * 400)
    assert 1 < room < 201
    listed = rule.listed(tied)
    assert listed.sum() == room
    assert listed[0]
    assert not listed[201:].any()
    np.testing.assert_array_equal(rule.listed(tied), listed)
    other = rule.listed(tied, rng=rng)
    assert other.sum() == room
    assert (other != listed).any()
    assert abs(np.flatnonzero(listed[1:201]).mean() - 99.5) < 25, "not those that come first"


@settings(max_examples=40)
@given(seed=st.integers(0, 999), share=st.integers(1, 199))
def test_misses_among_ties_are_expected_over_their_order(seed, share):
    rng = np.random.default_rng(seed)
    risk, truth = rng.integers(0, 4, 60).astype(float), np.arange(60) < 12
    room = int(np.floor(share / 200 * 60 + 1e-9))
    expected = 0.0
    for one in risk[truth]:
        ahead, tied = np.sum(risk > one), np.sum(risk == one)
        expected += 1.0 - min(max((room - ahead) / tied, 0.0), 1.0)
    rule = replace(protect_rule(risks=[risk], memorised=[truth]), share=share / 200)
    drawn = [np.sum(truth & ~rule.listed(risk, rng=rng)) for _ in range(300)]
    assert abs(np.mean(drawn) - expected) < 5 * (np.std(drawn) / np.sqrt(300) + 1e-9)


def test_faults_are_named():
    truth = [True, False, False]
    with pytest.raises(InvalidInput, match=r"miss=2 is not between 0 and 1.*risks of 2 and mem"):
        protect_rule(risks=[[1.0, 2.0, 3.0]] * 2, memorised=[truth], miss=2)
    with pytest.raises(InvalidInput, match="memorised is not one True or False for each of 2"):
        protect_rule(risks=[[1.0, 2.0]], memorised=[truth])
    with pytest.raises(InvalidInput, match="NaN"):
        protect_rule(risks=[[1.0, np.nan, 2.0]], memorised=[truth])
    rule = protect_rule(risks=[[1.0, 2.0, 3.0]], memorised=[truth])
    with pytest.raises(InvalidInput, match="missed=4 of memorised=3 cannot be"):
        rule.chance(missed=4, memorised=3)
    with pytest.raises(InvalidInput, match=r"missed=0.5 is not a whole number"):
        rule.chance(missed=0.5, memorised=3)
    with pytest.raises(NotEnoughEvidence, match="run 1 memorised none"):
        protect_rule(risks=[[1.0, 2.0, 0.0]] * 2, memorised=[truth, [False] * 3])
