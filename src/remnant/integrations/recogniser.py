"""Hugging Face recognisers of speech that were trained with CTC: Wav2Vec2, HuBERT and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.integrations.pretrained import (
    checked_folder,
    library,
    quiet,
    read_model,
    read_tokenizer,
    readable,
    usable,
)
from remnant.probes.counted_model import without_tf32
from remnant.probes.ctc import ctc_costs
from remnant.probes.recognition import greedy_tokens

_KIND = "AutoModelForCTC"
_RATE = 16_000
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


class HuggingFaceRecogniser:
    """A recogniser as a ``SpeechModel``.

    Sounds are asked one at a time: padding would change what some of these models hear.

    Args:
        model: An ``AutoModelForCTC``; it is asked in evaluation mode.
        extractor: Its feature extractor: sounds to what the model takes.
        tokenizer: Of the transcripts; its padding token is the blank.
    """

    def __init__(self, model: nn.Module, extractor: Any, tokenizer: Any) -> None:
        self._model, self._extractor, self._tokenizer = model, extractor, tokenizer
        config: Any = model.config
        self._blank = int(config.pad_token_id)
        rate = getattr(extractor, "sampling_rate", _RATE)
        if rate != _RATE:
            raise InvalidInput(
                f"the model takes {rate} samples a second; only {_RATE} are supported."
            )

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str | torch.device = "cpu"
    ) -> HuggingFaceRecogniser:
        """Read a recogniser from a Hugging Face folder, in float32; nothing is downloaded.

        Raises:
            InvalidInput: The folder cannot be read, or holds a model of another kind.
            MissingExtra: transformers is not installed.
        """
        path = checked_folder(folder)
        model = read_model(path, kind=_KIND, device=device, dtype=torch.float32)
        with quiet(), readable(path, "configuration"):
            extractor = library().AutoFeatureExtractor.from_pretrained(str(path), **_LOCAL)
        return cls(model, extractor, read_tokenizer(path))

    def transcript_costs(
        self, sounds: Sequence[Any], transcripts: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return what each transcript costs for each sound, in bits, ``(sounds, transcripts)``.

        The diagonal has the cost of each sound's own transcript. A transcript that does not fit
        into a sound has probability 0 and costs infinity.

        Raises:
            InvalidInput: A sound is not one channel of finite samples, or a transcript has a
                character that the model lacks; its number is in the message, its text is not.
        """
        tokens = [self._tokens(number, text) for number, text in enumerate(transcripts)]
        return ctc_costs(self._frames(sounds), tokens)

    def heard(self, sounds: Sequence[Any]) -> list[str]:
        """Return what the model hears: the likeliest token of each frame, repeats joined."""
        blank_first = self._order()
        made = []
        for frames in self._frames(sounds):
            tokens = [int(blank_first[token]) for token in greedy_tokens(frames)]
            made.append(str(self._tokenizer.decode(tokens, group_tokens=False)).strip())
        return made

    def _order(self) -> Tensor:
        """The model's tokens with the blank first."""
        count = int(self._model.config.vocab_size)  # type: ignore[union-attr, arg-type]
        others = [token for token in range(count) if token != self._blank]
        return torch.tensor([self._blank, *others])

    def _tokens(self, number: int, text: str) -> list[int]:
        with usable():
            ids = list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        unknown = self._tokenizer.unk_token_id
        faults = []
        if unknown is not None and unknown in ids:
            faults.append(f"transcript {number} has a character that the model lacks")
        if self._blank in ids:
            faults.append(f"transcript {number} holds the blank")
        require(faults, error=InvalidInput, hint="Write transcripts with the model's characters.")
        # The blank moves to the front, and what was before it one place on.
        return [token + 1 if token < self._blank else token for token in ids]

    def _frames(self, sounds: Sequence[Any]) -> list[Tensor]:
        """Log-probabilities of each sound, ``[frames, vocabulary]``, the blank first."""
        model, order = self._model, self._order()
        was_training = model.training
        model.eval()
        made = []
        try:
            for number, sound in enumerate(sounds):
                samples = _samples(number, sound)
                given = self._extractor(samples, sampling_rate=_RATE, return_tensors="pt")
                device = next(model.parameters()).device
                try:
                    with torch.no_grad(), without_tf32():
                        logits = model(**given.to(device)).logits[0]
                except (RuntimeError, ValueError) as fault:
                    raise InvalidInput(
                        f"sound {number} has {len(samples)} samples, which the model cannot take.",
                        hint="It may be too short; leave it out.",
                    ) from fault
                frames = logits.double().log_softmax(-1).cpu()
                if bool(frames.isnan().any()):
                    raise InvalidInput(
                        f"the model's outputs for sound {number} are not numbers.",
                        hint="Check its weights.",
                    )
                made.append(frames[:, order])
        finally:
            model.train(was_training)
        return made


def _samples(number: int, sound: Any) -> NDArray[np.float32]:
    samples = np.asarray(sound, dtype=np.float32)
    if samples.ndim != 1 or not len(samples):
        raise InvalidInput(
            f"sound {number} has shape {samples.shape}, not (samples,).", hint="Give one channel."
        )
    if not np.isfinite(samples).all():
        raise InvalidInput(f"sound {number} holds samples that are not finite numbers.")
    return samples
