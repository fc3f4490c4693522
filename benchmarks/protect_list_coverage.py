"""How often does a new run keep to a protect list's rate, and how often is an honest list refuted?

    python benchmarks/protect_list_coverage.py

Risks are normal, and memorised samples are higher by ``apart`` deviations, which differ from run to
run: alike, by a normal law of some width, or so that a few runs are much worse than the rest. Some
are rounded, to whole numbers or to four levels, or are counts, so that many samples tie. The first
column is to be at least 90 %, the second at most 5 %.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from remnant.measures import protect_rule

MISS, CONFIDENCE, REFUTED = 0.2, 0.9, 0.05
Apart = Callable[[np.random.Generator], float]
WORLDS: dict[str, tuple[int, int, Apart]] = {  # samples, memorised ones, how far these are apart
    "alike, 6 memorised": (400, 6, lambda rng: 3.0),
    "alike, 20": (400, 20, lambda rng: 3.0),
    "alike, 40": (400, 40, lambda rng: 2.0),
    "2 +- 0.15, 150": (2000, 150, lambda rng: rng.normal(2.0, 0.15)),
    "2 +- 0.3, 40": (400, 40, lambda rng: rng.normal(2.0, 0.3)),
    "2 +- 0.3, 736": (2000, 736, lambda rng: rng.normal(2.0, 0.3)),
    "2 +- 0.6, 150": (2000, 150, lambda rng: rng.normal(2.0, 0.6)),
    "a few much worse, 300": (2000, 300, lambda rng: 2.3 - 0.3 * rng.exponential()),
}
TIED: dict[str, Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]] = {
    "": lambda risk, rng: risk,
    "whole": lambda risk, rng: np.round(risk),
    "levels": lambda risk, rng: np.clip(np.round(risk), 0.0, 3.0),
    "counts": lambda risk, rng: rng.poisson(np.exp(0.7 * risk)).astype(np.float64),
}


def run(
    rng: np.random.Generator, n: int, memorised: int, apart: Apart, tied: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """One run's risks and truth."""
    truth = np.arange(n) < memorised
    return TIED[tied](rng.normal(size=n) + truth * apart(rng), rng), truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 2, 3, 7])
    parser.add_argument("--tied", nargs="+", choices=list(TIED), default=list(TIED))
    args = parser.parse_args()
    print("runs  world                  risks     kept  refuted  listed  stated  missed")
    for runs, tied in itertools.product(args.runs, args.tied):
        for name, world in WORLDS.items():
            rng = np.random.default_rng(runs)
            rows = []
            for _ in range(args.audits):
                *made_on, (risk, truth) = [run(rng, *world, tied) for _ in range(runs + 1)]
                risks, truths = zip(*made_on, strict=True)
                rule = protect_rule(risks=risks, memorised=truths, miss=MISS, confidence=CONFIDENCE)
                missed, n = int(np.sum(truth & ~rule.listed(risk, rng=rng))), int(truth.sum())
                kept = missed / n <= rule.stated
                refuted = not kept and rule.chance(missed=missed, memorised=n) < REFUTED
                rows.append((kept, refuted, rule.share, rule.stated, missed / n))
            kept, refuted, listed, stated, missed = np.mean(rows, axis=0)
            print(
                f"{runs:4d}  {name:<22s} {tied:<7s} {kept:6.3f}  {refuted:7.3f}  {listed:6.3f}  "
                f"{stated:6.3f}  {missed:6.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
