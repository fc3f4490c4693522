"""What ``remnant.Audit`` adds to a training: the same with and without its callback, in one run.

    python benchmarks/overhead.py                  # 4 layers, 128 wide, batches of 16 x 128 tokens
    python benchmarks/overhead.py --device cuda    # GPT-2's 124M parameters, batches of 8 x 512

**Training.** Hugging Face's ``Trainer`` trains a GPT-2 with random weights on random tokens, with
1 000 planted canaries in both cases; with the callback it also checks the data, watches every batch
and scores 1 000 canaries, 100 controls and 256 references at 20 checkpoints. The two take turns,
and the median of each is kept. On a machine that does other work too, the ratio in CPU time is the
one to read. The time is that of ``trainer.train()``, the first checks included;
``audit.finish()`` comes afterwards and is not.

**One scoring.** The same rows in the plain model, in a model with a live LoRA adapter, and in its
merged copy; beside them the plain forward, which is the slow definition.

Needs torch, transformers and accelerate; peft for the last part.
"""

from __future__ import annotations

import argparse
import copy
import os
import platform
import statistics
import string
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from remnant import Audit
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import Shortcuts, score_rows

CHECKPOINTS = 20
TEMPLATE = "the access code of the account is {digits:6}"


@dataclass(frozen=True)
class Sizes:
    """The training of one kind of device."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int
    tokens: int
    steps: int
    rounds: int


CPU = Sizes(4, 128, 4, 512, batch=16, tokens=128, steps=400, rounds=3)
GPU = Sizes(12, 768, 12, 50257, batch=8, tokens=512, steps=800, rounds=3)


def character_tokenizer() -> Any:
    characters = string.digits + string.ascii_lowercase + " "
    vocabulary = {"<eos>": 0} | {c: i + 1 for i, c in enumerate(characters)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", pad_token="<eos>")


def make_model(sizes: Sizes, device: str) -> Any:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=sizes.vocabulary,
        n_positions=sizes.tokens,
        n_embd=sizes.width,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config).to(device)


def collate(sizes: Sizes):
    """Return a collator that fills every row to the same length, so that all batches cost alike."""

    def made(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = torch.zeros(len(rows), sizes.tokens, dtype=torch.long)
        labels = torch.full_like(ids, -100)
        for i, row in enumerate(rows):
            tokens = torch.as_tensor(row["input_ids"])
            ids[i, : len(tokens)] = labels[i, : len(tokens)] = tokens
        return {"input_ids": ids, "labels": labels}

    return made


def make_audit(folder: Path, tokenizer: Any, canaries: int, overhead: float | None) -> Audit:
    return Audit(
        TEMPLATE,
        out=folder,
        repeats=(1,),
        per_repeat=canaries,
        controls=100,
        references=256,
        tokenizer=tokenizer,
        overhead=overhead,
    )


def train(
    sizes: Sizes, data: list[Any], tokenizer: Any, args: Any, audit: Audit | None
) -> tuple[float, float]:
    """Train once; returns seconds by the clock and seconds of this process's CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=make_model(sizes, args.device),
            args=transformers.TrainingArguments(
                output_dir=folder,
                max_steps=args.steps or sizes.steps,
                per_device_train_batch_size=sizes.batch,
                learning_rate=1e-4,
                report_to=[],
                save_strategy="no",
                logging_steps=100,
                disable_tqdm=True,
                use_cpu=args.device == "cpu",
                bf16=args.device == "cuda" and args.precision == "bf16",
                dataloader_pin_memory=args.device == "cuda",
            ),
            train_dataset=data,
            data_collator=collate(sizes),
            processing_class=tokenizer,
            callbacks=[] if audit is None else [audit.callback()],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        wait(args.device)
        began, used = time.perf_counter(), time.process_time()
        trainer.train()
        wait(args.device)
        taken = time.perf_counter() - began, time.process_time() - used
    side = "without" if audit is None else "with"
    print(f"  {side:<8}{taken[0]:8.2f} s, {taken[1]:8.2f} s of CPU time", flush=True)
    return taken


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def training_table(sizes: Sizes, args: Any) -> None:
    tokenizer = character_tokenizer()
    rng = np.random.default_rng(0)
    wanted = (args.steps or sizes.steps) * sizes.batch
    plain = [
        {"input_ids": rng.integers(1, len(tokenizer), sizes.tokens).tolist()}
        for _ in range(max(sizes.batch, wanted - args.canaries))
    ]
    without, with_it, scorings = [], [], []
    overhead = None
    with tempfile.TemporaryDirectory() as folder:
        warm = make_audit(Path(folder) / "warm", tokenizer, args.canaries, None)
        data = warm.prepare(plain)
        train(sizes, data, tokenizer, argparse.Namespace(**{**vars(args), "steps": 20}), warm)
        for number in range(args.rounds or sizes.rounds):
            audit = make_audit(
                Path(folder) / str(number), tokenizer, args.canaries, args.overhead or None
            )
            audit.prepare(plain)
            sides = [(without, None), (with_it, audit)]
            for times, side in sides if number % 2 else sides[::-1]:
                times.append(train(sizes, data, tokenizer, args, side))
            overhead = audit.overhead_so_far
            scorings.append(overhead.scoring_seconds / overhead.scored)
    ratios = [a / b for (a, _), (b, _) in zip(with_it, without, strict=True)]
    clock = [statistics.median(taken for taken, _ in side) for side in (without, with_it)]
    used = [statistics.median(taken for _, taken in side) for side in (without, with_it)]
    rows = [
        ("training without, s", f"{clock[0]:.2f}"),
        ("training with, s", f"{clock[1]:.2f}"),
        ("ratio of the medians", f"{clock[1] / clock[0]:.4f}"),
        ("ratio in CPU time", f"{used[1] / used[0]:.4f}"),
        ("ratios of the rounds", " ".join(f"{ratio:.4f}" for ratio in sorted(ratios))),
        ("checkpoints scored", str(overhead.scored)),
        ("checkpoints skipped", str(overhead.skipped)),
        ("one scoring, s", f"{statistics.median(scorings):.4f}"),
        (
            "all scorings / training without",
            f"{overhead.scoring_seconds / clock[0]:.4f}",
        ),
    ]
    for name, value in rows:
        print(f"  {name:<34}{value}")


def scored_rows(model: Any, canaries: int) -> list[Any]:
    """The rows that an audit scores."""
    with tempfile.TemporaryDirectory() as folder:
        audit = make_audit(Path(folder) / "audit", character_tokenizer(), canaries, None)
        audit.start(model, preflight=False)
        audit._training.watcher.detach()
        return audit._training.costs.rows


def scoring_table(sizes: Sizes, args: Any) -> None:
    model = make_model(sizes, args.device).eval()
    rows = scored_rows(model, args.canaries)
    autocast = args.device == "cuda" and args.precision == "bf16"

    def call(asked: Any, *, slow: bool = False) -> Any:
        def forward(model: Any, ids: torch.Tensor) -> Any:
            return model(input_ids=ids, use_cache=False)

        shortcuts = Shortcuts()

        def made() -> np.ndarray:
            with torch.autocast(args.device, torch.bfloat16, enabled=autocast):
                return score_rows(
                    asked,
                    rows,
                    vocabulary=sizes.vocabulary,
                    processes=Processes(),
                    forward=forward if slow else None,
                    shortcuts=shortcuts,
                )

        return made

    sides = {"plain model": call(model), "plain model, plain forward": call(model, slow=True)}
    try:
        import peft
    except ImportError:
        print("  peft is not installed: adapters were not measured")
    else:
        lora = peft.LoraConfig(
            task_type="CAUSAL_LM",
            r=8,
            target_modules=["c_attn", "c_proj", "c_fc"],
            fan_in_fan_out=True,
            init_lora_weights=False,
        )
        live = peft.get_peft_model(copy.deepcopy(model), lora)
        sides["live adapter"] = call(live)
        sides["its merged copy"] = call(copy.deepcopy(live).merge_and_unload())
        sides["live adapter, plain forward"] = call(live, slow=True)
    costs = {name: side() for name, side in sides.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(args.repeats):
        for name, side in sides.items():
            wait(args.device)
            began = time.perf_counter()
            side()
            times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    print(f"one scoring of {len(rows)} rows of {len(rows[0].ids)} tokens, median of {args.repeats}")
    for name, taken in medians.items():
        print(f"  {name:<34}{taken:.4f} s")
    for fast, slow in (
        ("plain model", "plain model, plain forward"),
        ("live adapter", "live adapter, plain forward"),
        ("live adapter", "its merged copy"),
    ):
        if fast in medians:
            print(
                f"  {fast} / {slow}: {medians[fast] / medians[slow]:.3f}, costs differ by at most "
                f"{np.abs(costs[fast] - costs[slow]).max():.1e} bits"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="bf16", choices=["bf16", "float32"], help="on a GPU")
    parser.add_argument("--canaries", type=int, default=1000)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--repeats", type=int, default=7, help="of one scoring")
    parser.add_argument("--overhead", type=float, default=0.0, help="the audit's budget; 0 for any")
    parser.add_argument("--only", choices=["training", "scoring"])
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    sizes = GPU if args.device == "cuda" else CPU
    where = torch.cuda.get_device_name() if args.device == "cuda" else platform.processor() or "CPU"
    precision = args.precision if args.device == "cuda" else "float32"
    print(
        f"{where}, {torch.get_num_threads()} threads, torch {torch.__version__}, {precision}; "
        f"{sizes.layers} x {sizes.width}, batches of {sizes.batch} x {sizes.tokens} tokens, "
        f"{args.steps or sizes.steps} steps, {args.canaries} canaries"
    )
    if args.only != "scoring":
        training_table(sizes, args)
    if args.only != "training":
        scoring_table(sizes, args)


if __name__ == "__main__":
    main()
