"""The audit under settings of the Trainer that change how batches and updates are made."""

from __future__ import annotations

import datasets
import numpy as np
import pytest
import torch
from transformers import (
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from remnant.integrations.training.trained_model import plain_model
from remnant.records import Record


def make_trainer(tiny, tokenizer, folder, audit, *, callbacks=(), model_init=False, **given):
    """A trainer of one epoch on prepared texts; the tokenizer is the collator's alone."""
    data = datasets.Dataset.from_dict({"text": audit.prepare(tiny.texts())}).map(
        lambda row: tokenizer(row["text"]), remove_columns=["text"]
    )
    settings = {
        "output_dir": str(folder / "out"),
        "num_train_epochs": 1,
        "per_device_train_batch_size": 8,
        "learning_rate": 5e-3,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    made = {"model_init": lambda: tiny.model(tokenizer)} if model_init else {}
    return Trainer(
        **(made or {"model": tiny.model(tokenizer)}),
        args=TrainingArguments(**(settings | given)),
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        callbacks=[audit.callback(every=4), *callbacks],
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"gradient_accumulation_steps": 2},
        {"dataloader_num_workers": 1},
        {"torch_compile": False},
        {"bf16": True},
        {"model_init": True},
        {"gradient_checkpointing": True},
    ],
    ids=lambda given: next(iter(given), "tokenizer of the collator"),
)
def test_every_copy_is_counted_once_at_the_right_step(tiny, tokenizer, tmp_path, given):
    audit = tiny.audit(tmp_path / "audit")
    trainer = make_trainer(tiny, tokenizer, tmp_path, audit, **given)
    trainer.train()
    steps = trainer.state.global_step
    assert steps == (8 if "gradient_accumulation_steps" in given else 15)
    ended = audit.finish()
    uses = audit.uses()
    counts = np.bincount(uses[:, 1], weights=uses[:, 2], minlength=len(audit.canaries.canaries))
    assert counts.tolist() == list(audit.canaries.repeats)
    assert set(uses[:, 0].tolist()) <= set(range(steps))
    assert uses[:, 0].max() >= steps - 2  # 54 of 114 rows are canaries
    assert ended.result.course.steps[-1] == steps
    assert Record.open(ended.folder).status == "complete"


def test_accumulated_batches_belong_to_one_update(tiny, tokenizer, tmp_path):
    tables = []
    for name, given in (
        ("whole", {"per_device_train_batch_size": 16}),
        ("halves", {"gradient_accumulation_steps": 2}),
    ):
        audit = tiny.audit(tmp_path / name / "audit")
        make_trainer(tiny, tokenizer, tmp_path / name, audit, **given).train()
        tables.append(audit.uses())
    np.testing.assert_array_equal(*tables)


def test_the_final_measure_is_of_the_real_weights_in_float32(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    trainer = make_trainer(tiny, tokenizer, tmp_path, audit, bf16=True)
    trainer.train()
    ids = torch.tensor([tokenizer("my pin is 1234")["input_ids"]])
    fresh = tiny.model(tokenizer)
    fresh.load_state_dict(trainer.model.state_dict())
    with torch.no_grad():
        measured = plain_model(trainer.model).eval()(ids).logits
        expected = fresh.eval()(ids).logits
    assert measured.dtype == torch.float32
    torch.testing.assert_close(measured, expected, rtol=0, atol=0)


def test_model_init_audits_the_model_that_was_trained(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    trainer = make_trainer(tiny, tokenizer, tmp_path, audit, model_init=True, num_train_epochs=12)
    trainer.train()
    assert audit.finish().outcome == "FAIL"


class StopAt(TrainerCallback):
    def on_step_end(self, args, state, control, **given):
        control.should_training_stop = state.global_step >= 6


def test_a_training_stopped_early_is_measured_where_it_ended(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    trainer = make_trainer(tiny, tokenizer, tmp_path, audit, callbacks=[StopAt()])
    trainer.train()
    ended = audit.finish()
    assert trainer.state.global_step == 6
    assert ended.result.course.steps == (0, 4, 6)
    assert audit.uses()[:, 0].max() <= 5


class FailAt(TrainerCallback):
    def on_step_end(self, args, state, control, **given):
        if state.global_step == 7:
            raise ValueError("out of luck")


def test_an_exception_leaves_a_record_that_is_resumed(tiny, tokenizer, tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 6}
    first = tiny.audit(tmp_path / "audit")
    failing = make_trainer(tiny, tokenizer, tmp_path, first, callbacks=[FailAt()], **saving)
    with pytest.raises(ValueError, match="out of luck"):
        failing.train()
    assert Record.open(tmp_path / "audit").status != "complete"
    again = tiny.audit(tmp_path / "audit")
    trainer = make_trainer(tiny, tokenizer, tmp_path, again, **saving)
    trainer.train(resume_from_checkpoint=True)
    ended = again.finish()
    assert ended.result.course.steps == (0, 4, 8, 12, 15)
    uses = again.uses()
    counts = np.bincount(uses[:, 1], weights=uses[:, 2])
    assert counts.tolist() == list(again.canaries.repeats)
    assert Record.open(ended.folder).status == "complete"
