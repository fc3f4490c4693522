"""The tensors of a model at a checkpoint, and which of its parameters are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from remnant.errors import InvalidInput, require

# What a compiled model puts before its names.
_COMPILED = "_orig_mod."
Checkpoint = tuple[Mapping[str, Tensor], float]


def chosen_parameters(model: nn.Module, layers: Sequence[str] | None) -> list[str]:
    """Return the names of the trainable parameters that are asked for.

    Args:
        model: Its frozen parameters (``requires_grad`` off) are left out.
        layers: Names of modules or of parameters; with a module comes all that is in it. None
            stands for the whole model.

    Raises:
        InvalidInput: A name that the model does not have, or nothing trainable behind them.
    """
    aliases = _aliases(model.named_parameters(remove_duplicate=False))
    known = dict(model.named_parameters())
    if layers is not None and not _names(layers):
        raise InvalidInput(
            f"layers={layers!r} is not a list of names.", hint="Give names, or None for all."
        )
    faults = []
    chosen: set[str] = set()
    for layer in layers if layers is not None else [""]:
        inside = {
            name
            for name, others in aliases.items()
            for other in others
            if not layer or other == layer or other.startswith(f"{layer}.")
        }
        if not inside:
            faults.append("the model has no parameters" + (f" under {layer!r}" if layer else ""))
        chosen |= inside
    some = f"It has, among others: {', '.join(list(known)[:8])}." if known else None
    require(faults, hint=some)
    wanted = [
        name for name, parameter in known.items() if name in chosen and parameter.requires_grad
    ]
    if not wanted:
        whose = "the model" if layers is None else ", ".join(layers)
        raise InvalidInput(
            f"no parameter of {whose} is trainable.",
            hint="Frozen parameters have no influence: set requires_grad, or name other layers.",
        )
    return wanted


def _names(given: Any) -> bool:
    return (
        isinstance(given, Iterable)
        and not isinstance(given, str)
        and bool(list(given))
        and all(isinstance(name, str) and name for name in given)
    )


def check_checkpoints(model: nn.Module, checkpoints: Any) -> list[Checkpoint]:
    """Return the checkpoints as pairs of a state dict and a learning rate.

    Raises:
        InvalidInput: None at all, something else than pairs, a state dict of another model, a
            learning rate that is negative, NaN or infinite.
    """
    pairs = list(checkpoints) if isinstance(checkpoints, Iterable) else []
    if not pairs or isinstance(checkpoints, Mapping):
        raise InvalidInput(
            "checkpoints has no (state_dict, learning rate).",
            hint="For the model as it is: [(model.state_dict(), 1.0)].",
        )
    faults: list[str] = []
    read: list[Checkpoint] = []
    tensors = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    wanted = {name: tensors.get(name) for name in model.state_dict()}
    for place, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], Mapping):
            faults.append(f"checkpoint {place} is not a pair (state_dict, learning rate)")
            continue
        state, rate = pair
        try:
            number = float(rate)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(rate, bool) or not 0.0 <= number < math.inf:
            faults.append(f"the learning rate {rate!r} of checkpoint {place} is not 0 or more")
        state = {str(name).removeprefix(_COMPILED): tensor for name, tensor in state.items()}
        misfit = _misfit(state, wanted)
        if misfit:
            faults.append(f"checkpoint {place} does not fit the model: {misfit}")
        read.append((state, number))
    require(faults, hint="Give what model.state_dict() returned, and the learning rate then.")
    return read


def _misfit(state: Mapping[str, Any], wanted: Mapping[str, Tensor | None]) -> str | None:
    missing = [name for name, tensor in wanted.items() if tensor is not None and name not in state]
    unknown = [name for name in state if name not in wanted]
    if missing:
        return f"it has no {_some(missing)}"
    if unknown:
        return f"the model has no {_some(unknown)}"
    for name, tensor in wanted.items():
        if tensor is None:
            continue
        given = state[name]
        if not isinstance(given, Tensor) or given.shape != tensor.shape:
            shape = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
            return f"{name} is {shape}, not {tuple(tensor.shape)}"
    return None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def tensors_at(
    model: nn.Module, state: Mapping[str, Tensor], trainable: Iterable[str]
) -> dict[str, Tensor]:
    """Return copies of all parameters and buffers of the model, with a checkpoint's values.

    Only the named ones ask for gradients. Where a tensor has several names, the last one's value
    counts, as in ``load_state_dict``.
    """
    chosen = set(trainable)
    copies: dict[str, Tensor] = {}
    kinds = (
        model.named_parameters(remove_duplicate=False),
        model.named_buffers(remove_duplicate=False),
    )
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for kind in kinds:
        for name, others in _aliases(kind).items():
            value = next((state[other] for other in reversed(others) if other in state), own[name])
            like = own[name]
            copied = value.detach().to(device=like.device, dtype=like.dtype, copy=True)
            copies[name] = copied.requires_grad_(name in chosen)
    return copies


@contextmanager
def standing_in(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Let the model compute with other tensors than its own, and give it back its own on leaving.

    Unlike ``torch.func.functional_call`` it also holds while gradients are computed, which models
    that compute parts anew in the backward pass need, and for a layer that has two names.
    """
    first = {id(tensor): name for name, tensor in model.named_parameters()}
    first |= {id(tensor): name for name, tensor in model.named_buffers()}
    own: list[tuple[dict[str, Any], str, Tensor]] = []
    for module in model.modules():
        for held in (module._parameters, module._buffers):
            places: dict[str, Any] = held
            own += [(places, key, value) for key, value in places.items() if value is not None]
    try:
        for places, key, value in own:
            places[key] = tensors[first[id(value)]]
        yield
    finally:
        for places, key, value in own:
            places[key] = value


def _aliases(named: Iterable[tuple[str, Tensor]]) -> dict[str, list[str]]:
    """All names of each tensor, by the first one."""
    first: dict[int, str] = {}
    aliases: dict[str, list[str]] = {}
    for name, tensor in named:
        aliases.setdefault(first.setdefault(id(tensor), name), []).append(name)
    return aliases
