"""Which questions will a fine-tuned language model memorise? SHADOW pools of LoRA adapters."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.plans import ShadowPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.population import AdapterPopulation, Checkpoint, Fit, FrozenModel, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.studies.asked_questions import (
    Asked,
    ask_all,
    ask_questions,
    held_out_accuracy,
    read_frozen,
)
from remnant.studies.classifiers import how_trained
from remnant.studies.machine import StepClock
from remnant.studies.prediction import check_shadow_study
from remnant.studies.prediction_evidence import (
    LOSS,
    Evidence,
    Looks,
    keep_looks,
    kept_looks,
    risks_of,
    target_members,
    trace_steps,
)
from remnant.studies.prediction_results import measure_prediction
from remnant.studies.prediction_settings import PredictSettings, TruthSettings
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, TrainingSettings
from remnant.studies.shadow_pool import PoolScores, check_pool, fill_pool, read_pool
from remnant.studies.text_prediction_settings import (
    LoraSettings,
    PretrainedSettings,
    QuestionSettings,
)

Progress = Callable[[str, int, int], None]
_DIRECTIONS = 3  # of the plan's streams: directions are the same for all targets and moments
_BLOCK = 50  # adapters are small, and a GPU is full with so many at the earliest
_SECTIONS = ("questions", "model", "lora", "training", "predict", "truth")


@dataclass(frozen=True, kw_only=True)
class TextPredictionStudy:
    """One question, whole: the plan and all that changes its numbers."""

    plan: ShadowPlan
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    model: PretrainedSettings = field(default_factory=PretrainedSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adamw", options={"lr": 1e-3})
    )
    predict: PredictSettings = field(default_factory=PredictSettings)
    truth: TruthSettings = field(default_factory=TruthSettings)

    def __post_init__(self) -> None:
        check_shadow_study(self.plan, self.predict)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "text-prediction", "plan": self.plan.to_dict()}
        for name in _SECTIONS:
            made[name] = dataclasses.asdict(getattr(self, name))
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))


def run_text_prediction(
    study: TextPredictionStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Carry out the study in ``folder``: look at targets, fill the pool, measure.

    A run that was cut short goes on; the pool is a record of its own, in ``folder/pool``, and tops
    up where the plan asks for more models than it has. No text of a question is written down.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    bench = _prepare(study, execution)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=bench.fingerprint,
        seeds={"plan": study.plan.seed, "questions": study.questions.seed},
        work=lambda record: _carry_out(bench, record, progress),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Bench:
    """A study with all that its training takes."""

    study: TextPredictionStudy
    execution: Execution
    asked: Asked
    frozen: FrozenModel
    fingerprint: str

    @property
    def epoch(self) -> float:
        """Updates in an epoch of one model."""
        return len(self.asked) / 2 / self.study.plan.batch

    def fit(
        self, members: range | tuple[int, ...], plan: ShadowPlan | None = None, **choices: Any
    ) -> tuple[Fit, AdapterPopulation]:
        """Train these members in the study's way; ``plan`` stands in for the study's own."""
        study, plan = self.study, plan or self.study.plan
        seeds = plan.seeds
        population = AdapterPopulation(
            self.frozen,
            [seeds[member] for member in members],
            lora=study.lora.made(),
            precision=plan.precision,
        )
        fit = population.fit(
            self.asked.tokens,
            self.asked.wanted,
            plan.schedule(examples=len(self.asked), members=members),
            optimizer=study.training.optimizer,
            learning_rate=study.training.rate(),
            clip=study.training.clip,
            **choices,
            **study.training.options,
        )
        return fit, population

    def checkpoint(self, path: Path, part: str) -> Checkpoint:
        """Return where and how a part of the training is saved."""
        key = f"{self.study.fingerprint}/{self.fingerprint}/{part}"
        return Checkpoint(path, seconds=self.execution.checkpoint_seconds, key=key)


def _prepare(study: TextPredictionStudy, execution: Execution) -> _Bench:
    """Read questions and model, and refuse what cannot be trained before anything is written."""
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    asked = ask_questions(study.questions, study.model, execution)
    frozen, weights = read_frozen(study.model, execution, precision=study.plan.precision)
    bench = _Bench(
        study,
        execution,
        asked,
        frozen,
        hashlib.sha256(f"{asked.fingerprint}/{weights}".encode()).hexdigest()[:16],
    )
    if execution.pool_folder is not None:
        check_pool(
            execution.pool_folder,
            study.plan,
            recipe=_pool_recipe(study),
            data_fingerprint=bench.fingerprint,
        )
    study.plan.seen(examples=len(asked), members=[0])
    study.predict.steps(epoch=bench.epoch, last=study.plan.steps)
    one = AdapterPopulation(frozen, [0], lora=study.lora.made(), precision=study.plan.precision)
    next(one.ask(asked.tokens[:1], layers=study.predict.layers))
    return bench


def _carry_out(bench: _Bench, record: Record, progress: Progress | None) -> None:
    study, asked = bench.study, bench.asked
    looks = kept_looks(record)
    if looks is None:
        looks = _look(bench, record, progress)
        keep_looks(record, looks)
    targets = target_members(study.plan, study.predict.targets)
    seen = study.plan.seen(examples=len(asked), members=targets)
    stop = looks.steps[looks.stopped(seen, drop=study.predict.drop)]
    record.put_result(
        "task",
        {
            "test_accuracy": float(record.array("targets.test_accuracy").mean()),
            "test_examples": len(asked.test_answers),
            "majority": float(np.bincount(asked.test_answers).max() / len(asked.test_answers)),
        },
    )
    evidence = Evidence(
        looks=looks,
        targets=targets,
        pool=_pool(bench, record, stop, progress),
        epoch=bench.epoch,
        labels=asked.answers,
        kinds=asked.kinds,
        what=(
            f"LoRA of rank {study.lora.rank} on {Path(study.model.folder).name}, multiple-choice "
            f"questions of {study.questions.name} with at most {study.questions.longest} tokens"
        ),
    )
    measure_prediction(record, study.plan, study.predict, study.truth, evidence)
    record.finish()


def _look(bench: _Bench, record: Record, progress: Progress | None) -> Looks:
    """Train the targets, and look at them at every moment."""
    study, asked = bench.study, bench.asked
    targets = target_members(study.plan, study.predict.targets)
    seen = study.plan.seen(examples=len(asked), members=targets)
    steps = study.predict.steps(epoch=bench.epoch, last=study.plan.steps)
    path = record.folder / "checkpoint-targets.safetensors"

    def look(models: AdapterPopulation) -> NDArray[np.float64]:
        return _look_once(bench, models, seen)

    def losses(models: AdapterPopulation) -> NDArray[np.float64]:
        signals, _ = ask_all(models, asked, members=slice(1))
        return np.asarray(signals[0, LOSS])

    fit, population = bench.fit(
        targets,
        probes={"looks": look, "trace": losses},
        probe_steps={
            "looks": steps,
            "trace": trace_steps(epoch=bench.epoch, last=study.plan.steps),
        },
        checkpoint=bench.checkpoint(path, "targets"),
        on_step=_told(progress, "targets", study.plan.steps),
    )
    record.put_array("targets.test_accuracy", held_out_accuracy(population, asked))
    record.update_execution(how_trained("targets", fit))
    record.update_execution({"questions.left_out": asked.left_out})
    remove_checkpoint(path)
    # (moments, 1 + layers, targets, 3, n): signals, then PSMI, Mahalanobis and SMI by layer.
    found = fit.probes["looks"]
    found[0, 1:] = np.nan
    return Looks(
        steps=steps,
        layers=study.predict.layers,
        signals=found[:, 0],
        psmi=found[:, 1:, :, 0],
        mahalanobis=found[:, 1:, :, 1],
        smi=found[:, 1:, :, 2, 0],
        trace=fit.probes["trace"],
    )


def _look_once(
    bench: _Bench, models: AdapterPopulation, seen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Signals of all targets, and the risks of their own examples at each layer."""
    study, layers = bench.study, bench.study.predict.layers
    signals, states = ask_all(models, bench.asked, layers=layers)
    found = np.empty((1 + len(layers), *signals.shape))
    found[0] = signals
    for (place, layer), (target, row) in itertools.product(enumerate(layers), enumerate(seen)):
        rng = np.random.default_rng([study.plan.seed, _DIRECTIONS])
        psmi, smi, far = risks_of(
            states[layer][target, torch.from_numpy(row).to(models.device)],
            bench.asked.answers,
            row,
            study.predict,
            rng,
            far=target == 0,
        )
        found[1 + place, target] = psmi, far, np.full(row.size, smi)
    return found


def _pool_recipe(study: TextPredictionStudy) -> dict[str, Any]:
    """What changes the scores of a pool and is known before training, besides the plan."""
    plain = lasting(study, study.to_dict())
    return {name: plain[name] for name in ("questions", "model", "lora", "training")}


def _pool(bench: _Bench, record: Record, stop: int, progress: Progress | None) -> PoolScores:
    """Fill the pool with all models' signals at the stop and at the end, and read it."""
    study, plan = bench.study, bench.study.plan
    known: dict[str, Any] = {
        "recipe": {**_pool_recipe(study), "scored": [stop, plan.steps]},
        "data_fingerprint": record.data_fingerprint,
    }
    folder = bench.execution.pool_folder or record.folder / "pool"

    def train(first: int, last: int, where: Path) -> NDArray[np.float64]:
        path = where / f"checkpoint-{first}-{last}.safetensors"
        fit, _ = bench.fit(
            range(first, last),
            probes={"signals": lambda models: ask_all(models, bench.asked)[0]},
            probe_steps=sorted({stop, plan.steps}),
            checkpoint=bench.checkpoint(path, f"{first}-{last}"),
            on_step=_told(progress, f"models {first + 1} to {last} of {plan.models}", plan.steps),
        )
        found = fit.probes["signals"]
        return np.concatenate([found[0], found[-1]], axis=1)

    block = max(_BLOCK, bench.execution.pool_block)
    fill_pool(folder, plan, **known, train=train, device=bench.execution.device, block=block)
    return read_pool(folder, plan, **known)


def _told(progress: Progress | None, name: str, steps: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(name, done, steps)


def estimate_text_prediction(study: TextPredictionStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    bench = _prepare(study, execution)
    block = min(max(_BLOCK, execution.pool_block), study.plan.models)
    clock = StepClock(execution.device)
    short = dataclasses.replace(study.plan, steps=4)
    fit, population = bench.fit(range(block), short, on_step=clock)
    a_step = clock.typical
    clock(0)
    few = dataclasses.replace(
        bench.asked, tokens=bench.asked.tokens[:8], answers=bench.asked.answers[:8]
    )
    ask_all(population, few)
    clock(0)
    asking = (clock.times[-1] - clock.times[-2]) * len(bench.asked) / len(few)
    moments = study.predict.steps(epoch=bench.epoch, last=study.plan.steps)
    targets, models = study.predict.targets, study.plan.models
    seconds = a_step * study.plan.steps * (models + targets) / block
    seconds += asking * (2 * models + len(moments) * targets) / block
    return {
        "members": models + targets,
        "steps": study.plan.steps,
        "memory_mib": round(fit.memory / 2**20, 1),
        "minutes": round(seconds / 60, 2),
    }
