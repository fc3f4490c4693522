"""A run of a small recogniser on speech that is made of patterns, two windows of canaries."""

from __future__ import annotations

import pytest

from remnant.plans import StaggeredPlan
from remnant.studies import Execution, run_study
from remnant.studies.one_run.recipe import OneRunSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    RecogniserSettings,
    SpeechDataSettings,
    UtteranceSettings,
)
from remnant.studies.speech_one_run import run as room
from remnant.studies.speech_one_run.recipe import SpeechOneRunStudy

from ..speech_forgetting.conftest import BANDS, patterns

PLAN = StaggeredPlan(
    canaries=88,
    never=40,
    starts=(60, 110),
    window=30,
    repeats=(2, 8),
    per_batch=5,
    steps=170,
    batch=16,
)
STUDY = SpeechOneRunStudy(
    plan=PLAN,
    data=SpeechDataSettings(utterances=80, validation=40, words=2, commonest=6, bands=BANDS),
    canaries=UtteranceSettings(words=(2, 3), commonest=400),
    model=RecogniserSettings(options={"width": 24, "layers": 1, "heads": 2, "kernel": 5}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}, clip=5.0),
    attack=OneRunSettings(success="auc", limit=0.9, checkpoints=5),
)


@pytest.fixture
def pattern_speech(monkeypatch):
    """Let studies speak in patterns."""
    monkeypatch.setattr(room, "speaker", patterns)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("speech-one-run") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "speaker", patterns)
        run_study(STUDY, folder, Execution())
    return folder
