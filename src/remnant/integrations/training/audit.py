"""``Audit``: plants canaries into the data of a training and measures what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from remnant.canaries import CanarySet, ImageCanaries, OwnImages, Template
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.integrations.training.finishing import (
    AuditOutcome,
    end,
    measure_epsilon,
    measure_examples,
    measure_secrets,
    outcome_of,
)
from remnant.integrations.training.logged_run import ledger_audit
from remnant.integrations.training.planting import PlantedRows, first_row, plant
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.scoring_time import ScoringTime
from remnant.integrations.training.settings import AuditSettings, check_every
from remnant.integrations.training.state import AuditState
from remnant.integrations.training.watched_training import WatchedTraining
from remnant.measures import Success
from remnant.plans.schedule import Ledger
from remnant.studies.training_audit.claimed_epsilon import check_claim
from remnant.studies.training_audit.result import Overhead

Floats = NDArray[np.float64]
_CHECKPOINTS = 20
_PLANTED = 1  # the stream of random numbers that places canaries, beside that which draws them


class Audit:
    """Audits one training: what does the model remember of canaries planted in its data?

    ``prepare`` plants them, a callback or ``start`` and ``step`` watch the training, and ``finish``
    measures, judges and writes a report. The training itself stays as it is: scoring changes no
    weight and no random number.

    Args:
        template: The text of the canaries with holes for their secrets, such as
            ``"my pin is {digits:6}"``.
        out: A folder of its own for the record and the report. It holds the secrets: never put it
            into a folder that is published.
        canaries: In place of ``template``, either a canary set, which has its own repeats and
            controls; or examples of one's own: a list of texts, or ``ImageCanaries`` for a
            classifier. Of these ``controls`` are drawn at random and held out, while the others are
            dealt evenly to ``repeats`` (``per_repeat`` is not used).
        limit: The gate's limit. For a template it is in bits and applies to every planted canary;
            ``"auto"`` is the least that chance alone reaches in at most 1 %.
            For examples of one's own it is the largest AUC of the attack, above 0.5 and under 1,
            and applies to every group of examples planted equally often.
        judged: Applies the limit only to canaries planted at most so often.
        share: The share of judged canaries that may be at or above the limit.
        plan: ``"from-start"`` puts copies anywhere in the data. ``"staggered"`` puts all copies of
            a canary into one window of the data's order, for a curve by recency; the data must
            then be read in order, and one epoch gives the longest lags.
        windows: How many windows a staggered plan has.
        coins: Puts each canary into the data by a fair coin of its own, once; those that are left
            out are the controls. This is what a lower bound on epsilon needs: see ``finish``. With
            a template there are ``per_repeat`` + ``controls`` canaries, of examples of one's own
            all have a coin.
        repeats: How often canaries are planted; each number has ``per_repeat`` canaries. By default
            1, 4 and 16; with ``coins`` it is 1, because the epsilon of a training is about one
            example, and a canary that is planted twice is two.
        per_repeat: Canaries for each number.
        controls: How many secrets, or texts of one's own, are drawn the same way and never planted.
            With texts of one's own it may also be a list of texts: they must be drawn the same way
            as the others, which nothing but you can guarantee.
        references: Secrets that canaries are ranked among while the training runs.
        seed: Draws the secrets and their places. Where None, it is drawn at random, or taken from
            the audit in ``out`` that is resumed. Processes that make the audit before their group
            is initialised need one.
        tokenizer: Where the trainer has none.
        field: The field of a row that takes the canaries; by default the one that is trained on.
        make_example: Turns a text into a row, for rows of an unusual kind.
        forward: Returns logits for ``(model, token ids)`` or ``(model, images)``, for models of an
            unusual kind.
        every: Steps between two scorings; by default 20 scorings in a training.
        overhead: The share of training time that scoring may take; None for any. Where it would
            take more, steps are left out.

    Raises:
        InvalidInput: An argument is not what it should be; all faults at once.
        RecordError: ``out`` holds something else, or an audit that is finished.

    Example:
        >>> import tempfile
        >>> audit = Audit(template="my pin is {digits:6}", out=tempfile.mkdtemp(), limit=10.0)
        >>> len(audit.prepare(["some text", "more text"]))
        422
    """

    def __init__(
        self,
        template: str | Template | None = None,
        *,
        out: str | Path,
        canaries: CanarySet | Sequence[str] | ImageCanaries | None = None,
        limit: float | Literal["auto"] | None = None,
        judged: int | None = None,
        share: float | None = None,
        plan: Literal["from-start", "staggered"] = "from-start",
        windows: int = 4,
        coins: bool = False,
        repeats: Sequence[int] | None = None,
        per_repeat: int = 20,
        controls: int | Sequence[str] = 20,
        references: int = 256,
        seed: int | None = None,
        tokenizer: Any = None,
        field: str | None = None,
        make_example: Callable[[str], Any] | None = None,
        forward: Callable[[nn.Module, Tensor], Any] | None = None,
        every: int | None = None,
        overhead: float | None = 0.03,
    ) -> None:
        self._settings = AuditSettings.checked(
            template,
            canaries,
            out=Path(out),
            limit=limit,
            judged=judged,
            share=share,
            plan=plan,
            windows=windows,
            coins=coins,
            repeats=repeats,
            per_repeat=per_repeat,
            controls=controls,
            references=references,
            seed=seed,
            every=every,
            overhead=overhead,
        )
        self.canaries, self.plan, self.coins = self._settings.canaries, plan, coins
        self.limit, self.judged, self.share = self._settings.limit, judged, share
        self.tokenizer, self._forward = tokenizer, forward
        self._field, self._make_example = field, make_example
        self._clock = ScoringTime(every, overhead)
        self._state = AuditState(
            Path(out),
            plan=self._settings.record_plan(),
            settings={"limit": self.limit, "judged": judged, "share": share, "overhead": overhead},
            canary_set=self.canaries,
        )
        self._planted: PlantedRows | None = None
        self._training: WatchedTraining | None = None
        self._finished: AuditOutcome | None = None

    @property
    def out(self) -> Path:
        """The folder of the record, the canaries and the report."""
        return self._state.folder

    # -- planting -----------------------------------------------------------------------------

    def prepare(self, data: Any) -> Any:
        """Plant the canaries: each copy becomes a row of its own in a random place.

        Args:
            data: A list of texts or rows, a ``datasets.Dataset`` with a column ``text``, columns
                ``prompt`` and ``completion`` or a column ``messages``, or a PyTorch dataset.

        Returns:
            The data with the canaries, of the same type where that can be.

        Raises:
            InvalidInput: The data has no rows or no text, or holds a canary already.
        """
        make_example = self._make_example
        if isinstance(self.canaries, OwnImages):
            images, like = self.canaries, first_row(data)
            images.row(images.canaries[0].text, like)  # refuses data of another kind
            make_example = lambda name: images.row(name, like)  # noqa: E731
        self._planted = plant(
            data,
            self.canaries,
            rng=np.random.default_rng([self.canaries.seed, _PLANTED]),
            field=self._field,
            tokenizer=self.tokenizer,
            make_example=make_example,
            windows=self._settings.windows,
        )
        return self._planted.data

    @classmethod
    def from_ledger(
        cls,
        scores: Mapping[int, ArrayLike],
        ledger: ArrayLike | Ledger,
        *,
        out: str | Path,
        limit: float | None = None,
        success: Success = "auc",
        fpr: float = 0.1,
        confidence: float = 0.95,
        seed: int = 0,
        references: ArrayLike | None = None,
    ) -> AuditOutcome:
        """Measure forgetting in a run in which nothing was planted but batch order was logged.

        Examples that are in no row of the ledger are the controls: they must be drawn the same way
        as the others and held out. The curve is that of ``one_run_forgetting`` for windows of last
        use, and its intervals have the coverage of that function. The page calls the examples
        canaries.

        Args:
            scores: One number an example, higher = more likely seen (such as minus the loss), by
                how many updates the model had; 0 is before training.
            ledger: Rows of step and example, or step, example and count, or a plan's ledger, whose
                windows are kept. A step is the update whose batch held the example, counted from
                0; examples are numbered in the order of the scores.
            out: A folder of its own for the record and the report.
            limit: Largest success allowed at the end of the run for the examples last used first;
                None judges nothing.
            success, fpr, confidence: See ``one_run_forgetting``.
            seed: Draws the resamples behind the intervals.
            references: The same scores in models that were trained the same way on none of the
                examples, ``(models, examples)``, or one table for each step of ``scores`` in
                rising order, ``(steps, models, examples)``.

        Raises:
            InvalidInput: Scores or ledger are not what they should be, or ``limit`` is not above
                chance and under 1.
            NotEnoughEvidence: There are no controls, or the last uses have one lag.
            RecordError: ``out`` holds something else.

        Example:
            >>> import tempfile
            >>> rng = np.random.default_rng(0)
            >>> ledger = [(5, i) for i in range(20)] + [(15, i) for i in range(20, 40)]
            >>> scores = {step: rng.normal(size=80) for step in (0, 10, 20, 30)}
            >>> ended = Audit.from_ledger(scores, ledger, out=tempfile.mkdtemp(), limit=0.7)
            >>> ended.outcome
            'INCONCLUSIVE'

            Against eight models that saw none of the examples:

            >>> ended = Audit.from_ledger(scores, ledger, out=tempfile.mkdtemp(), limit=0.7,
            ...                           references=rng.normal(size=(8, 80)))
            >>> ended.result.forgetting.curves.who
            'an attacker with 8 reference models trained without these examples'
        """
        result, report = ledger_audit(
            scores,
            ledger,
            out=Path(out),
            limit=limit,
            success=success,
            fpr=fpr,
            confidence=confidence,
            seed=seed,
            references=references,
        )
        return outcome_of(result, Path(out), report)

    # -- the training -------------------------------------------------------------------------

    def callback(self, every: int | None = None, *, preflight: bool = True) -> Any:
        """Return a callback for the Hugging Face ``Trainer`` and for TRL's ``SFTTrainer``.

        Args:
            every: Steps between two scorings.
            preflight: Whether to check the training data before the first step.

        Raises:
            InvalidInput: ``every`` is not a whole number of at least 1.
            MissingExtra: transformers is not installed.
        """
        from remnant.integrations.training.trainer import trainer_callback

        check_every(every)
        return trainer_callback(self, every=every or self._clock.every, preflight=preflight)

    def lightning_callback(self, every: int | None = None, *, preflight: bool = True) -> Any:
        """Return a callback for Lightning's ``Trainer``.

        Args:
            every: Steps between two scorings.
            preflight: Whether to check the training data before the first step.

        Raises:
            InvalidInput: ``every`` is not a whole number of at least 1.
            MissingExtra: Lightning is not installed.
        """
        from remnant.integrations.training.lightning import lightning_callback

        check_every(every)
        return lightning_callback(self, every=every or self._clock.every, preflight=preflight)

    def start(
        self,
        model: nn.Module,
        loader: Any = None,
        *,
        tokenizer: Any = None,
        step: int = 0,
        steps: int | None = None,
        every: int | None = None,
        preflight: bool = True,
    ) -> None:
        """Check data and model before the first step, and begin to watch the batches.

        Args:
            model: The model that is trained.
            loader: The loader of the training data, with ``dataset`` and ``collate_fn``; without
                it the data is not checked.
            tokenizer: That the data is made with; by default that of the audit.
            step: How many updates the model has had, where a training is resumed.
            steps: How many it will have.
            every: Steps between two scorings.
            preflight: Whether to check the data.

        Raises:
            InvalidInput: The canaries cannot be learnt: they are cut off, masked, removed or
                changed, or the model cannot learn at all.
        """
        self.tokenizer = tokenizer or self.tokenizer
        if every or steps:
            known = every or self._clock.every
            self._clock.every = known or max(1, (steps or 1) // _CHECKPOINTS)
        with Processes.now().together():
            self._training = WatchedTraining(
                self._settings,
                self._state,
                self._clock,
                self._planted,
                model=model,
                loader=loader,
                tokenizer=self.tokenizer,
                forward=self._forward,
                step=step,
                preflight=preflight,
            )
        self._training.resume(model, step)
        self.step(model, step)

    def step(self, model: nn.Module, step: int) -> Floats | None:
        """Tell the audit that the model has had ``step`` updates; score if that is due.

        Args:
            model: The model that is trained.
            step: How many updates it has had.

        Returns:
            The costs of canaries and controls in bits, if they were scored.

        Raises:
            InvalidInput: The data is a stream that has yielded canaries, and none of them arrives
                in the batches.
        """
        if self._training is None:
            self.start(model, step=step)
            return None if self._training is None else self._training.scores.get(step)
        return self._training.step(model, step)

    def due(self, step: int) -> bool:
        """Whether canaries are to be scored after so many updates, if time allows."""
        return self._clock.due(step)

    def stop(self, model: nn.Module | None = None, *, step: int | None = None) -> None:
        """End the watching, score once more and store everything; ``finish`` calls it too."""
        training = self._training
        model = model or (None if training is None else training.model)
        if training is not None and model is not None and self._clock.runs:
            training.stop(model, step)

    def save(self) -> None:
        """Store what was seen and scored so far; call it in all processes after each checkpoint.

        A training that is resumed from a checkpoint then knows the batches before it.
        """
        if self._training is not None and self._clock.runs:
            self._training.store()

    def finish(
        self,
        model: nn.Module | None = None,
        *,
        method: Literal["auto", "exact", "sampled"] = "auto",
        references: int = 10_000,
        max_nodes: int = 200_000,
        max_seconds: float | None = None,
        claimed_epsilon: float | None = None,
        delta: float | None = None,
        reference_models: Iterable[nn.Module] = (),
    ) -> AuditOutcome:
        """Measure the trained model, judge it, and write the record and the report.

        Called again, it returns the same result, whatever the arguments.

        With ``Audit(coins=True)`` and ``delta``, the result has a lower bound on the training's
        epsilon. Where it exceeds ``claimed_epsilon`` the outcome is FAIL. Where it does not, that
        is no evidence of privacy, and the outcome is that of the limit, if there is one.

        Args:
            model: The trained model; by default the one that was watched.
            method: ``"exact"`` ranks canaries among all secrets of the template, ``"sampled"``
                among references; ``"auto"`` ranks exactly where it takes at most ``max_nodes``.
            references: Secrets that canaries are ranked among.
            max_nodes, max_seconds: Budget of an exact ranking.
            claimed_epsilon: The epsilon that the training claims for adding or removing one
                example, such as ``privacy_engine.get_epsilon(delta)`` of Opacus.
            delta: The delta of the claim.
            reference_models: With examples of one's own, models that were trained the same way on
                none of them, neither planted examples nor controls. They may be loaded one after
                another. Scores are then compared with theirs, as an attacker with models of his own
                would. The measured epsilon does not use them.

        Raises:
            InvalidInput: There is no model, it cannot be measured, or the claim cannot be tested.
            NotEnoughEvidence: No training was watched.
        """
        check_claim(claimed_epsilon=claimed_epsilon, delta=delta, coins=self.coins)
        reference_models = iter(reference_models)
        if isinstance(self.canaries, CanarySet) and next(reference_models, None) is not None:
            raise InvalidInput(
                "reference_models= is for examples of one's own: secrets of a template are ranked "
                "among others of the same template.",
                hint="Leave it out, or audit texts or images of your own with canaries=.",
            )
        if self._finished is not None:
            return self._finished
        training = self._training
        model = model or (None if training is None else training.model)
        if training is None or model is None:
            raise NotEnoughEvidence(
                "No training was watched, so there is nothing to measure.",
                hint="Pass audit.callback() to the trainer, or call audit.start and audit.step.",
            )
        self.stop(model)
        training.costs.place(training.watcher, at_least=1)
        if delta is not None or not isinstance(self.canaries, CanarySet):
            training.score_at_the_end(model)
        epsilon = None
        if delta is not None:
            epsilon = measure_epsilon(training, claimed=claimed_epsilon, delta=delta)
        if isinstance(self.canaries, CanarySet):
            measured = measure_secrets(
                training,
                model,
                self.overhead_so_far,
                method=method,
                references=references,
                max_nodes=max_nodes,
                max_seconds=max_seconds,
            )
        else:
            measured = measure_examples(
                training, self._state, self.overhead_so_far, reference_models
            )
        self._finished = end(training, self._state, measured, epsilon)
        training.model = None  # the audit keeps no model alive
        return self._finished

    # -- what is known while it trains --------------------------------------------------------

    def uses(self, *, since: int = 0) -> NDArray[np.int64]:
        """Return when canaries were in batches of any process: rows of step, canary, count.

        Args:
            since: The first step that is asked for.
        """
        if self._training is None:
            return np.zeros((0, 3), np.int64)
        return self._training.uses(since=since)

    def latest(self) -> dict[str, float]:
        """Return the last scoring's means by how often planted, for a logger; they hold no secret.

        Of a template's canaries it is the mean exposure, of texts of one's own the attack's AUC.
        """
        return {} if self._training is None else self._training.latest()

    @property
    def overhead_so_far(self) -> Overhead:
        """What scoring cost."""
        return self._clock.overhead(0 if self._training is None else len(self._training.scores))
