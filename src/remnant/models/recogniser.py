"""Recognisers of speech as members of a population: utterances and transcripts as plain tensors.

A population's model takes one tensor and its loss takes outputs and one tensor of targets. So an
utterance carries its length as a band of ones, and a transcript carries its own length and that of
the sound in front of its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from remnant.errors import InvalidInput, require
from remnant.models.conformer import SUBSAMPLED

_HEAD = 2  # frames of the output, then tokens


class PackedRecogniser(nn.Module):
    """A recogniser that takes packed utterances, and returns log-probabilities alone.

    Args:
        recogniser: Called with features and lengths, such as ``conformer`` makes.
    """

    def __init__(self, recogniser: nn.Module) -> None:
        super().__init__()
        self.recogniser = recogniser

    def forward(self, packed: Tensor) -> Tensor:
        """Return log-probabilities ``[n, frames', vocabulary]`` of utterances from ``pack``."""
        lengths = packed[..., 0].sum(-1).round().long()
        made: Tensor = self.recogniser(packed[..., 1:], lengths)[0]
        return made


def pack(features: Sequence[Any], transcripts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return utterances and their transcripts as one tensor each, for ``Population.fit``.

    Args:
        features: One ``[frames, bands]`` for each utterance.
        transcripts: Tokens of each, without blanks.

    Returns:
        ``[n, frames, 1 + bands]``, and whole numbers ``[n, 2 + tokens]``.

    Raises:
        InvalidInput: A transcript is empty or does not fit into its sound.
    """
    spoken = [torch.as_tensor(some, dtype=torch.float32) for some in features]
    faults = [] if spoken else ["there is no utterance"]
    if len(spoken) != len(transcripts):
        faults.append(f"there are {len(spoken)} utterances and {len(transcripts)} transcripts")
    for number, (sound, tokens) in enumerate(zip(spoken, transcripts, strict=False)):
        if not len(tokens):
            faults.append(f"transcript {number} is empty")
        elif frames_needed(tokens) > -(-len(sound) // SUBSAMPLED):
            faults.append(
                f"utterance {number} has {len(sound)} frames; its transcript needs "
                f"{SUBSAMPLED * frames_needed(tokens)}"
            )
    require(faults, error=InvalidInput, hint="Leave these utterances out.")
    ones = [torch.cat([sound.new_ones(len(sound), 1), sound], 1) for sound in spoken]
    heads = [
        (-(-len(sound) // SUBSAMPLED), len(t)) for sound, t in zip(spoken, transcripts, strict=True)
    ]
    rows = [torch.tensor([*head, *t]) for head, t in zip(heads, transcripts, strict=True)]
    return (
        nn.utils.rnn.pad_sequence(ones, batch_first=True),
        nn.utils.rnn.pad_sequence(rows, batch_first=True),
    )


def frames_needed(tokens: Sequence[int]) -> int:
    """Return the fewest frames of the output that can hold a transcript.

    Example:
        >>> frames_needed([3, 3, 5])  # a blank parts two equal tokens
        4
    """
    return len(tokens) + sum(a == b for a, b in pairwise(tokens))


def ctc_loss(log_probs: Tensor, targets: Tensor) -> Tensor:
    """Return CTC's cost of each transcript in nats a token, for ``Population.fit(loss=...)``.

    Args:
        log_probs: Of a ``PackedRecogniser``.
        targets: Of ``pack``.
    """
    frames, counts = targets[:, 0], targets[:, 1]
    costs = F.ctc_loss(
        log_probs.transpose(0, 1), targets[:, _HEAD:], frames, counts, reduction="none"
    )
    return costs / counts
