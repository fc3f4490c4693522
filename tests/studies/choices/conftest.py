"""A small run with a grid and a twin, and one with a remedy of every kind."""

from __future__ import annotations

import pytest

from remnant.studies import Execution, run_study, study_from

CHOICES = {
    "question": "exposure-training",
    "title": "Batch and units",
    "plan": {
        "kind": "insert",
        "repeats": [4],
        "epochs": 2,
        "trials": 3,
        "controls": 2,
        "batch": 16,
        "precision": "float64",
    },
    "text": {"characters": 6_000, "window": 24},
    "secret": {"template": "key {digits:3};"},
    "model": {"options": {"units": 16, "layers": 1}},
    "training": {"optimizer": "adam", "options": {"lr": 0.03}},
    "measure": {"references": 200, "extract": True, "windows": 20},
    "follow": {"epochs": [0, 1, 2], "references": 150},
    "grid": {
        "plan": {"batch": [8, 16]},
        "model": {"options": {"units": [8, 16]}},
        "along": {"batch": {"training": {"options": {"lr": [0.02, 0.03]}}}},
    },
    "compare": [{"label": "30 times", "plan": {"repeats": [30], "twin": True}}],
}
DEFENCES = {
    "question": "defences",
    "title": "A tiny one",
    "plan": {
        "kind": "insert",
        "repeats": [12],
        "epochs": 2,
        "trials": 3,
        "controls": 2,
        "batch": 16,
        "precision": "float64",
    },
    "text": {"characters": 6_000, "window": 28},
    "secret": {"template": "\na{digits:3}@uni.edu\n"},
    "model": {"options": {"units": 16, "layers": 1}},
    "training": {"optimizer": "adam", "options": {"lr": 0.03}},
    "measure": {"references": 200, "windows": 20, "limit": 6.0},
    "remedy": [
        {"label": "decay", "kind": "weight-decay", "strength": 0.01},
        {"label": "dropout", "kind": "dropout", "rate": 0.2},
        {"label": "clipped", "kind": "clipping", "clip": 0.05},
        {"label": "stopped", "kind": "early-stopping", "every": 5, "patience": 1},
        {"label": "private", "kind": "private", "clip": 0.1, "noise": 1.0},
        {"label": "levels", "kind": "levels", "levels": 16},
        {"label": "int8", "kind": "int8"},
        {"label": "pruned", "kind": "pruning", "share": 0.9},
        {"label": "once", "kind": "deduplication"},
        {"label": "scanned", "kind": "sanitising"},
        {"label": "halves", "kind": "sanitising", "by": "disagreement", "share": 0.1},
        {"label": "first", "kind": "order", "steps": 10},
        {"label": "tuned", "kind": "fine-tuning", "steps": 6, "relearn": 3},
        {"label": "ascent", "kind": "ascent", "steps": 4, "lr": 0.01, "relearn": 3},
        {"label": "slower", "kind": "training", "training": {"options": {"lr": 0.003}}},
    ],
}


@pytest.fixture(scope="session")
def chosen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices") / "choices"
    run_study(study_from(CHOICES), folder, Execution())
    return folder


@pytest.fixture(scope="session")
def defended(tmp_path_factory):
    folder = tmp_path_factory.mktemp("defences") / "defences"
    run_study(study_from(DEFENCES), folder, Execution())
    return folder
