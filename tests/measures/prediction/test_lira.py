import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import lira

MODES = ("online", "offline_one_sided", "offline_symmetric")


def toy(seed=0, models=8, n=6, effect=2.0):
    rng = np.random.default_rng(seed)
    seen = rng.random((models, n)).argsort(axis=0) < rng.integers(2, models - 1, size=n)
    shadow = rng.normal(size=(models, n)) * rng.gamma(3.0, size=n) + effect * seen
    return rng.normal(size=n) + effect, shadow, seen


def by_hand(target, shadow, seen, mode, centre, variance, ddof):
    out = []
    sides = {True: [], False: []}
    for i in range(len(target)):
        for which in sides:
            sides[which].append(shadow[seen[:, i] == which, i])
    for i, phi in enumerate(target):
        law = {}
        for which, all_scores in sides.items():
            own = all_scores[i]
            if variance == "per_example":
                deviation = np.std(own, ddof=ddof)
            elif variance == "pooled":
                squares = sum(np.sum((s - s.mean()) ** 2) for s in all_scores)
                deviation = np.sqrt(squares / sum(len(s) - ddof for s in all_scores))
            else:
                deviation = np.std(np.concatenate(all_scores), ddof=ddof)
            law[which] = (np.median(own) if centre == "median" else np.mean(own), deviation)
        if mode == "online":
            out.append(stats.norm.logpdf(phi, *law[True]) - stats.norm.logpdf(phi, *law[False]))
        elif mode == "offline_one_sided":
            out.append(-stats.norm.logsf(phi, *law[False]))
        else:
            out.append(-stats.norm.logpdf(phi, *law[False]))
    return out


@settings(max_examples=80)
@given(
    seed=st.integers(0, 9999),
    models=st.integers(4, 9),
    mode=st.sampled_from(MODES),
    centre=st.sampled_from(["mean", "median"]),
    variance=st.sampled_from(["per_example", "pooled", "global"]),
    ddof=st.sampled_from([0, 1]),
)
def test_lira_agrees_with_its_definition(seed, models, mode, centre, variance, ddof):
    target, shadow, seen = toy(seed, models)
    how = {"mode": mode, "centre": centre, "variance": variance, "ddof": ddof}
    found = lira(target=target, shadow=shadow, seen=seen, **how)
    expected = by_hand(target, shadow, seen, *how.values())
    np.testing.assert_allclose(found.scores, expected, rtol=1e-9, atol=1e-9)
    assert (found.mode, found.centre, found.variance, found.ddof) == tuple(how.values())
    assert found.convention == f"{mode}, {centre}, {variance} variance, ddof {ddof}"
    np.testing.assert_array_equal(found.n_seen, seen.sum(axis=0))
    np.testing.assert_array_equal(found.n_unseen, (~seen).sum(axis=0))


@settings(max_examples=40)
@given(seed=st.integers(0, 9999), centre=st.sampled_from(["mean", "median"]))
def test_tensorflow_privacys_convention_is_one_of_ours(seed, centre):
    """There: low = seen, medians by default, np.std, and 1e-30 added to each deviation."""
    target, shadow, seen = toy(seed, 9)
    average = np.nanmedian if centre == "median" else np.nanmean
    theirs = []
    for i, phi in enumerate(target):
        ins, outs = shadow[seen[:, i], i], shadow[~seen[:, i], i]
        log_in = stats.norm.logpdf(phi, average(ins), np.nanstd(ins) + 1e-30)
        log_out = stats.norm.logpdf(phi, average(outs), np.nanstd(outs) + 1e-30)
        theirs.append(-(log_in - log_out))
    found = lira(
        target=target, shadow=shadow, seen=seen, centre=centre, variance="per_example", ddof=0
    )
    np.testing.assert_allclose(found.scores, -np.array(theirs), rtol=1e-11, atol=1e-11)


def test_extreme_scores_stay_finite_and_ordered():
    shadow = np.array([[1.0, 1.0], [2.0, 2.0], [-1.0, -1.0], [-2.0, -2.0]])
    seen = np.repeat([[True, True], [False, False]], 2, axis=0)
    how = {"shadow": shadow, "seen": seen, "variance": "per_example"}
    for mode in MODES:
        found = lira(target=[1e8, 1e9], mode=mode, **how)
        assert np.isfinite(found.scores).all()
    one_sided = lira(target=[1e8, -1e9], mode="offline_one_sided", **how)
    assert one_sided.scores[0] > 1e10
    assert one_sided.scores[1] == 0.0
    symmetric = lira(target=[1e8, -1e9], mode="offline_symmetric", **how)
    assert symmetric.scores[1] > symmetric.scores[0] > 1e10, "what is unlikely looks seen"


def test_offline_without_seen_takes_all_models_for_unseen():
    target, shadow, _ = toy()
    for mode in MODES[1:]:
        found = lira(target=target, shadow=shadow, mode=mode)
        same = lira(target=target, shadow=shadow, seen=np.zeros(shadow.shape), mode=mode)
        np.testing.assert_array_equal(found.scores, same.scores)
        assert found.n_seen.tolist() == [0] * 6


def test_scale_and_shift_of_an_example_and_exchange_of_sides():
    target, shadow, seen = toy(3)
    rng = np.random.default_rng(0)
    found = lira(target=target, shadow=shadow, seen=seen, variance="per_example")
    factor, shift = rng.gamma(2.0, size=6), rng.normal(size=6)
    moved = lira(
        target=factor * target + shift,
        shadow=factor * shadow + shift,
        seen=seen,
        variance="per_example",
    )
    np.testing.assert_allclose(moved.scores, found.scores, rtol=1e-9)
    exchanged = lira(target=target, shadow=shadow, seen=~seen, variance="per_example")
    np.testing.assert_allclose(exchanged.scores, -found.scores, rtol=1e-12)
    order = rng.permutation(8)
    again = lira(target=target, shadow=shadow[order], seen=seen[order], variance="per_example")
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("variance", ["per_example", "pooled", "global"])
def test_seen_examples_score_higher(mode, variance):
    rng = np.random.default_rng(1)
    truth = rng.random(400) < 0.5
    seen = rng.random((16, 400)) < 0.5
    target = rng.normal(size=400) + 3.0 * truth
    shadow = rng.normal(size=(16, 400)) + 3.0 * seen
    found = lira(target=target, shadow=shadow, seen=seen, mode=mode, variance=variance)
    assert found.scores[truth].mean() > found.scores[~truth].mean() + 1.0


def test_faults_are_listed_at_once():
    with pytest.raises(
        InvalidInput,
        match=r"mode='on' .*; centre='x' .*; variance='y' .*; ddof=2 .*; target .*; seen has",
    ):
        lira(target=[np.nan], shadow=[[1.0]], seen=[[1, 0]], mode="on", centre="x", variance="y",
             ddof=2)  # fmt: skip
    with pytest.raises(InvalidInput, match=r"target holds values beyond 1e\+130"):
        lira(target=[1e200], shadow=[[1.0]], mode="offline_one_sided")
    with pytest.raises(InvalidInput, match="needs seen"):
        lira(target=[1.0], shadow=[[1.0]])
    with pytest.raises(
        InvalidInput, match=r"other than False and True; target has 2 entries for 1"
    ):
        lira(target=[1.0, 2.0], shadow=[[1.0]], seen=[[3]])


def test_too_few_models_are_refused():
    _, shadow, seen = toy()
    seen[:, 2] = True
    with pytest.raises(NotEnoughEvidence, match=r"1 example\(s\) were left out by .*example 2: 0"):
        lira(target=np.zeros(6), shadow=shadow, seen=seen, variance="per_example")
    seen[:, 2] = False
    with pytest.raises(NotEnoughEvidence, match=r"seen by fewer than 2 of the 8 models"):
        lira(target=np.zeros(6), shadow=shadow, seen=seen, variance="per_example")
    offline = {"mode": "offline_one_sided", "variance": "per_example"}
    assert lira(target=np.zeros(6), shadow=shadow, seen=seen, **offline).scores.size
    two = {"target": [0.0, 1.0], "shadow": [[1.0, 2.0], [0.0, 4.0]], "seen": [[1, 0], [0, 1]]}
    with pytest.raises(NotEnoughEvidence, match="pooled variance needs models that differ"):
        lira(**two, variance="pooled")
    assert np.isfinite(lira(**two, variance="global").scores).all()


def test_scores_that_are_all_alike_have_no_variance_of_their_own():
    target, shadow, seen = toy()
    shadow[seen[:, 4], 4] = 0.1
    with pytest.raises(NotEnoughEvidence, match=r"1 example\(s\) have the same score.*example 4"):
        lira(target=target, shadow=shadow, seen=seen, variance="per_example")
    assert np.isfinite(
        lira(target=target, shadow=shadow, seen=seen, variance="pooled").scores
    ).all()


def never_memorised(rng, *, a_side, examples, deviations=0.0):
    """Models for which seen and unseen examples have one law; the first is the target."""
    spread = np.exp(deviations * rng.normal(size=examples))
    scores = rng.normal(size=(2 * a_side + 1, examples)) * spread
    seen = np.repeat([True, False], a_side)[:, None] & np.ones(examples, dtype=bool)
    return {"target": scores[0], "shadow": scores[1:], "seen": seen}


def test_the_default_pools_variances_under_64_shadow_models():
    rng = np.random.default_rng(0)
    for a_side, expected in ((8, "pooled"), (31, "pooled"), (32, "per_example")):
        given = never_memorised(rng, a_side=a_side, examples=5)
        found, chosen = lira(**given), lira(**given, variance=expected)
        np.testing.assert_array_equal(found.scores, chosen.scores)
        assert found.variance == expected
        assert f"{expected} variance" in found.convention


@pytest.mark.parametrize("mode", MODES)
def test_the_default_refuses_fewer_than_8_models_a_side(mode):
    given = never_memorised(np.random.default_rng(0), a_side=7, examples=3)
    seen, unseen = (7, 7) if mode == "online" else (0, 7)
    least = 8 if mode == "online" else 0
    if mode != "online":
        given["shadow"], given["seen"] = given["shadow"][7:], given["seen"][7:]
    message = rf"example 0: {seen} saw it, {unseen} did not\); it takes {least} and 8"
    with pytest.raises(NotEnoughEvidence, match=rf"^3 example\(s\) .*{message}"):
        lira(**given, mode=mode)
    for variance in ("per_example", "pooled"):
        assert np.isfinite(lira(**given, mode=mode, variance=variance).scores).all()


@pytest.mark.parametrize(("examples", "deviations"), [(1, 0.0), (4, 0.5), (4, 1.0), (200, 1.0)])
def test_the_default_seldom_calls_what_no_model_memorised_memorised(examples, deviations):
    """At most 1.1 % of log ratios are 4 or more, with as few models as the default takes."""
    rng = np.random.default_rng(examples)
    made = {"a_side": 8, "examples": examples, "deviations": deviations}
    audits = 4000 // min(examples, 20)
    wrong = [lira(**never_memorised(rng, **made)).scores >= 4.0 for _ in range(audits)]
    assert stats.binom.sf(np.sum(wrong) - 1, np.size(wrong), 0.011) > 1e-3, np.mean(wrong)


@pytest.mark.parametrize(("a_side", "expected"), [(3, 0.085), (4, 0.047)])
def test_variances_of_few_models_call_much_memorised_that_is_not(a_side, expected):
    """What the default avoids, at the rates that the documentation states."""
    given = never_memorised(np.random.default_rng(a_side), a_side=a_side, examples=20000)
    own = np.mean(lira(**given, variance="per_example").scores >= 4.0)
    assert own == pytest.approx(expected, abs=0.008)
    assert np.mean(lira(**given, variance="pooled").scores >= 4.0) < 0.003
