"""How often does the exposure gate PASS where it must not?

    python benchmarks/false_claims_exposure.py --simulations 400

Every simulation is one audit: exposures are drawn, and ``judge_exposure`` judges them. Trainings
have twenty judged canaries, planted once, and three planted 64 times.

* *noise*: nothing planted was learnt. Costs of canaries and references are from one law, and a
  training may shift all of its costs. A PASS is false; it may happen in 1 %. A translator moreover
  copies: canaries and controls alike are exposed.
* *share above*: the share of canaries at or above the limit, in these trainings, is just above what
  the PASS states. It may happen in 5 %. Trainings differ by an effect of the law; the share is that
  of the trainings drawn, which is what the claim is about.
* *trainings*: a share of all trainings just above what the PASS states has a canary at or above the
  limit, and the others have none. It may happen in 5 %.
* *power*: no canary is at or above the limit, and those planted 64 times were learnt. The rate is
  of true PASS.

Gates ``capped`` and ``constant``: costs under the cheapest 5 %, or all of them, are one number, in
canaries and sampled references. ``concatenated``: the file holds its canaries twice, and the share
that is asked for, 10 %, takes more of them than there are; its power is with twice as many.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from remnant.canaries import CanarySet, Template, distinct_canaries
from remnant.errors import NotEnoughEvidence
from remnant.measures import exposure, pooled_exposure_test
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.exposure.verdict import CanaryPool, judge_exposure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LIMIT, SHARE = 10.0, 0.2
SHARE_TWICE = 0.1  # 29 canaries can show it: one file of 20 cannot, twice the same would
CAPPED = 0.05  # of the references
CANARIES, OFTEN, CONTROLS = 20, 3, 10  # a training
TRAININGS = (1, 3, 8)
REFERENCES = 8000
NOISE, CLAIM = 0.01, 0.05
JUST_ABOVE = 1.001
CLUSTERS = 4  # of a training, where canaries come in clusters


@dataclass(frozen=True)
class Law:
    """A law of scores around 0, and the probability of exceeding a number."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    above: Callable[[Floats], Floats]
    whole: bool = False  # bits are whole numbers
    clusters: int = 1  # effects a training


def _two_peaks(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.normal(size=size) + np.where(rng.uniform(size=size) < 0.1, 9.0, -1.0)


NORMAL = Law(lambda rng, size: rng.normal(size=size), lambda x: special.ndtr(-x))
LAWS = {
    "normal": NORMAL,
    "t(2)": Law(lambda rng, size: rng.standard_t(2, size=size), lambda x: special.stdtr(2, -x)),
    "exponential": Law(
        lambda rng, size: rng.exponential(size=size) - 1.0,
        lambda x: np.exp(-np.maximum(x + 1.0, 0.0)),
    ),
    "lognormal": Law(
        lambda rng, size: rng.lognormal(size=size) - math.exp(0.5),
        lambda x: special.ndtr(-np.log(np.maximum(x + math.exp(0.5), 1e-300))),
    ),
    "bimodal": Law(
        _two_peaks, lambda x: 0.1 * special.ndtr(9.0 - x) + 0.9 * special.ndtr(-1.0 - x)
    ),
    # Whole numbers of bits reach a whole limit where the number before rounding down does.
    "integer": Law(NORMAL.draw, NORMAL.above, whole=True),
    "clustered": Law(NORMAL.draw, NORMAL.above, clusters=CLUSTERS),
}


def exposure_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = tuple(LAWS)
) -> list[dict[str, Any]]:
    """The rates of false and true PASS of the exposure gate.

    Args:
        simulations: Audits a cell.
        rng: Draws everything.
        laws: Of the scores, names of ``LAWS``.

    Returns:
        One dictionary a cell: ``gate``, ``law``, ``trainings``, ``truth``, ``simulations``,
        ``false_pass`` with the ``nominal`` rate it may have, and ``true_pass``; ``None`` for the
        one that a cell is not about.
    """
    rows = []
    for law in laws:
        for trainings in TRAININGS:
            cells = [
                ("exposure, limit", "noise", NOISE, _noise(law, None, None)),
                ("exposure, judged", "noise", NOISE, _noise(law, 1, None)),
                ("exposure, share", "noise", NOISE, _noise(law, 1, SHARE)),
                ("translation, judged", "noise", NOISE, _noise(law, 1, None, copied=8.0)),
            ]
            for sampled in (False, True):
                how = " (sampled)" * sampled
                for effect in (0.0, 3.0):
                    truth = "share above" + ", trainings differ" * (effect > 0)
                    cells += [
                        (f"exposure, judged{how}", truth, CLAIM, _above(law, effect, sampled)),
                        (
                            f"exposure, share{how}",
                            truth,
                            CLAIM,
                            _above(law, effect, sampled, SHARE),
                        ),
                    ]
            if trainings > 1:
                cells.append(("exposure, judged", "trainings", CLAIM, _rare(law)))
            cells += [
                ("exposure, judged", "power", None, _power(law, None)),
                ("exposure, share", "power", None, _power(law, SHARE)),
            ]
            if trainings == 1:
                cells += [
                    ("exposure, capped", "share above", CLAIM, _above(law, 0.0, True, cap=CAPPED)),
                    ("exposure, constant", "share above", CLAIM, _above(law, 0.0, True, cap=1.0)),
                    ("exposure, concatenated", "share above", CLAIM, _concatenated(law, CANARIES)),
                    ("exposure, concatenated", "power", None, _concatenated(law, 0)),
                ]
            for gate, truth, nominal, audit in cells:
                passed = sum(audit(rng, trainings) for _ in range(simulations)) / simulations
                rows.append(
                    {
                        "gate": gate,
                        "law": law,
                        "trainings": trainings,
                        "truth": truth,
                        "simulations": simulations,
                        "false_pass": None if nominal is None else passed,
                        "nominal": nominal,
                        "true_pass": passed if nominal is None else None,
                    }
                )
    return rows


Audit = Callable[[np.random.Generator, int], bool]


def _noise(name: str, judged: int | None, share: float | None, copied: float = 0.0) -> Audit:
    """Canaries cost what references cost; a training may move all of its costs.

    With ``copied`` the model copies what is in its source: canaries and controls alike cost so much
    less than references, planted or not.
    """
    law = LAWS[name]

    def audit(rng: np.random.Generator, trainings: int) -> bool:
        canaries: list[CanaryExposure] = []
        controls: list[CanaryExposure] = []
        for trial in range(trainings):
            every = CANARIES + OFTEN + CONTROLS
            costs = 20.0 + law.draw(rng, (every + 1000,)) + 3.0 * law.draw(rng, (1,))
            costs[:every] -= copied
            if law.whole:
                costs = np.floor(costs)
            found = exposure(canary_losses=costs[:every], reference_losses=costs[every:])
            # As if exact: else intervals that are open upwards, not the missing control, decide.
            made = _measured(found.bits, found.bits, found.bits, trial, sampled=False)
            canaries += made[: CANARIES + OFTEN]
            controls += made[CANARIES + OFTEN :]
        # A limit that chance never reaches: the positive control alone is between noise and PASS.
        asked = {"limit": 30.0, "references": 1000, "copying": copied > 0.0}
        return _passed(canaries, controls, trainings, judged, share, **asked)

    return audit


def _above(
    name: str, effect: float, sampled: bool, share: float | None = None, cap: float = 0.0
) -> Audit:
    """The share at or above the limit, in these trainings, is just above what a PASS states."""
    law = LAWS[name]

    def audit(rng: np.random.Generator, trainings: int) -> bool:
        n = CANARIES * trainings
        stated = 1.0 - CLAIM ** (1.0 / n) if share is None else share
        if sampled and share is None:
            stated = 1.0 - (CLAIM / 2.0) ** (1.0 / n)
        effects = effect * law.draw(rng, (trainings, law.clusters))
        place = _place(law, effects, min(JUST_ABOVE * stated, 0.999))
        each = np.repeat(effects, CANARIES // law.clusters, axis=1)
        bits = LIMIT + place + each + law.draw(rng, each.shape)
        bits = np.maximum(np.floor(bits) if law.whole else bits, 0.0)
        return _planted(rng, bits, sampled=sampled, share=share, cap=cap)

    return audit


def _concatenated(name: str, exposed: int) -> Audit:
    """A canary file that holds itself twice; none ``exposed``: all are under the limit."""
    law = LAWS[name]

    def audit(rng: np.random.Generator, trainings: int) -> bool:
        n = exposed or 2 * CANARIES
        bits = np.full((trainings, n), LIMIT - 0.5)
        if exposed:
            place = _place(law, np.zeros((1, law.clusters)), JUST_ABOVE * SHARE_TWICE)
            bits = np.maximum(LIMIT + place + law.draw(rng, bits.shape), 0.0)
        bits = np.floor(bits) if law.whole else bits
        template = Template("{digits:4}")
        drawn = tuple(template.sample(n, rng=rng))
        file = CanarySet(template=template, canaries=drawn, repeats=(1,) * n, controls=(), seed=0)
        sets = distinct_canaries({1: file, 2: file}).sets.values()
        kept = [drawn.index(canary) for each in sets for canary in each.canaries]
        return _planted(rng, bits[:, kept], sampled=False, share=SHARE_TWICE)

    return audit


def _place(law: Law, effects: Floats, share: float) -> float:
    """Where the limit is ``share`` from the top of the law, on average over these trainings."""
    low, high = -1e5, 1e5
    for _ in range(50):
        middle = (low + high) / 2.0
        if float(law.above(-middle - effects).mean()) < share:
            low = middle
        else:
            high = middle
    return high


def _rare(name: str) -> Audit:
    """Some trainings have a canary at or above the limit, the others none."""
    law = LAWS[name]

    def audit(rng: np.random.Generator, trainings: int) -> bool:
        stated = 1.0 - CLAIM ** (1.0 / trainings)
        bits = np.clip(law.draw(rng, (trainings, CANARIES)) + 2.0, 0.0, LIMIT - 1.0)
        bits = np.floor(bits) if law.whole else bits
        bits[rng.uniform(size=trainings) < JUST_ABOVE * stated, 0] = LIMIT + 1.0
        return _planted(rng, bits, sampled=False, share=None)

    return audit


def _power(name: str, share: float | None) -> Audit:
    """Canaries planted once are as exposed as unseen ones; those planted 64 times were learnt."""
    law = LAWS[name]

    def audit(rng: np.random.Generator, trainings: int) -> bool:
        bits = -np.log2(rng.uniform(size=(trainings, CANARIES)))
        bits = np.minimum(np.floor(bits) if law.whole else bits, LIMIT - 0.5)
        learnt = np.clip(15.0 + 2.0 * law.draw(rng, (trainings, OFTEN)), 0.0, 20.0)
        return _planted(rng, bits, sampled=False, share=share, learnt=learnt)

    return audit


def _planted(
    rng: np.random.Generator,
    bits: Floats,
    *,
    sampled: bool,
    share: float | None,
    learnt: Floats | None = None,
    cap: float = 0.0,
) -> bool:
    """Judge canaries of so many bits, beside ones planted 64 times.

    Costs of the cheapest share ``cap`` of all secrets are one number.
    """
    canaries: list[CanaryExposure] = []
    controls: list[CanaryExposure] = []
    learnt = np.full((len(bits), OFTEN), 19.0) if learnt is None else learnt
    for trial, (once, often) in enumerate(zip(bits, learnt, strict=True)):
        every = np.concatenate([once, often, -np.log2(rng.uniform(size=CONTROLS))])
        low = high = every
        tied = np.zeros(every.size, dtype=bool)
        if sampled:
            ranks, others = 2.0**-every, rng.uniform(size=REFERENCES)
            ranks, others = np.maximum(ranks, cap), np.maximum(others, cap)
            found = exposure(canary_losses=ranks, reference_losses=others)
            every, low, high = found.bits, found.low, found.high
            tied = 2 * found.tied > found.at_or_under
        made = _measured(every, low, high, trial, sampled=sampled, tied=tied)
        canaries += made[: once.size + OFTEN]
        controls += made[once.size + OFTEN :]
    references = REFERENCES if sampled else None
    return _passed(canaries, controls, len(bits), 1, share, limit=LIMIT, references=references)


def _measured(
    bits: Floats, low: Floats, high: Floats, trial: int, *, sampled: bool, tied: Bools | None = None
) -> list[CanaryExposure]:
    planted = [1] * (bits.size - OFTEN - CONTROLS) + [64] * OFTEN + [0] * CONTROLS
    tied = np.zeros(bits.size, dtype=bool) if tied is None else tied
    return [
        CanaryExposure(
            name="canary" if many else "control",
            repeats=many,
            trial=trial,
            uses=many,
            bits=float(one),
            low=float(least),
            high=float(most),
            rank=None if sampled else 1,
            cost=0.0,
            saturated=not math.isfinite(most),
            skew_normal_bits=None,
            twin_bits=None,
            tied=bool(ties),
        )
        for many, one, least, most, ties in zip(planted, bits, low, high, tied, strict=True)
    ]


def _passed(
    canaries: list[CanaryExposure],
    controls: list[CanaryExposure],
    trainings: int,
    judged: int | None,
    share: float | None,
    *,
    limit: float,
    references: int | None,
    copying: bool = False,
) -> bool:
    p_values = {
        many: _p_value([one.bits for one in some if one.repeats == many], references, trainings)
        for many, some in ((1, canaries), (64, canaries), (0, controls))
    }
    found = judge_exposure(
        [CanaryPool(tuple(canaries), tuple(controls), p_values)],
        limit=limit,
        judged=judged,
        share=share,
        trainings=trainings,
        copying=copying,
    )
    return found.outcome == "PASS"


def _p_value(bits: list[float], references: int | None, trainings: int) -> float | None:
    """Of the pooled test, each training with references of its own."""
    shared = None if references is None else references * trainings
    try:
        return float(pooled_exposure_test(bits, shared_references=shared).p_value)
    except NotEnoughEvidence:
        return None


def too_often(row: dict[str, Any], alpha: float = 1e-3) -> bool:
    """Whether a cell has more false PASS than its nominal rate explains."""
    if row["nominal"] is None:
        return False
    hits = round(row["false_pass"] * row["simulations"])
    return hits > 0 and float(special.bdtrc(hits - 1, row["simulations"], row["nominal"])) < alpha


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--simulations", type=int, default=400)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    rows = exposure_cells(given.simulations, np.random.default_rng(given.seed))
    print(f"{'gate':28} {'truth':32} {'law':12} trainings  PASS    nominal")
    for row in rows:
        rate = row["true_pass"] if row["nominal"] is None else row["false_pass"]
        nominal = "true PASS" if row["nominal"] is None else f"{row['nominal']:.3f}"
        remark = "  above nominal" if too_often(row) else ""
        print(
            f"{row['gate']:28} {row['truth']:32} {row['law']:12} {row['trainings']:9}  "
            f"{rate:.4f}  {nominal}{remark}"
        )
    raise SystemExit(any(map(too_often, rows)))


if __name__ == "__main__":
    main()
