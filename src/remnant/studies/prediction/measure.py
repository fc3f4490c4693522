"""From looks and a pool to how well memorisation was predicted; touches no model."""

from __future__ import annotations

from typing import cast

import numpy as np

from remnant.errors import NotEnoughEvidence
from remnant.measures import PredictionQuality, auc, loss_trace_iqr, prediction_quality
from remnant.measures import roc as roc_curve
from remnant.measures.statistics.checks import unseen_needed
from remnant.plans import ShadowPlan
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.records.typed import Absent, put_parts
from remnant.studies.prediction.early_looks import LOGIT_GAP, LOSS, Bools, EarlyLooks, Floats
from remnant.studies.prediction.pool_labels import (
    Truth,
    attacked,
    by_kind,
    find_truth,
    memorisation,
)
from remnant.studies.prediction.protect_list import make_list
from remnant.studies.prediction.recipe import EARLY, PredictSettings, TruthSettings
from remnant.studies.prediction.result import (
    PREDICTORS,
    EarlyStop,
    FlaggedKind,
    OperatingPoints,
    Predictor,
    PredictorComparison,
    PredictorQuality,
)
from remnant.studies.prediction.verdict import list_finding, no_list_finding
from remnant.studies.shared.estimates import Estimate, WithInterval
from remnant.studies.shared.result_parts import Tested

CURVE_POINTS = 200
_COUNTS = ("n_memorised", "n_others", "base_rate", "k")
_DRAWS = 400  # behind the intervals of the main rows
_FEW_DRAWS = 100  # behind the intervals of the many rows by time, layer and threshold


def measure_prediction(
    record: Record,
    plan: ShadowPlan,
    predict: PredictSettings,
    settings: TruthSettings,
    evidence: EarlyLooks,
) -> None:
    """Measure the truth, compare every predictor with it, make the list; store all of it."""
    truth = find_truth(evidence, settings)
    judge = _Judge(plan, predict, settings, evidence, truth)
    put_parts(record, truth=memorisation(truth, evidence, settings, confidence=predict.confidence))
    for name in ("lira", "counterfactual", "rmia", "local"):
        record.put_array(f"truth.{name}", getattr(truth, name))
    try:
        put_parts(record, prediction=judge.comparison())
    except NotEnoughEvidence as fault:
        put_parts(record, prediction=Absent(str(fault)))
    try:
        protect, listed = make_list(judge.risk, predict, settings, evidence, truth)
        put_parts(record, protect=protect)
        record.put_array("protect.listed", listed)
        put_parts(record, verdict=list_finding(protect, predict))
    except NotEnoughEvidence as fault:
        put_parts(
            record,
            protect=Absent(str(fault)),
            verdict=no_list_finding(judge.lacking() or str(fault)),
        )
    put_parts(record, scope=_scope(plan, predict, evidence))


class _Judge:
    """Compares predictions about the targets with the truth."""

    def __init__(
        self,
        plan: ShadowPlan,
        predict: PredictSettings,
        settings: TruthSettings,
        evidence: EarlyLooks,
        truth: Truth,
    ) -> None:
        self.plan, self.predict, self.settings = plan, predict, settings
        self.evidence, self.truth = evidence, truth
        self.looks = evidence.looks
        self.seen = evidence.pool.seen[list(evidence.targets)]
        self.stops = [
            self.looks.stopped(self.seen, drop=predict.drop, target=target)
            for target in range(len(evidence.targets))
        ]

    def risk(
        self, predictor: str, target: int, *, moment: int | None = None, layer: int = 0
    ) -> Floats:
        """The risk of a target's own training samples, at its own stop or another moment."""
        own = self.seen[target]
        at = self.stops[target] if moment is None else moment
        if predictor in ("psmi", "mahalanobis"):
            return np.asarray(getattr(self.looks, predictor)[at, layer, target, own])
        if predictor == "lt_iqr":
            return loss_trace_iqr(self.looks.trace[:, own])
        if predictor == "early_lira":
            signal = self.evidence.early[:, MARGINS.index(self.settings.signal)]
            model, seen = self.evidence.targets[target], self.evidence.pool.seen
            return np.asarray(attacked(signal, seen, model, self.settings).scores[own])
        sign, place = {"loss": (1.0, LOSS), "logit_gap": (-1.0, LOGIT_GAP)}[predictor]
        return np.asarray(sign * self.looks.signals[at, target, place, own])

    def memorised(self, target: int, threshold: float) -> Bools:
        """Which of a target's own training samples were memorised in the end."""
        return np.asarray(self.truth.local[target, self.seen[target]] >= threshold)

    def lacking(self) -> str:
        """Say that the threshold leaves too few samples, and the highest that does not; or ""."""
        counted, limit = self._counted(), self.settings.threshold
        if limit in counted:
            return ""
        own = self.memorised(0, limit)
        reason = (
            f"at the threshold {limit:g} the first target memorised {int(own.sum())} of its "
            f"{own.size} samples; it takes {self._needed} that it did and one that it did not."
        )
        if not counted:
            return reason
        most = max(counted)
        return (
            f"{reason} At {most:g}, the highest of truth.thresholds with enough, it memorised "
            f"{counted[most]}."
        )

    def comparison(self) -> PredictorComparison:
        """Return every predictor's quality.

        Where the threshold leaves too few samples, only rows of other thresholds are there.

        Raises:
            NotEnoughEvidence: No threshold leaves enough.
        """
        counted = self._counted()
        if not counted:
            raise NotEnoughEvidence(self.lacking(), hint="Lower truth.threshold.")
        whole, layers = self.settings.threshold in counted, self.looks.layers
        moments = range(1, len(self.looks.steps))
        return PredictorComparison(
            models=len(self.evidence.pool.seen),
            targets=len(self.evidence.targets),
            layer=layers[0],
            confidence=self.predict.confidence,
            tpr=self.predict.tpr,
            smi=float(self.looks.smi[self.stops[0], 0, 0]),
            stop=self._stop(),
            quality=tuple(self._row(name, whole=True) for name in self._known() if whole),
            by_time=tuple(self._row(name, moment=at) for at in moments for name in EARLY if whole),
            by_layer=tuple(
                self._row(name, layer=layer)
                for layer in range(len(layers))
                for name in ("psmi", "mahalanobis")
                if whole and len(layers) > 1
            ),
            by_threshold=tuple(
                self._row(name, threshold=threshold)
                for threshold in counted
                if threshold in self.settings.thresholds
                for name in ("psmi", "loss", "logit_gap")
            ),
            canaries=self._canaries(),
        )

    def _stop(self) -> EarlyStop:
        """When the first target was examined."""
        point = self.looks.stop(self.seen, drop=self.predict.drop)
        stop, steps, epoch = self.stops[0], self.looks.steps, self.evidence.epoch
        return EarlyStop(
            step=steps[stop],
            epoch=steps[stop] / epoch,
            dropped=float(point.dropped[stop]),
            drop=self.predict.drop,
            reached=point.index is not None,
            steps=steps[-1],
            epochs=steps[-1] / epoch,
            at_step=steps,
            at_epoch=tuple(step / epoch for step in steps),
            median_loss=tuple(point.medians.tolist()),
            dropped_at=tuple(point.dropped.tolist()),
        )

    def _known(self) -> list[str]:
        return [name for name in PREDICTORS if name != "lt_iqr" or len(self.looks.trace) >= 4]

    @property
    def _needed(self) -> int:
        """How many memorised samples it takes to read an FPR at the TPR."""
        return unseen_needed(1.0 - self.predict.tpr)

    def _counted(self) -> dict[float, int]:
        """The thresholds at which both sides have enough samples, and how many are memorised."""
        limits = sorted({*self.settings.thresholds, self.settings.threshold})
        counts = {limit: int(self.memorised(0, limit).sum()) for limit in limits}
        whole = int(self.seen[0].sum())
        return {limit: count for limit, count in counts.items() if self._needed <= count < whole}

    def _row(
        self,
        predictor: str,
        *,
        moment: int | None = None,
        layer: int = 0,
        threshold: float | None = None,
        whole: bool = False,
    ) -> PredictorQuality:
        limit = self.settings.threshold if threshold is None else threshold
        at = self.stops[0] if moment is None else moment
        main = (at, layer, limit) == (self.stops[0], 0, self.settings.threshold)
        quality = prediction_quality(
            risk=self.risk(predictor, 0, moment=moment, layer=layer),
            memorised=self.memorised(0, limit),
            rng=np.random.default_rng([self.plan.seed, 4]),
            threshold=0.0 if predictor == "psmi" else None,
            tpr=self.predict.tpr,
            confidence=self.predict.confidence,
            # The row at the stop is in several tables; it has one interval.
            draws=_DRAWS if whole or main else _FEW_DRAWS,
        )
        step = self.looks.steps[at]
        return PredictorQuality(
            predictor=cast(Predictor, predictor),
            layer=self.looks.layers[layer],
            step=step,
            epoch=step / self.evidence.epoch,
            threshold=limit,
            **{name: getattr(quality, name) for name in _COUNTS},
            auc=Estimate.of(quality.auc),
            fpr_at_tpr=Estimate.of(quality.fpr_at_tpr),
            precision_at_k=Estimate.of(quality.precision_at_k),
            default_tpr=_known(quality.default_tpr),
            default_fpr=_known(quality.default_fpr),
            others=self._other_targets(predictor, limit) if whole else (),
            curve=_curve(quality) if whole else None,
        )

    def _other_targets(self, predictor: str, limit: float) -> tuple[float, ...]:
        """The AUC on each of the other targets that memorised something."""
        if predictor in ("lt_iqr", "mahalanobis"):  # measured on the first target only
            return ()
        areas = []
        for target in range(1, len(self.evidence.targets)):
            risk, truth = self.risk(predictor, target), self.memorised(target, limit)
            if truth.any():
                curve = roc_curve(risk[truth], risk[~truth])
                areas.append(float(np.trapezoid(curve.tpr, curve.fpr)))
        return tuple(areas)

    def _canaries(self) -> tuple[FlaggedKind, ...]:
        """How each kind of sample that the first target was trained on fared.

        The AUC takes the canaries themselves for the truth: a kind against the clean samples.
        """
        kinds = self.evidence.kinds[self.seen[0]]
        truth, risk = self.memorised(0, self.settings.threshold), self.risk("psmi", 0)
        clean, rows = risk[kinds == "clean"], []
        for kind, mine in by_kind(kinds):
            area = None
            if kind != "clean" and clean.size:
                rng = np.random.default_rng([self.plan.seed, 4])
                area = Estimate.of(
                    auc(risk[mine], clean, rng=rng, confidence=self.predict.confidence)
                )
            rows.append(
                FlaggedKind(
                    kind=kind,
                    n=int(mine.sum()),
                    memorised=float(truth[mine].mean()),
                    flagged=float(np.mean(risk[mine] >= 0.0)),
                    auc=area,
                )
            )
        return tuple(rows)


def _known(rate: WithInterval | None) -> Estimate | None:
    return None if rate is None else Estimate.of(rate)


def _curve(quality: PredictionQuality) -> OperatingPoints:
    """The operating points, thinned to what a chart can show; first and last are kept."""
    count = quality.curve.fpr.size
    chosen = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).astype(np.int64))
    return OperatingPoints(
        fpr=tuple(quality.curve.fpr[chosen].tolist()),
        tpr=tuple(quality.curve.tpr[chosen].tolist()),
    )


def _scope(plan: ShadowPlan, predict: PredictSettings, evidence: EarlyLooks) -> Tested:
    return Tested(
        tested=(
            f"SHADOW: {plan.models} models ({evidence.what}), each trained on a random half of "
            f"{evidence.labels.size} examples for {plan.steps} steps; every example is in exactly "
            "half of them",
            f"{predict.targets} of them looked at along the way, each judged on its own training "
            "half by all the others",
        ),
        not_tested=(
            "models trained on all examples: the truth takes some that did not see each of them",
            "attacks stronger than LiRA on one query: a sample that LiRA does not find may still "
            "be memorised",
            "other models, other data, other training settings: the list's rule was made on these",
        ),
    )
