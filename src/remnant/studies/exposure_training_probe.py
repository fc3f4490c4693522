"""What models of a study of training choices are asked: while they are trained, and afterwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.models import LanguageModel
from remnant.population import Population
from remnant.probes import window_signals
from remnant.search import extract
from remnant.studies.classifiers import SomeMembers
from remnant.studies.exposure_audit import ExposureAudit, Progress, ReadCosts, SecretExposure
from remnant.studies.exposure_training_secrets import lay_out_trial
from remnant.studies.language_models import finite_losses, language_model_maker
from remnant.studies.saturated_exposure import measure_each_cost
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
    follow = run.study.follow
    asked = [
        lay_out_trial(run, trial, references=follow.references) for trial in range(run.plan.trials)
    ]

    def look(models: Population) -> Floats:
        losses = losses_of(run, members, models)  # says so where training diverged
        found = []
        for trial, model in enumerate(_models(run, models, planted, execution)):
            costs = asked[trial].costs(model).canaries
            found.append(_audit(run, model, trial, costs, method=follow.method, fit=False).bits)
        return np.concatenate([np.stack(found), losses], axis=1)

    return look


def most_followed(run: Run) -> float:
    """The most exposure, in bits, that a look in the middle of training can show."""
    if run.study.follow.method != "sampled":
        return math.log2(run.study.secret.known.space)
    return most_sampled(run)


def most_sampled(run: Run) -> float:
    """The most exposure, in bits, that such a look can show where it samples."""
    own = run.plan.canaries + run.plan.controls
    left = run.study.secret.known.space - own
    return math.log2(min(run.study.follow.references, left) + 1)


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
    return finite_losses(found, where=f" in {run.study.label!r}")


def measure_run(
    run: Run,
    members: slice,
    population: Population,
    execution: Execution,
    progress: Progress | None,
) -> dict[str, NDArray[Any]]:
    """Measure a run's models when training is over.

    Returns:
        Arrays by name, ``bits`` last: exposure, ``(trials, canaries)``; ``low``, what it is at
        least, for certain or by sampling with 95 % confidence; ``exact``, whether it is
        the rank itself; ``first``, whether nothing but other canaries is likelier, and
        ``first_known``, whether that can be said; ``saturated``, whether it is "at least" so many
        bits; ``controls`` and ``twin``, exposure of secrets that a model did not see;
        ``skew_normal``; ``extracted``, ``nodes`` and ``certified`` of the search; ``losses``, as
        ``losses_of``. Some are absent.
    """
    plan, arms, study = run.plan, run.plan.arms, run.study
    rows: dict[str, list[Any]] = {}

    def put(name: str, row: Any) -> None:
        rows.setdefault(name, []).append(row)

    put("losses", losses_of(run, members, population))
    models = _models(run, population, range(members.start, members.stop), execution)
    for (trial, arm), model in zip(
        itertools.product(range(plan.trials), arms), models, strict=True
    ):
        if arm == arms[0]:
            asked = lay_out_trial(run, trial, references=study.measure.references)
        drawn, costs = run.planted.sets[trial], asked.costs(model)
        if arm == "twin":
            put("twin", _unseen(run, model, trial, costs.canaries))
            continue
        audit = _audit(
            run, model, trial, costs.canaries, method=study.measure.method, progress=progress
        )
        own = audit.each
        ended = audit.method == "exact" and not audit.complete  # then ranks are bounds
        put("exact", [one.rank is not None and one.rank == one.rank_low for one in own])
        put("saturated", [one.saturated or (ended and one.rank != one.rank_low) for one in own])
        put("low", [one.low for one in own])
        if plan.controls:
            put("controls", _unseen(run, model, trial, costs.controls))
        if all(one.skew_normal_bits is not None for one in own):
            put("skew_normal", [one.skew_normal_bits for one in own])
        before = [
            None if one.rank is None else one.rank - sum(o.cost <= one.cost for o in own)
            for one in own
        ]
        put("first", [left == 0 for left in before])
        # Where no reference is likelier, sampling cannot say whether another secret is; nor can a
        # walk that was ended, unless more were likelier by then than there are canaries.
        put("first_known", [_first_known(one, ended, len(own)) for one in own])
        if study.measure.extract:
            found = extract(
                model,
                study.secret.known,
                top=plan.canaries,
                max_nodes=study.measure.max_nodes,
                progress=progress,
            )
            secrets = {secret for secret, _ in found.candidates}
            put("extracted", [canary.secret in secrets for canary in drawn.canaries])
            put("nodes", found.nodes)
            put("certified", found.certified)
        put("bits", audit.bits)
    if len(rows.get("skew_normal", ())) < plan.trials:
        rows.pop("skew_normal", None)
    made = {name: np.array(found) for name, found in rows.items()}
    made["losses"] = made["losses"][0]
    return {**made, "bits": made.pop("bits")}


def _first_known(one: SecretExposure, ended: bool, canaries: int) -> bool:
    if one.rank is None or one.rank_low is None:
        return not one.saturated
    return not ended or one.rank == one.rank_low or one.rank_low > canaries


def _audit(
    run: Run, model: LanguageModel, trial: int, costs: ReadCosts, *, method: str, **options: Any
) -> ExposureAudit:
    return measure_each_cost(
        model,
        run.study.secret.known,
        costs,
        secrets=[one.secret for one in run.planted.sets[trial].canaries],
        method=method,  # type: ignore[arg-type]
        max_nodes=run.study.measure.max_nodes,
        **options,
    )


def _unseen(run: Run, model: LanguageModel, trial: int, costs: ReadCosts) -> Floats:
    """Exposure of secrets that the model did not see: sampled, since a walk would prune nothing."""
    return _audit(run, model, trial, costs, method="sampled", fit=False).bits


def _models(
    run: Run, population: Population, members: Iterable[int], execution: Execution
) -> Iterator[LanguageModel]:
    """Yield some members one after another, in the type of their parameters."""
    module = language_model_maker(run.study, run.planted)()
    first = next(name for name, _ in module.named_parameters())
    for member in members:
        state = population.state_dict(member)
        module.to(state[first].dtype).load_state_dict(state)
        yield LanguageModel(module, run.planted.vocabulary, device=execution.device)
