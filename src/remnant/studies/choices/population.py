"""Trains the variants of a study of training choices in as few populations as they allow.

Runs go into one population where text, model, batch, steps and the optimizer's switches are the
same; seeds, canaries and the optimizer's numbers may differ. Runs that differ only in how the
models are measured are trained once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from remnant.plans.bounds import is_number
from remnant.plans.plan import fingerprint
from remnant.plans.schedule import JoinedSchedule, Joint
from remnant.population import Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.studies.choices.prepared import PreparedVariant, Runs
from remnant.studies.choices.probe import look_on, measure_run
from remnant.studies.jobs.execution import Job, JobContext
from remnant.studies.pipeline import StepClock
from remnant.studies.shared.classifiers import how_trained
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import language_model_maker

Work = Callable[[Runs, JobContext], None]


def populations(runs: Runs) -> list[dict[str, PreparedVariant]]:
    """Sort runs into those that one population can hold, in their order."""
    made: dict[str, dict[str, PreparedVariant]] = {}
    for name, run in runs.items():
        plain = run.study.to_dict()
        training = dict(plain["training"])
        training.pop("options")
        options = _options(run)
        fixed = {key: None if is_number(value) else value for key, value in options.items()}
        poisson = run.plan.sampling == "poisson"
        plan = [run.plan.batch, run.plan.steps, run.plan.precision, poisson]
        text = [
            plain.get("data"),
            plain["text"],
            run.planted.vocabulary.kind,
            run.planted.vocabulary.symbols,
        ]
        clean = hashlib.sha256(run.planted.store[: run.planted.examples].tobytes()).hexdigest()
        training["clip"] = training["clip"] is not None  # each member may have its own
        key = fingerprint([plain["model"], training, fixed, plan, text, clean, run.stopping])
        made.setdefault(key, {})[name] = run
    return list(made.values())


def _options(run: PreparedVariant) -> dict[str, Any]:
    """The optimizer's options, always with a weight decay: members may differ in it."""
    training = run.study.training
    rule = make_optimizer(training.optimizer, members=1, options=training.options)
    return {"weight_decay": rule.settings["weight_decay"][0], **training.options}


def trained_models(runs: Runs) -> int:
    """How many models with canaries are trained; models that are measured twice count once."""
    return sum(
        run.plan.trials
        for together in populations(runs)
        for run in {_training_key(run): run for run in together.values()}.values()
    )


def _training_key(run: PreparedVariant) -> str:
    """Equal for two runs of one population that are the same training."""
    plain = run.study.to_dict()
    training = plain["training"]
    planted = hashlib.sha256(run.planted.store[run.planted.examples :].tobytes()).hexdigest()
    return fingerprint(
        [
            *(plain["plan"], plain["secret"]["template"], training["options"], training["clip"]),
            *(planted, run.clean_last, None if run.replaced is None else run.replaced.tolist()),
        ]
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cast:
    """The members of one population, and which run they belong to."""

    schedule: JoinedSchedule
    store: Any
    seeds: list[int]
    dropout_seeds: list[int]
    noise_seeds: list[int]
    options: dict[str, Any]
    clip: Any
    members: dict[str, slice]


def _cast(runs: Runs, *, steps: int | None = None) -> _Cast:
    """Put the members of all runs into one schedule over one store."""
    first = next(iter(runs.values()))
    examples = first.planted.examples
    places: dict[str, int] = {}
    trained: dict[str, PreparedVariant] = {}
    for name, run in runs.items():
        key = _training_key(run)
        trained.setdefault(key, run)
        places[name] = list(trained).index(key)
    joints, shift = [], 0
    for run in trained.values():
        joints.append(Joint(run.schedule(steps=steps), shift=shift))
        shift += len(run.planted.store) - examples
    schedule = JoinedSchedule(joints, examples=examples)
    whose = [schedule.members_of(i) for i in range(len(trained))]
    options = [_options(run) for run in trained.values()]
    counts = [run.plan.members for run in trained.values()]
    return _Cast(
        schedule=schedule,
        store=np.concatenate(
            [
                first.planted.store[:examples],
                *(run.planted.store[examples:] for run in trained.values()),
            ]
        ),
        seeds=[seed for run in trained.values() for seed in run.plan.seeds],
        dropout_seeds=[seed for run in trained.values() for seed in run.plan.dropout_seeds],
        noise_seeds=[seed for run in trained.values() for seed in run.plan.noise_seeds],
        options={key: _spread([own[key] for own in options], counts) for key in options[0]},
        clip=_spread([run.study.training.clip for run in trained.values()], counts),
        members={
            name: slice(int(whose[place][0]), int(whose[place][-1]) + 1)
            for name, place in places.items()
        },
    )


def _spread(values: list[Any], counts: Iterable[int]) -> Any:
    """Return one value for all members, or a list with each member's own."""
    if all(value == values[0] for value in values):
        return values[0]
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def _fit(runs: Runs, cast: _Cast, execution: Execution, **choices: Any) -> tuple[Fit, Population]:
    first = next(iter(runs.values()))
    training = first.study.training
    population = Population(
        language_model_maker(first.study, first.planted),
        seeds=cast.seeds,
        dropout_seeds=cast.dropout_seeds,
        noise_seeds=cast.noise_seeds,
        device=execution.device,
        precision=first.plan.precision,
    )
    fit = population.fit(
        cast.store[:, :-1],
        cast.store[:, 1:],
        cast.schedule,
        optimizer=training.optimizer,
        learning_rate=training.rate(),
        clip=cast.clip,
        early_stop=first.early_stop(),
        compiled=execution.compiled,
        **choices,
        **cast.options,
    )
    return fit, population


def population_job(names: Sequence[str], runs: Runs, work: Work, *, named: str) -> Job:
    """Return the job that trains one population.

    Args:
        names: Of the runs of the population.
        runs: All runs of the study.
        work: Trains it.
        named: The stage in words.
    """
    together = {name: runs[name] for name in names}
    trained = {_training_key(run): run for run in together.values()}
    return Job(
        name=named,
        work=work,
        members=sum(run.plan.members for run in trained.values()),
        steps=max(run.plan.steps for run in trained.values()),
        saved=_checkpoint_file(names[0]),
    )


def _checkpoint_file(name: str) -> str:
    return f"checkpoint-{name}.safetensors"


def train_population(
    runs: Runs, context: JobContext, *, key: str, wanted: Iterable[str], named: str
) -> tuple[Population, dict[str, slice]]:
    """Train one population, measure it during training, and measure the runs in ``wanted``.

    A run is measured completely if the output has its array ``bits``, so that an interrupted study
    resumes with the next run.

    Args:
        runs: Those of the population.
        context: Where it runs.
        key: Of the checkpoint.
        wanted: Names of the runs to measure.
        named: The stage that the progress callback is called with.

    Returns:
        The trained population and the members of each run.
    """
    cast = _cast(runs)
    first = next(iter(runs))
    execution = context.execution
    followed = {name: run for name, run in runs.items() if run.looks}
    steps = cast.schedule.steps
    fit, population = _fit(
        runs,
        cast,
        execution,
        probes={
            name: look_on(run, cast.members[name], execution) for name, run in followed.items()
        },
        probe_steps={name: run.looks for name, run in followed.items()},
        checkpoint=context.checkpoint(_checkpoint_file(first), f"{key}/{first}"),
        on_step=context.on_step(named, steps),
    )
    context.output.update_execution(how_trained(first, fit))
    for name in wanted:
        if name in fit.probes:
            context.output.put_array(f"{name}.through", fit.probes[name])
        measured = measure_run(
            runs[name], cast.members[name], population, execution, context.progress
        )
        for array, values in measured.items():  # the bits come last
            context.output.put_array(f"{name}.{array}", values)
    return population, cast.members


def time_population(runs: Runs, execution: Execution) -> dict[str, float]:
    """Time a few steps of training, and estimate what training and measurement take.

    After training one trial is timed, without exact ranks and extractions: what these take depends
    on what the models will have learnt.
    """
    clock = StepClock(execution.device)
    cast = _cast(runs, steps=8)
    fit, population = _fit(runs, cast, execution, on_step=clock)
    a_step = clock.typical
    steps = next(iter(runs.values())).plan.steps

    def timed(work: Callable[[], object]) -> float:
        clock(0)
        work()
        clock(0)
        return clock.times[-1] - clock.times[-2]

    measuring = 0.0
    for name, run in runs.items():
        own = cast.members[name]
        if run.looks:
            look = look_on(run, own, execution)
            measuring += timed(partial(look, population)) * len(run.looks)
        if run.study.measure.references:
            first = slice(own.start, own.start + len(run.plan.arms))
            trial = _one_trial(run)
            measure = partial(measure_run, trial, first, population, execution, None)
            measuring += timed(measure) * run.plan.trials
    return {
        "members": len(cast.seeds),
        "steps": steps,
        "bytes": fit.memory + cast.store.nbytes,
        "seconds": a_step * steps + measuring,
        "measuring": measuring,
    }


def _one_trial(run: PreparedVariant) -> PreparedVariant:
    """The first trial of a run, without exact ranks and extractions."""
    measure = dataclasses.replace(run.study.measure, method="sampled", extract=False)
    return dataclasses.replace(
        run,
        study=dataclasses.replace(run.study, measure=measure),
        plan=dataclasses.replace(run.plan, trials=1),
    )
