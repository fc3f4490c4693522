"""Predictors of memorisation, shadow-model attacks, and how good a prediction is."""

from remnant.measures.prediction.quality import PredictionQuality, prediction_quality

__all__ = ["PredictionQuality", "prediction_quality"]
