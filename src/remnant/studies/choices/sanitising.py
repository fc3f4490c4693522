"""Sanitised training text: suspected secrets are replaced, or left out.

By scan: what the scan detects is replaced in every window. By disagreement: windows on which two
models of disjoint halves of the text disagree most are left out of a trial's training, since a
model that was trained on a secret predicts it better than one that was not.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.canaries.natural import redact
from remnant.canaries.natural.redacting import PLACEHOLDERS
from remnant.errors import PlanError
from remnant.measures.exposure.disagreement import disagreeing_windows
from remnant.plans.plan import ORDER
from remnant.plans.schedule import ArraySchedule, Order, generator
from remnant.population import Population
from remnant.probes import window_signals
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.shared.classifiers import SomeMembers
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import finite_losses, language_model_maker

Ids = NDArray[np.int64]
_HALVES, _FILLED = 3, 5  # uses of a trial's order; 0 to 2 are those of training and relearning


def placeholder_template() -> Template:
    """Return a template with the characters of all placeholders, for the vocabulary."""
    return Template(f"{' '.join(PLACEHOLDERS.values())} {{digits:1}}")


def sanitised(run: PreparedVariant) -> PreparedVariant:
    """Return a run whose windows have placeholders in place of what the scan detects.

    Clean windows are sanitised too, so that false alarms cost usefulness. Held-out text stays. A
    window that becomes shorter goes on with the text after it, one that becomes longer loses its
    end.

    Raises:
        PlanError: Tokens are words: the words of a sanitised text are not known beforehand.
        MissingExtra: A library of the extra ``scan`` is not installed.
    """
    planted, plan = run.planted, run.plan
    if run.study.text.level != "character":
        raise PlanError(
            "kind = 'sanitising' needs text.level = 'character'.",
            hint="Leave the remedy out, or train on characters.",
        )
    clean = planted.store[: planted.examples]
    places = [plan.places(examples=planted.examples, trial=trial) for trial in range(plan.trials)]
    after = np.concatenate([np.arange(planted.examples), *places]) + 1
    following = clean[after % planted.examples, 1:]
    rows = [
        _sanitised_window(run, row, more)
        for row, more in zip(planted.store, following, strict=True)
    ]
    return dataclasses.replace(run, planted=dataclasses.replace(planted, store=np.stack(rows)))


def _sanitised_window(run: PreparedVariant, row: Ids, more: Ids) -> Ids:
    vocabulary = run.planted.vocabulary
    text = vocabulary.decode(row.tolist())
    redacted = redact(text).text
    if redacted == text:
        return row
    ids = np.array(vocabulary.encode(redacted), dtype=np.int64)
    return np.concatenate([ids, more])[: len(row)]


def trained_rows(run: PreparedVariant, trial: int) -> Ids:
    """Return the rows of the store that a planted model of a trial is trained on, in order."""
    examples, copies = run.planted.examples, run.plan.copies
    rows = np.arange(examples)
    rows[run.plan.places(examples=examples, trial=trial)] = (
        examples + trial * copies + np.arange(copies)
    )
    return rows


def halves(run: PreparedVariant, trial: int) -> tuple[Ids, Ids]:
    """Return two disjoint halves of the rows of a trial, drawn at random."""
    rows = trained_rows(run, trial)
    order = generator(run.plan.seed, ORDER, trial, _HALVES).permutation(len(rows))
    middle = len(rows) // 2
    return rows[np.sort(order[:middle])], rows[np.sort(order[middle:])]


def disagreeing_rows(run: PreparedVariant, execution: Execution, *, share: float) -> list[Ids]:
    """Train two models a trial, each on one half, and return the rows they disagree on most.

    Args:
        run: The training as planned, whose optimizer and number of epochs the two models have.
        execution: Where models compute.
        share: Of a trial's rows, those to return.
    """
    population = Population(
        language_model_maker(run.study, run.planted),
        seeds=np.repeat(run.plan.seeds[:: len(run.plan.arms)], 2).tolist(),
        device=execution.device,
        precision=run.plan.precision,
    )
    training, store = run.study.training, run.planted.store
    population.fit(
        store[:, :-1],
        store[:, 1:],
        _half_schedule(run),
        optimizer=training.optimizer,
        learning_rate=training.rate(),
        clip=training.clip,
        compiled=execution.compiled,
        **training.options,
    )
    made = []
    for trial in range(run.plan.trials):
        rows = trained_rows(run, trial)
        bits = window_signals(
            SomeMembers(population, slice(2 * trial, 2 * trial + 2)),
            store[rows],
            tokens=run.study.text.window,
            vocabulary_size=run.planted.vocabulary.size,
        )[:, 0]
        costs = finite_losses(bits.cpu().numpy(), where=" in sanitising by disagreement")
        made.append(rows[disagreeing_windows(costs[0], costs[1], share=share, width=1)])
    return made


def without_rows(run: PreparedVariant, dropped: list[Ids]) -> Ids:
    """Return the row that stands for each row of the store, ``(members, rows)``.

    A row that is dropped in a trial is replaced by one of its others, drawn at random, so that all
    trainings have as many steps and rows.
    """
    made = np.tile(np.arange(len(run.planted.store)), (run.plan.members, 1))
    arms = len(run.plan.arms)
    for trial, rows in enumerate(dropped):
        others = np.setdiff1d(trained_rows(run, trial), rows)
        rng = generator(run.plan.seed, ORDER, trial, _FILLED)
        chosen = rng.choice(others, size=len(rows))
        made[trial * arms : (trial + 1) * arms, rows] = chosen
    return made


def _half_schedule(run: PreparedVariant) -> ArraySchedule:
    """As many epochs over its half for each of a trial's two models; shuffled."""
    batch, steps = run.plan.batch, max(1, run.plan.steps // 2)
    streams = []
    for trial in range(run.plan.trials):
        for number, rows in enumerate(halves(run, trial)):
            order = Order(
                keys=[(run.plan.seed, ORDER, trial, _HALVES + 1, number)],
                pool=len(rows),
                batch=batch,
                sampling="epoch",
            )
            streams.append(np.stack([rows[order.rows(step)[0]] for step in range(steps)]))
    return ArraySchedule(np.stack(streams, axis=1))
