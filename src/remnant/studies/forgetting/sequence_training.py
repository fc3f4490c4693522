"""Trains the models of a study of sequences, asks them about its canaries, and disturbs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.models.protocols import LogitModels
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan
from remnant.population import Fit, Population
from remnant.studies.forgetting.text_recipe import SequenceStudy, clean_updates
from remnant.studies.jobs.execution import Job, JobContext
from remnant.studies.pipeline import StepClock
from remnant.studies.registry import task_of
from remnant.studies.residual_memory.disturbances import Bench, asked_times, disturb
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.classifiers import SomeMembers, how_trained
from remnant.tasks.language_models import finite_losses
from remnant.tasks.sequences import SequenceTask

Floats = NDArray[np.float64]
SEARCHED = "primary"  # the part that is searched for residual memory


def sequence_task(study: SequenceStudy) -> SequenceTask[Any, Any]:
    """Return the task of a study of sequences."""
    return cast(SequenceTask[Any, Any], task_of(study))


@dataclass(frozen=True, slots=True, eq=False)
class TrialProbes:
    """What is asked of twins: each trial's members about their own trial's items.

    Attributes:
        task: Of the models.
        plan: Whose members they are, trial by trial.
        planted: The items of each trial: its canaries, then its references.
    """

    task: SequenceTask[Any, Any]
    plan: InjectPlan | PoisonPlan
    planted: Any

    def signals(self, models: Population) -> Tensor:
        """Return the task's signals, ``(members, signals, items)``."""
        return self._of_trials(self.task.signals, models)

    def costs(self, models: Population) -> Tensor:
        """Return what each member pays for its trial's items, in bits, ``(members, items)``."""
        return self._of_trials(self.task.costs, models)

    def other_twins(self, models: Population) -> Tensor:
        """Return what other trials' unplanted members pay for each trial's items.

        They are the twins and the A/A twins, which saw no canary of any trial; the plan has two
        trials or more.

        Returns:
            Means over those members, ``(trials, items)``.
        """
        trials, arms = self.plan.trials, len(self.plan.arms)
        unplanted = [slice(trial * arms + 1, (trial + 1) * arms) for trial in range(trials)]
        means = []
        for trial in range(trials):
            others = [
                self.task.costs(self.planted, SomeMembers(models, members), trial)
                for other, members in enumerate(unplanted)
                if other != trial
            ]
            means.append(torch.cat(others).mean(0))
        return torch.stack(means)

    def _of_trials(
        self, read: Callable[[Any, LogitModels, int], Tensor], models: Population
    ) -> Tensor:
        arms = len(self.plan.arms)
        members = [slice(t * arms, (t + 1) * arms) for t in range(self.plan.trials)]
        return torch.cat(
            [
                read(self.planted, SomeMembers(models, own), trial)
                for trial, own in enumerate(members)
            ]
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SequenceBench(Bench):
    """Trained models of sequences, and what is asked of them.

    Attributes:
        probes: Their costs; the task's numbers are asked too.
    """

    probes: TrialProbes

    def ask(self, models: Any) -> Floats:
        """Return each member's costs, its trial's by other twins, then its task's numbers.

        Returns:
            ``(members, items + items + numbers)``.
        """
        probes = self.probes
        twins = probes.other_twins(models).cpu().numpy().repeat(len(self.plan.arms), axis=0)
        own = probes.costs(models).cpu().numpy()
        return np.concatenate([own, twins, probes.task.numbers(probes.planted, models)], axis=1)


def hidden_probe(
    study: SequenceStudy, settings: HiddenSettings, probes: TrialProbes, *, device: str
) -> Callable[[Population], Floats]:
    """Return a probe that asks the members undisturbed, and then after each disturbance.

    Returns:
        The probe's answers have the shape ``(1 + disturbances, members, items + items + numbers)``.
    """

    def read(population: Population) -> Floats:
        bench = SequenceBench(
            make_model=probes.task.maker(study, probes.planted),
            states=[population.state_dict(member) for member in range(len(population))],
            plan=study.plan,
            device=device,
            probes=probes,
        )
        undisturbed = bench.finite([bench.ask(population)])
        lesson = probes.task.lesson(study, probes.planted)
        return np.concatenate([undisturbed, disturb(bench, settings, study.training, lesson)])

    return read


def kept_disturbed(answers: Floats, *, items: int, arms: int) -> dict[str, Floats]:
    """Return the arrays that the record keeps of ``hidden_probe``, by name.

    Args:
        answers: Of the probe.
        items: Canaries and references of a trial.
        arms: Members of a trial.
    """
    own, twins, task = np.split(answers, [items, 2 * items], axis=2)
    kept = {"hidden": own, "hidden_twins": twins[:, ::arms], "hidden_task": task}
    return {name: np.ascontiguousarray(array) for name, array in kept.items()}


def search_seconds(
    settings: HiddenSettings,
    probes: TrialProbes,
    population: Population,
    *,
    step_seconds: float,
    asked: float,
    clock: StepClock,
) -> float:
    """Return about how long the whole search takes; the members are asked once to time it.

    Args:
        settings: Of the disturbances.
        probes: What is asked.
        population: Of as many members.
        step_seconds: Of one step of all members.
        asked: How many times ``costs`` takes with what other trials' twins are asked.
        clock: Of the study's device.
    """
    clock(0)
    probes.costs(population)
    clock(0)
    probes.task.numbers(probes.planted, population)
    clock(0)
    before, between, after = clock.times[-3:]
    asking = asked * (between - before) + after - between
    steps = max(settings.relearn_steps, default=0)
    return asking * (1 + asked_times(settings)) + step_seconds * steps


def part_jobs(study: SequenceStudy, name: str, *, data_fingerprint: str) -> dict[str, Job]:
    """Return the jobs of one part by the array that each puts last: twins, then references.

    Args:
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
            work=partial(_train_twins, study, name, key(name)),
            members=study.plan.members,
            steps=study.plan.steps,
            saved=_checkpoint_file(name),
        )
    }
    if shadow is not None:
        made[f"{name}.reference_bits"] = Job(
            name=others,
            work=partial(_train_references, study, shadow, name, key(others)),
            members=shadow.members,
            steps=shadow.steps,
            saved=_checkpoint_file(others),
        )
    return made


def _checkpoint_file(part: str) -> str:
    return f"checkpoint-{part}.safetensors"


def _train_twins(
    study: SequenceStudy, name: str, key: str, parts: Mapping[str, Any], context: JobContext
) -> None:
    """Train the twins of one part and put what its probes saw into the output."""
    plan, planted, task = study.plan, parts[name], sequence_task(study)
    probes = TrialProbes(task, plan, planted)
    at = [plan.planted_until + lag for lag in study.lags()]
    asked: dict[str, Any] = {"signals": probes.signals}
    if study.other_twins:
        asked["twins"] = probes.other_twins
    steps = dict.fromkeys(asked, at)
    if study.hidden is not None and name == SEARCHED:
        device = context.execution.device
        asked["hidden"] = hidden_probe(study, study.hidden, probes, device=device)
        steps["hidden"] = at[-1:]
    fit, population = task.fit(
        study,
        plan,
        planted,
        context.execution,
        probes=asked,
        probe_steps=steps,
        checkpoint=context.checkpoint(_checkpoint_file(name), key),
        on_step=context.on_step(name, plan.steps),
    )
    signals = fit.probes["signals"]
    arrays: dict[str, Floats] = {}
    if "hidden" in asked:
        answers = fit.probes["hidden"][0]
        arrays |= kept_disturbed(answers, items=signals.shape[-1], arms=len(plan.arms))
    arrays[task.USEFUL] = task.judge(planted, population)
    if study.other_twins:
        arrays["twins_bits"] = fit.probes["twins"]
    arrays["signals"] = signals
    _keep_arrays(context, fit, name, {f"{name}.{what}": array for what, array in arrays.items()})


def _train_references(
    study: SequenceStudy,
    shadow: ShadowPlan,
    name: str,
    key: str,
    parts: Mapping[str, Any],
    context: JobContext,
) -> None:
    """Train the reference models as one population and keep what they pay for every item."""
    part, planted, task = f"{name}-references", parts[name], sequence_task(study)
    fit, _ = task.fit(
        study,
        shadow,
        planted,
        context.execution,
        probes={"bits": partial(task.all_costs, planted)},
        probe_steps=[clean_updates(study.plan) + lag for lag in study.lags()],
        checkpoint=context.checkpoint(_checkpoint_file(part), key),
        on_step=context.on_step(part, shadow.steps),
    )
    _keep_arrays(context, fit, part, {f"{name}.reference_bits": fit.probes["bits"]})


def _keep_arrays(context: JobContext, fit: Fit, part: str, arrays: Mapping[str, Floats]) -> None:
    """Put arrays of finite numbers into the output."""
    for array in arrays.values():
        finite_losses(array, where=f" in part {part!r}")
    context.output.update_execution(how_trained(part, fit))
    for name, array in arrays.items():
        context.output.put_array(name, array)
