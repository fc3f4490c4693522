"""Squared norms of the per-example gradients of convolutions, without keeping the gradients.

With T places in the output, the weight's gradient is a sum over them of an output gradient times
the patch of the input under the kernel. Three ways lead to its norm, and the cheapest is taken:

* direct: row by row of the kernel, a product of patches and output gradients, whose norm is taken
  and which is then dropped;
* grouped: the same by torch's own gradient of a convolution, each example as a group of one large
  image; on a CPU and over many channels its kernels beat products of small matrices;
* Gram: the products of all pairs of places. Those of patches are sums, over the kernel, of those of
  the input's own places, so that patches are never laid out.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional, grad

from remnant.gradients.closed_forms import Norms, Seen, paired, pieces, squares

# Adding up shifted Gram matrices goes at the speed of memory, not of matrix products.
_SHIFT = 16
# Matrices with fewer rows are multiplied together: the rows of a kernel over few channels.
_FEW = 32
# oneDNN's kernels take channels by the eight; elsewhere groups are done one by one.
_BLOCK = 8
Pair = tuple[int, int]


def convolution(seen: Seen) -> Norms:
    """Norms of a convolution in one or two dimensions; x and g have examples and channels first."""
    return seen.norms(
        bias=lambda: squares(seen.g.flatten(2).sum(2)),
        weight=lambda: _weight(seen.module, seen.x, seen.g),
    )


def _weight(module: nn.Conv1d | nn.Conv2d, x: Tensor, g: Tensor) -> Tensor:
    kernel, stride, dilation = map(_pair, (module.kernel_size, module.stride, module.dilation))
    x = padded(module, x)
    if isinstance(module, nn.Conv1d):
        x, g = x.unsqueeze(2), g.unsqueeze(2)
    reach = (stride[0] * (g.shape[2] - 1) + 1, stride[1] * (g.shape[3] - 1) + 1)
    if kernel == (1, 1):
        x = x[:, :, : reach[0] : stride[0], : reach[1] : stride[1]]
        stride, reach = (1, 1), (g.shape[2], g.shape[3])
    groups, places, inputs = module.groups, g[0, 0].numel(), x[0, 0].numel()
    entering, leaving = x.shape[1] // groups, g.shape[1] // groups
    window = kernel[0] * kernel[1]
    by_hand = places * entering * window * leaving
    by_pairs = inputs**2 * entering + places**2 * (leaving + _SHIFT * window)
    if by_hand <= by_pairs and _blocked(x, kernel, entering, leaving):
        way, holds = _grouped, entering * (inputs + leaving * window) + leaving * places
    elif by_hand <= by_pairs:
        deep = entering * kernel[1]
        way, holds = _direct, deep * (x.shape[2] * g.shape[3] + leaving)
        holds += deep * kernel[0] * places if deep < _FEW else 0
    else:
        way, holds = _gram, 2 * (inputs**2 + 2 * places**2)
    parts = []
    for some in pieces(x, groups * holds):
        # Every group of an example is a row of its own.
        inner = x[some].reshape(-1, entering, *x.shape[2:])
        outer = g[some].reshape(-1, leaving, *g.shape[2:])
        norms = way(inner, outer, kernel, stride, dilation, reach)
        parts.append(norms.view(-1, groups).sum(1))
    return torch.cat(parts)


def _direct(
    x: Tensor, g: Tensor, kernel: Pair, stride: Pair, dilation: Pair, reach: Pair
) -> Tensor:
    starts = [dilation[1] * j for j in range(kernel[1])]
    across = [x[..., j : j + reach[1] : stride[1]] for j in starts]
    rows = (torch.stack(across, 2) if len(across) > 1 else across[0]).reshape(
        len(x), -1, x.shape[2], g.shape[3]
    )
    after = g.flatten(2).transpose(1, 2)
    starts = [dilation[0] * i for i in range(kernel[0])]
    bands = [rows[:, :, i : i + reach[0] : stride[0]].flatten(2) for i in starts]
    if rows.shape[1] < _FEW:
        bands = [torch.cat(bands, 1)]
    total = torch.zeros(len(x), dtype=torch.float64, device=x.device)
    for band in bands:
        total += squares(torch.bmm(band, after))
    return total


def _grouped(
    x: Tensor, g: Tensor, kernel: Pair, stride: Pair, dilation: Pair, reach: Pair
) -> Tensor:
    rows, entering, leaving = len(x), x.shape[1], g.shape[1]
    made = grad.conv2d_weight(
        x.reshape(1, -1, *x.shape[2:]),
        [rows * leaving, entering, *kernel],
        g.reshape(1, -1, *g.shape[2:]),
        stride=stride,
        dilation=dilation,
        groups=rows,
    )
    return squares(made.view(rows, -1))


def _blocked(x: Tensor, kernel: Pair, entering: int, leaving: int) -> bool:
    """Whether oneDNN has kernels for the gradient of such a convolution."""
    return (
        (x.device.type, x.dtype) == ("cpu", torch.float32)
        and kernel != (1, 1)
        and entering % _BLOCK == leaving % _BLOCK == 0
        and torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    )


def _gram(x: Tensor, g: Tensor, kernel: Pair, stride: Pair, dilation: Pair, reach: Pair) -> Tensor:
    inner = x.flatten(2)
    size = x.shape[2:]
    products = torch.bmm(inner.transpose(1, 2), inner).view(len(x), *size, *size)
    total = products.new_zeros(len(x), *g.shape[2:], *g.shape[2:])
    for i, j in product(*(range(0, d * k, d) for d, k in zip(dilation, kernel, strict=True))):
        down = slice(i, i + reach[0], stride[0])
        along = slice(j, j + reach[1], stride[1])
        total += products[:, down, along, down, along]
    return paired(total, g.flatten(2).transpose(1, 2))


def _pair(given: tuple[int, ...]) -> Pair:
    return (1, given[0]) if len(given) == 1 else (given[0], given[1])


def padded(module: nn.Conv1d | nn.Conv2d, x: Tensor) -> Tensor:
    """Return the input with the layer's own padding laid around it."""
    sides: list[int] = []
    for axis in reversed(range(len(module.kernel_size))):
        if module.padding == "valid":
            sides += [0, 0]
        elif module.padding == "same":
            whole = module.dilation[axis] * (module.kernel_size[axis] - 1)
            sides += [whole // 2, whole - whole // 2]
        else:
            sides += [int(module.padding[axis])] * 2
    if not any(sides):
        return x
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    return functional.pad(x, sides, mode=mode)
