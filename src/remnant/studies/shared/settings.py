"""The parts of a study beside its plan: data, canaries, model, training and attack, as frozen data.

Everything here changes numbers, so all of it is in the study's fingerprint. How a study is run
(``Execution``) may not change them and is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar

from remnant.canaries import BY_LOSS, KINDS, QUARTER
from remnant.data import DATA_SETS
from remnant.data.own_code import FORM, reference_faults
from remnant.data.own_files import FILES, TENSORS
from remnant.errors import PlanError, RemnantError, require
from remnant.measures.statistics.checks import chance_level, check_gate_confidence, out_of_reach
from remnant.models.catalogue import CATALOGUE, Architecture
from remnant.plans import InjectPlan, PoisonPlan, StaggeredPlan
from remnant.plans.bounds import (
    Count,
    FromZero,
    Positive,
    ShareOrAll,
    field_faults,
    is_number,
    is_whole,
    one_of,
    text,
)
from remnant.plans.plan import added_later
from remnant.population import LearningRate
from remnant.population.optimizers import check_clip, make_optimizer
from remnant.studies.jobs.execution import Execution as Execution
from remnant.studies.shared.study import SectionedStudy


class Section:
    """A section of a recipe beside ``[plan]``; all of its faults are listed at once.

    Subclasses are frozen dataclasses and name their section: ``class DataSettings(Section,
    name="data")``. The annotations of their fields say what is allowed (``plans/bounds.py``).
    """

    NAME: ClassVar[str]
    CODE: ClassVar[tuple[str, ...]] = ()  # fields that name functions of the user's own
    HINT: ClassVar[str] = "Fix the recipe."

    def __init_subclass__(cls, *, name: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.NAME = name or cls.NAME

    def __post_init__(self) -> None:
        faults = field_faults(self, prefix=f"{self.NAME}.")
        faults = faults or [*self._gate_faults(), *self._contradictions()]
        require(faults, error=PlanError, hint=self.HINT)

    def _gate_faults(self) -> list[str]:
        """A section with a limit and a confidence is that of a gate."""
        faults: list[str] = []
        if hasattr(self, "limit") and hasattr(self, "confidence"):
            check_gate_confidence(f"{self.NAME}.confidence", self.confidence, faults)
        return faults

    def _contradictions(self) -> list[str]:
        """Return what is wrong with fields together, where each is within its bound."""
        return []


ImagePlan = InjectPlan | PoisonPlan | StaggeredPlan
OWN = "own"  # the name of a model that a function of the user's own makes
HIDDEN = "hidden"  # of its options, the one that names a layer
_MOST = 1e9  # of a model's option, far beyond what fits in memory


def option_faults(options: dict[str, Any], build: Architecture[Any]) -> list[str]:
    """Return a fault for each of a model's options that is not of the kind of its default.

    Args:
        options: As a recipe gives them, a table.
        build: The architecture.
    """
    faults = []
    for name, value in options.items():
        default = build.options.get(name)
        if isinstance(default, bool):
            wrong, kind = not isinstance(value, bool), "true or false"
        elif isinstance(default, int):
            wrong, kind = not (is_whole(value) and value >= 0), "a whole number from 0"
        elif isinstance(default, float):
            wrong = not (is_number(value) and abs(value) <= _MOST)
            kind = f"a number of at most {_MOST:g}"
        else:
            continue
        faults += [f"model.options.{name}={value!r} is not {kind}"] if wrong else []
    return faults


@dataclass(frozen=True, kw_only=True)
class DataSettings(Section, name="data"):
    """Which images or features the models are trained on.

    Attributes:
        name: Data set, or ``files`` for your own. All but the digits are read from files.
            ``tensors``: your own arrays of any shape, handed to the model as they are.
        examples: Clean examples to train on. Not set: all.
        seed: Determines the split into clean examples, canary pool and test set.
        path: With ``name = "files"``: an ``.npz`` file with inputs and labels, or a folder with a
            sub-folder of PNG or JPEG images for each class. A relative path starts at ``--data``,
            or at the recipe's folder without it. Not set: a named data set.
        held_out: A second such file or folder, half of which is the canary pool and half the test
            set. Not set: they are cut from ``path``.
        inputs: Array of the ``.npz`` file with images or, one row an example, features. Not set:
            ``images`` or ``inputs``.
        labels: Array of the ``.npz`` file with labels: whole numbers or names.
        maker: Function of yours that returns inputs of any shape and labels, instead of ``path``:
            ``package.module:function``. The code runs only with ``--trust FILE``. Not set: none.
        options: Keyword arguments of this function.
        sha256: SHA-256 of the function's file by its module, which the run fills in.
    """

    CODE: ClassVar[tuple[str, ...]] = ("maker",)

    name: Annotated[str, one_of((*DATA_SETS, FILES, TENSORS))] = "digits"
    examples: Count | None = None
    seed: FromZero = 0
    path: Annotated[str, text("a path")] | None = added_later(None)
    held_out: Annotated[str, text("a path")] | None = added_later(None)
    inputs: Annotated[str, text("the name of an array")] | None = added_later(None)
    labels: Annotated[str, text("the name of an array")] = added_later("labels")
    maker: Annotated[str, text(f"of the form {FORM}")] | None = added_later(None)
    options: dict[str, Any] | None = added_later(None)
    sha256: dict[str, Any] | None = added_later(None)

    def __post_init__(self) -> None:
        if self.maker is not None and self.name == type(self).name:
            object.__setattr__(self, "name", TENSORS)
        super().__post_init__()

    def _contradictions(self) -> list[str]:
        if self.maker is not None:
            faults = reference_faults("data.maker", self.maker)
            if self.name != TENSORS:
                faults.append(
                    f"data.name={self.name!r} and data.maker={self.maker!r} are both given"
                )
            return faults + [f"data.{name} is not for data.maker" for name in self._of_files()]
        if self.options is not None:
            return ["data.options needs data.maker"]
        if self.name == FILES:
            return (
                [] if self.path is not None else [f'data.path is needed with data.name = "{FILES}"']
            )
        if self.name == TENSORS:
            needed = f'data.path or data.maker is needed with data.name = "{TENSORS}"'
            return [] if self.path is not None else [needed]
        return [f'data.{name} needs data.name = "{FILES}"' for name in self._of_files()]

    def _of_files(self) -> list[str]:
        """The fields about files that are not at their default."""
        return [
            known.name
            for known in fields(self)
            if known.name in ("path", "held_out", "inputs", "labels")
            and getattr(self, known.name) != known.default
        ]

    @property
    def title(self) -> str:
        """The data set in words: its name, the path of the user's own files, or a function."""
        return self.maker or self.path or self.name


@dataclass(frozen=True, kw_only=True)
class CanarySettings(Section, name="canaries"):
    """Which images are planted.

    Attributes:
        kind: Kind of canary: ``mislabelled``, ``odd`` (random blocks), ``blank`` (one colour), or
            ``hard``, ``medium`` and ``easy`` images of the pool, by the loss of models that did not
            see them.
        judges: Models that rank the pool for ``hard``, ``medium`` and ``easy``.
        judge_steps: Updates of each of these models.
        share: Share of the pool that ``hard``, ``medium`` and ``easy`` images are drawn from at
            random: the hardest, the middle or the easiest, however many are planted. Not set:
            0.25. Only for these kinds.
    """

    kind: Annotated[str, one_of(KINDS)] = "mislabelled"
    judges: Count = 4
    judge_steps: Count = 400
    # None does what was done before: other kinds have no share.
    share: ShareOrAll | None = added_later(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is None and self.kind in BY_LOSS:
            object.__setattr__(self, "share", QUARTER)

    def _contradictions(self) -> list[str]:
        if self.share is None or self.kind in BY_LOSS:
            return []
        kinds = ", ".join(BY_LOSS)
        return [
            f"canaries.share={self.share:g} is for kinds that are chosen by loss ({kinds}), and "
            f"canaries.kind is {self.kind!r}"
        ]


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Section, name="model"):
    """Which classifier is trained.

    Attributes:
        name: Architecture; ``own`` with ``maker``.
        options: Its options, such as ``{ width = 0.5, dropout = 0.2 }``. With ``maker``: keyword
            arguments of the function, and ``hidden``, which it is not given: the submodule whose
            output is the hidden state, such as ``{ hidden = "body.norm" }``.
        maker: Your own network: ``package.module:function``, which takes the options and returns a
            ``torch.nn.Module`` that gives one logit per class. The code runs only with ``--trust
            FILE``. Not set: the architecture called ``name``.
        sha256: SHA-256 of the file of each module named here, which the run fills in; a recipe
            that has it refuses a file that has changed.
    """

    CODE: ClassVar[tuple[str, ...]] = ("maker",)

    name: Annotated[str, one_of((*CATALOGUE, OWN))] = "mlp1"
    options: dict[str, Any] = field(default_factory=dict)
    maker: Annotated[str, text(f"of the form {FORM}")] | None = added_later(None)
    sha256: dict[str, Any] | None = added_later(None)

    def __post_init__(self) -> None:
        if self.maker is None and isinstance(self.name, str) and ":" in self.name:
            raise PlanError(
                f"model.name={self.name!r} is a function and no architecture.",
                hint="Write it as model.maker.",
            )
        if self.maker is not None and self.name == type(self).name:
            object.__setattr__(self, "name", OWN)
        super().__post_init__()

    def _contradictions(self) -> list[str]:
        if self.maker is None:
            if self.name == OWN:
                return [f'model.maker is needed with model.name = "{OWN}"']
            return option_faults(self.options, CATALOGUE[self.name])
        faults = reference_faults("model.maker", self.maker)
        if self.name != OWN:
            faults.append(f"model.name={self.name!r} and model.maker={self.maker!r} are both given")
        hidden = self.options.get(HIDDEN, "some")
        if not (isinstance(hidden, str) and hidden):
            faults.append(
                f"model.options.hidden={hidden!r} is not the name of a submodule, and the function "
                "is not given it: rename an argument of this name"
            )
        return faults

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of what makes the model."""
        kept = {HIDDEN} if self.maker is not None else set()
        return {name: value for name, value in self.options.items() if name not in kept}

    @property
    def hidden(self) -> str | None:
        """The layer of the user's own network whose output is the hidden state, if it names one."""
        return None if self.maker is None else self.options.get(HIDDEN)

    @property
    def title(self) -> str:
        """The model in words: its name, or the function that makes it."""
        return self.name if self.maker is None else self.maker


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Section, name="training"):
    """How the models are trained.

    Attributes:
        optimizer: Optimizer: ``sgd``, ``adam``, ``adamw``, ``rmsprop``, ``adagrad`` or
            ``adadelta``. ``dp-sgd``, ``dp-rmsprop`` and ``dp-adam`` train with differential
            privacy: they need ``clip`` and the option ``noise``.
        options: Its options, with the names of ``torch.optim``, such as ``{ lr = 0.1, momentum =
            0.9 }``. ``noise`` is the noise multiplier of a private optimizer.
        learning_rate: Learning-rate schedule, such as ``{ kind = "step", milestones = [200], gamma
            = 0.1 }`` or ``{ kind = "cosine", total = 700, warmup = 50 }``. Empty: constant.
        clip: Largest gradient norm; with a private optimizer, of each example. Not set: no
            clipping.
    """

    optimizer: Annotated[str, text("the name of an optimizer")] = "sgd"
    options: dict[str, Any] = field(default_factory=lambda: {"lr": 0.1})
    learning_rate: dict[str, Any] = field(default_factory=dict)
    clip: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rate()

    def check_options(self) -> None:
        """Refuse an optimizer or options of it that training would refuse.

        Raises:
            PlanError: The optimizer or an option is unknown, or a value is outside its range.
        """
        try:
            rule = make_optimizer(self.optimizer, members=1, options=self.options)
            if rule.is_private:
                check_clip(self.optimizer, self.clip)
        except RemnantError as fault:
            raise PlanError(f"training.options: {fault.message}", hint=fault.hint) from fault

    def rate(self) -> LearningRate:
        """Return the learning-rate schedule."""
        try:
            return LearningRate(**self.learning_rate)
        except TypeError as fault:
            known = ", ".join(LearningRate.__dataclass_fields__)
            raise PlanError(
                f"training.learning_rate={self.learning_rate} has an unknown field.",
                hint=f"It may have: {known}.",
            ) from fault


@dataclass(frozen=True, kw_only=True)
class Classifiers(SectionedStudy):
    """A study that trains image classifiers: what all of them have."""

    data: DataSettings = field(default_factory=DataSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


@dataclass(frozen=True, kw_only=True)
class ClassifierStudy(Classifiers):
    """A study that plants canaries into some models' training and keeps them out of others'."""

    plan: ImagePlan
    canaries: CanarySettings = field(default_factory=CanarySettings)


def limit_faults(attack: Any) -> list[str]:
    """Return a fault if the limit of an attack is not above chance, or too high to be reached."""
    if attack.limit <= (chance := chance_level(attack.success, attack.fpr)):
        return [f"attack.limit={attack.limit} is not above chance ({chance})"]
    too_high = out_of_reach(attack.limit, attack.success, attack.fpr)
    return [f"attack.limit={attack.limit} could not fail: {too_high}"] if too_high else []
