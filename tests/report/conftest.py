"""A realistic run: 32 canaries planted once at step 300, three trials, a curve that decays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from remnant.records import Record

LAGS = [0, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 250, 300, 350, 400]


def curve(success: str = "precision", *, start: float, floor: float, chance: float, spread: float):
    """A plausible decaying curve in the record's form."""
    lags = np.array(LAGS, dtype=float)
    noise = np.random.default_rng(7).normal(0, spread / 5, lags.size)
    value = np.clip(floor + (start - floor) * np.exp(-lags / 60) + noise, 0, 1)
    width = spread * (1 + 0.4 * lags / lags.max())
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
            "limit": 0.65,
            "lag": 400,
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


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    def make(
        *,
        name: str = "digits-inject",
        results: dict[str, dict[str, Any]] | None = None,
        plan: dict[str, Any] | None = None,
        without: tuple[str, ...] = (),
        absent: tuple[tuple[str, str], ...] = (),
        finish: bool = True,
    ) -> Path:
        with Record.create(
            tmp_path / name,
            question="forgetting",
            plan=PLAN if plan is None else plan,
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
            for key, value in (_results() | (results or {})).items():
                if key not in without:
                    record.put_result(key, value)
            for key, reason in absent:
                record.put_absent(key, reason)
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
def make_curve():
    return curve
