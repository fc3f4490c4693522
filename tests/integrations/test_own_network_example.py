"""The example of a network of one's own: its recipes run as their first lines say, and resume."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from remnant.data import Images
from remnant.measures import psmi
from remnant.population import Population
from remnant.probes.influence import self_influence
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.features.influence import InfluenceProbe
from remnant.studies.own_code import trusted_file, with_digests
from remnant.studies.prediction.images import prepare
from remnant.studies.shared.classifiers import maker_of

HOME = Path(__file__).parents[2] / "examples" / "own_network"
NETWORKS = HOME / "networks.py"
NETS = {  # the options of each, and what its hidden layer gives
    "resnet": ('width = 4, hidden = "3"', lambda net, images: net[:4](images)),
    "gru": ('units = 8, hidden = "reader"', lambda net, images: net.reader(images[:, 0])[0]),
}
FEWER = {  # of the recipe of prediction
    "models = 16": "models = 8",
    "steps = 300": "steps = 40",
    "examples = 400": "examples = 120",
    "mislabelled = 40": "mislabelled = 12",
    "targets = 3": "targets = 2",
    "moments = [1.0, 2.0, 4.0, 8.0, 16.0]": "moments = [4.0]",
}
FEWER_CANARIES = {  # of the recipe of features
    "canaries = 6": "canaries = 2",
    "unplanted = 4": "unplanted = 1",
    "epochs = 30": "epochs = 3",
    "examples = 400": "examples = 150",
    "count = 100": "count = 20",
    "nulls = 39": "nulls = 19",
}
QUICK = {"trials = 4": "trials = 2", "canaries = 16": "canaries = 12", "step = 60": "step = 30"}


def recipe(name, folder, **changes):
    """A copy of a recipe with some of its text replaced."""
    text = (HOME / f"{name}.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.toml").write_text(text)
    return folder / f"{name}.toml"


@pytest.mark.parametrize(
    "name", ["resnet", "resnet-one-run", "gru", "gru-prediction", "gru-features"]
)
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


def quick(name, folder, network, changes):
    """The study of a smaller recipe with one of the networks, and how it is run."""
    old = 'networks:gru"\noptions = { '
    old += "units = 32" if name == "gru-prediction" else "pixels = 20"
    old += ', hidden = "reader" }'
    options = NETS[network][0]
    if network == "gru" and name == "gru-features":
        options += ", pixels = 20"
    new = f'networks:{network}"\noptions = {{ {options} }}'
    path = recipe(name, folder, **{**changes, old: new})
    execution = Execution(recipe_folder=HOME, trusted=(trusted_file(NETWORKS),))
    return with_digests(read_recipe(path), execution), execution


@pytest.mark.parametrize("network", NETS)
def test_prediction_reads_the_hidden_states_that_the_layer_gives(network, tmp_path):
    study, execution = quick("gru-prediction", tmp_path, network, FEWER)
    task = prepare(study, execution)
    _, models = task.fit(task.targets)
    seen = study.plan.seen(examples=len(task.labels), members=task.targets)
    images, risks = torch.from_numpy(task.planting.store.images), []
    for target, (_, [states]) in enumerate(task.look(models, seen)):
        net = maker_of(study, execution, like=task.planting.store.images, classes=10)()
        net.load_state_dict(models.state_dict(target))
        with torch.no_grad():
            by_hand = NETS[network][1](net.eval(), images[seen[target]]).flatten(1)
        torch.testing.assert_close(states, by_hand, rtol=1e-4, atol=1e-5)
        rng = np.random.default_rng([study.plan.seed, 3])
        labels = task.labels[seen[target]]
        risks.append(psmi(hidden=by_hand, labels=labels, directions=2000, rng=rng).risk)
    run_study(study, tmp_path / "run", execution)
    record = Record.open(tmp_path / "run")
    assert record.status == "complete"
    for target, risk in enumerate(risks):  # of the run's own training: the same models again
        kept = record.array("looks.psmi")[-1, 0, target, seen[target]]
        np.testing.assert_allclose(kept, risk, rtol=1e-4, atol=1e-4)
    assert record.execution["targets.backend"].startswith("serial")


@pytest.mark.parametrize("network", NETS)
def test_features_are_measured_and_their_units_are_those_of_the_layer(network, tmp_path):
    study, execution = quick("gru-features", tmp_path, network, FEWER_CANARIES)
    run_study(study, tmp_path / "run", execution)
    record = Record.open(tmp_path / "run")
    assert record.status == "complete"
    units = {"resnet": 8, "gru": 20 * 8}[network]
    assert record.array("plain.activations").shape == (3, units)
    assert record.result("features")["variants"][0]["activations"]["units"] == units
    assert np.isfinite(record.array("plain.unique")).all()


@pytest.mark.parametrize("network", NETS)
def test_self_influence_is_that_of_plain_autograd(network, tmp_path):
    study, execution = quick("gru-features", tmp_path, network, FEWER_CANARIES)
    inputs = np.random.default_rng(0).normal(size=(5, 1, 20, 20)).astype(np.float32)
    labels = np.arange(5)
    make = maker_of(study, execution, like=inputs, classes=10)
    models = Population(make, seeds=[3])
    models.fit(inputs, labels, np.tile(np.arange(5), (20, 1, 1)), lr=0.05)
    net = make().eval()
    net.load_state_dict(models.state_dict(0))
    by_hand = []
    for image, label in zip(torch.from_numpy(inputs), torch.from_numpy(labels), strict=True):
        loss = torch.nn.functional.cross_entropy(net(image[None]), label[None])
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        by_hand.append(sum(float(gradient.double().square().sum()) for gradient in gradients))
    one_pass = self_influence(
        net, torch.from_numpy(inputs), labels, checkpoints=[(net.state_dict(), 1.0)]
    )
    np.testing.assert_allclose(one_pass, by_hand, rtol=1e-4)
    examples = Images(inputs, labels)
    probe = InfluenceProbe(make, sample=examples, examples=[examples])
    np.testing.assert_allclose(probe(models)[1:], by_hand, rtol=1e-4)
