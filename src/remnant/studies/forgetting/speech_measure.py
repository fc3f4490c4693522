"""From what utterances cost to exposure curves and a verdict, and canaries that can be heard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from remnant.data.speech.synthesis import spoken
from remnant.data.speech.wav import RATE, read_wav
from remnant.measures import ExposureCurve
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.forgetting.exposure_curves import twin_exposure
from remnant.studies.forgetting.sequence_measure import (
    canary_uses,
    put_twin_curves,
    sequence_scope,
)
from remnant.studies.forgetting.sequence_result import ErrorRates, PlantedSound, PlantedSounds
from remnant.studies.forgetting.speech_recipe import (
    SpeechForgettingStudy,
    where,
)
from remnant.studies.reporting import PRIVATE, REVEALED
from remnant.studies.shared.curves import Comparison
from remnant.studies.shared.measured_curves import curve_differences, series_of
from remnant.studies.shared.result_parts import Tested
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.speech_settings import FSDD, SYNTHETIC
from remnant.studies.shared.wording import times
from remnant.tasks.planted_speech import PlantedSpeech
from remnant.tasks.speech import SIGNALS
from remnant.tasks.speech_corpus import cache_folder

Floats = NDArray[np.float64]
_HEARD = 3  # canaries that the page lets one hear
_FULL = 2**15 - 1
_Group = tuple[str, NDArray[np.intp], NDArray[np.intp]]


def measure_speech_forgetting(
    record: Record, study: SpeechForgettingStudy, *, examples: int, characters: int
) -> None:
    """Measure everything the study asks for and put it into the record; no canary is in it.

    Args:
        record: Holds the arrays and ``task``, and is given the results.
        study: The study that was run.
        examples: Clean utterances, from which an epoch's length follows.
        characters: Of all trials' canaries together, each counted once.
    """
    put_twin_curves(record, study)
    primary = study.parts()["primary"]
    for name, part in _groups(record, primary, examples):
        put_parts(record, **{name: part})
    put_parts(record, errors=_errors(record, primary, characters))
    put_parts(record, scope=_scope(record, study))
    put_parts(record, sounds=Absent("canaries can be heard only with --reveal"))


def _groups(
    record: Record, study: SpeechForgettingStudy, examples: int
) -> Iterable[tuple[str, Comparison | Absent]]:
    """Yield exposure by copies, words, voice and speakers, each under its field's name."""
    canaries, references = study.canary_cells, study.reference_cells
    uses, copies = canary_uses(study, examples), study.plan.copies_of
    everyone = np.arange(len(references))
    often: list[_Group] = []
    for many in np.unique(copies).tolist():
        who = np.flatnonzero(copies == many)
        # Some of POISON's canaries miss an epoch that is cut short.
        often.append((f"seen {times(int(uses[who].max()))}", who, everyone))
    dealt = isinstance(study.plan.copies, tuple)
    equally = Absent("all canaries were planted equally often")
    yield (
        "by_uses",
        _compared(record, study, "Canaries seen more or less often", often) if dealt else equally,
    )
    own = study.canaries
    kinds: Mapping[str, tuple[str, str, Mapping[object, str]]] = {
        "by_words": (
            "words",
            "Longer and shorter transcripts",
            {many: f"{many} words" for many in own.words},
        ),
        "by_voice": ("voice", "Voices", {voice: f"{voice} voice" for voice in own.voices}),
        "by_speakers": (
            "speakers",
            "One speaker or two",
            {many: "one speaker" if many == 1 else "two speakers" for many in own.speakers},
        ),
    }
    for name, (attribute, title, labels) in kinds.items():
        if own.kind == "wrong" and attribute != "words":
            yield name, Absent("the speakers are the corpus's own")
        elif len(labels) < 2:
            yield name, Absent("all canaries are of one kind")
        else:
            chosen = [
                (
                    label,
                    where(canaries, **{attribute: value}),
                    where(references, **{attribute: value}),
                )
                for value, label in labels.items()
            ]
            yield name, _compared(record, study, title, chosen)


def _compared(
    record: Record, study: SpeechForgettingStudy, title: str, groups: list[_Group]
) -> Comparison:
    """Put groups of canaries side by side, each among references of its own kind."""
    curves: dict[str, ExposureCurve] = {
        label: twin_exposure(record, "primary", study, "planted", canaries=who, references=among)
        for label, who, among in groups
    }
    first, *others = curves.items()
    return Comparison(
        title=title,
        success="exposure",
        chance=first[1].null,
        series=tuple(series_of(label, curve) for label, curve in curves.items()),
        differences=curve_differences(dict(others), first[1], confidence=study.attack.confidence),
    )


def _errors(record: Record, study: SpeechForgettingStudy, characters: int) -> ErrorRates:
    """Return error rate and cost a character of the canaries, mean over the trials."""
    plan, signals = study.plan, record.array("primary.signals")
    sets = plan.trials if plan.fresh_canaries else 1
    each = characters / sets
    columns: dict[str, tuple[float, ...]] = {}
    for side, arm in (("seen", "planted"), ("unseen", "twin")):
        own = signals[:, plan.members_of(arm), :, : plan.canaries].sum(axis=3).mean(axis=1) / each
        columns[f"{side}_error"] = tuple(own[:, SIGNALS.index("edits")].tolist())
        columns[f"{side}_bits"] = tuple(own[:, SIGNALS.index("bits")].tolist())
    return ErrorRates(lags=tuple(map(float, study.lags())), **columns)


def _scope(record: Record, study: SpeechForgettingStudy) -> Tested:
    own = study.canaries
    lengths = " or ".join(map(str, own.words))
    what = (
        f"transcripts of {lengths} random words, spoken by synthesizers"
        if own.kind == "spoken"
        else f"utterances of the corpus with {lengths} random words as their transcript"
    )
    return sequence_scope(
        record,
        study,
        planted=f", {what},",
        data=f"{study.data.title} speech",
        cost="a transcript's CTC cost given its sound",
        untested=(
            "real voices: synthesizers speak more alike than people do"
            if study.data.name == SYNTHETIC or own.kind == "spoken"
            else "utterances with their true transcripts: wrong ones are learnt by heart",
        ),
        beside=(
            "attackers without the sound: the cost is that of a transcript given its own sound",
            "extraction: a rank among references does not say that a transcript can be extracted",
        ),
        others="other recognisers and other speech",
    )


def put_sounds(
    study: SpeechForgettingStudy, planted: PlantedSpeech, execution: Execution, folder: Path
) -> None:
    """Put the sounds of three canaries into a finished record that only its owner can read."""
    with Record.open(folder, write=True) as record:
        if "sound1" in record.array_names():
            return
        folder.chmod(0o700)
        record.update_execution({PRIVATE: True, REVEALED: True})
        put_parts(record, sounds=_sounds(study, planted, execution, record))


def _sounds(
    study: SpeechForgettingStudy, planted: PlantedSpeech, execution: Execution, record: Record
) -> PlantedSounds | Absent:
    """Store the most used canary, one in the middle and the least used."""
    uses = canary_uses(study, planted.examples)
    places = np.linspace(0, len(uses) - 1, _HEARD).round().astype(int)
    chosen = np.argsort(-uses, kind="stable")[places].tolist()
    made: list[PlantedSound] = []
    for number in dict.fromkeys(chosen):
        canary = planted.planted[number]
        if canary.sentences:
            (utterance,) = spoken(canary.sentences[:1], cache_folder(execution))
            sound = utterance.sound
        elif study.data.name == FSDD:
            return Absent("the sounds are joined of several files")
        elif canary.sounds[0].path.suffix == ".wav":
            sound = read_wav(canary.sounds[0].path, rate=RATE)[0]
        else:
            return Absent("the corpus has features, not sound")
        name = f"sound{len(made) + 1}"
        record.put_array(name, (np.clip(sound, -1.0, 1.0) * _FULL).astype(np.int16))
        made.append(
            PlantedSound(
                array=name, rate=RATE, transcript=canary.transcript, uses=int(uses[number])
            )
        )
    return PlantedSounds(sounds=tuple(made))
