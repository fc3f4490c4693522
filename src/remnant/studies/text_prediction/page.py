"""The page of a text prediction run: that of a prediction run under another title."""

from __future__ import annotations

from remnant.studies.prediction.page import page

__all__ = ["TITLE", "page"]

TITLE = "Prediction of memorisation of text"
