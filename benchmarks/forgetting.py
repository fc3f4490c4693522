"""What a forgetting curve costs, against the same twins trained one by one; and what scoring adds.

    python benchmarks/forgetting.py                 # digits-sized inputs, this machine's CPU
    python benchmarks/forgetting.py --device cuda   # Fashion-MNIST-sized inputs, a GPU

**Curve.** T trials, K moments of planting, a planted member and its twin for each, scored at every
lag. Ours is one population that shares what the twins have in common. The rival is the loop that
everybody writes: one model after another, with ``torch.optim``; where it branches from a trial's
checkpoint, it too trains every beginning once. Every twin costs it the same a step, so one is timed
for some hundred steps and the whole is worked out from that; ours is timed whole.

**Scoring.** One run with 1 000 canaries, scored at 20 checkpoints, against the same run without.

Inputs are random: only the cost is measured here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time

import numpy as np
import torch
from torch import nn

from remnant import InjectPlan, Population, StaggeredPlan
from remnant.integrations.plain_loop import OneRunHook
from remnant.models import mlp1
from remnant.plans.schedule import JoinedSchedule, Joint
from remnant.probes import label_signals

LAGS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def data(shape, examples, canaries):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(examples + canaries, *shape)).astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(rng.integers(0, 10, examples + canaries))


def joined(plans, images, labels, make, *, examples, device) -> float:
    """Return the seconds of one population of all plans' members, probes included."""
    longest = max(plan.steps for plan in plans)
    longer = [
        InjectPlan(**(fields(plan) | {"watch_steps": plan.watch_steps + longest - plan.steps}))
        for plan in plans
    ]
    schedule = JoinedSchedule(
        [Joint(plan.schedule(examples=examples), start="same") for plan in longer],
        examples=examples,
    )
    probes, steps = {}, {}
    for number, plan in enumerate(plans):
        who = schedule.members_of(number)
        part = slice(int(who[0]), int(who[-1]) + 1)
        probes[str(number)] = _asked(part, images[examples:], labels[examples:])
        steps[str(number)] = [plan.checkpoint_step, *(plan.planted_until + lag for lag in LAGS)]
    wait(device)
    started = time.perf_counter()
    population = Population(
        make, seeds=[seed for plan in plans for seed in plan.seeds], device=device
    )
    population.fit(images, labels, schedule, lr=0.1, probes=probes, probe_steps=steps)
    wait(device)
    return time.perf_counter() - started


def _asked(part, images, labels):
    class Some:
        def __init__(self, population):
            self.population = population

        def logits(self, inputs):
            return self.population.logits(inputs, members=part)

    return lambda population: label_signals(Some(population), images, labels)


def fields(plan):
    return {name: value for name, value in plan.to_dict().items() if name != "kind"}


def one_by_one(images, labels, make, *, batch, steps, examples, device) -> tuple[float, float]:
    """Return the plain loop's seconds a step and a scoring."""
    images, labels = images.to(device), labels.to(device)
    model = make().to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.randint(0, examples, (steps, batch), device=device)
    for step in range(steps):
        if step == steps // 5:
            wait(device)
            started = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[rows[step]]), labels[rows[step]]).backward()
        optimizer.step()
    wait(device)
    step_seconds = (time.perf_counter() - started) / (steps - steps // 5)
    model.eval()
    scored = []
    for _ in range(10):
        wait(device)
        started = time.perf_counter()
        with torch.no_grad():
            nn.functional.cross_entropy(
                model(images[examples:]), labels[examples:], reduction="none"
            ).cpu()
        scored.append(time.perf_counter() - started)
    return step_seconds, statistics.median(scored)


def curve_cost(args) -> dict[str, object]:
    shape = (1, 28, 28) if args.device == "cuda" else (1, 8, 8)
    examples, canaries, batch = 10_000, 32, 128
    moments = [round(args.steps * (k + 1) / (args.moments + 1)) for k in range(args.moments)]
    plans = [
        InjectPlan(
            canaries=canaries,
            step=moment,
            watch_steps=LAGS[-1],
            trials=args.trials,
            batch=batch,
            twins="fresh",
            aa=False,
        )
        for moment in moments
    ]
    images, labels = data(shape, examples, canaries)

    def make():
        return mlp1(shape, 10)

    alone, score = one_by_one(
        images, labels, make, batch=batch, steps=args.plain, examples=examples, device=args.device
    )
    ours = joined(plans, images, labels, make, examples=examples, device=args.device)
    again, _ = one_by_one(
        images, labels, make, batch=batch, steps=args.plain, examples=examples, device=args.device
    )
    alone = min(alone, again)
    twins = 2 * args.trials * args.moments
    scoring = twins * (len(LAGS) + 1) * score
    whole = sum(2 * args.trials * plan.steps for plan in plans) * alone + scoring
    branched = moments[-1] * args.trials + twins * (LAGS[-1] + 1)
    return {
        "what": f"{args.trials} trials x {args.moments} moments, {twins} twins, MLP-1",
        "ours_s": round(ours, 2),
        "plain_ms_a_step": round(1e3 * alone, 3),
        "one_by_one_s": round(whole, 1),
        "branched_one_by_one_s": round(branched * alone + scoring, 1),
        "ratio": round(whole / ours, 1),
        "ratio_branched": round((branched * alone + scoring) / ours, 1),
    }


def scoring_cost(args) -> dict[str, object]:
    """What the hook adds to a plain loop; rounds with and without it take turns."""
    shape, examples, steps, batch = (1, 28, 28), 10_000, args.scored_steps, 128
    plan = StaggeredPlan(
        canaries=1000,
        never=300,
        starts=[steps // 4, steps // 2],
        window=steps // 8,
        per_batch=8,
        steps=steps,
        batch=batch,
    )
    images, labels = (one.to(args.device) for one in data(shape, examples, plan.canaries))
    schedule = plan.schedule(examples=examples)
    rows = [torch.from_numpy(schedule.batch(s)[0][0]).to(args.device) for s in range(steps)]

    def train(scored: bool) -> float:
        torch.manual_seed(0)
        model = mlp1(shape, 10).to(args.device).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def score():
            model.eval()
            with torch.no_grad():
                logits = model(images[examples:])
                own = -nn.functional.cross_entropy(logits, labels[examples:], reduction="none")
            model.train()
            return own.cpu().numpy()

        hook = OneRunHook(plan, score=score, checkpoints=18)
        wait(args.device)
        started = time.perf_counter()
        for step in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows[step]]), labels[rows[step]]).backward()
            optimizer.step()
            if scored:
                hook.after(step)
        wait(args.device)
        return time.perf_counter() - started

    train(True)
    pairs = [(train(True), train(False)) for _ in range(args.rounds)]
    added = statistics.median(a / b - 1.0 for a, b in pairs)
    hook_points = len(OneRunHook(plan, checkpoints=18).due)
    return {
        "what": f"{hook_points} checkpoints x {plan.canaries} canaries in {steps} steps, MLP-1",
        "plain_s": round(statistics.median(b for _, b in pairs), 3),
        "added": f"{100 * added:.1f} %",
        "range": " to ".join(f"{100 * (a / b - 1.0):.1f} %" for a, b in _extremes(pairs)),
    }


def _extremes(pairs):
    ordered = sorted(pairs, key=lambda pair: pair[0] / pair[1])
    return ordered[0], ordered[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--trials", type=int)
    parser.add_argument("--moments", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000, help="the moments lie within these")
    parser.add_argument("--plain", type=int, default=400, help="steps of the plain loop to time")
    parser.add_argument("--scored-steps", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.trials = args.trials or (10 if args.device == "cuda" else 2)
    name = torch.cuda.get_device_name() if args.device == "cuda" else platform.machine()
    print(f"{name}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    for found in itertools.chain([curve_cost(args)], [scoring_cost(args)]):
        print(json.dumps(found))


if __name__ == "__main__":
    main()
