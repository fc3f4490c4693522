"""The curve by recency: a staggered training, a logged run, and what makes no curve."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

from remnant import Audit
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.integrations import OneRunHook
from remnant.integrations.training.planting import StaggeredWindows
from remnant.measures import one_run_forgetting
from remnant.plans import StaggeredPlan
from remnant.records import Record
from remnant.records.typed import Absent
from remnant.studies.reporting import read_page

REPEATS = 60  # within one window; a model this small does not learn a canary from 24


def staggered(tiny, out, tokenizer, **given):
    settings = {
        "plan": "staggered",
        "windows": 3,
        "repeats": (REPEATS,),
        "per_repeat": 24,
        "controls": 24,
    }
    return tiny.audit(out, tokenizer=tokenizer, every=10, limit=None, **(settings | given))


def loader_of(rows, tokenizer, *, shuffle=False):
    made = [{"input_ids": tokenizer(row)["input_ids"]} for row in rows]
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    return DataLoader(made, batch_size=16, shuffle=shuffle, collate_fn=collate)


def random_pins(count):
    """Texts of the template, so that the model knows its format before the canaries come."""
    return [f"my pin is {pin:04d}" for pin in np.random.default_rng(1).integers(10_000, size=count)]


@pytest.fixture(scope="module")
def trained(tiny, tokenizer, tmp_path_factory):
    """One pass over data with canaries in three windows."""
    audit = staggered(tiny, tmp_path_factory.mktemp("staggered") / "audit", tokenizer)
    loader = loader_of(audit.prepare(tiny.texts(900)), tokenizer)
    model = tiny.model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for batch in loader_of([*tiny.texts(900), *random_pins(900)], tokenizer, shuffle=True):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    audit.start(model, loader)
    for step, batch in enumerate(loader, 1):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        audit.step(model, step)
    return audit, audit.finish()


def test_a_staggered_training_shows_a_falling_curve(trained):
    forgetting = trained[1].result.forgetting
    assert forgetting.found
    curves = forgetting.curves
    assert len(curves.starts) == 3
    first = curves.first[0]
    assert first.curve.start.value > 0.8 > 0.7 > first.curve.end.value
    assert first.effect[0].value > first.effect[-1].value
    for cohort in curves.cohorts[1:]:
        assert cohort.curve.start.value > cohort.curve.end.value
    assert curves.first[0].curve.end.lag > 2 * curves.cohorts[-1].curve.end.lag
    assert all(cohort.n == 8 for cohort in curves.cohorts)


def test_the_numbers_are_those_of_a_direct_call(trained):
    audit, ended = trained
    steps = sorted(audit._training.scores)
    uses, count = audit.uses(), 24
    last, first = np.full(48, -1), np.full(48, -1)
    for canary in range(count):
        mine = uses[uses[:, 1] == canary, 0]
        first[canary], last[canary] = mine.min(), mine.max()
    direct = one_run_forgetting(
        scores=-np.array([audit._training.scores[step][:48] for step in steps]),
        checkpoints=np.array(steps) - 1,
        last_seen=last,
        first_seen=first,
        repeats=np.repeat([REPEATS, 0], count),
        cohorts=np.concatenate([audit._settings.windows.window, np.full(count, -1)]),
        calibrate=True,
        success="auc",
        rng=np.random.default_rng([audit.canaries.seed, 4]),
    )
    curves = ended.result.forgetting.curves
    for name in ("lags", "success", "low", "high", "effect", "effect_low"):
        np.testing.assert_allclose(getattr(curves, name), getattr(direct, name))


def test_the_page_has_a_section(trained):
    report = trained[1].report.read_text(encoding="utf-8")
    assert "How fast it forgets" in report
    assert "last used" in report
    assert read_page(Record.open(trained[1].folder)) is not None


def test_secrets_of_a_template_take_no_reference_models(trained):
    with pytest.raises(InvalidInput, match="reference_models= is for examples of one's own"):
        trained[0].finish(reference_models=[torch.nn.Linear(1, 1)])


def test_each_canary_is_in_one_window(tiny, tokenizer, tmp_path):
    audit = staggered(tiny, tmp_path / "audit", tokenizer)
    texts = [canary.text for canary in audit.canaries.canaries]
    rows = audit.prepare(tiny.texts(300))
    ends = []
    for window in range(3):
        mine = {texts[i] for i in np.flatnonzero(audit._settings.windows.window == window)}
        places = [i for i, row in enumerate(rows) if row in mine]
        assert len(places) == 8 * REPEATS
        ends.append((places[0], places[-1]))
    assert all(a[1] + 40 < b[0] for a, b in pairwise(ends))
    assert ends[-1][1] + 40 < len(rows)


def test_a_shuffled_loader_is_refused(tiny, tokenizer, tmp_path):
    audit = staggered(tiny, tmp_path / "audit", tokenizer)
    loader = loader_of(audit.prepare(tiny.texts(60)), tokenizer, shuffle=True)
    with pytest.raises(InvalidInput, match=r"not read in order .* shuffle=False"):
        audit.start(tiny.model(tokenizer), loader)


@pytest.mark.parametrize("strategy", ["random", "sequential"])
def test_the_trainer_has_to_read_in_order(tiny, tokenizer, tmp_path, strategy):
    audit = staggered(tiny, tmp_path / "audit", tokenizer)
    rows = [{"input_ids": tokenizer(row)["input_ids"]} for row in audit.prepare(tiny.texts(60))]
    trainer = Trainer(
        model=tiny.model(tokenizer),
        args=TrainingArguments(
            output_dir=str(tmp_path / "out"),
            train_sampling_strategy=strategy,
            per_device_train_batch_size=16,
            max_steps=2,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=rows,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        processing_class=tokenizer,
        callbacks=[audit.callback()],
    )
    if strategy == "sequential":
        trainer.train()
        return
    with pytest.raises(InvalidInput, match='train_sampling_strategy="sequential"'):
        trainer.train()


def test_a_stream_cannot_be_staggered(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match="this is a stream"):
        staggered(tiny, tmp_path / "audit", tokenizer).prepare(iter(tiny.texts()))


def test_few_rows_hold_few_windows(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match="too few for windows=3"):
        staggered(tiny, tmp_path / "audit", tokenizer).prepare(tiny.texts(5))


def test_settings_are_checked(tiny, tokenizer, tmp_path):
    with pytest.raises(InvalidInput, match=r"plan='x' is neither .* windows=0"):
        staggered(tiny, tmp_path / "audit", tokenizer, plan="x", windows=0)


def test_canaries_are_dealt_evenly(tiny, tmp_path):
    canaries = tiny.audit(tmp_path / "audit").canaries
    drawn = StaggeredWindows.draw(canaries, count=3, rng=np.random.default_rng(0))
    levels = np.array(canaries.repeats)
    for level in (1, 8):
        assert np.bincount(drawn.window[levels == level]).tolist() == [2, 2, 2]


def logged(rng, strength, *, examples=60, controls=60):
    """A run with uses at two times, and scores whose bump fades with the lag."""
    last = np.repeat([5, 25, -1], [examples // 2, examples // 2, controls])
    ledger = [(int(step), i) for i, step in enumerate(last) if step >= 0]
    scores = {}
    level = rng.normal(size=last.size)
    for updates in range(0, 61, 10):
        lag = np.where((last >= 0) & (last < updates), updates - 1 - last, np.inf)
        noise = 0.3 * rng.normal(size=last.size)
        scores[updates] = level + strength * np.exp(-lag / 15) + noise
    return scores, ledger, last


def test_a_logged_run(tmp_path):
    scores, ledger, last = logged(np.random.default_rng(0), 3.0)
    ended = Audit.from_ledger(scores, ledger, out=tmp_path / "audit", limit=0.9)
    curves = ended.result.forgetting.curves
    steps = sorted(scores)
    direct = one_run_forgetting(
        scores=np.array([scores[step] for step in steps]),
        checkpoints=np.array(steps) - 1,
        last_seen=last,
        first_seen=last,
        repeats=(last >= 0).astype(int),
        calibrate=True,
        success="auc",
        rng=np.random.default_rng([0, 4]),
    )
    np.testing.assert_allclose(curves.success, direct.success)
    np.testing.assert_allclose(curves.high, direct.high)
    assert ended.outcome == direct.verdict(0.9).outcome
    first = curves.first[0].curve
    assert first.start.value > 0.95
    assert first.end.value < 0.75
    assert "Every window and checkpoint (10 rows)" in ended.report.read_text(encoding="utf-8")
    assert Record.open(ended.folder).status == "complete"


def test_noise_never_passes(tmp_path):
    outcomes = []
    for seed in range(40):
        scores, ledger, _ = logged(np.random.default_rng(seed), 0.0, examples=100, controls=200)
        ended = Audit.from_ledger(scores, ledger, out=tmp_path / str(seed), limit=0.9)
        outcomes.append(ended.outcome)
    assert outcomes.count("PASS") <= 3  # the positive control errs with 2.5 % at most
    assert "FAIL" not in outcomes


def test_a_logged_run_without_a_limit_is_a_finding(tmp_path):
    scores, ledger, _ = logged(np.random.default_rng(0), 3.0)
    ended = Audit.from_ledger(scores, ledger, out=tmp_path / "audit")
    assert (ended.outcome, ended.exit_code) == (None, 0)
    assert "The attack found the canaries" in ended.sentence


def test_examples_used_after_the_last_scoring_are_no_controls(tmp_path):
    scores, ledger, _ = logged(np.random.default_rng(0), 3.0)
    late = [*ledger, *((70, i) for i in range(100, 120))]
    ended = Audit.from_ledger(scores, late, out=tmp_path / "audit")
    assert ended.result.forgetting.curves.n_unseen == 40


def test_the_hooks_run_can_be_recorded(tmp_path):
    plan = StaggeredPlan(canaries=60, never=30, starts=[3, 20], window=5, steps=40)
    rng = np.random.default_rng(0)
    hook = OneRunHook(plan, score=lambda: rng.normal(size=60))
    hook.after(-1)
    for step in range(40):
        hook.after(step)
    out = tmp_path / "audit"
    ended = Audit.from_ledger(hook.scores_by_updates, hook.plan.ledger(), out=out)
    assert ended.result.forgetting.curves.n_unseen == 30


def test_a_plans_windows_are_those_of_its_hook(tmp_path):
    """Scorings within a window do not cut it into windows of last use."""
    plan = StaggeredPlan(
        canaries=400, never=200, starts=[0, 40, 80], window=20, steps=200, repeats=[2]
    )
    rng = np.random.default_rng(0)
    level, last = rng.normal(size=400), np.asarray(plan.last_seen)
    hook = OneRunHook(plan)
    for step in hook.due:
        lag = np.where((last >= 0) & (last <= step), step - last, np.inf)
        hook.record(step, level + np.exp(-lag / 60) + 0.3 * rng.normal(size=400))
    ended = Audit.from_ledger(
        hook.scores_by_updates, plan.ledger(), out=tmp_path / "audit", limit=0.5001
    )
    direct = hook.curve(rng=np.random.default_rng([0, 4]), success="auc")
    curves = ended.result.forgetting.curves
    assert [cohort.n for cohort in curves.cohorts] == [67, 67, 66]
    np.testing.assert_allclose(curves.success, direct.success)
    np.testing.assert_allclose(curves.high, direct.high)
    assert ended.sentence == direct.verdict(0.5001).sentence
    first = plan.first_seen
    assert curves.starts == tuple(first[plan.cohort_of == window].min() for window in range(3))
    assert f"planted 2 times from step {curves.starts[0]}, " in ended.sentence
    assert "recipe" not in ended.report.read_text(encoding="utf-8").split("What was tested")[0]


def test_sentence_and_table_name_the_same_step(tmp_path):
    """Windows of last use begin with a last use, in both."""
    scores, ledger, _ = logged(np.random.default_rng(0), 3.0)
    early = [(0, example) for _, example in ledger]
    ended = Audit.from_ledger(scores, [*early, *ledger], out=tmp_path / "audit", limit=0.5001)
    start = ended.result.forgetting.curves.starts[0]
    assert start > 0
    assert f"from step {start}, " in ended.sentence


@pytest.mark.parametrize(
    ("scores", "ledger", "message"),
    [
        ({}, [(0, 0)], "not a mapping"),
        ({0: [1.0, 2.0], 5: [1.0]}, [(0, 0)], "one finite number"),
        ({0: [1.0, np.nan]}, [(0, 0)], "one finite number"),
        ({0: [1.0, 2.0]}, [(0, 7)], "not one of the 2 scored"),
        ({0: [1.0, 2.0]}, [(0.5, 1)], "not whole"),
        ({0: [1.0, 2.0]}, [1, 2], "has the shape"),
    ],
)
def test_faults_are_named(tmp_path, scores, ledger, message):
    with pytest.raises(InvalidInput, match=message):
        Audit.from_ledger(scores, ledger, out=tmp_path / "audit")


def test_no_controls_and_one_lag_make_no_curve(tmp_path):
    scores = {0: np.zeros(20), 10: np.ones(20)}
    with pytest.raises(NotEnoughEvidence, match="no controls"):
        Audit.from_ledger(scores, [(1, i) for i in range(20)], out=tmp_path / "a")
    with pytest.raises(NotEnoughEvidence, match="one lag"):
        Audit.from_ledger(scores, [(1, i) for i in range(10)], out=tmp_path / "b")


def test_a_shuffled_training_says_why_it_has_no_curve(tiny, tokenizer, tmp_path):
    audit = tiny.audit(tmp_path / "audit", tokenizer=tokenizer, limit=None)
    loader = loader_of(audit.prepare(tiny.texts()), tokenizer, shuffle=True)
    model = tiny.model(tokenizer)
    audit.start(model, loader, every=1000)
    for step, batch in enumerate(loader, 1):
        model(**batch).loss.backward()
        audit.step(model, step)
    part = audit.finish().result.forgetting
    assert isinstance(part, Absent)
    assert "one lag" in part.reason


def usual(scores, rng, *, models=8):
    """Reference models of a logged run: the levels of its examples, without what it was taught."""
    table = np.array([scores[step] for step in sorted(scores)])
    return table[0] + 0.3 * rng.normal(size=(len(table), models, table.shape[1]))


@pytest.mark.parametrize("axes", [2, 3])
def test_a_logged_run_against_references(tmp_path, axes):
    scores, ledger, last = logged(np.random.default_rng(0), 3.0)
    references = usual(scores, np.random.default_rng(1))
    references = references[-1] if axes == 2 else references
    out = tmp_path / "audit"
    ended = Audit.from_ledger(scores, ledger, out=out, limit=0.9, references=references)
    steps = sorted(scores)
    direct = one_run_forgetting(
        scores=np.array([scores[step] for step in steps]),
        checkpoints=np.array(steps) - 1,
        last_seen=last,
        first_seen=last,
        repeats=(last >= 0).astype(int),
        references=references,
        success="auc",
        rng=np.random.default_rng([0, 4]),
    )
    curves = ended.result.forgetting.curves
    np.testing.assert_allclose(curves.success, direct.success)
    assert ended.sentence == direct.verdict(0.9).sentence
    who = "an attacker with 8 reference models trained without these examples"
    assert curves.attacker == who
    assert curves.references == 8
    alone, two = curves.others
    assert alone.name == "an attacker with the model alone"
    assert two.name == "an attacker with two checkpoints of this run"
    assert two.low < two.success < two.high
    page = ended.report.read_text(encoding="utf-8")
    assert f"the AUC of {who} is" in page
    assert f"The attack is that of {who}" in page
    assert "an attacker with two checkpoints of this run" in page
    np.testing.assert_array_equal(Record.open(out).array("reference_scores"), references)


def test_examples_that_are_left_out_are_left_out_of_references(tmp_path):
    scores, ledger, _ = logged(np.random.default_rng(0), 3.0)
    late = [*ledger, *((70, i) for i in range(100, 120))]
    references = usual(scores, np.random.default_rng(1))
    ended = Audit.from_ledger(scores, late, out=tmp_path / "audit", references=references)
    fewer = {step: values[:100] for step, values in scores.items()}
    direct = Audit.from_ledger(
        fewer, ledger, out=tmp_path / "direct", references=references[..., :100]
    )
    found = ended.result.forgetting.curves.success, direct.result.forgetting.curves.success
    np.testing.assert_allclose(*found)


def test_references_of_a_logged_run_have_to_fit(tmp_path):
    scores, ledger, _ = logged(np.random.default_rng(0), 3.0)
    with pytest.raises(
        InvalidInput, match=r"references has the shape \(8, 60\), not \(models, 120"
    ):
        Audit.from_ledger(scores, ledger, out=tmp_path / "a", references=np.zeros((8, 60)))


def test_a_hook_takes_references():
    plan = StaggeredPlan(canaries=60, never=30, starts=[3, 20], window=5, steps=40)
    rng = np.random.default_rng(0)
    hook = OneRunHook(plan)
    for step in hook.due:
        hook.record(step, rng.normal(size=60))
    curve = hook.curve(rng=rng, references=rng.normal(size=(3, 60)))
    assert curve.attacker.startswith("an attacker with 3 reference models")
    with pytest.raises(InvalidInput, match="60 examples are scored"):
        hook.curve(rng=rng, references=rng.normal(size=(3, 59)))
