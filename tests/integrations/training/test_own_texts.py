"""Texts of one's own as canaries: planted ones against controls drawn from the same pool."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

from remnant import Audit
from remnant.errors import InvalidInput, NotEnoughEvidence, RecordError
from remnant.records import Record
from remnant.records.typed import read_result
from remnant.studies.reporting import write_report
from remnant.studies.training_audit.result import DetectedExamples, TrainingAuditResult


def notes(count: int, *, seed: int = 5) -> list[str]:
    """Texts of several lengths that nobody can guess."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    return [
        f"{''.join(rng.choice(letters, size=int(rng.integers(12, 20))))} is note {i}"
        for i in range(100, 100 + count)
    ]


def own_audit(out, **given):
    settings = {
        "canaries": notes(48),
        "controls": 20,
        "repeats": (1, 8),
        "limit": 0.75,
        "overhead": None,
        "seed": 0,
    }
    return Audit(out=out, **(settings | given))


def train(audit, rows, tokenizer, model, *, epochs, rate=5e-3, shuffle=True):
    made = [{"input_ids": tokenizer(row)["input_ids"]} for row in rows]
    loader = DataLoader(
        made,
        batch_size=16,
        shuffle=shuffle,
        generator=torch.Generator().manual_seed(0) if shuffle else None,
        collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    audit.start(model, loader, steps=epochs * len(loader))
    step = 0
    for _ in range(epochs):
        for batch in loader:
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            audit.step(model, step)
    return audit.finish()


@pytest.fixture(scope="module")
def overfit(tiny, tokenizer, tmp_path_factory):
    audit = own_audit(tmp_path_factory.mktemp("own") / "audit", tokenizer=tokenizer)
    rows = audit.prepare(tiny.texts())
    return audit, train(audit, rows, tokenizer, tiny.model(tokenizer), epochs=12)


def test_an_overfit_training_fails_and_is_recorded_whole(overfit):
    audit, ended = overfit
    assert (ended.outcome, ended.exit_code) == ("FAIL", 1), ended.sentence
    assert "planted 8 times" in ended.sentence
    detected = ended.result.detection
    assert isinstance(detected, DetectedExamples)
    assert [level.repeats for level in detected.levels] == [1, 8]
    assert [level.n for level in detected.levels] == [14, 14]
    assert detected.levels[1].auc > 0.95
    assert detected.found
    assert detected.calibrated
    # Each epoch has every copy once.
    assert {row.uses for row in detected.examples if row.repeats == 8} == {96}
    assert detected.ceiling_bits == pytest.approx(np.log2(21))
    assert read_result(Record.open(audit.out), TrainingAuditResult) == ended.result
    page = ended.report.read_text()
    assert "How well the attack finds them" in page
    assert write_report(audit.out).read_text() == page


def test_no_text_is_in_the_report_or_the_log(overfit):
    audit, ended = overfit
    page = ended.report.read_text()
    texts = [canary.text for canary in (*audit.canaries.canaries, *audit.canaries.controls)]
    assert not any(text in page for text in texts)
    assert set(audit.latest()) == {"remnant/planted_1_auc", "remnant/planted_8_auc"}
    lines = (audit.out / "canaries.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["text"] for line in lines[1:]) == sorted(texts)
    assert (audit.out / "canaries.jsonl").stat().st_mode & 0o077 == 0
    assert texts[0] not in repr(audit.canaries)


def test_auc_is_of_the_rise_in_bits_a_token(overfit):
    audit, ended = overfit
    rises = audit._training.scores[0] - audit._training.scores[max(audit._training.scores)]
    repeats = np.array(audit.canaries.repeats)
    seen, unseen = rises[:28][repeats == 8], rises[28:]
    wins = (seen[:, None] > unseen).mean() + (seen[:, None] == unseen).mean() / 2
    assert ended.result.detection.levels[1].auc == pytest.approx(wins)


def test_a_training_that_learns_nothing_is_inconclusive(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer)
    rows = audit.prepare(tiny.texts())
    ended = train(audit, rows, tokenizer, tiny.model(tokenizer), epochs=1, rate=1e-12)
    assert (ended.outcome, ended.exit_code) == ("INCONCLUSIVE", 3)
    assert not ended.result.detection.found


def test_a_training_that_saw_no_planted_text_is_inconclusive(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer)
    model = tiny.model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    audit.start(model, preflight=False)
    for step in range(30):
        ids = tokenizer(tiny.texts()[step], return_tensors="pt")["input_ids"]
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        audit.step(model, step + 1)
    ended = audit.finish()
    assert ended.outcome == "INCONCLUSIVE"
    assert "No planted example was in any batch" in ended.sentence


def train_on(audit, rows, tokenizer, model, *, epochs):
    """Train on rows that the audit has not checked, in order."""
    made = [{"input_ids": tokenizer(row)["input_ids"]} for row in rows]
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    batches = epochs * list(DataLoader(made, batch_size=16, collate_fn=collate))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    audit.start(model, steps=len(batches))
    for step, batch in enumerate(batches):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        audit.step(model, step + 1)


def larger_audit(tmp_path, tokenizer, **given):
    settings = {"canaries": notes(120), "controls": 50, "judged": 1, "tokenizer": tokenizer}
    return own_audit(tmp_path / "audit", **(settings | given))


@pytest.mark.parametrize("missed", ["all", "some"])
def test_texts_that_missed_the_batches_are_not_judged(tiny, tokenizer, tmp_path, missed):
    """The texts planted 8 times are found, which says nothing of those that were never used."""
    audit = larger_audit(tmp_path, tokenizer)
    rows = audit.prepare(tiny.texts())
    once = [
        canary.text
        for canary, often in zip(audit.canaries.canaries, audit.canaries.repeats, strict=True)
        if often == 1
    ]
    lost = set(once if missed == "all" else once[:5])
    kept = [row for row in rows if row not in lost]
    train_on(audit, kept, tokenizer, tiny.model(tokenizer), epochs=2)
    ended = audit.finish()
    assert ended.result.detection.found
    (level,) = [level for level in ended.result.detection.levels if level.repeats == 1]
    if missed == "all":
        assert (ended.outcome, ended.exit_code) == ("INCONCLUSIVE", 3), ended.sentence
        assert "most texts planted once were in batches less often than that" in ended.claim
    else:
        assert level.n == len(once) - 5
        assert f"on {len(once) - 5} texts planted once" in ended.sentence
        shown = {row.number for row in ended.result.detection.examples if row.repeats == 1}
        assert len(shown) == level.n


def test_controls_that_were_trained_on_give_no_pass(tiny, tokenizer, tmp_path):
    """They are as likely as texts planted once, whose AUC is then near chance."""
    audit = larger_audit(tmp_path, tokenizer)
    rows = [*audit.prepare(tiny.texts()), *(control.text for control in audit.canaries.controls)]
    train_on(audit, rows, tokenizer, tiny.model(tokenizer), epochs=2)
    ended = audit.finish()
    assert ended.result.detection.found
    assert (ended.outcome, ended.exit_code) == ("INCONCLUSIVE", 3), ended.sentence
    assert ended.claim.startswith("No claim: 50 controls were in batches")
    assert ended.result.sightings.controls == 50


def test_weights_that_changed_after_the_last_scoring_are_measured(tiny, tokenizer, tmp_path):
    """The same model object: its weights were put back to those before the training."""
    audit = larger_audit(tmp_path, tokenizer)
    model = tiny.model(tokenizer)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    train_on(audit, audit.prepare(tiny.texts()), tokenizer, model, epochs=2)
    audit.stop()
    model.load_state_dict(before)
    ended = audit.finish()
    assert ended.outcome == "INCONCLUSIVE", ended.sentence
    assert {level.auc for level in ended.result.detection.levels} == {0.5}
    assert {row.auc for row in ended.result.detection.course if row.step} > {0.5}
    stored = Record.open(ended.folder)
    assert np.array_equal(stored.array("scores")[-1], stored.array("scores")[0])


def test_without_a_limit_nothing_is_judged(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer, limit=None)
    rows = audit.prepare(tiny.texts())
    ended = train(audit, rows, tokenizer, tiny.model(tokenizer), epochs=1)
    assert (ended.outcome, ended.exit_code) == (None, 0)
    assert "highest AUC" in ended.sentence


def test_the_trainer_takes_them(tiny, tokenizer, tmp_path):
    from datasets import Dataset

    audit = own_audit(tmp_path / "audit")
    data = audit.prepare(Dataset.from_dict({"text": tiny.texts()}))
    data = data.map(lambda row: tokenizer(row["text"]), remove_columns=data.column_names)
    trainer = Trainer(
        model=tiny.model(tokenizer),
        args=TrainingArguments(
            output_dir=tmp_path / "checkpoints",
            num_train_epochs=10,
            per_device_train_batch_size=16,
            learning_rate=5e-3,
            lr_scheduler_type="constant",
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        processing_class=tokenizer,
        callbacks=[audit.callback(every=20)],
    )
    trainer.train()
    logged = {name for line in trainer.state.log_history for name in line}
    assert {"remnant/planted_1_auc", "remnant/planted_8_auc"} <= logged
    assert audit.finish().outcome == "FAIL"


def test_a_staggered_plan_gives_a_curve(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer, plan="staggered", windows=2, every=4)
    rows = audit.prepare(tiny.texts(120))
    ended = train(audit, rows, tokenizer, tiny.model(tokenizer), epochs=1, shuffle=False)
    assert ended.result.forgetting.curves.cohorts


def test_the_planted_texts_and_the_controls_are_one_pool_dealt_at_random(tmp_path):
    audit = own_audit(tmp_path / "a")
    planted = [canary.text for canary in audit.canaries.canaries]
    controls = [control.text for control in audit.canaries.controls]
    assert sorted(planted + controls) == sorted(notes(48))
    assert audit.canaries.drawn
    assert audit.canaries == own_audit(tmp_path / "b").canaries
    assert audit.canaries != own_audit(tmp_path / "c", seed=1).canaries


def test_controls_may_be_given(tiny, tokenizer, tmp_path):
    audit = own_audit(
        tmp_path / "audit", tokenizer=tokenizer, canaries=notes(48)[:28], controls=notes(48)[28:]
    )
    assert {canary.text for canary in audit.canaries.canaries} == set(notes(48)[:28])
    ended = train(audit, audit.prepare(tiny.texts()), tokenizer, tiny.model(tokenizer), epochs=2)
    assert any("drawn the same way" in line for line in ended.result.scope.not_tested)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"limit": 10.0}, InvalidInput, r"limit=10 is not above 0.5 and under 1"),
        ({"share": 0.1}, InvalidInput, "share= is for canaries of a template"),
        ({"canaries": "one text"}, InvalidInput, "canaries is a str, not a list"),
        ({"canaries": [*notes(40), 3]}, InvalidInput, r"canaries\[40\] is a int"),
        ({"canaries": [*notes(40), " "]}, InvalidInput, r"canaries\[40\] is empty"),
        ({"canaries": [*notes(40), notes(40)[3]]}, InvalidInput, "2 of 41 texts come twice"),
        ({"canaries": [*notes(40), notes(40)[3][:10]]}, InvalidInput, "a part of another"),
        ({"controls": notes(40)[:12]}, InvalidInput, "come twice"),
        ({"controls": 9}, NotEnoughEvidence, "10 controls"),
        ({"controls": 45}, NotEnoughEvidence, "3 examples would be planted in 2 groups"),
        ({"repeats": ()}, InvalidInput, "repeats is empty"),
        ({"template": "pin {digits:4}"}, InvalidInput, "exactly one of template and canaries"),
        (
            {"canaries": None, "template": "pin {digits:4}", "controls": ["a"]},
            InvalidInput,
            "controls is a list; with a template",
        ),
    ],
)
def test_bad_settings_are_refused(tmp_path, given, error, words):
    with pytest.raises(error, match=words):
        own_audit(tmp_path / "audit", **given)
    assert not (tmp_path / "audit").exists()


def test_data_that_holds_them_already_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="Remove them from the data"):
        own_audit(tmp_path / "audit").prepare([*notes(48), "more"])


def test_other_texts_are_another_audit(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer)
    audit.prepare(tiny.texts())
    audit.start(tiny.model(tokenizer), preflight=False)
    with pytest.raises(RecordError, match="another audit"):
        own_audit(tmp_path / "audit", canaries=notes(48, seed=6))


def test_long_texts_that_are_truncated_are_refused(tiny, tokenizer, tmp_path):
    audit = own_audit(tmp_path / "audit", tokenizer=tokenizer)
    rows = audit.prepare(tiny.texts())
    made = [{"input_ids": tokenizer(row)["input_ids"][:30]} for row in rows]
    loader = DataLoader(made, collate_fn=DataCollatorForLanguageModeling(tokenizer, mlm=False))
    with pytest.raises(InvalidInput, match="end in the middle of a canary"):
        audit.start(tiny.model(tokenizer), loader)
