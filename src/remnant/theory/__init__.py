"""Why models forget: closed forms, and simulations that agree with them."""

from remnant.theory.kmeans import KMeansOutlier, kmeans_outlier
from remnant.theory.mean_estimation import (
    SimulatedDivergence,
    renyi_bound,
    renyi_divergence,
    renyi_divergence_of_seen,
    simulate_mean_estimation,
)
from remnant.theory.replay import Replay, deterministic_replay

__all__ = [
    "KMeansOutlier",
    "Replay",
    "SimulatedDivergence",
    "deterministic_replay",
    "kmeans_outlier",
    "renyi_bound",
    "renyi_divergence",
    "renyi_divergence_of_seen",
    "simulate_mean_estimation",
]
