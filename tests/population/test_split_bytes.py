"""How many members go through one pass changes no byte: a group that is tried again with fewer
models at a time, on a machine with less memory, gives the same arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from remnant.models import model_maker
from remnant.models.catalogue import sequence_model_maker
from remnant.population import Population
from remnant.population.memory import at_most

MEMBERS, STEPS, BATCH = 5, 6, 16
RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(60, 1, 8, 8)).astype(np.float32), RNG.integers(0, 10, 60)
TOKENS = RNG.integers(0, 30, (60, 13))
TEXT = TOKENS[:, :-1], TOKENS[:, 1:]
CLASSIFIERS = {
    "mlp1": {"dropout": 0.2, "batch_norm": True},
    "cnn1": {},
    "logistic": {},
}
SEQUENCES = {
    "lstm": {"units": 24, "layers": 2},
    "gpt": {"units": 32, "layers": 2, "heads": 2},
}


def trained(make, data, members, most):
    rows = np.random.default_rng(1).integers(0, 60, (STEPS, MEMBERS, BATCH))
    population = Population(make, seeds=members, dropout_seeds=members)
    with at_most(most):
        fit = population.fit(*data, rows[:, members], optimizer="adam", lr=1e-2, clip=1.0)
    assert fit.split <= (most or MEMBERS)
    return [population.state_dict(place) for place in range(len(members))]


@pytest.mark.parametrize("name", [*CLASSIFIERS, *SEQUENCES])
def test_no_byte_depends_on_the_members_of_a_pass(name):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if name in CLASSIFIERS:
            make = model_maker(name, shape=(1, 8, 8), classes=10, **CLASSIFIERS[name])
            data = IMAGES
        else:
            make = sequence_model_maker(name, vocabulary_size=30, **SEQUENCES[name])
            data = TEXT
        whole = trained(make, data, list(range(MEMBERS)), None)
        for most in (1, 2, 3):
            parts = trained(make, data, list(range(MEMBERS)), most)
            for own, other in zip(whole, parts, strict=True):
                assert all(torch.equal(own[tensor], other[tensor]) for tensor in own)
    finally:
        torch.set_num_threads(before)
