"""One small run about training choices with a grid and a twin, and a page's words."""

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


@pytest.fixture(scope="session")
def chosen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices") / "choices"
    run_study(study_from(CHOICES), folder, Execution())
    return folder
