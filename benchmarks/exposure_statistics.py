"""Sampled exposure and the skew-normal fit against the routines in use, in one run.

    python benchmarks/exposure_statistics.py
    python benchmarks/exposure_statistics.py --references 100000 --repeats 5

The two sides take turns on the same arrays and the fastest time of each is kept; the ratio is what
counts. The other side of exposure is TensorFlow Privacy's, written anew from what it does: it puts
canaries and references into one array, labels each entry, sorts the labels by perplexity and counts
along them, once for every number of repetitions. It gives points in the order of perplexity; ours
keeps the order and gives each an interval. The other side of the fit is ``scipy.stats.skewnorm``.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy import stats

from remnant.measures import SkewNormal, exposure, extrapolated_exposure, fit_skew_normal
from remnant.measures.statistics.counting import at_or_under


def by_sorted_labels(by_repetitions: dict[int, np.ndarray], references: np.ndarray) -> dict:
    groups = list(by_repetitions)
    everything = np.concatenate([*by_repetitions.values(), references])
    labels = [[group] * len(by_repetitions[group]) for group in groups]
    label = np.concatenate([*labels, [0] * len(references)])[np.argsort(everything)]
    before = np.cumsum(label == 0)
    ceiling = np.log2(len(references))
    return {group: ceiling - np.log2(before[label == group] + 1) for group in groups}


def by_scipy(references: np.ndarray) -> tuple[float, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stats.skewnorm.fit(references)


def taking_turns(repeats: int, **sides) -> dict[str, float]:
    fastest = dict.fromkeys(sides, np.inf)
    for _ in range(repeats):
        for name, side in sides.items():
            started = time.perf_counter()
            side()
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    return fastest


def row(what: str, theirs: float, ours: float, note: str = "") -> None:
    print(
        f"{what:44s} {1e3 * theirs:9.1f} {1e3 * ours:9.2f} {theirs / ours:7.1f}  {note}", flush=True
    )


def sampled(references: np.ndarray, *, canaries: int, repeats: int, rng) -> None:
    groups = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    size = canaries // len(groups)
    for what, shift in (("planted", 2.0), ("never planted", 0.0)):
        planted = {
            group: rng.choice(references, size) - shift * step + rng.normal(size=size)
            for step, group in enumerate(groups)
        }
        losses = np.concatenate(list(planted.values()))
        took = taking_turns(
            repeats,
            theirs=lambda planted=planted: by_sorted_labels(planted, references),
            ours=lambda losses=losses: exposure(canary_losses=losses, reference_losses=references),
            counts=lambda losses=losses: at_or_under(losses, references),
        )
        theirs = np.sort(np.concatenate(list(by_sorted_labels(planted, references).values())))
        ours = exposure(canary_losses=losses, reference_losses=references).bits
        apart = np.abs(np.sort(ours) - np.log2(1 + 1 / references.size) - theirs).max()
        same = f"largest difference {apart:.0e} bits"
        row(f"exposure with intervals, {what}", took["theirs"], took["ours"], same)
        row(f"  without the intervals, {what}", took["theirs"], took["counts"])


def fitted(law: SkewNormal, *, n: int, repeats: int, rng) -> None:
    references = law.sample(n, rng=rng)
    took = taking_turns(
        repeats,
        theirs=lambda: by_scipy(references),
        ours=lambda: fit_skew_normal(references),
    )
    ours = fit_skew_normal(references).log_likelihood
    theirs = float(stats.skewnorm.logpdf(references, *by_scipy(references)).sum())
    note = f"log-likelihood {ours:.4f}, theirs {ours - theirs:.1e} lower"
    row(f"skew-normal fit, shape {law.shape:g}", took["theirs"], took["ours"], note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--references", type=int, default=1_000_000)
    parser.add_argument("--canaries", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--shapes", type=float, nargs="*", default=[-2.0, 0.0, 4.0])
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{asked.references} references, {asked.canaries} canaries, NumPy {np.__version__}")
    print(f"{'':44s} {'theirs, ms':>9s} {'ours, ms':>9s} {'ratio':>6s}")
    references = SkewNormal(shape=-2.0, location=30.0, scale=4.0).sample(asked.references, rng=rng)
    sampled(references, canaries=asked.canaries, repeats=asked.repeats, rng=rng)
    for shape in asked.shapes:
        law = SkewNormal(shape=shape, location=30.0, scale=4.0)
        fitted(law, n=asked.references, repeats=max(1, asked.repeats // 4), rng=rng)
    started = time.perf_counter()
    extrapolated_exposure(canary_losses=references[:1000] - 20.0, reference_losses=references)
    print(f"whole extrapolation, fit and p-value: {1e3 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    main()
