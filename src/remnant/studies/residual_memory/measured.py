"""Residual memory from scores: attack success after disturbances, canaries that come back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import (
    ForgettingCurve,
    HiddenTest,
    Success,
    forgetting_curve,
    hidden_test,
    returning,
)
from remnant.records.typed import Absent
from remnant.studies.residual_memory.result import Disturbance, Kind, ResidualMemory, Returning
from remnant.studies.residual_memory.settings import HiddenSettings

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]
P = ParamSpec("P")
R = TypeVar("R")
NOT_ASKED = "the recipe has no [hidden] section: no weight noise, no relearning"
_SEED = 6  # beside canaries (1), curves (2) and the disturbances' own (3 to 5)
_SHARED = (
    *("before", "before_low", "before_high", "pvalue_before", "success", "fpr", "chance"),
    *("confidence", "trials", "method"),
)
_COLUMNS = ("after", "after_low", "after_high", "rise", "rise_low", "rise_high")


def or_absent(measured: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | Absent:
    """Return the measurement, or why there is too little evidence for it."""
    try:
        return measured(*args, **kwargs)
    except NotEnoughEvidence as fault:
        return Absent(str(fault))


def hidden_scope(
    settings: HiddenSettings | None, *, scanned: bool = True
) -> tuple[list[str], list[str]]:
    """Return which of the three searches were run, and which were not, as lines of the scope.

    Args:
        settings: The recipe's ``[hidden]``; None without one.
        scanned: Whether later checkpoints were scanned.
    """
    named = {
        "weight noise": settings is not None and bool(settings.noise),
        "relearning on similar examples": settings is not None and bool(settings.relearn_steps),
        "scan of all later checkpoints": scanned,
    }
    scan = "scan of all later checkpoints"
    done = [name for name, ran in named.items() if ran and name != scan]
    missing = [name for name, ran in named.items() if not ran]
    tested = [*done, f"a {scan}"] if scanned else done
    other = "stronger or other disturbances" if done else "disturbances of any kind"
    not_tested = [
        "that what is not found is gone: "
        + (f"no {' and no '.join(missing)} was run, and " if missing else "")
        + f"{other} may still bring it to light"
    ]
    said = "whether what the attack no longer finds is gone or only hidden, by: "
    return [said + ", ".join(tested)] if tested else [], not_tested


def disturbances_of(settings: HiddenSettings) -> list[tuple[Kind, float, str]]:
    """Return what was done, in the order of the arrays: a kind, a number and words.

    Example:
        >>> settings = HiddenSettings(noise=(0.1,), draws=5, relearn_steps=(1, 20), neighbours=64)
        >>> [label for _, _, label in disturbances_of(settings)][::2]
        ['weight noise, 0.1 of each tensor’s spread', '20 steps on neighbours']
    """
    rows: list[tuple[Kind, float, str]] = [
        ("noise", scale, f"weight noise, {scale:g} of each tensor’s spread")
        for scale in settings.noise
    ]
    for steps in settings.relearn_steps:
        many = "1 step" if steps == 1 else f"{steps} steps"
        rows.append(("relearn", steps, f"{many} on neighbours"))
    return rows


def residual_memory(
    settings: HiddenSettings,
    *,
    planted: Sides,
    unplanted: Sides | None,
    success: Success,
    fpr: float,
    confidence: float,
    seed: int,
    lag: float,
    columns: Sequence[dict[str, Any]],
    groups: Any = None,
    **before: Any,
) -> ResidualMemory:
    """Attack the disturbed models.

    Args:
        settings: The disturbances.
        planted: Scores of seen and of unseen examples, ``(slots, trials, n)`` each: slot 0 are the
            undisturbed models, then one slot a disturbance.
        unplanted: The same where the "seen" examples were not seen (A/A twins); None without them.
        success, fpr, confidence: Of the attack.
        seed: Of the plan.
        lag: At which the models were disturbed.
        columns: What else is stored of each disturbance, by the names of ``Disturbance``.
        groups: Which example each score belongs to, as ``forgetting_curve`` takes it.
        before: What else is stored of the undisturbed models, by the names of ``ResidualMemory``.

    Raises:
        NotEnoughEvidence: There are too few trials or unseen examples.
    """
    attacked: dict[str, Any] = {"success": success, "fpr": fpr, "confidence": confidence}
    attacked["groups"] = groups
    seen, unseen = planted
    tested = hidden_test(
        seen_before=seen[0],
        unseen_before=unseen[0],
        seen_after=seen[1:],
        unseen_after=unseen[1:],
        rng=np.random.default_rng([seed, _SEED]),
        **attacked,
    )
    control = None
    if unplanted is not None:
        control = forgetting_curve(
            seen_scores=unplanted[0],
            unseen_scores=unplanted[1],
            lags=np.arange(len(unplanted[0])),
            rng=np.random.default_rng([seed, _SEED, 1]),
            **attacked,
        )
    return ResidualMemory(
        **{name: getattr(tested, name) for name in _SHARED},
        lag=lag,
        draws=settings.draws,
        neighbours=settings.neighbours,
        disturbances=_rows(settings, tested, control, columns),
        **before,
    )


def _rows(
    settings: HiddenSettings,
    tested: HiddenTest,
    control: ForgettingCurve | None,
    columns: Sequence[dict[str, Any]],
) -> tuple[Disturbance, ...]:
    """One row a disturbance; slot 0 of the control's curve is the undisturbed models."""
    rows = []
    for place, (kind, amount, label) in enumerate(disturbances_of(settings)):
        own: dict[str, Any] = {name: float(getattr(tested, name)[place]) for name in _COLUMNS}
        if control is not None:
            ends = {"aa": control.value, "aa_low": control.low, "aa_high": control.high}
            own |= {name: float(column[place + 1]) for name, column in ends.items()}
        rows.append(
            Disturbance(
                kind=kind,
                amount=amount,
                label=label,
                **own,
                pvalue_after=float(tested.pvalues_after[place]),
                pvalue_rise=float(tested.pvalues_rise[place]),
                reading=tested.readings[place],
                **columns[place],
            )
        )
    return tuple(rows)


def scan(
    *,
    seen: Floats,
    null: Floats,
    unseen: Floats,
    fpr: float,
    confidence: float,
    reference: str,
) -> Returning:
    """Look for canaries that are lost at some checkpoints and found at a later one.

    Args:
        seen, null, unseen: As ``returning`` takes them.
        fpr, confidence: Of the attack.
        reference: Whose scores ``null`` are.

    Raises:
        NotEnoughEvidence: There are too few checkpoints or unseen examples.
    """
    scanned = returning(
        seen_scores=seen,
        null_scores=null,
        unseen_scores=unseen,
        fpr=fpr,
        confidence=confidence,
    )
    numbers = dataclasses.asdict(scanned)
    del numbers["who"]
    return Returning(**numbers, checkpoints=len(seen), reference=reference)
