"""The stages that prediction studies of images and of text share: targets, pool, measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.plans import ShadowPlan
from remnant.plans.fingerprint import lasting
from remnant.population import Checkpoint, Fit, remove_checkpoint
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.prediction.evidence import (
    Bools,
    Evidence,
    Floats,
    Looks,
    keep_looks,
    kept_looks,
    risks_of,
    target_members,
    trace_steps,
)
from remnant.studies.prediction.measure import measure_prediction
from remnant.studies.prediction.shadow_pool import PoolScores, check_pool, fill_pool, read_pool
from remnant.studies.shared.classifiers import Probe, how_trained
from remnant.studies.shared.parts import ClassifierTask
from remnant.studies.shared.settings import Execution

Progress = Callable[[str, int, int], None]
_DIRECTIONS = 3  # of the plan's streams: directions are the same for all targets and moments


@dataclass(frozen=True, eq=False, kw_only=True)
class ShadowTraining(ABC):
    """Trains the models of one prediction study and reads signals off them.

    Attributes:
        study: A ``PredictionStudy`` or a ``TextPredictionStudy``.
        fingerprint: Of everything that the models are trained on.
        labels, kinds: Label and kind of each training example, shape ``(n,)``.
        what: The task and the models in words, for the scope.
    """

    LEAST_BLOCK: ClassVar[int] = 0

    study: Any
    execution: Execution
    fingerprint: str
    labels: NDArray[Any]
    kinds: NDArray[np.str_]
    what: str

    @abstractmethod
    def fit(
        self,
        members: range | tuple[int, ...],
        *,
        plan: ShadowPlan | None = None,
        probes: Mapping[str, Probe] | None = None,
        checkpoint: Checkpoint | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> tuple[Fit, Any]:
        """Train these members of ``plan``, by default the study's; return fit and models."""

    @abstractmethod
    def signals(self, models: Any) -> Any:
        """Return loss, log-odds and logit gap of all examples, shape ``(members, 3, n)``."""

    @abstractmethod
    def first_losses(self, models: Any, own: Bools) -> Any:
        """Return the first member's losses, at least on the examples ``own`` of its training."""

    @abstractmethod
    def look(self, models: Any, seen: Bools) -> Iterator[tuple[Any, list[Tensor]]]:
        """Yield the signals ``(3, n)`` of each target, and its own examples' states by layer."""

    @abstractmethod
    def trained_targets(self, record: Record, fit: Fit, models: Any, own: Bools) -> Floats:
        """Record the targets' accuracy; return the losses after each epoch, ``(epochs, n)``."""

    @abstractmethod
    def task(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""

    @property
    def epoch(self) -> float:
        """Updates in an epoch of one model."""
        return float(len(self.labels) / 2 / self.study.plan.batch)

    @property
    def block(self) -> int:
        """How many models of the pool are trained together."""
        return max(self.LEAST_BLOCK, self.execution.pool_block)

    @property
    def targets(self) -> tuple[int, ...]:
        """The members that are examined early."""
        return target_members(self.study.predict.targets)

    @property
    def moments(self) -> tuple[int, ...]:
        """After how many updates the targets are examined."""
        steps: tuple[int, ...] = self.study.predict.steps(
            epoch=self.epoch, last=self.study.plan.steps
        )
        return steps

    def checkpoint(self, path: Path, part: str) -> Checkpoint:
        """Return where and how a part of the training is saved."""
        key = f"{self.study.fingerprint}/{self.fingerprint}/{part}"
        return Checkpoint(path, seconds=self.execution.checkpoint_seconds, key=key)


def run_shadow_study(training: ShadowTraining, record: Record, progress: Progress | None) -> None:
    """Examine the targets, fill the pool and measure; skip what the record holds already."""
    study = training.study
    seen = study.plan.seen(examples=len(training.labels), members=training.targets)
    looks = kept_looks(record)
    if looks is None:
        looks = _look_at_targets(training, seen, record, progress)
        keep_looks(record, looks)
    stop = looks.steps[looks.stopped(seen, drop=study.predict.drop)]
    put_parts(record, task=training.task(record))
    evidence = Evidence(
        looks=looks,
        targets=training.targets,
        pool=_pool_scores(training, record, stop, progress),
        epoch=training.epoch,
        labels=training.labels,
        kinds=training.kinds,
        what=training.what,
    )
    measure_prediction(record, study.plan, study.predict, study.truth, evidence)
    record.finish()


def check_pool_folder(study: Any, execution: Execution, data_fingerprint: str) -> None:
    """Refuse a pool folder that holds another pool, before anything is trained.

    Raises:
        RecordError: It holds no pool, or one of other data, plan or recipe.
    """
    if execution.pool_folder is not None:
        recipe = _pool_recipe(study)
        check_pool(
            execution.pool_folder, study.plan, recipe=recipe, data_fingerprint=data_fingerprint
        )


def _look_at_targets(
    training: ShadowTraining, seen: Bools, record: Record, progress: Progress | None
) -> Looks:
    """Train the targets, and examine them at every moment."""
    study, steps = training.study, training.moments
    path = record.folder / "checkpoint-targets.safetensors"
    trace = trace_steps(epoch=training.epoch, last=study.plan.steps)
    fit, models = training.fit(
        training.targets,
        probes={
            "looks": Probe(lambda models: _look_once(training, models, seen), steps),
            "trace": Probe(lambda models: training.first_losses(models, seen[0]), trace),
        },
        checkpoint=training.checkpoint(path, "targets"),
        on_step=_on_step(progress, "targets", study.plan.steps),
    )
    losses = training.trained_targets(record, fit, models, seen[0])
    record.update_execution(how_trained("targets", fit))
    remove_checkpoint(path)
    looks = fit.probes["looks"]  # as ``_look_once`` returns them, after an axis of moments
    looks[0, 1:] = np.nan
    return Looks(
        steps=steps,
        layers=study.predict.layers,
        signals=looks[:, 0],
        psmi=looks[:, 1:, :, 0],
        mahalanobis=looks[:, 1:, :, 1],
        smi=looks[:, 1:, :, 2, 0],
        trace=losses,
    )


def _look_once(training: ShadowTraining, models: Any, seen: Bools) -> Floats:
    """Examine all targets at one moment.

    Returns:
        Shape ``(1 + layers, targets, 3, n)``: first the signals; then by layer PSMI's risk, the
        Mahalanobis distance and SMI. NaN where a target was not trained on the example.
    """
    predict, labels = training.study.predict, training.labels
    looks = np.empty((1 + len(predict.layers), len(seen), len(MARGINS), seen.shape[1]))
    for target, (signals, states) in enumerate(training.look(models, seen)):
        looks[0, target] = signals
        for place, hidden in enumerate(states, start=1):
            rng = np.random.default_rng([training.study.plan.seed, _DIRECTIONS])
            psmi, smi, distance = risks_of(
                hidden, labels, seen[target], predict, rng, far=target == 0
            )
            looks[place, target] = psmi, distance, np.full(len(labels), smi)
    return looks


def _pool_recipe(study: Any) -> dict[str, Any]:
    """Return what changes the scores of a pool and is known before training, besides the plan."""
    plain = lasting(study, study.to_dict())
    names = [name for name in study.SECTIONS if name not in ("predict", "truth")]
    return {name: plain[name] for name in names if name in plain}


def _pool_scores(
    training: ShadowTraining, record: Record, stop: int, progress: Progress | None
) -> PoolScores:
    """Fill the pool with all models' signals at the stop and at the end, and read it."""
    plan, execution = training.study.plan, training.execution
    known: dict[str, Any] = {
        "recipe": {**_pool_recipe(training.study), "scored": [stop, plan.steps]},
        "data_fingerprint": record.data_fingerprint,
    }
    folder = execution.pool_folder or record.folder / "pool"
    probes = {"signals": Probe(training.signals, tuple(sorted({stop, plan.steps})))}

    def train(first: int, last: int, where: Path) -> Floats:
        path = where / f"checkpoint-{first}-{last}.safetensors"
        fit, _ = training.fit(
            range(first, last),
            probes=probes,
            checkpoint=training.checkpoint(path, f"{first}-{last}"),
            on_step=_on_step(
                progress, f"models {first + 1} to {last} of {plan.models}", plan.steps
            ),
        )
        signals = fit.probes["signals"]
        return np.concatenate([signals[0], signals[-1]], axis=1)

    fill_pool(folder, plan, **known, train=train, device=execution.device, block=training.block)
    return read_pool(folder, plan, **known)


def _on_step(progress: Progress | None, name: str, steps: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(name, done, steps)
