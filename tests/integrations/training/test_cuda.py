"""The audit where the model is on a GPU: tokens are copied behind the training's back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import score_rows

pytestmark = pytest.mark.cuda


def trained(tiny, tokenizer, folder, device, *, audited):
    """Train the tiny model on texts with canaries; returns model and audit."""
    audit = tiny.audit(folder, tokenizer=tokenizer, every=20)
    rows = [{"input_ids": tokenizer(row)["input_ids"]} for row in audit.prepare(tiny.texts())]
    loader = DataLoader(
        rows,
        batch_size=16,
        shuffle=True,
        generator=torch.Generator().manual_seed(0),
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    model = tiny.model(tokenizer).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    if audited:
        audit.start(model, loader)
    step = 0
    for _ in range(10):
        for batch in loader:
            model(**{name: value.to(device) for name, value in batch.items()}).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if audited:
                audit.step(model, step)
    return model, audit


def test_an_overfit_model_fails_and_every_use_is_counted(tiny, tokenizer, tmp_path):
    _, audit = trained(tiny, tokenizer, tmp_path / "a", "cuda", audited=True)
    ended = audit.finish()
    assert ended.outcome == "FAIL"
    uses = [10 * repeats for repeats in audit.canaries.repeats]
    assert [canary.uses for canary in ended.result.exposure.canaries] == uses
    assert ended.result.repeats.levels[0].pooled_pvalue > 0.01


def test_the_audit_changes_no_weight(tiny, tokenizer, tmp_path):
    torch.use_deterministic_algorithms(False)
    with_it, _ = trained(tiny, tokenizer, tmp_path / "a", "cuda", audited=True)
    without, _ = trained(tiny, tokenizer, tmp_path / "b", "cuda", audited=False)
    pairs = zip(with_it.parameters(), without.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_costs_are_those_of_the_cpu(tiny, tokenizer, tmp_path):
    model, audit = trained(tiny, tokenizer, tmp_path / "a", "cuda", audited=True)
    rows = audit._training.costs.rows
    here = score_rows(model, rows, vocabulary=80, processes=Processes())
    there = score_rows(
        model.cpu(), audit._training.costs.rows, vocabulary=80, processes=Processes()
    )
    assert np.abs(here - there).max() < 1e-2
