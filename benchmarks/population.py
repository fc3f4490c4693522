"""A population against the same models one after another, in one run.

    python benchmarks/population.py                # 16 MLP-1 on this machine's CPU
    python benchmarks/population.py --device cuda  # 1 to 256 MLP-1, then WRN16-4, on a GPU

Times are per model and step; the ratio is what counts. The two sides take turns and the median of
each is kept. On a CPU "one by one" trains every model of the population; on a GPU, where that would
take minutes and each model costs the same, it trains one.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import time

import numpy as np
import torch
from torch import nn

from remnant import Population
from remnant.models import mlp1, wrn16_4


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


class Clock:
    """Times the steps after the warm-up."""

    def __init__(self, device: str, warm: int) -> None:
        self.device, self.warm, self.started = device, warm, 0.0

    def __call__(self, step: int) -> None:
        if step == self.warm:
            synchronise(self.device)
            self.started = time.perf_counter()

    def per_step(self, steps: int) -> float:
        synchronise(self.device)
        return (time.perf_counter() - self.started) / (steps - self.warm)


def eager(make, inputs, labels, indices, *, device, precision, channels_last=False) -> float:
    """Return seconds per model and step of the plain loop that everybody writes."""
    inputs, labels = inputs.to(device), labels.to(device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    seconds = []
    for member in range(indices.shape[1]):
        torch.manual_seed(member)
        model = make().to(device).train()
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        rows = torch.from_numpy(indices[:, member]).to(device)
        clock = Clock(device, warm=max(2, len(rows) // 5))
        for step in range(len(rows)):
            x, y = inputs[rows[step]], labels[rows[step]]
            if channels_last:
                x = x.contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            clock(step + 1)
        seconds.append(clock.per_step(len(rows)))
    return statistics.mean(seconds)


def population(
    make, inputs, labels, indices, *, device, precision, compiled
) -> tuple[float, str, float]:
    """Return seconds per model and step, the backend, and bytes a member."""
    steps, members = indices.shape[:2]
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    made = Population(make, seeds=range(members), device=device, precision=precision)
    clock = Clock(device, warm=max(2, steps // 5))
    done = made.fit(
        inputs, labels, indices, lr=0.01, momentum=0.9, on_step=clock, compiled=compiled
    )
    seconds = clock.per_step(steps) / members
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    return seconds, done.backend, peak / members


def compare(
    name, make, shape, *, members, batch, steps, repeats, device, precision, compiled=False
) -> dict:
    rng = np.random.default_rng(0)
    inputs = torch.randn(4096, *shape)
    labels = torch.from_numpy(rng.integers(0, 10, 4096))
    indices = rng.integers(0, 4096, (steps, members, batch))
    alone, together = [], []
    kinds = (
        [False, True] if len(shape) == 3 and device == "cuda" and precision == "bf16" else [False]
    )
    singles = indices if device == "cpu" else indices[:, :1]
    for _ in range(repeats):
        alone.append(
            min(
                eager(
                    make,
                    inputs,
                    labels,
                    singles,
                    device=device,
                    precision=precision,
                    channels_last=k,
                )
                for k in kinds
            )
        )
        seconds, backend, peak = population(
            make, inputs, labels, indices, device=device, precision=precision, compiled=compiled
        )
        together.append(seconds)
    row = {
        "model": name,
        "members": members,
        "batch": batch,
        "precision": precision,
        "backend": backend + (", compiled" if compiled else ""),
        "one by one, us": round(1e6 * statistics.median(alone), 1),
        "population, us": round(1e6 * statistics.median(together), 1),
        "ratio": round(statistics.median(alone) / statistics.median(together), 2),
        "peak MiB a member": round(peak / 2**20, 1) if device == "cuda" else "not measured",
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    where = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor()
    print(f"torch {torch.__version__}, {where}, {options.threads} threads")
    mlp, wrn = (lambda: mlp1((784,), 10)), (lambda: wrn16_4((3, 32, 32), 10))
    same = {"repeats": options.repeats, "device": options.device}
    if options.device == "cpu":
        for members in (1, 4, 16, 64):
            compare(
                "mlp1", mlp, (784,), members=members, batch=128, precision="float32",
                steps=options.steps or 40, **same,
            )  # fmt: skip
        print(
            "peak resident memory, MiB:",
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        )
        return
    for precision in ("float32", "tf32"):
        for members in (1, 4, 16, 64, 256):
            compare(
                "mlp1", mlp, (784,), members=members, batch=128, precision=precision,
                steps=options.steps or 200, **same,
            )  # fmt: skip
    for members, compiled in ((1, False), (8, False), (8, True), (16, True)):
        compare(
            "wrn16_4", wrn, (3, 32, 32), members=members, batch=256, precision="bf16",
            steps=options.steps or 60, compiled=compiled, **same,
        )  # fmt: skip


if __name__ == "__main__":
    main()
