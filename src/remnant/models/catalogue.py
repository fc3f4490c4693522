"""The models that a recipe can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torch import nn

from remnant.errors import PlanError
from remnant.models.convolutional import cnn1, cnn2
from remnant.models.densenet import densenet100
from remnant.models.mlp import logistic, mlp1
from remnant.models.resnet import small_resnet, wrn16_4

Model = TypeVar("Model", bound=nn.Module)

CATALOGUE: dict[str, Callable[..., nn.Module]] = {
    "logistic": logistic,
    "mlp1": mlp1,
    "cnn1": cnn1,
    "cnn2": cnn2,
    "small_resnet": small_resnet,
    "wrn16_4": wrn16_4,
    "densenet100": densenet100,
}
_SMALLEST = {"cnn1": 6, "cnn2": 4, "small_resnet": 4, "wrn16_4": 4, "densenet100": 4}


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
    make = checked_maker(CATALOGUE, name, options, shape, classes)
    if name in _SMALLEST and (len(shape) != 3 or min(shape[1:]) < _SMALLEST[name]):
        raise PlanError(
            f"{name} needs images of at least {_SMALLEST[name]} pixels a side, not {tuple(shape)}."
        )
    return make


def checked_maker(
    catalogue: Mapping[str, Callable[..., Model]],
    name: str,
    options: Mapping[str, Any],
    *arguments: Any,
) -> Callable[[], Model]:
    """Return a function that calls the named entry with these arguments and options.

    An entry's options are its keyword-only arguments.

    Raises:
        PlanError: An unknown name or option; on calling it, a value that does not fit.
    """
    if name not in catalogue:
        raise PlanError(f"model={name!r} is not one of {', '.join(catalogue)}.")
    build = catalogue[name]
    known: Mapping[str, Any] = getattr(build, "__kwdefaults__", None) or {}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise PlanError(
            f"{name} has no option {', '.join(unknown)}.",
            hint=f"It has: {', '.join(known) or 'none'}.",
        )

    def make() -> Model:
        try:
            return build(*arguments, **options)
        except (TypeError, ValueError, RuntimeError, OverflowError) as fault:  # of impossible sizes
            said = str(fault).partition("\n")[0].rstrip(".")
            raise PlanError(
                f"model.options={dict(options)} do not make a {name}: {said}."
            ) from fault

    return make
