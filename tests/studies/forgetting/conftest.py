"""Small studies that have everything: of images, of text and of speech."""

from __future__ import annotations

import dataclasses

import pytest

from remnant import InjectPlan, PoisonPlan
from remnant.studies import Execution, ForgettingStudy, TextForgettingStudy, run_study
from remnant.studies.forgetting.recipe import AttackSettings
from remnant.studies.forgetting.text_recipe import TextAttackSettings
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import DataSettings, ModelSettings, TrainingSettings
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    TextCanarySettings,
    TextSettings,
)
from remnant.studies.shared.variants import Variant

from .speech_patterns import STUDY as SPEECH
from .speech_patterns import patterns

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


TEXT_PLAN = InjectPlan(
    canaries=12, copies=(1, 6), step=20, watch_steps=30, trials=3, batch=48, fresh_canaries=True
)


@pytest.fixture(scope="session")
def text_run(tmp_path_factory):
    """The folder of a run that measured all there is."""
    alone = TextForgettingStudy(
        plan=TEXT_PLAN,
        text=TextSettings(characters=8_000, window=12),
        canaries=TextCanarySettings(references=60),
        model=LanguageModelSettings(name="gru", options={"units": 24, "layers": 1}),
        training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
        attack=TextAttackSettings(lags=(0, 10, 30)),
        hidden=HiddenSettings(noise=(0.2,), draws=2, relearn_steps=(1, 3), neighbours=10),
    )
    later = dataclasses.replace(alone, plan=dataclasses.replace(TEXT_PLAN, step=25))
    study = dataclasses.replace(alone, compare=(Variant("later", later),))
    folder = tmp_path_factory.mktemp("text") / "whole"
    run_study(study, folder, Execution())
    return folder


@pytest.fixture
def pattern_speech(monkeypatch):
    """Let studies speak in patterns."""
    monkeypatch.setattr("remnant.tasks.speech.speaker", patterns)


@pytest.fixture(scope="session")
def spoken_run(tmp_path_factory):
    """The folder of a run that measured all there is."""
    folder = tmp_path_factory.mktemp("speech") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remnant.tasks.speech.speaker", patterns)
        run_study(SPEECH, folder, Execution())
    return folder
