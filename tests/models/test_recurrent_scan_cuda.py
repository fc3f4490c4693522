"""What only a GPU can show: its own kernels for a time step have the numbers of the CPU."""

import pytest
import torch
from torch.func import vmap

from remnant.models.recurrent_scan import gru_scan, lstm_scan

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize(("scan", "gates"), [(lstm_scan, 4), (gru_scan, 3)])
def test_values_and_gradients_are_those_of_the_cpu(scan, gates, dtype, near):
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 17, 5, gates * 20), (3, gates * 20, 20), (3, gates * 20)][: 6 - gates]
    drawn = [0.3 * torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]
    found = {}
    for device in ("cpu", "cuda"):
        given = [one.to(device).requires_grad_() for one in drawn]
        made = vmap(scan)(*given)
        grads = torch.autograd.grad(made.square().sum(), given)
        found[device] = [one.detach().cpu() for one in (made, *grads)]
    for here, there in zip(found["cpu"], found["cuda"], strict=True):
        torch.testing.assert_close(there, here, rtol=near, atol=near * float(here.abs().max()))
