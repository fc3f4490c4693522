"""One-run curves: definitions, invariances, coverage of both intervals, bad input."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.forgetting.one_run import one_run_forgetting
from remnant.measures.statistics.success import rates_at_fpr
from remnant.plans import StaggeredPlan

PLAN = StaggeredPlan(
    canaries=240, never=80, starts=[50, 150], window=20, repeats=[1, 4], per_batch=20
)
CHECKPOINTS = np.array([10, 40, 60, 70, 100, 140, 169, 200])


def simulated(rng, *, plan=PLAN, checkpoints=CHECKPOINTS, strength=4.0, drift=0.02):
    """Scores with a level of each canary, a drift that all share, and a planted bump that fades."""
    level = rng.normal(size=plan.canaries)
    scores = []
    for checkpoint in checkpoints:
        lag = np.where(plan.last_seen >= 0, checkpoint - plan.last_seen, -1)
        bump = np.where(lag >= 0, strength * plan.repeats_of**0.5 * np.exp(-lag / 40), 0.0)
        scores.append(level + drift * checkpoint + bump + 0.5 * rng.normal(size=plan.canaries))
    return np.array(scores)


def measured(scores, rng, **changes):
    asked = {
        "scores": scores,
        "checkpoints": CHECKPOINTS,
        "last_seen": PLAN.last_seen,
        "repeats": PLAN.repeats_of,
        "rng": rng,
        "draws": 50,
    }
    return one_run_forgetting(**(asked | changes))


def test_rows_are_the_definition():
    rng = np.random.default_rng(0)
    scores = simulated(rng)
    out = measured(scores, rng)
    expected = [
        (cohort, repeats, checkpoint)
        for cohort, end in ((0, 69), (1, 169))
        for repeats in (1, 4)
        for checkpoint in CHECKPOINTS[end <= CHECKPOINTS]
    ]
    rows = list(zip(out.cohort, out.repeats, out.checkpoint, strict=True))
    assert rows == expected
    never = PLAN.cohort_of == -1
    for row, (cohort, repeats, checkpoint) in enumerate(expected):
        mine = (PLAN.cohort_of == cohort) & (PLAN.repeats_of == repeats)
        now = list(CHECKPOINTS).index(checkpoint)
        base = {0: 1, 1: 5}[cohort]
        assert out.success[row] == rates_at_fpr(scores[now, mine], scores[now, never], 0.1)[0]
        assert out.lags[row] == pytest.approx(np.mean(checkpoint - PLAN.last_seen[mine]))
        assert out.effect[row] == pytest.approx(
            (scores[now, mine].mean() - scores[base, mine].mean())
            - (scores[now, never].mean() - scores[base, never].mean())
        )
        assert out.low[row] <= out.success[row] <= out.high[row]
    assert out.n_unseen == 80
    assert out.chance == out.fpr == 0.1


def test_cohorts_and_first_uses_of_the_plan_give_the_same_rows():
    rng = np.random.default_rng(0)
    scores = simulated(rng)
    told = measured(
        scores, np.random.default_rng(1), cohorts=PLAN.cohort_of, first_seen=PLAN.first_seen
    )
    guessed = measured(scores, np.random.default_rng(1))
    for name in ("lags", "success", "low", "high", "effect"):
        np.testing.assert_array_equal(getattr(told, name), getattr(guessed, name))


def test_cohorts_planted_at_single_steps_are_told_apart():
    last = np.repeat([-1, 20, 30, 90], 20)
    out = one_run_forgetting(
        scores=np.random.default_rng(0).normal(size=(4, 80)),
        checkpoints=[10, 25, 60, 100],
        last_seen=last,
        repeats=np.ones(80),
        rng=np.random.default_rng(0),
        draws=20,
    )
    assert out.cohort.tolist() == [0, 0, 0, 1, 1, 2]
    assert out.lags.tolist() == [5, 40, 80, 30, 70, 10]


def test_without_an_earlier_checkpoint_there_is_no_effect_and_no_calibration():
    rng = np.random.default_rng(0)
    scores = simulated(rng)
    late = {"checkpoints": CHECKPOINTS[3:]}
    out = measured(scores[3:], rng, **late)
    assert np.isnan(out.effect[out.cohort == 0]).all()
    assert np.isfinite(out.effect[out.cohort == 1]).all()
    with pytest.raises(InvalidInput, match="planted from step 50 on have no checkpoint before"):
        measured(scores[3:], rng, **late, calibrate=True, first_seen=PLAN.first_seen)


def test_calibration_takes_each_canarys_own_level_away():
    rng = np.random.default_rng(0)
    scores = simulated(rng, strength=1.0)
    noisy = scores + 30 * rng.normal(size=PLAN.canaries)
    raw, calibrated = measured(noisy, rng), measured(noisy, rng, calibrate=True)
    assert raw.success.mean() < 0.3 < calibrated.success.mean()
    np.testing.assert_allclose(raw.effect, measured(scores, rng).effect)


@pytest.mark.parametrize("success", ["accuracy", "precision", "tpr", "auc"])
def test_a_constant_added_at_a_checkpoint_changes_nothing(success):
    scores = simulated(np.random.default_rng(0)).round(6)
    moved = scores + 2.0 ** np.arange(len(scores))[:, None]
    one = measured(scores, np.random.default_rng(1), success=success)
    other = measured(moved, np.random.default_rng(1), success=success)
    np.testing.assert_allclose(one.success, other.success, atol=1e-12)
    np.testing.assert_allclose(one.high, other.high, atol=1e-12)


def test_both_intervals_cover_at_their_rate():
    """Cohorts of 40 against 80 controls, 250 audits; truth from the law of the scores itself."""
    sd = np.hypot(1.0, 0.5)
    audits, hits, effects = 250, [], []
    rng = np.random.default_rng(3)
    uses = np.repeat([0, 1, 4], [80, 40, 40])
    planted = SimpleNamespace(canaries=160, last_seen=np.where(uses > 0, 50, -1), repeats_of=uses)
    for _ in range(audits):
        scores = simulated(rng, plan=planted, checkpoints=[40, 60, 90], strength=2.0)
        out = measured(
            scores,
            rng,
            checkpoints=[40, 60, 90],
            last_seen=planted.last_seen,
            repeats=uses,
            draws=100,
        )
        bump = 2.0 * out.repeats**0.5 * np.exp(-out.lags / 40)
        truth = stats.norm.sf(stats.norm.isf(0.1) - bump / sd)
        hits.append((out.low <= truth) & (truth <= out.high))
        effects.append((out.effect_low <= bump) & (bump <= out.effect_high))
    for covered in (np.array(hits), np.array(effects)):
        assert covered.shape == (audits, 4)
        assert np.all(covered.mean(axis=0) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / audits))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"checkpoints": CHECKPOINTS[::-1]}, InvalidInput, "not strictly increasing"),
        ({"checkpoints": CHECKPOINTS[1:]}, InvalidInput, "7 entries for 8 rows"),
        ({"last_seen": PLAN.last_seen[1:]}, InvalidInput, "239 entries for 240 canaries"),
        ({"last_seen": np.full(240, -1)}, InvalidInput, "nothing was planted"),
        (
            {"last_seen": np.full(240, 60), "repeats": np.ones(240)},
            NotEnoughEvidence,
            "0 canaries were never planted",
        ),
        ({"last_seen": PLAN.last_seen + 0.5}, InvalidInput, "neither whole"),
        ({"last_seen": np.where(PLAN.last_seen > 0, 999, -1)}, InvalidInput, "no checkpoint after"),
        ({"repeats": PLAN.repeats_of * 0}, InvalidInput, "repeats is under 1"),
        ({"first_seen": PLAN.last_seen + 1}, InvalidInput, "first_seen"),
        ({"cohorts": PLAN.cohort_of * 0}, InvalidInput, "disagree on who was never planted"),
        ({"fpr": 0.01}, NotEnoughEvidence, "at least 100"),
        ({"success": "recall"}, InvalidInput, "success='recall'"),
        ({"rng": 3}, InvalidInput, "rng=3"),
    ],
)
def test_bad_input_is_named(changes, error, words):
    scores = simulated(np.random.default_rng(0))
    with pytest.raises(error, match=words):
        measured(scores, **({"rng": np.random.default_rng(0)} | changes))


def test_nan_scores_are_refused():
    scores = simulated(np.random.default_rng(0))
    scores[2, 3] = np.nan
    with pytest.raises(InvalidInput, match=r"scores holds 1 value\(s\) that are NaN"):
        measured(scores, np.random.default_rng(0))


def one_run(rng, shifts, *, canaries=100, law=None, second=None, **choices):
    """A cohort planted at step 50, checkpoints every 100 steps; a second one at step 450."""
    steps = 100 * np.arange(len(shifts))
    planted = np.repeat([-1, 50], canaries)
    shift = np.asarray(shifts)[:, None] * (planted == 50)
    if second is not None:
        planted = np.append(planted, np.full(canaries, 450))
        later = np.where(steps > 450, second, 0.0)[:, None] * (planted == 450)
        shift = np.concatenate([shift, np.zeros((len(steps), canaries))], axis=1) + later
    noise = (law or rng.normal)(size=(len(steps), planted.size))
    return one_run_forgetting(
        scores=noise + shift,
        checkpoints=steps,
        last_seen=planted,
        repeats=np.ones(planted.size),
        rng=rng,
        **({"draws": 40} | choices),
    )


FADING = [0.0, 2.5, 2.0, 1.0, 0.5, 0.2, 0.1, 0.0]


@pytest.mark.parametrize(
    ("shifts", "limit", "outcome", "words"),
    [
        (FADING, 0.3, "PASS", "under the limit of 0.3. The attack found the canaries at lag 50: a "
                              "rank-sum test of their scores against the controls gives p = "),
        ([0.0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5], 0.3, "FAIL", "above the limit of 0.3"),
        ([0.0, 2.5, 2.0, 1.0, 0.7, 0.7, 0.7, 0.7], 0.3, "INCONCLUSIVE", "Plant more canaries"),
        ([0.0] * 8, 0.3, "INCONCLUSIVE", "did not find the canaries at any checkpoint"),
    ],
)  # fmt: skip
def test_verdicts_are_about_the_first_cohort_at_the_end(shifts, limit, outcome, words):
    found = one_run(np.random.default_rng(1), shifts, canaries=200).verdict(limit)
    assert (found.outcome, found.lag) == (outcome, 650.0)
    assert words in found.sentence
    assert "650 steps after their last use" in found.sentence
    if outcome == "PASS":
        assert "one training does not show how trainings differ. The same holds for" in found.claim
        assert "of an attacker with the model alone is 0.090 on 200 canaries planted" in found.claim


def test_a_later_window_beyond_the_limit_keeps_a_pass_back():
    long = FADING + [0.0] * 3
    rng = np.random.default_rng(2)
    assert one_run(rng, long, second=0.0).verdict(0.3).outcome == "PASS"
    still = one_run(rng, long, second=3.0).verdict(0.3)
    assert still.outcome == "INCONCLUSIVE"
    assert "but 550 steps after their last use" in still.sentence
    assert still.claim.startswith("No claim: 550 steps after")
    # Right after its window a cohort may be found: half of the judged lag is not over.
    fresh = one_run(rng, FADING, second=3.0).verdict(0.3)
    assert fresh.outcome == "PASS"
    assert "; 1 of 1 later window is not shown to be under the limit at the end of" in fresh.claim
    over = r"\(planted from step 450: at most (0\.9\d\d|1\.000), 250 steps after their last use\)"
    assert re.search(over, fresh.claim)
    assert "later window" not in one_run(rng, long, second=0.0).verdict(0.4).claim


def test_a_run_whose_scores_are_reversed_is_said_to_be():
    turned = one_run(np.random.default_rng(1), [0.0] + [-3.0] * 7, canaries=200).verdict(0.3)
    assert turned.outcome == "INCONCLUSIVE"
    assert "below chance, so the reversed attack succeeds" in turned.claim
    assert "Plant more canaries" not in turned.sentence


def test_a_control_says_by_which_statistic_it_was_found():
    """Each canary's level hides its score, and the rise since before planting shows it."""
    rng = np.random.default_rng(4)
    level = rng.normal(scale=50.0, size=400)
    planted = np.repeat([-1, 50], 200)
    shift = np.array([0.0, 2.0, 1.0])[:, None] * (planted == 50)
    found = one_run_forgetting(
        scores=level + shift + rng.normal(size=(3, 400)),
        checkpoints=[0, 100, 200],
        last_seen=planted,
        repeats=np.ones(400),
        rng=rng,
        draws=20,
    )
    assert found.low[0] < found.chance, "the interval of the success rate includes chance"
    reason = found.positive_control().reason
    assert "a rank-sum test of their rise in score since before planting" in reason
    assert reason.endswith("corrected for 4 tests.")


@pytest.mark.parametrize("checkpoints", [8, 31])
def test_an_attack_that_sees_nothing_seldom_passes_however_many_checkpoints(checkpoints):
    rng, audits = np.random.default_rng(3), 150
    passes = sum(
        one_run(rng, np.zeros(checkpoints), draws=20).verdict(0.3).outcome == "PASS"
        for _ in range(audits)
    )
    assert stats.binomtest(passes, audits, 0.025, alternative="greater").pvalue > 0.001


def test_clusters_are_covered_where_they_are_named(covers):
    """Twenty clusters of five a side, correlation .3: the interval of single canaries is short."""
    rng, groups = np.random.default_rng(4), np.arange(200) // 5

    def clustered(size):
        shared = np.repeat(rng.normal(size=(size[0], size[1] // 5)), 5, axis=1)
        return np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=size)

    truth = stats.norm.sf(stats.norm.isf(0.1) - 1.0)
    inside, alone, effects = [], [], []
    for _ in range(300):
        shifts = [0.0, 1.0]
        found = one_run(rng, shifts, law=clustered, groups=groups)
        bare = one_run(rng, shifts, law=clustered)
        inside.append(found.low[0] <= truth <= found.high[0])
        effects.append(found.effect_low[0] <= 1.0 <= found.effect_high[0])
        alone.append(bare.effect_low[0] <= 1.0 <= bare.effect_high[0])
    assert "cluster bootstrap" in found.method
    assert covers(inside), np.mean(inside)
    assert covers(effects), np.mean(effects)
    assert np.mean(alone) < 0.9


def test_faulty_groups_are_refused():
    with pytest.raises(InvalidInput, match="groups has 3 labels for 200 canaries"):
        one_run(np.random.default_rng(0), FADING, groups=[1, 2, 3])


@pytest.mark.parametrize("canaries", [3, 8, 20])
def test_few_canaries_of_a_skewed_law_are_not_found_by_luck(canaries):
    """One canary in ten is far below: cohorts that miss these have a high mean and no variance."""
    rng, audits, found = np.random.default_rng(5), 100, 0
    last = np.append(np.full(200, -1), np.full(canaries, 50))
    for _ in range(audits):
        shape = (20, last.size)
        scores = np.where(rng.random(shape) < 0.1, -5.0, 0.0) + 0.05 * rng.normal(size=shape)
        out = one_run_forgetting(
            scores=scores,
            checkpoints=100 * np.arange(20),
            last_seen=last,
            repeats=np.ones(last.size),
            success="auc",
            calibrate=True,
            rng=rng,
            draws=20,
        )
        found += out.positive_control().found
    assert stats.binomtest(found, audits, 0.025, alternative="greater").pvalue > 0.001


def test_a_rare_score_among_many_that_tie_is_no_control():
    """Scores are 0 or 1 and know nothing; a normal law of ranks often finds the canaries."""
    rng, last = np.random.default_rng(4), np.repeat([-1, 10], [600, 13])
    found = []
    for _ in range(100):
        out = one_run_forgetting(
            scores=(rng.random((6, last.size)) < 0.01).astype(float),
            checkpoints=[5, 10, 20, 30, 40, 50],
            last_seen=last,
            repeats=np.ones(last.size),
            draws=20,
            rng=rng,
        )
        found.append(bool(out.positive_control().found))
    assert np.mean(found) <= 0.06


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("success", ["auc", "tpr"])
def test_scores_that_are_all_alike_at_the_end_do_not_pass(success, calibrate):
    """The attack found the canaries once; at the end every score is 0, such as a saturated loss."""
    rng, last = np.random.default_rng(6), np.repeat([-1, 10], [200, 100])
    scores = 0.1 * rng.normal(size=(4, last.size))
    scores[1] += 3.0 * (last == 10)

    def judged(scores):
        out = one_run_forgetting(
            scores=scores,
            checkpoints=[5, 20, 50, 100],
            last_seen=last,
            repeats=np.ones(last.size),
            success=success,
            calibrate=calibrate,
            rng=np.random.default_rng(7),
        )
        assert out.positive_control().found
        return out.verdict(0.8)

    assert judged(scores).outcome == "PASS"
    scores[3] = 0.0
    verdict = judged(scores)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "all scores at the end are one number" in verdict.sentence
    assert verdict.claim.startswith("No claim")
