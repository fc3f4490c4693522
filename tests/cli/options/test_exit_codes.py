"""The exit codes of ``show``, ``run`` and ``demo``: 0, unless ``--gate`` asks for the outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from remnant.records import Record, finding_row, gate_row

FINDING = finding_row(headline="A few words", sentence="One sentence.", advice="Do this.")


def _gate(outcome):
    return gate_row(outcome=outcome, sentence="Why.", claim="At most 3 of 9.", limit=0.5, lag=4)


@pytest.fixture
def run(tmp_path):
    """Write a run with this verdict; return its folder."""

    def write(verdict, question="forgetting", name="run", *, finish=True):
        with Record.create(
            tmp_path / name,
            question=question,
            plan={},
            plan_fingerprint="0" * 64,
            data_fingerprint="0" * 64,
            execution={},
            provenance={},
        ) as record:
            if verdict is not None:
                record.put_result("verdict", verdict)
            if finish:
                record.finish()
        return tmp_path / name

    return write


@pytest.fixture
def show(command):
    return lambda folder, *options: command("show", folder, *options)


@pytest.mark.parametrize(
    ("outcome", "code", "allowed"), [("PASS", 0, 0), ("FAIL", 1, 1), ("INCONCLUSIVE", 3, 0)]
)
def test_show_says_the_outcome_with_gate_alone(run, show, outcome, code, allowed):
    folder = run(_gate(outcome))
    plain = show(folder)
    assert plain.code == 0
    said, controls, claim = plain.out.splitlines()[:3]
    assert (said, claim) == (f"{outcome}: Why.", "  claim: At most 3 of 9.")
    assert controls.startswith("  controls: positive control not measured")
    assert (show(folder, "--gate").code, show(folder, "--gate").out) == (
        code,
        plain.out,
    )
    assert show(folder, "--gate", "--json").code == code
    assert show(folder, "--gate", "--allow-inconclusive").code == allowed


def test_an_older_pass_and_a_missing_verdict_are_inconclusive(run, show):
    old = run({"outcome": "PASS", "sentence": "Why.", "limit": 0.5, "lag": 4})
    assert show(old, "--gate").code == 3
    assert not show(old).out.startswith("PASS")
    assert show(run(None, name="none"), "--gate").code == 3


@pytest.mark.parametrize("outcome", ["PASS", "FAIL"])
def test_an_interrupted_run_is_inconclusive_whatever_its_row_says(run, show, outcome):
    folder = run(_gate(outcome), finish=False)
    assert show(folder).code == 0
    assert show(folder, "--gate").code == 3
    assert show(folder, "--gate", "--json").code == 3
    assert show(folder, "--gate", "--allow-inconclusive").code == 3


def test_findings_have_no_gate(run, show):
    folder = run(FINDING, question="prediction")
    assert show(folder).code == 0
    lines = show(folder).out.splitlines()
    assert lines[0] == "FINDING: A few words. One sentence."
    assert lines[2].startswith("  what to do: Do")
    gated = show(folder, "--gate")
    assert gated.code == 2
    assert "--gate needs a run with a limit" in gated.err


def test_a_measurement_without_a_limit_is_a_finding_whatever_its_question(run, show, tmp_path):
    folder = run(FINDING, question="feature-audit", name="all/a")
    gated = show(folder, "--gate")
    assert gated.code == 2
    assert "there are findings only" in gated.err
    run(_gate("PASS"), name="all/b")
    assert show(tmp_path / "all", "--gate").code == 0, "findings do not count"


def test_an_allowance_without_a_gate_is_refused(run, show):
    done = show(run(_gate("PASS")), "--allow-inconclusive")
    assert done.code == 2
    assert "only --gate sets" in done.err


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--gate",), 1)])
def test_several_runs_exit_with_the_worst_gate(run, command, tmp_path, monkeypatch, options, code):
    """``run`` and ``demo`` share this: findings do not count, FAIL wins."""
    folders = {
        "a": run(_gate("INCONCLUSIVE"), name="a"),
        "b": run(_gate("FAIL"), name="b"),
        "c": run(FINDING, question="prediction", name="c"),
    }
    recipes = []
    for name, question in (("a", "forgetting"), ("b", "forgetting"), ("c", "prediction")):
        path = tmp_path / f"{name}.toml"
        path.write_text(f'question = "{question}"\n')
        recipes.append(str(path))

    @dataclass
    class Study:
        question: str

        def to_dict(self):
            return {"question": self.question}

    monkeypatch.setattr(
        "remnant.studies.read_recipe",
        lambda path, scale=None: Study("prediction" if path.stem == "c" else "forgetting"),
    )
    monkeypatch.setattr("remnant.studies.run_study", lambda *args, **kwargs: None)
    done = command("run", *recipes, "--out", tmp_path, *options)
    assert done.code == code, done.err
    assert len(folders) == 3
    only = command("run", recipes[2], "--out", tmp_path / "c", "--gate")
    assert only.code == 2


def test_show_covers_the_runs_that_the_report_covers(run, show):
    """The run in the folder passes and one directly under it does not."""
    folder = run(_gate("PASS"), name="demo")
    run(_gate("FAIL"), name="demo/secret")
    run(FINDING, question="prediction", name="demo/risky")
    run(None, question="shadow-pool", name="demo/pool", finish=False)
    done = show(folder)
    assert done.code == 0
    blocks = done.out.split("\n\n")
    assert [block.split(":")[0] for block in blocks] == ["PASS", "FINDING", "FAIL"]
    assert [
        "study demo:" in blocks[0],
        "study risky:" in blocks[1],
        "study secret:" in blocks[2],
    ] == [True] * 3
    assert show(folder, "--gate").code == 1
    assert show(folder, "--gate", "--allow-inconclusive").code == 1
    summary = json.loads(show(folder, "--json").out)
    assert summary["results"]["verdict"]["outcome"] == "PASS"
    assert list(summary["runs"]) == ["risky", "secret"]
    assert summary["runs"]["secret"]["results"]["verdict"]["outcome"] == "FAIL"
    assert show(folder / "secret").out.startswith("FAIL")
    assert "study secret" not in show(folder / "secret").out


def test_show_of_a_folder_with_runs_under_it_alone(run, show, tmp_path):
    run(_gate("PASS"), name="parent/a")
    run(_gate("PASS"), name="parent/b", finish=False)
    parent = tmp_path / "parent"
    assert show(parent).out.split("\n\n")[1].startswith("interrupted; run the command that began")
    assert show(parent).code == 0
    assert show(parent, "--gate", "--allow-inconclusive").code == 3
    assert list(json.loads(show(parent, "--json").out)["runs"]) == ["b"]
