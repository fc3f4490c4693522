"""How often the gate of instance memory passes or fails a model where it must not.

    python benchmarks/false_claims.py --gates instances --simulations 400
    python benchmarks/false_claims_instances.py          # real models; see instance_memory.py

Simulated: each trial has a planted model and two unplanted twins that share its start. A model's
signal of an example is the example's level and spread, a part of the trial's start, and noise of
the named law. A planted model adds to *every* example what it learnt of the kind, a lognormal
effect of the model times one of the example, as large as the noise. It adds memory to its own
examples alone, times another lognormal effect of the example. Scores are those of
``instance_scores`` by references, success is the AUC of ``forgetting_curve`` at lags 10 and 1000.

Designs, 16 examples planted a trial:

* ``rotated``: each example is planted in one trial and never planted in the others.
* ``rotated, controls``: with 32 examples that no trial planted.
* ``same sets``: all trials plant the same examples, and 32 others are controls of all (crossed).

Truths, and which claim is counted:

* ``kind``: no single example is remembered at any lag. A PASS is counted at the limit 0.95, where
  every curve passes that found its canaries; a FAIL at the limit 0.501. *outside*:
  the interval of the last lag does not hold 1/2.
* ``above``: found at lag 10; at the last lag the mean over models is just above the limit of 0.6,
  and what models remember differs by an effect of variance 1/4. *outside*: the interval does not
  hold the mean over all simulated audits.
* ``chance``: found at lag 10, nothing is left at the last lag. Its rate is the power, by references
  alone and with the bounds of the checkpoint and of the model alone beside it.

Own sets: *kind*, p <= 0.05 of ``own_set_test`` where models learnt the kind alone. *labels*:
planted models also take all examples of a label the more readily, the more of their own have it;
the same with labels, and how often Student's interval of ``auc_within_label`` over trials does not
hold 1/2.

Real models: those of ``instance_memory.py``, each trial's model judged on another trial's set, of
the same kind and not planted there. Its true own set is left out. *found*: the positive control;
*outside*: of all lags; n: seeds times the ways to shift sets by trials.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from false_claims_trainings import LAWS, finished
from instance_memory import FOLDER, attacks, train
from numpy.typing import NDArray
from scipy import stats

from remnant.measures import (
    ForgettingCurve,
    InstanceScores,
    auc_within_label,
    forgetting_curve,
    instance_scores,
    own_set_test,
)
from remnant.studies.forgetting.attack_curves import Attacks

Floats = NDArray[np.float64]
OWN, SPARE = 16, 32
LAGS = (10, 1000)
FOUND = 4.0  # memory at the first lag, where canaries are found
LIMIT, ABOVE = 0.6, 0.602
LENIENT, STRICT = 0.95, 0.501
SPREAD, CALM = 0.5, 0.1  # of the models' effect on what is remembered; at chance
DRAWS = 40
TRIALS = (3, 5, 8)
DESIGNS = {"rotated": TRIALS, "rotated, controls": (8,), "same sets": (3, 8)}
OTHERS = ("checkpoint", "none")
LIMITS = (0.501, 0.52, 0.55, 0.6, 0.7, 0.95)  # of real models


def effects(rng: np.random.Generator, law: str, size: Any) -> Floats:
    """Model effects of mean 0 and variance 1."""
    if law == "normal":
        return rng.normal(size=size)
    if law == "exponential":
        return rng.exponential(size=size) - 1.0
    return (np.exp(rng.normal(size=size)) - np.exp(0.5)) / np.sqrt((np.e - 1.0) * np.e)


@dataclass(frozen=True)
class World:
    """What is simulated.

    Attributes:
        design: One of ``DESIGNS``.
        trials: How many.
        law: Of the noise.
        effect: Of the models, on what they remember.
    """

    design: str
    trials: int
    law: str
    effect: str = "exponential"

    def own(self) -> NDArray[np.bool_]:
        """Which examples each trial plants, ``(trials, examples)``."""
        if self.design == "same sets":
            return np.tile(np.arange(OWN + SPARE) < OWN, (self.trials, 1))
        own = np.repeat(np.eye(self.trials, dtype=bool), OWN, axis=1)
        spare = SPARE if self.design == "rotated, controls" else 0
        return np.pad(own, ((0, 0), (0, spare)))

    def draw(
        self, rng: np.random.Generator, memory: Sequence[float], *, spread: float = SPREAD
    ) -> tuple[Floats, Floats, Floats]:
        """Signals in planted models, in their twins, and before planting.

        Args:
            rng: Draws everything.
            memory: What a model adds to its own examples at each lag, on average.
            spread: How much models differ in it.
        """
        own, lags = self.own(), len(memory)
        trials, examples = own.shape
        noise = LAWS[self.law]
        level, width = 2.0 * rng.normal(size=examples), np.exp(0.5 * rng.normal(size=examples))
        start = 0.5 * noise(rng, (trials, examples))
        models = 0.3 * rng.normal(size=(trials, 3, 1))
        parts = noise(rng, (lags, trials, 3, examples)) + start[None, :, None] + models
        kind = rng.lognormal(0.0, 0.5, (trials, 1)) * rng.lognormal(-0.5, 1.0, examples)
        kept = np.array(memory)[:, None, None] + spread * effects(rng, self.effect, (trials, 1))
        parts[:, :, 0] += kind + kept * own * rng.lognormal(-0.5, 1.0, examples)
        before = level + width * (start + noise(rng, (trials, examples)))
        signals = finished(self.law, level + width * parts)
        return signals[:, :, 0], signals[:, :, 1:], finished(self.law, before)

    def scores(
        self, signals: tuple[Floats, Floats, Floats], calibration: Any = "references"
    ) -> InstanceScores:
        planted, unplanted, before = signals
        return instance_scores(
            planted,
            own=self.own(),
            unplanted=unplanted,
            checkpoint=before,
            calibration=calibration,
        )

    def mean_auc(self, memory: float, audits: int) -> float:
        """Of the last lag, over models and examples; the same draws for each memory."""
        rng = np.random.default_rng(0)
        found = [self.scores(self.draw(rng, [memory])) for _ in range(audits)]
        seen, unseen = (
            np.concatenate([getattr(one, side)[0] for one in found]) for side in ("seen", "unseen")
        )
        apart = np.sign(seen[:, :, None] - unseen[:, None, :])
        return float(0.5 + 0.5 * apart.mean())

    def just_above(self) -> float:
        """The memory at which the mean AUC is just above the limit."""
        coarse = np.linspace(-0.5, 3.0, 8)
        rates = [self.mean_auc(memory, 30) for memory in coarse]
        near = float(np.interp(ABOVE, rates, coarse))
        fine = near + np.array([-0.1, 0.1])
        rates = [self.mean_auc(memory, 600) for memory in fine]
        return float(near - 0.1 + 0.2 * (ABOVE - rates[0]) / (rates[1] - rates[0]))


def curve_of(
    scores: InstanceScores, rng: np.random.Generator, lags: Sequence[float] = LAGS
) -> ForgettingCurve:
    return forgetting_curve(
        seen_scores=scores.seen,
        unseen_scores=scores.unseen,
        lags=lags,
        success="auc",
        rng=rng,
        draws=DRAWS,
        groups=scores.groups,
        control_at_zero=True,
    )


def outside(curves: Sequence[ForgettingCurve], truth: float) -> float:
    """The share of curves whose interval does not hold the truth at the last lag."""
    return float(np.mean([not c.low[-1] <= truth <= c.high[-1] for c in curves]))


# Sentences of other outcomes take long, so what an outcome needs is looked at first.


def passes(curve: ForgettingCurve, limit: float) -> bool:
    """Whether the gate passes."""
    may = curve.evidence.upper(curve.confidence)[-1] <= limit and _may_be_found(curve)
    return may and curve.verdict(limit).outcome == "PASS"


def fails(curve: ForgettingCurve, limit: float) -> bool:
    """Whether the gate fails."""
    may = curve.evidence.lower(curve.confidence)[-1] > limit
    return bool(may and curve.verdict(limit).outcome == "FAIL")


def safe(curve: ForgettingCurve, limit: float) -> bool:
    """Whether any lag is called safe."""
    may = curve.evidence.upper(curve.confidence)[-1] <= limit and _may_be_found(curve)
    return may and curve.safe_after(limit).lag is not None


def _may_be_found(curve: ForgettingCurve) -> bool:
    return bool((curve.evidence.lower(0.975, skewed=True) > curve.chance).any())


def kind_claims(world: World, simulations: int, rng: np.random.Generator) -> dict[str, float]:
    memory = (0.0,) * len(LAGS)
    drawn = (world.draw(rng, memory, spread=0.0) for _ in range(simulations))
    curves = [curve_of(world.scores(signals), rng) for signals in drawn]
    return {
        "kind: PASS": np.mean([passes(c, LENIENT) for c in curves]),
        "kind: FAIL": np.mean([fails(c, STRICT) for c in curves]),
        "kind: outside": outside(curves, 0.5),
    }


def above_claims(world: World, simulations: int, rng: np.random.Generator) -> dict[str, float]:
    memory = (FOUND, world.just_above())
    curves = [
        curve_of(world.scores(world.draw(rng, memory)), rng, LAGS) for _ in range(simulations)
    ]
    mean = float(np.mean([c.value[-1] for c in curves]))
    name = "above" if world.effect == "exponential" else f"above, {world.effect} effects"
    return {
        f"{name}: PASS": np.mean([passes(c, LIMIT) for c in curves]),
        f"{name}: safe": np.mean([safe(c, LIMIT) for c in curves]),
        f"{name}: outside": outside(curves, mean),
    }


def power(world: World, simulations: int, rng: np.random.Generator) -> dict[str, float]:
    alone = beside = 0
    for _ in range(simulations):
        signals = world.draw(rng, (FOUND, 0.0), spread=CALM)
        curve = curve_of(world.scores(signals), rng)
        passed = passes(curve, LIMIT)
        alone += passed
        if passed:
            others = {name: curve_of(world.scores(signals, name), rng) for name in OTHERS}
            beside += curve.verdict(LIMIT, others=others).outcome == "PASS"
    return {"chance": alone / simulations, "chance, all attackers": beside / simulations}


def own_set_claims(world: World, simulations: int, rng: np.random.Generator) -> dict[str, float]:
    """How often models that learnt the kind, or labels, are said to remember examples."""
    own = world.own()
    found = {"kind: p ≤ .05": 0, "labels: p ≤ .05": 0, "labels: ½ outside": 0}
    for _ in range(simulations):
        planted, unplanted, before = world.draw(rng, (0.0,), spread=0.0)
        scores = world.scores((planted, unplanted, before)).scores
        test = own_set_test(scores, own=own, rng=rng)
        found["kind: p ≤ .05"] += bool(test.p_value[0] <= 0.05)
        labels = rng.integers(4, size=own.shape[1])
        share = np.array([np.bincount(labels[row], minlength=4) for row in own]) / OWN
        traced = world.scores((planted + 4.0 * share[:, labels], unplanted, before))
        test = own_set_test(traced.scores, own=own, rng=rng, labels=labels)
        found["labels: p ≤ .05"] += bool(test.p_value[0] <= 0.05)
        seen, unseen = traced.groups
        rates = auc_within_label(
            seen_scores=traced.seen,
            unseen_scores=traced.unseen,
            seen_labels=labels[seen],
            unseen_labels=labels[unseen],
        )[0]
        found["labels: ½ outside"] += bool(stats.ttest_1samp(rates, 0.5).pvalue <= 0.05)
    return {truth: number / simulations for truth, number in found.items()}


def _rows(world: World, gate: str, rates: dict[str, float], audits: int) -> list[dict[str, Any]]:
    rows = []
    for truth, rate in rates.items():
        is_power = truth.startswith("chance")
        rows.append(
            {
                "gate": gate,
                "law": world.law,
                "trainings": world.trials,
                "truth": truth,
                "simulations": audits,
                "false_pass": None if is_power else float(rate),
                "true_pass": float(rate) if is_power else None,
                "nominal": 0.025 if truth == "kind: PASS" else 0.05,
            }
        )
    return rows


def instance_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The rate of false claims by law, design, number of trials, truth and claim.

    Args:
        simulations: Audits a cell.
        rng: Draws everything.
        laws: Names of ``LAWS``; all, if none is given.
    """
    rows: list[dict[str, Any]] = []
    for law in laws or LAWS:
        for design, numbers in DESIGNS.items():
            for trials in numbers:
                world = World(design, trials, law)
                rates = kind_claims(world, simulations, rng)
                rates |= above_claims(world, simulations, rng)
                rates |= power(world, simulations, rng)
                varied = law == "normal" and (design, trials) == ("rotated", 8)
                for effect in ("normal", "lognormal") if varied else ():
                    rates |= above_claims(World(design, trials, law, effect), simulations, rng)
                rows += _rows(world, f"instances, {design}", rates, simulations)
    return rows


def own_set_cells(
    simulations: int, rng: np.random.Generator, *, laws: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The same for ``own_set_test`` and ``auc_within_label``; arguments as ``instance_cells``."""
    rows: list[dict[str, Any]] = []
    for law in laws or LAWS:
        for trials in TRIALS:
            world = World("rotated", trials, law)
            rows += _rows(world, "own sets", own_set_claims(world, simulations, rng), simulations)
    return rows


def shifted(run: Attacks, by: int) -> dict[str, ForgettingCurve]:
    """Each trial's model judged on another trial's set, by every attacker.

    Args:
        run: Holds the models' scores.
        by: Trial t is judged on the set of trial t + by.
    """
    own, values = run.scores.own, run.scores.values
    other = np.roll(own, -by, axis=0)
    usable = ~own
    for true, pretended, row in zip(own, other, usable, strict=True):
        for rows in (true, pretended):
            row[run.scores.copies[rows[run.scores.copies[:, 0]], 1]] = False
        row |= pretended & ~true
    plan, rng = run.study.plan, np.random.default_rng(by)
    planted = values[:, plan.members_of("planted")]
    twins = [values[1:, plan.members_of(arm)] for arm in plan.arms if arm != "planted"]
    curves = {}
    for calibration in ("references", *OTHERS):
        scores = instance_scores(
            planted[1:],
            own=other,
            unplanted=np.stack(twins, axis=2),
            checkpoint=planted[0],
            usable=usable,
            calibration=calibration,  # type: ignore[arg-type]
        )
        curves[calibration] = curve_of(scores, rng, run.study.lags())
    return curves


def beside_the_twin(run: Attacks, by: int) -> ForgettingCurve:
    """The same sets in the planted model and in its twin, less the checkpoint (as in the paper)."""
    rows = np.stack([np.flatnonzero(row) for row in np.roll(run.scores.own, -by, axis=0)])
    seen, unseen = run.scores.against_twin("checkpoint", rows=rows)
    return forgetting_curve(
        seen_scores=seen,
        unseen_scores=unseen,
        lags=run.study.lags(),
        success="auc",
        rng=np.random.default_rng(by),
        draws=DRAWS,
    )


def real_models(seeds: Sequence[int], folder: Path) -> str:
    """The table of false claims about sets that a model was not planted with."""
    lines = ["| canaries | n | found | ½ outside | PASS / FAIL at "]
    lines[0] += " | ".join(f"{limit:g}" for limit in LIMITS) + " |"
    lines.append("|" + "---|" * (4 + len(LIMITS)))
    total: list[list[float]] = []
    for name, runs in attacks(seeds, folder).items():
        rows, twins = [], []
        for run, _ in runs:
            for by in range(1, run.study.plan.trials):
                curves = shifted(run, by)
                rows.append(_claims(curves.pop("references"), curves))
                twins.append(_claims(beside_the_twin(run, by), {}))
        total += rows
        lines += [_line(name, rows), _line(f"{name}, against the twin", twins)]
    return "\n".join([*lines, _line("all, inside the model", total)])


def _claims(curve: ForgettingCurve, others: dict[str, ForgettingCurve]) -> list[float]:
    out = (curve.low > 0.5) | (curve.high < 0.5)
    row = [float(curve.positive_control().found), float(out.mean())]
    for limit in LIMITS:
        outcome = curve.verdict(limit, others=others).outcome
        row += [float(outcome == "PASS"), float(outcome == "FAIL")]
    return row


def _line(name: str, rows: list[list[float]]) -> str:
    rates = [f"{100.0 * rate:.1f}" for rate in np.mean(rows, axis=0)]
    pairs = [f"{rates[i]} / {rates[i + 1]}" for i in range(2, len(rates), 2)]
    return f"| {name} | {len(rows)} | " + " | ".join([*rates[:2], *pairs]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    train(asked.seeds, asked.folder)
    print(real_models(asked.seeds, asked.folder))


if __name__ == "__main__":
    main()
