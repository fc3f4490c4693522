"""Sound files and features: known signals, an outside reference, and files that are damaged."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import wavfile
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

from remnant.data.speech.an4 import read_an4, read_mfcc
from remnant.data.speech.fsdd import read_fsdd, spoken_numbers
from remnant.data.speech.log_mel import log_mel, normalised
from remnant.data.speech.wav import read_wav, read_wav_folder, resampled
from remnant.errors import InvalidInput

RATE = 16_000


def tone(hertz: float, seconds: float = 0.5, rate: int = RATE) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate)).astype("f4")


def chirp() -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, 0.01, 8_000)
    return (tone(300) + tone(2_500) + noise).astype(np.float32)


@pytest.mark.parametrize(("rate", "bands"), [(16_000, 80), (8_000, 40)])
def test_log_mel_equals_an_outside_implementation(rate, bands):
    sound = chirp()
    width = round(0.025 * rate)
    length = 2 ** int(np.ceil(np.log2(width)))
    filters = mel_filter_bank(
        num_frequency_bins=length // 2 + 1,
        num_mel_filters=bands,
        min_frequency=0.0,
        max_frequency=rate / 2,
        sampling_rate=rate,
        norm=None,
        mel_scale="htk",
    )
    expected = spectrogram(
        sound.astype(np.float64),
        window_function(width, "hann"),
        frame_length=width,
        hop_length=round(0.01 * rate),
        fft_length=length,
        power=2.0,
        center=False,
        mel_filters=filters,
        mel_floor=1e-10,
        log_mel="log",
    ).T
    made = log_mel(sound, rate=rate, bands=bands).numpy()
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, atol=1e-3)


def test_a_tone_is_loudest_in_the_band_of_its_pitch():
    centres = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82)[1:-1] / 2595) - 1)
    for hertz in (440.0, 1_000.0, 3_000.0):
        loudest = log_mel(tone(hertz), rate=RATE).mean(0).argmax()
        assert abs(int(loudest) - int(np.abs(centres - hertz).argmin())) <= 1


def test_normalised_features_have_mean_0_and_deviation_1():
    features = normalised(log_mel(chirp(), rate=RATE))
    torch.testing.assert_close(features.mean(0), torch.zeros(80), atol=1e-4, rtol=0)
    torch.testing.assert_close(features.square().mean(0), torch.ones(80), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("sound", "said"),
    [
        (np.zeros(100, np.float32), "a window has 400"),
        (np.full(800, np.nan, np.float32), "not finite"),
        (np.zeros((800, 2), np.float32), r"\(800, 2\)"),
    ],
)
def test_sound_that_has_no_features_is_refused(sound, said):
    with pytest.raises(InvalidInput, match=said):
        log_mel(sound, rate=RATE)


@pytest.mark.parametrize("kind", ["uint8", "int16", "int32", "float32"])
def test_every_kind_of_samples_is_read_alike(tmp_path, kind):
    sound = tone(440.0)
    scale = {"uint8": 128, "int16": 2**15, "int32": 2**31, "float32": 1}[kind]
    stored = (sound.astype(np.float64) * scale + (128 if kind == "uint8" else 0)).astype(kind)
    wavfile.write(tmp_path / "a.wav", RATE, stored)
    read, rate = read_wav(tmp_path / "a.wav")
    assert rate == RATE
    np.testing.assert_allclose(read, sound, atol=1.01 / min(scale, 2**23) if scale > 1 else 0)


def broken(path: Path, kind: str) -> None:
    sound = tone(440.0)
    if kind == "stereo":
        wavfile.write(path, RATE, np.stack([sound, sound], 1))
    elif kind == "rate":
        wavfile.write(path, 8_000, sound)
    elif kind == "silent":
        wavfile.write(path, RATE, np.zeros_like(sound))
    elif kind == "nan":
        wavfile.write(path, RATE, np.full_like(sound, np.nan))
    elif kind == "empty":
        wavfile.write(path, RATE, sound[:0])
    elif kind == "short":
        wavfile.write(path, RATE, sound)
        path.write_bytes(path.read_bytes()[:-101])
    elif kind == "text":
        path.write_text("this is no sound")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("stereo", "2 channels"),
        ("rate", "8000 samples a second"),
        ("silent", "is silent"),
        ("nan", "not finite"),
        ("empty", "no samples"),
        ("short", "not a whole WAV"),
        ("text", "not a whole WAV"),
        ("missing", "cannot be read"),
    ],
)
def test_a_bad_file_is_named(tmp_path, kind, said):
    path = tmp_path / "odd.wav"
    broken(path, kind)
    with pytest.raises(InvalidInput, match=said) as caught:
        read_wav(path, rate=RATE)
    assert "odd.wav" in str(caught.value)


def test_resampling_keeps_the_pitch_and_the_length():
    made = resampled(tone(440.0, rate=8_000), 8_000, RATE)
    assert len(made) == RATE // 2
    np.testing.assert_allclose(made[500:-500], tone(440.0)[500:-500], atol=5e-3)


def folder(home: Path, rows: list[tuple[str, str]]) -> Path:
    (home / "ann").mkdir(parents=True, exist_ok=True)
    wavfile.write(home / "ann" / "a.wav", RATE, tone(440.0))
    wavfile.write(home / "ann" / "b.wav", 8_000, tone(330.0, rate=8_000))
    with (home / "metadata.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file_name", "transcription"), *rows])
    return home


def test_a_folder_has_its_transcripts_and_speakers(tmp_path):
    home = folder(tmp_path, [("ann/a.wav", "yes"), ("ann/b.wav", "no, thanks")])
    first, second = read_wav_folder(home, resample=True)
    assert (first.transcript, first.speaker, first.rate) == ("yes", "ann", RATE)
    assert (second.transcript, second.seconds) == ("no, thanks", 0.5)
    with pytest.raises(InvalidInput, match=r"b\.wav has 8000"):
        read_wav_folder(home)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("../a.wav", "yes")], "not inside the folder"),
        ([("ann/a.wav", " ")], "empty transcript"),
        ([("ann/c.wav", "yes")], r"c\.wav cannot be read"),
    ],
)
def test_a_folder_with_a_bad_row_is_refused(tmp_path, rows, said):
    with pytest.raises(InvalidInput, match=said):
        read_wav_folder(folder(tmp_path, rows))


def test_a_folder_without_a_table_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"no metadata\.csv or metadata\.jsonl"):
        read_wav_folder(tmp_path)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text("{}")
    with pytest.raises(InvalidInput, match=r"train\.jsonl is not a folder; speech is read from"):
        read_wav_folder(tmp_path / "train.jsonl")


def test_a_folder_with_two_tables_is_refused(tmp_path):
    for name in ("metadata.csv", "metadata.jsonl"):
        (tmp_path / name).write_text("")
    with pytest.raises(InvalidInput, match=r"both metadata\.csv and metadata\.jsonl; one is"):
        read_wav_folder(tmp_path)


def an4(home: Path) -> Path:
    (home / "etc").mkdir(parents=True)
    (home / "feat" / "an4_clstk" / "fash").mkdir(parents=True)
    (home / "etc" / "an4_train.fileids").write_text("an4_clstk/fash/an1-fash-b\n")
    (home / "etc" / "an4_train.transcription").write_text("<s> RUBOUT (2) G M </s> (an1-fash-b)\n")
    features = np.arange(26, dtype=">f4")
    path = home / "feat" / "an4_clstk" / "fash" / "an1-fash-b.mfc"
    path.write_bytes(np.array([26], ">i4").tobytes() + features.tobytes())
    return path


def test_an4_is_read(tmp_path):
    an4(tmp_path)
    (spoken,) = read_an4(tmp_path, "train")
    assert (spoken.transcript, spoken.speaker) == ("RUBOUT G M", "fash")
    np.testing.assert_array_equal(spoken.sound, np.arange(26.0).reshape(2, 13))


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:2], lambda b: b + b"0000"])
def test_a_damaged_an4_file_is_named(tmp_path, damage):
    path = an4(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=r"an1-fash-b\.mfc is not a whole file"):
        read_mfcc(path)
    with pytest.raises(InvalidInput, match="part='dev'"):
        read_an4(tmp_path, "dev")


def digits_folder(home: Path, names: list[str]) -> Path:
    folder = home / "recordings"
    folder.mkdir()
    for place, name in enumerate(names):
        sound = tone(200 + 10 * place, seconds=0.3, rate=8_000)
        wavfile.write(folder / f"{name}.wav", 8_000, sound)
    return home


def test_digits_are_joined_into_numbers_of_one_speaker(tmp_path):
    names = [f"{digit}_{who}_{take}" for digit in (0, 7) for who in "ba" for take in (0, 1, 2)]
    recordings = read_fsdd(digits_folder(tmp_path, names))
    assert len(recordings) == 12
    assert {one.transcript for one in recordings} == {"zero", "seven"}
    numbers = spoken_numbers(recordings, digits=4, rng=np.random.default_rng(0))
    assert [one.speaker for one in numbers] == ["a", "b"]  # two recordings of each are left over
    for number in numbers:
        assert number.rate == 8_000
        assert len(number.sound) == 4 * 2_400 + 3 * 800
        first = next(one for one in recordings if one.path == number.path)
        np.testing.assert_array_equal(number.sound[:2_400], first.sound)
        assert not number.sound[2_400:3_200].any()
        assert number.transcript.split()[0] == first.transcript


def test_recordings_that_are_no_digits_are_refused_by_name(tmp_path):
    with pytest.raises(InvalidInput, match="recordings has no WAV file"):
        read_fsdd(tmp_path)
    folder = digits_folder(tmp_path, ["0_ann_1", "ten_ann_1"])
    with pytest.raises(InvalidInput, match=r"ten_ann_1\.wav is not named"):
        read_fsdd(folder)
    (folder / "recordings" / "ten_ann_1.wav").unlink()
    wavfile.write(folder / "recordings" / "0_ann_2.wav", RATE, tone(200))
    with pytest.raises(InvalidInput, match=r"0_ann_2\.wav has 16000 samples a second"):
        read_fsdd(folder)
