"""The parts of a study beside its plan: data, canaries, model, training and attack, as frozen data.

Everything here changes numbers, so all of it is in the study's fingerprint. How a study is carried
out (``Execution``) may not change them and is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remnant.canaries import KINDS
from remnant.data import DATA_SETS
from remnant.errors import PlanError, RemnantError, require
from remnant.measures import SUCCESSES
from remnant.measures.success import chance_level
from remnant.models import CATALOGUE
from remnant.population import LearningRate
from remnant.population.optimizers import make_optimizer

_MOST = 1e9  # of a model's option, far beyond what fits in memory
CALIBRATIONS = ("logit", "loss", "twins", "none")


def among(name: str, value: Any, allowed: Any) -> list[str]:
    """Return a fault unless ``value`` is one of ``allowed``."""
    known = any(value == one for one in allowed)  # a list cannot be looked up in a dict
    return [] if known else [f"{name}={value!r} is not one of {', '.join(allowed)}"]


def whole_number(name: str, value: Any, least: int) -> list[str]:
    """Return a fault unless ``value`` is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        return [f"{name}={value!r} is not a whole number of at least {least}"]
    return []


def number(value: Any) -> bool:
    """Whether ``value`` is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def option_faults(options: Any, build: Any) -> list[str]:
    """Return a fault for each of a model's options that is not of the kind of its default.

    Args:
        options: As a recipe gives them.
        build: The function that makes the model; its keyword-only arguments are the options.
    """
    if not isinstance(options, dict):
        return [f"model.options={options!r} is not a table"]
    defaults = getattr(build, "__kwdefaults__", None) or {}
    faults = []
    for name, value in options.items():
        default = defaults.get(name)
        if isinstance(default, bool):
            wrong, kind = not isinstance(value, bool), "true or false"
        elif isinstance(default, int):
            wrong, kind = bool(whole_number("", value, 0)), "a whole number from 0"
        elif isinstance(default, float):
            wrong, kind = (
                not (number(value) and abs(value) <= _MOST),
                f"a number of at most {_MOST:g}",
            )
        else:
            continue
        faults += [f"model.options.{name}={value!r} is not {kind}"] if wrong else []
    return faults


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which data: a set's name, how many clean examples, and the seed of the cut."""

    name: str = "digits"
    examples: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        faults = among("data.name", self.name, DATA_SETS) + whole_number("data.seed", self.seed, 0)
        if self.examples is not None:
            faults += whole_number("data.examples", self.examples, 1)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class CanarySettings:
    """What is planted: the kind, and for hard, medium and easy points how the judge was trained."""

    kind: str = "mislabelled"
    judges: int = 4
    judge_steps: int = 400

    def __post_init__(self) -> None:
        faults = among("canaries.kind", self.kind, KINDS)
        faults += whole_number("canaries.judges", self.judges, 1)
        faults += whole_number("canaries.judge_steps", self.judge_steps, 1)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Which model, with its options."""

    name: str = "mlp1"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = among("model.name", self.name, CATALOGUE)
        faults += faults or option_faults(self.options, CATALOGUE[self.name])
        require(faults, error=PlanError, hint="Correct the recipe.")


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How the models are trained: optimizer, its options, learning-rate schedule, clipping."""

    optimizer: str = "sgd"
    options: dict[str, Any] = field(default_factory=lambda: {"lr": 0.1})
    learning_rate: dict[str, Any] = field(default_factory=dict)
    clip: float | None = None

    def __post_init__(self) -> None:
        faults = [
            f"training.{name}={value!r} is not a table"
            for name, value in (("options", self.options), ("learning_rate", self.learning_rate))
            if not isinstance(value, dict)
        ]
        if self.clip is not None and not (number(self.clip) and 0 < self.clip < math.inf):
            faults.append(f"training.clip={self.clip!r} is not a number above 0")
        if not isinstance(self.optimizer, str):
            faults.append(f"training.optimizer={self.optimizer!r} is not the name of an optimizer")
        require(faults, error=PlanError, hint="Correct the recipe.")
        self.rate()

    def check_options(self) -> None:
        """Refuse an optimizer or options of it that training would refuse.

        Raises:
            PlanError: The optimizer or an option is unknown, or a value is outside its range.
        """
        try:
            make_optimizer(self.optimizer, members=1, options=self.options)
        except RemnantError as fault:
            raise PlanError(f"training.options: {fault.message}", hint=fault.hint) from fault

    def rate(self) -> LearningRate:
        """Return the learning-rate schedule."""
        try:
            return LearningRate(**self.learning_rate)
        except TypeError as fault:
            known = ", ".join(LearningRate.__dataclass_fields__)
            raise PlanError(
                f"training.learning_rate={self.learning_rate} has an unknown field.",
                hint=f"It may have: {known}.",
            ) from fault


def rate_faults(attack: Any) -> list[str]:
    """Return what is wrong with the rate, the limit and the confidence of an attack."""
    faults = among("attack.success", attack.success, SUCCESSES)
    for name in ("fpr", "confidence", "limit"):
        value = getattr(attack, name)
        if not number(value) or not 0 < value < 1:
            faults.append(f"attack.{name}={value!r} is not between 0 and 1")
    if not faults and attack.limit <= (chance := chance_level(attack.success, attack.fpr)):
        faults.append(f"attack.limit={attack.limit} is not above chance ({chance})")
    return faults


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    """How success is measured, and the limit that the verdict is about.

    Attributes:
        success: The primary measure, named before the run.
        fpr, confidence: Of the fixed false-positive rate and of the intervals.
        calibration: ``logit`` or ``loss``, by the checkpoint before planting; ``twins``, log-odds
            by the other trials' unplanted twins at the same lag; ``none``.
        limit: The verdict asks whether success at the last lag is under it.
        lags: At which lags to measure; a grid up to the last step, if not given.
    """

    success: str = "precision"
    fpr: float = 0.1
    confidence: float = 0.95
    calibration: str = "logit"
    limit: float = 0.7
    lags: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.lags, list):
            object.__setattr__(self, "lags", tuple(self.lags))
        faults = rate_faults(self)
        faults += among("attack.calibration", self.calibration, CALIBRATIONS)
        if not isinstance(self.lags, tuple) or any(whole_number("", lag, 0) for lag in self.lags):
            faults.append(f"attack.lags={self.lags!r} are not whole numbers from 0")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class OneRunSettings:
    """How success is measured along one run, and the limit that the verdict is about.

    Attributes:
        success: The measure, named before the run.
        fpr, confidence: Of the fixed false-positive rate and of the intervals.
        calibrate: Subtract each canary's score before its window.
        limit: The verdict asks whether the canaries planted first are under it at the end.
        checkpoints: How many evenly spaced ones, beside those before and after each window.
    """

    success: str = "tpr"
    fpr: float = 0.1
    confidence: float = 0.95
    calibrate: bool = True
    limit: float = 0.3
    checkpoints: int = 20

    def __post_init__(self) -> None:
        faults = rate_faults(self)
        if not isinstance(self.calibrate, bool):
            faults.append(f"attack.calibrate={self.calibrate!r} is not true or false")
        faults += whole_number("attack.checkpoints", self.checkpoints, 2)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a study is carried out; none of it may change the numbers.

    Attributes:
        device: Where models compute.
        data_folder: Holds the data sets.
        checkpoint_seconds: Least time between two checkpoints.
        compiled: Whether convolutional models are compiled on a GPU.
        pool_folder: Of the shadow pool; by default ``pool`` in the run's own folder.
        pool_block: Models of a shadow pool that are trained and stored together.
    """

    device: str = "cpu"
    data_folder: Path | None = None
    checkpoint_seconds: float = 30.0
    compiled: bool = False
    pool_folder: Path | None = None
    pool_block: int = 32
