"""Remnant measures what a model still remembers of its training data, and how fast it forgets.

Names are imported on first use, so that ``import remnant`` and ``remnant --help`` answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.measures.forgetting import ForgettingCurve, forgetting_curve
    from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan
    from remnant.population import Population

__version__ = "0.1.0"

_HOME = {
    "ForgettingCurve": "remnant.measures.forgetting",
    "InjectPlan": "remnant.plans",
    "PoisonPlan": "remnant.plans",
    "Population": "remnant.population",
    "ShadowPlan": "remnant.plans",
    "forgetting_curve": "remnant.measures.forgetting",
}

__all__ = [
    "ForgettingCurve",
    "InjectPlan",
    "PoisonPlan",
    "Population",
    "ShadowPlan",
    "__version__",
    "forgetting_curve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'remnant' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
