"""From looks and a pool to how well memorisation was predicted; touches no model."""

from __future__ import annotations

from typing import Any

import numpy as np

from remnant.errors import NotEnoughEvidence
from remnant.measures import (
    PredictionQuality,
    PredictionRate,
    auc,
    loss_trace_iqr,
    prediction_quality,
)
from remnant.measures import roc as roc_curve
from remnant.measures.checks import unseen_needed
from remnant.plans import ShadowPlan
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.studies.prediction_evidence import LOGIT_GAP, LOSS, Bools, Evidence, Floats
from remnant.studies.prediction_list import no_list_fields, protect_fields, verdict_fields
from remnant.studies.prediction_settings import (
    EARLY,
    PREDICTORS,
    PredictSettings,
    TruthSettings,
)
from remnant.studies.prediction_truth import Truth, attacked, by_kind, find_truth, truth_fields

CURVE_POINTS = 200
_DRAWS = 400  # behind the intervals of the main rows
_FEW_DRAWS = 100  # behind the intervals of the many rows by time, layer and threshold


def measure_prediction(
    record: Record,
    plan: ShadowPlan,
    predict: PredictSettings,
    settings: TruthSettings,
    evidence: Evidence,
) -> None:
    """Find the truth, hold every predictor against it, make the list; all goes into the record."""
    truth = find_truth(evidence, settings)
    judge = _Judge(plan, predict, settings, evidence, truth)
    found = truth_fields(truth, evidence, settings, confidence=predict.confidence)
    record.put_result("truth", found)
    record.put_array("truth.lira", truth.lira)
    record.put_array("truth.counterfactual", truth.counterfactual)
    record.put_array("truth.rmia", truth.rmia)
    record.put_array("truth.local", truth.local)
    try:
        record.put_result("prediction", judge.fields())
    except NotEnoughEvidence as fault:
        record.put_absent("prediction", str(fault))
    try:
        protect, listed = protect_fields(judge.risk, predict, settings, evidence, truth)
        record.put_result("protect", protect)
        record.put_array("protect.listed", listed)
        record.put_result("verdict", verdict_fields(protect, predict))
    except NotEnoughEvidence as fault:
        record.put_absent("protect", str(fault))
        record.put_result("verdict", no_list_fields(judge.lacking() or str(fault)))
    record.put_result("scope", _scope(plan, predict, evidence))


class _Judge:
    """Holds predictors of the targets against the truth."""

    def __init__(
        self,
        plan: ShadowPlan,
        predict: PredictSettings,
        settings: TruthSettings,
        evidence: Evidence,
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
            model = self.evidence.targets[target]
            found = attacked(
                signal,
                self.evidence.pool.seen,
                model,
                centre=self.settings.centre,
                variance=self.settings.variance,
            )
            return np.asarray(found.scores[own])
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
        told = (
            f"at the threshold {limit:g} the first target memorised {int(own.sum())} of its "
            f"{own.size} samples; it takes {self._needed} that it did and one that it did not."
        )
        if not counted:
            return told
        most = max(counted)
        return (
            f"{told} At {most:g}, the highest of truth.thresholds with enough, it memorised "
            f"{counted[most]}."
        )

    def fields(self) -> dict[str, Any]:
        """Return every predictor's quality as plain data.

        Where the threshold leaves too few samples, only rows of other thresholds are there.

        Raises:
            NotEnoughEvidence: No threshold leaves enough.
        """
        counted = self._counted()
        if not counted:
            raise NotEnoughEvidence(self.lacking(), hint="Lower truth.threshold.")
        whole = self.settings.threshold in counted
        stop, layers = self.stops[0], self.looks.layers
        point = self.looks.stop(self.seen, drop=self.predict.drop)
        steps, epoch = self.looks.steps, self.evidence.epoch
        moments = range(1, len(steps))
        return {
            "models": len(self.evidence.pool.seen),
            "targets": len(self.evidence.targets),
            "layer": layers[0],
            "confidence": self.predict.confidence,
            "tpr": self.predict.tpr,
            "smi": float(self.looks.smi[stop, 0, 0]),
            "stop": {
                "step": steps[stop],
                "epoch": steps[stop] / epoch,
                "dropped": float(point.dropped[stop]),
                "drop": self.predict.drop,
                "reached": point.index is not None,
                "steps": steps[-1],
                "epochs": steps[-1] / epoch,
                "at_step": list(steps),
                "at_epoch": [step / epoch for step in steps],
                "median_loss": point.medians.tolist(),
                "dropped_at": point.dropped.tolist(),
            },
            "quality": [self._row(name, whole=True) for name in self._known() if whole],
            "by_time": [self._row(name, moment=at) for at in moments for name in EARLY if whole],
            "by_layer": [
                self._row(name, layer=layer)
                for layer in range(len(layers))
                for name in ("psmi", "mahalanobis")
                if whole and len(layers) > 1
            ],
            "by_threshold": [
                self._row(name, threshold=threshold)
                for threshold in counted
                if threshold in self.settings.thresholds
                for name in ("psmi", "loss", "logit_gap")
            ],
            "canaries": self._canaries(),
        }

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
    ) -> dict[str, Any]:
        limit = self.settings.threshold if threshold is None else threshold
        at = self.stops[0] if moment is None else moment
        main = (at, layer, limit) == (self.stops[0], 0, self.settings.threshold)
        found = prediction_quality(
            risk=self.risk(predictor, 0, moment=moment, layer=layer),
            memorised=self.memorised(0, limit),
            rng=np.random.default_rng([self.plan.seed, 4]),
            threshold=0.0 if predictor == "psmi" else None,
            tpr=self.predict.tpr,
            confidence=self.predict.confidence,
            # The row at the stop stands in several tables; it has one interval.
            draws=_DRAWS if whole or main else _FEW_DRAWS,
        )
        others: list[float] = []
        if whole and predictor not in ("lt_iqr", "mahalanobis"):  # known of the first target alone
            others = [
                self._area(predictor, target, limit)
                for target in range(1, len(self.evidence.targets))
                if self.memorised(target, limit).any()
            ]
        step = self.looks.steps[at]
        return {
            "predictor": predictor,
            "layer": self.looks.layers[layer],
            "step": step,
            "epoch": step / self.evidence.epoch,
            "threshold": limit,
            **_quality_fields(found),
            "others": others,
            "curve": _curve(found) if whole else None,
        }

    def _area(self, predictor: str, target: int, limit: float) -> float:
        """The AUC of another target, without an interval."""
        risk, truth = self.risk(predictor, target), self.memorised(target, limit)
        curve = roc_curve(risk[truth], risk[~truth])
        return float(np.trapezoid(curve.tpr, curve.fpr))

    def _canaries(self) -> list[dict[str, Any]]:
        """How the kinds of sample that the first target saw fared.

        The AUC takes the canaries themselves for the truth: a kind against the clean samples.
        """
        kinds = self.evidence.kinds[self.seen[0]]
        truth, risk = self.memorised(0, self.settings.threshold), self.risk("psmi", 0)
        rows = []
        for kind, mine in by_kind(kinds):
            clean = risk[kinds == "clean"]
            found = None
            if kind != "clean" and clean.size:
                rng = np.random.default_rng([self.plan.seed, 4])
                area = auc(risk[mine], clean, rng=rng, confidence=self.predict.confidence)
                found = [area.value, area.low, area.high]
            rows.append(
                {
                    "kind": kind,
                    "n": int(mine.sum()),
                    "memorised": float(truth[mine].mean()),
                    "flagged": float(np.mean(risk[mine] >= 0.0)),
                    "auc": found,
                }
            )
        return rows


def _quality_fields(found: PredictionQuality) -> dict[str, Any]:
    return {
        "n_memorised": found.n_memorised,
        "n_others": found.n_others,
        "base_rate": found.base_rate,
        "k": found.k,
        **{
            name: _ends(getattr(found, name))
            for name in ("auc", "fpr_at_tpr", "precision_at_k", "default_tpr", "default_fpr")
        },
    }


def _ends(rate: PredictionRate | None) -> list[float] | None:
    return None if rate is None else [rate.value, rate.low, rate.high]


def _curve(found: PredictionQuality) -> dict[str, list[float]]:
    """The operating points, thinned to what a chart can show; first and last are kept."""
    count = found.curve.fpr.size
    chosen = np.unique(np.linspace(0, count - 1, min(count, CURVE_POINTS)).astype(np.int64))
    return {"fpr": found.curve.fpr[chosen].tolist(), "tpr": found.curve.tpr[chosen].tolist()}


def _scope(plan: ShadowPlan, predict: PredictSettings, evidence: Evidence) -> dict[str, list[str]]:
    return {
        "tested": [
            f"SHADOW: {plan.models} models ({evidence.what}), each trained on a random half of "
            f"{evidence.labels.size} examples for {plan.steps} steps; every example is in exactly "
            "half of them",
            f"{predict.targets} of them looked at along the way, each judged on its own training "
            "half by all the others",
        ],
        "not_tested": [
            "models trained on all examples: the truth takes some that did not see each of them",
            "attacks stronger than LiRA on one query: a sample that LiRA does not find may still "
            "be memorised",
            "other models, other data, other training settings: the list's rule was made on these",
        ],
    }
