"""Rows at once: as many as fit, cut without loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from remnant.integrations import decoder
from remnant.integrations.decoder import fitting_rows, joined, slices, widest_output

CPU = torch.device("cpu")


@given(rows=st.integers(0, 50), at_once=st.integers(1, 60))
def test_slices_cover_all_rows_in_order(rows, at_once):
    cut = list(slices(rows, at_once))
    assert [row for one in cut for row in range(rows)[one]] == list(range(rows))
    assert all(one.stop - one.start <= at_once for one in cut)


@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_parts_are_joined_place_by_place(lengths):
    whole = [torch.arange(sum(lengths)), torch.arange(sum(lengths)) * 10.0]
    parts = [list(pair) for pair in zip(*(t.split(lengths) for t in whole), strict=True)]
    for a, b in zip(joined(parts), whole, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("free", "rows"),
    [(4 * 700 * 5, 4), (4 * 700 * 8, 8), (4 * 700, 1), (0, 1), (10**15, 4096)],
)
def test_a_power_of_two_of_rows_fits_a_quarter_of_what_is_free(free, rows, monkeypatch):
    monkeypatch.setattr(decoder, "free_bytes", lambda device: free)
    need = {"widest": 10, "tokens": 5, "state_bytes": 100, "logit_bytes": 100}  # 300 + 100 + 300
    assert fitting_rows(**need, device=CPU) == rows


def test_the_widest_output_is_measured_without_the_head():
    wide, head = torch.nn.Linear(3, 50), torch.nn.Linear(50, 1000)
    model = torch.nn.Sequential(wide, torch.nn.Tanh(), head)
    inputs = torch.zeros(2, 4, 3)
    assert widest_output(model, lambda: model(inputs), tokens=8, head=head) == 50 * 4
    assert not wide._forward_hooks
