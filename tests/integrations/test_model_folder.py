"""Folders of both kinds: which one it is, and what it needs."""

from __future__ import annotations

import pytest

from remnant.errors import InvalidInput
from remnant.integrations import (
    HuggingFaceCausalLM,
    HuggingFaceSeq2Seq,
    load_sequence_model,
    load_tokenizer,
)
from remnant.models import lstm
from remnant.models.language_model import LanguageModel
from remnant.models.model_folder import save_language_model
from remnant.models.vocabulary import Vocabulary


@pytest.fixture
def ours(tmp_path):
    """A checkpoint of this package."""
    vocabulary = Vocabulary.of_characters("the 12")
    options = {"units": 4, "layers": 1}
    state = lstm(vocabulary.size, **options).state_dict()
    save_language_model(
        tmp_path / "ours",
        architecture="lstm",
        options=options,
        state=state,
        vocabulary=vocabulary,
    )
    return tmp_path / "ours"


def test_our_own_checkpoints_are_read_by_their_own_reader(ours):
    model = load_sequence_model(ours)
    assert isinstance(model, LanguageModel)
    assert load_tokenizer(str(ours)).encode("the") == model.encode("the")
    assert set(load_tokenizer(ours).tokens) == set("the 12")
    with pytest.raises(InvalidInput, match=r"source= was given, and the model .* reads none"):
        load_sequence_model(ours, source="a")
    with pytest.raises(InvalidInput, match="device='nonsense'"):
        load_sequence_model(ours, device="nonsense")


def test_causal_models_are_told_from_encoder_decoders(save):
    causal, seq2seq = save("llama", name="causal"), save("t5", name="seq2seq")
    assert isinstance(load_sequence_model(causal), HuggingFaceCausalLM)
    assert isinstance(load_sequence_model(seq2seq, source="the"), HuggingFaceSeq2Seq)
    with pytest.raises(InvalidInput, match="holds an encoder-decoder, and source= is missing"):
        load_sequence_model(seq2seq)
    with pytest.raises(InvalidInput, match=r"source= was given, and the model .* reads none"):
        load_sequence_model(causal, source="the")


def test_a_tokenizer_comes_without_the_model(save):
    folder = save("t5")
    (folder / "model.safetensors").unlink()
    for target in (False, True):
        tokenizer = load_tokenizer(folder, target=target)
        assert tokenizer.encode("the 1") == [44, 40, 31]
        assert "the" in tokenizer.tokens


@pytest.mark.parametrize("load", [load_sequence_model, load_tokenizer])
def test_a_folder_of_neither_kind_is_refused(load, tmp_path):
    with pytest.raises(InvalidInput, match=r"neither remnant\.json nor config\.json nor adapter"):
        load(tmp_path)
    with pytest.raises(InvalidInput, match="is not a folder"):
        load(tmp_path / "nowhere")
