"""Are canaries more exposed than controls of the same model, where controls are exposed too?

A translator that copies numbers makes every secret likely that occurs in its source, and a text may
have taught a model which secrets are usual. Controls, never planted, show it: they are then more
exposed than chance allows, and only what canaries have above them can be memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remnant.errors import NotEnoughEvidence
from remnant.measures import stratified_rank_test
from remnant.measures.exposure.by_rank import is_found
from remnant.studies.shared.wording import counted


class Exposed(Protocol):
    """A canary or control with the number of its trial and its exposure in bits."""

    @property
    def trial(self) -> int: ...  # noqa: D102
    @property
    def bits(self) -> float: ...  # noqa: D102


def above_controls(canaries: Sequence[Exposed], controls: Sequence[Exposed]) -> float | None:
    """The p-value of canaries being no more exposed than the controls of their own trials.

    None where no trial has both.
    """
    trials = sorted({canary.trial for canary in canaries})
    try:
        return stratified_rank_test(
            [[canary.bits for canary in canaries if canary.trial == trial] for trial in trials],
            [[control.bits for control in controls if control.trial == trial] for trial in trials],
        ).p_value
    except NotEnoughEvidence:
        return None


def like_controls(canaries: Sequence[Exposed], controls: Sequence[Exposed], limit: float) -> str:
    """Why canaries at or above a limit need not be memorised; empty where they are.

    They need not be where controls reach the limit too and canaries are not more exposed than
    controls at 1 %.
    """
    reached = sum(control.bits >= limit for control in controls)
    if not reached or is_found(above_controls(canaries, controls)):
        return ""
    return (
        f"so {'is' if reached == 1 else 'are'} {reached} of "
        f"{counted(len(controls), 'control')}, never planted, and canaries are not more "
        "exposed than controls, so that this need not be memory: plant more canaries, or measure "
        "more models"
    )


def not_all_memory(mean: float) -> str:
    """The remark on canaries that are more exposed than controls, where controls are exposed."""
    return (
        f"the controls, never planted, have {mean:.1f} bits on average, more than chance, so that "
        "not all of it is memory"
    )
