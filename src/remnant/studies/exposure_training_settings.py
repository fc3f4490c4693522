"""What a study of training choices has of its own: secret, measurement, what is followed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from remnant.canaries import Template
from remnant.errors import InvalidInput, PlanError, require
from remnant.studies.exposure_settings import METHODS
from remnant.studies.settings import among, number, whole_number

FOLLOWED = ("sampled", "auto")


@dataclass(frozen=True, kw_only=True)
class TrainedSecretSettings:
    """What is planted, and what of it whoever looks for it knows.

    Attributes:
        template: Planted, its holes filled at random.
        scored: The same holes in another context, by which exposure is measured; the template
            itself, if not given. Variants that differ in this alone are trained once.
    """

    template: str = "API_KEY = {digits:6}"
    scored: str | None = None

    def __post_init__(self) -> None:
        made = []
        for name in ("template", "scored"):
            pattern = getattr(self, name)
            if pattern is None and name == "scored":
                continue
            if "{words" in str(pattern):
                raise PlanError(
                    f"secret.{name} has a {{words:n}} hole, which this question does not fill.",
                    hint='Use digits, letters or a choice, or question = "exposure".',
                )
            try:
                made.append(Template(pattern))
            except (InvalidInput, TypeError) as fault:
                raise PlanError(f"secret.{name} is no template: {fault}") from fault
        if made[0].slots != made[-1].slots:
            raise PlanError(
                "secret.scored has other holes than secret.template.",
                hint="Change the text before the first hole and after the last alone.",
            )

    @property
    def planted(self) -> Template:
        """What is planted."""
        return Template(self.template)

    @property
    def known(self) -> Template:
        """What exposure is measured by."""
        return Template(self.template if self.scored is None else self.scored)


@dataclass(frozen=True, kw_only=True)
class TrainedMeasureSettings:
    """How exposure is measured when training is over.

    Attributes:
        method: ``auto``, ``exact`` or ``sampled``.
        references: Secrets sampled for each trial, for sampled exposure and the skew-normal law.
            With 2 000 or more, intervals of means up to 6 bits hold nearly as if all ranks were
            exact.
        max_nodes: Of the walk for the rank, and of an extraction.
        extract: Whether the likeliest secrets, as many as there are canaries, are searched for.
        windows: Of the text kept back, and of the text trained on, by which models are judged.
        confidence: Of the intervals, and of the verdict.
    """

    method: str = "auto"
    references: int = 2_000
    max_nodes: int = 500_000
    extract: bool = False
    windows: int = 256
    confidence: float = 0.95

    def __post_init__(self) -> None:
        faults = among("measure.method", self.method, METHODS)
        faults += whole_number("measure.references", self.references, 0)
        faults += whole_number("measure.max_nodes", self.max_nodes, 1)
        faults += whole_number("measure.windows", self.windows, 1)
        if not isinstance(self.extract, bool):
            faults.append(f"measure.extract={self.extract!r} is not true or false")
        if not number(self.confidence) or not 0 < self.confidence < 1:
            faults.append(f"measure.confidence={self.confidence!r} is not between 0 and 1")
        if self.method == "sampled" and self.references == 0:
            faults.append("measure.method='sampled' needs measure.references")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class FollowSettings:
    """When models are looked at while they are trained; never, if nothing is given.

    Attributes:
        epochs: After so many passes over the text, 0 being the start.
        every: After every so many steps, from the start to the end.
        references: Secrets that a trial's canaries are ranked among, the same at all times: the
            first of those that they are ranked among after training.
        method: ``sampled``: up to log2(references + 1) bits; ``auto``: the exact rank where that
            can be afforded, as after training.
    """

    epochs: tuple[float, ...] = ()
    every: int | None = None
    references: int = 2_000
    method: str = "sampled"

    def __post_init__(self) -> None:
        if isinstance(self.epochs, list):
            object.__setattr__(self, "epochs", tuple(self.epochs))
        faults = among("follow.method", self.method, FOLLOWED)
        faults += whole_number("follow.references", self.references, 1)
        if not isinstance(self.epochs, tuple) or not all(
            number(one) and 0 <= one < math.inf for one in self.epochs
        ):
            faults.append(f"follow.epochs={self.epochs!r} are not numbers from 0 on")
        if self.every is not None:
            faults += whole_number("follow.every", self.every, 1)
            if self.epochs:
                faults.append("follow has both epochs and every")
        require(faults, error=PlanError, hint="Mend the recipe.")

    def steps(self, *, last: int, epoch_steps: float) -> tuple[int, ...]:
        """Return after how many steps models are looked at, rising.

        Args:
            last: Steps of the whole training.
            epoch_steps: Steps of one pass over the text.

        Raises:
            PlanError: An epoch is after the end.

        Example:
            >>> FollowSettings(every=40).steps(last=100, epoch_steps=25)
            (0, 40, 80, 100)
        """
        if self.every is not None:
            return tuple(sorted({*range(0, last, self.every), last}))
        # An epoch ends with the step that completes it.
        found = [math.ceil(one * epoch_steps - 1e-9) for one in self.epochs]
        beyond = [one for one, step in zip(self.epochs, found, strict=True) if step > last]
        if beyond:
            raise PlanError(
                f"follow.epochs={beyond} are after the end, at epoch {last / epoch_steps:.3g}.",
                hint="Train for longer, or look earlier.",
            )
        return tuple(sorted(set(found)))
