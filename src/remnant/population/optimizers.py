"""The names, options, rates and settings of optimizers, checked before anything is trained.

What an update does is in ``update_rules``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.errors import InvalidInput, PlanError, require

if TYPE_CHECKING:
    from torch import Tensor


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
) -> list[float]:
    """Spread a number over the members, or check that there is one for each.

    Args:
        name: The argument, for faults.
        value: A number, or a sequence, array or tensor of them.
        members: How many.
        faults: Takes what is wrong.
        least, most: Bounds.
        open_below, open_above: Whether a bound itself is outside.

    Returns:
        One per member; zeros where a fault was noted.
    """
    nothing = [0.0] * members
    try:
        numbers = np.array(_plain(value), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        faults.append(f"{name}={value!r} is not a number or one per member")
        return nothing
    if numbers.ndim == 0:
        numbers = np.full(members, numbers)
    if numbers.shape != (members,):
        faults.append(f"{name} has shape {numbers.shape}, not one value per member ({members})")
        return nothing
    above = (numbers > least) if open_below else (numbers >= least)
    below = (numbers < most) if open_above else (numbers <= most)
    if not bool((np.isfinite(numbers) & above & below).all()):
        low = f"above {least:g}" if open_below else f"at least {least:g}"
        high = (
            "" if most == float("inf") else f" and {'below' if open_above else 'at most'} {most:g}"
        )
        faults.append(f"{name}={value!r} is not finite and {low}{high}")
    return [float(number) for number in numbers]


def _plain(value: Any) -> Any:
    """Return a number, or nested lists of them; NumPy alone would also read text and None.

    Raises:
        TypeError: Something else is in it.
    """
    if hasattr(value, "tolist"):  # of NumPy or PyTorch
        value = value.tolist()
    if isinstance(value, Real):
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(type(value).__name__)
    return [_plain(number) for number in value]


def whole_numbers(name: str, values: Any) -> list[int]:
    """Return whole numbers as plain ``int``; anything else is a fault."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name}={values!r} is not a sequence of whole numbers.")
    numbers = [v.item() if hasattr(v, "item") else v for v in values]  # of NumPy or PyTorch
    wrong = [v for v in numbers if isinstance(v, bool) or not isinstance(v, int)]
    if wrong:
        raise InvalidInput(f"{name} holds {wrong[0]!r}, which is not a whole number.")
    return numbers


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


_RATE_KINDS = ("constant", "step", "cosine")


@dataclass(frozen=True, kw_only=True)
class LearningRate:
    """A factor on the learning rate, as a function of the member's own clock.

    The clock counts the updates that the member took: a skipped update does not move it.

    Attributes:
        kind: ``constant``; ``step``: times ``gamma`` at each milestone; ``cosine``: from 1 down to
            ``floor`` over ``total`` updates.
        warmup: Updates over which the factor first rises linearly, from ``1 / warmup``.
        milestones: Clock readings from which another factor ``gamma`` holds.
        total: Length of the cosine, warm-up included; afterwards the factor stays at ``floor``.

    Example:
        >>> LearningRate(kind="step", milestones=(2,), gamma=0.1).table(4).tolist()
        [1.0, 1.0, 0.1, 0.1]
    """

    kind: str = "constant"
    warmup: int = 0
    milestones: tuple[int, ...] = ()
    gamma: float = 0.1
    total: int | None = None
    floor: float = 0.0

    def __post_init__(self) -> None:
        whole = [self.warmup, *([] if self.total is None else [self.total])]
        whole += self.milestones if isinstance(self.milestones, list | tuple) else ["?"]
        if any(isinstance(v, bool) or not isinstance(v, int) for v in whole):
            raise PlanError(
                f"warmup={self.warmup!r}, milestones={self.milestones!r}, total={self.total!r}: "
                "not whole numbers.",
                hint="Fix the learning-rate schedule.",
            )
        object.__setattr__(self, "milestones", tuple(self.milestones))
        faults = []
        if self.kind not in _RATE_KINDS:
            faults.append(f"kind={self.kind!r} is not one of {', '.join(_RATE_KINDS)}")
        if self.warmup < 0:
            faults.append(f"warmup={self.warmup} is negative")
        if self.kind == "step" and not self.milestones:
            faults.append("a step schedule needs milestones")
        if self.kind == "cosine" and (self.total is None or self.total <= self.warmup):
            faults.append(f"a cosine needs total above warmup={self.warmup}, not {self.total}")
        if not 0 < self.gamma <= 1 or not 0 <= self.floor <= 1:
            faults.append(f"gamma={self.gamma} or floor={self.floor} is outside 0 to 1")
        require(faults, error=PlanError, hint="Fix the learning-rate schedule.")

    def factor(self, clock: int) -> float:
        """Return the factor for the update after ``clock`` updates."""
        if clock < self.warmup:
            return (clock + 1) / self.warmup
        if self.kind == "step":
            return self.gamma ** sum(1 for m in self.milestones if m <= clock)
        if self.kind == "cosine" and self.total is not None:
            done = min((clock - self.warmup) / (self.total - self.warmup), 1.0)
            return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2
        return 1.0

    def table(self, updates: int) -> Tensor:
        """Return the factors for clocks 0 to ``updates - 1``."""
        import torch  # which a recipe is checked without

        return torch.tensor([self.factor(c) for c in range(updates)], dtype=torch.float64)
