"""What holds for every question with a recipe: one battery over the registry.

Each question is run by its recipe of ``benchmarks/same_numbers_recipes.py``, with the changes of
``contract_recipes.py`` that make it fast, and gives what ``contract_expected.json`` says. A
question that is new in the registry fails here until it has both; the failure says what they are.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest

from remnant.errors import NotEnoughEvidence, PlanError, RecordError
from remnant.records import Record
from remnant.records.outcomes import RULES
from remnant.records.typed import Absent, plain, put_result, read_result
from remnant.report.blocks import Figure, Headline, Scope, Section, Table, Tiles, walk
from remnant.report.html import render
from remnant.studies import Execution, estimate_study, run_study, study_from
from remnant.studies.registry import QUESTIONS, RECIPES, load, recipe_of
from remnant.studies.reporting import read_page
from remnant.studies.shared.pages import read_run

from .contract_recipes import has_recipe, recipe, with_changes, write_data
from .forgetting.speech_patterns import patterns

EXPECTED = Path(__file__).with_name("contract_expected.json")
LEDGER = "When the canaries were used"
POOL_BLOCK = 4
VARIANTS = {"compare", "remedy", "variants"}
VARIED = [name for name in RECIPES if has_recipe(name) and VARIANTS & recipe(name).keys()]
each = pytest.mark.parametrize("question", RECIPES)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(autouse=True)
def _speech_is_patterns(monkeypatch):
    """Recipes of speech name voices, which take longer than a test."""
    monkeypatch.setattr("remnant.tasks.speech.speaker", patterns)


@pytest.fixture(scope="module")
def runs():
    """The folders of finished runs, by question."""
    return {}


@pytest.fixture
def done(question, runs, data, tmp_path_factory):
    """The folder of a whole run of the question's recipe."""
    if question not in runs:
        folder = tmp_path_factory.mktemp(question) / "whole"
        run_study(study_from(recipe(question)), folder, executed(data))
        runs[question] = folder
    return runs[question]


def executed(data, **settings):
    return Execution(data_folder=data, pool_block=POOL_BLOCK, **settings)


def files_of(folder):
    """When every file was written, but for the lock of a record."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in files}


def expected(question, found):
    """Check what is expected of a question, as ``contract_expected.json`` has it."""
    everything = json.loads(EXPECTED.read_text(encoding="utf-8"))
    said = json.dumps(found)
    assert question in everything, f"{EXPECTED.name} has no {question!r}; of this run it has {said}"
    assert found == {name: everything[question][name] for name in found}, EXPECTED.name


@each
def test_every_question_has_a_small_recipe(question):
    assert recipe(question)["question"] == question


# -- the recipe ----------------------------------------------------------------------------


def fields_in(study):
    """Yield the place of every field of a study's plan and sections."""
    for section in ("plan", *recipe_of(study.QUESTION).sections):
        part = getattr(study, section)
        for field in dataclasses.fields(part) if part is not None else ():
            yield section, field.name


ANOTHER = {
    ("patch", "size"): 10,
    ("patch", "row"): 7,
    ("patch", "column"): 7,
    ("patch", "opacity"): 0.5,
}
"""Values of fields that the fingerprint does not take as they are; of the others, any will do."""


def with_field(study, section, name, value):
    """A copy of a study with another value, unchecked."""
    made, part = copy.copy(study), copy.copy(getattr(study, section))
    object.__setattr__(part, name, value)
    object.__setattr__(made, section, part)
    return made


@each
def test_every_field_moves_the_fingerprint(question):
    study = study_from(recipe(question))
    prints = {study.fingerprint: "the study"}
    for section, name in fields_in(study):
        if (section, name) == ("patch", "file"):
            continue  # the digest is that of its pixels
        value = getattr(getattr(study, section), name)
        other = with_field(study, section, name, ANOTHER.get((section, name), "X"))
        same = prints.setdefault(other.fingerprint, f"{section}.{name}")
        assert same == f"{section}.{name}", f"{section}.{name} has the fingerprint of {same}"
        object.__setattr__(getattr(other, section), name, value)
        assert other.fingerprint == study.fingerprint


@pytest.mark.parametrize("question", VARIED)
def test_every_variant_moves_the_fingerprint(question):
    table, prints = recipe(question), []
    (part,) = VARIANTS & table.keys()
    names = list(table[part]) if isinstance(table[part], dict) else range(len(table[part]))
    for name in names:
        fewer = copy.deepcopy(table)
        del fewer[part][name]
        prints.append(study_from(fewer).fingerprint)
    assert len({study_from(table).fingerprint, *prints}) == 1 + len(names) > 1


@pytest.mark.parametrize("question", [name for name in RECIPES if QUESTIONS[name].repeatable])
def test_the_plain_form_makes_the_study_again(question):
    study = study_from(recipe(question))
    again = study_from(json.loads(json.dumps(study.to_dict(), allow_nan=False)))
    assert again == study
    assert again.fingerprint == study.fingerprint


@each
def test_faults_of_a_recipe_are_named_all_at_once(question):
    table = recipe(question)
    sections = [name for name, part in table.items() if isinstance(part, dict)]
    faulty = with_changes(table, {name: {"oddity": 1} for name in sections} | {"whim": 3})
    with pytest.raises(PlanError) as found:
        study_from(faulty)
    for name in sections:
        if name not in ("variants", "grid"):
            assert f"unknown field {name}.oddity" in found.value.message
    assert "unknown section or field 'whim'" in found.value.message
    for name in ("plan", *recipe_of(question).sections):
        with pytest.raises(PlanError, match=name):
            study_from(table | {name: 3})
    with pytest.raises(PlanError, match=r"plan\.kind='whisper'"):
        study_from(with_changes(table, {"plan": {"kind": "whisper"}}))


@each
def test_a_dry_run_writes_nothing_and_counts_models_and_steps(
    question, data, tmp_path, monkeypatch, a_minute_a_step
):
    monkeypatch.chdir(tmp_path)
    before = files_of(data)
    found = estimate_study(study_from(recipe(question)), executed(data))
    assert list(tmp_path.iterdir()) == []
    assert files_of(data) == before
    assert found["memory_mib"] > 0
    assert found["minutes"] > 0
    expected(question, {name: found[name] for name in ("members", "steps")})


# -- the run -------------------------------------------------------------------------------


class Cut(BaseException):
    pass


@each
def test_a_killed_driver_runs_no_job_twice_and_gives_the_same_bits(
    question, done, data, tmp_path, killed_after_each_job, same_run
):
    study, again = study_from(recipe(question)), tmp_path / "again"
    jobs = killed_after_each_job(study, again, data_folder=data, pool_block=POOL_BLOCK)
    counted = estimate_study(study, executed(data))["groups"]
    assert len(set(jobs)) == len(jobs) == len(counted), "as a dry run counts them"
    same_run(done, again)
    assert not list(again.rglob("checkpoint*"))


@each
def test_a_run_cut_within_a_training_goes_on_from_there_to_the_same_bits(
    question, done, data, tmp_path, same_run
):
    study, often = study_from(recipe(question)), executed(data, checkpoint_seconds=0.0)
    stages, went_on = [], []

    def cut(stage, step, of):
        if of > 5 and step > 0.7 * of:
            stages.append(stage)
            raise Cut

    with pytest.raises(Cut):
        run_study(study, tmp_path / "cut", often, progress=cut)
    assert Record.open(tmp_path / "cut").status == "running"
    run_study(
        study,
        tmp_path / "cut",
        often,
        progress=lambda stage, step, of: went_on.append(step / of) if stage == stages[0] else None,
    )
    assert min(went_on) > 0.5, "it goes on from its checkpoint"
    same_run(done, tmp_path / "cut")
    assert not list((tmp_path / "cut").rglob("checkpoint*"))


@each
def test_a_finished_run_is_left_alone_and_another_plan_refused(question, done, data):
    before = files_of(done)
    run_study(study_from(recipe(question)), done, executed(data))
    assert files_of(done) == before
    other = study_from(with_changes(recipe(question), {"plan": {"seed": 77}}))
    with pytest.raises(RecordError, match="another plan"):
        run_study(other, done, executed(data))
    assert files_of(done) == before


@each
def test_arrays_and_rows_have_the_names_they_had(question, done):
    """Older versions of the package, and users, read them by these names."""
    record = Record.open(done)
    expected(question, {"arrays": record.array_names(), "results": sorted(record.results())})


HIGHEST = {  # limits under which anything would be, and trials enough to say so
    "forgetting": {"plan": {"trials": 4}, "attack": {"limit": 0.99}},
    "one-run": {"attack": {"limit": 0.99}},
    "text-forgetting": {"plan": {"trials": 4}, "attack": {"limit": 5.8}, "compare": []},
    "speech-forgetting": {"plan": {"trials": 4}, "attack": {"limit": 4.6}},
    "translation-forgetting": {"plan": {"trials": 4}, "attack": {"limit": 5.8}},
    "text-one-run": {"attack": {"limit": 0.99}},
    "speech-one-run": {"attack": {"limit": 0.99}},
    "translation-one-run": {"attack": {"limit": 0.99}},
    "exposure": {"measure": {"limit": 9.9}},
    "translation-exposure": {"measure": {"limit": 9.9}},
}


@each
def test_a_model_that_learnt_nothing_never_passes(question, data, tmp_path):
    table = with_changes(recipe(question), HIGHEST.get(question, {}))
    table["training"]["options"] = {"lr": 1e-20}
    table["remedy"] = [row for row in table.get("remedy", []) if "training" not in row]
    blind = study_from({name: part for name, part in table.items() if part != []})
    try:
        run_study(blind, tmp_path / "blind", executed(data))
    except NotEnoughEvidence:  # some measures cannot even be made
        assert not list(tmp_path.rglob("report.html"))
        begun = list(tmp_path.rglob("record.sqlite"))
        assert all(Record.open(path.parent).status == "running" for path in begun)
        return
    found = Record.open(tmp_path / "blind").results()
    verdict = found["verdict"]
    if "headline" not in verdict:
        assert verdict["outcome"] == "INCONCLUSIVE", verdict
    assert verdict["rules"] == RULES
    assert found.get("decision", {}).get("safe_after", {}).get("lag") is None


# -- the result and its page ---------------------------------------------------------------


@each
def test_every_part_is_read_back_as_it_was_stored(question, done, tmp_path):
    record, read = Record.open(done), load(QUESTIONS[question].result)
    result, stored = read_result(record, read), record.results()
    measured = {
        field.name: part
        for field in dataclasses.fields(result)
        if not isinstance(part := getattr(result, field.name), Absent | None)
    }
    assert measured.keys() >= {"verdict", "task", "scope"} & stored.keys()
    for name, part in measured.items():
        if name in stored:
            assert json.loads(json.dumps(plain(part))) == stored[name], name
    again = tmp_path / "again"
    with Record.create(
        again,
        question=question,
        plan=record.plan,
        plan_fingerprint=record.plan_fingerprint,
        data_fingerprint=record.data_fingerprint,
        execution={},
        provenance={},
    ) as written:
        put_result(written, result)
    assert read_result(Record.open(again), read) == result


@each
def test_the_page_has_its_parts_in_order(question, done):
    page = read_page(Record.open(done))
    assert isinstance(page.blocks[0], Headline)
    assert sum(isinstance(block, Headline) for block in walk(page.blocks)) == 1
    assert isinstance(page.blocks[1], Tiles)
    sections = [block.title for block in page.blocks if isinstance(block, Section)]
    assert len(set(sections)) == len(sections)
    assert sections[0] == "In plain words"
    last = [*("What was tested, and what was not", "How to read this"), LEDGER, "What was run"]
    last = last if LEDGER in sections else [title for title in last if title != LEDGER]
    assert sections[-len(last) :] == last
    assert (LEDGER in sections) == bool(len(Record.open(done).ledger()["step"]))
    assert any(isinstance(block, Scope) for block in walk(page.blocks))
    for kind in (Table, Figure):
        keys = [block.key for block in walk(page.blocks) if isinstance(block, kind)]
        assert len(set(keys)) == len(keys), "files and charts of a page have names of their own"
    assert render([page]) == render([page])


@each
def test_a_part_that_was_not_measured_leaves_a_page_that_says_so(
    question, done, changed, page_text
):
    record, reason = Record.open(done), "the disk was full of cats"
    stored = record.results()
    result, run = read_result(record, load(QUESTIONS[question].result)), read_run(record)
    make = load(QUESTIONS[question].page)
    for field in dataclasses.fields(result):
        if field.name in stored and "absent" not in stored[field.name]:
            text = page_text(make(dataclasses.replace(result, **{field.name: Absent(reason)}), run))
            assert reason in text or field.name not in ("verdict", "scope", "task"), field.name
    nothing = changed(done, absent=dict.fromkeys(stored, reason))
    page = read_page(nothing)
    assert page.headline.outcome is None
    assert reason in page_text(page.blocks)
    assert render([page])
