"""Six realistic runs.

Forgetting: 32 canaries planted once at step 300, three trials, a curve that decays. Exposure: 24
canaries with six digits each, planted 1 to 64 times in two trials, 16 controls. One run: 160
canaries planted once or 8 times in two windows of 50 steps, 120 controls, 600 steps. Prediction:
1 000 samples, 100 of them planted, that 24 models saw or not; drawn from a law, and measured.
Unique features: a patch in one of 10 images at a time, three seeds, two ways to train. Training
choices: a canary planted 1 to 64 times, five models each, looked at four times on the way.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remnant.measures import (
    clopper_pearson,
    counterfactual_memorization,
    lira_leave_one_out,
    prediction_quality,
    rank_agreement,
)
from remnant.records import Record

LAGS = [0, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 250, 300, 350, 400]


def curve(success: str = "precision", *, start: float, floor: float, chance: float, spread: float):
    """A plausible decaying curve in the record's form."""
    lags = np.array(LAGS, dtype=float)
    noise = np.random.default_rng(7).normal(0, spread / 5, lags.size)
    value = np.clip(floor + (start - floor) * np.exp(-lags / 60) + noise, 0, 1)
    width = spread * (1 + 0.4 * lags / lags.max())
    odds = np.log(np.clip(value, 0.01, 0.99) / (1 - np.clip(value, 0.01, 0.99)))
    return {
        "success": success,
        "fpr": 0.1,
        "confidence": 0.95,
        "lags": LAGS,
        "value": value.round(4).tolist(),
        "low": np.clip(value - width, 0, 1).round(4).tolist(),
        "high": np.clip(value + 0.8 * width, 0, 1).round(4).tolist(),
        "trials": 3,
        "n_seen": 96,
        "n_unseen": 96,
        "chance": chance,
        "method": "bootstrap over trials, then canaries, 2000 draws",
        "steps_to": {"0.80": 31.5, "0.70": 68.2, "0.55": None},
        "smoothed": np.convolve(np.pad(value, 1, "edge"), np.full(3, 1 / 3), "valid").tolist(),
        "epsilon": {
            "value": [None, *odds[1:].round(4).tolist()],
            "low": (odds - 0.2).round(4).tolist(),
            "high": [None, *(odds[1:] + 0.2).round(4).tolist()],
        },
    }


def _disturbed(kind: str, amount: float, label: str, after: float, reading: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "amount": amount,
        "label": label,
        "after": after,
        "after_low": after - 0.06,
        "after_high": after + 0.05,
        "rise": after - 0.587,
        "rise_low": after - 0.65,
        "rise_high": after - 0.52,
        "pvalue_after": 0.21 if reading == "not found" else 0.004,
        "pvalue_rise": 0.0002 if reading == "comes back" else 0.4,
        "reading": reading,
        "test_accuracy": 0.941,
        "aa": 0.51,
        "aa_low": 0.44,
        "aa_high": 0.57,
    }


def _decided() -> dict[str, dict[str, Any]]:
    """What the curve means for the limit, and whether what is not found is only hidden."""
    return {
        "decision": {
            "limit": 0.65,
            "confidence": 0.95,
            "success": "precision",
            "fpr": 0.1,
            "last_lag": 400.0,
            "batch": 64,
            "safe_after": {"lag": 250.0, "reason": "From lag 250 on every bound is under 0.65."},
            "protect_last": {"steps": 250, "examples": 16000, "reason": ""},
            "decay": {
                "law": "exponential",
                "shown": True,
                "start": 0.9,
                "half_life": {"value": 41.6, "low": 30.2, "high": 57.3},
                "floor": {"value": 0.58, "low": 0.54, "high": 0.62},
                "error": 0.01,
                "trials": 3,
            },
            "forecast": {"value": 91.0, "low": 70.0, "high": 118.0, "beyond": False},
        },
        "hidden": {
            "before": 0.587,
            "before_low": 0.517,
            "before_high": 0.643,
            "pvalue_before": 0.03,
            "success": "precision",
            "fpr": 0.1,
            "chance": 0.5,
            "confidence": 0.95,
            "trials": 3,
            "method": "Student t over 3 trials",
            "lag": 400.0,
            "draws": 5,
            "neighbours": 64,
            "disturbances": [
                _disturbed("noise", 0.1, "weight noise, 0.1 of the spread", 0.59, "still found"),
                _disturbed("noise", 0.4, "weight noise, 0.4 of the spread", 0.53, "not found"),
                _disturbed("relearn", 5, "5 steps on neighbours", 0.74, "comes back"),
            ],
        },
        "returning": {
            "canaries": 96,
            "lost": 80,
            "returned": 21,
            "chance_returned": 9,
            "excess": 0.125,
            "excess_low": 0.02,
            "excess_high": 0.23,
            "pvalue": 0.013,
            "fpr": 0.1,
            "strict_fpr": 0.02,
            "quiet": 2,
            "trials": 3,
            "confidence": 0.95,
            "method": "Student t over 3 trials",
            "checkpoints": 16,
            "reference": "A/A twins",
        },
    }


def _results() -> dict[str, dict[str, Any]]:
    lags = np.array(LAGS, dtype=float)
    decay = np.exp(-lags / 25)
    main = curve(start=0.9, floor=0.58, chance=0.5, spread=0.05)
    return {
        "verdict": {
            "outcome": "PASS",
            "sentence": "400 steps after planting, precision at FPR 10 % is at most 64.3 %, "
            "under the limit of 65 %.",
            "claim": "At most 64.3 % precision (95 % confidence, 5 trainings).",
            "limit": 0.65,
            "lag": 400,
            "rules": 2,
        },
        "curve": main,
        "curve_aa": curve(start=0.5, floor=0.5, chance=0.5, spread=0.055),
        "curve_tpr": curve("tpr", start=0.88, floor=0.16, chance=0.1, spread=0.07),
        "curve_auc": curve("auc", start=0.93, floor=0.57, chance=0.5, spread=0.04),
        "curve_accuracy": curve("accuracy", start=0.87, floor=0.55, chance=0.5, spread=0.04),
        "traditional": {
            "lags": LAGS,
            "seen_accuracy": (0.2 + 0.7 * decay).tolist(),
            "unseen_accuracy": (0.2 + 0.01 * np.sin(lags)).tolist(),
            "seen_loss": (2.2 - 1.8 * decay**0.5).tolist(),
            "unseen_loss": (2.25 + 0.05 * np.sin(lags)).tolist(),
        },
        **_decided(),
        "task": {"test_accuracy": 0.963, "test_examples": 360, "majority": 0.102},
        "scope": {
            "tested": [
                "One dataset (digits) and one model (MLP, 64-128-10) with SGD.",
                "32 mislabelled images, shown once at step 300.",
                "An attacker with the model before and after, who knows the true label.",
            ],
            "not_tested": [
                "Other datasets, models and optimizers.",
                "Examples shown more than once, or again later.",
                "Attackers who see more than one released model, or who poison the data.",
            ],
        },
        "compare": {
            "title": "Once against ten times",
            "series": [
                {"label": "1 repeat", **{k: main[k] for k in ("lags", "value", "low", "high")}},
                {
                    "label": "10 repeats",
                    **{
                        k: v
                        for k, v in curve(start=0.91, floor=0.74, chance=0.5, spread=0.04).items()
                        if k in ("lags", "value", "low", "high")
                    },
                },
            ],
            "differences": [
                {
                    "label": "10 repeats",
                    "mean": 0.142,
                    "mean_low": 0.121,
                    "mean_high": 0.163,
                    "p_value": 2e-5,
                    "adjusted_p_value": 2e-5,
                    "confidence": 0.95,
                    "method": "paired Student t over 3 trials",
                }
            ],
        },
    }


PLAN: dict[str, Any] = {
    "plan": {
        "kind": "inject",
        "canaries": 32,
        "step": 300,
        "repeats": 1,
        "watch_steps": 400,
        "trials": 3,
        "batch": 64,
        "seed": 0,
        "aa_twins": True,
    },
    "data": {"name": "digits", "examples": 1437, "test_examples": 360, "classes": 10},
    "canaries": {"kind": "mislabelled", "count": 32, "seed": 0},
    "model": {"name": "mlp", "hidden": [128], "parameters": 9610, "dropout": 0.0},
    "training": {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "precision": "float32"},
}


SPACE = 10**6
LEVELS = (1, 4, 16, 64)


def _exposed(name: str, trial: int, repeats: int, rank: int, *, twin: float) -> dict[str, Any]:
    bits = float(np.log2(SPACE) - np.log2(rank))
    return {
        "name": name,
        "trial": trial,
        "repeats": repeats,
        "uses": repeats * 3,
        "bits": bits,
        "low": bits,
        "high": bits,
        "rank": rank,
        "cost": round(21.5 - 0.95 * bits, 3),
        "saturated": False,
        "skew_normal_bits": round(0.82 * bits, 3),
        "twin_bits": twin,
    }


def _canaries() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rng = np.random.default_rng(3)

    def rank(level: float) -> int:
        return int(np.clip(SPACE * 2 ** -(level + rng.normal(0, 1.2)), 1, SPACE))

    heights = {1: 2.2, 4: 6.5, 16: 14.5, 64: 22.0}
    canaries = [
        _exposed(
            f"canary {12 * trial + 3 * i + j + 1}",
            trial,
            repeats,
            rank(heights[repeats]),
            twin=float(rng.exponential(1.44)),
        )
        for trial in range(2)
        for i, repeats in enumerate(LEVELS)
        for j in range(3)
    ]
    controls = [
        _exposed(
            f"control {i + 1}",
            i // 8,
            0,
            int(rng.integers(1, SPACE)),
            twin=float(rng.exponential(1.44)),
        )
        for i in range(16)
    ]
    return canaries, controls


def _levels(canaries: list[dict[str, Any]], controls: list[dict[str, Any]]) -> dict[str, Any]:
    groups = [controls, *([c for c in canaries if c["repeats"] == r] for r in LEVELS)]
    return {
        "repeats": [0, *LEVELS],
        "mean_bits": [float(np.mean([c["bits"] for c in group])) for group in groups],
        "twin_mean_bits": [float(np.mean([c["twin_bits"] for c in group])) for group in groups],
        "n": [len(group) for group in groups],
        "pooled_pvalue": [0.41, 0.024, 3e-7, 1e-30, 1e-40],
    }


def _exposure_results() -> dict[str, dict[str, Any]]:
    canaries, controls = _canaries()
    law = {"shape": -1.6, "location": 23.4, "scale": 2.6}
    rng = np.random.default_rng(5)
    delta = law["shape"] / np.hypot(1, law["shape"])
    skewed = delta * np.abs(rng.standard_normal(10_000)) + np.sqrt(1 - delta**2) * (
        rng.standard_normal(10_000)
    )
    counts, edges = np.histogram(law["location"] + law["scale"] * skewed, bins=40)
    marked = [c for c in canaries if c["trial"] == 0]
    return {
        "verdict": {
            "outcome": "FAIL",
            "sentence": "Of 6 canaries planted at most 16 times, the most exposed (planted 16 "
            "times) has an exposure of 15.9 bits, out of at most 19.9: at or above the limit "
            "of 10.",
            "limit": 10.0,
            "lag": None,
            "rules": 2,
        },
        "exposure": {
            "template": 'API_KEY = "{digits:6}"\n',
            "space": SPACE,
            "ceiling_bits": float(np.log2(SPACE)),
            "method": "exact",
            "reason": "exact: the walk was expected to take about 1.1e+05 nodes of 2000000 allowed",
            "tolerance": 2e-6,
            "nodes": 220_134,
            "null_mean_bits": 1.4427,
            "canaries": canaries,
            "controls": controls,
        },
        "repeats": _levels(canaries, controls),
        "costs": {
            "edges": edges.tolist(),
            "counts": counts.tolist(),
            "n_references": 10_000,
            "skew_normal": law,
            "ks_pvalue": 0.37,
            "marked": [{k: c[k] for k in ("name", "repeats", "cost", "bits")} for c in marked],
            "member": "planted, trial 1",
        },
        "extraction": {
            "searches": [
                {
                    "member": "planted, trial 1",
                    "certified": True,
                    "nodes": 812,
                    "space": SPACE,
                    "tolerance": 2e-6,
                    "candidates": [
                        {"bits": 2.31, "canary": "canary 10", "repeats": 64},
                        {"bits": 2.74, "canary": "canary 12", "repeats": 64},
                        {"bits": 6.02, "canary": None, "repeats": None},
                    ],
                },
                {
                    "member": "twin, trial 1",
                    "certified": False,
                    "nodes": 2_000_000,
                    "space": SPACE,
                    "tolerance": 2e-6,
                    "candidates": [{"bits": 14.9, "canary": None, "repeats": None}],
                },
            ]
        },
        "task": {
            "validation_bits": 2.213,
            "validation_tokens": 40_000,
            "token": "character",
            "uniform_bits": 6.6,
        },
        "scope": {
            "tested": [
                "One text (Python's standard library, 400 000 characters) and one model (LSTM).",
                "An attacker who holds the model and knows the template.",
            ],
            "not_tested": [
                "Other templates, texts and models.",
                "Secrets that occur in the text by nature.",
            ],
        },
    }


EXPOSURE_PLAN: dict[str, Any] = {
    "plan": {"kind": "text", "repeats": [1, 4, 16, 64], "epochs": 3, "trials": 2, "seed": 0},
    "model": {"name": "lstm", "options": {"hidden": 128}},
}


STARTS, WINDOW, STEPS = (100, 300), 50, 600


def _one_run() -> dict[str, Any]:
    columns: dict[str, list[Any]] = {
        key: []
        for key in (
            *("lags", "success", "low", "high", "effect", "effect_low", "effect_high"),
            *("cohort", "repeats", "checkpoint", "n_seen"),
        )
    }
    for window, start in enumerate(STARTS):
        for repeats, height, mean_age in ((1, 0.3, 20.5), (8, 0.8, 4.25)):
            for done in (150, 250, 300, 350, 450, 600):
                if done < start + WINDOW:
                    continue
                lag = done - start - WINDOW + mean_age
                left = float(np.exp(-lag / 150))
                value, effect = 0.1 + height * left, 4 * height * left
                row = (
                    *(lag, value, max(0.0, value - 0.08), min(1.0, value + 0.1)),
                    *(effect, effect - 0.5, effect + 0.5, window, repeats, done - 1.0, 40),
                )
                for column, entry in zip(columns.values(), row, strict=True):
                    column.append(entry)
    return {
        "rate": "tpr",
        "fpr": 0.1,
        "confidence": 0.95,
        "chance": 0.1,
        "calibrated": True,
        "method": "canary bootstrap of both sides",
        "n_unseen": 120,
        "starts": list(STARTS),
        "window": WINDOW,
        "steps": STEPS,
        **columns,
    }


def _one_run_results() -> dict[str, dict[str, Any]]:
    return {
        "verdict": {
            "outcome": "PASS",
            "sentence": "454 steps after their last use, canaries planted 8 times are found with "
            "a TPR at FPR 10 % of 0.139 (95 % interval 0.059 to 0.239; one run): all of it within "
            "the limit 0.3.",
            "limit": 0.3,
            "lag": 454.25,
            "rules": 2,
        },
        "one_run": _one_run(),
        "task": {"test_accuracy": 0.963, "test_examples": 360, "majority": 0.102},
        "scope": {
            "tested": ["STAGGERED: one run of 600 steps of mlp1 on digits."],
            "not_tested": [
                "how much another run would differ: there was one",
                "whether what the attack no longer finds is gone or only hidden: no relearning "
                "was run",
            ],
        },
    }


ONE_RUN_PLAN: dict[str, Any] = {
    "plan": {"kind": "staggered", "canaries": 280, "never": 120, "starts": [100, 300]},
    "model": {"name": "mlp1", "options": {}},
}


SAMPLES, MODELS, EPOCH, TRAINED = 1000, 24, 14, 420
MOMENTS = (0, 3, 6, 8, 11, 14, 21, 28, 42, 56, 84, 112, 168, 224, 336, 420)
LOOK = 84
SHARP = {"psmi": 1.0, "loss": 1.15, "logit_gap": 1.1, "mahalanobis": 0.25, "lt_iqr": 1.6}
EARLY = ("psmi", "loss", "logit_gap", "mahalanobis")


class _Simulated:
    """Samples with an oddness, which decides how much models that saw them stand out.

    A predictor sees the oddness through noise, the less of it the later; the truth is LiRA on the
    simulated logit gaps.
    """

    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)
        kinds = ["mislabelled"] * 50 + ["odd"] * 50 + ["clean"] * (SAMPLES - 100)
        self.kinds = np.array(kinds)
        means = np.select([self.kinds == "mislabelled", self.kinds == "odd"], [3.2, 2.2], 0.0)
        self.oddness = means + self.rng.gamma(0.6, 0.6, SAMPLES)
        seen = np.array([self.rng.permutation(MODELS) < MODELS // 2 for _ in range(SAMPLES)]).T
        gaps = 6.0 + self.rng.normal(0, 1.0, (MODELS, SAMPLES)) - 2.5 * self.oddness * ~seen
        self.lira = lira_leave_one_out(scores=gaps, seen=seen)
        self.counterfactual = counterfactual_memorization(scores=gaps, seen=seen).values
        self.rmia = np.clip(
            0.5 + 0.1 * self.counterfactual + self.rng.normal(0, 0.05, SAMPLES), 0, 1
        )
        self.seen = seen
        self.labels = self.rng.integers(0, 10, SAMPLES)
        self.own = np.flatnonzero(seen[0])
        self.ratio = self.lira.scores[0, self.own]

    def risk(self, predictor: str, step: int = LOOK, sharp: float = 1.0) -> Any:
        noise = np.random.default_rng([len(predictor), step, self.own.size])
        clear = sharp * SHARP.get(predictor, 0.4) * (1 - np.exp(-step / 40))
        return clear * (self.oddness[self.own] - 1.6) + noise.normal(0, 0.8, self.own.size)

    def row(self, predictor: str, **at: Any) -> dict[str, Any]:
        """One row of the record: at a ``step``, ``layer`` and ``threshold``; ``whole`` has all."""
        step, threshold = at.get("step", LOOK), at.get("threshold", 4.0)
        layer = at.get("layer", "last")
        sharp = {"first": 0.3, "middle": 0.7}.get(layer, 1.0)
        found = prediction_quality(
            risk=self.risk(predictor, step, sharp),
            memorised=self.ratio >= threshold,
            rng=np.random.default_rng(1),
            threshold=0.0 if predictor == "psmi" else None,
            draws=60,
        )
        kept = np.unique(np.linspace(0, found.curve.fpr.size - 1, 120).astype(int))
        rates = ("auc", "fpr_at_tpr", "precision_at_k", "default_tpr", "default_fpr")
        return {
            "predictor": predictor,
            "layer": layer,
            "step": step,
            "epoch": step / EPOCH,
            "threshold": threshold,
            "n_memorised": found.n_memorised,
            "n_others": found.n_others,
            "base_rate": found.base_rate,
            "k": found.k,
            **{
                name: None if rate is None else [rate.value, rate.low, rate.high]
                for name in rates
                for rate in (getattr(found, name),)
            },
            "others": [found.auc.value - 0.02, found.auc.value + 0.01] if "whole" in at else [],
            "curve": {
                "fpr": found.curve.fpr[kept].tolist(),
                "tpr": found.curve.tpr[kept].tolist(),
            }
            if "whole" in at
            else None,
        }


@functools.cache
def _predicted() -> dict[str, dict[str, Any]]:
    made = _Simulated()
    memorised, risk = made.ratio >= 4.0, made.risk("psmi")
    losses = 2.4 * np.exp(-np.array(MOMENTS) / 26) + 0.02
    dropped = 1 - losses / losses[0]
    order = np.argsort(-risk)
    listed = int(np.flatnonzero(memorised[order])[int(0.88 * memorised.sum())]) + 1
    missed = clopper_pearson(7, 61, confidence=0.95)
    kinds = ("mislabelled", "odd", "clean")
    truths = {"lira": made.lira.success_rate, "counterfactual": made.counterfactual}
    truths["rmia"] = made.rmia
    pairs = (("lira", "counterfactual"), ("lira", "rmia"), ("counterfactual", "rmia"))
    agreed = {pair: rank_agreement(first=truths[pair[0]], second=truths[pair[1]]) for pair in pairs}
    return {
        "prediction": {
            "models": MODELS,
            "targets": 4,
            "layer": "last",
            "confidence": 0.95,
            "tpr": 0.75,
            "smi": 1.234,
            "stop": {
                "step": LOOK,
                "epoch": LOOK / EPOCH,
                "dropped": float(dropped[MOMENTS.index(LOOK)]),
                "drop": 0.95,
                "reached": True,
                "steps": TRAINED,
                "epochs": TRAINED / EPOCH,
                "at_step": list(MOMENTS),
                "at_epoch": [step / EPOCH for step in MOMENTS],
                "median_loss": losses.tolist(),
                "dropped_at": dropped.tolist(),
            },
            "quality": [made.row(name, whole=True) for name in (*SHARP, "early_lira")],
            "by_time": [made.row(name, step=at) for at in MOMENTS[1:] for name in EARLY],
            "by_layer": [
                made.row(name, layer=layer)
                for layer in ("first", "middle", "last")
                for name in ("psmi", "mahalanobis")
            ],
            "by_threshold": [
                made.row(name, threshold=float(limit))
                for limit in (0, 2, 4, 6, 8)
                for name in ("psmi", "loss", "logit_gap")
            ],
            "canaries": [
                {
                    "kind": kind,
                    "n": int(mine.sum()),
                    "memorised": float(memorised[mine].mean()),
                    "flagged": float((risk[mine] >= 0).mean()),
                    "auc": None if kind == "clean" else [0.9, 0.8, 0.95],
                }
                for kind in kinds
                for mine in (made.kinds[made.own] == kind,)
            ],
            "forward_passes": 0.6,
        },
        "truth": {
            "models": MODELS,
            "n": SAMPLES,
            "signal": "logit_gap",
            "convention": "online, mean, per-example variance",
            "threshold": 4.0,
            "memorised_share": float(memorised.mean()),
            "flip_rate": [0.081, 0.062, 0.104],
            "persistence": 0.71,
            "false_alarms": [0.02, 0.3, 0.0, 0.05],
            "false_alarm_limit": 0.2,
            "agreement": [
                {
                    "first": pair[0],
                    "second": pair[1],
                    "value": a.value,
                    "low": a.low,
                    "high": a.high,
                }
                for pair, a in agreed.items()
            ],
            "scatter": {
                key: truths[key][:: SAMPLES // 400].tolist()[:400]
                for key in ("lira", "counterfactual")
            },
            "by_kind": [
                {
                    "kind": kind,
                    "n": int((made.kinds == kind).sum()),
                    **{key: float(each[made.kinds == kind].mean()) for key, each in truths.items()},
                }
                for kind in kinds
            ],
        },
        "protect": {
            "predictor": "psmi",
            "miss": 0.2,
            "confidence": 0.9,
            "stated": 0.187,
            "share": listed / made.own.size,
            "listed": listed,
            "n": int(made.own.size),
            "runs": 3,
            "missed": [0.1, 0.12, 0.14],
            "check": {
                "model": 6,
                "memorised": 61,
                "missed": 7,
                "rate": [7 / 61, float(missed[0]), float(missed[1])],
                "held": True,
            },
            "samples": [
                {
                    "example": int(made.own[i]),
                    "kind": str(made.kinds[made.own[i]]),
                    "label": int(made.labels[made.own[i]]),
                    "risk": float(risk[i]),
                    "memorised": bool(memorised[i]),
                }
                for i in order[:25].tolist()
            ],
        },
        "verdict": {
            "headline": "A short list holds most memorised samples",
            "sentence": "Protect 72 of 499 samples: misses at most 19 % of the memorised ones "
            "(90 % confidence). An independent run missed 1 of 37.",
            "advice": "Remove, mask or protect the samples on the list, then train again.",
            "rules": 2,
        },
        "task": {"test_accuracy": 0.963, "test_examples": 360, "majority": 0.102},
        "scope": {
            "tested": ["SHADOW: 24 models, each trained on a random half of 1000 examples."],
            "not_tested": [
                "attacks stronger than LiRA on one query: a sample that LiRA does not find may "
                "still be memorised",
            ],
        },
    }


PREDICTION_PLAN: dict[str, Any] = {
    "plan": {"kind": "shadow", "models": MODELS, "steps": TRAINED, "batch": 32, "seed": 0},
    "predict": {"targets": 4, "layers": ["last", "middle", "first"], "miss": 0.2, "limit": 0.5},
    "truth": {"signal": "logit_gap", "threshold": 4.0},
}


def _three(value: float, spread: float, *, share: bool = False) -> list[float]:
    ends = [value, value - spread, value + spread]
    return [min(1.0, max(0.0, end)) for end in ends] if share else ends


def _reacting(m: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    """A group of models, as the record keeps it."""
    above = m[m > 0]
    return {
        "n": int(m.size),
        "share_positive": _three(float((m > 0).mean()), 0.15, share=True),
        "share_significant": _three(float((p <= 0.05).mean()), 0.12, share=True),
        "share_t_test": _three(0.8, 0.1, share=True),
        "mean_positive": float(above.mean()) if above.size else None,
        "mean": _three(float(m.mean()), 0.004),
        "largest": float(m.max()),
    }


def _half(m: np.ndarray, p: np.ndarray, twins: np.ndarray) -> dict[str, Any]:
    """Models of the canaries that were chosen for a high influence, or for a low one."""
    return {
        "canaries": len(m),
        "n": int(m.size),
        "share_significant": _three(float((p <= 0.05).mean()), 0.2, share=True),
        "mean": _three(float(m.mean()), 0.006),
        "beyond_m": _three(float((m - twins).mean()), 0.005),
    }


def _reaction(name: str, changes: str, strength: float) -> dict[str, Any]:
    """One way to train: 10 canaries, 3 seeds, 8 null trainings and the 3 twins."""
    rng = np.random.default_rng(len(name))
    twins = rng.normal(0.002, 0.003, 3)
    null_m = np.concatenate([twins, rng.normal(0.002, 0.003, 8)])
    null_p = np.round(rng.uniform(0.005, 1, 11), 3)
    effect = strength * rng.exponential(0.01, 10)
    m = twins + effect[:, None] + rng.normal(0, 0.004, (10, 3))
    p = np.clip(np.exp(-np.maximum(m, 0) * 300), 0.005, 1).round(3)
    influence = 10.0 ** rng.uniform(-12, 4, 10)
    high = influence > np.median(influence)
    epochs = [0, 1, 2, 5, 10, 20, 40]
    grown = np.array([0, 0.1, 0.4, 0.8, 1, 0.95, 0.9]) * float(m.mean())
    fires = np.sort(rng.beta(0.4, 3, 20))[::-1]
    return {
        "name": name,
        "what": "mlp1 on digits",
        "changes": changes,
        "test_accuracy": [0.962, 0.958, 0.966],
        "stopped_epoch": [41, 33, 58],
        "members": 41,
        "planted": _reacting(m, p),
        "unplanted": _reacting(null_m, null_p),
        "beyond": [0.242, 0.051, 0.433],
        "beyond_m": _three(float((m - twins).mean()), 0.003),
        "by_influence": {
            "high": _half(m[high], p[high], twins),
            "low": _half(m[~high], p[~high], twins),
        },
        "white_box": {
            "planted": [0.031, 0.012, 0.05],
            "twins": [0.002, -0.004, 0.008],
            "largest": 0.11,
        },
        "by_canary": [
            {
                "example": int(100 + 7 * i),
                "label": i,
                "high": bool(high[i]),
                "influence": float(influence[i]),
                "m": m[i].tolist(),
                "p": p[i].tolist(),
                "twin_m": twins.tolist(),
            }
            for i in range(10)
        ],
        "spread": {"seeds": 0.0051, "canaries": 0.0098, "patches": 0.0002, "sign_changes": 0.3},
        "through": {
            "epoch": epochs,
            "planted": [_three(value, 0.003) for value in grown.tolist()],
            "unplanted": [_three(0.002, 0.002) for _ in epochs],
        },
        "influence": {
            "pearson": [0.43, 0.1, 0.68],
            "spearman": [0.21, -0.15, 0.52],
            "n": 10,
            "changes": [
                {
                    "example": int(100 + 7 * i),
                    "before": float(influence[i]),
                    "after": float(max(influence[i] * 1.1, 7.5e4)),
                    "high": bool(high[i]),
                }
                for i in range(10)
            ],
        },
        "activations": {
            "units": 128,
            "letter": fires.tolist(),
            "random": (0.3 * fires).tolist(),
            "unplanted": (0.1 + 0.1 * fires).tolist(),
        },
    }


PICTURES = {
    "clean": "As they were",
    "patched": "With the patch",
    "image": "Blocks of noise",
    "image patched": "The same with the patch",
    "image random": "The same with random patches",
}


def _features_results() -> dict[str, dict[str, Any]]:
    return {
        "verdict": {
            "outcome": "FAIL",
            "sentence": "Models trained with the patch in one image stand out 24.2 points more "
            "often than models that never saw it, at least 5.1: above the limit of 5.",
            "limit": 0.05,
            "lag": None,
            "rules": 2,
        },
        "features": {
            "patch": {
                "what": "a letter of 5 x 5 pixels",
                "row": 1,
                "column": 1,
                "height": 5,
                "width": 5,
                "opacity": 1.0,
            },
            "images": {"name": "blocks", "n": 1000},
            "canaries": 10,
            "seeds": 3,
            "unplanted": 11,
            "nulls": 199,
            "significance": 0.05,
            "confidence": 0.95,
            "convention": "black box, uniform random patches, floor 1e-07",
            "pictures": [
                {"what": what, "title": title, "array": f"pictures-{what.replace(' ', '-')}"}
                for what, title in PICTURES.items()
            ],
            "variants": [_reaction("plain", "", 1.0), _reaction("dropout", "dropout 0.2", 0.1)],
        },
        "task": {"test_accuracy": 0.963, "test_examples": 360, "majority": 0.102},
        "scope": {
            "tested": ["FEATURE: one image with a patch, 10 images, 3 seeds each."],
            "not_tested": ["Patches in more than one image."],
        },
    }


def _features_arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    clean, image = rng.random((2, 5, 1, 8, 8))
    stamp, random = rng.integers(0, 2, (5, 5)), rng.random((5, 1, 5, 5))
    found = {"clean": clean, "image": image}
    for name, below, above in (
        ("patched", clean, stamp),
        ("image-patched", image, stamp),
        ("image-random", image, random),
    ):
        found[name] = below.copy()
        found[name][:, :, 1:6, 1:6] = above
    return {f"pictures-{name}": array for name, array in found.items()}


FEATURES_PLAN: dict[str, Any] = {
    "plan": {"kind": "feature", "canaries": 10, "seeds": 3, "unplanted": 8, "epochs": 500},
    "patch": {"text": "SECRET", "file": None, "size": 5, "row": 1, "column": 1},
    "score": {"nulls": 199, "control": "uniform", "limit": 0.05},
}
FAMILIES: dict[str, tuple[dict[str, Any], Callable[[], dict[str, dict[str, Any]]]]] = {
    "exposure": (EXPOSURE_PLAN, _exposure_results),
    "one-run": (ONE_RUN_PLAN, _one_run_results),
    "prediction": (PREDICTION_PLAN, lambda: copy.deepcopy(_predicted())),
    "text-prediction": (PREDICTION_PLAN, lambda: copy.deepcopy(_predicted())),
    "unique-features": (FEATURES_PLAN, _features_results),
}


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(
        *,
        name: str = "digits-inject",
        question: str = "forgetting",
        results: dict[str, dict[str, Any]] | None = None,
        plan: dict[str, Any] | None = None,
        without: tuple[str, ...] = (),
        absent: tuple[tuple[str, str], ...] = (),
        arrays: dict[str, np.ndarray] | None = None,
        finish: bool = True,
    ) -> Path:
        default, recorded = FAMILIES.get(question, (PLAN, _results))
        found = recorded()
        with Record.create(
            tmp_path / name,
            question=question,
            plan=default if plan is None else plan,
            plan_fingerprint="3f9c2d7be4a1905c6f",
            data_fingerprint="a71e0055d2cc81f0b3",
            execution={"backend": "stacked", "device": "cpu", "members": 12, "steps": 700},
            provenance={
                "python": "3.11.7",
                "versions": {"remnant": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
                "platform": "Linux-6.1-x86_64",
                "threads": 2,
                "seeds": {"plan": 0, "bootstrap": 1},
            },
        ) as record:
            for key, value in (found | (results or {})).items():
                if key not in without:
                    record.put_result(key, value)
            for key, reason in absent:
                record.put_absent(key, reason)
            for key, array in (arrays or {}).items():
                record.put_array(key, array)
            if "prediction" not in question and question != "unique-features":
                members, canaries = np.meshgrid([0, 4, 8], np.arange(32), indexing="ij")
                record.put_ledger(
                    {
                        "member": members.ravel(),
                        "canary": canaries.ravel(),
                        "step": np.full(96, 300),
                        "uses": np.ones(96, dtype=int),
                    }
                )
            if finish:
                record.finish()
            return record.folder

    return make


@pytest.fixture
def make_exposure(make_run: Callable[..., Path]) -> Callable[..., Path]:
    """Make an exposure run; ``change`` maps a result's name to entries to be set in it."""

    def make(
        *,
        name: str = "keys",
        change: dict[str, dict[str, Any]] | None = None,
        results: dict[str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Path:
        changed = {
            key: _exposure_results()[key] | entries for key, entries in (change or {}).items()
        }
        return make_run(
            name=name, question="exposure", results=changed | (results or {}), **options
        )

    return make


@pytest.fixture
def make_one_run(make_run: Callable[..., Path]) -> Callable[..., Path]:
    """Make a one-run record; ``change`` are entries to be set in its result ``one_run``."""

    def make(
        *,
        name: str = "staggered",
        change: dict[str, Any] | None = None,
        results: dict[str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Path:
        changed = {"one_run": _one_run() | (change or {})} | (results or {})
        return make_run(name=name, question="one-run", results=changed, **options)

    return make


@pytest.fixture
def make_prediction(make_run: Callable[..., Path]) -> Callable[..., Path]:
    """Make a prediction run; ``change`` maps a result's name to entries to be set in it."""

    def make(
        *,
        name: str = "early",
        question: str = "prediction",
        change: dict[str, dict[str, Any]] | None = None,
        results: dict[str, dict[str, Any]] | None = None,
        **options: Any,
    ) -> Path:
        changed = {
            key: copy.deepcopy(_predicted())[key] | entries
            for key, entries in (change or {}).items()
        }
        return make_run(name=name, question=question, results=changed | (results or {}), **options)

    return make


@pytest.fixture
def make_features(make_run: Callable[..., Path]) -> Callable[..., Path]:
    """Make a run that plants a patch; ``change`` are entries of its result ``features``, and
    ``plain`` entries of its first way to train.
    """

    def make(
        *,
        name: str = "letters",
        change: dict[str, Any] | None = None,
        plain: dict[str, Any] | None = None,
        results: dict[str, dict[str, Any]] | None = None,
        arrays: dict[str, np.ndarray] | None = None,
        **options: Any,
    ) -> Path:
        features = _features_results()["features"]
        features["variants"][0] |= plain or {}
        changed = {"features": features | (change or {})} | (results or {})
        kept = _features_arrays() | (arrays or {})
        return make_run(
            name=name, question="unique-features", results=changed, arrays=kept, **options
        )

    return make


@pytest.fixture
def featured() -> dict[str, dict[str, Any]]:
    """The results of a run that plants a patch, to be changed at will."""
    return _features_results()


@pytest.fixture
def make_pool(tmp_path: Path) -> Callable[[str], Path]:
    """Make a pool of shadow models' scores, as far as anyone but its study can see."""

    def make(name: str) -> Path:
        with Record.create(
            tmp_path / name,
            question="shadow-pool",
            plan={"plan": {"kind": "shadow"}, "recipe": {}},
            plan_fingerprint="77aa",
            data_fingerprint="a71e",
            execution={"device": "cpu"},
            provenance={},
        ) as record:
            record.put_array("models-0-2", np.zeros((2, 3, 5)))
            return record.folder

    return make


@pytest.fixture
def predicted() -> dict[str, dict[str, Any]]:
    """The results of a prediction run, to be changed at will."""
    return copy.deepcopy(_predicted())


@pytest.fixture
def make_curve():
    return curve


def around(value: float, reach: float = 1.0) -> list[float]:
    return [value, value - reach, value + reach]


def trained_variant(number: int, *, repeats: int, bits: float, loss: float, **changes: Any):
    """One variant of five models in the record's form; exposure rises along five looks."""
    each = [bits + 0.3 * i - 0.6 for i in range(5)]
    made = {
        "label": f"planted {repeats}",
        "changes": {"plan": {"repeats": [repeats]}},
        "cell": {"batch": 16 * (1 + number % 2), "units": 50 * (1 + number // 2)},
        "repeats": [repeats],
        "models": 5,
        "steps": 400,
        "exposure": around(bits),
        "each": each,
        "exact": True,
        "exact_each": [True] * 5,
        "saturated": 0,
        "ranked_first": [0.2, 0.01, 0.7],
        "controls": around(1.5, 0.4),
        "twin": None,
        "validation_bits": around(loss, 0.05),
        "training_bits": around(loss - 0.5, 0.05),
        "extracted": [0.4, 0.05, 0.85],
        "extracted_each": [False, False, False, True, True],
        "nodes": 700.0,
        "nodes_each": [900.0, 800.0, 700.0, 500.0, 400.0],
        "skew_normal": [one - 0.25 for one in each],
        "parameters": 12_514,
        "through": {
            "step": [0, 100, 200, 300, 400],
            "epoch": [0.0, 1.0, 2.0, 3.0, 4.0],
            "exposure": [around(bits * share) for share in (0.1, 0.3, 0.7, 1.0, 0.9)],
            "validation_bits": [around(loss + d, 0.1) for d in (3.0, 1.0, 0.0, 0.1, 0.2)],
            "training_bits": [around(loss + d, 0.1) for d in (3.0, 1.0, -0.1, -0.4, -0.5)],
            "uses": [40, 140, 240, 340],
            "method": "sampled",
            "ceiling_bits": 9.97,
        },
    }
    return {**made, **changes}


CHOICES: dict[str, Any] = {
    "training": {
        "title": "How often a canary is planted",
        "space_bits": 19.93,
        "null_mean_bits": 1.4427,
        "repeats": [1],
        "trials": 5,
        "confidence": 0.95,
        "token": "character",
        "variants": [
            trained_variant(0, repeats=1, bits=3.0, loss=2.1),
            trained_variant(1, repeats=4, bits=6.5, loss=2.0),
            trained_variant(2, repeats=16, bits=14.2, loss=2.2),
            trained_variant(3, repeats=64, bits=18.0, loss=1.9),
        ],
        "table": {"rows": "batch", "columns": "units"},
        "effects": [
            {
                "field": field,
                "value": value,
                "cells": 2,
                "exposure": around(bits),
                "validation_bits": around(2.0),
                "difference": None if gap is None else around(gap),
                "p_value": None if gap is None else 0.004,
                "adjusted_p_value": None if gap is None else 0.008,
            }
            for field, value, bits, gap in (
                ("batch", "16", 8.6, None),
                ("batch", "32", 12.25, 3.65),
                ("units", "50", 4.75, None),
                ("units", "100", 16.1, 11.35),
            )
        ],
        "by_exposure": [
            {
                "low": 0.0,
                "high": 4.0,
                "canaries": 5,
                "searched": 5,
                "read_out": 2,
                "nodes": 1234.0,
                "estimated": 5,
                "error": [-0.25, -0.5, 0.1],
            },
            {
                "low": 19.93,
                "high": 19.93,
                "canaries": 3,
                "searched": 0,
                "read_out": 0,
                "nodes": None,
                "estimated": 0,
                "error": None,
            },
        ],
        "pareto": ["planted 64", "planted 4", "planted 1"],
    },
    "verdict": {
        "headline": "Training choices change exposure",
        "sentence": "Planting 8 times instead of once adds 8.3 bits (95 % CI 6.2 to 9.5).",
        "advice": "Prefer 'planted 1' if its validation bits are good enough.",
        "rules": 2,
        "differences": [
            {
                "label": f"planted {repeats}",
                "difference": around(gap),
                "p_value": 0.001,
                "adjusted_p_value": 0.003,
                "differs": True,
            }
            for repeats, gap in ((4, 3.5), (16, 11.2), (64, 15.0))
        ],
    },
    "task": {"validation_bits": 2.1, "validation_tokens": 5760, "token": "character"},
    "scope": {"tested": ["20 models"], "not_tested": ["other text"]},
}


@pytest.fixture
def make_training(tmp_path):
    """Write a run about training choices; ``change`` is called with its results before."""

    def run(change=None, *, without=()):
        results = copy.deepcopy(CHOICES)
        if change is not None:
            change(results)
        with Record.create(
            tmp_path / "choices",
            question="exposure-training",
            plan={"question": "exposure-training", "plan": {"kind": "insert", "repeats": [1]}},
            plan_fingerprint="3f9c2d7be4a1905c6f",
            data_fingerprint="a71e0055d2cc81f0b3",
            execution={"device": "cpu"},
            provenance={"python": "3.11.7", "versions": {}, "platform": "Linux", "threads": 2},
        ) as record:
            for name, result in results.items():
                if name not in without:
                    record.put_result(name, result)
            record.finish()
        return record.folder

    return run
