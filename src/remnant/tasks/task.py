"""What every task is: load, plant, train, score, useful, and the words of its scope."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.data.own_files import Origin
from remnant.plans import StaggeredPlan
from remnant.plans.schedule import Schedule
from remnant.population import Checkpoint, Fit, Population
from remnant.progress import Progress as Progress
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import finite_losses

Floats = NDArray[np.float64]
StudyT = TypeVar("StudyT")
PlantedT = TypeVar("PlantedT")


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What a task has read.

    Attributes:
        data: In the task's own form.
        origin: The user's own files; None for other data.
        left_out: Returns the seconds of work that a dry run did not do.
    """

    data: Any
    origin: Origin | None
    left_out: Callable[[], float] = float


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Members that were trained.

    Attributes:
        fit: How.
        population: The members at the end.
        scores: Of all canaries and controls, ``(checkpoints, members, canaries)``; higher is more
            likely seen.
    """

    fit: Fit
    population: Population
    scores: Floats


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lesson:
    """The neighbours that members are trained on again.

    Attributes:
        inputs, targets: The example store: the neighbours of each trial, trial by trial, and
            behind them what ``scheduled`` may put in their place.
        each: Neighbours of a trial.
        loss: As ``Population.fit`` takes it; None for cross-entropy.
        scheduled: Returns the schedule to train by, given the one that walks over the neighbours;
            None leaves it as it is.
    """

    inputs: Any
    targets: Any
    each: int
    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    scheduled: Callable[[Schedule], Schedule] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeWords:
    """What a task says of a run in its scope.

    Attributes:
        model: Name of the model.
        data: What it was trained on.
        planted: What was planted, after how many: such as ``odd canaries planted``.
        scored: What a score is, where that has to be said; a line each.
        untested: What was not tested of this kind of model; a line each.
        others: Which other models and data were not tested.
    """

    model: str
    data: str
    planted: str
    scored: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    others: str


class Task(ABC, Generic[StudyT, PlantedT]):
    """A kind of model: all that a study need not know of it.

    Attributes:
        USEFUL: Name of the array of what ``judge`` returns.
    """

    USEFUL: ClassVar[str]

    @abstractmethod
    def load(
        self,
        study: StudyT,
        execution: Execution,
        progress: Progress | None = None,
        *,
        imagined: bool = False,
    ) -> Source:
        """Read the data that the study names.

        Args:
            study, execution: What is run, and how.
            progress: The progress callback.
            imagined: Whether to leave out slow work, and return data that is only as large.
        """

    @abstractmethod
    def plant(
        self,
        study: StudyT,
        source: Source,
        execution: Execution,
        *,
        pool_losses: Floats | None = None,
    ) -> PlantedT:
        """Draw canaries and controls the same way and put them behind the clean data.

        Args:
            study, source, execution: What is run, on what, and how.
            pool_losses: What the study's judges say of the pool, where it has any.

        Raises:
            RemnantError: Something cannot be planted, or not be trained with these settings.
        """

    @abstractmethod
    def fingerprint(self, source: Source, planted: PlantedT) -> str:
        """Return a digest of the data."""

    @abstractmethod
    def seeds(self, study: StudyT) -> dict[str, int]:
        """Return every seed by name."""

    @abstractmethod
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
        """Train the members of a plan, and score canaries and controls on the way.

        Args:
            study, plan, planted, execution: What is trained on what, and how.
            steps: After how many updates to score.
            checkpoint, on_step: As in ``Population.fit``.

        Raises:
            InvalidInput: Training diverged.
        """

    @abstractmethod
    def score(self, planted: PlantedT, models: Population) -> Tensor:
        """Return the score of each canary and control, ``(members, canaries)``."""

    @abstractmethod
    def judge(self, planted: PlantedT, models: Population) -> Floats:
        """Return how the members do on examples that nobody was trained on, one row a member."""

    @abstractmethod
    def useful(
        self, study: StudyT, source: Source, planted: PlantedT, judged: Floats
    ) -> dict[str, Any]:
        """Return the record's ``task``, by which a gate decides whether models learnt anything."""

    @abstractmethod
    def scope(self, study: StudyT) -> ScopeWords:
        """Return what the scope says of this kind of model."""

    @abstractmethod
    def held(self, planted: PlantedT) -> int:
        """Return the bytes of what is trained on and scored."""

    def judges(self, study: StudyT) -> list[Any]:
        """Return the jobs that train judges of the pool; none where canaries need no judge."""
        return []


def scored(fit: Fit, population: Population) -> Trained:
    """Return members whose scores are a probe of their training.

    Raises:
        InvalidInput: Training diverged.
    """
    scores = fit.probes.get("scores", np.zeros(0))
    return Trained(fit, population, finite_losses(scores, where=" in part 'run'"))
