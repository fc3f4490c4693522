"""The audit in the Hugging Face Trainer, from the data to the report."""

from __future__ import annotations

import json
import re

import datasets
import pytest
import torch
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record
from remnant.studies.reporting import read_page


def train(
    tiny, tokenizer, folder, rows, *, callbacks=(), epochs=12.0, seed=0, resume=None, **given
):
    """Train the tiny model on texts; returns the trainer."""
    data = datasets.Dataset.from_dict({"text": rows}).map(
        lambda row: tokenizer(row["text"]), remove_columns=["text"]
    )
    settings = {
        "output_dir": str(folder),
        "num_train_epochs": epochs,
        "per_device_train_batch_size": 16,
        "learning_rate": 5e-3,
        "report_to": [],
        "use_cpu": True,
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1000,
        "seed": seed,
        "dataloader_pin_memory": False,
    }
    trainer = Trainer(
        model=tiny.model(tokenizer),
        args=TrainingArguments(**(settings | given)),
        train_dataset=data,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        processing_class=tokenizer,
        callbacks=list(callbacks),
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.fixture(scope="module")
def overfit(tiny, tokenizer, tmp_path_factory):
    """One overfit fine-tune, audited."""
    folder = tmp_path_factory.mktemp("overfit")
    audit = tiny.audit(folder / "audit")
    trainer = train(
        tiny,
        tokenizer,
        folder / "out",
        audit.prepare(tiny.texts()),
        callbacks=[audit.callback(every=20)],
    )
    return audit, trainer, audit.finish()


def test_an_overfit_model_fails(overfit):
    _, _, ended = overfit
    assert (ended.outcome, ended.exit_code) == ("FAIL", 1)
    assert "bits" in ended.sentence


def test_its_controls_stay_at_chance(overfit):
    levels = overfit[2].result.repeats.levels
    assert levels[0].repeats == 0
    assert levels[0].pooled_pvalue > 0.01
    assert levels[-1].pooled_pvalue < 1e-6


def test_every_canary_was_seen_in_every_epoch(overfit):
    audit, _, ended = overfit
    uses = {repeats * 12 for repeats in audit.canaries.repeats}
    assert {canary.uses for canary in ended.result.exposure.canaries} == uses
    assert ended.result.sightings.seen == len(audit.canaries.canaries)


def test_exposure_rises_along_the_training(overfit):
    rows = overfit[2].result.course.level(8)
    assert [row.step for row in rows] == [0, 20, 40, 60, 80, 96]
    assert rows[0].mean_bits < 3 < rows[-1].mean_bits


def test_metrics_are_logged_without_secrets(overfit):
    audit, trainer, _ = overfit
    logged = json.dumps(trainer.state.log_history)
    assert "remnant/planted_8_bits" in logged
    assert "remnant/controls_bits" in logged
    for canary in audit.canaries.canaries:
        assert canary.text not in logged


def test_the_record_is_a_study_like_any_other(overfit):
    audit, _, ended = overfit
    record = Record.open(ended.folder)
    assert record.status == "complete"
    page = read_page(record)
    assert page.headline.outcome == "FAIL"
    named = dict(page.audited)
    assert re.fullmatch(r"GPT2LMHeadModel.*, \d+ parameters", named["Model"])
    assert re.fullmatch(r"\d+ rows", named["Data"])
    assert int(named["Steps"]) == ended.result.course.steps[-1]
    assert {"transformers", "tokenizers", "torch"} <= record.provenance["versions"].keys()
    report = ended.report.read_text(encoding="utf-8")
    assert "FAIL" in report
    for canary in (*audit.canaries.canaries, *audit.canaries.controls):
        assert canary.text not in report


def test_finish_twice_is_finish_once(overfit):
    audit, _, ended = overfit
    assert audit.finish() is ended


def test_a_finished_folder_is_refused(overfit, tiny):
    with pytest.raises(RecordError, match="holds an audit that is finished"):
        tiny.audit(overfit[0].out)


def test_another_audits_folder_is_refused(overfit, tiny):
    with pytest.raises(RecordError, match=r"holds another audit\. Choose another folder"):
        tiny.audit(overfit[0].out, seed=5)


def test_a_model_that_learnt_nothing_is_inconclusive(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    train(
        tiny,
        tokenizer,
        tmp_path / "out",
        audit.prepare(tiny.texts()),
        callbacks=[audit.callback()],
        epochs=1,
        learning_rate=1e-12,
    )
    ended = audit.finish()
    assert (ended.outcome, ended.exit_code) == ("INCONCLUSIVE", 3)


def test_a_model_that_saw_no_canary_is_inconclusive(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    audit.prepare(tiny.texts())
    train(
        tiny,
        tokenizer,
        tmp_path / "out",
        tiny.texts(),
        callbacks=[audit.callback(preflight=False)],
        epochs=2,
    )
    ended = audit.finish()
    assert ended.outcome == "INCONCLUSIVE"
    assert ended.result.sightings.uses == 0


def weights_of(trainer):
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def test_the_callback_changes_no_weight(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", repeats=())
    with_it = weights_of(
        train(
            tiny,
            tokenizer,
            tmp_path / "a",
            audit.prepare(tiny.texts()),
            callbacks=[audit.callback(every=3)],
            epochs=2,
        )
    )
    without = weights_of(train(tiny, tokenizer, tmp_path / "b", tiny.texts(), epochs=2))
    assert all(torch.equal(with_it[name], without[name]) for name in without)
    assert audit.finish().outcome is None


def test_a_budget_leaves_out_steps(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", overhead=1e-9)
    train(
        tiny,
        tokenizer,
        tmp_path / "out",
        audit.prepare(tiny.texts()),
        callbacks=[audit.callback(every=2)],
        epochs=1,
    )
    ended = audit.finish()
    assert ended.result.course.steps == (0, 8)
    assert ended.result.overhead.skipped == 4


@pytest.mark.parametrize("inside", ["out", "out/audit"])
def test_secrets_never_land_where_a_push_takes_them(tiny, tokenizer, tmp_path, inside):
    audit = tiny.audit(tmp_path / inside)
    with pytest.raises(InvalidInput, match="may be uploaded; the audit holds secrets"):
        train(
            tiny,
            tokenizer,
            tmp_path / "out",
            audit.prepare(tiny.texts()),
            callbacks=[audit.callback()],
        )


def test_checkpoints_hold_no_secret(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit")
    train(
        tiny,
        tokenizer,
        tmp_path / "out",
        audit.prepare(tiny.texts()),
        callbacks=[audit.callback()],
        epochs=1,
        save_strategy="steps",
        save_steps=4,
    )
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any(path.name == "trainer_state.json" for path in files)
    texts = [canary.text.encode() for canary in audit.canaries.canaries]
    for path in files:
        content = path.read_bytes()
        assert not any(text in content for text in texts), path


class Killed(BaseException):
    pass


def test_a_killed_training_resumes_to_one_record(tiny, tokenizer, tmp_path):
    from transformers import TrainerCallback

    class Kill(TrainerCallback):
        def on_step_end(self, args, state, control, **given):
            if state.global_step == 9:
                raise Killed

    rows = tiny.audit(tmp_path / "unused").prepare(tiny.texts())
    first = tiny.audit(tmp_path / "audit")
    given = {"save_strategy": "steps", "save_steps": 6, "epochs": 2}
    with pytest.raises(Killed):
        train(
            tiny,
            tokenizer,
            tmp_path / "out",
            first.prepare(tiny.texts()),
            callbacks=[first.callback(every=4), Kill()],
            **given,
        )
    again = tiny.audit(tmp_path / "audit")
    train(
        tiny,
        tokenizer,
        tmp_path / "out",
        again.prepare(tiny.texts()),
        callbacks=[again.callback(every=4)],
        resume=True,
        **given,
    )
    resumed = again.finish().result
    whole = tiny.audit(tmp_path / "whole")
    train(
        tiny,
        tokenizer,
        tmp_path / "out2",
        rows,
        callbacks=[whole.callback(every=4)],
        epochs=2,
    )
    uncut = whole.finish().result
    assert resumed.sightings == uncut.sightings
    assert resumed.course == uncut.course
    assert len(Record.open(tmp_path / "audit").attempts()) == 2
    assert resumed.exposure == uncut.exposure


def test_finish_without_a_training(tiny, tmp_path):
    from remnant.errors import NotEnoughEvidence

    with pytest.raises(NotEnoughEvidence, match="No training was watched"):
        tiny.audit(tmp_path / "a").finish()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"template": None}, "exactly one of template and canaries"),
        ({"limit": 20.0}, "limit=20 is not above 0 and at most 13.3"),
        ({"limit": None, "judged": 1}, "judged= needs limit="),
        ({"judged": 0}, "judges no canary"),
        ({"share": 2.0}, "share=2 is not between 0 and 1"),
        ({"share": 0.05, "judged": 1}, "share=0.05 takes 59 judged canaries for a PASS"),
        ({"overhead": 0.0}, "overhead=0 is not above 0"),
        ({"every": 0}, "every=0 is not at least 1"),
        ({"references": 0}, "references=0 is not at least 1"),
        ({"plan": "never"}, "plan='never'"),
        ({"canaries": 3, "template": None}, "canaries is a int"),
        ({"template": "no hole"}, "hole"),
        ({"limit": "10"}, "limit='10' is not a number"),
        ({"every": 2.5}, "every=2.5 is not a whole number"),
        ({"judged": True}, "judged=True is not a whole number"),
        ({"repeats": 4}, r"repeats=4 is not a list of numbers\. For instance repeats="),
    ],
)
def test_bad_settings(tiny, tmp_path, given, message):
    with pytest.raises(InvalidInput, match=message):
        tiny.audit(tmp_path / "a", **given)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("every", "message"), [(-5, "every=-5 is not at least 1"), (2.5, "every=2.5 is not a whole")]
)
@pytest.mark.parametrize("kind", ["callback", "lightning_callback"])
def test_a_callback_refuses_steps_that_are_none(tiny, tmp_path, kind, every, message):
    with pytest.raises(InvalidInput, match=message):
        getattr(tiny.audit(tmp_path / "a"), kind)(every=every)


def test_a_file_is_no_folder_for_an_audit(tiny, tmp_path):
    (tmp_path / "a").write_text("a")
    with pytest.raises(RecordError, match=r"is a file\. Choose a folder"):
        tiny.audit(tmp_path / "a")
