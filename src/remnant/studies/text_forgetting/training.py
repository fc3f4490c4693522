"""Trains the language models of a text-forgetting study and asks them about its sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.plans import ShadowPlan
from remnant.population import Checkpoint, Fit, Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.probes import window_signals
from remnant.records import Record
from remnant.studies.shared.classifiers import SomeMembers, how_trained
from remnant.studies.shared.language_models import (
    finite_losses,
    fit_language_models,
    language_model_maker,
)
from remnant.studies.shared.recording import Progress
from remnant.studies.shared.settings import Execution
from remnant.studies.text_forgetting.planted_tokens import PlantedTokens
from remnant.studies.text_forgetting.recipe import SequenceStudy, TextForgettingStudy, clean_updates

Floats = NDArray[np.float64]


def check_language_models(
    study: TextForgettingStudy, planted: PlantedTokens, execution: Execution
) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    alone = Population(language_model_maker(study, planted), seeds=[0], device=execution.device)
    alone.logits(planted.store[:1, :-1])
    study.plan.schedule(examples=planted.examples)  # refuses canaries that do not fit


def ask_trials(
    study: TextForgettingStudy, planted: PlantedTokens
) -> Callable[[Population], torch.Tensor]:
    """Return the probe that asks each trial's members about their own trial's sequences."""
    arms = len(study.plan.arms)

    def ask(models: Population) -> torch.Tensor:
        signals = [
            window_signals(
                SomeMembers(models, slice(trial * arms, (trial + 1) * arms)),
                probed,
                tokens=planted.tokens,
                vocabulary_size=planted.vocabulary.size,
            )
            for trial, probed in enumerate(planted.probed)
        ]
        return torch.cat(signals)

    return ask


def train_twins(
    study: TextForgettingStudy,
    name: str,
    planted: PlantedTokens,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    """Train the twins of one part and put what its probes saw into the record."""
    plan, saved = study.plan, part_checkpoint(study, name, execution, record)
    fit, population = fit_language_models(
        study,
        plan,
        planted,
        execution,
        probes={"signals": ask_trials(study, planted)},
        probe_steps=[plan.planted_until + lag for lag in study.lags()],
        checkpoint=saved,
        on_step=on_part_step(progress, name, plan.steps),
    )
    signals = window_signals(
        population,
        planted.validation,
        tokens=study.text.window,
        vocabulary_size=planted.vocabulary.size,
    )
    bits = signals[:, 0].mean(1).cpu().numpy() / study.text.window
    arrays = {"validation_bits": bits, "signals": fit.probes["signals"]}
    keep_arrays(record, fit, name, {f"{name}.{key}": array for key, array in arrays.items()}, saved)


def train_references(
    study: TextForgettingStudy,
    shadow: ShadowPlan,
    name: str,
    planted: PlantedTokens,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    """Train the reference models as one population and keep what they pay for every sequence."""
    part = f"{name}-references"
    saved = part_checkpoint(study, part, execution, record)

    def ask(models: Population) -> torch.Tensor:
        signals = window_signals(
            models,
            planted.probed.reshape(-1, planted.probed.shape[2]),
            tokens=planted.tokens,
            vocabulary_size=planted.vocabulary.size,
        )
        return signals[:, 0].reshape(len(signals), *planted.probed.shape[:2])

    fit, _ = fit_language_models(
        study,
        shadow,
        planted,
        execution,
        probes={"bits": ask},
        probe_steps=[clean_updates(study.plan) + lag for lag in study.lags()],
        checkpoint=saved,
        on_step=on_part_step(progress, part, shadow.steps),
    )
    keep_arrays(record, fit, part, {f"{name}.reference_bits": fit.probes["bits"]}, saved)


def keep_arrays(
    record: Record, fit: Fit, part: str, arrays: Mapping[str, Floats], saved: Checkpoint
) -> None:
    """Put arrays of finite numbers into the record, and remove the checkpoint."""
    for array in arrays.values():
        finite_losses(array, where=f" in part {part!r}")
    record.update_execution(how_trained(part, fit))
    for name, array in arrays.items():
        record.put_array(name, array)
    remove_checkpoint(saved.path)


def part_checkpoint(
    study: SequenceStudy, name: str, execution: Execution, record: Record
) -> Checkpoint:
    """Return where one part of a study is saved while it trains."""
    return Checkpoint(
        record.folder / f"checkpoint-{name}.safetensors",
        seconds=execution.checkpoint_seconds,
        key=f"{study.fingerprint}/{name}/{record.data_fingerprint}",
    )


def on_part_step(progress: Progress | None, name: str, steps: int) -> Callable[[int], None] | None:
    """Return what a fit calls after each step of a part."""
    return None if progress is None else lambda done: progress(name, done, steps)
