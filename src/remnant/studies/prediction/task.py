"""What differs between kinds of models in a prediction study: data, training, and what is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.data.own_files import Origin
from remnant.plans import ShadowPlan
from remnant.population import Checkpoint, Fit
from remnant.records import Record
from remnant.studies.jobs.execution import JobContext, JobOutput
from remnant.studies.pipeline import StepClock
from remnant.studies.prediction.early_looks import Bools, Floats, target_members
from remnant.studies.shared.classifiers import Probe
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution

T = TypeVar("T", bound="PredictionTask")


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionTask(ABC):
    """The examples of one study with their canaries, and how models are trained on them.

    ``images.py`` and ``multiple_choice.py`` each have one, and ``prepare``, which loads and plants.

    Attributes:
        study: A ``PredictionStudy`` or a ``TextPredictionStudy``.
        fingerprint: Of everything that the models are trained on.
        labels, kinds: Label and kind of each training example, shape ``(n,)``.
        what: The task and the models in words, for the scope.
        seeds: What is drawn, by name, for the provenance.
        origin: The user's own files that examples were read from, or None.
    """

    LEAST_BLOCK: ClassVar[int] = 0
    TIMED_STEPS: ClassVar[int]  # of the short training by which an estimate is made

    study: Any
    execution: Execution
    fingerprint: str
    labels: NDArray[Any]
    kinds: NDArray[np.str_]
    what: str
    seeds: dict[str, int]
    origin: Origin | None

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
    def trained_targets(self, record: JobOutput, fit: Fit, models: Any, own: Bools) -> Floats:
        """Record the targets' accuracy; return the losses after each epoch, ``(epochs, n)``."""

    @abstractmethod
    def useful(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""

    @abstractmethod
    def memory(self, fit: Fit) -> int:
        """Return the bytes that a training takes."""

    def reading_seconds(self, models: Any, clock: StepClock) -> float:
        """Return how long reading the signals takes; 0 where that is little beside training."""
        return 0.0

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

    def checkpoint(self, context: JobContext, part: str) -> Checkpoint | None:
        """Return where and how a part of the training is saved."""
        key = f"{self.study.fingerprint}/{self.fingerprint}/{part}"
        return context.checkpoint(checkpoint_file(part), key)

    def on(self: T, execution: Execution) -> T:
        """Return the same task where a job runs."""
        return replace(self, execution=execution)


def checkpoint_file(part: str) -> str:
    """Return the name of the file in which a part of the training is saved."""
    return f"checkpoint-{part}.safetensors"
