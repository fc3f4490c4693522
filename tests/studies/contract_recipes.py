"""A recipe of every question that runs in a second or two, and what it reads."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALLER: dict[str, dict[str, Any]] = {
    "forgetting": {
        "plan": {"step": 10, "watch_steps": 10, "trials": 2},
        "canaries": {"kind": "hard", "judge_steps": 20},
        "attack": {"lags": [0, 5, 10]},
        "hidden": {"noise": [0.1], "relearn_steps": [1], "neighbours": 12},
        "compare": [
            {"label": "five times", "plan": {"repeats": 5}},
            {"label": "wider", "model": {"options": {"width": 0.25}}},
        ],
    },
    "one-run": {"plan": {"starts": [20, 50], "window": 25, "steps": 90}},
    "text-forgetting": {
        "plan": {"step": 10, "watch_steps": 10, "canaries": 8},
        "text": {"characters": 4000},
        "model": {"options": {"units": 12, "layers": 1}},
        "attack": {"lags": [0, 5, 10]},
        "compare": [{"label": "step 14", "plan": {"step": 14}}],
    },
    "speech-forgetting": {
        "plan": {"step": 12, "watch_steps": 6, "trials": 2},
        "attack": {"lags": [0, 6]},
        "data": {"bands": 8},
        "hidden": {"relearn_steps": [1]},
    },
    "translation-forgetting": {
        "plan": {"step": 10, "watch_steps": 10, "trials": 2, "canaries": 8},
        "attack": {"lags": [0, 5, 10]},
        "hidden": {"relearn_steps": [1]},
    },
    "text-one-run": {
        "plan": {"starts": [20, 50], "window": 25, "steps": 90},
        "text": {"characters": 8000},
        "attack": {"checkpoints": 3},
    },
    "translation-one-run": {
        "plan": {"starts": [20, 50], "window": 25, "steps": 90},
        "attack": {"checkpoints": 3},
    },
    "speech-one-run": {
        "plan": {"starts": [8, 24], "window": 15, "steps": 45},
        "data": {"bands": 8},
        "attack": {"checkpoints": 3},
    },
    "prediction": {"plan": {"models": 8, "steps": 60}, "predict": {"moments": [1.0, 2.0, 4.0]}},
    "text-prediction": {"plan": {"steps": 10}},
    "unique-features": {
        "plan": {"canaries": 3, "unplanted": 2, "epochs": 3},
        "images": {"count": 20},
        "influence": {"checkpoints": 2},
    },
    "exposure": {"plan": {"steps": 30, "repeats": [1, 1, 20]}, "measure": {"references": 100}},
    "translation-exposure": {"plan": {"steps": 30}, "measure": {"references": 60}},
    "defences": {"plan": {"trials": 2}, "text": {"characters": 3000}},
    "exposure-training": {
        "plan": {"epochs": 1, "trials": 2},
        "text": {"characters": 3000},
        "follow": {"epochs": [0, 1], "references": 60},
        "measure": {"references": 60},
    },
}
"""What makes the benchmark's recipe of a question run in a second or two."""
LEFT_OUT = {"defences": ("dropout", "clipped", "levels", "pruned", "first", "tuned")}
"""Variants that are left out, by their label."""


def benchmark(name: str) -> Any:
    """A module of ``benchmarks/``."""
    sys.path.append(str(BENCHMARKS))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def has_recipe(question: str) -> bool:
    """Whether the benchmark has a recipe of a question."""
    return benchmark("same_numbers_recipes").recipe_name(question) is not None


def recipe(question: str) -> dict[str, Any]:
    """The small recipe of a question, as plain data."""
    small = benchmark("same_numbers_recipes")
    assert has_recipe(question), f"benchmarks/same_numbers_recipes.py has no {question!r}"
    table = tomllib.loads(small.RECIPES[small.recipe_name(question)])
    for rows in (table.get("remedy", []), table.get("compare", [])):
        rows[:] = [row for row in rows if row["label"] not in LEFT_OUT.get(question, ())]
    return with_changes(table, SMALLER.get(question, {}))


def with_changes(table: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A table with other values; those of sections that stay are kept."""
    made = copy.deepcopy(table)
    for name, value in changes.items():
        inner = made.get(name)
        both = isinstance(value, dict) and isinstance(inner, dict) and name != "options"
        made[name] = with_changes(inner, value) if both else copy.deepcopy(value)
    return made


def write_data(folder: Path) -> None:
    """Write the pairs, the questions and the model that recipes name."""
    inputs = benchmark("same_numbers_inputs")
    inputs.write_texts(folder, np.random.default_rng(0))
    inputs.write_tiny_llama(folder / "tiny-llama")
