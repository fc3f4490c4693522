"""Real synthesizers speak; what they said is kept, and a fault has its sentence."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.data.speech import synthesis
from remnant.data.speech.synthesis import (
    VOICES,
    Manner,
    Sentence,
    check_voices,
    drawn_manner,
    speak,
    spoken,
)
from remnant.errors import InvalidInput, MissingExtra, RecordError


@pytest.mark.parametrize("voice", ["slt", "kal16", "en-us+f3", "en-us+m2"])
def test_a_voice_speaks_the_same_sentence_alike_and_slower_when_told(voice):
    sound = speak("seven yellow trees", voice)
    assert 0.5 < len(sound) / 16_000 < 5.0
    assert np.abs(sound).max() <= 1.0
    again = speak("seven yellow trees", voice)
    if VOICES[voice].program == "flite":
        np.testing.assert_array_equal(again, sound)
    else:  # espeak-ng was seen to differ a little once in some hundred runs; sounds are kept
        assert len(again) == len(sound)
        assert np.corrcoef(again, sound)[0, 1] > 0.9
    assert len(speak("seven yellow trees", voice, Manner(speed=0.8))) > 1.1 * len(sound)


def test_voices_and_pitches_differ():
    assert len({len(speak("seven yellow trees", name)) for name in ("slt", "rms", "awb")}) == 3
    low, high = (speak("seven yellow trees", "slt", Manner(pitch=p)) for p in (0.8, 1.2))
    assert not np.array_equal(low, high)


def test_noise_has_the_loudness_that_was_asked_for():
    clean = speak("seven yellow trees", "slt")
    noisy = speak("seven yellow trees", "slt", Manner(noise=20.0, seed=3))
    ratio = np.mean(np.square(clean, dtype=float)) / np.mean(np.square(noisy - clean, dtype=float))
    assert 10 * np.log10(ratio) == pytest.approx(20.0, abs=0.2)


def test_sentences_are_kept_and_not_spoken_twice(tmp_path, monkeypatch):
    sentences = [Sentence(f"number {n}", "kal16", drawn_manner(0, n)) for n in range(5)]
    seen = []
    first = list(spoken(sentences, tmp_path, progress=lambda done, of: seen.append((done, of))))
    assert seen[-1] == (5, 5)
    monkeypatch.setattr(synthesis, "speak", lambda *_: pytest.fail("it was spoken again"))
    again = list(spoken(sentences, tmp_path))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.sound, other.sound)
        assert one.transcript == other.transcript
    assert not list(tmp_path.glob(".part-*"))


def test_a_damaged_file_is_made_again(tmp_path):
    sentence = Sentence("number nine", "kal16")
    (before,) = spoken([sentence], tmp_path)
    path = tmp_path / sentence.name
    path.write_bytes(path.read_bytes()[:-40])
    (after,) = spoken([sentence], tmp_path)
    np.testing.assert_array_equal(before.sound, after.sound)


def test_draws_follow_from_their_key():
    assert drawn_manner(1, 2) == drawn_manner(1, 2) != drawn_manner(1, 3)


def test_a_missing_synthesizer_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingExtra, match=r"flite is not installed.*apt-get install flite"):
        list(spoken([Sentence("yes", "slt")], tmp_path))


def test_bad_input_is_refused_and_the_text_is_not_shown(tmp_path):
    with pytest.raises(InvalidInput, match=r"voices=bob is not known"):
        check_voices(["bob"])
    with pytest.raises(InvalidInput, match="sentence 1: A sentence without a letter") as caught:
        list(spoken([Sentence("yes", "slt"), Sentence("...", "slt")], tmp_path))
    assert "..." not in str(caught.value)
    with pytest.raises(InvalidInput, match="speed=3"):
        Manner(speed=3.0)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be made"):
        list(spoken([Sentence("yes", "slt")], tmp_path / "file"))


def test_there_are_voices_of_both_sexes():
    assert {voice.sex for voice in VOICES.values()} == {"female", "male"}
