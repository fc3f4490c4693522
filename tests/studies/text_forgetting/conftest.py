"""A small study of forgetting of text that has everything: A/A twins, copies, a variant."""

from __future__ import annotations

import dataclasses

import pytest

from remnant import InjectPlan
from remnant.studies import Execution, TextForgettingStudy, run_study
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    TextCanarySettings,
    TextSettings,
)
from remnant.studies.shared.variants import Variant
from remnant.studies.text_forgetting.recipe import TextAttackSettings

PLAN = InjectPlan(
    canaries=12, copies=(1, 6), step=20, watch_steps=30, trials=3, batch=48, fresh_canaries=True
)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The folder of a run that measured all there is."""
    alone = TextForgettingStudy(
        plan=PLAN,
        text=TextSettings(characters=8_000, window=12),
        canaries=TextCanarySettings(references=60),
        model=LanguageModelSettings(name="gru", options={"units": 24, "layers": 1}),
        training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
        attack=TextAttackSettings(lags=(0, 10, 30)),
        hidden=HiddenSettings(noise=(0.2,), draws=2, relearn_steps=(1, 3), neighbours=10),
    )
    later = dataclasses.replace(alone, plan=dataclasses.replace(PLAN, step=25))
    study = dataclasses.replace(alone, compare=(Variant("later", later),))
    folder = tmp_path_factory.mktemp("text") / "whole"
    run_study(study, folder, Execution())
    return folder
