r"""Attack scores of instance memory: planted against never-planted examples inside one model.

A model that was planted with examples also learns their *kind*: that labels may be wrong, that such
images occur. A comparison of this model with a twin that skipped the planting takes this for
memory. So both sides are scored in the same model here: the examples that it was planted with, and
examples that were drawn the same way and planted in other trials' models, or in none. Which
examples a trial plants is drawn at random, so without memory of single examples the two sides are
exchangeable.

An example that every model finds easy scores high whether it was used or not. What models pay for
it that did not see it is therefore taken away: the *calibration* says whose models these are, and
with it who the attacker is.

==========  =============================  ====================================================
calibration score                          the attacker has
==========  =============================  ====================================================
references  (x - m) / s                    models of his own, trained alike without the examples
checkpoint  x - x before planting          an earlier checkpoint of the same training
none        x                              the model alone
influence   x - x in the trial's own twin  nothing: nobody has this twin, so this is no attack
==========  =============================  ====================================================

x is the model's signal, such as log-odds; m and s are mean and standard deviation of the same
example's signal in the reference models at the same step. Under four independent trainings s is
not known well enough, and x - m is the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]
Calibration = Literal["logit", "loss", "none"]


def calibrated_scores(
    *,
    signal: ArrayLike,
    checkpoint_signal: ArrayLike | None = None,
    method: Calibration = "logit",
) -> Floats:
    """Turn a model's signal into attack scores, higher = more likely seen.

    An easy example has a high log-odds whether it was seen or not; subtracting what the common
    checkpoint already gave it leaves what later training added.

    ========  ==================  =====================================
    method    signal              score
    ========  ==================  =====================================
    logit     log-odds, nats      log-odds minus the checkpoint's
    loss      loss, nats          the checkpoint's loss minus the loss
    none      log-odds, nats      the log-odds themselves
    ========  ==================  =====================================

    Args:
        signal: Log-odds (``log_odds``) or losses (``cross_entropy``), by ``method``; any shape.
        checkpoint_signal: The same quantity at the checkpoint; its shape broadcasts to the
            signal's (one checkpoint serves all lags). Must be absent for "none".
        method: Which calibration.

    Guarantees:
        * A constant added to signal and checkpoint of an example leaves its score unchanged
          (logit, loss).

    Raises:
        InvalidInput: NaN or infinite input, an unknown method, a checkpoint that is missing,
            superfluous, or of a shape that does not broadcast.

    Example:
        >>> calibrated_scores(signal=[2.0, 1.0], checkpoint_signal=[0.5, 1.5]).tolist()
        [1.5, -0.5]
    """
    faults: list[str] = []
    if method not in get_args(Calibration):
        faults.append(f"method={method!r} is not one of {', '.join(get_args(Calibration))}")
    now = read_floats("signal", signal, None, faults)
    before = None
    if checkpoint_signal is not None:
        before = read_floats("checkpoint_signal", checkpoint_signal, None, faults)
        if method == "none":
            faults.append("method='none' takes no checkpoint_signal")
    elif method != "none":
        faults.append(f"method={method!r} needs the checkpoint_signal")
    require(faults)
    if now is None:
        raise InvalidInput("signal must be an array of numbers.")
    if before is None:
        return now.copy()
    try:
        before = np.broadcast_to(before, now.shape)
    except ValueError:
        raise InvalidInput(
            f"checkpoint_signal has shape {before.shape}, which does not broadcast to the "
            f"signal's {now.shape}."
        ) from None
    return now - before if method == "logit" else before - now


_LEAST = 0.01  # of the median deviation: the least by which a score is divided


def against_references(values: Floats, references: Floats, *, deviation: bool) -> Floats:
    """Return scores less their mean over reference models, or also divided by their deviation.

    Args:
        values: Scores, shape ``(..., examples)``, higher = more likely seen.
        references: The same scores in models that saw none of the examples, shape ``(models, ...,
            examples)``: one more leading axis than ``values``. An axis between may have length 1.
        deviation: Divide by the standard deviation over models (``ddof=1``). One that is less than
            a hundredth of the median over examples is raised to it; where that median is 0, one
            that is less than 1 is raised to 1.

    Guarantees:
        * A constant added to an example's score in all models, the attacked one too, changes
          nothing; with ``deviation``, neither does a positive factor on all scores.
        * The order of the reference models does not matter.

    Raises:
        InvalidInput: The shapes do not fit, there is no reference model, there is one alone and
            ``deviation`` is asked for, or a reference score is not finite.

    Example:
        >>> against_references(np.array([3.0, 4.0]), np.array([[0.0, 1.0], [2.0, 3.0]]),
        ...                    deviation=False).tolist()
        [2.0, 2.0]
    """
    per_model = references.shape[1:]
    fits = references.ndim == values.ndim + 1 >= 2 and per_model[-1] == values.shape[-1]
    if not fits or any(n not in (1, m) for n, m in zip(per_model, values.shape, strict=True)):
        raise InvalidInput(
            f"references have shape {references.shape} and values have shape {values.shape}.",
            hint="Give references one more axis, the models, before those of values.",
        )
    if references.shape[0] < 1 + deviation:
        least = "two reference models" if deviation else "one reference model"
        raise InvalidInput(f"{references.shape[0]} reference models are given; it takes {least}.")
    if not np.isfinite(references).all():
        raise InvalidInput("references holds values that are not finite.")
    less_mean = np.asarray(values - references.mean(axis=0))
    if not deviation:
        return less_mean
    # Equal numbers have a computed deviation of a rounding error, so it is set to 0 for them.
    equal = np.ptp(references, axis=0) == 0.0
    spread = np.where(equal, 0.0, references.std(axis=0, ddof=1))
    median = np.median(spread, axis=-1, keepdims=True)
    return np.asarray(less_mean / np.maximum(spread, np.where(median > 0.0, _LEAST * median, 1.0)))


Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
InstanceCalibration = Literal["references", "checkpoint", "none", "influence"]
FEW_REFERENCES = 4  # independent trainings, from which on scores are divided by their deviation
_REMEDY = {
    "planted": "Mark at least one planted example of every trial as usable.",
    "never-planted": "Deal examples to more trials, or score controls that no trial planted.",
}


@dataclass(frozen=True, slots=True, eq=False)
class InstanceScores:
    """Scores of planted and never-planted examples, higher = more likely seen.

    Attributes:
        seen: Of the examples that each planted model saw, shape ``(lags, trials, n_seen)``.
        unseen: Of never-planted ones in the same models, shape ``(lags, trials, n_unseen)``.
        control_seen, control_unseen: The same examples in each trial's first unplanted twin, which
            saw none of them: success must stay at chance there. None where no twin was given, and
            for "influence" of trials with one twin.
        groups: Which example each score belongs to, a pair of arrays ``(trials, n)``, for
            ``forgetting_curve(groups=...)``: an example that is planted in one trial and unseen in
            others is not taken for one that the trials share.
        scores: All examples in each planted model, shape ``(lags, trials, examples)``.
        references: How many models a score is compared with at the last lag; 0 without references.
        references_at: The same at each lag: models that are one model there, such as twins that
            have not parted yet, count once.
        calibration: Which one.
    """

    seen: Floats
    unseen: Floats
    control_seen: Floats | None
    control_unseen: Floats | None
    groups: tuple[Ints, Ints]
    scores: Floats
    references: int
    references_at: tuple[int, ...]
    calibration: InstanceCalibration

    def __repr__(self) -> str:
        """One line: how many scores, and whose."""
        lags, trials, seen = self.seen.shape
        return (
            f"InstanceScores(lags={lags}, trials={trials}, seen={seen}, "
            f"unseen={self.unseen.shape[2]}, references={self.references}, "
            f"calibration={self.calibration!r})"
        )


def instance_scores(
    planted: ArrayLike,
    *,
    own: ArrayLike,
    unplanted: ArrayLike | None = None,
    references: ArrayLike | None = None,
    checkpoint: ArrayLike | None = None,
    usable: ArrayLike | None = None,
    calibration: InstanceCalibration = "references",
) -> InstanceScores:
    """Score examples inside planted models: those that were planted against those that never were.

    Args:
        planted: Signal of every example in each trial's planted model, such as log-odds; higher =
            more likely seen. Shape ``(lags, trials, examples)``.
        own: Which examples each trial planted, ``(trials, examples)``, equally many in each.
        unplanted: The same signal in models that saw none of the examples, grouped by trial,
            ``(lags, trials, twins, examples)``. They are the references, each trial's own twins
            left out, and the negative control.
        references: Reference models from outside, ``(lags, models, examples)``, in place of
            ``unplanted``.
        checkpoint: The signal before planting, ``(trials, examples)``.
        usable: False for examples that say nothing in a trial's model: near-copies of its own, and
            what this model or a reference saw. Shape ``(trials, examples)``.
        calibration: "references", "checkpoint", "none" or "influence".

    Guarantees:
        * A constant added to an example's signal in all models changes no score (references,
          checkpoint, influence).
        * A trial's own twins never enter its references.
        * Which examples are left out where trials have unequally many does not depend on scores.

    Raises:
        InvalidInput: Faults in arrays, all listed at once; what the calibration needs is missing.
        NotEnoughEvidence: No never-planted example, or no reference model.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> own = np.repeat(np.eye(6, dtype=bool), 20, axis=1)  # 6 trials of 20 examples each
        >>> planted = rng.normal(size=(2, 6, 120)) + 2.0 * own
        >>> scores = instance_scores(planted, own=own, unplanted=rng.normal(size=(2, 6, 2, 120)))
        >>> scores.seen.shape, scores.unseen.shape, scores.references
        ((2, 6, 20), (2, 6, 100), 10)
    """
    faults: list[str] = []
    if calibration not in get_args(InstanceCalibration):
        known = ", ".join(get_args(InstanceCalibration))
        faults.append(f"calibration={calibration!r} is not one of {known}")
    signal = read_floats("planted", planted, 3, faults, axes="(lags, trials, examples)")
    if signal is None or faults:
        require(faults)
        raise InvalidInput("planted must be an array of numbers.")
    lags, trials, examples = signal.shape
    mine = _flags("own", own, (trials, examples), faults)
    use = _flags("usable", usable, (trials, examples), faults)
    twins = _given("unplanted", unplanted, (lags, trials, None, examples), faults)
    outside = _given("references", references, (lags, None, examples), faults)
    before = _given("checkpoint", checkpoint, (trials, examples), faults)
    if mine is not None and np.unique(mine.sum(axis=1)).size > 1:
        sizes = ", ".join(map(str, mine.sum(axis=1)))
        faults.append(f"own has unequally many examples in the trials ({sizes})")
    faults += _missing(calibration, unplanted, references, checkpoint)
    require(faults)
    if mine is None:
        raise InvalidInput("own must say for each trial which examples it planted.")
    seen, unseen = _sides(mine, np.ones_like(mine) if use is None else use)
    compared = _Compared.of(calibration, trials, twins, outside, before)
    scores = compared.calibrated(signal)
    control = None
    if twins is not None and calibration != "influence":
        control = compared.calibrated(twins[:, :, 0])
    elif twins is not None and twins.shape[2] > 1:
        control = twins[:, :, 0] - twins[:, :, 1]
    counts = compared.counts(lags) if calibration == "references" else (0,) * lags
    return InstanceScores(
        seen=_taken(scores, seen),
        unseen=_taken(scores, unseen),
        control_seen=None if control is None else _taken(control, seen),
        control_unseen=None if control is None else _taken(control, unseen),
        groups=(seen, unseen),
        scores=scores,
        references=counts[-1],
        references_at=counts,
        calibration=calibration,
    )


def _flags(
    name: str, given: ArrayLike | None, shape: tuple[int, ...], faults: list[str]
) -> Flags | None:
    if given is None:
        return None
    flags = np.asarray(given)
    if flags.dtype != np.bool_:
        faults.append(f"{name} holds {flags.dtype} and not truth values (bool)")
    elif flags.shape != shape:
        faults.append(f"{name} has the shape {flags.shape}, not {shape} (trials, examples)")
    else:
        return flags
    return None


def _given(
    name: str, given: ArrayLike | None, shape: tuple[int | None, ...], faults: list[str]
) -> Floats | None:
    """An array of numbers of this shape, in which None stands for any length from 1."""
    if given is None:
        return None
    wanted = ", ".join("models" if want is None else str(want) for want in shape)
    read = read_floats(name, given, len(shape), faults, axes=f"({wanted})")
    if read is None:
        return None
    wrong = any(
        have < 1 if want is None else have != want
        for have, want in zip(read.shape, shape, strict=True)
    )
    if wrong:
        faults.append(f"{name} has the shape {read.shape}, not ({wanted})")
        return None
    return read


def _missing(
    calibration: str,
    unplanted: ArrayLike | None,
    references: ArrayLike | None,
    checkpoint: ArrayLike | None,
) -> list[str]:
    """What the calibration needs and was not given; a faulty array is given."""
    needs = {
        "references": (
            unplanted is not None or references is not None,
            "unplanted or references",
        ),
        "checkpoint": (checkpoint is not None, "checkpoint"),
        "influence": (unplanted is not None, "unplanted"),
    }
    there, what = needs.get(calibration, (True, ""))
    return [] if there else [f"calibration={calibration!r} needs {what}"]


def _sides(own: Flags, usable: Flags) -> tuple[Ints, Ints]:
    """Which examples are the seen and the unseen side of each trial, equally many in all."""
    made = []
    for side, what in ((own, "planted"), (~own, "never-planted")):
        rows = [np.flatnonzero(row) for row in side & usable]
        least = min(row.size for row in rows)
        if least == 0:
            raise NotEnoughEvidence(
                f"a trial has no {what} example that can be scored.", hint=_REMEDY[what]
            )
        spread = [row[np.linspace(0, row.size - 1, least).round().astype(int)] for row in rows]
        made.append(np.stack(spread).astype(np.int64))
    return made[0], made[1]


def _taken(scores: Floats, which: Ints) -> Floats:
    return np.take_along_axis(scores, which[None], axis=2)


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """What each trial's scores are compared with.

    Attributes:
        models: Of each trial, shape ``(lags or 1, models, examples)``; empty for no calibration.
        deviation: Whether scores are divided by the models' deviation.
    """

    models: list[Floats]
    deviation: bool = False

    @classmethod
    def of(
        cls,
        calibration: str,
        trials: int,
        twins: Floats | None,
        outside: Floats | None,
        before: Floats | None,
    ) -> _Compared:
        """Choose the models; ``_missing`` has seen that they are there."""
        if calibration == "checkpoint" and before is not None:
            return cls([row[None, None] for row in before])
        if calibration == "influence" and twins is not None:
            return cls([twins[:, trial, :1] for trial in range(trials)])
        if calibration == "references" and outside is not None:
            return cls([outside] * trials, deviation=outside.shape[1] >= FEW_REFERENCES)
        if calibration == "references" and twins is not None:
            if trials < 2:
                raise NotEnoughEvidence(
                    "one trial has no other trials' twins to be compared with.",
                    hint="Train more trials, or pass references or checkpoint.",
                )
            lags, _, _, examples = twins.shape
            others = [np.delete(twins, trial, axis=1) for trial in range(trials)]
            models = [part.reshape(lags, -1, examples) for part in others]
            return cls(models, deviation=trials - 1 >= FEW_REFERENCES)
        return cls([])

    def calibrated(self, signal: Floats) -> Floats:
        """The scores of one model a trial, ``(lags, trials, examples)``."""
        if not self.models:
            return signal.copy()
        made = [
            against_references(
                signal[:, trial], np.moveaxis(models, 1, 0), deviation=self.deviation
            )
            for trial, models in enumerate(self.models)
        ]
        return np.stack(made, axis=1)

    def counts(self, lags: int) -> tuple[int, ...]:
        """How many different models there are at each lag; of the trials, the fewest."""
        return tuple(
            min(len({row.tobytes() for row in models[lag] + 0.0}) for models in self.models)
            for lag in range(lags)
        )
