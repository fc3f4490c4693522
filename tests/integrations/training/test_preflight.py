"""A canary that cannot be learnt stops the training before its first step, in one sentence."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling

from remnant.errors import InvalidInput


def loader_of(rows, tokenizer, *, longest=None, collate=None):
    """A loader of tokenised texts, as a plain loop has it."""
    made = [
        {
            "input_ids": tokenizer(row, truncation=longest is not None, max_length=longest)[
                "input_ids"
            ]
        }
        for row in rows
    ]
    return DataLoader(
        made,
        batch_size=4,
        collate_fn=collate or DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )


def start(audit, tiny, tokenizer, loader, *, model=None):
    audit.start(model or tiny.model(tokenizer), loader, tokenizer=tokenizer)


def test_sound_data_passes_and_leaves_random_numbers_alone(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer)
    model = tiny.model(tokenizer)
    before = torch.get_rng_state()
    audit.start(model, loader, tokenizer=tokenizer)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training


def test_data_that_was_not_prepared(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    audit.prepare(tiny.texts())
    with pytest.raises(InvalidInput, match=r"None of the canaries is in the training data\. Train"):
        start(audit, tiny, tokenizer, loader_of(tiny.texts(), tokenizer))
    assert not (tmp_path / "a").exists()  # nothing half-written


def test_truncated(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer, longest=12)
    with pytest.raises(InvalidInput, match="54 rows end in the middle of a canary, so they were"):
        start(audit, tiny, tokenizer, loader)


def test_truncated_by_the_collator(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")

    def collate(rows):
        return {"input_ids": torch.tensor([row["input_ids"][:12] for row in rows])}

    loader = loader_of(audit.prepare(tiny.texts()), tokenizer, collate=collate)
    with pytest.raises(InvalidInput, match="54 of 54 rows with a canary lose it"):
        start(audit, tiny, tokenizer, loader)


def test_split_by_packing(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    flat = [
        token
        for text in audit.prepare(tiny.texts())
        for token in [*tokenizer(text)["input_ids"], 0]
    ]
    rows = [{"input_ids": flat[i : i + 50]} for i in range(0, len(flat), 50)]
    loader = DataLoader(rows, collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False))
    with pytest.raises(InvalidInput, match="truncated or split by packing"):
        start(audit, tiny, tokenizer, loader)


def test_masked_from_the_loss(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")

    def collate(rows):
        ids = torch.tensor([row["input_ids"] for row in rows])
        return {"input_ids": ids, "labels": torch.full_like(ids, -100)}

    loader = loader_of(audit.prepare(tiny.texts()), tokenizer, collate=collate)
    with pytest.raises(InvalidInput, match="masked from the loss in 54 of 54 rows"):
        start(audit, tiny, tokenizer, loader)


def test_a_masked_prompt_before_the_canary_is_fine(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")

    def collate(rows):
        ids = torch.tensor([row["input_ids"] for row in rows])
        labels = ids.clone()
        labels[:, :5] = -100
        return {"input_ids": ids, "labels": labels}

    start(
        audit, tiny, tokenizer, loader_of(audit.prepare(tiny.texts()), tokenizer, collate=collate)
    )


def test_duplicates_removed(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    rows = list(dict.fromkeys(audit.prepare(tiny.texts())))
    with pytest.raises(InvalidInput, match=r"42 of 54 planted copies .* removed as duplicates"):
        start(audit, tiny, tokenizer, loader_of(rows, tokenizer))


def test_filtered_away(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    rows = [text for text in audit.prepare(tiny.texts()) if "8" not in text]
    with pytest.raises(InvalidInput, match="rows were filtered away"):
        start(audit, tiny, tokenizer, loader_of(rows, tokenizer))


def test_a_control_in_the_data(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    rows = [*audit.prepare(tiny.texts()), audit.canaries.controls[0].text]
    with pytest.raises(InvalidInput, match="1 of 12 controls are in the training data") as fault:
        start(audit, tiny, tokenizer, loader_of(rows, tokenizer))
    assert audit.canaries.controls[0].secret not in str(fault.value)


def test_a_tokenizer_that_does_not_know_the_secret(tiny, tmp_path):
    letters = tiny.tokenizer(unknown=True, characters="abcdefghijklmnopqrstuvwxyz ")
    audit = tiny.audit(tmp_path / "a")
    with pytest.raises(InvalidInput, match="to its unknown token"):
        start(audit, tiny, letters, None)


def test_a_tokenizer_that_drops_case(tiny, tokenizer, tmp_path):
    class Lowering:
        def encode(self, text):
            return tokenizer(text.lower())["input_ids"]

        def decode(self, ids):
            return tokenizer.decode(ids)

    audit = tiny.audit(tmp_path / "a", template="key {choice:Ab|aB|AB|ab}{digits:3}", limit=5)
    with pytest.raises(InvalidInput, match="The tokenizer changes the canaries"):
        start(audit, tiny, Lowering(), None, model=tiny.model(tokenizer))


def test_no_trainable_parameter(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "a")
    model = tiny.model(tokenizer).requires_grad_(False)
    with pytest.raises(InvalidInput, match="no trainable parameter"):
        start(audit, tiny, tokenizer, None, model=model)


def test_new_tokens_with_frozen_embeddings(tiny, tmp_path):
    tokenizer = tiny.tokenizer()
    tokenizer.add_tokens(["qqq", "zzz"])
    model = tiny.model(tokenizer)
    model.get_input_embeddings().requires_grad_(False)
    audit = tiny.audit(tmp_path / "a", template="key {choice:qqq|zzz}{digits:3}")
    with pytest.raises(InvalidInput, match=r"2 tokens that were added .* embeddings are frozen"):
        start(audit, tiny, tokenizer, None, model=model)
    model.get_input_embeddings().requires_grad_(True)
    start(audit, tiny, tokenizer, None, model=model)


def test_no_tokenizer(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match=r"no tokenizer .* Pass Audit\(tokenizer=\.\.\.\)"):
        tiny.audit(tmp_path / "a").start(tiny.model(tokenizer))


def test_something_that_encodes_nothing(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match="tokenizer is a int"):
        tiny.audit(tmp_path / "a", tokenizer=5).start(tiny.model(tokenizer))
