"""One pass of a classifier over labelled examples: losses, logit gaps and hidden states at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RemnantError, UnsupportedModel
from remnant.probes.hidden import (
    Inputs,
    check_batch,
    evaluating,
    flattened,
    length_of,
    logits_of,
    part_of,
    pooled,
    states_of,
    watching,
)

LAST = "last"
# What a third-party model may raise.
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError),
    *(RuntimeError, TypeError, ValueError),
)


@dataclass(frozen=True, slots=True, eq=False)
class OnePass:
    """What a classifier says about labelled examples, in their order.

    Attributes:
        losses: Cross-entropy of each label in nats, float64 ``(n,)``.
        log_odds: log p/(1 - p) of the label, float64 ``(n,)``.
        logit_gaps: The label's logit less the best other one, float64 ``(n,)``.
        predicted: The class of the highest logit, int64 ``(n,)``.
        outputs: How many logits there are.
        hidden: Hidden states of each layer asked for, ``(n, d)``, on the CPU.
        layers: Their names; what enters a dense layer is called so.
    """

    losses: Tensor
    log_odds: Tensor
    logit_gaps: Tensor
    predicted: Tensor
    outputs: int
    hidden: tuple[Tensor, ...]
    layers: tuple[str, ...]


def one_pass(
    model: nn.Module,
    inputs: Inputs,
    labels: Tensor,
    *,
    layers: Sequence[str] = (LAST,),
    batch: int = 256,
    whole: bool = False,
) -> OnePass:
    """Ask a classifier once about each example, in evaluation mode and without gradients.

    Hidden states are those of ``hidden_states``: ``"last"`` is what enters the last dense layer
    that runs, any other name what that layer returns. Outputs of sequences ``(n, tokens, classes)``
    are read at the last token that ``attention_mask`` allows. Columns of token ids that the mask
    allows nobody of a batch are cut off.

    Args:
        model: Any module that returns logits, as a tensor or in a field ``logits``. Its training
            mode, weights and buffers are left as they were.
        inputs: A tensor, or named tensors that the model takes as keywords.
        labels: Whole numbers, ``(n,)``.
        layers: Names from ``model.named_modules()``, or ``"last"``; may be none.
        batch: Examples a pass; it changes nothing but memory, up to rounding.
        whole: Whether a hidden state is all that a layer gives for an example, flattened, whatever
            its axes are. Every name is then that of a module.

    Guarantees:
        * Every example goes through the model once, none twice.

    Raises:
        UnsupportedModel: There is no such layer, it does not run, or the outputs are no logits.
        InvalidInput: Labels that are not one an example or outside the outputs, outputs that are
            NaN or infinite, inputs that the model cannot take, a batch that does not fit.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> seen = one_pass(model, torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1]))
        >>> seen.losses.shape, seen.hidden[0].shape, seen.layers
        (torch.Size([5]), torch.Size([5, 8]), ('entering 2',))
    """
    count = length_of(inputs)
    if labels.shape != (count,):
        raise InvalidInput(
            f"labels of shape {tuple(labels.shape)} for {count} examples.",
            hint="Give one label an example.",
        )
    check_batch(batch)
    watched = [None if layer == LAST and not whole else layer for layer in layers]
    signals: list[Tensor] = []
    states: list[list[Tensor]] = [[] for _ in layers]
    names: tuple[str, ...] = ()
    outputs = 0
    with evaluating(model), watching(model, watched) as seen:
        for first in range(0, count, batch):
            part = _trimmed(part_of(inputs, first, first + batch))
            seen.clear()
            logits = _logits(_ask(model, part), part)
            wanted = labels[first : first + batch].to(logits.device)
            outputs = _check_labels(labels, logits)
            signals.append(_signals(logits, wanted, first).cpu())
            given = [states_of(seen, layer) for layer in watched]
            names = tuple(name for name, _ in given)
            for kept, (name, state) in zip(states, given, strict=True):
                one_each = (
                    flattened(state, length_of(part), name)
                    if whole
                    else pooled(state, part, "last", name)
                )
                kept.append(one_each.cpu())
    losses, odds, gaps, predicted = torch.cat(signals, dim=1)
    hidden = tuple(torch.cat(kept) for kept in states)
    return OnePass(losses, odds, gaps, predicted.long(), outputs, hidden, names)


def check_layer(model: nn.Module, inputs: Tensor, layer: str) -> None:
    """Refuse a layer that does not give one hidden state an example, as ``whole`` takes them.

    Args:
        model: Any module; it is left as it was.
        inputs: A few examples, two at least.
        layer: A name from ``model.named_modules()``.

    Raises:
        UnsupportedModel: There is no such layer; it does not run, or runs several times in a pass;
            it gives no tensor of floating-point numbers whose first axis is the examples.
    """
    calls: list[int] = []
    with evaluating(model), watching(model, [layer]) as seen:
        counting = model.get_submodule(layer).register_forward_hook(lambda *_: calls.append(1))
        try:
            for count in (len(inputs), len(inputs) - 1):  # an axis of another kind keeps its length
                seen.clear()
                calls.clear()
                _ask(model, inputs[:count])
                name, states = states_of(seen, layer)
                flattened(states, count, name)
                if len(calls) > 1:
                    raise UnsupportedModel(
                        f"the layer {layer!r} runs {len(calls)} times in a pass.",
                        hint="Name one that runs once.",
                    )
        finally:
            counting.remove()


def _trimmed(part: Inputs) -> Inputs:
    """Cut off the columns at the right that are padding for everybody in the batch."""
    mask = part.get("attention_mask") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or mask is None or mask.ndim != 2:
        return part
    width = mask.shape[1]
    used = int(mask.any(dim=0).nonzero().max()) + 1 if bool(mask.any()) else width
    return {
        name: tensor[:, :used] if tensor.shape[1:2] == (width,) else tensor
        for name, tensor in part.items()
    }


def _ask(model: nn.Module, part: Inputs) -> Any:
    with in_one_sentence(part):
        given = placed(model, part)
        return model(**given) if isinstance(given, Mapping) else model(given)


def placed(model: nn.Module, part: Inputs) -> Inputs:
    """Return the examples on the model's device, numbers in its own floating type."""
    where = next((tensor.device for tensor in model.parameters()), torch.device("cpu"))
    kinds = {tensor.dtype for tensor in model.parameters() if tensor.is_floating_point()}
    kind = kinds.pop() if len(kinds) == 1 else None

    def moved(tensor: Tensor) -> Tensor:
        there = tensor.to(where)
        return there.to(kind) if kind is not None and there.is_floating_point() else there

    if isinstance(part, Mapping):
        return {name: moved(tensor) for name, tensor in part.items()}
    return moved(part)


@contextmanager
def in_one_sentence(part: Inputs) -> Iterator[None]:
    """Turn whatever a model raises when it is asked about these examples into one sentence."""
    try:
        yield
    except RemnantError:
        raise
    except _FAULTS as fault:
        said = str(fault).strip().partition("\n")[0].rstrip(".")
        if isinstance(fault, MemoryError) or "out of memory" in said:
            raise InvalidInput(
                f"a batch of {length_of(part)} samples does not fit into memory.",
                hint="Take fewer at once.",
            ) from fault
        named = part.items() if isinstance(part, Mapping) else [("inputs", part)]
        shapes = ", ".join(f"{name} {tuple(tensor.shape[1:])}" for name, tensor in named)
        raise InvalidInput(
            f"the model cannot take samples of shape {shapes}: {said or type(fault).__name__}.",
            hint="Give them as they were in training.",
        ) from fault


def _logits(made: Any, part: Inputs) -> Tensor:
    logits = logits_of(made)
    if logits.ndim == 3:
        logits = pooled(logits, part, "last", "output")
    if logits.ndim != 2 or logits.shape[1] < 2 or not logits.is_floating_point():
        raise UnsupportedModel(
            f"the model gives outputs of shape {tuple(logits.shape)}; it takes a logit for each "
            "of two classes or more.",
            hint="Where it has one output z for two classes, let it return (0, z).",
        )
    return logits.double()


def _check_labels(labels: Tensor, logits: Tensor) -> int:
    outputs = logits.shape[1]
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= outputs:
        raise InvalidInput(
            f"labels reach from {low} to {high}, and the model has {outputs} outputs, 0 to "
            f"{outputs - 1}.",
            hint="Number the classes as in training.",
        )
    return outputs


def _signals(logits: Tensor, wanted: Tensor, first: int) -> Tensor:
    """Losses, log-odds, logit gaps and the predicted class, ``(4, n)``."""
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.all()):
        place = first + int((~finite).nonzero()[0])
        raise InvalidInput(
            f"the model's output is NaN or infinite for sample {place}.",
            hint="Its weights may be damaged, or the inputs not as in training.",
        )
    places = wanted[:, None].long()
    own = logits.gather(1, places)[:, 0]
    others = logits.scatter(1, places, -torch.inf)
    odds = own - others.logsumexp(1)
    losses = nn.functional.softplus(-odds, threshold=50.0)
    return torch.stack([losses, odds, own - others.amax(1), logits.argmax(1).double()])
