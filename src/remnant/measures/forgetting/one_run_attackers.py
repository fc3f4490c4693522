r"""Who attacks one run: what is taken from an example's score says what the attacker has.

An example that every model finds easy scores high whether it was used or not.

=====================  ====================================================================
score                  the attacker has
=====================  ====================================================================
x                      the model alone
x - x before planting  two checkpoints of the run
(x - m) / s            reference models of his own, trained the same way without the examples
=====================  ====================================================================

m and s are mean and standard deviation of the same example's score in the reference models. With
fewer than four of them s is not known well enough, and x - m is the score. Which attacker is
strongest depends on the run: two checkpoints are weak where scores drift for long, the model alone
where examples differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.measures.forgetting.attackers import BLIND
from remnant.measures.forgetting.instance_scores import FEW_REFERENCES, against_references
from remnant.measures.forgetting.verdict import REVERSED
from remnant.measures.membership.saw_them import reference_fault, suspected
from remnant.measures.statistics.checks import read_floats
from remnant.measures.statistics.evidence_faults import alike_fault
from remnant.measures.statistics.rank_sum import rank_p_values
from remnant.measures.statistics.resampling import GroupPair
from remnant.measures.statistics.trial_interval import Measured

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_REVERSED = 0.975  # confidence that an attacker beside the named one is below chance
MODEL_ALONE = "an attacker with the model alone"
TWO_CHECKPOINTS = "an attacker with two checkpoints of this run"


def with_references(models: int) -> str:
    """An attacker with reference models, in words.

    Example:
        >>> with_references(1)
        'an attacker with 1 reference model trained without these examples'
    """
    several = "" if models == 1 else "s"
    return f"an attacker with {models} reference model{several} trained without these examples"


@dataclass(frozen=True, slots=True, eq=False)
class OtherAttacker:
    """An attacker beside the named one, on the canaries planted first, at the last checkpoint.

    Attributes:
        name: In words.
        repeats: How often the canaries of each group were planted, shape ``(groups,)``.
        measured: The success of each group.
    """

    name: str
    repeats: Ints
    measured: tuple[Measured, ...]

    @property
    def success(self) -> Floats:
        """Attack success on each group."""
        return np.concatenate([group.evidence.value[:, 0] for group in self.measured])

    def lower(self, confidence: float) -> Floats:
        """The one-sided lower bound of success on each group."""
        return np.concatenate([group.lower(confidence) for group in self.measured])

    def upper(self, confidence: float) -> Floats:
        """The one-sided upper bound of success on each group."""
        return np.concatenate([group.upper(confidence) for group in self.measured])

    def doubt(self, confidence: float, chance: float) -> str:
        """Why the upper bounds prove nothing; empty where they may.

        Args:
            confidence: Of each bound.
            chance: What an attack without knowledge reaches.
        """
        tied = np.concatenate([group.tied_pairs for group in self.measured])
        if np.all(tied[:, 0] == 1.0):
            return BLIND
        clustered = next((group.doubt for group in self.measured if group.doubt), "")
        below = bool(self.upper(max(confidence, _REVERSED)).min() < chance)
        return alike_fault(tied.max(axis=0), " at the end") or clustered or REVERSED * below


def read_references(given: ArrayLike, scores: Floats, faults: list[str]) -> Floats | None:
    """Scores of reference models as ``(models, checkpoints or 1, examples)``.

    Args:
        given: Shape ``(models, examples)`` or ``(checkpoints, models, examples)``.
        scores: Of the run, ``(checkpoints, examples)``.
        faults: Grows by one sentence part where the array does not fit.
    """
    array = read_floats("references", given, None, faults)
    if array is None:
        return None
    steps, examples = scores.shape
    if array.ndim == 2 and array.shape[1] == examples:
        return array[:, None]
    if array.ndim == 3 and array.shape[::2] == (steps, examples):
        return np.moveaxis(array, 1, 0)
    faults.append(
        f"references has the shape {array.shape}, not (models, {examples}) or "
        f"({steps}, models, {examples})"
    )
    return None


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceScores:
    """Scores against those of reference models.

    Attributes:
        scores: Shape ``(checkpoints, examples)``.
        models: How many different ones there are at the last checkpoint.
    """

    scores: Floats
    models: int


def reference_scores(scores: Floats, references: Floats) -> ReferenceScores:
    """Compare the scores of a run with those of reference models.

    Args:
        scores: Shape ``(checkpoints, examples)``, higher = more likely seen.
        references: As ``read_references`` returns them. Models with equal scores count once.

    Example:
        >>> reference_scores(np.array([[3.0, 4.0]]), np.array([[[0.0, 1.0]], [[2.0, 3.0]]])).scores
        array([[2., 2.]])
    """
    models = len(np.unique(references[:, -1], axis=0))
    less = against_references(scores, references, deviation=models >= FEW_REFERENCES)
    return ReferenceScores(less, models)


@dataclass(frozen=True, slots=True)
class ReferenceFault:
    """Why reference models cannot be used.

    Attributes:
        reason: As the end of a sentence; empty where they can be used.
        of_controls: Whether they score controls too high, which looks like memory of the canaries,
            so that there is no FAIL either. Otherwise they score planted canaries too high, which
            hides what the run remembers.
    """

    reason: str = ""
    of_controls: bool = False


def check_references(
    references: Floats,
    *,
    planted: Ints,
    controls: Ints,
    before: Floats | None,
    groups: GroupPair,
) -> ReferenceFault:
    """Test whether reference models saw the canaries, or the controls.

    Which canaries were planted was drawn at random, so a model that saw none of the examples scores
    both alike. Each model is compared with the mean of the others; the mean of all is tested by
    itself, and less the scores of the run before planting.

    Args:
        references: As ``read_references`` returns them.
        planted, controls: Which examples were planted, and which never were.
        before: Scores of the run before any of them was planted; None where there are none.
        groups: The clusters of both sides.

    Guarantees:
        * Models that saw none of the examples have a fault with a probability of at most 5 %.
    """
    each = references.mean(axis=1)
    mean = each.mean(axis=0)
    rows = [mean, *([] if before is None else [mean - before])]
    if len(each) > 1:
        rows += [own - (len(each) * mean - own) / (len(each) - 1) for own in each]
    table = np.stack(rows)
    sides = table[:, planted], table[:, controls]
    higher = rank_p_values(*sides, groups)
    lower = rank_p_values(*sides[::-1], groups[::-1])
    of_controls = bool(lower.min() < higher.min())
    reason = reference_fault(
        suspected([*higher.tolist(), *lower.tolist()]),
        what="controls" if of_controls else "planted canaries",
        score="score higher",
    )
    return ReferenceFault(reason, of_controls and bool(reason))
