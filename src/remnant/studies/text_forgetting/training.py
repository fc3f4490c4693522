"""Trains the language models of a text-forgetting study and asks them about its sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.models.protocols import LogitModels
from remnant.plans import ShadowPlan
from remnant.population import Fit, Population
from remnant.records import Record
from remnant.studies.jobs.execution import Job, JobContext, Progress, Workload, run_jobs
from remnant.studies.residual_memory.disturbances import Lesson
from remnant.studies.shared.classifiers import SomeMembers, how_trained
from remnant.studies.shared.settings import Execution
from remnant.studies.text_forgetting.disturbed_sequences import (
    Search,
    hidden_probe,
    kept_disturbed,
)
from remnant.studies.text_forgetting.recipe import (
    SequenceStudy,
    TextForgettingStudy,
    clean_updates,
)
from remnant.tasks.language_models import (
    finite_losses,
    fit_language_models,
    language_model_maker,
)
from remnant.tasks.text import PlantedTokens, sequence_signals, validation_bits

Floats = NDArray[np.float64]
Costs = Callable[[LogitModels, int], torch.Tensor]  # of a trial's sequences, (members, items)
SEARCHED = "primary"  # the part that is searched for residual memory


def ask_trials(
    study: TextForgettingStudy, planted: PlantedTokens
) -> Callable[[Population], torch.Tensor]:
    """Return the probe that asks each trial's members about their own trial's sequences."""
    arms = len(study.plan.arms)

    def ask(models: Population) -> torch.Tensor:
        signals = [
            sequence_signals(
                SomeMembers(models, slice(trial * arms, (trial + 1) * arms)), planted, probed
            )
            for trial, probed in enumerate(planted.probed)
        ]
        return torch.cat(signals)

    return ask


def text_costs(planted: PlantedTokens) -> Costs:
    """Return what some models pay for the sequences of a trial, in bits."""

    def costs(models: LogitModels, trial: int) -> torch.Tensor:
        return sequence_signals(models, planted, planted.probed[trial])[:, 0]

    return costs


def ask_other_twins(study: SequenceStudy, costs: Costs) -> Callable[[Population], torch.Tensor]:
    """Return the probe of what other trials' unplanted members pay for each trial's sequences.

    They are the twins and the A/A twins, which saw no canary of any trial.

    Args:
        study: With two trials or more.
        costs: Of the study's sequences.

    Returns:
        The probe's answers are means over those members, ``(trials, items)``.
    """
    trials, arms = study.plan.trials, len(study.plan.arms)
    unplanted = [slice(trial * arms + 1, (trial + 1) * arms) for trial in range(trials)]

    def ask(models: Population) -> torch.Tensor:
        return torch.stack(
            [
                torch.cat(
                    [
                        costs(SomeMembers(models, members), trial)
                        for other, members in enumerate(unplanted)
                        if other != trial
                    ]
                ).mean(0)
                for trial in range(trials)
            ]
        )

    return ask


def text_search(study: TextForgettingStudy, planted: PlantedTokens) -> Search | None:
    """Return what a search for residual memory asks and teaches language models.

    Its task is what a validation token costs, in bits.
    """
    if study.hidden is None:
        return None
    ask, twins = ask_trials(study, planted), ask_other_twins(study, text_costs(planted))
    near = planted.neighbours.reshape(-1, planted.store.shape[1])
    return Search(
        settings=study.hidden,
        training=study.training,
        make_model=language_model_maker(study, planted),
        costs=lambda models: ask(models)[:, 0].cpu().numpy(),
        twins=lambda models: twins(models).cpu().numpy(),
        task=lambda models: validation_bits(planted, models)[:, None],
        lesson=Lesson(inputs=near[:, :-1], targets=near[:, 1:], each=study.neighbours)
        if study.neighbours
        else None,
        items=planted.probed.shape[1],
    )


def with_search(
    study: SequenceStudy, search: Search | None, context: JobContext, probes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Return the probes with the search for residual memory, and the steps at which each is run.

    Args:
        study: The part that is trained.
        search: Its search; None for none.
        context: Where it is trained.
        probes: Those that are run at every lag.
    """
    at = [study.plan.planted_until + lag for lag in study.lags()]
    steps = dict.fromkeys(probes, at)
    if search is None:
        return dict(probes), steps
    probe = hidden_probe(study, search, device=context.execution.device)
    return {**probes, "hidden": probe}, {**steps, "hidden": at[-1:]}


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceWork:
    """How the models of a study of sequences are trained and asked; functions of a module each.

    Attributes:
        fit: Trains the members of a plan: called with the study, the plan, its planted sequences,
            the execution and the choices of ``Population.fit``.
        ask: Returns the probe of every lag, given the study and its sequences.
        costs: Returns what models pay for the sequences of a trial, given all sequences.
        ask_references: Returns the probe of reference models, given the sequences.
        search: Returns the search for residual memory, or None, given the study and its sequences.
        judge: Returns arrays on the members' task, given the study, its sequences and the members.
    """

    fit: Callable[..., tuple[Fit, Population]]
    ask: Callable[[Any, Any], Callable[[Population], Any]]
    costs: Callable[[Any], Costs]
    ask_references: Callable[[Any], Callable[[Population], Any]]
    search: Callable[[Any, Any], Search | None]
    judge: Callable[[Any, Any, Population], dict[str, Floats]]


def sequence_jobs(
    work: SequenceWork, study: SequenceStudy, name: str, *, data_fingerprint: str
) -> dict[str, Job]:
    """Return the jobs of one part of a study by the array that each puts last.

    Args:
        work: How models are trained.
        study: The part.
        name: Its name.
        data_fingerprint: Of the study's data, for checkpoints.
    """
    shadow, others = study.reference_plan(), f"{name}-references"

    def key(part: str) -> str:
        return f"{study.fingerprint}/{part}/{data_fingerprint}"

    made = {
        f"{name}.signals": Job(
            name=name,
            work=partial(_train_twins, work, study, name, key(name)),
            members=study.plan.members,
            steps=study.plan.steps,
            saved=checkpoint_file(name),
        )
    }
    if shadow is not None:
        made[f"{name}.reference_bits"] = Job(
            name=others,
            work=partial(_train_references, work, study, shadow, name, key(others)),
            members=shadow.members,
            steps=shadow.steps,
            saved=checkpoint_file(others),
        )
    return made


def run_parts(
    study: SequenceStudy,
    planted: Mapping[str, Any],
    jobs_of: Callable[..., dict[str, Job]],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    """Train the jobs of all parts whose arrays the record does not hold.

    Args:
        study: The whole study.
        planted: The data of each part, by its name.
        jobs_of: Returns the jobs of a part; see ``sequence_jobs``.
        execution: Device, and who runs the jobs.
        record: Gets the arrays.
        progress: The progress callback.
    """
    every: dict[str, Job] = {}
    for name, part in study.parts().items():
        every |= jobs_of(part, name, data_fingerprint=record.data_fingerprint)
    kept = record.array_names()
    run_jobs(
        [job for array, job in every.items() if array not in kept],
        shared=planted,
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(list(every.values())),
    )


def checkpoint_file(part: str) -> str:
    """Return the name of a part's checkpoint."""
    return f"checkpoint-{part}.safetensors"


def _train_twins(
    work: SequenceWork,
    study: SequenceStudy,
    name: str,
    key: str,
    parts: Mapping[str, Any],
    context: JobContext,
) -> None:
    """Train the twins of one part and put what its probes saw into the output."""
    plan, planted = study.plan, parts[name]
    search = work.search(study, planted) if name == SEARCHED else None
    asked: dict[str, Any] = {"signals": work.ask(study, planted)}
    if study.other_twins:
        asked["twins"] = ask_other_twins(study, work.costs(planted))
    probes, steps = with_search(study, search, context, asked)
    fit, population = work.fit(
        study,
        plan,
        planted,
        context.execution,
        probes=probes,
        probe_steps=steps,
        checkpoint=context.checkpoint(checkpoint_file(name), key),
        on_step=context.on_step(name, plan.steps),
    )
    arrays = (
        {}
        if search is None
        else kept_disturbed(search, fit.probes["hidden"][0], arms=len(plan.arms))
    )
    arrays |= work.judge(study, planted, population)
    if study.other_twins:
        arrays["twins_bits"] = fit.probes["twins"]
    arrays["signals"] = fit.probes["signals"]
    keep_arrays(context, fit, name, {f"{name}.{what}": array for what, array in arrays.items()})


def _train_references(
    work: SequenceWork,
    study: SequenceStudy,
    shadow: ShadowPlan,
    name: str,
    key: str,
    parts: Mapping[str, Any],
    context: JobContext,
) -> None:
    """Train the reference models as one population and keep what they pay for every sequence."""
    part, planted = f"{name}-references", parts[name]
    fit, _ = work.fit(
        study,
        shadow,
        planted,
        context.execution,
        probes={"bits": work.ask_references(planted)},
        probe_steps=[clean_updates(study.plan) + lag for lag in study.lags()],
        checkpoint=context.checkpoint(checkpoint_file(part), key),
        on_step=context.on_step(part, shadow.steps),
    )
    keep_arrays(context, fit, part, {f"{name}.reference_bits": fit.probes["bits"]})


def _ask_references(planted: PlantedTokens) -> Callable[[Population], torch.Tensor]:
    """Return the probe that asks every reference model about all trials' sequences."""

    def ask(models: Population) -> torch.Tensor:
        windows = planted.probed.reshape(-1, planted.probed.shape[2])
        signals = sequence_signals(models, planted, windows)
        return signals[:, 0].reshape(len(signals), *planted.probed.shape[:2])

    return ask


def _judge(
    study: TextForgettingStudy, planted: PlantedTokens, population: Population
) -> dict[str, Floats]:
    return {"validation_bits": validation_bits(planted, population)}


def keep_arrays(context: JobContext, fit: Fit, part: str, arrays: Mapping[str, Floats]) -> None:
    """Put arrays of finite numbers into the output."""
    for array in arrays.values():
        finite_losses(array, where=f" in part {part!r}")
    context.output.update_execution(how_trained(part, fit))
    for name, array in arrays.items():
        context.output.put_array(name, array)


part_jobs = partial(
    sequence_jobs,
    SequenceWork(
        fit=fit_language_models,
        ask=ask_trials,
        costs=text_costs,
        ask_references=_ask_references,
        search=text_search,
        judge=_judge,
    ),
)
"""Returns the jobs of one part: twins, then references."""
