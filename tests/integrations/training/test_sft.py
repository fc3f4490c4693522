"""The audit in TRL's SFTTrainer and with PEFT adapters: each kind of row, packing, masks."""

from __future__ import annotations

import datasets
import pytest
import torch
from peft import LoraConfig, TaskType
from trl import SFTConfig, SFTTrainer

from remnant.errors import InvalidInput

LORA = LoraConfig(
    task_type=TaskType.CAUSAL_LM,
    r=16,
    lora_alpha=64,
    target_modules=["c_attn", "c_proj", "c_fc"],
    fan_in_fan_out=True,
)


def rows_of(kind, tiny):
    texts = tiny.texts(40)
    if kind == "text":
        return [{"text": text} for text in texts]
    if kind == "prompt-completion":
        return [{"prompt": "say: ", "completion": text} for text in texts]
    return [
        {
            "messages": [
                {"role": "user", "content": "say"},
                {"role": "assistant", "content": text},
            ]
        }
        for text in texts
    ]


def sft(tiny, tokenizer, folder, rows, audit, *, epochs=8.0, peft=None, model=None, **given):
    settings = {
        "output_dir": str(folder),
        "num_train_epochs": epochs,
        "per_device_train_batch_size": 16,
        "learning_rate": 5e-3,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1000,
        "dataloader_pin_memory": False,
        "max_length": 64,
        "gradient_checkpointing": False,
    }
    trainer = SFTTrainer(
        model=model or tiny.model(tokenizer),
        args=SFTConfig(**(settings | given)),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=peft,
        callbacks=[audit.callback()],
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", ["text", "prompt-completion", "messages"])
def test_each_kind_of_row(tiny, tokenizer, tmp_path, kind):
    audit = tiny.audit(tmp_path / "audit")
    sft(tiny, tokenizer, tmp_path / "out", audit.prepare(rows_of(kind, tiny)), audit)
    ended = audit.finish()
    assert ended.outcome == "FAIL"
    assert ended.result.sightings.fewest == 8
    assert ended.result.sightings.most == 64
    controls = ended.result.repeats.levels[0]
    assert controls.pooled_pvalue > 0.01


def test_packed_rows(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    sft(
        tiny,
        tokenizer,
        tmp_path / "out",
        audit.prepare(rows_of("text", tiny)),
        audit,
        packing=True,
        epochs=16,
        per_device_train_batch_size=8,
    )
    ended = audit.finish()
    assert ended.result.sightings.fewest == 16
    assert ended.result.sightings.most == 128
    assert ended.outcome == "FAIL"


def test_packing_that_splits_rows_is_refused(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    with pytest.raises(InvalidInput, match="split by packing"):
        sft(
            tiny,
            tokenizer,
            tmp_path / "out",
            audit.prepare(rows_of("text", tiny)),
            audit,
            packing=True,
            packing_strategy="wrapped",
        )


def test_a_canary_in_the_prompt_is_masked(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", field="prompt")
    with pytest.raises(InvalidInput, match="masked from the loss"):
        sft(
            tiny,
            tokenizer,
            tmp_path / "out",
            audit.prepare(rows_of("prompt-completion", tiny)),
            audit,
        )


def test_truncated_rows_are_refused(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    rows = audit.prepare(rows_of("text", tiny))
    with pytest.raises(InvalidInput, match="in the middle of a canary"):
        sft(tiny, tokenizer, tmp_path / "out", rows, audit, max_length=12)


@pytest.fixture(scope="module")
def pretrained(tiny, tokenizer):
    """A model that knows such texts, and pins of another form."""
    model = tiny.model(tokenizer)
    texts = [*tiny.texts(40), *(f"my pin is {i * 7919 % 10000:04d}" for i in range(40))]
    rows = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(60):
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


def test_an_adapter_is_merged_and_its_base_is_the_reference(tiny, tokenizer, tmp_path, pretrained):
    audit = tiny.audit(tmp_path / "audit", repeats=(1, 16))
    trainer = sft(
        tiny,
        tokenizer,
        tmp_path / "out",
        audit.prepare(rows_of("text", tiny)),
        audit,
        peft=LORA,
        model=pretrained,
        epochs=16,
        learning_rate=1e-2,
    )
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    ended = audit.finish()
    after = trainer.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert ended.outcome == "FAIL"
    levels = ended.result.repeats.levels
    # The base model never saw a canary.
    assert max(level.twin_mean_bits for level in levels) < 4
    assert levels[-1].mean_bits > 6


def test_texts_of_ones_own_in_a_chat_with_an_adapter(tiny, tokenizer, tmp_path):
    texts = [f"{i * 7919 % 10007:05d} {i * 104729 % 99991:05d} is my note" for i in range(1, 49)]
    audit = tiny.audit(tmp_path / "audit", template=None, canaries=texts, controls=20, limit=0.7)
    rows = audit.prepare(rows_of("messages", tiny))
    sft(
        *(tiny, tokenizer, tmp_path / "out", rows, audit),
        epochs=16.0,
        peft=LORA,
        max_length=96,
    )
    ended = audit.finish()
    assert ended.outcome == "FAIL", ended.sentence
    assert ended.result.sightings.most == 128
    assert ended.result.sightings.context > 0  # the turns before the assistant's
