"""Training-free attacks on a language model: one score a text, higher = more likely seen.

All are read off the log-probabilities of a text's tokens in the model under audit (the target) and,
where there is one, in a reference model that never saw the text. Arrays are padded: row ``i`` has
``lengths[i]`` tokens, and what comes after them is ignored.

What comes out verbatim: the second half of each window of a text, given what comes before it.

A window has ``2 k`` tokens. Windows of a text follow each other from its first token on, without
overlap; a rest that is too short for one is left out. The second half is predicted after its first
half and the text before that, as an attacker who knows the beginning of a record would prompt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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


HALVES = (32, 50)  # tokens given, and as many that have to come out


@dataclass(frozen=True, slots=True, eq=False)
class WindowRows:
    """The windows of several texts, padded.

    Attributes:
        log_probability: Natural logarithm of the probability that sampling gives the second half
            back, token by token; ``(texts, windows)``.
        greedy: Whether greedy decoding gives it back.
        counts: Windows of each text.
    """

    log_probability: Floats
    greedy: NDArray[np.bool_]
    counts: NDArray[np.int64]


def window_rows(rows: TokenRows, half: int, *, unpredicted: int = 0) -> WindowRows:
    """Read the windows off the tokens of texts.

    Args:
        rows: What a model says about the tokens.
        half: Tokens of half a window.
        unpredicted: Tokens at the beginning of each text that are not in ``rows``, because nothing
            comes before them.

    Guarantees:
        * Greedy decoding after a window's first half gives the second half back if and only if
          ``greedy`` is true: the likeliest token is the text's own at every place.
    """
    lengths = rows.lengths + unpredicted
    counts = lengths // (2 * half)
    width = int(counts.max(initial=0))
    starts = np.arange(width) * 2 * half + half - unpredicted
    ends = starts + half
    mask = token_mask(rows)
    costs = _running(np.where(mask, rows.log_probs, 0.0))
    rights = _running((rows.correct & mask).astype(np.float64))
    here = np.arange(width) < counts[:, None]
    last = rows.log_probs.shape[1]
    starts, ends = np.minimum(starts, last), np.minimum(ends, last)
    return WindowRows(
        log_probability=np.where(here, costs[:, ends] - costs[:, starts], -np.inf),
        greedy=here & (rights[:, ends] - rights[:, starts] == half),
        counts=counts,
    )


def _running(values: Floats) -> Floats:
    """Sums of the first 0, 1, 2, … values of each row."""
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
