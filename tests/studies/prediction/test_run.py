"""The prediction study keeps what its definitions give, and survives being killed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from remnant import ShadowPlan, lira, lira_leave_one_out
from remnant.errors import NotEnoughEvidence, PlanError, RecordError, UnsupportedModel
from remnant.measures import counterfactual_memorization, loss_trace_iqr, roc, stopping_point
from remnant.records import Record
from remnant.studies import Execution, run_study
from remnant.studies.prediction import images as module
from remnant.studies.prediction.early_looks import (
    EarlyLooks,
    kept_looks,
    target_members,
    trace_steps,
)
from remnant.studies.prediction.pool_labels import Truth
from remnant.studies.prediction.protect_list import make_list
from remnant.studies.prediction.recipe import (
    PlantedSettings,
    PredictionStudy,
    PredictSettings,
    TruthSettings,
)
from remnant.studies.prediction.result import ListCheck
from remnant.studies.prediction.shadow_pool import PoolScores
from remnant.studies.prediction.verdict import list_finding
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.settings import DataSettings, ModelSettings, TrainingSettings

STUDY = PredictionStudy(
    plan=ShadowPlan(models=12, steps=200, batch=16),
    data=DataSettings(name="digits", examples=200),
    canaries=PlantedSettings(mislabelled=30, odd=10, blank=10),
    model=ModelSettings(name="mlp1", options={"width": 0.125}),
    training=TrainingSettings(options={"lr": 0.2}),
    predict=PredictSettings(
        directions=50, layers=("last", "2"), targets=3, moments=(1.0, 4.0, 8.0, 12.0, 16.0)
    ),
    truth=TruthSettings(threshold=1.0, thresholds=(0.0, 1.0), false_alarms=1.0),
)
QUICK = Execution(pool_block=6)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prediction") / "run"
    run_study(STUDY, folder, QUICK)
    return Record.open(folder)


def pooled(record):
    """The pool's scores ``(models, 6, n)`` and who saw what, read by hand."""
    pool = Record.open(record.folder / "pool")
    scores = np.concatenate([pool.array("models-0-6"), pool.array("models-6-12")])
    return scores, STUDY.plan.seen(examples=250)


def test_the_truth_is_that_of_the_measures_on_the_pool(done):
    scores, seen = pooled(done)
    gaps = scores[:, 5]
    everyone = lira_leave_one_out(scores=gaps, seen=seen, variance="per_example")
    np.testing.assert_allclose(done.array("truth.lira"), everyone.success_rate)
    np.testing.assert_allclose(
        done.array("truth.counterfactual"),
        counterfactual_memorization(scores=gaps, seen=seen).values,
    )
    for row, target in enumerate((0, 2, 4)):
        others = np.arange(12) != target
        local = lira(
            target=gaps[target], shadow=gaps[others], seen=seen[others], variance="pooled"
        ).scores
        np.testing.assert_allclose(done.array("truth.local")[row], local)
        if target == 0:
            share = np.mean(local[seen[0]] >= 1.0)
    truth = done.results()["truth"]
    assert truth["memorised_share"] == share
    assert [one["kind"] for one in truth["by_kind"]] == ["mislabelled", "odd", "blank", "clean"]
    assert [one["n"] for one in truth["by_kind"]] == [30, 10, 10, 200]


def test_targets_are_the_pools_own_members(done):
    """Looking at a model early does not change it, nor do its neighbours."""
    scores, _ = pooled(done)
    looks = kept_looks(done)
    stop = looks.steps.index(done.results()["prediction"]["stop"]["step"])
    for row, target in enumerate(target_members(3)):
        for moment, part in ((stop, scores[target, :3]), (-1, scores[target, 3:])):
            own = STUDY.plan.seen(examples=250, members=[target])[0]
            found = looks.signals[moment, row][:, own]
            np.testing.assert_allclose(found, part[:, own], rtol=1e-3, atol=1e-3)


def test_rows_are_made_from_what_was_kept(done):
    """Every predictor's AUC again, from the arrays and the definitions."""
    found = done.results()["prediction"]
    looks, scores = kept_looks(done), pooled(done)[0]
    seen = STUDY.plan.seen(examples=250)
    own = seen[0]
    losses = looks.signals[:, 0, 0][:, own]
    point = stopping_point(losses=losses, drop=0.95)
    stop = point.closest if point.index is None else point.index
    assert found["stop"]["step"] == looks.steps[stop]
    assert found["stop"]["median_loss"] == np.median(losses, axis=1).tolist()
    others = np.arange(12) != 0
    early = lira(
        target=scores[0, 2], shadow=scores[others, 2], seen=seen[others], variance="pooled"
    ).scores
    risks = {
        "psmi": looks.psmi[stop, 0, 0, own],
        "loss": losses[stop],
        "logit_gap": -looks.signals[stop, 0, 2, own],
        "mahalanobis": looks.mahalanobis[stop, 0, 0, own],
        "lt_iqr": loss_trace_iqr(looks.trace[:, own]),
        "early_lira": early[own],
    }
    truth = done.array("truth.local")[0, own] >= 1.0
    assert [row["predictor"] for row in found["quality"]] == list(risks)
    for row in found["quality"]:
        risk = risks[row["predictor"]]
        curve = roc(risk[truth], risk[~truth])
        area = np.trapezoid(curve.tpr, curve.fpr)
        assert row["auc"][0] == pytest.approx(area), row["predictor"]
        assert row["auc"][1] <= row["auc"][0] <= row["auc"][2]
        assert row["n_memorised"] == truth.sum()
        assert len(row["others"]) == (0 if row["predictor"] in ("lt_iqr", "mahalanobis") else 2)
    flagged = found["quality"][0]["default_tpr"][0]
    assert flagged == pytest.approx(np.mean(risks["psmi"][truth] >= 0))
    moments = len(looks.steps) - 1
    assert len(found["by_time"]) == 4 * moments
    assert [row["layer"] for row in found["by_layer"]] == ["last", "last", "2", "2"]
    assert {row["threshold"] for row in found["by_threshold"]} == {0.0, 1.0}
    assert np.isnan(looks.psmi[1:, :, 0][..., ~own]).all()
    assert np.isfinite(looks.psmi[1:, :, 0][..., own]).all()


def test_the_list_is_checked_on_a_target_it_was_not_made_on(done):
    protect = done.results()["protect"]
    looks, seen = kept_looks(done), STUDY.plan.seen(examples=250)
    assert protect["runs"] == 2
    assert protect["check"]["model"] == 4
    listed = done.array("protect.listed")
    assert not listed[~seen[0]].any()
    assert listed.sum() == protect["listed"] <= np.ceil(protect["share"] * protect["n"])
    losses = looks.signals[:, 2, 0][:, seen[4]]
    point = stopping_point(losses=losses)
    stop = point.closest if point.index is None else point.index
    risk = looks.psmi[stop, 0, 2, seen[4]]
    truth = done.array("truth.local")[2, seen[4]] >= 1.0
    order = np.argsort(-risk)[: int(protect["share"] * risk.size + 1e-9)]
    assert protect["check"]["missed"] == truth.sum() - truth[order].sum()
    verdict = done.results()["verdict"]
    assert "outcome" not in verdict
    assert verdict["sentence"].startswith(f"Protect {protect['listed']} of {protect['n']} samples")
    check = protect["check"]
    missed = f"An independent run missed {check['missed']} of {check['memorised']}."
    assert missed in verdict["sentence"]
    risks = [one["risk"] for one in protect["samples"]]
    assert risks == sorted(risks, reverse=True)
    assert len(risks) == 25


def test_false_alarms_are_how_often_unseen_samples_are_called_memorised(done):
    local, seen = done.array("truth.local"), STUDY.plan.seen(examples=250, members=[0, 2, 4])
    for target, found in enumerate(done.results()["truth"]["false_alarms"]):
        out, hit = ((local[target, side] >= 1.0).mean() for side in (~seen[target], seen[target]))
        assert found == pytest.approx(min(1.0, out / hit))


def test_a_target_whose_truth_is_chance_makes_no_rule_and_checks_none(done):
    """Of three targets the last calls every sample memorised, seen or not."""
    looks = kept_looks(done)
    scores, seen = pooled(done)
    local = done.array("truth.local").copy()
    local[2] = 9.0
    truth = Truth(
        local=local, lira=local[0], counterfactual=local[0], rmia=local[0], scores=scores[:, 5],
        convention="", false_alarms=np.array([0.0, 0.1, 1.0]),
    )  # fmt: skip
    evidence = EarlyLooks(
        looks=looks, targets=(0, 2, 4), pool=PoolScores(scores, seen), epoch=1.0,
        labels=np.zeros(250, dtype=int), kinds=np.array(["clean"] * 250), what="",
    )  # fmt: skip
    members, strict = seen[[0, 2, 4]], dataclasses.replace(STUDY.truth, false_alarms=0.2)

    def risk(predictor, target):
        return looks.psmi[-1, 0, target, members[target]]

    protect, _ = make_list(risk, STUDY.predict, strict, evidence, truth)
    assert protect.unfit == (4,)
    assert protect.runs == 1
    assert protect.check.model == 2
    nobody = dataclasses.replace(truth, false_alarms=np.ones(3))
    with pytest.raises(NotEnoughEvidence, match="every target calls too many samples memorised"):
        make_list(risk, STUDY.predict, strict, evidence, nobody)
    alone = dataclasses.replace(truth, false_alarms=np.array([0.0, 1.0, 1.0]))
    assert make_list(risk, STUDY.predict, strict, evidence, alone)[0].check is None


def worlds(targets, *, between=0.0, last=0.0, seed=0, memorised=100, n=600):
    """Evidence of targets whose memorised samples stand out by two, give or take; all saw all."""
    rng = np.random.default_rng(seed)
    own = np.arange(n) < memorised
    shift = (
        2.0
        + between * rng.normal(size=(targets, 1))
        - last * (np.arange(targets) == targets - 1)[:, None]
    )
    risks = rng.normal(size=(targets, n)) + shift * own
    evidence = EarlyLooks(
        looks=None,
        targets=tuple(range(0, 2 * targets, 2)),
        pool=PoolScores(np.empty(0), np.ones((2 * targets, n), dtype=bool)),
        epoch=1.0,
        labels=np.zeros(n, dtype=np.int64),
        kinds=np.full(n, "clean"),
        what="",
    )
    truth = Truth(
        **dict.fromkeys(("lira", "counterfactual", "rmia", "scores")),
        local=np.where(own, 9.0, 0.0)[None].repeat(targets, axis=0),
        convention="",
        false_alarms=np.zeros(targets),
    )
    settings = PredictSettings(targets=targets, limit=0.999)
    made = make_list(lambda _, at: risks[at], settings, TruthSettings(), evidence, truth)[0]
    return made, list_finding(made, settings)


REFUTED = "The protect list misses more than it states"
HELD = "A short list holds most memorised samples"


@pytest.mark.parametrize(("targets", "between"), [(2, 0.0), (4, 0.0), (4, 0.3), (8, 0.3)])
def test_an_honest_list_seldom_fails_and_one_that_does_not_carry_over_mostly(targets, between):
    """At most one honest rule in twenty is refuted, however many samples the check has."""
    audits, headlines = 150, []
    for seed in range(audits):
        made, verdict = worlds(targets, between=between, seed=seed, memorised=200)
        check = made.check
        assert check.held == (check.missed / check.memorised <= made.stated)
        assert not (check.held and check.refuted)
        headlines.append(verdict.headline)
        assert (headlines[-1] == REFUTED) == check.refuted
    refuted, held = headlines.count(REFUTED), headlines.count(HELD)
    assert stats.binom.sf(refuted - 1, audits, 0.05) > 1e-3, refuted
    assert stats.binom.cdf(held, audits, 0.9) > 1e-3, held
    worse = [worlds(targets, last=1.5, seed=seed)[1].headline for seed in range(20)]
    assert worse.count(REFUTED) >= 15


def test_the_finding_says_when_a_rate_above_the_stated_one_may_be_chance():
    made, _ = worlds(4)
    check = ListCheck(
        memorised=736,
        missed=142,
        rate=Estimate(0.193, 0.165, 0.223),
        held=False,
        chance=0.083,
        refuted=False,
        model=6,
    )
    rule = {"share": 0.2, "stated": 0.192, "listed": 72, "n": 499, "runs": 3}
    made = dataclasses.replace(made, **rule, check=check)
    found = list_finding(made, PredictSettings())
    assert found.headline == "The protect list may miss more than it states"
    assert found.sentence == (
        "Protect 72 of 499 samples: misses at most 20 % of the memorised ones (90 % confidence; 3 "
        "trainings cannot exclude that up to 63% of trainings behave otherwise). "
        "An independent run missed 142 of 736. That is more than stated, but 8.3 % of runs miss "
        "as many by chance."
    )
    refuted = dataclasses.replace(check, chance=0.012, refuted=True)
    found = list_finding(dataclasses.replace(made, check=refuted), PredictSettings())
    assert found.headline == REFUTED
    assert found.advice.startswith("Do not use this list.")
    held = dataclasses.replace(check, held=True)
    long = dataclasses.replace(made, check=held, share=0.9)
    assert list_finding(long, PredictSettings()).headline.startswith("Only a long list")
    unchecked = dataclasses.replace(made, check=None)
    assert list_finding(unchecked, PredictSettings()).headline == "The protect list is unchecked"


def test_mislabelled_samples_are_predicted_better_than_chance(done):
    psmi = done.results()["prediction"]["quality"][0]
    assert psmi["auc"][1] > 0.5


class Killed(BaseException):
    pass


def test_a_run_that_was_killed_in_the_pool_goes_on_with_the_same_numbers(
    done, tmp_path, monkeypatch
):
    honest = module.fit_classifiers
    calls = []

    def killed(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:  # the targets, the first block, and then
            raise Killed
        return honest(*args, **kwargs)

    monkeypatch.setattr(module, "fit_classifiers", killed)
    with pytest.raises(Killed):
        run_study(STUDY, tmp_path / "run", QUICK)
    run_study(STUDY, tmp_path / "run", QUICK)
    assert len(calls) == 4, "neither targets nor the first block are trained again"
    assert Record.open(tmp_path / "run").results() == done.results()


def test_a_driver_killed_after_each_job_runs_none_twice_and_gives_the_same_bits(
    done, tmp_path, killed_after_each_job, same_run
):
    jobs = killed_after_each_job(STUDY, tmp_path / "again", pool_block=QUICK.pool_block)
    assert jobs == ["targets", "models 7 to 12 of 12", "models 1 to 6 of 12"]
    same_run(done.folder, tmp_path / "again")


def test_a_pool_is_topped_up_and_refused_to_another_recipe(done, tmp_path, monkeypatch):
    trained = []
    honest = module.fit_classifiers

    def counted(study, members, *args, **kwargs):
        trained.append(len(members.seeds))
        return honest(study, members, *args, **kwargs)

    monkeypatch.setattr(module, "fit_classifiers", counted)
    small = dataclasses.replace(STUDY, plan=dataclasses.replace(STUDY.plan, models=8))
    shared = dataclasses.replace(QUICK, pool_folder=tmp_path / "pool")
    run_study(small, tmp_path / "small", shared)
    run_study(STUDY, tmp_path / "large", shared)
    assert trained == [3, 6, 2, 3, 4], "three targets, eight models; then the other four"
    large = Record.open(tmp_path / "large").array("truth.lira")
    np.testing.assert_allclose(large, done.array("truth.lira"))
    other = dataclasses.replace(STUDY, training=TrainingSettings(options={"lr": 0.1}))
    with pytest.raises(RecordError, match="the pool of another plan or recipe"):
        run_study(other, tmp_path / "other", shared)
    assert not (tmp_path / "other").exists()
    assert trained == [3, 6, 2, 3, 4], "refused before anything is trained"


def test_the_row_at_the_stop_has_one_interval_in_all_tables(done):
    """By predictor, by time, by layer and by threshold: the same number, the same ends."""
    found = done.results()["prediction"]
    main = next(row for row in found["quality"] if row["predictor"] == "psmi")
    for table in ("by_time", "by_layer", "by_threshold"):
        for row in found[table]:
            place = [row[name] for name in ("predictor", "layer", "step", "threshold")]
            if place == [main[name] for name in ("predictor", "layer", "step", "threshold")]:
                assert row["fpr_at_tpr"] == main["fpr_at_tpr"], table
                assert row["auc"] == main["auc"], table
    steps = [row["step"] for row in found["by_time"]]
    assert main["step"] in steps


def test_nothing_memorised_is_told_and_not_judged(done, tmp_path):
    study = dataclasses.replace(STUDY, truth=TruthSettings(threshold=1e6, thresholds=()))
    shared = dataclasses.replace(QUICK, pool_folder=done.folder / "pool")
    run_study(study, tmp_path / "run", shared)
    results = Record.open(tmp_path / "run").results()
    assert "memorised" in results["prediction"]["absent"]
    assert "absent" in results["protect"]
    assert "outcome" not in results["verdict"]
    assert results["verdict"]["headline"] == "No protect list can be made"
    assert results["truth"]["memorised_share"] == 0.0


def test_lower_thresholds_are_judged_where_the_main_one_leaves_too_few(done, tmp_path):
    """Rows by threshold are those of a study whose main threshold has enough."""
    limits = (0.0, 1.0, 1e6)
    study = dataclasses.replace(STUDY, truth=TruthSettings(threshold=1e6, thresholds=limits))
    shared = dataclasses.replace(QUICK, pool_folder=done.folder / "pool")
    run_study(study, tmp_path / "run", shared)
    results, whole = Record.open(tmp_path / "run").results(), done.results()["prediction"]
    found = results["prediction"]
    assert found["quality"] == found["by_time"] == found["by_layer"] == []
    for row, other in zip(found["by_threshold"], whole["by_threshold"], strict=True):
        assert row["auc"][0] == other["auc"][0]
        if row["threshold"] != 1.0:  # the whole study's main threshold, with more draws
            assert row == other
    assert {row["threshold"] for row in found["by_threshold"]} == {0.0, 1.0}
    assert found["stop"] == whole["stop"]
    assert all(one["memorised"] == 0.0 for one in found["canaries"])
    n = found["by_threshold"][-1]["n_memorised"]
    assert "outcome" not in results["verdict"]
    assert results["verdict"]["sentence"] == (
        "Prediction cannot be checked: at the threshold 1e+06 the first target memorised 0 of its "
        "125 samples; it takes 4 that it did and one that it did not. At 1, the highest of "
        f"truth.thresholds with enough, it memorised {n}."
    )
    assert "absent" in results["protect"]


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        ({"models": 7}, "plan.models=7 is not an even number of at least 8"),
        ({"models": 6}, "plan.models=6 is not an even number of at least 8"),
        ({"fraction": 0.4}, r"plan.fraction=0.4 is not 0.5"),
    ],
)
def test_plans_that_cannot_be_judged_are_refused(plan, match):
    with pytest.raises(PlanError, match=match):
        dataclasses.replace(STUDY, plan=dataclasses.replace(STUDY.plan, **plan))


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"predict": PredictSettings(layers=("nowhere",))}, UnsupportedModel, "no layer 'nowhere'"),
        ({"predict": PredictSettings(moments=(99.0,))}, PlanError, "beyond the 25.6 epochs"),
        (
            {"canaries": PlantedSettings(mislabelled=10_000)},
            PlanError,
            "mislabelled=10000 are needed, and the pool of digits holds 539",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(tmp_path, changes, error, match):
    with pytest.raises(error, match=match):
        run_study(dataclasses.replace(STUDY, **changes), tmp_path / "run", QUICK)
    assert not (tmp_path / "run").exists()


def test_faulty_settings_are_all_named():
    with pytest.raises(PlanError, match=r"targets=0 .*drop=2 .*layers=\(\) .*predictor='guess'"):
        PredictSettings(targets=0, predictor="guess", drop=2, layers=())
    with pytest.raises(PlanError, match=r"signal='x' .*variance='y' .*threshold=None"):
        TruthSettings(signal="x", variance="y", threshold=None)
    with pytest.raises(PlanError, match="odd=-1 is not a whole number"):
        PlantedSettings(odd=-1)


def test_moments_thin_out_and_epochs_are_kept_whole():
    steps = PredictSettings().steps(epoch=100, last=1000)
    assert steps == (0, 20, 40, 60, 80, 100, *range(150, 250, 50), *range(300, 801, 100), 960, 1000)
    assert PredictSettings(moments=[0.5, 2]).steps(epoch=10, last=30) == (0, 5, 20, 30)
    assert PredictSettings().steps(epoch=100, last=30) == (0, 20, 30)
    assert trace_steps(epoch=100, last=350) == (100, 200, 300)
