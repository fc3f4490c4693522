"""The audit in a plain loop, with Accelerate and in Lightning."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant.errors import InvalidInput


def loader_of(rows, tokenizer, *, seed=0):
    made = [{"input_ids": tokenizer(row)["input_ids"]} for row in rows]
    return DataLoader(
        made,
        batch_size=16,
        shuffle=True,
        generator=torch.Generator().manual_seed(seed),
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )


def test_a_plain_loop(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer, every=20)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    model = tiny.model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    audit.start(model, loader)
    step = 0
    for _ in range(10):
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    ended = audit.finish()
    assert ended.outcome == "FAIL"
    assert ended.result.sightings.most == 80
    assert ended.result.course.steps == (0, 20, 40, 60, 80)


class Recurrent(torch.nn.Module):
    """A language model that is none of transformers'."""

    def __init__(self, vocabulary):
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(vocabulary, 48)
        self.rnn = torch.nn.GRU(48, 96, batch_first=True)
        self.out = torch.nn.Linear(96, vocabulary)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def test_a_model_of_ones_own(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    model = Recurrent(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    audit.start(model, loader, steps=120)
    step = 0
    for _ in range(15):
        for batch in loader:
            ids = batch["input_ids"]
            logits = model(ids)[:, :-1]
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]), batch["labels"][:, 1:].reshape(-1)
            )
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    ended = audit.finish(references=2000)
    assert ended.result.exposure.method == "sampled"
    assert ended.outcome == "FAIL"


def test_a_model_that_is_trained_in_evaluation_mode(tiny, tokenizer, tmp_path):
    # As Lightning does with a model that from_pretrained made.
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    model = tiny.model(tokenizer).eval()
    audit.start(model, loader)
    copies = 0
    for step, batch in enumerate(loader, 1):
        model(**batch).loss.backward()
        with torch.no_grad():
            model(**batch)  # an evaluation is not counted
        audit.step(model, step)
        copies = audit.uses()[:, 2].sum()
    assert copies == sum(audit.canaries.repeats)
    assert not model.training


def test_a_model_without_logits(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer)
    with pytest.raises(TypeError, match=r"no logits .* Pass Audit\(forward=\.\.\.\)"):
        audit.start(torch.nn.Embedding(len(tokenizer), 4).requires_grad_(True))


def test_accelerate(tiny, tokenizer, tmp_path):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer, every=20)
    model = tiny.model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    audit.start(model, loader)
    step = 0
    for _ in range(10):
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    assert audit.finish().outcome == "FAIL"


def fit_with_lightning(tiny, tokenizer, folder, loader, callback, *, epochs):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = tiny.model(tokenizer)

        def training_step(self, batch, _):
            return self.model(**batch).loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=5e-3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder / "root",
            callbacks=[callback],
        )
        trainer.fit(Module(), loader)


def test_lightning(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    callback = audit.lightning_callback(every=20)
    fit_with_lightning(tiny, tokenizer, tmp_path, loader, callback, epochs=10)
    ended = audit.finish()
    assert ended.outcome == "FAIL"
    assert ended.result.sightings.most == 80
    assert ended.result.course.steps == (0, 20, 40, 60, 80)


def staggered_in_lightning(tiny, tokenizer, folder, *, shuffle):
    audit = tiny.audit(
        folder / "audit",
        tokenizer=tokenizer,
        plan="staggered",
        windows=2,
        repeats=(40,),
        per_repeat=16,
        controls=16,
        limit=None,
    )
    made = [{"input_ids": tokenizer(row)["input_ids"]} for row in audit.prepare(tiny.texts(400))]
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    loader = DataLoader(made, batch_size=16, shuffle=shuffle, collate_fn=collate)
    callback = audit.lightning_callback(every=10)
    fit_with_lightning(tiny, tokenizer, folder, loader, callback, epochs=1)
    return audit.finish(references=500)


def test_a_staggered_plan_in_lightning(tiny, tokenizer, tmp_path):
    ended = staggered_in_lightning(tiny, tokenizer, tmp_path, shuffle=False)
    curves = ended.result.forgetting.curves
    assert [cohort.n for cohort in curves.cohorts] == [8, 8]
    assert ended.result.sightings.uses == 16 * 40
    assert curves.ends[0] <= curves.starts[1]


def test_a_staggered_plan_in_lightning_refuses_shuffled_data(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match="use_distributed_sampler=False"):
        staggered_in_lightning(tiny, tokenizer, tmp_path, shuffle=True)


def test_lightning_stops_before_the_first_step(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer)
    with pytest.raises(InvalidInput, match="None of the canaries"):
        audit.start(tiny.model(tokenizer), loader_of(tiny.texts(), tokenizer))
