"""Hard, medium and easy canaries come from a fixed share of the pool, however many are planted."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from remnant import InjectPlan, StaggeredPlan
from remnant.canaries import BY_LOSS
from remnant.cli.main import commands
from remnant.data import load_images
from remnant.errors import PlanError
from remnant.studies import (
    Execution,
    ForgettingStudy,
    estimate_study,
    read_recipe,
    run_study,
    study_from,
)
from remnant.studies.forgetting.run import _cast
from remnant.studies.one_run.recipe import OneRunSettings, OneRunStudy
from remnant.studies.recipe_form.toml import recipe_text
from remnant.studies.shared.image_canaries import draw_canaries
from remnant.studies.shared.settings import CanarySettings, DataSettings
from remnant.studies.shared.variants import Variant

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLAN = InjectPlan(canaries=16, step=5, watch_steps=5, trials=3, batch=32, fresh_canaries=True)
RECIPE = {
    "question": "forgetting",
    "plan": {
        "kind": "inject",
        "canaries": 16,
        "step": 5,
        "watch_steps": 5,
        "trials": 3,
        "fresh_canaries": True,
    },
    "canaries": {"kind": "hard", "share": 0.5},
}


def study_of(kind="hard", plan=PLAN, **settings):
    return ForgettingStudy(
        plan=plan,
        data=DataSettings(examples=200),
        canaries=CanarySettings(kind=kind, judge_steps=10, **settings),
    )


@pytest.mark.parametrize("kind", BY_LOSS)
def test_more_trials_draw_from_the_same_images(kind):
    data = load_images("digits", folder=None, examples=100, seed=0)
    losses = np.random.default_rng(0).exponential(size=len(data.pool))
    order = np.argsort(losses)
    first = {"easy": 0, "medium": (539 - 134) // 2, "hard": 539 - 134}[kind]
    share = {data.pool.images[row].tobytes() for row in order[first : first + 134]}
    assert len(share) == 134, "a quarter of 539 images"
    for trials in (2, 8):
        plan = dataclasses.replace(PLAN, trials=trials)
        drawn = draw_canaries(plan, CanarySettings(kind=kind), data, losses)
        images = [image.tobytes() for image in drawn.images]
        assert len(set(images)) == len(images) == 16 * trials
        assert set(images) <= share


def test_a_share_is_a_quarter_and_in_the_fingerprint_for_kinds_by_loss_alone():
    for kind in BY_LOSS:
        assert CanarySettings(kind=kind).share == 0.25
        assert study_of(kind).fingerprint == study_of(kind, share=0.25).fingerprint
        assert study_of(kind).fingerprint != study_of(kind, share=0.5).fingerprint
    assert CanarySettings().share is None
    plain = study_of("odd").to_dict()
    del plain["canaries"]["share"]
    assert study_from(plain).fingerprint == study_of("odd").fingerprint


@pytest.mark.parametrize("kind", ["mislabelled", "odd", "blank"])
def test_other_kinds_have_no_share(kind):
    words = rf"canaries.share=0.25 is for kinds .* \(hard, medium, easy\), .*kind is '{kind}'"
    with pytest.raises(PlanError, match=words):
        CanarySettings(kind=kind, share=0.25)
    for share in (0, 1.1, -0.5):
        with pytest.raises(PlanError, match=rf"canaries.share={share} is not above 0"):
            CanarySettings(kind="hard", share=share)
    assert CanarySettings(kind="hard", share=1).share == 1


def test_a_variant_or_scale_of_another_kind_leaves_the_share(tmp_path):
    other = {"label": "odd", "canaries": {"kind": "odd"}}
    same = {"label": "often", "canaries": {"judges": 2}}
    study = study_from({**RECIPE, "compare": [other, same]})
    assert [one.study.canaries.share for one in study.compare] == [None, 0.5]
    again = study_from(tomllib.loads(recipe_text(study.to_dict())))
    assert again == study
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text(RECIPE) + '\n[scale.odd]\ncanaries.kind = "odd"\n')
    assert read_recipe(path, scale="odd").canaries.share is None
    given = {"label": "odd", "canaries": {"kind": "odd", "share": 0.5}}
    with pytest.raises(PlanError, match=r"compare 'odd': canaries.share=0.5 is for kinds"):
        study_from({**RECIPE, "compare": [given]})


STAGGERED = StaggeredPlan(canaries=140, never=60, starts=[40, 80], window=30, steps=200, batch=32)
MANY = [
    (study_of(plan=dataclasses.replace(PLAN, trials=9)), 144, "0.27"),
    (study_of("easy", share=0.05), 48, "0.09"),
    (
        OneRunStudy(
            plan=STAGGERED,
            data=DataSettings(examples=300),
            canaries=CanarySettings(kind="medium"),
            attack=OneRunSettings(success="auc", limit=0.75),
        ),
        140,
        "0.26",
    ),
]


@pytest.mark.parametrize(("study", "count", "enough"), MANY)
def test_a_share_that_is_too_small_is_refused_before_training(study, count, enough, tmp_path):
    words = rf"needs {count} canaries and controls, and the \w+ \d+ % of the pool of digits hold "
    for ask in (
        lambda: run_study(study, tmp_path / "run", Execution()),
        lambda: estimate_study(study, Execution()),
    ):
        with pytest.raises(PlanError, match=words) as caught:
            ask()
        assert caught.value.hint.endswith(f"or set canaries.share to {enough} or more.")
        assert "Take more data, plant fewer canaries or in fewer trials" in caught.value.hint
    assert not (tmp_path / "run").exists()
    wider = dataclasses.replace(study.canaries, share=float(enough))
    estimate_study(dataclasses.replace(study, canaries=wider), Execution())


def test_a_dry_run_refuses_it_too(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(recipe_text({**RECIPE, "canaries": {"kind": "hard", "share": 0.05}}))
    out = CliRunner().invoke(
        commands, ["run", str(path), "--dry-run", "--out", str(tmp_path / "runs")]
    )
    assert isinstance(out.exception, PlanError)
    assert str(out.exception) == (
        "The plan needs 48 canaries and controls, and the hardest 5 % of the pool of digits hold "
        "26 of its 539 examples. Take more data, plant fewer canaries or in fewer trials, or set "
        "canaries.share to 0.09 or more."
    )
    assert not (tmp_path / "runs").exists()


def test_variants_of_other_shares_plant_other_images():
    """In one population, each run's canaries are those of its own share."""
    data = load_images("digits", folder=None, examples=100, seed=0)
    losses = np.random.default_rng(0).exponential(size=len(data.pool))
    small, wide = study_of(share=0.1), study_of(share=1.0)
    study = dataclasses.replace(small, compare=(Variant("wide", wide),))
    cast = _cast(study.parts(), data, losses)
    assert len(cast.planting.probed) == 96
    for name, alone in (("primary", small), ("variant1", wide)):
        drawn = draw_canaries(PLAN, alone.canaries, data, losses)
        np.testing.assert_array_equal(
            cast.planting.probed.labels[cast.ask[name].canaries], drawn.labels
        )
