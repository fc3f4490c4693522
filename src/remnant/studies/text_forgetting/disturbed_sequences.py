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
        task: Returns how well each member does its task, ``(members, numbers)``.
        lesson: The neighbours; None without relearning.
        items: Canaries and references of a trial.
    """

    settings: HiddenSettings
    training: TrainingSettings
    make_model: Callable[[], nn.Module]
    costs: Callable[[Any], Floats]
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
        """Return every member's costs, then its task's numbers: ``(members, numbers)``."""
        return np.concatenate([self.search.costs(models), self.search.task(models)], axis=1)


def hidden_probe(
    study: SequenceStudy, search: Search, *, device: str
) -> Callable[[Population], Floats]:
    """Return a probe that asks the members undisturbed, and then after each disturbance.

    Returns:
        The probe's answers have the shape ``(1 + disturbances, members, items + numbers)``.
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


def kept_disturbed(search: Search, answers: Floats) -> dict[str, Floats]:
    """Return the arrays that the record keeps of the probe, by name."""
    return {
        "hidden": np.ascontiguousarray(answers[..., : search.items]),
        "hidden_task": np.ascontiguousarray(answers[..., search.items :]),
    }


def search_seconds(
    search: Search, population: Population, *, step_seconds: float, clock: StepClock
) -> float:
    """Return about how long the whole search takes; the members are asked once to time it.

    Args:
        search: The search.
        population: Of as many members.
        step_seconds: Of one step of all members.
        clock: Of the study's device.
    """
    clock(0)
    search.costs(population)
    search.task(population)
    clock(0)
    asking = clock.times[-1] - clock.times[-2]
    steps = max(search.settings.relearn_steps, default=0)
    return asking * (1 + asked_times(search.settings)) + step_seconds * steps
