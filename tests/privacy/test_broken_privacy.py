"""Private trainings with a fault are caught by lower bounds on epsilon; correct ones are not.

The model is made for audits: one weight per canary. The gradient of a canary is its own
coordinate, whatever the weights, so a canary's trace is the change of its weight. Coins decide
which canaries a member trains on. Faults are ordinary arguments of ``fit``.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from remnant import Population, canaries_needed, epsilon_lower_bound, one_run_from_scores
from remnant.plans.schedule import ArraySchedule
from remnant.privacy import NotAccounted, epsilon_spent, spent_by

CANARIES, RATE, STEPS, NOISE, DELTA = 1000, 0.2, 50, 6.0, 1e-5
NORM = 10.0  # of a canary's gradient, ten times the clip norm
GUESSES = 200  # fixed before any score was seen


def linear_loss(outputs, labels):
    """A loss whose gradient never fades."""
    return -outputs[..., 0]


def poisson_batches(included, *, steps, rate, rng):
    """Index arrays of one member, padded with -1: each included row with probability ``rate``."""
    drawn = rng.random((steps, included.size)) < rate
    return [np.flatnonzero(row & included) for row in drawn]


def shuffled_batches(included, *, steps, rate, rng):
    """The same expected size, from shuffled epochs."""
    rows, per_epoch = np.flatnonzero(included), round(1 / rate)
    epochs = (np.array_split(rng.permutation(rows), per_epoch) for _ in range(steps // per_epoch))
    return [batch for epoch in epochs for batch in epoch]


def padded(members):
    """``(steps, members, width)`` from a list of batches per member."""
    width = max(len(batch) for batches in members for batch in batches)
    indices = np.full((len(members[0]), len(members), width), -1, dtype=np.int64)
    for member, batches in enumerate(members):
        for step, batch in enumerate(batches):
            indices[step, member, : len(batch)] = batch
    return indices


class Training:
    """Members that train on canaries by their coins, and the weights after every step."""

    def __init__(self, members, *, canaries=CANARIES, seed=0):
        self.rng = np.random.default_rng(seed)
        self.coins = self.rng.random((members, canaries)) < 0.5
        self.population = Population(
            lambda: nn.Linear(canaries, 1, bias=False), seeds=range(members)
        )
        self.inputs = NORM * torch.eye(canaries)
        self.labels = torch.zeros(canaries, dtype=torch.long)
        self.weights = [self.read(self.population)]

    def read(self, population):
        return population.logits(self.inputs)[..., 0].numpy().copy()

    def fit(self, indices, *, noise, clip=1.0):
        fitted = self.population.fit(
            self.inputs,
            self.labels,
            indices,
            optimizer="dp-sgd",
            lr=1.0,
            clip=clip,
            noise=noise,
            loss=linear_loss,
            probes={"weights": self.read},
            probe_steps=range(1, len(indices) + 1),
        )
        self.weights.extend(fitted.probes["weights"])

    def changes(self):
        """Change of every weight in every step, shape ``(steps, members, canaries)``."""
        return np.diff(np.stack(self.weights), axis=0)


@pytest.fixture(scope="module")
def claimed():
    return epsilon_spent(sampling_rate=RATE, noise=NOISE, steps=STEPS, delta=DELTA)


def bounds(scores, coins, method="binomial"):
    """The lower bound of every member."""
    return np.array(
        [
            one_run_from_scores(s, c, guesses=GUESSES, delta=DELTA, method=method).value
            for s, c in zip(scores, coins, strict=True)
        ]
    )


CORRECT = 8
FAULTS = {
    "no clipping, the noise as claimed": {"clip": 1e6, "noise": NOISE / 1e6},
    "noise divided by the batch once too often": {"noise": NOISE / (RATE * CANARIES / 2)},
    "noise too small by the square root of the batch": {
        "noise": NOISE / (RATE * CANARIES / 2) ** 0.5
    },
    "no noise": {"noise": 0.0},
}


@pytest.fixture(scope="module")
def trained():
    """One population: correct members, then one member per fault."""
    training = Training(CORRECT + len(FAULTS))
    indices = padded(
        [poisson_batches(c, steps=STEPS, rate=RATE, rng=training.rng) for c in training.coins]
    )
    clips = [1.0] * CORRECT + [fault.get("clip", 1.0) for fault in FAULTS.values()]
    noises = [NOISE] * CORRECT + [fault["noise"] for fault in FAULTS.values()]
    training.fit(indices, clip=clips, noise=noises)
    return training


@pytest.mark.parametrize("method", ["binomial", "gaussian"])
def test_a_correct_training_is_not_accused(trained, claimed, method):
    shown = bounds(trained.changes().sum(axis=0), trained.coins, method)[:CORRECT]
    assert np.all(shown <= claimed)
    assert np.mean(shown > 0) > 0.5  # the audit is not blind


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(trained, claimed, fault):
    shown = bounds(trained.changes().sum(axis=0), trained.coins)
    assert shown[CORRECT + list(FAULTS).index(fault)] > 2 * claimed


def test_coins_that_the_training_did_not_follow_show_nothing(trained, claimed):
    """The attack that sees nothing: scores of one training, coins of another."""
    shown = bounds(trained.changes().sum(axis=0), trained.coins[::-1])
    assert np.all(shown < claimed)


@pytest.fixture(scope="module")
def alternating():
    """A correct member and one without noise in every other step, as fits of one step."""
    training = Training(2, seed=1)
    indices = padded(
        [poisson_batches(c, steps=STEPS, rate=RATE, rng=training.rng) for c in training.coins]
    )
    for step in range(STEPS):
        training.fit(indices[step : step + 1], noise=[NOISE, NOISE * (step % 2 == 0)])
    return training


def test_noise_off_every_other_step_is_caught_in_the_steps(alternating, claimed):
    every_other = alternating.changes()[1::2].sum(axis=0)
    correct, faulty = bounds(every_other, alternating.coins)
    assert correct <= claimed
    assert faulty > 2 * claimed


def test_in_the_last_weights_alone_it_takes_more_canaries_and_says_how_many(alternating, claimed):
    final = alternating.changes().sum(axis=0)
    assert np.all(bounds(final, alternating.coins) <= claimed)  # 1000 canaries do not show it
    drawn = RATE * (1 - RATE)
    mu = RATE * STEPS**0.5 / (NOISE**2 / 2 + drawn) ** 0.5  # what half of the noise leaves
    seen = [s[c].mean() - s[~c].mean() for s, c in zip(final, alternating.coins, strict=True)]
    spread = final[1][~alternating.coins[1]].std()
    assert seen[1] / spread == pytest.approx(mu, abs=0.2)
    needed = canaries_needed(claimed_epsilon=claimed / 2, mu=mu, delta=DELTA, method="gaussian")
    assert needed.canaries is not None
    assert needed.canaries > CANARIES
    refused = canaries_needed(claimed_epsilon=claimed, mu=mu, delta=DELTA, at_most=10_000)
    assert refused.true_epsilon > claimed
    assert refused.reason == "10000 canaries are too few"


def test_shuffled_batches_accounted_as_poisson_are_caught():
    """Poisson batches leave an example out of all ten steps with probability 0.35; epochs never do.

    The claim holds at every delta, and a large delta is where the difference shows. The canaries
    of this model are independent if the claim is true, so that their counts are binomial.
    """
    rate, steps, noise, canaries, threshold, delta = 0.1, 10, 0.25, 500, 0.65, 0.6
    training = Training(2, canaries=canaries, seed=2)
    poisson, shuffled = training.coins
    draw = {"steps": steps, "rate": rate, "rng": training.rng}
    indices = padded([poisson_batches(poisson, **draw), shuffled_batches(shuffled, **draw)])
    training.fit(indices, noise=noise)
    step = NORM / indices.shape[2]  # what a clipped gradient moves an output by
    largest = training.changes().max(axis=0) / step
    claim = epsilon_spent(sampling_rate=rate, noise=noise, steps=steps, delta=delta)
    correct, faulty = (
        epsilon_lower_bound(
            true_positives=int(np.sum(scores[coins] > threshold)),
            seen=int(coins.sum()),
            false_positives=int(np.sum(scores[~coins] > threshold)),
            unseen=int((~coins).sum()),
            delta=delta,
        ).value
        for scores, coins in zip(largest, training.coins, strict=True)
    )
    assert correct <= claim
    assert faulty > claim + 0.5


def test_no_epsilon_is_stated_for_shuffled_batches():
    training = Training(1, canaries=50)
    rows = shuffled_batches(training.coins[0], steps=10, rate=0.2, rng=training.rng)
    spent = spent_by(ArraySchedule(padded([rows])), examples=50, noise=1.0, delta=DELTA)
    assert isinstance(spent, NotAccounted)
