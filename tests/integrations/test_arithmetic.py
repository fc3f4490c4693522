"""Arithmetic: nothing is rounded on the way, and every switch is put back."""

from __future__ import annotations

import contextlib

import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from remnant.integrations.arithmetic import KeepFloat64, full_precision


def test_float32_by_any_name_is_kept_in_float64():
    value = torch.tensor([1 / 3, 2 / 3], dtype=torch.float64)
    with KeepFloat64():
        found = [
            value.float(),
            value.to(torch.float32),
            value.to(dtype=torch.float32),
            value.type(torch.float32),
            torch.zeros(2, dtype=torch.float32) + value,
        ]
        softmax = torch.nn.functional.softmax(value, -1, dtype=torch.float32)
    assert all(torch.equal(one, value) for one in found)
    assert torch.equal(softmax, value.softmax(-1))
    assert value.float().dtype == torch.float32


def test_whole_numbers_are_left_alone():
    with KeepFloat64():
        assert torch.arange(3).to(torch.int32).dtype == torch.int32
        assert torch.tensor([True]).to(torch.bool).dtype == torch.bool


@pytest.mark.parametrize("bidirectional", [True, False])
def test_positions_fall_into_the_same_buckets_in_float64(bidirectional):
    # T5 takes logarithms of distances in float32 and cuts them; the twin must cut them alike.
    distances = torch.arange(-2048, 2048)[None]
    options = {"bidirectional": bidirectional, "num_buckets": 32, "max_distance": 128}
    plain = T5Attention._relative_position_bucket(distances, **options)
    with KeepFloat64():
        wide = T5Attention._relative_position_bucket(distances, **options)
    assert torch.equal(plain, wide)


@pytest.mark.parametrize("allowed", [True, False])
def test_tf32_gradients_and_autocast_are_off_inside_and_put_back(allowed):
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, convolution.allow_tf32
    model = torch.nn.Linear(2, 2)
    try:
        matmul.allow_tf32 = convolution.allow_tf32 = allowed
        with (
            torch.autocast("cpu", torch.bfloat16),
            contextlib.suppress(KeyError),
            full_precision(model),
        ):
            assert not matmul.allow_tf32
            assert not convolution.allow_tf32
            out = model(torch.ones(1, 2))
            assert out.dtype == torch.float32
            assert not out.requires_grad
            raise KeyError
        assert (matmul.allow_tf32, convolution.allow_tf32) == (allowed, allowed)
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before
