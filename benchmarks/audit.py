"""What ``remnant audit`` costs beside plain forward passes of the same models, in one run.

    python benchmarks/audit.py                       # 2 000 texts, GPT-2 of 4 layers, 256 wide
    python benchmarks/audit.py --texts 10000
    python benchmarks/audit.py --device cuda --layers 12 --width 768 --texts 10000

**Cost.** Texts of 16 to 250 tokens, half of them seen. The floor is one forward pass of each of the
two models over all texts, sorted by length, without gradients, logits included. ``audit_texts``
reads both files, compares them, trains the blind baseline, and computes all attacks, the verbatim
windows and the intervals. Reading the models from disk is in neither. The two take turns, and the
least CPU time of each is kept (wall time on a GPU).

**Verbatim windows.** The same audit without them.

**Memory.** The largest resident size of a process that audits the texts, and of one that audits
four times as many; the models are the same.

Needs transformers and tokenizers. Random weights: what is remembered does not change the cost.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from remnant.integrations.membership import texts as audit
from remnant.integrations.membership.text_models import load_text_lm


def make_models(home: Path, *, layers: int, width: int, vocabulary: int) -> list[Path]:
    words = [f"w{number}" for number in range(vocabulary - 2)]
    tokens = {"<eos>": 0, "<unk>": 1} | {word: i + 2 for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="<unk>"))
    from tokenizers import pre_tokenizers

    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<eos>", unk_token="<unk>"
    )
    folders = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        config = GPT2Config(
            vocab_size=vocabulary,
            n_positions=256,
            n_embd=width,
            n_layer=layers,
            n_head=max(1, width // 64),
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=0,
        )
        folder = home / f"model-{seed}"
        GPT2LMHeadModel(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        folders.append(folder)
    return folders


def make_texts(home: Path, count: int, vocabulary: int) -> list[Path]:
    rng = random.Random(0)
    files = []
    for side in ("seen", "unseen"):
        rows = [
            " ".join(f"w{rng.randrange(vocabulary - 2)}" for _ in range(rng.randrange(16, 251)))
            for _ in range(count // 2)
        ]
        files.append(home / f"{side}-{count}.jsonl")
        files[-1].write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    return files


def forward_passes(loaded: list[Any], files: list[Path]) -> None:
    """One pass of each model over all texts, sorted by length: the floor."""
    rows = []
    for file in files:
        with file.open() as lines:
            rows += loaded[0].encode([json.loads(line)["text"] for line in lines])
    rows.sort(key=len)
    for model in loaded:
        first = 0
        limit = max(1, min(1 << 13, (1 << 28) // (4 * model.vocabulary)))
        with torch.no_grad():
            while first < len(rows):
                last = first + 1
                while last < len(rows) and (last + 1 - first) * len(rows[last]) <= limit:
                    last += 1
                width = len(rows[last - 1])
                batch = [row + [0] * (width - len(row)) for row in rows[first:last]]
                ids = torch.tensor(batch, device=model.device)
                mask = torch.tensor(
                    [[1] * len(row) + [0] * (width - len(row)) for row in rows[first:last]],
                    device=model.device,
                )
                model.logits(ids, mask)
                first = last


def run_audit(loaded: list[Any], folders: list[Path], files: list[Path]) -> None:
    by_folder = dict(zip(map(str, folders), loaded, strict=True))
    with mock.patch.object(audit, "load_text_lm", lambda folder, **_: by_folder[str(folder)]):
        audit.audit_texts(
            folders[0],
            seen=files[0],
            unseen=files[1],
            reference_model=folders[1],
            rng=np.random.default_rng(0),
        )


def timed(work: Any, device: str) -> float:
    clock = time.process_time if device == "cpu" else time.perf_counter
    began = clock()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - began


def cost(folders: list[Path], files: list[Path], rounds: int, device: str) -> None:
    loaded = [load_text_lm(folder, device=device) for folder in folders]
    floor, whole, without = [], [], []
    for _ in range(rounds):
        floor.append(timed(lambda: forward_passes(loaded, files), device))
        whole.append(timed(lambda: run_audit(loaded, folders, files), device))
        with mock.patch.object(audit, "HALVES", (10**6,)):  # no text has such a window
            without.append(timed(lambda: run_audit(loaded, folders, files), device))
    print(f"one forward pass of each model    {min(floor):8.1f} s")
    print(f"remnant audit                     {min(whole):8.1f} s  {min(whole) / min(floor):.2f}x")
    print(
        f"without verbatim windows          {min(without):8.1f} s  windows add "
        f"{min(whole) / min(without) - 1:+.1%}"
    )


def peak(folders: list[Path], files: list[Path]) -> int:
    """The largest resident size of a process that runs the audit, in MiB."""
    given = json.dumps([[str(path) for path in paths] for paths in (folders, files)])
    done = subprocess.run(
        [sys.executable, __file__, "--child", given], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1])


def child(given: str) -> None:
    folders, files = ([Path(path) for path in paths] for paths in json.loads(given))
    torch.set_num_threads(1)
    run_audit([load_text_lm(folder) for folder in folders], folders, files)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if given.device != "cpu" else platform.processor()
    print(f"{given.texts} texts, {given.layers} layers, {given.width} wide, {given.vocabulary} ")
    print(f"tokens of vocabulary; torch {torch.__version__}, {where or 'CPU'}, 1 thread")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        folders = make_models(
            home, layers=given.layers, width=given.width, vocabulary=given.vocabulary
        )
        cost(folders, make_texts(home, given.texts, given.vocabulary), given.rounds, given.device)
        if given.device == "cpu":
            few, many = max(100, given.texts // 8), max(400, given.texts // 2)
            sizes = [
                peak(folders, make_texts(home, count, given.vocabulary)) for count in (few, many)
            ]
            print(f"memory, {few} texts: {sizes[0]} MiB; {many} texts: {sizes[1]} MiB")


if __name__ == "__main__":
    main()
