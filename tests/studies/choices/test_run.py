"""Which training choices cause exposure: a tiny run against slow definitions, resuming, faults."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from remnant.errors import InvalidInput, PlanError
from remnant.records import Record
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.choices import population as module
from remnant.studies.choices.finding import finding_of
from remnant.studies.choices.measure import pareto_front
from remnant.studies.choices.population import populations, trained_models
from remnant.studies.choices.prepared import prepare_runs
from remnant.studies.choices.probe import references_of
from remnant.studies.choices.recipe import ExposureTrainingStudy
from remnant.studies.choices.result import Difference
from remnant.studies.pipeline import StepClock
from remnant.tasks.language_models import fit_language_models, language_model_maker

TABLE = {
    "question": "exposure-training",
    "label": "once",
    "title": "A tiny one",
    "plan": {
        "kind": "insert",
        "repeats": [1],
        "epochs": 2,
        "trials": 3,
        "controls": 2,
        "batch": 16,
        "precision": "float64",
    },
    "text": {"characters": 6_000, "window": 24},
    "secret": {"template": "key {digits:3};"},
    "model": {"options": {"units": 16, "layers": 1}},
    "training": {"optimizer": "adam", "options": {"lr": 0.03}},
    "measure": {"references": 200, "extract": True, "windows": 20},
    "follow": {"epochs": [0, 1, 2], "references": 150},
    "compare": [
        {"label": "30 times", "plan": {"repeats": [30], "twin": True}},
        {"label": "slower", "training": {"options": {"lr": 0.01}}},
        {"label": "no name", "secret": {"scored": "\n{digits:3}"}},
        {"label": "batch 8", "plan": {"batch": 8}},
    ],
}
STUDY = study_from(TABLE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run") / "training"
    run_study(STUDY, made, Execution())
    return made


@pytest.fixture(scope="module")
def results(folder):
    return Record.open(folder).results()


@pytest.fixture(scope="module")
def runs():
    return prepare_runs(STUDY.parts(), Execution())


def costs_by_hand(run, member_state, secrets):
    """-log2 p from the first hole to the template's end, one secret after another."""
    net = language_model_maker(run.study, run.planted)().double()
    net.load_state_dict(member_state)
    net.eval()
    template, encode = run.study.secret.known, run.planted.vocabulary.encode
    before = len(encode(template.prefix))
    ids = torch.tensor([encode(template.text(secret)) for secret in secrets])
    with torch.no_grad():
        log_probs = net(ids[:, :-1]).log_softmax(-1)
    own = log_probs.gather(-1, ids[:, 1:, None])[..., 0]
    return (-own[:, before - 1 :].sum(1) / math.log(2)).numpy()


def trained_alone(run, steps=None):
    plan = run.plan if steps is None else dataclasses.replace(run.plan, steps=steps)
    return fit_language_models(run.study, plan, run.planted, Execution())[1]


@pytest.mark.parametrize("name", ["primary", "variant1", "variant3", "variant4"])
def test_exposure_is_that_of_variants_trained_alone_and_ranked_by_hand(folder, runs, name):
    run, record = runs[name], Record.open(folder)
    alone = trained_alone(run)
    secrets = [f"{number:03d}" for number in range(1000)]
    for trial, member in enumerate(run.plan.members_of("planted")):
        costs = costs_by_hand(run, alone.state_dict(int(member)), secrets)
        own = costs[int(run.planted.sets[trial].canaries[0].secret)]
        rank = int((costs <= own + 1e-9).sum())
        assert record.array(f"{name}.bits")[trial, 0] == math.log2(1000) - math.log2(rank)
        assert record.array(f"{name}.first")[trial, 0] == (rank == 1)
        assert record.array(f"{name}.extracted")[trial, 0] == (rank == 1)


def test_what_is_followed_is_that_of_a_training_that_ended_there(folder, runs):
    run, record = runs["variant1"], Record.open(folder)
    assert run.looks == (0, 16, 32)
    alone = trained_alone(run, steps=16)
    found = record.array("variant1.through")
    assert found.shape == (3, 3, 3)
    for trial, member in enumerate(run.plan.members_of("planted")):
        references = [one.secret for one in references_of(run, trial, references=150)]
        assert len(set(references)) == 150
        canary = run.planted.sets[trial].canaries[0].secret
        assert canary not in references
        own, *others = costs_by_hand(run, alone.state_dict(int(member)), [canary, *references])
        bits = math.log2(151) - math.log2(1 + sum(cost <= own for cost in others))
        assert found[1, trial, 0] == pytest.approx(bits)
        windows = run.planted.validation
        some = windows[np.linspace(0, len(windows) - 1, 20).round().astype(int)]
        net = language_model_maker(run.study, run.planted)().double()
        net.load_state_dict(alone.state_dict(int(member)))
        with torch.no_grad():
            logits = net(torch.from_numpy(some[:, :-1]))
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), torch.from_numpy(some[:, 1:]).flatten()
        )
        assert found[1, trial, 1] == pytest.approx(float(loss) / math.log(2))


def test_the_results_say_what_was_measured(folder, results, runs):
    record, training = Record.open(folder), results["training"]
    labels = ["once", "30 times", "slower", "no name", "batch 8"]
    assert [one["label"] for one in training["variants"]] == labels
    assert training["space_bits"] == math.log2(1000)
    assert training["table"] is None
    for name, one in zip(runs, training["variants"], strict=True):
        bits = record.array(f"{name}.bits")
        assert one["each"] == bits.ravel().tolist()
        assert one["exposure"][0] == pytest.approx(bits.mean())
        assert one["exposure"][1] <= one["exposure"][0] <= one["exposure"][2]
        assert one["exact"] is True
        assert one["ranked_first"][0] == record.array(f"{name}.first").mean()
        assert one["nodes"] == np.median(record.array(f"{name}.nodes"))
        assert one["parameters"] == training["variants"][0]["parameters"]
        assert len(one["skew_normal"]) == 3
        assert one["through"]["epoch"][0] == 0
        assert one["through"]["ceiling_bits"] == math.log2(151)
        assert one["through"]["exposure"][-1][2] <= math.log2(151) + 1e-9
    once, often, _, _, smaller = training["variants"]
    assert often["exposure"][0] > once["exposure"][0] + 2
    assert once["twin"] is None
    assert often["twin"][0] < 5 > once["controls"][0]
    assert smaller["steps"] == 63
    assert smaller["changes"] == {"plan": {"batch": 8}}
    bands = training["by_exposure"]
    assert sum(one["canaries"] for one in bands) == 15
    assert sum(one["read_out"] for one in bands) == sum(
        sum(one["extracted_each"]) for one in training["variants"]
    )
    assert training["effects"] == []
    assert results["task"]["uniform_bits"] == math.log2(runs["primary"].planted.vocabulary.size)
    json.dumps(results, allow_nan=False)


def test_the_marked_steps_are_those_in_which_the_first_canary_was_used(results, runs):
    run = runs["primary"]
    schedule = run.plan.schedule(examples=run.planted.examples)
    used = [
        step + 1
        for step in range(run.plan.steps)
        if run.planted.examples in schedule.batch(step)[0][0]
    ]
    assert results["training"]["variants"][0]["through"]["uses"] == used
    assert len(used) == 2


def test_the_verdict_waits_for_six_trials(folder, results):
    verdict, record = results["verdict"], Record.open(folder)
    assert "outcome" not in verdict
    assert verdict["headline"].startswith("No difference in exposure was detected")
    assert verdict["advice"].startswith("Run 6 trials or more")
    rows = {row["label"]: row for row in verdict["differences"]}
    assert list(rows) == ["30 times", "slower", "no name", "batch 8"]
    gaps = record.array("variant1.bits") - record.array("primary.bits")
    assert rows["30 times"]["difference"][0] == pytest.approx(gaps.mean())
    for row in rows.values():
        assert row["p_value"] is None


def test_models_that_are_asked_twice_are_counted_once(runs, results):
    assert trained_models(runs) == results["training"]["models"] == 12
    assert results["scope"]["tested"][0].startswith("12 models in 5 variants")


def test_runs_share_a_population_where_they_can(folder, runs):
    assert [list(group) for group in populations(runs)] == [
        ["primary", "variant1", "variant2", "variant3"],
        ["variant4"],
    ]
    execution = Record.open(folder).execution
    # Three of the first, six with twins, three slower; what is scored otherwise is not trained.
    assert execution["primary.split"] == 12
    assert execution["variant4.split"] == 3


def test_no_secret_is_in_the_record(folder, results, runs):
    words = json.dumps(results) + json.dumps(Record.open(folder).summary())
    for run in runs.values():
        for drawn in run.planted.sets:
            assert not any(canary.text in words for canary in drawn.canaries)


class Killed(BaseException):
    """What no handler catches."""


def test_a_killed_run_goes_on_to_the_same_numbers(folder, tmp_path, monkeypatch):
    measure_run, measured = module.measure_run, []

    def dies(run, *others):
        measured.append(run.study.label)
        if len(measured) == 2:
            raise Killed
        return measure_run(run, *others)

    monkeypatch.setattr(module, "measure_run", dies)
    often = Execution(checkpoint_seconds=0.0)
    with pytest.raises(Killed):
        run_study(STUDY, tmp_path / "run", often)
    assert (tmp_path / "run" / "checkpoint-primary.safetensors").exists()
    run_study(STUDY, tmp_path / "run", often)
    assert measured == ["once", "30 times", "30 times", "slower", "no name", "batch 8"]
    one, other = Record.open(folder), Record.open(tmp_path / "run")
    assert one.results() == other.results()
    for name in one.array_names():
        np.testing.assert_array_equal(one.array(name), other.array(name))
    assert not list((tmp_path / "run").glob("checkpoint*"))
    run_study(STUDY, tmp_path / "run", often)
    assert len(measured) == 6


def test_exact_ranks_can_be_followed_too(tmp_path):
    table = {**TABLE, "compare": [], "follow": {"every": 20, "method": "auto", "references": 100}}
    run_study(study_from(table), tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    through = record.results()["training"]["variants"][0]["through"]
    assert through["step"] == [0, 20, 32]
    assert through["ceiling_bits"] == math.log2(1000)
    np.testing.assert_array_equal(
        record.array("primary.through")[-1, :, 0:1], record.array("primary.bits")
    )
    verdict = record.results()["verdict"]
    assert "outcome" not in verdict
    assert verdict["headline"] == "There is one variant, so nothing is compared"


GRID = {"plan": {"batch": [8, 16]}, "model": {"options": {"units": [8, 16]}}}


def test_a_grid_is_a_table_of_variants():
    table = {name: part for name, part in TABLE.items() if name not in ("label", "compare")}
    study = study_from({**table, "grid": GRID, "compare": [TABLE["compare"][0]]})
    assert study.label == "batch 8, units 8"
    assert [one.label for one in study.compare] == [
        "batch 8, units 16",
        "batch 16, units 8",
        "batch 16, units 16",
        "30 times",
    ]
    assert study.plan.batch == 8
    assert study.model.options == {"units": 8, "layers": 1}
    last = study.compare[-1].study
    assert (last.plan.batch, last.plan.repeats) == (8, (30,))
    assert len(populations(prepare_runs(study.parts(), Execution()))) == 4


def test_a_run_of_a_grid_tells_each_field_on_its_own(tmp_path):
    table = {name: part for name, part in TABLE.items() if name not in ("label", "compare")}
    study = study_from({**table, "grid": GRID, "follow": {}})
    run_study(study, tmp_path / "run", Execution())
    with Record.open(tmp_path / "run") as record:
        rows = record.result("training")["effects"]
        bits = {name: record.array(f"{name}.bits").mean(axis=1) for name in study.parts()}
    assert [(one["field"], one["value"]) for one in rows] == [
        *(("batch", "8"), ("batch", "16"), ("units", "8"), ("units", "16"))
    ]
    small = (bits["primary"] + bits["variant1"]) / 2
    large = (bits["variant2"] + bits["variant3"]) / 2
    assert rows[1]["exposure"][0] == pytest.approx(large.mean())
    assert rows[1]["difference"][0] == pytest.approx((large - small).mean())


@pytest.mark.parametrize("grid", [{}, {"grid": GRID}])
def test_the_plain_form_makes_the_study_again(grid):
    study = study_from({**TABLE, **grid, "compare": TABLE["compare"][:3]})
    plain = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    again = study_from(plain)
    assert again == study
    assert again.fingerprint == study.fingerprint


def test_one_trial_has_values_without_intervals(tmp_path):
    table = {**TABLE, "plan": {**TABLE["plan"], "trials": 1}, "compare": [TABLE["compare"][1]]}
    table["follow"], table["grid"] = {}, {"training": {"optimizer": ["adam", "sgd"]}}
    run_study(study_from(table), tmp_path / "run", Execution())
    results = Record.open(tmp_path / "run").results()
    first = results["training"]["variants"][0]
    assert first["exposure"][1:] == [None, None]
    assert first["through"] is None
    assert first["cell"] == {"optimizer": "adam"}
    assert "outcome" not in results["verdict"]
    assert results["verdict"]["headline"].startswith("One training of each variant")


def test_several_canaries_of_a_model_may_all_come_first(tmp_path):
    table = {**TABLE, "compare": [], "follow": {}}
    table["plan"] = {**TABLE["plan"], "repeats": [60, 60], "epochs": 6, "trials": 2}
    run_study(study_from(table), tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    one = record.results()["training"]["variants"][0]
    assert one["ranked_first"][0] == one["extracted"][0] == 1.0
    assert sorted(record.array("primary.bits")[0]) == [math.log2(500), math.log2(1000)]


class Ticking(StepClock):
    """A clock on which everything takes a second."""

    def __call__(self, done):
        self.times.append(float(len(self.times)))


def test_the_estimate_has_looks_and_measurement_in_its_minutes(monkeypatch):
    monkeypatch.setattr(module, "StepClock", Ticking)
    found = estimate_study(STUDY, Execution())
    looks, trials = 5 * 3, 5 * 3
    assert found["minutes"] == pytest.approx((32 + 63 + looks + trials) / 60, abs=0.01)


@pytest.mark.parametrize(
    ("section", "fields", "message"),
    [
        ("text", {"window": 5_999}, "tokens, and text.window=5999 needs one more than that"),
        (
            "secret",
            {"template": "{choice:import|def|class|return|self}"},
            "stand in the text already",
        ),
        ("text", {"window": 6}, "A canary has 8 tokens, and a window learns 6"),
        ("measure", {"max_nodes": 2}, "max_nodes=2 is less than the template's depth"),
        ("follow", {"epochs": [1, 3]}, r"follow.epochs=\[3\] are after the end, at epoch 2"),
        ("model", {"options": {"size": 3}}, "size"),
        ("training", {"options": {"speed": 3}}, "speed"),
        (
            "model",
            {"name": "gpt", "options": {"context": 9}},
            "longer than the model's context of 9",
        ),
        ("plan", {"repeats": [300]}, "300 copies, more than"),
    ],
)
def test_what_cannot_be_planted_or_trained_is_refused_before_anything_is_written(
    section, fields, message, tmp_path
):
    table = {**TABLE, section: {**TABLE[section], **fields}, "compare": []}
    with pytest.raises((PlanError, InvalidInput), match=message):
        run_study(study_from(table), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {}}, "the grid is empty"),
        ({"grid": [1]}, r"\[grid\] is not a section"),
        ({"grid": {"plan": {"bach": [1]}}}, "unknown field plan.bach"),
        ({"grid": {"plan": {"batch": [1, 0]}}}, "batch=0 is not a whole number of at least 1"),
        ({"measure": {"limit": 3}}, "unknown field measure.limit"),
        ({"measure": {"extract": 1}}, "measure.extract=1"),
        ({"measure": {"confidence": 1}}, "measure.confidence=1"),
        ({"measure": {"windows": 0}}, "measure.windows=0"),
        ({"follow": {"every": 0}}, "follow.every=0"),
        ({"follow": {"every": 5, "epochs": [1]}}, "both epochs and every"),
        ({"follow": {"epochs": [-1]}}, "follow.epochs"),
        ({"follow": {"method": "guess"}}, "follow.method='guess'"),
        ({"secret": {"template": "my words {words:2}"}}, "secret.template.*words"),
        ({"secret": {"template": "a {digits:3}", "scored": "a {digits:4}"}}, "other holes"),
        ({"secret": {"template": "a {choice:x|y}"}}, "needs 3 secrets"),
        ({"compare": [{"label": "once"}]}, "'once' stands for two"),
        ({"compare": [{"label": "b", "plan": {"trials": 4}}]}, "3, 4 trials"),
        ({"compare": [{"label": "b"}]}, "variant 'b' changes nothing"),
        ({"secret": {"template": "a {words:2}"}}, "hole, which this question does not fill"),
        ({"compare": [{"label": "b", "plan": {"seed": 9}}]}, "plan.seed 0, 9, which make no pairs"),
        ({"compare": [{"label": "b", "plan": {"repeats": [1, 1]}}]}, "1, 2 canaries a model"),
        ({"compare": [{"label": "b", "secret": {"template": "k {digits:4}"}}]}, "1000, 10000"),
        ({"compare": [{"label": "b", "plan": {"bach": 4}}]}, "compare 'b': unknown field"),
        ({"extra": {}}, "unknown section or field 'extra'"),
    ],
)
def test_a_faulty_recipe_is_one_sentence(changes, message):
    with pytest.raises(PlanError, match=message):
        study_from({**TABLE, **changes})


def test_training_that_diverges_is_said_and_leaves_nothing(tmp_path):
    table = {**TABLE, "compare": [], "training": {"optimizer": "sgd", "options": {"lr": 1e307}}}
    with pytest.raises(InvalidInput, match="diverged"):
        run_study(study_from(table), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


def test_the_front_holds_what_nothing_beats():
    rng = np.random.default_rng(0)
    points = {str(i): tuple(map(float, rng.integers(0, 6, 2))) for i in range(40)}
    expected = {
        name
        for name, (x, y) in points.items()
        if not any(u <= x and v <= y and (u < x or v < y) for u, v in points.values())
    }
    front = pareto_front(points)
    assert set(front) == expected
    assert [points[name][0] for name in front] == sorted(points[name][0] for name in front)


def test_followed_references_do_not_move_with_the_variant(runs):
    one, other = (references_of(runs[name], 0, references=150) for name in ("primary", "variant2"))
    assert one == other


def test_the_study_is_of_its_own_kind():
    assert isinstance(STUDY, ExposureTrainingStudy)
    assert STUDY.parts()["variant1"].label == "30 times"


def _compared(*gaps, trials=8):
    """A finding about variants that lie so far above the first; the interval is half a bit wide."""
    rows = [
        Difference(
            label=f"v{number}",
            difference=(gap, gap - 0.25, gap + 0.25),
            p_value=0.0005,
            adjusted_p_value=0.001,
            differs=abs(gap) > 1,
        )
        for number, gap in enumerate(gaps, start=1)
    ]
    words = [f"'{row.label}' instead of 'v0'" for row in rows]
    return finding_of(
        rows, words, base="v0", level="The mean is 4.0 bits.", trials=trials, confidence=0.95
    )


def test_the_order_of_two_variants_decides_no_outcome():
    raised, lowered = _compared(8.3), _compared(-8.3)
    assert raised.headline == lowered.headline == "Training choices change exposure"
    assert (
        raised.sentence
        == "'v1' instead of 'v0' makes a difference: +8.3 bits in the mean (95 % CI +8.1 to +8.6)."
    )
    assert (
        lowered.sentence
        == "'v1' instead of 'v0' makes a difference: −8.3 bits in the mean (95 % CI −8.6 to −8.1)."
    )
    assert raised.advice.startswith("Prefer 'v0'")
    assert lowered.advice.startswith("Prefer 'v1'")


def test_of_several_variants_the_largest_change_each_way_is_named():
    found = _compared(2.0, 5.0, -3.0, 0.5)
    assert found.sentence == (
        "'v2' instead of 'v0' makes a difference: +5.0 bits in the mean (95 % CI +4.8 to +5.2; "
        "Holm-adjusted p = 0.001). "
        "'v3' instead of 'v0' makes a difference: −3.0 bits in the mean (95 % CI −3.2 to −2.8; "
        "Holm-adjusted p = 0.001). "
        "3 of 4 variants differ significantly from 'v0'."
    )
    assert found.advice.startswith("Prefer 'v3'")


def test_no_detected_difference_is_not_equality():
    found = _compared(0.5, -0.2)
    assert found.sentence.endswith(
        "No other variant differs significantly from it in 8 trials. It may still be 0.8 bits."
    )
    assert "do not take the choices for equal" in found.advice
