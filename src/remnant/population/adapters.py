"""LoRA adapters of many members over one frozen model, run at once.

All members' rows go through the frozen layers together. At each adapted layer every member adds
``alpha / rank * (x A') B'`` to its own rows, in one batched product for all members. Only adapters
have gradients, so the frozen layers save nothing but their weights for the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.population.lora import Lora
from remnant.population.precision import training_cast
from remnant.population.randomness import keys, words
from remnant.population.state import Named, State

PADDING = -1  # fills rows after a sequence's last token
_PASS = {"cuda": 2**15, "cpu": 2**11}  # tokens per pass that saturate the device
_STRIDE = 2**13  # distance of two rows' first tokens in dropout's counter
_NAME = "adapters"


@dataclass(frozen=True, slots=True, eq=False)
class FrozenModel:
    """A causal language model in two parts, so that its head runs at the last token only.

    Attributes:
        module: The whole model, which names the layers. It is never trained.
        body: Maps tokens, int64 ``(rows, time)``, to states ``(rows, time, width)``. A state may
            depend only on the tokens up to its position.
        head: Maps states ``(rows, width)`` to logits ``(rows, vocabulary)``.
    """

    module: nn.Module
    body: Callable[[Tensor], Tensor]
    head: Callable[[Tensor], Tensor]


class Adapters:
    """Creates and runs the members' adapters of one frozen model.

    A member's adapters are one flat row of numbers, so that an optimizer's step takes few
    operations, whatever the number of layers.

    Raises:
        UnsupportedModel: No dense layer has such a name.
    """

    name = _NAME

    def __init__(self, model: FrozenModel, lora: Lora, *, precision: str | None) -> None:
        self._model, self._lora, self._precision = model, lora, precision
        layers = {n: m for n, m in model.module.named_modules() if isinstance(m, nn.Linear)}
        self.layers = {n: m for n, m in layers.items() if n.split(".")[-1] in lora.modules}
        if missing := set(lora.modules) - {name.split(".")[-1] for name in self.layers}:
            known = sorted({name.split(".")[-1] for name in layers})
            raise UnsupportedModel(
                f"modules={sorted(missing)}: the model has no dense layers called so.",
                hint=f"It has: {', '.join(known)}.",
            )
        self._shapes = [
            shape
            for layer in self.layers.values()
            for shape in ((lora.rank, layer.in_features), (layer.out_features, lora.rank))
        ]
        self._sizes = [rows * columns for rows, columns in self._shapes]
        self.most_tokens: int | None = None  # in one pass, where memory is short
        model.module.requires_grad_(False).eval()

    def start(self, seed: int, dtype: torch.dtype) -> Tensor:
        """Return a member's initial adapters from its seed: A as a dense weight, B zero."""
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for place, (shape, size) in enumerate(zip(self._shapes, self._sizes, strict=True)):
            drawn = torch.zeros(size, dtype=torch.float64)
            if place % 2 == 0:
                drawn.uniform_(-1, 1, generator=generator).mul_(shape[1] ** -0.5)
            parts.append(drawn)
        return torch.cat(parts).to(dtype)

    def named(self, row: Tensor) -> Named:
        """Return one member's matrices by their names: ``LAYER.A`` and ``LAYER.B``."""
        names = [f"{name}.{part}" for name in self.layers for part in "AB"]
        parts = row.split(self._sizes)
        return {
            name: part.reshape(shape).clone()
            for name, part, shape in zip(names, parts, self._shapes, strict=True)
        }

    def in_flight(self, members: int, device: torch.device) -> None:
        """Return ``None``: a whole pass is in flight."""
        return

    def gradients(self, state: State, inputs: Tensor, targets: Tensor) -> Named:
        """Return each member's gradient of its mean loss at the end of its sequences.

        Args:
            state: The members.
            inputs: Tokens ``(members, batch, time)``, ``PADDING`` after the last.
            targets: The token that follows, ``(members, batch)``.
        """
        rows = state["params"][_NAME]
        matrices = [part.requires_grad_() for part in self._matrices(rows.detach())]
        total: Tensor | None = None
        order = (inputs != PADDING).sum(-1).argsort(dim=1, stable=True)
        rows_a_pass = self.rows_of(inputs.shape, inputs.device)
        for columns in order.split(rows_a_pass, dim=1):  # by length, so that little is padded
            tokens = inputs.take_along_dim(columns[..., None], dim=1)
            wanted = targets.take_along_dim(columns, dim=1)
            drop = self._dropout(state, columns)
            with training_cast(self._precision, inputs.device):
                ends, _ = self._run(matrices, tokens, drop=drop)
                logits = self._head(matrices, ends, drop)
            losses = nn.functional.cross_entropy(
                logits.flatten(0, 1).to(rows.dtype), wanted.flatten(), reduction="sum"
            )
            gradients = torch.autograd.grad(losses / inputs.shape[1], matrices)
            flat = torch.cat([part.flatten(1) for part in gradients], dim=1)
            total = flat if total is None else total.add_(flat)
        if total is None:
            raise InvalidInput("a batch is empty.")
        return {_NAME: total}

    def outputs(self, state: State, inputs: Tensor) -> Tensor:
        """Return every member's logits at the end of the same sequences."""
        return self.look(state, inputs, ())[0]

    def look(
        self, state: State, tokens: Tensor, layers: Sequence[str]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return logits and named layers' states at the end of the same sequences.

        Args:
            state: The members.
            tokens: ``(rows, time)``, ``PADDING`` after the last.
            layers: Names of the model's layers; ``last`` is the input of the head.

        Returns:
            Logits ``(members, rows, vocabulary)``, and states ``(members, rows, width)``.
        """
        matrices = self._matrices(state["params"][_NAME])
        with torch.no_grad():
            shared = tokens.expand(len(state), *tokens.shape)
            inner = [name for name in layers if name != "last"]
            ends, kept = self._run(matrices, shared, layers=inner)
            states = {name: ends if name == "last" else kept[name] for name in layers}
            return self._head(matrices, ends, None), states

    def _matrices(self, rows: Tensor) -> list[Tensor]:
        """Cut the members' rows into A and B of every layer, ``(members, ...)``."""
        parts = rows.split(self._sizes, dim=1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def _run(
        self,
        matrices: list[Tensor],
        tokens: Tensor,
        *,
        drop: _Dropout | None = None,
        layers: Sequence[str] = (),
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Run the body on all members' rows; return the states at each row's last token."""
        members, count = tokens.shape[:2]
        lengths = (tokens != PADDING).sum(-1).flatten()
        # Causal attention never looks ahead, so padding after the end needs no mask.
        flat = tokens.flatten(0, 1)[:, : int(lengths.max())].clamp(min=0)
        places = torch.arange(len(flat), device=flat.device), lengths - 1
        if drop is not None:
            drop.at(torch.arange(flat.shape[1], device=flat.device).expand(members, count, -1))
        with self._adapted(matrices, drop), _kept(self._model.module, layers, places) as kept:
            ends = self._model.body(flat)[places]
        if drop is not None:
            drop.at((lengths - 1).reshape(members, count, 1))  # for the head
        return ends.unflatten(0, (members, count)), {
            name: states.unflatten(0, (members, count)) for name, states in kept.items()
        }

    def _head(self, matrices: list[Tensor], ends: Tensor, drop: _Dropout | None) -> Tensor:
        with self._adapted(matrices, drop):
            logits: Tensor = self._model.head(ends.flatten(0, 1)).unflatten(0, ends.shape[:2])
        return logits

    def rows_of(self, shape: Sequence[int], device: torch.device) -> int:
        """Return how many rows of each member go through one pass.

        Args:
            shape: Members, rows of each, tokens of the longest row.
            device: Where they are computed.
        """
        members, batch, time = shape
        most = _PASS[device.type]
        most = most if self.most_tokens is None else min(most, self.most_tokens)
        passes = max(1, math.ceil(members * batch * time / most))
        return math.ceil(batch / min(passes, batch))

    def _dropout(self, state: State, rows: Tensor) -> _Dropout | None:
        if not self._lora.dropout:
            return None
        key = keys(state["seeds"]["dropout"], state["clocks"]["lifetime"], 0)
        return _Dropout(self._lora.dropout, key, rows)

    @contextmanager
    def _adapted(self, matrices: list[Tensor], drop: _Dropout | None) -> Iterator[None]:
        """Hook the adapted layers, so that each adds every member's part to its own rows."""
        scale = self._lora.alpha / self._lora.rank
        if drop is not None:
            scale /= 1 - drop.rate
        hooks = []
        for place, layer in enumerate(self.layers.values()):
            down, up = matrices[2 * place : 2 * place + 2]

            def add(
                _: nn.Module,
                given: tuple[Any, ...],
                made: Tensor,
                place: int = place,
                down: Tensor = down,
                up: Tensor = up,
            ) -> Tensor:
                inputs = given[0].reshape(len(down), -1, down.shape[-1])
                if drop is not None:
                    inputs = inputs * drop.kept(place, inputs)
                inner = torch.bmm(inputs, down.to(inputs.dtype).mT)
                whole = made.reshape(len(up), -1, up.shape[1])
                added = torch.baddbmm(
                    whole, inner.to(whole.dtype), up.to(whole.dtype).mT, alpha=scale
                )
                return added.reshape(made.shape)

            hooks.append(layer.register_forward_hook(add))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


class _Dropout:
    """The dropout masks of the adapters' inputs in one pass.

    A mask depends on the member's seed and update, and on the indices of the row, the token, the
    feature and the layer; not on padding, other members or the split into passes. Random words are
    made once for all layers of a width; each layer multiplies them by a factor of its own.
    """

    def __init__(self, rate: float, key: Tensor, rows: Tensor) -> None:
        self.rate = rate
        self._key, self._rows = key, rows
        self._limit = round(rate * 2**32) - 2**31
        self._words: dict[int, Tensor] = {}
        self._tokens = rows

    def at(self, time: Tensor) -> None:
        """Prepare for tokens at these places of their sequences, ``(members, rows, tokens)``."""
        self._words.clear()
        self._tokens = (self._rows[..., None] * _STRIDE + time).flatten(1)

    def kept(self, layer: int, inputs: Tensor) -> Tensor:
        """Return which of the inputs ``(members, rows * time, width)`` are kept."""
        width = inputs.shape[-1]
        if width not in self._words:
            feature = torch.arange(width, device=self._key.device)
            place = (self._tokens[..., None] * width + feature).to(torch.int32)
            self._words[width] = words(self._key[:, None, None], place)
        turned = self._words[width] * _factor(layer)
        return turned >= self._limit


def _factor(layer: int) -> int:
    """Return a layer's factor for its random words: an odd number, as a signed 32-bit word."""
    word = (layer * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) % 2**32 | 1
    return word - 2**32 if word >= 2**31 else word


@contextmanager
def _kept(
    module: nn.Module, layers: Sequence[str], places: tuple[Tensor, Tensor]
) -> Iterator[dict[str, Tensor]]:
    """Collect the outputs of the named layers at these places."""
    known = dict(module.named_modules())
    if unknown := [name for name in layers if name not in known]:
        some = [name for name in known if name.count(".") <= 2 and name][:8]
        raise UnsupportedModel(
            f"the model has no layer {unknown[0]!r}.",
            hint=f"It has, among others: last, {', '.join(some)}.",
        )
    kept: dict[str, Tensor] = {}

    def keeper(name: str) -> Callable[..., None]:
        def keep(_: nn.Module, __: Any, made: Any) -> None:
            states = made[0] if isinstance(made, tuple) else made
            if not isinstance(states, Tensor) or states.ndim != 3:
                raise UnsupportedModel(f"the layer {name!r} returns no states of a sequence.")
            kept[name] = states[places]

        return keep

    hooks = [known[name].register_forward_hook(keeper(name)) for name in layers]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()
    if missing := [name for name in layers if name not in kept]:
        raise UnsupportedModel(f"the layer {missing[0]!r} does not run.", hint="Name another one.")
