"""How often one run is judged wrongly against reference models, and what two checkpoints miss.

    python benchmarks/one_run_references.py
    python benchmarks/one_run_references.py --audits 1000 --models 1 4 16

One training of five checkpoints, a hundred canaries planted before the second and a hundred
controls. Examples differ in difficulty by five standard deviations of a model's own noise, and at
every checkpoint the difficulty of each shifts by three more, in all models alike. The attack is
judged by its AUC at the last checkpoint, limit .7, calibrated by two checkpoints and by references.
"""

from __future__ import annotations

import argparse

import numpy as np

from remnant.measures.forgetting.one_run import one_run_forgetting

LAST = np.repeat([-1, 50], 100)
PLANTED = LAST == 50
STEPS = np.array([0, 100, 200, 300, 400])
LIMIT = 0.7
RUNS = {  # what planting adds to the score at each checkpoint
    "nothing learnt": [0.0, 0.0, 0.0, 0.0, 0.0],
    "forgotten": [0.0, 6.0, 3.0, 0.5, 0.0],
    "at the limit": [0.0, 6.0, 3.0, 1.0, 0.8],  # an AUC of .70 against eight references
    "kept": [0.0, 6.0, 4.0, 1.8, 1.8],
}


def simulated(rng, shifts, *, models=8, saw=0.0, saw_controls=0.0, who=slice(None)):
    """Scores of a run, and those of reference models at its checkpoints.

    Args:
        rng: Draws them.
        shifts: What planting adds at each checkpoint.
        models: Reference models.
        saw, saw_controls: Added to canaries and to controls in the reference models ``who``.
    """
    shape = (len(STEPS), LAST.size)
    usual = 5.0 * rng.normal(size=LAST.size) + np.cumsum(3.0 * rng.normal(size=shape), axis=0)
    scores = usual + np.asarray(shifts)[:, None] * PLANTED + rng.normal(size=shape)
    references = usual[:, None] + rng.normal(size=(len(STEPS), models, LAST.size))
    references[:, who] += saw * PLANTED + saw_controls * ~PLANTED
    return scores, references


def measured(rng, scores, references=None, **changes):
    """The curve of a run by AUC."""
    asked = {"success": "auc", "calibrate": True, "draws": 40, "rng": rng}
    return one_run_forgetting(
        scores=scores,
        checkpoints=STEPS,
        last_seen=LAST,
        repeats=np.ones(LAST.size),
        references=references,
        **(asked | changes),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--models", type=int, nargs="+", default=[1, 3, 8])
    asked = parser.parse_args()
    print(f"{asked.audits} audits each, limit {LIMIT}\n")
    print("run             calibrated by       AUC   PASS    FAIL   suspected")
    for name, shifts in RUNS.items():
        for models in (0, *asked.models):
            rng, curves, outcomes = np.random.default_rng(0), [], []
            for _ in range(asked.audits):
                scores, references = simulated(rng, shifts, models=max(models, 1))
                curves.append(measured(rng, scores, references if models else None))
                outcomes.append(curves[-1].verdict(LIMIT).outcome)
            by = f"references: {models}" if models else "two checkpoints"
            area = np.mean([curve.success[-1] for curve in curves])
            faults = np.mean([bool(curve.evidence.reference_fault.reason) for curve in curves])
            rates = [outcomes.count(outcome) / asked.audits for outcome in ("PASS", "FAIL")]
            print(
                f"{name:15} {by:16} {area:6.3f} {rates[0]:6.1%} {rates[1]:7.1%} {faults:9.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
