"""The interval holds what it promises: coverage in simulation, with models that differ."""

import numpy as np
import pytest
from scipy.stats import binomtest

from remnant.measures import SUCCESSES, forgetting_curve
from remnant.measures.statistics.skewed_trials import upper_quantile
from remnant.measures.statistics.trial_interval import (
    TrialEvidence,
    gather,
    measure,
    strict_rate,
    tied_rate,
    trial_interval,
)


@pytest.mark.parametrize("success", SUCCESSES)
@pytest.mark.parametrize(("trials", "n", "effect"), [(1, 32, 0.0), (3, 50, 0.4), (10, 32, 0.4)])
def test_curves_cover(success, trials, n, effect, known_leak, covers):
    """A null and a leak, as two lags of one curve; fewer draws than by default."""
    rng = np.random.default_rng(17)
    leaks = known_leak(0.0, effect), known_leak(1.5, effect)
    inside = []
    for _ in range(400):
        sides = [leak.scores(rng, trials, n, n) for leak in leaks]
        curve = forgetting_curve(
            seen_scores=np.stack([seen for seen, _ in sides]),
            unseen_scores=np.stack([unseen for _, unseen in sides]),
            lags=[0, 1],
            success=success,
            rng=rng,
            draws=40,
        )
        truth = np.array([leak.truth(success) for leak in leaks])
        inside.append((curve.low <= truth) & (truth <= curve.high))
    for lag in range(2):
        assert covers(np.array(inside)[:, lag]), np.mean(inside, axis=0)


@pytest.mark.parametrize("success", SUCCESSES)
def test_a_total_leak_is_covered(success, known_leak, covers):
    rng = np.random.default_rng(18)
    leak, inside = known_leak(4.0), []
    for _ in range(400):
        seen, unseen = leak.scores(rng, 3, 32, 32)
        curve = forgetting_curve(
            seen_scores=seen[None],
            unseen_scores=unseen[None],
            lags=[0],
            success=success,
            rng=rng,
            draws=40,
        )
        inside.append(curve.low[0] <= leak.truth(success) <= curve.high[0])
    assert covers(inside), np.mean(inside)


def evidence_of(value, canary_variance):
    value = np.asarray(value, dtype=float)
    return TrialEvidence(value, value, value, np.full_like(value, canary_variance))


def ends(evidence):
    asked = {"success": "auc", "fpr": 0.1, "confidence": 0.95}
    return trial_interval(evidence, **asked, units=(100, 100), clustered=False)


def test_the_trial_level_is_student_t_below_and_holds_for_skewed_trials_above():
    """Far from 0 and 1, with little canary error, the ends are those of the quantiles."""
    trials = np.array([[0.49, 0.50, 0.51, 0.50]])
    low, high = ends(evidence_of(trials, 1e-9))
    error = trials.std(ddof=1) / 2
    robust = upper_quantile(4, 0.025, "moderate")
    assert robust == pytest.approx(2.539 * 3.1824, rel=1e-3)
    expected = [0.5 - 3.1824 * error, 0.5 + robust * error]
    np.testing.assert_allclose([low[0], high[0]], expected, atol=1e-3)


def test_the_canary_level_is_the_floor_where_trials_agree():
    low, high = ends(evidence_of([[0.5] * 4], 0.05**2))
    np.testing.assert_allclose((high - low) / 2, 1.96 * 0.05 / 2, rtol=0.03)


def test_more_trials_and_more_canaries_make_it_narrower(known_leak):
    rng = np.random.default_rng(0)
    widths = []
    for trials, n in ((3, 30), (30, 30), (30, 300)):
        seen, unseen = known_leak(1.0).scores(rng, trials, n, n)
        curve = forgetting_curve(
            seen_scores=seen[None], unseen_scores=unseen[None], lags=[0], rng=rng, draws=50
        )
        widths.append(curve.high[0] - curve.low[0])
    assert widths[0] > widths[1] > widths[2]


def test_blocks_of_draws_bound_the_memory_and_nothing_else(monkeypatch):
    rng = np.random.default_rng(0)
    sides = {"seen": rng.normal(size=(2, 3, 20)), "unseen": rng.normal(size=(2, 3, 20))}
    monkeypatch.setattr("remnant.measures.statistics.trial_interval.BLOCK", 40 * 7)
    found = gather(**sides, success="auc", fpr=0.1, draws=50, rng=np.random.default_rng(1))
    assert found.drawn_mean.shape == (2, 3)
    np.testing.assert_allclose(found.drawn_mean, found.estimate, atol=0.06)


@pytest.mark.parametrize("success", ["tpr", "precision"])
def test_few_unseen_scores_do_not_understate_the_leak(success, known_leak, covers):
    """Twelve unseen scores at FPR 10 %: the threshold's own place is very uncertain."""
    leak, rng = known_leak(2.93), np.random.default_rng(12)
    audits = 200
    seen, unseen = zip(*(leak.scores(rng, 10, 12, 12) for _ in range(audits)), strict=True)
    curve = forgetting_curve(
        seen_scores=np.stack(seen),
        unseen_scores=np.stack(unseen),
        lags=np.arange(audits),
        success=success,
        draws=60,
        rng=rng,
    )
    truth = leak.truth(success)
    assert covers((curve.low <= truth) & (truth <= curve.high))


@pytest.mark.parametrize(("n_unseen", "fpr"), [(20, 0.05), (30, 0.05), (48, 0.05), (20, 0.1)])
@pytest.mark.parametrize("n_seen", [20, 1000])
def test_few_unseen_scores_raise_no_false_alarm(n_seen, n_unseen, fpr):
    """An attack that sees nothing has a TPR of ``fpr``: the bound is above it in 5 % at most."""
    rng = np.random.default_rng(n_seen + n_unseen)
    audits = 1500
    lows = []
    for _ in range(audits):
        seen, unseen = rng.normal(size=(1, 1, n_seen)), rng.normal(size=(1, 1, n_unseen))
        strict = strict_rate(seen, unseen, fpr, (n_seen, n_unseen))
        lows.append(float(strict.lower(fpr, 0.05)[0]))
    alarms = np.mean(np.array(lows) > fpr)
    assert alarms <= 0.05 + 3 * (0.05 * 0.95 / audits) ** 0.5


@pytest.mark.parametrize("success", ["tpr", "precision"])
def test_the_low_end_of_one_trial_with_few_unseen_scores_is_no_higher_than_the_exact_bound(success):
    rng = np.random.default_rng(0)
    seen, unseen = rng.normal(size=(1, 1, 200)) + 50.0, rng.normal(size=(1, 1, 20))
    made = measure(seen=seen, unseen=unseen, success=success, fpr=0.05, draws=100, rng=rng)
    # All 200 are above all 20: a share of at least 0.982, at a threshold of at most FPR 0.168.
    exact = 0.025 ** (1 / 200) * 0.05 / (1.0 - 0.025 ** (1 / 20))
    exact = exact / (exact + 0.05) if success == "precision" else exact
    assert made.lower(0.95)[0] == pytest.approx(exact)
    assert made.lower(0.95)[0] > (0.05 if success == "tpr" else 0.5)  # a leak is still found
    for changed in ({"seen": np.repeat(seen, 2, 1), "unseen": np.repeat(unseen, 2, 1)},
                    {"unseen": rng.normal(size=(1, 1, 60))}):  # fmt: skip
        sides = {"seen": seen, "unseen": unseen, **changed}
        assert measure(**sides, success=success, fpr=0.05, draws=20, rng=rng).strict is None


def test_nothing_above_the_threshold_shows_nothing():
    strict = strict_rate(np.zeros((2, 1, 30)), np.zeros((2, 1, 20)), 0.05, (30, 20))
    assert strict.lower(0.05, 0.05).tolist() == [0.0, 0.0]


def binary_audits(seen_share, unseen_share, *, seen, unseen, fpr, audits=400):
    """Audits, each a lag of one trial, of scores that are 0 or 1."""
    rng = np.random.default_rng(23)
    sides = {
        "seen": (rng.random((audits, 1, seen)) < seen_share).astype(float),
        "unseen": (rng.random((audits, 1, unseen)) < unseen_share).astype(float),
    }
    return measure(**sides, success="tpr", fpr=fpr, draws=60, rng=rng)


@pytest.mark.parametrize(
    ("share", "unseen", "fpr"), [(0.03, 24, 0.1), (0.03, 50, 0.1), (0.02, 60, 0.05)]
)
def test_a_rare_score_that_no_unseen_example_has_is_no_leak(share, unseen, fpr):
    """Seen and unseen scores of one law: often no unseen score is 1, and some of the seen are."""
    audits = binary_audits(share, share, seen=1000, unseen=unseen, fpr=fpr)
    assert (audits.lower(0.95) > fpr).mean() <= 0.05


@pytest.mark.parametrize(
    ("shares", "unseen", "fpr"), [((0.9, 0.08), 50, 0.1), ((0.9, 0.2), 50, 0.1)]
)
def test_a_threshold_among_tied_scores_does_not_understate_the_leak(shares, unseen, fpr):
    seen_share, unseen_share = shares
    truth = seen_share * min(1.0, fpr / unseen_share)
    truth += (1.0 - seen_share) * max(0.0, fpr - unseen_share) / (1.0 - unseen_share)
    audits = binary_audits(*shares, seen=100, unseen=unseen, fpr=fpr)
    assert (audits.upper(0.95) < truth).mean() <= 0.07
    assert (audits.lower(0.95) > truth).mean() <= 0.07


def test_a_total_leak_of_binary_scores_is_still_shown():
    audits = binary_audits(0.95, 0.03, seen=100, unseen=60, fpr=0.05, audits=50)
    assert np.median(audits.lower(0.95)) > 0.3


def test_the_bound_with_ties_is_the_higher_of_those_at_both_ends_of_the_block():
    seen = np.array([2.0] * 30 + [1.0] * 50 + [0.0] * 20)[None, None]
    unseen = np.array([2.0] * 1 + [1.0] * 9 + [0.0] * 40)[None, None]
    found = tied_rate(seen, unseen, 0.1, (100, 50)).lower(0.1, 0.025)
    ends = []
    for hits, alarms in ((30, 1), (80, 10)):
        least = binomtest(hits, 100).proportion_ci(1 - 0.0125, "exact").low
        most = binomtest(alarms, 50).proportion_ci(1 - 0.0125, "exact").high
        ends.append(least * min(1.0, 0.1 / most))
    assert found == pytest.approx(max(ends))
    assert tied_rate(seen, np.arange(50.0)[None, None], 0.1, (100, 50)) is None
    assert tied_rate(np.repeat(seen, 2, 1), np.repeat(unseen, 2, 1), 0.1, (100, 50)) is None
