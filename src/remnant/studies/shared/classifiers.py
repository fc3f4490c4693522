"""What the studies of image classifiers share: data, canaries, models and their training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from remnant.canaries import BY_LOSS, ENDS, MADE, rows_in_share
from remnant.data import AuditData, load_images
from remnant.data.catalogue import cut_own_tensors, load_own_images
from remnant.data.images import examples_needed
from remnant.data.own_code import call, explained
from remnant.data.own_files import TENSORS
from remnant.errors import InvalidInput, PlanError, UnsupportedModel
from remnant.models import model_maker
from remnant.models.own_network import check_network, own_network
from remnant.plans import Schedule
from remnant.population import Checkpoint, Fit, Population
from remnant.population.blueprint import cross_entropy
from remnant.population.optimizers import make_optimizer
from remnant.probes import label_signals
from remnant.probes.one_pass import check_layer
from remnant.records import Record
from remnant.studies.jobs.execution import Job, JobContext, run_jobs
from remnant.studies.own_code import file_of
from remnant.studies.shared.image_canaries import (
    Planting,
    canary_count,
    judge_pool,
    needs_judge,
    share_of,
    standardised,
)
from remnant.studies.shared.settings import (
    CanarySettings,
    Classifiers,
    ClassifierStudy,
    DataSettings,
    Execution,
    ImagePlan,
)

_TRIED = 8  # examples on which a network of the user's own is tried


def load_data(study: Classifiers, execution: Execution) -> AuditData:
    """Return the study's data, cut into clean, pool and test."""
    settings = study.data
    if settings.maker is not None:
        file = file_of(settings, "maker", execution)
        return cut_own_tensors(
            call("data.maker", settings.maker, file, settings.options),
            maker=settings.maker,
            sha256=file.sha256,
            examples=settings.examples,
            seed=settings.seed,
        )
    if settings.path is not None:
        data = load_own_images(
            execution.own_files(settings),
            inputs=settings.inputs,
            labels=settings.labels,
            tensors=settings.name == TENSORS,
            examples=settings.examples,
            seed=settings.seed,
        )
        return data if study.model.maker is None else data.flat()
    return load_images(
        settings.name,
        folder=execution.data_folder,
        examples=settings.examples,
        seed=settings.seed,
    )


def check_pool(
    settings: DataSettings, data: AuditData, count: int, *, needs: str, hint: str
) -> None:
    """Refuse a plan that draws more canaries from the pool than it holds.

    Args:
        settings, data: The study's data.
        count: Canaries that are drawn from the pool.
        needs: What needs them, as the beginning of a sentence, such as ``"The plan needs 12"``.
        hint: What to do where the data cannot be changed.

    Raises:
        PlanError: The pool is too small; for the user's own files it says how many it takes.
    """
    if count <= len(data.pool):
        return
    more = ""
    if settings.path is not None:
        needed = examples_needed(count, held_out=settings.held_out is not None)
        more = f" Or give at least {needed}."
    raise PlanError(
        f"{needs}, and the pool of {settings.title} holds {len(data.pool)} examples.",
        hint=f"{hint}.{more}",
    )


def check_share(study: ClassifierStudy, data: AuditData, count: int) -> None:
    """Refuse more canaries than the share of the pool holds that they are drawn from.

    Raises:
        PlanError: It holds fewer; says which share would do.
    """
    canaries, pool = study.canaries, len(data.pool)
    if canaries.kind not in BY_LOSS:
        return
    share = share_of(canaries)
    held = rows_in_share(pool, share)
    if count <= held:
        return
    needed = math.ceil(100.0 * count / pool) / 100.0
    raise PlanError(
        f"The plan needs {count} canaries and controls, and the {ENDS[canaries.kind]} "
        f"{100.0 * share:.3g} % of the pool of {study.data.title} hold {held} of its {pool} "
        "examples.",
        hint="Take more data, plant fewer canaries or in fewer trials, or set canaries.share to "
        f"{needed:g} or more.",
    )


def check_made(data: AuditData, kinds: Iterable[str]) -> None:
    """Refuse canaries that are made as images where the data are features.

    Raises:
        PlanError: Such a kind is asked for.
    """
    made = [kind for kind in kinds if kind in MADE]
    if made and not data.are_images:
        raise PlanError(
            f"{made[0]} canaries are images, and the data are {data.form}.",
            hint="Plant mislabelled canaries.",
        )


def check_training(study: Classifiers, data: AuditData, execution: Execution) -> None:
    """Refuse a model, a device or an optimizer that is not there before anything is written."""
    if study.model.maker is not None:
        _check_own_network(study, data, execution)
    Population(_maker(study, data, execution), seeds=[0], device=execution.device)
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)


def check_classifier(study: ClassifierStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    check_training(study, data, execution)
    check_made(data, [study.canaries.kind])
    count = canary_count(study.plan)
    check_pool(
        study.data,
        data,
        0 if study.canaries.kind in MADE else count,
        needs=f"The plan needs {count} canaries and controls",
        hint="Plant fewer, or share them among the trials (fresh_canaries = false)",
    )
    check_share(study, data, count)


def judged_losses(
    study: ClassifierStudy,
    data: AuditData,
    execution: Execution,
    settings: CanarySettings | None = None,
) -> NDArray[np.float64]:
    """Train the study's judges, by these settings or its own, and return their losses."""
    return judge_pool(
        _maker(study, data, execution),
        study.plan,
        settings or study.canaries,
        study.training,
        data,
        device=execution.device,
        compared=study.model.maker is not None,
    )


def kept_losses(
    study: ClassifierStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    settings: Sequence[CanarySettings],
) -> NDArray[np.float64] | None:
    """Return what the judges say of the pool, from the record if it is there already.

    Args:
        study: Whose model and training the judges have.
        data, execution, record: As the study is run.
        settings: Those of all canaries; the first that are chosen by a judge say how it is trained.
    """
    judges = judge_jobs(study, settings)
    if not judges:
        return None
    if "pool_losses" not in record.array_names():
        run_jobs(judges, shared=data, record=record, execution=execution, progress=None)
    return record.array("pool_losses")


def judge_jobs(study: ClassifierStudy, settings: Sequence[CanarySettings]) -> list[Job]:
    """Return the job that trains the judges, if canaries are chosen by any; see kept_losses."""
    judged = [part for part in settings if needs_judge(part)]
    return [
        Job(
            name="judges",
            work=partial(_judge, study, part),
            members=part.judges,
            steps=part.judge_steps,
        )
        for part in judged[:1]
    ]


def _judge(
    study: ClassifierStudy, settings: CanarySettings, data: AuditData, context: JobContext
) -> None:
    """Train the judges of a pool and put what they say of it into the output."""
    losses = judged_losses(study, data, context.execution, settings)
    context.output.put_array("pool_losses", losses)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Members:
    """Who is trained, and on what.

    Attributes:
        schedule: Who is given which rows at which step.
        seeds, dropout_seeds, noise_seeds: One per member.
        options: The optimizer's, each once or once per member.
        precision: In which arithmetic.
    """

    schedule: Schedule
    seeds: list[int]
    dropout_seeds: list[int]
    noise_seeds: list[int]
    options: dict[str, Any]
    precision: str


def members_of(study: ClassifierStudy, plan: ImagePlan, planting: Planting) -> Members:
    """Return the members of one plan."""
    return Members(
        schedule=plan.schedule(examples=planting.examples),
        seeds=plan.seeds,
        dropout_seeds=plan.dropout_seeds,
        noise_seeds=plan.noise_seeds,
        options=study.training.options,
        precision=plan.precision,
    )


class SomeMembers:
    """Some members of a population that is in training, for a probe to ask."""

    def __init__(self, population: Population, members: slice) -> None:
        self._population, self._members = population, members

    def logits(self, inputs: Any) -> Any:
        """Return their logits."""
        return self._population.logits(inputs, members=self._members)


@dataclass(frozen=True, slots=True, eq=False)
class CanaryLooks:
    """What is asked of some members about some canaries while they are trained.

    Attributes:
        members: Which members.
        canaries: Which of the canaries and controls.
        steps: After how many updates.
    """

    members: slice
    canaries: slice
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Anything else that is read off the models, after some numbers of updates."""

    read: Callable[[Population], Any]
    steps: tuple[int, ...]


def fit_classifiers(
    study: Classifiers,
    members: Members,
    planting: Planting,
    execution: Execution,
    *,
    ask: Mapping[str, CanaryLooks] | None = None,
    also: Mapping[str, Probe] | None = None,
    checkpoint: Checkpoint | None = None,
    on_step: Callable[[int], None] | None = None,
) -> tuple[Fit, Population]:
    """Train the members, and put the questions on the way; the answers are the fit's probes.

    Args:
        study: Whose model and training it is.
        members, planting, execution: Who is trained on what, and where.
        ask: What is asked about canaries, by name.
        also: Further probes, by name.
        checkpoint, on_step: As in ``Population.fit``.
    """
    population = Population(
        maker_of(study, execution, like=planting.store.images, classes=planting.classes),
        seeds=members.seeds,
        dropout_seeds=members.dropout_seeds,
        noise_seeds=members.noise_seeds,
        device=execution.device,
        precision=members.precision,
        compared=study.model.maker is not None,
    )
    questions, probes = ask or {}, also or {}

    def probe(question: CanaryLooks) -> Callable[[Population], Any]:
        images = planting.probed.images[question.canaries]
        labels = planting.probed.labels[question.canaries]
        return lambda models: label_signals(SomeMembers(models, question.members), images, labels)

    fit = population.fit(
        planting.store.images,
        planting.store.labels,
        members.schedule,
        optimizer=study.training.optimizer,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        probes={name: probe(question) for name, question in questions.items()}
        | {name: further.read for name, further in probes.items()},
        probe_steps={name: question.steps for name, question in questions.items()}
        | {name: further.steps for name, further in probes.items()},
        checkpoint=checkpoint,
        compiled=execution.compiled,
        on_step=on_step,
        **members.options,
    )
    return fit, population


def check_converged(signals: NDArray[np.float64], name: str) -> None:
    """Refuse signals that are not finite.

    Raises:
        InvalidInput: Training diverged.
    """
    if not bool((abs(signals) < 1e30).all()):
        raise InvalidInput(
            f"Training diverged: a member's logits are not finite in part {name!r}.",
            hint="Lower training.options.lr, or clip the gradient.",
        )


def accuracy_of(population: Population, planting: Planting) -> NDArray[np.float64]:
    """Return each member's accuracy on test examples."""
    correct = label_signals(population, planting.test.images, planting.test.labels)[:, 2]
    accuracy: NDArray[np.float64] = correct.mean(1).cpu().numpy()
    return accuracy


def how_trained(name: str, fit: Fit) -> dict[str, Any]:
    """Return what the record keeps of how a population was trained."""
    return {
        f"{name}.backend": f"{fit.backend} ({fit.reason})",
        f"{name}.split": fit.split,
        f"{name}.precision": fit.precision,
    }


def task_fields(test_accuracy: NDArray[np.float64], data: AuditData) -> dict[str, Any]:
    """Return how well the models do what they are for."""
    return {
        "test_accuracy": float(test_accuracy.mean()),
        "test_examples": len(data.test),
        "majority": float(np.bincount(data.test.labels).max() / len(data.test)),
    }


def maker_of(
    study: Classifiers,
    execution: Execution,
    *,
    like: NDArray[Any],
    classes: int,
) -> Callable[[], nn.Module]:
    """Return what makes the study's model for inputs of this shape and type.

    Args:
        study: Whose model it is.
        execution: With the trusted file, for a network of the user's own.
        like: Inputs, ``(n, ...)``: images, features, or whole numbers such as tokens.
        classes: How many.
    """
    model, shape = study.model, like.shape[1:]
    if model.maker is None:
        return model_maker(model.name, shape=shape, classes=classes, **model.arguments)
    file = file_of(model, "maker", execution)
    make = partial(call, "model.maker", model.maker, file, model.arguments)
    whole = like.dtype.kind == "i"
    return own_network(make, named=f"model.maker={model.maker!r}", shape=shape, whole=whole)


def _maker(study: Classifiers, data: AuditData, execution: Execution) -> Callable[[], nn.Module]:
    return maker_of(study, execution, like=data.clean.images, classes=data.classes)


def _check_own_network(study: Classifiers, data: AuditData, execution: Execution) -> None:
    """Try the user's network on a few examples, so that its faults are known before training."""
    few = standardised(data, data.clean.take(np.arange(min(_TRIED, len(data.clean)))))[0]
    named = f"model.maker={study.model.maker!r}"
    on = f"{named} on inputs of shape {few.images.shape}"
    with explained([file_of(study.model, "maker", execution)], named=on, anywhere=True):
        check_network(
            _maker(study, data, execution),
            torch.from_numpy(few.images),
            torch.from_numpy(few.labels),
            named=named,
            classes=data.classes,
            loss=cross_entropy,
        )
    if study.model.hidden is not None:
        module = _maker(study, data, execution)()
        try:
            check_layer(module, torch.from_numpy(few.images), study.model.hidden)
        except UnsupportedModel as fault:
            raise PlanError(f"model.options.hidden: {fault.message}", hint=fault.hint) from fault
