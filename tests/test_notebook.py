"""The notebook in ``examples/`` runs from its first cell to its last."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = json.loads((EXAMPLES / "finished_model.ipynb").read_text(encoding="utf-8"))
CHECKS = """
assert audit.outcome == "FAIL"
assert {"name", "auc", "auc_low", "auc_high"} <= set(attacks.columns)
assert axes.get_title() or axes.get_xlabel()
assert len(records) == 300 and riskiest["risk"].is_monotonic_decreasing
assert -1 <= length_and_risk <= 1
"""


def test_the_notebook_runs(tmp_path):
    cells = ["".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text("\n\n".join([*cells, CHECKS]), encoding="utf-8")
    shutil.copy(EXAMPLES / "tiny_model.py", tmp_path)
    subprocess.run(
        [sys.executable, "cells.py"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "HF_HOME": str(tmp_path / "hf")},
        check=True,
        timeout=3600,
    )


def test_the_notebook_is_stored_without_outputs():
    for cell in NOTEBOOK["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
