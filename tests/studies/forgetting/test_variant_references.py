"""Compared variants are attacked with equally many reference models, however they differ."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.records import Record
from remnant.studies import Execution, ForgettingStudy, run_study, study_from
from remnant.studies.forgetting.attack_curves import attacks_of
from remnant.studies.forgetting.recipe import AttackSettings, runs_of
from remnant.studies.shared.settings import (
    CanarySettings,
    DataSettings,
    ModelSettings,
    TrainingSettings,
)
from remnant.studies.shared.variants import Variant

PLAN = InjectPlan(
    canaries=8, step=4, watch_steps=4, trials=3, batch=32, twins="fresh", fresh_canaries=True
)
LAGS = (0, 2, 4)


def study_of(plan=PLAN, **changes):
    return ForgettingStudy(
        plan=plan,
        **{
            "data": DataSettings(examples=120),
            "model": ModelSettings(name="logistic"),
            "attack": AttackSettings(success="auc", lags=LAGS),
            **changes,
        },
    )


def variants(plan):
    """One for each way in which a variant may share, or not share, what the study trains."""
    fields = {name: getattr(plan, name) for name in ("canaries", "batch", "trials", "seed", "aa")}
    poison = PoisonPlan(**fields, step=4, watch_steps=4, fresh_canaries=True)
    faster = TrainingSettings(options={"lr": 0.2})
    return {
        "the same training": study_of(plan, attack=AttackSettings(success="accuracy", lags=LAGS)),
        "the same twins": study_of(plan, canaries=CanarySettings(kind="odd")),
        "in one population": study_of(plan, training=faster),
        "repeated": study_of(dataclasses.replace(plan, repeats=3)),
        "another model": study_of(plan, model=ModelSettings(name="mlp1", options={"width": 0.1})),
        "poison": study_of(poison),
        "other A/A": study_of(dataclasses.replace(plan, aa=not plan.aa)),
    }


@pytest.mark.parametrize(("aa", "each"), [(True, 2), (False, 1)])
def test_all_variants_train_and_report_equally_many_references(aa, each, tmp_path):
    plan = dataclasses.replace(PLAN, aa=aa)
    compare = [Variant(label, other) for label, other in variants(plan).items()]
    study = study_of(plan, compare=compare)
    run_study(study, tmp_path / "run", Execution())
    record, parts = Record.open(tmp_path / "run"), study.parts()
    runs = runs_of(parts)
    names = dict(zip(parts, ["as planned", *variants(plan)], strict=True))
    for name, part in parts.items():
        members = record.array(f"{runs[name]}.signals").shape[1]
        assert members == plan.trials * (1 + each), names[name]
        used = attacks_of(record, runs[name], part).used
        assert used.references == each * (plan.trials - 1), names[name]
    assert record.results()["attack"]["references"] == each * (plan.trials - 1)
    assert len(record.results()["compare"]["series"]) == len(parts)
    again = {names[name] for name, run in runs.items() if run != name}
    assert again == {"the same training", "other A/A"}


def test_a_recipe_whose_study_has_no_a_a_twins_has_none_in_variants():
    table = study_of(dataclasses.replace(PLAN, aa=False)).to_dict()
    changes = [
        {"label": "often", "plan": {"repeats": 3}},
        {"label": "poison", "plan": {"kind": "poison"}},
    ]
    parts = study_from({**table, "compare": changes}).parts()
    assert [part.plan.aa for part in parts.values()] == [False] * 3
    assert [part.plan.kind for part in parts.values()] == ["inject", "inject", "poison"]


def test_references_of_a_variant_are_its_own_models(tmp_path):
    """Its twins' scores are those of models trained as it is, on its own canaries."""
    plan = dataclasses.replace(PLAN, repeats=3)
    faster = study_of(plan, training=TrainingSettings(options={"lr": 0.3}))
    study = study_of(compare=[Variant("faster", faster)])
    run_study(study, tmp_path / "both", Execution())
    run_study(faster, tmp_path / "alone", Execution())
    both, alone = Record.open(tmp_path / "both"), Record.open(tmp_path / "alone")
    together = attacks_of(both, "variant1", study.parts()["variant1"]).curve()
    by_itself = attacks_of(alone, "primary", faster).curve()
    np.testing.assert_allclose(together.per_trial, by_itself.per_trial, atol=1e-6)
