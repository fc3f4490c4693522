"""The gate of an audit with two sets of records: what a PASS needs, and how often it is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from remnant.records.typed import Absent
from remnant.studies.membership.measure import (
    Settings,
    check_counts,
    check_settings,
    fit_fault,
    measure_attacks,
    reference_fault,
)
from remnant.studies.membership.result import Blind, Control, RowCounts, Verbatim, VerbatimTest
from remnant.studies.membership.verdict import AttackEvidence, decide, needs_control
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding

FOUND = Control(
    kind="trained", records=32, passes=2, low=0.9, needed=0.6, found=True, sentence="Found."
)
FAILED = replace(FOUND, found=False, low=0.4, sentence="the positive control failed.")
SIGHTED = Blind(
    auc=Estimate(0.9, 0.8, 0.95), low_bound=0.8, high_bound=0.97, void=True, seen=200, unseen=200
)
VERBATIM = Verbatim(
    samples=1000,
    probability=0.5,
    rows=(),
    tests=(
        VerbatimTest(
            half=32,
            seen_share=Estimate(0.03, 0.01, 0.05),
            unseen_share=Estimate(0.0, 0.0, 0.01),
            p_value=0.003,
        ),
    ),
)
BLIND = Blind(
    auc=Estimate(0.5, 0.4, 0.6), low_bound=0.4, high_bound=0.6, void=False, seen=200, unseen=200
)


def evidence(shift=0.0, n=400, seed=0, others=None, settings=None, **given):
    rng = np.random.default_rng(seed)
    seen = {"ratio": rng.normal(size=n) + shift}
    unseen = {"ratio": rng.normal(size=n)}
    for name, by in (others or {}).items():
        seen[name], unseen[name] = rng.normal(size=n) + by, rng.normal(size=n)
    settings = settings or Settings(attack="ratio", limit=0.6)
    attacks, judged = measure_attacks(seen, unseen, settings, rng=rng)
    rows = RowCounts(
        seen=n,
        unseen=n,
        shared=0,
        repeated_seen=0,
        repeated_unseen=0,
        short=0,
        cut=0,
        tokens=None,
    )
    made = AttackEvidence(
        judged=judged, attacks=attacks, blind=BLIND, rows=rows, verbatim=Absent("not measured")
    )
    return replace(made, **given)


def test_p_values_of_verbatim_windows_are_corrected_for_their_number():
    test = VERBATIM.tests[0]
    two = replace(VERBATIM, tests=(test, replace(test, half=50, p_value=0.7)))
    assert [two.corrected(one) for one in two.tests] == [pytest.approx(0.006), 1.0]


def test_chance_passes_with_a_control_and_not_without():
    at_chance = evidence()
    assert needs_control(at_chance, 0.6)
    passed = decide(at_chance, 0.6, FOUND)
    assert passed.outcome == "PASS"
    assert "at most 0.5" in passed.claim
    assert "400 seen and 400 unseen" in passed.claim
    for control in (FAILED, Absent("too little memory")):
        gate = decide(at_chance, 0.6, control)
        assert gate.outcome == "INCONCLUSIVE"
        assert gate.claim.startswith("No claim")


def test_memory_fails():
    gate = decide(evidence(shift=1.0), 0.6, Absent("no PASS depended on it"))
    assert gate.outcome == "FAIL"
    assert "at least 0.7" in gate.claim


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"not_learnt": "the model did not learn its task"}, "did not learn its task"),
        ({"reference": False}, "no reference model"),
        ({"reference_fault": "the reference model itself distinguishes"}, "itself distinguishes"),
        ({"verbatim": VERBATIM}, "come out verbatim"),
        ({"not_fitted": "nothing shows that it was trained on them"}, "nothing shows"),
        ({"too_coarse": "bfloat16 swaps 3% of the pairs"}, "bfloat16 swaps"),
        ({"blind": SIGHTED}, "The audit is void"),
    ],
)
def test_what_raises_doubt_is_never_a_pass(given, said):
    doubted = evidence(**given)
    assert not needs_control(doubted, 0.6)
    gate = decide(doubted, 0.6, FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert said in gate.sentence
    assert gate.claim.startswith("No claim")


@pytest.mark.parametrize(("shift", "limit"), [(0.0, 0.6), (0.25, 0.6), (1.0, 0.6)])
def test_every_claim_names_what_the_model_has_to_be_trained_on(shift, limit):
    """Records that were trained on, given as held out, look like a model that remembers nothing."""
    gate = decide(evidence(shift=shift), limit, FOUND)
    condition = "if the model was trained on the seen records and not on the unseen ones"
    assert condition in gate.claim
    assert gate.outcome != "PASS" or condition in gate.sentence


def test_a_reversed_attack_is_never_a_pass():
    gate = decide(evidence(shift=-1.0), 0.6, FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert "below chance" in gate.sentence


@pytest.mark.parametrize(("success", "fpr"), [("tpr", 0.01), ("precision", 0.02)])
def test_swapped_sets_are_never_a_pass_at_a_low_fpr(success, fpr):
    """There a rate of 0 has an upper bound above chance; the AUC shows the reversal."""
    settings = Settings(attack="ratio", limit=0.6, success=success, fpr=fpr)
    swapped = evidence(shift=-2.0, n=200, settings=settings)
    gate = decide(swapped, 0.6, FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert "below chance" in gate.sentence
    assert "score higher" in decide(swapped, None, FOUND).headline


def test_an_unusable_reference_neither_passes_nor_fails_by_its_attacks():
    bad = {"reference_fault": "the reference model itself distinguishes the two sets"}
    assert decide(evidence(shift=1.0, **bad), 0.6, FOUND).outcome == "INCONCLUSIVE"
    alone = evidence(others={"loss": 1.0}, **bad)  # an attack that needs no reference
    assert decide(alone, 0.6, FOUND).outcome == "FAIL"


def test_an_attack_without_a_reference_above_the_limit_is_never_a_pass():
    hidden = evidence(n=60, others={"loss": 0.5}, settings=Settings(attack="ratio", limit=0.63))
    (loss,) = [row for row in hidden.attacks.rows if row.name == "loss"]
    assert loss.judged_low < 0.63 < loss.judged_value
    assert hidden.judged.high < 0.63
    gate = decide(hidden, 0.63, FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert "which needs no reference model" in gate.sentence


def test_a_reference_is_suspected_by_a_test_of_all_records():
    """A shift of a fifth of a deviation is found; an honest one is suspected in 5 %."""
    rng = np.random.default_rng(0)

    def suspected(shift):
        seen = {name: rng.normal(size=300) + shift for name in ("loss", "zlib")}
        unseen = {name: rng.normal(size=300) for name in ("loss", "zlib")}
        return "itself distinguishes" in reference_fault(seen, unseen, rng=rng)

    assert sum(suspected(0.2) for _ in range(40)) >= 30
    assert sum(suspected(0.0) for _ in range(40)) <= 5


def test_records_whose_tokens_were_cut_off_are_no_pass():
    rows = replace(evidence().rows, tokens=800, unscored=200, cut=400)
    gate = decide(evidence(rows=rows), 0.6, FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert "20% of the tokens are beyond what the model reads" in gate.sentence


@pytest.mark.parametrize("confidence", [0.5000001, 0.7, 0.99999999])
def test_a_confidence_that_proves_nothing_is_refused(confidence):
    settings = Settings(attack="ratio", limit=0.6, confidence=confidence)
    with pytest.raises(ValueError, match=r"is under 0\.8|is above 0\.9999"):
        check_settings(settings, rng=np.random.default_rng(0))


def test_a_void_audit_neither_fails_nor_finds():
    sighted = evidence(shift=1.0, blind=SIGHTED)
    assert decide(sighted, 0.6, FOUND).outcome == "INCONCLUSIVE"
    assert decide(sighted, None, FOUND).outcome == "INCONCLUSIVE"


def test_another_attack_above_the_limit_fails_the_gate():
    gate = decide(evidence(others={"ez": 1.0, "loss": 0.0}), 0.6, FOUND)
    assert gate.outcome == "FAIL"
    assert "'ez'" in gate.sentence


def test_without_a_limit_it_is_a_finding():
    assert isinstance(decide(evidence(), None, FOUND), Finding)
    remembered = decide(evidence(shift=1.0), None, FOUND)
    assert isinstance(remembered, Finding)
    assert remembered.headline.startswith("Training records can be")


def test_an_undecided_gate_says_how_many_records_it_takes():
    few = evidence(shift=0.3, n=40)
    gate = decide(few, max(0.51, few.judged.estimate.value + 0.02), FOUND)
    assert gate.outcome == "INCONCLUSIVE"
    assert "records a side (here 40)" in gate.sentence


def test_a_model_that_fits_no_better_than_its_reference_raises_doubt():
    rng = np.random.default_rng(0)
    assert fit_fault(None) == ""
    assert fit_fault(rng.normal(size=300) + 0.5) == ""
    assert "no better than the reference" in fit_fault(rng.normal(size=300) - 0.1)


def test_too_few_records_are_refused():
    with pytest.raises(ValueError, match="at least 20 of each"):
        check_counts(19, 500)


LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy": lambda rng, n: rng.standard_t(2, size=n),
    "integer": lambda rng, n: rng.poisson(3.0, size=n).astype(float),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_truth_at_the_limit_passes_in_at_most_five_percent(law):
    """Seen scores are a mixture whose AUC is the limit exactly: every PASS is false."""
    limit, n, simulations = 0.6, 60, 120
    rng = np.random.default_rng(7)
    settings = Settings(attack="ratio", limit=limit)
    passes = 0
    for _ in range(simulations):
        unseen = LAWS[law](rng, n)
        seen = LAWS[law](rng, n)
        # With probability 0.2 a seen record is above all unseen ones: AUC = 0.8 / 2 + 0.2.
        seen = np.where(rng.random(n) < 0.2, 1e6 + rng.random(n), seen)
        _, judged = measure_attacks({"ratio": seen}, {"ratio": unseen}, settings, rng=rng)
        passes += judged.high <= limit
    assert passes <= 0.05 * simulations + 3 * (0.05 * 0.95 * simulations) ** 0.5
