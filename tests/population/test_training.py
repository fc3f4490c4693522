"""Pauses of the loop: trunks, probes, early stops, checkpoints; and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import InjectPlan, Population
from remnant.errors import InvalidInput, RecordError, UnsupportedModel
from remnant.models import mlp1
from remnant.population import Checkpoint, EarlyStop, LearningRate
from remnant.population import population as population_module
from remnant.population import training as training_module
from remnant.population.memory import Footprint, fitting_split

PLAN = InjectPlan(canaries=2, step=12, watch_steps=8, repeats=2, trials=2, batch=8, twins="fresh")


def make():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 5)
    )


def states(population):
    return [population.state_dict(m) for m in range(len(population))]


def assert_identical(one, other):
    for a, b in zip(one, other, strict=True):
        for name in a:
            assert torch.equal(a[name], b[name]), name


def test_a_trunk_changes_nothing_but_the_cost(toy):
    schedule = PLAN.schedule(examples=56)
    found = []
    for shared in (True, False):
        population = Population(
            make, seeds=PLAN.seeds, dropout_seeds=PLAN.dropout_seeds, precision="float64"
        )
        # Settings that differ in name only keep the members from sharing a trunk.
        rates = 0.1 if shared else [0.1 + 1e-15 * m for m in range(PLAN.members)]
        population.fit(*toy, schedule, lr=rates, momentum=0.9)
        found.append(states(population))
    for one, other in zip(*found, strict=True):
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-9)
    planted, twin, aa = found[0][:3]
    assert not torch.equal(planted["1.weight"], twin["1.weight"])
    assert not torch.equal(aa["1.weight"], twin["1.weight"])


def test_probes_see_all_members_at_the_asked_updates(toy):
    population = Population(make, seeds=PLAN.seeds, dropout_seeds=PLAN.dropout_seeds)
    fit = population.fit(
        *toy,
        PLAN.schedule(examples=56),
        lr=0.1,
        probes={"logits": lambda p: p.logits(toy[0][:3])},
        probe_steps=[0, 12, 14, 22],
    )
    logits = fit.probes["logits"]
    assert fit.probe_steps == (0, 12, 14, 22)
    assert logits.shape == (4, PLAN.members, 3, 5)
    at_branch = logits[1].reshape(2, 3, 3, 5)
    assert (at_branch[:, 0] == at_branch[:, 1]).all()  # the trial's members are still one
    after = logits[2].reshape(2, 3, 3, 5)
    assert (after[:, 0] != after[:, 1]).any()
    assert (after[:, 1] == at_branch[:, 1]).all()  # the twin skipped the injected updates
    np.testing.assert_array_equal(logits[3], population.logits(toy[0][:3]).numpy())


class Killed(BaseException):
    pass


@pytest.mark.parametrize("killed_at", [3, 12, 13, 17])
def test_a_killed_training_goes_on_to_the_same_bits(killed_at, toy, tmp_path):
    def train(checkpoint, on_step=None):
        population = Population(make, seeds=PLAN.seeds, dropout_seeds=PLAN.dropout_seeds)
        fit = population.fit(
            *toy,
            PLAN.schedule(examples=56),
            optimizer="adam",
            lr=0.01,
            learning_rate=LearningRate(kind="cosine", total=30),
            probes={"logits": lambda p: p.logits(toy[0][:3])},
            probe_steps=[0, 5, 13, 20],
            checkpoint=checkpoint,
            on_step=on_step,
        )
        return states(population), fit.probes["logits"]

    def kill(step):
        if step == killed_at:
            raise Killed

    whole, probes = train(None)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", seconds=0, key="toy")
    with pytest.raises(Killed):
        train(checkpoint, kill)
    resumed, again = train(checkpoint)
    assert_identical(whole, resumed)
    np.testing.assert_array_equal(probes, again)


@pytest.mark.parametrize(("takes", "saved"), [(0.125, [5, 10, 15, 20, 25]), (1.0, [5, 14, 23])])
def test_saving_takes_no_more_than_a_tenth_of_the_time(toy, tmp_path, monkeypatch, takes, saved):
    clock, steps = [0.0], []

    def save(path, tensors, notes):
        clock[0] += takes
        steps.append(notes["step"])

    def tick(step):
        clock[0] += 1.0

    monkeypatch.setattr(training_module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(training_module.files, "save", save)
    indices = np.random.default_rng(0).integers(0, 60, (31, 1, 8))
    Population(make, seeds=[0]).fit(
        *toy, indices, checkpoint=Checkpoint(tmp_path / "c", seconds=5.0), on_step=tick, lr=0.1
    )
    assert steps == [step + 1 for step in saved]


def test_what_a_kill_left_half_written_is_removed(toy, tmp_path):
    half = tmp_path / "checkpoint.safetensors.tmp"
    half.write_bytes(b"half")
    indices = np.random.default_rng(0).integers(0, 60, (4, 1, 8))
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", seconds=1000.0)
    Population(make, seeds=[0]).fit(*toy, indices, checkpoint=checkpoint, lr=0.1)
    assert not half.exists()


def test_a_checkpoint_of_another_training_is_refused(toy, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    indices = np.random.default_rng(0).integers(0, 60, (4, 1, 8))

    def train(key="a", **options):
        Population(make, seeds=[0]).fit(
            *toy, indices, checkpoint=Checkpoint(path, seconds=0, key=key), **options
        )

    train(lr=0.1)
    with pytest.raises(RecordError, match="key='a', not 'b'"):
        train("b", lr=0.1)
    with pytest.raises(RecordError, match="settings"):
        train(lr=0.2)


def stop_by_hand(seed, inputs, labels, rows, held, rule):
    """The slow definition of early stopping, one member alone."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    best, misses, kept = float("inf"), 0, None
    for step, row in enumerate(torch.from_numpy(rows), start=1):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[row].double()), labels[row]).backward()
        optimizer.step()
        if step % rule["every"] == 0:
            with torch.no_grad():
                loss = nn.functional.cross_entropy(model(held[0].double()), held[1]).item()
            if loss < best:
                best, misses = loss, 0
                kept = {n: t.clone() for n, t in model.state_dict().items()}
            else:
                misses += 1
            if misses >= rule["patience"]:
                return kept, step
    return kept, -1


def test_each_member_stops_on_its_own_with_its_best_weights(toy, tmp_path):
    inputs, labels = toy
    held, rule = (inputs[40:], labels[40:]), {"every": 3, "patience": 2}
    indices = np.random.default_rng(3).integers(0, 40, (60, 4, 8))

    def train(checkpoint=None, on_step=None):
        population = Population(
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 5)),
            seeds=range(4),
            precision="float64",
        )
        fit = population.fit(
            inputs,
            labels,
            indices,
            lr=0.5,
            early_stop=EarlyStop(*held, **rule),
            checkpoint=checkpoint,
            on_step=on_step,
        )
        return population, fit

    population, fit = train()
    stops = []
    for member in range(4):
        kept, stopped = stop_by_hand(member, inputs, labels, indices[:, member], held, rule)
        stops.append(stopped)
        for name, tensor in population.state_dict(member).items():
            torch.testing.assert_close(tensor, kept[name], rtol=0, atol=1e-9)
    assert fit.stopped_at.tolist() == stops
    assert len(set(stops)) > 1, "the members should stop at different steps"

    def kill(step):
        if step == sorted(stops)[1] + 1:
            raise Killed

    checkpoint = Checkpoint(tmp_path / "c.safetensors", seconds=0)
    with pytest.raises(Killed):
        train(checkpoint, kill)
    assert_identical(states(population), states(train(checkpoint)[0]))


def test_a_loss_of_ones_own(toy):
    inputs, labels = toy
    indices = np.random.default_rng(0).integers(0, 60, (10, 2, 8))

    def brier(logits, targets):
        return (logits.softmax(-1) - nn.functional.one_hot(targets, 5)).square().sum(-1)

    population = Population(lambda: mlp1((1, 8, 8), 5), seeds=[0, 1], precision="float64")
    population.fit(inputs, labels, indices, lr=0.1, loss=brier)
    torch.manual_seed(1)
    model = mlp1((1, 8, 8), 5).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for row in torch.from_numpy(indices[:, 1]):
        optimizer.zero_grad()
        brier(model(inputs[row].double()), labels[row]).mean().backward()
        optimizer.step()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(population.state_dict(1)[name], tensor, rtol=0, atol=1e-9)
    with pytest.raises(InvalidInput, match="one value per example"):
        population.fit(inputs, labels, indices, lr=0.1, loss=nn.functional.cross_entropy)


def test_all_start_from_one_warm_checkpoint(toy):
    warm = Population(make, seeds=[0]).state_dict(0)
    population = Population(make, seeds=[5, 6], start=warm)
    assert_identical(states(population), [warm, warm])
    with pytest.raises(RecordError, match="start does not fit"):
        Population(lambda: nn.Linear(3, 2), seeds=[0], start=warm)


def test_splitting_follows_the_memory():
    need = Footprint(resident=10, gradient=20, activations=80)
    for free, stacked, serial in ((10_000, 8, 8), (600, 3, 8), (300, 1, 2), (90, 1, 1)):
        assert fitting_split(need, members=8, in_flight=None, free=free) == stacked
        assert fitting_split(need, members=8, in_flight=1, free=free) == serial
    with pytest.raises(InvalidInput, match=r"8 members need .* At most 5 members fit"):
        fitting_split(need, members=8, in_flight=None, free=79)


def test_a_population_splits_where_memory_is_short(toy, monkeypatch):
    indices = np.random.default_rng(0).integers(0, 60, (4, 6, 8))
    whole = Population(make, seeds=range(6), precision="float64")
    roomy = whole.fit(*toy, indices, lr=0.1)
    assert roomy.split == 6
    monkeypatch.setattr(population_module, "free_bytes", lambda _: roomy.memory)
    tight = Population(make, seeds=range(6), precision="float64")
    fit = tight.fit(*toy, indices, lr=0.1)
    assert 1 <= fit.split < 6
    assert fit.memory < roomy.memory
    for one, other in zip(states(whole), states(tight), strict=True):
        for name in one:
            torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-9)


INDICES = np.zeros((4, 2, 8), dtype=np.int64)
NAN = torch.full((60, 1, 8, 8), float("nan"))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"indices": INDICES[0]}, InvalidInput, "not \\(steps, members, batch\\)"),
        ({"indices": INDICES[:, :1]}, InvalidInput, "1 members, the population 2"),
        ({"indices": INDICES + 60}, InvalidInput, "rows 60 to 60, but the store holds 60"),
        ({"indices": INDICES - 1}, InvalidInput, "empty places"),
        ({"indices": INDICES.astype(float)}, InvalidInput, "not an integer"),
        ({"active": np.ones((3, 2), bool)}, InvalidInput, "active has shape"),
        ({"active": np.ones((4, 2))}, InvalidInput, "not bool"),
        ({"steps": 5}, InvalidInput, "steps=5 is beyond the schedule's 4"),
        ({"labels": torch.full((60,), 5)}, InvalidInput, "5 to 5, but the model has 5 classes"),
        ({"labels": torch.full((60,), -1)}, InvalidInput, "-1"),
        ({"labels": torch.zeros(59, dtype=torch.long)}, InvalidInput, "differ in length"),
        ({"labels": torch.zeros(60)}, InvalidInput, "whole numbers"),
        ({"inputs": NAN}, InvalidInput, "NaN or infinity in 60 of 60"),
        ({"inputs": torch.zeros(60, 3)}, UnsupportedModel, "cannot take inputs of shape"),
        ({"probe_steps": [5]}, InvalidInput, "not all within 0 to 4"),
        ({"backend": "fast"}, InvalidInput, "not one of stacked, serial"),
        ({"clip": 0.0}, InvalidInput, "clip=0.0"),
    ],
)
def test_bad_input_is_one_clear_sentence(change, error, words, toy):
    given = {"inputs": toy[0], "labels": toy[1], "indices": INDICES, "lr": 0.1, **change}
    with pytest.raises(error, match=words) as caught:
        Population(make, seeds=[0, 1]).fit(
            given.pop("inputs"), given.pop("labels"), given.pop("indices"), **given
        )
    assert "\n" not in str(caught.value)


def test_bad_populations_are_refused():
    for words, arguments in (
        ("seeds is empty", {"seeds": []}),
        ("dropout_seeds has 1", {"seeds": [0, 1], "dropout_seeds": [0]}),
        ("dropout=1.5 is not finite and at least 0 and at most 1", {"seeds": [0], "dropout": 1.5}),
        ("precision='half'", {"seeds": [0], "precision": "half"}),
        ("is not a device", {"seeds": [0], "device": "nowhere"}),
        ("start has 1 checkpoints", {"seeds": [0, 1], "start": [{}]}),
    ):
        with pytest.raises(InvalidInput, match=words):
            Population(make, **arguments)
    with pytest.raises(InvalidInput, match="no dropout layer"):
        Population(lambda: nn.Linear(2, 2), seeds=[0], dropout=0.1)
    with pytest.raises(UnsupportedModel, match=r"not an nn\.Module"):
        Population(lambda: 3, seeds=[0])


def test_each_probe_has_its_own_steps_and_may_ask_some_members(toy):
    population = Population(make, seeds=PLAN.seeds, dropout_seeds=PLAN.dropout_seeds)
    fit = population.fit(
        *toy,
        PLAN.schedule(examples=56),
        lr=0.1,
        probes={
            "all": lambda p: p.logits(toy[0][:3]),
            "some": lambda p: p.logits(toy[0][:3], members=slice(3, 5)),
        },
        probe_steps={"all": [0, 14, 22], "some": [14, 5]},
    )
    assert fit.probe_steps == (0, 5, 14, 22)
    assert fit.probes["all"].shape == (3, 6, 3, 5)
    assert fit.probes["some"].shape == (2, 2, 3, 5)
    np.testing.assert_allclose(fit.probes["some"][1], fit.probes["all"][1][3:5], rtol=1e-6)
    with pytest.raises(InvalidInput, match="'other'"):
        population.fit(*toy, PLAN.schedule(examples=56), lr=0.1, probe_steps={"other": [1]})
