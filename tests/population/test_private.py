"""Private training equals its slow definition, Opacus, and itself alone or resumed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.models import causal_cnn, cnn1, gpt, gru, lstm, mlp1, wavenet
from remnant.plans import InjectPlan, Schedule, ShadowPlan
from remnant.population import Checkpoint, EarlyStop

from .private_by_hand import train_privately

SHAPE, CLASSES, SEEDS = (1, 8, 8), 5, [3, 4, 5]
OPTIONS = {
    "dp-sgd": {"lr": 0.3, "momentum": 0.9, "weight_decay": 0.01},
    # The bias of attention's keys has no gradient; a small eps would blow up its rounding errors.
    "dp-rmsprop": {"lr": 0.01, "weight_decay": 0.01, "eps": 1e-3},
    "dp-adam": {"lr": 0.01, "weight_decay": 0.01, "eps": 1e-3},
}


class GroupNormed(nn.Module):
    """A small convolutional model whose norm does not mix examples."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 6, 3, padding=1)
        self.norm = nn.GroupNorm(2, 6)
        self.second = nn.Conv2d(6, 8, 3, stride=2)
        self.head = nn.Linear(8 * 3 * 3, CLASSES)

    def forward(self, images):
        hidden = torch.relu(self.norm(self.first(images)))
        return self.head(torch.relu(self.second(hidden)).flatten(1))


class TorchLstm(nn.Module):
    """An embedding, ``nn.LSTM`` and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 7, batch_first=True)
        self.head = nn.Linear(7, 11)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


class Tied(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.inner = nn.Linear(6, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.inner(self.embedding(ids))))


IMAGES = {
    "mlp1": lambda: mlp1(SHAPE, CLASSES, width=0.05),
    "cnn": GroupNormed,
}
TEXTS = {
    "lstm": lambda: lstm(11, units=6, layers=2),
    "lstm with an embedding": lambda: lstm(11, units=6, layers=2, embedding=5),
    "gru": lambda: gru(11, units=6, layers=2),
    "gpt": lambda: gpt(11, units=8, layers=2, heads=2, context=12),
    "wavenet": lambda: wavenet(11, units=4, layers=2, stacks=1, taps=2),
    "causal_cnn": lambda: causal_cnn(11, units=4, layers=1, taps=2),
    "nn.LSTM": TorchLstm,
    "tied": Tied,
}


@pytest.fixture
def texts():
    """Thirty texts of seven tokens, and the tokens that follow."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 11, (30, 8), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def poisson_like(steps, members, batch=8, pool=30, seed=0, empty=0.3):
    """Random batches with empty places anywhere, and one that is empty altogether."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, pool, (steps, members, batch))
    rows[rng.random(rows.shape) < empty] = -1
    rows[1, 0] = -1
    return rows


def assert_same(one, other, tolerance=1e-9):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(
            one[name].double(), other[name].double(), rtol=0, atol=tolerance, msg=name
        )


@pytest.mark.parametrize("backend", [None, "serial"])
@pytest.mark.parametrize("optimizer", OPTIONS)
@pytest.mark.parametrize("model", [*IMAGES, *TEXTS])
def test_each_member_equals_the_slow_definition(model, optimizer, backend, toy, texts):
    make = {**IMAGES, **TEXTS}[model]
    inputs, labels = toy if model in IMAGES else texts
    rows = poisson_like(4, 3)
    clips, noises = [0.3, 0.05, 3.0], [0.0, 1.0, 0.3]
    population = Population(make, SEEDS, precision="float64")
    options = {**OPTIONS[optimizer], "noise": noises}
    population.fit(
        inputs, labels, rows, optimizer=optimizer, clip=clips, backend=backend, **options
    )
    for member, (seed, clip, noise) in enumerate(zip(SEEDS, clips, noises, strict=True)):
        expected = train_privately(
            make,
            seed,
            inputs,
            labels,
            rows[:, member],
            optimizer=optimizer,
            clip=clip,
            noise=noise,
            **OPTIONS[optimizer],
        )
        assert_same(population.state_dict(member), expected)


@pytest.mark.parametrize("optimizer", OPTIONS)
@pytest.mark.parametrize("model", ["mlp1", "cnn", "gpt", "lstm"])
def test_without_noise_and_clipping_it_is_the_ordinary_optimizer(model, optimizer, toy, texts):
    make = {**IMAGES, **TEXTS}[model]
    inputs, labels = toy if model in IMAGES else texts
    rows = np.random.default_rng(0).integers(0, 30, (4, 2, 8))
    dicts = []
    for name, extra in (
        (optimizer, {"clip": 1e9, "noise": 0.0}),
        (optimizer.removeprefix("dp-"), {}),
    ):
        population = Population(make, SEEDS[:2], precision="float64")
        population.fit(inputs, labels, rows, optimizer=name, **OPTIONS[optimizer], **extra)
        dicts.append([population.state_dict(member) for member in range(2)])
    for private, plain in zip(*dicts, strict=True):
        assert_same(private, plain)


DROPPED = {
    "mlp1": lambda: mlp1(SHAPE, CLASSES, width=0.05, dropout=0.3),
    "lstm": lambda: lstm(11, units=6, layers=2, dropout=0.3),
    "gpt": lambda: gpt(11, units=8, layers=1, heads=2, context=12, dropout=0.3),
    "own draws": lambda: OwnDraws(),
}


class OwnDraws(nn.Module):
    """Drops activations by a function that draws from torch's global generator."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(12, 6), nn.Linear(6, 11)

    def forward(self, ids):
        return self.head(nn.functional.dropout(self.embedding(ids), 0.4, self.training))


@pytest.mark.parametrize("backend", [None, "serial"])
@pytest.mark.parametrize("model", DROPPED)
def test_a_member_of_many_is_the_member_alone_whatever_the_padding(model, backend, toy, texts):
    inputs, labels = toy if model == "mlp1" else texts
    rows = poisson_like(4, 3)
    options = {"optimizer": "dp-sgd", "lr": 0.5, "clip": 0.5, "backend": backend}
    together = Population(DROPPED[model], SEEDS, precision="float64")
    together.fit(inputs, labels, rows, noise=[0.5, 1.0, 0.2], split=2, **options)
    alone = Population(DROPPED[model], SEEDS[1:2], precision="float64")
    wider = np.concatenate([rows[:, 1:2], np.full((4, 1, 5), -1)], axis=2)
    schedule = PaddedSchedule(wider, expected=8)
    alone.fit(inputs, labels, schedule, noise=1.0, **options)
    assert_same(together.state_dict(1), alone.state_dict(0))
    start = Population(DROPPED[model], SEEDS[1:2], precision="float64").state_dict(0)
    assert not torch.equal(
        start["head.weight" if model != "mlp1" else "1.weight"],
        alone.state_dict(0)["head.weight" if model != "mlp1" else "1.weight"],
    )


class PaddedSchedule(Schedule):
    """Batches from an array, with a number of expected rows."""

    def __init__(self, rows, *, expected):
        self.steps, self.members, self.batch_size = rows.shape
        self._rows, self._expected = rows, expected

    def _batch(self, step):
        return self._rows[step], np.ones(self.members, bool)


def test_padding_computes_on_a_row_that_may_overflow_and_changes_nothing(texts):
    """Row 0 gives an infinite loss; batches that do not hold it must not notice."""
    inputs = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    inputs[0] = 1e38
    labels = torch.arange(10) % 3
    rows = np.array([[[3, -1, 4]], [[-1, -1, -1]], [[-1, 5, 6]]])
    population = Population(lambda: nn.Linear(4, 3), [0])
    population.fit(inputs, labels, rows, optimizer="dp-sgd", lr=0.1, clip=1.0, noise=0.1)
    assert bool(torch.isfinite(population.state_dict(0)["weight"]).all())


def test_an_empty_batch_is_a_noisy_step_that_moves_clocks_and_moments(toy):
    inputs, labels = toy
    rows = np.full((3, 1, 4), -1)
    population = Population(IMAGES["mlp1"], [0], precision="float64")
    start = population.state_dict(0)
    population.fit(
        inputs, labels, rows, optimizer="dp-adam", lr=0.01, clip=2.0, noise=1.5, eps=1e-3
    )
    expected = train_privately(
        IMAGES["mlp1"],
        0,
        inputs,
        labels,
        rows[:, 0],
        optimizer="dp-adam",
        clip=2.0,
        noise=1.5,
        lr=0.01,
        eps=1e-3,
    )
    assert_same(population.state_dict(0), expected)
    assert not torch.equal(start["1.weight"], expected["1.weight"])


@pytest.mark.parametrize("model", ["mlp1", "lstm"])
def test_a_resumed_training_is_the_uninterrupted_one_to_the_bit(model, tmp_path, toy, texts):
    inputs, labels = toy if model == "mlp1" else texts
    rows = poisson_like(6, 3)
    options = {"optimizer": "dp-adam", "lr": 0.01, "clip": 0.5, "noise": [0.5, 1.0, 0.2]}
    whole = Population(DROPPED[model], SEEDS)
    whole.fit(inputs, labels, rows, **options)
    saved = Checkpoint(tmp_path / "fit.safetensors", seconds=0)

    def stop(step):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Population(DROPPED[model], SEEDS).fit(
            inputs, labels, rows, checkpoint=saved, on_step=stop, **options
        )
    resumed = Population(DROPPED[model], SEEDS)
    resumed.fit(inputs, labels, rows, checkpoint=saved, **options)
    for member in range(3):
        assert_same(resumed.state_dict(member), whole.state_dict(member), tolerance=0.0)


def test_members_that_share_a_beginning_part_with_noise_of_their_own(toy):
    inputs, labels = toy
    plan = InjectPlan(canaries=4, step=3, watch_steps=2, trials=1, batch=8)
    inputs = torch.cat([inputs, inputs[:4] + 1])
    labels = torch.cat([labels, labels[:4]])
    schedule = plan.schedule(examples=60)
    made = {}
    for name, probes in (("shared", schedule), ("apart", WithoutTrunks(schedule))):
        population = Population(
            IMAGES["mlp1"], [7, 7, 7], noise_seeds=[1, 2, 3], precision="float64"
        )
        population.fit(inputs, labels, probes, optimizer="dp-sgd", lr=0.1, clip=1.0, noise=1.0)
        made[name] = [population.state_dict(member) for member in range(3)]
    alone = Population(IMAGES["mlp1"], [7], noise_seeds=[1], precision="float64")
    rows = np.stack([schedule.batch(step)[0][:1] for step in range(schedule.steps)])
    alone.fit(inputs, labels, rows, optimizer="dp-sgd", lr=0.1, clip=1.0, noise=1.0)
    assert_same(made["shared"][0], alone.state_dict(0))
    assert_same(made["apart"][0], alone.state_dict(0))
    weights = [made["shared"][member]["1.weight"] for member in range(3)]
    assert not torch.equal(weights[1], weights[2])


class WithoutTrunks(Schedule):
    """The same batches, without the note of who shares a beginning."""

    def __init__(self, schedule):
        self.members, self.steps = schedule.members, schedule.steps
        self.batch_size, self._schedule = schedule.batch_size, schedule

    def _batch(self, step):
        return self._schedule.batch(step)


def test_a_member_that_is_not_active_takes_no_noise(toy):
    inputs, labels = toy
    rows = poisson_like(5, 2)
    active = np.ones((5, 2), dtype=bool)
    active[1:3, 1] = False
    options = {"optimizer": "dp-adam", "lr": 0.01, "clip": 0.5, "noise": 1.0}
    both = Population(IMAGES["mlp1"], SEEDS[:2], precision="float64")
    both.fit(inputs, labels, rows, active=active, **options)
    alone = Population(IMAGES["mlp1"], SEEDS[1:2], precision="float64")
    alone.fit(inputs, labels, rows[[0, 3, 4], 1:2], **options)
    assert_same(both.state_dict(1), alone.state_dict(0))


def test_a_plain_fit_after_a_private_one_is_the_ordinary_one(texts):
    """Masks of private training belong to places; they must not stay behind."""
    inputs, labels = texts
    rows = np.random.default_rng(0).integers(0, 30, (3, 1, 6))
    made = []
    for first in ({"optimizer": "dp-sgd", "lr": 0.0, "clip": 1.0, "noise": 0.0}, {"lr": 0.0}):
        population = Population(DROPPED["lstm"], [1], precision="float64")
        population.fit(inputs, labels, rows, **first)
        population.fit(inputs, labels, rows, lr=0.5)
        made.append(population.state_dict(0))
    assert_same(*made)


def test_it_stops_early_and_keeps_the_best_weights(toy):
    inputs, labels = toy
    rows = np.random.default_rng(0).integers(0, 60, (40, 2, 8))
    stop = EarlyStop(inputs, labels, every=2, patience=1)
    population = Population(IMAGES["mlp1"], SEEDS[:2])
    fit = population.fit(
        inputs, labels, rows, optimizer="dp-sgd", lr=5.0, clip=1.0, noise=5.0, early_stop=stop
    )
    assert (fit.stopped_at >= 0).all()
    assert fit.steps < 40


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clip": None}, "dp-sgd needs clip, the largest gradient norm of one example"),
        ({"clip": 0.0}, r"clip=0.0 is not finite and above 0"),
        ({"clip": -1.0}, r"clip=-1.0 is not finite and above 0"),
        ({"clip": float("nan")}, "clip=nan is not finite and above 0"),
        ({"clip": [1.0, 2.0]}, r"clip has shape \(2,\), not one value per member \(3\)"),
        ({"noise": None}, "dp-sgd needs noise, the noise multiplier"),
        ({"noise": -0.1}, "noise=-0.1 is not finite and at least 0"),
        ({"noise": float("nan")}, "noise=nan is not finite and at least 0"),
        ({"noise": "much"}, "noise='much' is not a number or one per member"),
        ({"optimizer": "sgd"}, "noise is an option of dp-sgd, dp-rmsprop, dp-adam, not of sgd"),
        ({"optimizer": "dp-adagrad"}, "optimizer='dp-adagrad' is not one of sgd, "),
        ({"nise": 1.0}, "dp-sgd has no option 'nise'"),
    ],
)
def test_bad_options_are_refused_before_training(changes, words, toy):
    inputs, labels = toy
    rows = np.zeros((2, 3, 4), dtype=np.int64)
    given = {"optimizer": "dp-sgd", "lr": 0.1, "clip": 1.0, "noise": 1.0, **changes}
    population = Population(IMAGES["mlp1"], SEEDS)
    start = population.state_dict(0)
    with pytest.raises(InvalidInput, match=words):
        population.fit(inputs, labels, rows, **given)
    assert_same(population.state_dict(0), start, tolerance=0.0)


def test_empty_places_need_a_private_optimizer(toy):
    inputs, labels = toy
    population = Population(IMAGES["mlp1"], SEEDS)
    with pytest.raises(InvalidInput, match=r"the schedule has empty places \(-1\), on which only"):
        population.fit(inputs, labels, poisson_like(3, 3), lr=0.1)
    plan = ShadowPlan(models=3, steps=4, batch=8, sampling="poisson")
    with pytest.raises(InvalidInput, match=r"the schedule has empty places \(-1\), on which only"):
        population.fit(inputs, labels, plan.schedule(examples=60), lr=0.1)
    rows = poisson_like(3, 3)
    rows[0, 0, 0] = -2
    with pytest.raises(InvalidInput, match="asks for rows -2 to"):
        population.fit(inputs, labels, rows, optimizer="dp-sgd", clip=1.0, noise=0.0)


class MixesExamples(nn.Module):
    """Subtracts the batch's mean by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images):
        flat = images.flatten(1)
        return self.head(flat - flat.mean(0))


class KeepsStatistics(MixesExamples):
    """Stores the mean of what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(64))

    def forward(self, images):
        flat = images.flatten(1)
        self.mean.add_(flat.detach().mean(0))
        return self.head(flat)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mlp1(SHAPE, CLASSES, batch_norm=True), "is a BatchNorm1d: it mixes the examples"),
        (lambda: cnn1(SHAPE, CLASSES, batch_norm=True), "is a BatchNorm2d: it mixes the examples"),
        (MixesExamples, "The model mixes the examples of a batch"),
        (KeepsStatistics, "stores statistics of its examples in a buffer"),
    ],
)
def test_models_that_mix_examples_are_refused_with_the_reason(make, words, toy):
    inputs, labels = toy
    population = Population(make, SEEDS)
    with pytest.raises(UnsupportedModel, match=f"{words}.*Use GroupNorm or LayerNorm"):
        population.fit(inputs, labels, poisson_like(2, 3), optimizer="dp-sgd", clip=1.0, noise=1.0)


def test_a_plan_with_poisson_batches_trains(toy):
    inputs, labels = toy
    plan = ShadowPlan(models=2, steps=6, batch=8, sampling="poisson")
    schedule = plan.schedule(examples=60)
    population = Population(IMAGES["mlp1"], plan.seeds, precision="float64")
    population.fit(inputs, labels, schedule, optimizer="dp-sgd", lr=0.2, clip=1.0, noise=0.5)
    for member in range(2):
        rows = np.stack([schedule.batch(step)[0][member] for step in range(6)])
        expected = train_privately(
            IMAGES["mlp1"],
            plan.seeds[member],
            inputs,
            labels,
            rows,
            optimizer="dp-sgd",
            lr=0.2,
            clip=1.0,
            noise=0.5,
            expected=8,
        )
        assert_same(population.state_dict(member), expected)
