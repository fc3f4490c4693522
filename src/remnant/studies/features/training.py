"""Trains a feature study's members, one variant after another, and asks them when they are done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from remnant.canaries import Patch
from remnant.data import AuditData, Images
from remnant.errors import NotEnoughEvidence
from remnant.plans.plan import FEATURE_CANARIES
from remnant.plans.schedule import generator
from remnant.population import (
    Augmentation,
    Checkpoint,
    EarlyStop,
    Fit,
    Population,
)
from remnant.probes import label_signals
from remnant.studies.features.influence import InfluenceProbe, influence_steps
from remnant.studies.features.recipe import FeatureStudy
from remnant.studies.features.stamped_answers import Stamps, fired, m_values, reactions, white_box
from remnant.studies.jobs.execution import JobContext
from remnant.studies.shared.classifiers import check_converged, how_trained, maker_of
from remnant.studies.shared.settings import Execution

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Probes = dict[str, tuple[Callable[[Population], Any], tuple[int, ...]]]
_SAMPLE = 1000  # training examples on which the loss is read where influence is measured
_ACTIVATED = 500  # images on which hidden units are watched


def checkpoint_file(name: str) -> str:
    """Return the name of the file in which the training of a variant is saved."""
    return f"checkpoint-{name}.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """What members are trained on and held against.

    Attributes:
        store: Training examples, then the canaries with the patch; standardised.
        validation, test: Held out, standardised alike.
        places: The training example that each canary is.
        clean, patched: The canaries' images in [0, 1], without and with the patch.
        classes: How many.
        mean, spread: Of the training data.
    """

    store: Images
    validation: Images
    test: Images
    places: Ints
    clean: Images
    patched: Images
    classes: int
    mean: float
    spread: float

    @property
    def examples(self) -> int:
        """How many training examples there are."""
        return len(self.store) - len(self.places)


def stamp_canaries(study: FeatureStudy, data: AuditData, patch: Patch, places: Ints) -> Stamped:
    """Cut the clean data in two and put the stamped canaries behind the training part."""
    trained = study.plan.trained(len(data.clean))
    mean, spread = float(data.clean.images.mean()), float(data.clean.images.std())
    clean = data.clean.take(places)
    patched = Images(patch.stamp(clean.images), clean.labels)

    def ready(*parts: Images) -> Images:
        images = np.concatenate([part.images for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        return Images(((images - mean) / spread).astype(np.float32), labels)

    rows = np.arange(len(data.clean))
    return Stamped(
        store=ready(data.clean.take(rows[:trained]), patched),
        validation=ready(data.clean.take(rows[trained:])),
        test=ready(data.test),
        places=places,
        clean=clean,
        patched=patched,
        classes=data.classes,
        mean=mean,
        spread=spread,
    )


def random_places(study: FeatureStudy, examples: int) -> Ints:
    """Draw which training examples are canaries."""
    order = generator(study.plan.seed, FEATURE_CANARIES).permutation(examples)
    return order[: study.plan.canaries].astype(np.int64)


def influential_places(influence: Floats, count: int) -> Ints:
    """Return the examples of the highest influence, highest first, then those of the lowest.

    Example:
        >>> influential_places(np.array([3.0, 9.0, 0.0, 5.0]), 3).tolist()
        [1, 3, 2]
    """
    order = np.argsort(-influence, kind="stable")
    high = (count + 1) // 2
    low = order[::-1][: count - high]
    return np.concatenate([order[:high], low]).astype(np.int64)


def fit_members(
    study: FeatureStudy,
    stamped: Stamped,
    execution: Execution,
    *,
    members: Ints | None = None,
    probes: Probes | None = None,
    checkpoint: Checkpoint | None = None,
    steps: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> tuple[Fit, Population]:
    """Train all members of the plan or some, each until it stops early."""
    plan = study.plan
    chosen = np.arange(plan.members) if members is None else members
    starts, masks = np.array(plan.starts)[chosen], np.array(plan.dropout_seeds)[chosen]
    noises = np.array(plan.noise_seeds)[chosen]
    population = Population(
        maker(study, stamped, execution),
        seeds=starts.tolist(),
        dropout_seeds=masks.tolist(),
        noise_seeds=noises.tolist(),
        device=execution.device,
        precision=plan.precision,
        compared=study.model.maker is not None,
    )
    probes, augment = probes or {}, study.augment
    fit = population.fit(
        stamped.store.images,
        stamped.store.labels,
        plan.schedule(examples=stamped.examples, places=stamped.places, members=chosen.tolist()),
        optimizer=study.training.optimizer,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        steps=steps,
        probes={name: read for name, (read, _) in probes.items()},
        probe_steps={name: times for name, (_, times) in probes.items()},
        early_stop=EarlyStop(
            stamped.validation.images,
            stamped.validation.labels,
            every=plan.epoch(stamped.examples),
            patience=plan.patience,
        ),
        augment=Augmentation(contrast=augment.contrast, crop=augment.crop, flip=augment.flip),
        checkpoint=checkpoint,
        compiled=execution.compiled,
        on_step=on_step,
        **study.training.options,
    )
    return fit, population


def maker(study: FeatureStudy, stamped: Stamped, execution: Execution) -> Callable[[], nn.Module]:
    """Return what makes the study's model."""
    return maker_of(study, execution, like=stamped.store.images, classes=stamped.classes)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What members are trained on, and what they are asked about.

    Attributes:
        stamped: What they are trained on.
        other: Images of another kind, for M.
        own: Held-out images of the task and their labels, for the white-box score.
    """

    stamped: Stamped
    other: Stamps
    own: tuple[Stamps, Ints]


def first_influence(study: FeatureStudy, key: str, stamped: Stamped, context: JobContext) -> None:
    """Train the first seed's twin alone; store the influence of every training example on it.

    Args:
        study: The study.
        key: Of the checkpoint.
        stamped: What it is trained on.
        context: Where it runs.
    """
    own = Images(stamped.store.images[: stamped.examples], stamped.store.labels[: stamped.examples])
    sample = own.take(np.arange(min(_SAMPLE, len(own))))
    probe = InfluenceProbe(maker(study, stamped, context.execution), sample=sample, examples=[own])
    steps = total_steps(study, stamped)
    times = influence_steps(last=steps)
    fit, _ = fit_members(
        study,
        stamped,
        context.execution,
        members=study.plan.twins[:1],
        probes={"influence": (probe, times)},
        checkpoint=context.checkpoint(checkpoint_file("influence"), f"{key}/influence"),
        on_step=context.on_step("a training with nothing planted", steps),
    )
    (influence,) = _influence(study, probe, fit.probes["influence"], times)
    context.output.put_array("influence.all", influence)


def train_variant(
    study: FeatureStudy, name: str, key: str, influence: bool, asked: Asked, context: JobContext
) -> None:
    """Train all members of one variant, ask them, and put everything into the output.

    Args:
        study: The variant, whole.
        name: Before the dot in its arrays' names.
        key: Of the checkpoint.
        influence: Whether self-influence is measured.
        asked: What it is trained on and asked about.
        context: Where it runs.
    """
    stamped, other, own = asked.stamped, asked.other, asked.own
    plan, steps = study.plan, total_steps(study, stamped)
    moments = study.score.steps(epoch=plan.epoch(stamped.examples), epochs=plan.epochs)
    probes: Probes = {}
    if moments:
        probes["through"] = (lambda models: m_values(models, other), moments)
    times = influence_steps(last=steps)
    probe = _influence_probe(study, stamped, context.execution)
    if influence:
        probes["influence"] = (probe, times)
    fit, population = fit_members(
        study,
        stamped,
        context.execution,
        probes=probes,
        checkpoint=context.checkpoint(checkpoint_file(name), f"{key}/{name}"),
        on_step=context.on_step(name, steps),
    )
    signals = label_signals(population, stamped.test.images, stamped.test.labels).cpu().numpy()
    check_converged(signals[:, :2], name)

    def put(what: str, array: Any) -> None:
        context.output.put_array(f"{name}.{what}", array)

    put("test_accuracy", signals[:, 2].mean(axis=1))
    stopped = np.zeros(plan.members, np.int64) if fit.stopped_at is None else fit.stopped_at
    put("updates", np.where(stopped < 0, fit.steps, stopped))
    if moments:
        put("through", fit.probes["through"])
    if influence:
        with suppress(NotEnoughEvidence):  # a loss that never fell has no checkpoints
            *after, before = _influence(study, probe, fit.probes["influence"], times)
            put("influence_before", before)
            put("influence_after", np.concatenate(after))
    if context.progress is not None:
        context.progress(f"{name}: asking", 0, 1)
    reacted = reactions(population, other)
    put("controls", reacted.controls)
    put("redrawn", reacted.redrawn)
    put("null_means", reacted.null_means)
    put("white_box", white_box(population, *own, stamped.clean.labels))
    if study.model.maker is None or study.model.hidden is not None:
        put("activations", _activations(study, asked, population, context.execution))
    context.output.update_execution(how_trained(name, fit))
    put("unique", reacted.unique)  # last: a variant that has it, has everything


def total_steps(study: FeatureStudy, stamped: Stamped) -> int:
    """Most updates of a member."""
    return study.plan.epochs * study.plan.epoch(stamped.examples)


def _influence_probe(study: FeatureStudy, stamped: Stamped, execution: Execution) -> InfluenceProbe:
    """Of the first seed: planted members and their stamped canary, the twin and all clean ones."""
    n = stamped.examples
    patched = [stamped.store.take(np.array([n + canary])) for canary in range(study.plan.canaries)]
    return InfluenceProbe(
        maker(study, stamped, execution),
        sample=stamped.store.take(np.arange(min(_SAMPLE, n))),
        examples=[*patched, stamped.store.take(stamped.places)],
    )


def _influence(
    study: FeatureStudy, probe: InfluenceProbe, read: Floats, steps: tuple[int, ...]
) -> list[Floats]:
    rate, factor = float(study.training.options.get("lr", 1.0)), study.training.rate().factor
    rates = np.array([rate * factor(max(step - 1, 0)) for step in steps])
    count, drop = study.influence.checkpoints, study.influence.drop
    return probe.influence(read, rates, count=count, drop=drop)


def _activations(
    study: FeatureStudy, asked: Asked, population: Population, execution: Execution
) -> Floats:
    """Patch and random ones in planted members of the first seed, and the patch in their twin."""
    make = maker(study, asked.stamped, execution)

    def of(member: int) -> Floats:
        module = make()
        module.load_state_dict(population.state_dict(member))
        module.to(population.device)
        return fired(module, asked.other, _ACTIVATED, layer=study.model.hidden)

    planted = np.mean([of(int(member)) for member in study.plan.grid[0]], axis=0)
    return np.concatenate([planted, of(int(study.plan.twins[0]))[:1]])
