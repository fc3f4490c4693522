"""How fast do models of sequences forget? INJECT and POISON, over the tasks of sequences."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

from remnant.plans import InjectPlan, PoisonPlan
from remnant.progress import Progress
from remnant.records import Record
from remnant.studies.forgetting.pair_recipe import TranslationForgettingStudy
from remnant.studies.forgetting.sequence_measure import measure_text_forgetting
from remnant.studies.forgetting.sequence_training import (
    SEARCHED,
    TrialProbes,
    part_jobs,
    search_seconds,
    sequence_task,
)
from remnant.studies.forgetting.speech_recipe import SpeechForgettingStudy
from remnant.studies.forgetting.text_recipe import SequenceStudy, TextForgettingStudy
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock, joint_fingerprint
from remnant.studies.shared.settings import Execution
from remnant.tasks.task import Source

Plan = InjectPlan | PoisonPlan
_STEPS = 6  # that are timed before lag 0, and again after it


def prepare(study: SequenceStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load and plant all parts, and refuse what cannot be trained.

    The canaries follow from the plan's seed. The record holds none of them, unless
    ``execution.reveal`` asks for three utterances.
    """
    task = sequence_task(study)
    sources, planted = {}, {}
    for name, part in study.parts().items():
        sources[name] = task.load(part, execution, progress)
        planted[name] = task.plant(part, sources[name], execution)
    first = planted["primary"]
    afterwards = None
    if execution.reveal and isinstance(study, SpeechForgettingStudy):
        from remnant.studies.forgetting.speech_measure import put_sounds

        afterwards = partial(put_sounds, study, first, execution)
    return Prepared(
        data_fingerprint=joint_fingerprint(
            task.fingerprint(sources[name], planted[name]) for name in sources
        ),
        seeds=task.seeds(study),
        origins=[source.origin for source in sources.values()],
        work=lambda record: _work(study, sources["primary"], planted, execution, record, progress),
        ledger=study.plan.ledger(examples=first.examples),
        afterwards=afterwards,
    )


def _work(
    study: SequenceStudy,
    source: Source,
    planted: Mapping[str, Any],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    every: dict[str, Job] = {}
    for name, part in study.parts().items():
        every |= part_jobs(part, name, data_fingerprint=record.data_fingerprint)
    kept = record.array_names()
    run_jobs(
        [job for array, job in every.items() if array not in kept],
        shared=planted,
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(list(every.values())),
    )
    task, first = sequence_task(study), planted["primary"]
    judged = record.array(f"primary.{task.USEFUL}")[study.plan.members_of("planted")]
    record.put_result("task", task.useful(study, source, first, judged))
    if isinstance(study, SpeechForgettingStudy):
        from remnant.studies.forgetting.speech_measure import measure_speech_forgetting

        measure_speech_forgetting(
            record, study, examples=first.examples, characters=first.canary_characters
        )
    elif isinstance(study, TextForgettingStudy | TranslationForgettingStudy):
        measure_text_forgetting(record, study, examples=first.examples, tokens=first.tokens)


def estimate(study: SequenceStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run.

    Nothing slow is read or made: see ``imagined`` of a task. Trials that are not timed take as
    long as those that are.
    """
    task = sequence_task(study)
    members, steps, memory, jobs = 0, 0, 0.0, []
    for name, part in study.parts().items():
        source = task.load(part, execution, imagined=True)
        planted = task.plant(part, source, execution)
        plan, clock = part.plan, StepClock(execution.device)
        short = _shortened(plan, trials=task.timed_trials(plan, execution.device))
        fit, population = task.fit(part, short, planted, execution, on_step=clock)
        gaps = [after - before for before, after in itertools.pairwise(clock.times)]
        first, later = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
        seconds = first * plan.checkpoint_step + later * (plan.steps - plan.checkpoint_step)
        probes, asked = TrialProbes(task, short, planted), _asked(plan)
        clock(0)
        probes.signals(population)
        clock(0)
        seconds += (clock.times[-1] - clock.times[-2]) * len(part.lags()) * asked
        if part.hidden is not None and name == SEARCHED:
            seconds += search_seconds(
                part.hidden, probes, population, step_seconds=later, asked=asked, clock=clock
            )
        seconds *= plan.trials / short.trials
        members, steps = members + plan.members, steps + plan.steps
        memory = max(memory, fit.memory + task.held(planted))
        twins, *references = part_jobs(part, name, data_fingerprint="").values()
        jobs.append(planned_job(twins, seconds=seconds + source.left_out()))
        for job in references:
            members, steps = members + job.members, steps + job.steps
            each = later / short.members
            jobs.append(planned_job(job, seconds=each * job.steps * job.members))
    return {
        "members": members,
        "steps": steps,
        "memory_mib": round(memory / 2**20, 1),
        "minutes": round(sum(job["minutes"] for job in jobs), 2),
        "groups": jobs,
    }


def _shortened(plan: Plan, *, trials: int) -> Plan:
    """Return a plan of a few steps with one canary: how many there are does not change a step."""
    once: dict[str, Any] = {"canaries": 1, "repeats": 1, "copies": None, "step": _STEPS}
    return dataclasses.replace(plan, **once, watch_steps=_STEPS, trials=trials)


def _asked(plan: Plan) -> float:
    """Return how often a trial's members and then other trials' unplanted ones are asked.

    In units of the first.
    """
    arms = len(plan.arms)
    return 1.0 + (plan.trials - 1) * (arms - 1) / arms
