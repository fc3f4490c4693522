"""What may be said of who trains, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import click
import pytest
import torch
from click.testing import CliRunner

from remnant.cli import run as command
from remnant.cli.main import commands
from remnant.cli.options import declared
from remnant.errors import MissingExtra, RemnantError
from remnant.integrations.workers import ray_workers
from remnant.integrations.workers.ray_workers import RayWorkers, Room

RECIPE = str(Path(__file__).parents[2] / "src/remnant/studies/recipes/digits-prediction.toml")


@pytest.mark.parametrize("more", ["", "--dry-run"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--on slurm", "--on slurm is neither ray nor ray:ADDRESS"),
        ("--on ray:", "--on ray: is neither ray nor ray:ADDRESS"),
        ("--workers 2", "--workers needs --on"),
        ("--gpus-per-task 1", "--gpus-per-task needs --on"),
        ("--on ray --workers 0", "--workers 0 is less than 1"),
        ("--on ray --gpus-per-task 1.5", "neither a share of a GPU nor a whole number"),
        ("--on ray --gpus-per-task 0", "neither a share of a GPU nor a whole number"),
        ("--on ray --gpus-per-task nan", "neither a share of a GPU nor a whole number"),
        ("--on ray --gpus-per-task 0.5", "0.5 is more than this machine has: PyTorch sees 0 GPUs"),
        ("--threads 0", "--threads 0 is less than 1"),
        ("--device cuda:0,0", "--device cuda:0,0 names a GPU twice"),
        ("--device cuda:0,", "is neither cpu nor cuda"),
        ("--device cuda:0,1", "--device cuda:0 is not there: PyTorch sees 0 GPUs"),
        ("--device cpu,cpu", "is neither cpu nor cuda"),
        ("--device tpu", "is neither cpu nor cuda"),
        ("--on ray:nowhere", "nowhere is not the address of a Ray cluster"),
        ("--on ray:host:70000", "host:70000 is not the address of a Ray cluster"),
        ("--on ray:ray://host:10001", "ray://host:10001 is not the address of a Ray cluster"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(options, words, more, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    out = tmp_path / "run"
    given = ["run", RECIPE, "--out", str(out), *options.split(), *more.split()]
    with (
        mock.patch("remnant.studies.estimate_study", side_effect=AssertionError("timed a study")),
        pytest.raises(RemnantError, match=words) as caught,
    ):
        CliRunner().invoke(commands, given, catch_exceptions=False)
    assert caught.value.hint
    assert not out.exists()


def test_a_cluster_that_does_not_answer_is_one_sentence(tmp_path):
    given = ["run", RECIPE, "--out", str(tmp_path / "run"), "--on", "ray:127.0.0.1:1"]
    with pytest.raises(RemnantError, match=r"No Ray cluster can be reached at 127\.0\.0\.1:1"):
        CliRunner().invoke(commands, given, catch_exceptions=False)
    assert not (tmp_path / "run").exists()


def test_gpus_are_named_one_by_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert command._check_devices(None, None, "cuda:0,2,3") == ("cuda:0", "cuda:2", "cuda:3")
    assert command._check_devices(None, None, "cuda:1") == ("cuda:1",)
    with pytest.raises(RemnantError, match="cuda:4 is not there: PyTorch sees 4 GPUs"):
        command._check_devices(None, None, "cuda:0,4")
    both = {"place": "ray", "workers": None, "gpus_per_task": None}
    with pytest.raises(RemnantError, match="--device cuda:0,cuda:1 and --on ray are both given"):
        command.check_workers(device=("cuda:0", "cuda:1"), **both)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(ray_workers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"--on ray needs Ray.*\[ray\]"):
        ray_workers.check_installed()


def dry_run(*options):
    """What a dry run of a shadow pool of 48 models prints, and the same as JSON."""
    given = ["run", RECIPE, "--dry-run", "--pool-block", "8", *options]
    shown = CliRunner().invoke(commands, given, catch_exceptions=False).output
    plain = CliRunner().invoke(commands, [*given, "--json"], catch_exceptions=False).output
    return shown, json.loads(plain)


@pytest.fixture
def a_minute_a_group(monkeypatch):
    """Let every group of an estimate take a minute."""
    groups = [{"name": "targets", "stage": 0, "models": 4, "steps": 600, "minutes": 1.0}]
    groups += [
        {"name": f"{number}", "stage": 1, "models": 8, "steps": 600, "minutes": 1.0}
        for number in range(6)
    ]
    made = {"members": 52, "steps": 600, "memory_mib": 1.0, "minutes": 7.0, "groups": groups}
    monkeypatch.setattr("remnant.studies.estimate_study", lambda *_: made, raising=False)


@pytest.fixture(autouse=True)
def as_many_threads_as_before(monkeypatch):
    """--threads is for the whole process."""
    for name in declared.THREAD_VARIABLES:
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_dry_run_says_how_many_tasks_of_what_size_on_how_many_workers(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    shown, estimate = dry_run("--on", "ray", "--workers", "3", "--threads", "1")
    assert "tasks    7, in 2 stages one after another; the largest trains 8 models" in shown
    assert "workers  3: " in shown
    assert shown.endswith("if each is as fast as this process, 4 s of them for Ray to start\n")
    assert [group["models"] for group in estimate["groups"]] == [4, *[8] * 6]
    assert estimate["minutes_on_workers"] <= estimate["minutes"] + 4 / 60 + 0.01


def test_workers_are_no_faster_than_the_processors_that_they_share(monkeypatch, a_minute_a_group):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    shown, estimate = dry_run("--on", "ray", "--workers", "6", "--threads", "2")
    assert "workers  6, of which this machine runs 2 at full speed: 4.07 minutes" in shown
    assert (estimate["workers"], estimate["start_seconds"]) == (2, 4.0)
    assert dry_run("--on", "ray", "--threads", "1")[1]["minutes_on_workers"] == 3.07
    assert dry_run("--on", "ray", "--threads", "9")[1]["minutes_on_workers"] == 7.07


@pytest.mark.parametrize(
    ("room", "options", "words", "minutes"),
    [
        (None, "", "not known, because no Ray cluster can be reached at host:6379; pass", None),
        (None, "--workers 6", "6 as assumed, because no Ray cluster can be reached at", 2.07),
        (Room(tasks=3, machines=2), "", "3 on 2 machines: 3.07 minutes", 3.07),
        (Room(tasks=3, machines=1), "--workers 2", "2 on 1 machine: 4.07 minutes", 4.07),
        (Room(3, 2), "--workers 9", "3 on 2 machines, which is less than --workers 9: ", 3.07),
    ],
)
def test_a_dry_run_counts_the_processors_of_the_cluster_and_not_those_here(
    room, options, words, minutes, monkeypatch, a_minute_a_group
):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(RayWorkers, "survey", lambda self: room)
    shown, estimate = dry_run("--on", "ray:host:6379", *options.split())
    assert f"workers  {words}" in shown
    assert estimate["minutes_on_workers"] == minutes


def test_no_answer_at_the_address_leaves_the_number_of_workers_open():
    assert RayWorkers("127.0.0.1:1", count=None, threads=1).survey() is None


def test_the_start_of_ray_is_counted_once(a_minute_a_group, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(Path(RECIPE).read_text())
    _, estimates = dry_run(str(other), "--on", "ray", "--workers", "1")
    starts = [estimate["start_seconds"] for estimate in estimates.values()]
    assert sorted(starts) == [0.0, 4.0]


def test_tasks_that_are_not_timed_are_named():
    recipe = str(Path(RECIPE).with_name("stdlib-secret.toml"))
    given = ["run", recipe, "--dry-run", "--on", "ray", "--workers", "1"]
    lines = CliRunner().invoke(commands, given, catch_exceptions=False).output.splitlines()
    (untimed,) = (line for line in lines if line.startswith("untimed"))
    assert untimed.startswith("untimed  exposure, trial 1 of ")
    assert untimed.endswith(" (these minutes come on top)")


@pytest.mark.parametrize("command", ["run", "demo", "audit"])
def test_every_command_that_trains_takes_threads(command):
    assert "--threads" in CliRunner().invoke(commands, [command, "--help"]).output


def test_threads_are_those_of_libraries_that_are_loaded_later_too(monkeypatch):
    before = torch.get_num_threads()
    for name in declared.THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")  # and back again afterwards
    try:
        declared._use_threads(click.Context(click.Command("x")), None, 3)
        assert torch.get_num_threads() == 3
        assert {os.environ[name] for name in declared.THREAD_VARIABLES} == {"3"}
    finally:
        torch.set_num_threads(before)
