"""From what models were seen to give away to variants, a table, a front and a verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures.crossed_interval import crossed_share
from remnant.measures.exposure import NULL_MEAN_BITS
from remnant.measures.trial_mean import trial_mean
from remnant.records import Record
from remnant.studies.by_exposure import by_exposure
from remnant.studies.effects import main_effects
from remnant.studies.exposure_training_population import trained_models
from remnant.studies.exposure_training_probe import most_followed, most_sampled
from remnant.studies.exposure_training_verdict import exposure_levels, verdict_fields
from remnant.studies.variant_grid import fields_along
from remnant.studies.variants import difference
from remnant.studies.wording import counted, times

if TYPE_CHECKING:
    from remnant.studies.exposure_training import ExposureTrainingStudy
    from remnant.studies.exposure_training_population import Run

Floats = NDArray[np.float64]


def put_training_results(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, Run]
) -> None:
    """Put everything that the study measured into the record; no secret is in it."""
    training = training_fields(record, study, runs)
    record.put_result("training", training)
    record.put_result("verdict", verdict_fields(record, study, runs))
    first = training["variants"][0]
    record.put_result(
        "task",
        {
            "validation_bits": first["validation_bits"][0],
            "validation_tokens": int(runs["primary"].planted.validation[:, 1:].size),
            "token": study.text.level,
            "uniform_bits": math.log2(runs["primary"].planted.vocabulary.size),
        },
    )
    record.put_result("scope", _scope(study, runs, training))


def changes_of(table: Mapping[str, Any], study: ExposureTrainingStudy) -> dict[str, Any]:
    """Return the fields in which a variant differs from a plain study, its names aside."""
    found = difference(table, study.to_dict())
    return {name: fields for name, fields in found.items() if name not in ("label", "title")}


def training_fields(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, Run]
) -> dict[str, Any]:
    """Return all variants as plain data, the study itself first."""
    cells = study.cells()
    plain = runs["primary"].study.to_dict()
    variants = []
    for number, (name, run) in enumerate(runs.items()):
        variants.append(
            {
                "label": run.study.label,
                "changes": changes_of(plain, run.study),
                "cell": cells[number].values if number < len(cells) else None,
                **_variant_fields(record, name, run, study.measure.confidence),
            }
        )
    axes = list(cells[0].values) if cells else []
    most = math.log2(study.secret.planted.space)
    inside = list(runs)[: len(cells)]
    return {
        "title": study.title,
        "space_bits": most,
        "null_mean_bits": NULL_MEAN_BITS,
        "repeats": list(study.plan.repeats),
        "trials": study.plan.trials,
        "models": trained_models(runs),
        "confidence": study.measure.confidence,
        "token": study.text.level,
        "variants": variants,
        "effects": main_effects(
            cells,
            [exposure_levels(record, name, most) for name in inside],
            [record.array(f"{name}.losses")[:, 0] for name in inside],
            most=most,
            along=fields_along(study.grid),
            confidence=study.measure.confidence,
        ),
        "by_exposure": by_exposure(variants, space_bits=most),
        "table": {"rows": axes[0], "columns": axes[1]} if len(axes) == 2 else None,
        # What has "at least" so many bits counts with the most that it can have.
        "pareto": pareto_front(
            {
                one["label"]: (
                    one["validation_bits"][0],
                    float(exposure_levels(record, name, most).highest.mean()),
                )
                for name, one in zip(runs, variants, strict=True)
            }
        ),
    }


def pareto_front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names of the points that no other is better than: smaller in both is better.

    A point is beaten by one that is at least as good in both and better in one.

    Example:
        >>> pareto_front({"a": (1.0, 9.0), "b": (2.0, 3.0), "c": (2.0, 4.0), "d": (3.0, 1.0)})
        ['a', 'b', 'd']
    """

    def beaten(own: tuple[float, float]) -> bool:
        return any(one[0] <= own[0] and one[1] <= own[1] and one != own for one in points.values())

    kept = [name for name, own in points.items() if not beaten(own)]
    return sorted(kept, key=lambda name: points[name])


def _variant_fields(record: Record, name: str, run: Run, confidence: float) -> dict[str, Any]:
    held = set(record.array_names())

    def array(what: str) -> Any:
        return record.array(f"{name}.{what}") if f"{name}.{what}" in held else None

    most = math.log2(run.study.secret.planted.space)
    bits, losses, skew = array("bits"), array("losses"), array("skew_normal")
    twin, controls, extracted = array("twin"), array("controls"), array("extracted")
    certified = array("certified")
    known = bool(array("first_known").all())
    levels = exposure_levels(record, name, most)
    return {
        "repeats": list(run.plan.repeats),
        "models": run.plan.trials,
        "steps": run.plan.steps,
        "exposure": _mean(levels.least, confidence, most, levels.highest),
        "each": bits.ravel().tolist(),
        "exact": bool(array("exact").all()),
        "exact_each": array("exact").ravel().tolist(),
        "saturated": int(array("saturated").sum()),
        "saturated_each": array("saturated").ravel().tolist(),
        "ranked_first": _share(array("first"), confidence) if known else None,
        "controls": None if controls is None else _mean(controls.mean(axis=1), confidence, most),
        "twin": None if twin is None else _mean(twin.mean(axis=1), confidence, most),
        "validation_bits": _mean(losses[:, 0], confidence),
        "training_bits": _mean(losses[:, 1], confidence),
        "extracted": None if extracted is None else _share(extracted, confidence),
        "extracted_each": None if extracted is None else extracted.ravel().tolist(),
        "nodes": None if extracted is None else float(np.median(array("nodes"))),
        "nodes_each": None if extracted is None else array("nodes").tolist(),
        "searches_ended": 0 if certified is None else int((~certified).sum()),
        "skew_normal": None if skew is None else skew.ravel().tolist(),
        "parameters": run.parameters,
        "through": _through(array("through"), run, confidence),
    }


def _through(found: Floats | None, run: Run, confidence: float) -> dict[str, Any] | None:
    if found is None:
        return None
    # A trial does not depend on how many there are.
    alone = dataclasses.replace(run.plan, trials=1, twin=False)
    ledger = alone.ledger(examples=run.planted.examples)
    bits = found[:, :, :-2].mean(axis=2)
    most = most_followed(run)
    return {
        "step": list(run.looks),
        "epoch": [step / run.epoch_steps for step in run.looks],
        "exposure": [_mean(row, confidence, most) for row in bits],
        "at_least": _floors(found[:, :, :-2], run),
        "validation_bits": [_mean(row, confidence) for row in found[:, :, -2]],
        "training_bits": [_mean(row, confidence) for row in found[:, :, -1]],
        # As many updates as were done when the first canary of the first trial had been used.
        "uses": sorted({int(step) + 1 for step in ledger.step[ledger.canary == 0]}),
        "method": run.study.follow.method,
        "ceiling_bits": most,
    }


def _floors(bits: Floats, run: Run) -> list[bool]:
    """At which looks a canary had as many bits as sampling shows at most: it may have any more."""
    most = most_sampled(run)
    if most >= math.log2(run.study.secret.known.space) - 1e-9:
        return [False] * len(bits)
    near: NDArray[np.bool_] = np.abs(bits - most) < 1e-9
    return [bool(row.any()) for row in near]


def _mean(
    values: Any, confidence: float, most: float | None = None, highest: Any = None
) -> list[float | None]:
    found = trial_mean(values, most=most, highest=highest, confidence=confidence)
    return [found.value, found.low, found.high]


def _share(hits: Any, confidence: float) -> list[float | None]:
    if hits.shape[1] > 1:  # a model that gives one canary away gives others too
        return _mean(hits.mean(axis=1), confidence, 1.0)
    try:
        found = crossed_share(hits, confidence=confidence)
    except NotEnoughEvidence:
        return [float(np.mean(hits)), None, None]
    return [found.value, found.low, found.high]


def _scope(
    study: ExposureTrainingStudy, runs: Mapping[str, Run], training: dict[str, Any]
) -> dict[str, list[str]]:
    first = runs["primary"]
    tested = [
        f"{training['models']} models in "
        f"{counted(len(runs), 'variant')}, {study.plan.trials} seeds each; the first trained "
        f"{first.plan.steps} steps on "
        f"{first.planted.examples} windows of {study.text.window} {study.text.level}s, with "
        f"{counted(study.plan.canaries, 'canary', 'canaries')} planted "
        f"{', '.join(times(many) for many in sorted(set(study.plan.repeats)))}.",
        "Trials with one seed have the same secrets where the template is the same, the same start "
        "where the model is, and where batch and sampling are the same, the same order "
        "of the text, so that variants are compared in pairs.",
    ]
    if any(one["saturated"] for one in training["variants"]):
        tested.append("Some exposures are at least what is told: no reference was as likely.")
    not_tested = [
        "Secrets of another format, text or model; a choice may matter elsewhere and not here.",
        "Whether a variant was trained as well as it could be: compare the validation bits.",
    ]
    if study.plan.trials == 1:
        not_tested.append("How much another training run would differ: there was one seed.")
    return {"tested": tested, "not_tested": not_tested}
