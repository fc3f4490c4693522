"""Recognisers of speech as members of a population: utterances and transcripts as plain tensors.

A population's model takes one tensor and its loss takes outputs and one tensor of targets. So an
utterance carries its length as a band of ones, and a transcript carries its own length and that of
the sound in front of its tokens.

CTC's costs and their gradient are computed without a word to the host, so that a GPU can record the
step. torch's kernel copies the lengths of utterances to the host and waits for them. Here they stay
where they are: everything has the shape of the longest utterance and transcript, and what lies
beyond an end is masked. The sums over alignments from the end are those from the beginning of the
same utterances turned round, so both are one recursion over a batch of twice the size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.models.conformer_ctc import SUBSAMPLED

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


_NEVER = -math.inf


def costs_and_gradient(
    log_probs: Tensor, transcripts: Tensor, frames: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Return CTC's costs in nats, and their gradient by the scores that a softmax was taken of.

    The gradient is what torch's kernel gives: that by the log-probabilities, less what the softmax
    takes out again.

    Args:
        log_probs: Natural, ``[n, frames, vocabulary]``; token 0 is the blank.
        transcripts: ``[n, tokens]``.
        frames, counts: Of each utterance and its transcript, ``[n]``.

    Returns:
        ``[n]`` and ``[n, frames, vocabulary]``; 0 beyond an utterance's end.
    """
    n, longest, vocabulary = log_probs.shape
    places = 2 * transcripts.shape[1] + 1
    spread = transcripts.new_zeros(n, places)
    spread[:, 1::2] = transcripts
    place = torch.arange(places, device=log_probs.device)
    time = torch.arange(longest, device=log_probs.device)
    end = 2 * counts[:, None]  # the last blank
    heard = log_probs.gather(2, spread[:, None].expand(-1, longest, -1))  # [n, frames, places]
    turned_time = (frames[:, None] - 1 - time).clamp(min=0)
    turned_place = (end - place).clamp(min=0)
    turned = _reordered(heard, turned_time, turned_place)
    sums = _sums(
        torch.cat([heard, turned]).movedim(1, 0),
        torch.cat([spread, spread.gather(1, turned_place)]),
        torch.cat([end, end]),
    )
    before, after = sums[:, :n].movedim(0, 1), sums[:, n:].movedim(0, 1)
    last = before.gather(1, (frames - 1)[:, None, None].expand(-1, 1, places))[:, 0]
    costs = -torch.logaddexp(last.gather(1, end), last.gather(1, end - 1))[:, 0]
    after = _reordered(after, turned_time, turned_place)
    there = (time < frames[:, None])[..., None] & (place <= end)[:, None]
    # How likely each place is at each frame, given the transcript; both sums hold the frame itself.
    shares = (before + after - heard + costs[:, None, None]).exp().where(there, 0.0)
    tokens = spread[..., None] == torch.arange(vocabulary, device=log_probs.device)
    gradient = log_probs.exp() - shares @ tokens.to(shares)
    return costs, gradient.masked_fill((time >= frames[:, None])[..., None], 0.0)


def _reordered(table: Tensor, times: Tensor, places: Tensor) -> Tensor:
    """Return ``[n, frames, places]`` with the rows and columns that are asked for."""
    table = table.gather(1, times[..., None].expand(-1, -1, table.shape[2]))
    return table.gather(2, places[:, None].expand(-1, table.shape[1], -1))


def _sums(heard: Tensor, spread: Tensor, end: Tensor) -> Tensor:
    """Return the logarithm of the sum over all beginnings that reach a place by a frame.

    Args:
        heard: Log-probability of each place's token, ``[frames, n, places]``.
        spread: Tokens with blanks between them, ``[n, places]``.
        end: The last place of each transcript, ``[n, 1]``; none beyond it is reached.
    """
    place = torch.arange(spread.shape[1], device=spread.device)
    skips = (spread[:, 2:] != spread[:, :-2]) & (place[2:] % 2 == 1)  # over the blank between
    closed = torch.zeros_like(spread, dtype=heard.dtype).masked_fill(place > end, _NEVER)
    jump = torch.full_like(closed, _NEVER)
    jump[:, 2:] = torch.zeros_like(jump[:, 2:]).masked_fill(~skips, _NEVER)
    made = torch.empty_like(heard)
    made[0] = torch.where(place < 2, heard[0], _NEVER) + closed
    padded = heard.new_full((spread.shape[0], spread.shape[1] + 2), _NEVER)
    for t in range(1, len(heard)):
        padded[:, 2:] = made[t - 1]
        ways = torch.stack([padded[:, 2:], padded[:, 1:-1], padded[:, :-2] + jump])
        made[t] = ways.logsumexp(0) + heard[t] + closed
    return made
