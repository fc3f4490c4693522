"""Trains the recognisers of a study of speech and asks them about its utterances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.models.recogniser import ctc_loss
from remnant.population import Population
from remnant.studies.residual_memory.disturbances import Lesson
from remnant.studies.shared.classifiers import SomeMembers
from remnant.studies.speech_forgetting.recipe import SpeechForgettingStudy
from remnant.studies.text_forgetting.disturbed_sequences import Search
from remnant.studies.text_forgetting.training import (
    Costs,
    SequenceWork,
    ask_other_twins,
    sequence_jobs,
)
from remnant.tasks.planted_speech import InTurns, PlantedSpeech
from remnant.tasks.speech import (
    error_shares,
    fit_recognisers,
    recogniser_maker,
    utterance_bits,
    utterance_signals,
    validation_edits,
)

Floats = NDArray[np.float64]


def ask_trials(
    study: SpeechForgettingStudy, planted: PlantedSpeech
) -> Callable[[Population], Tensor]:
    """Return the probe that asks each trial's members about their own trial's utterances."""
    arms = len(study.plan.arms)

    def ask(models: Population) -> Tensor:
        return torch.cat(
            [
                utterance_signals(
                    SomeMembers(models, slice(trial * arms, (trial + 1) * arms)), asked
                )
                for trial, asked in enumerate(planted.probed)
            ]
        )

    return ask


def speech_costs(planted: PlantedSpeech) -> Costs:
    """Return what some models pay for the utterances of a trial, in bits."""
    return lambda models, trial: torch.from_numpy(utterance_bits(models, planted.probed[trial]))


def speech_search(study: SpeechForgettingStudy, planted: PlantedSpeech) -> Search | None:
    """Return what a search for residual memory asks and teaches recognisers.

    Its task is ``error_shares``. Two speakers of a neighbour take turns, as those of a canary do.
    """
    if study.hidden is None:
        return None
    arms, near, costs = len(study.plan.arms), planted.neighbours, speech_costs(planted)
    twins = ask_other_twins(study, costs)

    def own_costs(models: Population) -> Floats:
        return np.concatenate(
            [
                costs(SomeMembers(models, slice(trial * arms, (trial + 1) * arms)), trial)
                for trial in range(len(planted.probed))
            ]
        )

    return Search(
        settings=study.hidden,
        training=study.training,
        make_model=recogniser_maker(study, planted),
        costs=own_costs,
        twins=lambda models: twins(models).numpy(),
        task=lambda models: error_shares(models, planted),
        lesson=None
        if near is None
        else Lesson(
            inputs=near.inputs,
            targets=near.targets,
            each=near.each,
            loss=ctc_loss,
            scheduled=lambda schedule: InTurns(schedule, near.second),
        ),
        items=planted.probed[0].items,
    )


def _ask_references(planted: PlantedSpeech) -> Callable[[Population], Tensor]:
    """Return the probe that asks every reference model about all trials' utterances."""

    def ask(models: Population) -> Tensor:
        return torch.stack(
            [utterance_signals(models, asked)[:, 0] for asked in planted.probed], dim=1
        )

    return ask


def _judge(
    _: SpeechForgettingStudy, planted: PlantedSpeech, population: Population
) -> dict[str, Floats]:
    return {"validation_edits": validation_edits(population, planted)}


part_jobs = partial(
    sequence_jobs,
    SequenceWork(
        fit=fit_recognisers,
        ask=ask_trials,
        costs=speech_costs,
        ask_references=_ask_references,
        search=speech_search,
        judge=_judge,
    ),
)
"""Returns the jobs of one part: twins, then references."""
