"""The prefix tree: exact rank with pruning, extraction with a certificate."""

from remnant.search.automaton import compile_template
from remnant.search.close_calls import Arithmetic
from remnant.search.extraction import Extraction, extract
from remnant.search.rank import ExactExposure, ExactExposures, exact_exposure
from remnant.search.tokens import MergedTokens

__all__ = [
    "Arithmetic",
    "ExactExposure",
    "ExactExposures",
    "Extraction",
    "MergedTokens",
    "compile_template",
    "exact_exposure",
    "extract",
]
