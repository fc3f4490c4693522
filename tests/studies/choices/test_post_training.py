"""Coarser weights, against their guarantees."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from remnant.studies.choices.post_training import pruned, rounded_to_int8, rounded_to_levels

MATRICES = arrays.arrays(
    np.float64, (4, 5), elements=st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 6))
)


@given(matrix=MATRICES, levels=st.integers(2, 300))
def test_levels_are_evenly_spaced_and_near(matrix, levels):
    tensor = torch.from_numpy(matrix)
    made = rounded_to_levels(tensor, levels=levels)
    step = float(tensor.max() - tensor.min()) / (levels - 1)
    assert float((made - tensor).abs().max()) <= step / 2 + 1e-9
    assert len(np.unique(made.numpy().round(9))) <= levels
    assert made.min() == tensor.min()
    torch.testing.assert_close(made.max(), tensor.max())


@given(matrix=MATRICES)
def test_int8_has_a_scale_for_each_row(matrix):
    tensor = torch.from_numpy(matrix)
    made = rounded_to_int8(tensor)
    largest = tensor.abs().amax(dim=1, keepdim=True)
    assert bool(((made - tensor).abs() <= largest / 254 + 1e-9).all())
    for row, scale in zip(made, (largest / 127).flatten(), strict=True):
        if scale > 0:
            whole = row / scale
            torch.testing.assert_close(whole, whole.round())
    vector = tensor[0]
    assert float((rounded_to_int8(vector) - vector).abs().max()) <= float(largest[0]) / 254 + 1e-9


@given(matrix=MATRICES, share=st.floats(0.05, 0.95))
def test_pruning_takes_the_smallest(matrix, share):
    tensor = torch.from_numpy(matrix)
    made = pruned(tensor, share=share)
    kept = made != 0
    assert int((~kept).sum()) >= round(share * tensor.numel())
    torch.testing.assert_close(made[kept], tensor[kept])
    gone = tensor[~kept].abs()
    if kept.any() and len(gone):
        assert float(gone.max()) <= float(tensor[kept].abs().min()) + 1e-12
    torch.testing.assert_close(pruned(tensor[0], share=share), tensor[0])
