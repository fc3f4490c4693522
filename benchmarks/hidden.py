"""How often "hidden" and "came back" are claimed where there is nothing, and where there is.

Scores with canaries that differ, models that differ, and noise that wanders from checkpoint to
checkpoint. Any claim about any of three disturbances counts as false where there is nothing.

    python benchmarks/hidden.py --audits 400
"""

from __future__ import annotations

import argparse

import numpy as np

from remnant.measures import hidden_test, returning

CANARIES, CLAIMS = 32, {"hidden", "comes back"}
RETURN = np.array([3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0])[:, None, None]


def disturbed(rng: np.random.Generator, trials: int, shift: float) -> list[str]:
    """Readings of three disturbances, of which the second shifts the planted models' scores."""

    def side() -> np.ndarray:
        own = rng.normal(size=(1, trials, CANARIES)) + 0.3 * rng.normal(size=(1, trials, 1))
        return own + 0.7 * rng.normal(size=(4, trials, CANARIES))

    seen, unseen = side(), side()
    seen[2] += shift
    found = hidden_test(
        seen_before=seen[0],
        unseen_before=unseen[0],
        seen_after=seen[1:],
        unseen_after=unseen[1:],
        success="auc",
        rng=rng,
        draws=40,
    )
    return list(found.readings)


def came_back(rng: np.random.Generator, trials: int, shift: np.ndarray | float) -> bool:
    """Whether a scan of eight checkpoints claims that canaries came back."""
    hard = rng.normal(size=(1, trials, CANARIES))

    def side() -> np.ndarray:
        walk = rng.normal(size=(8, trials, CANARIES))
        for lag in range(1, 8):
            walk[lag] = 0.7 * walk[lag - 1] + np.sqrt(0.51) * walk[lag]
        return hard + 0.4 * rng.normal(size=(1, trials, 1)) + walk

    found = returning(seen_scores=shift + side(), null_scores=side(), unseen_scores=side())
    return found.pvalue <= 0.05


def main() -> None:
    """Print one row a number of trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=400)
    parser.add_argument("--trials", type=int, nargs="+", default=[3, 8, 16])
    asked = parser.parse_args()
    print(f"{asked.audits} audits a cell, nominal 5 %, {CANARIES} canaries a trial")
    print("trials  disturbed: false  found  scan: false  found")
    for trials in asked.trials:
        rng = np.random.default_rng(trials)
        many = range(asked.audits)
        shares = (
            np.mean([bool(CLAIMS & set(disturbed(rng, trials, 0.0))) for _ in many]),
            np.mean([disturbed(rng, trials, 0.8)[1] in CLAIMS for _ in many]),
            np.mean([came_back(rng, trials, 0.0) for _ in many]),
            np.mean([came_back(rng, trials, RETURN) for _ in many]),
        )
        false, found, falsely, back = (f"{share:.1%}" for share in shares)
        print(f"{trials:6}  {false:>16}  {found:>5}  {falsely:>11}  {back:>5}")


if __name__ == "__main__":
    main()
