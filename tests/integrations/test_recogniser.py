"""Hugging Face recognisers of speech: real architectures with small random weights."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from transformers import (
    HubertConfig,
    HubertForCTC,
    Wav2Vec2Config,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2FeatureExtractor,
    Wav2Vec2ForCTC,
)

from remnant.errors import InvalidInput
from remnant.integrations.recogniser import HuggingFaceRecogniser
from remnant.models.protocols import SpeechModel

LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"]
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_dim": (8, 8),
    "conv_stride": (10, 8),
    "conv_kernel": (10, 8),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": len(LETTERS),
}


def saved(home, kind: str, *, blank: int = 0):
    torch.manual_seed(0)
    letters = LETTERS[1:] + LETTERS[:1] if blank else LETTERS
    path = home / "vocab.json"
    home.mkdir(exist_ok=True)
    path.write_text(json.dumps({letter: i for i, letter in enumerate(letters)}))
    tokenizer = Wav2Vec2CTCTokenizer(str(path))
    config, maker = {
        "wav2vec2": (Wav2Vec2Config, Wav2Vec2ForCTC),
        "hubert": (HubertConfig, HubertForCTC),
    }[kind]
    model = maker(config(**SMALL, pad_token_id=tokenizer.pad_token_id)).eval()
    for part in (tokenizer, model, Wav2Vec2FeatureExtractor()):
        part.save_pretrained(home)
    return model, tokenizer


@pytest.fixture
def sounds():
    rng = np.random.default_rng(0)
    return [rng.normal(0, 0.1, n).astype(np.float32) for n in (8_000, 5_600)]


@pytest.mark.parametrize("blank", [0, 31])
@pytest.mark.parametrize("kind", ["wav2vec2", "hubert"])
def test_costs_equal_torch_on_the_models_own_logits(tmp_path, sounds, kind, blank):
    model, tokenizer = saved(tmp_path / "model", kind, blank=blank)
    recogniser = HuggingFaceRecogniser.load(tmp_path / "model")
    assert isinstance(recogniser, SpeechModel)
    said = ["YES", "GO TO BED", "A" * 200]
    costs = recogniser.transcript_costs(sounds, said)
    assert costs.shape == (2, 3)
    extractor = Wav2Vec2FeatureExtractor()
    for own, sound in zip(costs, sounds, strict=True):
        given = extractor(sound, sampling_rate=16_000, return_tensors="pt")
        with torch.no_grad():
            frames = model(**given).logits.double().log_softmax(-1)
        for cost, text in zip(own, said, strict=True):
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            loss = F.ctc_loss(
                frames.transpose(0, 1),
                ids,
                torch.tensor([frames.shape[1]]),
                torch.tensor([ids.shape[1]]),
                blank=tokenizer.pad_token_id,
                reduction="sum",
            )
            assert cost == pytest.approx(loss.item() / math.log(2), rel=1e-6)
    assert costs[0, 2] == math.inf


def test_what_is_heard_is_a_text(tmp_path, sounds):
    model, tokenizer = saved(tmp_path / "model", "wav2vec2")
    with torch.no_grad():  # a model that hears one letter all the time
        model.lm_head.weight.zero_()
        model.lm_head.bias[tokenizer.convert_tokens_to_ids("Q")] = 5.0
    recogniser = HuggingFaceRecogniser(model, Wav2Vec2FeatureExtractor(), tokenizer)
    assert recogniser.heard(sounds) == ["Q", "Q"]


def test_bad_input_is_refused(tmp_path, sounds):
    saved(tmp_path / "model", "wav2vec2")
    recogniser = HuggingFaceRecogniser.load(tmp_path / "model")
    with pytest.raises(InvalidInput, match="transcript 1 has a character") as caught:
        recogniser.transcript_costs(sounds, ["YES", "ÄÖ"])
    assert "Ä" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"sound 0 has shape \(4, 2\)"):
        recogniser.transcript_costs([np.zeros((4, 2))], ["YES"])
    with pytest.raises(InvalidInput, match="sound 1 holds samples"):
        recogniser.transcript_costs([sounds[0], np.full(8_000, np.nan)], ["YES"])
    with pytest.raises(InvalidInput, match="sound 0 has 12 samples"):
        recogniser.transcript_costs([sounds[0][:12]], ["YES"])


def test_a_folder_of_another_kind_is_refused(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=9)).save_pretrained(
        tmp_path
    )
    with pytest.raises(InvalidInput, match="of another kind: gpt2, which AutoModelForCTC does not"):
        HuggingFaceRecogniser.load(tmp_path)
