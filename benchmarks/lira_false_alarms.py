"""How often does LiRA give a log ratio of 4 or more to an example that no model memorised?

    python benchmarks/lira_false_alarms.py [--examples 20000]

Models that saw an example and models that did not give it scores of one law, so that every large
log ratio is wrong. Laws: normal, Student's t with 5 degrees of freedom, and normal with a deviation
that differs between examples, lognormal with sigma 0.5 and 1. "few" pools over one example only.
"""

from __future__ import annotations

import argparse

import numpy as np

from remnant.measures import lira

MEMORISED = 4.0
LAWS = ("normal", "t(5)", "sigma 0.5", "sigma 1")


def scores_of(law: str, rng: np.random.Generator, models: int, examples: int) -> np.ndarray:
    """Scores of all models, of one law whether or not they saw the example."""
    if law == "t(5)":
        return rng.standard_t(5, size=(models, examples))
    sigma = float(law.split()[1]) if law.startswith("sigma") else 0.0
    return rng.normal(size=(models, examples)) * np.exp(sigma * rng.normal(size=examples))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=20000)
    parser.add_argument("--models", type=int, nargs="+", default=[2, 3, 4, 5, 6, 8, 16, 32])
    args = parser.parse_args()
    print("per cent at or above 4: per_example, pooled")
    print("models a side   " + "".join(f"{law:>16s}" for law in LAWS) + "   few")
    for models in args.models:
        rng = np.random.default_rng(models)
        seen = np.repeat([[True], [False]], models, axis=0)
        cells = []
        for law in LAWS:
            scores = scores_of(law, rng, 2 * models + 1, args.examples)
            given = {
                "target": scores[0],
                "shadow": scores[1:],
                "seen": np.broadcast_to(seen, scores[1:].shape),
            }
            wrong = [
                100.0 * np.mean(lira(**given, variance=variance).scores >= MEMORISED)
                for variance in ("per_example", "pooled")
            ]
            cells.append(f"{wrong[0]:8.2f}{wrong[1]:8.2f}")
        alone = [
            lira(target=one[0], shadow=one[1:], seen=seen, variance="pooled").scores[0]
            for one in rng.normal(size=(args.examples // 4, 2 * models + 1, 1))
        ]
        few = 100.0 * np.mean(np.array(alone) >= MEMORISED)
        print(f"{models:13d}   {''.join(cells)}{few:6.2f}", flush=True)


if __name__ == "__main__":
    main()
