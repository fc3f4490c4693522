"""The skew-normal law that makes the values most likely, found by Newton's method.

The scale drops out: for a given location ``ξ`` the best one is ``scale² = mean (x - ξ)²``, whatever
the slope ``λ = shape / scale``. What is left, on values with mean 0 and variance 1, is a function
of two numbers, ``d = -ξ`` and ``λ``:

    f(d, λ) = -½ log(1 + d²) + mean log Φ(λ (x + d))

Its two awkward places are straightened out by the coordinates in which a step is taken:

* Around λ = 0, the normal law, f is flat to the sixth power of λ along ``d = sqrt(2/π) λ``. In the
  distance from that line and the *cube* of λ it is an ordinary hill.
* For large λ the top lies on a narrow, bent ridge, or there is none and f rises towards the
  half-normal law at λ = ∞. In the width ``1/λ`` and the outermost value's ``λ (x + d)`` the ridge
  is straight and the half-normal law near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats
from remnant.measures.statistics.skew_normal import SkewNormal

Floats = NDArray[np.float64]

FEWEST = 10
"""Fewer values do not make three parameters."""
LARGEST_SHAPE = 1e8
"""What stands for an infinite shape, the half-normal law; its likelihood is within 1e-7 a value."""

_Place = tuple[float, float]
_STARTS = (-10.0, -3.0, -1.0, 1.0, 3.0, 10.0)
# With many values, the starts are tried on this many, spread evenly over all.
_SUBSAMPLE = 1 << 13
# More rounds than this from a subsample's top mean that the subsample did not look like the rest.
_CLOSE_BY = 6
_ROUNDS = 100
_GENTLEST, _STEEPEST = 1e-2, 1e6
_BLOCK = 1 << 14
_RIDGE = math.sqrt(2.0 / math.pi)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class SkewNormalFit(SkewNormal):
    """A skew-normal law that was fitted, and how that went.

    Attributes:
        log_likelihood: Of all values, in nats.
        n: How many values there were.
        converged: Newton's method came to rest.
        at_boundary: The likelihood rises with the shape without end; ``shape`` is then
            ``LARGEST_SHAPE`` or its negative, and one tail ends at the outermost value.
    """

    log_likelihood: float
    n: int
    converged: bool
    at_boundary: bool


@dataclass(frozen=True, slots=True)
class _Point:
    """The function at one place; derivatives are by the coordinates of ``_moved``."""

    d: float
    slope: float
    value: float
    gradient: Floats
    hessian: Floats
    rounds: int = 0
    converged: bool = False


_NORMAL = _Point(0.0, 0.0, -math.log(2.0), np.zeros(2), np.zeros((2, 2)), converged=True)


def fit_skew_normal(values: ArrayLike) -> SkewNormalFit:
    """Fit a skew-normal law by maximum likelihood.

    Args:
        values: One dimension, at least ten, at least three of them different.

    Guarantees:
        * A likelihood no lower than that of ``scipy.stats.skewnorm.fit``, up to 1e-6 a value.
        * The fit of ``c x + t`` is the fit of ``x`` with location and scale mapped alike (and the
          shape turned for a negative c), up to rounding.
        * The same values give the same fit; no randomness.

    Raises:
        InvalidInput: Not one dimension, NaN or infinite values.
        NotEnoughEvidence: Fewer than ten values, or fewer than three different ones.

    Example:
        >>> law = SkewNormal(shape=4.0, location=10.0, scale=2.0)
        >>> fit = fit_skew_normal(law.sample(100_000, rng=np.random.default_rng(0)))
        >>> round(fit.shape, 1), round(fit.location, 1), round(fit.scale, 1), fit.at_boundary
        (4.0, 10.0, 2.0, False)
    """
    faults: list[str] = []
    given = read_floats("values", values, 1, faults)
    require(faults)
    if given is None:
        raise InvalidInput("values must be an array of numbers.")
    return fit_checked("values", given)


def fit_checked(name: str, values: Floats) -> SkewNormalFit:
    """As ``fit_skew_normal``, of finite values; ``name`` is the argument to blame."""
    centre, spread = _centre_and_spread(name, values)
    standard = (values - centre) / spread
    tops = _tops(standard) + [_limit(standard, sign) for sign in (1.0, -1.0)]
    best = max(tops, key=lambda point: point.value)
    # Along its flat line the normal law is as good as any, and is what the shape 0 says.
    best = _NORMAL if best.value <= _NORMAL.value + 1e-12 else best
    scale = math.hypot(1.0, best.d)
    per_value = math.log(2.0) - math.log(spread) - _LOG_ROOT_TWO_PI - 0.5 + best.value
    return SkewNormalFit(
        shape=best.slope * scale,
        location=centre - spread * best.d,
        scale=spread * scale,
        log_likelihood=float(values.size * per_value),
        n=values.size,
        converged=best.converged,
        at_boundary=abs(best.slope) > _STEEPEST,
    )


def _centre_and_spread(name: str, values: Floats) -> _Place:
    least, most = float(values.min()), float(values.max())
    if values.size < FEWEST or not np.any((values != least) & (values != most)):
        raise NotEnoughEvidence(
            f"{name} holds {values.size} value(s), {np.unique(values).size} of them different; a "
            f"skew-normal fit takes at least {FEWEST}, with 3 different.",
            hint="Draw more references.",
        )
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        centre = float(values.mean())
        spread = float(np.sqrt(np.mean((values - centre) ** 2)))
    if not 1e-150 < spread < 1e150:
        raise InvalidInput(f"{name} runs from {least} to {most}: its variance is not a float.")
    return centre, spread


def _tops(standard: Floats) -> list[_Point]:
    """Every top that is reached; on many values, from those of a subsample where these serve."""
    starts = [_by_skewness(float(np.mean(standard * standard**2))), *map(_by_shape, _STARTS)]
    few = standard[:: -(-standard.size // _SUBSAMPLE)]
    if few.size < standard.size:
        tops = [_climb(standard, start) for start in _likely(few, starts)]
        near = all(point.converged and point.rounds <= _CLOSE_BY for point in tops)
        if tops and near and all(point.slope * starts[0][1] > 0.0 for point in tops):
            return tops
    return [_climb(standard, start) for start in starts]


def _likely(few: Floats, starts: list[_Place]) -> list[_Place]:
    """The tops of a subsample, less those that it can tell from the highest; none if that is far.

    "Far" is a climb that went on towards the half-normal law.
    """
    centre, spread = float(few.mean()), float(few.std())
    if spread == 0.0:
        return []
    tops = [_climb((few - centre) / spread, start) for start in starts]
    best = max(tops, key=lambda point: point.value)
    places: dict[str, _Place] = {}
    for point in tops if best.converged else []:
        if point.value >= best.value - 10.0 / few.size:
            place = spread * point.d - centre, point.slope / spread
            places.setdefault(f"{place[0]:.2g} {place[1]:.2g}", place)
    return list(places.values())


def _by_shape(shape: float) -> _Place:
    """(d, λ) of a law with this shape, mean 0 and variance 1."""
    mean = _RIDGE * shape / math.hypot(1.0, shape)
    scale = 1.0 / math.sqrt(1.0 - mean**2)
    return scale * mean, shape / scale


def _by_skewness(skew: float) -> _Place:
    """(d, λ) of the law with this skewness, as near to it as the family goes."""
    held = min(max(abs(skew), 1e-6), 0.99)
    ratio = math.copysign((2.0 * held / (4.0 - math.pi)) ** (1.0 / 3.0), skew)
    delta = ratio / math.hypot(1.0, ratio) / _RIDGE
    return _by_shape(delta / math.sqrt(1.0 - delta**2))


def _climb(standard: Floats, start: _Place) -> _Point:
    """Newton's method with halved steps, uphill from ``start`` to a top."""
    here = _look(standard, *start)
    for done in range(_ROUNDS):
        bends, directions = np.linalg.eigh(-here.hessian)
        bends = np.maximum(np.abs(bends), 1e-10 * np.abs(bends).max())
        step = directions @ ((directions.T @ here.gradient) / bends)
        gain = 0.5 * float(step @ here.gradient)
        flat = abs(here.slope) <= 1.001 * _GENTLEST
        if gain <= (1e-11 if flat else max(1e-10 / standard.size, 1e-14)):
            # The last step is too small to show in the value, but not in the place.
            d, slope = _moved(standard, here, step)
            return replace(here, d=d, slope=slope, rounds=done, converged=True)
        for halvings in range(40):
            there = _look(standard, *_moved(standard, here, 0.5**halvings * step))
            if there.value > here.value:
                break
        else:
            break
        here = there
        if abs(here.slope) >= _STEEPEST:
            break
    return here


def _steep(slope: float) -> bool:
    return abs(slope) > 1.0


def _edge(standard: Floats, slope: float) -> float:
    """The outermost value on the side of the short tail."""
    return float(standard.min() if slope > 0.0 else standard.max())


def _moved(standard: Floats, here: _Point, step: Floats) -> _Place:
    """The place one step from here: by (d off the ridge, λ³) or, where steep, by (w, 1/λ).

    ``w`` is λ (x + d) of the outermost value. No step changes λ more than tenfold where it is
    steep, or passes the limits within which f can be told from its limits.
    """
    if not _steep(here.slope):
        cube = here.slope**3 + float(step[1])
        slope = math.copysign(min(max(abs(cube) ** (1.0 / 3.0), _GENTLEST), 10.0), cube)
        return here.d + float(step[0]) + _RIDGE * (slope - here.slope), slope
    edge = _edge(standard, here.slope)
    w = (here.d + edge) * here.slope + float(step[0])
    times = min(max(1.0 + float(step[1]) * here.slope, 0.1), 10.0)
    slope = math.copysign(min(abs(here.slope) / times, _STEEPEST), here.slope)
    return w / slope - edge, slope


def _look(standard: Floats, d: float, slope: float) -> _Point:
    """The function and its derivatives by the coordinates of ``_moved``, in one pass."""
    log_phi, r0, r1, q0, q1, q2 = _means(standard, d, slope)
    square = 1.0 + d * d
    value = log_phi - 0.5 * math.log(square)
    first, second = -d / square, (d * d - 1.0) / square**2
    if not _steep(slope):
        by_d, by_d_d, cross = first + slope * r0, second + slope**2 * q0, r0 + slope * q1
        along = _RIDGE * by_d + r1
        mixed = _RIDGE * by_d_d + cross
        twice = _RIDGE**2 * by_d_d + 2.0 * _RIDGE * cross + q2
        cubed = 3.0 * slope**2
        gradient = [by_d, along / cubed]
        corner = (twice - 2.0 * along / slope) / cubed**2
        hessian = [[by_d_d, mixed / cubed], [mixed / cubed, corner]]
    else:
        w = (d + _edge(standard, slope)) * slope
        rv, qv = slope * r1 - w * r0, slope * q1 - w * q0
        qvv = slope**2 * q2 - 2.0 * slope * w * q1 + w**2 * q0
        gradient = [first / slope + r0, first * w - rv * slope]
        cross = second * w / slope + first - qv * slope
        corner = second * w**2 + (qvv + 2.0 * rv) * slope**2
        hessian = [[second / slope**2 + q0, cross], [cross, corner]]
    return _Point(d, slope, value, np.array(gradient), np.array(hessian))


def _means(standard: Floats, d: float, slope: float) -> Floats:
    """Means of log Φ(w); of its first derivative r times 1, u; of its second q times 1, u, u²."""
    totals = np.zeros(6)
    for first in range(0, standard.size, _BLOCK):
        u = standard[first : first + _BLOCK] + d
        w = slope * u
        log_phi = special.log_ndtr(w)
        r = np.exp(-0.5 * w * w - _LOG_ROOT_TWO_PI - log_phi)
        q = -r * (w + r)
        qu = q * u
        # Not by ``@``: on vectors of this length its threads cost more than the sums.
        totals += [log_phi.sum(), r.sum(), (r * u).sum(), q.sum(), qu.sum(), (qu * u).sum()]
    return totals / standard.size


def _limit(standard: Floats, sign: float) -> _Point:
    """The half-normal law: all values on one side of a location just beyond the outermost."""
    edge = _edge(standard, sign)
    slope = sign * LARGEST_SHAPE / math.hypot(1.0, edge)
    # Six units of w away from the edge, log Φ is 0 to nine digits for every value.
    d = 6.0 / slope - edge
    value = float(special.log_ndtr(6.0)) - 0.5 * math.log1p(d * d)
    return _Point(d, slope, value, np.zeros(2), np.zeros((2, 2)), converged=True)
