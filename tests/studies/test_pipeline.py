"""The pipeline of every question: what it asks of a room, stores, skips, resumes and finishes."""

from __future__ import annotations

import pytest

from remnant import studies
from remnant.errors import InvalidInput
from remnant.plans.schedule import Ledger
from remnant.records import Record
from remnant.studies import Execution, estimate_study, read_recipe, run_study
from remnant.studies.pipeline import Prepared
from remnant.studies.recipe_form.template import recipe_template
from remnant.studies.registry import QUESTIONS, RECIPES, load

LEDGER = {"member": [0], "canary": [1], "step": [2], "uses": [3]}


class Room:
    """What a room prepares, and what the pipeline called of it."""

    def __init__(self, **changes):
        self.called = []
        self.changes = changes

    def prepare(self, study, execution, progress):
        self.called.append(("prepare", study.QUESTION, execution, progress))
        return Prepared(
            data_fingerprint="0a1b",
            seeds={"plan": study.plan.seed},
            origins=[None],
            ledger=Ledger(**LEDGER),
            **{"work": self.work, "afterwards": self.afterwards} | self.changes,
        )

    def estimate(self, study, execution):
        return {"minutes": study.QUESTION, "device": execution.device}

    def work(self, record):
        assert record.status == "running"
        self.called.append("work")
        record.put_result("task", {"accuracy": 0.5})
        (record.folder / "checkpoint.safetensors").write_bytes(b"")

    def afterwards(self, folder):
        assert Record.open(folder).status == "complete"
        self.called.append("afterwards")


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Return a study of a question whose room is a stand-in."""

    def made(name, room):
        module = load(QUESTIONS[name].run)
        monkeypatch.setattr(module, "prepare", room.prepare)
        monkeypatch.setattr(module, "estimate", room.estimate)
        path = tmp_path / f"{name}.toml"
        path.write_text(recipe_template(name), encoding="utf-8")
        return read_recipe(path)

    return made


@pytest.mark.parametrize("name", RECIPES)
def test_a_study_is_prepared_and_timed_by_the_room_of_its_question(name, asked, tmp_path):
    room, execution = Room(), Execution()
    study = asked(name, room)
    run_study(study, tmp_path / "run", execution, progress=print)
    assert room.called == [("prepare", name, execution, print), "work", "afterwards"]
    assert estimate_study(study, execution) == {"minutes": name, "device": execution.device}
    record = Record.open(tmp_path / "run")
    assert (record.question, record.status, record.data_fingerprint) == (name, "complete", "0a1b")
    assert record.provenance["seeds"] == {"plan": study.plan.seed}
    assert [record.ledger()[part].tolist() for part in ("canary", "step", "uses")] == [
        [1],
        [2],
        [3],
    ]
    assert not list((tmp_path / "run").glob("checkpoint*"))


def test_a_complete_record_is_left_as_it_is(asked, tmp_path):
    room = Room()
    study = asked("forgetting", room)
    for _ in range(2):
        run_study(study, tmp_path / "run", Execution())
    assert [called for called in room.called if isinstance(called, str)] == [
        *("work", "afterwards"),
        "afterwards",
    ]


def test_work_that_is_cut_short_keeps_what_it_stored_and_is_done_again(asked, tmp_path):
    def cut(record):
        record.put_result("task", {"accuracy": 0.5})
        raise KeyboardInterrupt

    study = asked("forgetting", Room(work=cut))
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "run", Execution())
    record = Record.open(tmp_path / "run")
    assert (record.status, record.result("task")) == ("running", {"accuracy": 0.5})
    room = Room()
    run_study(asked("forgetting", room), tmp_path / "run", Execution())
    assert "work" in room.called
    assert Record.open(tmp_path / "run").status == "complete"


def test_work_that_is_refused_before_it_stored_anything_leaves_nothing(asked, tmp_path):
    def refuse(record):
        raise InvalidInput("no use")

    with pytest.raises(InvalidInput, match="no use"):
        run_study(asked("forgetting", Room(work=refuse)), tmp_path / "run", Execution())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("verb", ["run", "estimate"])
@pytest.mark.parametrize(
    "question", ["forgetting", "text_forgetting", "exposure", "choices", "exposure_training"]
)
def test_the_names_of_one_question_warn_and_are_the_pipeline(verb, question):
    with pytest.warns(DeprecationWarning, match=f"{verb}_{question} is called {verb}_study now"):
        old = getattr(studies, f"{verb}_{question}")
    assert old is getattr(studies, f"{verb}_study")
