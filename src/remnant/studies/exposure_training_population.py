"""Trains the variants of a study of training choices in as few populations as they allow.

Runs go into one population where text, model, batch, steps and the optimizer's switches are the
same; seeds, canaries and the optimizer's numbers may differ. Runs that differ in what is asked of
the models alone are trained once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from remnant.data import corpus_fingerprint
from remnant.plans import InsertPlan
from remnant.plans.fingerprint import fingerprint
from remnant.plans.joined import JoinedSchedule, Joint
from remnant.population import Checkpoint, Fit, Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.search import compile_template
from remnant.search.walk import Budget
from remnant.studies.classifiers import how_trained
from remnant.studies.exposure_audit import Progress
from remnant.studies.exposure_training_probe import look_on, measure_run
from remnant.studies.language_models import language_model_maker, load_text
from remnant.studies.machine import StepClock
from remnant.studies.planted_text import PlantedText, plant_text
from remnant.studies.settings import Execution, number

if TYPE_CHECKING:
    from remnant.studies.exposure_training import ExposureTrainingStudy


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One variant, ready to be trained.

    Attributes:
        study: What is asked, alone.
        plan: Its plan, with the steps that the text makes of its epochs.
        planted: Text and canaries.
        looks: After how many steps its models are looked at.
        text_fingerprint: Of its text.
        parameters: Of one of its models.
    """

    study: ExposureTrainingStudy
    plan: InsertPlan
    planted: PlantedText
    looks: tuple[int, ...]
    text_fingerprint: str
    parameters: int

    @property
    def epoch_steps(self) -> float:
        """Steps of one pass over the text."""
        return self.planted.examples / self.plan.batch


Runs = Mapping[str, Run]


def prepare_runs(
    parts: Mapping[str, ExposureTrainingStudy], execution: Execution
) -> dict[str, Run]:
    """Plant every variant's text; refuse what cannot be planted, trained or walked.

    Raises:
        RemnantError: Anything the user can mend, before anything is written.
    """
    contexts = [
        one for study in parts.values() for one in (study.secret.planted, study.secret.known)
    ]
    texts: dict[str, Any] = {}
    plantings: dict[str, PlantedText] = {}
    made = {}
    for name, study in parts.items():
        plain = study.to_dict()
        known = fingerprint(plain["text"])
        if known not in texts:
            texts[known] = load_text(study.text, execution)
        text = texts[known]
        plan = study.plan.of(examples=1)
        drawn = [getattr(plan, one) for one in ("repeats", "trials", "controls", "seed")]
        own = fingerprint([known, study.secret.template, *drawn, plan.sampling])
        if own not in plantings:
            plantings[own] = plant_text(
                plan,
                study.secret.planted,
                text,
                level=study.text.level,
                window=study.text.window,
                also=contexts,
            )
        planted = plantings[own]
        plan = study.plan.of(examples=planted.examples)
        make_optimizer(study.training.optimizer, members=1, options=study.training.options)
        module = language_model_maker(study, planted)()
        canary = study.secret.known.text(planted.sets[0].canaries[0].secret)
        with torch.no_grad():  # a model may have a longest text
            module(torch.from_numpy(planted.store[:1, :-1]))
            module(torch.tensor([planted.vocabulary.encode(canary)]))
        automaton = compile_template(planted.vocabulary.encode, study.secret.known)
        Budget(max_nodes=study.measure.max_nodes).check(automaton)
        made[name] = Run(
            study=study,
            plan=plan,
            planted=planted,
            looks=study.follow.steps(last=plan.steps, epoch_steps=planted.examples / plan.batch),
            text_fingerprint=corpus_fingerprint(text),
            parameters=sum(one.numel() for one in module.parameters()),
        )
    return made


def populations(runs: Runs) -> list[dict[str, Run]]:
    """Sort runs into those that one population can hold, in their order."""
    made: dict[str, dict[str, Run]] = {}
    for name, run in runs.items():
        plain = run.study.to_dict()
        training = dict(plain["training"])
        options = training.pop("options")
        fixed = {key: None if number(value) else value for key, value in options.items()}
        plan = [run.plan.batch, run.plan.steps, run.plan.precision]
        text = [plain["text"], run.planted.vocabulary.kind, run.planted.vocabulary.symbols]
        key = fingerprint([plain["model"], training, fixed, plan, text])
        made.setdefault(key, {})[name] = run
    return list(made.values())


def trained_models(runs: Runs) -> int:
    """How many models with canaries are trained: those that are asked twice count once."""
    return sum(
        run.plan.trials
        for together in populations(runs)
        for run in {_alike(run): run for run in together.values()}.values()
    )


def _alike(run: Run) -> str:
    """What makes two runs of one population the same training."""
    plain = run.study.to_dict()
    return fingerprint([plain["plan"], plain["secret"]["template"], plain["training"]["options"]])


@dataclass(frozen=True, slots=True, eq=False)
class _Cast:
    """What one population is made of, and which of its members are whose."""

    schedule: JoinedSchedule
    store: Any
    seeds: list[int]
    dropout_seeds: list[int]
    options: dict[str, Any]
    members: dict[str, slice]


def _cast(runs: Runs, *, steps: int | None = None) -> _Cast:
    """Put the members of all runs into one schedule over one store."""
    first = next(iter(runs.values()))
    examples = first.planted.examples
    places: dict[str, int] = {}
    trained: dict[str, Run] = {}
    for name, run in runs.items():
        alike = _alike(run)
        trained.setdefault(alike, run)
        places[name] = list(trained).index(alike)
    joints, shift = [], 0
    for run in trained.values():
        plan = run.plan if steps is None else dataclasses.replace(run.plan, steps=steps)
        joints.append(Joint(plan.schedule(examples=examples), shift=shift))
        shift += len(run.planted.store) - examples
    schedule = JoinedSchedule(joints, examples=examples)
    whose = [schedule.members_of(i) for i in range(len(trained))]
    options = [run.study.training.options for run in trained.values()]
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
        options={key: _spread([one[key] for one in options], counts) for key in options[0]},
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
        device=execution.device,
        precision=first.plan.precision,
    )
    fit = population.fit(
        cast.store[:, :-1],
        cast.store[:, 1:],
        cast.schedule,
        optimizer=training.optimizer,
        learning_rate=training.rate(),
        clip=training.clip,
        compiled=execution.compiled,
        **choices,
        **cast.options,
    )
    return fit, population


def train_population(
    runs: Runs,
    execution: Execution,
    record: Record,
    *,
    key: str,
    wanted: Iterable[str],
    named: str,
    progress: Progress | None,
) -> None:
    """Train one population, look at it on the way, and measure the runs that are wanted.

    What was measured of a run is in the record when its array ``bits`` is: a run of the study that
    is cut short goes on with the next.
    """
    cast = _cast(runs)
    name = next(iter(runs))
    path = record.folder / f"checkpoint-{name}.safetensors"
    looked = {one: run for one, run in runs.items() if run.looks}
    steps = cast.schedule.steps
    fit, population = _fit(
        runs,
        cast,
        execution,
        probes={one: look_on(run, cast.members[one], execution) for one, run in looked.items()},
        probe_steps={one: run.looks for one, run in looked.items()},
        checkpoint=Checkpoint(path, seconds=execution.checkpoint_seconds, key=f"{key}/{name}"),
        on_step=None if progress is None else lambda done: progress(named, done, steps),
    )
    record.update_execution(how_trained(name, fit))
    for one in wanted:
        if one in fit.probes:
            record.put_array(f"{one}.through", fit.probes[one])
        measured = measure_run(runs[one], cast.members[one], population, execution, progress)
        for array, found in measured.items():  # the bits come last
            record.put_array(f"{one}.{array}", found)
    remove_checkpoint(path)


def time_population(runs: Runs, execution: Execution) -> dict[str, float]:
    """Time a few steps of the real thing, and say what training, looks and measurement would take.

    At the end one trial is timed. Walks and extractions are left out there: what they take depends
    on what models will have learnt.
    """
    clock = StepClock(execution.device)
    cast = _cast(runs, steps=8)
    fit, population = _fit(runs, cast, execution, on_step=clock)
    a_step = clock.typical
    steps = next(iter(runs.values())).plan.steps
    asking = 0.0
    for name, run in runs.items():
        own = cast.members[name]
        if run.looks:
            look = look_on(run, own, execution)
            clock(0)
            look(population)
            clock(0)
            asking += (clock.times[-1] - clock.times[-2]) * len(run.looks)
        if run.study.measure.references:
            one = slice(own.start, own.start + len(run.plan.arms))
            clock(0)
            measure_run(_one_trial(run), one, population, execution, None)
            clock(0)
            asking += (clock.times[-1] - clock.times[-2]) * run.plan.trials
    return {
        "members": len(cast.seeds),
        "steps": steps,
        "bytes": fit.memory + cast.store.nbytes,
        "seconds": a_step * steps + asking,
    }


def _one_trial(run: Run) -> Run:
    """The first trial of a run, of which nothing is walked and nothing extracted."""
    measure = dataclasses.replace(run.study.measure, method="sampled", extract=False)
    return dataclasses.replace(
        run,
        study=dataclasses.replace(run.study, measure=measure),
        plan=dataclasses.replace(run.plan, trials=1),
    )
