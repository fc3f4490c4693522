"""The attack's scores of a run: planted against never-planted examples, or planted against twin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from remnant.measures import InstanceScores, instance_scores
from remnant.measures.forgetting.instance_scores import InstanceCalibration
from remnant.plans import InjectPlan, PoisonPlan
from remnant.probes import SIGNALS
from remnant.studies.shared.image_canaries import columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Sides = tuple[Floats, Floats]


def own_examples(plan: InjectPlan | PoisonPlan, examples: int) -> Flags:
    """Which examples each trial plants, shape ``(trials, examples)``."""
    own = np.zeros((plan.trials, examples), dtype=bool)
    for trial, row in enumerate(own):
        row[columns(plan, trial, controls=False)] = True
    return own


def usable_examples(own: Flags, copies: Ints) -> Flags:
    """Which examples can be compared inside each trial's model, shape ``(trials, examples)``.

    A never-planted example of which the model saw a near-copy says nothing. It is left out with the
    planted one, so that what near-copies have in common stays on neither side.

    Args:
        own: Which examples each trial planted.
        copies: As in ``RunScores``.
    """
    usable = np.ones_like(own)
    for planted, row in zip(own, usable, strict=True):
        apart = planted[copies[:, 0]] != planted[copies[:, 1]]
        row[copies[apart].ravel()] = False
    return usable


@dataclass(frozen=True, slots=True, eq=False)
class RunScores:
    """What one run's models say of all of its canaries and controls.

    Attributes:
        plan: Whose members they are.
        values: The attack's signal, higher = more likely seen: at the checkpoint before planting,
            then at each lag. Shape ``(1 + lags, members, examples)``.
        copies: Pairs of examples that are near-copies of one another, shape ``(pairs, 2)``, each
            in both orders.
        barred: Examples that no comparison inside a model may use, such as those that a
            disturbance trained on; None for none.
    """

    plan: InjectPlan | PoisonPlan
    values: Floats
    copies: Ints
    barred: Flags | None = None

    @classmethod
    def of(
        cls,
        plan: InjectPlan | PoisonPlan,
        signals: Floats,
        signal: str,
        copies: Ints,
        barred: Flags | None = None,
    ) -> RunScores:
        """Read the attack's signal, ``log-odds`` or ``loss``, out of all that were recorded."""
        name = "loss" if signal == "loss" else "log_odds"
        values = signals[:, :, SIGNALS.index(name)]
        return cls(plan, -values if name == "loss" else values, copies, barred)

    @property
    def own(self) -> Flags:
        """Which examples each trial planted, shape ``(trials, examples)``."""
        return own_examples(self.plan, self.values.shape[2])

    @property
    def usable(self) -> Flags:
        """Which examples say something in each trial's model, shape ``(trials, examples)``."""
        usable = usable_examples(self.own, self.copies)
        return usable if self.barred is None else usable & ~self.barred

    def clusters(self, examples: Ints) -> Ints:
        """The cluster of near-copies that each example belongs to, in the shape of ``examples``."""
        n = self.values.shape[2]
        pairs = (np.ones(len(self.copies)), (self.copies[:, 0], self.copies[:, 1]))
        graph = sparse.coo_array(pairs, shape=(n, n))
        labels = np.asarray(csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)
        return labels[examples]

    def instance(self, calibration: InstanceCalibration) -> InstanceScores:
        """Planted against never-planted examples inside each planted model.

        References are the twins and the A/A twins of the other trials.

        Raises:
            NotEnoughEvidence: A trial has no never-planted example that can be scored.
        """
        arms = [arm for arm in self.plan.arms if arm != "planted"]
        unplanted = np.stack([self._of(arm) for arm in arms], axis=2)
        return instance_scores(
            self._of("planted")[1:],
            own=self.own,
            unplanted=unplanted[1:],
            checkpoint=self._of("planted")[0],
            usable=self.usable,
            calibration=calibration,
        )

    def against_twin(
        self, calibration: str, *, arm: str = "planted", rows: Ints | None = None
    ) -> Sides:
        """Scores of the same examples in one arm and in the unplanted twin, the paper's comparison.

        Args:
            calibration: ``checkpoint``, ``references`` (the mean of the other trials' twins) or
                ``none``.
            arm: Whose scores the first side are.
            rows: Examples of each trial, shape ``(trials, n)``; its own canaries, if not given.
        """
        if rows is None:
            rows = np.stack([np.flatnonzero(row) for row in self.own])
        compared = self._compared(calibration)
        sides = [
            np.take_along_axis(self._of(name)[1:] - compared, rows[None], axis=2)
            for name in (arm, "twin")
        ]
        return sides[0], sides[1]

    def _of(self, arm: str) -> Floats:
        return self.values[:, self.plan.members_of(arm)]

    def _compared(self, calibration: str) -> Floats:
        """What the paper's comparison subtracts, shape ``(1 or lags, trials, examples)``."""
        twins = self._of("twin")
        if calibration == "none":
            return np.zeros((1, *twins.shape[1:]))
        if calibration == "checkpoint":
            return twins[:1]
        others = [np.delete(twins, trial, axis=1) for trial in range(self.plan.trials)]
        return np.stack([part[1:].mean(axis=1) for part in others], axis=1)
