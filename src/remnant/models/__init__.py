"""The papers' architectures, small and plain: classifiers and language models."""

from remnant.models.catalogue import CATALOGUE, model_maker
from remnant.models.conformer import conformer
from remnant.models.convolutional import cnn1, cnn2
from remnant.models.densenet import densenet100
from remnant.models.encoder_decoder import TRANSLATORS, EncoderDecoder, transformer
from remnant.models.gpt import gpt
from remnant.models.language_model import LanguageModel
from remnant.models.mlp import logistic, mlp1
from remnant.models.model_folder import (
    check_model_folder,
    load_language_model,
    save_language_model,
)
from remnant.models.recurrent import gru, lstm
from remnant.models.resnet import small_resnet, wrn16_4
from remnant.models.sequence_catalogue import SEQUENCE_MODELS, sequence_model_maker
from remnant.models.sequence_module import SequenceModule
from remnant.models.vocabulary import Vocabulary
from remnant.models.wavenet import causal_cnn, wavenet

__all__ = [
    "CATALOGUE",
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
