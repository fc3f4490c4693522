"""Optimizers in which every member has its own settings, moments and step count.

Each is tested equal to its namesake in ``torch.optim``. They work in place on stacked tensors:
``params[name]`` has shape ``(members, ...)`` and a setting has shape ``(members,)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.population import fused
from remnant.population.per_member import per_member
from remnant.population.state import State

_PRIVATE = "dp-"
Update = Callable[["Optimizer", State, dict[str, Tensor], Tensor], None]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer's name, switches and the settings that each member has for itself.

    Attributes:
        name: ``sgd``, ``adam``, ``adamw``, ``rmsprop``, ``adagrad`` or ``adadelta``, or a private
            one: ``dp-sgd``, ``dp-rmsprop`` or ``dp-adam``.
        flags: Switches that hold for all members (``nesterov``, ``amsgrad``, ...).
        settings: Numbers, one per member.
        moments: Names of the tensors it keeps beside each parameter.
    """

    name: str
    flags: dict[str, bool]
    settings: dict[str, list[float]]
    moments: tuple[str, ...]
    _used: frozenset[str] = field(default_factory=frozenset)

    def attach(self, state: State) -> None:
        """Give the state fresh moments, settings and a clock at zero."""
        params = state["params"]
        for group in [g for g in state.groups if g.startswith("moment.")]:
            del state.groups[group]
        for moment in self.moments:
            state.groups[f"moment.{moment}"] = {n: torch.zeros_like(p) for n, p in params.items()}
        clock = state["clocks"]["lifetime"]
        state["clocks"]["fit"] = torch.zeros_like(clock)
        state.groups["hyper"] = {
            name: torch.tensor(values, dtype=torch.float64, device=clock.device)
            for name, values in self.settings.items()
        }
        if self.uses("initial_accumulator_value"):
            for square in state["moment.square"].values():
                square.add_(_like(state["hyper"]["initial_accumulator_value"], square))

    def update(self, state: State, gradients: dict[str, Tensor], factor: Tensor) -> None:
        """Take one step; ``factor`` multiplies each member's learning rate."""
        _RULES[self.name.removeprefix(_PRIVATE)](self, state, gradients, factor)

    @property
    def is_private(self) -> bool:
        """Whether gradients are clipped for each example and get noise before the update."""
        return self.name.startswith(_PRIVATE)

    def plain(self) -> list[Any]:
        """Name, switches and settings as plain data, for a checkpoint's digest."""
        return [self.name, self.flags, self.settings]

    def uses(self, name: str) -> bool:
        """Whether the setting differs from zero for any member."""
        return name in self._used


_ADAM = {
    "lr": 1e-3,
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "sgd": {
        "lr": 1e-3,
        "momentum": 0.0,
        "dampening": 0.0,
        "weight_decay": 0.0,
        "nesterov": False,
        "maximize": False,
    },
    "adam": {**_ADAM, "decoupled_weight_decay": False},
    "adamw": {**_ADAM, "weight_decay": 1e-2},
    "rmsprop": {
        "lr": 1e-2,
        "alpha": 0.99,
        "eps": 1e-8,
        "weight_decay": 0.0,
        "momentum": 0.0,
        "centered": False,
        "maximize": False,
    },
    "adagrad": {
        "lr": 1e-2,
        "lr_decay": 0.0,
        "eps": 1e-10,
        "weight_decay": 0.0,
        "initial_accumulator_value": 0.0,
        "maximize": False,
    },
    "adadelta": {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0, "maximize": False},
}


# A private optimizer has the options of its namesake, and must be given its noise.
PRIVATE = ("dp-sgd", "dp-rmsprop", "dp-adam")
_DEFAULTS |= {name: {**_DEFAULTS[name.removeprefix(_PRIVATE)], "noise": None} for name in PRIVATE}

# torch.optim's switches of how a step is carried out: ours has one way, with the same result.
_HOW = ("foreach", "fused", "capturable", "differentiable")


def make_optimizer(name: str, *, members: int, options: Mapping[str, Any]) -> Optimizer:
    """Check the options against ``torch.optim``'s and spread numbers over the members.

    Raises:
        InvalidInput: An unknown optimizer or option, or a value outside its range.
    """
    if not isinstance(name, str) or name not in _DEFAULTS:
        raise InvalidInput(
            f"optimizer={name!r} is not one of {', '.join(_DEFAULTS)}.",
            hint="Choose one of these.",
        )
    allowed = _DEFAULTS[name]
    options = {key: value for key, value in options.items() if key not in _HOW}
    faults = [f"{name} has no option {key!r}" for key in options if key not in allowed]
    if "noise" in options and "noise" not in allowed:
        faults = [fault for fault in faults if not fault.endswith("'noise'")]
        faults.append(f"noise is an option of {', '.join(PRIVATE)}, not of {name}")
    if "noise" in allowed and options.get("noise") is None:
        faults.append(f"{name} needs noise, the noise multiplier (0 for none)")
        options["noise"] = 0.0
    merged = {**allowed, **{k: v for k, v in options.items() if k in allowed}}
    flags = {key: bool(value) for key, value in merged.items() if isinstance(allowed[key], bool)}
    numbers = {key: value for key, value in merged.items() if key not in flags}
    if "betas" in numbers:
        betas = numbers.pop("betas")
        if not isinstance(betas, Sequence) or len(betas) != 2:
            faults.append(f"betas={betas!r} is not a pair")
            betas = (0.9, 0.999)
        numbers["beta1"], numbers["beta2"] = betas
    settings = {key: _spread(key, value, members, faults) for key, value in numbers.items()}
    if flags.get("nesterov") and (min(settings["momentum"]) <= 0 or any(settings["dampening"])):
        faults.append("nesterov needs a momentum above 0 and a dampening of 0")
    require(faults, hint=f"Options of {name}: {', '.join(allowed)}.")
    used = frozenset(key for key, values in settings.items() if any(values))
    moments = _moments(name.removeprefix(_PRIVATE), flags, used)
    return Optimizer(name, flags, settings, moments, used)


def _spread(key: str, value: Any, members: int, faults: list[str]) -> list[float]:
    most = 1.0 if key in ("beta1", "beta2", "rho") else float("inf")
    return [float(v) for v in per_member(key, value, members, faults, most=most, open_above=True)]


def _moments(name: str, flags: dict[str, bool], used: frozenset[str]) -> tuple[str, ...]:
    if name == "sgd":
        return ("momentum",) if "momentum" in used else ()
    if name == "rmsprop":
        names = ["square"]
        names += ["mean"] if flags["centered"] else []
        return (*names, *(["momentum"] if "momentum" in used else []))
    if name in ("adagrad", "adadelta"):
        return ("square",) if name == "adagrad" else ("square", "moved")
    return ("mean", "square", "peak") if flags["amsgrad"] else ("mean", "square")


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
