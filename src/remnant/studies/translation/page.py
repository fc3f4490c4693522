"""The page of a translation study: that of an exposure study under another heading."""

from __future__ import annotations

from remnant.studies.exposure.page import page

__all__ = ["TITLE", "page"]

TITLE = "Exposure in translation"
