"""The papers' architectures, small and plain: classifiers and language models.

Names are imported on first use: a recipe is read without PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.models.catalogue import (
        CATALOGUE,
        RECOGNISERS,
        SEQUENCE_MODELS,
        TRANSLATORS,
        model_maker,
        sequence_model_maker,
    )
    from remnant.models.causal_convolution import causal_cnn, wavenet
    from remnant.models.conformer_ctc import conformer
    from remnant.models.convolutional import cnn1, cnn2
    from remnant.models.decoder_only import gpt
    from remnant.models.densenet import densenet100
    from remnant.models.encoder_decoder import EncoderDecoder, transformer
    from remnant.models.language_model import LanguageModel
    from remnant.models.mlp import logistic, mlp1
    from remnant.models.model_folder import (
        check_model_folder,
        load_language_model,
        save_language_model,
    )
    from remnant.models.recurrent import gru, lstm
    from remnant.models.resnet import small_resnet, wrn16_4
    from remnant.models.sequence_module import SequenceModule
    from remnant.models.vocabulary import Vocabulary

_HOME = {
    "CATALOGUE": "remnant.models.catalogue",
    "EncoderDecoder": "remnant.models.encoder_decoder",
    "LanguageModel": "remnant.models.language_model",
    "RECOGNISERS": "remnant.models.catalogue",
    "SEQUENCE_MODELS": "remnant.models.catalogue",
    "SequenceModule": "remnant.models.sequence_module",
    "TRANSLATORS": "remnant.models.catalogue",
    "Vocabulary": "remnant.models.vocabulary",
    "causal_cnn": "remnant.models.causal_convolution",
    "check_model_folder": "remnant.models.model_folder",
    "cnn1": "remnant.models.convolutional",
    "cnn2": "remnant.models.convolutional",
    "conformer": "remnant.models.conformer_ctc",
    "densenet100": "remnant.models.densenet",
    "gpt": "remnant.models.decoder_only",
    "gru": "remnant.models.recurrent",
    "load_language_model": "remnant.models.model_folder",
    "logistic": "remnant.models.mlp",
    "lstm": "remnant.models.recurrent",
    "mlp1": "remnant.models.mlp",
    "model_maker": "remnant.models.catalogue",
    "save_language_model": "remnant.models.model_folder",
    "sequence_model_maker": "remnant.models.catalogue",
    "small_resnet": "remnant.models.resnet",
    "transformer": "remnant.models.encoder_decoder",
    "wavenet": "remnant.models.causal_convolution",
    "wrn16_4": "remnant.models.resnet",
}

__all__ = [
    "CATALOGUE",
    "RECOGNISERS",
    "SEQUENCE_MODELS",
    "TRANSLATORS",
    "EncoderDecoder",
    "LanguageModel",
    "SequenceModule",
    "Vocabulary",
    "causal_cnn",
    "check_model_folder",
    "cnn1",
    "cnn2",
    "conformer",
    "densenet100",
    "gpt",
    "gru",
    "load_language_model",
    "logistic",
    "lstm",
    "mlp1",
    "model_maker",
    "save_language_model",
    "sequence_model_maker",
    "small_resnet",
    "transformer",
    "wavenet",
    "wrn16_4",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
