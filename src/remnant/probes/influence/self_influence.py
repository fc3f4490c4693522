"""Self-influence: how strongly an example pulls on the weights when it is trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.probes.hidden import Inputs, check_batch, evaluating, length_of, logits_of, part_of
from remnant.probes.influence.reader import Reader, exactly
from remnant.probes.influence.weights import (
    Checkpoint,
    check_checkpoints,
    chosen_parameters,
    tensors_at,
)


def self_influence(
    model: nn.Module,
    inputs: Inputs,
    labels: ArrayLike | Tensor,
    *,
    checkpoints: Sequence[Checkpoint],
    loss: Callable[[Any, Tensor], Tensor] | None = None,
    layers: Sequence[str] | None = None,
    batch: int = 100,
) -> NDArray[np.float64]:
    r"""Return TracInCP's self-influence of each example.

    .. math:: \sum_i \eta_i \, \lVert \nabla_w \ell(w_i, x) \rVert^2

    over checkpoints with weights :math:`w_i` and learning rates :math:`\eta_i`; the gradient is
    that of the example's own loss, over all trainable parameters, in evaluation mode.

    Dense, convolutional (1d and 2d), embedding and normalisation layers need one forward and one
    backward pass of a batch, and no gradient of a single example is kept. Parameters that are
    shared, used outside of such a layer or belong to another kind are done with ``torch.func``, and
    by a plain loop where that cannot be. Which it is changes nothing but time.

    Args:
        model: Any module. Weights, buffers, mode and ``requires_grad`` are left as they were.
        inputs: A tensor, or named tensors that the model takes as keywords.
        labels: One an example; whole numbers unless ``loss`` takes others.
        checkpoints: Pairs of a state dict and the learning rate then, as ``InfluenceCheckpoints``
            keeps them. For the model as it is: ``[(model.state_dict(), 1.0)]``.
        loss: Called with the model's outputs and the labels of some examples; returns one value an
            example. Cross-entropy by default.
        layers: Names of modules or parameters to which the gradient is restricted, with all that is
            in them; by default all. Parameters with ``requires_grad`` off never count.
        batch: Examples a pass; it changes nothing but memory, up to rounding.

    Returns:
        ``(n,)``, in the order of the inputs; 0 or more.

    Guarantees:
        * It is what plain autograd gives for each example alone in its batch: to 1e-10 in float64.
        * The memory beyond one pass of a batch does not grow with parameters times examples.
        * A closed form is held against plain autograd on two examples before it is used; so a
          model that mixes the examples of a batch is noticed, unless it spares these two.

    Raises:
        InvalidInput: No examples; labels, a checkpoint or a learning rate that do not fit; a loss
            that is not one value an example; names of layers that the model does not have; no
            trainable parameter that a loss depends on; a gradient that is NaN or infinite.
        UnsupportedModel: A TorchScript model, or no torch module at all.

    Example:
        >>> model = nn.Linear(2, 2, bias=False)
        >>> state = {"weight": torch.zeros(2, 2)}
        >>> self_influence(
        ...     model, torch.tensor([[3.0, 4.0]]), [0], checkpoints=[(state, 0.1)]
        ... ).round(6)  # 0.1 times 25 times 0.5, the squared norms of input and softmax error
        array([1.25])
    """
    if not isinstance(model, nn.Module):
        raise UnsupportedModel(
            f"model is a {type(model).__name__}, not a torch module.",
            hint="Give the module itself.",
        )
    model = getattr(model, "_orig_mod", model)  # of a compiled model: the one that was compiled
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise UnsupportedModel(
            "TorchScript models keep their weights to themselves.",
            hint="Give the model that was scripted.",
        )
    inputs = _inputs(inputs)
    count = length_of(inputs)
    check_batch(batch)
    pairs = check_checkpoints(model, checkpoints)
    names = chosen_parameters(model, layers)
    where = next(model.parameters()).device
    wanted = _tracked(_labels(labels, count, whole=loss is None).to(where))
    reader = Reader(model, names, loss or _cross_entropy(wanted))
    total = np.zeros(count)
    with evaluating(model), exactly(model):
        for place, (state, rate) in enumerate(pairs):
            tensors = tensors_at(model, state, names)
            if place == 0:
                ends = [0, count - 1] if count > 1 else [0]
                _finite(reader.learn(tensors, _some(inputs, ends), wanted[ends]), place, ends)
            norms = [
                reader.squared(
                    tensors, part_of(inputs, first, first + batch), wanted[first : first + batch]
                )
                for first in range(0, count, batch)
            ]
            total += rate * _finite(torch.cat(norms), place, range(count)).numpy()
    if not reader.reached and not total.any():
        whose = "the model" if layers is None else ", ".join(layers)
        raise InvalidInput(
            f"no trainable parameter of {whose} is reached by the loss's gradient.",
            hint="Name layers that the outputs depend on, and a loss that can be differentiated.",
        )
    return total


def highest_and_lowest(scores: ArrayLike, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the k highest scores and of the k lowest, the most extreme first.

    Of equal scores the earlier one comes first.

    Raises:
        InvalidInput: Scores that are not finite numbers, or fewer than 2k of them.

    Example:
        >>> high, low = highest_and_lowest([0.3, 9.0, 0.0, 2.0], 1)
        >>> int(high[0]), int(low[0])
        (1, 2)
    """
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InvalidInput("scores are not a list of finite numbers.")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(values) // 2:
        raise InvalidInput(f"k={k!r} of {len(values)} scores.", hint="Give at most half of them.")
    return (
        np.argsort(-values, kind="stable")[:k].astype(np.int64),
        np.argsort(values, kind="stable")[:k].astype(np.int64),
    )


def _some(inputs: Inputs, rows: list[int]) -> Inputs:
    if isinstance(inputs, Mapping):
        return {name: tensor[rows] for name, tensor in inputs.items()}
    return inputs[rows]


def _inputs(given: Any) -> Inputs:
    def read(array: Any) -> Tensor:
        tensor = torch.as_tensor(array).detach()
        if tensor.ndim == 0:
            raise InvalidInput("inputs are one number, not examples.")
        return _tracked(tensor)

    try:
        if isinstance(given, Mapping):
            return {name: read(array) for name, array in given.items()}
        return read(given)
    except (TypeError, ValueError, RuntimeError) as fault:
        if isinstance(fault, InvalidInput):
            raise
        raise InvalidInput("inputs are not a tensor, nor named tensors.") from None


def _tracked(tensor: Tensor) -> Tensor:
    """A tensor that may stand in a graph: one made in inference mode may not."""
    with torch.inference_mode(False):
        return tensor.clone() if tensor.is_inference() else tensor


def _labels(given: ArrayLike | Tensor, count: int, *, whole: bool) -> Tensor:
    try:
        labels = torch.as_tensor(given).detach()
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput("labels are not a tensor of numbers.") from None
    if labels.ndim == 0 or len(labels) != count or (whole and labels.ndim != 1):
        raise InvalidInput(
            f"labels of shape {tuple(labels.shape)} for {count} examples.",
            hint="Give one label an example" + (", or a loss of your own." if whole else "."),
        )
    if whole and (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool):
        raise InvalidInput(
            f"labels are {labels.dtype}, not whole numbers.",
            hint="Give a loss of your own for other labels.",
        )
    return labels.long() if whole else labels


def _cross_entropy(labels: Tensor) -> Callable[[Any, Tensor], Tensor]:
    """The default loss; all labels are looked at once, so that no batch has to be."""
    low, high = int(labels.min()), int(labels.max())

    def loss(outputs: Any, wanted: Tensor) -> Tensor:
        logits = logits_of(outputs)
        if logits.ndim != 2 or logits.shape[1] < 2 or not logits.is_floating_point():
            raise InvalidInput(
                f"the model gives outputs of shape {tuple(logits.shape)}; cross-entropy takes a "
                "logit for each of two classes or more.",
                hint="Give a loss of your own for other outputs.",
            )
        if low < 0 or high >= logits.shape[1]:
            raise InvalidInput(
                f"labels reach from {low} to {high}, and the model has {logits.shape[1]} outputs.",
                hint="Number the classes as in training.",
            )
        return functional.cross_entropy(logits, wanted, reduction="none")

    return loss


def _finite(norms: Tensor, place: int, examples: Sequence[int]) -> Tensor:
    bad = (~norms.isfinite()).nonzero().flatten()
    if len(bad):
        raise InvalidInput(
            f"the gradient of example {examples[int(bad[0])]} is NaN or infinite at checkpoint "
            f"{place}.",
            hint="Its weights may be damaged, or the inputs not as in training.",
        )
    return norms.cpu()
