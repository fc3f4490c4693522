"""What an optimizer does to the members at a step, each with its own settings, moments and clock.

Each rule is tested equal to its namesake in ``torch.optim``. They work in place on stacked tensors:
``params[name]`` has shape ``(members, ...)`` and a setting has shape ``(members,)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from remnant.errors import require
from remnant.population import fused
from remnant.population.optimizers import Optimizer, per_member
from remnant.population.state import State

Update = Callable[[Optimizer, State, dict[str, Tensor], Tensor], None]


def attach(optimizer: Optimizer, state: State) -> None:
    """Give the state fresh moments, settings and a clock at zero."""
    params = state["params"]
    for group in [g for g in state.groups if g.startswith("moment.")]:
        del state.groups[group]
    for moment in optimizer.moments:
        state.groups[f"moment.{moment}"] = {n: torch.zeros_like(p) for n, p in params.items()}
    clock = state["clocks"]["lifetime"]
    state["clocks"]["fit"] = torch.zeros_like(clock)
    state.groups["hyper"] = {
        name: torch.tensor(values, dtype=torch.float64, device=clock.device)
        for name, values in optimizer.settings.items()
    }
    if optimizer.uses("initial_accumulator_value"):
        for square in state["moment.square"].values():
            square.add_(_like(state["hyper"]["initial_accumulator_value"], square))


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
    state["hyper"]["clip"] = torch.tensor(limits, dtype=torch.float64, device=device)


def update(
    optimizer: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor
) -> None:
    """Take one step; ``factor`` multiplies each member's learning rate."""
    _RULES[optimizer.rule](optimizer, state, gradients, factor)


def _like(setting: Tensor, tensor: Tensor) -> Tensor:
    """Shape one value per member so that it multiplies ``tensor`` member by member."""
    return setting.to(tensor.dtype).reshape(-1, *(1 for _ in tensor.shape[1:]))


def _cast(state: State) -> dict[str, Tensor]:
    """Bring the settings to the parameters' type once, not once per parameter."""
    kind = next(iter(state["params"].values())).dtype
    return {name: setting.to(kind) for name, setting in state["hyper"].items()}


def _gradient(rule: Optimizer, state: State, name: str, raw: Tensor, *, decayed: bool) -> Tensor:
    grad = -raw if rule.flags["maximize"] else raw
    if decayed and rule.uses("weight_decay"):
        param = state["params"][name]
        grad = torch.addcmul(grad, param, _like(state["hyper"]["weight_decay"], param))
    return grad


def _sgd(rule: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
    hyper, first = _cast(state), state["clocks"]["fit"] == 0
    rate = (-hyper["lr"] * factor).to(hyper["lr"].dtype)
    plain = rule.uses("momentum") and not rule.uses("dampening") and not rule.flags["nesterov"]
    for name, raw in gradients.items():
        param = state["params"][name]
        grad = _gradient(rule, state, name, raw, decayed=True)
        if plain and fused.usable(param, grad, state["moment.momentum"][name]):
            buffer = state["moment.momentum"][name]
            fused.sgd_momentum(param, buffer, grad, rate, hyper["momentum"])
            continue
        if rule.uses("momentum"):
            grad = _sgd_momentum(rule, hyper, first, state["moment.momentum"][name], grad)
        param.addcmul_(grad, _like(rate, param))


def _sgd_momentum(
    rule: Optimizer, hyper: dict[str, Tensor], first: Tensor, buffer: Tensor, grad: Tensor
) -> Tensor:
    momentum = _like(hyper["momentum"], grad)
    fresh = grad
    if rule.uses("dampening"):  # torch.optim keeps the first gradient whole
        whole = torch.where(first, 1.0, 1 - hyper["dampening"])
        fresh = grad * _like(whole, grad)
    torch.addcmul(fresh, buffer, momentum, out=buffer)
    if rule.flags["nesterov"]:
        return torch.addcmul(grad, buffer, momentum)
    if rule.uses("dampening"):  # ... and ignores dampening where there is no momentum
        return torch.where(momentum == 0, grad, buffer)
    return buffer


def _adam(rule: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
    hyper = state["hyper"]
    decoupled = rule.name == "adamw" or rule.flags["decoupled_weight_decay"]
    lr = hyper["lr"] * factor
    taken = (state["clocks"]["fit"] + 1).to(torch.float64)
    step_size = -lr / (1 - hyper["beta1"] ** taken)
    root = torch.sqrt(1 - hyper["beta2"] ** taken)
    kind = next(iter(state["params"].values())).dtype
    step_size, root, lr = step_size.to(kind), root.to(kind), lr.to(kind)
    hyper = _cast(state)
    shrunk = 1 - lr * hyper["weight_decay"] if decoupled else torch.ones_like(lr)
    table: Tensor | None = None
    for name, raw in gradients.items():
        param = state["params"][name]
        mean, square = state["moment.mean"][name], state["moment.square"][name]
        grad = _gradient(rule, state, name, raw, decayed=not decoupled)
        if not rule.flags["amsgrad"] and fused.usable(param, grad, mean, square):
            if table is None:
                table = fused.AdamSettings(
                    fresh=1 - hyper["beta1"],
                    kept=hyper["beta2"],
                    added=1 - hyper["beta2"],
                    root=root,
                    eps=hyper["eps"],
                    step=step_size,
                    shrunk=shrunk,
                ).table()
            fused.adam(param, mean, square, grad, table)
            continue
        if decoupled and rule.uses("weight_decay"):
            param.mul_(_like(shrunk, param))
        mean.lerp_(grad, _like(1 - hyper["beta1"], grad))
        square.mul_(_like(hyper["beta2"], grad)).add_(grad * grad * _like(1 - hyper["beta2"], grad))
        top = square
        if rule.flags["amsgrad"]:
            top = state["moment.peak"][name]
            torch.maximum(top, square, out=top)
        scale = (top.sqrt() / _like(root, top)).add_(_like(hyper["eps"], top))
        param.add_(mean / scale * _like(step_size, param))


def _rmsprop(rule: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
    hyper = _cast(state)
    rate = (-hyper["lr"] * factor).to(hyper["lr"].dtype)
    for name, raw in gradients.items():
        param, square = state["params"][name], state["moment.square"][name]
        grad = _gradient(rule, state, name, raw, decayed=True)
        fresh = _like(1 - hyper["alpha"], grad)
        square.mul_(_like(hyper["alpha"], grad)).add_(grad * grad * fresh)
        spread = square
        if rule.flags["centered"]:
            mean = state["moment.mean"][name].lerp_(grad, fresh)
            spread = torch.addcmul(square, mean, mean, value=-1)
        move = grad / spread.sqrt().add_(_like(hyper["eps"], grad))
        if rule.uses("momentum"):
            buffer = state["moment.momentum"][name]
            move = torch.addcmul(move, buffer, _like(hyper["momentum"], grad), out=buffer)
        param.addcmul_(move, _like(rate, param))


def _adagrad(rule: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
    hyper = state["hyper"]
    rate = -hyper["lr"] * factor / (1 + state["clocks"]["fit"] * hyper["lr_decay"])
    hyper = _cast(state)
    for name, raw in gradients.items():
        param, square = state["params"][name], state["moment.square"][name]
        grad = _gradient(rule, state, name, raw, decayed=True)
        square.addcmul_(grad, grad)
        move = grad / square.sqrt().add_(_like(hyper["eps"], grad))
        param.addcmul_(move, _like(rate, param))


def _adadelta(rule: Optimizer, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
    hyper = _cast(state)
    rate = (-hyper["lr"] * factor).to(hyper["lr"].dtype)
    for name, raw in gradients.items():
        param, square = state["params"][name], state["moment.square"][name]
        moved = state["moment.moved"][name]
        grad = _gradient(rule, state, name, raw, decayed=True)
        kept, fresh = _like(hyper["rho"], grad), _like(1 - hyper["rho"], grad)
        eps = _like(hyper["eps"], grad)
        square.mul_(kept).add_(grad * grad * fresh)
        move = (moved + eps).sqrt_() / (square + eps).sqrt_() * grad
        moved.mul_(kept).add_(move * move * fresh)
        param.addcmul_(move, _like(rate, param))


_RULES: dict[str, Update] = {
    "sgd": _sgd,
    "adam": _adam,
    "adamw": _adam,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "adadelta": _adadelta,
}
