"""What the documents say must be so: examples run, links lead somewhere, recipes parse."""

from __future__ import annotations

import doctest
import json
import re
import sys
from pathlib import Path

import pytest

import remnant.studies
from remnant.studies import read_recipe

ROOT = Path(__file__).parents[1]
MADE = {ROOT / "docs" / "reference" / page for page in ("recipes.md", "recipe-schema.md")}
"""Pages of the site that ``make docs`` makes, and links in it check."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(
        {*(ROOT / "docs").rglob("*.md")} - MADE - {*(ROOT / "docs" / "reference").rglob("api/*.md")}
    ),
]
REMNANT = Path(sys.executable).with_name("remnant")  # the installed command
RECIPES = [
    *sorted((ROOT / "recipes").glob("*.toml")),
    *sorted((Path(remnant.studies.__file__).parent / "recipes").glob("*.toml")),
]


def test_the_examples_of_measures_in_python_give_what_they_show():
    page = ROOT / "docs" / "how-to" / "measures-in-python.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0


def test_the_example_with_scores_of_your_own_models_runs(capsys):
    page = (ROOT / "docs" / "explanation" / "how-forgetting-is-measured.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (code,) = (block for block in blocks if "instance_scores(" in block)
    exec(compile(code, "how-forgetting-is-measured.md", "exec"), {})
    assert "Positive control: the attack found them at lag 0." in capsys.readouterr().out


def test_the_example_of_results_in_python_runs(tmp_path, monkeypatch, capsys, scripts):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how-to" / "results-in-python.md").read_text()
    first, second = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (command,) = re.findall(r"```sh\n(remnant .*?)\n```", page)
    names: dict[str, object] = {}
    exec(compile(first, "results-in-python.md", "exec"), names)
    scripts.run(REMNANT, *command.split()[1:]).check_returncode()
    exec(compile(second, "results-in-python.md", "exec"), names)
    assert "FINDING" in capsys.readouterr().out
    assert (tmp_path / "curve.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        aim = (page.parent / target).resolve()
        if "://" not in target and aim not in MADE:
            assert aim.exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_every_recipe_is_a_study(recipe):
    assert read_recipe(recipe).fingerprint


def test_the_example_runs_and_its_curve_falls(scripts):
    done = scripts.run(ROOT / "examples" / "own_model.py")
    done.check_returncode()
    values = [float(line.split()[3]) for line in done.stdout.splitlines()]
    assert len(values) == 7
    assert values[0] > 0.65
    assert values[-1] < values[0] - 0.1


def test_the_lstm_example_trains_a_model_that_the_command_line_audits(tmp_path, scripts):
    example = ROOT / "examples" / "train_and_audit_lstm.py"
    scripts.run(example, "--out", tmp_path).check_returncode()
    means = {}
    for name in ("planted", "twin"):
        asked = [tmp_path / "canaries.jsonl", "--set", "2", "--model", tmp_path / name, "--json"]
        done = scripts.run(REMNANT, "exposure", "--canaries", *asked)
        done.check_returncode()
        groups = json.loads(done.stdout)["sets"][0]["means"]
        means[name] = {group["repeats"]: group["mean_bits"] for group in groups}
    assert means["planted"][64] > 15 > 5 > means["twin"][64]
