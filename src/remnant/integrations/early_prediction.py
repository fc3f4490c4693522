"""A hook for your own training loop that predicts which samples will be memorised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, require
from remnant.measures import cross_entropy, logit_gap, stopping_point
from remnant.measures.prediction.predicted import PredictedMemorisation, predicted_memorisation
from remnant.measures.statistics.checks import check_rng, check_share
from remnant.probes.one_pass import LAST, one_pass

Floats = NDArray[np.float64]
Read = Callable[[nn.Module], tuple[ArrayLike, ArrayLike]]


class EarlyPrediction:
    """Detects when the training loss has dropped far enough, then predicts the samples at risk.

    After every step the loop passes the losses of its batch, one per example. Every ``every`` steps
    the hook compares their median with the first median. When it has dropped by ``drop``, ``after``
    returns True, once; ``predict`` then evaluates the model on every training sample, in a single
    pass. The hook never trains, and training may continue.

    Args:
        labels: Of the training samples, whole numbers.
        inputs: The training samples as the model takes them: a tensor or array, or named tensors
            or arrays. Arrays become tensors; numbers of 64 bits become float32, as models have
            them.
        read: Instead of ``inputs``: called with the model, returns hidden states ``(n, d)`` and
            logits ``(n, classes)`` of the training samples, in the order of ``labels``.
        drop: Share of the first median loss that must be gone; 95 % in the paper.
        every: Steps between two looks at the losses.
        start: Median loss of the untrained model, or its losses on some samples; by default the
            losses of the first steps, as many as make up ``first`` examples.
        first: Examples behind the first median.
        layer: Whose hidden states are used, as in ``one_pass``.
        batch: Examples a pass of ``predict``.

    Guarantees:
        * ``after`` does not run the model; ``predict`` runs it once on each sample, and leaves its
          weights, buffers and training mode unchanged.
        * The stop is that of ``stopping_point`` on the same medians.
        * If ``every`` is 3 or more and batches have one size, no single batch can cause the stop:
          half of the losses since the last check must be low.

    Raises:
        InvalidInput: Neither or both of ``inputs`` and ``read``, settings out of range, inputs that
            are no numbers or not one for each label, labels below 0; all faults at once, before the
            training.

    Example:
        >>> images, labels = torch.randn(60, 4), torch.arange(60) % 3
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> hook = EarlyPrediction(labels, images, every=3)
        >>> for step in range(10):
        ...     losses = nn.functional.cross_entropy(model(images), labels, reduction="none")
        ...     if hook.after(step, losses / 30**step):  # as if it were learning fast
        ...         risks = hook.predict(model, rng=np.random.default_rng(0))
        >>> hook.stopped, hook.forward_passes, len(risks.protect(top=5))
        (3, 1.0, 5)
    """

    def __init__(
        self,
        labels: ArrayLike,
        inputs: Tensor | ArrayLike | Mapping[str, Tensor | ArrayLike] | None = None,
        *,
        read: Read | None = None,
        drop: float = 0.95,
        every: int = 10,
        start: float | ArrayLike | None = None,
        first: int = 32,
        layer: str = LAST,
        batch: int = 256,
    ) -> None:
        faults: list[str] = []
        check_share("drop", drop, faults)
        for name, number in (("every", every), ("first", first), ("batch", batch)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                faults.append(f"{name}={number!r} is not a whole number of at least 1")
        if (inputs is None) == (read is None):
            faults.append("it takes inputs or read, and not both")
        self._labels = _array(labels)
        if self._labels.ndim != 1 or self._labels.dtype.kind not in "iu":
            faults.append(
                f"labels of shape {self._labels.shape} and type {self._labels.dtype} are not one "
                "whole number a sample"
            )
        elif self._labels.size and self._labels.min() < 0:
            faults.append(f"labels hold {int(self._labels.min())}, which is below 0")
        if read is not None and not callable(read):
            faults.append(f"read is a {type(read).__name__}, which cannot be called")
        if not isinstance(layer, str):
            faults.append(f"layer={layer!r} is not the name of a layer")
        self._inputs = None if inputs is None else _tensors(inputs, len(self._labels), faults)
        require(faults)
        self._read = read
        self._drop = float(drop)
        self._every = every
        self._first = first
        self._layer = layer
        self._batch = batch
        self._waiting: list[Tensor] = []
        self._last = -1
        self._next: int | None = None
        self._steps: list[int] = []
        self._medians: list[float] = []
        self._stopped: int | None = None
        self._passes = 0.0
        if start is not None:
            self._begin(-1, float(np.median(_checked(start, "start"))))

    @property
    def steps(self) -> tuple[int, ...]:
        """After which steps the losses were looked at, the start first (-1 where it was given)."""
        return tuple(self._steps)

    @property
    def medians(self) -> tuple[float, ...]:
        """The median losses of these looks; the first is that of the start."""
        return tuple(self._medians)

    @property
    def dropped(self) -> float:
        """The share of the first median loss that was gone at the last look; 0 before any."""
        return 1.0 - self._medians[-1] / self._medians[0] if self._medians else 0.0

    @property
    def stopped(self) -> int | None:
        """The step after which the loss had dropped far enough; None as long as it has not."""
        return self._stopped

    @property
    def forward_passes(self) -> float:
        """Passes over the training samples that the hook asked for, in epochs."""
        return self._passes

    def after(self, step: int, losses: ArrayLike | Tensor) -> bool:
        """Take the losses of a step's batch; return True at the look that finds the drop, once.

        Args:
            step: Its number; steps come in order. A step that is made of several batches hands
                over each.
            losses: Of its examples, as computed for the update: ``reduction="none"``. Dropout or
                augmentation makes them larger, and the stop later.

        Raises:
            InvalidInput: Not one loss an example, a step before the last one, a loss that is NaN or
                negative (found at the next look).
        """
        given = losses.detach() if isinstance(losses, Tensor) else torch.as_tensor(losses)
        if given.ndim != 1 or len(given) == 0:
            raise InvalidInput(
                f"the losses of step {step} have the shape {tuple(given.shape)}; it takes one an "
                "example.",
                hint='Compute them with reduction="none", and train on their mean.',
            )
        if step < self._last:
            raise InvalidInput(f"step {step} comes after step {self._last}.")
        self._last = step
        if self._stopped is not None:
            return False
        self._waiting.append(given)
        if self._next is None:
            if sum(map(len, self._waiting)) >= self._first:
                self._begin(step, self._median())
            return False
        if step < self._next:
            return False
        self._next = step + self._every
        self._steps.append(step)
        self._medians.append(self._median())
        if stopping_point(losses=self._medians, drop=self._drop).index is None:
            return False
        self._stopped = step
        return True

    def predict(self, model: nn.Module, *, rng: np.random.Generator) -> PredictedMemorisation:
        """Evaluate the model once on every training sample, and return the samples' risks.

        It may be called at any time; ``stopped`` says whether the loss had dropped by then.

        Args:
            model: As it is now.
            rng: Draws PSMI's directions.

        Raises:
            InvalidInput, NotEnoughEvidence, UnsupportedModel: As ``one_pass`` and
                ``predicted_memorisation``.
        """
        faults: list[str] = []
        check_rng(rng, faults)
        require(faults)
        hidden, losses, gaps = self._look(model)
        self._passes += 1.0
        return predicted_memorisation(
            hidden=hidden, labels=self._labels, losses=losses, logit_gaps=gaps, rng=rng
        )

    def _look(self, model: nn.Module) -> tuple[ArrayLike, Any, Any]:
        if self._read is not None:
            hidden, logits = (_array(given) for given in self._read(model))
            return hidden, cross_entropy(logits, self._labels), logit_gap(logits, self._labels)
        if self._inputs is None:
            raise InvalidInput("it takes inputs or read.")
        labels = torch.as_tensor(self._labels).long()
        answers = one_pass(model, self._inputs, labels, layers=[self._layer], batch=self._batch)
        states = answers.hidden[0]
        narrow = states.float() if states.dtype == torch.bfloat16 else states
        return narrow.numpy(), answers.losses.numpy(), answers.logit_gaps.numpy()

    def _begin(self, step: int, median: float) -> None:
        if not median > 0.0:
            raise InvalidInput("the median loss at the start is 0: it cannot drop.")
        self._steps.append(step)
        self._medians.append(median)
        self._next = step + self._every

    def _median(self) -> float:
        joined = torch.cat([losses.flatten() for losses in self._waiting])
        self._waiting.clear()
        return float(np.median(_checked(joined, f"the losses up to step {self._last}")))


def _tensors(inputs: Any, samples: int, faults: list[str]) -> Tensor | Mapping[str, Tensor] | None:
    """Return inputs as the model takes them; what is wrong with them is added to ``faults``."""
    if not isinstance(inputs, Mapping):
        return _tensor("inputs", inputs, samples, faults)
    if not inputs:
        faults.append("inputs hold no tensor")
    tensors = {
        str(name): _tensor(f"inputs[{name!r}]", value, samples, faults)
        for name, value in inputs.items()
    }
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def _tensor(name: str, given: Any, samples: int, faults: list[str]) -> Tensor | None:
    """One tensor of inputs, or None and a fault."""
    tensor = given if isinstance(given, Tensor) else _converted(given)
    if tensor is None:
        faults.append(f"{name} is a {type(given).__name__}, not a tensor or an array of numbers")
    elif tensor.ndim == 0 or len(tensor) != samples:
        faults.append(f"{name} has the shape {tuple(tensor.shape)} for {samples} labels")
    else:
        return tensor
    return None


def _converted(given: Any) -> Tensor | None:
    """An array as a tensor, or None where it holds no numbers."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):  # rows of several lengths
        return None
    if array.dtype.kind not in "biuf":
        return None
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return torch.from_numpy(np.array(array))  # a copy: arrays may be read-only


def _array(given: Any) -> NDArray[Any]:
    if isinstance(given, Tensor):
        kept = given.detach().cpu()
        return np.asarray(kept.float() if kept.dtype == torch.bfloat16 else kept)
    return np.asarray(given)


def _checked(given: Any, name: str) -> Floats:
    try:
        values = np.atleast_1d(_array(given).astype(np.float64))
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} are not numbers.") from None
    bad = int(np.sum(~(values >= 0.0)))
    if bad or values.size == 0:
        raise InvalidInput(
            f"{name} hold {bad} of {values.size} values that are NaN or negative.",
            hint="The training may have diverged.",
        )
    return values
