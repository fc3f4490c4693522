"""Exposure of canaries by rank, along a curve, extrapolated and pooled."""

from remnant.measures.exposure.by_rank import Exposure, exposure
from remnant.measures.exposure.curve import ExposureCurve, exposure_curve

__all__ = ["Exposure", "ExposureCurve", "exposure", "exposure_curve"]
