"""Trains the language models of a text-forgetting study and asks them about its sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from remnant.errors import InvalidInput
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan
from remnant.population import Checkpoint, Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.probes import window_signals
from remnant.records import Record
from remnant.studies.classifiers import SomeMembers, how_trained
from remnant.studies.language_models import fit_language_models, language_model_maker
from remnant.studies.planted_tokens import PlantedTokens
from remnant.studies.settings import Execution

if TYPE_CHECKING:
    from remnant.studies.text_forgetting import TextForgettingStudy

Progress = Callable[[str, int, int], None]


def clean_updates(plan: InjectPlan | PoisonPlan) -> int:
    """Return how many updates the unplanted twin has had at lag 0."""
    skipped = len(plan.injected_steps) if isinstance(plan, InjectPlan) else 0
    return plan.planted_until - skipped


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
        found = [
            window_signals(
                SomeMembers(models, slice(trial * arms, (trial + 1) * arms)),
                probed,
                tokens=planted.tokens,
                vocabulary_size=planted.vocabulary.size,
            )
            for trial, probed in enumerate(planted.probed)
        ]
        return torch.cat(found)

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
    plan = study.plan
    fit, population = fit_language_models(
        study,
        plan,
        planted,
        execution,
        probes={"signals": ask_trials(study, planted)},
        probe_steps=[plan.planted_until + lag for lag in study.lags()],
        checkpoint=_checkpoint(study, name, execution, record),
        on_step=_tell(progress, name, plan.steps),
    )
    found = window_signals(
        population,
        planted.validation,
        tokens=study.text.window,
        vocabulary_size=planted.vocabulary.size,
    )
    bits = found[:, 0].mean(1).cpu().numpy() / study.text.window
    if not np.isfinite(bits).all() or not np.isfinite(fit.probes["signals"]).all():
        raise _diverged(name)
    record.update_execution(how_trained(name, fit))
    record.put_array(f"{name}.validation_bits", bits)
    record.put_array(f"{name}.signals", fit.probes["signals"])
    remove_checkpoint(_checkpoint(study, name, execution, record).path)


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

    def ask(models: Population) -> torch.Tensor:
        found = window_signals(
            models,
            planted.probed.reshape(-1, planted.probed.shape[2]),
            tokens=planted.tokens,
            vocabulary_size=planted.vocabulary.size,
        )
        return found[:, 0].reshape(len(found), *planted.probed.shape[:2])

    fit, _ = fit_language_models(
        study,
        shadow,
        planted,
        execution,
        probes={"bits": ask},
        probe_steps=[clean_updates(study.plan) + lag for lag in study.lags()],
        checkpoint=_checkpoint(study, part, execution, record),
        on_step=_tell(progress, part, shadow.steps),
    )
    if not np.isfinite(fit.probes["bits"]).all():
        raise _diverged(part)
    record.update_execution(how_trained(part, fit))
    record.put_array(f"{name}.reference_bits", fit.probes["bits"])
    remove_checkpoint(_checkpoint(study, part, execution, record).path)


def _checkpoint(
    study: TextForgettingStudy, name: str, execution: Execution, record: Record
) -> Checkpoint:
    return Checkpoint(
        record.folder / f"checkpoint-{name}.safetensors",
        seconds=execution.checkpoint_seconds,
        key=f"{study.fingerprint}/{name}/{record.data_fingerprint}",
    )


def _tell(progress: Progress | None, name: str, steps: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(name, done, steps)


def _diverged(name: str) -> InvalidInput:
    return InvalidInput(
        f"Training diverged: a member's loss is not finite in part {name!r}.",
        hint="Lower training.options.lr, or clip the gradient.",
    )
