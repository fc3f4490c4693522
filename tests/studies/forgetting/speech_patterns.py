"""Speech that is made of patterns, one a character: quick to make, quick to learn."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch

from remnant import PoisonPlan
from remnant.data.speech.log_mel import normalised
from remnant.studies.forgetting.speech_recipe import (
    SpeechAttackSettings,
    SpeechCanarySettings,
    SpeechForgettingStudy,
)
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.speech_settings import (
    RecogniserSettings,
    SpeechDataSettings,
)
from remnant.tasks.speech_corpus import Heard

BANDS = 8
NOISE = 1.5  # so much that recognising takes memory too
PLAN = PoisonPlan(
    canaries=16,
    copies=(1, 8),
    step=80,
    watch_steps=30,
    trials=3,
    batch=16,
    fresh_canaries=True,
)
STUDY = SpeechForgettingStudy(
    plan=PLAN,
    data=SpeechDataSettings(utterances=80, validation=40, words=2, commonest=6, bands=BANDS),
    canaries=SpeechCanarySettings(words=(2, 3), commonest=400, references=40),
    model=RecogniserSettings(options={"width": 24, "layers": 1, "heads": 2, "kernel": 5}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.01}, clip=5.0),
    attack=SpeechAttackSettings(lags=(0, 10, 30)),
    hidden=HiddenSettings(noise=(0.2,), draws=2, relearn_steps=(1, 3), neighbours=12),
)


def patterns(settings, *_):
    """Return what speaks sentences: six frames of its own pattern for each character, and noise."""

    def speak(sentences):
        made = []
        for sentence in sentences:
            digest = hashlib.sha256(sentence.name.encode()).digest()
            rng = np.random.default_rng(list(digest[:8]))
            frames = [
                np.random.default_rng(ord(letter)).normal(size=settings.bands)
                for letter in sentence.text
                for _ in range(6)
            ]
            noisy = np.array(frames) + NOISE * rng.normal(size=(len(frames), settings.bands))
            features = normalised(torch.tensor(noisy, dtype=torch.float32))
            made.append(Heard(Path(sentence.name), sentence.text, features))
        return made

    return speak
