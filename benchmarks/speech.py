"""Recognisers of speech: a population against one by one, and CTC costs together against alone.

    python benchmarks/speech.py                                   # on this machine's CPU
    python benchmarks/speech.py --device cuda --precision tf32    # on a GPU, the whole sizes

Both are ratios measured in one run; the two sides take turns and the median of each is kept.
*One by one* is the loop that everybody writes: `nn.Module`, `torch.optim.Adam`,
`torch.nn.functional.ctc_loss`, batches padded to the same length. *Alone* asks
`torch.nn.functional.ctc_loss` for one transcript of one utterance at a time, in float64, given the
model's log-probabilities, which both sides have.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time

import numpy as np
import torch
from torch.nn import functional as F

from remnant import Population
from remnant.models import conformer
from remnant.models.recogniser import PackedRecogniser, backend_for, ctc_loss, pack
from remnant.probes.ctc import ctc_costs

VOCABULARY, BANDS = 29, 80
SIZES = {"width": 64, "layers": 2, "heads": 4, "kernel": 15}


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def speech(count: int, frames: int):
    """Return noise of about so many frames, and transcripts that fit."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(frames // 2, frames + 1, size=count)
    lengths[0] = frames
    spoken = [rng.normal(size=(length, BANDS)).astype(np.float32) for length in lengths]
    said = [rng.integers(1, VOCABULARY, size=max(2, length // 16)).tolist() for length in lengths]
    return pack(spoken, said)


def make():
    return PackedRecogniser(conformer(VOCABULARY, bands=BANDS, dropout=0.1, **SIZES))


def one_by_one(inputs, targets, rows, *, device: str, precision: str, models: int) -> float:
    """Return seconds per model and step of a plain loop over the first ``models`` models."""
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    inputs, targets = inputs.to(device), targets.to(device)
    seconds, timed = 0.0, 0
    for member in range(models):
        torch.manual_seed(member)
        model = make().to(device).train()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        own = torch.from_numpy(rows[:, member]).to(device)
        warm = max(1, len(own) // 4)
        for step in range(len(own)):
            if step == warm:
                synchronise(device)
                started = time.perf_counter()
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
                log_probs = model(inputs[own[step]])
            said = targets[own[step]]
            loss = F.ctc_loss(
                log_probs.float().transpose(0, 1),
                said[:, 2:],
                said[:, 0],
                said[:, 1],
                reduction="none",
            )
            (loss / said[:, 1]).mean().backward()
            optimizer.step()
        synchronise(device)
        seconds, timed = seconds + time.perf_counter() - started, timed + len(own) - warm
    return seconds / timed


def together(inputs, targets, rows, *, device: str, precision: str) -> tuple[float, str]:
    """Return seconds per model and step of one population, and its backend."""
    steps, members, _ = rows.shape
    population = Population(make, seeds=list(range(members)), device=device, precision=precision)
    times: list[float] = []

    def clock(_: int) -> None:
        synchronise(device)
        times.append(time.perf_counter())

    fit = population.fit(
        inputs,
        targets,
        rows,
        optimizer="adam",
        lr=1e-3,
        loss=ctc_loss,
        backend=backend_for(device),
        on_step=clock,
    )
    warm = max(1, steps // 4)
    return (times[-1] - times[warm - 1]) / (steps - warm) / members, fit.backend


def costs_alone(log_probs, transcripts) -> float:
    """Return seconds per cost of ``F.ctc_loss``, one transcript of one utterance at a time."""
    frames = log_probs.double()
    length = torch.tensor([len(frames)])
    started = time.perf_counter()
    for tokens in transcripts:
        F.ctc_loss(
            frames[:, None], torch.tensor([tokens]), length, torch.tensor([len(tokens)])
        ).item()
    return (time.perf_counter() - started) / len(transcripts)


def costs_together(log_probs, transcripts, *, device: str) -> float:
    """Return seconds per cost of all transcripts of all utterances."""
    synchronise(device)
    started = time.perf_counter()
    ctc_costs(list(log_probs), transcripts)
    synchronise(device)
    return (time.perf_counter() - started) / (len(log_probs) * len(transcripts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--references", type=int, default=None)
    parser.add_argument("--audios", type=int, default=None)
    given = parser.parse_args()
    cuda = given.device == "cuda"
    steps = given.steps or (60 if cuda else 8)
    references, audios = given.references or 10_000, given.audios or (100 if cuda else 16)
    inputs, targets = speech(256, 400 if cuda else 200)
    rows = np.random.default_rng(1).integers(0, 256, (steps, given.members, 16))
    kept = {"device": given.device, "precision": given.precision}
    alone, joint = [], []
    for _ in range(given.repeats):
        models = 1 if cuda else given.members
        alone.append(one_by_one(inputs, targets, rows, models=models, **kept))
        seconds, backend = together(inputs, targets, rows, **kept)
        joint.append(seconds)
    log_probs = torch.randn(audios, 100, VOCABULARY, device=given.device).log_softmax(-1)
    rng = np.random.default_rng(2)
    said = rng.integers(1, VOCABULARY, size=(references, 40)).tolist()
    single, batched = [], []
    for _ in range(given.repeats):
        single.append(costs_alone(log_probs[0].cpu(), said[:300]))
        batched.append(costs_together(log_probs, said, device=given.device))
    slow, fast = statistics.median(alone), statistics.median(joint)
    one, many = statistics.median(single), statistics.median(batched)
    print(
        json.dumps(
            {
                "machine": torch.cuda.get_device_name() if cuda else platform.processor(),
                "threads": torch.get_num_threads(),
                "torch": torch.__version__,
                **kept,
                "members": given.members,
                "backend": backend,
                "ms per model-step, one by one": round(1e3 * slow, 3),
                "ms per model-step, population": round(1e3 * fast, 3),
                "population, times as fast": round(slow / fast, 2),
                "references x audios": f"{references} x {audios}",
                "us per cost, one at a time": round(1e6 * one, 2),
                "us per cost, together": round(1e6 * many, 3),
                "costs, times as fast": round(one / many, 1),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
