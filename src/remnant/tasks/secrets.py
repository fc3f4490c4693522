"""What exposure needs of a task: secrets planted in its training data, and models to train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, Template, make_canary_set
from remnant.models import Vocabulary
from remnant.plans import InsertPlan
from remnant.plans.plan import FILL
from remnant.plans.schedule import generator
from remnant.population import Fit, Population
from remnant.progress import Progress
from remnant.studies.shared.settings import Execution
from remnant.tasks.task import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretWords:
    """What a task says of planted secrets in the scope.

    Attributes:
        data: What the models are trained on, such as ``"40 windows of 64 characters"``.
        canaries: How many canaries there are, in words.
        place: Where secrets occur: ``"text"`` or ``"pairs"``.
        unit: What a canary is planted into: ``"window"`` or ``"pair"``.
        tested, not_tested: More sentences.
    """

    data: str
    canaries: str
    place: str
    unit: str
    tested: Sequence[str] = ()
    not_tested: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlantedSecrets:
    """Training data with secrets in it, and the models that are trained on it.

    Attributes:
        architecture, options: Of the models, as their folders keep them.
        make: Makes an untrained model.
        train: Trains the members of a plan.
        validation_bits: Returns each member's mean cost of a validation token, in bits.
        validation_tokens: How many of these there are.
        token: What a token is, such as ``"word"``.
        store_bytes: Size of the training data.
        examples: How many clean training examples there are.
        sets: The canaries and controls of each trial.
        vocabulary: Of the training data and the canaries.
        words: What the scope says.
        encoder_input: What a translator is given when any secret is looked for; None for a
            language model.
        encoder_input_of: What it is given when this secret is looked for; None where it is the
            same for all.
    """

    architecture: str
    options: Mapping[str, Any]
    make: Callable[[], Any]
    train: Callable[..., tuple[Fit, Population]]
    validation_bits: Callable[[Population], NDArray[np.float64]]
    validation_tokens: int
    token: str
    store_bytes: int
    examples: int
    sets: Sequence[CanarySet]
    vocabulary: Vocabulary
    words: SecretWords
    encoder_input: str | None = None
    encoder_input_of: Callable[[str], str] | None = None


class SecretTask(Protocol):
    """A task in whose training data secrets can be planted."""

    def load(self, study: Any, execution: Execution, progress: Progress | None = None) -> Source:
        """Read the data that the study names."""
        ...

    def fingerprint(self, source: Source, planted: Any) -> str:
        """Return a digest of the data."""
        ...

    def secret_template(self, study: Any, source: Source) -> Template:
        """Return the template of the secrets."""
        ...

    def plant_secrets(self, study: Any, source: Source, execution: Execution) -> PlantedSecrets:
        """Plant secrets of the template.

        Raises:
            RemnantError: Something cannot be planted.
        """
        ...


def drawn_sets(plan: InsertPlan, template: Template) -> tuple[CanarySet, ...]:
    """Return the canaries and controls of each trial; they follow from the plan's seed."""
    return tuple(
        make_canary_set(
            template,
            repeats=plan.repeats,
            controls=plan.controls,
            seed=int(generator(plan.seed, FILL, trial).integers(2**31)),
        )
        for trial in range(plan.trials)
    )
