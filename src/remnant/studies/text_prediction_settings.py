"""The parts of a text-prediction study beside its plan: questions, model and adapters."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.errors import InvalidInput, PlanError, require
from remnant.population import Lora
from remnant.studies.settings import whole_number


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """Which multiple-choice questions models are fine-tuned on.

    Attributes:
        name: A set, or a file in the data folder.
        examples: How many; all that there are, if not given.
        longest: Tokens of a prompt; questions with more are left out.
        mislabelled: How many more stand among them with a wrong answer.
        seed: Which ones, and which wrong answers.
    """

    name: str = "arc-easy"
    examples: int | None = None
    longest: int = 128
    mislabelled: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        faults = whole_number("questions.longest", self.longest, 8)
        faults += whole_number("questions.mislabelled", self.mislabelled, 0)
        faults += whole_number("questions.seed", self.seed, 0)
        if self.examples is not None:
            faults += whole_number("questions.examples", self.examples, 8)
        if not isinstance(self.name, str) or not self.name:
            faults.append(f"questions.name={self.name!r} is not a name")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class PretrainedSettings:
    """Which pretrained model: a Hugging Face folder, by its path or its name in the data folder."""

    folder: str = "smollm2"

    def __post_init__(self) -> None:
        if not isinstance(self.folder, str) or not self.folder:
            raise PlanError(f"model.folder={self.folder!r} is not a path.", hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class LoraSettings:
    """What is trained: adapters of this rank, scaled by ``alpha / rank``, beside these layers."""

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.05
    modules: tuple[str, ...] = ("q_proj", "v_proj")

    def __post_init__(self) -> None:
        if isinstance(self.modules, list):
            object.__setattr__(self, "modules", tuple(self.modules))
        try:
            self.made()
        except InvalidInput as fault:
            raise PlanError(f"lora: {fault.message}", hint="Mend the recipe.") from fault

    def made(self) -> Lora:
        """Return them as the engine takes them."""
        return Lora(self.rank, self.alpha, self.dropout, self.modules)
