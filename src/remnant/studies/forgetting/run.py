"""How fast does a classifier forget examples that it saw? INJECT and POISON on images.

A study and its variants are trained in as few populations as they allow. Runs go into one
population where models, data, batch and the optimizer's switches are the same; seeds, canaries,
moments of planting and the optimizer's numbers may differ. Runs with the same start share one row
until the first of them parts. Twins that see no canary are the same models in all runs that plant
at the same moment: they are trained once. A run that plants fewer times waits for the others, so
that they stay in step.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data import AuditData, Images
from remnant.errors import NotEnoughEvidence
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.bounds import is_number
from remnant.plans.plan import fingerprint
from remnant.plans.schedule import JoinedSchedule, Joint
from remnant.progress import Progress
from remnant.records import Record
from remnant.studies.forgetting.attack_scores import own_examples, usable_examples
from remnant.studies.forgetting.measure import measure_forgetting
from remnant.studies.forgetting.recipe import ForgettingStudy, runs_of
from remnant.studies.forgetting.residual_memory_probe import (
    check_neighbours,
    hidden_probe,
    kept_disturbed,
)
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock
from remnant.studies.shared.classifiers import (
    CanaryLooks,
    Members,
    Probe,
    accuracy_of,
    check_classifier,
    check_converged,
    fit_classifiers,
    how_trained,
    judge_jobs,
    kept_losses,
    load_data,
    task_fields,
)
from remnant.studies.shared.image_canaries import (
    Planting,
    canary_count,
    draw_canaries,
    near_copies,
    plant,
)
from remnant.studies.shared.settings import Execution


def prepare(study: ForgettingStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load the images and refuse what cannot be planted or trained."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    return Prepared(
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        origins=[data.origin],
        work=lambda record: _work(study, data, execution, record, progress),
        ledger=study.plan.ledger(examples=len(data.clean)),
    )


def _work(
    study: ForgettingStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    canaries = [part.canaries for part in study.parts().values()]
    losses = kept_losses(study, data, execution, record, canaries)
    key = f"{study.fingerprint}/{record.data_fingerprint}"
    every = [grid_job(runs, key=key) for runs in _grids(study)]
    kept = record.array_names()
    run_jobs(
        [job for job in every if f"{job.name}.signals" not in kept],
        shared=GridData(data, losses),
        record=record,
        execution=execution,
        progress=progress,
        whole=Workload.of(every),
    )
    record.put_result("task", task_fields(record.array("primary.test_accuracy"), data))
    measure_forgetting(record, study)


def estimate(study: ForgettingStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps, write nothing, and return the time and memory of the whole run."""
    data = load_data(study, execution)
    check_fit(study, data, execution)
    every = _grids(study)
    judges = judge_jobs(study, [part.canaries for part in study.parts().values()])
    timed = [time_grid(runs, data, execution) for runs in every]
    return {
        "members": sum(int(grid["members"]) for grid in timed),
        "steps": sum(int(grid["steps"]) for grid in timed),
        "memory_mib": round(max(grid["bytes"] for grid in timed) / 2**20, 1),
        "minutes": round(sum(grid["seconds"] for grid in timed) / 60, 2),
        "groups": [planned_job(job, seconds=None) for job in judges]
        + [
            planned_job(grid_job(runs, key=""), seconds=grid["seconds"], stage=1)
            for runs, grid in zip(every, timed, strict=True)
        ],
    }


def _grids(study: ForgettingStudy) -> list[dict[str, ForgettingStudy]]:
    """Return the runs to train, sorted into populations; each run is named after its first part."""
    parts = study.parts()
    return grids({name: parts[name] for name in dict.fromkeys(runs_of(parts).values())})


def check_fit(study: ForgettingStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    for part in study.parts().values():
        check_classifier(part, data, execution)
        part.plan.schedule(examples=len(data.clean))  # refuses canaries that do not fit
    if study.hidden is not None:
        check_neighbours(study.plan, study.canaries, study.hidden, data)


TwinPlan = InjectPlan | PoisonPlan
Runs = Mapping[str, ForgettingStudy]


def grids(runs: Runs) -> list[dict[str, ForgettingStudy]]:
    """Sort runs into those that one population can hold, in their order."""
    made: dict[str, dict[str, ForgettingStudy]] = {}
    for name, run in runs.items():
        plain = run.to_dict()
        training = dict(plain["training"])
        options = training.pop("options")
        fixed = {key: None if is_number(value) else value for key, value in options.items()}
        plan = [plain["plan"]["batch"], plain["plan"]["precision"]]
        made.setdefault(fingerprint([plain["model"], training, fixed, plan]), {})[name] = run
    return list(made.values())


def _probe_steps(study: ForgettingStudy, joint: Joint) -> tuple[int, ...]:
    """Return after how many steps canaries are scored: at the shared checkpoint, then by lag."""
    plan = study.plan
    after = [joint.joined_step(plan.planted_until + lag) for lag in study.lags()]
    return (plan.checkpoint_step, *after)


def _start(run: ForgettingStudy) -> tuple[Any, ...]:
    """What decides how a run begins."""
    return (run.plan.seed, run.plan.sampling, fingerprint(run.training.options))


def _pauses(run: ForgettingStudy, runs: Runs) -> tuple[tuple[int, int], ...]:
    """Where a run waits for those of its kind that plant more often, and for how many steps."""
    plan = run.plan
    if not isinstance(plan, InjectPlan):
        return ()
    most = max(
        other.plan.repeats
        for other in runs.values()
        if isinstance(other.plan, InjectPlan)
        and _start(other) == _start(run)
        and (other.plan.injections, other.plan.watch_steps) == (plan.injections, plan.watch_steps)
    )
    waiting = most - plan.repeats
    firsts = plan.injected_steps[:: plan.repeats]
    return tuple((first, waiting) for first in firsts) if waiting else ()


def _same_twins(run: ForgettingStudy, pauses: tuple[tuple[int, int], ...]) -> tuple[Any, ...]:
    """Name the twins of an INJECT run by all that they depend on; planted members have no name."""
    plan = run.plan
    if not isinstance(plan, InjectPlan):
        return ()
    waiting = pauses[0][1] if pauses else 0
    moments = (plan.injections, plan.repeats + waiting, plan.watch_steps)
    return tuple(
        None if arm == "planted" else (_start(run), moments, plan.twins, arm, trial)
        for trial in range(plan.trials)
        for arm in plan.arms
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cast:
    """What one population is made of: its members, their canaries, and the probes."""

    members: Members
    planting: Planting
    ask: dict[str, CanaryLooks]


def _cast(runs: Runs, data: AuditData, losses: NDArray[np.float64] | None) -> _Cast:
    """Draw every run's canaries and put its members into one schedule."""
    pauses = {name: _pauses(run, runs) for name, run in runs.items()}
    lengths = {
        name: run.plan.steps + sum(count for _, count in pauses[name]) for name, run in runs.items()
    }
    steps = max(lengths.values())
    sets: dict[Any, tuple[int, Images]] = {}
    joints, places, count = [], [], 0
    for name, run in runs.items():
        canaries = run.canaries
        own = (canaries.kind, canaries.share, run.plan.seed, canary_count(run.plan))
        if own not in sets:
            drawn = draw_canaries(run.plan, run.canaries, data, losses)
            sets[own], count = (count, drawn), count + len(drawn)
        shift = sets[own][0]
        places.append(slice(shift, shift + canary_count(run.plan)))
        # A shorter run trains on to the end of the longest; those steps are not measured.
        extra = steps - lengths[name]
        longer = dataclasses.replace(run.plan, watch_steps=run.plan.watch_steps + extra)
        joints.append(
            Joint(
                longer.schedule(examples=len(data.clean)),
                shift=shift,
                start=_start(run),
                pauses=pauses[name],
                same=_same_twins(run, pauses[name]),
            )
        )
    schedule = JoinedSchedule(joints, examples=len(data.clean))
    plans = [run.plan for run in runs.values()]
    options = [run.training.options for run in runs.values()]
    members = Members(
        schedule=schedule,
        seeds=[seed for plan in plans for seed in plan.seeds],
        dropout_seeds=[seed for plan in plans for seed in plan.dropout_seeds],
        noise_seeds=[seed for plan in plans for seed in plan.noise_seeds],
        options={key: _spread([chosen[key] for chosen in options], plans) for key in options[0]},
        precision=plans[0].precision,
    )
    ask = {}
    for i, (name, run) in enumerate(runs.items()):
        who = schedule.members_of(i)
        ask[name] = CanaryLooks(
            slice(int(who[0]), int(who[-1]) + 1), places[i], _probe_steps(run, joints[i])
        )
    return _Cast(members, plant(data, [images for _, images in sets.values()]), ask)


def _spread(values: list[Any], plans: list[TwinPlan]) -> Any:
    """Return one value for all members, or a list with each member's own."""
    if all(value == values[0] for value in values):
        return values[0]
    return [value for value, plan in zip(values, plans, strict=True) for _ in range(plan.members)]


@dataclass(frozen=True, slots=True, eq=False)
class GridData:
    """What all populations of a study are trained on.

    Attributes:
        data: Clean examples, pool and test examples.
        losses: What judges say of the pool, where canaries are chosen by it.
    """

    data: AuditData
    losses: NDArray[np.float64] | None


def grid_job(runs: Runs, *, key: str) -> Job:
    """Return the job that trains one population.

    Args:
        runs: Those of the population.
        key: Of the study and its data, for checkpoints.
    """
    name = next(iter(runs))
    return Job(
        name=name,
        work=partial(_train_grid, runs, key),
        members=sum(run.plan.members for run in runs.values()),
        steps=max(run.plan.steps for run in runs.values()),
        saved=_checkpoint_file(name),
    )


def check_comparable(run: ForgettingStudy, copies: NDArray[np.int64]) -> None:
    """Refuse a run whose near-copies leave too few never-planted examples, before it is trained.

    Args:
        run: What is asked of it.
        copies: Pairs of near-copies among its canaries and controls.

    Raises:
        NotEnoughEvidence: They leave too few.
    """
    if run.attack.against == "twin":
        return
    own = own_examples(run.plan, canary_count(run.plan))
    usable = usable_examples(own, copies)
    sides = usable & own, usable & ~own
    if not all(side.any(axis=1).all() for side in sides):
        raise NotEnoughEvidence(
            "all canaries of a trial have near-copies among the never-planted examples.",
            hint="Plant canaries of another kind, or fewer of them.",
        )
    if run.attack.success in ("precision", "tpr"):
        run.check_unseen(int(sides[1].sum(axis=1).min()))


def _checkpoint_file(name: str) -> str:
    return f"checkpoint-{name}.safetensors"


def _train_grid(runs: Runs, key: str, shared: GridData, context: JobContext) -> None:
    """Train one population; put each run's signals and test accuracy into the output."""
    data, losses, execution = shared.data, shared.losses, context.execution
    cast = _cast(runs, data, losses)
    copies = {
        name: near_copies(cast.planting.probed.images[question.canaries])
        for name, question in cast.ask.items()
    }
    for name, run in runs.items():
        check_comparable(run, copies[name])
    name, first = next(iter(runs.items()))
    steps = cast.members.schedule.steps
    # A run is disturbed at its own last lag, though a longer run beside it may continue.
    hidden = {
        f"{run_name}.hidden": Probe(
            hidden_probe(run, data, losses, cast.planting, question, execution),
            question.steps[-1:],
        )
        for (run_name, run), question in zip(runs.items(), cast.ask.values(), strict=True)
        if run.hidden is not None
    }
    fit, population = fit_classifiers(
        first,
        cast.members,
        cast.planting,
        execution,
        ask=cast.ask,
        also=hidden,
        checkpoint=context.checkpoint(_checkpoint_file(name), f"{key}/{name}"),
        on_step=context.on_step(name, steps),
    )
    for probe, signals in fit.probes.items():
        check_converged(signals, probe)
    for probe in hidden:
        for array_name, array in kept_disturbed(probe, fit.probes[probe][0]).items():
            context.output.put_array(array_name, array)
    accuracy = accuracy_of(population, cast.planting)
    for run_name, question in cast.ask.items():
        probed = cast.planting.probed
        context.output.put_array(f"{run_name}.labels", probed.labels[question.canaries])
        context.output.put_array(f"{run_name}.near_copies", copies[run_name])
        context.output.put_array(f"{run_name}.test_accuracy", accuracy[question.members])
        context.output.put_array(f"{run_name}.signals", fit.probes[run_name])
    context.output.update_execution(how_trained(name, fit))


def time_grid(runs: Runs, data: AuditData, execution: Execution) -> dict[str, float]:
    """Time a few steps and return members, steps, bytes and seconds of the whole training."""
    short = {
        name: dataclasses.replace(run, plan=_shortened(run.plan), attack=_unasked(run))
        for name, run in runs.items()
    }
    quick = _cast(short, data, None)
    clock = StepClock(execution.device)
    fit, _ = fit_classifiers(
        next(iter(runs.values())), quick.members, quick.planting, execution, on_step=clock
    )
    gaps = [after - before for before, after in itertools.pairwise(clock.times)]
    together, apart = sorted(gaps[:4])[1], sorted(gaps[-5:])[2]
    plans = [run.plan for run in runs.values()]
    shared = min(plan.checkpoint_step for plan in plans)
    steps = max(plan.steps for plan in plans)
    return {
        "members": sum(plan.members for plan in plans),
        "steps": steps,
        "bytes": fit.memory + quick.planting.store.images.nbytes,
        "seconds": together * shared + apart * (steps - shared),
    }


def _shortened(plan: TwinPlan) -> TwinPlan:
    return dataclasses.replace(plan, step=6, repeats=1, watch_steps=6)


def _unasked(run: ForgettingStudy) -> Any:
    return dataclasses.replace(run.attack, lags=(0,))
