"""The feature study keeps what its definitions give, and survives being killed."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from remnant import FeaturePlan, Patch, m_score, white_box_m_score
from remnant.data import load_images
from remnant.data.image_shapes import other_images
from remnant.errors import NotEnoughEvidence, PlanError
from remnant.population import EarlyStop, Population
from remnant.records import Record
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.features import training as module
from remnant.studies.features.recipe import (
    AugmentSettings,
    FeatureCanarySettings,
    FeatureStudy,
    InfluenceSettings,
    OtherImageSettings,
    PatchSettings,
    ScoreSettings,
)
from remnant.studies.features.training import influential_places, random_places, stamp_canaries
from remnant.studies.shared.classifiers import maker_of
from remnant.studies.shared.settings import DataSettings, ModelSettings, TrainingSettings
from remnant.studies.shared.variants import Variant

STUDY = FeatureStudy(
    plan=FeaturePlan(canaries=3, seeds=2, unplanted=2, epochs=6, batch=32, patience=2, seed=3),
    data=DataSettings(name="framed-digits", examples=200),
    patch=PatchSettings(text="K"),
    images=OtherImageSettings(count=40),
    score=ScoreSettings(nulls=19, redraws=2, moments=(0, 1, 3)),
    influence=InfluenceSettings(on=True, checkpoints=4),
    model=ModelSettings(name="mlp1", options={"width": 0.125}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
)
DROPOUT = ModelSettings(name="mlp1", options={"width": 0.125, "dropout": 0.2})
BOTH = dataclasses.replace(
    STUDY,
    variants=(
        Variant("dropout", dataclasses.replace(STUDY, model=DROPOUT)),
        Variant(
            "augmented", dataclasses.replace(STUDY, augment=AugmentSettings(contrast=0.2, crop=19))
        ),
    ),
)
QUICK = Execution()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features") / "run"
    run_study(BOTH, folder, QUICK)
    return Record.open(folder)


@pytest.fixture(scope="module")
def trained():
    """All members again, trained by hand: with the population, and nothing of the study."""
    data, plan = load_images("framed-digits", examples=200), STUDY.plan
    patch = Patch.letter("K")
    places = random_places(STUDY, 180)
    images = np.concatenate([data.clean.images[:180], patch.stamp(data.clean.images[places])])
    labels = np.concatenate([data.clean.labels[:180], data.clean.labels[places]])
    mean, spread = float(data.clean.images.mean()), float(data.clean.images.std())

    def ready(given):
        return ((given - mean) / spread).astype(np.float32)

    population = Population(
        maker_of(STUDY, Execution(), like=np.zeros((1, 1, 20, 20)), classes=10),
        seeds=plan.starts,
        dropout_seeds=plan.dropout_seeds,
        precision="float32",
    )
    fit = population.fit(
        ready(images),
        labels,
        plan.schedule(examples=180, places=places),
        optimizer="adam",
        lr=0.01,
        early_stop=EarlyStop(
            ready(data.clean.images[180:]), data.clean.labels[180:], every=6, patience=2
        ),
    )
    return population, fit, data, ready


def asked(trained, member):
    """One member as anybody would ask it."""
    population, _, _, ready = trained
    model = maker_of(STUDY, Execution(), like=np.zeros((1, 1, 20, 20)), classes=10)()
    model.load_state_dict(population.state_dict(member))

    def predict(images):
        with torch.no_grad():
            return model.eval()(torch.from_numpy(ready(images))).double().softmax(dim=1).numpy()

    return predict


def test_m_is_what_m_score_gives_for_each_member_alone(done, trained):
    plain = done.results()["features"]["variants"][0]
    images = other_images("blocks", shape=(1, 20, 20), count=40)
    values, p_values, t_values = [], [], []
    for member in range(STUDY.plan.members):
        rng = np.random.default_rng([3, 5])
        patch = Patch.letter("K")
        one = m_score(asked(trained, member), images, patch, rng=rng, nulls=19, draws=20)
        values.append(one.value)
        p_values.append(one.p_value)
        t_values.append(one.t_test_p_value)
        unique, controls = (done.array(f"plain.{name}") for name in ("unique", "controls"))
        np.testing.assert_allclose(unique[member] - controls[member], one.per_image, atol=1e-6)
        nulls = done.array("plain.null_means")[member] - controls[member].mean()
        np.testing.assert_allclose(nulls, one.null_values, atol=1e-6)
    values, p_values, t_values = map(np.array, (values, p_values, t_values))
    grid, bare = STUDY.plan.grid, STUDY.plan.bare
    for canary, row in enumerate(plain["by_canary"]):
        np.testing.assert_allclose(row["m"], values[grid[:, canary]], atol=1e-6)
        np.testing.assert_allclose(row["p"], p_values[grid[:, canary]])
        np.testing.assert_allclose(row["twin_m"], values[STUDY.plan.twins], atol=1e-6)
    for kind, who in (("planted", grid), ("unplanted", bare)):
        group = plain[kind]
        assert group["n"] == who.size
        assert group["mean"][0] == pytest.approx(values[who].mean(), abs=1e-6)
        assert group["share_positive"][0] == np.mean(values[who] > 0)
        assert group["share_significant"][0] == np.mean(p_values[who] <= 0.05)
        assert group["share_t_test"][0] == np.mean(t_values[who] <= 0.05)
        assert group["largest"] == pytest.approx(values[who].max(), abs=1e-6)
    share = {kind: plain[kind]["share_significant"][0] for kind in ("planted", "unplanted")}
    assert plain["beyond"][0] == pytest.approx(share["planted"] - share["unplanted"])
    differences = values[grid] - values[STUDY.plan.twins][:, None]
    assert plain["beyond_m"][0] == pytest.approx(differences.mean(), abs=1e-6)


def test_the_white_box_score_is_of_the_canarys_own_class(done, trained):
    data = trained[2]
    found = done.array("plain.white_box")
    labels = done.array("canaries.labels")
    for member in (0, 2, 7):
        for canary, label in enumerate(labels.tolist()):
            rng = np.random.default_rng([3, 6])
            own = data.pool.labels == label
            # The study draws one random patch an image of all classes, so the same are given here.
            patch = Patch.letter("K")
            patch.shuffles(rng, 19)
            chance = patch.random_like(rng, len(own)).take(np.flatnonzero(own))
            predict, images = asked(trained, member), data.pool.images[own]
            gained = np.log(predict(patch.stamp(images))[:, label]) - np.log(
                predict(chance.stamp(images))[:, label]
            )
            assert found[member, canary] == pytest.approx(float(gained.mean()), abs=1e-5)
            near = white_box_m_score(predict, images, patch, label=label, rng=rng, nulls=19)
            assert np.sign(near.value) == np.sign(found[member, canary]) or abs(near.value) < 0.1
    box = done.results()["features"]["variants"][0]["white_box"]
    planted = [found[STUDY.plan.grid[s, c], c] for s in range(2) for c in range(3)]
    twins = [found[STUDY.plan.twins[s], c] for s in range(2) for c in range(3)]
    assert box["planted"][0] == pytest.approx(np.mean(planted))
    assert box["twins"][0] == pytest.approx(np.mean(twins))
    assert box["largest"] == max(planted)


def test_members_stop_early_and_are_followed_until_then(done, trained):
    _, fit, data, ready = trained
    stopped = np.where(fit.stopped_at < 0, fit.steps, fit.stopped_at)
    np.testing.assert_array_equal(done.array("plain.updates"), stopped)
    plain = done.results()["features"]["variants"][0]
    assert plain["stopped_epoch"] == [np.median(stopped) / 6, stopped.min() / 6, stopped.max() / 6]
    assert plain["through"]["epoch"] == [0.0, 1.0, 3.0]
    through = done.array("plain.through")
    assert through.shape == (3, STUDY.plan.members)
    assert [row[0] for row in plain["through"]["planted"]] == pytest.approx(
        through[:, STUDY.plan.grid].mean(axis=(1, 2)).tolist()
    )
    logits = trained[0].logits(ready(data.test.images))
    right = (logits.argmax(2).numpy() == data.test.labels).mean(axis=1)
    np.testing.assert_allclose(done.array("plain.test_accuracy"), right)
    assert done.results()["task"]["test_accuracy"] == pytest.approx(right[STUDY.plan.bare].mean())


def test_units_that_fire_for_the_letter_only(done, trained):
    population, _, _, ready = trained
    images = other_images("blocks", shape=(1, 20, 20), count=40)
    rng = np.random.default_rng([3, 5])
    patch = Patch.letter("K")
    patch.shuffles(rng, 19)
    chance = patch.random_like(rng, 40)

    def fires(member, stamped):
        model = maker_of(STUDY, Execution(), like=np.zeros((1, 1, 20, 20)), classes=10)()
        model.load_state_dict(population.state_dict(member))
        with torch.no_grad():
            hidden = model[:-1](torch.from_numpy(ready(stamped))).numpy() > 0
            return (hidden & ~(model[:-1](torch.from_numpy(ready(images))).numpy() > 0)).mean(0)

    planted = STUDY.plan.grid[0].tolist()
    letter = np.mean([fires(member, patch.stamp(images)) for member in planted], axis=0)
    random = np.mean([fires(member, chance.stamp(images)) for member in planted], axis=0)
    twin = fires(STUDY.plan.twins[0], patch.stamp(images))
    np.testing.assert_allclose(done.array("plain.activations"), [letter, random, twin], atol=1e-9)
    found = done.results()["features"]["variants"][0]["activations"]
    assert found["units"] == 16
    order = np.argsort(-letter, kind="stable")
    np.testing.assert_allclose(found["letter"], letter[order])
    np.testing.assert_allclose(found["random"], random[order])
    np.testing.assert_allclose(found["unplanted"], twin[order])


def test_how_much_m_differs_and_by_what(done):
    spread = done.results()["features"]["variants"][0]["spread"]
    unique, controls = done.array("plain.unique"), done.array("plain.controls")
    m = (unique - controls).mean(axis=1)[STUDY.plan.grid]
    assert spread["seeds"] == pytest.approx(np.sqrt(np.mean(m.var(axis=0, ddof=1))))
    assert spread["canaries"] == pytest.approx(m.mean(axis=0).std(ddof=1))
    assert spread["sign_changes"] == np.mean((m.min(axis=0) < 0) & (m.max(axis=0) > 0))
    drawn = np.column_stack([controls.mean(axis=1), done.array("plain.redrawn")])
    assert drawn.shape == (STUDY.plan.members, 3)
    by_draw = drawn[STUDY.plan.grid].var(axis=2, ddof=1)
    assert spread["patches"] == pytest.approx(np.sqrt(by_draw.mean()))


def test_the_record_has_all_that_the_report_reads(done):
    results = done.results()
    assert {"features", "task", "verdict", "scope"} <= results.keys()
    found = results["features"]
    assert [one["name"] for one in found["variants"]] == ["plain", "dropout", "augmented"]
    changes = [one["changes"] for one in found["variants"]]
    assert changes == ["", "dropout 0.2", "contrast 0.2, crop 19"]
    assert found["patch"] == {
        "what": "a letter of 5 x 5 pixels",
        "row": 1,
        "column": 1,
        "height": 5,
        "width": 5,
        "opacity": 1.0,
    }
    assert (found["canaries"], found["seeds"], found["unplanted"]) == (3, 2, 4)
    assert [one["what"] for one in found["pictures"]] == [
        "clean",
        "patched",
        "random",
        "image",
        "image patched",
        "image random",
    ]
    shown = {one["what"]: done.array(one["array"]) for one in found["pictures"]}
    patch = Patch.letter("K")
    np.testing.assert_array_equal(shown["patched"], patch.stamp(shown["clean"]))
    np.testing.assert_array_equal(shown["image patched"], patch.stamp(shown["image"]))
    assert shown["clean"].shape == (3, 1, 20, 20)
    assert shown["image random"].shape == (5, 1, 20, 20)
    assert [one["by_influence"] for one in found["variants"]] == [None] * 3  # drawn at random
    influences = [one["influence"] for one in found["variants"]]
    assert influences[1:] == [None, None]
    assert influences[0]["pearson"] is influences[0]["spearman"] is None  # of three canaries
    assert [one["example"] for one in influences[0]["changes"]] == done.array(
        "canaries.places"
    ).tolist()
    verdict, (_, low, high) = results["verdict"], found["variants"][0]["beyond"]
    assert (verdict["outcome"] == "FAIL") == (low > verdict["limit"])
    assert (verdict["outcome"] == "PASS") <= (high <= verdict["limit"])
    for one in found["variants"]:
        for part in ("planted", "unplanted"):
            for name in ("share_positive", "share_significant", "share_t_test", "mean"):
                value, low, high = one[part][name]
                assert low <= value <= high


def test_what_the_patch_says_is_nowhere(tmp_path):
    study = dataclasses.replace(
        STUDY,
        patch=PatchSettings(text="QX"),
        score=ScoreSettings(nulls=19),
        influence=InfluenceSettings(),
    )
    run_study(study, tmp_path / "run", QUICK)
    record = Record.open(tmp_path / "run")
    told = json.dumps([record.plan, record.results(), study.to_dict()]) + repr(study)
    assert "QX" not in told
    assert record.results()["features"]["patch"]["what"] == "a text of 5 x 11 pixels"
    other = dataclasses.replace(study, patch=PatchSettings(text="QY"))
    assert other.fingerprint != study.fingerprint
    with pytest.raises(PlanError) as caught:
        PatchSettings(text="q§x")
    assert "§" not in str(caught.value)


def test_a_killed_run_goes_on_to_the_same_numbers(done, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    calls = []

    def dies(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise Killed
        return module_reactions(*args, **kwargs)

    def dies_in_training(part, done, total):
        if (part, done) == ("plain", 20):
            raise Killed

    module_reactions = module.reactions
    often = dataclasses.replace(QUICK, checkpoint_seconds=0.0)
    with pytest.raises(Killed):
        run_study(BOTH, tmp_path / "run", often, progress=dies_in_training)
    assert (tmp_path / "run" / "checkpoint-plain.safetensors").exists()
    monkeypatch.setattr(module, "reactions", dies)
    with pytest.raises(Killed):
        run_study(BOTH, tmp_path / "run", often)
    assert (tmp_path / "run" / "checkpoint-variant1.safetensors").exists()
    monkeypatch.setattr(module, "reactions", module_reactions)
    trainings = []
    fit_members = module.fit_members

    def counted(study, *args, **kwargs):
        trainings.append(study)
        return fit_members(study, *args, **kwargs)

    monkeypatch.setattr(module, "fit_members", counted)
    run_study(BOTH, tmp_path / "run", often)
    again = Record.open(tmp_path / "run")
    assert len(trainings) == 2  # the first variant was kept
    assert again.results()["features"] == done.results()["features"]
    assert not list((tmp_path / "run").glob("checkpoint*"))
    run_study(BOTH, tmp_path / "run", often)
    assert len(trainings) == 2


def test_canaries_of_high_and_of_low_influence(tmp_path):
    study = dataclasses.replace(
        STUDY,
        canaries=FeatureCanarySettings(choice="influence"),
        score=ScoreSettings(nulls=19),
    )
    run_study(study, tmp_path / "run", QUICK)
    record = Record.open(tmp_path / "run")
    influence = record.array("influence.all")
    assert influence.shape == (180,)
    places = record.array("canaries.places")
    np.testing.assert_array_equal(np.sort(influence)[::-1][:2], influence[places[:2]])
    assert influence[places[2]] == influence.min()
    plain = record.results()["features"]["variants"][0]
    assert [one["high"] for one in plain["by_canary"]] == [True, True, False]
    # The twin of the first seed is the model that they were chosen by.
    np.testing.assert_allclose(record.array("plain.influence_before"), influence[places], rtol=1e-3)
    assert [one["high"] for one in plain["influence"]["changes"]] == [True, True, False]
    for name, mine in (("high", plain["by_canary"][:2]), ("low", plain["by_canary"][2:])):
        half = plain["by_influence"][name]
        assert (half["canaries"], half["n"]) == (len(mine), 2 * len(mine))
        found = [np.mean(np.array(one["p"]) <= 0.05) for one in mine]
        assert half["share_significant"][0] == pytest.approx(np.mean(found))
        assert half["mean"][0] == pytest.approx(np.mean([one["m"] for one in mine]))
        beyond = [np.array(one["m"]) - one["twin_m"] for one in mine]
        assert half["beyond_m"][0] == pytest.approx(np.mean(beyond))


def test_a_loss_that_never_fell_leaves_influence_unmeasured(tmp_path):
    study = dataclasses.replace(
        STUDY,
        score=ScoreSettings(nulls=19),
        training=TrainingSettings(optimizer="sgd", options={"lr": 0.0}),
    )
    run_study(study, tmp_path / "run", QUICK)
    plain = Record.open(tmp_path / "run").results()["features"]["variants"][0]
    assert plain["influence"] is None
    assert plain["by_canary"][0]["influence"] is None
    assert plain["beyond_m"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    chosen = dataclasses.replace(study, canaries=FeatureCanarySettings(choice="influence"))
    with pytest.raises(NotEnoughEvidence, match="has not fallen"):
        run_study(chosen, tmp_path / "none", QUICK)
    assert not (tmp_path / "none").exists()


def test_places_by_influence_are_the_ends():
    influence = np.random.default_rng(0).random(30)
    order = np.argsort(influence)
    assert influential_places(influence, 4).tolist() == [order[-1], order[-2], order[0], order[1]]
    assert influential_places(influence, 1).tolist() == [order[-1]]
    assert sorted(influential_places(np.zeros(4), 4).tolist()) == [0, 1, 2, 3]


def test_an_estimate_says_the_most_it_can_take(a_minute_a_step):
    found = estimate_study(BOTH, QUICK)
    assert found["members"] == 3 * STUDY.plan.members
    assert found["steps"] == 36
    assert found["minutes"] == 36 * len(BOTH.ways()), "the ways are trained one after another"
    assert found["memory_mib"] > 0
    assert found["at_most"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"patch": PatchSettings(row=16)}, "the patch takes rows 16 to 20 of 20"),
        ({"patch": PatchSettings(column=18)}, "the patch takes columns 18 to 22 of 20"),
        ({"augment": AugmentSettings(crop=18)}, "augment.crop=18 of 20 rows may cut the patch"),
        ({"augment": AugmentSettings(crop=21)}, "augment.crop=21 is more than the 20 rows"),
        ({"data": DataSettings(name="framed-digits", examples=3)}, "are more than the 2 training"),
        ({"images": OtherImageSettings(name="digits", count=2000)}, "count=2000 is more than"),
        ({"patch": PatchSettings(text=" I ", opacity=0.5)}, ""),
        ({"model": ModelSettings(name="mlp1", options={"depth": 3})}, "has no option depth"),
        ({"training": TrainingSettings(optimizer="lion")}, "lion"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(changes, said, tmp_path):
    study = dataclasses.replace(STUDY, **changes)
    if not said:
        study.patch.check((1, 20, 20))
        return
    with pytest.raises(ValueError, match=said):
        run_study(study, tmp_path / "run", QUICK)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("made", "fields", "said"),
    [
        (ScoreSettings, {"nulls": 18}, "score.nulls=18 is not a whole number of at least 19"),
        (ScoreSettings, {"nulls": 50, "significance": 0.01}, "no p-value of 0.01, which takes 99"),
        (ScoreSettings, {"control": "noise"}, "score.control='noise' is not one of uniform"),
        (ScoreSettings, {"limit": 0}, "score.limit=0 is not between 0 and 1"),
        (ScoreSettings, {"moments": [-1]}, "is not a list of numbers of at least 0"),
        (OtherImageSettings, {"count": 19}, "images.count=19 is not a whole number of at least 20"),
        (OtherImageSettings, {"name": "cats"}, "images.name='cats' is not one of blocks"),
        (FeatureCanarySettings, {"choice": "best"}, "canaries.choice='best' is not one of random"),
        (InfluenceSettings, {"on": 1}, "influence.on=1 is not true or false"),
        (InfluenceSettings, {"drop": 2}, "influence.drop=2 is not above 0 and at most 1"),
        (AugmentSettings, {"contrast": 2}, "augment.contrast=2 is not from 0 up to 1"),
        (AugmentSettings, {"flip": "yes"}, "augment.flip='yes' is not true or false"),
        (PatchSettings, {"size": 7}, "size=7 is not a multiple of 5"),
        (PatchSettings, {"text": 7}, "patch.text is not a text"),
        (PatchSettings, {"file": 7}, "patch.file is not a text"),
        (PatchSettings, {"file": "nowhere.png"}, "nowhere.png"),
    ],
)
def test_settings_out_of_range_are_refused(made, fields, said):
    with pytest.raises(PlanError, match=said):
        made(**fields)


RECIPE = {
    "question": "unique-features",
    "plan": {"kind": "feature", "canaries": 3, "seeds": 2},
    "model": {"name": "mlp1", "options": {"width": 0.125}},
}


def test_a_recipe_has_variants_by_name():
    study = study_from(
        {
            **RECIPE,
            "variants": {
                "dropout": {"model": {"options": {"dropout": 0.2}}},
                "both": {"model": {"options": {"dropout": 0.2}}, "augment": {"flip": True}},
            },
        }
    )
    assert study.training == TrainingSettings(optimizer="adam", options={"lr": 3e-4})
    assert [one.label for one in study.variants] == ["dropout", "both"]
    assert study.variants[1].study.augment == AugmentSettings(flip=True)
    assert list(study.ways()) == ["plain", "variant1", "variant2"]
    assert study.fingerprint != study_from(RECIPE).fingerprint
    assert study_from({**RECIPE, "variants": False}) == study_from(RECIPE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"variants": 3}, "variants is neither false nor a section of sections"),
        ({"variants": {"x": 3}}, "variants is neither false nor a section of sections"),
        ({"variants": {"plain": {}}}, "the label 'plain' stands for two"),
        ({"variants": {"x": {"plan": {"seeds": 3}}}}, r"variant 'x' changes \[plan\]"),
        ({"variants": {"x": {"data": {"examples": 9}}}}, r"variant 'x' changes \[data\]"),
        ({"variants": {"x": {"model": {"depth": 1}}}}, "variant 'x': unknown field model.depth"),
        ({"score": {"moments": [501]}}, r"score.moments=\[501\] are beyond the 500 epochs"),
        ({"plan": {"kind": "shadow"}}, "plan.kind='shadow' is not one of feature"),
        ({"compare": []}, "unknown section or field 'compare'"),
    ],
)
def test_faulty_recipes_are_refused(changes, said):
    with pytest.raises(PlanError, match=said):
        study_from({**RECIPE, **changes})


def test_the_store_holds_training_examples_then_stamped_canaries():
    data = load_images("framed-digits", examples=50)
    places = np.array([4, 40, 0])
    stamped = stamp_canaries(STUDY, data, Patch.letter("K"), places)
    assert stamped.examples == 45
    assert len(stamped.validation) == 5
    own = stamped.store.images * stamped.spread + stamped.mean
    np.testing.assert_allclose(own[:45], data.clean.images[:45], atol=1e-5)
    expected = Patch.letter("K").stamp(data.clean.images[places])
    np.testing.assert_allclose(own[45:], expected, atol=1e-5)
    np.testing.assert_array_equal(stamped.store.labels[45:], data.clean.labels[places])


def test_a_driver_killed_after_each_job_runs_none_twice_and_gives_the_same_bits(
    done, tmp_path, killed_after_each_job, same_run
):
    jobs = killed_after_each_job(BOTH, tmp_path / "again")
    assert sorted(jobs) == sorted(BOTH.ways())
    same_run(done.folder, tmp_path / "again")
