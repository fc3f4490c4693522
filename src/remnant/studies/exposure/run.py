"""How exposed is a secret that was in the training text, and can it be extracted? INSERT."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from remnant.data import Corpus, corpus_fingerprint
from remnant.population import Population
from remnant.progress import Progress
from remnant.studies.exposure.measure import insertion_scope
from remnant.studies.exposure.planted_run import PlantedRun
from remnant.studies.exposure.recipe import ExposureStudy, check_space
from remnant.studies.pipeline import Prepared
from remnant.studies.shared.planted_text import plant_text
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.wording import counted
from remnant.tasks.language_models import (
    finite_losses,
    fit_language_models,
    language_model_maker,
    load_text,
)

_TOGETHER = 64


def prepare(study: ExposureStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load and plant the text; the work trains, measures and extracts.

    The folder also keeps the trained models (``models/``) and the canaries with their secrets
    (``canaries.jsonl``, readable by its owner alone), for the other commands to be tried on.
    """
    text = load_text(study.text, study.data, execution)
    return _planted_run(study, text, execution).prepared(
        data_fingerprint=corpus_fingerprint(text), origin=text.origin, progress=progress
    )


def estimate(study: ExposureStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    return _planted_run(study, load_text(study.text, study.data, execution), execution).estimate()


def _planted_run(study: ExposureStudy, text: Corpus, execution: Execution) -> PlantedRun:
    level, window = study.text.level, study.text.window
    template = study.secret.filled(text.train)
    check_space(study.plan, study.measure, template)
    planted = plant_text(study.plan, template, text, level=level, window=window)
    return PlantedRun(
        study=study,
        execution=execution,
        architecture=study.model.name,
        options=study.model.options,
        make=language_model_maker(study, planted),
        train=lambda plan, **choices: fit_language_models(
            study, plan, planted, execution, **choices
        ),
        validation_bits=lambda population: _validation_bits(population, planted.validation),
        validation_tokens=planted.validation[:, 1:].size,
        token=level,
        store_bytes=planted.store.nbytes,
        examples=planted.examples,
        sets=planted.sets,
        vocabulary=planted.vocabulary,
        scope=insertion_scope(
            study.plan,
            data=f"{planted.examples} windows of {window} {level}s",
            canaries=counted(study.plan.canaries, "canary", "canaries"),
            place="text",
            unit="window",
        ),
        rebuild=partial(_planted_run, study, text),
    )


def _validation_bits(population: Population, validation: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each member's mean cost of a validation token, in bits."""
    total = torch.zeros(len(population), dtype=torch.float64)
    windows = torch.from_numpy(validation)
    for some in windows.split(_TOGETHER):
        logits = population.logits(some[:, :-1]).double()
        labels = some[:, 1:].to(logits.device).expand(len(population), -1, -1)
        losses = nn.functional.cross_entropy(
            logits.flatten(0, 2), labels.flatten(), reduction="none"
        )
        total += losses.reshape(len(population), -1).sum(1).cpu()
    bits = total / (windows[:, 1:].numel() * math.log(2))
    return finite_losses(bits.numpy())
