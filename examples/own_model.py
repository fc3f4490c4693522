"""From a model of your own to a forgetting curve: INJECT on a spiral that two classes share.

python examples/own_model.py
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from remnant import InjectPlan, Population, forgetting_curve, instance_scores
from remnant.probes import SIGNALS, label_signals


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
    )


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, 2, count)
    angle = 3 * np.sqrt(rng.random(count)) * np.pi
    turned = angle + np.pi * labels
    points = np.stack([angle * np.cos(turned), angle * np.sin(turned)], axis=1) / 10
    return (points + rng.normal(scale=0.02, size=points.shape)).astype(np.float32), labels


def main() -> None:
    rng = np.random.default_rng(0)
    plan = InjectPlan(canaries=8, step=300, repeats=30, watch_steps=400, trials=8, batch=64)
    clean, labels = spirals(1000, rng)
    canaries, truth = spirals(plan.trials * plan.canaries, rng)  # each trial plants its own
    wrong = 1 - truth  # mislabelled, so that only memory can explain them

    lags = [0, 5, 20, 50, 100, 200, 400]
    population = Population(make_model, seeds=plan.seeds, dropout_seeds=plan.dropout_seeds)
    fit = population.fit(
        np.concatenate([clean, canaries]),  # the example store: clean rows, then canaries
        np.concatenate([labels, wrong]),
        plan.schedule(examples=len(clean)),
        optimizer="adam",
        lr=0.01,
        probes={"signals": lambda models: label_signals(models, canaries, wrong)},
        probe_steps=[plan.checkpoint_step, *(plan.planted_until + lag for lag in lags)],
    )
    log_odds = fit.probes["signals"][:, :, SIGNALS.index("log_odds")]
    planted, twin, unplanted = (log_odds[1:, plan.members_of(arm)] for arm in plan.arms)
    scores = instance_scores(  # planted against never-planted points inside each planted model
        planted,
        own=np.repeat(np.eye(plan.trials, dtype=bool), plan.canaries, axis=1),
        unplanted=np.stack([twin, unplanted], axis=2),  # reference models: the other trials' twins
    )
    curve = forgetting_curve(
        seen_scores=scores.seen,
        unseen_scores=scores.unseen,
        groups=scores.groups,
        control_at_zero=True,
        lags=lags,
        success="auc",
        rng=rng,
    )
    for row in zip(curve.lags, curve.value, curve.low, curve.high, strict=True):
        print("lag {:4.0f}  AUC {:.2f}  [{:.2f}, {:.2f}]".format(*row))


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
