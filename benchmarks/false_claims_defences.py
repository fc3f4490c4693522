"""How often the gate of a defences study passes where it should not.

A study has 17 remedies and ten trainings of each, as ``recipes/defences-text.toml`` has, or one
remedy and five trainings. Seeds that the trainings of a remedy share move its exposures and its
costs; effects of seeds and noise have one law.

    python benchmarks/false_claims_defences.py --simulations 400
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.studies.choices.differences import Levels
from remnant.studies.choices.gate import (
    Canaries,
    RemedyEvidence,
    Rules,
    judge,
    unseen_share,
)

Floats = NDArray[np.float64]
SIZES = ((1, 5), (17, 10))  # remedies, and trainings of each
MOST, LIMIT, UNIGRAM = 19.93, 10.0, 4.8
RULES = Rules(limit=LIMIT, most=MOST, unigram_bits=UNIGRAM, token="character")
NOMINAL = 1.0 - RULES.confidence
TRUTHS = ("noise", "unlearnt", "no change", "share above", "useless", "power")


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


def evidence(label: str, bits: Floats, validation: Floats) -> RemedyEvidence:
    """What a study measured of one remedy, exactly."""
    bits = np.clip(bits, 0.0, MOST)[:, None]
    return RemedyEvidence(label, Canaries(bits, bits, Levels(bits[:, 0], bits[:, 0])), validation)


class Truth:
    """Draws studies of one law, number of trainings and truth.

    Without a remedy a canary has 15 bits, give or take half a bit, or as many as an unplanted one
    if the truth is ``"noise"``.
    """

    def __init__(
        self, law: str, size: tuple[int, int], truth: str, rng: np.random.Generator
    ) -> None:
        self.remedies, self.trainings = size
        self.law, self.truth, self.rng = law, truth, rng
        # Just above what a PASS states.
        share = unseen_share(self.trainings, remedies=self.remedies, confidence=RULES.confidence)
        self.reaching = min(1.0, share + 1e-3)

    def study(self) -> tuple[RemedyEvidence, list[RemedyEvidence]]:
        """Doing nothing, and the remedies."""
        self.seeds = LAWS[self.law](self.rng, self.trainings)  # what one seed has in common
        nothing = evidence("nothing", self.base(), self.costs(0.0))
        return nothing, [self.remedy(f"remedy {i}") for i in range(self.remedies)]

    def effect(self) -> Floats:
        own = LAWS[self.law](self.rng, self.trainings)
        shared = 0.9 if self.law == "clustered" else 0.5
        return np.sqrt(shared) * self.seeds + np.sqrt(1.0 - shared) * own

    def costs(self, added: float) -> Floats:
        """Bits a token; ``unlearnt`` trainings cost what frequencies do."""
        start = UNIGRAM if self.truth == "unlearnt" else 4.0
        return start + added + 0.05 * self.effect()

    def base(self) -> Floats:
        if self.truth == "noise":
            return self.chance()
        if self.truth == "no change":  # some seeds remember, and some do not
            return np.where(self.rng.random(self.trainings) < 0.75, 15.0, 2.0) + 0.5 * self.effect()
        return 15.0 + 0.5 * self.effect()

    def chance(self) -> Floats:
        return self.rng.exponential(1.0 / np.log(2.0), self.trainings)

    def remedy(self, label: str) -> RemedyEvidence:
        if self.truth in ("noise", "no change"):
            return evidence(label, self.base(), self.costs(0.0))
        if self.truth == "share above":
            reached = self.rng.random(self.trainings) < self.reaching
            return evidence(label, np.where(reached, 15.0, 2.0), self.costs(0.1))
        added = UNIGRAM - 4.0 if self.truth == "useless" else 0.1
        return evidence(label, np.minimum(self.chance(), 9.0), self.costs(added))


def defence_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rate of PASS of the gate of defences, by law, trainings and truth.

    Args:
        simulations: Studies a cell.
        rng: Draws everything.
        laws: Names of ``LAWS``; all, if none is given.

    Returns:
        One row a cell: ``gate``, ``law``, ``trainings``, ``truth``, ``simulations``,
        ``false_pass``, ``true_pass`` and ``nominal``. A PASS is false under all truths but
        ``"power"``. ``"noise"``: an attack that sees nothing. ``"unlearnt"``: models that learnt
        nothing. ``"no change"``: remedies that change nothing, where a quarter of seeds does not
        remember. ``"share above"``: under every remedy, the share of trainings that reach the limit
        is just above the one that a PASS states. ``"useless"``: every remedy makes models that
        predict as well as frequencies do, and expose nothing. ``"power"``: every remedy works.
    """
    rows = []
    for law in laws or LAWS:
        for size in SIZES:
            for truth in TRUTHS:
                drawn = Truth(law, size, truth, rng)
                passed = sum(
                    judge(*drawn.study(), RULES)[0].outcome == "PASS" for _ in range(simulations)
                )
                true = truth == "power"
                rows.append(
                    {
                        "gate": f"defences, {size[0]} {'remedy' if size[0] == 1 else 'remedies'}",
                        "law": law,
                        "trainings": size[1],
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
    parser.add_argument("--laws", nargs="+", default=list(LAWS), choices=list(LAWS))
    given = parser.parse_args()
    print(f"{'gate':<22} {'law':<12} {'truth':<12} {'PASS':>6}  nominal")
    rng = np.random.default_rng(given.seed)
    for row in defence_cells(given.simulations, rng, laws=given.laws):
        rate = row["true_pass"] if row["false_pass"] is None else row["false_pass"]
        print(
            f"{row['gate']:<22} {row['law']:<12} {row['truth']:<12} {rate:>6.1%}  "
            f"{row['nominal']:.1%}"
        )


if __name__ == "__main__":
    main()
