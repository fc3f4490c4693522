"""Which checkpoints of a training self-influence is summed over: evenly down the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.errors import InvalidInput, NotEnoughEvidence, require


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    step: int
    level: float
    rate: float
    state: dict[str, Tensor]


class InfluenceCheckpoints:
    """Keeps weights while a model is trained, evenly spread over the first part of the loss's drop.

    Where the training will end is not known on the way. So ``after`` copies the weights whenever
    the smoothed loss has reached a new low, far enough below the last copy; when there are more
    than ``keep`` of them, the one whose neighbours are closest is dropped. ``checkpoints`` then
    chooses: the j-th of ``count`` is the copy nearest to where j/count of ``drop`` times the whole
    drop was gone.

    Args:
        count: Checkpoints to choose; 10 in the paper.
        drop: Share of the whole drop at the last of them; 95 % in the paper.
        smooth: Steps over which losses are averaged, the older the less.
        keep: Copies of the weights, on the CPU, that there are at the most; three times ``count``
            by default.

    Guarantees:
        * ``after`` asks the model nothing; copies do not change as training goes on.
        * Steps rise and smoothed losses fall from one checkpoint to the next.
        * Where the smoothed loss falls by less than 1/keep of the drop a step, each checkpoint is
          within 2/keep of the whole drop from where it should be.

    Raises:
        InvalidInput: Settings out of range.

    Example:
        >>> model = nn.Linear(2, 2)
        >>> hook = InfluenceCheckpoints(count=3)
        >>> for step in range(200):
        ...     hook.after(step, 2.0 * 0.97**step, model, lr=0.1)
        >>> [len(hook.checkpoints), hook.steps[0] < hook.steps[1] < hook.steps[2]]
        [3, True]
    """

    def __init__(
        self, count: int = 10, *, drop: float = 0.95, smooth: int = 10, keep: int | None = None
    ) -> None:
        keep = 3 * count if keep is None else keep
        faults = [
            f"{name}={given!r} is not a whole number of at least 1"
            for name, given in (("count", count), ("smooth", smooth), ("keep", keep))
            if isinstance(given, bool) or not isinstance(given, int) or given < 1
        ]
        if isinstance(drop, bool) or not isinstance(drop, int | float) or not 0.0 < drop <= 1.0:
            faults.append(f"drop={drop!r} is not above 0 and at most 1")
        if not faults and keep < count:
            faults.append(f"keep={keep} is fewer than count={count}")
        require(faults)
        self._count, self._drop, self._keep = count, float(drop), keep
        self._share = 1.0 / smooth
        self._sum = self._weight = 0.0
        self._start = self._low = math.inf
        self._last = -1
        self._kept: list[_Kept] = []

    def after(self, step: int, loss: float | Tensor, model: nn.Module, lr: float) -> None:
        """Take a step's loss, and copy the weights if it has fallen far enough.

        Args:
            step: Its number; steps come in order.
            loss: The mean of its batch, as computed for the update.
            model: After the update.
            lr: The learning rate of the step.

        Raises:
            InvalidInput: No torch module, a step before the last one, a loss that is NaN or
                infinite, a learning rate that is negative, NaN or infinite.
        """
        if isinstance(step, bool) or not isinstance(step, int | np.integer):
            raise InvalidInput(f"step={step!r} is not a whole number.")
        if not isinstance(model, nn.Module):
            raise InvalidInput(f"model is a {type(model).__name__}, not a torch module.")
        number, rate = _number("loss", loss, step), _number("learning rate", lr, step)
        if rate < 0.0:
            raise InvalidInput(f"the learning rate {rate:g} of step {step} is negative.")
        if step <= self._last:
            raise InvalidInput(f"step {step} comes after step {self._last}.")
        self._last = step
        self._sum += self._share * (number - self._sum)
        self._weight += self._share * (1.0 - self._weight)
        level = self._sum / self._weight
        if self._start == math.inf:
            self._start = self._low = level
        if level >= self._low:
            return
        self._low = level
        above = self._kept[-1].level if self._kept else self._start
        if above - level < (self._start - level) / self._keep:
            return
        state = {
            name: tensor.detach().to("cpu", copy=True)
            for name, tensor in model.state_dict().items()
            if isinstance(tensor, Tensor)
        }
        self._kept.append(_Kept(step, level, rate, state))
        if len(self._kept) > self._keep:
            self._thin()

    def _thin(self) -> None:
        levels = np.array([self._start, *(copy.level for copy in self._kept)])
        del self._kept[int(np.argmin(levels[:-2] - levels[2:]))]

    @property
    def checkpoints(self) -> list[tuple[dict[str, Tensor], float]]:
        """State dicts with their learning rates, the earliest first, for ``self_influence``.

        They are fewer than ``count`` where the loss fell within fewer steps.

        Raises:
            NotEnoughEvidence: The loss has not fallen.
        """
        return [(copy.state, copy.rate) for copy in self._chosen()]

    @property
    def steps(self) -> tuple[int, ...]:
        """After which steps the checkpoints were taken."""
        return tuple(copy.step for copy in self._chosen())

    @property
    def losses(self) -> tuple[float, ...]:
        """The smoothed losses of these steps."""
        return tuple(copy.level for copy in self._chosen())

    def _chosen(self) -> list[_Kept]:
        if not self._kept:
            raise NotEnoughEvidence(
                f"the loss has not fallen below its first value up to step {self._last}.",
                hint="Train on, or give checkpoints of your own.",
            )
        levels = np.array([copy.level for copy in self._kept])
        places = evenly_down(levels, self._start, self._low, self._count, self._drop)
        return [self._kept[place] for place in places]


def evenly_down(
    levels: NDArray[np.float64], start: float, low: float, count: int, drop: float
) -> NDArray[np.int64]:
    """Return which falling losses are evenly spread over the first part of the whole drop.

    Args:
        levels: Losses to choose from.
        start, low: The loss before training, and the lowest.
        count: The j-th of so many is nearest to j/count of ``drop``.
        drop: Share of the whole drop at the last of them.
    """
    shares = drop * np.arange(1, count + 1) / count
    targets = start - shares * (start - low)
    return np.unique(np.abs(levels - targets[:, None]).argmin(axis=1))


def _number(what: str, given: float | Tensor, step: int) -> float:
    try:
        value = float(given.detach() if isinstance(given, torch.Tensor) else given)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput(f"the {what} of step {step} is not one number.") from None
    if not math.isfinite(value):
        raise InvalidInput(
            f"the {what} of step {step} is NaN or infinite.", hint="The training has diverged."
        )
    return value
