"""Trains the language models of a text-forgetting study and asks them about its sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.plans import ShadowPlan
from remnant.population import Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.probes import window_signals
from remnant.studies.groups.execution import Group, Site
from remnant.studies.shared.classifiers import SomeMembers, how_trained
from remnant.studies.shared.language_models import (
    finite_losses,
    fit_language_models,
    language_model_maker,
)
from remnant.studies.shared.settings import Execution
from remnant.studies.text_forgetting.planted_tokens import PlantedTokens
from remnant.studies.text_forgetting.recipe import TextForgettingStudy, clean_updates

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


def part_groups(
    study: TextForgettingStudy, name: str, *, data_fingerprint: str
) -> dict[str, Group]:
    """Return the groups of one part by the array that is put last: twins, then references.

    Args:
        study: The part.
        name: Its name.
        data_fingerprint: Of the study's text, for checkpoints.
    """
    shadow, references = study.reference_plan(), f"{name}-references"

    def key(part: str) -> str:
        return f"{study.fingerprint}/{part}/{data_fingerprint}"

    made = {
        f"{name}.signals": Group(
            name=name,
            work=partial(_train_twins, study, name, key(name)),
            members=study.plan.members,
            steps=study.plan.steps,
            saved=_checkpoint_file(name),
        )
    }
    if shadow is not None:
        made[f"{name}.reference_bits"] = Group(
            name=references,
            work=partial(_train_references, study, shadow, name, key(references)),
            members=shadow.members,
            steps=shadow.steps,
            saved=_checkpoint_file(references),
        )
    return made


def _checkpoint_file(part: str) -> str:
    return f"checkpoint-{part}.safetensors"


def _train_twins(
    study: TextForgettingStudy,
    name: str,
    key: str,
    texts: Mapping[str, PlantedTokens],
    site: Site,
) -> None:
    """Train the twins of one part and put what its probes saw on the shelf."""
    plan, planted = study.plan, texts[name]
    fit, population = fit_language_models(
        study,
        plan,
        planted,
        site.execution,
        probes={"signals": ask_trials(study, planted)},
        probe_steps=[plan.planted_until + lag for lag in study.lags()],
        checkpoint=site.checkpoint(_checkpoint_file(name), key),
        on_step=site.on_step(name, plan.steps),
    )
    signals = window_signals(
        population,
        planted.validation,
        tokens=study.text.window,
        vocabulary_size=planted.vocabulary.size,
    )
    bits = signals[:, 0].mean(1).cpu().numpy() / study.text.window
    arrays = {"validation_bits": bits, "signals": fit.probes["signals"]}
    _keep(site, fit, name, {f"{name}.{what}": array for what, array in arrays.items()})


def _train_references(
    study: TextForgettingStudy,
    shadow: ShadowPlan,
    name: str,
    key: str,
    texts: Mapping[str, PlantedTokens],
    site: Site,
) -> None:
    """Train the reference models as one population and keep what they pay for every sequence."""
    part, planted = f"{name}-references", texts[name]

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
        site.execution,
        probes={"bits": ask},
        probe_steps=[clean_updates(study.plan) + lag for lag in study.lags()],
        checkpoint=site.checkpoint(_checkpoint_file(part), key),
        on_step=site.on_step(part, shadow.steps),
    )
    _keep(site, fit, part, {f"{name}.reference_bits": fit.probes["bits"]})


def _keep(site: Site, fit: Fit, part: str, arrays: Mapping[str, Floats]) -> None:
    """Put arrays of finite numbers on the shelf."""
    for array in arrays.values():
        finite_losses(array, where=f" in part {part!r}")
    site.shelf.update_execution(how_trained(part, fit))
    for name, array in arrays.items():
        site.shelf.put_array(name, array)
