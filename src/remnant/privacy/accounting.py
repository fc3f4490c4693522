r"""The epsilon of DP-SGD with Poisson batches, and the noise for an epsilon.

A step of the training takes each example with probability ``sampling_rate``, clips its gradient to
the norm C, sums, and adds Gaussian noise of standard deviation ``noise`` * C to each entry. Two
data sets are neighbours if one has one example more (add or remove one). The numbers are upper
bounds on the true ε, and differ from it by the accountant's rounding alone:

* ``pld``: privacy loss distributions of the library dp-accounting, rounded upwards. Used wherever
  its tables fit in memory and the answer is finite: all trainings of ordinary size.
* ``rdp``: the same library's Rényi accountant. Looser; used where δ is close to the tail mass that
  the tables discard (about 1e-15) or below it, and above a million steps.
* ``known batches``: the bound for an observer who also knows in which steps the example was drawn.
  Given k draws, the training is a Gaussian mechanism with μ = √k / noise, so δ(ε) is at most the
  mean of its δ over k ~ Binomial(steps, rate). Used where ε is above 1e6, where tables would soon
  not fit; there it exceeded the tables' ε by at most 6e-5, because the weights show the draws.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special, stats

from remnant.errors import InvalidInput, import_failure, require

Accountant = Literal["none", "pld", "rdp", "known batches"]
_LIBRARY_GRID = 1e-4  # the interval of privacy losses that dp-accounting takes by itself
_LARGEST_TABLE = 1e6  # the epsilon up to which a table is built
_LARGEST_STEPS = 1_000_000  # and the number of steps; the library takes a minute for ten times more
_SMALLEST_NOISE, _LARGEST_NOISE = 1e-100, 1e9  # beyond them numbers overflow; 0 and this are taken
_GROUP_GRID = 5e-3  # first grid of a group's tables, as a share of epsilon
_TIGHT = 1e-3  # relative gap that noise_for leaves below the wished epsilon


@dataclass(frozen=True, slots=True)
class PrivacySpent:
    """What a private training spends.

    Attributes:
        epsilon: An upper bound on ε at ``delta``, in nats; infinite without noise.
        delta: The δ it holds at.
        accountant: What computed it: "pld", "rdp" or "known batches"; "none" where no accountant
            is needed (nothing is drawn, or no noise is added).
    """

    epsilon: float
    delta: float
    accountant: Accountant


def epsilon_spent(*, sampling_rate: float, noise: float, steps: int, delta: float) -> float:
    """Return the ε that a training with Poisson batches spends at ``delta``.

    Args:
        sampling_rate: Probability with which each example is in a batch: the expected batch
            divided by the number of examples.
        noise: Standard deviation of the noise on the sum, in units of the clip norm.
        steps: Steps of the training; empty batches count.
        delta: The δ of (ε, δ)-differential privacy, usually below 1 / examples.

    Returns:
        An upper bound on ε: 0 where nothing is drawn, infinite without noise or at δ = 0.

    Guarantees:
        * Equals dp-accounting's PLD accountant, with its own settings, for ε between 0.1 and 50.
        * Never below the true ε; falls with ``noise`` and ``delta``, rises with the others.

    Raises:
        InvalidInput: A rate outside 0..1, a negative noise, steps or δ, δ of 1 or more.
        MissingExtra: dp-accounting is not installed (extra ``dp``).

    Example:
        >>> round(epsilon_spent(sampling_rate=0.01, noise=1.0, steps=1000, delta=1e-5), 3)
        1.828
    """
    spent = privacy_spent(sampling_rate=sampling_rate, noise=noise, steps=steps, delta=delta)
    return spent.epsilon


def privacy_spent(*, sampling_rate: float, noise: float, steps: int, delta: float) -> PrivacySpent:
    """Return what ``epsilon_spent`` does, with the accountant that computed it.

    Example:
        >>> privacy_spent(sampling_rate=0.01, noise=0.0, steps=10, delta=1e-5)
        PrivacySpent(epsilon=inf, delta=1e-05, accountant='none')
    """
    faults = _faults(sampling_rate=sampling_rate, steps=steps, delta=delta)
    if not _is_number(noise) or not (math.isfinite(noise) and noise >= 0):
        faults.append(f"noise={noise!r} is not a finite number of 0 or more")
    require(faults)
    rate, noise, steps = float(sampling_rate), float(noise), int(steps)
    if rate == 0.0 or steps == 0:
        return PrivacySpent(0.0, delta, "none")
    if noise < _SMALLEST_NOISE or delta == 0.0:
        return PrivacySpent(math.inf, delta, "none")
    epsilon, accountant = _epsilon(rate, min(noise, _LARGEST_NOISE), steps, float(delta))
    return PrivacySpent(epsilon, delta, accountant)


def group_epsilon(
    *, copies: int, sampling_rate: float, noise: float, steps: int, delta: float
) -> float:
    """Return the ε of ``copies`` examples together, such as a canary that is planted several times.

    With Poisson batches each copy is drawn by itself, so that a step holds Binomial(copies, rate)
    of them and moves by as many clip norms: a mixture of Gaussians, which dp-accounting composes.
    This is much less than ``copies`` times ε at a δ that grows with e^ε.

    Args:
        copies: Examples that are added or removed together; 1 gives ``epsilon_spent``.
        sampling_rate, noise, steps, delta: As in ``epsilon_spent``.

    Returns:
        An upper bound on the group's ε, within about 0.1 % of it.

    Raises:
        InvalidInput: ``copies`` below 1, other arguments as in ``epsilon_spent``.
        MissingExtra: dp-accounting is not installed (extra ``dp``).

    Example:
        >>> training = {"sampling_rate": 0.01, "noise": 20.0, "steps": 1000, "delta": 1e-5}
        >>> round(group_epsilon(copies=64, **training), 1), round(epsilon_spent(**training), 3)
        (4.5, 0.045)
    """
    if isinstance(copies, bool) or not isinstance(copies, int | np.integer) or copies < 1:
        raise InvalidInput(f"copies={copies!r} is not a whole number of at least 1.")
    # One example that moves the sum by all copies as soon as one is drawn bounds the group.
    bounding = privacy_spent(sampling_rate=sampling_rate, noise=noise, steps=steps, delta=delta)
    if copies == 1 or not 0.0 < bounding.epsilon < math.inf:
        return bounding.epsilon
    rate = -math.expm1(copies * math.log1p(-sampling_rate)) if sampling_rate < 1.0 else 1.0
    epsilon, _ = _epsilon(rate, noise / copies, int(steps), float(delta))
    if sampling_rate == 1.0 or epsilon > _LARGEST_TABLE:
        return epsilon
    group = (int(copies), float(sampling_rate))
    grid = max(_GROUP_GRID * epsilon, _LIBRARY_GRID)
    while True:  # finer grids, each an upper bound; the error falls with the grid's square
        before = epsilon
        epsilon = min(before, _by_tables(rate, noise, int(steps), delta, grid=grid, group=group))
        if grid == _LIBRARY_GRID or 0.99 * before < epsilon < before:
            return epsilon
        grid = max(min(grid / 4.0, _GROUP_GRID * epsilon), _LIBRARY_GRID)


def noise_for(*, epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Return the smallest noise multiplier that keeps a training within ``epsilon``.

    Args:
        epsilon: The ε that may be spent.
        sampling_rate: Probability with which each example is in a batch.
        steps: Steps of the training.
        delta: The δ at which ``epsilon`` is to hold.

    Returns:
        A noise whose ``epsilon_spent`` is at most ``epsilon`` and at least 99.9 % of it; 0 where
        no noise is needed.

    Raises:
        InvalidInput: Arguments as in ``epsilon_spent``; ``epsilon`` or ``delta`` of 0, which no
            finite noise reaches.
        MissingExtra: dp-accounting is not installed (extra ``dp``).

    Example:
        >>> round(noise_for(epsilon=8.0, sampling_rate=0.01, steps=1000, delta=1e-5), 2)
        0.59
    """
    faults = _faults(sampling_rate=sampling_rate, steps=steps, delta=delta)
    if not _is_number(epsilon) or math.isnan(epsilon) or epsilon < 0:
        faults.append(f"epsilon={epsilon!r} is not a number of 0 or more")
    require(faults)
    rate, steps, delta = float(sampling_rate), int(steps), float(delta)
    if rate == 0.0 or steps == 0 or math.isinf(epsilon):
        return 0.0
    if epsilon == 0.0 or delta == 0.0:
        raise InvalidInput(
            f"no finite noise reaches epsilon={epsilon:g} at delta={delta:g}.",
            hint="Pass an epsilon and a delta above 0.",
        )
    enough = _smallest_noise(lambda noise: _scale(rate, noise, steps, delta), epsilon, 1.0)
    return _smallest_noise(lambda noise: _epsilon(rate, noise, steps, delta)[0], epsilon, enough)


def _smallest_noise(spent: Callable[[float], float], epsilon: float, start: float) -> float:
    """The noise at which a falling function meets ``epsilon`` from below, to ``_TIGHT``."""
    enough, value = start, spent(start)
    too_little, at_too_little = 0.0, math.inf
    while value > epsilon:
        too_little, at_too_little, enough = enough, value, 2.0 * enough
        if enough > _LARGEST_NOISE:
            raise InvalidInput(
                f"epsilon={epsilon:g} would take a noise multiplier above {_LARGEST_NOISE:g}.",
                hint="Allow a larger epsilon or delta, or train for fewer steps.",
            )
        value = spent(enough)
    while too_little == 0.0:
        below = 0.7 * enough
        at_below = spent(below)
        if at_below > epsilon:
            too_little, at_too_little = below, at_below
        else:
            enough, value = below, at_below
    while value < (1.0 - _TIGHT) * epsilon and enough > too_little * (1.0 + 1e-12):
        middle = _between(too_little, at_too_little, enough, value, (1.0 - _TIGHT / 2.0) * epsilon)
        at_middle = spent(middle)
        if at_middle > epsilon:
            too_little, at_too_little = middle, at_middle
        else:
            enough, value = middle, at_middle
    return enough


def _between(low: float, at_low: float, high: float, at_high: float, wanted: float) -> float:
    """The noise that a power law through two points gives, kept inside of both."""
    share = 0.5
    if math.isfinite(at_low) and at_high > 0.0:
        share = math.log(at_low / wanted) / math.log(at_low / at_high)
    return float(low * (high / low) ** min(max(share, 0.02), 0.98))


def _epsilon(rate: float, noise: float, steps: int, delta: float) -> tuple[float, Accountant]:
    """The smallest of the upper bounds that can be computed, and whose it is."""
    known = _known_batches(rate, noise, steps, delta)
    renyi = _renyi(rate, noise, steps, delta)
    looser: tuple[float, Accountant] = (renyi, "rdp") if renyi < known else (known, "known batches")
    if looser[0] == 0.0 or looser[0] > _LARGEST_TABLE or steps > _LARGEST_STEPS:
        return looser
    epsilon = _by_tables(rate, noise, steps, delta, grid=_grid(looser[0], noise))
    return (epsilon, "pld") if epsilon <= looser[0] else looser


def _by_tables(
    rate: float,
    noise: float,
    steps: int,
    delta: float,
    *,
    grid: float,
    group: tuple[int, float] | None = None,
) -> float:
    """The ε of dp-accounting's privacy loss distributions; infinite where it has none."""
    try:
        epsilon = float(_composed("pld", rate, noise, steps, grid, group).get_epsilon(delta))
    except (ValueError, OverflowError):  # rates so small that losses are lost in rounding
        return math.inf
    return math.inf if math.isnan(epsilon) else max(0.0, epsilon)


def _scale(rate: float, noise: float, steps: int, delta: float) -> float:
    """The smaller of the two upper bounds that take no tables."""
    return min(_known_batches(rate, noise, steps, delta), _renyi(rate, noise, steps, delta))


def _grid(scale: float, noise: float) -> float:
    """The interval of privacy losses: the library's own, finer or coarser only at the extremes.

    The accountant rounds privacy losses upwards, so that a coarse grid gives a larger ε, never one
    that is too small. Above ε = 50 the grid is 1e-5 of ε, which added 1e-6 to 1.3e-4 of it where
    that was measured; below 0.1 it is finer, down to a millionth of the losses of one step.
    """
    if scale > 50.0:
        return scale * 1e-5
    if scale > 0.1:
        return _LIBRARY_GRID
    largest_loss = 0.5 / noise**2 + 9.0 / noise
    return min(max(scale * 1e-3, largest_loss * 1e-6, 1e-9), _LIBRARY_GRID)


def _renyi(rate: float, noise: float, steps: int, delta: float) -> float:
    """The Rényi accountant's ε; infinite where its numbers cannot be trusted.

    It answers 0 where rounding makes a divergence negative, so that 0 is never taken from it.
    """
    with _quiet("absl"):
        epsilon = float(_composed("rdp", rate, noise, steps).get_epsilon(delta))
    return epsilon if epsilon > 0.0 else math.inf


def _composed(
    accountant: str,
    rate: float,
    noise: float,
    steps: int,
    grid: float = 0.0,
    group: tuple[int, float] | None = None,
) -> Any:
    """An accountant of dp-accounting that has seen the training.

    ``group`` is the number of copies and the rate of each; the step is then theirs together.
    """
    try:
        from dp_accounting import dp_event, pld, rdp
    except ImportError as fault:
        raise import_failure(
            fault,
            library="dp-accounting",
            message="Privacy accounting needs dp-accounting, which is not installed.",
            extra="dp",
        ) from fault
    step = dp_event.GaussianDpEvent(noise)
    if group is not None:
        drawn = np.arange(group[0] + 1)
        shares = stats.binom.pmf(drawn, *group)
        step = dp_event.MixtureOfGaussiansDpEvent(noise, drawn.tolist(), shares.tolist())
    elif rate < 1.0:
        step = dp_event.PoissonSampledDpEvent(rate, step)
    composed = (
        pld.PLDAccountant(value_discretization_interval=grid)
        if accountant == "pld"
        else rdp.RdpAccountant()
    )
    with _quiet("absl"):
        return composed.compose(step, steps)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a library's log: it names each Rényi order that it leaves out of a minimum."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _known_batches(rate: float, noise: float, steps: int, delta: float) -> float:
    r"""The ε at δ for an observer who knows the draws: E_k[δ of N(0,1) against N(√k/noise, 1)].

    δ of a Gaussian mechanism is Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ); the second term is left out, so
    that the bound stays one.
    """
    law = stats.binom(steps, rate)
    if float(law.sf(0)) <= delta:
        return 0.0
    first, last = max(1.0, law.ppf(1e-3 * delta)), max(1.0, law.isf(1e-3 * delta))
    draws = np.arange(first, last + 1.0)
    weights = law.pmf(draws)
    outside = float(law.sf(last) + (law.cdf(first - 1.0) if first > 1.0 else 0.0))  # counted as 1
    strength = np.sqrt(draws) / noise

    def excess(epsilon: float) -> float:
        tail = special.ndtr(strength / 2.0 - epsilon / strength)
        return float(weights @ tail) + outside - delta

    high = float(np.max(strength**2 / 2.0 + 40.0 * strength))
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if excess(middle) > 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-9 * high:
            break
    return high


def _faults(*, sampling_rate: float, steps: int, delta: float) -> list[str]:
    """What is wrong with the arguments that both functions take."""
    faults = []
    if not _is_number(sampling_rate) or not 0.0 <= sampling_rate <= 1.0:
        faults.append(f"sampling_rate={sampling_rate!r} is not between 0 and 1")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        faults.append(f"steps={steps!r} is not a whole number of 0 or more")
    if not _is_number(delta) or not 0.0 <= delta < 1.0:
        faults.append(f"delta={delta!r} is not a number from 0 up to, but not including, 1")
    return faults


def _is_number(given: object) -> bool:
    return not isinstance(given, bool) and isinstance(given, int | float | np.number)
