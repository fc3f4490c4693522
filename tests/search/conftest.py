"""Known-answer language models: every probability is written in a table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch


class TableModel:
    """An n-gram model over ``symbols`` with a table of log-probabilities, one row a context.

    Texts are cut greedily into the longest symbols. ``levels`` draws the odds from a few whole
    numbers, so that costs tie.
    """

    def __init__(self, symbols, *, order=1, seed=0, levels=None, dtype=torch.float64, scale=1.5):
        self.symbols = list(symbols)
        self.order, self.dtype = order, dtype
        rng = np.random.default_rng(seed)
        contexts = (len(self.symbols) + 1) ** order
        odds = rng.normal(size=(contexts, len(self.symbols))) * scale
        if levels is not None:
            odds = np.log(rng.integers(1, levels + 1, size=odds.shape))
        self.table = odds - np.log(np.exp(odds).sum(1, keepdims=True))
        self.rows_seen = 0

    def encode(self, text):
        ids, at = [], 0
        by_length = sorted(range(len(self.symbols)), key=lambda i: -len(self.symbols[i]))
        while at < len(text):
            hit = next((i for i in by_length if text.startswith(self.symbols[i], at)), None)
            if hit is None:
                raise KeyError(text[at])
            ids.append(hit)
            at += len(self.symbols[hit])
        return ids

    def start(self, prefix_ids):
        blank = [len(self.symbols)] * self.order
        history = (blank + list(prefix_ids))[len(prefix_ids) :]
        state = torch.tensor(history, dtype=torch.int64).reshape(1, self.order)
        return self._answers(state), state

    def step(self, state, token_ids):
        assert len(state) == len(token_ids)
        self.rows_seen += len(token_ids)
        state = torch.cat([state, token_ids[:, None].long()], 1)[:, 1:]
        return self._answers(state), state

    def take(self, state, rows):
        return state[rows]

    def _answers(self, state):
        rows = np.zeros(len(state), dtype=np.int64)
        for column in state.numpy().T:
            rows = rows * (len(self.symbols) + 1) + column
        return torch.from_numpy(self.table[rows]).to(self.dtype)

    def cost(self, template, secret):
        """Bits of a secret from the first hole to the end, straight from the table."""
        ids = self.encode(template.text(secret))
        history = [len(self.symbols)] * self.order
        costs = []
        for token in ids:
            row = 0
            for one in history[len(history) - self.order :]:
                row = row * (len(self.symbols) + 1) + one
            costs.append(-self.table[row, token] / math.log(2))
            history.append(token)
        return math.fsum(costs[len(self.encode(template.prefix)) :])


class Float32Table(TableModel):
    """The same table, answered in float32, with its float64 twin at hand."""

    def __init__(self, *args, **options):
        super().__init__(*args, dtype=torch.float32, **options)
        self.noise, self.noisy_after = 0.0, -1

    def step(self, state, token_ids):
        log_probs, state = super().step(state, token_ids)
        if self.noise:  # deterministic in the token: as a coarse arithmetic is
            bump = self.noise * torch.sin(token_ids.float() * 7.0 + state.sum(1).float())
            bump = bump * (token_ids > self.noisy_after)
            log_probs = (log_probs + bump[:, None]).float()
        return log_probs, state

    def in_float64(self):
        twin = TableModel(self.symbols, order=self.order)
        twin.table = self.table
        return twin


def all_secrets(template):
    """The space by brute force: every filling, as a set."""
    fillings = itertools.product(*(slot.choices for slot in template.slots))
    return sorted({"".join(filling) for filling in fillings})


@pytest.fixture(scope="session")
def table_model():
    return TableModel


@pytest.fixture(scope="session")
def float32_table():
    return Float32Table


@pytest.fixture(scope="session")
def brute():
    """Return the costs of the whole space: ``brute(model, template) -> {secret: bits}``."""

    def costs(model, template):
        return {secret: model.cost(template, secret) for secret in all_secrets(template)}

    return costs
