"""Tiny models with random weights, one of every kind, and a tokenizer that fits them."""

from __future__ import annotations

import copy
import string

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
CHARACTERS = string.ascii_lowercase + string.digits + " .?"
MERGES = [("t", "h"), ("th", "e"), ("a", "n"), ("an", "d"), ("i", "s")]
PIECES = [*SPECIAL, *CHARACTERS, *("".join(pair) for pair in MERGES)]
VOCABULARY = len(PIECES) + 7  # wider than the tokenizer, as many published models are
WINDOW = 5
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**COMMON))


def mistral():
    config = transformers.MistralConfig(**COMMON, sliding_window=WINDOW)
    return transformers.MistralForCausalLM(config)


def gemma():
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    config = transformers.Gemma3TextConfig(
        **COMMON, head_dim=8, sliding_window=WINDOW, layer_types=kinds
    )
    return transformers.Gemma3ForCausalLM(config)


def bloom():
    config = transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    return transformers.BloomForCausalLM(config)


def mamba():
    config = transformers.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=32, state_size=4, num_hidden_layers=2
    )
    return transformers.MambaForCausalLM(config)


def t5():
    config = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config)


def bart():
    sizes = {
        f"{part}_{name}": size
        for part in ("encoder", "decoder")
        for name, size in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
    }
    config = transformers.BartConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        **sizes,
    )
    return transformers.BartForConditionalGeneration(config)


KINDS = {make.__name__: make for make in (gpt2, llama, mistral, gemma, bloom, mamba, t5, bart)}
_READY: dict[str, torch.nn.Module] = {}


def ready(kind):
    """Weights larger than usual, so that an answer depends on all that was read."""
    if kind not in _READY:
        torch.manual_seed(0)
        logging = transformers.utils.logging
        before = logging.get_verbosity()
        logging.set_verbosity_error()
        model = KINDS[kind]().eval()
        logging.set_verbosity(before)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(4)
        _READY[kind] = model
    return copy.deepcopy(_READY[kind])


@pytest.fixture
def make_model():
    """Return a function from the name of a kind to a model of it, in float64 if asked."""
    return lambda kind, dtype=torch.float64: ready(kind).to(dtype)


@pytest.fixture
def make_tokenizer():
    """Return a function that makes tokenizers: pieces of words, digits always apart."""

    def make(*, bos=False, eos=False, **tokens):
        tokens = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", **tokens}
        tokens = {name: token for name, token in tokens.items() if token is not None}
        vocabulary = {piece: place for place, piece in enumerate(PIECES)}
        made = Tokenizer(models.BPE(vocabulary, MERGES, unk_token=tokens.get("unk_token")))
        made.pre_tokenizer = pre_tokenizers.Digits(individual_digits=True)
        made.decoder = decoders.Fuse()
        if bos or eos:
            made.post_processor = processors.TemplateProcessing(
                single=" ".join(["<s>"] * bos + ["$A"] + ["</s>"] * eos),
                special_tokens=[("<s>", 1), ("</s>", 2)],
            )
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=made, pad_token="<pad>", **tokens
        )

    return make


@pytest.fixture
def save(tmp_path, make_model, make_tokenizer):
    """Return a function that writes a model and its tokenizer into a folder."""

    def save_one(kind, *, name="model", **options):
        folder = tmp_path / name
        logging = transformers.utils.logging
        logging.disable_progress_bar()
        make_model(kind, torch.float32).save_pretrained(folder)
        logging.enable_progress_bar()
        make_tokenizer(**options).save_pretrained(folder)
        return folder

    return save_one
