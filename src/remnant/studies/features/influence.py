"""How strongly images pull on the weights in training, with and without a patch on them.

Self-influence is summed over checkpoints that are evenly spread down the training loss. Which those
are is known at the end only. So gradient norms and losses are read at moments that thin out as
training goes on, no weights are kept, and the moments are chosen afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from remnant.data import Images
from remnant.errors import NotEnoughEvidence
from remnant.population import Population
from remnant.probes import label_signals
from remnant.probes.influence import self_influence
from remnant.probes.influence.checkpoints import evenly_down
from remnant.studies.shared.classifiers import SomeMembers

Floats = NDArray[np.float64]
_GROWTH = 1.25  # of the updates from one moment to the next
_BATCH = 1000


def influence_steps(*, last: int) -> tuple[int, ...]:
    """Return after how many updates losses and gradients are read: 0 first, then ever rarer.

    From one moment to the next the updates grow by a quarter, and by one at least.

    Example:
        >>> influence_steps(last=12)
        (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)
    """
    steps, step = {0, last}, 1.0
    while step < last:
        steps.add(round(step))
        step = max(step * _GROWTH, step + 1.0)
    return tuple(sorted(steps))


def chosen_moments(losses: Floats, *, count: int, drop: float) -> list[int]:
    """Return which moments are the checkpoints: the j-th is nearest to j/count of the drop.

    Args:
        losses: Of the moments, the first before training.
        count: Checkpoints.
        drop: Share of the whole drop at the last of them.

    Guarantees:
        * Losses fall from one to the next, and the moment before training is none of them.

    Raises:
        NotEnoughEvidence: The loss never fell.

    Example:
        >>> chosen_moments(np.array([2.0, 1.5, 1.6, 1.0, 0.5, 0.0, 0.0]), count=2, drop=0.5)
        [1, 3]
    """
    lows = [
        place for place in range(1, len(losses)) if losses[place] < losses[:place].min() - 1e-12
    ]
    if not lows:
        raise NotEnoughEvidence(
            "the training loss has not fallen below its first value.",
            hint="Train longer, or with another learning rate.",
        )
    places = evenly_down(losses[lows], float(losses[0]), float(losses[lows[-1]]), count, drop)
    return [lows[place] for place in places]


def summed(losses: Floats, norms: Floats, rates: Floats, *, count: int, drop: float) -> Floats:
    """Return the self-influence of some examples on one model.

    Args:
        losses: ``(moments,)``.
        norms: Squared gradient norms, ``(moments, examples)``.
        rates: Learning rates at the moments.
        count, drop: As for ``chosen_moments``.
    """
    chosen = chosen_moments(losses, count=count, drop=drop)
    return np.asarray((rates[chosen, None] * norms[chosen]).sum(axis=0))


class InfluenceProbe:
    """Reads the training loss and some examples' squared gradient norms off the first members.

    A member that has not changed since it was last read, as after it stopped early, is not read
    again.

    Args:
        make_model: A model to put weights into.
        sample: Training examples on which the loss is read.
        examples: For each of the first members, what the gradients are of.
    """

    def __init__(
        self, make_model: Callable[[], nn.Module], *, sample: Images, examples: Sequence[Images]
    ) -> None:
        self._make, self._sample, self._examples = make_model, sample, list(examples)
        self._last: dict[int, tuple[tuple[float, ...], Floats]] = {}

    def __call__(self, models: Population) -> Floats:
        """Return the losses, then all norms one member after another: one row of numbers."""
        members = SomeMembers(models, slice(len(self._examples)))
        losses = label_signals(members, self._sample.images, self._sample.labels)[:, 0].mean(1)
        module = self._make().to(models.device)
        norms = []
        for member, examples in enumerate(self._examples):
            state = models.state_dict(member)
            key = tuple(float(tensor.double().sum()) for tensor in state.values())
            if self._last.get(member, ((), 0))[0] != key:
                influence = self_influence(
                    module,
                    torch.from_numpy(examples.images).to(models.device),
                    examples.labels,
                    checkpoints=[(state, 1.0)],
                    batch=_BATCH,
                )
                self._last[member] = key, influence
            norms.append(self._last[member][1])
        return np.concatenate([losses.cpu().numpy(), *norms])

    def influence(self, read: Floats, rates: Floats, *, count: int, drop: float) -> list[Floats]:
        """Return the self-influence of every member's examples.

        Args:
            read: What was read at all moments, ``(moments, ...)``.
            rates: The learning rates at the moments.
            count, drop: As for ``chosen_moments``.
        """
        first = len(self._examples)
        influence = []
        for member, examples in enumerate(self._examples):
            norms = read[:, first : first + len(examples)]
            influence.append(summed(read[:, member], norms, rates, count=count, drop=drop))
            first += len(examples)
        return influence
