"""Tokenizers: nothing is added, and nothing is lost in silence."""

from __future__ import annotations

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from remnant.errors import InvalidInput
from remnant.integrations.tokenizer import HuggingFaceTokenizer, load_hugging_face_tokenizer


@pytest.mark.parametrize(("bos", "eos"), [(False, False), (True, False), (True, True)])
def test_no_special_token_is_added(bos, eos, make_tokenizer):
    tokenizer = HuggingFaceTokenizer(make_tokenizer(bos=bos, eos=eos))
    assert tokenizer.encode("the 12") == [44, 40, 31, 32]
    assert tokenizer.encode("") == []
    assert tokenizer.leading == (1,) * bos


def test_unknown_characters_are_refused_and_not_quoted(make_tokenizer):
    tokenizer = HuggingFaceTokenizer(make_tokenizer())
    with pytest.raises(InvalidInput, match="every character of a text of 6 characters") as fault:
        tokenizer.encode("12Ω345")
    assert "Ω" not in str(fault.value)
    assert "345" not in str(fault.value)


def test_characters_that_are_dropped_in_silence_are_refused(make_tokenizer):
    library = make_tokenizer(unk_token=None)
    assert library("1Ω2", add_special_tokens=False)["input_ids"] == [31, 32]  # looks like "12"
    with pytest.raises(InvalidInput, match="does not know every character"):
        HuggingFaceTokenizer(library).encode("1Ω2")


def test_bytes_blanks_and_normalised_letters_are_not_lost():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made.model = models.BPE({piece: place for place, piece in enumerate(alphabet)}, [])
    tokenizer = HuggingFaceTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=made))
    assert len(tokenizer.encode("Aé 😀")) == 1 + 2 + 1 + 4
    words = Tokenizer(models.WordLevel({"the": 0, "12": 1}, unk_token=None))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = HuggingFaceTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=words))
    assert tokenizer.encode("the  12 ") == [0, 1]


def test_tokens_are_texts_of_one_token_each(make_tokenizer):
    library = make_tokenizer(bos=True)
    library.add_tokens(["<control>"])
    tokenizer = HuggingFaceTokenizer(library)
    assert {"a", "9", " ", "the", "and"} <= set(tokenizer.tokens)
    assert not {"<s>", "<pad>", "<control>", ""} & set(tokenizer.tokens)
    ids = [tokenizer.encode(text) for text in tokenizer.tokens]
    assert all(len(one) == 1 for one in ids)
    assert ids == sorted(ids)


def test_a_folder_gives_its_tokenizer_without_any_weights(save):
    folder = save("gpt2")
    (folder / "model.safetensors").unlink()
    assert load_hugging_face_tokenizer(folder).encode("the") == [44]
