"""Remnant's audit of a LoRA fine-tune beside memaudit's, on one tiny model and its data.

    pip install --no-deps memaudit==0.2.0
    python benchmarks/memaudit_comparison.py
    python benchmarks/memaudit_comparison.py --learning-rate 1e-12      # nothing is learnt

The fine-tune runs three times in one process: without an audit, with memaudit as its README shows
it, and with ``remnant.Audit`` as ours does. The training data, the model, the seeds and the number
of epochs are the same; each tool plants its own default canaries, so that the number of rows
differs and is printed. Seconds are those of ``trainer.train()`` and of the whole audit. What a tool
leaves in ``output_dir`` is searched for its own secrets. The result is printed as JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

from remnant import Audit

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from tiny_model import make_model, make_texts, make_tokenizer

EPOCHS = 8


def make_trainer(output_dir: Path, train: Any, learning_rate: float, callbacks: list[Any]) -> Any:
    """Return a LoRA fine-tune of the tiny model."""
    tokenizer = make_tokenizer()
    return SFTTrainer(
        model=make_model(tokenizer),
        args=SFTConfig(
            output_dir=str(output_dir),
            num_train_epochs=EPOCHS,
            per_device_train_batch_size=16,
            learning_rate=learning_rate,
            max_length=128,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
        ),
        train_dataset=train,
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=16,
            lora_alpha=32,
            target_modules=["c_attn", "c_proj", "c_fc"],
            task_type="CAUSAL_LM",
        ),
        callbacks=callbacks,
    )


def without_an_audit(folder: Path, learning_rate: float) -> dict[str, Any]:
    train = Dataset.from_dict({"text": make_texts()})
    trainer = make_trainer(folder / "model", train, learning_rate, [])
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    return {"rows": len(train), "train_seconds": seconds, "audit_seconds": 0.0}


def with_memaudit(folder: Path, learning_rate: float) -> dict[str, Any]:
    """The code of memaudit's README."""
    from memaudit import MemorizationAuditCallback, generate_canaries, inject

    train = Dataset.from_dict({"text": make_texts()})
    began = time.perf_counter()
    canaries = generate_canaries(
        make_tokenizer(), n=32, n_controls=100, family="high_ppl", repetitions=(1, 4, 16), seed=0
    )
    train, manifest = inject(train, canaries, fmt="auto", seed=0)
    prepared = time.perf_counter() - began
    trainer = make_trainer(folder / "model", train, learning_rate, [])
    callback = MemorizationAuditCallback(
        trainer=trainer, manifest=manifest, real_sample=64, ref="auto"
    )
    measured = timed(callback, "on_train_begin", "on_train_end")
    trainer.add_callback(callback)
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    report = json.loads((folder / "model" / "memaudit-report.json").read_text())
    membership = report["membership"]
    return {
        "rows": len(train),
        "train_seconds": seconds - sum(measured),
        "audit_seconds": prepared + sum(measured),
        "says": {
            name: membership.get(name)
            for name in ("tpr_at_1pct_fpr", "auc", "headline_valid", "by_repetition")
        },
        "regurgitation": report["regurgitation"].get("overall"),
        "files_with_secrets_in_output_dir": holding(
            folder / "model", [canary.secret for canary in canaries if is_inserted(canary)]
        ),
    }


def with_remnant(folder: Path, learning_rate: float) -> dict[str, Any]:
    """The code of our README."""
    train = Dataset.from_dict({"text": make_texts()})
    began = time.perf_counter()
    audit = Audit(template="my pin is {digits:6}", limit=10.0, out=folder / "audit")
    train = audit.prepare(train)
    prepared = time.perf_counter() - began
    callback = audit.callback()
    measured = timed(callback, "on_train_begin", "on_step_end", "on_train_end")
    trainer = make_trainer(folder / "model", train, learning_rate, [callback])
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    result = audit.finish()
    finished = time.perf_counter() - began
    exposure = result.result.exposure
    return {
        "rows": len(train),
        "train_seconds": seconds - sum(measured),
        "audit_seconds": prepared + sum(measured) + finished,
        "says": {
            "outcome": result.outcome,
            "sentence": result.sentence,
            "claim": result.claim,
            "exit_code": result.exit_code,
            "method": exposure.method,
            "mean_bits": {
                level.repeats: round(level.mean_bits, 2) for level in result.result.repeats.levels
            },
            "mean_bits_without_adapter": {
                level.repeats: round(level.twin_mean_bits, 2)
                for level in result.result.repeats.levels
                if level.twin_mean_bits is not None
            },
        },
        "files_with_secrets_in_output_dir": holding(
            folder / "model", [canary.secret for canary in audit.canaries.canaries]
        ),
    }


def timed(callback: Any, *names: str) -> list[float]:
    """Measure the calls of a callback's methods; the list grows by one number a call."""
    seconds: list[float] = []

    def measuring(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **given: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*args, **given)
            finally:
                seconds.append(time.perf_counter() - began)

        return run

    for name in names:
        setattr(callback, name, measuring(getattr(callback, name)))
    return seconds


def is_inserted(canary: Any) -> bool:
    """Whether memaudit counts a canary among those that it may plant."""
    return bool(canary.role != "control")


def holding(folder: Path, secrets: list[str]) -> list[str]:
    """Names of the files that hold a secret in plain text, as text or inside JSON."""
    written = [secret.encode() for secret in secrets]
    written += [json.dumps(secret)[1:-1].encode() for secret in secrets]
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in written)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="keep what was written in this folder")
    parser.add_argument("--learning-rate", type=float, default=1e-2, help="of the fine-tune (0.01)")
    given = parser.parse_args()
    if importlib.util.find_spec("memaudit") is None:
        raise SystemExit("memaudit is not installed: pip install --no-deps memaudit==0.2.0")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        runs = (without_an_audit, with_memaudit, with_remnant)
        measured = {run.__name__: run(folder / run.__name__, given.learning_rate) for run in runs}
    print(json.dumps(measured, indent=2))


if __name__ == "__main__":
    main()
