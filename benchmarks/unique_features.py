"""What the scores of unique features claim where nothing was planted, and how their intervals hold.

    python benchmarks/unique_features.py                # all three tables, some five minutes
    python benchmarks/unique_features.py --models 200 --trained 4 --audits 200

1. Models that were never trained, letters never planted: how often p_value and t_test_p_value are
   at or under 5 %, and how often M is above zero.
2. The same for models trained on digits without any letter, with shuffled pixels and with all other
   letters as nulls.
3. Coverage of the interval of each score, at a nominal 95 %: models trained on digits, an image
   with the letter among the data 0 or 60 times; the truth is the mean over 40 000 images.
"""

import argparse
import math
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from remnant import Patch, m_score, probability_gain, white_box_m_score
from remnant.canaries import Patches
from remnant.canaries.patches.glyphs import GLYPHS
from remnant.measures.statistics.mean_interval import mean_interval

LETTERS = [letter for letter in GLYPHS if letter != " "]
CONTROLS = ("uniform", "binary", "shuffled")


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def untrained(rng: np.random.Generator, hidden: int):
    if not hidden:
        weights = rng.normal(size=(100, 10)) * 0.3
        return lambda x: softmax(x.reshape(len(x), -1) @ weights)
    first = rng.normal(size=(100, hidden)) * math.sqrt(2 / 100)
    second = rng.normal(size=(hidden, 10)) * math.sqrt(8 / hidden)
    return lambda x: softmax(np.maximum((x.reshape(len(x), -1) - 0.5) @ first, 0) @ second)


def never_trained(models: int) -> None:
    print("untrained models   random patches   p <= 5 %   t-test < 5 %   M > 0")
    for name, hidden in (("linear", 0), ("one hidden layer", 32)):
        for control in CONTROLS:
            rng = np.random.default_rng(1)
            rows = []
            for number in range(models):
                predict = untrained(rng, hidden)
                patch = Patch.letter(LETTERS[number % len(LETTERS)])
                more = {"nulls": 39, "control": control, "draws": 20, "rng": rng}
                found = m_score(predict, rng.random((60, 1, 10, 10)), patch, **more)
                rows.append((found.p_value < 0.0501, found.t_test_p_value < 0.05, found.value > 0))
            shares = np.mean(rows, axis=0)
            told = "   ".join(f"{100 * share:8.1f} %" for share in shares)
            print(f"{name:18s} {control:12s} {told}", flush=True)


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Digits of 8x8 in the lower right of 14x14, so that the letter's corner is black."""
    found = load_digits()
    images = torch.zeros(len(found.images), 1, 14, 14)
    images[:, 0, 6:, 6:] = torch.from_numpy(found.images / 16).float()
    return images, torch.from_numpy(found.target)


def fit(kind: str, seed: int, *, steps: int, rate: float, copies: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    if kind == "mlp":
        model = nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 10))
    else:
        model = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1)),
            *(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 49, 10)),
        )
    images, labels = digits()
    if copies:
        canary = Patch.letter("A").stamp(images[5:6])
        images = torch.cat([images, *[canary] * copies])
        labels = torch.cat([labels, *[labels[5:6]] * copies])
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        rows = torch.randint(len(images), (128,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
        optimizer.step()
    return model.eval()


def probabilities(model: nn.Module):
    return lambda x: model(torch.as_tensor(x, dtype=torch.float32)).detach().softmax(dim=1)


def blocks(n: int, rng: np.random.Generator) -> np.ndarray:
    coarse = rng.random((n, 1, 7, 7), dtype=np.float32)
    return coarse.repeat(2, axis=2).repeat(2, axis=3)


def trained(models: int) -> None:
    print("\ntrained, nothing planted   images   p <= 5 %   2/36 among letters   t-test   M > 0")
    for kind, steps in (("mlp", 600), ("cnn", 300)):
        fitted = [fit(kind, seed, steps=steps, rate=3e-3) for seed in range(models)]
        for source in ("blocks", "digits"):
            rng = np.random.default_rng(1)
            rows = []
            for seed, model in enumerate(fitted):
                own = digits()[0].numpy()
                images = blocks(100, rng) if source == "blocks" else own[rng.integers(0, 1797, 100)]
                predict = probabilities(model)
                for letter in LETTERS[seed % 3 :: 3]:
                    patch = Patch.letter(letter)
                    one = m_score(predict, images, patch, rng=rng, nulls=39, draws=20)
                    rest = Patches.of([Patch.letter(other) for other in LETTERS if other != letter])
                    among = m_score(predict, images, patch, rng=rng, null_patches=rest, draws=20)
                    rows.append(
                        (
                            one.p_value < 0.0501,
                            among.p_value < 2.01 / 36,
                            one.t_test_p_value is not None and one.t_test_p_value < 0.05,
                            one.value > 0,
                        )
                    )
            told = "   ".join(f"{100 * share:8.1f} %" for share in np.mean(rows, axis=0))
            print(
                f"{kind:5s} {models:3d} models {len(rows):6d} letters {source:8s} {told}",
                flush=True,
            )


def coverage(audits: int) -> None:
    sizes = (20, 50, 200, 1000)
    print("\ncoverage (share of audits that called for the bound)   images " + str(sizes))
    cases = {
        "untrained": {"steps": 0, "rate": 1e-3},
        "trained": {"steps": 600, "rate": 3e-3},
        "planted": {"steps": 600, "rate": 3e-3, "copies": 60},
        "planted, saturated": {"steps": 3000, "rate": 1e-2, "copies": 60},
    }
    for name, how in cases.items():
        rng = np.random.default_rng(3)
        predict, patch = probabilities(fit("mlp", 0, **how)), Patch.letter("A")
        images, more = blocks(40_000, rng), {"rng": rng, "nulls": 19, "draws": 20, "batch": 8192}
        pools = {
            "M": m_score(predict, images, patch, **more),
            "white box": white_box_m_score(predict, images, patch, label=3, **more),
            "gain": probability_gain(predict, images, patch, label=3, **more),
        }
        for score, pool in pools.items():
            cells = []
            for n in sizes:
                inside, few = 0, 0
                for _ in range(audits):
                    values = pool.per_image[rng.integers(0, pool.n_images, n)]
                    bound = 1.0 if score == "gain" else -math.log(1e-7)
                    found = mean_interval(values, bound=bound, confidence=0.95, draws=499, rng=rng)
                    inside += found.low <= pool.value <= found.high
                    few += found.carried_by_few
                cells.append(f"{inside / audits:.3f} ({few / audits:.2f})")
            print(f"{name:19s} {score:10s} {pool.value:+.4f}   {'   '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--trained", type=int, default=12)
    parser.add_argument("--audits", type=int, default=1000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    start = time.perf_counter()
    never_trained(given.models)
    trained(given.trained)
    coverage(given.audits)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
