"""What a study or an audit costs at sizes that were not run, by arithmetic from measured times.

    python benchmarks/scaling.py              # the table of docs/how-to/scaling.md
    python benchmarks/scaling.py --check      # its small end against real runs on this machine

Each rate is floating-point operations per second of a group that was timed on one H200: what it had
to compute, over how long it took. A larger job takes its operations over that rate. Language models
larger than the measured ones use a GPU better, so their estimates are upper bounds. There are two
rates of convolutional nets, which differ by their widths. docs/how-to/scaling.md says what is left
out.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from exposure_walk import Sum, random_network, wrapped
from torch.utils.flop_counter import FlopCounterMode

from remnant import Population, Template
from remnant.models import mlp1, small_resnet, wrn16_4
from remnant.probes import Asked
from remnant.search import compile_template
from remnant.search.walk import Budget, Walk

HOUR = 3600.0
SMOLLM2, GPT2 = 134.5e6, 124.4e6  # parameters


@dataclass(frozen=True)
class Rate:
    """A measured group: operations a second, and where its time was written down."""

    flops: float
    seconds: float
    source: str

    @property
    def per_second(self) -> float:
        return self.flops / self.seconds


def forward_flops(model: torch.nn.Module, *shape: int) -> float:
    """Operations of one forward pass of one example, two for each multiply and add."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()(torch.zeros(1, *shape))
    return float(counter.get_total_flops())


def rates() -> dict[str, Rate]:
    """Measured on one H200; the sources are rows of pages in docs/evidence/."""
    narrow = 3 * 256 * forward_flops(small_resnet((3, 32, 32), 10), 3, 32, 32)
    convolutional = 3 * 256 * forward_flops(wrn16_4((3, 32, 32), 10), 3, 32, 32)
    return {
        "training a convolutional net, bf16": Rate(
            convolutional, 2548.7e-6, "WRN16-4, batch 256, 16 compiled: 2 548.7 us a step"
        ),
        "training a narrow residual net, bf16": Rate(
            17 * (2000 + 9 * 3000) * narrow,
            317.0,
            "small ResNet, batch 256: 17 trials of 3 injections and 3 members in 317 s",
        ),
        "training a GPT, bf16": Rate(
            6 * GPT2 * 8 * 512, 36.8 / 800, "GPT-2 124M, 8 x 512 tokens: 800 steps in 36.8 s"
        ),
        "scoring texts, bf16": Rate(
            2 * GPT2 * 1356 * 40, 0.354, "GPT-2 124M: 1 356 rows of 40 tokens in 0.354 s"
        ),
        "walking a tree, float32": Rate(
            2 * SMOLLM2 * 38_789, 1.0, "SmolLM2-135M: 38 789 nodes a second, with copies"
        ),
    }


def table() -> None:
    measured = rates()
    print("Rates measured on one H200")
    for name, rate in measured.items():
        print(f"  {name:38} {rate.per_second / 1e12:6.1f} TFLOP/s   ({rate.source})")
    wide, narrow, gpt, score, walk = (rate.per_second for rate in measured.values())
    print("\nGPU-hours")
    image = 3 * 2 * 4.09e9  # ResNet-50 at 224 x 224: 4.09 G multiply-adds, backward twice forward
    epoch = 1_281_167 * image
    for label, epochs in (
        ("ResNet-50, one training of 90 epochs", 90),
        ("  one trial: 50 epochs, then 3 x 40", 50 + 3 * 40),
        ("  ten trials", 10 * (50 + 3 * 40)),
    ):
        show(f"{label}, at the wide net's rate", epochs * epoch, wide)
        show(f"{label}, at the narrow net's rate", epochs * epoch, narrow)
    tokens = 365e6 * 512  # documents of C4, cut to 512 tokens
    each = 6 * 110e6 * tokens
    show("110M decoder, C4, one epoch (365M texts of 512)", each, gpt)
    show("  planted at 50 %, three members to the end", (0.5 + 3 * 0.5) * each, gpt)
    seconds = 3.1 / (384 * 8) * 7.24e9 / SMOLLM2  # of one example
    print(
        f"  LoRA of 7B: {1e3 * seconds:.0f} ms an example (SmolLM2-135M: 3.1 s for 3 072 of them)"
    )
    for label, examples in (
        ("  100 fine-tunings, 640 examples (ARC, one epoch)", 640),
        ("  100 fine-tunings, 7 000 examples (MMLU's half)", 7_000),
    ):
        show(label, 100 * examples * seconds, 1.0)
    for name, parameters, gpus in (("8B", 8.03e9, 1), ("70B", 70.6e9, 2)):
        node = 2 * parameters
        print(f"  {name} in bf16: {2 * parameters / 1e9:.0f} GB of weights, {gpus} GPU")
        for label, nodes in (
            ("exact rank of a memorised canary (700 nodes)", 700),
            ("10 000 sampled references, six digits", 17_147),
            ("exact rank of a control in 10^6 (112 746 nodes)", 112_746),
        ):
            show(f"  {name}: {label}", gpus * nodes * node, walk)
        show(f"  {name}: audit, 2 x 1 000 records x 512, two models", gpus * 2048e3 * node, score)


def show(label: str, flops: float, rate: float) -> None:
    hours = flops / rate / HOUR
    print(f"  {label:52} {hours:12.4g} h  ({flops:.3g} / {rate:.3g})")


def check() -> None:
    """Predict runs of another size from a measured group, and run them, in CPU time."""
    torch.manual_seed(0)
    walked = {name: walk_time(name) for name in ("llama-30m", "llama-135m")}
    (small, small_seconds), (large, large_seconds) = walked.values()
    compared("walk through 135M, from 30M", small_seconds * large / small, large_seconds)
    scored = {name: score_time(name) for name in ("llama-30m", "llama-135m")}
    (small, small_seconds), (large, large_seconds) = scored.values()
    compared("scoring by 135M, from 30M", small_seconds * large / small, large_seconds)
    few, many = train_time(members=4, steps=60), train_time(members=16, steps=240)
    compared("training 16 MLPs x 240 steps, from 4 x 60", 16 * few, many)


def compared(label: str, predicted: float, taken: float) -> None:
    print(
        f"{label:45} predicted {predicted:7.2f} s, took {taken:7.2f} s of CPU time: "
        f"{taken / predicted:.2f} times"
    )


def walk_time(architecture: str) -> tuple[float, float]:
    model = wrapped(random_network(architecture, "cpu"))
    parameters = sum(p.numel() for p in model._model.parameters())
    template = Template("The PIN of the account is {digits:4}")
    seconds = 0.0
    for _ in range(2):  # the first one warms the machine up
        automaton = compile_template(model.encode, template)
        walk = Walk(Asked(model, automaton.prefix), automaton, budget=Budget())
        start = time.process_time()
        walk.run(Sum())
        seconds = time.process_time() - start
    return parameters, seconds


def score_time(architecture: str) -> tuple[float, float]:
    network = random_network(architecture, "cpu")
    ids = torch.arange(32 * 64).reshape(32, 64) % 90
    seconds = 0.0
    for _ in range(2):
        start = time.process_time()
        with torch.no_grad():
            network(input_ids=ids).logits.log_softmax(-1)
        seconds = time.process_time() - start
    return sum(p.numel() for p in network.parameters()), seconds


def train_time(*, members: int, steps: int) -> float:
    from remnant.plans import ShadowPlan

    rng = np.random.default_rng(0)
    images = rng.standard_normal((512, 784)).astype(np.float32)
    labels = rng.integers(0, 10, 512)
    plan = ShadowPlan(models=members, steps=steps, batch=128)
    population = Population(lambda: mlp1((784,), 10), seeds=plan.seeds)
    start = time.process_time()
    population.fit(images, labels, plan.schedule(examples=512), optimizer="sgd", lr=0.05)
    return time.process_time() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="compare with runs on this machine")
    chosen = options.parse_args()
    if chosen.check:
        check()
    else:
        table()


if __name__ == "__main__":
    main()
