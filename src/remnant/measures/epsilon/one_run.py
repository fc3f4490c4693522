r"""Lower bounds on epsilon from one training with many canaries.

Each of m canaries is in the training with probability 1/2, by a coin of its own. The attack then
guesses the coins of r canaries, chosen by the model and not by the coins, and abstains from the
others; v of the r guesses are correct. A training that is private for each canary makes a large v
improbable, although all canaries share one training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from remnant.errors import InvalidInput, require
from remnant.measures.epsilon.arguments import (
    check_count,
    check_delta,
    check_one_run_confidence,
)
from remnant.measures.epsilon.gaussian import gaussian_epsilon

Floats = NDArray[np.float64]
OneRunMethod = Literal["binomial", "trade-off", "gaussian"]
ONE_RUN_METHODS: tuple[OneRunMethod, ...] = get_args(OneRunMethod)
_LARGEST = 60.0  # ε or μ up to which a bound is searched; no count of canaries reaches it


@dataclass(frozen=True, slots=True)
class OneRunEpsilon:
    """A lower bound on ε from one training, and the guesses it was computed from.

    Attributes:
        value: The bound, in nats; 0 where the guesses show no leak. Finite.
        guesses: Canaries about which the attack guessed.
        correct: Correct guesses.
        canaries: Canaries whose inclusion was drawn by fair coins.
        delta: The δ of the claim that is tested.
        confidence: One-sided.
        method: "binomial", "trade-off" or "gaussian".
        mu: The bound on μ of "gaussian"; None for the others.
    """

    value: float
    guesses: int
    correct: int
    canaries: int
    delta: float
    confidence: float
    method: OneRunMethod
    mu: float | None = None


def one_run_epsilon(
    *,
    guesses: int,
    correct: int,
    canaries: int,
    delta: float,
    confidence: float = 0.95,
    method: OneRunMethod = "binomial",
) -> OneRunEpsilon:
    """Bound ε from below by guesses about the canaries of one training.

    When it holds:
        * Each canary was included by an independent fair coin, and nothing else in the training
          depends on the coins. The claim tested is about one example more or less (add or remove
          one): a canary that is planted several times is a group, and the claim must be its.
        * The number of guesses was fixed before the scores were seen; which canaries are guessed
          may depend on them. For several numbers of guesses use ``one_run_from_scores``.

    Methods:
        * "binomial" (Steinke, Nasr and Jagielski 2023): correct guesses of an (ε, 0)-private
          training are at most as many as a Binomial(guesses, e^ε / (1 + e^ε)); δ adds
          2 · canaries · δ · max_i P[v > Binomial >= v - i] / i. Holds for every mechanism at a
          confidence of one half or more; below that the term for δ can be too small.
        * "trade-off" (Mahloujifar, Melis and Chaudhuri 2024, for the trade-off curve of (ε, δ)):
          holds for every mechanism too; higher where canaries · δ is not small.
        * "gaussian" (the same, for the trade-off curves of Gaussian mechanisms): bounds μ and
          converts it to ε at δ. The highest, and the right one for DP-SGD, whose curve is close
          to a Gaussian one. It is a bound on ε **only if** the training's trade-off curve is
          that of a Gaussian mechanism; otherwise it shows that the training is not μ-GDP.

    Args:
        guesses: r, the guesses made.
        correct: v, the correct ones.
        canaries: m, all canaries, those without a guess too.
        delta: The δ of the claim; above 0 for "gaussian".
        confidence: One-sided, at least 0.5.
        method: "binomial", "trade-off" or "gaussian".

    Guarantees:
        * Exceeds the true ε in at most ``1 - confidence`` of audits.
        * 0 where no more guesses are correct than coins allow; never infinite.
        * Rises with ``correct``; falls with ``canaries``, ``delta`` and ``confidence``.

    Raises:
        InvalidInput: Counts that are not whole or exceed their totals, a ``delta`` or
            ``confidence`` out of range, an unknown method.

    Example:
        >>> bound = one_run_epsilon(guesses=200, correct=160, canaries=1000, delta=1e-5)
        >>> round(bound.value, 2)
        1.09
    """
    faults: list[str] = []
    check_count("canaries", canaries, 1, None, faults)
    require(faults)
    check_count("guesses", guesses, 1, canaries, faults)
    require(faults)
    check_count("correct", correct, 0, guesses, faults)
    check_delta(delta, faults, zero=method != "gaussian")
    check_one_run_confidence(confidence, faults)
    if method not in ONE_RUN_METHODS:
        faults.append(f"method={method!r} is not one of {', '.join(ONE_RUN_METHODS)}")
    require(faults)
    r, v, m = int(guesses), int(correct), int(canaries)
    bound = smallest_accepted(m, r, v, delta=delta, error=1.0 - confidence, method=method)
    mu = bound if method == "gaussian" else None
    value = bound if mu is None else gaussian_epsilon(mu=mu, delta=delta)
    return OneRunEpsilon(value, r, v, m, float(delta), float(confidence), method, mu)


def smallest_accepted(
    m: int, r: int, v: int, *, delta: float, error: float, method: OneRunMethod
) -> float:
    """The smallest ε (μ for "gaussian") that v correct guesses do not reject at ``error``."""
    low, high = 0.0, _LARGEST
    while high - low > 1e-9:  # each round divides the interval by 64
        trials = np.linspace(low, high, 65)
        rejected = rejects(m, r, v, trials, delta=delta, error=error, method=method)
        first = int(np.argmin(rejected)) if not rejected.all() else len(trials) - 1
        if first == 0:
            return low
        low, high = float(trials[first - 1]), float(trials[first])
    return low


def rejects(
    m: int, r: int, v: int, strengths: Floats, *, delta: float, error: float, method: OneRunMethod
) -> NDArray[np.bool_]:
    """Whether v correct guesses reject each ε (μ for "gaussian") at ``error``."""
    if v == 0:
        return np.zeros(strengths.shape, dtype=bool)
    if method == "binomial":
        return _binomial_p_values(m, r, v, strengths, delta) <= error
    curve = _gaussian_size if method == "gaussian" else _private_size
    return _rejected_by_curve(m, r, v, lambda power: curve(power, strengths, delta), error)


def _binomial_p_values(m: int, r: int, v: int, epsilons: Floats, delta: float) -> Floats:
    """p-values of v or more correct guesses for each ε, shape ``epsilons.shape``."""
    accuracy = special.expit(epsilons)
    at_least = stats.binom.sf(v - 1, r, accuracy)
    if delta == 0.0:
        return np.asarray(at_least)
    below = np.arange(1, v + 1)
    masses = np.cumsum(stats.binom.pmf(v - below, r, accuracy[:, None]), axis=1)
    steepest = np.max(masses / below, axis=1)
    return np.asarray(np.minimum(at_least + 2.0 * m * delta * steepest, 1.0))


def _rejected_by_curve(
    m: int, r: int, v: int, size_of: Callable[[Floats], Floats], error: float
) -> NDArray[np.bool_]:
    r"""Whether a trade-off curve excludes that P[v or more correct] reaches ``error``.

    With p_i = P[i correct], R_i = Σ_{j>=i} j p_j / m and L_i = Σ_{j>=i} (r - j) p_j / m, privacy of
    each canary gives ``size_of(R_i) <= L_{i-1}``: those who guess a canary right could not do so
    more often than the curve allows beside those who guess it wrong with the same number of others
    right. Going down from i = v with the least mass that this forces, R_0 + L_0 must not exceed
    r / m, the mass that there is.
    """
    right = np.full_like(size_of(np.zeros(1)), error * v / m)
    wrong = np.full_like(right, error * (r - v) / m)
    for i in range(v, 0, -1):
        forced = np.maximum(wrong, size_of(right))
        if np.array_equal(forced, wrong):
            break  # nothing is forced any more
        right = right + (i - 1) / (r - i + 1) * (forced - wrong)
        wrong = forced
    return np.asarray(right + wrong > r / m)


def _gaussian_size(power: Floats, mus: Floats, delta: float) -> Floats:
    """The least size of a test with ``power`` between N(0, 1) and N(μ, 1)."""
    reached = np.minimum(power, 1.0)
    return np.asarray(special.ndtr(special.ndtri(reached) - mus))


def _private_size(power: Floats, epsilons: Floats, delta: float) -> Floats:
    """The least size of a test with ``power`` between two neighbours of an (ε, δ) mechanism."""
    ratio = np.exp(epsilons)
    reached = np.minimum(power, 1.0)
    size = np.maximum((reached - delta) / ratio, 1.0 - delta - ratio * (1.0 - reached))
    return np.asarray(np.maximum(size, 0.0))


def one_run_from_scores(
    scores: ArrayLike,
    included: ArrayLike,
    *,
    guesses: int | tuple[int, ...],
    delta: float,
    confidence: float = 0.95,
    method: OneRunMethod = "binomial",
    seed: int | Sequence[int] | np.random.Generator = 0,
) -> OneRunEpsilon:
    """Guess the coins of the canaries with the most extreme scores, and bound ε.

    The half of ``guesses`` with the highest scores is guessed to be included, the half with the
    lowest not to be. The scores must not depend on the coins except through the model. Ties are
    broken at random, since the order in which canaries are given may know the coins.

    Args:
        scores: One score per canary, shape ``(canaries,)``; higher means included.
        included: Whether each canary was in the training, shape ``(canaries,)``.
        guesses: How many to guess, an even number fixed in advance. Several numbers are tried one
            by one, each at ``1 - (1 - confidence) / count`` (Bonferroni); the highest bound is
            returned with the confidence that was asked for.
        delta, confidence, method: As in ``one_run_epsilon``.
        seed: Breaks ties; a number, or a generator. The same seed gives the same bound.

    Guarantees:
        * Exceeds the true ε in at most ``1 - confidence`` of audits, ties included.
        * 0 where all scores are one number: there is nothing to guess by.

    Raises:
        InvalidInput: Arrays of unequal length, scores that are not finite, odd ``guesses`` or more
            than there are canaries.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coins = rng.random(1000) < 0.5
        >>> bound = one_run_from_scores(rng.normal(size=1000) + 1.5 * coins, coins, guesses=400,
        ...     delta=1e-5)
        >>> bound.correct, round(bound.value, 2)
        (367, 2.1)
    """
    ordered, alike = _coins_by_score(scores, included, _generator(seed))
    numbers = tuple(guesses) if isinstance(guesses, tuple | list) else (guesses,)
    faults: list[str] = []
    check_one_run_confidence(confidence, faults)
    if not numbers:
        faults.append("guesses is empty")
    for number in numbers:
        check_count("guesses", number, 2, len(ordered), faults)
        if not faults and number % 2:
            faults.append(f"guesses={number} is odd")
    require(faults, hint="Guess an even number of canaries: half from each end.")
    level = 1.0 - (1.0 - confidence) / len(numbers)
    bounds = [
        one_run_epsilon(
            guesses=number,
            correct=int(ordered[-number // 2 :].sum() + (~ordered[: number // 2]).sum()),
            canaries=len(ordered),
            delta=delta,
            confidence=level,
            method=method,
        )
        for number in numbers
    ]
    best = max(bounds, key=lambda bound: bound.value)
    best = replace(best, confidence=float(confidence))
    return replace(best, value=0.0, mu=None if best.mu is None else 0.0) if alike else best


def _generator(seed: int | Sequence[int] | np.random.Generator) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as fault:
        raise InvalidInput(
            f"seed={seed!r} is no seed.", hint="Pass a whole number from 0 on."
        ) from fault


def _coins_by_score(
    scores: ArrayLike, included: ArrayLike, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], bool]:
    """The coins in the order of rising scores, and whether all scores are one number."""
    numbers = np.asarray(scores, dtype=np.float64)
    coins = np.asarray(included)
    if numbers.ndim != 1 or coins.shape != numbers.shape or not len(numbers):
        raise InvalidInput(
            f"scores has shape {numbers.shape} and included {coins.shape}; both need one entry "
            "per canary."
        )
    if not np.isfinite(numbers).all():
        raise InvalidInput("scores holds values that are NaN or infinite.")
    if coins.dtype != np.bool_ and not np.isin(coins, (0, 1)).all():
        raise InvalidInput("included holds values other than True and False.")
    order = np.lexsort((rng.permutation(numbers.size), numbers))
    return np.asarray(coins.astype(bool)[order]), bool(np.ptp(numbers) == 0.0)
