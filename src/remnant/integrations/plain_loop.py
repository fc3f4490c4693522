"""A hook that measures a forgetting curve in your own training loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput
from remnant.measures import OneRunForgetting, Success
from remnant.measures.forgetting.recency import recency_curve
from remnant.plans import StaggeredPlan

Floats = NDArray[np.float64]


class OneRunHook:
    """Says which canaries to put into each batch, and records their scores during training.

    The hook never touches model or data. The loop puts the canaries that ``planted`` names into the
    batch of that step, in the place of other rows, and hands over a score for every canary, planted
    or not, at the steps that are ``due``. A score is anything that is higher for what was seen:
    log-odds of the label, or minus the loss. Where the first window begins with step 0, call
    ``after(-1)`` before training.

    ``remnant.Audit`` is the newer way: with ``plan="staggered"`` it plants by itself, and
    ``Audit.from_ledger`` makes a record and a page of any run whose batch order was logged, such as
    ``Audit.from_ledger(hook.scores_by_updates, hook.plan.ledger(), out="audit")``.

    Args:
        plan: Which canary, when, how often.
        score: Called without arguments when a score is due; returns one number a canary. Without it
            the loop calls ``record`` itself, for instance on saved checkpoints.
        checkpoints: How many evenly spaced ones, beside those before and after each window.

    Example:
        >>> plan = StaggeredPlan(canaries=60, never=20, starts=[3], window=5, steps=20)
        >>> hook = OneRunHook(plan, score=lambda: np.zeros(60))
        >>> for step in range(20):
        ...     canaries = hook.planted(step)  # put these into the batch, then train
        ...     scored = hook.after(step)
        >>> hook.curve(rng=np.random.default_rng(0)).lags[-1] > 10
        np.True_
    """

    def __init__(
        self,
        plan: StaggeredPlan,
        *,
        score: Callable[[], ArrayLike] | None = None,
        checkpoints: int = 20,
    ) -> None:
        self.plan = plan
        self._score = score
        self._due = {updates - 1 for updates in plan.checkpoints(checkpoints)}
        self._scores: dict[int, Floats] = {}

    @property
    def due(self) -> list[int]:
        """Steps after whose update a score is due; -1 is before the first."""
        return sorted(self._due)

    @property
    def scores(self) -> dict[int, Floats]:
        """What was recorded so far, by step."""
        return dict(self._scores)

    @property
    def scores_by_updates(self) -> dict[int, Floats]:
        """What was recorded so far, by how many updates the model had had."""
        return {step + 1: scores for step, scores in self._scores.items()}

    def planted(self, step: int) -> NDArray[np.int64]:
        """Return the canaries that belong into the batch of ``step``, none of them twice."""
        return self.plan.planted(step)

    def after(self, step: int) -> bool:
        """Score all canaries if it is due after this step's update; return whether it was.

        Raises:
            InvalidInput: The hook was made without ``score``, or it returned something else than
                one finite number a canary.
        """
        if step not in self._due:
            return False
        if self._score is None:
            raise InvalidInput(
                f"A score is due after step {step}, and the hook has nobody to ask.",
                hint="Give it score=..., or call record(step, scores).",
            )
        self.record(step, self._score())
        return True

    def record(self, step: int, scores: ArrayLike) -> None:
        """Take the scores of all canaries after the update of ``step`` (-1: before the first).

        Raises:
            InvalidInput: Not one finite number a canary.
        """
        try:
            values = np.asarray(scores, dtype=np.float64).copy()
        except (TypeError, ValueError, RuntimeError):
            raise InvalidInput(f"The scores after step {step} are not numbers.") from None
        if values.shape != (self.plan.canaries,) or not np.isfinite(values).all():
            raise InvalidInput(
                f"The scores after step {step} have the shape {values.shape}; it takes "
                f"{self.plan.canaries} finite numbers, one a canary.",
                hint="Score every canary, planted or not, in the plan's order.",
            )
        self._scores[int(step)] = values

    def curve(
        self,
        *,
        rng: np.random.Generator,
        success: Success = "tpr",
        fpr: float = 0.1,
        confidence: float = 0.95,
        calibrate: bool = True,
        references: ArrayLike | None = None,
    ) -> OneRunForgetting:
        """Return the curve of what was recorded so far; windows not yet over are left out.

        Args:
            rng, success, fpr, confidence, calibrate: As for ``one_run_forgetting``.
            references: Scores of models that were trained without any canary of the plan, in its
                order: ``(models, canaries)``, or ``(recorded, models, canaries)``.

        Raises:
            NotEnoughEvidence: No window is over yet.
            InvalidInput: As ``one_run_forgetting``.
        """
        plan = self.plan
        return recency_curve(
            scores=self._scores,
            last_seen=plan.last_seen,
            first_seen=plan.first_seen,
            cohorts=plan.cohort_of,
            repeats=plan.repeats_of,
            success=success,
            fpr=fpr,
            confidence=confidence,
            calibrate=calibrate,
            references=references,
            rng=rng,
        )
