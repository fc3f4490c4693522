"""Does a curve from one run agree with twins? And what does each cost?

    python benchmarks/one_run_agreement.py                                    # digits, CPU
    python benchmarks/one_run_agreement.py --data DIR --device cuda           # Fashion-MNIST, GPU

A STAGGERED plan plants several cohorts along one run, each judged by canaries that were never
planted. The truth beside it comes from INJECT twins: for every cohort a model that is planted that
cohort alone, in the same steps and batches, and a twin that is planted nothing; seen scores are the
first model's, unseen scores the twin's, on the same canaries. Both are calibrated by the scores
before the window. There are many trials of twins, and as many one-run curves, each by itself.

Printed, for cohort and checkpoint: the twins' true-positive rate with its interval over the trials,
the first one-run curve with its band, and over all one-run curves the share of bands that hold the
twins' mean. A band is of one run and its canaries; runs differ, so that less than 95 % is expected
where they differ more than canaries do.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from remnant import Population, StaggeredPlan, one_run_forgetting
from remnant.canaries import BY_LOSS
from remnant.data import load_images
from remnant.measures import forgetting_curve
from remnant.models import mlp1, model_maker
from remnant.plans import Schedule
from remnant.plans.plan import ORDER
from remnant.plans.schedule import JoinedSchedule, Joint, Order
from remnant.probes import SIGNALS, label_signals
from remnant.studies.shared.image_canaries import draw_canaries, judge_pool, needs_judge, plant
from remnant.studies.shared.settings import CanarySettings, TrainingSettings

FPR = 0.1


class Only(Schedule):
    """The batches of a STAGGERED run in which one cohort is planted, or none."""

    def __init__(self, plan: StaggeredPlan, examples: int, cohort: int | None) -> None:
        self.members, self.steps, self.batch_size = 1, plan.total_steps, plan.batch
        self._whole = plan.schedule(examples=examples)
        self._clean = Order(
            keys=[(plan.seed, ORDER, 0, 0)], pool=examples, batch=plan.batch, sampling=plan.sampling
        )
        self._steps = range(0)
        if cohort is not None:
            self._steps = range(plan.starts[cohort], plan.starts[cohort] + plan.window)

    def _batch(self, step: int):
        if step in self._steps:
            return self._whole.batch(step)
        return self._clean.rows(step), np.ones(1, dtype=bool)


def plans(args) -> list[StaggeredPlan]:
    if args.data:
        fields = {
            "canaries": 1200,
            "never": 400,
            "starts": list(range(500, 3700, 400)),
            "window": 100,
            "repeats": [10],
            "per_batch": 13,
            "steps": 4000,
            "batch": 128,
        }
    else:
        fields = {
            "canaries": 400,
            "never": 160,
            "starts": [200, 500, 800],
            "window": 100,
            "repeats": [8],
            "per_batch": 16,
            "steps": 1600,
            "batch": 64,
        }
    if args.cohorts:
        fields["starts"] = fields["starts"][: args.cohorts]
        fields["steps"] = fields["starts"][-1] + 1000
        fields["canaries"] = fields["never"] + 100 * args.cohorts
    return [StaggeredPlan(**fields, seed=trial) for trial in range(args.trials)]


def train(args, made, checkpoints):
    """Return scores ``(trial, model, checkpoint, canary)`` and the seconds.

    The models of a trial: planted all, none, then each cohort alone.
    """
    data = load_images(
        "fashion-mnist" if args.data else "digits", folder=args.data, examples=None, seed=0
    )
    # The digits' pool of 539 holds 400 canaries in its hardest three quarters only.
    share = 0.75 if args.kind in BY_LOSS and not args.data else None
    kind = CanarySettings(kind=args.kind, judge_steps=2000, share=share)
    losses = None
    if needs_judge(kind):
        maker = model_maker("mlp1", shape=data.clean.images.shape[1:], classes=data.classes)
        losses = judge_pool(maker, made[0], kind, TrainingSettings(), data, device=args.device)
    sets = [draw_canaries(plan, kind, data, losses) for plan in made]
    planting = plant(data, sets)
    examples, each = len(data.clean), made[0].canaries
    joints = []
    for trial, plan in enumerate(made):
        models = [plan.schedule(examples=examples), Only(plan, examples, None)]
        models += [Only(plan, examples, cohort) for cohort in range(len(plan.starts))]
        joints += [Joint(schedule, shift=trial * each) for schedule in models]
    models = 2 + len(made[0].starts)
    population = Population(
        lambda: mlp1(planting.shape, planting.classes, width=1.0 if args.data else 0.5),
        seeds=[plan.seeds[0] for plan in made for _ in range(models)],
        device=args.device,
    )
    probed = planting.probed

    def asked(trial: int):
        canaries = slice(trial * each, (trial + 1) * each)
        members = slice(trial * models, (trial + 1) * models)

        class Some:
            def logits(self, inputs):
                return population.logits(inputs, members=members)

        return lambda _: label_signals(Some(), probed.images[canaries], probed.labels[canaries])

    started = time.perf_counter()
    fit = population.fit(
        planting.store.images,
        planting.store.labels,
        JoinedSchedule(joints, examples=examples),
        lr=0.1,
        probes={str(trial): asked(trial) for trial in range(len(made))},
        probe_steps=checkpoints,
    )
    seconds = time.perf_counter() - started
    odds = [fit.probes[str(t)][:, :, SIGNALS.index("log_odds")] for t in range(len(made))]
    return np.stack([trial.transpose(1, 0, 2) for trial in odds]), seconds, len(joints)


def calibrated(scores, checkpoints, start):
    return scores - scores[checkpoints.index(start)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with fashion-mnist/; digits without it")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kind", default="hard", help="of canary")
    parser.add_argument("--cohorts", type=int, help="fewer than all")
    parser.add_argument("--trials", type=int, default=8)
    args = parser.parse_args()
    made = plans(args)
    checkpoints = list(made[0].checkpoints(16))
    scores, seconds, members = train(args, made, checkpoints)
    runs = [
        one_run_forgetting(
            scores=scores[trial, 0],
            checkpoints=np.array(checkpoints) - 1,
            last_seen=plan.last_seen,
            first_seen=plan.first_seen,
            cohorts=plan.cohort_of,
            repeats=plan.repeats_of,
            calibrate=True,
            fpr=FPR,
            rng=np.random.default_rng(trial),
        )
        for trial, plan in enumerate(made)
    ]
    device = torch.cuda.get_device_name() if args.device == "cuda" else "CPU"
    print(
        f"{device}: {members} models in one population, {seconds:.0f} s; a one-run curve is one of "
        f"them, the twins {members - args.trials}"
    )
    print("cohort  lag   twins               one run             bands that hold the twins' mean")
    held, gaps = [], []
    first = runs[0]
    for cohort, start in enumerate(made[0].starts):
        rows = np.flatnonzero(first.cohort == cohort)
        points = [checkpoints.index(int(first.checkpoint[row]) + 1) for row in rows]
        sides = {"seen": [], "unseen": []}
        for trial, plan in enumerate(made):
            mine = plan.cohort_of == cohort
            for side, model in (("seen", 2 + cohort), ("unseen", 1)):
                own = calibrated(scores[trial, model], checkpoints, start)
                sides[side].append(own[points][:, mine])
        truth = forgetting_curve(
            seen_scores=np.stack(sides["seen"], axis=1),
            unseen_scores=np.stack(sides["unseen"], axis=1),
            lags=first.lags[rows],
            success="tpr",
            fpr=FPR,
            rng=np.random.default_rng(cohort),
        )
        for i, row in enumerate(rows):
            inside = [run.low[row] <= truth.value[i] <= run.high[row] for run in runs]
            held += inside
            gaps += [run.success[row] - truth.value[i] for run in runs]
            print(
                f"{cohort:5} {first.lags[row]:6.0f}  {truth.value[i]:.2f} "
                f"[{truth.low[i]:.2f}, {truth.high[i]:.2f}]  {first.success[row]:.2f} "
                f"[{first.low[row]:.2f}, {first.high[row]:.2f}]  {sum(inside)} of {len(inside)}"
            )
    spread = np.sqrt(np.mean(np.square(gaps)))
    print(
        f"all: {np.mean(held):.1%} of {len(held)} bands hold the twins' mean; one run lies "
        f"{np.mean(gaps):+.3f} from it on average, root mean square {spread:.3f}"
    )


if __name__ == "__main__":
    main()
