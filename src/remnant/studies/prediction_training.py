"""Trains a prediction study's models: the targets that are looked at, and the pool of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.plans.fingerprint import lasting
from remnant.population import Checkpoint, Population, remove_checkpoint
from remnant.probes import MARGINS, margin_signals
from remnant.probes.one_pass import one_pass
from remnant.records import Record
from remnant.studies.classifiers import (
    Members,
    Probe,
    SomeMembers,
    accuracy_of,
    check_converged,
    fit_classifiers,
    how_trained,
    maker_of,
)
from remnant.studies.image_canaries import Planting
from remnant.studies.prediction_evidence import (
    LOSS,
    Looks,
    risks_of,
    target_members,
    trace_steps,
)
from remnant.studies.settings import Execution
from remnant.studies.shadow_pool import PoolScores, fill_pool, read_pool

if TYPE_CHECKING:
    from remnant.studies.prediction import PredictionStudy

Progress = Callable[[str, int, int], None]
_BATCH = 1024  # examples whose hidden states are made at once
_DIRECTIONS = 3  # of the plan's streams: directions are the same for all targets and moments


def epoch_of(study: PredictionStudy, planting: Planting) -> float:
    """Updates in an epoch of one model."""
    return len(planting.store) / 2 / study.plan.batch


def shadow_members(
    study: PredictionStudy, planting: Planting, chosen: range | tuple[int, ...]
) -> Members:
    """Return some members of the study's plan."""
    seeds = study.plan.seeds
    own = [seeds[member] for member in chosen]
    return Members(
        schedule=study.plan.schedule(examples=len(planting.store), members=chosen),
        seeds=own,
        dropout_seeds=own,
        options=study.training.options,
        precision=study.plan.precision,
    )


def look_at_targets(
    study: PredictionStudy,
    planting: Planting,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> Looks:
    """Train the targets, and look at them at every moment."""
    targets = target_members(study.plan, study.predict.targets)
    seen = study.plan.seen(examples=len(planting.store), members=targets)
    epoch = epoch_of(study, planting)
    steps = study.predict.steps(epoch=epoch, last=study.plan.steps)
    store, path = planting.store, record.folder / "checkpoint-targets.safetensors"

    def look(models: Population) -> NDArray[np.float64]:
        return _look_once(study, planting, models, seen)

    def losses(models: Population) -> Any:
        first = SomeMembers(models, slice(1))
        return margin_signals(first, store.images[seen[0]], store.labels[seen[0]])[0, LOSS]

    fit, population = fit_classifiers(
        study,
        shadow_members(study, planting, targets),
        planting,
        execution,
        also={
            "looks": Probe(look, steps),
            "trace": Probe(losses, trace_steps(epoch=epoch, last=study.plan.steps)),
        },
        checkpoint=Checkpoint(
            path,
            seconds=execution.checkpoint_seconds,
            key=f"{study.fingerprint}/{record.data_fingerprint}/targets",
        ),
        on_step=_told(progress, "targets", study.plan.steps),
    )
    found, trace = fit.probes["looks"], np.full((len(fit.probes["trace"]), len(store)), np.nan)
    trace[:, seen[0]] = fit.probes["trace"]
    check_converged(trace[:, seen[0]], "targets")
    record.put_array("targets.test_accuracy", accuracy_of(population, planting))
    record.update_execution(how_trained("targets", fit))
    remove_checkpoint(path)
    # (moments, 1 + layers, targets, 3, n): signals, then PSMI, Mahalanobis and SMI by layer.
    found[0, 1:] = np.nan
    return Looks(
        steps=steps,
        layers=study.predict.layers,
        signals=found[:, 0],
        psmi=found[:, 1:, :, 0],
        mahalanobis=found[:, 1:, :, 1],
        smi=found[:, 1:, :, 2, 0],
        trace=trace,
    )


def _look_once(
    study: PredictionStudy, planting: Planting, models: Population, seen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Signals and risks of all targets at one moment, from one pass over their own examples."""
    layers, labels = study.predict.layers, planting.store.labels
    found = np.full((1 + len(layers), len(seen), len(MARGINS), seen.shape[1]), np.nan)
    for target, row in enumerate(seen):
        module = maker_of(study, shape=planting.shape, classes=planting.classes)()
        module.load_state_dict(models.state_dict(target))
        module.to(models.device)
        looked = one_pass(
            module,
            torch.from_numpy(planting.store.images[row]),
            torch.from_numpy(labels[row]),
            layers=layers,
            batch=_BATCH,
        )
        signals = [looked.losses, looked.log_odds, looked.logit_gaps]
        found[0, target][:, row] = torch.stack(signals).numpy()
        for place, hidden in enumerate(looked.hidden):
            rng = np.random.default_rng([study.plan.seed, _DIRECTIONS])
            psmi, smi, far = risks_of(
                hidden.to(models.device), labels, row, study.predict, rng, far=target == 0
            )
            found[1 + place, target] = psmi, far, np.full(row.size, smi)
    return found


def pool_recipe(study: PredictionStudy) -> dict[str, Any]:
    """Return what changes the scores of a pool and is known before training, besides the plan."""
    plain = lasting(study, study.to_dict())
    return {name: plain[name] for name in ("data", "canaries", "model", "training")}


def pool_scores(
    study: PredictionStudy,
    planting: Planting,
    execution: Execution,
    record: Record,
    stop: int,
    progress: Progress | None,
) -> PoolScores:
    """Fill the pool with all models' signals at the stop and at the end, and read it."""
    plan, store = study.plan, planting.store
    known: dict[str, Any] = {
        "recipe": {**pool_recipe(study), "scored": [stop, plan.steps]},
        "data_fingerprint": record.data_fingerprint,
    }
    folder = execution.pool_folder or record.folder / "pool"

    def train(first: int, last: int, where: Path) -> NDArray[np.float64]:
        path = where / f"checkpoint-{first}-{last}.safetensors"
        name = f"models {first + 1} to {last} of {plan.models}"
        fit, _ = fit_classifiers(
            study,
            shadow_members(study, planting, range(first, last)),
            planting,
            execution,
            also={
                "signals": Probe(
                    lambda models: margin_signals(models, store.images, store.labels),
                    tuple(sorted({stop, plan.steps})),
                )
            },
            checkpoint=Checkpoint(
                path,
                seconds=execution.checkpoint_seconds,
                key=f"{study.fingerprint}/{record.data_fingerprint}/{first}-{last}",
            ),
            on_step=_told(progress, name, plan.steps),
        )
        found = fit.probes["signals"]
        return np.concatenate([found[0], found[-1]], axis=1)

    fill_pool(
        folder, plan, **known, train=train, device=execution.device, block=execution.pool_block
    )
    return read_pool(folder, plan, **known)


def _told(progress: Progress | None, name: str, steps: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(name, done, steps)
