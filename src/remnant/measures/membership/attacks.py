"""Training-free attacks: one score an example, higher = more likely seen.

There is a table for each kind of model. Attacks on a language model are read off the
log-probabilities of a text's tokens in the model under audit (the target) and, where there is one,
in a reference model that never saw the text. Arrays are padded: row ``i`` has ``lengths[i]``
tokens, and what comes after them is ignored. Those on a classifier are read off what the models say
of each example's label.

Measures, results, pages and the command take the attacks from these tables.

What comes out verbatim: the second half of each window of a text, given what comes before it.

A window has ``2 k`` tokens. Windows of a text follow each other from its first token on, without
overlap; a rest that is too short for one is left out. The second half is predicted after its first
half and the text before that, as an attacker who knows the beginning of a record would prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LOWEST = 0.2  # share of tokens that Min-K%++ averages
Evidence = TypeVar("Evidence")


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


@dataclass(frozen=True, slots=True)
class Attack(Generic[Evidence]):
    """One attack.

    Attributes:
        description: What the score is, as pages and results say it.
        score: From what the models say of the examples, to one score an example.
        needs_reference: Whether it compares with a reference model.
    """

    description: str
    score: Callable[[Evidence], Floats]
    needs_reference: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TextEvidence:
    """What attacks on a language model are read off; tokens that are padding are 0.

    Attributes:
        target: Of the model under audit.
        mask: True where the padded rows hold a token.
        total: Log-probability of each text.
        gain: By which a token's log-probability exceeds the reference model's; 0 without one.
        zlib_bytes: Bytes of each text after zlib compression.
    """

    target: TokenRows
    mask: NDArray[np.bool_]
    total: Floats
    gain: Floats
    zlib_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelEvidence:
    """What attacks on a classifier are read off, each of shape ``(examples,)``.

    Attributes:
        losses: Cross-entropy of the label, in nats.
        logit_gaps: The label's logit, less the largest other one.
        log_odds: Log-odds of the label.
        reference_log_odds: The same of the reference model; None without one.
    """

    losses: Floats
    logit_gaps: Floats
    log_odds: Floats
    reference_log_odds: Floats | None


def _lowest_mean(text: TextEvidence) -> Floats:
    """The mean of the lowest fifth of each row, at least one token."""
    standard, lengths = np.where(text.mask, text.target.standard, np.inf), text.target.lengths
    many = np.maximum(1, np.ceil(LOWEST * lengths - 1e-9).astype(np.int64))
    width = int(many.max(initial=1))
    lowest = np.sort(np.partition(standard, width - 1, axis=1)[:, :width], axis=1)
    chosen = np.arange(width) < many[:, None]
    return np.asarray(np.where(chosen, lowest, 0.0).sum(1) / many)


def _gain_share(text: TextEvidence) -> Floats:
    """Gains over gains and losses, among tokens predicted wrongly.

    It has the order of EZ-MIA's gains over losses, and is finite where there are no losses. A text
    without a wrong token has 1, one without gains and losses 0.5.
    """
    gain, wrong = text.gain, text.mask & ~text.target.correct
    gains = np.where(wrong & (gain > 0.0), gain, 0.0).sum(1)
    losses = -np.where(wrong & (gain < 0.0), gain, 0.0).sum(1)
    both = gains + losses
    share = np.divide(gains, both, out=np.full(len(gain), 0.5), where=both > 0.0)
    return np.asarray(np.where(wrong.any(1), share, 1.0))


def _more_log_odds(label: LabelEvidence) -> Floats:
    beside = label.log_odds if label.reference_log_odds is None else label.reference_log_odds
    return label.log_odds - beside


TEXT_ATTACKS: dict[str, Attack[TextEvidence]] = {
    "loss": Attack(
        "mean log-probability of a token",
        lambda text: text.total / text.target.lengths,
    ),
    "ratio": Attack(
        "mean log-probability of a token, less the reference model's",
        lambda text: text.gain.sum(1) / text.target.lengths,
        needs_reference=True,
    ),
    "min-k": Attack(
        "Min-K%++: the 20 % least likely tokens, standardised by the model's own spread",
        _lowest_mean,
    ),
    "ez": Attack(
        "EZ-MIA: gains over the reference among tokens that the model predicts wrongly",
        _gain_share,
        needs_reference=True,
    ),
    "zlib": Attack(
        "log-probability of the text for each byte of its zlib compression",
        lambda text: text.total / text.zlib_bytes,
    ),
    "bits": Attack(
        "bits by which the text is likelier than in the reference model",
        lambda text: np.maximum(text.gain.sum(1), 0.0) / math.log(2.0),
        needs_reference=True,
    ),
}
"""Attacks on a language model."""
CLASSIFIER_ATTACKS: dict[str, Attack[LabelEvidence]] = {
    "loss": Attack("log-probability of the label", lambda label: -label.losses),
    "gap": Attack("logit of the label, less the largest other one", lambda label: label.logit_gaps),
    "ratio": Attack(
        "log-odds of the label, less the reference model's", _more_log_odds, needs_reference=True
    ),
}
"""Attacks on a classifier."""
NAMES = tuple(dict.fromkeys((*TEXT_ATTACKS, *CLASSIFIER_ATTACKS)))


def needs_reference(name: str) -> bool:
    """Whether an attack of this name, on either kind of model, compares with a reference model.

    Example:
        >>> needs_reference("ratio"), needs_reference("loss")
        (True, False)
    """
    tables = (TEXT_ATTACKS, CLASSIFIER_ATTACKS)
    return any(name in table and table[name].needs_reference for table in tables)


def token_mask(rows: TokenRows) -> NDArray[np.bool_]:
    """Which places of padded rows hold a token."""
    return np.asarray(np.arange(rows.log_probs.shape[1]) < rows.lengths[:, None])


def attack_scores(
    target: TokenRows, reference: TokenRows | None, *, zlib_bytes: Sequence[float]
) -> dict[str, Floats]:
    """Score every text by every attack that the given models allow.

    Args:
        target: Of the model under audit; every text has at least one token.
        reference: Of the reference model, for the same tokens; or None.
        zlib_bytes: Bytes of each text after zlib compression.

    Returns:
        One score a text, by attack; attacks that need a reference only where there is one.
    """
    mask = token_mask(target)
    gain = np.zeros(mask.shape)
    if reference is not None:
        gain = np.where(mask, target.log_probs - reference.log_probs, 0.0)
    evidence = TextEvidence(
        target=target,
        mask=mask,
        total=np.where(mask, target.log_probs, 0.0).sum(1),
        gain=gain,
        zlib_bytes=np.asarray(zlib_bytes, dtype=np.float64),
    )
    return _scores(TEXT_ATTACKS, evidence, has_reference=reference is not None)


def classifier_attack_scores(evidence: LabelEvidence) -> dict[str, Floats]:
    """Score every example by every attack that the given models allow."""
    has_reference = evidence.reference_log_odds is not None
    return _scores(CLASSIFIER_ATTACKS, evidence, has_reference=has_reference)


def _scores(
    table: dict[str, Attack[Evidence]], evidence: Evidence, *, has_reference: bool
) -> dict[str, Floats]:
    return {
        name: attack.score(evidence)
        for name, attack in table.items()
        if has_reference or not attack.needs_reference
    }


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
