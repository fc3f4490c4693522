"""Symbols and their numbers, against the slow definition; what an error may tell."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.models import Vocabulary

TEXTS = st.text(min_size=1, max_size=400)
WORDS = st.lists(st.sampled_from(["ab", "b", "é", "a-b", "x" * 9]), max_size=20)
BLANKS = st.sampled_from([" ", "  ", "\n", "\t \n"])


@given(text=TEXTS)
def test_characters_are_numbered_by_code_point_and_come_back(text):
    vocabulary = Vocabulary.of_characters(text)
    assert list(vocabulary.symbols) == sorted(set(text))
    assert vocabulary.size == len(set(text))
    slow = [vocabulary.symbols.index(character) for character in text]
    assert vocabulary.encode(text) == slow
    np.testing.assert_array_equal(vocabulary.encode_array(text), slow)
    assert vocabulary.encode_array(text).dtype == np.int64
    assert vocabulary.decode(slow) == text


def test_long_and_short_texts_are_encoded_alike():
    vocabulary = Vocabulary.of_characters("añ\U0001f600\ud800 ")
    for text in ("", "ña \U0001f600", "añ\U0001f600\ud800 " * 100):
        found = vocabulary.encode(text)
        assert all(type(token) is int for token in found)
        assert found == [vocabulary.symbols.index(c) for c in text]


@given(texts=st.lists(st.text(max_size=8), max_size=6))
def test_many_texts_are_encoded_as_each_alone(texts):
    letters = Vocabulary.of_characters("".join(texts) + "a")
    assert letters.encode_each(texts) == [letters.encode(text) for text in texts]
    words = Vocabulary.of_words("a", unknown=True)
    assert words.encode_each(texts) == [words.encode(text) for text in texts]


@given(one=TEXTS, other=TEXTS)
def test_characters_of_a_sum_are_the_sum(one, other):
    vocabulary = Vocabulary.of_characters(one + other)
    assert vocabulary.encode(one + other) == vocabulary.encode(one) + vocabulary.encode(other)


@given(one=WORDS, other=WORDS, blank=BLANKS, first=st.booleans())
def test_words_of_a_sum_are_the_sum_where_a_blank_is_between(one, other, blank, first):
    vocabulary = Vocabulary("words", ("é", "b", "ab", "a-b", "x" * 9))
    x, y = " ".join(one), blank.join(other)
    x, y = (x + blank, y) if first else (x, blank + y)
    assert vocabulary.encode(x + y) == vocabulary.encode(x) + vocabulary.encode(y)
    assert vocabulary.decode(vocabulary.encode(x + y)) == " ".join((x + y).split())


def test_words_are_numbered_by_frequency_then_by_name():
    text = "to be  or not\nto be that"
    assert Vocabulary.of_words(text).symbols == ("be", "to", "not", "or", "that")
    assert Vocabulary.of_words(text, at_most=3).symbols == ("be", "to", "not")
    some = Vocabulary.of_words(text + " <unk> <unk> <unk>", at_most=1, unknown=True)
    assert some.symbols == ("<unk>", "be")
    assert some.encode(" to be <unk> ") == [0, 1, 0]


def test_every_symbol_is_one_token_of_its_own():
    for vocabulary in (
        Vocabulary.of_characters("ab c\n"),
        Vocabulary.of_words("to be or not", unknown=True),
    ):
        found = [vocabulary.encode(symbol) for symbol in vocabulary.symbols]
        assert found == [[number] for number in range(vocabulary.size)]


@pytest.mark.parametrize("repeats", [1, 200])
def test_an_error_names_one_character_and_no_more(repeats):
    vocabulary = Vocabulary.of_characters("abc ")
    with pytest.raises(InvalidInput) as one:
        vocabulary.encode("a é b" * repeats)
    assert str(one.value).startswith("The vocabulary has no 'é' (U+00E9).")
    with pytest.raises(InvalidInput) as many:
        vocabulary.encode("a 9731 b" * repeats)
    assert "has no '1' (U+0031) and 3 more characters" in str(many.value)
    assert not set("973") & set(str(many.value).replace("0031", "").replace("3 more", ""))


def test_an_error_names_no_word():
    vocabulary = Vocabulary.of_words("the secret is here")
    with pytest.raises(InvalidInput, match="2 of 5 words are not in the vocabulary") as fault:
        vocabulary.encode("the secret is hunter2 tangerine")
    assert "hunter2" not in str(fault.value)
    assert "tangerine" not in str(fault.value)


@pytest.mark.parametrize("token", [-1, 3])
def test_a_token_that_is_none_cannot_be_decoded(token):
    with pytest.raises(InvalidInput, match="outside 0 to 2"):
        Vocabulary.of_characters("abc").decode([0, token])


@pytest.mark.parametrize(
    "vocabulary",
    [Vocabulary.of_characters("aé\U0001f600\n\ud800"), Vocabulary.of_words("a b", unknown=True)],
)
def test_plain_data_make_it_again(vocabulary):
    assert Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict()))) == vocabulary


@pytest.mark.parametrize(
    ("kind", "symbols", "words"),
    [
        ("bytes", ("a",), "kind='bytes' is not one of characters, words"),
        ("characters", (), "symbols is empty"),
        ("characters", ("a", "bc"), "not a single character"),
        ("characters", ("a", "a"), "twice"),
        ("words", ("a b",), "white space"),
        ("words", ("",), "empty"),
        ("words and digits", ("a1",), "a digit beside others"),
    ],
)
def test_faulty_symbols_are_refused(kind, symbols, words):
    with pytest.raises(InvalidInput, match=words):
        Vocabulary(kind, symbols)


@pytest.mark.parametrize("data", [{}, [], {"kind": "words", "symbols": "ab"}, {"symbols": [1]}])
def test_data_that_are_no_vocabulary_are_refused(data):
    with pytest.raises(InvalidInput, match="not a kind with a list of symbols"):
        Vocabulary.from_dict(data)


def test_a_limit_of_no_words_is_refused():
    with pytest.raises(InvalidInput, match="at_most=0 is less than 1"):
        Vocabulary.of_words("a b", at_most=0)


def test_digits_apart_are_symbols_of_their_own():
    text = "call 555 - 12a now"
    found = Vocabulary.of_words(text, digits_apart=True)
    assert found.cut(text) == ["call", "5", "5", "5", "-", "1", "2", "a", "now"]
    assert found.decode(found.encode(text)) == " ".join(found.cut(text))
    assert found.encode("call 5") + found.encode("51") == found.encode("call 551")
    assert Vocabulary.from_dict(found.to_dict()) == found
    unknown = Vocabulary.of_words("a 1", unknown=True, digits_apart=True)
    assert unknown.encode("b1") == [0, unknown.encode("1")[0]]
