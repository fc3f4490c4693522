"""What a translation study found: the exposure of secrets in the translation.

It is the result of an exposure study whose ``exposure.given`` says what the translator was given.
"""

from __future__ import annotations

from remnant.studies.exposure.result import ExposureResult

TranslationResult = ExposureResult
