"""Measures the models of a variant, during and after training, on secrets laid out once a trial."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import Canary, Template
from remnant.models import LanguageModel, Vocabulary
from remnant.plans.plan import SPLIT
from remnant.plans.schedule import generator
from remnant.population import Population
from remnant.probes import Asked, PathTree, lay_out, window_signals
from remnant.search import compile_template, extract
from remnant.search.automaton import Automaton
from remnant.studies.choices.prepared import PreparedVariant
from remnant.studies.exposure.audit import ExposureAudit, Progress, ReadCosts
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.exposure.saturated import measure_each_cost
from remnant.studies.shared.classifiers import SomeMembers
from remnant.studies.shared.settings import Execution
from remnant.tasks.language_models import finite_losses, language_model_maker

Floats = NDArray[np.float64]
LOSSES = ("validation", "training")


def look_on(
    run: PreparedVariant, members: slice, execution: Execution
) -> Callable[[Population], Floats]:
    """Return the probe that measures a run's planted models during their training.

    It returns ``(trials, canaries + 2)``: exposure in bits of each canary, then what a token of the
    validation text costs, and one of the training text.
    """
    planted = range(members.start, members.stop)[:: len(run.plan.arms)]
    follow = run.study.follow
    secrets = [
        lay_out_trial(run, trial, references=follow.references) for trial in range(run.plan.trials)
    ]

    def look(models: Population) -> Floats:
        losses = losses_of(run, members, models)  # raises if training diverged
        bits = []
        for trial, model in enumerate(_models(run, models, planted, execution)):
            costs = secrets[trial].costs(model).canaries
            bits.append(_audit(run, model, trial, costs, method=follow.method, fit=False).bits)
        return np.concatenate([np.stack(bits), losses], axis=1)

    return look


def most_followed(run: PreparedVariant) -> float:
    """The maximum exposure, in bits, that can be measured during training."""
    if run.study.follow.method != "sampled":
        return math.log2(run.study.secret.known.space)
    return most_sampled(run)


def most_sampled(run: PreparedVariant) -> float:
    """The maximum exposure, in bits, that sampling during training can show."""
    own = run.plan.canaries + run.plan.controls
    left = run.study.secret.known.space - own
    return math.log2(min(run.study.follow.references, left) + 1)


def losses_of(run: PreparedVariant, members: slice, models: Population) -> Floats:
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
    return finite_losses(np.stack(made, axis=1), where=f" in {run.study.label!r}")


def measure_run(
    run: PreparedVariant,
    members: slice,
    population: Population,
    execution: Execution,
    progress: Progress | None,
) -> dict[str, NDArray[Any]]:
    """Measure a run's models when training is over.

    Returns:
        Arrays by name, ``bits`` last: exposure, ``(trials, canaries)``; ``low``, its lower bound,
        certain or by sampling with 95 % confidence, and ``high``, its upper bound; ``exact``,
        whether it is the exact rank; ``first``, whether nothing but other canaries is likelier, and
        ``first_known``, whether that is known; ``saturated``, whether the exposure is a lower
        bound; ``controls`` and ``twin``, exposure of secrets that a model did not see;
        ``skew_normal``; ``extracted``, ``nodes`` and ``certified`` of the search; ``losses``, as
        ``losses_of``. Some may be absent.
    """
    plan, arms, study = run.plan, run.plan.arms, run.study
    most = math.log2(study.secret.known.space)
    rows: dict[str, list[Any]] = {}

    def put(name: str, row: Any) -> None:
        rows.setdefault(name, []).append(row)

    put("losses", losses_of(run, members, population))
    models = _models(run, population, range(members.start, members.stop), execution)
    for (trial, arm), model in zip(
        itertools.product(range(plan.trials), arms), models, strict=True
    ):
        if arm == arms[0]:
            secrets = lay_out_trial(run, trial, references=study.measure.references)
        drawn, costs = run.planted.sets[trial], secrets.costs(model)
        if arm == "twin":
            put("twin", _unseen(run, model, trial, costs.canaries))
            continue
        audit = _audit(
            run, model, trial, costs.canaries, method=study.measure.method, progress=progress
        )
        own = audit.each
        ended = audit.method == "exact" and not audit.complete  # then ranks are bounds
        put("exact", [row.rank is not None and row.rank == row.rank_low for row in own])
        put("saturated", [row.saturated or (ended and row.rank != row.rank_low) for row in own])
        put("low", [row.low for row in own])
        put("high", [min(row.high, most) for row in own])
        if plan.controls:
            put("controls", _unseen(run, model, trial, costs.controls))
        if all(row.skew_normal_bits is not None for row in own):
            put("skew_normal", [row.skew_normal_bits for row in own])
        before = [
            None if row.rank is None else row.rank - sum(other.cost <= row.cost for other in own)
            for row in own
        ]
        put("first", [left == 0 for left in before])
        # If no reference is likelier, sampling cannot show whether another secret is. Nor can an
        # interrupted ranking, unless it found more likelier secrets than there are canaries.
        put("first_known", [_first_known(row, ended, len(own)) for row in own])
        if study.measure.extract:
            search = extract(
                model,
                study.secret.known,
                top=plan.canaries,
                max_nodes=study.measure.max_nodes,
                progress=progress,
            )
            likeliest = {secret for secret, _ in search.candidates}
            put("extracted", [canary.secret in likeliest for canary in drawn.canaries])
            put("nodes", search.nodes)
            put("certified", search.certified)
        put("bits", audit.bits)
    if len(rows.get("skew_normal", ())) < plan.trials:
        rows.pop("skew_normal", None)
    made = {name: np.array(values) for name, values in rows.items()}
    made["losses"] = made["losses"][0]
    return {**made, "bits": made.pop("bits")}


def _first_known(row: CanaryExposure, ended: bool, canaries: int) -> bool:
    if row.rank is None or row.rank_low is None:
        return not row.saturated
    return not ended or row.rank == row.rank_low or row.rank_low > canaries


def _audit(
    run: PreparedVariant,
    model: LanguageModel,
    trial: int,
    costs: ReadCosts,
    *,
    method: str,
    **options: Any,
) -> ExposureAudit:
    return measure_each_cost(
        model,
        run.study.secret.known,
        costs,
        secrets=[canary.secret for canary in run.planted.sets[trial].canaries],
        method=method,  # type: ignore[arg-type]
        max_nodes=run.study.measure.max_nodes,
        **options,
    )


def _unseen(run: PreparedVariant, model: LanguageModel, trial: int, costs: ReadCosts) -> Floats:
    """Exposure of secrets that the model did not see, sampled: an exact ranking prunes nothing."""
    return _audit(run, model, trial, costs, method="sampled", fit=False).bits


def _models(
    run: PreparedVariant, population: Population, members: Iterable[int], execution: Execution
) -> Iterator[LanguageModel]:
    """Yield some members one after another, with their own floating-point type."""
    module = language_model_maker(run.study, run.planted)()
    first = next(name for name, _ in module.named_parameters())
    for member in members:
        state = population.state_dict(member)
        module.to(state[first].dtype).load_state_dict(state)
        yield LanguageModel(module, run.planted.vocabulary, device=execution.device)


@dataclass(frozen=True, slots=True, eq=False)
class TrialCosts:
    """Costs of the canaries and the controls of a trial, each with those of the references.

    Attributes:
        canaries, controls: Read in one pass; both have the nodes of this pass.
    """

    canaries: ReadCosts
    controls: ReadCosts


@dataclass(frozen=True, slots=True, eq=False)
class TrialSecrets:
    """Canaries, controls and references of one trial, laid out for any of its models."""

    _automaton: Automaton
    _tree: PathTree
    _canaries: int
    _controls: int

    def costs(self, model: LanguageModel) -> TrialCosts:
        """Return what a model pays for all of them, read in one pass."""
        counter = Asked(model, self._automaton.prefix)
        canaries, controls, references = np.split(
            self._tree.costs(counter), [self._canaries, self._canaries + self._controls]
        )
        return TrialCosts(
            *(
                ReadCosts(self._automaton, own, references, counter.nodes)
                for own in (canaries, controls)
            )
        )


@lru_cache(maxsize=8)
def compiled(vocabulary: Vocabulary, template: Template) -> Automaton:
    """Return the automaton of a template; one that all trials and variants share is made once."""
    return compile_template(vocabulary.encode, template)


def lay_out_trial(run: PreparedVariant, trial: int, *, references: int) -> TrialSecrets:
    """Lay out the secrets that the models of a trial are measured on.

    Args:
        run: Whose trial it is.
        trial: Its number.
        references: How many secrets a canary is ranked among.
    """
    template, vocabulary = run.study.secret.known, run.planted.vocabulary
    automaton = compiled(vocabulary, template)
    planted = run.planted.sets[trial]
    own = [template.text(canary.secret) for canary in (*planted.canaries, *planted.controls)]
    drawn = [canary.text for canary in references_of(run, trial, references=references)]
    begun = len(automaton.prefix)
    return TrialSecrets(
        automaton,
        lay_out([ids[begun:] for ids in vocabulary.encode_each([*own, *drawn])]),
        len(planted.canaries),
        len(planted.controls),
    )


def references_of(run: PreparedVariant, trial: int, *, references: int) -> list[Canary]:
    """Draw the secrets that a trial's canaries and controls are ranked among.

    Every trial has its own, the same during and after training and in all variants of one seed. If
    all trials had the same, an unlucky draw would move them all, and their spread would not show
    it.

    Guarantees:
        * As many as ``references``, or the whole space without the trial's own secrets.
        * A larger draw begins with the smaller one.
    """
    template, planted = run.study.secret.known, run.planted.sets[trial]
    own = [canary.secret for canary in (*planted.canaries, *planted.controls)]
    return template.sample(
        min(references, template.space - len(own)),
        rng=generator(run.plan.seed, SPLIT, trial),
        exclude=own,
    )
