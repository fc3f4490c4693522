"""Numbers as arguments: one for all members or one for each; whole ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.population.state import State


def per_member(
    name: str,
    value: Any,
    members: int,
    faults: list[str],
    *,
    least: float = 0.0,
    most: float = float("inf"),
    open_below: bool = False,
    open_above: bool = False,
) -> Tensor:
    """Spread a number over the members, or check that there is one for each.

    Returns:
        float64 ``(members,)``; zeros where a fault was noted.
    """
    try:
        tensor = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        faults.append(f"{name}={value!r} is not a number or one per member")
        return torch.zeros(members, dtype=torch.float64)
    tensor = tensor.expand(members).clone() if tensor.ndim == 0 else tensor.cpu()
    if tensor.shape != (members,):
        faults.append(
            f"{name} has shape {tuple(tensor.shape)}, not one value per member ({members})"
        )
        return torch.zeros(members, dtype=torch.float64)
    above = (tensor > least) if open_below else (tensor >= least)
    below = (tensor < most) if open_above else (tensor <= most)
    if not bool((torch.isfinite(tensor) & above & below).all()):
        low = f"above {least:g}" if open_below else f"at least {least:g}"
        high = (
            "" if most == float("inf") else f" and {'below' if open_above else 'at most'} {most:g}"
        )
        faults.append(f"{name}={value!r} is not finite and {low}{high}")
    return tensor


def whole_numbers(name: str, values: Any) -> list[int]:
    """Return whole numbers as plain ``int``; anything else is a fault."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name}={values!r} is not a sequence of whole numbers.")
    numbers = [v.item() if isinstance(v, Tensor) else v for v in values]
    wrong = [v for v in numbers if isinstance(v, bool) or not isinstance(v, int | np.integer)]
    if wrong:
        raise InvalidInput(f"{name} holds {wrong[0]!r}, which is not a whole number.")
    return [int(v) for v in numbers]


def set_clip(
    state: State, clip: float | Sequence[float] | None, *, members: int, device: torch.device
) -> None:
    """Give each member its largest gradient norm; None leaves gradients as they are.

    Raises:
        InvalidInput: A norm is not above 0, or there is not one per member.
    """
    if clip is None:
        return
    faults: list[str] = []
    limits = per_member("clip", clip, members, faults, open_below=True)
    require(faults, hint="Give the largest gradient norm, once or once per member.")
    state["hyper"]["clip"] = limits.to(device)
