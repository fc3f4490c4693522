"""The models that a recipe can name, and their options; making one imports PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from remnant.errors import PlanError

if TYPE_CHECKING:
    from torch import nn

    from remnant.models.encoder_decoder import EncoderDecoder
    from remnant.models.sequence_module import SequenceModule

Model = TypeVar("Model", bound="nn.Module")


@dataclass(frozen=True, slots=True)
class Architecture(Generic[Model]):
    """A function that makes a model; it is imported when it is called.

    Attributes:
        place: The function, as ``module:name`` in this package.
        options: Its keyword-only arguments and their defaults.
    """

    place: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **options: Any) -> Model:
        """Make the model."""
        module, _, name = self.place.partition(":")
        model: Model = getattr(import_module(f"remnant.models.{module}"), name)(
            *arguments, **options
        )
        return model


_CNN = {"dropout": 0.0, "conv_dropout": 0.0, "batch_norm": False}
CATALOGUE: dict[str, Architecture[nn.Module]] = {
    "logistic": Architecture("mlp:logistic"),
    "mlp1": Architecture("mlp:mlp1", {"width": 1.0, "dropout": 0.0, "batch_norm": False}),
    "cnn1": Architecture("convolutional:cnn1", _CNN),
    "cnn2": Architecture("convolutional:cnn2", _CNN),
    "small_resnet": Architecture("resnet:small_resnet", {"width": 1, "blocks": 1, "dropout": 0.0}),
    "wrn16_4": Architecture("resnet:wrn16_4", {"dropout": 0.0}),
    "densenet100": Architecture("densenet:densenet100", {"dropout": 0.0}),
}
SEQUENCE_MODELS: dict[str, Architecture[SequenceModule]] = {
    "lstm": Architecture(
        "recurrent:lstm", {"units": 200, "layers": 2, "embedding": None, "dropout": 0.0}
    ),
    "gru": Architecture(
        "recurrent:gru", {"units": 230, "layers": 2, "embedding": None, "dropout": 0.0}
    ),
    "causal_cnn": Architecture(
        "causal_convolution:causal_cnn", {"units": 140, "layers": 4, "taps": 8, "dropout": 0.0}
    ),
    "wavenet": Architecture(
        "causal_convolution:wavenet",
        {"units": 96, "layers": 5, "stacks": 2, "taps": 2, "dropout": 0.0},
    ),
    "gpt": Architecture(
        "decoder_only:gpt",
        {"units": 128, "layers": 4, "heads": 4, "context": 256, "dropout": 0.0},
    ),
}
TRANSLATORS: dict[str, Architecture[EncoderDecoder]] = {
    "transformer": Architecture(
        "encoder_decoder:transformer",
        {
            "units": 128,
            "layers": 2,
            "heads": 4,
            "source_length": 32,
            "context": 33,
            "dropout": 0.0,
        },
    )
}
RECOGNISERS: dict[str, Architecture[nn.Module]] = {
    "conformer": Architecture(
        "conformer_ctc:conformer",
        {"bands": 80, "width": 96, "layers": 4, "heads": 4, "kernel": 15, "dropout": 0.0},
    )
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


def sequence_model_maker(
    name: str, *, vocabulary_size: int, **options: Any
) -> Callable[[], SequenceModule]:
    """Return a function that makes the named model for a vocabulary of this size.

    Raises:
        PlanError: An unknown name or option; on making it, a value that its option does not allow.

    Example:
        >>> sequence_model_maker("gru", vocabulary_size=50, units=8)().vocabulary_size
        50
    """
    return checked_maker(SEQUENCE_MODELS, name, options, vocabulary_size)


def checked_maker(
    catalogue: Mapping[str, Architecture[Model]],
    name: str,
    options: Mapping[str, Any],
    *arguments: Any,
) -> Callable[[], Model]:
    """Return a function that calls the named entry with these arguments and options.

    Raises:
        PlanError: An unknown name or option; on calling it, a value that does not fit.
    """
    if name not in catalogue:
        raise PlanError(f"model={name!r} is not one of {', '.join(catalogue)}.")
    build = catalogue[name]
    unknown = sorted(set(options) - set(build.options))
    if unknown:
        raise PlanError(
            f"{name} has no option {', '.join(unknown)}.",
            hint=f"It has: {', '.join(build.options) or 'none'}.",
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
