"""What is read off models: arrays, never verdicts."""

from remnant.probes.classification import MARGINS, SIGNALS, label_signals, margin_signals
from remnant.probes.counted_model import Asked
from remnant.probes.decoding import decoding_log_probability
from remnant.probes.hidden import hidden_states
from remnant.probes.influence import InfluenceCheckpoints, highest_and_lowest, self_influence
from remnant.probes.one_pass import OnePass, one_pass
from remnant.probes.sequences import PathTree, TextCosts, lay_out, text_costs, token_costs
from remnant.probes.transcripts import transcript_costs
from remnant.probes.windows import WINDOW_SIGNALS, window_signals

__all__ = [
    "MARGINS",
    "SIGNALS",
    "WINDOW_SIGNALS",
    "Asked",
    "InfluenceCheckpoints",
    "OnePass",
    "PathTree",
    "TextCosts",
    "decoding_log_probability",
    "hidden_states",
    "highest_and_lowest",
    "label_signals",
    "lay_out",
    "margin_signals",
    "one_pass",
    "self_influence",
    "text_costs",
    "token_costs",
    "transcript_costs",
    "window_signals",
]
