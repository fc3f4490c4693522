"""A folder that synthesizers made is read as any folder of recordings, and goes on where it was."""

from __future__ import annotations

import os

import numpy as np
import pytest

from remnant.data.speech import spoken_folder
from remnant.data.speech.spoken_folder import sentences_of, speak_folder
from remnant.data.speech.wav import read_wav_folder
from remnant.errors import InvalidInput, MissingExtra, RecordError


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "said.txt"
    path.write_text("the red house\n\n seven   trees, tall\n", encoding="utf-8")
    return path


def test_a_folder_is_made_read_and_resumed(tmp_path, text, monkeypatch):
    sentences = sentences_of(text, voices=["kal16", "en-us+m1"], seed=0)
    assert [one.text for one in sentences] == ["the red house", "seven trees, tall"]
    assert sentences_of(text, voices=["kal16", "en-us+m1"], seed=0) == sentences
    assert sentences_of(text, voices=["kal16", "en-us+m1"], seed=1) != sentences
    seen = []
    folder = tmp_path / "spoken"
    made = speak_folder(sentences, folder, progress=lambda *done: seen.append(done))
    assert (made.utterances, made.spoken, seen[-1]) == (2, 2, (2, 2))
    found = read_wav_folder(folder)
    assert [one.transcript for one in found] == ["the red house", "seven trees, tall"]
    assert [one.speaker for one in found] == [one.voice for one in sentences]
    assert made.seconds == pytest.approx(sum(one.seconds for one in found))
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.rglob("*.wav"))
    first = found[0].path
    first.write_bytes(first.read_bytes()[:100])
    spoken = []
    real = spoken_folder.speak
    monkeypatch.setattr(
        spoken_folder, "speak", lambda *given: spoken.append(given[0]) or real(*given)
    )
    again = speak_folder(sentences, folder)
    assert spoken == ["the red house"], "only the file that was cut short is spoken again"
    assert (again.utterances, again.spoken) == (2, 1)
    for one, other in zip(found, read_wav_folder(folder), strict=True):
        np.testing.assert_array_equal(one.sound, other.sound)


def test_faults_are_named(tmp_path, text, monkeypatch):
    sentences = sentences_of(text, voices=["kal16"], seed=0)
    folder = tmp_path / "spoken"
    speak_folder(sentences, folder)
    with pytest.raises(InvalidInput, match=r"metadata\.csv is of other sentences"):
        speak_folder(sentences[:1], folder)
    text.write_text("yes\n?!\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"said\.txt, line 2 has no letter or digit"):
        sentences_of(text, voices=["kal16"], seed=0)
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(RecordError, match="cannot be made"):
        speak_folder(sentences, blocked / "in")
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(MissingExtra, match="The synthesizer flite is not installed"):
        speak_folder(sentences, tmp_path / "other")
    assert not (tmp_path / "other").exists()
