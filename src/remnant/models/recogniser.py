"""Recognisers of speech as members of a population: utterances and transcripts as plain tensors.

A population's model takes one tensor and its loss takes outputs and one tensor of targets. So an
utterance carries its length as a band of ones, and a transcript carries its own length and that of
the sound in front of its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.models.conformer_ctc import SUBSAMPLED
from remnant.models.ctc_recursion import costs_and_gradient

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


def backend_for(device: str | torch.device) -> str | None:
    """Return the backend of ``Population.fit`` for recognisers; None where the rule may choose.

    Their kernels are small and many: on a GPU all members in one pass need as few of them as one.
    """
    return "stacked" if torch.device(device).type == "cuda" else None


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

    All members' utterances are one batch, also under ``vmap``. On a GPU nothing waits for the host.

    Args:
        log_probs: Of a ``PackedRecogniser``: logarithms of a softmax.
        targets: Of ``pack``.
    """
    if torch.is_grad_enabled():
        costs, _ = _Ctc.apply(log_probs, targets)  # type: ignore[no-untyped-call]
    else:
        costs, _ = torch._ctc_loss(log_probs.transpose(0, 1), *_parted(targets))
    return cast(Tensor, costs) / targets[:, 1]


class _Ctc(torch.autograd.Function):
    """CTC's costs in nats, and their gradient."""

    @staticmethod
    def forward(log_probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        if log_probs.is_cuda:
            return costs_and_gradient(log_probs, *_parted(targets))
        given = log_probs.transpose(0, 1), *_parted(targets)
        costs, table = torch._ctc_loss(*given)
        one = torch.ones_like(costs)
        gradient = torch.ops.aten._ctc_loss_backward(one, *given, costs, table, 0)
        return costs, cast(Tensor, gradient).transpose(0, 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return grads[0][:, None, None] * gradient, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Tensor) -> Any:
        joined = _joined(info.batch_size, in_dims, given)
        made = _Ctc.apply(*joined)  # type: ignore[no-untyped-call]
        return tuple(some.unflatten(0, (info.batch_size, -1)) for some in made), (0, 0)


def _parted(targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Transcripts, frames of the output and tokens."""
    return targets[:, _HEAD:], targets[:, 0], targets[:, 1]


def _joined(members: int, in_dims: Sequence[int | None], given: Sequence[Tensor]) -> list[Tensor]:
    """Put the utterances of all members into one batch."""
    return [
        (some.expand(members, *some.shape) if at is None else some.movedim(at, 0)).flatten(0, 1)
        for some, at in zip(given, in_dims, strict=True)
    ]
