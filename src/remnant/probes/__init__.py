"""What is read off models: arrays, never verdicts."""

from remnant.probes.asking import Asked
from remnant.probes.classification import SIGNALS, label_signals
from remnant.probes.decoding import decoding_log_probability
from remnant.probes.sequences import TextCosts, text_costs, token_costs

__all__ = [
    "SIGNALS",
    "Asked",
    "TextCosts",
    "decoding_log_probability",
    "label_signals",
    "text_costs",
    "token_costs",
]
