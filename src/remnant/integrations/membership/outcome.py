"""What an audit with two sets of records returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.records.outcomes import EXIT_CODES
from remnant.records.typed import Absent
from remnant.studies.membership.measure import shares_above
from remnant.studies.membership.result import Attacks, MembershipResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Gate

Floats = NDArray[np.float64]
FINDING = "FINDING"


class Rate(float):
    """A number with its 95 % interval; it can be used as a number.

    Attributes:
        value: The number.
        low, high: Ends of the interval.

    Example:
        >>> rate = Rate(0.6, 0.5, 0.7)
        >>> rate > 0.55, rate.low, rate.value
        (True, 0.5, 0.6)
    """

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> Rate:
        """Return the number with its interval."""
        rate = super().__new__(cls, value)
        rate.low, rate.high = low, high
        return rate

    @classmethod
    def of(cls, estimate: Estimate) -> Rate:
        """The same from an estimate of a result."""
        return cls(*estimate)

    @property
    def value(self) -> float:
        """The number without its interval."""
        return float(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MembershipAudit:
    """How an audit with two sets of records ended.

    Attributes:
        result: All numbers, the verdict and its claim.
        places: Of the scored records of each side, seen and unseen, counted from 1.
        counts: Records that were given on each side.
        scores: Of each side, by attack; higher = more likely seen.
        verbatim: Whether a part of each scored seen record comes out verbatim; or None.
    """

    result: MembershipResult
    places: tuple[NDArray[np.int64], NDArray[np.int64]]
    counts: tuple[int, int]
    scores: tuple[Mapping[str, Floats], Mapping[str, Floats]]
    verbatim: NDArray[np.bool_] | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.outcome}: {self.sentence})"

    def _repr_html_(self) -> str:
        return self.result._repr_html_()

    @property
    def outcome(self) -> str:
        """``PASS``, ``FAIL`` or ``INCONCLUSIVE``; ``FINDING`` where no limit was set."""
        verdict = self.result.verdict
        return verdict.outcome if isinstance(verdict, Gate) else FINDING

    @property
    def sentence(self) -> str:
        """What was measured, and why that is the outcome."""
        verdict = self.result.verdict
        return verdict.reason if isinstance(verdict, Absent) else verdict.sentence

    @property
    def claim(self) -> str:
        """The strongest statement that the evidence supports; empty for a finding."""
        verdict = self.result.verdict
        return (verdict.claim or "") if isinstance(verdict, Gate) else ""

    @property
    def exit_code(self) -> int:
        """0 for PASS and for a finding, 1 for FAIL, 3 for INCONCLUSIVE."""
        return EXIT_CODES.get(self.outcome, 0)

    @property
    def attack(self) -> str:
        """The attack that was named before the run."""
        return self._attacks.named.name

    @property
    def auc(self) -> Rate:
        """AUC of the named attack, with its interval."""
        return Rate.of(self._attacks.named.auc)

    @property
    def blind_auc(self) -> Rate:
        """AUC of the classifier that sees only the records, with its interval."""
        blind = self.result.blind
        if isinstance(blind, Absent):
            raise ValueError(f"the blind baseline was not measured: {blind.reason}")
        return Rate.of(blind.auc)

    @property
    def risks(self) -> np.ma.MaskedArray:
        """One number a seen record, in the order given: the named attack's score.

        Higher = more likely to have been trained on. Records that were left out are masked.
        """
        return self._spread(self.scores[0][self.attack])

    @property
    def shares_above(self) -> np.ma.MaskedArray:
        """One number a seen record: the share of unseen records that score as high or higher."""
        return self._spread(shares_above(self.scores[0][self.attack], self.scores[1][self.attack]))

    @property
    def _attacks(self) -> Attacks:
        attacks = self.result.attacks
        if isinstance(attacks, Absent):
            raise ValueError(f"no attack was measured: {attacks.reason}")
        return attacks

    def _spread(self, values: Floats) -> np.ma.MaskedArray:
        # Lines of a file are counted with the blank ones.
        size = max(self.counts[0], int(self.places[0].max(initial=0)))
        whole = np.full(size, np.nan)
        whole[self.places[0] - 1] = values
        return np.ma.MaskedArray(whole, mask=np.isnan(whole))
