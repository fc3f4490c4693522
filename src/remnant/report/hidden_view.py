"""What was done to see whether something is gone or only hidden, as the record holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remnant.errors import InvalidInput
from remnant.measures.hidden import READINGS
from remnant.report.curve import Curve, Point, read_curve

_KINDS = ("noise", "relearn")


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One disturbance, and the attack on the models after it.

    Attributes:
        kind: ``noise`` or ``relearn``.
        after: Success on the disturbed models, with its interval.
        rise_pvalue, after_pvalue: That success rose, and that it is above chance; both corrected.
        reading: ``comes back``, ``hidden``, ``still found`` or ``not found``.
        control: The same for the A/A twins, where there are any.
        test_accuracy: Of the disturbed models.
    """

    kind: str
    label: str
    after: Point
    rise_pvalue: float
    after_pvalue: float
    reading: str
    control: Point | None
    test_accuracy: float


@dataclass(frozen=True, slots=True)
class Hidden:
    """Attack success before and after each disturbance.

    Attributes:
        curve: What success is, and how it is printed; its one point is the undisturbed models.
        draws, neighbours: Noise draws of each scale; examples in the relearning.
    """

    curve: Curve
    disturbances: tuple[Disturbance, ...]
    draws: int
    neighbours: int
    method: str

    @property
    def before(self) -> Point:
        """Success on the undisturbed models."""
        return self.curve.start

    def of(self, kind: str) -> tuple[Disturbance, ...]:
        """The disturbances of one kind."""
        return tuple(one for one in self.disturbances if one.kind == kind)


@dataclass(frozen=True, slots=True)
class Scan:
    """Canaries that were lost at some checkpoints and found at a later one.

    Attributes:
        returned, chance_returned: How many came back, and how many where nothing was planted.
        lost: How many were lost at all.
        canaries, checkpoints: How many there are.
        excess, low, high: Share that came back beyond chance, with its interval.
        reference: Which models say what chance is.
    """

    canaries: int
    lost: int
    returned: int
    chance_returned: int
    checkpoints: int
    excess: float
    low: float
    high: float
    pvalue: float
    confidence: float
    reference: str

    @property
    def shows(self) -> bool:
        """Whether more came back than do by chance."""
        return self.pvalue <= 1.0 - self.confidence + 1e-12


def read_hidden(found: Mapping[str, Any]) -> Hidden:
    """Read the disturbances out of their JSON form.

    Raises:
        KeyError, TypeError, ValueError: Something is missing or of another kind.
    """
    shared = {name: found[name] for name in ("success", "fpr", "chance", "confidence", "trials")}
    ends = {name: [found[f"before{end}"]] for name, end in _ENDS.items()}
    rows = tuple(_disturbance(row) for row in found["disturbances"])
    if not rows:
        raise InvalidInput("it has no disturbance")
    return Hidden(
        curve=read_curve({"lags": [float(found["lag"])], **ends, **shared}, name="hidden"),
        disturbances=rows,
        draws=int(found["draws"]),
        neighbours=int(found["neighbours"]),
        method=str(found["method"]),
    )


_ENDS = {"value": "", "low": "_low", "high": "_high"}


def _disturbance(row: Mapping[str, Any]) -> Disturbance:
    kind, reading = str(row["kind"]), str(row["reading"])
    for name, value, known in (("kind", kind, _KINDS), ("reading", reading, READINGS)):
        if value not in known:
            raise InvalidInput(f"{name}={value!r} is not one of {', '.join(known)}")
    return Disturbance(
        kind=kind,
        label=str(row["label"]),
        after=_point(row, "after"),
        rise_pvalue=float(row["pvalue_rise"]),
        after_pvalue=float(row["pvalue_after"]),
        reading=reading,
        control=_point(row, "aa") if "aa" in row else None,
        test_accuracy=float(row["test_accuracy"]),
    )


def _point(row: Mapping[str, Any], name: str) -> Point:
    return Point(0.0, *(float(row[f"{name}{end}"]) for end in _ENDS.values()))


def read_scan(found: Mapping[str, Any]) -> Scan:
    """Read the scan of checkpoints out of its JSON form.

    Raises:
        KeyError, TypeError, ValueError: Something is missing or of another kind.
    """
    return Scan(
        **{
            name: int(found[name])
            for name in ("canaries", "lost", "returned", "chance_returned", "checkpoints")
        },
        excess=float(found["excess"]),
        low=float(found["excess_low"]),
        high=float(found["excess_high"]),
        pvalue=float(found["pvalue"]),
        confidence=float(found["confidence"]),
        reference=str(found["reference"]),
    )
