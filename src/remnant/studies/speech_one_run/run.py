"""How fast does this run of a recogniser forget? STAGGERED: utterances planted along the way."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from remnant.population import Population
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext
from remnant.studies.jobs.running import run_jobs
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import Progress, put_ledger, run_in_record
from remnant.studies.shared.settings import Execution
from remnant.studies.speech_forgetting.measure import speech_task
from remnant.studies.speech_one_run.measure import measure_speech_one_run
from remnant.studies.speech_one_run.recipe import SpeechOneRunStudy
from remnant.studies.text_forgetting.training import keep_arrays
from remnant.tasks.planted_speech import Asked, PlantedSpeech, plant_speech
from remnant.tasks.speech import (
    SIGNALS,
    check_recognisers,
    fit_recognisers,
    utterance_signals,
    validation_edits,
    validation_lengths,
    validation_pairs,
)
from remnant.tasks.speech_corpus import (
    counting,
    imagined,
    load_speech,
    speaker,
    speaking,
    speaking_seconds,
    speech_fingerprint,
)

CHECKPOINT = "checkpoint.safetensors"


def run_speech_one_run(
    study: SpeechOneRunStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Run the study in ``folder``: speak, train, probe, measure. Resumes an interrupted run.

    The canaries follow from the plan's seed, and the record holds none of them.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    speak = speaker(study.data, execution, speaking(progress))
    corpus = load_speech(study.data, execution, speak)
    planted = plant_speech(study, corpus, speak)
    check_recognisers(study, planted, execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=speech_fingerprint(planted.utterances),
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        work=lambda record: _work(study, planted, execution, record, progress),
        origins=[corpus.origin],
    )


def _work(
    study: SpeechOneRunStudy,
    planted: PlantedSpeech,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    if "scores" not in record.array_names():
        key = f"{study.fingerprint}/{record.data_fingerprint}"
        run_jobs(
            [_job(study, key)],
            shared=planted,
            record=record,
            execution=execution,
            progress=progress,
        )
    put_ledger(record, study.plan.ledger())
    characters, words = validation_lengths(planted)
    task = speech_task(
        record.array("run.validation_edits"),
        characters=characters,
        words=words,
        pairs=validation_pairs(planted),
        planted=np.array([0]),
    )
    put_parts(record, task=task)
    measure_speech_one_run(record, study)
    record.finish()


def _job(study: SpeechOneRunStudy, key: str) -> Job:
    """Return the job that trains the one recogniser."""
    return Job(
        name="run",
        work=partial(_train, study, key),
        steps=study.plan.total_steps,
        saved=CHECKPOINT,
    )


def _train(study: SpeechOneRunStudy, key: str, planted: PlantedSpeech, context: JobContext) -> None:
    """Train the one recogniser and keep the canaries' scores at every checkpoint."""
    fit, population = fit_recognisers(
        study,
        study.plan,
        planted,
        context.execution,
        probes={"scores": partial(utterance_scores, asked=planted.probed[0])},
        probe_steps=study.probe_steps(),
        checkpoint=context.checkpoint(CHECKPOINT, key),
        on_step=context.on_step("run", study.plan.total_steps),
    )
    arrays = {
        "run.validation_edits": validation_edits(population, planted),
        "scores": fit.probes["scores"][:, 0],
    }
    keep_arrays(context, fit, "run", arrays)


def utterance_scores(models: Population, asked: Asked) -> Tensor:
    """Return the score of each canary: minus the cost of its transcript given its sound, in bits.

    A canary of two speakers has the mean of both.

    Returns:
        float64 ``(members, canaries)``.
    """
    return -utterance_signals(models, asked)[:, SIGNALS.index("bits")]


def estimate_speech_one_run(study: SpeechOneRunStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run.

    Sentences are not spoken: noise of about their length takes their place.
    """
    missing: set[str] = set()
    speak = counting(imagined(study.data), execution, missing)
    planted = plant_speech(study, load_speech(study.data, execution, speak), speak)
    check_recognisers(study, planted, execution)
    short = dataclasses.replace(
        study.plan, starts=(0,), window=4, repeats=(1,), canaries=2, never=1, steps=8
    )
    clock = StepClock(execution.device)
    fit, population = fit_recognisers(study, short, planted, execution, on_step=clock)
    seconds = clock.typical * study.plan.total_steps
    clock(0)
    utterance_scores(population, planted.probed[0])
    clock(0)
    seconds += (clock.times[-1] - clock.times[-2]) * len(study.probe_steps())
    seconds += speaking_seconds(len(missing))
    held = planted.inputs.nbytes + planted.probed[0].inputs.nbytes
    return {
        "members": 1,
        "steps": study.plan.total_steps,
        "memory_mib": round((fit.memory + held) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": [planned_job(_job(study, ""), seconds=seconds)],
    }
