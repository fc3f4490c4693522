"""The exposure gate: known answers, what it says where there is nothing, and how often it errs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from remnant.errors import NotEnoughEvidence
from remnant.measures import exposure, pooled_exposure_test
from remnant.measures.exposure.by_rank import limit_for
from remnant.records.outcomes import RULES
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.exposure.verdict import (
    CanaryPool,
    canaries_needed,
    judge_exposure,
)

CEILING = 20.0
UNUSED = {"uses": 0, "cost": 0.0, "skew_normal_bits": None, "twin_bits": None}  # by the gate


def canary(repeats, bits, low=None, high=None, *, trial=0, saturated=False, sampled=None):
    low, high = bits if low is None else low, bits if high is None else high
    return CanaryExposure(
        name="canary" if repeats else "control",
        repeats=repeats,
        trial=trial,
        bits=bits,
        low=low,
        high=high,
        saturated=saturated,
        rank=None if (low < high if sampled is None else sampled) else 1,
        **UNUSED,
    )


def pool(canaries, controls=(), *, twins=None, **given):
    """A pool with its own pooled tests; ``given`` p-values by ``p1``, ``p64`` and so on."""
    rows = [*canaries, *controls]
    p_values = {
        many: pooled_exposure_test([one.bits for one in rows if one.repeats == many]).p_value
        for many in {one.repeats for one in rows}
    }
    p_values |= {int(name[1:]): value for name, value in given.items()}
    return CanaryPool(tuple(canaries), tuple(controls), p_values, twins or {})


def judged(canaries, controls=(), *, twins=None, limit=10.0, most=1, share=None, **given):
    trainings = len({one.trial for one in canaries})
    p_values = {name: given.pop(name) for name in list(given) if name[1:].isdigit()}
    return judge_exposure(
        [pool(canaries, controls, twins=twins, **p_values)],
        limit=limit,
        judged=most,
        share=share,
        trainings=trainings,
        **given,
    )


OFTEN = [canary(64, 20.0), canary(64, 19.0)]


@pytest.mark.parametrize(
    ("canaries", "given", "outcome", "words"),
    [
        ([canary(1, 3.0), *OFTEN], {}, "PASS", "those planted 64 times were found"),
        ([canary(1, 12.0), *OFTEN], {}, "FAIL", "12.00 bits, at or above the limit of 10."),
        ([canary(1, 10.0), *OFTEN], {}, "FAIL", "at or above"),
        ([canary(1, 3.0), canary(64, 2.0)], {}, "INCONCLUSIVE", "plant some more often"),
        ([canary(1, 3.0), canary(64, 5.0)], {"p64": 0.03}, "INCONCLUSIVE", "were found"),
        ([canary(1, 3.0), canary(64, 5.0)], {"p64": None}, "INCONCLUSIVE", "were found"),
        # Corrected for two groups.
        ([canary(1, 3.0), canary(64, 7.0)], {"p64": 0.0051}, "INCONCLUSIVE", "were found"),
        ([canary(1, 3.0), canary(64, 7.0)], {"p64": 0.0049}, "PASS", "64 times were found"),
        (
            [canary(1, 3.0), canary(4, 9.0), canary(64, 2.0)],
            {"p4": 1e-9},
            "PASS",
            "planted 4 times",
        ),
        # Those judged are found themselves.
        (
            [canary(1, 9.0), canary(1, 8.5)],
            {},
            "PASS",
            "those planted once were found. 2 of 2 canaries planted once were under 10 bits in "
            "this model; yet detectably memorised, p = 7",
        ),
        (
            [canary(1, 9.0, 8.0, 12.0), *OFTEN],
            {},
            "INCONCLUSIVE",
            "may have up to 12.00 bits, and the limit is 10; draw several times as many "
            "references, or raise max_nodes.",
        ),
        (
            [canary(1, 9.0, 8.0, 12.0, sampled=False), *OFTEN],
            {},
            "INCONCLUSIVE",
            "the limit is 10; raise max_nodes.",
        ),
        (
            [canary(1, 9.97, 8.09, math.inf, saturated=True), canary(1, 8.0, 7.0, 9.0), *OFTEN],
            {},
            "INCONCLUSIVE",
            "may have any exposure, and the limit is 10; draw 7 600 references or more.",
        ),
        (
            [canary(1, 12.2, 10.3, 20.0, saturated=True), *OFTEN],
            {},
            "FAIL",
            "has an exposure of at least 10.30 bits, at or above the limit of 10.",
        ),
    ],
)
def test_outcomes(canaries, given, outcome, words):
    found = judged(canaries, **given)
    assert found.outcome == outcome
    assert words in found.sentence
    assert found.row()["rules"] == RULES


def test_a_fail_says_how_probable_it_is_by_chance():
    found = judged([canary(1, 10.5), *[canary(1, 1.0)] * 59, *OFTEN])
    said = "; chance alone puts 1 or more of 60 canaries there with probability 5.7 %."
    assert found.sentence.endswith(said)
    assert found.claim.endswith(said)
    assert found.chance == pytest.approx(0.0569, abs=1e-4)
    higher = judged([canary(1, 13.0), *[canary(1, 1.0)] * 59, *OFTEN], limit=12.6)
    assert (higher.outcome, "chance alone" in higher.sentence) == ("FAIL", False)


@pytest.mark.parametrize("n", [1, 7, 20, 60, 1000])
def test_chance_seldom_reaches_the_limit_that_follows_from_the_canaries(n):
    assert 1 - (1 - 2 ** -limit_for(n)) ** n <= 0.01 < 1 - (1 - 2 ** -(limit_for(n) - 0.1)) ** n


LOW = [canary(1, 3.0), *OFTEN]


@pytest.mark.parametrize(
    ("own", "fault", "outcome", "words"),
    [
        (LOW, "", "PASS", "were found"),
        (LOW, "it saw them", "INCONCLUSIVE", "calibrated; but it saw them. Pass a reference model"),
        ([canary(1, 12.0), *OFTEN], "", "INCONCLUSIVE", "but without the reference models, canary"),
        # The positive control may be found with calibration alone.
        ([canary(1, 3.0), canary(64, 2.0)], "", "PASS", "were found"),
    ],
)
def test_reference_models_make_no_pass(own, fault, outcome, words):
    found = judged(LOW, uncalibrated=[pool(own)], reference_fault=fault)
    assert found.outcome == outcome
    assert words in found.sentence
    failed = judged([canary(1, 12.0), *OFTEN], uncalibrated=[pool(own)], reference_fault=fault)
    assert failed.outcome == "FAIL"


def test_twins_that_are_as_exposed_are_no_positive_control():
    canaries = [canary(1, 3.0), canary(64, 12.0)]
    assert judged(canaries, twins={64: 12.5}).outcome == "INCONCLUSIVE"
    assert judged(canaries, twins={64: 1.9}).outcome == "PASS"


def test_all_canaries_are_judged_unless_fewer_are_asked_for():
    canaries = [canary(1, 3.0), *OFTEN]
    found = judged(canaries, most=None)
    assert (found.outcome, found.judged) == ("FAIL", 3)
    under = judged([canary(1, 3.0), canary(64, 9.0), canary(64, 9.0)], most=None)
    assert (under.outcome, under.control, under.judged) == ("PASS", 64, 3)
    assert "yet detectably memorised where planted 64 times, p = " in under.claim
    assert under.detected
    assert under.row()["detected"] is True
    assert found.detected is found.row()["detected"] is True  # a FAIL, memorised as well
    nothing = judged([canary(1, 1.0), *OFTEN])
    assert (nothing.outcome, nothing.detected) == ("PASS", False)
    with pytest.raises(NotEnoughEvidence, match="no planted canary to judge"):
        judged(canaries, most=0)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (3, "3 of 3 canaries planted once were under 10 bits in this model; up to 63 % of such "
            "secrets may be above it (95 % confidence). One training: another may differ."),
        (20, "At most 14 % of canaries planted once have 10 bits or more in this model (95 % "
             "confidence): 20 of 20 were under it. One training: another may differ."),
        (80, "At most 3.7 % of canaries planted once have 10 bits or more in this model"),
    ],
)  # fmt: skip
def test_a_pass_states_its_bound(n, words):
    found = judged([canary(1, 1.0)] * n + OFTEN)
    assert found.outcome == "PASS"
    assert found.claim.startswith(words)
    assert found.sentence.endswith(found.claim)
    assert found.share_high == pytest.approx(1 - 0.05 ** (1 / n))


def test_sampled_exposures_leave_half_of_the_error_to_their_intervals():
    found = judged([canary(1, 1.0, 0.9, 1.1)] * 20 + OFTEN)
    assert found.share_high == pytest.approx(1 - 0.025 ** (1 / 20))


def test_a_pass_over_several_trainings_says_what_they_cannot_exclude():
    rows = [canary(many, bits, trial=t) for t in range(8) for many, bits in ((1, 1.0), (64, 19.0))]
    found = judged(rows)
    assert (found.outcome, found.trainings) == ("PASS", 8)
    assert found.claim == (
        "At most 31 % of canaries planted once have 10 bits or more in these 8 trainings (95 % "
        "confidence): 8 of 8 were under it. None of 8 trainings had a canary at or above it: up "
        "to 31 % of trainings may behave otherwise."
    )
    # One canary above it is allowed by a share, and named.
    rows += [canary(1, 1.0, trial=t) for t in range(8) for _ in range(9)]
    rows[0] = dataclasses.replace(rows[0], bits=11.0, low=11.0, high=11.0)
    allowed = judged(rows, share=0.1)
    assert (allowed.outcome, allowed.above) == ("PASS", 1)
    assert allowed.claim.endswith(
        "79 of 80 were under it. 1 of 8 trainings had a canary at or above it: up to 47 % of "
        "trainings may."
    )


@pytest.mark.parametrize(
    ("above", "n", "share", "outcome"),
    [
        (0, 13, 0.2, "INCONCLUSIVE"),
        (0, 14, 0.2, "PASS"),
        (1, 21, 0.2, "INCONCLUSIVE"),
        (1, 22, 0.2, "PASS"),
        (4, 20, 0.2, "INCONCLUSIVE"),
        (7, 20, 0.2, "INCONCLUSIVE"),
        (8, 20, 0.2, "FAIL"),
    ],
)
def test_a_share_is_held_by_its_bounds(above, n, share, outcome):
    rows = [canary(1, 12.0)] * above + [canary(1, 1.0)] * (n - above) + OFTEN
    found = judged(rows, share=share)
    assert found.outcome == outcome
    low, high = stats.beta.ppf([0.05, 0.95], [above or 1e-9, above + 1], [n - above + 1, n - above])
    assert (found.share_low, found.share_high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(
    ("often", "outcome", "words"),
    [
        # Of two groups: 0.025 ** (1 / 3) is 0.29 and 0.025 ** (1 / 4) is 0.40.
        (2, "INCONCLUSIVE", "But 2 of 2 canaries planted 64 times reach 10 bits, more than the "
                            "allowed 30 %. Judge canaries planted less often by themselves "
                            "(measure.judged = 1), or plant more of those planted 64 times."),
        (3, "INCONCLUSIVE", "37 of 40 were under it; 3 of 3 planted 64 times reach it; yet"),
        (4, "FAIL", "as have 4 of 4 canaries planted 64 times: more than the allowed 30 % of such "
                    "canaries (95 % confidence: 40 % or more)."),
    ],
)  # fmt: skip
def test_a_share_is_not_diluted_over_repeats(often, outcome, words):
    rows = [canary(1, 1.0)] * (40 - often) + [canary(64, 19.0 + at / 8) for at in range(often)]
    found = judged(rows, most=None, share=0.3)
    assert (found.outcome, found.above, found.judged) == (outcome, often, 40)
    assert words in found.sentence
    assert found.claim == (
        f"No claim: {often} of {often} canaries planted 64 times reach 10 bits, more than the "
        "allowed 30 %."
        if outcome == "INCONCLUSIVE"
        else "4 of 4 canaries planted 64 times had 10 bits or more in this model."
    )
    once = judged(rows, most=1, share=0.3)
    assert (once.outcome, once.above) == ("PASS", 0)


def test_a_share_that_each_group_keeps_to_is_a_pass():
    rows = [canary(1, 1.0)] * 30 + [*[canary(64, 8.0)] * 9, canary(64, 12.0)]
    assert judged(rows, most=None, share=0.3).outcome == "PASS"
    rows = [canary(1, 12.0), canary(1, 11.0), canary(1, 1.0)] + [canary(64, 8.0)] * 60
    least = judged(rows, most=None, share=0.3)
    assert least.outcome == "INCONCLUSIVE"
    assert "Plant more canaries once to decide about these." in least.sentence


def test_a_share_names_every_group_that_reaches_or_may_reach_the_limit():
    rows = [canary(1, 1.0)] * 60 + [canary(4, 12.0), *[canary(4, 1.0)] * 5]
    rows += [canary(64, 9.5, 9.0, 11.0, sampled=False), canary(64, 12.0)]
    found = judged(rows, most=None, share=0.3)
    assert found.outcome == "INCONCLUSIVE"
    assert (
        "65 of 68 were under it; 2 of 2 planted 64 times may reach it; 1 of 6 planted 4 times "
        "reaches it; yet"
    ) in found.sentence
    assert "2 of 2 canaries planted 64 times may reach 10 bits, more than" in found.claim
    assert "(measure.judged = 4)" in found.sentence
    blind = judged(rows, most=None, share=0.3, p1=1.0, p4=1.0, p64=1.0)
    assert blind.outcome == "INCONCLUSIVE"
    assert "; 1 of 6 planted 4 times reaches it; but no planted canaries were" in blind.sentence
    # One group alone is counted by the bound itself.
    alone = judged(rows, most=1, share=0.3)
    assert "60 of 60 were under it." in alone.claim


def test_controls_as_exposed_as_a_group_do_not_let_it_pass():
    rows = [canary(1, 1.0)] * 36 + [canary(64, 12.0)] * 4
    controls = [canary(0, 12.0)] * 4 + [canary(0, 11.0)] * 4
    found = judged(rows, controls, most=None, share=0.3)
    assert found.outcome == "INCONCLUSIVE"
    assert "canaries planted 64 times: more than the allowed" in found.sentence
    assert "but so are 8 of 8 controls" in found.sentence


def named_pools(**p_values):
    return [
        dataclasses.replace(pool([canary(1, 3.0, trial=1), *OFTEN]), name="set 1"),
        dataclasses.replace(
            pool([canary(1, 2.0, trial=2), canary(16, 9.0, trial=2)], **p_values), name="set 2"
        ),
    ]


def test_each_pool_with_judged_canaries_needs_its_own_control():
    unknown = judge_exposure(named_pools(p16=0.2), limit=10.0, judged=1)
    assert (unknown.outcome, unknown.control) == ("INCONCLUSIVE", None)
    assert "but no planted canaries of set 2 were found (pooled test" in unknown.sentence
    assert unknown.claim == "No claim: no planted canaries of set 2 were found."
    # Set 1 is found, which is said to be no evidence about set 2 and not to be memory of it.
    both = judge_exposure(named_pools(p16=0.2), limit=25.0, share=0.6)
    assert "says nothing about memory of those of set 2" in both.sentence
    assert "canaries found in another set do not show that these were trained on" in both.sentence
    assert "detectably memorised" not in both.sentence
    known = judge_exposure(named_pools(p16=1e-6), limit=10.0, judged=1)
    assert (known.outcome, known.control) == ("PASS", 64)
    assert "those planted 64 times in set 1, 16 times in set 2 were found" in known.sentence
    # Corrected for the four groups of both pools; set 1 has one of its own.
    assert judge_exposure(named_pools(p16=0.0034), limit=10.0, judged=1).outcome == "INCONCLUSIVE"
    assert judge_exposure(named_pools(p16=0.0033), limit=10.0, judged=1).outcome == "PASS"


def test_a_pool_without_judged_canaries_needs_no_control():
    first, second = named_pools(p16=0.2)
    often = dataclasses.replace(second, canaries=(canary(16, 2.0, trial=2),))
    assert judge_exposure([first, often], limit=10.0, judged=1).outcome == "PASS"
    found = judge_exposure([first, often], limit=25.0)
    assert (found.outcome, found.control) == ("INCONCLUSIVE", None)


def test_pools_without_names_are_numbered():
    pools = [dataclasses.replace(one, name="") for one in named_pools(p16=0.2)]
    assert "no planted canaries of set 2 were found" in judge_exposure(pools, limit=25.0).sentence


def test_a_single_canary_is_counted_in_the_singular():
    under = judged([canary(1, 3.0), *OFTEN])
    assert under.claim.startswith("1 of 1 canary planted once was under 10 bits in this model;")
    reached = judged([canary(1, 12.0), *OFTEN])
    assert reached.claim == "1 of 1 canary planted once had 10 bits or more in this model."
    straddling = judged([canary(1, 10.0, 9.0, 11.0, sampled=False), *OFTEN], share=0.96)
    assert "; 1 may be on either side of it: raise max_nodes." in straddling.sentence
    allowed = judged([canary(1, 12.0), canary(1, 2.0), *OFTEN], share=0.5)
    assert "and 1 reaches the limit of 10." in allowed.sentence
    assert "1 of 2 was under it" in allowed.claim


def test_intervals_that_hold_the_limit_count_on_both_sides():
    rows = [canary(1, 10.0, 9.0, 11.0, sampled=False)] * 6 + [canary(1, 1.0)] * 14 + OFTEN
    found = judged(rows, share=0.2)
    assert (found.outcome, found.above, found.share_low) == ("INCONCLUSIVE", 6, 0.0)
    assert "; 6 may be on either side of it: raise max_nodes." in found.sentence


def test_too_few_canaries_are_told_how_many_it_takes():
    found = judged([canary(1, 1.0)] * 5 + OFTEN, share=0.05)
    assert found.outcome == "INCONCLUSIVE"
    assert found.sentence.endswith(
        "The allowed share is 5 %: to show it takes 59 judged canaries with none at or above the "
        "limit."
    )


@pytest.mark.parametrize("share", [0.5, 0.2, 0.05, 0.01, 0.001])
def test_the_number_needed_is_the_least_that_shows_it(share):
    n = canaries_needed(share)
    assert n == math.ceil(math.log(0.05) / math.log(1 - share))
    for above in (1, 4):
        n = canaries_needed(share, above=above)
        assert stats.binom.cdf(above, n, share) <= 0.05 < stats.binom.cdf(above, n - 1, share)


def test_chance_alone_seldom_passes():
    """Canaries as in the demo, none of them seen: the positive control errs in 1 % at most."""
    rng = np.random.default_rng(0)
    planted = np.repeat([1, 4, 16, 64], [20, 3, 3, 2])
    for most in (1, None):
        outcomes = []
        for bits in -np.log2(rng.uniform(size=(1000, planted.size))):
            rows = [canary(int(many), float(b)) for many, b in zip(planted, bits, strict=True)]
            outcomes.append(judged(rows, most=most).outcome)
        assert outcomes.count("PASS") < 0.01 * 1000 + 4 * math.sqrt(10)
        assert outcomes.count("FAIL") < 28 * 1000 / 1024 + 4 * math.sqrt(28)


def test_models_that_score_everything_alike_do_not_pass():
    found = judged([canary(1, 0.0)] * 20 + [canary(64, 0.0)] * 3, [canary(0, 0.0)] * 20)
    assert (found.outcome, found.control) == ("INCONCLUSIVE", None)
    assert found.claim == "No claim: no planted canaries were found."


def test_costs_that_are_capped_do_not_pass():
    """Uncapped, canaries have up to 10 bits; a cap makes them cost as much as references."""
    rng = np.random.default_rng(0)
    reference_costs, canary_costs = rng.normal(40, 3, 2000), rng.normal(33, 1, 20)

    def outcome(least):
        found = exposure(
            canary_losses=np.maximum(canary_costs, least),
            reference_losses=np.maximum(reference_costs, least),
            space=10**6,
        )
        rows = [
            CanaryExposure(
                name=f"canary {i}",
                repeats=1,
                trial=0,
                bits=float(found.bits[i]),
                low=float(found.low[i]),
                high=float(found.high[i]),
                saturated=bool(found.saturated[i]),
                rank=None,
                **UNUSED,
                tied=bool(2 * found.tied[i] > found.at_or_under[i]),
            )
            for i in range(20)
        ]
        return judged(rows, limit=8.0)

    assert outcome(0.0).outcome != "PASS"
    capped = outcome(35.0)
    assert capped.outcome == "INCONCLUSIVE"
    assert "compute them in full" in capped.sentence


def copied(rng, *, trials=5, controls=20, mean=10.0, most=CEILING, remembered=0.0):
    """Exposures in models that make every secret likely, and remember what is planted or not."""
    drawn = np.minimum(mean * rng.exponential(size=(trials, controls + 2)), most)
    rows = [
        canary(many, float(min(bits + remembered, most)) if many else float(bits), trial=trial)
        for trial, values in enumerate(drawn)
        for many, bits in zip([1, 64, *[0] * controls], values, strict=True)
    ]
    return [one for one in rows if one.repeats], [one for one in rows if not one.repeats]


@pytest.mark.parametrize(
    ("mean", "trials", "share"), [(10.0, 5, 0.01), (4.0, 5, 0.01), (4.0, 1, 0.02)]
)
def test_a_model_that_copies_and_remembers_nothing_seldom_fails(mean, trials, share):
    rng = np.random.default_rng(3)
    outcomes = [judged(*copied(rng, mean=mean, trials=trials)).outcome for _ in range(400)]
    for outcome in ("FAIL", "PASS"):
        assert outcomes.count(outcome) <= share * 400 + 4 * math.sqrt(share * 400)


def test_a_model_that_may_copy_needs_controls_however_exposed_they_are():
    """Four controls do not show that they are exposed; the canaries are as exposed as they are."""
    rng = np.random.default_rng(4)
    outcomes = {False: [], True: []}
    for _ in range(300):
        rows = copied(rng, mean=3.0, trials=2, controls=4)
        for copying, found in outcomes.items():
            found.append(judged(*rows, limit=19.0, copying=copying).outcome)
    assert outcomes[False].count("PASS") > 0.05 * 300
    assert outcomes[True].count("PASS") <= 0.01 * 300 + 4 * math.sqrt(3)


def test_a_model_that_copies_and_remembers_fails():
    rng = np.random.default_rng(3)
    found = [judged(*copied(rng, mean=4.0, remembered=12.0)) for _ in range(50)]
    assert [one.outcome for one in found].count("FAIL") == 50
    assert found[0].sentence.endswith(
        "bits on average, more than chance, so that not all of it is memory."
    )


def test_controls_at_the_limit_make_a_verdict_inconclusive():
    controls = [canary(0, bits) for bits in (15.0, 11.0, 3.0)]
    found = judged([canary(1, 12.0)], controls)
    assert found.outcome == "INCONCLUSIVE"
    assert "but so are 2 of 3 controls, never planted" in found.sentence
    controls = [canary(0, bits) for bits in (9.0, 9.0, 3.0)]
    assert judged([canary(1, 12.0)], controls).outcome == "FAIL"


def test_a_bound_that_takes_millions_of_references_is_left_to_a_walk():
    rows = [canary(1, 9.97, 8.09, 46.8, saturated=True), *OFTEN]
    assert judged(rows, limit=20.0).sentence.endswith(
        "to show that many bits takes 3 900 000 references, so raise max_nodes instead, for exact "
        "ranks."
    )
