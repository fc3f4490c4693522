"""The engine: N models trained as one.

Names are imported on first use: a recipe is read without PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.population.adapter_population import AdapterPopulation
    from remnant.population.adapters import FrozenModel
    from remnant.population.augmentation import Augmentation
    from remnant.population.checkpoint import Checkpoint, remove_checkpoint
    from remnant.population.early_stop import EarlyStop
    from remnant.population.lora import Lora
    from remnant.population.optimizers import LearningRate
    from remnant.population.population import Population
    from remnant.population.training import Fit

_HOME = {
    "AdapterPopulation": "remnant.population.adapter_population",
    "Augmentation": "remnant.population.augmentation",
    "Checkpoint": "remnant.population.checkpoint",
    "EarlyStop": "remnant.population.early_stop",
    "Fit": "remnant.population.training",
    "FrozenModel": "remnant.population.adapters",
    "LearningRate": "remnant.population.optimizers",
    "Lora": "remnant.population.lora",
    "Population": "remnant.population.population",
    "remove_checkpoint": "remnant.population.checkpoint",
}

__all__ = [
    "AdapterPopulation",
    "Augmentation",
    "Checkpoint",
    "EarlyStop",
    "Fit",
    "FrozenModel",
    "LearningRate",
    "Lora",
    "Population",
    "remove_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
