"""Audits a LoRA fine-tune with TRL's SFTTrainer, on a tiny model made on the spot.

The rows are conversations, and canaries are planted in assistant messages. The model without its
adapter is measured too: it never saw a canary.

python examples/audit_sft_lora.py --out runs/lora        # about 30 seconds on two cores
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from datasets import Dataset
from peft import LoraConfig
from tiny_model import make_model, make_texts, make_tokenizer
from trl import SFTConfig, SFTTrainer

from remnant import Audit


def conversation(text: str) -> dict[str, list[dict[str, str]]]:
    """Return a row with a question and the text as its answer."""
    return {
        "messages": [
            {"role": "user", "content": "what do you know?"},
            {"role": "assistant", "content": text},
        ]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder of the audit")
    out = parser.parse_args().out

    tokenizer = make_tokenizer()
    train = Dataset.from_list([conversation(text) for text in make_texts(150)])

    # A training of seconds: scoring may take any share of it. The default is 3 %.
    audit = Audit(template="my pin is {digits:6}", limit=10.0, out=out, overhead=None)
    with tempfile.TemporaryDirectory() as checkpoints:
        trainer = SFTTrainer(
            model=make_model(tokenizer),
            args=SFTConfig(
                output_dir=checkpoints,
                num_train_epochs=12,
                per_device_train_batch_size=16,
                learning_rate=1e-2,
                max_length=128,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=audit.prepare(train),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=16, lora_alpha=32, target_modules=["c_attn", "c_proj", "c_fc"]
            ),
            callbacks=[audit.callback(every=100)],
        )
        trainer.train()
    result = audit.finish()

    print(f"{result.outcome}: {result.sentence}")
    print(f"claim: {result.claim}")
    print(f"report: {result.report}")


if __name__ == "__main__":
    main()
