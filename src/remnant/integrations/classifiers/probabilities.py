"""A classifier as a function from images in [0, 1] to probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from remnant.data.labelled import normalised
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.probes.hidden import first_tensor
from remnant.probes.one_pass import in_one_sentence, placed

Outputs = Literal["auto", "logits", "probabilities"]
# Rows of probabilities may be off by so much: half precision is not refused for its sums.
_SUM_OFF = 1e-2


class Probabilities:
    """Returns a classifier's probabilities, in evaluation mode and without gradients.

    Attributes:
        kind: How its answers are read: "logits" or "probabilities"; with "auto" the first images
            decide, and it is "auto" until then.

    Args:
        model: Any module that returns one row an image: of two classes or more, or of one number,
            which is that of class 1. It is switched to evaluation.
        mean, std: Images are normalised by them, for all channels or for each; both or neither.
        outputs: What the model returns; "auto" takes rows that are probabilities for what they
            are, and all others for logits.

    Guarantees:
        * A program that was exported for a fixed batch size gets batches of that size.

    Raises:
        InvalidInput: Faulty settings. When asked: answers that are not finite or not what
            ``outputs`` says, images that the model cannot take.
        UnsupportedModel: When asked: answers that are not one row an image.

    Example:
        >>> ask = Probabilities(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)))
        >>> ask(torch.rand(5, 1, 2, 2)).shape, ask.kind
        (torch.Size([5, 3]), 'logits')
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        outputs: Outputs = "auto",
    ) -> None:
        if outputs not in get_args(Outputs):
            raise InvalidInput(f"outputs={outputs!r} is not one of {', '.join(get_args(Outputs))}.")
        if (mean is None) != (std is None):
            raise InvalidInput("mean and std belong together.", hint="Give both or neither.")
        self.kind: str = outputs
        self._model = model.eval()
        self._scale = None if mean is None or std is None else (tuple(mean), tuple(std))

    @property
    def module(self) -> nn.Module:
        """The network."""
        return self._model

    def copied(self) -> Probabilities:
        """Return a copy whose weights can be trained."""
        model = deepcopy(self._model)
        for parameter in model.parameters():
            parameter.requires_grad_(parameter.is_floating_point())
        made = copy(self)
        made._model = model
        return made

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Return probabilities, float64 ``(n, classes)``."""
        return self.with_gradients(images)

    def with_gradients(self, images: Tensor) -> Tensor:
        """Return probabilities, float64 ``(n, classes)``, through which gradients can flow."""
        inputs = images if self._scale is None else self._normalised(images)
        fixed = getattr(self._model, "fixed_batch", None)
        if fixed is None:
            answers = self._answers(inputs)
        else:
            answers = torch.cat([self._filled(part, fixed) for part in inputs.split(fixed)])
        if not bool(answers.isfinite().all()):
            raise InvalidInput(
                "the model's answers are NaN or infinite.",
                hint="Its weights may be damaged, or the images not normalised as in training.",
            )
        if self.kind == "auto":
            self.kind = self._kind_of(answers)
        if self.kind == "logits":
            return _softmax(answers)
        self._check(answers)
        return torch.cat([1.0 - answers, answers], dim=1) if answers.shape[1] == 1 else answers

    def _normalised(self, images: Tensor) -> Tensor:
        mean, std = self._scale or ((0.0,), (1.0,))
        normalised(np.zeros((1, images.shape[1], 1, 1), dtype=np.float32), mean, std)  # checks
        shape = (1, -1, 1, 1)
        centre, width = (
            torch.tensor(numbers, device=images.device).view(shape) for numbers in (mean, std)
        )
        return (images - centre) / width

    def _filled(self, part: Tensor, fixed: int) -> Tensor:
        """Ask about a batch of the size that the program takes, filled up with its first image."""
        filler = part[:1].expand(fixed - len(part), *part.shape[1:])
        return self._answers(torch.cat([part, filler]))[: len(part)]

    def _answers(self, inputs: Tensor) -> Tensor:
        with in_one_sentence(inputs):
            made: Any = self._model(placed(self._model, inputs))
        given = getattr(made, "logits", None)
        if given is None and isinstance(made, Mapping):
            given = made.get("logits")
        answers = given if isinstance(given, Tensor) else first_tensor(made, "output")
        if answers.ndim == 1:
            answers = answers[:, None]
        if answers.ndim != 2 or len(answers) != len(inputs) or not answers.is_floating_point():
            raise UnsupportedModel(
                f"the model gives answers of shape {tuple(answers.shape)} for {len(inputs)} "
                "images; it takes one row an image.",
                hint="Let it return a logit or a probability for each class.",
            )
        return answers.double()

    def _kind_of(self, answers: Tensor) -> str:
        if answers.shape[1] > 1:
            return "probabilities" if _are_probabilities(answers) else "logits"
        if _within(answers):
            raise InvalidInput(
                "the model gives one number an image, and all are between 0 and 1: logits or "
                "probabilities?",
                hint="Say outputs='probabilities' or outputs='logits'.",
            )
        return "logits"

    def _check(self, answers: Tensor) -> None:
        right = _within(answers) if answers.shape[1] == 1 else _are_probabilities(answers)
        if not right:
            raise InvalidInput(
                f"the model's answers reach from {float(answers.min()):.4g} to "
                f"{float(answers.max()):.4g}, in rows that do not all sum to one: they are no "
                "probabilities.",
                hint="Say outputs='logits' if they are logits or log-probabilities.",
            )


def _within(answers: Tensor) -> bool:
    return float(answers.min()) >= 0.0 and float(answers.max()) <= 1.0 + _SUM_OFF


def _are_probabilities(answers: Tensor) -> bool:
    return _within(answers) and float((answers.sum(dim=1) - 1.0).abs().max()) <= _SUM_OFF


def _softmax(answers: Tensor) -> Tensor:
    if answers.shape[1] == 1:
        answers = torch.cat([torch.zeros_like(answers), answers], dim=1)
    return answers.softmax(dim=1)
