"""What a measurement may cost is announced on standard error, and changes nothing else."""

from __future__ import annotations

import re

import pytest

from remnant.canaries import Template
from remnant.cli import cost
from remnant.cli.cost import announce, sampled_is_cheaper
from remnant.errors import InvalidInput
from remnant.integrations import load_sequence_model
from remnant.search import exact_exposure
from remnant.studies.exposure.cost_estimate import SearchCost, estimate_search

LONG = SearchCost(nodes=1_111_110, reference_nodes=17_000, row_seconds=0.005, memory=10**9)
SIZE = r"about \d+ (s|minutes) and \d+\.\d GB on this machine \(\d+ threads?\)\."


@pytest.fixture
def announced(monkeypatch):
    """Announce whatever takes any time at all."""
    monkeypatch.setattr(cost, "LEAST_SECONDS", 0.0)


def test_nodes_time_memory_and_the_cheaper_way_are_said_in_a_line(announced, capsys):
    announce("Ranking 12 canaries", lambda: [LONG], cheaper=sampled_is_cheaper)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(
        r"Ranking 12 canaries: up to 1 200 000 nodes, about 95 minutes and \d+\.\d GB on this "
        r"machine \(\d+ threads?\)\. `--method sampled` takes about 85 s\.\n",
        said.err.replace("about 1.6 hours", "about 95 minutes"),
    )


def test_sampling_is_not_offered_to_who_samples(announced, capsys):
    announce("Ranking", lambda: [LONG], exact=False, cheaper=sampled_is_cheaper)
    said = capsys.readouterr().err
    assert said.startswith("Ranking: up to 17 000 nodes, about 85 s and ")
    assert "--method" not in said


def test_a_time_budget_bounds_each_walk(announced, capsys):
    announce("Ranking", lambda: [LONG, LONG], max_seconds=60)
    assert "about 5 minutes" in capsys.readouterr().err, "2 x (60 + 85) s"


def test_what_is_short_and_what_cannot_be_estimated_is_not_announced(monkeypatch, capsys):
    monkeypatch.setattr(cost, "LEAST_SECONDS", 30.0)

    def faulty():
        raise InvalidInput("the template cannot be encoded.")

    announce("Ranking", lambda: [SearchCost(**{**_fields(LONG), "row_seconds": 1e-6})])
    announce("Ranking", faulty)
    announce("Ranking", list)
    announce("Ranking", lambda: [LONG], max_seconds=10)
    assert capsys.readouterr() == ("", "")


def _fields(given):
    return {name: getattr(given, name) for name in SearchCost.__dataclass_fields__}


def test_the_nodes_of_an_estimate_bound_those_of_the_walk(planted):
    model = load_sequence_model(planted.model)
    template = Template("my pin is {digits:4}")
    ticks = iter(range(100))
    estimate = estimate_search(
        model, template, max_nodes=10**6, references=50, clock=lambda: float(next(ticks))
    )
    secrets = [f"{n:04}" for n in (0, 1234, 9999)]
    own = 3 * 4  # the secrets are read by themselves, and 32 more to find the tolerance
    walked = exact_exposure(model, template, secrets=secrets).nodes - own - 32 * 4
    assert 0 < walked <= estimate.nodes == 10 + 100 + 1000
    assert estimate.reference_nodes == 10 + 50 + 50
    assert estimate.row_seconds == 1 / 32
    assert estimate_search(model, template, max_nodes=30).nodes == 30
    assert estimate.memory > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("exposure", "--max-nodes", 3000, "--references", 200), "Ranking 6 canaries and controls"),
        (("extract", "--template", "my pin is {digits:6}"), "Certified search among 1 000 000"),
    ],
)
def test_an_announcement_changes_no_result(command, planted, monkeypatch, arguments, said):
    name, *options = arguments
    asked = (name, "--model", planted.model, *options, "--canaries", planted.canaries, "--json")
    silent = command(*asked)
    monkeypatch.setattr(cost, "LEAST_SECONDS", 0.0)
    done = command(*asked)
    assert (done.code, done.out) == (silent.code, silent.out)
    assert silent.err == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"{said}")
    assert re.search(SIZE, done.err)


def test_a_scan_announces_the_secrets_that_it_measures(command, planted, announced, tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("my pin is free, call 202-555-0143\n")
    asked = ("scan", letter, "--references", 20, "--max-nodes", 100)
    assert command(*asked[:2]).err == "", "without a model there is nothing to announce"
    done = command(*asked, "--model", planted.model)
    assert done.code == 0, done.err
    assert "555-0143" not in done.err
