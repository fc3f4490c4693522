"""Losses less what reference models give the same secrets: exposure that training added."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]


def calibrated_losses(*, losses: ArrayLike, reference_model_losses: ArrayLike) -> Floats:
    """Subtract the mean loss over models that never saw a canary.

    Some secrets are cheap under any model ("1111"); what is left after subtraction is what this
    model learned. Calibrate canaries and references alike, with the same models, and pass both to
    ``exposure``. Only sampling can rank calibrated losses: they may fall as a secret grows longer,
    so no prefix can be ruled out, and no law is known to fit them.

    Args:
        losses: The model's, shape ``(secrets,)``.
        reference_model_losses: Of the same secrets in the same unit, shape ``(models, secrets)``.

    Returns:
        Shape ``(secrets,)``; negative where this model finds a secret cheaper than they do.

    Guarantees:
        * The order of the models does not matter (up to rounding).
        * What makes a secret cheaper for all models alike does not expose it.

    Raises:
        InvalidInput: NaN or infinite losses, or shapes that disagree; all listed at once.

    Example:
        >>> calibrated_losses(losses=[9.0, 4.0], reference_model_losses=[[9.0, 5.0], [11.0, 5.0]])
        array([-1., -1.])
    """
    faults: list[str] = []
    own = read_floats("losses", losses, 1, faults)
    others = read_floats("reference_model_losses", reference_model_losses, 2, faults)
    if own is not None and others is not None and others.shape[1] != own.size:
        faults.append(
            f"reference_model_losses have shape {others.shape}, not (models, {own.size}) as the "
            "losses ask for"
        )
    require(faults)
    if own is None or others is None:
        raise InvalidInput("losses and reference_model_losses must be arrays of numbers.")
    return np.asarray(own - others.mean(axis=0))
