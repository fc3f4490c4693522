"""How far does the instance memory of digits differ from seed to seed?

    OMP_NUM_THREADS=1 python benchmarks/instance_memory.py                # ten seeds, table
    python benchmarks/instance_memory.py --seeds 4711 --out elsewhere

INJECT at step 100 of an MLP with one hidden layer, eight trials with canaries of their own, watched
for 600 steps: 16 hard images (of the hardest quarter) ten times, 32 odd images ten times, 32
mislabelled ones once. Each seed is one study in a folder of its own, which ``remnant report``
reads; it takes about 35 seconds, and finished ones are not trained again.

Success is AUC, the mean over trials. The table has its mean over seeds, and in brackets the
smallest and the largest seed.

==================  ==========================================================================
attack              what is compared
==================  ==========================================================================
references          planted with never-planted images inside the planted model, by z-scores
checkpoint, none    the same, less the checkpoint before planting, or as it is
influence           the same, less the trial's own twin: no attack
references, twins   as references, in the twins, which saw none: chance
within the label    as references, images of one label only
against the twin    planted images, planted model with twin, less the checkpoint (as in the paper)
kind                images that were never planted, planted model with twin, likewise
==================  ==========================================================================
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.measures import auc_within_label, own_set_test
from remnant.measures.statistics.success import trial_success
from remnant.records import Record
from remnant.studies import Execution, ForgettingStudy, run_study
from remnant.studies.forgetting.attack_curves import Attacks, attacks_of
from remnant.studies.forgetting.recipe import runs_of
from remnant.studies.recipe import study_from
from remnant.studies.shared.settings import CanarySettings

Floats = NDArray[np.float64]
LAGS = (0, 1, 10, 50, 100, 300, 600)
FOLDER = Path("runs/instance-memory")
HARD, ODD, MISLABELLED = "16 hard, 10 times", "32 odd, 10 times", "32 mislabelled, once"
SETS = (HARD, ODD, MISLABELLED)


def recipe(seed: int) -> dict[str, Any]:
    """All three sets of one seed; they share their twins."""
    hard: dict[str, Any] = {"kind": "hard"}
    if "share" in {field.name for field in dataclasses.fields(CanarySettings)}:
        hard["share"] = 0.25
    return {
        "question": "forgetting",
        "label": HARD,
        "plan": {
            "kind": "inject",
            "canaries": 16,
            "step": 100,
            "repeats": 10,
            "watch_steps": 600,
            "trials": 8,
            "batch": 64,
            "seed": seed,
            "twins": "fresh",
            "fresh_canaries": True,
        },
        "data": {"name": "digits"},
        "canaries": hard,
        "model": {"name": "mlp1"},
        "training": {"optimizer": "sgd", "options": {"lr": 0.1}},
        "attack": {"success": "auc", "limit": 0.6, "lags": list(LAGS)},
        "compare": [
            {"label": ODD, "plan": {"canaries": 32}, "canaries": {"kind": "odd"}},
            {
                "label": MISLABELLED,
                "plan": {"canaries": 32, "repeats": 1},
                "canaries": {"kind": "mislabelled"},
            },
        ],
    }


def train(seeds: Sequence[int], folder: Path) -> None:
    """Run each seed's study; completed ones are left as they are."""
    for seed in seeds:
        study = study_from(recipe(seed))
        assert isinstance(study, ForgettingStudy)
        run_study(study, folder / f"seed-{seed}", Execution())
        print(f"seed {seed} is complete", flush=True)


def attacks(seeds: Sequence[int], folder: Path) -> dict[str, list[tuple[Attacks, Any]]]:
    """What can be computed of each set, with the labels of its images, seed by seed."""
    made: dict[str, list[tuple[Attacks, Any]]] = {name: [] for name in SETS}
    for seed in seeds:
        study = study_from(recipe(seed))
        assert isinstance(study, ForgettingStudy)
        parts = study.parts()
        trained = runs_of(parts)
        with Record.open(folder / f"seed-{seed}") as record:
            for part, name in zip(parts, SETS, strict=True):
                run = attacks_of(record, trained[part], parts[part])
                made[name].append((run, record.array(f"{trained[part]}.labels")))
    return made


def auc(seen: Floats, unseen: Floats) -> Floats:
    """The mean over trials of each trial's AUC at each lag, of scores ``(lags, trials, n)``."""
    rates = [
        [trial_success(*sides, success="auc", fpr=0.1) for sides in zip(*lag, strict=True)]
        for lag in zip(seen, unseen, strict=True)
    ]
    return np.mean(rates, axis=1)


def _inside(calibration: str, *, control: bool = False) -> Callable[[Attacks, Any], Floats]:
    def value(run: Attacks, labels: Any) -> Floats:
        scores = run.scores.instance(calibration)  # type: ignore[arg-type]
        if control:
            return auc(scores.control_seen, scores.control_unseen)
        return auc(scores.seen, scores.unseen)

    return value


def _within_label(run: Attacks, labels: Any) -> Floats:
    scores = run.scores.instance("references")
    rates = auc_within_label(
        seen_scores=scores.seen,
        unseen_scores=scores.unseen,
        seen_labels=labels[scores.groups[0]],
        unseen_labels=labels[scores.groups[1]],
    )
    return rates.mean(axis=1)


def own_set_p_values(run: Attacks) -> Floats:
    """That models find the set that they were planted with, at each lag; by references."""
    scores = run.scores.instance("references").scores
    return own_set_test(scores, own=run.scores.own, rng=np.random.default_rng(0)).p_value


def _against_twin(run: Attacks, labels: Any) -> Floats:
    return auc(*run.scores.against_twin("checkpoint"))


def _kind(run: Attacks, labels: Any) -> Floats:
    return auc(*run.scores.against_twin("checkpoint", rows=run.never_planted_rows()))


ROWS: dict[str, Callable[[Attacks, Any], Floats]] = {
    "references": _inside("references"),
    "checkpoint": _inside("checkpoint"),
    "none": _inside("none"),
    "influence": _inside("influence"),
    "references, twins": _inside("references", control=True),
    "within the label": _within_label,
    "against the twin": _against_twin,
    "kind": _kind,
}


def table(name: str, values: dict[str, Floats]) -> str:
    """One set's rows; each value is ``(seeds, lags)``."""
    lines = [f"| {name} | " + " | ".join(f"lag {lag}" for lag in LAGS) + " |"]
    lines.append("|" + "---|" * (1 + len(LAGS)))
    for row, found in values.items():
        cells = []
        for lag in found.T:
            mean, low, high = (_short(x) for x in (lag.mean(), lag.min(), lag.max()))
            cells.append(f"{mean} ({low}–{high})")
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def shapes(name: str, curves: Floats, p_values: Floats) -> str:
    """In how many seeds the curve by references falls, and rises first."""
    last, first = curves[:, -1], curves[:, LAGS.index(1)]
    top = curves[:, LAGS.index(1) + 1 : -1].max(axis=1)
    fall, n = first - last, len(curves)
    return (
        f"{name}, by references: lag {LAGS[-1]} is below lag 1 in {(fall > 0).sum()} of {n} seeds, "
        f"by {fall.mean():.3f} on average ({fall.min():.3f} to {fall.max():.3f}). A lag between "
        f"them is above lag 1 in {(top > first).sum()} of {n}, by {(top - first).mean():.3f} on "
        f"average; above lag 0 in {(top > curves[:, 0]).sum()} of {n}. Models find their own set "
        f"with p ≤ {p_values.max():.4f} in every seed, at every lag."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--out", type=Path, default=FOLDER)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    train(asked.seeds, asked.out)
    for name, runs in attacks(asked.seeds, asked.out).items():
        values = {
            row: np.stack([value(run, labels) for run, labels in runs])
            for row, value in ROWS.items()
        }
        print("\n" + table(name, values))
        p_values = np.stack([own_set_p_values(run) for run, _ in runs])
        print("\n" + shapes(name, values["references"], p_values))


if __name__ == "__main__":
    main()
