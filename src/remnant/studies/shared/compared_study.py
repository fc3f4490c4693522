"""Studies of twins whose variants are trained and drawn beside them."""

from __future__ import annotations

from typing import Any

from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures import unseen_needed
from remnant.plans import InjectPlan, PoisonPlan
from remnant.studies.shared.study import SectionedStudy
from remnant.studies.shared.variants import Variant, difference


class ComparedStudy(SectionedStudy):
    """A study of twins that may have variants.

    Attributes:
        plan: INJECT or POISON.
        attack: How success is measured, with ``lags`` and ``confidence``.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: The variants.
    """

    plan: InjectPlan | PoisonPlan
    attack: Any
    label: str
    title: str
    compare: tuple[Variant[Any], ...]

    def lags(self) -> list[int]:
        """Return the lags at which the models are probed."""
        return lag_grid(self.plan.watch_steps, self.attack.lags)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, each variant as what differs from the study."""
        plain = super().to_dict()
        if not self.compare:
            return plain
        variants = [
            {"label": variant.label, **difference(plain, variant.study.to_dict())}
            for variant in self.compare
        ]
        return {**plain, "label": self.label, "title": self.title, "compare": variants}


def check_threshold(name: str, count: int, fpr: float, *, more: str) -> None:
    """Refuse too few unseen scores for a threshold.

    Args:
        name: The field of the recipe that says how many there are.
        count: Its value.
        fpr: The false-positive rate of the threshold.
        more: How to get more of them, as the beginning of the hint.

    Raises:
        NotEnoughEvidence: ``count`` is under 1/fpr.
    """
    needed = unseen_needed(fpr)
    if count < needed:
        raise NotEnoughEvidence(
            f"{name}={count} cannot place a threshold at attack.fpr={fpr:g}; it takes at least "
            f"{needed}.",
            hint=f"{more}, or ask for a larger fpr.",
        )


def lag_grid(watch_steps: int, wanted: tuple[int, ...] = ()) -> list[int]:
    """Return the lags to measure: those asked for, or a grid from 0 to the last step.

    The grid is 1-2-5 at the near end, where decay is fast, and eighths of the whole beyond.

    Example:
        >>> lag_grid(80)
        [0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80]
    """
    if wanted:
        beyond = [lag for lag in wanted if lag > watch_steps]
        if beyond:
            raise PlanError(
                f"attack.lags={beyond} are beyond watch_steps={watch_steps}.",
                hint="Raise the plan's watch_steps or drop these lags.",
            )
        return sorted(set(wanted))
    grid = {0, watch_steps}
    scale = 1
    while scale <= watch_steps:
        grid |= {scale * unit for unit in (1, 2, 5) if scale * unit <= watch_steps}
        scale *= 10
    last = max(1, watch_steps // 8)
    return sorted(grid | set(range(last, watch_steps, last)))
