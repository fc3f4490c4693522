"""An attack's scores in low precision beside those of float64, on a sample of records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_SWAPPED = 0.01


@dataclass(frozen=True, slots=True)
class ComparedScores:
    """How much low precision changes an attack's scores.

    Attributes:
        precision: Such as ``"bfloat16"``.
        attack: Its name.
        records: How many were compared.
        worst: The largest difference of scores.
        spread: Standard deviation of the scores in float64.
        swapped: Share of the pairs of records whose order differs. An AUC differs by no more than
            the share of pairs of a seen and an unseen record that are swapped.
    """

    precision: str
    attack: str
    records: int
    worst: float
    spread: float
    swapped: float

    @property
    def sentence(self) -> str:
        """What was compared, in words."""
        return (
            f"Computed in {self.precision}: on {self.records} records the scores of the attack "
            f"{self.attack!r} differ from float64 by up to {self.worst:.2g} (their standard "
            f"deviation is {self.spread:.2g}), which swaps {self.swapped:.1%} of the pairs."
        )

    @property
    def fault(self) -> str:
        """Why scores are too coarse for a PASS; empty where they are not."""
        if self.swapped <= MOST_SWAPPED:
            return ""
        return (
            f"{self.precision} swaps {self.swapped:.1%} of the pairs of {self.records} records, "
            f"more than {MOST_SWAPPED:.0%}, and an attack in float32 could do better"
        )


def compared_scores(own: Floats, wide: Floats, *, attack: str, precision: str) -> ComparedScores:
    """Compare scores of the same records in low precision and in float64.

    Example:
        >>> low, exact = np.array([0.0, 0.25, 0.25]), np.array([0.01, 0.2, 0.3])
        >>> found = compared_scores(low, exact, attack="loss", precision="bfloat16")
        >>> round(found.swapped, 3), found.fault != ""
        (0.333, True)
    """
    first, second = np.triu_indices(len(own), 1)
    swapped = np.sign(own[first] - own[second]) != np.sign(wide[first] - wide[second])
    return ComparedScores(
        precision=precision,
        attack=attack,
        records=len(own),
        worst=float(np.abs(own - wide).max(initial=0.0)),
        spread=float(wide.std()) if len(wide) else 0.0,
        swapped=float(swapped.mean()) if len(swapped) else 0.0,
    )
