"""Asks trained translators what they know: bits a token, exposure given a source, extraction."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.models import load_language_model, save_language_model
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.population import Population
from remnant.records import Record
from remnant.search import extract
from remnant.studies.exposure_audit import ExposureAudit, Progress
from remnant.studies.exposure_results import TrialExposure
from remnant.studies.language_models import finite_losses
from remnant.studies.planted_pairs import PairRows, PlantedPairs
from remnant.studies.saturated_exposure import measure_each
from remnant.studies.settings import Execution

if TYPE_CHECKING:
    from pathlib import Path

    from remnant.studies.translation import TranslationStudy

MODELS = "models"
_TOGETHER = 64


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return what each label costs, in nats; 0 where there is none. Any axes before them."""
    there = labels >= 0
    costs = -logits.log_softmax(-1).gather(-1, (labels * there)[..., None])[..., 0]
    return costs * there


def sentence_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each example's cost as a share of the longest sentence: every token weighs the same.

    Args:
        logits: ``(batch, time, vocabulary)``.
        labels: ``(batch, time)``, -1 beyond a sentence's end.
    """
    return token_losses(logits, labels).sum(-1) / labels.shape[-1]


def validation_bits(population: Population, rows: PairRows) -> NDArray[np.float64]:
    """Return each member's mean cost of a target's token given its source, in bits.

    Raises:
        InvalidInput: One of them is not finite.
    """
    total = torch.zeros(len(population), dtype=torch.float64)
    inputs, labels = torch.from_numpy(rows.inputs), torch.from_numpy(rows.labels)
    for some, theirs in zip(inputs.split(_TOGETHER), labels.split(_TOGETHER), strict=True):
        logits = population.logits(some).double()
        wanted = theirs.to(logits.device).expand(len(population), -1, -1)
        total += token_losses(logits, wanted).sum((1, 2)).cpu()
    bits = total / (int((labels >= 0).sum()) * math.log(2))
    return finite_losses(bits.numpy())


def measure_trial(
    study: TranslationStudy,
    planted: PlantedPairs,
    population: Population,
    record: Record,
    execution: Execution,
    trial: int,
    uses: Any,
    progress: Progress | None,
) -> TrialExposure:
    """Measure one trial's canaries and controls in its members, and search for secrets."""
    drawn = planted.sets[trial]
    audits, searches = {}, {}
    for arm in study.plan.arms:
        name = f"{arm}-{trial + 1}"
        folder = record.folder / MODELS / name
        save_language_model(
            folder,
            architecture=study.model.name,
            options=study.model_options,
            state=population.state_dict(int(study.plan.members_of(arm)[trial])),
            vocabulary=planted.vocabulary,
        )
        audits[arm] = _audit(study, planted, folder, execution, trial, progress)
        record.put_array(f"{name}.reference_costs", audits[arm].reference_costs)
        searches[f"{arm}, trial {trial + 1}"] = extract(
            load_language_model(folder, device=execution.device, source=study.secret.beginning),
            drawn.template,
            top=study.measure.top,
            max_nodes=study.measure.max_nodes,
            progress=progress,
        )
    return TrialExposure(drawn, uses[trial], audits["planted"], audits.get("twin"), searches)


def _audit(
    study: TranslationStudy,
    planted: PlantedPairs,
    folder: Path,
    execution: Execution,
    trial: int,
    progress: Progress | None,
) -> ExposureAudit:
    """Measure all secrets of a trial in one model, each given the source it is asked with."""
    drawn = planted.sets[trial]
    secrets = [canary.secret for canary in (*drawn.canaries, *drawn.controls)]
    groups = [secrets] if study.secret.shared else [[one] for one in secrets]
    found = [
        measure_each(
            load_language_model(
                folder, device=execution.device, source=study.secret.asked(group[0])
            ),
            drawn.template,
            secrets=group,
            # Sources of their own, references of their own: what is tested must not share luck.
            rng=generator(study.plan.seed, SPLIT, trial, *([at] if len(groups) > 1 else [])),
            method=study.measure.method,  # type: ignore[arg-type]
            references=study.measure.references,
            max_nodes=study.measure.max_nodes,
            progress=progress,
        )
        for at, group in enumerate(groups)
    ]
    return found[0] if len(found) == 1 else _joined(found)


def _joined(found: list[ExposureAudit]) -> ExposureAudit:
    """Join audits of one secret each; references of different sources make no common histogram."""
    exact = sum(one.method == "exact" or one.each[0].rank is not None for one in found)
    reason = "each secret was given its own source, and ranked exactly where that could be afforded"
    if len({one.reason for one in found}) == 1:
        reason = found[0].reason
    tolerances = [one.tolerance for one in found if one.tolerance is not None]
    return dataclasses.replace(
        found[0],
        method="exact" if exact == len(found) else "sampled",
        reason=reason,
        each=tuple(each for one in found for each in one.each),
        extrapolated=None,
        nodes=sum(one.nodes for one in found),
        tolerance=max(tolerances, default=None),
        complete=all(one.complete for one in found),
    )
