"""A probe at the last lag that disturbs models of sequences while they are in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from remnant.population import Population
from remnant.studies.residual_memory.disturbances import Bench, Lesson, asked_times, disturb
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.text_forgetting.recipe import SequenceStudy

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Search:
    """What a search for residual memory takes beside the trained members.

    Attributes:
        settings: The disturbances.
        training: The study's own.
        make_model: Returns a fresh model.
        costs: Returns what each member pays for its trial's canaries and references, in bits,
            ``(members, items)``.
        twins: Returns what the unplanted members of other trials pay for them on average,
            ``(trials, items)``.
        task: Returns how well each member does its task, ``(members, numbers)``.
        lesson: The neighbours; None without relearning.
        items: Canaries and references of a trial.
    """

    settings: HiddenSettings
    training: TrainingSettings
    make_model: Callable[[], nn.Module]
    costs: Callable[[Any], Floats]
    twins: Callable[[Any], Floats]
    task: Callable[[Any], Floats]
    lesson: Lesson | None
    items: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SequenceBench(Bench):
    """Trained models of sequences, and what is asked of them.

    Attributes:
        search: Whose costs and task they are asked about.
    """

    search: Search

    def ask(self, models: Any) -> Floats:
        """Return each member's costs, its trial's by other twins, then its task's numbers.

        Returns:
            ``(members, items + items + numbers)``.
        """
        search = self.search
        twins = search.twins(models).repeat(len(self.plan.arms), axis=0)
        return np.concatenate([search.costs(models), twins, search.task(models)], axis=1)


def hidden_probe(
    study: SequenceStudy, search: Search, *, device: str
) -> Callable[[Population], Floats]:
    """Return a probe that asks the members undisturbed, and then after each disturbance.

    Returns:
        The probe's answers have the shape ``(1 + disturbances, members, items + items + numbers)``.
    """

    def read(population: Population) -> Floats:
        bench = SequenceBench(
            make_model=search.make_model,
            states=[population.state_dict(member) for member in range(len(population))],
            plan=study.plan,
            device=device,
            search=search,
        )
        undisturbed = bench.finite([bench.ask(population)])
        after = disturb(bench, search.settings, search.training, search.lesson)
        return np.concatenate([undisturbed, after])

    return read


def kept_disturbed(search: Search, answers: Floats, *, arms: int) -> dict[str, Floats]:
    """Return the arrays that the record keeps of the probe, by name.

    Args:
        search: The search.
        answers: Of the probe.
        arms: Members of a trial.
    """
    own, twins, task = np.split(answers, [search.items, 2 * search.items], axis=2)
    kept = {"hidden": own, "hidden_twins": twins[:, ::arms], "hidden_task": task}
    return {name: np.ascontiguousarray(array) for name, array in kept.items()}


def search_seconds(
    search: Search,
    population: Population,
    *,
    step_seconds: float,
    asked: float,
    clock: StepClock,
) -> float:
    """Return about how long the whole search takes; the members are asked once to time it.

    Args:
        search: The search.
        population: Of as many members.
        step_seconds: Of one step of all members.
        asked: How many times ``search.costs`` takes with what other trials' twins are asked.
        clock: Of the study's device.
    """
    clock(0)
    search.costs(population)
    clock(0)
    search.task(population)
    clock(0)
    before, between, after = clock.times[-3:]
    asking = asked * (between - before) + after - between
    steps = max(search.settings.relearn_steps, default=0)
    return asking * (1 + asked_times(search.settings)) + step_seconds * steps
