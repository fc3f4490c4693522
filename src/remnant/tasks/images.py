"""Classifiers of images or rows of features: a label's log-odds are the score.

The data, canaries and training are those that all studies of classifiers share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from remnant.plans import StaggeredPlan
from remnant.population import Checkpoint, Population
from remnant.probes import SIGNALS, label_signals
from remnant.studies.shared.classifiers import (
    CanaryLooks,
    accuracy_of,
    check_classifier,
    check_converged,
    fit_classifiers,
    judge_jobs,
    load_data,
    members_of,
    task_fields,
)
from remnant.studies.shared.image_canaries import Planting, draw_canaries, plant
from remnant.studies.shared.settings import ClassifierStudy, Execution
from remnant.tasks.task import Floats, Progress, ScopeWords, Source, Task, Trained

LOG_ODDS = SIGNALS.index("log_odds")


class Images(Task[ClassifierStudy, Planting]):
    """Classifiers; see ``Task``."""

    USEFUL = "test_accuracy"

    def load(
        self,
        study: ClassifierStudy,
        execution: Execution,
        progress: Progress | None = None,
        *,
        imagined: bool = False,
    ) -> Source:
        """Read images, cut into clean ones, the pool of canaries and the test set."""
        data = load_data(study, execution)
        return Source(data, data.origin)

    def plant(
        self,
        study: ClassifierStudy,
        source: Source,
        execution: Execution,
        *,
        pool_losses: Floats | None = None,
    ) -> Planting:
        """Draw canaries and put them behind the clean images."""
        check_classifier(study, source.data, execution)
        drawn = draw_canaries(study.plan, study.canaries, source.data, pool_losses)
        return plant(source.data, [drawn])

    def fingerprint(self, source: Source, planted: Planting) -> str:
        """Return the digest of the images."""
        digest: str = source.data.fingerprint
        return digest

    def seeds(self, study: ClassifierStudy) -> dict[str, int]:
        """Return the seeds of plan and data."""
        return {"plan": study.plan.seed, "data": study.data.seed}

    def train(
        self,
        study: ClassifierStudy,
        plan: StaggeredPlan,
        planted: Planting,
        execution: Execution,
        *,
        steps: Sequence[int] = (),
        checkpoint: Checkpoint | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> Trained:
        """Train classifiers and keep the canaries' log-odds."""
        looks = CanaryLooks(slice(plan.members), slice(None), tuple(steps))
        fit, population = fit_classifiers(
            study,
            members_of(study, plan, planted),
            planted,
            execution,
            ask={"signals": looks} if steps else None,
            checkpoint=checkpoint,
            on_step=on_step,
        )
        if not steps:
            return Trained(fit, population, np.zeros(0))
        check_converged(fit.probes["signals"], "run")
        return Trained(fit, population, fit.probes["signals"][:, :, LOG_ODDS])

    def score(self, planted: Planting, models: Population) -> Tensor:
        """Return each member's log-odds of the labels."""
        return label_signals(models, planted.probed.images, planted.probed.labels)[:, LOG_ODDS]

    def judge(self, planted: Planting, models: Population) -> Floats:
        """Return each member's accuracy on test examples."""
        return accuracy_of(models, planted)

    def useful(
        self, study: ClassifierStudy, source: Source, planted: Planting, judged: Floats
    ) -> dict[str, Any]:
        """Return the test accuracy beside the commonest class's share."""
        return task_fields(judged, source.data)

    def scope(self, study: ClassifierStudy) -> ScopeWords:
        """Return what was planted, and what other kinds there are."""
        return ScopeWords(
            model=study.model.title,
            data=study.data.title,
            planted=f"{study.canaries.kind} canaries planted",
            others="other models, other data and other kinds of canary",
        )

    def held(self, planted: Planting) -> int:
        """Return the bytes of all images that are trained on."""
        return planted.store.images.nbytes

    def judges(self, study: ClassifierStudy) -> list[Any]:
        """Return the job that ranks the pool by loss, where canaries are chosen by it."""
        return judge_jobs(study, [study.canaries])


TASK = Images()
