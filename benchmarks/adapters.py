"""LoRA adapters trained at once against the same ones one after another, in one run.

    python benchmarks/adapters.py                          # a small model, on this machine's CPU
    python benchmarks/adapters.py --device cuda            # a model of SmolLM2-135M's size
    python benchmarks/adapters.py --device cuda --folder DATA/smollm2

Times are per model and step; the ratio is what counts, against a plain loop over one model with
ordinary modules and torch.optim. The sides take turns and the median of each is kept. Without a
folder the weights are random: they cost the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
import torch
from torch import nn

from remnant.population import AdapterPopulation, FrozenModel, Lora
from remnant.population.adapters import PADDING

SIZES = {
    "small": {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 4},
    "smollm2": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30},
}
HEADS = {"small": (4, 2), "smollm2": (9, 3)}


def base_model(folder: str | None, size: str, device: str) -> nn.Module:
    import transformers

    if folder is not None:
        load = transformers.AutoModelForCausalLM.from_pretrained
        return load(folder, dtype=torch.float32, local_files_only=True).to(device)
    heads, groups = HEADS[size]
    config = transformers.LlamaConfig(
        vocab_size=49152,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        tie_word_embeddings=True,
        **SIZES[size],
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).to(device)


def frozen(model: nn.Module) -> FrozenModel:
    inner = model.base_model
    return FrozenModel(
        model,
        lambda tokens: inner(input_ids=tokens, use_cache=False).last_hidden_state,
        model.get_output_embeddings(),
    )


def questions(count: int, mean: int, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of different lengths, as questions have them."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6, mean / 6, count), 8, 2 * mean).astype(int)
    tokens = np.full((count, lengths.max()), PADDING)
    for row, length in zip(tokens, lengths, strict=True):
        row[:length] = rng.integers(0, vocabulary, length)
    return tokens, rng.integers(0, 4, count)


class Clock:
    def __init__(self, device: str) -> None:
        self.device, self.times = device, []

    def __call__(self, _: int) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()
        self.times.append(time.perf_counter())

    def per_step(self) -> float:
        return statistics.median(np.diff(self.times)[1:])


def together(model, store, *, members: int, batch: int, steps: int, device, precision) -> float:
    """Return seconds per model and step of a population."""
    population = AdapterPopulation(
        frozen(model), list(range(members)), lora=Lora(dropout=0.05), precision=precision
    )
    indices = np.random.default_rng(1).integers(0, len(store[0]), (steps, members, batch))
    clock = Clock(device)
    population.fit(*store, indices, lr=1e-3, on_step=clock)
    return clock.per_step() / members


class Adapted(nn.Module):
    """A dense layer and its adapter, as everybody writes it."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        make = {"device": layer.weight.device}
        self.down = nn.Parameter(torch.empty(8, layer.in_features, **make).uniform_(-0.04, 0.04))
        self.up = nn.Parameter(torch.zeros(layer.out_features, 8, **make))

    def forward(self, x):
        dropped = nn.functional.dropout(x, 0.05)
        return self.layer(x) + 2.0 * (dropped @ self.down.T) @ self.up.T


def plain(model, store, *, batch: int, steps: int, device, precision) -> float:
    """Return seconds per step of one model in a plain loop, logits at the last place only."""
    layers = {n: m for n, m in model.named_modules() if n.endswith(("q_proj", "v_proj"))}
    adapters = {name: Adapted(layer) for name, layer in layers.items()}
    for name, adapter in adapters.items():
        setattr(model.get_submodule(name.rpartition(".")[0]), name.split(".")[-1], adapter)
    rule = torch.optim.AdamW([p for a in adapters.values() for p in (a.down, a.up)], lr=1e-3)
    tokens, answers = (torch.from_numpy(part).to(device) for part in store)
    rng, clock = np.random.default_rng(1), Clock(device)
    try:
        for step in range(steps):
            rows = torch.from_numpy(rng.integers(0, len(tokens), batch)).to(device)
            lengths = (tokens[rows] != PADDING).sum(1)
            part = tokens[rows, : int(lengths.max())].clamp(min=0)
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
                states = model.base_model(input_ids=part, use_cache=False).last_hidden_state
                ends = states[torch.arange(batch, device=device), lengths - 1]
                logits = model.get_output_embeddings()(ends)
            rule.zero_grad()
            nn.functional.cross_entropy(logits.float(), answers[rows]).backward()
            rule.step()
            clock(step)
    finally:
        for name, adapter in adapters.items():
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.split(".")[-1], adapter.layer)
    return clock.per_step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--folder", help="of a causal language model")
    parser.add_argument("--members", type=int, nargs="+")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=60, help="mean length of a question")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    gpu = args.device == "cuda"
    precision = "bf16" if gpu else "float32"
    model = base_model(args.folder, "smollm2" if gpu else "small", args.device)
    model.requires_grad_(False).eval()
    store = questions(400, args.tokens, 1000)
    same = {"device": args.device, "precision": precision, "batch": args.batch}
    members = args.members or ([1, 8, 32, 100] if gpu else [1, 8])
    found: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        alone = plain(model, store, steps=args.steps, **same)
        found.setdefault("plain loop", []).append(alone)
        for count in members:
            took = together(model, store, members=count, steps=args.steps, **same)
            found.setdefault(f"{count} at once", []).append(took)
    medians = {name: statistics.median(times) for name, times in found.items()}
    for name, took in medians.items():
        ratio = medians["plain loop"] / took
        print(json.dumps({"side": name, "ms_per_model_step": took * 1e3, "times_faster": ratio}))


if __name__ == "__main__":
    main()
