"""How often gates pass where trainings are copies, share canaries, or canaries come in clusters.

Forgetting curves (AUC, limit 0.6) of 32 canaries a side, found at lag 10. The true mean AUC over
trainings is just above the limit at the last lag; trainings differ by a normal effect of 0.3. A
canary has a part of its own that stays over lags, as large as the noise. A PASS is false.

* ``near-copies``: one training counted as several, with noise of 1e-9; ``permuted``: each with its
  canaries in another order.
* ``shared unseen``, ``shared both``: all trainings have the same canaries on these sides.
* ``rotated``: each canary is seen in one training and unseen in the others, with labels by trial.
* ``constant``, ``one side``: all scores of both sides, or of one, are one number at the last lag;
  ``capped``: scores above a cap are cut, at the unseen side's 0.2 or 0.4 quantile.
* ``doubled``: each canary is there twice, as in a file that holds itself twice.

``scores`` is ``audit_scores`` with 200 records a side and a control, its AUC just above the limit:
``clusters`` of five neighbours with a correlation of 0.5, no groups; ``grouped`` with groups;
``capped`` at the 0.4 quantile; ``concatenated``: both files hold themselves twice. The rows
``... chance`` are the power of the same designs with nothing left.

    python benchmarks/false_claims.py --gates trainings --simulations 400
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant import audit_scores
from remnant.measures import forgetting_curve
from remnant.measures.statistics.success import trial_success

Floats = NDArray[np.float64]
LIMIT, ABOVE = 0.6, 0.602
CANARIES, RECORDS, CLUSTER = 32, 200, 5
EFFECT, CALM = 0.3, 0.1
NOMINAL = 0.05


def _bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return 1.5 * rng.choice([-1.0, 1.0], size=shape) + 0.5 * rng.normal(size=shape)


def _clustered(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    clusters = rng.normal(size=(*shape[:-1], -(-shape[-1] // CLUSTER)))
    shared = np.repeat(clusters, CLUSTER, axis=-1)[..., : shape[-1]]
    return np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=shape)


Law = Callable[[np.random.Generator, tuple[int, ...]], Floats]
LAWS: dict[str, Law] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t(2)": lambda rng, shape: rng.standard_t(2, size=shape),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "lognormal": lambda rng, shape: np.exp(rng.normal(size=shape)),
    "bimodal": _bimodal,
    "integer": lambda rng, shape: rng.normal(size=shape),
    "clustered": _clustered,
}
DESIGNS = (
    *("near-copies", "permuted", "shared unseen", "shared both", "rotated"),
    *("constant", "one side", "capped 0.2", "capped 0.4", "doubled", "own"),
)


def finished(law: str, scores: Floats) -> Floats:
    return np.round(scores) if law == "integer" else scores


def _shift(law: str, draw: Callable[..., Floats], effect: float) -> float:
    """The mean shift at which the mean AUC over trainings is just above the limit."""
    rng = np.random.default_rng(0)
    seen, unseen = draw(rng), draw(rng)
    grid = np.linspace(-2.0, 4.0, 49)
    made = {"success": "auc", "fpr": 0.1}
    rates = [
        trial_success(finished(law, seen + shift), finished(law, unseen), **made) for shift in grid
    ]
    models = effect * rng.normal(size=20_000)
    means = [float(np.interp(shift + models, grid, rates).mean()) for shift in grid]
    return float(np.interp(ABOVE, means, grid))


def _curve(rng: np.random.Generator, law: str, design: str, trials: int, last: float) -> bool:
    """Whether one audit passes."""
    draw, n = LAWS[law], CANARIES
    effect = EFFECT if last else CALM
    rows = 1 if design in ("near-copies", "permuted") else trials
    own, unseen_shape, labels = (1, rows, n), (1, rows, n), None
    if design == "rotated":
        part = draw(rng, (1, 1, trials * n))[0, 0]
        places = np.arange(trials * n).reshape(trials, n)
        others = np.stack([np.setdiff1d(places.ravel(), row) for row in places])
        canaries, labels = (part[places][None], part[others][None]), (places, others)
    else:
        if design in ("shared unseen", "shared both"):
            unseen_shape = (1, 1, n)
        if design == "shared both":
            own = (1, 1, n)
        canaries = draw(rng, own), draw(rng, unseen_shape)
    sides = [part + draw(rng, (2, rows, part.shape[2])) for part in canaries]
    sides[0] = sides[0] + np.array([4.0, last])[:, None, None]
    sides[0] = sides[0] + effect * rng.normal(size=(1, rows, 1))
    sides = [finished(law, side) for side in sides]
    if rows < trials:
        sides = [np.repeat(side, trials, axis=1) for side in sides]
        if design == "permuted":
            orders = [rng.permutation(n) for _ in range(trials)]
            sides = [
                np.stack([side[:, at, order] for at, order in enumerate(orders)], axis=1)
                for side in sides
            ]
        sides = [side + 1e-9 * rng.normal(size=side.shape) for side in sides]
    if design == "constant":
        sides = [np.stack([side[0], np.zeros_like(side[1])]) for side in sides]
    if design == "one side":
        sides[0] = np.stack([sides[0][0], np.zeros_like(sides[0][1])])
    if design == "doubled":
        sides = [np.tile(side, 2) for side in sides]
    if design.startswith("capped"):
        cap = np.quantile(sides[1][1], float(design.removeprefix("capped ")))
        sides = [np.stack([side[0], np.minimum(side[1], cap)]) for side in sides]
    curve = forgetting_curve(
        seen_scores=sides[0], unseen_scores=sides[1], lags=[10, 1000], success="auc", rng=rng,
        draws=40, groups=labels,
    )  # fmt: skip
    return curve.verdict(LIMIT).outcome == "PASS"


def _scores(rng: np.random.Generator, law: str, design: str, last: float) -> bool:
    draw = LAWS[law]
    limit = LIMIT if last else 0.65
    grouped = design == "grouped"
    number = RECORDS // CLUSTER if design in ("clusters", "grouped") else RECORDS

    def side() -> Floats:
        clusters = np.repeat(draw(rng, (number,)), RECORDS // number)
        return np.asarray(clusters + draw(rng, (RECORDS,)))

    seen, unseen = (finished(law, side() + shift) for shift in (last, 0.0))
    if design == "capped":
        cap = np.quantile(unseen, 0.4)
        seen, unseen = np.minimum(seen, cap), np.minimum(unseen, cap)
    if design == "concatenated":
        seen, unseen = np.tile(seen, 2), np.tile(unseen, 2)
    labels = np.arange(RECORDS) // CLUSTER
    found = audit_scores(
        seen=seen,
        unseen=unseen,
        control=10.0 + rng.normal(size=50) + float(np.max(unseen)),
        groups=(labels, labels) if grouped else None,
        limit=limit,
        rng=rng,
    )
    return found.outcome == "PASS"


def training_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rate of PASS by law, design and number of trainings.

    Args:
        simulations: Audits a cell.
        rng: Draws everything.
        laws: Names of ``LAWS``; all, if none is given.
    """
    rows: list[dict[str, Any]] = []

    def put(gate: str, law: str, trainings: int, truth: str, passed: int) -> None:
        power = truth == "chance"
        rate = passed / simulations
        rows.append(
            {
                "gate": gate,
                "law": law,
                "trainings": trainings,
                "truth": truth,
                "simulations": simulations,
                "false_pass": None if power else rate,
                "true_pass": rate if power else None,
                "nominal": NOMINAL,
            }
        )

    for law in laws or LAWS:
        draw = LAWS[law]

        def two_parts(rng: np.random.Generator, draw: Law = draw) -> Floats:
            return draw(rng, (40_000,)) + draw(rng, (40_000,))

        last = _shift(law, two_parts, EFFECT)
        for design in DESIGNS:
            for trials in (3, 8):
                audits = [_curve(rng, law, design, trials, last) for _ in range(simulations)]
                put(f"trainings, {design}", law, trials, "above", sum(audits))
                if design in ("own", "rotated", "shared unseen", "shared both"):
                    audits = [_curve(rng, law, design, trials, 0.0) for _ in range(simulations)]
                    put(f"trainings, {design}", law, trials, "chance", sum(audits))
        last = _shift(law, two_parts, 0.0)
        for design in ("clusters", "grouped", "capped", "concatenated", "own"):
            passed = sum(_scores(rng, law, design, last) for _ in range(simulations))
            put(f"scores, {design}", law, 1, "above", passed)
        for design in ("grouped", "own"):
            passed = sum(_scores(rng, law, design, 0.0) for _ in range(simulations))
            put(f"scores, {design}", law, 1, "chance", passed)
    return rows
