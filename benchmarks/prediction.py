"""The measures that predict memorisation against the routines in use, in one run.

    python benchmarks/prediction.py
    python benchmarks/prediction.py --only psmi --repeats 5
    python benchmarks/prediction.py --device cuda --only psmi pool

The sides take turns on the same arrays and the fastest time of each is kept; the ratio is what
counts. PSMI is held against the ``psmi`` package and against its own floor, the matrix product that
makes the projections; memory is what a process of its own grows by at the most. On a GPU there is
the product alone, with directions that are there already (drawing them is the host's and is shown
apart), and how far the numbers are from those of the CPU in float64. The other sides of LiRA are
written anew from what they do: TensorFlow Privacy's goes example by example with ``nanmedian`` and
``nanstd``; leaving one out the plain way fits anew for every model and example. Both are timed on
fewer examples and counted up. RMIA's other side compares all pairs. The pool is shadow models
trained as one population, against the plain loop of ``population.py`` for one of them, counted up.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from population import Clock, eager, synchronise
from remnant import Population, ShadowPlan
from remnant.data.catalogue import training_images
from remnant.measures import lira, lira_leave_one_out, mahalanobis, psmi, rmia
from remnant.models import mlp1


def taking_turns(repeats: int, device: str = "cpu", **sides) -> dict[str, float]:
    """The fastest of several runs of each side, one after the other; the first one warms up."""
    fastest = dict.fromkeys(sides, np.inf)
    for _ in range(repeats + (device == "cuda")):
        for name, side in sides.items():
            took = on_gpu(side) if device == "cuda" else on_cpu(side)
            fastest[name] = min(fastest[name], took)
    return fastest


def on_cpu(side) -> float:
    started = time.perf_counter()
    side()
    return time.perf_counter() - started


def on_gpu(side) -> float:
    """Seconds between two events on the GPU, what the host does in between included."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    side()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / 1e3


def busy(side) -> float:
    """Seconds that the GPU computes, what it waits for the host left out."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        side()
        torch.cuda.synchronize()
    return sum(one.self_device_time_total for one in seen.key_averages()) / 1e6


def peak(side: str, args) -> float:
    """MiB by which a process of its own grows at the most while a side runs."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=grow, args=(side, args, theirs))
    child.start()
    grown = ours.recv()
    child.join()
    return grown


def grow(side: str, args, answer) -> None:
    """Measure a side's growth, after a small run that has loaded what it needs."""
    small = argparse.Namespace(**{**vars(args), "samples": 100, "directions": 100})
    sliced_sides(small)[side]()
    run = sliced_sides(args)[side]
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the high water mark starts anew
    run()
    answer.send((memory("VmHWM") - before) / 1024)


def memory(what: str) -> int:
    """KiB that the system notes of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


def row(what: str, theirs: float, ours: float, note: str = "") -> None:
    print(f"{what:44s} {theirs:9.3f} {ours:9.4f} {theirs / ours:8.1f}  {note}", flush=True)


def classes_of_states(args) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hidden states in classes, their labels, and directions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(args.classes, size=args.samples)
    centres = 0.2 * rng.normal(size=(args.classes, args.features)).astype(np.float32)
    hidden = rng.standard_normal((args.samples, args.features), dtype=np.float32)
    hidden += centres[labels]
    return hidden, labels, rng.normal(size=(args.directions, args.features))


def sliced_sides(args) -> dict:
    from psmi import PSMI

    hidden, labels, directions = classes_of_states(args)
    projector = directions.astype(np.float32)
    rng = np.random.default_rng(1)
    asked = {"hidden": hidden, "labels": labels}
    return {
        "package": lambda: PSMI(n_estimators=args.directions).fit_transform(hidden, labels),
        "ours": lambda: psmi(**asked, directions=args.directions, rng=rng),
        "product": lambda: hidden @ projector.T,
    }


def sliced(args, rng) -> None:
    if args.device == "cuda":
        sliced_on_gpu(args)
        return
    from psmi import PSMI

    psmi(hidden=np.eye(4), labels=[0, 0, 1, 1], directions=2, rng=rng)  # loads what it needs
    took = taking_turns(args.repeats, **sliced_sides(args))
    hidden, labels, _ = classes_of_states(args)
    theirs = PSMI(n_estimators=args.directions)
    expected = theirs.fit_transform(hidden, labels)[0]
    found = psmi(hidden=hidden, labels=labels, directions=theirs.thetas).values
    apart = f"largest difference {np.abs(found - expected).max():.0e} nats"
    row(f"PSMI {args.samples} x {args.features} x {args.directions}, the package",
        took["package"], took["ours"], apart)  # fmt: skip
    row("  the matrix product alone", took["product"], took["ours"],
        f"ours takes {took['ours'] / took['product']:.2f} times as long")  # fmt: skip
    del hidden, labels, theirs, expected, found
    if Path("/proc/self/clear_refs").exists():
        most = {name: peak(name, args) for name in ("package", "ours")}
        print(f"  peak memory, MiB: package {most['package']:.0f}, ours {most['ours']:.0f}, "
              f"ratio {most['package'] / most['ours']:.1f}", flush=True)  # fmt: skip


def sliced_on_gpu(args) -> None:
    hidden, labels, directions = classes_of_states(args)
    there, along = torch.from_numpy(hidden).cuda(), torch.from_numpy(directions).cuda()
    projector = along.float()
    rng = np.random.default_rng(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    took = taking_turns(
        args.repeats,
        "cuda",
        product=lambda: there @ projector.T,
        ours=lambda: psmi(hidden=there, labels=labels, directions=along),
        drawn=lambda: psmi(hidden=there, labels=labels, directions=args.directions, rng=rng),
        drawing=lambda: rng.standard_normal(directions.shape),
    )
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    found = psmi(hidden=there, labels=labels, directions=along).values
    most = (torch.cuda.max_memory_allocated() - before) / 2**20
    exact = psmi(hidden=hidden.astype(np.float64), labels=labels, directions=directions).values
    row(f"PSMI {args.samples} x {args.features} x {args.directions} on the GPU, the product",
        took["product"], took["ours"],
        f"ours takes {took['ours'] / took['product']:.2f} times as long; largest difference to "
        f"float64 on the CPU {np.abs(found - exact).max():.0e} nats")  # fmt: skip
    row("  the same, directions drawn by the host", took["product"], took["drawn"],
        f"of which {took['drawing']:.4f} s are drawing")  # fmt: skip
    sides = [
        lambda: there @ projector.T,
        lambda: psmi(hidden=there, labels=labels, directions=along),
    ]
    computing = [min(busy(side) for _ in range(args.repeats)) for side in sides]
    row("  the same, while the GPU computes", *computing,
        f"ours computes {computing[1] / computing[0]:.2f} times as long")  # fmt: skip
    print(f"  peak memory on the GPU, MiB: {most:.0f}, of which the copy of hidden "
          f"{hidden.nbytes / 2**20:.0f}; all projections would be "
          f"{args.samples * args.directions * 4 / 2**20:.0f}", flush=True)  # fmt: skip


def one_by_one(target, shadow, seen) -> np.ndarray:
    """As TensorFlow Privacy does: medians and deviations of each example's ragged lists."""
    ins = [shadow[seen[:, i], i, None] for i in range(target.size)]
    outs = [shadow[~seen[:, i], i, None] for i in range(target.size)]
    middle_in = np.array([np.nanmedian(one, axis=0) for one in ins])
    middle_out = np.array([np.nanmedian(one, axis=0) for one in outs])
    spread_in = np.array([np.nanstd(one, axis=0) for one in ins])
    spread_out = np.array([np.nanstd(one, axis=0) for one in outs])
    log_in = stats.norm.logpdf(target[:, None], middle_in, spread_in + 1e-30)
    log_out = stats.norm.logpdf(target[:, None], middle_out, spread_out + 1e-30)
    return (log_in - log_out).mean(axis=1)


def each_left_out(scores, seen) -> np.ndarray:
    """Mean and deviation fitted anew for every model and every example."""
    out = np.empty(scores.shape)
    for model in range(len(scores)):
        rest = np.arange(len(scores)) != model
        for i in range(scores.shape[1]):
            ins, outs = scores[rest & seen[:, i], i], scores[rest & ~seen[:, i], i]
            z_in = (scores[model, i] - ins.mean()) / (deviation_in := ins.std(ddof=1))
            z_out = (scores[model, i] - outs.mean()) / (deviation_out := outs.std(ddof=1))
            out[model, i] = (z_out**2 - z_in**2) / 2 + np.log(deviation_out / deviation_in)
    return out


def likelihoods(args, rng) -> None:
    models, n, few = args.models, args.examples, min(args.examples, 2000)
    seen = rng.random((models, n)).argsort(axis=0) < models // 2
    scores = rng.normal(size=(models, n)) * rng.gamma(3.0, size=n) + 2.0 * seen
    target = rng.normal(size=n) + 1.0
    part = target[:few], scores[:, :few], seen[:, :few]
    how = {"target": target, "shadow": scores, "seen": seen}
    took = taking_turns(
        args.repeats,
        loop=lambda: one_by_one(*part),
        median=lambda: lira(**how, centre="median", variance="per_example", ddof=0),
        mean=lambda: lira(**how, variance="per_example"),
        left_out=lambda: lira_leave_one_out(scores=scores, seen=seen, variance="per_example"),
    )
    apart = lira(**how, centre="median", variance="per_example", ddof=0).scores[:few] - one_by_one(
        *part
    )
    note = f"largest difference {np.abs(apart).max():.0e} nats; {few} examples, counted up"
    whole = took["loop"] * n / few
    row(f"LiRA {models} x {n}, medians, example by example", whole, took["median"], note)
    row("  means", whole, took["mean"])
    small = scores[:, :50], seen[:, :50]
    started = time.perf_counter()
    expected = each_left_out(*small)
    slow = (time.perf_counter() - started) * n / 50
    apart = (
        lira_leave_one_out(scores=small[0], seen=small[1], variance="per_example").scores - expected
    )
    note = f"largest difference {np.abs(apart).max():.0e} nats; 50 examples, counted up"
    row("  every model by the others, fitted anew", slow, took["left_out"], note)


def all_pairs(ratios, others) -> np.ndarray:
    blocks = np.array_split(ratios, max(1, ratios.size // 1000))
    return np.concatenate([np.mean(one[:, None] / others >= 1.0, axis=1) for one in blocks])


def ratios(args, rng) -> None:
    n, z = args.examples, args.others
    given = {
        "target": rng.random(n),
        "reference": rng.random((4, n)),
        "other_target": rng.random(z),
        "other_reference": rng.random((4, z)),
    }
    found = rmia(**given)
    took = taking_turns(
        args.repeats,
        pairs=lambda: all_pairs(found.ratios, found.other_ratios),
        ours=lambda: rmia(**given),
    )
    same = np.array_equal(all_pairs(found.ratios, found.other_ratios), found.scores)
    note = "equal" if same else "NOT equal"
    row(f"RMIA {n} x {z}, all pairs", took["pairs"], took["ours"], note)


def distances(args, rng) -> None:
    n, d = args.samples, 256
    hidden = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))

    def anew(i) -> float:
        others = np.delete(hidden, i, axis=0)
        away = hidden[i] - others.mean(axis=0)
        return float(np.sqrt(away @ np.linalg.solve(np.cov(others.T), away)))

    took = taking_turns(args.repeats, anew=lambda: anew(0), ours=lambda: mahalanobis(hidden=hidden))
    apart = abs(mahalanobis(hidden=hidden).distances[0] - anew(0)) / anew(0)
    note = f"relative difference {apart:.0e}; one sample, counted up"
    row(f"Mahalanobis {n} x {d}, each left out", took["anew"] * n, took["ours"], note)


def pool(args, rng) -> None:
    few = args.device == "cpu"
    models, steps = args.pool or (8 if few else 100), args.steps or (40 if few else 400)
    if args.data is None:
        images = rng.random((60_000, 1, 28, 28), dtype=np.float32)
        labels = rng.integers(10, size=60_000)
    else:
        given = training_images("fashion-mnist", folder=args.data)
        images, labels = given.images, given.labels
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
    plan = ShadowPlan(models=models, steps=steps, batch=64)
    schedule = plan.schedule(examples=len(labels))
    alone = np.stack([schedule.batch(step)[0][:1] for step in range(steps)])
    how = {"device": args.device, "precision": plan.precision}

    def make():
        return mlp1(inputs.shape[1:], 10)

    def together() -> float:
        made = Population(make, seeds=plan.seeds, **how)
        clock = Clock(args.device, warm=max(2, steps // 5))
        made.fit(inputs, targets, schedule, lr=0.01, momentum=0.9, on_step=clock)
        return clock.per_step(steps)

    one, all_of_them = np.inf, np.inf
    for _ in range(args.repeats):
        one = min(one, eager(make, inputs, targets, alone, **how))
        all_of_them = min(all_of_them, together())
    synchronise(args.device)
    what = "Fashion-MNIST" if args.data else "random images"
    row(f"Shadow pool of {models} MLP-1, {what}, 1000 steps", 1e3 * models * one,
        1e3 * all_of_them, f"one model: {1e6 * one:.0f} us a step; "
        f"pool: {1e6 * all_of_them / models:.1f} us a model and step; {steps} steps timed"
        )  # fmt: skip


PARTS = {
    "psmi": sliced,
    "lira": likelihoods,
    "rmia": ratios,
    "mahalanobis": distances,
    "pool": pool,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--directions", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--examples", type=int, default=50_000)
    parser.add_argument("--others", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pool", type=int, help="shadow models; 8 on a CPU, 100 on a GPU")
    parser.add_argument("--steps", type=int, help="of the pool's training; 40, or 400 on a GPU")
    parser.add_argument("--data", type=Path, help="folder with Fashion-MNIST, for the pool")
    parser.add_argument("--only", choices=sorted(PARTS), nargs="*", default=list(PARTS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    where = f", {torch.cuda.get_device_name()}" if args.device == "cuda" else ""
    print(f"NumPy {np.__version__}, torch {torch.__version__}{where}, threads: {threads}, "
          f"load before: {load:.1f}")  # fmt: skip
    print(f"{'':44s} {'theirs, s':>9s} {'ours, s':>9s} {'ratio':>8s}")
    for name in args.only:
        PARTS[name](args, np.random.default_rng(0))


if __name__ == "__main__":
    main()
