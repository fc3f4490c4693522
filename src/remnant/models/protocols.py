"""What a probe may ask of models: nothing but their outputs."""

from __future__ import annotations

from typing import Any, Protocol


class LogitModels(Protocol):
    """One or many classifiers that answer together."""

    def logits(self, inputs: Any) -> Any:
        """Return the logits of every member, ``(members, n, classes)``."""
        ...
