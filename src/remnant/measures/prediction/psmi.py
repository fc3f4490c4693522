"""Pointwise sliced mutual information: does a sample's hidden state look like its label?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.prediction.hidden_states import (
    HiddenStates,
    classes_under,
    read_hidden,
    tensor_of,
)
from remnant.measures.statistics.checks import check_rng, read_floats

# The walk is torch's, which is loaded when it is called for.
if TYPE_CHECKING:
    from torch import Tensor

    from remnant.measures.prediction.psmi_walk import Basis, LogExcess, Spread

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Psmi:
    """PSMI of each sample, in nats.

    Attributes:
        values: Shape ``(n,)``, in the order given; low = the hidden state does not look like the
            label. At or under 0 the paper predicts that the sample will be memorised.
        risk: ``-values``: higher = more likely memorised.
        smi: The mean of ``values``, sliced mutual information.
        standard_error: Of each value, over directions alone: how far another draw of as many
            directions would move it.
        n, n_directions: How many samples and directions.
        ddof: Of the classes' variances.
        precision: "float32" or "float64", that of the projections.
        method: The estimate, in words.
    """

    values: Floats
    risk: Floats
    smi: float
    standard_error: Floats
    n: int
    n_directions: int
    ddof: int
    precision: str
    method: str


@dataclass(frozen=True, slots=True, eq=False)
class PsmiFit:
    """The classes' laws along fixed directions, against which any samples can be held.

    Attributes:
        classes: The labels, sorted.
        basis: The classes' shares and means, the directions, the ddof.
        spread: The classes' deviations along the directions.

    What is large is kept where the fitted samples were: on their GPU, or in memory.
    """

    classes: NDArray[Any]
    basis: Basis
    spread: Spread

    def evaluate(self, *, hidden: ArrayLike | Tensor, labels: ArrayLike | Tensor) -> Psmi:
        """PSMI of these samples under the fitted laws, computed where the samples are.

        All fitted classes stay in the mixture, whether or not these samples have them.

        Raises:
            InvalidInput: Arrays that do not fit, labels that were not fitted, features more than
                1e60 times further from their class than any that was fitted.
        """
        from remnant.measures.prediction.psmi_walk import evaluation_walk

        given = read_hidden(
            hidden,
            labels,
            faults=[],
            known=self.classes,
            width=self.basis.centres.shape[1],
            on_gpu=True,
        )
        return _result(self, given, evaluation_walk(given, self.basis, self.spread))


def psmi(
    *,
    hidden: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    directions: int | ArrayLike | Tensor = 2000,
    rng: np.random.Generator | None = None,
    ddof: int = 0,
) -> Psmi:
    r"""How much each sample's hidden state says about its label, seen along random directions.

    .. math:: \mathrm{PSMI}(x, y) = \frac1K \sum_k
        \log \frac{N(\theta_k^\top x; \mu_{yk}, \sigma_{yk})}
                  {\sum_c f_c\, N(\theta_k^\top x; \mu_{ck}, \sigma_{ck})}

    with the mean, variance and share of each class taken from these samples. Directions are drawn
    from the unit sphere, or given. A sample whose hidden state belongs to another class than its
    label has a low PSMI; Dentan et al. predict that it will be memorised where PSMI ≤ 0.

    Projections are made in the precision of ``hidden``: float32 (or less) in float32, unless the
    numbers ask for more, all else in float64. A tensor on a GPU is worked on there and not copied
    to the host, without TF32 whatever is switched on; arrays and other tensors are worked on by
    torch on the CPU. Beside one copy of ``hidden`` only a block of projections is held. A class
    that is a point along a direction (all its hidden states alike) is taken to be very narrow, a
    millionth of the common spread: its own samples get the most that their class can have,
    -log f_y, and it takes nothing from samples elsewhere.

    Args:
        hidden: Hidden states, shape ``(n, d)``; an array or a tensor.
        labels: Shape ``(n,)``: whole numbers, strings or booleans.
        directions: How many to draw, at least 2; or an array or tensor ``(K, d)``, of any length
            each.
        rng: Draws the directions; only where ``directions`` is a number.
        ddof: 0 as the ``psmi`` package has it, 1 as in the paper's own code.

    Guarantees:
        * Finite, and at most -log of the share of the sample's class.
        * Shifting or scaling all hidden states changes nothing (up to rounding); neither does the
          length or the sign of a direction.
        * The samples keep their order; their order and the names of the classes are of no account.
        * The same as ``fit_psmi(...).evaluate`` on the same samples.

    Raises:
        InvalidInput: Arrays that do not fit, NaN, hidden states that are all alike (along a given
            direction), fewer than two classes; all that can be seen at once is listed.
        NotEnoughEvidence: A class with a single sample.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.repeat([0, 1], 100)
        >>> hidden = rng.normal(size=(200, 5)) + 3.0 * labels[:, None]
        >>> labels[0] = 1  # a wrong label
        >>> information = psmi(hidden=hidden, labels=labels, directions=500, rng=rng)
        >>> int(information.risk.argmax()), bool(information.values[0] < 0 < information.smi)
        (0, True)
    """
    return _result(*_fitted(hidden, labels, directions, rng, ddof, scored=True))


def fit_psmi(
    *,
    hidden: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    directions: int | ArrayLike | Tensor = 2000,
    rng: np.random.Generator | None = None,
    ddof: int = 0,
) -> PsmiFit:
    """The classes' laws of ``psmi``, to hold other samples against.

    Arguments and faults as in ``psmi``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> labels = np.repeat([0, 1], 100)
        >>> hidden = rng.normal(size=(200, 5)) + 3.0 * labels[:, None]
        >>> fit = fit_psmi(hidden=hidden, labels=labels, directions=500, rng=rng)
        >>> far, near = fit.evaluate(hidden=[[3.0] * 5, [0.0] * 5], labels=[0, 0]).values
        >>> bool(far < 0 < near)
        True
    """
    return _fitted(hidden, labels, directions, rng, ddof, scored=False)[0]


def _fitted(
    hidden: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    directions: int | ArrayLike | Tensor,
    rng: np.random.Generator | None,
    ddof: int,
    *,
    scored: bool,
) -> tuple[PsmiFit, HiddenStates, LogExcess]:
    from remnant.measures.prediction.psmi_walk import fit_walk

    faults: list[str] = []
    if isinstance(ddof, bool) or ddof not in (0, 1):
        faults.append(f"ddof={ddof!r} is neither 0 nor 1")
    drawn = _read_count(directions, rng, faults)
    along = _read_directions(directions, rng, faults) if drawn is None else None
    width = None if along is None else along.shape[1]
    given = read_hidden(hidden, labels, faults=faults, width=width, on_gpu=True)
    if given.classes.size < 2:
        raise InvalidInput("labels hold one class; it takes two to tell them apart.")
    if few := classes_under(given, 2):
        raise NotEnoughEvidence(
            f"a class needs two samples to have a variance; too few: {few}.",
            hint="Leave these samples out, or join classes.",
        )
    if rng is not None and drawn is not None:
        along = rng.standard_normal((drawn, given.hidden.shape[1]))
    if along is None:
        raise InvalidInput("directions must be a number or an array.")
    basis, spread, sums = fit_walk(given, along, ddof=int(ddof), scored=scored)
    return PsmiFit(given.classes, basis, spread), given, sums


def _read_count(
    directions: object, rng: np.random.Generator | None, faults: list[str]
) -> int | None:
    """The number of directions to draw; None where they are given."""
    if not isinstance(directions, (int, np.integer)):
        return None
    if isinstance(directions, bool) or directions < 2:
        faults.append(f"directions={directions!r} is neither an array nor a number of 2 or more")
    check_rng(rng, faults)
    return int(directions)


def _read_directions(
    directions: Any, rng: np.random.Generator | None, faults: list[str]
) -> Floats | Tensor | None:
    """The directions, their largest entries scaled to 1 so that squares are in range."""
    if rng is not None:
        faults.append("rng draws nothing where directions are given")
    scaled = _scaled(directions, faults)
    if scaled is None:
        return None
    along, zero = scaled
    if along.shape[0] < 2:
        faults.append("directions hold one vector; it takes two to tell an error")
    if zero:
        faults.append(f"directions hold {zero} zero vector(s)")
        return None
    return along


def _scaled(directions: Any, faults: list[str]) -> tuple[Floats | Tensor, int] | None:
    """The directions, scaled, and how many are zero."""
    if (tensor := tensor_of(directions)) is not None:
        from remnant.measures.prediction.psmi_samples import read_tensor_directions, settle

        try:
            directions = settle(tensor)
        except (TypeError, RuntimeError):
            faults.append("directions is not an array of numbers")
            return None
        if (tensor := tensor_of(directions)) is not None:
            return read_tensor_directions(tensor, faults)
    along = read_floats("directions", directions, 2, faults)
    if along is None:
        return None
    longest = np.abs(along).max(axis=1, keepdims=True)
    zero = int(np.sum(longest == 0.0))
    return (along if zero else along / longest), zero


def _result(fit: PsmiFit, given: HiddenStates, sums: LogExcess) -> Psmi:
    number = fit.basis.directions.shape[0]
    mean = sums.total / number
    variance = np.maximum(sums.squares / number - mean**2, 0.0)
    values, error = np.empty((2, mean.size))
    shares = fit.basis.shares.cpu().numpy()
    values[given.order] = np.repeat(-np.log(shares), given.counts) - mean
    error[given.order] = np.sqrt(variance / (number - 1))
    return Psmi(
        values=values,
        risk=-values,
        smi=float(values.mean()),
        standard_error=error,
        n=values.size,
        n_directions=number,
        ddof=fit.basis.ddof,
        precision=sums.precision,
        method=f"{number} directions; classes normal along each; mixture by share",
    )
