"""How fast does a recogniser of speech forget utterances that it heard? INJECT and POISON."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from remnant.data.speech.synthesis import spoken
from remnant.data.speech.wav import RATE, read_wav
from remnant.records import Record
from remnant.records.typed import Absent, plain, put_parts
from remnant.studies.groups.estimating import planned_group
from remnant.studies.reporting import PRIVATE, REVEALED
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import (
    Progress,
    joint_fingerprint,
    put_ledger,
    run_in_record,
)
from remnant.studies.shared.settings import Execution
from remnant.studies.speech_forgetting.corpus import (
    cache_folder,
    counting,
    imagined,
    load_speech,
    speaker,
    speaking,
    speaking_seconds,
    speech_fingerprint,
)
from remnant.studies.speech_forgetting.measure import measure_speech_forgetting, speech_task
from remnant.studies.speech_forgetting.planted_speech import PlantedSpeech, plant_speech
from remnant.studies.speech_forgetting.recipe import FSDD, SpeechForgettingStudy
from remnant.studies.speech_forgetting.result import PlantedSound, PlantedSounds
from remnant.studies.speech_forgetting.training import (
    ask_trials,
    check_recognisers,
    fit_recognisers,
    part_groups,
    speech_search,
    validation_lengths,
)
from remnant.studies.text_forgetting.disturbed_sequences import search_seconds
from remnant.studies.text_forgetting.measure import canary_uses
from remnant.studies.text_forgetting.training import SEARCHED, run_parts

_HEARD = 3  # canaries that the page lets one hear
_FULL = 2**15 - 1


def run_speech_forgetting(
    study: SpeechForgettingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Run the study in ``folder``: speak, train, probe, measure. Resumes an interrupted run.

    The canaries follow from the plan's seed. The record holds none of them, unless
    ``execution.reveal`` asks for three.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    parts, origins = {}, []
    for name, part in study.parts().items():
        speak = speaker(part.data, execution, speaking(progress))
        corpus = load_speech(part.data, execution, speak)
        origins.append(corpus.origin)
        parts[name] = plant_speech(part, corpus, speak)
        check_recognisers(part, parts[name], execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=joint_fingerprint(
            speech_fingerprint(planted.utterances) for planted in parts.values()
        ),
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        work=lambda record: _work(study, parts, execution, record, progress),
        origins=origins,
    )
    if execution.reveal:
        _reveal(study, parts["primary"], execution, folder)


def estimate_speech_forgetting(
    study: SpeechForgettingStudy, execution: Execution
) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run.

    Sentences are not spoken: noise of about their length takes their place.
    """
    members, steps, memory, groups = 0, 0, 0.0, []
    for name, part in study.parts().items():
        missing: set[str] = set()
        speak = counting(imagined(part.data), execution, missing)
        planted = plant_speech(part, load_speech(part.data, execution, speak), speak)
        check_recognisers(part, planted, execution)
        plan = part.plan
        short = dataclasses.replace(plan, step=max(6, _least_steps(part)), repeats=1, watch_steps=6)
        clock = StepClock(execution.device)
        fit, population = fit_recognisers(part, short, planted, execution, on_step=clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds = first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        clock(0)
        ask_trials(part, planted)(population)
        clock(0)
        seconds += (clock.times[-1] - clock.times[-2]) * len(part.lags())
        search = speech_search(part, planted) if name == SEARCHED else None
        if search is not None:
            seconds += search_seconds(search, population, step_seconds=later, clock=clock)
        seconds += speaking_seconds(len(missing))
        members, steps = members + plan.members, steps + plan.steps
        held = planted.inputs.nbytes + sum(asked.inputs.nbytes for asked in planted.probed)
        held += 0 if planted.neighbours is None else planted.neighbours.inputs.nbytes
        memory = max(memory, fit.memory + held)
        twins, *references = part_groups(part, name, data_fingerprint="").values()
        groups.append(planned_group(twins, seconds=seconds))
        for group in references:
            members, steps = members + group.members, steps + group.steps
            seconds = later * group.steps * group.members / plan.members
            groups.append(planned_group(group, seconds=seconds))
    return {
        "members": members,
        "steps": steps,
        "memory_mib": round(memory / 2**20, 1),
        "minutes": round(sum(group["minutes"] for group in groups), 2),
        "groups": groups,
    }


def _least_steps(study: SpeechForgettingStudy) -> int:
    """Steps that the canaries of a shortened plan need, all of them being planted."""
    return -(-int(study.plan.copies_of.sum()) // study.plan.batch)


def _work(
    study: SpeechForgettingStudy,
    planted: dict[str, PlantedSpeech],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    run_parts(study, planted, part_groups, execution, record, progress)
    first, plan = planted["primary"], study.plan
    put_ledger(record, plan.ledger(examples=first.examples))
    characters, words = validation_lengths(first)
    task = speech_task(
        record.array("primary.validation_edits"),
        characters=characters,
        words=words,
        planted=plan.members_of("planted"),
    )
    record.put_result("task", plain(task))
    measure_speech_forgetting(
        record, study, examples=first.examples, characters=first.canary_characters
    )
    put_parts(record, sounds=Absent("canaries can be heard only with --reveal"))
    record.finish()


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
