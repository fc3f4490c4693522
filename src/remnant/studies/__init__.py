"""One file a question: a plan, a population, probes and measures strung together."""

from remnant.studies.forgetting import ForgettingStudy, estimate_forgetting, run_forgetting
from remnant.studies.recipe import read_recipe, study_from
from remnant.studies.settings import Execution

__all__ = [
    "Execution",
    "ForgettingStudy",
    "estimate_forgetting",
    "read_recipe",
    "run_forgetting",
    "study_from",
]
