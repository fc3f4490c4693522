"""Epsilon of a training, measured from canaries that coins included, beside the claimed one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import require
from remnant.measures import one_run_epsilon, one_run_from_scores
from remnant.measures.epsilon.one_run import rejects
from remnant.measures.forgetting.one_run_attackers import MODEL_ALONE, TWO_CHECKPOINTS
from remnant.records.outcomes import finding_row, gate_row
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.shared.result_parts import Finding, Gate
from remnant.studies.training_audit.result import MeasuredEpsilon, TrainingAuditResult

CONFIDENCE = 0.95
_SHARES = (1.0, 0.5, 0.2)  # of the canaries that are guessed, fixed before the training
_MOST_CANARIES = 20_000
_STREAM = 8  # of random numbers, beside those of the audit
_PROVES_NOTHING = "An attack that does not exceed a claim is no evidence that the claim is right."


def check_claim(*, claimed_epsilon: float | None, delta: float | None, coins: bool) -> None:
    """Refuse a claim that cannot be tested.

    Raises:
        InvalidInput: There are no coins, δ is missing, or a number is out of range.
    """
    faults = []
    if claimed_epsilon is not None:
        faults += ["claimed_epsilon= needs delta="] * (delta is None)
        if not _is_number(claimed_epsilon) or not 0 < claimed_epsilon < float("inf"):
            faults.append(f"claimed_epsilon={claimed_epsilon!r} is not a finite number above 0")
    if delta is not None:
        faults += ["delta= needs Audit(coins=True)"] * (not coins)
        if not _is_number(delta) or not 0 <= delta < 1:
            faults.append(f"delta={delta!r} is not at least 0 and under 1")
    require(faults)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def measured_epsilon(
    seen_scores: ArrayLike,
    unseen_scores: ArrayLike,
    *,
    claimed: float | None,
    delta: float,
    seed: int,
    attacker: str | None = None,
) -> MeasuredEpsilon:
    """Bound ε of one training from below, by guesses which canaries were in it.

    All, half and a fifth of the canaries are guessed, half of them from each end of the scores, and
    the bound is corrected for the three tries; see ``one_run_from_scores``.

    Args:
        seen_scores: Of canaries whose coin put them into the training; higher = more likely seen.
        unseen_scores: Of the others.
        claimed: The ε that the training claims at ``delta``.
        delta: The δ of the claim.
        seed: Draws the order in which equal scores are guessed.
        attacker: Whose scores they are, in words.

    Guarantees:
        * Exceeds the true ε in at most 5 % of audits.
        * Scores that are all equal give 0.
    """
    seen, unseen = np.asarray(seen_scores), np.asarray(unseen_scores)
    scores = np.concatenate([seen, unseen])
    included = np.repeat([True, False], [len(seen), len(unseen)])
    bound = one_run_from_scores(
        scores,
        included,
        guesses=_guesses(len(scores)),
        delta=delta,
        confidence=CONFIDENCE,
        seed=[seed, _STREAM],
    )
    largest = largest_bound(len(scores), delta=delta)
    enough = claimed is None or largest > claimed
    return MeasuredEpsilon(
        value=bound.value,
        claimed=None if claimed is None else float(claimed),
        delta=float(delta),
        confidence=CONFIDENCE,
        largest=largest,
        guesses=bound.guesses,
        correct=bound.correct,
        canaries=bound.canaries,
        included=len(seen),
        attacker=attacker,
        needed=None if enough or claimed is None else canaries_to_exceed(claimed, delta=delta),
    )


def _guesses(canaries: int) -> tuple[int, ...]:
    numbers = (2 * int(share * canaries / 2) for share in _SHARES)
    return tuple(dict.fromkeys(max(2, number) for number in numbers))


@cache
def largest_bound(canaries: int, *, delta: float) -> float:
    """Return the bound where every guess is correct: so many canaries cannot show more."""
    numbers = _guesses(canaries)
    level = 1.0 - (1.0 - CONFIDENCE) / len(numbers)
    return max(
        one_run_epsilon(
            guesses=many, correct=many, canaries=canaries, delta=delta, confidence=level
        ).value
        for many in numbers
    )


def canaries_to_exceed(claimed: float, *, delta: float) -> int | None:
    """Return the fewest canaries that can show more than a claimed ε, to 1 %; None above 20 000."""

    def enough(canaries: int) -> bool:
        numbers = _guesses(canaries)
        error = (1.0 - CONFIDENCE) / len(numbers)
        strength = np.array([claimed])
        return any(
            rejects(canaries, many, many, strength, delta=delta, error=error, method="binomial")[0]
            for many in numbers
        )

    low, high = 2, 4
    while not enough(high):
        if high >= _MOST_CANARIES:
            return None
        low, high = high, min(2 * high, _MOST_CANARIES)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def differences(
    scores: dict[int, NDArray[np.float64]], final: int, examples: int
) -> tuple[NDArray[np.float64], str]:
    """Scores of the trained model less those before training, higher = more likely seen.

    Where there are none before training, the scores by themselves; the second is whose scores they
    are, in words.

    Args:
        scores: Costs by step, of examples first.
        final: The step of the trained model.
        examples: How many are canaries or controls.
    """
    trained = -scores[final][:examples]
    if 0 in scores and final:
        return scores[0][:examples] + trained, TWO_CHECKPOINTS
    return trained, MODEL_ALONE


def with_epsilon(result: TrainingAuditResult, epsilon: MeasuredEpsilon) -> TrainingAuditResult:
    """Return a result with a measured ε, and FAIL where it exceeds the claimed one.

    A claim that is not exceeded changes no outcome: the limit's gate, or the finding, says it.
    """
    measured = sentence_of(epsilon)
    verdict = result.verdict
    if epsilon.exceeds:
        before = verdict.sentence if isinstance(verdict, Gate) else ""
        row = gate_row(
            outcome="FAIL",
            sentence=measured + (f" {before}" if before else ""),
            claim=f"{bound_words(epsilon)}.",
            limit=epsilon.claimed,
            detected=True,
        )
        return replace(result, verdict=ExposureGate(**row), epsilon=epsilon)
    if isinstance(verdict, Gate):
        verdict = replace(verdict, sentence=f"{verdict.sentence} {measured}")
    elif isinstance(verdict, Finding):
        row = finding_row(
            headline=_headline(epsilon),
            sentence=f"{measured} {verdict.sentence}",
            advice="Do not report this as evidence of privacy. Plant more canaries, or examples "
            "that are easier to recognise, for a higher bound.",
        )
        verdict = Finding(**row)
    return replace(result, verdict=verdict, epsilon=epsilon)


def bound_words(epsilon: MeasuredEpsilon) -> str:
    """The measured bound in words, rounded down."""
    who = f"; {epsilon.attacker}" if epsilon.attacker else ""
    return (
        f"Measured epsilon is at least {_down(epsilon.value)} at delta = {epsilon.delta:g} "
        f"({epsilon.confidence:.0%} confidence, {epsilon.canaries} canaries, one training{who})"
    )


def sentence_of(epsilon: MeasuredEpsilon) -> str:
    """What was measured, and what that says about the claim."""
    bound = bound_words(epsilon)
    most = f"{epsilon.canaries} canaries could have shown at most {_down(epsilon.largest)}."
    if epsilon.claimed is None:
        return f"{bound}. No epsilon was claimed. {most}"
    if epsilon.exceeds:
        return f"{bound}: above the claimed {epsilon.claimed:.4g}."
    if not epsilon.could_exceed:
        more = f"more than {_MOST_CANARIES}" if epsilon.needed is None else f"{epsilon.needed}"
        most = f"{most[:-1]}, so this audit could not refute the claim; it takes {more} canaries."
    return f"{bound}: not above the claimed {epsilon.claimed:.4g}. {_PROVES_NOTHING} {most}"


def _headline(epsilon: MeasuredEpsilon) -> str:
    claim = "" if epsilon.claimed is None else f", claimed {epsilon.claimed:.4g}"
    return f"Measured epsilon at least {_down(epsilon.value)}{claim}"


def _down(value: float) -> str:
    return f"{np.floor(value * 100) / 100:.2f}"
