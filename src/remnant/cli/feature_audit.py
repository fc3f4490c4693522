"""Scores a patch on a model and on its twin, and says what that is evidence of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.cli.feature_control import NO_LABELS, TaskControl, task_control
from remnant.cli.naming import naming
from remnant.cli.nats import nats
from remnant.errors import NotEnoughEvidence, RemnantError
from remnant.measures import adjusted_p_values, m_score, probability_gain, white_box_m_score
from remnant.measures.divergence import FLOOR
from remnant.measures.feature_score import TIE
from remnant.measures.mean_interval import mean_interval
from remnant.records import Outcome, finding_row, gate_row

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.cli.feature_look import Look
    from remnant.integrations.classifiers.probabilities import Probabilities
    from remnant.measures import MScore

Progress = Callable[[str, int, int], None]
_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in ("nulls", "control", "batch", "confidence", "label", "outputs", "mean", "std")
}
_DRAWS = 999
LARGEST_M = -math.log(FLOOR)
"""No M is larger, in nats: a divergence of one image is at most that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a patch is scored."""

    nulls: int
    control: str
    confidence: float
    significance: float
    label: int | None
    limit: float | None
    against: str
    seed: int
    batch: int

    @property
    def never_planted(self) -> str:
        """What the patch is ranked among, in words."""
        if self.against == "words":
            return "other words that were never planted"
        return "patches of the same pixels that were never planted"

    @property
    def tests(self) -> int:
        """How many p-values a claim rests on."""
        return 1 if self.label is None else 2

    def check(self) -> None:
        """Refuse what could never show anything.

        Raises:
            NotEnoughEvidence: No p-value could be at or under the significance.
        """
        needed = math.ceil(self.tests / self.significance - 1e-9) - 1
        if self.nulls < needed:
            raise NotEnoughEvidence(
                f"--nulls {self.nulls} cannot show anything at --significance "
                f"{self.significance:g}; it takes at least {needed}.",
                hint="Raise --nulls.",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What one model makes of the patch.

    Attributes:
        black_box: M on any images.
        white_box, gain: M_w and what is added to the label's probability; None where no label was
            asked about.
    """

    black_box: MScore
    white_box: MScore | None
    gain: MScore | None

    @property
    def tested(self) -> list[MScore]:
        """The scores whose p-values a claim rests on."""
        return [one for one in (self.black_box, self.white_box) if one is not None]


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean M of the model less the twin's, on the same images and patches, with its interval."""

    value: float
    low: float
    high: float


_FINDINGS: dict[Outcome, tuple[str, str]] = {
    "FAIL": (
        "The model reacts to the patch",
        "Find the training images that hold it, remove them, and train again.",
    ),
    "PASS": ("No evidence that the patch was memorised", ""),
    "INCONCLUSIVE": (
        "No evidence that the patch was memorised",
        "Give a limit on M (--limit) to judge it, and a twin (--twin) to compare with.",
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class FeatureAudit:
    """What was found about a patch.

    Attributes:
        model: The model's scores.
        twin: Of a model that was trained without the patch; None where none was given.
        beyond: M of the model less the twin's; None without one.
        p_values: Of the model's tested scores, corrected for their number (Holm).
        limit: The limit on M, in nats; None where there is no gate, and what is found is a finding.
        task: How well the model names labelled images; None without a limit or without labels.
        outcome: FAIL: evidence. PASS: none, M under the limit, and a model that reacts to patches
            and learnt its task. Else INCONCLUSIVE.
        sentence: The same in a sentence.
        claim: The strongest statement that the evidence supports.
    """

    model: Scores
    twin: Scores | None
    beyond: Difference | None
    p_values: tuple[float, ...]
    limit: float | None
    task: TaskControl | None
    outcome: Outcome
    sentence: str
    claim: str

    @property
    def row(self) -> dict[str, Any]:
        """The verdict row of a record: a gate's where a limit was given, else a finding's."""
        if self.limit is not None:
            return gate_row(
                outcome=self.outcome, sentence=self.sentence, claim=self.claim, limit=self.limit
            )
        headline, advice = _FINDINGS[self.outcome]
        return finding_row(headline=headline, sentence=self.sentence, advice=advice)


def feature_audit(
    found: Look, patch: Patch, nulls: Patches | None, settings: Settings, progress: Progress
) -> FeatureAudit:
    """Score the patch on the model and on the twin, with the same images and random patches.

    Args:
        found: Models and images.
        patch: The patch in question.
        nulls: Patches that were never planted; None for shuffled pixels.
        settings: How it is scored.
        progress: Is told of images that were asked about.

    Raises:
        InvalidInput, NotEnoughEvidence, UnsupportedModel: In the words of the options.
    """
    model = _scores("--model", found.model, found, patch, nulls, settings, progress)
    twin = None
    if found.twin is not None:
        twin = _scores("--twin", found.twin, found, patch, nulls, settings, progress)
    p_values = tuple(adjusted_p_values(model.tested, alpha=settings.significance).tolist())
    classes = named_classes(found.model, found.images, settings.batch)
    task = None
    if settings.limit is not None and found.task is not None:
        rng = np.random.default_rng([settings.seed, 5])
        task = task_control(found.model, found.task, batch=settings.batch, rng=rng)
    blind = blindness(model, classes) or (NO_LABELS if task is None else task.reason)
    outcome, sentence = _verdict(model, twin, p_values, settings, blind)
    beyond = None if twin is None else _difference(model, twin, settings)
    claim = _claim(model, task, blind, outcome)
    return FeatureAudit(
        model, twin, beyond, p_values, settings.limit, task, outcome, sentence, claim
    )


def named_classes(ask: Probabilities, images: Tensor, batch: int) -> int:
    """How many classes the model names among the images as they are."""
    answers = [ask(images[at : at + batch]).argmax(dim=1) for at in range(0, len(images), batch)]
    return len({int(one) for part in answers for one in part})


def blindness(model: Scores, classes: int) -> str:
    """Why this model could not show a memorised patch; empty where it could.

    A part of the positive control of a PASS: the model reacts to patches, and names more than one
    class. ``task_control`` is the other.
    """
    nulls = model.black_box.null_values
    if float(np.ptp(nulls)) <= TIE:
        return "The model answers the same whatever the patch, so a limit on M shows nothing."
    if classes < 2:
        return (
            "The model names one class for all images, as an untrained one does, so a limit on M "
            "shows nothing. Give images of several classes, or check the model."
        )
    return ""


def _claim(model: Scores, task: TaskControl | None, blind: str, outcome: Outcome) -> str:
    if blind and outcome != "FAIL":
        return f"No claim: {blind[0].lower()}{blind[1:]}"
    m = model.black_box
    learnt = ""
    if outcome == "PASS" and task is not None:
        learnt = f" {task.measured} (lower bound {task.low:.1%}, 99% confidence)."
    bound = f"at most {nats(m.high, up=True)}"
    if outcome == "FAIL":
        bound = f"{nats(m.value)}, at least {nats(m.low)}"
    return (
        f"In this one model M of this patch is {bound} nats ({100 * m.confidence:g}% interval over "
        f"{m.n_images} images, {m.n_nulls} patches never planted); what "
        "happens in up to 95 % of trainings may be missing from one (95 % "
        f"confidence).{learnt}"
    )


def _scores(
    option: str,
    ask: Probabilities,
    found: Look,
    patch: Patch,
    nulls: Patches | None,
    settings: Settings,
    progress: Progress,
) -> Scores:
    shared: dict[str, Any] = {
        "nulls": settings.nulls,
        "null_patches": nulls,
        "batch": settings.batch,
        "confidence": settings.confidence,
        "draws": _DRAWS,
    }
    drawn = shared | {"control": settings.control}
    counted = _Counted(ask, found, settings, progress, f"asking {option}")

    def rng(which: int) -> np.random.Generator:
        return np.random.default_rng([settings.seed, 2, which])

    try:
        with naming(**_OPTIONS):
            black = m_score(counted, found.images, patch, rng=rng(0), **drawn)
            if found.labelled is None or settings.label is None:
                return Scores(black, None, None)
            own, label = found.labelled, settings.label
            white = white_box_m_score(counted, own, patch, label=label, rng=rng(1), **drawn)
            gain = probability_gain(counted, own, patch, label=label, rng=rng(2), **shared)
            return Scores(black, white, gain)
    except RemnantError as fault:
        if option == "--twin" and not fault.message.startswith(option):
            fault.message = f"{option}: {fault.message}"
        raise


class _Counted:
    """A model that says how far the questions are."""

    def __init__(
        self, ask: Probabilities, found: Look, settings: Settings, progress: Progress, part: str
    ) -> None:
        images = len(found.images) * (settings.nulls + 3)
        if found.labelled is not None:
            images += len(found.labelled) * (2 * settings.nulls + 5)
        self._ask, self._progress, self._part = ask, progress, part
        self._total, self._done = images, 0

    def __call__(self, images: Tensor) -> Tensor:
        answers = self._ask(images)
        self._done += len(images)
        self._progress(self._part, min(self._done, self._total), self._total)
        return answers


def _difference(model: Scores, twin: Scores, settings: Settings) -> Difference:
    apart = model.black_box.per_image - twin.black_box.per_image
    found = mean_interval(
        apart,
        bound=-2.0 * math.log(FLOOR),
        confidence=settings.confidence,
        draws=_DRAWS,
        rng=np.random.default_rng([settings.seed, 3]),
    )
    return Difference(float(apart.mean()), found.low, found.high)


def _verdict(
    model: Scores,
    twin: Scores | None,
    p_values: tuple[float, ...],
    settings: Settings,
    blind: str,
) -> tuple[Outcome, str]:
    names = ("M", "the white-box M_w")
    shown = [at for at, p in enumerate(p_values) if p <= settings.significance]
    of = "" if len(p_values) == 1 else ", corrected for two tests"
    m = model.black_box
    measured = (
        f"M is {nats(m.value)} nats ({100 * m.confidence:g}% interval over images {nats(m.low)} to "
        f"{nats(m.high)})"
    )
    if not shown:
        least = min(p_values)
        sentence = (
            "There is no evidence that the model reacts to this patch more than to "
            f"{settings.never_planted}: p = {least:.2g}{of}; {measured}"
        )
        if settings.limit is not None and blind:
            return "INCONCLUSIVE", f"{blind} {measured}; p = {least:.2g}{of}."
        if settings.limit is not None and m.high < settings.limit:
            return "PASS", f"{sentence}, all of it under the limit of {settings.limit:g}."
        if settings.limit is not None:
            return "INCONCLUSIVE", f"{sentence}, and the limit is {settings.limit:g}."
        return "INCONCLUSIVE", f"{sentence}. That does not show that it was not memorised."
    found = " and ".join(f"{names[at]} (p = {p_values[at]:.2g})" for at in shown)
    reacts = f"the model reacts to this patch more than to {settings.never_planted}"
    if twin is None:
        return "FAIL", f"There is evidence that {reacts}, by {found}{of}; {measured}."
    theirs = [twin.tested[at].p_value for at in shown]
    if min(theirs) <= settings.significance:
        return "INCONCLUSIVE", (
            f"{reacts[0].upper()}{reacts[1:]}, by {found}{of}; but so does the twin, which was "
            f"trained without it (p = {min(theirs):.2g}): the patch is conspicuous by itself, and "
            f"this is no evidence that it was memorised; {measured}."
        )
    return "FAIL", (
        f"There is evidence that {reacts}, by {found}{of}, and the twin, which was trained without "
        f"it, does not (p = {min(theirs):.2g}); {measured}."
    )
