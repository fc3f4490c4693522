"""A small study of a shadow pool, in blocks that last long enough to be killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from remnant.studies import Execution, read_recipe, run_study

RECIPE = """
question = "prediction"
[plan]
kind = "shadow"
models = 8
steps = 250
batch = 64
[data]
name = "digits"
examples = 300
[canaries]
mislabelled = 20
odd = 10
[model]
name = "mlp1"
options = { width = 0.5 }
[training]
options = { lr = 0.2 }
[predict]
directions = 20
targets = 2
moments = [1.0, 4.0, 16.0]
[truth]
threshold = 1.0
thresholds = [0.0, 1.0]
false_alarms = 1.0
"""
BLOCK = 2


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "pool.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="session")
def local(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the study as this process runs it, with one thread."""
    folder = tmp_path_factory.mktemp("local") / "run"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run_study(read_recipe(recipe), folder, Execution(pool_block=BLOCK))
    finally:
        torch.set_num_threads(before)
    return folder


def array_files(folder: Path) -> dict[str, bytes]:
    """All arrays of a run and its pool, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*.npy"))
    }
