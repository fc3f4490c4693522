"""From when on is an example safe, and which of the last ones are not?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.forgetting.attackers import OtherBounds, in_doubt, not_judged
from remnant.measures.forgetting.control import Control
from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.measures.statistics.checks import check_gate_confidence, check_limit

Floats = NDArray[np.float64]
_ONE_TRAINING = "This is about one training, which does not show how trainings differ."


@dataclass(frozen=True, slots=True)
class SafeAfter:
    """The claim "from this lag on, success is at or under the limit".

    Attributes:
        lag: The smallest lag that holds; None where not even the last one does, or where the
            attack never found the canaries.
        reason: What was shown, what stopped the test, and what rare behaviour of trainings it
            cannot exclude.
        limit: The largest success allowed.
        confidence: That the claim is true of every lag from ``lag`` on that was measured.
        tested: How many lags were tested, the one that failed included.
    """

    lag: float | None
    reason: str
    limit: float
    confidence: float
    tested: int


def safe_after(
    *,
    lags: Floats,
    upper: Callable[[float], Floats],
    others: Mapping[str, OtherBounds] | None = None,
    limit: float,
    chance: float,
    success: str,
    confidence: float,
    most: float = 1.0,
    control: Control | None,
    doubts: Sequence[str] = (),
    reversed_at: NDArray[np.bool_] | None = None,
    void: str = "",
    per_trial: Floats | None = None,
) -> SafeAfter:
    """Test the lags from the last backward until one fails.

    Args:
        lags: Strictly increasing; those before planting are not tested.
        upper: Gives the one-sided upper bound of success at each lag, for a confidence.
        others: The bounds of other attackers, by name, of the same confidence: the largest at each
            lag is held against ``limit``. Without a control their doubts are not read.
        limit: The largest success allowed, above ``chance``.
        chance: What an attack without knowledge reaches.
        success: Its name, for the sentence.
        confidence: Of the claim, from 0.8 up to 1.
        most: What no value can pass.
        control: Whether the attack found the canaries; None asks for no control and takes the
            bounds as they are.
        doubts: Why the bound of each lag proves nothing; empty where it may.
        reversed_at: Lags at which the reversed attack succeeds; those whose upper bound is under
            chance, if not given.
        void: Why the limit proves nothing at any lag, such as one that no attack can pass.
        per_trial: Success of each training behind the curve, shape ``(lags, trials)``: the reason
            says what so many trainings cannot exclude.

    Raises:
        InvalidInput: As in ``ForgettingCurve.safe_after``.
    """
    check_claim(lags, limit=limit, chance=chance, success=success, confidence=confidence, most=most)
    if void:
        return SafeAfter(None, f"{void[0].upper()}{void[1:]}.", limit, confidence, 0)
    bounds = upper(float(confidence))
    known = dict(others or {})
    judged = {name: other for name, other in known.items() if control is None or not other.blind}
    largest = reduce(np.maximum, [bounds, *(other.upper for other in judged.values())])
    found = [""] * lags.size
    if control is not None:
        turned = bounds < chance if reversed_at is None else reversed_at
        reverse = f"{success} is below chance: the reversed attack succeeds"
        found = [reverse * bool(below) for below in turned]
        beside = [
            [
                in_doubt(success, name, high, doubt) * bool(doubt)
                for high, doubt in zip(other.upper.tolist(), other.doubts, strict=True)
            ]
            for name, other in judged.items()
        ]
        reasons = zip_longest(doubts, found, *beside, fillvalue="")
        found = [next(filter(None, row), "") for row in reasons]
    claim = _backward(
        lags, bounds, largest, np.array(found, dtype=object), limit, confidence, success
    )
    if control is not None and not control.found and claim.lag is not None:
        return replace(claim, lag=None, reason=control.reason)
    if claim.lag is not None:
        left_out = not_judged([name for name in known if name not in judged])
        claim = replace(claim, reason=f"{claim.reason}{left_out}")
    if per_trial is None or claim.lag is None:
        return claim
    if per_trial.shape[1] == 1:
        return replace(claim, reason=f"{claim.reason} {_ONE_TRAINING}")
    above = int((per_trial[lags >= claim.lag] > limit).any(axis=0).sum())
    unseen = cannot_exclude(per_trial.shape[1], above=above)
    return replace(claim, reason=f"{claim.reason} {unseen}.")


def check_claim(
    lags: Floats, *, limit: float, chance: float, success: str, confidence: float, most: float = 1.0
) -> None:
    """Refuse a claim that nothing could show.

    Raises:
        InvalidInput: ``limit`` is at or under chance or not under ``most``, ``confidence`` is not
            from 0.8 up to 1, or all lags lie before planting.
    """
    faults: list[str] = []
    check_gate_confidence("confidence", confidence, faults)
    require(faults, hint="Pass a share, such as confidence=0.95.")
    check_limit(limit, chance=chance, success=success, most=most)
    if lags[-1] < 0:
        raise InvalidInput(f"the last lag, {lags[-1]:g}, lies before planting.")


def _backward(
    lags: Floats,
    named: Floats,
    bounds: Floats,
    doubts: NDArray[np.object_],
    limit: float,
    confidence: float,
    success: str,
) -> SafeAfter:
    after = np.flatnonzero(lags >= 0)
    fails = after[(bounds[after] > limit) | (doubts[after] != "")]
    name = success.upper() if success in ("auc", "tpr") else success
    level = f"one-sided {100.0 * confidence:.4g}% upper bound of {name}"
    if fails.size == 0:
        first = int(after[0])
        reason = f"At every lag from {lags[first]:g} on the {level} is at or under {limit:g}."
        return SafeAfter(float(lags[first]), reason, limit, confidence, after.size)
    stop = int(fails[-1])
    by = "" if named[stop] == bounds[stop] else " for another attacker of this run"
    stopped = f"at lag {lags[stop]:g} the {level} is {bounds[stop]:.3f}{by}, above {limit:g}"
    if doubts[stop]:
        stopped = f"at lag {lags[stop]:g} {doubts[stop]}"
    tested = after.size - int(np.flatnonzero(after == stop)[0])
    if stop == after[-1]:
        reason = f"Not even the last lag holds: {stopped}."
        return SafeAfter(None, reason, limit, confidence, tested)
    reason = f"From lag {lags[stop + 1]:g} on every bound is at or under {limit:g}; {stopped}."
    return SafeAfter(float(lags[stop + 1]), reason, limit, confidence, tested)


@dataclass(frozen=True, slots=True)
class ProtectLast:
    """The most recent examples, which cannot be called safe.

    Attributes:
        steps: Examples used in the last so many steps are exposed; None where no lag holds, so that
            every example that was ever used has to be counted as exposed.
        examples: ``steps`` times the batch, at most so many examples; None likewise.
        reason: In a sentence, what this rests on.
        limit: The success that may not be passed.
        confidence: Of the claim behind it.
    """

    steps: int | None
    examples: int | None
    reason: str
    limit: float
    confidence: float


def protect_last(found: SafeAfter, *, batch: int) -> ProtectLast:
    """Turn "safe from this lag on" into "protect the last examples".

    An example used in the last update has a lag of 0, so those of the last k updates have lags
    under k. What is safe from lag k on leaves exactly these.

    Args:
        found: Where it is safe.
        batch: Examples a step.

    Guarantees:
        * Every example that is left out was last used ``found.lag`` steps ago or more.

    Raises:
        InvalidInput: ``batch`` is not a whole number from 1.

    Example:
        >>> found = SafeAfter(lag=200.0, reason="", limit=0.6, confidence=0.95, tested=3)
        >>> kept = protect_last(found, batch=64)
        >>> kept.steps, kept.examples
        (200, 12800)
    """
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise InvalidInput(
            f"batch={batch!r} is not a whole number from 1.", hint="Pass the examples of one step."
        )
    if found.lag is None:
        reason = (
            f"No measured lag is shown to be within {found.limit:g}, so every example that was "
            f"ever used counts as exposed. {found.reason}"
        )
        return ProtectLast(None, None, reason, found.limit, found.confidence)
    steps = math.ceil(found.lag)
    if steps == 0:
        reason = f"Success is shown to be within {found.limit:g} at every lag measured, 0 included."
        return ProtectLast(0, 0, reason, found.limit, found.confidence)
    reason = (
        f"Success is shown to be within {found.limit:g} at every lag measured from {found.lag:g} "
        f"on; what was used in the last {steps} steps ({steps} x {batch} examples) is not shown to "
        "be."
    )
    return ProtectLast(steps, steps * int(batch), reason, found.limit, found.confidence)
