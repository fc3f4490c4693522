"""Which samples to protect: a rule made on some training runs that holds on the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln, stdtrit

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.checks import check_share, read_floats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Shares of samples that a list may hold, from everything downwards.
GRID = 200


@dataclass(frozen=True, slots=True, eq=False)
class ProtectRule:
    """Protect the riskiest ``share`` of a run's samples.

    Attributes:
        share: Of the samples, by risk.
        stated: Bound on the share of its memorised samples that a new run's list leaves out, at
            ``confidence``: at most what was asked for. 0 where everything is listed.
        missed: What the lists of the given runs leave out, one share a run.
        miss, confidence: As asked for.
        method: How the bound was made, in words.
    """

    share: float
    stated: float
    missed: Floats
    miss: float
    confidence: float
    method: str

    @property
    def runs(self) -> int:
        """How many runs the rule was made on."""
        return self.missed.size

    def listed(self, risk: ArrayLike) -> Bools:
        """Return which samples of a run are on its list, at most ``share`` of them.

        Samples of the same risk are listed together or not at all.
        """
        faults: list[str] = []
        given = read_floats("risk", risk, 1, faults)
        require(faults)
        if given is None:
            raise InvalidInput("risk must be an array.")
        return _places(given) <= self.share + 1e-12


def protect_rule(
    *,
    risks: Sequence[ArrayLike],
    memorised: Sequence[ArrayLike],
    miss: float = 0.2,
    confidence: float = 0.9,
) -> ProtectRule:
    """The shortest list for which a new run would leave out at most ``miss`` of what it memorises.

    Lists are tried from everything downwards, and the last one that stands is taken. With one run
    the bound is the beta-binomial prediction of another draw of samples: it takes the next run for
    alike. With several it is also Student's prediction bound over runs, of which the spread cannot
    be less than that of counting, and the larger of the two counts.

    Risks are compared by rank within a run, so that runs need not share a scale.

    Args:
        risks: Of each run's training samples, higher = more likely memorised.
        memorised: Which of them were, in the end.
        miss: Largest share of memorised samples that may be left out.
        confidence: With which the next run's list keeps to the stated rate.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: A run that memorised nothing.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> truth = [np.arange(1000) < 100 for _ in range(4)]
        >>> runs = [rng.normal(size=1000) + 2.0 * one for one in truth]
        >>> rule = protect_rule(risks=runs[:3], memorised=truth[:3])
        >>> rule.share, round(rule.stated, 2), int(rule.listed(runs[3]).sum())
        (0.26, 0.2, 260)
        >>> round(1 - float(rule.listed(runs[3])[truth[3]].mean()), 2)
        0.17
    """
    faults: list[str] = []
    check_share("miss", miss, faults)
    check_share("confidence", confidence, faults)
    if len(risks) == 0 or len(risks) != len(memorised):
        faults.append(f"risks of {len(risks)} and memorised of {len(memorised)} runs")
    places = [_memorised_places(*one, faults) for one in zip(risks, memorised, strict=False)]
    require(faults)
    if empty := [run for run, one in enumerate(places) if one is not None and one.size == 0]:
        raise NotEnoughEvidence(
            f"run {empty[0]} memorised none of its samples, so that nothing can be missed.",
            hint="Lower the limit from which a sample counts as memorised.",
        )
    found = [one for one in places if one is not None]
    counts = np.array([one.size for one in found], dtype=np.float64)
    share, stated, missed = 1.0, 0.0, np.zeros(len(found))
    for tried in np.arange(GRID - 1, 0, -1) / GRID:
        left_out = np.array([float(np.sum(one > tried + 1e-12)) for one in found])
        bound = _bound(left_out, counts, float(confidence))
        if bound > miss:
            break
        share, stated, missed = float(tried), bound, left_out / counts
    over = "beta-binomial prediction"
    if len(found) > 1:
        over += f", and Student's over {len(found)} runs: the larger"
    return ProtectRule(share, stated, missed, float(miss), float(confidence), over)


def _bound(missed: Floats, counts: Floats, confidence: float) -> float:
    """What a new run may leave out, as a share of what it memorises."""
    total, out = float(counts.sum()), float(missed.sum())
    if out >= total:
        return 1.0
    new = max(1, round(float(counts.mean())))
    alike = _predicted(new, out + 1.0, total - out, confidence) / new
    if counts.size == 1:
        return alike
    rates = missed / counts
    middle = (out + 1.0) / (total + 2.0)
    counting = middle * (1.0 - middle) * float(np.mean(1.0 / counts))
    spread = max(float(rates.var(ddof=1)), counting)
    reach = float(stdtrit(counts.size - 1, confidence))
    over_runs = float(rates.mean()) + reach * np.sqrt(spread * (1.0 + 1.0 / counts.size))
    return min(1.0, max(alike, float(over_runs)))


def _predicted(n: int, a: float, b: float, confidence: float) -> int:
    """The beta-binomial quantile: how many of ``n`` new ones may be missed."""
    k = np.arange(n + 1)
    choose = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    share = np.exp(choose + betaln(k + a, n - k + b) - betaln(a, b))
    return min(int(np.searchsorted(np.cumsum(share), confidence)), n)


def _places(risk: Floats) -> Floats:
    """The share of samples at or above each risk: small for the riskiest."""
    rising = np.sort(risk)
    return np.asarray((risk.size - np.searchsorted(rising, risk, side="left")) / risk.size)


def _memorised_places(risk: ArrayLike, memorised: ArrayLike, faults: list[str]) -> Floats | None:
    given = read_floats("risks", risk, 1, faults)
    truth = read_floats("memorised", memorised, 1, faults)
    if given is None or truth is None:
        return None
    if given.size != truth.size or np.any((truth != 0.0) & (truth != 1.0)):
        faults.append(f"memorised is not one True or False for each of {given.size} risks")
        return None
    return np.asarray(_places(given)[truth != 0.0])
