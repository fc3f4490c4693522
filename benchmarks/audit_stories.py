"""A two-file audit of a real model: stories260k, fine-tuned on passages of a real text.

    python examples/convert_stories260k.py --source FOLDER --out STORIES
    python benchmarks/audit_stories.py --model STORIES --text FILE --out FOLDER

``FILE`` is any text with a passage a line, such as the King James Bible. Of a random set of
passages one half is seen, the other held out. The model is trained on the seen half for
``--epochs`` passes with AdamW. Then ``audit_texts`` compares the two halves in the fine-tuned
model, with the untouched one as reference, and in the untouched one alone. At last ten passages are
trained on 80 times more: they must come out verbatim of that model, and not of the reference.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from remnant import audit_texts


def passages(path: Path, count: int) -> list[str]:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    rows = list(dict.fromkeys(line for line in lines if 60 <= len(line) <= 400))
    random.Random(0).shuffle(rows)
    return rows[: 2 * count]


def fine_tune(model: Any, tokenizer: Any, rows: list[str], *, epochs: int, rate: float) -> None:
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    ids = sorted((tokenizer(row)["input_ids"][:250] for row in rows), key=len)
    batches = [ids[i : i + 16] for i in range(0, len(ids), 16)]
    model.train()
    for _ in range(epochs):
        random.Random(len(batches)).shuffle(batches)
        for batch in batches:
            width = max(map(len, batch))
            padded = torch.tensor([row + [0] * (width - len(row)) for row in batch])
            labels = torch.tensor([row + [-100] * (width - len(row)) for row in batch])
            mask = (labels >= 0).long()
            model(input_ids=padded, attention_mask=mask, labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()


def show(name: str, ended: Any, seconds: float) -> None:
    print(f"{name} ({seconds:.0f} s): {ended.outcome}: {ended.sentence}")
    print(f"  AUC {ended.auc.value:.3f} [{ended.auc.low:.3f}, {ended.auc.high:.3f}], ", end="")
    print(f"blind {ended.blind_auc.value:.3f}")
    aucs = (f"{row.name} {row.auc.value:.3f}" for row in ended.result.attacks.rows)
    print(f"  AUC of each attack: {', '.join(aucs)}")
    for row in getattr(ended.result.verbatim, "rows", ()):
        print(f"  {row.half}+{row.half} {row.side}: {row.rows} rows, greedy {row.greedy}, ", end="")
        print(f"sampled {row.sampled}, not of the reference {row.beyond}")


def audited(name: str, folder: Path, **given: Any) -> None:
    began = time.perf_counter()
    ended = audit_texts(folder, rng=np.random.default_rng(0), **given)
    show(name, ended, time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-3)
    given = parser.parse_args()
    rows = passages(given.text, given.passages)
    seen, unseen = rows[: given.passages], rows[given.passages :]
    given.out.mkdir(parents=True, exist_ok=True)
    for name, side in (("seen", seen), ("unseen", unseen)):
        lines = "".join(json.dumps({"text": row}) + "\n" for row in side)
        (given.out / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    model = AutoModelForCausalLM.from_pretrained(given.model)
    fine_tune(model, tokenizer, seen, epochs=given.epochs, rate=given.rate)
    model.save_pretrained(given.out / "tuned")
    tokenizer.save_pretrained(given.out / "tuned")
    files = {"seen": given.out / "seen.jsonl", "unseen": given.out / "unseen.jsonl"}
    audited("fine-tuned", given.out / "tuned", reference_model=given.model, limit=0.6, **files)
    audited("untouched", given.model, **files)
    planted = sorted(seen, key=len)[-10:]
    fine_tune(model, tokenizer, planted * 40, epochs=2, rate=given.rate)
    model.save_pretrained(given.out / "planted")
    tokenizer.save_pretrained(given.out / "planted")
    audited("ten passages 80 times", given.out / "planted", reference_model=given.model, **files)


if __name__ == "__main__":
    main()
