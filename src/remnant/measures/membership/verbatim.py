"""What comes out verbatim: the second half of each window of a text, given what comes before it.

A window has ``2 k`` tokens. Windows of a text follow each other from its first token on, without
overlap; a rest that is too short for one is left out. The second half is predicted after its first
half and the text before that, as an attacker who knows the beginning of a record would prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.measures.membership.attacks import TokenRows, token_mask

Floats = NDArray[np.float64]
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
