"""A small study that has everything: controls, A/A twins, variants, disturbances."""

from __future__ import annotations

import dataclasses

import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.studies import Execution, ForgettingStudy, run_study
from remnant.studies.forgetting.recipe import AttackSettings
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import DataSettings, ModelSettings
from remnant.studies.shared.variants import Variant

PLAN = InjectPlan(
    canaries=16,
    controls=12,
    step=10,
    watch_steps=20,
    trials=3,
    batch=32,
    twins="fresh",
    fresh_canaries=True,
)


def _study(**changes):
    return ForgettingStudy(
        **{
            "plan": PLAN,
            "data": DataSettings(examples=200),
            "model": ModelSettings(name="logistic"),
            **changes,
        }
    )


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The folder of a run that measured all there is; the second variant has too few trials."""
    study = _study(
        label="once",
        hidden=HiddenSettings(noise=(0.1, 0.5), draws=2, relearn_steps=(1, 4), neighbours=10),
        compare=[
            Variant("three times", _study(plan=dataclasses.replace(PLAN, repeats=3))),
            Variant("two trials", _study(plan=dataclasses.replace(PLAN, trials=2))),
        ],
    )
    folder = tmp_path_factory.mktemp("forgetting") / "whole"
    run_study(study, folder, Execution())
    return folder


@pytest.fixture(scope="session")
def twin_run(tmp_path_factory):
    """The folder of a run that compares the planted model with its twin, as in the paper."""
    study = _study(attack=AttackSettings(against="twin"))
    folder = tmp_path_factory.mktemp("forgetting") / "twin"
    run_study(study, folder, Execution())
    return folder


@pytest.fixture(scope="session")
def poison_run(tmp_path_factory):
    """The folder of a POISON run by AUC, without A/A twins, controls and variants."""
    plan = PoisonPlan(canaries=16, step=10, watch_steps=5, trials=3, batch=32, aa=False)
    study = _study(plan=plan, attack=AttackSettings(success="auc", limit=0.9))
    folder = tmp_path_factory.mktemp("forgetting") / "poison"
    run_study(study, folder, Execution())
    return folder
