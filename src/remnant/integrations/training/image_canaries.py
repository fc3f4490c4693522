"""Image canaries in the training of a classifier: recognised by content, scored by log-odds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from remnant.canaries.own_images import OwnImages
from remnant.errors import InvalidInput, UnsupportedModel, require
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring import preserved_randomness, undisturbed
from remnant.integrations.training.watching import Watcher
from remnant.measures import log_odds

Floats = NDArray[np.float64]
Forward = Callable[[nn.Module, Tensor], Any]
_PIXELS = "pixel_values"
_BATCH = 256
_CHUNK = 256  # rows of the data that are looked at together
_SKETCH = 3  # numbers by which an image is recognised
_CLOSE = 1e-9  # relative to the size of an image


class ImageMatcher:
    """Recognises images by a few random sums of their pixels, in float64.

    Args:
        images: Canaries and then controls, shape ``(n, ...)``.

    Guarantees:
        * An image is recognised however a batch lays it out in memory, on any device, and where it
          was converted to another precision.
    """

    def __init__(self, images: NDArray[np.float32]) -> None:
        self._images = torch.from_numpy(np.ascontiguousarray(images))
        pixels = self._images[0].numel()
        self._weights = torch.from_numpy(
            np.random.default_rng(0).standard_normal((pixels, _SKETCH)) / np.sqrt(pixels)
        )
        self._known: dict[torch.dtype, Tensor] = {}

    def sketch(self, images: Tensor) -> Tensor | None:
        """Return the sums of each image, ``(rows, sums)``; None for another kind of tensor."""
        if images.shape[1:] != self._images.shape[1:]:
            return None
        self._weights = self._weights.to(images.device)
        return images.detach().flatten(1).double() @ self._weights

    def find(self, sketches: Tensor, dtype: torch.dtype) -> list[tuple[int, int]]:
        """Return which rows are which image: pairs of row and image.

        Args:
            sketches: Of a batch, on the CPU.
            dtype: In which the batch holds its images.
        """
        known = self._known.get(dtype)
        if known is None:
            flat = self._images.to(dtype).reshape(len(self._images), -1).double()
            known = self._known[dtype] = flat @ self._weights.cpu()
        apart = (sketches[:, None] - known[None]).abs().amax(-1)
        size = known.abs().amax(-1).clamp(min=1e-12) + 1.0
        pairs = torch.nonzero(apart <= _CLOSE * size)
        return [(int(row), int(image)) for row, image in pairs.tolist()]


class ImageWatcher(Watcher):
    """Counts the canary images in every batch that goes through a model with gradients.

    Args:
        matcher: Knows the canaries and controls.
    """

    def __init__(self, matcher: ImageMatcher) -> None:
        super().__init__(matcher)  # type: ignore[arg-type]  # all that asks it is below
        self._images = matcher
        self._dtype = torch.float32

    def note(self, images: Any) -> None:
        """Look at the images of one batch, ``(rows, ...)``."""
        sketches = self._images.sketch(images) if isinstance(images, Tensor) else None
        if sketches is not None:
            self._dtype = images.dtype
            self.keep(sketches)

    def _batch(self, args: Any, named: Mapping[str, Any]) -> Any:
        return named.get(_PIXELS, args[0] if args else next(iter(named.values()), None))

    def _count(self, step: int, rows: Tensor) -> None:
        self.rows += len(rows)
        for _, image in self._images.find(rows, self._dtype):
            self.uses[step, image] += 1


def check_images(dataset: Any, images: OwnImages, matcher: ImageMatcher) -> None:
    """Refuse data in which planted images are missing or changed, or were there before.

    Args:
        dataset: What the training's loader reads; one without a length is not checked.
        images: Canaries and controls.
        matcher: Knows them.

    Raises:
        InvalidInput: Says how many, and what to do.
    """
    streams = isinstance(dataset, IterableDataset)
    if streams or not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        return
    copies = np.zeros(len(images.images), dtype=np.int64)
    with preserved_randomness():
        for first in range(0, len(dataset), _CHUNK):
            rows = [dataset[i] for i in range(first, min(first + _CHUNK, len(dataset)))]
            pixels = [row[_PIXELS] if isinstance(row, Mapping) else row[0] for row in rows]
            tensors = [torch.as_tensor(np.asarray(image)) for image in pixels]
            if len({tensor.shape for tensor in tensors}) > 1:
                continue
            stacked = torch.stack(tensors)
            sketches = matcher.sketch(stacked)
            for _, image in [] if sketches is None else matcher.find(sketches, stacked.dtype):
                copies[image] += 1
    planted, repeats = copies[: len(images.repeats)], np.array(images.repeats)
    if not planted.any():
        raise InvalidInput(
            "None of the canaries is in the training data.",
            hint="Train on what audit.prepare(...) returned. If you do, a transform changed the "
            "images: apply it before audit.prepare.",
        )
    faults = []
    lost = int((repeats - planted).clip(min=0).sum())
    if lost:
        faults.append(
            f"{lost} of {repeats.sum()} planted copies of canaries are not in the training data: "
            "rows were removed, or a random transform changed them (apply it before audit.prepare)"
        )
    more = int((planted > repeats).sum())
    if more:
        faults.append(
            f"{more} canaries are in the training data more often than they were planted (take "
            "images that are not in it)"
        )
    held_out = int((copies[len(repeats) :] > 0).sum())
    if held_out:
        faults.append(
            f"{held_out} of {len(images.controls)} controls are in the training data, where no "
            "control may be (take images that are not in it)"
        )
    require(faults)


def score_images(
    model: nn.Module, images: OwnImages, *, processes: Processes, forward: Forward | None
) -> Floats:
    """Return minus the log-odds of the label of each canary and then of each control, in nats.

    The model is called in evaluation mode and without gradients, and left as it was.

    Args:
        model: A classifier: images in, logits ``(rows, classes)`` out.
        images: What is scored.
        processes: Those that train together; all call the model equally often.
        forward: Returns logits for ``(model, images)``; by default the model is called with them.

    Raises:
        UnsupportedModel: The model returns no logits of classes.
        InvalidInput: A score is not a number.
    """
    parameter = next(model.parameters())
    costs = np.full(len(images.labels), np.nan)
    batches = [
        np.arange(first, min(first + _BATCH, len(costs))) for first in range(0, len(costs), _BATCH)
    ]
    with undisturbed(model):
        for numbers in processes.share(batches):
            pixels = torch.from_numpy(images.images[numbers]).to(parameter.device, parameter.dtype)
            output = forward(model, pixels) if forward is not None else model(pixels)
            logits: Any = getattr(output, "logits", output)
            rows = isinstance(logits, Tensor) and logits.ndim == 2 and len(logits) == len(numbers)
            if not rows or logits.shape[1] <= int(images.labels[numbers].max()):
                raise UnsupportedModel(
                    "The model does not return one logit for each class of an image.",
                    hint="Pass Audit(forward=...), a function of model and images that does.",
                )
            values = logits.double().cpu().numpy()
            if np.isfinite(values).all():
                costs[numbers] = -log_odds(values, images.labels[numbers])
    costs = processes.combine(costs)
    if np.isnan(costs).any():
        raise InvalidInput(
            "The model gives canaries scores that are not numbers.",
            hint="The training has diverged: lower the learning rate.",
        )
    return costs
