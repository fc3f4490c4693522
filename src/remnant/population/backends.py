"""Two backends that compute every member's gradient: all at once, or one after another.

Both read and write the same stacked state, so the optimizer, checkpoints and probes are the same
for both. The model alone decides which one runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.population.blueprint import Blueprint, Loss, Traits
from remnant.population.graphs import side_streams
from remnant.population.precision import training_cast
from remnant.population.randomness import keys
from remnant.population.state import Named, State

BACKENDS = ("stacked", "serial")
_STREAMS = 8  # members in flight at once on a GPU
_GLOBAL = -1  # stands for a layer in the key of torch's global generator


class Backend(Protocol):
    """Computes gradients and outputs of all rows of a state."""

    name: str

    def in_flight(self, members: int, device: torch.device) -> int | None:
        """Return how many members' activations are held at once; ``None``: a whole pass."""
        ...

    def gradients(self, state: State, inputs: Tensor, targets: Tensor) -> Named:
        """Return each member's gradient of its mean loss; buffers move as in training."""
        ...

    def outputs(self, state: State, inputs: Tensor) -> Tensor:
        """Return every member's evaluation outputs on the same inputs, members first."""
        ...


def choose_backend(traits: Traits, wanted: str | None) -> tuple[str, str]:
    """Return the backend and, in words, the rule that chose it."""
    if wanted is not None and wanted not in BACKENDS:
        raise InvalidInput(
            f"backend={wanted!r} is not one of {', '.join(BACKENDS)}.",
            hint="Leave it out to let the rule choose.",
        )
    if wanted == "serial":
        return "serial", "asked for"
    for applies, reason in (
        (traits.recurrent, "recurrent layers do not vmap"),
        (traits.padded, "vmap trains the padding row of an embedding"),
        (traits.draws, "the model draws random numbers of its own"),
        (traits.reassigns, "the model replaces its buffers"),
    ):
        if applies and wanted == "stacked":
            raise UnsupportedModel(f"backend='stacked': {reason}.", hint="Leave backend out.")
        if applies:
            return "serial", reason
    if wanted == "stacked":
        return "stacked", "asked for"
    if traits.convolutional:
        return "serial", "convolutions are faster one model at a time"
    return "stacked", "every layer vmaps"


class Stacked:
    """All members in one pass: ``vmap`` over stacked parameters, one backward of their sum."""

    name = "stacked"

    def __init__(self, blueprint: Blueprint, loss: Loss, precision: str | None) -> None:
        self._blueprint, self._loss, self._precision = blueprint, loss, precision

    def in_flight(self, members: int, device: torch.device) -> None:
        """Return ``None``: a whole pass is in flight."""
        return

    def gradients(self, state: State, inputs: Tensor, targets: Tensor) -> Named:
        """Return each member's gradient of its mean loss."""
        module = self._blueprint.begin_pass(training=True)
        params = {n: p.detach().requires_grad_() for n, p in state["params"].items()}
        fixed = {**state["frozen"], **self._blueprint.dropout_tensors(state)}

        def member_loss(own: Named, kept: Named, lent: Named, x: Tensor, y: Tensor) -> Tensor:
            with _lent_buffers(self._blueprint, lent):
                outputs = functional_call(module, {**own, **kept}, (x,))
            return self._blueprint.mean_loss(self._loss, outputs, y)

        try:
            with training_cast(self._precision, inputs.device):
                losses: Tensor = vmap(member_loss)(params, fixed, state["buffers"], inputs, targets)
            grads = torch.autograd.grad(losses.sum(), list(params.values()), allow_unused=True)
        except RuntimeError as fault:
            raise _explained(fault) from fault
        return {n: g for n, g in zip(params, grads, strict=True) if g is not None}

    def outputs(self, state: State, inputs: Tensor) -> Tensor:
        """Return every member's evaluation outputs on the same inputs."""
        module = self._blueprint.begin_pass(training=False)
        own = {**state["params"], **state["frozen"]}

        def member(own: Named, lent: Named, x: Tensor) -> Any:
            with _lent_buffers(self._blueprint, lent):
                return functional_call(module, own, (x,))

        try:
            with torch.no_grad():
                made: Tensor = vmap(member, in_dims=(0, 0, None))(own, state["buffers"], inputs)
        except RuntimeError as fault:
            raise _explained(fault) from fault
        return made


def _explained(fault: RuntimeError) -> RuntimeError | UnsupportedModel:
    """Return what to do about a fault of vmap's, or the fault itself where it is another's."""
    if "vmap" not in str(fault) and "atching rule" not in str(fault):
        return fault
    return UnsupportedModel(
        "The model does something that vmap cannot do for all members at once.",
        hint="Pass backend='serial' to fit.",
    )


class Serial:
    """One member after another, any module at all; on a GPU several are in flight at once."""

    name = "serial"

    def __init__(
        self,
        blueprint: Blueprint,
        loss: Loss,
        precision: str | None,
        *,
        draws: bool,
        compiled: bool = False,
    ) -> None:
        self._blueprint, self._loss, self._precision = blueprint, loss, precision
        self._draws = draws
        self._layout: dict[str, tuple[int, ...]] = {}
        self._compiled: Callable[..., Tensor] | None = None
        if compiled:
            self._compiled = torch.compile(self._functional_loss, dynamic=False)

    def in_flight(self, members: int, device: torch.device) -> int:
        """Return one on a CPU, and one a stream on a GPU."""
        return 1 if device.type == "cpu" or self._draws else min(members, _STREAMS)

    def gradients(self, state: State, inputs: Tensor, targets: Tensor) -> Named:
        """Return each member's gradient of its mean loss."""
        extra = self._blueprint.dropout_tensors(state)
        rows = len(state)
        if not self._layout:  # the first row shows which gradients there are, and how they lie
            alone = state.view(0, 1).clone()
            if self._draws:
                self._seed(state, 0)
            first = self._member_gradients(alone, extra, 0, inputs[0], targets[0])
            self._layout = {name: grad.stride() for name, grad in first.items()}
        made = {n: _empty_like(state["params"][n], s) for n, s in self._layout.items()}
        streams = self._open_streams(inputs.device, rows)
        for row in range(rows):
            with torch.cuda.stream(streams[row % len(streams)]) if streams else nullcontext():
                if self._draws:
                    self._seed(state, row)
                grads = self._member_gradients(state, extra, row, inputs[row], targets[row])
                if grads.keys() != made.keys():
                    names = ", ".join(sorted(grads.keys() ^ made.keys()))
                    raise UnsupportedModel(
                        f"A gradient reaches {names} at some steps and not at others.",
                        hint="Give every parameter a gradient at every step, or freeze it.",
                    )
                torch._foreach_copy_([made[n][row] for n in made], [grads[n] for n in made])
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
        return made

    def _member_gradients(
        self, state: State, extra: Named, row: int, inputs: Tensor, targets: Tensor
    ) -> Named:
        self._blueprint.begin_pass(training=True)
        params = {n: p[row].detach().requires_grad_() for n, p in state["params"].items()}
        fixed = {n: t[row] for n, t in {**state["frozen"], **extra}.items()}
        buffers = {n: b[row] for n, b in state["buffers"].items()}
        if inputs.is_cuda and inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        if self._compiled is not None:
            loss = self._compiled(params, {**fixed, **buffers}, inputs, targets)
        else:
            with _lent_buffers(self._blueprint, buffers):
                loss = self._functional_loss(params, fixed, inputs, targets)
        grads = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
        return {n: g for n, g in zip(params, grads, strict=True) if g is not None}

    def _functional_loss(
        self, params: Named, fixed: Named, inputs: Tensor, targets: Tensor
    ) -> Tensor:
        with training_cast(self._precision, inputs.device):
            outputs = functional_call(self._blueprint.module, {**params, **fixed}, (inputs,))
            return self._blueprint.mean_loss(self._loss, outputs, targets)

    def outputs(self, state: State, inputs: Tensor) -> Tensor:
        """Return every member's evaluation outputs on the same inputs."""
        module = self._blueprint.begin_pass(training=False)
        own = {**state["params"], **state["frozen"]}
        made = []
        with torch.no_grad():
            for row in range(len(state)):
                lent = {n: b[row] for n, b in state["buffers"].items()}
                with _lent_buffers(self._blueprint, lent):
                    made.append(
                        functional_call(module, {n: t[row] for n, t in own.items()}, inputs)
                    )
        return torch.stack(made)

    def _open_streams(self, device: torch.device, rows: int) -> list[torch.cuda.Stream]:
        count = self.in_flight(rows, device)
        if count == 1:
            return []
        streams = side_streams(device, 1 + count)[1:]  # the first one captures
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
        return streams

    def _seed(self, state: State, row: int) -> None:
        here = state.view(row, row + 1)
        key = keys(here["seeds"]["dropout"], here["clocks"]["lifetime"], _GLOBAL)
        torch.manual_seed(int(key.item()) & 0x7FFFFFFFFFFFFFFF)


def _empty_like(stacked: Tensor, inner: tuple[int, ...]) -> Tensor:
    """Return room for one gradient per member, each laid out with these strides."""
    size = stacked[0].numel()
    return torch.empty_strided(
        stacked.shape, (size, *inner), dtype=stacked.dtype, device=stacked.device
    )


class _lent_buffers:
    """Lends the module one member's buffers, and copies back those that it replaced."""

    def __init__(self, blueprint: Blueprint, buffers: Named) -> None:
        self._places = [
            (owner, attribute, buffer)
            for name, buffer in buffers.items()
            for owner, attribute in blueprint.owners[name]
        ]

    def __enter__(self) -> None:
        self._own = [owner._buffers[attribute] for owner, attribute, _ in self._places]
        for owner, attribute, lent in self._places:
            owner._buffers[attribute] = lent

    def __exit__(self, *_: object) -> None:
        for (owner, attribute, lent), own in zip(self._places, self._own, strict=True):
            now = owner._buffers[attribute]
            if now is not None and now is not lent:
                lent.copy_(now.detach())
            owner._buffers[attribute] = own
