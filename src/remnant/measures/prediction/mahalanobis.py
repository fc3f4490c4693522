"""Mahalanobis distance of each hidden state from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.prediction.hidden_states import HiddenStates, classes_under, read_hidden

Floats = NDArray[np.float64]
Work = NDArray[Any]

# A component with less than this share of the largest one's variance is rounding.
RANK = 1e-10
# Samples are projected in pieces.
PIECE = 1024
# Fewer samples than this for a component, and a distance says more about luck than about a sample.
SAMPLES_A_COMPONENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Mahalanobis:
    """How far out each sample lies.

    Attributes:
        distances: Shape ``(n,)``, in the order given.
        risk: ``distances``: the further out, the likelier memorised.
        components: Principal components that were kept.
        n_classes: Classes with a mean of their own; 1 where no labels were given.
        n: Samples.
        left_out: Whether each sample was left out of the mean and covariance it was held against.
    """

    distances: Floats
    risk: Floats
    components: int
    n_classes: int
    n: int
    left_out: bool


def mahalanobis(
    *,
    hidden: ArrayLike,
    labels: ArrayLike | None = None,
    components: int = 500,
    leave_one_out: bool = True,
) -> Mahalanobis:
    r"""The distance of each hidden state from the law of the other samples' hidden states.

    Hidden states are first projected to their principal components, as many as ``components`` or
    as vary at all. The distance is √(uᵀ S⁻¹ u), u being the sample less the mean and S the unbiased
    covariance, both of the *other* samples, as in the paper. With ``labels`` u is taken from the
    mean of the sample's own class, and S is the covariance within classes, common to all.

    Leaving out is a closed form: with the scatter W of all n samples in C classes, m of them in the
    sample's own, and h = uᵀ W⁻¹ u at full means,
    d² = (n - 1 - C) (m/(m-1))² h / (1 - h m/(m-1)).
    The principal components are those of all samples.

    Args:
        hidden: Hidden states, shape ``(n, d)``.
        labels: Shape ``(n,)``; absent: one law for all, the paper's.
        components: The most principal components to keep; 500 in the paper.
        leave_one_out: False holds each sample against all, itself included.

    Guarantees:
        * Shifting or scaling all hidden states, or turning them, changes nothing.
        * The order of samples is of no account; the result keeps it.
        * The same as fitting to all samples but one, for each in turn.

    Raises:
        InvalidInput: Arrays that do not fit, NaN, hidden states that are all alike.
        NotEnoughEvidence: A class with one sample, fewer samples than components and classes need,
            or a sample without which a component would not vary.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> hidden = rng.normal(size=(100, 3)) * [1.0, 10.0, 100.0]
        >>> hidden[7] = [9.0, 0.0, 0.0]
        >>> int(mahalanobis(hidden=hidden).risk.argmax())
        7
    """
    faults: list[str] = []
    whole = isinstance(components, (int, np.integer)) and not isinstance(components, bool)
    if not whole or components < 1:
        faults.append(f"components={components!r} is not a whole number of at least 1")
    given = read_hidden(hidden, labels, faults=faults)
    if few := classes_under(given, 2):
        raise NotEnoughEvidence(
            f"a class needs two samples; too few: {few}.",
            hint="Leave these samples out, or join classes.",
        )
    reduced = _principal(given.hidden, int(components))
    n, kept, classes = reduced.shape[0], reduced.shape[1], given.classes.size
    if n - classes - kept < 2:
        raise NotEnoughEvidence(
            f"{n} samples in {classes} class(es) are too few for {kept} components.",
            hint=f"Ask for at most {max(n - classes - 2, 1)} components, or take more samples.",
        )
    within = HiddenStates(reduced, given.classes, given.order, given.edges)
    apart = within.residuals(within.centres(), np.dtype(np.float64))
    squared = _leverage(apart)
    own = np.repeat(given.counts, given.counts).astype(np.float64)
    if leave_one_out:
        grown = own / (own - 1.0)
        rest = 1.0 - squared * grown
        alone = int(np.sum(rest < RANK))
        if alone:
            raise NotEnoughEvidence(
                f"without {alone} of the samples, each taken alone, a component would not vary: "
                "their distance from the others is infinite.",
                hint="Ask for fewer components.",
            )
        squared = (n - 1 - classes) * grown**2 * squared / rest
    else:
        squared = (n - classes) * squared
    distances = np.empty(n)
    distances[given.order] = np.sqrt(squared)
    return Mahalanobis(
        distances=distances,
        risk=distances.copy(),
        components=kept,
        n_classes=classes,
        n=n,
        left_out=bool(leave_one_out),
    )


def _principal(hidden: Work, most: int) -> Floats:
    """The samples in their principal components, each scaled to unit variance."""
    # Features of very different magnitude would lose their squares: the largest is scaled to one.
    centre = hidden.mean(axis=0, dtype=np.float64)
    largest = max(
        float(np.abs(hidden[first : first + PIECE] - centre).max())
        for first in range(0, hidden.shape[0], PIECE)
    )
    if largest <= 1e-14 * float(np.abs(centre).max()):
        raise InvalidInput("hidden is the same for all samples: nothing varies.")
    scatter = np.zeros((hidden.shape[1], hidden.shape[1]))
    for first in range(0, hidden.shape[0], PIECE):
        piece = (hidden[first : first + PIECE] - centre) / largest
        scatter += piece.T @ piece
    variances, axes = linalg.eigh(scatter)
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = min(int(np.sum(variances > RANK * variances[0])), most)
    onto = axes[:, :kept] / np.sqrt(variances[:kept])
    reduced = np.empty((hidden.shape[0], kept))
    for first in range(0, hidden.shape[0], PIECE):
        piece = (hidden[first : first + PIECE] - centre) / largest
        reduced[first : first + PIECE] = piece @ onto
    return reduced


def _leverage(apart: Floats) -> Floats:
    """uᵀ W⁻¹ u of every row, W being the rows' scatter."""
    variances, axes = linalg.eigh(apart.T @ apart)
    if not variances[0] > RANK * variances[-1]:
        raise NotEnoughEvidence(
            "some component does not vary within classes: distances along it are infinite.",
            hint="Ask for fewer components, or leave the labels out.",
        )
    turned = apart @ (axes / np.sqrt(variances))
    return np.asarray(np.einsum("nk,nk->n", turned, turned))


def bearable_mahalanobis(*, hidden: ArrayLike, components: int = 500) -> Mahalanobis:
    """``mahalanobis`` with as many components as the samples bear, at most ``components``.

    It takes at most a quarter as many components as there are samples, and half as many again and
    again where a component would not vary without one of the samples.

    Raises:
        InvalidInput: As ``mahalanobis``.
        NotEnoughEvidence: Not even one component does.

    Example:
        >>> hidden = np.random.default_rng(0).normal(size=(100, 3)) * [1.0, 10.0, 100.0]
        >>> hidden[1:, 0] = 0.0  # one sample has a feature for itself
        >>> bearable_mahalanobis(hidden=hidden).components
        1
    """
    shape = np.shape(hidden)
    most = components
    if len(shape) == 2:
        most = max(1, min(components, shape[1], shape[0] // SAMPLES_A_COMPONENT))
    while True:
        try:
            return mahalanobis(hidden=hidden, components=most)
        except NotEnoughEvidence:
            if most == 1:
                raise
            most //= 2
