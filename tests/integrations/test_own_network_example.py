"""The example of a network of one's own: its recipes run as their first lines say, and resume."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.own_code import trusted_file

HOME = Path(__file__).parents[2] / "examples" / "own_network"
NETWORKS = HOME / "networks.py"
QUICK = {"trials = 4": "trials = 2", "canaries = 16": "canaries = 12", "step = 60": "step = 30"}


def recipe(name, folder, **changes):
    """A copy of a recipe with some of its text replaced."""
    text = (HOME / f"{name}.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


@pytest.mark.parametrize("name", ["resnet", "resnet-one-run", "gru"])
def test_each_recipe_is_run_as_it_says(name):
    text = (HOME / f"{name}.toml").read_text()
    shown = f"examples/own_network/{name}.toml --trust examples/own_network/networks.py"
    assert f"# remnant run {shown}\n" in text


@pytest.mark.parametrize("name", ["resnet-one-run", "gru"])
def test_one_run_finds_what_was_planted_in_a_network_that_learnt_its_task(name, tmp_path):
    execution = Execution(recipe_folder=HOME, trusted=(trusted_file(NETWORKS),))
    run_study(read_recipe(HOME / f"{name}.toml"), tmp_path / "run", execution)
    record = Record.open(tmp_path / "run")
    task = record.result("task")
    assert task["test_accuracy"] > 0.5 > task["majority"]
    assert record.result("one_run")["found"]
    reason = {"gru": "recurrent layers do not vmap", "resnet-one-run": "one model at a time"}[name]
    assert re.fullmatch(rf"serial \(.*{reason}\)", record.execution["run.backend"])


def test_a_resnet_goes_through_inject_is_killed_and_goes_on_to_the_same_bytes(tmp_path):
    quick = recipe("resnet", tmp_path, **QUICK)
    command = [sys.executable, "-c", "from remnant.cli.main import main; main()", "run", str(quick)]
    command += ["--trust", str(NETWORKS), "--threads", "1", "--checkpoint-seconds", "0", "--out"]
    killed = subprocess.Popen([*command, str(tmp_path / "killed")], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 500
    while not list((tmp_path / "killed").glob("checkpoint*.safetensors")):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    assert Record.open(tmp_path / "killed").status == "running"
    for folder in ("killed", "whole"):
        subprocess.run([*command, str(tmp_path / folder)], check=True, timeout=3600)
    resumed, whole = (Record.open(tmp_path / name) for name in ("killed", "whole"))
    assert (len(resumed.attempts()), len(whole.attempts())) == (2, 1)
    for name in whole.array_names():
        assert resumed.array(name).tobytes() == whole.array(name).tobytes()
    assert whole.result("task")["test_accuracy"] > whole.result("task")["majority"]
