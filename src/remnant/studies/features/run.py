"""Does a classifier memorise what is on one training image only? FEATURE, many models."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data import AuditData
from remnant.data.image_shapes import other_images
from remnant.errors import PlanError
from remnant.plans.plan import fingerprint
from remnant.progress import Progress
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.features.measure import variant_result
from remnant.studies.features.recipe import FeatureStudy
from remnant.studies.features.result import (
    Features,
    PatchPlace,
    PictureKind,
    PictureRow,
    ProbeImages,
    VariantResult,
)
from remnant.studies.features.stamped_answers import Stamps, draw_nulls, draw_stamps
from remnant.studies.features.training import (
    Asked,
    Stamped,
    checkpoint_file,
    first_influence,
    fit_members,
    influential_places,
    random_places,
    stamp_canaries,
    total_steps,
    train_variant,
)
from remnant.studies.features.verdict import feature_gate, feature_scope
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock
from remnant.studies.shared.classifiers import check_training, load_data, task_fields
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.variants import difference

_OTHER, _OWN = 5, 6  # of the plan's streams: what is drawn for other and for own images
_SHOWN = 5  # pictures of a kind
_CONVENTION = (
    "mean KL(clean‖patch) - mean KL(clean‖random), {control} random patches, in nats; p-value: "
    "rank among {nulls} patches never planted"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """How a study is run, its record, and the progress callback."""

    execution: Execution
    record: Record
    progress: Progress | None


def prepare(study: FeatureStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load the images; the work trains every variant's members and asks them."""
    data = load_data(study, execution)
    images = _check(study, data, execution)
    return Prepared(
        data_fingerprint=fingerprint([data.fingerprint, _digest(images)]),
        seeds={"plan": study.plan.seed, "data": study.data.seed, "images": study.images.seed},
        origins=[data.origin],
        work=lambda record: _work(study, data, images, _Run(execution, record, progress)),
    )


def _work(study: FeatureStudy, data: AuditData, images: NDArray[np.float32], run: _Run) -> None:
    record = run.record
    stamped, high = _stamped(study, data, run)
    key = f"{record.plan_fingerprint}/{record.data_fingerprint}"
    other = _stamps(study, stamped, images, _OTHER)
    own = _stamps(study, stamped, data.pool.images, _OWN), data.pool.labels
    ways = study.ways()
    every = [_variant(study, name, key, stamped) for name in ways]
    kept = record.array_names()
    run_jobs(
        [job for job in every if f"{job.name}.unique" not in kept],
        shared=Asked(stamped, other, own),
        record=record,
        execution=run.execution,
        progress=run.progress,
        whole=Workload.of(every),
    )
    epoch = study.plan.epoch(stamped.examples)
    variants = tuple(
        variant_result(
            way, record, name, label=label, changes=_changes(study, way), high=high, epoch=epoch
        )
        for name, (label, way) in ways.items()
    )
    features = _features(study, variants, _pictures(record, stamped, other))
    bare = record.array("plain.test_accuracy")[study.plan.bare]
    task = task_fields(bare, data)
    put_parts(
        record,
        features=features,
        task=ClassifierTask(**task),
        verdict=feature_gate(study, features.plain, majority=task["majority"]),
        scope=feature_scope(study, variants),
    )


def _variant(study: FeatureStudy, name: str, key: str, stamped: Stamped) -> Job:
    """Return the job that trains one variant."""
    _, way = study.ways()[name]
    return Job(
        name=name,
        work=partial(train_variant, way, name, key, study.influence.on and name == "plain"),
        members=way.plan.members,
        steps=total_steps(way, stamped),
        saved=checkpoint_file(name),
    )


def _influence(study: FeatureStudy, key: str, stamped: Stamped) -> Job:
    """Return the job that trains the model by whose influence canaries are chosen."""
    return Job(
        name="influence",
        work=partial(first_influence, study, key),
        steps=total_steps(study, stamped),
        saved=checkpoint_file("influence"),
    )


def _stamped(
    study: FeatureStudy, data: AuditData, run: _Run
) -> tuple[Stamped, NDArray[np.bool_] | None]:
    """Choose the canaries and stamp them; also return which were chosen for a high influence."""
    patch, count, record = study.patch.made(), study.plan.canaries, run.record
    places, high = random_places(study, study.plan.trained(len(data.clean))), None
    if study.canaries.choice == "influence":
        if "influence.all" not in record.array_names():
            bare = stamp_canaries(study, data, patch, places)
            key = f"{record.plan_fingerprint}/{record.data_fingerprint}"
            run_jobs(
                [_influence(study, key, bare)],
                shared=bare,
                record=record,
                execution=run.execution,
                progress=run.progress,
            )
        places = influential_places(record.array("influence.all"), count)
        high = np.arange(count) < (count + 1) // 2
    stamped = stamp_canaries(study, data, patch, places)
    record.put_array("canaries.places", places)
    record.put_array("canaries.labels", stamped.clean.labels)
    return stamped, high


def _stamps(
    study: FeatureStudy, stamped: Stamped, images: NDArray[np.float32], stream: int
) -> Stamps:
    return draw_stamps(
        images,
        study.patch.made(),
        study.score,
        mean=stamped.mean,
        spread=stamped.spread,
        rng=np.random.default_rng([study.plan.seed, stream]),
    )


def _features(
    study: FeatureStudy, variants: tuple[VariantResult, ...], pictures: tuple[PictureRow, ...]
) -> Features:
    plan, score = study.plan, study.score
    return Features(
        patch=PatchPlace.of(study.patch.made(), study.patch.what),
        images=ProbeImages(name=study.images.name, n=study.images.count),
        canaries=plan.canaries,
        seeds=plan.seeds,
        unplanted=len(plan.bare),
        nulls=score.nulls,
        significance=score.significance,
        confidence=score.confidence,
        convention=_CONVENTION.format(control=score.control, nulls=score.nulls),
        pictures=pictures,
        variants=variants,
    )


def _pictures(record: Record, stamped: Stamped, other: Stamps) -> tuple[PictureRow, ...]:
    """Put a few images of each kind into the record, and say where they are."""
    shown = np.arange(min(_SHOWN, len(other.images)))
    few = stamped.clean.images[: len(shown)]
    chance = other.controls
    made: dict[PictureKind, tuple[str, NDArray[np.float32]]] = {
        "clean": ("training images as they are", few),
        "patched": ("the same as planted", stamped.patched.images[: len(shown)]),
        "random": ("the same with random patches", chance.take(shown[: len(few)]).stamp(few)),
        "image": ("images that models were asked about", other.images[shown]),
        "image patched": ("the same with the patch", other.patch.stamp(other.images[shown])),
        "image random": (
            "the same with random patches",
            chance.take(shown).stamp(other.images[shown]),
        ),
    }
    rows = []
    for what, (title, images) in made.items():
        name = f"pictures.{what.replace(' ', '-')}"
        record.put_array(name, images)
        rows.append(PictureRow(what=what, title=title, array=name))
    return tuple(rows)


def _changes(study: FeatureStudy, way: FeatureStudy) -> str:
    """In which a variant differs, in words."""
    alone = dataclasses.replace(study, variants=()).to_dict()
    return ", ".join(_changed_settings(difference(alone, way.to_dict()), alone))


def _changed_settings(changes: dict[str, Any], alone: dict[str, Any]) -> Iterable[str]:
    for section, fields in changes.items():
        for name, value in fields.items():
            if isinstance(value, dict):
                old = alone[section].get(name, {})
                yield from (
                    f"{key.replace('_', ' ')} {_word(option)}"
                    for key, option in value.items()
                    if old.get(key) != option
                )
                yield from (f"no {key.replace('_', ' ')}" for key in old if key not in value)
            else:
                yield f"{section if section == name else name.replace('_', ' ')} {_word(value)}"


def _word(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"


def _check(study: FeatureStudy, data: AuditData, execution: Execution) -> NDArray[np.float32]:
    """Refuse what cannot be planted, trained or asked before anything is written."""
    shape, plan = data.clean.images.shape[1:], study.plan
    if not data.are_images:
        raise PlanError(
            f"A patch is stamped on images, and {study.data.title} has {data.form}.",
            hint="Give images: (examples, height, width) or with channels.",
        )
    for _, way in study.ways().values():
        way.patch.check(shape, crop=way.augment.crop)
        check_training(way, data, execution)
    trained = plan.trained(len(data.clean))
    if plan.canaries > trained:
        raise PlanError(
            f"plan.canaries={plan.canaries} are more than the {trained} training examples of "
            f"{study.data.title}.",
            hint="Plant fewer, or give more data.",
        )
    missing = sorted(set(data.clean.labels[:trained].tolist()) - set(data.pool.labels.tolist()))
    if missing:
        raise PlanError(
            f"no held-out image of {study.data.title} has the class {missing[0]}, on which the "
            "white-box score is measured."
        )
    images = other_images(
        study.images.name,
        shape=shape,
        count=study.images.count,
        folder=execution.data_folder,
        seed=study.images.seed,
    )
    draw_nulls(study.patch.made(), study.score.nulls, np.random.default_rng(0))
    return images


def _digest(images: NDArray[np.float32]) -> str:
    return hashlib.sha256(images.tobytes()).hexdigest()[:16]


def estimate(study: FeatureStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take at most.

    Members stop early, as a rule long before the plan's last epoch.
    """
    data = load_data(study, execution)
    _check(study, data, execution)
    places = random_places(study, study.plan.trained(len(data.clean)))
    stamped = stamp_canaries(study, data, study.patch.made(), places)
    memory, jobs = 0, []
    if study.canaries.choice == "influence":
        jobs.append(planned_job(_influence(study, "", stamped), seconds=None))
    for name, (_, way) in study.ways().items():
        clock = StepClock(execution.device)
        # On a CPU hundreds of models take seconds a step, and a few steps tell.
        few = 12 if execution.device.startswith("cuda") else 4
        fit, _ = fit_members(way, stamped, execution, steps=few, on_step=clock)
        seconds = clock.typical * total_steps(way, stamped)
        jobs.append(planned_job(_variant(study, name, "", stamped), seconds=seconds, stage=1))
        memory = max(memory, fit.memory)
    return {
        "members": study.plan.members * len(study.ways()),
        "steps": total_steps(study, stamped),
        "memory_mib": round((memory + stamped.store.images.nbytes) / 2**20, 1),
        "minutes": round(sum(job["minutes"] or 0.0 for job in jobs), 2),
        "groups": jobs,
        "at_most": True,
    }
