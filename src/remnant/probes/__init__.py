"""What is read off models: arrays, never verdicts."""

from remnant.probes.classification import SIGNALS, label_signals

__all__ = ["SIGNALS", "label_signals"]
