"""Trains the image classifiers of a prediction study, and reads signals off them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remnant.data import AuditData
from remnant.plans import ShadowPlan
from remnant.population import Fit, Population
from remnant.probes import MARGINS, margin_signals
from remnant.probes.one_pass import one_pass
from remnant.records import Record
from remnant.studies.jobs.execution import JobOutput
from remnant.studies.prediction.early_looks import LOSS, Bools, Floats
from remnant.studies.prediction.recipe import PredictionStudy
from remnant.studies.prediction.shadow_training import ShadowTraining
from remnant.studies.shared.classifiers import (
    Members,
    SomeMembers,
    accuracy_of,
    check_converged,
    fit_classifiers,
    maker_of,
    task_fields,
)
from remnant.studies.shared.image_canaries import Planting
from remnant.studies.shared.result_parts import ClassifierTask

_BATCH = 1024  # examples whose hidden states are made at once


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageTraining(ShadowTraining):
    """The training of image classifiers; see ``ShadowTraining``."""

    study: PredictionStudy
    data: AuditData
    planting: Planting

    def fit(
        self,
        members: range | tuple[int, ...],
        *,
        plan: ShadowPlan | None = None,
        **choices: Any,
    ) -> tuple[Fit, Population]:
        """Train these members of ``plan``, by default the study's."""
        study = dataclasses.replace(self.study, plan=plan or self.study.plan)
        own_seeds = [study.plan.seeds[member] for member in members]
        chosen = Members(
            schedule=study.plan.schedule(examples=len(self.labels), members=members),
            seeds=own_seeds,
            dropout_seeds=own_seeds,
            noise_seeds=[study.plan.noise_seeds[member] for member in members],
            options=study.training.options,
            precision=study.plan.precision,
        )
        probes = choices.pop("probes", None)
        return fit_classifiers(study, chosen, self.planting, self.execution, also=probes, **choices)

    def signals(self, models: Population) -> Tensor:
        """Return loss, log-odds and logit gap of all examples, shape ``(members, 3, n)``."""
        return margin_signals(models, self.planting.store.images, self.labels)

    def first_losses(self, models: Population, own: Bools) -> Tensor:
        """Return the first member's losses on the examples that it was trained on."""
        first = SomeMembers(models, slice(1))
        return margin_signals(first, self.planting.store.images[own], self.labels[own])[0, LOSS]

    def look(self, models: Population, seen: Bools) -> Iterator[tuple[Floats, list[Tensor]]]:
        """Yield each target's signals and hidden states, from one pass over its own examples."""
        for target, own in enumerate(seen):
            module = maker_of(
                self.study, self.execution, shape=self.planting.shape, classes=self.planting.classes
            )()
            module.load_state_dict(models.state_dict(target))
            module.to(models.device)
            passed = one_pass(
                module,
                torch.from_numpy(self.planting.store.images[own]),
                torch.from_numpy(self.labels[own]),
                layers=self.study.predict.layers,
                batch=_BATCH,
            )
            signals = np.full((len(MARGINS), own.size), np.nan)
            signals[:, own] = torch.stack([passed.losses, passed.log_odds, passed.logit_gaps])
            yield signals, [hidden.to(models.device) for hidden in passed.hidden]

    def trained_targets(
        self, record: JobOutput, fit: Fit, models: Population, own: Bools
    ) -> Floats:
        """Record the accuracy; return the losses, NaN where an example was not trained on."""
        losses = np.full((len(fit.probes["trace"]), own.size), np.nan)
        losses[:, own] = fit.probes["trace"]
        check_converged(losses[:, own], "targets")
        record.put_array("targets.test_accuracy", accuracy_of(models, self.planting))
        return losses

    def task(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""
        return ClassifierTask(**task_fields(record.array("targets.test_accuracy"), self.data))
