"""Remedies that change trained models: coarser weights, fine-tuning, gradient ascent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import PlanError
from remnant.plans.plan import ORDER
from remnant.plans.schedule import Order
from remnant.population import Population
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.choices.remedies import RemedySettings
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import language_model_maker

_REMEDY, _RELEARNT = 1, 2  # orders of the text; that of the training itself has 0
Weights = dict[str, Tensor]


def changed_models(
    settings: RemedySettings,
    run: PreparedVariant,
    members: slice,
    population: Population,
    execution: Execution,
) -> Population:
    """Return the models of a run after a remedy.

    Args:
        settings: A remedy that changes trained models.
        run: The training as planned.
        members: The places of its models in ``population``.
        population: The trained models, which stay as they are.
        execution: Where models compute.
    """
    states = [population.state_dict(member) for member in range(members.start, members.stop)]
    coarse = _coarser(settings)
    if coarse is not None:
        names = {
            name for name, _ in language_model_maker(run.study, run.planted)().named_parameters()
        }
        states = [
            {name: coarse(tensor) if name in names else tensor for name, tensor in state.items()}
            for state in states
        ]
    made = _population(run, states, execution)
    if settings.kind == "fine-tuning":
        _fit(made, run, clean_rows(run, settings.steps, _REMEDY), execution, settings.lr)
    elif settings.kind == "ascent":
        rows = planted_rows(run, settings.steps)
        _fit(made, run, rows, execution, settings.lr, maximize=True)
    return made


def relearnt_models(
    settings: RemedySettings, run: PreparedVariant, population: Population, execution: Execution
) -> Population:
    """Return models after a remedy and some more clean steps, in the way of the training.

    Args:
        settings: The remedy, with the steps in ``relearn``.
        run: The training as planned.
        population: Its models after the remedy, which stay as they are.
        execution: Where models compute.
    """
    states = [population.state_dict(member) for member in range(len(population))]
    made = _population(run, states, execution)
    _fit(made, run, clean_rows(run, settings.value("relearn"), _RELEARNT), execution, None)
    return made


def rounded_to_levels(tensor: Tensor, *, levels: int) -> Tensor:
    """Round a tensor to ``levels`` evenly spaced values from its smallest to its largest.

    Guarantees:
        * No weight moves by more than half of the distance between two levels.
        * The smallest and the largest weight stay, and so does a constant tensor.

    Example:
        >>> rounded_to_levels(torch.tensor([0.0, 0.4, 1.0]), levels=3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    low, high = tensor.min(), tensor.max()
    if not bool(high > low):
        return tensor.clone()
    step = (high - low) / (levels - 1)
    return torch.clamp(low + torch.round((tensor - low) / step) * step, max=high)


def rounded_to_int8(tensor: Tensor) -> Tensor:
    """Round a tensor to 255 values around 0: one scale for each row, or one for a vector.

    A row of a matrix is what one unit reads (symmetric, per channel). Rows of zeros stay.

    Guarantees:
        * No weight moves by more than 1/254 of the largest magnitude of its row.
    """
    flat = tensor.reshape(len(tensor), -1) if tensor.ndim > 1 else tensor.reshape(1, -1)
    scale = flat.abs().amax(dim=1, keepdim=True) / 127.0
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return (torch.round(flat / scale) * scale).reshape(tensor.shape)


def pruned(tensor: Tensor, *, share: float) -> Tensor:
    """Set a share of the weights of a matrix to 0, those of the smallest magnitude.

    Vectors, such as biases, stay. Of n weights the share is rounded to a whole number.

    Example:
        >>> pruned(torch.tensor([[1.0, -2.0], [0.5, 4.0]]), share=0.5)
        tensor([[ 0., -2.],
                [ 0.,  4.]])
    """
    if tensor.ndim < 2:
        return tensor.clone()
    many = round(share * tensor.numel())
    smallest = tensor.abs().flatten().argsort(stable=True)[:many]
    made = tensor.flatten().clone()
    made[smallest] = 0.0
    return made.reshape(tensor.shape)


def clean_rows(run: PreparedVariant, steps: int | None, use: int) -> NDArray[np.int64]:
    """Return rows of clean text for each member, ``(steps, members, batch)``; shuffled epochs.

    Args:
        run: Whose members these are; those of a trial have the same rows.
        steps: How many.
        use: What the rows are for, so that no two uses have the same order.
    """
    order = Order(
        keys=[(run.plan.seed, ORDER, trial, use) for trial in range(run.plan.trials)],
        pool=run.planted.examples,
        batch=run.plan.batch,
        sampling="epoch",
    )
    rows = np.stack([order.rows(step) for step in range(steps or 0)])
    return np.repeat(rows, len(run.plan.arms), axis=1)


def planted_rows(run: PreparedVariant, steps: int | None) -> NDArray[np.int64]:
    """Return the planted windows of each member's trial, ``(steps, members, rows)``.

    Each step has all windows of the trial, or as many as a batch, in turn.
    """
    copies, many = run.plan.copies, min(run.plan.copies, run.plan.batch)
    places = (np.arange((steps or 0) * many) % copies).reshape(-1, 1, many)
    first = run.planted.examples + np.arange(run.plan.trials) * copies
    rows = places + first[None, :, None]
    return np.repeat(rows, len(run.plan.arms), axis=1)


def _coarser(settings: RemedySettings) -> Callable[[Tensor], Tensor] | None:
    if settings.kind == "levels":
        return partial(rounded_to_levels, levels=settings.value("levels"))
    if settings.kind == "int8":
        return rounded_to_int8
    if settings.kind == "pruning":
        return partial(pruned, share=settings.share or 0.0)
    return None


def _population(run: PreparedVariant, states: list[Weights], execution: Execution) -> Population:
    return Population(
        language_model_maker(run.study, run.planted),
        seeds=run.plan.seeds,
        start=states,
        dropout_seeds=run.plan.dropout_seeds,
        noise_seeds=run.plan.noise_seeds,
        device=execution.device,
        precision=run.plan.precision,
    )


def _fit(
    population: Population,
    run: PreparedVariant,
    rows: NDArray[np.int64],
    execution: Execution,
    lr: float | None,
    **switches: Any,
) -> None:
    """Train models further: the training's optimizer and clipping, at a constant rate."""
    training = run.study.training
    if training.optimizer.startswith("dp-"):
        raise PlanError(
            f"training.optimizer={training.optimizer!r}: models that were trained in private are "
            "not trained further here.",
            hint="Leave out the remedies fine-tuning and ascent.",
        )
    options = dict(training.options) | ({} if lr is None else {"lr": lr}) | switches
    population.fit(
        run.planted.store[:, :-1],
        run.planted.store[:, 1:],
        rows,
        optimizer=training.optimizer,
        clip=training.clip,
        compiled=execution.compiled,
        **options,
    )
