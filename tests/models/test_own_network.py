"""A network of the user's own is tried before it is used: what a member may not do is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population
from remnant.errors import UnsupportedModel
from remnant.models.own_network import check_network, own_network
from remnant.population.blueprint import cross_entropy

SHAPE, CLASSES = (1, 4, 4), 3


class Net(nn.Module):
    """A sound network that subclasses break."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, inputs):
        return self.head(torch.relu(self.inner(inputs.flatten(1))))


class Normalised(Net):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, inputs):
        self.passes += 1
        return self.head(
            torch.dropout(self.norm(self.inner(inputs.flatten(1))), 0.5, self.training)
        )


class Branching(Net):
    def forward(self, inputs):
        logits = super().forward(inputs)
        plain = not self.training or float(logits.detach().sum()) > 0
        return logits if plain else 2 * logits


class Tied(Net):
    def __init__(self):
        super().__init__()
        self.inner, self.other = nn.Linear(16, 16), nn.Linear(16, 16)
        self.other.weight = self.inner.weight
        self.head = nn.Linear(16, CLASSES)

    def forward(self, inputs):
        return self.head(torch.relu(self.other(torch.relu(self.inner(inputs.flatten(1))))))


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader, self.head = nn.GRU(4, 6, batch_first=True), nn.Linear(6, CLASSES)

    def forward(self, inputs):
        return self.head(self.reader(inputs[:, 0])[0][:, -1])


class Padded(nn.Module):
    """An embedding whose padding row is trained under vmap, and not otherwise."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Parameter(torch.randn(5, 6)), nn.Linear(6, CLASSES)

    def forward(self, inputs):
        tokens = inputs.flatten(1).abs().mul(2).clamp(max=4).long()
        return self.head(nn.functional.embedding(tokens, self.table, padding_idx=0).mean(1))


class Sized(Net):
    """Notes what it saw last; nothing is computed from it."""

    def forward(self, inputs):
        self.seen = len(inputs)
        return super().forward(inputs)


class Counting(Net):
    steps = 0

    def forward(self, inputs):
        self.steps += 1
        return super().forward(inputs)


class Remembering(Net):
    last = 0.0

    def forward(self, inputs):
        logits = super().forward(inputs) + self.last
        self.last = logits.detach().mean()
        return logits


class Late(Net):
    def forward(self, inputs):
        if not hasattr(self, "extra"):
            self.extra = nn.Linear(CLASSES, CLASSES)
        return self.extra(super().forward(inputs))


class Detached(Net):
    def forward(self, inputs):
        return super().forward(inputs).detach()


class Drawing(Net):
    """Draws in evaluation mode too, as dropout that is always on does."""

    def forward(self, inputs):
        return torch.dropout(super().forward(inputs), 0.5, True)


class Fading(Net):
    """Changes its weights in evaluation mode alone."""

    def forward(self, inputs):
        if not self.training:
            self.head.weight.mul_(0.5)
        return super().forward(inputs)


class Unseeded(Net):
    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(np.random.rand(CLASSES, 8)))  # noqa: NPY002


class Shaped(Net):
    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, inputs):
        return self.change(super().forward(inputs))


def lazy():
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(CLASSES))


SOUND = {
    **{kind.__name__: kind for kind in (Net, Normalised, Branching, Tied, Rows, Padded, Sized)},
    "lazy": lazy,
    "dropout": lambda: nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, CLASSES)),
    "more outputs than classes": lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 7)),
}


def examples(count=8):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, *SHAPE, generator=generator)
    return inputs, torch.arange(count) % CLASSES


def check(make):
    make = own_network(make, named="nets:make", shape=SHAPE)
    inputs, labels = examples()
    check_network(make, inputs, labels, named="nets:make", classes=CLASSES, loss=cross_entropy)


def fit(make, seeds, rows):
    inputs, labels = examples(40)
    population = Population(
        own_network(make, named="nets:make", shape=SHAPE),
        seeds=seeds,
        precision="float64",
        compared=True,
    )
    done = population.fit(inputs, labels, rows, lr=0.1, momentum=0.9)
    return done, population


@pytest.mark.parametrize("name", SOUND)
def test_a_member_of_many_is_the_same_member_alone(name):
    check(SOUND[name])
    rows = np.random.default_rng(0).integers(0, 40, (6, 3, 8))
    done, together = fit(SOUND[name], [3, 4, 5], rows)
    again, alone = fit(SOUND[name], [4], rows[:, 1:2])
    assert (done.backend, done.reason) == (again.backend, again.reason)
    for key, tensor in alone.state_dict(0).items():
        torch.testing.assert_close(tensor, together.state_dict(1)[key], rtol=0, atol=1e-9)
    inputs, _ = examples()
    torch.testing.assert_close(alone.logits(inputs)[0], together.logits(inputs)[1])
    started = Population(own_network(SOUND[name], named="", shape=SHAPE), seeds=[4]).state_dict(0)
    assert any(not torch.equal(started[k].double(), t) for k, t in alone.state_dict(0).items())


@pytest.mark.parametrize(
    ("name", "backend", "reason"),
    [
        ("Net", "stacked", "every layer vmaps"),
        ("lazy", "stacked", "every layer vmaps"),
        ("Tied", "stacked", "every layer vmaps"),
        ("Normalised", "serial", "random numbers of its own"),
        ("Rows", "serial", "recurrent layers do not vmap"),
        ("Branching", "serial", "vmap cannot run this model"),
        ("Padded", "serial", "vmap computes other gradients"),
    ],
)
def test_the_backend_is_the_stacked_one_where_it_computes_the_same(name, backend, reason):
    done, _ = fit(SOUND[name], [0, 1], np.zeros((1, 2, 8), dtype=np.int64) + np.arange(8))
    assert done.backend == backend
    assert reason in done.reason


def test_without_the_comparison_vmap_would_train_the_padding_row():
    inputs, labels = examples(40)
    rows = np.zeros((1, 2, 8), dtype=np.int64) + np.arange(8)
    population = Population(Padded, seeds=[0, 1])
    assert population.fit(inputs, labels, rows, lr=0.1).backend == "stacked"


SAME = Net()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: "net", "returns str, not a torch.nn.Module"),
        (lambda: SAME, "returns the same network every time"),
        (Unseeded, "gives other weights for the same seed"),
        (Counting, r"steps changes from 1 to 2 from pass to pass. Keep what changes in buffers"),
        (Remembering, "a second pass over the same inputs gives other outputs"),
        (Drawing, "in evaluation mode a second pass over the same inputs gives other outputs"),
        (Fading, "in evaluation mode a second pass over the same inputs gives other outputs"),
        (
            lambda: Shaped(nn.BatchNorm1d(CLASSES, track_running_stats=False)),
            "the outputs of an example depend on the others in its batch",
        ),
        (Late, r"makes the parameter extra.bias in its first pass"),
        (Detached, "no gradient of the loss reaches a parameter"),
        (lambda: Net().requires_grad_(False), "has no parameter that can be trained"),
        (lambda: Shaped(lambda made: (made, made)), "gives tuple, not one tensor of logits"),
        (lambda: Shaped(lambda made: made[:, :2]), r"shape \(8, 2\) for 8 examples of 3 classes"),
        (lambda: Shaped(lambda made: made[:, 0]), r"shape \(8,\) for 8 examples of 3 classes"),
        (lambda: Shaped(lambda made: made[:, None]), r"shape \(8, 1, 3\)"),
        (lambda: Shaped(lambda made: made.mean(0, keepdim=True)), r"shape \(1, 3\)"),
        (lambda: Shaped(lambda made: made / 0), "not finite for 8 of 8 examples, before any"),
        (lambda: Shaped(lambda made: made.argmax(1, keepdim=True).expand(-1, 3)), "not logits"),
    ],
)
def test_what_cannot_be_a_member_is_refused_in_one_sentence(make, words):
    with pytest.raises(UnsupportedModel, match=words) as caught:
        check(make)
    assert str(caught.value).startswith("nets:make")
    assert caught.value.hint


def test_trying_a_network_leaves_torchs_generator_as_it_was():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    check(Normalised)
    assert torch.equal(before, torch.get_rng_state())
