"""Member i of N equals the same member alone, and alone equals a plain torch loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.models import cnn1, cnn2, densenet100, logistic, mlp1, small_resnet, wrn16_4
from remnant.population import LearningRate

SHAPE, CLASSES, SEEDS = (1, 8, 8), 5, [3, 4, 5]
MODELS = {
    "logistic": (lambda: logistic(SHAPE, CLASSES), 50),
    "mlp1": (lambda: mlp1(SHAPE, CLASSES), 50),
    "mlp1+norm": (lambda: mlp1(SHAPE, CLASSES, batch_norm=True), 50),
    "cnn1+norm": (lambda: cnn1(SHAPE, CLASSES, batch_norm=True), 8),
    "cnn2": (lambda: cnn2(SHAPE, CLASSES), 4),
    "small_resnet": (lambda: small_resnet(SHAPE, CLASSES), 5),
    "wrn16_4": (lambda: wrn16_4(SHAPE, CLASSES), 2),
    "densenet100": (lambda: densenet100(SHAPE, CLASSES), 1),
}
WITH_DROPOUT = {
    "mlp1": (lambda: mlp1(SHAPE, CLASSES, dropout=0.4, batch_norm=True), 50),
    "cnn1": (lambda: cnn1(SHAPE, CLASSES, dropout=0.2, conv_dropout=0.5), 8),
    "small_resnet": (lambda: small_resnet(SHAPE, CLASSES, dropout=0.3), 5),
}


def batches(steps: int, members: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 60, (steps, members, 16))


def train_plainly(make, seed, inputs, labels, rows, optimizer, **options):
    """The slow definition: an ordinary loop over one ordinary model."""
    torch.manual_seed(seed)
    model = make().double().train()
    rule = optimizer(model.parameters(), **options)
    for step in torch.from_numpy(rows):
        rule.zero_grad()
        nn.functional.cross_entropy(model(inputs[step].double()), labels[step]).backward()
        rule.step()
    return model.state_dict()


def assert_same(one, other, tolerance=1e-9):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(
            one[name].double(), other[name].double(), rtol=0, atol=tolerance, msg=name
        )


@pytest.mark.parametrize("backend", ["stacked", "serial"])
@pytest.mark.parametrize("name", MODELS)
def test_each_member_equals_a_plain_loop(name, backend, toy):
    make, steps = MODELS[name]
    indices = batches(steps, 3)
    population = Population(make, seeds=SEEDS, precision="float64")
    population.fit(*toy, indices, lr=0.05, momentum=0.9, backend=backend)
    for member, seed in enumerate(SEEDS):
        expected = train_plainly(
            make, seed, *toy, indices[:, member], torch.optim.SGD, lr=0.05, momentum=0.9
        )
        assert_same(population.state_dict(member), expected)


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_dropout_does_not_depend_on_the_neighbours_or_the_backend(name, toy):
    make, steps = WITH_DROPOUT[name]
    indices = batches(steps, 3)
    reference = Population(make, seeds=SEEDS, precision="float64")
    reference.fit(*toy, indices, lr=0.05, momentum=0.9)
    for backend in ("stacked", "serial"):
        for members in ([2], [1, 2], [2, 0, 1, 0]):
            some = Population(make, seeds=[SEEDS[m] for m in members], precision="float64")
            some.fit(*toy, indices[:, members], lr=0.05, momentum=0.9, backend=backend)
            for place, member in enumerate(members):
                assert_same(some.state_dict(place), reference.state_dict(member))


def test_a_split_population_equals_a_whole_one(toy):
    indices = batches(20, 5)
    states = []
    for split in (1, 2, 5):
        population = Population(
            WITH_DROPOUT["mlp1"][0], seeds=range(5), precision="float64", dropout=0.2
        )
        assert population.fit(*toy, indices, lr=0.05, split=split).split == split
        states.append([population.state_dict(m) for m in range(5)])
    for other in states[1:]:
        for one, two in zip(states[0], other, strict=True):
            assert_same(one, two)


def test_an_inactive_member_changes_in_nothing(toy):
    make = WITH_DROPOUT["mlp1"][0]
    rate = LearningRate(kind="step", milestones=(5, 9))
    indices, active = batches(14, 3), np.ones((14, 3), bool)
    active[[2, 3, 8], 1] = False
    active[[0, 7], 2] = False
    together = Population(make, seeds=SEEDS, precision="float64")
    together.fit(*toy, indices, active=active, optimizer="adam", lr=0.01, learning_rate=rate)
    for member, seed in enumerate(SEEDS):
        alone = Population(make, seeds=[seed], precision="float64")
        own = indices[active[:, member], member][:, None]
        alone.fit(*toy, own, optimizer="adam", lr=0.01, learning_rate=rate)
        assert_same(together.state_dict(member), alone.state_dict(0))


def test_never_active_means_bitwise_untouched(toy):
    make = WITH_DROPOUT["mlp1"][0]
    indices, active = batches(5, 2), np.ones((5, 2), bool)
    active[:, 1] = False
    population = Population(make, seeds=[1, 2])
    before = population.state_dict(1)
    population.fit(*toy, indices, active=active, lr=0.1, momentum=0.9)
    after = population.state_dict(1)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_start_depends_on_the_seed_alone():
    make = MODELS["mlp1"][0]
    many = Population(make, seeds=[7, 8, 9])
    assert_same(many.state_dict(2), Population(make, seeds=[9]).state_dict(0), tolerance=0)
    torch.manual_seed(8)
    assert_same(many.state_dict(1), make().state_dict(), tolerance=0)


def test_the_global_generator_is_left_alone(toy):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    population = Population(WITH_DROPOUT["mlp1"][0], seeds=[0, 1])
    population.fit(*toy, batches(2, 2), lr=0.1)
    population.logits(toy[0])
    assert torch.equal(before, torch.get_rng_state())


class Noisy(nn.Module):
    """Draws from the global generator and replaces a buffer: only the serial backend can."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, CLASSES)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, inputs):
        if self.training:
            self.calls = self.calls + 1
            inputs = inputs + 0.1 * torch.randn_like(inputs)
        return self.inner(inputs.flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(8, 6, batch_first=True)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, inputs):
        return self.head(self.cell(inputs.squeeze(1))[0][:, -1])


@pytest.mark.parametrize("make", [Noisy, Recurrent])
def test_any_module_at_all_trains_serially_as_it_would_alone(make, toy):
    indices = batches(10, 3)
    population = Population(make, seeds=SEEDS, precision="float64")
    assert population.fit(*toy, indices, lr=0.1).backend == "serial"
    alone = Population(make, seeds=[SEEDS[1]], precision="float64")
    alone.fit(*toy, indices[:, [1]], lr=0.1)
    assert_same(population.state_dict(1), alone.state_dict(0))
    if make is Noisy:
        assert population.state_dict(1)["calls"] == 10


def test_logits_are_the_models_own(toy):
    make = MODELS["cnn1+norm"][0]
    population = Population(make, seeds=SEEDS, precision="float64")
    population.fit(*toy, batches(3, 3), lr=0.05)
    found = population.logits(toy[0])
    assert found.shape == (3, 60, CLASSES)
    for member in range(3):
        model = make().double()
        model.load_state_dict(population.state_dict(member))
        with torch.no_grad():
            torch.testing.assert_close(found[member], model.eval()(toy[0].double()))
