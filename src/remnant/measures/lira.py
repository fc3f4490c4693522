"""LiRA: was an example seen, judged by models that saw it and models that did not?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.shadow_models import (
    LEAST_A_SIDE,
    Bools,
    Side,
    check_sides,
    default_variance,
    pieces,
    read_scores,
    read_seen,
    refuse_alike,
    side_of,
    spread_is_rounding,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LiraMode = Literal["online", "offline_one_sided", "offline_symmetric"]
LiraCentre = Literal["mean", "median"]
LiraVariance = Literal["auto", "per_example", "pooled", "global"]


@dataclass(frozen=True, slots=True, eq=False)
class Lira:
    """A score for each example, and the convention by which it was made.

    Conventions differ by many nats where shadow models are few: compare scores of one only.

    Attributes:
        scores: Shape ``(n,)``, in nats, higher = more likely seen.
        n_seen, n_unseen: Shadow models on each side of each example.
        mode, centre, ddof: As given.
        variance: As given; for "auto" the one that was taken.
        convention: All four in one line.
    """

    scores: Floats
    n_seen: Ints
    n_unseen: Ints
    mode: LiraMode
    centre: LiraCentre
    variance: LiraVariance
    ddof: int
    convention: str


def lira(
    *,
    target: ArrayLike,
    shadow: ArrayLike,
    seen: ArrayLike | None = None,
    mode: LiraMode = "online",
    centre: LiraCentre = "mean",
    variance: LiraVariance = "auto",
    ddof: int = 1,
) -> Lira:
    r"""Compare what a model says of each example with what shadow models say of it.

    Under the models that saw an example its score is taken to be normal, and so it is under those
    that did not; φ is the target's.

    =================  =========================================================================
    mode               score
    =================  =========================================================================
    online             log N(φ; in) - log N(φ; out)
    offline_one_sided  -log Pr[N(out) ≥ φ]: the paper's one-sided test, as a log of its p-value
    offline_symmetric  -log N(φ; out), as released codes have it: what is *unlikely* looks seen,
                       on either side
    =================  =========================================================================

    Variances are taken about each example's own mean, also where ``centre`` is the median:
    "per_example" takes each example's own; "pooled" one for all examples, their squared distances
    added up over all of them; "global" that of all scores of a side about their common mean,
    without regard to the example. "auto" is "pooled" under 64 shadow models and "per_example" from
    64 on, and refuses examples with fewer than 8 shadow models on a side: a log ratio of 4 or more
    is then too often wrong. Of examples that no model memorised, per-example variances give one to
    19 % with 2 models a side, 8.5 % with 3, 4.7 % with 4 and 1.0 % with 8; a pooled variance to
    0.5, 0.2, 0.1 and 0.0 %, or to 3 % with 5 models and 1 % with 8 where it is pooled over few
    examples or examples of very different deviations (``benchmarks/lira_false_alarms.py``).

    Args:
        target: The attacked model's scores, shape ``(n,)``: log-odds or logit gaps, higher = more
            certain of the label.
        shadow: The shadow models' scores of the same examples, shape ``(models, n)``.
        seen: Which shadow model saw which example, same shape. Offline modes use the models that
            did not; without ``seen`` none did.
        mode, centre, variance: As above.
        ddof: 1 for unbiased variances, 0 for the mean of squares.

    Guarantees:
        * Finite; no density is ever computed outside logs.
        * Online, scaling and shifting all scores of an example changes nothing ("per_example").
        * Online, exchanging seen and unseen models changes the sign.

    Raises:
        InvalidInput: Faulty arrays or settings, all listed at once.
        NotEnoughEvidence: An example with too few models on a side (8 for "auto", 2 for
            "per_example", 1 else), or with scores that are all alike where its own variance is
            taken.

    Example:
        >>> shadow = [[5.0, 1.0], [6.0, 0.0], [1.0, 5.0], [0.0, 4.0]]
        >>> seen = [[True, False], [True, False], [False, True], [False, True]]
        >>> found = lira(target=[5.5, 0.5], shadow=shadow, seen=seen, variance="per_example")
        >>> found.scores.round(1).tolist()
        [25.0, -16.0]
        >>> found.convention
        'online, mean, per_example variance, ddof 1'
    """
    faults: list[str] = []
    for name, given, allowed in (
        ("mode", mode, get_args(LiraMode)),
        ("centre", centre, get_args(LiraCentre)),
        ("variance", variance, get_args(LiraVariance)),
    ):
        if given not in allowed:
            faults.append(f"{name}={given!r} is not one of {', '.join(allowed)}")
    if isinstance(ddof, bool) or ddof not in (0, 1):
        faults.append(f"ddof={ddof!r} is neither 0 nor 1")
    if seen is None and mode == "online":
        faults.append("mode='online' needs seen")
    own = read_scores("target", target, 1, faults)
    table = read_scores("shadow", shadow, 2, faults)
    shape = None if table is None else table.shape
    mask = None if seen is None else read_seen(seen, shape, faults)
    if own is not None and shape is not None and own.size != shape[1]:
        faults.append(f"target has {own.size} entries for {shape[1]} examples of shadow")
    require(faults)
    if own is None or table is None:
        raise InvalidInput("target and shadow must be arrays of numbers.")
    if mask is None:
        mask = np.zeros(table.shape, dtype=np.bool_)
    online = mode == "online"
    if variance == "auto":
        variance = default_variance(
            mask, least_seen=LEAST_A_SIDE if online else 0, least_unseen=LEAST_A_SIDE
        )
    least = 2 if variance == "per_example" else 1
    what = f"a {variance} variance"
    check_sides(mask, least_seen=least if online else 0, least_unseen=least, what=what)

    z_out, spread_out = _standardised(own, table, ~mask, centre, variance, ddof)
    if online:
        z_in, spread_in = _standardised(own, table, mask, centre, variance, ddof)
        scores = np.log(spread_out / spread_in) + (z_out - z_in) * (z_out + z_in) / 2.0
    elif mode == "offline_one_sided":
        scores = -special.log_ndtr(-z_out)
    else:
        scores = z_out**2 / 2.0 + np.log(spread_out) + math.log(2.0 * math.pi) / 2.0
    return Lira(
        scores=np.asarray(scores),
        n_seen=mask.sum(axis=0),
        n_unseen=(~mask).sum(axis=0),
        mode=mode,
        centre=centre,
        variance=variance,
        ddof=int(ddof),
        convention=f"{mode}, {centre}, {variance} variance, ddof {ddof}",
    )


def _standardised(
    target: Floats, table: Floats, chosen: Bools, centre: str, variance: str, ddof: int
) -> tuple[Floats, Floats]:
    """How many deviations the target lies above the chosen models' centre; the deviations."""
    count, middle, mean, squares, alike = (np.empty(target.size) for _ in range(5))
    for columns in pieces(*table.shape):
        scores, mask = table[:, columns], chosen[:, columns]
        side = side_of(scores, mask)
        count[columns], mean[columns], squares[columns] = side.count, side.mean, side.squares
        middle[columns] = side.mean if centre == "mean" else _medians(scores, mask, side.count)
        alike[columns] = spread_is_rounding(side.squares / side.count, scores)
    own = Side(count.astype(np.int64), mean, squares)
    if variance == "per_example":
        refuse_alike(alike != 0.0, hint='Use variance="pooled", or scores that do not saturate.')
        deviation = np.sqrt(own.squares / (own.count - ddof))
    else:
        deviation = np.full(target.size, _common_deviation(own, variance, ddof))
    return (target - middle) / deviation, deviation


def _common_deviation(side: Side, variance: str, ddof: int) -> float:
    models = int(side.count.sum())
    if variance == "pooled":
        squares, freedom = float(side.squares.sum()), models - ddof * side.count.size
    else:
        common = float(side.count @ side.mean) / models
        squares = float(side.squares.sum() + side.count @ (side.mean - common) ** 2)
        freedom = models - ddof
    if freedom < 1 or not squares > 0.0:
        raise NotEnoughEvidence(
            f"a {variance} variance needs models that differ; {models} scores of "
            f"{side.count.size} example(s) show none.",
            hint="Train more shadow models.",
        )
    return math.sqrt(squares / freedom)


def _medians(scores: Floats, chosen: Bools, count: Ints) -> Floats:
    """The median of the chosen scores of each column: what is not chosen is sorted to the end."""
    rows = np.where(chosen, scores, np.inf).T.copy()
    rows.sort(axis=1)
    column = np.arange(count.size)
    return np.asarray((rows[column, (count - 1) // 2] + rows[column, count // 2]) / 2.0)
