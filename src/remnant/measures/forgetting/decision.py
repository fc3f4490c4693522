"""From a forgetting curve to what one decides: from when on, how fast, and what to protect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from remnant.errors import NotEnoughEvidence
from remnant.measures.forgetting.curve import ForgettingCurve
from remnant.measures.forgetting.decay import Decay, Forecast
from remnant.measures.forgetting.safe_after import ProtectLast, SafeAfter, protect_last


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What a curve says about a limit.

    Attributes:
        limit: The success that may not be passed.
        safe: From which lag on it is shown to be kept.
        protect: The last examples, for which it is not.
        decay: The fitted law; None where there are too few lags, or where it does not describe the
            curve.
        floor: Success after infinitely many steps, as the law has it, with its interval.
        reaches: The lag at which the law comes down to the limit; ``beyond`` marks a forecast.
        no_decay: Why there is no law, or None.
    """

    limit: float
    safe: SafeAfter
    protect: ProtectLast
    decay: Decay | None
    floor: Forecast | None
    reaches: Forecast | None
    no_decay: str | None


def forgetting_decision(
    curve: ForgettingCurve,
    limit: float,
    *,
    batch: int,
    confidence: float = 0.95,
    others: Mapping[str, ForgettingCurve] | None = None,
) -> Decision:
    """Return what a curve says about a limit: safe lag, examples to protect, decay, forecast.

    Where the attack did not find the canaries at any lag (``curve.positive_control``), no lag is
    called safe.

    Args:
        curve: Success against lag.
        limit: The success that may not be passed, above chance.
        batch: Examples a step.
        confidence: Of each claim.
        others: Curves of other attackers on the same models, by name: a lag is safe only where all
            are shown to keep the limit. The decay is that of ``curve``.

    Raises:
        InvalidInput: As in ``ForgettingCurve.safe_after`` and ``protect_last``.

    Example:
        >>> import numpy as np
        >>> from remnant.measures import forgetting_curve
        >>> rng = np.random.default_rng(0)
        >>> lags = np.array([0, 25, 50, 100, 200, 400])
        >>> shift = 3 * np.exp(-lags / 60)[:, None, None]
        >>> curve = forgetting_curve(
        ...     seen_scores=shift + rng.normal(size=(6, 8, 100)),
        ...     unseen_scores=rng.normal(size=(6, 8, 100)), lags=lags, success="auc", rng=rng)
        >>> decision = forgetting_decision(curve, 0.6, batch=64)
        >>> decision.safe.lag, decision.protect.examples, round(decision.reaches.value)
        (200.0, 12800, 137)
    """
    safe = curve.safe_after(limit, confidence, others=others)
    protect = protect_last(safe, batch=batch)
    try:
        decay = curve.decay(confidence=confidence)
        reaches = decay.steps_to(limit)
    except NotEnoughEvidence as fault:
        return Decision(limit, safe, protect, None, None, None, str(fault))
    return Decision(limit, safe, protect, decay, decay.value_at(math.inf), reaches, None)
