"""Are canaries more exposed than controls of the same model, where controls are exposed too?

A translator that copies numbers makes every secret likely that occurs in its source, and a text may
have taught a model which secrets are usual. Controls, never planted, show it: they are then more
exposed than chance allows, and only what canaries have above them can be memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remnant.errors import NotEnoughEvidence
from remnant.measures import stratified_rank_test
from remnant.measures.exposure import is_found
from remnant.studies.wording import counted

Rows = Sequence[Mapping[str, Any]]  # each with the number of its trial and its bits


def above_controls(canaries: Rows, controls: Rows) -> float | None:
    """The p-value of canaries being no more exposed than the controls of their own trials.

    None where no trial has both.
    """
    trials = sorted({row["trial"] for row in canaries})
    try:
        return stratified_rank_test(
            [[row["bits"] for row in canaries if row["trial"] == one] for one in trials],
            [[row["bits"] for row in controls if row["trial"] == one] for one in trials],
        ).p_value
    except NotEnoughEvidence:
        return None


def like_controls(canaries: Rows, controls: Rows, limit: float) -> str:
    """Why canaries at or above a limit need not be remembered; empty where they have to be.

    They need not where controls reach the limit too and canaries are not more exposed than controls
    at 1 %.
    """
    reached = sum(row["bits"] >= limit for row in controls)
    if not reached or is_found(above_controls(canaries, controls)):
        return ""
    return (
        f"so {'is' if reached == 1 else 'are'} {reached} of "
        f"{counted(len(controls), 'control')}, never planted, and canaries are not more "
        "exposed than controls, so that this need not be memory: plant more canaries, or measure "
        "more models"
    )


def not_all_memory(mean: float) -> str:
    """What exposed controls say of canaries that are more exposed still."""
    return (
        f"the controls, never planted, have {mean:.1f} bits on average, more than chance, so that "
        "not all of it is memory"
    )
