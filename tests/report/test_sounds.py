"""Sounds in the page are WAV files that any reader reads back."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.io import wavfile

from remnant.errors import InvalidInput
from remnant.report.sounds import wav


def test_a_sound_is_read_back_as_it_was_given():
    samples = np.random.default_rng(0).integers(-(2**15), 2**15, 500).astype(np.int16)
    rate, found = wavfile.read(io.BytesIO(wav(samples, rate=8_000)))
    assert rate == 8_000
    np.testing.assert_array_equal(found, samples)


@pytest.mark.parametrize(
    "samples", [np.zeros(4), np.zeros((2, 2), np.int16), np.zeros(0, np.int16)]
)
def test_what_is_no_sound_is_refused(samples):
    with pytest.raises(InvalidInput, match="a sound has shape"):
        wav(samples, rate=8_000)
