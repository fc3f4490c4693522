"""Does a classifier memorise what stood on one training image only? FEATURE, many models."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data import AuditData
from remnant.data.other_images import other_images
from remnant.errors import NotEnoughEvidence, PlanError, require
from remnant.plans import FeaturePlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.records import Record
from remnant.studies.classifiers import Classifiers, check_training, load_data, task_fields
from remnant.studies.features_asking import Stamps, draw_stamps
from remnant.studies.features_results import variant_fields
from remnant.studies.features_settings import (
    AugmentSettings,
    FeatureCanarySettings,
    InfluenceSettings,
    OtherImageSettings,
    PatchSettings,
    ScoreSettings,
)
from remnant.studies.features_training import (
    Stamped,
    first_influence,
    fit_members,
    influential_places,
    random_places,
    stamp_canaries,
    total_steps,
    train_variant,
)
from remnant.studies.features_verdict import scope_fields, verdict_fields
from remnant.studies.machine import StepClock
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, TrainingSettings
from remnant.studies.variants import Variant, difference, label_faults

Progress = Callable[[str, int, int], None]
_OTHER, _OWN = 5, 6  # of the plan's streams: what is drawn for other and for own images
_SHOWN = 5  # pictures of a kind
_PARTS = ("data", "canaries", "images", "score", "influence", "augment", "model", "training")
_CONVENTION = (
    "mean KL(clean‖patch) - mean KL(clean‖random), {control} random patches, in nats; p-value: "
    "rank among {nulls} patches never planted"
)


@dataclass(frozen=True, kw_only=True)
class FeatureStudy(Classifiers):
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        variants: Other ways to train the same: they differ in model, training or augmentation.
    """

    plan: FeaturePlan = field(default_factory=FeaturePlan)
    patch: PatchSettings = field(default_factory=PatchSettings)
    canaries: FeatureCanarySettings = field(default_factory=FeatureCanarySettings)
    images: OtherImageSettings = field(default_factory=OtherImageSettings)
    score: ScoreSettings = field(default_factory=ScoreSettings)
    influence: InfluenceSettings = field(default_factory=InfluenceSettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 3e-4})
    )
    variants: tuple[Variant[FeatureStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", tuple(self.variants))
        faults = label_faults(["plain", *(variant.label for variant in self.variants)])
        for variant in self.variants:
            other = [
                name
                for name in ("plan", "data", "patch", "canaries", "images", "score", "influence")
                if getattr(variant.study, name) != getattr(self, name)
            ]
            faults += [f"variant {variant.label!r} changes [{name}]" for name in other]
        require(faults, error=PlanError, hint="A variant changes model, training or augment.")
        self.score.steps(epoch=1, epochs=self.plan.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part; not what the patch says."""
        made: dict[str, Any] = {"question": "unique-features", "plan": self.plan.to_dict()}
        made["patch"] = self.patch.to_dict()
        for name in _PARTS:
            made[name] = dataclasses.asdict(getattr(self, name))
        made["score"]["moments"] = list(self.score.moments)
        if self.variants:
            alone = dict(made)
            made["variants"] = {
                variant.label: difference(alone, variant.study.to_dict())
                for variant in self.variants
            }
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))

    def ways(self) -> dict[str, tuple[str, FeatureStudy]]:
        """Return the study alone and its variants: by the name of their arrays, with labels."""
        made = {"plain": ("plain", dataclasses.replace(self, variants=()))}
        for i, variant in enumerate(self.variants, start=1):
            made[f"variant{i}"] = (variant.label, variant.study)
        return made


def run_features(
    study: FeatureStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``: train every variant's members, ask them, measure.

    A run that was cut short goes on, from the last checkpoint of the variant it was at.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    data = load_data(study, execution)
    images = _check(study, data, execution)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=fingerprint([data.fingerprint, _digest(images)]),
        seeds={"plan": study.plan.seed, "data": study.data.seed, "images": study.images.seed},
        work=lambda record: _carry_out(study, data, images, execution, record, progress),
    )


def _carry_out(
    study: FeatureStudy,
    data: AuditData,
    images: NDArray[np.float32],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    stamped, high = _stamped(study, data, execution, record, progress)
    other = _stamps(study, stamped, images, _OTHER)
    own = _stamps(study, stamped, data.pool.images, _OWN), data.pool.labels
    ways = study.ways()
    for name, (_, way) in ways.items():
        if f"{name}.unique" not in record.array_names():
            influence = study.influence.on and name == "plain"
            train_variant(
                way, name, stamped, other, own, execution, record, progress, influence=influence
            )
    epoch = study.plan.epoch(stamped.examples)
    variants = [
        variant_fields(
            way, record, name, label=label, changes=_changes(study, way), high=high, epoch=epoch
        )
        for name, (label, way) in ways.items()
    ]
    pictures = _pictures(record, stamped, other)
    record.put_result("features", _fields(study, variants, pictures))
    bare = record.array("plain.test_accuracy")[study.plan.bare]
    task = task_fields(bare, data)
    record.put_result("task", task)
    record.put_result("verdict", verdict_fields(study, variants[0], majority=task["majority"]))
    record.put_result("scope", scope_fields(study, variants))
    record.finish()


def _stamped(
    study: FeatureStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> tuple[Stamped, NDArray[np.bool_] | None]:
    """Choose the canaries and stamp them; which ones were chosen for a high influence."""
    patch, count = study.patch.made(), study.plan.canaries
    places, high = random_places(study, study.plan.trained(len(data.clean))), None
    if study.canaries.choice == "influence":
        if "influence.all" not in record.array_names():
            bare = stamp_canaries(study, data, patch, places)
            first_influence(study, bare, execution, record, progress)
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


def _fields(
    study: FeatureStudy, variants: list[dict[str, Any]], pictures: list[dict[str, str]]
) -> dict[str, Any]:
    plain, plan, score = study.patch.to_dict(), study.plan, study.score
    return {
        "patch": {
            "what": study.patch.what,
            **{name: plain[name] for name in ("row", "column", "height", "width", "opacity")},
        },
        "images": {"name": study.images.name, "n": study.images.count},
        "canaries": plan.canaries,
        "seeds": plan.seeds,
        "unplanted": len(plan.bare),
        "nulls": score.nulls,
        "significance": score.significance,
        "confidence": score.confidence,
        "convention": _CONVENTION.format(control=score.control, nulls=score.nulls),
        "pictures": pictures,
        "variants": variants,
    }


def _pictures(record: Record, stamped: Stamped, other: Stamps) -> list[dict[str, str]]:
    """Put a few images of each kind into the record, and say where they are."""
    rows = np.arange(min(_SHOWN, len(other.images)))
    few = stamped.clean.images[: len(rows)]
    chance = other.controls
    made = {
        "clean": ("training images as they are", few),
        "patched": ("the same as planted", stamped.patched.images[: len(rows)]),
        "random": ("the same with random patches", chance.take(rows[: len(few)]).stamp(few)),
        "image": ("images that models were asked about", other.images[rows]),
        "image patched": ("the same with the patch", other.patch.stamp(other.images[rows])),
        "image random": (
            "the same with random patches",
            chance.take(rows).stamp(other.images[rows]),
        ),
    }
    found = []
    for what, (title, images) in made.items():
        name = f"pictures.{what.replace(' ', '-')}"
        record.put_array(name, images)
        found.append({"what": what, "title": title, "array": name})
    return found


def _changes(study: FeatureStudy, way: FeatureStudy) -> str:
    """In which a variant differs, in words."""
    alone = dataclasses.replace(study, variants=()).to_dict()
    return ", ".join(_told(difference(alone, way.to_dict()), alone))


def _told(changes: dict[str, Any], alone: dict[str, Any]) -> Iterable[str]:
    for section, fields in changes.items():
        for name, value in fields.items():
            if isinstance(value, dict):
                old = alone[section].get(name, {})
                yield from (
                    f"{key.replace('_', ' ')} {_word(one)}"
                    for key, one in value.items()
                    if old.get(key) != one
                )
                yield from (f"no {key.replace('_', ' ')}" for key in old if key not in value)
            else:
                yield f"{section if section == name else name.replace('_', ' ')} {_word(value)}"


def _word(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"


def _check(study: FeatureStudy, data: AuditData, execution: Execution) -> NDArray[np.float32]:
    """Refuse what cannot be planted, trained or asked before anything is written."""
    shape, plan = data.clean.images.shape[1:], study.plan
    for _, way in study.ways().values():
        way.patch.check(shape, crop=way.augment.crop)
        check_training(way, data, execution)
    trained = plan.trained(len(data.clean))
    if plan.canaries > trained:
        raise PlanError(
            f"plan.canaries={plan.canaries} are more than the {trained} training examples of "
            f"{study.data.name}.",
            hint="Plant fewer, or give more data.",
        )
    missing = sorted(set(data.clean.labels[:trained].tolist()) - set(data.pool.labels.tolist()))
    if missing:
        raise PlanError(
            f"no held-out image of {study.data.name} has the class {missing[0]}, on which the "
            "white-box score is measured."
        )
    images = other_images(
        study.images.name,
        shape=shape,
        count=study.images.count,
        folder=execution.data_folder,
        seed=study.images.seed,
    )
    try:
        study.patch.made().shuffles(np.random.default_rng(0), study.score.nulls)
    except NotEnoughEvidence as fault:
        raise PlanError(
            f"score.nulls={study.score.nulls}: {fault.message}", hint=fault.hint
        ) from None
    return images


def _digest(images: NDArray[np.float32]) -> str:
    return hashlib.sha256(images.tobytes()).hexdigest()[:16]


def estimate_features(study: FeatureStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take at most.

    Members stop early, as a rule long before the plan's last epoch.
    """
    data = load_data(study, execution)
    _check(study, data, execution)
    places = random_places(study, study.plan.trained(len(data.clean)))
    stamped = stamp_canaries(study, data, study.patch.made(), places)
    memory, seconds = 0, 0.0
    for _, way in study.ways().values():
        clock = StepClock(execution.device)
        # On a CPU hundreds of models take seconds a step, and a few steps tell.
        few = 12 if execution.device.startswith("cuda") else 4
        fit, _ = fit_members(way, stamped, execution, steps=few, on_step=clock)
        seconds += clock.typical * total_steps(way, stamped)
        memory = max(memory, fit.memory)
    return {
        "members": study.plan.members * len(study.ways()),
        "steps": total_steps(study, stamped),
        "memory_mib": round((memory + stamped.store.images.nbytes) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "at_most": True,
    }
