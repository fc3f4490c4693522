"""One small run with two windows and two numbers of repeats, and a page's words."""

from __future__ import annotations

import pytest

from remnant.plans import StaggeredPlan
from remnant.studies import Execution, run_study, study_from
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.one_run.speech_recipe import SpeechOneRunStudy
from remnant.studies.one_run.text_recipe import TextOneRunStudy
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    RecogniserSettings,
    SpeechDataSettings,
    UtteranceSettings,
)
from remnant.studies.shared.text_settings import (
    LanguageModelSettings,
    SequenceSettings,
    TextSettings,
)

from ..forgetting.speech_patterns import BANDS, patterns

SPEECH_PLAN = StaggeredPlan(
    canaries=88,
    never=40,
    starts=(60, 110),
    window=30,
    repeats=(2, 8),
    per_batch=5,
    steps=170,
    batch=16,
)
SPEECH = SpeechOneRunStudy(
    plan=SPEECH_PLAN,
    data=SpeechDataSettings(utterances=80, validation=40, words=2, commonest=6, bands=BANDS),
    canaries=UtteranceSettings(words=(2, 3), commonest=400),
    model=RecogniserSettings(options={"width": 24, "layers": 1, "heads": 2, "kernel": 5}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}, clip=5.0),
    attack=OneRunSettings(success="auc", limit=0.9, checkpoints=5),
)
TEXT_PLAN = StaggeredPlan(
    canaries=120,
    never=60,
    starts=(60, 120),
    window=40,
    repeats=(2, 12),
    per_batch=12,
    steps=200,
    batch=32,
)
TEXT = TextOneRunStudy(
    plan=TEXT_PLAN,
    text=TextSettings(characters=20_000, window=16),
    canaries=SequenceSettings(tokens=6),
    model=LanguageModelSettings(name="gru", options={"units": 24, "layers": 1}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}),
    attack=OneRunSettings(success="auc", limit=0.9, checkpoints=5),
)


@pytest.fixture(scope="session")
def staggered(tmp_path_factory):
    study = study_from(
        {
            "question": "one-run",
            "plan": {
                "kind": "staggered",
                "canaries": 140,
                "never": 60,
                "starts": [40, 120],
                "window": 30,
                "repeats": [1, 8],
                "per_batch": 10,
                "steps": 220,
                "batch": 32,
            },
            "data": {"examples": 300},
            "training": {"options": {"lr": 0.1}},
            "attack": {"checkpoints": 12, "success": "tpr", "fpr": 0.1, "limit": 0.9},
        }
    )
    folder = tmp_path_factory.mktemp("one-run") / "staggered"
    run_study(study, folder, Execution())
    return folder


@pytest.fixture
def pattern_speech(monkeypatch):
    """Let studies speak in patterns."""
    monkeypatch.setattr("remnant.tasks.speech.speaker", patterns)


@pytest.fixture(scope="session")
def spoken_run(tmp_path_factory):
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("speech-one-run") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("remnant.tasks.speech.speaker", patterns)
        run_study(SPEECH, folder, Execution())
    return folder


@pytest.fixture(scope="session")
def text_run(tmp_path_factory):
    """The folder of a run of a language model."""
    folder = tmp_path_factory.mktemp("text-one-run") / "whole"
    run_study(TEXT, folder, Execution())
    return folder
