"""What a transcript costs a recogniser of speech that was trained with CTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.probes.counted_model import without_tf32
from remnant.probes.ctc import ctc_costs

Recogniser = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
_FRAMES = 1 << 14  # of one call of the model, padding counted


def transcript_costs(
    model: nn.Module | Recogniser,
    *,
    features: Sequence[Any],
    transcripts: Sequence[Sequence[int]],
) -> NDArray[np.float64]:
    """Return what each transcript costs the model, in bits, for each utterance.

    The cost is the negative base-2 logarithm of the transcript's CTC probability given the sound,
    summed in float64. A transcript that does not fit into an utterance's frames has probability 0
    and costs infinity.

    Args:
        model: Called with ``features [n, frames, bands]`` and ``lengths [n]``; returns natural
            log-probabilities ``[n, frames', vocabulary]`` and ``lengths' [n]``. Token 0 is the
            blank. A module is asked in evaluation mode.
        features: One ``[frames, bands]`` for each utterance.
        transcripts: Tokens of each; an empty one is silence.

    Returns:
        ``(utterances, transcripts)``.

    Raises:
        InvalidInput: Features or tokens are not what the model takes; the message has their number.
    """
    spoken = [
        torch.as_tensor(np.asarray(some) if not isinstance(some, Tensor) else some)
        for some in features
    ]
    _check_features(spoken)
    costs = np.empty((len(spoken), len(transcripts)))
    checked = False
    for first, log_probs in _asked(model, spoken):
        if not checked:
            _check_transcripts(transcripts, vocabulary=log_probs[0].shape[1])
            checked = True
        costs[first : first + len(log_probs)] = ctc_costs(log_probs, transcripts)
    return costs


def _asked(model: Any, spoken: Sequence[Tensor]) -> Any:
    """Ask the model for utterances of about one length together, in their own order."""
    was_training = isinstance(model, nn.Module) and model.training
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    like = torch.empty(0) if parameter is None else parameter
    if isinstance(model, nn.Module):
        model.eval()
    try:
        first = 0
        while first < len(spoken):
            stop, longest = first + 1, len(spoken[first])
            while stop < len(spoken):
                longest = max(longest, len(spoken[stop]))
                if (stop + 1 - first) * longest > _FRAMES:
                    break
                stop += 1
            some = spoken[first:stop]
            lengths = torch.tensor([len(one) for one in some])
            padded = nn.utils.rnn.pad_sequence([one.to(like) for one in some], batch_first=True)
            with torch.no_grad(), without_tf32():
                made, frames = model(padded, lengths.to(padded.device))
            _check_outputs(made, frames, rows=len(some), first=first)
            yield first, [row[: int(count)] for row, count in zip(made, frames, strict=True)]
            first = stop
    finally:
        if was_training:
            model.train()


def _check_features(spoken: Sequence[Tensor]) -> None:
    faults = [] if spoken else ["features is empty"]
    bands = {some.shape[1] for some in spoken if some.ndim == 2}
    for number, some in enumerate(spoken):
        if some.ndim != 2 or not some.numel() or not some.is_floating_point():
            shape = tuple(some.shape)
            faults.append(f"features[{number}] has shape {shape}, not floats (frames, bands)")
        elif not bool(some.isfinite().all()):
            faults.append(f"features[{number}] holds numbers that are not finite")
    if len(bands) > 1:
        faults.append(f"features have {', '.join(map(str, sorted(bands)))} bands, not one number")
    require(faults, error=InvalidInput, hint="Give one array (frames, bands) an utterance.")


def _check_transcripts(transcripts: Sequence[Sequence[int]], *, vocabulary: int) -> None:
    faults = []
    for number, tokens in enumerate(transcripts):
        if isinstance(tokens, str):
            faults.append(f"transcripts[{number}] is a text, not a list of tokens")
            continue
        wrong = [t for t in tokens if isinstance(t, bool) or not isinstance(t, int | np.integer)]
        beyond = [t for t in tokens if not wrong and not 1 <= t < vocabulary]
        if wrong or beyond:
            faults.append(f"transcripts[{number}] holds {(wrong or beyond)[0]!r}")
    hint = f"Tokens are whole numbers from 1 to {vocabulary - 1}; 0 is the blank."
    require(faults[:3], error=InvalidInput, hint=hint)


def _check_outputs(made: Any, lengths: Any, *, rows: int, first: int) -> None:
    if not isinstance(made, Tensor) or made.ndim != 3 or len(made) != rows or len(lengths) != rows:
        raise InvalidInput(
            "the model does not return log-probabilities [n, frames, vocabulary] and lengths [n]."
        )
    for row, count in enumerate(lengths):
        if not 1 <= int(count) <= made.shape[1]:
            raise InvalidInput(f"the model gives utterance {first + row} {int(count)} frames.")
        if bool(made[row, : int(count)].isnan().any()):
            raise InvalidInput(
                f"the model's log-probabilities of utterance {first + row} are not numbers.",
                hint="Check its weights.",
            )
