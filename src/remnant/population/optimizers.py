"""The names, options and settings of optimizers, checked before anything is trained.

What an update does is in ``update_rules``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remnant.errors import InvalidInput, require
from remnant.population.per_member import per_member

_PRIVATE = "dp-"


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

    @property
    def rule(self) -> str:
        """The name of its update rule: a private optimizer has that of its namesake."""
        return self.name.removeprefix(_PRIVATE)

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


def check_clip(optimizer: str, clip: Any) -> None:
    """Refuse a private optimizer without a clip norm."""
    if clip is None:
        raise InvalidInput(
            f"{optimizer} needs clip, the largest gradient norm of one example.",
            hint="Pass clip=1.0, or one value per member.",
        )


def _spread(key: str, value: Any, members: int, faults: list[str]) -> list[float]:
    most = 1.0 if key in ("beta1", "beta2", "rho") else float("inf")
    return per_member(key, value, members, faults, most=most, open_above=True)


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
