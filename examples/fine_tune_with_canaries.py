"""Fine-tunes a Hugging Face causal language model on a text file: a plain loop, set by its seed.

python examples/fine_tune_with_canaries.py --model FOLDER --text FILE --out FOLDER --steps 250
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def read_windows(path: Path, tokenizer, *, length: int) -> torch.Tensor:
    """The whole text as one row of tokens, cut into windows; a shorter rest is left out."""
    if not path.is_file():
        raise SystemExit(f"--text {path} is not a file.")
    text = path.read_text(encoding="utf-8")
    ids = tokenizer(text, return_tensors="pt", verbose=False)["input_ids"][0]
    if len(ids) < length:
        raise SystemExit(f"--text {path} has {len(ids)} tokens, and one window takes {length}.")
    return ids[: len(ids) // length * length].view(-1, length)


def batches(rows: int, *, size: int, steps: int, seed: int):
    """Rows in a new random order every epoch."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.int64)
    for _ in range(steps):
        while len(order) < size:
            order = torch.cat([order, torch.randperm(rows, generator=generator)])
        yield order[:size]
        order = order[size:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="the folder to start from")
    parser.add_argument("--text", type=Path, required=True, help="a text file in UTF-8")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--steps", type=int, default=250, help="updates (250)")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of AdamW (0.001)")
    parser.add_argument("--batch", type=int, default=16, help="windows an update (16)")
    parser.add_argument("--window", type=int, default=128, help="tokens of a window (128)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (cpu)")
    parser.add_argument("--seed", type=int, default=0, help="draws the order and the dropout (0)")
    given = parser.parse_args()

    torch.manual_seed(given.seed)  # of the dropout, where the model has any
    tokenizer = AutoTokenizer.from_pretrained(given.model, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        given.model, dtype=torch.float32, local_files_only=True
    ).to(given.device)
    windows = read_windows(given.text, tokenizer, length=given.window)
    epochs = given.steps * given.batch / len(windows)
    print(f"{len(windows)} windows of {given.window} tokens, each seen {epochs:.1f} times")

    optimizer = torch.optim.AdamW(model.parameters(), lr=given.lr)
    model.train()
    losses: list[float] = []  # since the last line was printed
    order = batches(len(windows), size=given.batch, steps=given.steps, seed=given.seed)
    for step, rows in enumerate(order, start=1):
        ids = windows[rows].to(given.device)
        loss = model(input_ids=ids, labels=ids).loss  # the model shifts the labels itself
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == given.steps:
            print(f"step {step:4d}  loss {sum(losses) / len(losses):.3f}")
            losses = []

    model.save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)
    print(f"wrote {given.out}")


if __name__ == "__main__":
    main()
