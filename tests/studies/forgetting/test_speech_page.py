"""The page of a study of forgetting of speech, and its result: read back, shown, heard."""

from __future__ import annotations

import base64
import dataclasses
import io
import re

import numpy as np
import pytest
from scipy.io import wavfile

from remnant.records import Record
from remnant.records.typed import Absent, plain, read_result
from remnant.report.blocks import Missing, Sounds, walk
from remnant.studies.forgetting.sequence_result import SpeechForgettingResult
from remnant.studies.forgetting.speech_page import TITLE, page, what_was_done
from remnant.studies.reporting import read_page, write_report
from remnant.studies.shared.pages import read_run

SOUND = np.arange(-400, 400, dtype=np.int16)
PLANTED = {
    "sounds": {
        "sounds": [{"array": "sound1", "rate": 16000, "transcript": "its <b> secret", "uses": 16}]
    }
}


def test_every_part_is_read_back_as_it_was_stored(spoken_run):
    record = Record.open(spoken_run)
    stored = record.results()
    result = read_result(record, SpeechForgettingResult)
    names = {field.name for field in dataclasses.fields(result)}
    assert set(stored) == names
    absent = {name for name in names if isinstance(getattr(result, name), Absent)}
    assert absent == {"compare", "sounds"}
    for name in names - absent:
        assert plain(getattr(result, name)) == stored[name], name
    assert list(result.groups) == ["uses", "words", "voice", "speakers"]
    assert [curve.success for curve in result.attack_success] == [
        *("precision", "tpr", "auc", "accuracy")
    ]


def test_the_page_says_what_was_found(spoken_run, page_text):
    record = Record.open(spoken_run)
    shown = read_page(record)
    assert shown.title == TITLE
    text = page_text(shown.blocks)
    for words in (
        "16 planted utterances were ranked among 40 references",
        "spoken by synthetic voices",
        "the same utterances were ranked in models that never saw any of them",
        "On 40 utterances that it was not trained on, the model gets",
        "Canaries seen more or less often",
        "Longer and shorter transcripts",
        "One speaker or two",
        "Character error rate on the canaries",
        "Sounds: not measured: canaries can be heard only with --reveal.",
        "a transcript's CTC cost given its sound, less the mean of 4 models trained without",
        "real voices: synthesizers speak more alike than people do",
    ):
        assert words in text, words
    summary = page_text(shown.blocks, "summary")
    assert "that it was not trained on" in summary
    assert not [block for block in walk(shown.blocks) if isinstance(block, Sounds)]


def test_a_page_without_curves_says_why(changed, spoken_run, page_text):
    reason = dict.fromkeys(("curve_exposure", "curve_exposure_aa", "errors"), "it was cut short")
    record = changed(spoken_run, absent=reason)
    result = read_result(record, SpeechForgettingResult)
    text = page_text(page(result, read_run(record)))
    assert "How exposed they are was not measured: it was cut short." in text
    assert "Error rates of the canaries: not measured: it was cut short." in text
    wrong = what_was_done(Absent("x"), {"canaries": {"kind": "wrong"}})
    assert wrong.startswith("Recordings with a wrong transcript")


def test_canaries_are_heard_only_where_they_were_revealed(changed, spoken_run, tmp_path):
    quiet = write_report(spoken_run, tmp_path / "quiet.html").read_text(encoding="utf-8")
    assert "<audio" not in quiet
    assert "media-src" not in quiet
    record = changed(spoken_run, PLANTED)
    with Record.open(record.folder, write=True) as open_record:
        open_record.put_array("sound1", SOUND)
    document = write_report(record.folder, tmp_path / "loud.html").read_text(encoding="utf-8")
    (sound,) = re.findall(r'src="data:audio/wav;base64,([^"]+)"', document)
    rate, samples = wavfile.read(io.BytesIO(base64.b64decode(sound)))
    assert rate == 16_000
    np.testing.assert_array_equal(samples, SOUND)
    assert "media-src data:" in document
    assert "“its &lt;b&gt; secret”, seen 16 times" in document


@pytest.mark.parametrize("reason", ["the corpus has features, not sound"])
def test_sounds_that_are_not_there_are_said_to_be_missing(changed, spoken_run, reason):
    record = changed(spoken_run, absent={"sounds": reason})
    missing = [block for block in walk(read_page(record).blocks) if isinstance(block, Missing)]
    assert reason in {block.reason for block in missing}
