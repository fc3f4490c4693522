"""From the exposures of all models to variants, effects, a Pareto front and a finding."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.measures.statistics.crossed_interval import crossed_share
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.choices.by_exposure import by_exposure
from remnant.studies.choices.differences import exposure_levels, main_effects, mean_ends
from remnant.studies.choices.population import trained_models
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.probe import most_followed, most_sampled
from remnant.studies.choices.recipe import ExposureTrainingStudy, changes_of
from remnant.studies.choices.result import (
    Ends,
    GridAxes,
    Through,
    TrainedVariant,
    TrainingChoices,
)
from remnant.studies.choices.variant_grid import fields_along
from remnant.studies.choices.verdict import compare_variants
from remnant.studies.shared.result_parts import LanguageTask, Tested
from remnant.studies.shared.wording import counted, times

Floats = NDArray[np.float64]


def put_training_results(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant]
) -> None:
    """Put everything that the study measured into the record; no secret is in it."""
    training = training_choices(record, study, runs)
    put_parts(record, training=training, verdict=compare_variants(record, study, runs))
    planted = runs["primary"].planted
    task = LanguageTask(
        validation_bits=training.variants[0].validation_bits[0],
        validation_tokens=int(planted.validation[:, 1:].size),
        token=study.text.level,
        uniform_bits=math.log2(planted.vocabulary.size),
    )
    put_parts(record, task=task, scope=_scope(study, runs, training))


def training_choices(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant]
) -> TrainingChoices:
    """Return all variants, the study itself first."""
    cells = study.cells()
    base = runs["primary"].study.to_dict()
    variants = tuple(
        _variant(
            record,
            name,
            run,
            study.measure.confidence,
            changes=changes_of(base, run.study),
            cell=cells[number].values if number < len(cells) else None,
        )
        for number, (name, run) in enumerate(runs.items())
    )
    axes = list(cells[0].values) if cells else []
    most = math.log2(study.secret.planted.space)
    inside = list(runs)[: len(cells)]
    effects = main_effects(
        cells,
        [exposure_levels(record, name, most) for name in inside],
        [record.array(f"{name}.losses")[:, 0] for name in inside],
        most=most,
        along=fields_along(study.grid),
        confidence=study.measure.confidence,
    )
    # An exposure that is a lower bound counts with the maximum that it can have.
    points = {
        variant.label: (
            variant.validation_bits[0],
            float(exposure_levels(record, name, most).highest.mean()),
        )
        for name, variant in zip(runs, variants, strict=True)
    }
    return TrainingChoices(
        title=study.title,
        space_bits=most,
        null_mean_bits=NULL_MEAN_BITS,
        repeats=tuple(study.plan.repeats),
        trials=study.plan.trials,
        models=trained_models(runs),
        confidence=study.measure.confidence,
        token=study.text.level,
        variants=variants,
        effects=tuple(effects),
        by_exposure=by_exposure(variants, space_bits=most),
        table=GridAxes(rows=axes[0], columns=axes[1]) if len(axes) == 2 else None,
        pareto=tuple(pareto_front(points)),
    )


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of the points on the Pareto front: smaller in both is better.

    A point is not on it where another is at least as good in both and better in one.

    Example:
        >>> pareto_front({"a": (1.0, 9.0), "b": (2.0, 3.0), "c": (2.0, 4.0), "d": (3.0, 1.0)})
        ['a', 'b', 'd']
    """

    def beaten(own: tuple[float, float]) -> bool:
        return any(
            other[0] <= own[0] and other[1] <= own[1] and other != own for other in points.values()
        )

    kept = [name for name, own in points.items() if not beaten(own)]
    return sorted(kept, key=lambda name: points[name])


def _variant(
    record: Record,
    name: str,
    run: PreparedVariant,
    confidence: float,
    *,
    changes: dict[str, Any],
    cell: dict[str, Any] | None,
) -> TrainedVariant:
    held = set(record.array_names())

    def array(what: str) -> Any:
        return record.array(f"{name}.{what}") if f"{name}.{what}" in held else None

    def each(what: str) -> Any:
        return None if array(what) is None else tuple(array(what).ravel().tolist())

    most = math.log2(run.study.secret.planted.space)
    losses, certified = array("losses"), array("certified")
    twin, controls, extracted = array("twin"), array("controls"), array("extracted")
    levels = exposure_levels(record, name, most)
    return TrainedVariant(
        label=run.study.label,
        changes=changes,
        cell=cell,
        repeats=tuple(run.plan.repeats),
        models=run.plan.trials,
        steps=run.plan.steps,
        exposure=mean_ends(levels.least, confidence, most, levels.highest),
        each=each("bits"),
        exact=bool(array("exact").all()),
        exact_each=each("exact"),
        saturated=int(array("saturated").sum()),
        saturated_each=each("saturated"),
        ranked_first=share_ends(array("first"), confidence) if array("first_known").all() else None,
        controls=None if controls is None else mean_ends(controls.mean(axis=1), confidence, most),
        twin=None if twin is None else mean_ends(twin.mean(axis=1), confidence, most),
        validation_bits=mean_ends(losses[:, 0], confidence),
        training_bits=mean_ends(losses[:, 1], confidence),
        extracted=None if extracted is None else share_ends(extracted, confidence),
        extracted_each=each("extracted"),
        nodes=None if extracted is None else float(np.median(array("nodes"))),
        nodes_each=None if extracted is None else each("nodes"),
        searches_ended=0 if certified is None else int((~certified).sum()),
        skew_normal=each("skew_normal"),
        parameters=run.parameters,
        through=_through(array("through"), run, confidence),
    )


def _through(followed: Floats | None, run: PreparedVariant, confidence: float) -> Through | None:
    if followed is None:
        return None
    # A trial does not depend on how many there are.
    alone = dataclasses.replace(run.plan, trials=1, twin=False)
    ledger = alone.ledger(examples=run.planted.examples)
    bits = followed[:, :, :-2].mean(axis=2)
    most = most_followed(run)
    return Through(
        step=tuple(run.looks),
        epoch=tuple(step / run.epoch_steps for step in run.looks),
        exposure=tuple(mean_ends(row, confidence, most) for row in bits),
        at_least=_lower_bounds(followed[:, :, :-2], run),
        validation_bits=tuple(mean_ends(row, confidence) for row in followed[:, :, -2]),
        training_bits=tuple(mean_ends(row, confidence) for row in followed[:, :, -1]),
        # Updates done when the first canary of the first trial had been used.
        uses=tuple(sorted({int(step) + 1 for step in ledger.step[ledger.canary == 0]})),
        method=run.study.follow.method,
        ceiling_bits=most,
    )


def _lower_bounds(bits: Floats, run: PreparedVariant) -> tuple[bool, ...]:
    """Whether, at each time, a canary had the maximum that sampling can show: a lower bound."""
    most = most_sampled(run)
    if most >= math.log2(run.study.secret.known.space) - 1e-9:
        return (False,) * len(bits)
    near: NDArray[np.bool_] = np.abs(bits - most) < 1e-9
    return tuple(bool(row.any()) for row in near)


def share_ends(hits: Any, confidence: float) -> Ends:
    """Return the share of hits, ``(trials, canaries)``, with its interval over trials."""
    if hits.shape[1] > 1:  # a model that gives one canary away gives others too
        return mean_ends(hits.mean(axis=1), confidence, 1.0)
    try:
        share = crossed_share(hits, confidence=confidence)
    except NotEnoughEvidence:
        return float(np.mean(hits)), None, None
    return share.value, share.low, share.high


def _scope(
    study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant], training: TrainingChoices
) -> Tested:
    first = runs["primary"]
    tested = [
        f"{training.models} models in "
        f"{counted(len(runs), 'variant')}, {study.plan.trials} seeds each; the first trained "
        f"{first.plan.steps} steps on "
        f"{first.planted.examples} windows of {study.text.window} {study.text.level}s, with "
        f"{counted(study.plan.canaries, 'canary', 'canaries')} planted "
        f"{', '.join(times(many) for many in sorted(set(study.plan.repeats)))}.",
        "Trials with one seed have the same secrets where the template is the same, the same start "
        "where the model is, and where batch and sampling are the same, the same order "
        "of the text, so that variants are compared in pairs.",
    ]
    if any(variant.saturated for variant in training.variants):
        tested.append("Some exposures are lower bounds: no reference was as likely.")
    not_tested = [
        "Secrets of another format, text or model; a choice may matter elsewhere and not here.",
        "Whether a variant was trained as well as it could be: compare the validation bits.",
    ]
    if study.plan.trials == 1:
        not_tested.append("How much another training run would differ: there was one seed.")
    return Tested(tested=tuple(tested), not_tested=tuple(not_tested))
