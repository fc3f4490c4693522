"""Audits a training with Lightning, on a tiny model made on the spot.

python examples/audit_lightning.py --out runs/lightning        # about 20 seconds on two cores
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import lightning
import torch
from tiny_model import make_model, make_texts, make_tokenizer
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant import Audit


class LanguageModel(lightning.LightningModule):
    """A causal language model; the audit finds the attributes ``model`` and ``tokenizer``."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = make_tokenizer()
        self.model = make_model(self.tokenizer)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        return self.model(**batch).loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder of the audit")
    out = parser.parse_args().out

    module = LanguageModel()
    # A training of seconds: scoring may take any share of it. The default is 3 %.
    audit = Audit(template="my pin is {digits:6}", limit=10.0, out=out, overhead=None)
    texts = audit.prepare(make_texts())
    loader = DataLoader(
        [module.tokenizer(text) for text in texts],
        batch_size=16,
        shuffle=True,
        collate_fn=DataCollatorForLanguageModeling(module.tokenizer, mlm=False),
    )
    with tempfile.TemporaryDirectory() as logs:
        trainer = lightning.Trainer(
            max_epochs=8,
            accelerator="cpu",
            default_root_dir=logs,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            callbacks=[audit.lightning_callback(every=50)],
        )
        trainer.fit(module, loader)
    result = audit.finish()

    print(f"{result.outcome}: {result.sentence}")
    print(f"claim: {result.claim}")
    print(f"report: {result.report}")


if __name__ == "__main__":
    main()
