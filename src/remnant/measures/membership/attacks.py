"""Training-free attacks on a language model: one score a text, higher = more likely seen.

All are read off the log-probabilities of a text's tokens in the model under audit (the target) and,
where there is one, in a reference model that never saw the text. Arrays are padded: row ``i`` has
``lengths[i]`` tokens, and what comes after them is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Attack = Literal["loss", "ratio", "min-k", "ez", "zlib", "bits"]
ATTACKS: tuple[Attack, ...] = ("loss", "ratio", "min-k", "ez", "zlib", "bits")
WITH_REFERENCE: tuple[Attack, ...] = ("ratio", "ez", "bits")
LOWEST = 0.2  # share of tokens that Min-K%++ averages
DESCRIPTIONS: dict[Attack, str] = {
    "loss": "mean log-probability of a token",
    "ratio": "mean log-probability of a token, less the reference model's",
    "min-k": "Min-K%++: the 20 % least likely tokens, standardised by the model's own spread",
    "ez": "EZ-MIA: gains over the reference among tokens that the model predicts wrongly",
    "zlib": "log-probability of the text for each byte of its zlib compression",
    "bits": "bits by which the text is likelier than in the reference model",
}


class TokenRows(Protocol):
    """What one model says about the tokens of several texts; ``probes.TokenScores`` is one."""

    @property
    def log_probs(self) -> Floats:
        """Natural log-probability of each token, ``(texts, tokens)``."""
        ...

    @property
    def standard(self) -> Floats:
        """The same, standardised by the model's own distribution over the vocabulary."""
        ...

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the token is the model's likeliest."""
        ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens that were predicted, of each text."""
        ...


def token_mask(rows: TokenRows) -> NDArray[np.bool_]:
    """Which places of padded rows hold a token."""
    return np.asarray(np.arange(rows.log_probs.shape[1]) < rows.lengths[:, None])


def attack_scores(
    target: TokenRows, reference: TokenRows | None, *, zlib_bytes: Sequence[float]
) -> dict[Attack, Floats]:
    """Score every text by every attack that the given models allow.

    Args:
        target: Of the model under audit; every text has at least one token.
        reference: Of the reference model, for the same tokens; or None.
        zlib_bytes: Bytes of each text after zlib compression.

    Returns:
        One score a text, by attack; attacks that need a reference only where there is one.
    """
    mask = token_mask(target)
    own = np.where(mask, target.log_probs, 0.0)
    total = own.sum(1)
    scores: dict[Attack, Floats] = {
        "loss": total / target.lengths,
        "min-k": _lowest_mean(np.where(mask, target.standard, np.inf), target.lengths),
        "zlib": total / np.asarray(zlib_bytes, dtype=np.float64),
    }
    if reference is not None:
        gain = np.where(mask, target.log_probs - reference.log_probs, 0.0)
        scores["ratio"] = gain.sum(1) / target.lengths
        scores["bits"] = np.maximum(gain.sum(1), 0.0) / math.log(2.0)
        scores["ez"] = _gain_share(gain, mask & ~target.correct)
    return {name: scores[name] for name in ATTACKS if name in scores}


def _lowest_mean(standard: Floats, lengths: NDArray[np.int64]) -> Floats:
    """The mean of the lowest fifth of each row, at least one token."""
    many = np.maximum(1, np.ceil(LOWEST * lengths - 1e-9).astype(np.int64))
    width = int(many.max(initial=1))
    lowest = np.sort(np.partition(standard, width - 1, axis=1)[:, :width], axis=1)
    chosen = np.arange(width) < many[:, None]
    return np.asarray(np.where(chosen, lowest, 0.0).sum(1) / many)


def _gain_share(gain: Floats, wrong: NDArray[np.bool_]) -> Floats:
    """Gains over gains and losses, among tokens predicted wrongly.

    It has the order of EZ-MIA's gains over losses, and is finite where there are no losses. A text
    without a wrong token has 1, one without gains and losses 0.5.
    """
    gains = np.where(wrong & (gain > 0.0), gain, 0.0).sum(1)
    losses = -np.where(wrong & (gain < 0.0), gain, 0.0).sum(1)
    both = gains + losses
    share = np.divide(gains, both, out=np.full(len(gain), 0.5), where=both > 0.0)
    return np.asarray(np.where(wrong.any(1), share, 1.0))
