"""Which samples to protect: a rule made on some training runs that holds on the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, gammaln, stdtr, stdtrit

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.measures.statistics.checks import check_share, read_floats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Shares of samples that a list may hold, from everything downwards.
GRID = 200


@dataclass(frozen=True, slots=True, eq=False)
class ProtectRule:
    """Protect the riskiest ``share`` of a run's samples.

    Attributes:
        share: Of the samples, by risk.
        stated: Bound on the share of its memorised samples that the list of a new run, like those
            given, leaves out, at ``confidence``: at most what was asked for. 0 where everything is
            listed. ``not_excluded`` says what so few runs cannot show.
        missed: What the lists of the given runs leave out, one share a run; where samples tie at
            the end of a list, in expectation over which of them are taken.
        memorised: How many samples each of these runs memorised.
        miss, confidence: As asked for.
        method: How the bound was made, in words.
    """

    share: float
    stated: float
    missed: Floats
    memorised: NDArray[np.int64]
    miss: float
    confidence: float
    method: str

    @property
    def runs(self) -> int:
        """How many runs the rule was made on."""
        return self.missed.size

    @property
    def not_excluded(self) -> str:
        """What so few runs leave open, as the end of a sentence; empty where all are listed.

        ``stated`` is for runs like those given. Where predictors fail in some trainings, and in
        none of these, the next list may miss far more.
        """
        return "" if self.share == 1.0 else cannot_exclude(self.runs)

    def listed(self, risk: ArrayLike, *, rng: np.random.Generator | None = None) -> Bools:
        """Return which samples of a run are on its list: ``floor(share * samples)`` of them.

        Of samples of the same risk at the end of the list, as many as there is room for are taken
        at random. Leaving all of them out would break the stated rate.

        Args:
            risk: Of the run's samples.
            rng: Chooses among samples that tie; by default one fixed order for each number of
                samples, so that a list can be made again.
        """
        faults: list[str] = []
        given = read_floats("risk", risk, 1, faults)
        require(faults)
        if given is None:
            raise InvalidInput("risk must be an array.")
        listed = np.zeros(given.size, dtype=np.bool_)
        listed[riskiest(given, rng=rng)[: list_length(self.share, given.size)]] = True
        return listed

    def chance(self, *, missed: int, memorised: int) -> float:
        """How likely a new run, like the given ones, leaves out at least as many as another did.

        One less the confidence at which that rate would have been stated: the largest of what the
        predictions behind the bound give. A rate above ``stated`` is no evidence against the rule
        by itself, since up to one less ``confidence`` of honest runs have one.

        Args:
            missed: Samples that the other run memorised and its list leaves out.
            memorised: Samples that it memorised.

        Raises:
            InvalidInput: Not whole numbers, or more missed than memorised.
        """
        for name, count in (("missed", missed), ("memorised", memorised)):
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
                raise InvalidInput(f"{name}={count!r} is not a whole number of at least 0.")
        if not 0 < memorised >= missed:
            raise InvalidInput(f"missed={missed} of memorised={memorised} cannot be.")
        counts = self.memorised.astype(np.float64)
        left_out = self.missed * counts
        chances = [1.0 - float(np.sum(_predicted(int(memorised), left_out, counts)[:missed]))]
        if counts.size > 1:
            runs = _over_runs(left_out, counts)
            here = (missed / memorised, float(np.arcsin(np.sqrt(missed / memorised))))
            for at, (centre, deviation) in zip(here, runs, strict=True):
                if deviation > 0.0:
                    chances.append(float(stdtr(counts.size - 1, (centre - at) / deviation)))
        return min(max(chances), 1.0)


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
    alike, and is broken more often than stated where predictors fail in some trainings. With
    several it is also Student's prediction bound over runs, twice: of their rates, the spread of
    which cannot be less than that of counting, and of the arcsines of the rates' roots, since rates
    near 0 lean to one side. The largest counts.

    Risks are compared by rank within a run, so that runs need not share a scale. A list has room
    for a whole number of samples; those that tie at its end are taken at random, and count in
    expectation here.

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
        >>> runs = [rng.normal(size=1000) + 2.0 * memorised for memorised in truth]
        >>> rule = protect_rule(risks=runs[:3], memorised=truth[:3])
        >>> rule.share, round(rule.stated, 2), int(rule.listed(runs[3]).sum())
        (0.345, 0.19, 345)
        >>> round(1 - float(rule.listed(runs[3])[truth[3]].mean()), 2)
        0.11
        >>> round(rule.chance(missed=22, memorised=100), 2)
        0.08
        >>> rule.not_excluded
        '3 trainings cannot exclude that up to 63% of trainings behave otherwise'
    """
    faults: list[str] = []
    check_share("miss", miss, faults)
    check_share("confidence", confidence, faults)
    if len(risks) == 0 or len(risks) != len(memorised):
        faults.append(f"risks of {len(risks)} and memorised of {len(memorised)} runs")
    read = [_memorised_ranks(*run, faults) for run in zip(risks, memorised, strict=False)]
    require(faults)
    ranks = [run_ranks for run_ranks in read if run_ranks is not None]
    counts = np.array([run_ranks.ahead.size for run_ranks in ranks], dtype=np.float64)
    if (empty := np.flatnonzero(counts == 0)).size:
        raise NotEnoughEvidence(
            f"run {empty[0]} memorised none of its samples, so that nothing can be missed.",
            hint="Lower the limit from which a sample counts as memorised.",
        )
    share, stated, missed = 1.0, 0.0, np.zeros(len(ranks))
    for tried in np.arange(GRID - 1, 0, -1) / GRID:
        left_out = np.array([run_ranks.left_out(float(tried)) for run_ranks in ranks])
        bound = _bound(left_out, counts, float(confidence))
        if bound > miss:
            break
        share, stated, missed = float(tried), bound, left_out / counts
    over = "beta-binomial prediction"
    if len(ranks) > 1:
        over += f", and Student's over {len(ranks)} runs, plain and by arcsine: the largest"
    return ProtectRule(
        share=share,
        stated=stated,
        missed=missed,
        memorised=counts.astype(np.int64),
        miss=float(miss),
        confidence=float(confidence),
        method=over,
    )


def _bound(missed: Floats, counts: Floats, confidence: float) -> float:
    """What a new run may leave out, as a share of what it memorises."""
    if missed.sum() >= counts.sum():
        return 1.0
    new = max(1, round(float(counts.mean())))
    law = np.cumsum(_predicted(new, missed, counts))
    alike = min(int(np.searchsorted(law, confidence)), new) / new
    if counts.size == 1:
        return alike
    reach = float(stdtrit(counts.size - 1, confidence))
    plain, turned = (centre + reach * deviation for centre, deviation in _over_runs(missed, counts))
    return min(1.0, max(alike, plain, float(np.sin(min(turned, np.pi / 2.0)) ** 2)))


def _over_runs(missed: Floats, counts: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """Centre and deviation of Student's law of a new run's rate, and of its arcsine."""
    rates, turned = missed / counts, _turned(missed, counts)
    middle = (missed.sum() + 1.0) / (counts.sum() + 2.0)
    counting = middle * (1.0 - middle) * float(np.mean(1.0 / counts))
    grown = 1.0 + 1.0 / counts.size
    spread = max(float(rates.var(ddof=1)), counting)
    return (
        (float(rates.mean()), float(np.sqrt(spread * grown))),
        (float(turned.mean()), float(np.sqrt(turned.var(ddof=1) * grown))),
    )


def _turned(missed: Floats, counts: Floats) -> Floats:
    """The arcsine of a rate's root, which spreads alike at any rate (Anscombe's form)."""
    return np.asarray(np.arcsin(np.sqrt((missed + 0.375) / (counts + 0.75))))


def _predicted(new: int, missed: Floats, counts: Floats) -> Floats:
    """The beta-binomial law: how many of ``new`` ones are missed."""
    a, b = float(missed.sum()) + 1.0, float(counts.sum() - missed.sum())
    k = np.arange(new + 1)
    choose = gammaln(new + 1.0) - gammaln(k + 1.0) - gammaln(new - k + 1.0)
    return np.asarray(np.exp(choose + betaln(k + a, new - k + b) - betaln(a, b)))


@dataclass(frozen=True, slots=True, eq=False)
class _Ranks:
    """Where the memorised samples of a run rank.

    Attributes:
        ahead: Samples of higher risk, one number a memorised sample.
        tied: Samples of the same risk, itself included.
        n: All samples of the run.
    """

    ahead: NDArray[np.int64]
    tied: NDArray[np.int64]
    n: int

    def left_out(self, share: float) -> float:
        """How many memorised samples a list leaves out, in expectation where samples tie."""
        room = list_length(share, self.n) - self.ahead
        return float(np.sum(1.0 - np.clip(room / self.tied, 0.0, 1.0)))


def list_length(share: float, n: int) -> int:
    """How many of ``n`` samples a share of them holds."""
    return int(np.floor(share * n + 1e-9))


def riskiest(risk: Floats, *, rng: np.random.Generator | None = None) -> NDArray[np.int64]:
    """The places of all samples, the riskiest first, those that tie in a random order.

    Args:
        risk: Shape ``(n,)``.
        rng: Draws the order; by default one that is fixed for each ``n``.
    """
    drawn = (np.random.default_rng(0) if rng is None else rng).random(risk.size)
    return np.lexsort((drawn, -risk)).astype(np.int64)


def _memorised_ranks(risk: ArrayLike, memorised: ArrayLike, faults: list[str]) -> _Ranks | None:
    given = read_floats("risks", risk, 1, faults)
    truth = read_floats("memorised", memorised, 1, faults)
    if given is None or truth is None:
        return None
    if given.size != truth.size or np.any((truth != 0.0) & (truth != 1.0)):
        faults.append(f"memorised is not one True or False for each of {given.size} risks")
        return None
    rising, own = np.sort(given), given[truth != 0.0]
    over = np.searchsorted(rising, own, side="right")
    return _Ranks(given.size - over, over - np.searchsorted(rising, own, side="left"), given.size)
