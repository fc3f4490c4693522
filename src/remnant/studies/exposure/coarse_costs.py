"""Costs of secrets and sampled references in models of low precision, held to float64.

A rank among references depends on the order of costs alone. So references whose cost is far from
that of every secret keep the cost of the model's own arithmetic, and the others are scored again in
float64, as are the secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import UnsupportedModel
from remnant.measures import calibrated_losses
from remnant.probes.counted_model import computes_coarsely
from remnant.probes.sequences import TextCosts
from remnant.search.close_calls import Arithmetic, worst_error

Floats = NDArray[np.float64]
Read = Callable[..., TextCosts]
_MARGIN, _TRIED, _REPEATED = 8.0, 32, 16


@dataclass(frozen=True, slots=True)
class Repeated:
    """How far apart two readings of the same texts by a served model are.

    Attributes:
        texts: How many were read twice.
        worst: The largest difference, in bits.
    """

    texts: int
    worst: float

    @property
    def tolerance(self) -> float:
        """Bits that intervals allow for."""
        return _MARGIN * self.worst

    @property
    def sentence(self) -> str:
        """What was compared, in words."""
        said = (
            "Costs are the server's, in a precision that is not known: two readings of "
            f"{self.texts} texts differ by "
        )
        if self.worst == 0:
            return f"{said}nothing."
        return f"{said}up to {self.worst:.2g} bits. Intervals allow for {self.tolerance:.2g} bits."


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTexts:
    """Costs of texts in a model, minus those of reference models where there are some.

    Attributes:
        bits: Of each text.
        alone: In each model without calibration, shape ``(models, texts)``.
        prefix_tokens: Of each model, how many tokens were read before the costs begin.
        nodes: Rows passed to all models.
    """

    bits: Floats
    alone: Floats
    prefix_tokens: tuple[int, ...]
    nodes: int


def score_texts(
    models: Sequence[Any],
    texts: Sequence[str],
    read: Read,
    *,
    prefix_tokens: Sequence[int] | None = None,
) -> ScoredTexts:
    """Score texts in a model, and calibrate by reference models.

    Args:
        models: The model, then the reference models.
        texts: Whole texts.
        read: ``text_costs`` with its other arguments.
        prefix_tokens: See ``text_costs``, one for each model.
    """
    given = [None] * len(models) if prefix_tokens is None else list(prefix_tokens)
    own, *others = (
        read(model, texts=texts, prefix_tokens=tokens)
        for model, tokens in zip(models, given, strict=True)
    )
    bits = own.bits
    if others:
        bits = calibrated_losses(
            losses=bits, reference_model_losses=[other.bits for other in others]
        )
    return ScoredTexts(
        bits,
        np.stack([scored.bits for scored in (own, *others)]),
        tuple(scored.prefix_tokens for scored in (own, *others)),
        own.nodes + sum(other.nodes for other in others),
    )


def repeated_costs(
    scored: ScoredTexts, models: Sequence[Any], texts: Sequence[str], read: Read
) -> Repeated:
    """Read a few texts again, in another order and company, and compare."""
    few = np.linspace(0, len(texts) - 1, min(_REPEATED, len(texts))).astype(int)[::-1].tolist()
    again = score_texts(models, [texts[i] for i in few], read, prefix_tokens=scored.prefix_tokens)
    return Repeated(len(few), worst_error(again.bits, scored.bits[few]))


def settled_costs(
    scored: ScoredTexts,
    models: Sequence[Any],
    texts: Sequence[str],
    read: Read,
    *,
    secrets: int,
) -> tuple[Floats, Arithmetic]:
    """Replace costs that could change a rank by those of float64.

    The secrets and 32 references are scored in both. References within eight times the largest
    difference of a secret are scored again; if one of them differs by more than half of that, the
    tolerance grows and more are scored.

    Args:
        scored: The costs in the models' own arithmetic: secrets first, then references.
        models, texts, read: As for ``score_texts``.
        secrets: How many of the texts are secrets.

    Guarantees:
        * The order of each secret among the references is that of float64, if no cost is off by
          more than the tolerance.

    Raises:
        UnsupportedModel: A model of low precision has no float64 twin.
    """
    coarse = [model for model in models if computes_coarsely(model)]
    if not all(hasattr(model, "in_float64") for model in coarse):
        raise UnsupportedModel(
            "A model computes in low precision and offers no float64 twin.",
            hint="Load it in float32.",
        )
    wide = [model.in_float64() if hasattr(model, "in_float64") else model for model in models]
    costs, done = scored.bits.copy(), np.zeros(len(texts), dtype=bool)
    tried = np.arange(min(len(texts), secrets + _TRIED))
    worst = tolerance = 0.0
    waiting = tried
    while len(waiting):
        exact = score_texts(
            wide, [texts[i] for i in waiting.tolist()], read, prefix_tokens=scored.prefix_tokens
        ).bits
        worst = max(worst, worst_error(exact, scored.bits[waiting]))
        costs[waiting], done[waiting] = exact, True
        if worst > tolerance / 2:
            tolerance = _MARGIN * worst
        waiting = np.flatnonzero(_near(costs, secrets, tolerance) & ~done)
    precision = str(coarse[0].precision).removeprefix("torch.")
    return costs, Arithmetic(
        precision=precision,
        compared=len(tried),
        worst=worst,
        tolerance=tolerance,
        rescored=int(done.sum()),
        settled=True,
    )


def _near(costs: Floats, secrets: int, tolerance: float) -> NDArray[np.bool_]:
    """Which costs are within the tolerance of a secret's."""
    own = np.sort(costs[:secrets])
    after = np.searchsorted(own, costs)
    above = own[np.minimum(after, secrets - 1)]
    below = own[np.maximum(after - 1, 0)]
    with np.errstate(invalid="ignore"):
        apart = np.minimum(np.abs(above - costs), np.abs(costs - below))
    return np.asarray(apart <= tolerance)
