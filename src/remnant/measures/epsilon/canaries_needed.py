"""How many canaries of one training it takes to show that a claimed epsilon is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from remnant.errors import require
from remnant.measures.epsilon.arguments import (
    check_count,
    check_delta,
    check_one_run_confidence,
    check_positive,
)
from remnant.measures.epsilon.gaussian import gaussian_epsilon
from remnant.measures.epsilon.one_run import ONE_RUN_METHODS, OneRunMethod, rejects
from remnant.measures.statistics.checks import check_share

SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the canaries that are guessed
_LOOKS = 100
_FEWEST = 16
_NODES = 12  # of the quadrature over each of the two cuts, on either side of the middle

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CanariesNeeded:
    """The size of a one-run audit that would catch a claim.

    Attributes:
        canaries: How many canaries it takes; None where ``reason`` says why there is no number.
        guesses: How many of them to guess, fixed in advance; None likewise.
        reason: Why there is no number; empty where there is one.
        true_epsilon: ε at δ of the mechanism that was assumed.
        claimed_epsilon, delta, mu, confidence, power, method: As asked for.
    """

    canaries: int | None
    guesses: int | None
    reason: str
    true_epsilon: float
    claimed_epsilon: float
    delta: float
    mu: float
    confidence: float
    power: float
    method: OneRunMethod


def canaries_needed(
    *,
    claimed_epsilon: float,
    mu: float,
    delta: float,
    confidence: float = 0.95,
    power: float = 0.8,
    method: OneRunMethod = "binomial",
    at_most: int = 100_000,
) -> CanariesNeeded:
    """Return how many canaries ``one_run_epsilon`` needs to exceed a claimed ε.

    The training is assumed to give each canary a score of N(0, 1) if it was left out and N(μ, 1)
    if it was included, independently; the attack guesses a fixed share of the canaries, half from
    each end of the scores. The share that needs the fewest canaries is taken, of 1 %, 2 %, 5 %,
    10 %, 20 %, 50 % and all.

    Guarantees:
        * Under these assumptions the audit exceeds the claim with at least ``power``, with so many
          canaries and with more: power does not rise with every canary, since guesses are counted.

    Args:
        claimed_epsilon: The ε that the training claims at ``delta``.
        mu: What the training really leaks: the distance of the scores of included and left out
            canaries, in standard deviations.
        delta: The δ of the claim, above 0.
        confidence: One-sided, of the audit.
        power: Probability with which the claim is to be caught.
        method: The bound, as in ``one_run_epsilon``.
        at_most: Canaries beyond which the search stops.

    Raises:
        InvalidInput: An argument out of range, an unknown method.

    Example:
        >>> needed = canaries_needed(claimed_epsilon=1.0, mu=3.0, delta=1e-5)
        >>> needed.canaries, needed.guesses
        (19, 10)
    """
    faults: list[str] = []
    check_positive("claimed_epsilon", claimed_epsilon, faults)
    check_positive("mu", mu, faults)
    check_delta(delta, faults, zero=False)
    check_one_run_confidence(confidence, faults)
    check_share("power", power, faults)
    check_count("at_most", at_most, _FEWEST, None, faults)
    if method not in ONE_RUN_METHODS:
        faults.append(f"method={method!r} is not one of {', '.join(ONE_RUN_METHODS)}")
    require(faults)
    audit = _Audit(float(claimed_epsilon), float(mu), delta, 1.0 - confidence, power, method)
    truth = gaussian_epsilon(mu=mu, delta=delta)
    canaries, guesses, reason = None, None, ""
    if truth <= claimed_epsilon:
        reason = "a mechanism with this mu keeps the claim, so no number of canaries refutes it"
    else:
        found = audit.fewest(at_most)
        if found is not None:
            canaries, guesses = found
        else:
            reason = f"{at_most} canaries are too few"
    return CanariesNeeded(
        canaries,
        guesses,
        reason,
        truth,
        float(claimed_epsilon),
        float(delta),
        float(mu),
        float(confidence),
        float(power),
        method,
    )


def guessed(canaries: int, share: float) -> int:
    """The even number of guesses nearest to a share of the canaries: 2 at least, and no more."""
    return min(max(2, 2 * round(canaries * share / 2)), canaries - canaries % 2)


@dataclass(frozen=True, slots=True)
class _Audit:
    """A claim, what is true, and how sure the audit has to be."""

    claimed: float
    mu: float
    delta: float
    error: float
    wished_power: float
    method: OneRunMethod

    def fewest(self, at_most: int) -> tuple[int, int] | None:
        """The fewest canaries from which on power is enough, and their guesses, over all shares."""
        sizes = [(size, share) for share in SHARES if (size := self.smallest(share, at_most))]
        best: tuple[int, float] | None = None
        for size, share in sorted(sizes):
            if best is None or size < best[0]:
                stays = self.stays(size, share, at_most)
                if stays is not None and (best is None or stays < best[0]):
                    best = stays, share
        return None if best is None else (best[0], guessed(*best))

    def stays(self, size: int, share: float, at_most: int) -> int | None:
        """The fewest canaries, from ``size``, from which on power stays; None above ``at_most``.

        Power falls where one more canary asks for one more correct guess; the falls shrink with the
        canaries. It is looked at up to half as many canaries more, at ``_LOOKS`` numbers at most.
        """
        while size <= at_most:
            step = max(1, size // (2 * _LOOKS))
            ahead = range(size, size + max(size // 2, 2 * _FEWEST) + 1, step)
            short = [more for more in ahead if self.power(more, share) < self.wished_power]
            if not short:
                return size
            size = short[-1] + 1
        return None

    def smallest(self, share: float, at_most: int) -> int | None:
        """The fewest canaries with enough power at a share of guesses; None above ``at_most``."""
        high = _FEWEST
        while self.power(high, share) < self.wished_power:
            if high >= at_most:
                return None
            high = min(2 * high, at_most)
        low = high // 2  # too few, or the fewest that are tried
        while high - low > max(1, low // 100):  # to 1 %
            middle = (low + high) // 2
            if self.power(middle, share) < self.wished_power:
                low = middle
            else:
                high = middle
        return high

    def power(self, canaries: int, share: float) -> float:
        """The probability of enough correct guesses to reject the claim."""
        guesses = guessed(canaries, share)
        fewest = self._fewest_correct(canaries, guesses)
        return _at_least(fewest, canaries=canaries, guesses=guesses, mu=self.mu)

    def _fewest_correct(self, canaries: int, guesses: int) -> int:
        """The fewest correct guesses that reject; one more than there are where none does."""
        strength = np.array([self._claimed_strength()])
        low, high = 0, guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            rejected = rejects(
                canaries,
                guesses,
                middle,
                strength,
                delta=self.delta,
                error=self.error,
                method=self.method,
            )
            low, high = (low, middle) if rejected[0] else (middle, high)
        return high

    def _claimed_strength(self) -> float:
        """The claimed ε, or the μ of the Gaussian mechanism that has it at δ."""
        if self.method != "gaussian":
            return self.claimed
        return float(
            optimize.brentq(
                lambda mu: gaussian_epsilon(mu=mu, delta=self.delta) - self.claimed,
                0.0,
                self.mu,
                xtol=1e-10,
            )
        )


def _at_least(fewest: int, *, canaries: int, guesses: int, mu: float) -> float:
    """The probability of at least ``fewest`` correct guesses, half of them from each end.

    Given the score next to those at the upper end, these are independent draws from what lies above
    it, so that the correct ones among them are binomial; likewise at the lower end. The
    probability is the mean over these two scores, whose ranks are Beta variables, by quadrature.
    Where included canaries score much higher than others, it bends sharply at a cut between the
    two, so each side of this is integrated by itself.
    """
    half = guesses // 2
    below = half  # guesses at the lower end that are independent draws
    if canaries > 2 * half + 1:
        lower, weights = _beta_nodes(half + 1, canaries - half, np.array([0.5]))
        rest, inner = _beta_nodes(
            canaries - 2 * half - 1, half + 1, (0.5 - lower[0]) / (1.0 - lower[0])
        )
        lower = np.repeat(lower.T, inner.shape[1], axis=1).ravel()
        upper = lower + (1.0 - lower) * rest.ravel()
        weights = (weights.T * inner).ravel()
    else:  # the score next to one end is next to the other, or in it
        lower, weights = _beta_nodes(canaries - half, half + 1, np.array([0.5]))
        upper, lower, weights = lower[0], lower[0], weights[0]
        below = canaries - half - 1
    used = weights > 1e-16  # mostly one side alone
    upper, lower, weights = upper[used], lower[used], weights[used]
    above_cut, below_cut = _quantile(upper, mu), _quantile(lower, mu)
    right_above = special.expit(special.log_ndtr(mu - above_cut) - special.log_ndtr(-above_cut))
    right_below = special.expit(special.log_ndtr(below_cut) - special.log_ndtr(below_cut - mu))
    spread = 12.0 * np.sqrt(half * right_above * (1.0 - right_above)) + 12.0
    first = max(0, int(np.floor(np.min(half * right_above - spread))))
    last = min(half, int(np.ceil(np.max(half * right_above + spread))))
    correct = np.arange(first, last + 1)
    likely = stats.binom.pmf(correct, half, right_above[:, None])
    enough = stats.binom.sf(fewest - 1 - correct, below, right_below[:, None])
    if below < half:  # the cut itself is guessed to be left out
        left_out = special.expit(mu * (mu / 2.0 - below_cut))[:, None]
        one_less = stats.binom.sf(fewest - 2 - correct, below, right_below[:, None])
        enough = left_out * one_less + (1.0 - left_out) * enough
    return float(weights @ (likely * enough).sum(axis=1))


def _beta_nodes(a: float, b: float, splits: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights for means over Beta(a, b), a rule for each side of a split.

    Args:
        a, b: Of the law.
        splits: Shape ``(n,)``; one at or under 0 leaves the upper side alone.

    Returns:
        Nodes and weights, both of shape ``(n, 2 * _NODES)``.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0
    under = stats.beta.cdf(splits, a, b)[:, None]
    shares = np.concatenate([under * nodes, under + (1.0 - under) * nodes], axis=1)
    shares = np.minimum(shares, np.nextafter(1.0, 0.0))  # a node at 1 would leave no rest
    return (
        np.asarray(stats.beta.ppf(shares, a, b)),
        np.concatenate([under * weights, (1.0 - under) * weights], axis=1),
    )


def _quantile(shares: Floats, mu: float) -> Floats:
    """The scores under which such shares of all canaries are, included and left out alike."""
    low, high = np.full_like(shares, -40.0), np.full_like(shares, mu + 40.0)
    for _ in range(64):
        middle = (low + high) / 2.0
        under = special.ndtr(middle) + special.ndtr(middle - mu) < 2.0 * shares
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.asarray((low + high) / 2.0)
