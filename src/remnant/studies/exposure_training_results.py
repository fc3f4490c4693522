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
from remnant.measures.holm import holm
from remnant.measures.trial_mean import paired_difference, trial_mean
from remnant.records import Record
from remnant.studies.by_exposure import by_exposure
from remnant.studies.effects import main_effects
from remnant.studies.exposure_training_probe import most_followed
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
        "confidence": study.measure.confidence,
        "token": study.text.level,
        "variants": variants,
        "effects": main_effects(
            cells,
            [record.array(f"{name}.bits").mean(axis=1) for name in inside],
            [record.array(f"{name}.losses")[:, 0] for name in inside],
            most=most,
            confidence=study.measure.confidence,
        ),
        "by_exposure": by_exposure(variants, space_bits=most),
        "table": {"rows": axes[0], "columns": axes[1]} if len(axes) == 2 else None,
        "pareto": pareto_front(
            {one["label"]: (one["validation_bits"][0], one["exposure"][0]) for one in variants}
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
    known = bool(array("first_known").all())
    return {
        "repeats": list(run.plan.repeats),
        "models": run.plan.trials,
        "steps": run.plan.steps,
        "exposure": _mean(bits.mean(axis=1), confidence, most),
        "each": bits.ravel().tolist(),
        "exact": bool(array("exact").all()),
        "exact_each": array("exact").ravel().tolist(),
        "saturated": int(array("saturated").sum()),
        "ranked_first": _share(array("first"), confidence) if known else None,
        "controls": None if controls is None else _mean(controls.mean(axis=1), confidence, most),
        "twin": None if twin is None else _mean(twin.mean(axis=1), confidence, most),
        "validation_bits": _mean(losses[:, 0], confidence),
        "training_bits": _mean(losses[:, 1], confidence),
        "extracted": None if extracted is None else _share(extracted, confidence),
        "extracted_each": None if extracted is None else extracted.ravel().tolist(),
        "nodes": None if extracted is None else float(np.median(array("nodes"))),
        "nodes_each": None if extracted is None else array("nodes").tolist(),
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
        "validation_bits": [_mean(row, confidence) for row in found[:, :, -2]],
        "training_bits": [_mean(row, confidence) for row in found[:, :, -1]],
        # As many updates as were done when the first canary of the first trial had been used.
        "uses": sorted({int(step) + 1 for step in ledger.step[ledger.canary == 0]}),
        "method": run.study.follow.method,
        "ceiling_bits": most,
    }


def _mean(values: Any, confidence: float, most: float | None = None) -> list[float | None]:
    found = trial_mean(values, most=most, confidence=confidence)
    return [found.value, found.low, found.high]


def _share(hits: Any, confidence: float) -> list[float | None]:
    try:
        found = crossed_share(hits, confidence=confidence)
    except NotEnoughEvidence:
        return [float(np.mean(hits)), None, None]
    return [found.value, found.low, found.high]


def verdict_fields(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, Run]
) -> dict[str, Any]:
    """Say which variants differ from the first in exposure.

    Each trial of a variant and the first's make a pair, and p-values are corrected for the number
    of variants by Holm. FAIL where a variant raises exposure, PASS where one lowers it and none
    raises it, INCONCLUSIVE where none can be told from the first.
    """
    confidence = study.measure.confidence
    base = record.array("primary.bits").mean(axis=1)
    rows: list[dict[str, Any]] = []
    for name, run in list(runs.items())[1:]:
        found = paired_difference(
            record.array(f"{name}.bits").mean(axis=1), base, confidence=confidence
        )
        rows.append(
            {
                "label": run.study.label,
                "difference": [found.value, found.low, found.high],
                "p_value": found.p_value,
                "adjusted_p_value": None,
                "differs": False,
            }
        )
    tested = [row for row in rows if row["p_value"] is not None]
    if tested:
        for row, adjusted in zip(tested, holm([row["p_value"] for row in tested]), strict=True):
            row["adjusted_p_value"] = float(adjusted)
            row["differs"] = bool(adjusted <= 1.0 - confidence)
    more = [row for row in rows if row["differs"] and row["difference"][0] > 0]
    less = [row for row in rows if row["differs"] and row["difference"][0] < 0]
    outcome = "FAIL" if more else "PASS" if less else "INCONCLUSIVE"
    return {
        "outcome": outcome,
        "sentence": _sentence(study, rows, more, less, float(base.mean())),
        "limit": None,
        "lag": None,
        "differences": rows,
    }


def _sentence(
    study: ExposureTrainingStudy,
    rows: list[dict[str, Any]],
    more: list[dict[str, Any]],
    less: list[dict[str, Any]],
    base: float,
) -> str:
    begun = f"With {study.label!r} the canaries have an exposure of {base:.1f} bits on average"
    if not rows:
        return f"{begun}; there is nothing to compare it with."
    if study.plan.trials == 1:
        return f"{begun}; one trial shows nothing of how trials differ, so run two or more."
    if not more and not less:
        return (
            f"{begun}, and {_none_of(rows)} be told from it in {study.plan.trials} trials. "
            "That is no proof that they are alike."
        )
    parts = []
    for word, found in (("more", more), ("less", less)):
        if found:
            most = max(found, key=lambda row: abs(row["difference"][0]))
            low, high = most["difference"][1:]
            interval = "" if low is None else f", interval {low:+.1f} to {high:+.1f}"
            told = f"{most['label']!r} ({most['difference'][0]:+.1f} bits{interval})"
            if len(rows) == 1:
                parts.append(f"the other variant has {word}: {told}")
            else:
                has = "has" if len(found) == 1 else "have"
                parts.append(f"{len(found)} of {len(rows)} others {has} {word}, the most {told}")
    return f"{begun}; {' and '.join(parts)}."


def _none_of(rows: list[dict[str, Any]]) -> str:
    return "the other variant cannot" if len(rows) == 1 else f"none of {len(rows)} others can"


def _scope(
    study: ExposureTrainingStudy, runs: Mapping[str, Run], training: dict[str, Any]
) -> dict[str, list[str]]:
    first = runs["primary"]
    tested = [
        f"{sum(run.plan.trials for run in runs.values())} models in "
        f"{counted(len(runs), 'variant')}, {study.plan.trials} seeds each; the first trained "
        f"{first.plan.steps} steps on "
        f"{first.planted.examples} windows of {study.text.window} {study.text.level}s, with "
        f"{counted(study.plan.canaries, 'canary', 'canaries')} planted "
        f"{', '.join(times(many) for many in sorted(set(study.plan.repeats)))}.",
        "Trials with one seed have the same start and, where the batch is the same, the same order "
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
