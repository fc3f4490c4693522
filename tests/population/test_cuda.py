"""What only a GPU can show; ``make test-gpu`` runs these where there is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from remnant import Population
from remnant.models import cnn1, conformer, mlp1, small_resnet
from remnant.models.recogniser import PackedRecogniser, backend_for, ctc_loss, pack
from remnant.population import Augmentation, EarlyStop, fused
from remnant.population.optimizers import make_optimizer
from remnant.population.state import State
from remnant.population.update_rules import attach, update

pytestmark = pytest.mark.cuda
SHAPE = (1, 8, 8)
MODELS = {
    "mlp1": (lambda: mlp1(SHAPE, 5, batch_norm=True, dropout=0.3), 50),
    "cnn1": (lambda: cnn1(SHAPE, 5, batch_norm=True, dropout=0.2), 10),
    "small_resnet": (lambda: small_resnet(SHAPE, 5), 5),
}


def trained(make, toy, steps, **options):
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 60, (steps, 3, 16))
    active = rng.random((steps, 3)) > 0.2
    made = {k: options.pop(k) for k in ("device", "precision") if k in options}
    population = Population(make, seeds=[1, 2, 3], **made)
    population.fit(*toy, indices, active=active, lr=0.05, momentum=0.9, **options)
    return population.logits(toy[0]).cpu().double()


@pytest.mark.parametrize("backend", ["stacked", "serial"])
@pytest.mark.parametrize("name", MODELS)
def test_the_gpu_gives_the_cpus_members(name, backend, toy):
    make, steps = MODELS[name]
    expected = trained(make, toy, steps, precision="float64")
    for graphs in (True, False):
        found = trained(
            make, toy, steps, device="cuda", precision="float64", backend=backend, graphs=graphs
        )
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_single_precision_stays_near_double(name, toy):
    make, _ = MODELS[name]
    expected = trained(make, toy, 4, precision="float64")
    for options in ({}, {"graphs": False}, {"backend": "serial"}, {"precision": "tf32"}):
        given = {"device": "cuda", "precision": "float32", **options}
        found = trained(make, toy, 4, **given)
        limit = 2e-2 if given["precision"] == "tf32" else 1e-4
        torch.testing.assert_close(found, expected, rtol=0, atol=limit)


@pytest.mark.parametrize("backend", ["stacked", "serial"])
@pytest.mark.parametrize("make", [lambda: mlp1(SHAPE, 5, dropout=0.3), lambda: cnn1(SHAPE, 5)])
def test_private_members_are_the_cpus(make, backend, toy):
    private = {"optimizer": "dp-sgd", "clip": 0.5, "noise": [0.0, 0.5, 2.0], "backend": backend}
    expected = trained(make, toy, 6, precision="float64", **private)
    found = trained(make, toy, 6, device="cuda", precision="float64", **private)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("backend", ["stacked", "serial"])
def test_augmented_members_are_the_cpus_also_in_a_graph(backend, toy):
    make, steps = MODELS["mlp1"]
    how = {"precision": "float64", "augment": Augmentation(contrast=0.3, crop=6, flip=True)}
    expected = trained(make, toy, steps, **how)
    for graphs in (True, False):
        found = trained(make, toy, steps, device="cuda", backend=backend, graphs=graphs, **how)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sgd", {"momentum": 0.9}),
        ("adam", {"weight_decay": 0.1}),
        ("adamw", {"betas": ([0.9, 0.8, 0.0, 0.5, 0.99], 0.99), "weight_decay": 0.1}),
    ],
)
def test_the_fused_update_equals_its_slow_twin(name, options, monkeypatch):
    """Also for weights that are stored transposed, as their gradients come."""
    members = 5
    rule = make_optimizer(
        name, members=members, options={"lr": [0.1, 0.2, 0.0, 1.0, 0.5], **options}
    )

    def run(usable):
        torch.manual_seed(0)
        weights = torch.randn(members, 300, 70, device="cuda").transpose(1, 2)
        state = State(
            {
                "params": {"w": weights, "b": torch.randn(members, 70, device="cuda")},
                "clocks": {"lifetime": torch.zeros(members, dtype=torch.int64, device="cuda")},
            }
        )
        attach(rule, state)
        if not usable:
            monkeypatch.setattr(fused, "usable", lambda *_: False)
        for _ in range(3):
            grads = {
                "w": torch.randn(members, 300, 70, device="cuda").transpose(1, 2),
                "b": torch.randn(members, 70, device="cuda"),
            }
            if usable:
                assert fused.usable(state["params"]["w"], grads["w"])
            update(rule, state, grads, torch.ones(members, device="cuda", dtype=torch.float64))
        return state["params"]

    fast, slow = run(True), run(False)
    for name in fast:
        torch.testing.assert_close(fast[name], slow[name], rtol=1e-6, atol=1e-6)


def test_early_stopping_on_the_gpu_equals_the_cpus(toy):
    inputs, labels = toy
    indices = np.random.default_rng(3).integers(0, 40, (60, 6, 8))
    stops = []
    for device in ("cpu", "cuda"):
        population = Population(
            lambda: mlp1(SHAPE, 5), seeds=range(6), precision="float64", device=device
        )
        fit = population.fit(
            inputs,
            labels,
            indices,
            lr=0.3,
            early_stop=EarlyStop(inputs[40:], labels[40:], every=3, patience=2),
        )
        stops.append((fit.stopped_at.tolist(), population.logits(inputs).cpu()))
    assert stops[0][0] == stops[1][0]
    torch.testing.assert_close(stops[0][1], stops[1][1], rtol=0, atol=1e-9)


def test_a_compiled_model_is_the_same_model(toy):
    make, _ = MODELS["small_resnet"]
    plain = trained(make, toy, 4, device="cuda", precision="float32", backend="serial")
    with pytest.warns():  # the compiler has advice
        fast = trained(
            make, toy, 4, device="cuda", precision="float32", backend="serial", compiled=True
        )
    torch.testing.assert_close(fast, plain, rtol=0, atol=1e-4)


@pytest.mark.parametrize("graphs", [False, True])
def test_recognisers_of_speech_equal_those_on_the_processor(graphs):
    rng = np.random.default_rng(0)
    spoken = [rng.normal(size=(int(rng.integers(24, 60)), 6)) for _ in range(10)]
    said = [rng.integers(1, 8, size=int(rng.integers(1, 4))).tolist() for _ in range(10)]
    inputs, targets = pack(spoken, said)
    rows = rng.integers(0, 10, (8, 3, 4))

    def make():
        return PackedRecogniser(conformer(8, bands=6, width=16, layers=1, heads=2, dropout=0.2))

    states = []
    for device in ("cpu", "cuda"):
        population = Population(make, seeds=[4, 5, 6], precision="float64", device=device)
        fit = population.fit(
            inputs,
            targets,
            rows,
            optimizer="adam",
            lr=1e-2,
            loss=ctc_loss,
            backend=backend_for(device),
            graphs=graphs,
        )
        states.append(population.state_dict(1))
    assert fit.backend == "stacked"
    for name, tensor in states[0].items():
        torch.testing.assert_close(states[1][name].cpu(), tensor, atol=1e-9, rtol=1e-9)


def test_a_loss_that_waits_for_the_host_is_trained_without_a_graph():
    def waiting(outputs, labels):
        assert float(outputs.detach().sum()) < 1e9
        return torch.nn.functional.cross_entropy(outputs, labels, reduction="none")

    rng = np.random.default_rng(0)
    inputs, labels = torch.randn(32, 5), torch.from_numpy(rng.integers(0, 3, 32))
    rows = rng.integers(0, 32, (6, 2, 8))
    states = []
    for loss in (None, waiting):
        population = Population(
            lambda: torch.nn.Sequential(
                torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
            ),
            seeds=[0, 1],
            precision="float64",
            device="cuda",
        )
        population.fit(inputs, labels, rows, lr=0.1, loss=loss, backend="serial")
        states.append(population.state_dict(1))
    for name, tensor in states[0].items():
        torch.testing.assert_close(states[1][name], tensor, atol=1e-12, rtol=1e-12)
