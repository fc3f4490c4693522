"""A pool of shadow models' scores on disk: topped up, never retrained, never another target's.

The pool keeps what its models say of the examples, not the models. Its key is everything that
changes these numbers except how many models there are: a pool of 32 becomes one of 64 by training
32 more, and models 0 to 31 are what they would have been in a pool of 64.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, RecordError
from remnant.plans import ShadowPlan
from remnant.plans.plan import fingerprint, lasting
from remnant.records import Record, gather_provenance
from remnant.records.folder import RECORD_FILE
from remnant.records.listing import SHADOW_POOL
from remnant.studies.jobs.execution import Execution
from remnant.studies.pipeline import device_name

_BLOCK = re.compile(r"models-(\d+)-(\d+)")
Block = tuple[int, int]  # the first member, and the one after the last
Scores = NDArray[np.floating[Any]]
# Train blocks of members, in any order, and call the last argument with the scores of each.
Train = Callable[[Sequence[Block], Record, Callable[[Block, Scores], None]], None]


@dataclass(frozen=True, slots=True, eq=False)
class PoolScores:
    """What the models of a pool say, and which examples each was trained on.

    Attributes:
        scores: Shape ``(models, signals, examples)``.
        seen: bool ``(models, examples)``.
    """

    scores: NDArray[np.float64]
    seen: NDArray[np.bool_]


def pool_key(plan: ShadowPlan, recipe: Mapping[str, Any]) -> str:
    """Return the digest that a pool is known by: plan and recipe, but not the number of models.

    Example:
        >>> few, many = ShadowPlan(models=4, steps=9), ShadowPlan(models=64, steps=9)
        >>> pool_key(few, {"lr": 0.1}) == pool_key(many, {"lr": 0.1}) != pool_key(many, {"lr": 0.2})
        True
    """
    return fingerprint({"plan": _without_models(plan), "recipe": dict(recipe)})


def check_pool(
    folder: Path, plan: ShadowPlan, *, recipe: Mapping[str, Any], data_fingerprint: str
) -> None:
    """Refuse a folder that holds another pool, or something else, before anything is trained.

    What the pool's recipe has and ``recipe`` has not is not compared, so that a study can ask
    before it knows when its models will be scored. A folder without a record is let through.

    Raises:
        RecordError: It holds no pool, or one of other data, plan or recipe.
    """
    if not (folder / RECORD_FILE).exists():
        return
    record = Record.open(folder)
    theirs: Mapping[str, Any] = record.plan if record.question == SHADOW_POOL else {}
    known = {name: value for name, value in theirs.get("recipe", {}).items() if name in recipe}
    there = fingerprint({"plan": theirs.get("plan", {}), "recipe": known})
    _require_same(record, there, pool_key(plan, recipe), data_fingerprint)


def fill_pool(
    folder: Path,
    plan: ShadowPlan,
    *,
    recipe: Mapping[str, Any],
    data_fingerprint: str,
    train: Train,
    execution: Execution | None = None,
    block: int = 16,
) -> int:
    """Train what the pool lacks of the plan's models and keep their scores.

    Blocks are stored in the order in which they are done, so that a pool that was cut short has
    all of them but those in training; what is there already is not touched, and more models than
    the plan asks for are no fault.

    Args:
        folder: Of the pool; made, if it is not there.
        plan: Who sees what, and how many models there are to be.
        recipe: Everything else that changes the scores: model, training, canaries, signals.
        data_fingerprint: Of the examples.
        train: Called with the blocks that are missing, the pool's record, whose folder is for
            checkpoints, and a function that stores the scores of a block.
        execution: Where they are trained, for the record.
        block: Models trained and stored together.

    Returns:
        How many models were trained.

    Raises:
        RecordError: The folder holds another pool, or something else.
        InvalidInput: ``train`` returned scores of another shape, or not finite.
    """
    if block < 1:
        raise InvalidInput(f"block={block} is less than 1.")
    check_pool(folder, plan, recipe=recipe, data_fingerprint=data_fingerprint)
    execution = execution or Execution()
    with Record.open_or_create(
        folder,
        question=SHADOW_POOL,
        plan={"plan": _without_models(plan), "recipe": dict(recipe)},
        plan_fingerprint=pool_key(plan, recipe),
        data_fingerprint=data_fingerprint,
        execution=execution.facts(),
        provenance=gather_provenance(
            device=device_name(execution.device),
            threads=execution.threads(),
            seeds={"plan": plan.seed},
        ),
    ) as record:
        missing = missing_blocks(record, plan.models, block)

        def keep(members: Block, scores: Scores) -> None:
            first, stop = members
            checked = np.asarray(scores)
            _check(checked, stop - first, record)
            record.put_array(f"models-{first}-{stop}", checked)

        if missing:
            train(missing, record, keep)
            record.remove_checkpoints()
    return sum(stop - first for first, stop in missing)


def missing_blocks(record: Record, models: int, block: int) -> list[Block]:
    """Return the blocks that a pool lacks: each gap, and the end, cut from its first member on.

    The blocks follow from what is stored and from ``block`` alone, not from who trains them.
    """
    made, first = [], 0
    for there, stop in [*(members for members, _ in _blocks(record)), (models, models)]:
        until = min(there, models)
        made += [(at, min(at + block, until)) for at in range(first, until, block)]
        first = max(first, stop)
    return made


def read_pool(
    folder: Path,
    plan: ShadowPlan,
    *,
    recipe: Mapping[str, Any],
    data_fingerprint: str,
) -> PoolScores:
    """Return the scores of the plan's models, in their order.

    Raises:
        RecordError: The folder holds another pool, of other data, plan or recipe.
        NotEnoughEvidence: The pool has fewer models than the plan asks for.
    """
    record = Record.open(folder)
    _require_same(record, record.plan_fingerprint, pool_key(plan, recipe), data_fingerprint)
    there = models_in(record)
    if there < plan.models:
        raise NotEnoughEvidence(
            f"The pool {folder} has {there} models; {plan.models} were asked for.",
            hint="Fill it up, or ask for fewer.",
        )
    blocks = [record.array(name) for (_, stop), name in _blocks(record) if stop <= there]
    scores = np.concatenate(blocks)[: plan.models].astype(np.float64)
    return PoolScores(scores, plan.seen(examples=scores.shape[-1]))


def models_in(record: Record) -> int:
    """Return how many models the pool has, without a gap from the first.

    A pool has a gap while it is being filled by several workers, or if that was cut short.
    """
    count = 0
    for (first, stop), _ in _blocks(record):
        if first != count:
            break
        count = stop
    return count


def _require_same(record: Record, there: str, key: str, data_fingerprint: str) -> None:
    for what, theirs, ours in (
        ("no shadow pool", record.question, SHADOW_POOL),
        ("the pool of another plan or recipe", there, key),
        ("a pool of other data", record.data_fingerprint, data_fingerprint),
    ):
        if theirs != ours:
            raise RecordError(
                f"{record.folder} holds {what} ({theirs[:12]}, not {ours[:12]}).",
                hint="Choose another pool folder, or fill one for this target.",
            )


def _without_models(plan: ShadowPlan) -> dict[str, Any]:
    plain = lasting(plan, plan.to_dict())
    return {name: value for name, value in plain.items() if name != "models"}


def _blocks(record: Record) -> list[tuple[tuple[int, int], str]]:
    matches = filter(None, map(_BLOCK.fullmatch, record.array_names()))
    return sorted(((int(match[1]), int(match[2])), match[0]) for match in matches)


def _check(scores: NDArray[Any], models: int, record: Record) -> None:
    blocks = _blocks(record)
    shape = record.array(blocks[0][1]).shape[1:] if blocks else scores.shape[1:]
    if scores.ndim != 3 or scores.shape != (models, *shape):
        raise InvalidInput(
            f"the scores of {models} models have shape {scores.shape}, not (models, signals, "
            f"examples) as {(models, *shape)}."
        )
    if not bool(np.isfinite(scores).all()):
        raise InvalidInput(
            "Training diverged: a shadow model's scores are not finite.",
            hint="Lower the learning rate, or clip the gradient.",
        )
