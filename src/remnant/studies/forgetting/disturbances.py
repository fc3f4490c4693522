"""Disturbs trained classifiers, planted and unplanted alike, and probes them on the canaries.

A trial's members are disturbed in the same way: the same standard normal numbers (each tensor's
scaled by its own spread) and the same batches of neighbours in the same order. So what differs
between them afterwards differed before; the random draws add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import MADE, by_loss, mislabelled
from remnant.data import AuditData, Images
from remnant.errors import InvalidInput, PlanError
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.order import Order
from remnant.population import Population
from remnant.probes import SIGNALS, label_signals
from remnant.studies.forgetting.recipe import HiddenSettings
from remnant.studies.shared.settings import CanarySettings, TrainingSettings

Plan = InjectPlan | PoisonPlan
Floats = NDArray[np.float64]
State = Mapping[str, Tensor]
_NOISE, _NEIGHBOURS, _RELEARN = 3, 4, 5  # what a seed is for, beside canaries (1) and curves (2)


@dataclass(frozen=True, slots=True, eq=False)
class Disturbed:
    """Signals (as in ``label_signals``) and test accuracy of disturbed models.

    Attributes:
        answers: Each member's signals and then its accuracy, means over noise draws, shape
            ``(disturbances, members, numbers)``.
    """

    answers: Floats

    @property
    def signals(self) -> Floats:
        """Shape ``(disturbances, members, signals, canaries)``."""
        return self.answers[..., :-1].reshape(*self.answers.shape[:2], len(SIGNALS), -1)

    @property
    def accuracy(self) -> Floats:
        """Accuracy on test examples, shape ``(disturbances, members)``."""
        return np.ascontiguousarray(self.answers[..., -1])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Bench:
    """Everything that stays the same from one disturbance to the next.

    Attributes:
        make_model: Returns a fresh model.
        states: The trained members' own, trial by trial, a trial's members side by side.
        plan: Whose members they are.
        probed, test: The images they are probed on, standardised like their training data.
        device: Where to compute.
    """

    make_model: Callable[[], nn.Module]
    states: Sequence[State]
    plan: Plan
    probed: Images
    test: Images
    device: str = "cpu"

    def population(self, states: Sequence[State]) -> Population:
        """Return members that start from these states; a trial's share their dropout."""
        return Population(
            self.make_model,
            seeds=self.plan.seeds,
            dropout_seeds=self.plan.seeds,
            start=states,
            device=self.device,
            precision=self.plan.precision,
        )

    def ask(self, models: Any) -> NDArray[np.float64]:
        """Return every member's signals and accuracy, packed: shape ``(members, numbers)``."""
        signals = label_signals(models, self.probed.images, self.probed.labels)
        right = label_signals(models, self.test.images, self.test.labels)
        accuracy = right[:, SIGNALS.index("correct")].mean(1)
        whole = torch.cat([signals.flatten(1), accuracy[:, None]], dim=1)
        answers: Floats = whole.cpu().numpy()
        return answers

    def disturbed(self, answers: Sequence[Floats]) -> Disturbed:
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
        return Disturbed(rows)


def disturb(
    bench: Bench,
    settings: HiddenSettings,
    training: TrainingSettings,
    neighbours: Sequence[Images],
) -> Disturbed:
    """Apply every disturbance of the settings: each noise scale, then each number of steps."""
    done = [with_noise(bench, settings)] if settings.noise else []
    if settings.relearn_steps:
        done.append(after_relearning(bench, settings, training, neighbours))
    return Disturbed(np.concatenate([part.answers for part in done]))


def with_noise(bench: Bench, settings: HiddenSettings) -> Disturbed:
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
    return bench.disturbed([total / settings.draws for total in totals])


def after_relearning(
    bench: Bench,
    settings: HiddenSettings,
    training: TrainingSettings,
    neighbours: Sequence[Images],
) -> Disturbed:
    """Train on a trial's neighbours for a few steps, and probe after each number of steps.

    Args:
        bench: The trained members.
        settings: After how many steps to probe, and the learning rate.
        training: The study's own, for all else.
        neighbours: Of each trial, equally many, standardised.
    """
    arms, size = len(bench.plan.arms), len(neighbours[0])
    order = Order(
        keys=[(bench.plan.seed, _RELEARN, trial) for trial in range(bench.plan.trials)],
        pool=size,
        batch=bench.plan.batch,
        sampling="epoch",
    )
    first = np.arange(bench.plan.trials)[:, None] * size
    steps = range(settings.relearn_steps[-1])
    rows = np.stack([(order.rows(step) + first).repeat(arms, axis=0) for step in steps])
    options = dict(training.options)
    if settings.learning_rate is not None:
        options["lr"] = settings.learning_rate
    fit = bench.population(bench.states).fit(
        np.concatenate([near.images for near in neighbours]),
        np.concatenate([near.labels for near in neighbours]),
        rows,
        optimizer=training.optimizer,
        clip=training.clip,
        probes={"answers": bench.ask},
        probe_steps=settings.relearn_steps,
        **options,
    )
    return bench.disturbed(list(fit.probes["answers"]))


def draw_neighbours(
    plan: Plan,
    settings: CanarySettings,
    data: AuditData,
    pool_losses: Floats | None,
    canaries: Images,
    *,
    count: int,
) -> list[Images]:
    """Draw examples of the canaries' kind that are no canaries, ``count`` for each trial.

    They come from what the canaries left of the pool, each trial's by a draw of its own; those of
    different trials may overlap.

    Args:
        plan, settings, data, pool_losses: As the canaries were drawn.
        canaries: All canaries and controls, as drawn (not standardised).
        count: For each trial.

    Raises:
        PlanError: The pool has too few left.
    """
    used = {image.tobytes() for image in canaries.images}
    left = np.array(
        [row for row, image in enumerate(data.pool.images) if image.tobytes() not in used],
        dtype=np.int64,
    )
    if settings.kind not in MADE and len(left) < count:
        raise PlanError(
            f"hidden.neighbours={count} are more than the {len(left)} examples that the canaries "
            "leave of the pool.",
            hint="Ask for fewer neighbours, plant fewer canaries, or give the plan controls.",
        )
    made = []
    for trial in range(plan.trials):
        rng = np.random.default_rng([plan.seed, _NEIGHBOURS, trial])
        if settings.kind in MADE:
            shape = data.clean.images.shape[1:]
            make = MADE[settings.kind]
            made.append(Images(*make(shape, count=count, classes=data.classes, rng=rng)))
        elif settings.kind == "mislabelled":
            labels = data.pool.labels[left]
            rows, wrong = mislabelled(labels, count=count, classes=data.classes, rng=rng)
            made.append(Images(data.pool.images[left[rows]], wrong))
        else:
            losses = np.zeros(len(left)) if pool_losses is None else pool_losses[left]
            rows = by_loss(losses, count=count, level=settings.kind, rng=rng)
            made.append(data.pool.take(left[rows]))
    return made


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
