"""Models and data of other libraries behind the protocols of this one: thin, imported lazily."""

from remnant.integrations.early_prediction import EarlyPrediction
from remnant.integrations.hugging_face import HuggingFaceCausalLM, load_causal_lm
from remnant.integrations.model_folder import load_sequence_model, load_tokenizer
from remnant.integrations.plain_loop import OneRunHook
from remnant.integrations.seq2seq import HuggingFaceSeq2Seq, load_seq2seq
from remnant.integrations.tokenizer import separate_tokens

__all__ = [
    "EarlyPrediction",
    "HuggingFaceCausalLM",
    "HuggingFaceSeq2Seq",
    "OneRunHook",
    "load_causal_lm",
    "load_seq2seq",
    "load_sequence_model",
    "load_tokenizer",
    "separate_tokens",
]
