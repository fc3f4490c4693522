"""The Conformer: padding changes nothing, lengths are right, and it learns."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from remnant.errors import InvalidInput
from remnant.models import conformer


def test_padding_and_neighbours_change_nothing():
    torch.manual_seed(0)
    model = conformer(7, bands=5, width=16, layers=2, heads=4).double().eval()
    lengths = [33, 8, 21, 1]
    spoken = [torch.randn(n, 5, dtype=torch.float64) for n in lengths]
    padded = 1e6 * torch.ones(4, 40, 5, dtype=torch.float64)
    for row, own in zip(padded, spoken, strict=True):
        row[: len(own)] = own
    together, counts = model(padded, torch.tensor(lengths))
    for row, own in enumerate(spoken):
        alone, count = model(own[None], torch.tensor([len(own)]))
        assert count[0] == counts[row] == -(-len(own) // 4)
        torch.testing.assert_close(
            together[row, : count[0]], alone[0, : count[0]], atol=1e-12, rtol=0
        )


def test_outputs_are_log_probabilities():
    model = conformer(7, bands=5, width=16, layers=1, heads=2)
    made, _ = model(torch.randn(2, 20, 5), torch.tensor([20, 11]))
    torch.testing.assert_close(made.exp().sum(-1), torch.ones(2, 5))


def test_it_learns_to_transcribe():
    torch.manual_seed(1)
    model = conformer(4, bands=4, width=32, layers=2, heads=2)
    spoken, said = torch.randn(4, 32, 4), torch.tensor([[1, 2], [3, 1], [2, 3], [2, 1]])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        made, lengths = model(spoken, torch.full((4,), 32))
        loss = F.ctc_loss(made.transpose(0, 1), said, lengths, torch.full((4,), 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": 30, "heads": 4}, "width=30 is not a multiple of 2 x heads = 8"),
        ({"kernel": 4}, "kernel=4"),
        ({"layers": 0}, "layers=0"),
        ({"dropout": 1.0}, "dropout=1.0"),
    ],
)
def test_impossible_sizes_are_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        conformer(9, **options)
    with pytest.raises(InvalidInput, match="vocabulary=1"):
        conformer(1)
