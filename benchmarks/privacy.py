"""Private training of a population against the same without privacy, and against Opacus.

    python benchmarks/privacy.py                 # MLP-1 and LSTM 2 x 200 on this machine's CPU
    python benchmarks/privacy.py --device cuda   # 64 MLP-1 and 16 LSTMs on a GPU

Times are per model and step of SGD; the ratios are what counts. The sides take turns and the median
of each is kept. "Opacus" is a ``GradSampleModule`` and a ``DPOptimizer``, one model after another,
for dense models its ghost clipping too;
every model costs the same, so ``--alone`` of them are trained. Its LSTM is ``DPLSTM``, with as many
weights as ours. "Without privacy" is the same population with ``sgd``.

The memory part trains four wide models privately and prints the peak above that without privacy,
beside what per-example gradients of all of them would take.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import warnings

import numpy as np
import torch
from torch import nn

from population import Clock
from remnant import Population
from remnant.models import lstm, mlp1

VOCABULARY, TIMES, EXAMPLES = 50, 50, 2048
PRIVACY = {"clip": 1.0, "noise": 1.0}
WIDE, WIDE_MEMBERS, WIDE_BATCH = 2048, 4, 256


class OpacusLstm(nn.Module):
    """Opacus's LSTM between one-hot tokens and a head."""

    def __init__(self, units: int) -> None:
        from opacus.layers import DPLSTM

        super().__init__()
        self.recurrent = DPLSTM(VOCABULARY + 1, units, num_layers=2, batch_first=True)
        self.head = nn.Linear(units, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        one_hot = nn.functional.one_hot(ids, VOCABULARY + 1).to(self.head.weight.dtype)
        return self.head(self.recurrent(one_hot)[0]).movedim(-1, 1)


def opacus_parts(model, batch, *, ghost):
    """Return Opacus's model, optimizer and loss, with per-example gradients or ghost clipping."""
    from opacus import GradSampleModule
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    given = {
        "noise_multiplier": PRIVACY["noise"],
        "max_grad_norm": PRIVACY["clip"],
        "expected_batch_size": batch,
    }
    loss = nn.CrossEntropyLoss()
    if ghost:
        model = GradSampleModuleFastGradientClipping(
            model, batch_first=True, max_grad_norm=PRIVACY["clip"], use_ghost_clipping=True
        )
        inner = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        optimizer = DPOptimizerFastGradientClipping(inner, **given)
        return model, optimizer, DPLossFastGradientClipping(model, optimizer, loss)
    model = GradSampleModule(model, batch_first=True)
    inner = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return model, DPOptimizer(inner, **given), loss


def with_opacus(make, inputs, labels, indices, *, device, ghost=False) -> float:
    """Return seconds per model and step of Opacus's training."""
    inputs, labels = inputs.to(device), labels.to(device)
    seconds = []
    for member in range(indices.shape[1]):
        torch.manual_seed(member)
        model, optimizer, loss = opacus_parts(
            make().to(device).train(), indices.shape[2], ghost=ghost
        )
        rows = torch.from_numpy(indices[:, member]).to(device)
        clock = Clock(device, warm=max(1, len(rows) // 5))
        for step in range(len(rows)):
            optimizer.zero_grad()
            loss(model(inputs[rows[step]]), labels[rows[step]]).backward()
            optimizer.step()
            clock(step + 1)
        seconds.append(clock.per_step(len(rows)))
    return statistics.mean(seconds)


def population(make, inputs, labels, indices, *, device, private) -> float:
    """Return seconds per model and step of a population."""
    steps, members = indices.shape[:2]
    made = Population(make, seeds=range(members), device=device)
    clock = Clock(device, warm=max(1, steps // 5))
    options = {"optimizer": "dp-sgd", **PRIVACY} if private else {"optimizer": "sgd"}
    made.fit(inputs, labels, indices, lr=0.01, momentum=0.9, on_step=clock, **options)
    return clock.per_step(steps) / members


def compare(name, make, theirs, data, *, members, batch, steps, alone, repeats, device) -> None:
    inputs, labels = data
    indices = np.random.default_rng(0).integers(0, EXAMPLES, (steps, members, batch))
    times: dict[str, list[float]] = {"private": [], "plain": [], "opacus": [], "opacus ghost": []}
    for _ in range(repeats):
        for side in ("private", "plain"):
            times[side].append(
                population(make, inputs, labels, indices, device=device, private=side == "private")
            )
        if alone:
            few = indices[:, :alone]
            times["opacus"].append(with_opacus(theirs, inputs, labels, few, device=device))
        if alone and name == "mlp1":  # its ghost clipping knows no recurrent layer
            seconds = with_opacus(theirs, inputs, labels, few, device=device, ghost=True)
            times["opacus ghost"].append(seconds)
    middle = {side: statistics.median(some) for side, some in times.items() if some}
    row = {"model": name, "members": members, "batch": batch}
    row |= {f"{side}, us": round(1e6 * seconds, 1) for side, seconds in middle.items()}
    row["private / plain"] = round(middle["private"] / middle["plain"], 2)
    for side in ("opacus", "opacus ghost"):
        if side in middle:
            row[f"{side} / private"] = round(middle[side] / middle["private"], 2)
    print(json.dumps(row), flush=True)


def wide_model() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDE, WIDE), nn.ReLU(), nn.Linear(WIDE, 10))


def wide_peak(*, device: str, private: bool) -> int:
    """Train the wide models for a few steps; return the peak in bytes."""
    inputs, labels = torch.randn(512, WIDE), torch.arange(512) % 10
    indices = np.random.default_rng(0).integers(0, 512, (3, WIDE_MEMBERS, WIDE_BATCH))
    population(wide_model, inputs, labels, indices, device=device, private=private)
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(device: str) -> None:
    """Print the peaks of both trainings, each in a process of its own."""
    peaks = {}
    for side in ("plain", "private"):
        command = [sys.executable, __file__, "--device", device, "--peak", side]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks[side] = int(done.stdout.split()[-1])
    weights = sum(p.nbytes for p in wide_model().parameters())
    row = {
        "model": f"dense {WIDE}-{WIDE}-10",
        "members": WIDE_MEMBERS,
        "batch": WIDE_BATCH,
        **{f"{side} peak, MiB": peak >> 20 for side, peak in peaks.items()},
        "per-example gradients, MiB": weights * WIDE_BATCH * WIDE_MEMBERS >> 20,
    }
    print(json.dumps(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--members", type=int, default=0, help="instead of 64 and 16")
    parser.add_argument(
        "--alone", type=int, default=2, help="models that Opacus trains; 0 for none"
    )
    parser.add_argument("--only", choices=("mlp", "lstm", "memory"))
    parser.add_argument("--peak", choices=("plain", "private"), help="one side of the memory part")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")  # Opacus's hooks
    if options.peak:
        print(wide_peak(device=options.device, private=options.peak == "private"))
        return
    where = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor()
    print(f"torch {torch.__version__}, {where}, {options.threads} threads")
    generator = torch.Generator().manual_seed(0)
    same = {"alone": options.alone, "repeats": options.repeats, "device": options.device}
    if options.only in (None, "mlp"):
        images = torch.randn(EXAMPLES, 784, generator=generator)
        labels = torch.randint(0, 10, (EXAMPLES,), generator=generator)

        def mlp() -> nn.Module:
            return mlp1((784,), 10)

        compare(
            "mlp1", mlp, mlp, (images, labels), members=options.members or 64, batch=128,
            steps=options.steps or 8, **same,
        )  # fmt: skip
    if options.only in (None, "lstm"):
        tokens = torch.randint(0, VOCABULARY, (EXAMPLES, TIMES + 1), generator=generator)
        compare(
            "lstm 2x200", lambda: lstm(VOCABULARY, units=200), lambda: OpacusLstm(200),
            (tokens[:, :-1], tokens[:, 1:]), members=options.members or 16, batch=32,
            steps=options.steps or 5, **same,
        )  # fmt: skip
    if options.only in (None, "memory"):
        memory(options.device)


if __name__ == "__main__":
    main()
