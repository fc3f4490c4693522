"""Language models trained as one population against the same ones one after another, in one run.

    python benchmarks/language.py                  # 8 small LSTMs and GPTs, on this machine's CPU
    python benchmarks/language.py --device cuda    # 64 LSTMs of 2 x 200 units, 64 GPTs of 4 x 128

Times are per model and step of Adam; the ratio is what counts. The sides take turns and the median
of each is kept. "One by one" is the plain loop over torch's own modules: ``nn.LSTM`` (cuDNN on a
GPU) and attention by ``scaled_dot_product_attention``. On a GPU it trains one model, since each
costs the same.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from population import Clock
from remnant import Population
from remnant.models import sequence_model_maker

VOCABULARY = 50
PLACES = {"small": ({"units": 64}, {"units": 32, "layers": 2, "heads": 2}),
          "paper": ({"units": 200}, {"units": 128, "layers": 4, "heads": 4})}  # fmt: skip


class PlainLstm(nn.Module):
    """Two layers of torch's LSTM between an embedding and a head."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, units)
        self.lstm = nn.LSTM(units, units, num_layers=2, batch_first=True)
        self.head = nn.Linear(units, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(ids))[0])


class PlainBlock(nn.Module):
    """Attention by torch's own routine, then a dense part."""

    def __init__(self, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(units), nn.LayerNorm(units)])
        self.cut, self.project = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.dense = nn.Sequential(
            nn.Linear(units, 4 * units), nn.GELU(), nn.Linear(4 * units, units)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        cut = self.cut(self.norms[0](inputs)).unflatten(-1, (3, self.heads, -1))
        parts = cut.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts, is_causal=True)
        inputs = inputs + self.project(seen.transpose(1, 2).flatten(2))
        return inputs + self.dense(self.norms[1](inputs))


class PlainGpt(nn.Module):
    """Blocks of attention between an embedding with positions and a head."""

    def __init__(self, units: int, layers: int, heads: int, window: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, units)
        self.positions = nn.Parameter(0.02 * torch.randn(window, units))
        self.blocks = nn.Sequential(*(PlainBlock(units, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(units), nn.Linear(units, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.embedding(ids) + self.positions)))


def alone(make, ids: Tensor, rows: np.ndarray, device: str, precision: str) -> float:
    """Seconds per model and step of the plain loop."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    ids = ids.to(device)
    seconds = []
    for member in range(rows.shape[1]):
        model = make().to(device).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=device == "cuda")
        own = torch.from_numpy(rows[:, member]).to(device)
        clock = Clock(device, warm=max(2, len(own) // 5))
        for step in range(len(own)):
            text = ids[own[step]]
            optimizer.zero_grad()
            logits = model(text[:, :-1])
            functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()
            clock(step + 1)
        seconds.append(clock.per_step(len(own)))
    return statistics.mean(seconds)


def together(make, ids: Tensor, rows: np.ndarray, device: str, precision: str) -> tuple[float, str]:
    """Seconds per model and step of a population, and its backend."""
    steps, members = rows.shape[:2]
    made = Population(make, seeds=range(members), device=device, precision=precision)
    clock = Clock(device, warm=max(2, steps // 5))
    done = made.fit(ids[:, :-1], ids[:, 1:], rows, optimizer="adam", lr=1e-3, on_step=clock)
    return clock.per_step(steps) / members, done.backend


def compare(name: str, plain, make, options) -> None:
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(0, VOCABULARY, (2048, options.window + 1)))
    rows = rng.integers(0, 2048, (options.steps, options.members, options.batch))
    singles = rows if options.device == "cpu" else rows[:, :1]
    times: dict[str, list[float]] = {"alone": [], "together": []}
    for _ in range(options.repeats):
        times["alone"].append(alone(plain, ids, singles, options.device, options.precision))
        found, backend = together(make, ids, rows, options.device, options.precision)
        times["together"].append(found)
    one, many = (statistics.median(times[side]) for side in ("alone", "together"))
    print(json.dumps({
        "model": name, "members": options.members, "batch": options.batch,
        "window": options.window, "precision": options.precision, "backend": backend,
        "one by one, us": round(1e6 * one, 1), "population, us": round(1e6 * many, 1),
        "ratio": round(one / many, 2),
    }), flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--members", type=int)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32"))
    options = parser.parse_args()
    options.members = options.members or (64 if options.device == "cuda" else 8)
    where = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor()
    print(f"torch {torch.__version__}, {where}, {torch.get_num_threads()} threads")
    lstm, gpt = PLACES["paper" if options.device == "cuda" else "small"]
    compare(
        f"lstm 2 x {lstm['units']}",
        lambda: PlainLstm(lstm["units"]),
        sequence_model_maker("lstm", vocabulary_size=VOCABULARY, layers=2, **lstm),
        options,
    )
    compare(
        f"gpt {gpt['layers']} x {gpt['units']}",
        lambda: PlainGpt(**gpt, window=options.window),
        sequence_model_maker("gpt", vocabulary_size=VOCABULARY, context=options.window, **gpt),
        options,
    )


if __name__ == "__main__":
    main()
