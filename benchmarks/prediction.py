"""The measures that predict memorisation against the routines in use, in one run.

    python benchmarks/prediction.py
    python benchmarks/prediction.py --only psmi --repeats 5

The sides take turns on the same arrays and the fastest time of each is kept; the ratio is what
counts. PSMI is held against the ``psmi`` package and against its own floor, the matrix product that
makes the projections; memory is the peak that Python's ``tracemalloc`` sees. The other sides of
LiRA are written anew from what they do: TensorFlow Privacy's goes example by example with
``nanmedian`` and ``nanstd``; leaving one out the plain way fits anew for every model and example.
Both are timed on fewer examples and counted up. RMIA's other side compares all pairs.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc

import numpy as np
from psmi import PSMI
from scipy import stats

from remnant.measures import lira, lira_leave_one_out, mahalanobis, psmi, rmia


def taking_turns(repeats: int, **sides) -> dict[str, float]:
    fastest = dict.fromkeys(sides, np.inf)
    for _ in range(repeats):
        for name, side in sides.items():
            started = time.perf_counter()
            side()
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    return fastest


def peak(side) -> float:
    """MiB allocated at the most while ``side`` ran, beyond what was there before."""
    tracemalloc.start()
    side()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def row(what: str, theirs: float, ours: float, note: str = "") -> None:
    print(f"{what:44s} {theirs:9.3f} {ours:9.4f} {theirs / ours:8.1f}  {note}", flush=True)


def sliced(args, rng) -> None:
    labels = rng.integers(args.classes, size=args.samples)
    shape = (args.samples, args.features)
    centres = 0.2 * rng.normal(size=(args.classes, args.features))
    hidden = (rng.normal(size=shape) + centres[labels]).astype(np.float32)
    projector = rng.normal(size=(args.directions, args.features)).astype(np.float32)
    asked = {"hidden": hidden, "labels": labels}
    sides = {
        "package": lambda: PSMI(n_estimators=args.directions).fit_transform(hidden, labels),
        "ours": lambda: psmi(**asked, directions=args.directions, rng=rng),
        "product": lambda: hidden @ projector.T,
    }
    took = taking_turns(args.repeats, **sides)
    theirs = PSMI(n_estimators=args.directions)
    expected = theirs.fit_transform(hidden, labels)[0]
    found = psmi(**asked, directions=theirs.thetas).values
    apart = f"largest difference {np.abs(found - expected).max():.0e} nats"
    row(f"PSMI {args.samples} x {args.features} x {args.directions}, the package",
        took["package"], took["ours"], apart)  # fmt: skip
    row("  the matrix product alone", took["product"], took["ours"],
        f"ours takes {took['ours'] / took['product']:.2f} times as long")  # fmt: skip
    most = {name: peak(side) for name, side in sides.items()}
    print(f"  peak memory, MiB: package {most['package']:.0f}, ours {most['ours']:.0f}, "
          f"ratio {most['package'] / most['ours']:.1f}", flush=True)  # fmt: skip


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
        median=lambda: lira(**how, centre="median", ddof=0),
        mean=lambda: lira(**how),
        left_out=lambda: lira_leave_one_out(scores=scores, seen=seen),
    )
    apart = lira(**how, centre="median", ddof=0).scores[:few] - one_by_one(*part)
    note = f"largest difference {np.abs(apart).max():.0e} nats; {few} examples, counted up"
    whole = took["loop"] * n / few
    row(f"LiRA {models} x {n}, medians, example by example", whole, took["median"], note)
    row("  means", whole, took["mean"])
    small = scores[:, :50], seen[:, :50]
    started = time.perf_counter()
    expected = each_left_out(*small)
    slow = (time.perf_counter() - started) * n / 50
    apart = lira_leave_one_out(scores=small[0], seen=small[1]).scores - expected
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


PARTS = {"psmi": sliced, "lira": likelihoods, "rmia": ratios, "mahalanobis": distances}


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
    parser.add_argument("--only", choices=sorted(PARTS), nargs="*", default=list(PARTS))
    parser.add_argument("--device", choices=["cpu"], default="cpu")
    args = parser.parse_args()
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"NumPy {np.__version__}, threads: {threads}, load before: {load:.1f}")
    print(f"{'':44s} {'theirs, s':>9s} {'ours, s':>9s} {'ratio':>8s}")
    for name in args.only:
        PARTS[name](args, np.random.default_rng(0))


if __name__ == "__main__":
    main()
