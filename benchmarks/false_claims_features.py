"""How often the gate of a feature study passes where it should not.

Members make a table of seeds by canaries. A member's reaction is a seed effect, a canary effect and
noise, all of one law; it counts as memorised above a threshold. The truth is the share of planted
members above it, less that of unplanted members.

    python benchmarks/false_claims_features.py --simulations 400
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.crossed_interval import (
    crossed_difference,
    crossed_mean,
    crossed_share,
)
from remnant.studies.features.verdict import blindness, feature_outcome
from remnant.studies.shared.estimates import Estimate

Floats = NDArray[np.float64]
CANARIES = 20
UNPLANTED = 20
CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
LIMIT = 0.4
ABOVE = 0.42
NOMINAL = (1.0 - CONFIDENCE) / 2.0
MAJORITY = 0.1
TEST_IMAGES = 1000


def _bimodal(rng: np.random.Generator, size: Any) -> Floats:
    return np.where(rng.random(size) < 0.5, -1.0, 1.0) + 0.3 * rng.normal(size=size)


LAWS: dict[str, Callable[[np.random.Generator, Any], Floats]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t(2)": lambda rng, size: rng.standard_t(2, size=size),
    "exponential": lambda rng, size: rng.exponential(size=size) - 1.0,
    "lognormal": lambda rng, size: rng.lognormal(size=size) - np.exp(0.5),
    "bimodal": _bimodal,
    "integer": lambda rng, size: rng.poisson(1.0, size=size) - 1.0,
    "clustered": lambda rng, size: rng.normal(size=size),
}


def reactions(law: str, seeds: int, rng: np.random.Generator) -> Floats:
    """A table of reactions, shape ``(seeds, canaries)``; clusters of five canaries share theirs."""
    draw = LAWS[law]
    canary = draw(rng, CANARIES)
    if law == "clustered":
        canary = np.repeat(draw(rng, CANARIES // 5), 5)
    return (
        0.7 * draw(rng, (seeds, 1)) + 0.7 * canary[None] + rng.normal(size=(seeds, CANARIES))
    ).astype(np.float64)


def threshold(law: str, share: float, seeds: int) -> float:
    """The reaction that this share of members is above, over many simulated studies."""
    rng = np.random.default_rng(7)
    drawn = np.concatenate([reactions(law, seeds, rng).ravel() for _ in range(2000)])
    return float(np.quantile(drawn, 1.0 - share))


def judged(
    hits: NDArray[np.bool_], unplanted: NDArray[np.bool_], accuracy: Floats, *, blind: int = 0
) -> str:
    """The gate's outcome of one simulated study."""
    shares = [crossed_share(table, confidence=CONFIDENCE) for table in (hits, unplanted)]
    beyond, right = crossed_difference(*shares), crossed_mean(accuracy, confidence=CONFIDENCE)
    if blindness(
        test_accuracy=Estimate(right.value, right.low, right.high),
        members=hits.size + unplanted.size,
        blind=blind,
        majority=MAJORITY,
    ):
        return "INCONCLUSIVE"
    return feature_outcome(
        beyond=[beyond.value, beyond.low, beyond.high],
        unplanted=[shares[1].value, shares[1].low, shares[1].high],
        limit=LIMIT,
        significance=SIGNIFICANCE,
    )


def feature_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rate of PASS of the feature study's gate, by law, trainings and truth.

    Args:
        simulations: Studies a cell.
        rng: Draws everything.
        laws: Names of ``LAWS``; all, if none is given.

    Returns:
        One row a cell: ``gate``, ``law``, ``trainings`` (seeds), ``truth``, ``simulations``,
        ``false_pass``, ``true_pass`` and ``nominal``. Truth ``"noise"`` is models that learnt
        nothing, ``"blind"`` models that answer the same whatever the patch, ``"above"`` a share
        just above the limit; a PASS is false there. ``"chance"`` is trained models that memorised
        nothing: a PASS is true, and its rate is the gate's power.
    """
    rows = []
    for law in laws or LAWS:
        for seeds in (3, 8):
            rare, common = (
                threshold(law, share, seeds) for share in (SIGNIFICANCE, SIGNIFICANCE + ABOVE)
            )
            for truth in ("noise", "blind", "above", "chance"):
                cut = common if truth == "above" else rare
                passed = 0
                for _ in range(simulations):
                    hits = reactions(law, seeds, rng) > cut
                    unplanted = rng.random(UNPLANTED) < SIGNIFICANCE
                    rate = MAJORITY if truth == "noise" else 0.9
                    accuracy = rng.binomial(TEST_IMAGES, rate, UNPLANTED) / TEST_IMAGES
                    blind = hits.size if truth == "blind" else 0
                    passed += judged(hits, unplanted, accuracy, blind=blind) == "PASS"
                true = truth == "chance"
                rows.append(
                    {
                        "gate": "features",
                        "law": law,
                        "trainings": seeds,
                        "truth": truth,
                        "simulations": simulations,
                        "false_pass": None if true else passed / simulations,
                        "true_pass": passed / simulations if true else None,
                        "nominal": NOMINAL,
                    }
                )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{'law':<12} {'trainings':>9}  {'truth':<7} {'PASS':>6}  nominal")
    for row in feature_cells(given.simulations, np.random.default_rng(given.seed)):
        rate = row["true_pass"] if row["false_pass"] is None else row["false_pass"]
        print(
            f"{row['law']:<12} {row['trainings']:>9}  {row['truth']:<7} {rate:>6.1%}  "
            f"{row['nominal']:.1%}"
        )


if __name__ == "__main__":
    main()
