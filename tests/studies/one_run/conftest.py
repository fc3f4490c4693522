"""One small run with two windows and two numbers of repeats, and a page's words."""

from __future__ import annotations

import pytest

from remnant.studies import Execution, run_study, study_from


@pytest.fixture(scope="session")
def staggered(tmp_path_factory):
    study = study_from(
        {
            "question": "one-run",
            "plan": {
                "kind": "staggered",
                "canaries": 140,
                "never": 60,
                "starts": [40, 120],
                "window": 30,
                "repeats": [1, 8],
                "per_batch": 10,
                "steps": 220,
                "batch": 32,
            },
            "data": {"examples": 300},
            "training": {"options": {"lr": 0.1}},
            "attack": {"checkpoints": 12, "success": "tpr", "fpr": 0.1, "limit": 0.9},
        }
    )
    folder = tmp_path_factory.mktemp("one-run") / "staggered"
    run_study(study, folder, Execution())
    return folder
