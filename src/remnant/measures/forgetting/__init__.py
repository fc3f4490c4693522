"""Forgetting curves, what is decided from them, and their verdicts."""

from remnant.measures.forgetting.curve import ForgettingCurve, forgetting_curve

__all__ = ["ForgettingCurve", "forgetting_curve"]
