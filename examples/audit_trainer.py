"""Audits a fine-tune with the Hugging Face Trainer, on a tiny model made on the spot.

python examples/audit_trainer.py --out runs/tune        # about 20 seconds on two cores
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from datasets import Dataset
from tiny_model import make_model, make_texts, make_tokenizer
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

from remnant import Audit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder of the audit")
    out = parser.parse_args().out

    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    train = Dataset.from_dict({"text": make_texts()})

    # A training of seconds: scoring may take any share of it. The default is 3 %.
    audit = Audit(template="my pin is {digits:6}", limit=10.0, out=out, overhead=None)
    train = audit.prepare(train)
    train = train.map(lambda row: tokenizer(row["text"]), remove_columns=["text"])
    with tempfile.TemporaryDirectory() as checkpoints:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=checkpoints,
                num_train_epochs=8,
                per_device_train_batch_size=16,
                learning_rate=3e-3,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=train,
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
            processing_class=tokenizer,
            callbacks=[audit.callback(every=50)],
        )
        trainer.train()
    result = audit.finish()

    print(f"{result.outcome}: {result.sentence}")
    print(f"claim: {result.claim}")
    print(f"report: {result.report}")


if __name__ == "__main__":
    main()
