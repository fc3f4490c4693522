"""The engine: N models trained as one."""

from remnant.population.adapter_population import AdapterPopulation
from remnant.population.adapters import FrozenModel, Lora
from remnant.population.augmentation import Augmentation
from remnant.population.checkpoint import Checkpoint, remove_checkpoint
from remnant.population.early_stop import EarlyStop
from remnant.population.fit import Fit
from remnant.population.learning_rates import LearningRate
from remnant.population.population import Population

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
