"""Walks through transformers, in turns with and without a copy of the cache for each row.

Part of ``exposure.py --walk``. "Copies" is how Remnant walked before: ``take`` copies all keys and
values of every child, and each step copies them into the model's own cache. Both ways ask the same
rows within the same memory budget, and the sums of all costs are compared.
"""

from __future__ import annotations

import argparse
import resource
import string
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remnant import Template
from remnant.integrations import HuggingFaceCausalLM
from remnant.integrations.arithmetic import full_precision
from remnant.integrations.decoder import joined, slices
from remnant.integrations.key_values import KeyValues, put_in, taken_out
from remnant.models import LanguageModel, Vocabulary
from remnant.models.decoder_only import Gpt
from remnant.probes import Asked
from remnant.search import compile_template
from remnant.search.walk import Budget, Walk

LLAMA = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
LLAMA += ("num_key_value_heads", "vocab_size", "tie_word_embeddings")
SHAPES = {
    "llama-30m": (384, 1024, 12, 6, 2, 16384, True),
    "llama-135m": (576, 1536, 30, 9, 3, 49152, True),
    "llama-1b": (2048, 8192, 16, 32, 8, 128256, True),
    "llama-8b": (4096, 14336, 32, 32, 8, 128256, False),
    "gpt": (128, 512, 4, 4, 4, 95, False),
}


class CopyingCausalLM(HuggingFaceCausalLM):
    """The way before: every row has a copy of all keys and values."""

    def start(self, prefix_ids: Any) -> tuple[Tensor, Any]:
        log_probs, state = super().start(prefix_ids)
        return log_probs, KeyValues(state.whole(), state.length)

    def take(self, state: Any, rows: Any) -> Any:
        rows = torch.as_tensor(rows).to(self._device)
        return KeyValues(tuple(t.index_select(0, rows) for t in state.tensors), state.length)

    def step(self, state: Any, token_ids: Any) -> tuple[Tensor, Any]:
        ids = torch.as_tensor(token_ids).to(self._device).reshape(-1, 1)
        each = sum(tensor.nbytes for tensor in state.tensors) // max(len(ids), 1)
        parts = []
        with full_precision(self._model):
            for some in slices(len(ids), max(1, min(4096, (1 << 30) // max(each, 1)))):
                piece = KeyValues(tuple(t[some] for t in state.tensors), state.length)
                cache = put_in(piece, self._windows)
                output = self._ask(ids[some], cache=cache, length=state.length, keep=True)
                after = taken_out(cache, length=state.length + 1)
                log_probs = output.logits[:, -1].float().log_softmax(-1)
                parts.append([log_probs, *after.tensors])
        whole = joined(parts)
        return whole[0], KeyValues(tuple(whole[1:]), state.length + 1)


class CopyingGpt(Gpt):
    """The way before, for a GPT of ours."""

    def shared(self, state: Any) -> Any:
        return state


class Sum:
    """Visits all leaves, and adds up their costs."""

    def __init__(self) -> None:
        self.leaves_seen, self.total = 0, 0.0

    def bound(self) -> float:
        return float("inf")

    def leaves(self, costs: Tensor, paths: Callable[[Tensor], Tensor]) -> None:
        self.leaves_seen += len(costs)
        self.total += float(costs.sum())


def random_network(architecture: str, device: str, precision: str = "float32") -> Any:
    """Return a network of random weights, made where and in which precision it will compute."""
    import transformers

    torch.manual_seed(0)
    sizes = dict(zip(LLAMA, SHAPES[architecture], strict=True))
    config = transformers.LlamaConfig(**sizes, max_position_embeddings=2048)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, precision))
    try:
        with torch.device(device):
            return transformers.LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def wrapped(network: Any, kind: type = HuggingFaceCausalLM) -> Any:
    """Return a network with a tokenizer of single characters, as a sequence model."""
    import transformers
    from tokenizers import Tokenizer, decoders, models

    pieces = ["<unk>", *string.printable]
    tokenizer = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, [], unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    return kind(network, fast, own_precision=network.dtype != torch.float32)


def both_ways(chosen: argparse.Namespace, device: str) -> dict[str, Any]:
    """Return the models of both ways, which share their weights where they are large."""
    if chosen.hugging_face:
        from remnant.integrations import load_causal_lm

        shared = load_causal_lm(chosen.hugging_face, device=device)
        copies = CopyingCausalLM(shared._model, shared._library_tokenizer)
    elif chosen.architecture == "gpt":
        torch.manual_seed(0)
        vocabulary = Vocabulary.of_characters(string.printable[:95])
        units, _, layers, heads, *_ = SHAPES["gpt"]
        sizes = {"units": units, "layers": layers, "heads": heads, "context": 512, "dropout": 0.0}
        module, copying = (kind(vocabulary.size, **sizes) for kind in (Gpt, CopyingGpt))
        copying.load_state_dict(module.state_dict())
        shared, copies = (LanguageModel(m, vocabulary, device=device) for m in (module, copying))
    else:
        network = random_network(chosen.architecture, device, chosen.precision)
        shared, copies = wrapped(network), wrapped(network, CopyingCausalLM)
    return {"shared prefix": shared} | ({} if chosen.only_new else {"copies": copies})


def compare_walks(chosen: argparse.Namespace, device: str) -> None:
    """Walk a tree with nothing pruned, both ways in turns; print the medians."""
    ways = both_ways(chosen, device)
    words = ("The PIN of the account is " * 40)[-chosen.prefix_tokens :]
    template = Template(f"{words}{{digits:{chosen.digits}}}")
    memory = None if chosen.memory is None else chosen.memory << 20
    taken: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    print(f"space {template.space:,}, budget {chosen.max_nodes or 'none'} nodes")
    for round_ in range(chosen.rounds + 1):
        for way, model in ways.items():
            automaton = compile_template(model.encode, template)
            scorer = Asked(model, automaton.prefix)
            _, state = scorer.step(scorer.first_state, torch.tensor([1], device=scorer.device))
            visitor, budget = Sum(), Budget(max_nodes=chosen.max_nodes, memory=memory)
            walk = Walk(scorer, automaton, budget=budget)
            del state
            reset_peak(device)
            resident = peak_bytes(device)
            nodes = scorer.nodes
            cpu, start = time.process_time(), time.perf_counter()
            walk.run(visitor)
            if device == "cuda":
                torch.cuda.synchronize()
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            nodes = scorer.nodes - nodes
            more = (peak_bytes(device) - resident) / 2**20
            if round_:
                taken[way].append((nodes / seconds, nodes / cpu, more))
            print(
                f"round {round_} {way:14} {len(automaton.prefix)} tokens before, {walk.rows} rows "
                f"a pass, {scorer.row_bytes:,} bytes a row, {nodes:,} nodes, {seconds:.1f} s, "
                f"{nodes / seconds:.0f} nodes/s, {nodes / cpu:.0f} nodes/s of CPU time, "
                f"{more:.0f} MiB more; {visitor.leaves_seen:,} leaves, "
                f"{visitor.total / max(visitor.leaves_seen, 1):.6f} bits on average",
                flush=True,
            )
    middle = {
        way: [sorted(column)[len(column) // 2] for column in zip(*rows, strict=True)]
        for way, rows in taken.items()
    }
    for way, (rate, rate_of_cpu, more) in middle.items():
        print(f"median {way:14} {rate:.0f} nodes/s, {rate_of_cpu:.0f} of CPU time, {more:.0f} MiB")
    if len(middle) == 2:
        (new, new_cpu, more), (old, old_cpu, before) = middle.values()
        print(
            f"ratio {new / old:.2f}, of CPU time {new_cpu / old_cpu:.2f}, "
            f"memory {more / max(before, 1):.2f}"
        )


def reset_peak(device: str) -> None:
    """Forget the peak memory so far; Linux only."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(device: str) -> int:
    """Return the largest memory since ``reset_peak``."""
    if device == "cuda":
        return int(torch.cuda.max_memory_allocated())
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def peak(device: str) -> str:
    if device == "cuda":
        return f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB peak"
    return (
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB peak of the process"
    )
