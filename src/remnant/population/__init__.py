"""The engine: N models trained as one."""

from remnant.population.checkpoint import Checkpoint
from remnant.population.early_stop import EarlyStop
from remnant.population.fit import Fit
from remnant.population.learning_rates import LearningRate
from remnant.population.population import Population

__all__ = ["Checkpoint", "EarlyStop", "Fit", "LearningRate", "Population"]
