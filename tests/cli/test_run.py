"""``remnant run`` with several recipes, and with a scale."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from remnant.records import Record

RECIPE = """
question = "forgetting"
[plan]
kind = "inject"
canaries = 12
step = 6
watch_steps = 8
trials = 2
batch = 16
[data]
name = "digits"
examples = 100
[model]
name = "logistic"
[attack]
success = "auc"
lags = [0, 4, 8]
[scale.larger]
plan.trials = 3
"""


@pytest.fixture
def recipes(tmp_path):
    made = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.toml"
        path.write_text(RECIPE + ("" if name == "one" else "[scale.huge]\nplan.trials = 4\n"))
        made.append(path)
    return made


def test_several_recipes_go_into_one_report(command, recipes, tmp_path):
    done = command("run", *recipes, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert "  study one: forgetting" in done.out
    assert "  study two: forgetting" in done.out
    assert (tmp_path / "runs" / "report.html").read_text().count("run1-") > 0
    assert {p.parent.name for p in (tmp_path / "runs").glob("*/record.sqlite")} == {"one", "two"}
    again = json.loads(command("run", *recipes, "--out", tmp_path / "runs", "--json").out)
    assert again["status"] == again["runs"]["two"]["status"] == "complete"


def test_a_scale_replaces_fields(command, recipes, tmp_path):
    done = command("run", recipes[0], "--scale", "larger", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert Record.open(tmp_path / "run").plan["plan"]["trials"] == 3
    refused = command("run", *recipes, "--scale", "huge", "--out", tmp_path / "none")
    assert refused.code == 2
    assert "one.toml has no scale 'huge'. It has: larger." in refused.err
    assert not (tmp_path / "none").exists()


def test_estimates_of_several_are_told_apart(command, recipes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = command("run", *recipes, "--dry-run").out.splitlines()
    assert [line for line in text if "  " not in line] == ["one", "two"]
    found = json.loads(command("run", *recipes, "--dry-run", "--json").out)
    assert set(found) == {"one", "two"}
    assert "minutes" in json.loads(command("run", recipes[0], "--dry-run", "--json").out)
    assert not (tmp_path / "runs").exists()


def test_an_estimate_of_no_time_says_under_how_much(command, recipes, monkeypatch):
    made = {"members": 3, "steps": 2, "memory_mib": 0.1, "minutes": 0.0, "groups": []}
    monkeypatch.setattr("remnant.studies.estimate_study", lambda *given, **options: dict(made))
    assert "minutes  under 0.01 (timed on" in command("run", recipes[0], "--dry-run").out


def test_an_estimate_that_is_a_bound_says_so(command):
    recipe = files("remnant.studies") / "recipes" / "digits-features.toml"
    last = command("run", str(recipe), "--dry-run").out.splitlines()[-1]
    assert last.startswith("minutes")
    assert last.endswith(" at most, since models stop early (timed on a few steps on cpu)")


def test_a_fault_of_one_of_several_recipes_names_its_file(command, recipes, tmp_path):
    for old, new, words in (
        ("trials = 2", "trials = 0", "trials=0"),
        ("examples = 100", "examples = 9999", "data.examples=9999"),
    ):
        recipes[1].write_text(RECIPE.replace(old, new))
        for more in (["--dry-run"], []):
            done = command("run", *recipes, "--out", tmp_path / words / "runs", *more)
            assert done.code == 2
            assert words in done.err
            assert "two.toml: " in done.err or f"{tmp_path / words / 'runs' / 'two'}: " in done.err
        alone = command("run", recipes[1], "--out", tmp_path / "alone")
        assert "two.toml" not in alone.err


def test_two_recipes_of_one_name_are_refused(command, recipes, tmp_path):
    (tmp_path / "other").mkdir()
    twin = tmp_path / "other" / "one.toml"
    twin.write_text(RECIPE)
    done = command("run", recipes[0], twin, "--out", tmp_path / "runs")
    assert done.code == 2
    assert "Two recipes have the same name" in done.err
    assert not (tmp_path / "runs").exists()
