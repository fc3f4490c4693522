"""RMIA: is an example more surprising a gain of the target model than other examples are?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.prediction.shadow_models import Bools, check_sides, read_seen
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]

# Ratios whose relative distance is within the rounding of a mean and a quotient are equal. This is
# a multiple of that of one addition; a mean of m numbers has m of them.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Rmia:
    """A score for each example.

    Attributes:
        scores: Share of the other examples that the example beats, shape ``(n,)``, higher = more
            likely seen.
        ratios, other_ratios: p(x|target) / p(x) of the examples and of the others.
        gamma, a: As given.
        n_references, n_others: Reference models, and other examples.
        mode: "offline" or "online", by how p(x) was had.
    """

    scores: Floats
    ratios: Floats
    other_ratios: Floats
    gamma: float
    a: float
    n_references: int
    n_others: int
    mode: str


def rmia(
    *,
    target: ArrayLike,
    reference: ArrayLike,
    other_target: ArrayLike,
    other_reference: ArrayLike,
    gamma: float = 1.0,
    a: float = 0.3,
    seen: ArrayLike | None = None,
    other_seen: ArrayLike | None = None,
) -> Rmia:
    r"""Hold each example's likelihood ratio against those of other examples.

    .. math:: \mathrm{score}(x) =
        \Pr_z\Big[\frac{p(x|\theta)/p(x)}{p(z|\theta)/p(z)} \ge \gamma\Big]

    p(x) is what a model gives x that saw it as often as not. Offline, where no reference model saw
    x, it is guessed from those: (1+a)/2 times their mean, plus (1-a)/2. Online (``seen``) it is the
    mean of the mean over the models that saw x and the mean over those that did not. Ratios are
    sorted, never laid out in pairs. The rule is read as p(x|θ)/p(x) ≥ γ p(z|θ)/p(z), which also
    holds where p(z|θ) is 0. Both ratios are rounded: means of equal numbers differ in the last
    digit by the order and number of their terms. So sides that are apart by no more than that
    rounding, a share of 4 (models + 4) epsilon (7·10⁻¹⁵ for four models), are equal, and count.

    Args:
        target: The attacked model's probability of each example's label, shape ``(n,)``.
        reference: The reference models', shape ``(models, n)``.
        other_target, other_reference: The same of examples that the target did not see, shapes
            ``(z,)`` and ``(models, z)``.
        gamma: How many times the other's ratio; at least 1 in the paper.
        a: The offline guess, 0 to 1: how much lower p is on average where x was not seen.
        seen: Which reference saw which example, shape ``(models, n)``; absent: none saw any.
        other_seen: The same of the others, shape ``(models, z)``.

    Guarantees:
        * Equal to counting over all pairs.
        * A target that gives everything what p(x) is, has scores of 1 at gamma 1 (ties count),
          however the sums that make p(x) are rounded.
        * A larger gamma never raises a score.

    Raises:
        InvalidInput: Faulty arrays or settings, probabilities outside 0 to 1, all listed at once;
            a p(x) of 0.
        NotEnoughEvidence: With ``seen``, an example that no reference saw, or that all did.

    Example:
        >>> attack = rmia(target=[0.9, 0.5], reference=[[0.3, 0.5]], other_target=[0.5, 0.6, 0.8],
        ...              other_reference=[[0.5, 0.5, 0.5]])
        >>> attack.scores.round(2).tolist()
        [1.0, 0.33]
    """
    faults: list[str] = []
    _check_number("gamma", gamma, 0.0, np.inf, faults)
    _check_number("a", a, 0.0, 1.0, faults)
    own = _probabilities("target", target, 1, faults)
    table = _probabilities("reference", reference, 2, faults)
    others = _probabilities("other_target", other_target, 1, faults)
    other_table = _probabilities("other_reference", other_reference, 2, faults)
    for name, row, rows in (("", own, table), ("other_", others, other_table)):
        if row is not None and rows is not None and row.size != rows.shape[1]:
            faults.append(
                f"{name}target has {row.size} entries for {rows.shape[1]} of {name}reference"
            )
    mask, other_mask = (
        None if given is None else read_seen(given, getattr(rows, "shape", None), faults, name=name)
        for name, given, rows in (
            ("seen", seen, table),
            ("other_seen", other_seen, other_table),
        )
    )
    if table is not None and other_table is not None and table.shape[0] != other_table.shape[0]:
        faults.append(
            f"reference has {table.shape[0]} models and other_reference {other_table.shape[0]}"
        )
    require(faults)
    if own is None or table is None or others is None or other_table is None:
        raise InvalidInput("target, reference, other_target, other_reference must be arrays.")
    ratios = own / _typical("reference", table, mask, float(a))
    other_ratios = others / _typical("other_reference", other_table, other_mask, float(a))
    with np.errstate(over="ignore"):  # an infinite bar is one that nothing passes
        bars = np.sort(gamma * other_ratios) * (1.0 - ROUNDING * (table.shape[0] + 4))
    beaten = np.searchsorted(bars, ratios, side="right")
    return Rmia(
        scores=beaten / others.size,
        ratios=ratios,
        other_ratios=other_ratios,
        gamma=float(gamma),
        a=float(a),
        n_references=table.shape[0],
        n_others=others.size,
        mode="offline" if mask is None else "online",
    )


def _typical(name: str, table: Floats, seen: Bools | None, a: float) -> Floats:
    """p(x), offline or online."""
    if seen is None:
        typical = (1.0 + a) / 2.0 * table.mean(axis=0) + (1.0 - a) / 2.0
    else:
        check_sides(seen, least_seen=1, least_unseen=1, what="p(x) from both sides")
        ins, outs = seen.sum(axis=0), (~seen).sum(axis=0)
        within = np.einsum("mn,mn->n", table, seen.astype(np.float64)) / ins
        without = np.einsum("mn,mn->n", table, (~seen).astype(np.float64)) / outs
        typical = (within + without) / 2.0
    # A probability that its own ratio would turn into infinity is no better than 0.
    nil = np.flatnonzero(typical < np.finfo(np.float64).tiny)
    if nil.size:
        raise InvalidInput(
            f"{name} gives {nil.size} example(s) probability 0 under all models (example "
            f"{nil[0]}), so that no ratio to it exists.",
            hint="Pass probabilities in float64, or an a under 1.",
        )
    return np.asarray(typical)


def _probabilities(name: str, given: ArrayLike, ndim: int, faults: list[str]) -> Floats | None:
    array = read_floats(name, given, ndim, faults)
    if array is not None and (array.min() < 0.0 or array.max() > 1.0):
        faults.append(f"{name} holds values that are no probabilities (outside 0 to 1)")
        return None
    return array


def _check_number(name: str, given: float, low: float, high: float, faults: list[str]) -> None:
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        faults.append(f"{name}={given!r} is not a number")
    elif not low <= given <= high or (name == "gamma" and not 0.0 < given < np.inf):
        faults.append(f"{name}={given} is outside its range, {low:g} to {high:g}")
