"""The models that a recipe can name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from remnant.errors import PlanError
from remnant.models.convolutional import cnn1, cnn2
from remnant.models.dense import logistic, mlp1
from remnant.models.residual import small_resnet, wrn16_4

CATALOGUE: dict[str, Callable[..., nn.Module]] = {
    "logistic": logistic,
    "mlp1": mlp1,
    "cnn1": cnn1,
    "cnn2": cnn2,
    "small_resnet": small_resnet,
    "wrn16_4": wrn16_4,
}
_SMALLEST = {"cnn1": 6, "cnn2": 4, "small_resnet": 4, "wrn16_4": 4}


def model_maker(
    name: str, *, shape: Sequence[int], classes: int, **options: Any
) -> Callable[[], nn.Module]:
    """Return a function that makes the named model for inputs of this shape.

    Raises:
        PlanError: An unknown name or option, or images too small for it.

    Example:
        >>> model_maker("logistic", shape=(1, 8, 8), classes=10)()[1].out_features
        10
    """
    if name not in CATALOGUE:
        raise PlanError(f"model={name!r} is not one of {', '.join(CATALOGUE)}.")
    if name in _SMALLEST and (len(shape) != 3 or min(shape[1:]) < _SMALLEST[name]):
        raise PlanError(
            f"{name} needs images of at least {_SMALLEST[name]} pixels a side, not {tuple(shape)}."
        )
    build = CATALOGUE[name]
    known = build.__kwdefaults__ or {}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise PlanError(
            f"{name} has no option {', '.join(unknown)}.",
            hint=f"It has: {', '.join(known) or 'none'}.",
        )

    def make() -> nn.Module:
        try:
            return build(shape, classes, **options)
        except (TypeError, ValueError) as fault:
            raise PlanError(f"model.options={options} do not make a {name}: {fault}.") from fault

    return make
