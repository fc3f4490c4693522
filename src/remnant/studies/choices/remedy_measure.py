"""From the exposures of all models to remedies, a Pareto front and a verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from remnant.errors import MissingExtra
from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.privacy import epsilon_spent
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.choices.differences import exposure_levels, mean_ends
from remnant.studies.choices.measure import pareto_front, share_ends
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.recipe import BASE, DefencesStudy, changes_of
from remnant.studies.choices.remedies import RemedySettings
from remnant.studies.choices.remedy_verdict import (
    Canaries,
    JudgedRemedy,
    RemedyEvidence,
    Rules,
    judge,
)
from remnant.studies.choices.result import Defences, MeasuredRemedy, Privacy
from remnant.studies.shared.result_parts import LanguageTask, Tested
from remnant.studies.shared.wording import counted, each_times

Floats = NDArray[np.float64]


def put_defences_results(
    record: Record, study: DefencesStudy, runs: Mapping[str, PreparedVariant]
) -> None:
    """Put everything that the study measured into the record; no secret is in it."""
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
    rows = [_measured(record, study, BASE, base, nothing, None, rules)]
    for (name, own), row in zip(evidence.items(), judged, strict=True):
        rows.append(_measured(record, study, name, runs.get(name, base), own, row, rules))
    points = {
        row.label: (row.validation_bits[0], float(own.canaries.levels.highest.mean()))
        for row, own in zip(rows, [nothing, *evidence.values()], strict=True)
    }
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
        pareto=tuple(pareto_front(points)),
    )
    task = LanguageTask(
        validation_bits=rows[0].validation_bits[0],
        validation_tokens=int(base.planted.validation[:, 1:].size),
        token=rules.token,
        uniform_bits=math.log2(base.planted.vocabulary.size),
    )
    put_parts(
        record, verdict=verdict, defences=defences, task=task, scope=_scope(study, base, rows)
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


def _measured(
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
    levels, bits = own.canaries.levels, record.array(f"{name}.bits")
    known = record.array(f"{name}.first_known").all()
    again = None if own.relearnt is None else own.relearnt.levels
    return MeasuredRemedy(
        name=name,
        label=own.label,
        kind="" if remedy is None else remedy.settings.kind,
        settings={} if remedy is None else remedy.settings.given(),
        changes={} if remedy is None else changes_of(plain, remedy.study),
        models=run.plan.trials,
        steps=run.plan.steps,
        exposure=mean_ends(levels.least, rules.confidence, rules.most, levels.highest),
        each=tuple(bits.ravel().tolist()),
        exact=int(record.array(f"{name}.exact").sum()),
        saturated=int(record.array(f"{name}.saturated").sum()),
        ranked_first=share_ends(record.array(f"{name}.first"), rules.confidence) if known else None,
        controls=None
        if own.controls is None
        else mean_ends(own.controls, rules.confidence, rules.most),
        validation_bits=mean_ends(own.validation, rules.confidence),
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


def _scope(study: DefencesStudy, base: PreparedVariant, rows: list[MeasuredRemedy]) -> Tested:
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
