"""How fast does a recogniser of speech forget utterances that it heard? INJECT and POISON."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.speech.synthesis import spoken
from remnant.data.speech.wav import RATE, read_wav
from remnant.progress import Progress
from remnant.records import Record
from remnant.records.typed import Absent, plain, put_parts
from remnant.studies.pipeline import Prepared, joint_fingerprint
from remnant.studies.reporting import PRIVATE, REVEALED
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.speech_settings import FSDD
from remnant.studies.speech_forgetting.measure import measure_speech_forgetting, speech_task
from remnant.studies.speech_forgetting.recipe import SpeechForgettingStudy
from remnant.studies.speech_forgetting.result import PlantedSound, PlantedSounds
from remnant.studies.speech_forgetting.training import (
    ask_trials,
    part_jobs,
    speech_search,
)
from remnant.studies.text_forgetting.estimate import TimedPart, sequence_estimate, shortened
from remnant.studies.text_forgetting.measure import canary_uses
from remnant.studies.text_forgetting.training import SEARCHED, run_parts
from remnant.tasks.planted_speech import PlantedSpeech, plant_speech
from remnant.tasks.speech import (
    check_recognisers,
    fit_recognisers,
    validation_lengths,
    validation_pairs,
)
from remnant.tasks.speech_corpus import (
    cache_folder,
    counting,
    imagined,
    load_speech,
    speaker,
    speaking,
    speaking_seconds,
    speech_fingerprint,
)

_HEARD = 3  # canaries that the page lets one hear
_FULL = 2**15 - 1


def prepare(
    study: SpeechForgettingStudy, execution: Execution, progress: Progress | None
) -> Prepared:
    """Speak and plant the sentences; refuse what cannot be trained.

    The canaries follow from the plan's seed. The record holds none of them, unless
    ``execution.reveal`` asks for three.
    """
    parts, origins = {}, []
    for name, part in study.parts().items():
        speak = speaker(part.data, execution, speaking(progress))
        corpus = load_speech(part.data, execution, speak)
        origins.append(corpus.origin)
        parts[name] = plant_speech(part, corpus, speak)
        check_recognisers(part, parts[name], execution)
    first = parts["primary"]
    return Prepared(
        data_fingerprint=joint_fingerprint(
            speech_fingerprint(planted.utterances) for planted in parts.values()
        ),
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        origins=origins,
        work=lambda record: _work(study, parts, execution, record, progress),
        ledger=study.plan.ledger(examples=first.examples),
        afterwards=partial(_reveal, study, first, execution) if execution.reveal else None,
    )


def estimate(study: SpeechForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run.

    Sentences are not spoken: noise of about their length takes their place.
    """
    parts = (_timed(name, part, execution) for name, part in study.parts().items())
    return sequence_estimate(parts, device=execution.device)


def _timed(name: str, part: SpeechForgettingStudy, execution: Execution) -> TimedPart:
    missing: set[str] = set()
    speak = counting(imagined(part.data), execution, missing)
    planted = plant_speech(part, load_speech(part.data, execution, speak), speak)
    check_recognisers(part, planted, execution)
    # Without a GPU recognisers are trained one after another: one trial says it all.
    trials = part.plan.trials if execution.device.startswith("cuda") else 1
    short = shortened(part.plan, trials=trials)
    timed = dataclasses.replace(planted, probed=planted.probed[:trials])
    held = planted.inputs.nbytes + sum(asked.inputs.nbytes for asked in planted.probed)
    held += 0 if planted.neighbours is None else planted.neighbours.inputs.nbytes
    return TimedPart(
        plan=part.plan,
        short=short,
        fit=lambda clock: fit_recognisers(part, short, timed, execution, on_step=clock),
        ask=ask_trials(part, timed),
        search=speech_search(part, timed) if name == SEARCHED else None,
        jobs=part_jobs(part, name, data_fingerprint="").values(),
        lags=len(part.lags()),
        held=held,
        beside=speaking_seconds(len(missing)),
    )


def _work(
    study: SpeechForgettingStudy,
    planted: dict[str, PlantedSpeech],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    run_parts(study, planted, part_jobs, execution, record, progress)
    first, plan = planted["primary"], study.plan
    characters, words = validation_lengths(first)
    task = speech_task(
        record.array("primary.validation_edits"),
        characters=characters,
        words=words,
        pairs=validation_pairs(first),
        planted=plan.members_of("planted"),
    )
    record.put_result("task", plain(task))
    measure_speech_forgetting(
        record, study, examples=first.examples, characters=first.canary_characters
    )
    put_parts(record, sounds=Absent("canaries can be heard only with --reveal"))


def _reveal(
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
