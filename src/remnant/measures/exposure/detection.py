"""Attack success on planted examples that come from no template, against held-out controls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.exposure.by_rank import Exposure, exposure
from remnant.measures.forgetting.one_run import OneRunForgetting, one_run_forgetting
from remnant.measures.forgetting.one_run_attackers import read_references, reference_scores
from remnant.measures.statistics.checks import Success, read_floats, unseen_needed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """How well an attack distinguishes planted examples from controls, in one model.

    Arrays have one entry for each number of repeats, in increasing order.

    Attributes:
        repeats: How often the examples of the level were planted.
        n: How many examples the level has.
        auc, auc_low, auc_high: The share of pairs of a planted example and a control in which the
            planted one has the higher score, with its interval.
        tpr, tpr_low, tpr_high: The share of planted examples flagged at a false-positive rate of
            ``fpr``, with its interval.
        p_values: One-sided rank-sum tests against the controls, corrected for their number.
        ranks: The rank of each planted example among the controls, in bits.
        fpr: The false-positive rate of ``tpr``.
        n_controls: How many controls there are.
        calibrated: Whether each score before training was subtracted.
        attacker: Whose success it is, in words.
        references: Reference models that scores are compared with; 0 for none.
        confidence: Of each interval, for its level alone.
        method: The intervals' construction, in words.
        evidence: What bounds of another confidence are made of.
    """

    repeats: Ints
    n: Ints
    auc: Floats
    auc_low: Floats
    auc_high: Floats
    tpr: Floats
    tpr_low: Floats
    tpr_high: Floats
    p_values: Floats
    ranks: Exposure
    fpr: float
    n_controls: int
    calibrated: bool
    attacker: str
    references: int
    confidence: float
    method: str
    evidence: OneRunForgetting

    def upper(self, confidence: float) -> Floats:
        """The one-sided upper bound of the AUC of each level."""
        return self.evidence.evidence.upper(confidence)

    def lower(self, confidence: float) -> Floats:
        """The one-sided lower bound of the AUC of each level."""
        return self.evidence.evidence.lower(confidence)


def detection(
    *,
    scores: ArrayLike,
    control_scores: ArrayLike,
    repeats: ArrayLike,
    before: ArrayLike | None = None,
    control_before: ArrayLike | None = None,
    references: ArrayLike | None = None,
    fpr: float = 0.1,
    confidence: float = 0.95,
    rng: np.random.Generator,
    draws: int = 400,
) -> Detection:
    """Compare the scores of planted examples with those of controls drawn the same way.

    The controls must be exchangeable with the planted examples: both drawn at random from one
    source. Then a model that learnt nothing gives an AUC of 0.5 on average, whatever the law of the
    scores. The intervals are over examples: one training says nothing of how trainings differ.

    Args:
        scores: One number a planted example, higher = more likely seen.
        control_scores: One number a control.
        repeats: How often each planted example was planted.
        before: Scores of the planted examples before training, which are subtracted.
        control_before: The same for the controls.
        references: The same scores in models that saw none of the examples, shape ``(models,
            examples)``, of planted examples and then of controls. Scores are then compared with
            these, and those before training serve another attacker.
        fpr: The false-positive rate of the TPR.
        confidence: Of each interval.
        rng: Draws the resamples behind the intervals.
        draws: How many resamples.

    Guarantees:
        * Scores that are all alike give an AUC of 0.5 and expose nothing.
        * Adding a constant to all scores changes nothing; neither does the order of the examples
          within a level, but for the random draws behind the intervals.

    Raises:
        InvalidInput: Faults in arrays or settings, all listed at once.
        NotEnoughEvidence: There are fewer than 1/fpr controls.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> out = detection(scores=rng.normal(3, 1, 40), control_scores=rng.normal(0, 1, 60),
        ...                 repeats=np.repeat([1, 4], 20), rng=rng)
        >>> out.repeats.tolist(), bool(out.auc.min() > 0.9), round(out.ranks.ceiling, 1)
        ([1, 4], True, 5.9)
    """
    faults: list[str] = []
    seen = read_floats("scores", scores, 1, faults)
    unseen = read_floats("control_scores", control_scores, 1, faults)
    often = read_floats("repeats", repeats, 1, faults)
    if (before is None) != (control_before is None):
        faults.append("only one of before and control_before was given")
    earlier = None if before is None else read_floats("before", before, 1, faults)
    earlier_controls = (
        None if control_before is None else read_floats("control_before", control_before, 1, faults)
    )
    require(faults)
    if seen is None or unseen is None or often is None:
        raise InvalidInput("scores, control_scores and repeats must be arrays of numbers.")
    pairs = (("repeats", often, seen), ("before", earlier, seen))
    for name, array, beside in (*pairs, ("control_before", earlier_controls, unseen)):
        if array is not None and array.size != beside.size:
            faults.append(f"{name} has {array.size} entries for {beside.size} scores")
    require(faults)
    needed = unseen_needed(fpr) if 0.0 < fpr < 1.0 else 1
    if unseen.size < needed:
        raise NotEnoughEvidence(
            f"There are {unseen.size} controls; a threshold at FPR {fpr:g} takes at least {needed}."
        )
    both = np.concatenate([seen, unseen])
    table, steps = both[None], [1]
    if earlier is not None and earlier_controls is not None:
        table, steps = np.stack([np.concatenate([earlier, earlier_controls]), both]), [0, 1]
    planted = np.arange(both.size) < seen.size

    def measured(success: Success) -> OneRunForgetting:
        return one_run_forgetting(
            scores=table,
            checkpoints=steps,
            last_seen=np.where(planted, 1, -1),
            first_seen=np.where(planted, 1, -1),
            cohorts=np.where(planted, 0, -1),
            repeats=np.concatenate([often, np.zeros(unseen.size)]),
            success=success,
            fpr=fpr,
            confidence=confidence,
            calibrate=len(steps) > 1,
            rng=rng,
            draws=draws,
            references=references,
        )

    area, rate = measured("auc"), measured("tpr")
    final = table[-1] - table[0] if len(steps) > 1 else both
    if references is not None:
        read = read_references(references, table, faults)
        final = both if read is None else reference_scores(both[None], read[:, -1:]).scores[0]
    tests = area.evidence.rank_p_values
    smallest = np.nanmin(tests, axis=0) * int(np.isfinite(tests).sum())
    return Detection(
        repeats=area.repeats,
        n=area.n_seen,
        auc=area.success,
        auc_low=area.low,
        auc_high=area.high,
        tpr=rate.success,
        tpr_low=rate.low,
        tpr_high=rate.high,
        p_values=np.minimum(smallest, 1.0),
        ranks=exposure(
            canary_losses=-final[: seen.size],
            reference_losses=-final[seen.size :],
            confidence=confidence,
        ),
        fpr=float(fpr),
        n_controls=int(unseen.size),
        calibrated=area.calibrated,
        attacker=area.attacker,
        references=area.references,
        confidence=float(confidence),
        method=area.method,
        evidence=area,
    )
