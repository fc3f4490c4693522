"""The variants of a study of training choices with their texts planted, ready to be trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries import Template
from remnant.data import corpus_fingerprint
from remnant.data.own_files import Origin
from remnant.plans import InsertPlan
from remnant.plans.changed_rows import CleanLast, ReplacedRows
from remnant.plans.plan import fingerprint
from remnant.plans.schedule import Schedule
from remnant.population import EarlyStop
from remnant.population.optimizers import make_optimizer
from remnant.search import compile_template
from remnant.search.walk import Budget
from remnant.studies.choices.recipe import ExposureTrainingStudy
from remnant.studies.shared.planted_text import PlantedText, plant_text
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import language_model_maker, load_text


@dataclass(frozen=True, slots=True, eq=False)
class PreparedVariant:
    """One variant, ready to be trained.

    Attributes:
        study: The variant's study, without other variants.
        plan: Its plan, with the steps that the text makes of its epochs.
        planted: Text and canaries.
        looks: Steps after which its models are measured.
        text_fingerprint: Of its text.
        origin: The user's own files that the text was read from, or None.
        parameters: Of one of its models.
        clean_last: Steps at the end in which no canary is used; see ``CleanLast``.
        stopping: Steps between two looks at the validation loss, and the looks without improvement
            after which a model stops; None where models are trained to the end.
        replaced: The row that stands for each row of the store, ``(members, rows)``; see
            ``ReplacedRows``. None where every row stands for itself.
    """

    study: ExposureTrainingStudy
    plan: InsertPlan
    planted: PlantedText
    looks: tuple[int, ...]
    text_fingerprint: str
    origin: Origin | None
    parameters: int
    clean_last: int = 0
    stopping: tuple[int, int] | None = None
    replaced: NDArray[np.int64] | None = None

    @property
    def epoch_steps(self) -> float:
        """Steps of one pass over the text."""
        return self.planted.examples / self.plan.batch

    def schedule(self, *, steps: int | None = None) -> Schedule:
        """Return the batches of its models.

        Args:
            steps: Walk only so many, canaries in their usual order; all, if not given.
        """
        if steps is not None:
            plan = dataclasses.replace(self.plan, steps=steps)
            return plan.schedule(examples=self.planted.examples)
        schedule = self.plan.schedule(examples=self.planted.examples)
        if self.replaced is not None:
            schedule = ReplacedRows(schedule, self.replaced)
        if not self.clean_last:
            return schedule
        return CleanLast(
            schedule,
            examples=self.planted.examples,
            clean=self.clean_last,
            seed=self.plan.seed,
        )

    def early_stop(self) -> EarlyStop | None:
        """Return when its models stop, by the loss on the held-out windows."""
        if self.stopping is None:
            return None
        every, patience = self.stopping
        held_out = self.planted.validation
        return EarlyStop(held_out[:, :-1], held_out[:, 1:], every=every, patience=patience)


Runs = Mapping[str, PreparedVariant]


def prepare_runs(
    parts: Mapping[str, ExposureTrainingStudy],
    execution: Execution,
    *,
    also: Sequence[Template] = (),
) -> dict[str, PreparedVariant]:
    """Plant every variant's text; refuse what cannot be planted, trained or ranked.

    Args:
        parts: The variants by name.
        execution: Where the text is.
        also: Templates whose text the vocabulary has too.

    Raises:
        RemnantError: Anything the user can fix, before anything is written.
    """
    contexts = [
        *also,
        *(
            template
            for study in parts.values()
            for template in (study.secret.planted, study.secret.known)
        ),
    ]
    texts: dict[str, Any] = {}
    plantings: dict[str, PlantedText] = {}
    made = {}
    for name, study in parts.items():
        plain = study.to_dict()
        known = fingerprint([plain.get("data"), plain["text"]])
        if known not in texts:
            texts[known] = load_text(study.text, study.data, execution)
        text = texts[known]
        plan = study.plan.of(examples=1)
        drawn = [getattr(plan, name) for name in ("repeats", "trials", "controls", "seed")]
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
        made[name] = PreparedVariant(
            study=study,
            plan=plan,
            planted=planted,
            looks=study.follow.steps(last=plan.steps, epoch_steps=planted.examples / plan.batch),
            text_fingerprint=corpus_fingerprint(text),
            origin=text.origin,
            parameters=sum(tensor.numel() for tensor in module.parameters()),
        )
    return made
