"""What models of a study of training choices are asked: while they are trained, and afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Canary, Template
from remnant.errors import InvalidInput
from remnant.measures import exposure
from remnant.models import LanguageModel
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.population import Population
from remnant.probes import window_signals
from remnant.probes.continuations import continuation_bits, continuation_rows
from remnant.search import extract
from remnant.studies.classifiers import SomeMembers
from remnant.studies.exposure_audit import ExposureAudit, Progress, measure_exposure
from remnant.studies.language_models import language_model_maker
from remnant.studies.settings import Execution

if TYPE_CHECKING:
    from remnant.studies.exposure_training_population import Run

Floats = NDArray[np.float64]
LOSSES = ("validation", "training")


def look_on(run: Run, members: slice, execution: Execution) -> Callable[[Population], Floats]:
    """Return the probe that looks at a run's planted models in the middle of their training.

    It returns ``(trials, canaries + 2)``: exposure in bits of each canary, then what a token of the
    validation text costs, and one of the training text.
    """
    planted = range(members.start, members.stop)[:: len(run.plan.arms)]
    if run.study.follow.method == "sampled":
        ask = _sampled(run, members)
    else:

        def ask(models: Population) -> Floats:
            return np.stack(
                [
                    _audit(run, _model(run, models, member, execution), trial, end=False).bits
                    for trial, member in enumerate(planted)
                ]
            )

    def look(models: Population) -> Floats:
        return np.concatenate([ask(models), losses_of(run, members, models)], axis=1)

    return look


def follow_references(run: Run) -> list[str]:
    """The secrets that canaries are ranked among on the way: the same at all times."""
    rng = generator(run.plan.seed, SPLIT, 0, 1)
    drawn = run.study.secret.known.sample(_many(run), rng=rng, exclude=sorted(_secrets(run)))
    return [one.secret for one in drawn]


def most_followed(run: Run) -> float:
    """The most exposure, in bits, that a look in the middle of training can show."""
    most = math.log2(run.study.secret.known.space)
    return math.log2(_many(run) + 1) if run.study.follow.method == "sampled" else most


def _many(run: Run) -> int:
    return min(run.study.follow.references, run.study.secret.known.space - len(_secrets(run)))


def _secrets(run: Run) -> set[str]:
    return {canary.secret for drawn in run.planted.sets for canary in drawn.canaries}


def _sampled(run: Run, members: slice) -> Callable[[Population], Floats]:
    template, vocabulary = run.study.secret.known, run.planted.vocabulary
    canaries = [one.secret for drawn in run.planted.sets for one in drawn.canaries]
    rows, counted = continuation_rows(
        vocabulary.encode(template.prefix),
        [_after(template, vocabulary, one) for one in [*canaries, *follow_references(run)]],
        begin=vocabulary.size,
    )
    arms, each = len(run.plan.arms), run.plan.canaries

    def ask(models: Population) -> Floats:
        costs = continuation_bits(
            SomeMembers(models, members), rows, counted, vocabulary_size=vocabulary.size
        )
        found = costs[::arms].cpu().numpy()
        _check_finite(run, found)
        return np.stack(
            [
                exposure(
                    canary_losses=own[trial * each : (trial + 1) * each],
                    reference_losses=own[len(canaries) :],
                    space=template.space,
                ).bits
                for trial, own in enumerate(found)
            ]
        )

    return ask


def _after(template: Template, vocabulary: Any, secret: str) -> list[int]:
    """The tokens of a canary after its prefix."""
    whole = vocabulary.encode(template.text(secret))
    tokens: list[int] = whole[len(vocabulary.encode(template.prefix)) :]
    return tokens


def losses_of(run: Run, members: slice, models: Population) -> Floats:
    """What a token costs a run's planted models, in bits: ``(trials, 2)``, see ``LOSSES``."""
    study, planted = run.study, run.planted
    made = []
    for windows in (planted.validation, planted.store[: planted.examples]):
        many = min(study.measure.windows, len(windows))
        some = windows[np.linspace(0, len(windows) - 1, many).round().astype(np.int64)]
        bits = window_signals(
            SomeMembers(models, members),
            some,
            tokens=study.text.window,
            vocabulary_size=planted.vocabulary.size,
        )[:: len(run.plan.arms), 0]
        made.append(bits.mean(1).cpu().numpy() / study.text.window)
    found = np.stack(made, axis=1)
    _check_finite(run, found)
    return found


def measure_run(
    run: Run,
    members: slice,
    population: Population,
    execution: Execution,
    progress: Progress | None,
) -> dict[str, NDArray[Any]]:
    """Measure a run's models when training is over.

    Returns:
        Arrays by name, ``bits`` last: exposure, ``(trials, canaries)``; ``exact``, whether it is
        the rank itself; ``first``, whether nothing but other canaries is likelier, and
        ``first_known``, whether that can be said; ``saturated``; ``controls`` and ``twin``,
        exposure of secrets that a model did not see; ``skew_normal``; ``extracted`` and ``nodes``
        of the search; ``losses``, as ``losses_of``. Some are absent.
    """
    plan, arms = run.plan, run.plan.arms
    rows: dict[str, list[Any]] = {}

    def put(name: str, row: Any) -> None:
        rows.setdefault(name, []).append(row)

    put("losses", losses_of(run, members, population))
    for trial in range(plan.trials):
        drawn = run.planted.sets[trial]
        for place, arm in enumerate(arms):
            member = members.start + trial * len(arms) + place
            model = _model(run, population, member, execution)
            if arm == "twin":
                put("twin", _unseen(run, model, trial, drawn.canaries))
                continue
            audit = _audit(run, model, trial, progress=progress)
            own = audit.each
            put("exact", [one.rank is not None and one.rank == one.rank_low for one in own])
            put("saturated", [one.saturated for one in own])
            if plan.controls:
                put("controls", _unseen(run, model, trial, drawn.controls))
            if all(one.skew_normal_bits is not None for one in own):
                put("skew_normal", [one.skew_normal_bits for one in own])
            before = [
                None if one.rank is None else one.rank - sum(o.cost <= one.cost for o in own)
                for one in own
            ]
            put("first", [left == 0 for left in before])
            # Where no reference is likelier, sampling cannot say whether another secret is.
            put("first_known", [one.rank is not None or not one.saturated for one in own])
            if run.study.measure.extract:
                found = extract(
                    model,
                    run.study.secret.known,
                    top=plan.canaries,
                    max_nodes=run.study.measure.max_nodes,
                    progress=progress,
                )
                secrets = {secret for secret, _ in found.candidates}
                put("extracted", [canary.secret in secrets for canary in drawn.canaries])
                put("nodes", found.nodes)
            put("bits", audit.bits)
    if len(rows.get("skew_normal", ())) < plan.trials:
        rows.pop("skew_normal", None)
    made = {name: np.array(found) for name, found in rows.items()}
    made["losses"] = made["losses"][0]
    return {**made, "bits": made.pop("bits")}


def _audit(
    run: Run,
    model: LanguageModel,
    trial: int,
    *,
    end: bool = True,
    progress: Progress | None = None,
) -> ExposureAudit:
    study = run.study
    return measure_exposure(
        model,
        study.secret.known,
        secrets=[one.secret for one in run.planted.sets[trial].canaries],
        rng=generator(run.plan.seed, SPLIT, trial),
        method=study.measure.method if end else study.follow.method,  # type: ignore[arg-type]
        references=study.measure.references if end else study.follow.references,
        max_nodes=study.measure.max_nodes,
        progress=progress,
    )


def _unseen(run: Run, model: LanguageModel, trial: int, secrets: Sequence[Canary]) -> Floats:
    """Exposure of secrets that the model did not see: sampled, since a walk would prune nothing."""
    return measure_exposure(
        model,
        run.study.secret.known,
        secrets=[one.secret for one in secrets],
        rng=generator(run.plan.seed, SPLIT, trial),
        method="sampled",
        references=run.study.measure.references,
    ).bits


def _model(run: Run, population: Population, member: int, execution: Execution) -> LanguageModel:
    module = language_model_maker(run.study, run.planted)()
    module.load_state_dict(population.state_dict(member))
    return LanguageModel(module, run.planted.vocabulary, device=execution.device)


def _check_finite(run: Run, found: Floats) -> None:
    if not np.isfinite(found).all():
        raise InvalidInput(
            f"Training diverged: a model's loss is not finite in {run.study.label!r}.",
            hint="Lower training.options.lr, or clip the gradient.",
        )
