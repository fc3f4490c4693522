"""Does a protect list keep to its stated rate on models that it was not made on?

    python benchmarks/protect_list.py
    python benchmarks/protect_list.py --recipe recipes/fashion-mnist-prediction.toml --data DATA

The study of a recipe is carried out with many targets and several seeds. Within each seed the rule
is made on three targets at a time and held against every other one: the share of those that stay
within the stated rate is to be at least the list's confidence. Targets of a seed share data and
canaries, so seeds are counted too. Targets whose truth has too many false alarms are left out, as
the study does.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np

from remnant.measures import protect_rule
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.prediction.early_looks import kept_looks

HOME = Path(__file__).parents[1]
MADE_ON = 3


def samples(record: Record, study) -> list[tuple[np.ndarray, np.ndarray]]:
    """Risk and truth of every target's own training samples."""
    looks, local = kept_looks(record), record.array("truth.local")
    members = range(0, 2 * study.predict.targets, 2)
    seen = study.plan.seen(examples=local.shape[1], members=members)
    found = []
    alarms = record.results()["truth"]["false_alarms"]
    for target, own in enumerate(seen):
        if alarms[target] > study.truth.false_alarms:
            continue
        stop = looks.stopped(seen, drop=study.predict.drop, target=target)
        truth = local[target, own] >= study.truth.threshold
        found.append((looks.psmi[stop, 0, target, own], truth))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    packed = HOME / "src/remnant/studies/recipes/digits-prediction.toml"
    parser.add_argument("--recipe", type=Path, default=packed)
    parser.add_argument("--scale")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--targets", type=int, default=8)
    args = parser.parse_args()
    study = read_recipe(args.recipe, scale=args.scale)
    execution = Execution(device=args.device, data_folder=args.data)
    print("seed  memorised  share listed  stated  left out: mean, most  within the stated rate")
    within = []
    for seed in range(args.seeds):
        one = dataclasses.replace(
            study,
            plan=dataclasses.replace(study.plan, seed=seed),
            predict=dataclasses.replace(study.predict, targets=args.targets),
        )
        with tempfile.TemporaryDirectory() as folder:
            run_study(one, Path(folder) / "run", execution)
            runs = samples(Record.open(Path(folder) / "run"), one)
        rows = []
        for made in combinations(range(len(runs)), MADE_ON):
            rule = protect_rule(
                risks=[runs[i][0] for i in made],
                memorised=[runs[i][1] for i in made],
                miss=one.predict.miss,
                confidence=one.predict.list_confidence,
            )
            for other in set(range(len(runs))) - set(made):
                risk, truth = runs[other]
                missed = float(np.mean(~rule.listed(risk)[truth]))
                rows.append((rule.share, rule.stated, missed, missed <= rule.stated))
        share, stated, missed, held = np.array(rows).T
        within.append(held.mean())
        count = np.mean([truth.sum() for _, truth in runs])
        listed = f"{share.mean():12.3f}  {stated.mean():6.3f}"
        left_out = f"{missed.mean():13.3f}, {missed.max():.3f}"
        print(f"{seed:4d}  {count:9.1f}  {listed}  {left_out}  {held.mean():22.3f}", flush=True)
    print(f"all seeds: {np.mean(within):.3f} within the stated rate, "
          f"{study.predict.list_confidence} asked for")  # fmt: skip


if __name__ == "__main__":
    main()
