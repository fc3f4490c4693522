"""The recurrence of LSTM and GRU layers over all times, with its gradient written out.

With autograd, a time step takes some thirty small operations, each a kernel launch on a GPU. Here
it takes four: two products and one kernel each way. The weights' gradient is one product at the
end. All tensors have an axis of members, into which ``vmap`` folds its own, so that a population is
as fast as one model until the GPU is full. ``lstm_steps`` and ``gru_steps`` are the definitions, in
plain operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function

from remnant.errors import UnsupportedModel


def lstm_scan(inputs: Tensor, weight: Tensor) -> Tensor:
    """Return the hidden states after each time, starting from zeros.

    Args:
        inputs: The inputs' part of the gates, biases included, ``[time, batch, 4 * units]``.
        weight: The recurrent weight, ``[4 * units, units]``.

    Example:
        >>> lstm_scan(torch.zeros(5, 2, 12), torch.zeros(12, 3)).shape
        torch.Size([5, 2, 3])
    """
    if _plain(inputs):
        return torch.stack(lstm_steps(inputs, weight))
    hidden: Tensor = _applied(_LstmScan, inputs[None], weight[None])[0]
    return hidden[0]


def gru_scan(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the hidden states after each time, starting from zeros.

    Args:
        inputs: The inputs' part of the gates, their biases included, ``[time, batch, 3 * units]``.
        weight: The recurrent weight, ``[3 * units, units]``.
        bias: Added to that product, ``[3 * units]``.

    Example:
        >>> gru_scan(torch.zeros(5, 2, 9), torch.zeros(9, 3), torch.zeros(9)).shape
        torch.Size([5, 2, 3])
    """
    if _plain(inputs):
        return torch.stack(gru_steps(inputs, weight, bias))
    hidden: Tensor = _applied(_GruScan, inputs[None], weight[None], bias[None])[0]
    return hidden[0]


def lstm_steps(inputs: Tensor, weight: Tensor) -> list[Tensor]:
    """Return the result of ``lstm_scan``, computed step by step."""
    hidden = cell = inputs.new_zeros(inputs.shape[1], weight.shape[1])
    made = []
    for now in inputs.unbind(0):
        i, f, g, o = torch.addmm(now, hidden, weight.t()).chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        made.append(hidden)
    return made


def gru_steps(inputs: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
    """Return the result of ``gru_scan``, computed step by step."""
    hidden = inputs.new_zeros(inputs.shape[1], weight.shape[1])
    made = []
    for now in inputs.unbind(0):
        hidden = gru_cell(now, torch.addmm(bias, hidden, weight.t()), hidden)
        made.append(hidden)
    return made


def gru_cell(inputs: Tensor, gates: Tensor, hidden: Tensor) -> Tensor:
    """Return the next hidden state from both parts of the gates."""
    units = hidden.shape[-1]
    both = (inputs[..., : 2 * units] + gates[..., : 2 * units]).sigmoid()
    reset, update = both.chunk(2, -1)
    new = (inputs[..., 2 * units :] + reset * gates[..., 2 * units :]).tanh()
    return new + update * (hidden - new)


def _plain(inputs: Tensor) -> bool:
    """Return whether autograd must see every operation: under autocast or compilation."""
    return torch.is_autocast_enabled(inputs.device.type) or torch.compiler.is_compiling()


def _applied(function: Any, *tensors: Tensor) -> Any:
    return function.apply(*tensors)


def _fold(tensor: Tensor, batched: int | None, axis: int, size: int) -> Tensor:
    """Merge vmap's axis into the members' axis, ``axis`` of the tensor without vmap's."""
    if batched is None:
        shape = [*tensor.shape[:axis], size, *tensor.shape[axis:]]
        tensor = tensor.unsqueeze(axis).expand(shape)
    else:
        tensor = tensor.movedim(batched, axis)
    return tensor.flatten(axis, axis + 1)


def _over_members(
    function: Any, info: Any, dims: Sequence[int | None], tensors: Sequence[Tensor], axes: str
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Apply to all members at once; ``axes`` names the members' axis: arguments > results."""
    given, made = ([int(axis) for axis in side] for side in axes.split(">"))
    size = info.batch_size
    folded = [_fold(*argument, size) for argument in zip(tensors, dims, given, strict=True)]
    results = _applied(function, *folded)
    parts = [part.unflatten(axis, (size, -1)) for part, axis in zip(results, made, strict=True)]
    return tuple(parts), tuple(made)


def _rows(tensor: Tensor) -> Tensor:
    """Return all members' rows as one matrix."""
    return tensor.reshape(-1, tensor.shape[-1])


def _by_weight(gates: Tensor, hidden: Tensor) -> Tensor:
    """Return the weight's gradient from the gates' gradients and the hidden states."""
    before = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, :-1]], dim=1)
    return torch.bmm(gates.flatten(1, 2).transpose(1, 2), before.flatten(1, 2))


class _Gradient(Function):
    """A gradient without second derivatives."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise UnsupportedModel(
            "A recurrent layer has a gradient, and that gradient has none.",
            hint="Do without create_graph, or take another architecture.",
        )


class _LstmScan(Function):
    """Inputs ``[members, time, batch, 4u]``, weight ``[members, 4u, u]``; hidden, cells, gates.

    Tensors saved for the gradient have the time first, so that one time is contiguous.
    """

    @staticmethod
    def forward(inputs: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        members, _, batch, _ = inputs.shape
        units = weight.shape[-1]
        turned = weight.transpose(1, 2)
        hidden = inputs.new_zeros(members, batch, units)
        cell = _rows(hidden)
        made: tuple[list[Tensor], ...] = ([], [], [])
        for now in inputs.transpose(0, 1).contiguous():
            state, cell, gates = _lstm_forward(_rows(now), _rows(torch.bmm(hidden, turned)), cell)
            hidden = state.view(members, batch, units)
            for kept, tensor in zip(made, (hidden, cell, gates), strict=True):
                kept.append(tensor.view(members, batch, -1))
        return torch.stack(made[0], 1), torch.stack(made[1]), torch.stack(made[2])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1], *output)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if grads[0] is None:
            return None, None
        return _applied(_LstmGradient, grads[0], *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *tensors: Tensor) -> Any:
        return _over_members(_LstmScan, info, in_dims, tensors, "00>011")


class _LstmGradient(_Gradient):
    """Maps the gradient of the hidden states to those of inputs and weight."""

    @staticmethod
    def forward(
        grad: Tensor, weight: Tensor, hidden: Tensor, cells: Tensor, gates: Tensor
    ) -> tuple[Tensor, Tensor]:
        into = torch.zeros_like(_rows(cells[0]))
        nothing, by_gates = torch.zeros_like(into), torch.zeros_like(gates[0])
        made: list[Tensor] = []
        for time in reversed(range(len(gates))):
            here = grad[:, time]
            both = _rows(torch.baddbmm(here, by_gates, weight) if made else here)
            before = _rows(cells[time - 1]) if time else nothing
            flat, into = _lstm_backward(both, into, before, _rows(cells[time]), _rows(gates[time]))
            by_gates = flat.view(gates[time].shape)
            made.append(by_gates)
        inputs = torch.stack(made[::-1], 1)
        return inputs, _by_weight(inputs, hidden)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *tensors: Tensor) -> Any:
        return _over_members(_LstmGradient, info, in_dims, tensors, "00011>00")


def _lstm_forward(inputs: Tensor, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the hidden state, the cell and the activated gates i, f, g, o of all rows."""
    if inputs.is_cuda:
        fused: tuple[Tensor, Tensor, Tensor] = torch.ops.aten._thnn_fused_lstm_cell(
            inputs, gates, cell
        )
        return fused
    units = cell.shape[-1]
    opened = inputs + gates
    middle = opened[:, 2 * units : 3 * units]
    middle *= 2  # torch's tanh takes three times as long as its sigmoid: tanh(x) = 2 s(2x) - 1
    opened.sigmoid_()
    middle.mul_(2).sub_(1)
    i, f, g, o = opened.chunk(4, -1)
    cell = (f * cell).addcmul_(i, g)
    return o * cell.tanh(), cell, opened


def _lstm_backward(
    hidden: Tensor, cell: Tensor, before: Tensor, after: Tensor, opened: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the gates and of the previous cell."""
    if hidden.is_cuda:
        gates, cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(
            hidden, cell, before, after, opened, False
        )
        return gates, cell
    i, f, g, o = opened.chunk(4, -1)
    ones = opened.new_ones(())
    squashed = after.tanh()
    cell = torch.addcmul(cell, hidden * o, torch.addcmul(ones, squashed, squashed, value=-1))
    gates = torch.empty_like(opened)
    pairs = ((cell, g), (cell, before), (cell, i), (hidden, squashed))
    for part, (first, second) in zip(gates.chunk(4, -1), pairs, strict=True):
        torch.mul(first, second, out=part)
    slope = torch.addcmul(opened, opened, opened, value=-1)
    torch.addcmul(ones, g, g, value=-1, out=slope.chunk(4, -1)[2])
    return gates.mul_(slope), cell * f


class _GruScan(Function):
    """Inputs ``[members, time, batch, 3u]``, weight, bias; hidden states and what was kept."""

    @staticmethod
    def forward(inputs: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        members, _, batch, _ = inputs.shape
        units = weight.shape[-1]
        turned, added = weight.transpose(1, 2), bias[:, None]
        hidden = inputs.new_zeros(members, batch, units)
        made: tuple[list[Tensor], ...] = ([], [])
        for now in inputs.transpose(0, 1).contiguous():
            gates = torch.baddbmm(added, hidden, turned)
            state, kept = _gru_forward(_rows(now), _rows(gates), _rows(hidden))
            hidden = state.view(members, batch, units)
            made[0].append(hidden)
            made[1].append(kept.view(members, batch, -1))
        return torch.stack(made[0], 1), torch.stack(made[1])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1], *output)
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if grads[0] is None:
            return None, None, None
        return _applied(_GruGradient, grads[0], *ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *tensors: Tensor) -> Any:
        return _over_members(_GruScan, info, in_dims, tensors, "000>01")


class _GruGradient(_Gradient):
    """Maps the gradient of the hidden states to those of inputs, weight and bias."""

    @staticmethod
    def forward(
        grad: Tensor, weight: Tensor, hidden: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        made: tuple[list[Tensor], ...] = ([], [])
        both = grad[:, -1]
        for time in reversed(range(len(kept))):
            inputs, gates, into = _gru_backward(_rows(both), _rows(kept[time]))
            for steps, gradient in zip(made, (inputs, gates), strict=True):
                steps.append(gradient.view(*both.shape[:2], -1))
            if time:
                both = torch.baddbmm(
                    into.view(both.shape).add_(grad[:, time - 1]), made[1][-1], weight
                )
        by_inputs, by_gates = (torch.stack(steps[::-1], 1) for steps in made)
        return by_inputs, _by_weight(by_gates, hidden), by_gates.sum(dim=(1, 2))

    @staticmethod
    def vmap(info: Any, in_dims: Any, *tensors: Tensor) -> Any:
        return _over_members(_GruGradient, info, in_dims, tensors, "0001>000")


def _gru_forward(inputs: Tensor, gates: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Return the hidden state of all rows, and r, z, n, h, n's part for the gradient."""
    if inputs.is_cuda:
        state, kept = torch.ops.aten._thnn_fused_gru_cell(inputs, gates, hidden)
        return state, kept
    units = hidden.shape[-1]
    both = (inputs[:, : 2 * units] + gates[:, : 2 * units]).sigmoid_()
    reset, update = both.chunk(2, -1)
    part = gates[:, 2 * units :]
    new = torch.addcmul(inputs[:, 2 * units :], reset, part).tanh_()
    state = torch.addcmul(new, update, hidden - new)
    return state, torch.cat([both, new, hidden, part], dim=-1)


def _gru_backward(grad: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the gates' two parts and of the previous hidden state."""
    if grad.is_cuda:
        inputs, gates, into, _, _ = torch.ops.aten._thnn_fused_gru_cell_backward(grad, kept, False)
        return inputs, gates, into
    reset, update, new, hidden, part = kept.chunk(5, -1)
    by_new = grad * (1 - update) * (1 - new * new)
    by_update = grad * (hidden - new) * update * (1 - update)
    by_reset = by_new * part * reset * (1 - reset)
    inputs = torch.cat([by_reset, by_update, by_new], dim=-1)
    gates = torch.cat([by_reset, by_update, by_new * reset], dim=-1)
    return inputs, gates, grad * update
