"""The questions, and where the code of each is: one table, imported on first use.

A question is a room under ``remnant.studies`` and one entry here. Importing the registry loads
neither PyTorch nor any room, so that a record can be read and shown without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from remnant.errors import InvalidInput, RecordError
from remnant.studies.shared.study import Recipe, Study

if TYPE_CHECKING:
    from remnant.records import Record
    from remnant.tasks.task import Task

ASSUMED = "forgetting"  # the question of a recipe that names none


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Where the code of one question is, each as ``"module:name"``; ``run`` is a module.

    Attributes:
        title: The question in one sentence.
        result: The class that a record's results are read into.
        page: Makes the page of a result: ``page(result, run)``.
        heading: The heading of the page, a text.
        beside: Returns the controls beside the outcome and what contradicts it:
            ``beside(result)``.
        recipe: The room's ``Recipe``: study, plans and sections. Empty, as is the next, for what a
            command measures without a recipe.
        run: The module that prepares and times a study; see ``pipeline.Room``.
        repeatable: Whether a record of it holds the whole recipe.
        asks: What is asked of the arrays: the row of ``recipe_form.question_table``. Empty, as are
            the next two, for what a command measures without a recipe.
        task: What the models are trained on: its column. Rooms that are run over tasks have the
            task's file in ``remnant.tasks``.
        own: Whether a recipe of it takes a network of the user's own, ``model.maker``.
    """

    title: str
    result: str
    page: str
    heading: str
    beside: str
    recipe: str = ""
    run: str = ""
    repeatable: bool = True
    asks: str = ""
    task: str = ""
    own: bool = False


def _room(
    room: str,
    title: str,
    *,
    result: str,
    repeatable: bool = True,
    beside: str = "",
    asks: str,
    task: str,
    own: bool = False,
    recipe: str = "recipe",
    heading: str = "TITLE",
) -> Question:
    """Return the entry of a room whose files have the usual names.

    Args:
        room: The folder in ``remnant.studies``.
        title: The question in one sentence.
        result: The result class.
        repeatable: Whether a record of it holds the whole recipe.
        beside: The module in ``studies.beside``, where it is that of another room.
        asks, task, own: As in ``Question``.
        recipe, heading: The module with ``RECIPE``, and the name of the heading, of a room of
            several questions.
    """
    home = f"remnant.studies.{room}"
    return Question(
        title=title,
        result=f"{home}.result:{result}",
        page=f"{home}.page:page",
        heading=f"{home}.page:{heading}",
        beside=f"remnant.studies.beside.{beside or room}:beside",
        recipe=f"{home}.{recipe}:RECIPE",
        run=f"{home}.run",
        repeatable=repeatable,
        asks=asks,
        task=task,
        own=own,
    )


def _sequences(
    title: str, *, result: str, page: str, recipe: str, task: str, heading: str = "TITLE"
) -> Question:
    """Return the entry of forgetting of sequences, which the room of forgetting has over tasks.

    Args:
        title: The question in one sentence.
        result: The result class.
        page, recipe: The modules with ``page`` and ``RECIPE``.
        task: As in ``Question``.
        heading: As of ``_room``.
    """
    home = "remnant.studies.forgetting"
    return Question(
        title=title,
        result=f"{home}.sequence_result:{result}",
        page=f"{home}.{page}:page",
        heading=f"{home}.{page}:{heading}",
        beside="remnant.studies.beside.sequence_forgetting:beside",
        recipe=f"{home}.{recipe}:RECIPE",
        run=f"{home}.sequence_run",
        asks="forgetting",
        task=task,
    )


def _measurement(module: str, title: str, *, result: str, beside: str = "beside") -> Question:
    """Return the entry of what a command measures without a recipe.

    Args:
        module: In ``remnant.studies``; it has ``page`` and ``TITLE``.
        title: The question in one sentence.
        result: The result class, as ``"module:name"``.
        beside: Name of the function in the room's module in ``studies.beside``.
    """
    home = f"remnant.studies.{module}"
    return Question(
        title=title,
        result=result,
        page=f"{home}:page",
        heading=f"{home}:TITLE",
        beside=f"remnant.studies.beside.{module.partition('.')[0]}:{beside}",
        repeatable=False,  # the model is the user's own
    )


QUESTIONS: dict[str, Question] = {
    "forgetting": _room(
        "forgetting",
        "How fast does a classifier forget examples that it was trained on?",
        result="ForgettingResult",
        asks="forgetting",
        task="images",
        own=True,
    ),
    "one-run": _room(
        "one_run",
        "How fast does one ordinary training run forget?",
        result="OneRunResult",
        asks="one-run",
        task="images",
        own=True,
    ),
    "text-forgetting": _sequences(
        "How fast does a language model forget sequences that it was trained on?",
        result="TextForgettingResult",
        page="sequence_page",
        recipe="text_recipe",
        task="text",
    ),
    "speech-forgetting": _sequences(
        "How fast does a recogniser of speech forget utterances that it was trained on?",
        result="SpeechForgettingResult",
        page="speech_page",
        recipe="speech_recipe",
        task="speech",
    ),
    "translation-forgetting": _sequences(
        "How fast does a translator forget pairs of sentences that it was trained on?",
        result="TranslationForgettingResult",
        page="sequence_page",
        recipe="pair_recipe",
        heading="PAIR_TITLE",
        task="pairs",
    ),
    "text-one-run": _room(
        "one_run",
        "How fast does one ordinary training run of a language model forget?",
        result="TextOneRunResult",
        recipe="text_recipe",
        heading="TEXT_TITLE",
        asks="one-run",
        task="text",
    ),
    "speech-one-run": _room(
        "one_run",
        "How fast does one ordinary training run of a recogniser of speech forget?",
        result="SpeechOneRunResult",
        recipe="speech_recipe",
        heading="SPEECH_TITLE",
        asks="one-run",
        task="speech",
    ),
    "translation-one-run": _room(
        "one_run",
        "How fast does one ordinary training run of a translator forget?",
        result="TranslationOneRunResult",
        recipe="pair_recipe",
        heading="PAIR_TITLE",
        asks="one-run",
        task="pairs",
    ),
    "prediction": _room(
        "prediction",
        "Which samples will a classifier memorise, and can they be predicted early?",
        result="PredictionResult",
        asks="prediction",
        task="images",
        own=True,
    ),
    "text-prediction": _room(
        "prediction",
        "Which samples will a fine-tuned language model memorise?",
        result="PredictionResult",
        recipe="text_recipe",
        heading="TEXT_TITLE",
        asks="prediction",
        task="text",
    ),
    "unique-features": _room(
        "features",
        "Does a classifier memorise a feature that only one training image has?",
        result="FeaturesResult",
        repeatable=False,  # the record has the pixels of the patch, not its text or file
        asks="features",
        task="images",
        own=True,
    ),
    "exposure": _room(
        "exposure",
        "How exposed is a secret in the training text, and can it be extracted?",
        result="ExposureResult",
        asks="exposure",
        task="text",
    ),
    "translation-exposure": _room(
        "exposure",
        "How exposed is a secret in a translator's training pairs?",
        result="ExposureResult",
        recipe="pair_recipe",
        heading="PAIR_TITLE",
        asks="exposure",
        task="pairs",
    ),
    "defences": Question(
        title="Which remedies keep a planted secret from being exposed, and what do they cost?",
        result="remnant.studies.choices.result:DefencesResult",
        page="remnant.studies.choices.remedy_page:page",
        heading="remnant.studies.choices.remedy_page:TITLE",
        beside="remnant.studies.beside.choices:of_defences",
        recipe="remnant.studies.choices.recipe:DEFENCES",
        run="remnant.studies.choices.run",
        asks="choices",
        task="text",
    ),
    "exposure-training": Question(
        title="Which training choices expose a secret?",
        result="remnant.studies.choices.result:ExposureTrainingResult",
        page="remnant.studies.choices.page:page",
        heading="remnant.studies.choices.page:TITLE",
        beside="remnant.studies.beside.choices:beside",
        recipe="remnant.studies.choices.recipe:EXPOSURE_TRAINING",
        run="remnant.studies.choices.run",
        asks="choices",
        task="text",
    ),
    "training-audit": _measurement(
        "training_audit.page",
        "What does this training remember of the canaries planted in it?",
        result="remnant.studies.training_audit.result:TrainingAuditResult",
    ),
    "membership-audit": _measurement(
        "membership.page",
        "Can this model's training records be distinguished from held-out ones?",
        result="remnant.studies.membership.result:MembershipResult",
    ),
    "feature-audit": _measurement(
        "features.audit_page",
        "Did this model memorise a patch?",
        result="remnant.studies.features.audit_result:FeatureAuditResult",
        beside="of_audit",
    ),
    "exposure-audit": _measurement(
        "exposure.audit_page",
        "How exposed are these canaries in this model?",
        result="remnant.studies.exposure.audit_result:ExposureCommand",
        beside="of_audit",
    ),
    "extraction": _measurement(
        "exposure.extract_page",
        "What are the likeliest secrets of this model?",
        result="remnant.studies.exposure.extract_result:ExtractCommand",
        beside="of_extraction",
    ),
    "found-secrets": _measurement(
        "found_secrets.page",
        "Which secrets are in this text, and how exposed are they in a model?",
        result="remnant.studies.found_secrets.result:ScanCommand",
    ),
    "early-prediction": _measurement(
        "prediction.early_page",
        "Which samples will this model memorise?",
        result="remnant.studies.prediction.early_result:EarlyCommand",
        beside="of_early",
    ),
    "attack-curve": _measurement(
        "forgetting.curve_page",
        "How fast does the success of this attack fall?",
        result="remnant.studies.forgetting.curve_page:CurveCommand",
        beside="of_curve",
    ),
}
RECIPES = tuple(name for name, question in QUESTIONS.items() if question.recipe)


def load(reference: str) -> Any:
    """Import the module of a ``"module:name"`` reference and return what it names, or the module.

    Example:
        >>> load("remnant.errors:InvalidInput").__name__
        'InvalidInput'
        >>> load("remnant.errors").__name__
        'remnant.errors'
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


def question_of(record: Record) -> Question:
    """Return the question of a record.

    Raises:
        RecordError: It is not one of ours.
    """
    from remnant.records.listing import SHADOW_POOL

    if record.question == SHADOW_POOL:
        raise RecordError(
            f"{record.folder} is a pool of shadow models’ scores, and no run.",
            hint="Name the run that was made with it.",
        )
    question = QUESTIONS.get(record.question)
    if question is None:
        *others, last = QUESTIONS
        raise RecordError(
            f"{record.folder} asks the question {record.question[:40]!r}; a report can be made for "
            f"{', '.join(others)} and {last}.",
            hint="Use the version of Remnant that wrote it.",
        )
    return question


def recipe_of(name: str) -> Recipe:
    """Return what a recipe of the question may hold.

    Raises:
        InvalidInput: No recipe asks such a question.
    """
    if name not in RECIPES:
        raise InvalidInput(
            f"question={name!r} is not one of {', '.join(RECIPES)}.",
            hint="Name one of these questions.",
        )
    recipe: Recipe = load(QUESTIONS[name].recipe)
    return recipe


def task_of(study: Study) -> Task[Any, Any]:
    """Import and return the task that the room of a study is run over."""
    from remnant.tasks import load_task

    return load_task(QUESTIONS[study.QUESTION].task)
