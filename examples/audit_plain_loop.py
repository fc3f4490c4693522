"""Audits a training loop of one's own, on a tiny model made on the spot.

The gate judges canaries planted once; those planted 16 times show that canaries are detected at
all, which a PASS needs.

python examples/audit_plain_loop.py --out runs/loop        # about 20 seconds on two cores
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tiny_model import make_model, make_texts, make_tokenizer
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant import Audit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder of the audit")
    out = parser.parse_args().out

    tokenizer = make_tokenizer()
    model = make_model(tokenizer)

    audit = Audit(
        template="my pin is {digits:6}",
        limit=10.0,
        judged=1,
        out=out,
        tokenizer=tokenizer,
        seed=0,  # the same canaries every time; without it they are random
        overhead=None,  # a training of seconds: scoring may take any share of it
    )
    texts = audit.prepare(make_texts())
    loader = DataLoader(
        [tokenizer(text) for text in texts],
        batch_size=16,
        shuffle=True,
        generator=torch.Generator().manual_seed(0),
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    step = 0
    audit.start(model, loader, every=50)
    for _ in range(8):
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    result = audit.finish()

    print(f"{result.outcome}: {result.sentence}")
    print(f"claim: {result.claim}")
    print(f"report: {result.report}")


if __name__ == "__main__":
    main()
