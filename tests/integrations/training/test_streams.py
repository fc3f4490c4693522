"""Canaries of a stream that do not arrive in the batches stop the training after some steps."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainingArguments

from remnant.errors import InvalidInput, RemnantWarning


class Endless(IterableDataset):
    def __iter__(self):
        number = 0
        while True:
            yield {"text": f"the fox number {number} jumps"}
            number += 1


class Collator:
    """Makes tokens of texts; ``longest`` cuts them off."""

    def __init__(self, tokenizer, longest):
        self.tokenizer, self.longest = tokenizer, longest

    def __call__(self, rows):
        kept = [self.tokenizer(row["text"])["input_ids"][: self.longest] for row in rows]
        width = max(map(len, kept))
        ids = torch.tensor([ids + [0] * (width - len(ids)) for ids in kept])
        return {"input_ids": ids, "labels": ids}


def stream_training(tiny, tokenizer, folder, *, longest, steps, every=None, **given):
    audit = tiny.audit(folder / "audit")
    trainer = Trainer(
        model=tiny.model(tokenizer),
        args=TrainingArguments(
            output_dir=str(folder / "out"),
            max_steps=steps,
            per_device_train_batch_size=8,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            **given,
        ),
        train_dataset=audit.prepare(Endless()),
        data_collator=Collator(tokenizer, longest),
        callbacks=[audit.callback(every=every)],
    )
    trainer.train()
    return audit, trainer


def test_canaries_that_are_cut_off_stop_the_training(tiny, tokenizer, tmp_path):
    with pytest.raises(
        InvalidInput,
        match=r"None of the canaries is in the batches of 50 steps, although the stream has "
        r"yielded \d+ copies\. Train on what audit\.prepare",
    ):
        stream_training(tiny, tokenizer, tmp_path, longest=12, steps=400)


def test_canaries_that_arrive_do_not(tiny, tokenizer, tmp_path):
    audit, trainer = stream_training(tiny, tokenizer, tmp_path, longest=60, steps=70)
    assert trainer.state.global_step == 70
    assert len(audit.uses())


def test_a_training_shorter_than_the_patience_ends(tiny, tokenizer, tmp_path):
    audit, _ = stream_training(tiny, tokenizer, tmp_path, longest=12, steps=30)
    assert audit.finish().outcome == "INCONCLUSIVE"


def test_with_workers_there_is_one_warning(tiny, tokenizer, tmp_path):
    with pytest.warns(RemnantWarning, match="None of the canaries was in the batches up") as given:
        _, trainer = stream_training(
            tiny, tokenizer, tmp_path, longest=12, steps=60, every=25, dataloader_num_workers=1
        )
    assert len([w for w in given if issubclass(w.category, RemnantWarning)]) == 1
    assert trainer.state.global_step == 60


class Asking(Collator):
    """Puts a question before each text, as a chat does."""

    def __call__(self, rows):
        return super().__call__([{"text": f"and what? {row['text']}"} for row in rows])


@pytest.mark.parametrize("own", [False, True])
def test_canaries_are_scored_after_what_comes_before_them_in_batches(
    tiny, tokenizer, tmp_path, own
):
    """A stream cannot be looked at before the training; what is learnt depends on the context."""
    given = {"tokenizer": tokenizer}
    if own:
        texts = [f"{chr(97 + i)}qz is word {i}{chr(97 + i)}" for i in range(24)]
        given |= {"template": None, "canaries": texts, "controls": 12, "limit": 0.9}
    audit = tiny.audit(tmp_path / "audit", **given)
    collate = Asking(tokenizer, 80)
    rows = iter(audit.prepare(Endless()))
    model = tiny.model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    audit.start(model, steps=40)
    for step in range(40):
        batch = collate([next(rows) for _ in range(16)])
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        audit.step(model, step + 1)
    ended = audit.finish(method="sampled", references=50)
    skipped = 0 if own else len("m")  # the first token of all canaries of a template
    assert ended.result.sightings.context == len("and what? ") + skipped
