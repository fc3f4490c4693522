"""What may be said of who trains, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.cli.options import workers
from remnant.errors import MissingExtra, RemnantError
from remnant.integrations.workers import ray_workers

RECIPE = str(Path(__file__).parents[3] / "src/remnant/studies/recipes/digits-prediction.toml")


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
        ("--threads 0", "--threads 0 is less than 1"),
        ("--device cuda:0,0", "--device cuda:0,0 names a GPU twice"),
        ("--device cuda:0,", "is neither cpu nor cuda"),
        ("--device tpu", "is neither cpu nor cuda"),
        ("--on ray:nowhere", "nowhere is not the address of a Ray cluster"),
        ("--on ray:127.0.0.1:1", "No Ray cluster can be reached at 127.0.0.1:1"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(options, words, tmp_path):
    out = tmp_path / "run"
    given = ["run", RECIPE, "--out", str(out), *options.split()]
    with pytest.raises(RemnantError, match=words) as caught:
        CliRunner().invoke(commands, given, catch_exceptions=False)
    assert caught.value.hint
    assert not out.exists()


def test_gpus_are_named_one_by_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert workers._check_devices(None, None, "cuda:0,2,3") == ("cuda:0", "cuda:2", "cuda:3")
    assert workers._check_devices(None, None, "cuda:1") == ("cuda:1",)
    with pytest.raises(RemnantError, match="cuda:4 is not there: PyTorch sees 4 GPUs"):
        workers._check_devices(None, None, "cuda:0,4")
    both = {"place": "ray", "workers": None, "gpus_per_task": None}
    with pytest.raises(RemnantError, match="--device cuda:0,cuda:1 and --on ray are both given"):
        workers.check_workers(device=("cuda:0", "cuda:1"), **both)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(ray_workers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"--on ray needs Ray.*\[ray\]"):
        ray_workers.check_installed()


def test_a_dry_run_says_how_many_tasks_of_what_size_on_how_many_workers(tmp_path):
    given = ["run", RECIPE, "--dry-run", "--on", "ray", "--workers", "3", "--pool-block", "8"]
    shown = CliRunner().invoke(commands, given, catch_exceptions=False).output
    assert "tasks    7, in 2 stages one after another; the largest trains 8 models" in shown
    assert "workers  3: " in shown
    estimate = json.loads(
        CliRunner().invoke(commands, [*given, "--json"], catch_exceptions=False).output
    )
    assert [group["models"] for group in estimate["groups"]] == [4, *[8] * 6]
    assert estimate["minutes_on_workers"] <= estimate["minutes"]


@pytest.mark.parametrize("command", ["run", "demo", "audit"])
def test_every_command_that_trains_takes_threads(command):
    assert "--threads" in CliRunner().invoke(commands, [command, "--help"]).output


def test_threads_are_those_of_libraries_that_are_loaded_later_too(monkeypatch):
    before = torch.get_num_threads()
    for name in workers.THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")  # and back again afterwards
    try:
        workers._use_threads(None, None, 3)
        assert torch.get_num_threads() == 3
        assert {os.environ[name] for name in workers.THREAD_VARIABLES} == {"3"}
    finally:
        torch.set_num_threads(before)
