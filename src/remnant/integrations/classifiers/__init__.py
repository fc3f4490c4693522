"""Third-party classifiers, and the samples they are tested on."""

from remnant.integrations.classifiers.opening import load_classifier
from remnant.integrations.classifiers.samples import ArraySamples, array_samples
from remnant.integrations.classifiers.text import (
    TextRows,
    TextSamples,
    load_text_model,
    read_text_rows,
    text_samples,
)

__all__ = [
    "ArraySamples",
    "TextRows",
    "TextSamples",
    "array_samples",
    "load_classifier",
    "load_text_model",
    "read_text_rows",
    "text_samples",
]
