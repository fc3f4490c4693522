"""Error rates against jiwer, and what they refuse."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures.speech import character_error_rate, word_error_rate
from remnant.measures.speech.error_rate import edit_distance


def test_error_rates_equal_jiwer():
    rng = np.random.default_rng(0)
    words = ["one", "two", "three", "oh", "seven", "zed"]
    said = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(60)]
    heard = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(60)]
    assert word_error_rate(said, heard).value == pytest.approx(jiwer.wer(said, heard))
    assert character_error_rate(said, heard).value == pytest.approx(jiwer.cer(said, heard))


def test_the_distance_of_equal_and_of_empty_texts():
    assert edit_distance("", "") == 0
    assert edit_distance("abc", "") == edit_distance("", "abc") == 3
    assert edit_distance("abc", "abc") == 0


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="2 utterances were said and 1 heard"):
        word_error_rate(["a", "b"], ["a"])
    with pytest.raises(InvalidInput, match="nothing was said"):
        word_error_rate([""], ["a"])
