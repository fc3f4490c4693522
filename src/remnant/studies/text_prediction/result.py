"""The result of a text prediction study: that of a prediction study, about questions."""

from __future__ import annotations

from remnant.studies.prediction.result import PredictionResult as TextPredictionResult

__all__ = ["TextPredictionResult"]
