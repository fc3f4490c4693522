"""From the exposures of all models to variants and a finding, or to remedies and a verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import MissingExtra, NotEnoughEvidence
from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.measures.statistics.crossed_interval import crossed_share
from remnant.privacy import epsilon_spent
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.choices.by_exposure import by_exposure
from remnant.studies.choices.differences import Levels, exposure_levels, main_effects, mean_ends
from remnant.studies.choices.finding import compare_variants
from remnant.studies.choices.gate import (
    Canaries,
    JudgedRemedy,
    RemedyEvidence,
    Rules,
    judge,
)
from remnant.studies.choices.population import trained_models
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.probe import most_followed, most_sampled
from remnant.studies.choices.recipe import BASE, DefencesStudy, ExposureTrainingStudy, changes_of
from remnant.studies.choices.remedies import RemedySettings
from remnant.studies.choices.result import (
    Defences,
    Ends,
    GridAxes,
    MeasuredRemedy,
    MeasuredVariant,
    Privacy,
    Through,
    TrainedVariant,
    TrainingChoices,
)
from remnant.studies.choices.variant_grid import fields_along
from remnant.studies.shared.result_parts import LanguageTask, Tested
from remnant.studies.shared.wording import counted, each_times, times

Floats = NDArray[np.float64]


def put_results(
    record: Record,
    study: ExposureTrainingStudy | DefencesStudy,
    runs: Mapping[str, PreparedVariant],
) -> None:
    """Put everything that the study measured into the record; no secret is in it."""
    if isinstance(study, DefencesStudy):
        _put_defences(record, study, runs)
    else:
        _put_training(record, study, runs)


def _put_training(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant]
) -> None:
    training = training_choices(record, study, runs)
    put_parts(record, training=training, verdict=compare_variants(record, study, runs))
    task = _task(training.variants[0], runs[BASE])
    put_parts(record, task=task, scope=_variants_scope(study, runs, training))


def training_choices(
    record: Record, study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant]
) -> TrainingChoices:
    """Return all variants, the study itself first."""
    cells = study.cells()
    base = runs[BASE].study.to_dict()
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
    levels = [exposure_levels(record, name, most) for name in runs]
    effects = main_effects(
        cells,
        levels[: len(cells)],
        [record.array(f"{name}.losses")[:, 0] for name in list(runs)[: len(cells)]],
        most=most,
        along=fields_along(study.grid),
        confidence=study.measure.confidence,
    )
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
        pareto=_front(variants, levels),
    )


def _measured_alike(
    record: Record, name: str, run: PreparedVariant, *, confidence: float, most: float
) -> dict[str, Any]:
    """Return the fields that a variant and a remedy have alike."""
    levels = exposure_levels(record, name, most)
    controls = f"{name}.controls"
    known = record.array(f"{name}.first_known").all()
    return {
        "models": run.plan.trials,
        "steps": run.plan.steps,
        "exposure": mean_ends(levels.least, confidence, most, levels.highest),
        "each": tuple(record.array(f"{name}.bits").ravel().tolist()),
        "saturated": int(record.array(f"{name}.saturated").sum()),
        "ranked_first": share_ends(record.array(f"{name}.first"), confidence) if known else None,
        "controls": mean_ends(record.array(controls).mean(axis=1), confidence, most)
        if controls in record.array_names()
        else None,
        "validation_bits": mean_ends(record.array(f"{name}.losses")[:, 0], confidence),
    }


def _task(first: MeasuredVariant, run: PreparedVariant) -> LanguageTask:
    """How useful the models trained as planned are."""
    return LanguageTask(
        validation_bits=first.validation_bits[0],
        validation_tokens=int(run.planted.validation[:, 1:].size),
        token=run.study.text.level,
        uniform_bits=math.log2(run.planted.vocabulary.size),
    )


def _front(rows: Sequence[MeasuredVariant], levels: Sequence[Levels]) -> tuple[str, ...]:
    """Labels on the Pareto front; an exposure that is a lower bound counts with its maximum."""
    points = {
        row.label: (row.validation_bits[0], float(own.highest.mean()))
        for row, own in zip(rows, levels, strict=True)
    }
    return tuple(pareto_front(points))


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
    twin, extracted, certified = array("twin"), array("extracted"), array("certified")
    return TrainedVariant(
        label=run.study.label,
        changes=changes,
        cell=cell,
        repeats=tuple(run.plan.repeats),
        **_measured_alike(record, name, run, confidence=confidence, most=most),
        exact=bool(array("exact").all()),
        exact_each=each("exact"),
        saturated_each=each("saturated"),
        twin=None if twin is None else mean_ends(twin.mean(axis=1), confidence, most),
        training_bits=mean_ends(array("losses")[:, 1], confidence),
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


def _variants_scope(
    study: ExposureTrainingStudy, runs: Mapping[str, PreparedVariant], training: TrainingChoices
) -> Tested:
    first = runs[BASE]
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


def _put_defences(
    record: Record, study: DefencesStudy, runs: Mapping[str, PreparedVariant]
) -> None:
    base, remedies = runs[BASE], study.named()
    rules = Rules(
        limit=study.measure.limit,
        most=math.log2(study.secret.planted.space),
        unigram_bits=unigram_bits(base),
        confidence=study.measure.confidence,
        token=study.text.level,
    )
    labels = {BASE: study.label} | {name: remedy.label for name, remedy in remedies.items()}
    evidence = {name: evidence_of(record, name, label, rules) for name, label in labels.items()}
    nothing = evidence.pop(BASE)
    verdict, judged = judge(nothing, list(evidence.values()), rules)
    rows = [_remedy(record, study, BASE, base, nothing, None, rules)]
    for (name, own), row in zip(evidence.items(), judged, strict=True):
        rows.append(_remedy(record, study, name, runs.get(name, base), own, row, rules))
    levels = [own.canaries.levels for own in (nothing, *evidence.values())]
    defences = Defences(
        title=study.title,
        limit=rules.limit,
        space_bits=rules.most,
        null_mean_bits=NULL_MEAN_BITS,
        repeats=tuple(study.plan.repeats),
        trials=study.plan.trials,
        confidence=rules.confidence,
        token=rules.token,
        unigram_bits=rules.unigram_bits,
        remedies=tuple(rows),
        pareto=_front(rows, levels),
    )
    put_parts(
        record,
        verdict=verdict,
        defences=defences,
        task=_task(rows[0], base),
        scope=_remedies_scope(study, base, rows),
    )


def unigram_bits(run: PreparedVariant) -> float:
    """What a token of the held-out text costs by its frequency in the clean training text.

    Frequencies have one added to each count, so that no token is impossible.
    """
    planted = run.planted
    counts = np.bincount(
        planted.store[: planted.examples, 1:].ravel(), minlength=planted.vocabulary.size
    )
    costs = -np.log2((counts + 1) / (counts.sum() + counts.size))
    return float(costs[planted.validation[:, 1:]].mean())


def evidence_of(record: Record, name: str, label: str, rules: Rules) -> RemedyEvidence:
    """Read what was measured of a remedy, or of doing nothing."""
    held = set(record.array_names())
    controls = f"{name}.controls"
    relearnt = f"{name}.relearnt"
    return RemedyEvidence(
        label=label,
        canaries=_canaries(record, name, rules),
        validation=record.array(f"{name}.losses")[:, 0],
        controls=record.array(controls).mean(axis=1) if controls in held else None,
        relearnt=_canaries(record, relearnt, rules) if f"{relearnt}.bits" in held else None,
    )


def _canaries(record: Record, name: str, rules: Rules) -> Canaries:
    return Canaries(
        low=record.array(f"{name}.low"),
        high=record.array(f"{name}.high"),
        levels=exposure_levels(record, name, rules.most),
    )


def _remedy(
    record: Record,
    study: DefencesStudy,
    name: str,
    run: PreparedVariant,
    own: RemedyEvidence,
    judged: JudgedRemedy | None,
    rules: Rules,
) -> MeasuredRemedy:
    remedy = study.named().get(name)
    plain = dataclasses.replace(study, remedy=()).to_dict()
    again = None if own.relearnt is None else own.relearnt.levels
    return MeasuredRemedy(
        name=name,
        label=own.label,
        kind="" if remedy is None else remedy.settings.kind,
        settings={} if remedy is None else remedy.settings.given(),
        changes={} if remedy is None else changes_of(plain, remedy.study),
        **_measured_alike(record, name, run, confidence=rules.confidence, most=rules.most),
        exact=int(record.array(f"{name}.exact").sum()),
        relearnt=None
        if again is None
        else mean_ends(again.least, rules.confidence, rules.most, again.highest),
        privacy=None if remedy is None else _privacy(remedy.settings, run),
        exposure_change=None if judged is None else judged.exposure,
        cost=None if judged is None else judged.cost,
        status="as planned" if judged is None else judged.status,
        reason="" if judged is None else judged.reason,
    )


def _privacy(settings: RemedySettings, run: PreparedVariant) -> Privacy | None:
    """What private training promises for one window of text; None for other remedies."""
    if settings.kind != "private":
        return None
    if run.plan.sampling != "poisson":
        return Privacy(epsilon=None, delta=None, reason="batches are shuffled")
    if not settings.noise:
        return Privacy(epsilon=None, delta=None, reason="no noise is added")
    delta = float(settings.value("delta"))
    try:
        epsilon = epsilon_spent(
            sampling_rate=run.plan.batch / run.planted.examples,
            noise=settings.noise,
            steps=run.plan.steps,
            delta=delta,
        )
    except MissingExtra as fault:
        return Privacy(epsilon=None, delta=delta, reason=fault.message.removesuffix("."))
    return Privacy(epsilon=epsilon, delta=delta)


def _remedies_scope(
    study: DefencesStudy, base: PreparedVariant, rows: list[MeasuredRemedy]
) -> Tested:
    tested = [
        f"{counted(len(rows) - 1, 'remedy', 'remedies')} and the training as planned, "
        f"{counted(study.plan.trials, 'seed')} each: {base.plan.steps} steps on "
        f"{base.planted.examples} windows of {study.text.window} {study.text.level}s, with "
        f"{counted(study.plan.canaries, 'canary', 'canaries')} planted "
        f"{each_times(study.plan.repeats)}.",
        "Trials with one seed have the same secrets under all remedies, and the same start where "
        "the model has the same shape, so that remedies are compared in pairs.",
    ]
    if any(row.saturated for row in rows):
        tested.append("Some exposures are lower bounds: no reference was as likely.")
    not_tested = [
        "Secrets of another format, text or model: a remedy may help elsewhere and not here.",
        "Attacks other than ranking a secret by its likelihood.",
        "Two remedies together.",
    ]
    if not any(row.relearnt for row in rows):
        not_tested.append("Whether a secret that is no longer exposed comes back by more training.")
    return Tested(tested=tuple(tested), not_tested=tuple(not_tested))
