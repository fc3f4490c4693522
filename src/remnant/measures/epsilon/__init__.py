"""Epsilon of differential privacy: lower bounds from attacks, and the papers' heuristic."""

from remnant.measures.epsilon.attack_rates import EpsilonLowerBound, epsilon_lower_bound
from remnant.measures.epsilon.canaries_needed import CanariesNeeded, canaries_needed
from remnant.measures.epsilon.from_scores import ScoresEpsilon, epsilon_from_scores
from remnant.measures.epsilon.gaussian import gaussian_delta, gaussian_epsilon
from remnant.measures.epsilon.heuristic import HeuristicEpsilon, heuristic_epsilon
from remnant.measures.epsilon.one_run import (
    OneRunEpsilon,
    one_run_epsilon,
    one_run_from_scores,
)

__all__ = [
    "CanariesNeeded",
    "EpsilonLowerBound",
    "HeuristicEpsilon",
    "OneRunEpsilon",
    "ScoresEpsilon",
    "canaries_needed",
    "epsilon_from_scores",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "heuristic_epsilon",
    "one_run_epsilon",
    "one_run_from_scores",
]
