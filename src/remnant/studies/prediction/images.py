"""Image classifiers of a prediction study: their canaries, their training, and what they answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import MADE, mislabelled
from remnant.data import AuditData, Images
from remnant.plans import ShadowPlan
from remnant.population import Fit, Population
from remnant.probes import MARGINS, margin_signals
from remnant.probes.one_pass import LAST, OnePass, check_layer, one_pass
from remnant.records import Record
from remnant.studies.jobs.execution import JobOutput
from remnant.studies.prediction.early_looks import LOSS, Bools, Floats
from remnant.studies.prediction.recipe import PredictionStudy
from remnant.studies.prediction.task import PredictionTask
from remnant.studies.shared.classifiers import (
    Members,
    SomeMembers,
    accuracy_of,
    check_converged,
    check_made,
    check_pool,
    check_training,
    fit_classifiers,
    load_data,
    maker_of,
    task_fields,
)
from remnant.studies.shared.image_canaries import Planting, plant
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution

_BATCH = 1024  # examples whose hidden states are made at once
_TRIED = 8  # examples on which layers are tried


def prepare(study: PredictionStudy, execution: Execution) -> ImageTask:
    """Load the images and add the canaries.

    Raises:
        RemnantError: What cannot be planted, trained or looked at.
    """
    data = load_data(study, execution)
    _check(study, data, execution)
    planting, kinds = _planted(study, data)
    return ImageTask(
        study=study,
        execution=execution,
        fingerprint=data.fingerprint,
        labels=planting.store.labels,
        kinds=kinds,
        what=f"{study.model.title} on {study.data.title}",
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        origin=data.origin,
        data=data,
        planting=planting,
    )


def _check(study: PredictionStudy, data: AuditData, execution: Execution) -> None:
    check_training(study, data, execution)
    check_made(data, [kind for kind, count in study.canaries.counts.items() if count])
    check_pool(
        study.data,
        data,
        study.canaries.mislabelled,
        needs=f"canaries.mislabelled={study.canaries.mislabelled} are needed",
        hint="Plant fewer",
    )
    module = maker_of(study, execution, like=data.clean.images, classes=data.classes)()
    few = torch.from_numpy(data.clean.images[:_TRIED])
    _passed(study, module, few, torch.zeros(len(few), dtype=torch.int64))
    if study.model.maker is not None:
        for layer in _layers(study):
            check_layer(module, few, layer)


def _passed(study: PredictionStudy, module: nn.Module, inputs: Tensor, labels: Tensor) -> OnePass:
    """Ask a model once: all that a layer gives is the hidden state of the user's own network."""
    own = study.model.maker is not None
    return one_pass(module, inputs, labels, layers=_layers(study), batch=_BATCH, whole=own)


def _layers(study: PredictionStudy) -> tuple[str, ...]:
    """The layers as the model has them: the user's own network names its last one."""
    hidden = study.model.hidden or LAST
    return tuple(hidden if layer == LAST else layer for layer in study.predict.layers)


def _planted(study: PredictionStudy, data: AuditData) -> tuple[Planting, NDArray[np.str_]]:
    """Add the canaries to the clean examples; return them with the kind of each."""
    rng = np.random.default_rng([study.plan.seed, 1])
    shape = data.clean.images.shape[1:]
    sets, kinds = [data.clean.take(np.arange(0))], ["clean"] * len(data.clean)
    for kind, count in study.canaries.counts.items():
        if count == 0:
            continue
        if kind in MADE:
            sets.append(Images(*MADE[kind](shape, count=count, classes=data.classes, rng=rng)))
        else:
            rows, wrong = mislabelled(data.pool.labels, count=count, classes=data.classes, rng=rng)
            sets.append(Images(data.pool.images[rows], wrong))
        kinds += [kind] * count
    return plant(data, sets), np.array(kinds)


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageTask(PredictionTask):
    """Images with canaries, and the training of classifiers on them."""

    TIMED_STEPS: ClassVar[int] = 12

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
            store = self.planting.store
            make = maker_of(
                self.study, self.execution, like=store.images, classes=self.planting.classes
            )
            module = make()
            module.load_state_dict(models.state_dict(target))
            module.to(models.device)
            passed = _passed(
                self.study,
                module,
                torch.from_numpy(store.images[own]),
                torch.from_numpy(self.labels[own]),
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

    def useful(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""
        return ClassifierTask(**task_fields(record.array("targets.test_accuracy"), self.data))

    def memory(self, fit: Fit) -> int:
        """Return the bytes of a training, its images included."""
        return fit.memory + self.planting.store.images.nbytes
