"""Disturbs trained models, planted and unplanted alike, and probes them again.

A trial's members are disturbed in the same way: the same standard normal numbers (each tensor's
scaled by its own spread) and the same batches of neighbours in the same order. So what differs
between them afterwards differed before; the random draws add nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput
from remnant.plans import ArraySchedule, InjectPlan, PoisonPlan
from remnant.plans.schedule import Order, Schedule
from remnant.population import Population
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.tasks.task import Lesson

Plan = InjectPlan | PoisonPlan
Floats = NDArray[np.float64]
State = Mapping[str, Tensor]
NEIGHBOURS = 4  # what a seed is for, beside canaries (1) and curves (2)
_NOISE, _RELEARN = 3, 5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Bench(ABC):
    """Everything that stays the same from one disturbance to the next.

    Attributes:
        make_model: Returns a fresh model.
        states: The trained members' own, trial by trial, a trial's members side by side.
        plan: Whose members they are.
        device: Where to compute.
        compared: As in ``Population``.
    """

    make_model: Callable[[], nn.Module]
    states: Sequence[State]
    plan: Plan
    device: str = "cpu"
    compared: bool = False

    def population(self, states: Sequence[State]) -> Population:
        """Return members that start from these states; a trial's share their dropout."""
        return Population(
            self.make_model,
            seeds=self.plan.seeds,
            dropout_seeds=self.plan.seeds,
            start=states,
            device=self.device,
            precision=self.plan.precision,
            compared=self.compared,
        )

    @abstractmethod
    def ask(self, models: Any) -> Floats:
        """Return what is measured of every member: shape ``(members, numbers)``."""

    def finite(self, answers: Sequence[Floats]) -> Floats:
        """Put the answers of ``ask`` together, one array a disturbance.

        Raises:
            InvalidInput: A number is not finite.
        """
        rows = np.stack(answers)
        if not bool((np.abs(rows) < 1e30).all()):
            raise InvalidInput(
                "A disturbed model's logits are not finite.",
                hint="Lower hidden.noise or hidden.learning_rate.",
            )
        return rows


def disturb(
    bench: Bench, settings: HiddenSettings, training: TrainingSettings, lesson: Lesson | None
) -> Floats:
    """Apply every disturbance of the settings: each noise scale, then each number of steps.

    Args:
        bench: The trained members.
        settings: The disturbances.
        training: The study's own.
        lesson: Needed where the settings have steps of relearning.

    Returns:
        The answers of ``bench.ask``, means over noise draws, shape ``(disturbances, members,
        numbers)``.
    """
    done = [with_noise(bench, settings)] if settings.noise else []
    if settings.relearn_steps and lesson is not None:
        done.append(after_relearning(bench, settings, training, lesson))
    return np.concatenate(done)


def asked_times(settings: HiddenSettings) -> int:
    """Return how often all members are asked in ``disturb``."""
    return len(settings.noise) * settings.draws + len(settings.relearn_steps)


def with_noise(bench: Bench, settings: HiddenSettings) -> Floats:
    """Add Gaussian noise to the weights, once a scale and draw, and probe each time.

    One population as large as the trained one at a time, so that it fits where that did. Buffers
    (such as running means) are left alone.
    """
    trainable = [name for name, _ in bench.make_model().named_parameters()]
    arms = len(bench.plan.arms)
    totals = [np.zeros(0)] * len(settings.noise)
    for draw in range(settings.draws):
        normal = [
            _standard_normal(bench.states[trial * arms], trainable, (bench.plan.seed, trial, draw))
            for trial in range(bench.plan.trials)
        ]
        for place, scale in enumerate(settings.noise):
            noised = [
                _noised(state, normal[member // arms], scale)
                for member, state in enumerate(bench.states)
            ]
            answers = bench.ask(bench.population(noised))
            totals[place] = answers if draw == 0 else totals[place] + answers
    return bench.finite([total / settings.draws for total in totals])


def after_relearning(
    bench: Bench, settings: HiddenSettings, training: TrainingSettings, lesson: Lesson
) -> Floats:
    """Train on a trial's neighbours for a few steps, and probe after each number of steps.

    Args:
        bench: The trained members.
        settings: After how many steps to probe, and the learning rate.
        training: The study's own, for all else.
        lesson: The neighbours.
    """
    arms = len(bench.plan.arms)
    order = Order(
        keys=[(bench.plan.seed, _RELEARN, trial) for trial in range(bench.plan.trials)],
        pool=lesson.each,
        batch=bench.plan.batch,
        sampling="epoch",
    )
    first = np.arange(bench.plan.trials)[:, None] * lesson.each
    steps = range(settings.relearn_steps[-1])
    rows = np.stack([(order.rows(step) + first).repeat(arms, axis=0) for step in steps])
    schedule: Schedule = ArraySchedule(rows)
    if lesson.scheduled is not None:
        schedule = lesson.scheduled(schedule)
    options = dict(training.options)
    if settings.learning_rate is not None:
        options["lr"] = settings.learning_rate
    fit = bench.population(bench.states).fit(
        lesson.inputs,
        lesson.targets,
        schedule,
        loss=lesson.loss,
        optimizer=training.optimizer,
        clip=training.clip,
        probes={"answers": bench.ask},
        probe_steps=settings.relearn_steps,
        **options,
    )
    return bench.finite(list(fit.probes["answers"]))


def _standard_normal(
    state: State, names: Sequence[str], key: tuple[int, int, int]
) -> dict[str, Tensor]:
    seed, trial, draw = key
    rng = np.random.default_rng([seed, _NOISE, trial, draw])
    drawn = {name: rng.standard_normal(tuple(state[name].shape)) for name in names}
    return {name: torch.from_numpy(np.asarray(normal)) for name, normal in drawn.items()}


def _noised(state: State, normal: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    made = dict(state)
    for name, draw in normal.items():
        own = state[name].double().cpu()
        made[name] = (own + scale * own.std(correction=0) * draw).to(state[name].dtype)
    return made
