"""What a schedule of batches spends, where its batches are ones that the accountant knows."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.errors import require
from remnant.plans import Schedule
from remnant.privacy.accounting import PrivacySpent, privacy_spent


@dataclass(frozen=True, slots=True)
class NotAccounted:
    """Why no epsilon can be stated for a training.

    Attributes:
        reason: A sentence.
    """

    reason: str


def spent_by(
    schedule: Schedule, *, examples: int, noise: float, delta: float, steps: int | None = None
) -> PrivacySpent | NotAccounted:
    """Return what a private training on a schedule's batches spends.

    Args:
        schedule: The batches, such as ``plan.schedule(examples=n)`` of a plan whose sampling is
            ``poisson``.
        examples: How many examples each member's batches are drawn from.
        noise: The noise multiplier.
        delta: The δ at which ε is stated.
        steps: Steps that were really run; all of the schedule's, if not given.

    Returns:
        ε and its accountant; or the reason why none is known: batches that are not Poisson hide an
        example less well, and ε of Poisson batches would be too small for them.

    Raises:
        InvalidInput: Fewer examples than a batch is expected to hold, more steps than the
            schedule has, arguments that ``epsilon_spent`` refuses.

    Example:
        >>> from remnant import ShadowPlan
        >>> plan = ShadowPlan(models=1, steps=1000, batch=10, sampling="poisson")
        >>> schedule = plan.schedule(examples=2000)  # each model sees 1000 of them
        >>> round(spent_by(schedule, examples=1000, noise=1.0, delta=1e-5).epsilon, 3)
        1.828
    """
    faults = []
    if examples < schedule.expected_batch:
        faults.append(f"examples={examples} is less than the {schedule.expected_batch} of a batch")
    taken = schedule.steps if steps is None else steps
    if taken > schedule.steps:
        faults.append(f"steps={taken} is more than the {schedule.steps} of the schedule")
    require(faults)
    if not schedule.is_poisson:
        return NotAccounted(
            "The batches are not Poisson batches, so the accountant does not apply. Use a plan "
            'with sampling = "poisson".'
        )
    return privacy_spent(
        sampling_rate=schedule.expected_batch / examples, noise=noise, steps=taken, delta=delta
    )
