"""What a study of sequences asks of a kind of model beside one run: costs of trials, a lesson."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from remnant.models.protocols import LogitModels
from remnant.plans import InjectPlan, PoisonPlan, StaggeredPlan
from remnant.plans.plan import COHORTS, SEQUENCES
from remnant.population import Checkpoint, Fit, Population
from remnant.studies.shared.settings import Execution
from remnant.tasks.task import Floats, Lesson, PlantedT, StudyT, Task, Trained, scored


class SequenceTask(Task[StudyT, PlantedT]):
    """A kind of model that gives sequences a cost: minus the base-2 logarithm of a probability.

    What is planted has canaries and references of each trial in ``probed``.
    """

    @abstractmethod
    def maker(self, study: StudyT, planted: PlantedT) -> Callable[[], nn.Module]:
        """Return a function that makes a fresh model of the study."""

    @abstractmethod
    def fit(
        self, study: StudyT, plan: Any, planted: PlantedT, execution: Execution, **choices: Any
    ) -> tuple[Fit, Population]:
        """Train the members of any plan in the study's way; choices are those of ``fit``."""

    def train(
        self,
        study: StudyT,
        plan: StaggeredPlan,
        planted: PlantedT,
        execution: Execution,
        *,
        steps: Sequence[int] = (),
        checkpoint: Checkpoint | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> Trained:
        """Train the members and keep what the sequences cost."""
        fit, population = self.fit(
            study,
            plan,
            planted,
            execution,
            probes={"scores": partial(self.score, planted)} if steps else {},
            probe_steps=steps,
            checkpoint=checkpoint,
            on_step=on_step,
        )
        return scored(fit, population)

    def score(self, planted: PlantedT, models: Population) -> Tensor:
        """Return minus the cost of each item of the one trial, in bits."""
        return -self.signals(planted, models, 0)[:, 0]

    @abstractmethod
    def signals(self, planted: PlantedT, models: LogitModels, trial: int) -> Tensor:
        """Return what is read off models about a trial's canaries, then its references.

        Returns:
            float64 ``(members, signals, items)``; the first signal is the cost in bits.
        """

    def costs(self, planted: PlantedT, models: LogitModels, trial: int) -> Tensor:
        """Return the first of ``signals`` alone, ``(members, items)``."""
        return self.signals(planted, models, trial)[:, 0]

    def all_costs(self, planted: PlantedT, models: LogitModels) -> Tensor:
        """Return what models pay for the items of all trials, ``(members, trials, items)``."""
        every: Any = planted
        trials = range(len(every.probed))
        return torch.stack([self.signals(planted, models, t)[:, 0] for t in trials], dim=1)

    @abstractmethod
    def numbers(self, planted: PlantedT, models: Population) -> Floats:
        """Return how well each member does its task, ``(members, numbers)``."""

    @abstractmethod
    def fields(self, numbers: Floats, task: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the record's ``task`` as it would be with these ``numbers`` of its members."""

    @abstractmethod
    def lesson(self, study: StudyT, planted: PlantedT) -> Lesson | None:
        """Return the neighbours to relearn from; None where there are none."""

    def timed_trials(self, plan: InjectPlan | PoisonPlan, device: str) -> int:
        """Return how many trials a dry run trains: all, where they are trained together."""
        return plan.trials


def drawn_of(
    plan: InjectPlan | PoisonPlan | StaggeredPlan, settings: Any
) -> tuple[tuple[int, ...], int, int, int]:
    """Return the key of everything drawn, and how many sets, trials and references of each.

    One run has one set, and its canaries that are never planted are its references. It draws them
    by another key than its plan draws who is planted when: what a canary is must not depend on it.

    Args:
        plan: Who sees what, and when.
        settings: The section ``canaries``; it has ``references`` unless the plan is one run.
    """
    if isinstance(plan, StaggeredPlan):
        return (plan.seed, SEQUENCES), 1, 1, 0
    return (
        (plan.seed, COHORTS),
        plan.trials if plan.fresh_canaries else 1,
        plan.trials,
        settings.references,
    )
