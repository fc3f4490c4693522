"""``Audit``: plants canaries into the data of a training and measures what is remembered."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from remnant.canaries import (
    CanarySet,
    ImageCanaries,
    OwnImages,
    OwnTexts,
    Template,
    deal_images,
    deal_texts,
    make_canary_set,
)
from remnant.canaries.canary_set import PlantedTexts
from remnant.canaries.dealing import tails
from remnant.errors import InvalidInput, NotEnoughEvidence, RemnantError, RemnantWarning, require
from remnant.integrations.training.finishing import FinalMeasure
from remnant.integrations.training.image_canaries import (
    ImageMatcher,
    ImageWatcher,
    check_images,
    score_images,
)
from remnant.integrations.training.logged_run import ledger_audit
from remnant.integrations.training.planting import PlantedRows, StaggeredWindows, first_row, plant
from remnant.integrations.training.preflight import (
    check_collated,
    check_copies,
    check_learnable,
    check_order,
    check_texts,
    check_trainable,
    common_start,
    encode_text,
    scan,
)
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.recognition import TokenMatcher, common_ending
from remnant.integrations.training.scoring import ScoredRow, Shortcuts, await_gpu, score_rows
from remnant.integrations.training.state import AuditState, own_seed
from remnant.integrations.training.stream_check import StreamCheck
from remnant.integrations.training.trained_model import model_in_words
from remnant.integrations.training.watching import Watcher
from remnant.measures import Success
from remnant.measures.exposure.by_rank import limit_for
from remnant.plans.ledger import Ledger
from remnant.records.outcomes import EXIT_CODES
from remnant.records.typed import Absent
from remnant.studies.exposure.verdict import canaries_needed
from remnant.studies.shared.result_parts import Gate
from remnant.studies.training_audit.claimed_epsilon import (
    check_claim,
    differences,
    measured_epsilon,
    with_epsilon,
)
from remnant.studies.training_audit.measure import Measured, course, training_audit
from remnant.studies.training_audit.own_examples import (
    MeasuredExamples,
    examples_audit,
    examples_course,
)
from remnant.studies.training_audit.result import (
    MeasuredEpsilon,
    Overhead,
    TrainingAuditResult,
)

Floats = NDArray[np.float64]
_MadeResult = Callable[[NDArray[np.int64], int], TrainingAuditResult]  # of uses, controls used
_CHECKPOINTS = 20
_CONTEXTS = 16
_REPEATS = (1, 4, 16)
_PLANTED = 1  # streams of random numbers, beside that of the canaries
_REFERENCES = 2
_WINDOWS = 5


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """How an audit ended.

    Attributes:
        outcome: ``"PASS"``, ``"FAIL"`` or ``"INCONCLUSIVE"``; None where no limit was set.
        sentence: What was measured, and why that is the outcome.
        claim: The strongest statement that the evidence supports.
        exit_code: 0 for PASS and where no limit was set, 1 for FAIL, 3 for INCONCLUSIVE.
        report: The page, an HTML file.
        folder: The record.
        result: All numbers.
    """

    outcome: str | None
    sentence: str
    claim: str
    exit_code: int
    report: Path
    folder: Path
    result: TrainingAuditResult


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
        _check_types(
            {"limit": None if limit == "auto" else limit, "share": share, "overhead": overhead},
            {"judged": judged, "every": every, "references": references},
        )
        seed = own_seed(Path(out)) if seed is None else seed
        if repeats is None:
            repeats = (1,) if coins else _REPEATS
        if coins:
            per_repeat, controls = _tossed(canaries, repeats, per_repeat, controls, seed)
        self.coins = coins
        self.canaries = _canary_set(
            template, canaries, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
        )
        if limit == "auto":
            limit = _limit_of(self.canaries, judged)
        self.limit, self.judged, self.share = limit, judged, share
        self.tokenizer, self.every, self.overhead = tokenizer, every, overhead
        self.plan = plan
        _check_settings(self, plan, references, windows)
        self._windows = self._draw_windows(windows) if plan == "staggered" else None
        self._field, self._make_example, self._forward = field, make_example, forward
        self._state = AuditState(
            Path(out),
            plan={
                "kind": plan,
                **_identity(self.canaries),
                "repeats": list(self.canaries.repeats),
                "controls": len(self.canaries.controls),
                "seed": self.canaries.seed,
                **({"windows": windows} if plan == "staggered" else {}),
                **({"coins": True} if coins else {}),
            },
            settings={"limit": limit, "judged": judged, "share": share, "overhead": overhead},
            canary_set=self.canaries,
        )
        self._references = _draw_references(self.canaries, references)
        self._planted: PlantedRows | None = None
        self._watcher: Watcher | None = None
        self._stream_check: StreamCheck | None = None
        self._rows: list[ScoredRow] = []
        self._shortcuts = Shortcuts()
        self._context: tuple[int, ...] = ()
        self._unplaced: tuple[list[list[int]], TokenMatcher] | None = None
        self._first: int | None = None
        self._scores: dict[int, Floats] = {}
        self._skipped: set[int] = set()
        self._seconds = self._last_seconds = 0.0
        self._started: float | None = None
        self._trained_seconds = 0.0
        self._last_step = 0
        self._stored_until = 0
        self._model: nn.Module | None = None
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
            windows=self._windows,
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
        return _outcome(result, Path(out), report)

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

        _check_every(every)
        return trainer_callback(self, every=every or self.every, preflight=preflight)

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

        _check_every(every)
        return lightning_callback(self, every=every or self.every, preflight=preflight)

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
            self.every = every or self.every or max(1, (steps or 1) // _CHECKPOINTS)
        with Processes.now().together():
            self._check(model, loader, step, preflight=preflight)
        self._resume(step)
        if self._watcher is not None:
            self._watcher.attach(model)
        self._started = time.perf_counter()
        self.step(model, step)

    def _check(self, model: nn.Module, loader: Any, step: int, *, preflight: bool) -> None:
        """Check data and model, and lay out what is recognised and scored."""
        if preflight and self.plan == "staggered" and loader is not None:
            check_order(loader, hint="Make the loader with shuffle=False.")
        if isinstance(self.canaries, OwnImages):
            matcher_of_images = ImageMatcher(self.canaries.images)
            if preflight:
                check_trainable(model)
                check_images(getattr(loader, "dataset", None), self.canaries, matcher_of_images)
            self._model, self._watcher = model, ImageWatcher(matcher_of_images)
            self._watcher.step = step
            return
        if self.tokenizer is None:
            raise InvalidInput(
                "There is no tokenizer to recognise canaries with.",
                hint="Pass Audit(tokenizer=...).",
            )
        encoded = check_texts(self.tokenizer, self.canaries)
        matcher = TokenMatcher(encoded, one_template=isinstance(self.canaries, CanarySet))
        secret_start = common_start(matcher.cores)
        if preflight:
            check_learnable(model, matcher, self.tokenizer)
        contexts = self._look_at(loader, matcher, secret_start) if preflight else []
        self._model = model
        self._watcher = Watcher(matcher)
        self._watcher.step = step
        stream = None if self._planted is None else self._planted.stream
        if preflight and stream is not None:
            self._stream_check = StreamCheck(stream, self._watcher)
        self._set_rows(encoded, matcher, contexts)
        self._unplaced = None if contexts else (encoded, matcher)

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
        if self._watcher is None:
            self.start(model, step=step)
            return self._scores.get(step)
        self._watcher.step = step
        self._check_stream(step)
        if step in self._scores or not self._is_due(step):
            return None
        return self._score(model, step)

    def due(self, step: int) -> bool:
        """Whether canaries are to be scored after so many updates, if time allows."""
        return step == 0 or (self.every is not None and step % self.every == 0)

    def stop(self, model: nn.Module | None = None, *, step: int | None = None) -> None:
        """End the watching, score once more and store everything; ``finish`` calls it too."""
        model = model or self._model
        if self._watcher is None or model is None or self._started is None:
            return
        self._watcher.detach()
        self._last_step = self._watcher.step if step is None else step
        if self._last_step not in self._scores:
            self._score(model, self._last_step)
        self._store()
        self._trained_seconds += time.perf_counter() - self._started
        self._started = None

    def save(self) -> None:
        """Store what was seen and scored so far; call it in all processes after each checkpoint.

        A training that is resumed from a checkpoint then knows the batches before it.
        """
        if self._watcher is not None and self._started is not None:
            self._store()

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
        model = model or self._model
        if model is None or self._watcher is None:
            raise NotEnoughEvidence(
                "No training was watched, so there is nothing to measure.",
                hint="Pass audit.callback() to the trainer, or call audit.start and audit.step.",
            )
        self.stop(model)
        self._place_rows(at_least=1)
        if delta is not None or not isinstance(self.canaries, CanarySet):
            # The weights may be others than at the last scoring: trained on, averaged, loaded.
            self._scores[self._last_step] = self._costs(model)
            self._store()
        epsilon = None if delta is None else self._epsilon(claimed_epsilon, delta)
        if isinstance(self.canaries, CanarySet):
            measured = self._measure_secrets(
                self.canaries,
                model,
                method=method,
                references=references,
                max_nodes=max_nodes,
                max_seconds=max_seconds,
            )
        else:
            measured = self._measure_examples(self.canaries, reference_models)
        self._finished = self._ended(measured, epsilon)
        self._model = None  # the audit keeps no model alive
        return self._finished

    def _epsilon(self, claimed: float | None, delta: float) -> MeasuredEpsilon:
        """The lower bound on ε."""
        planted = len(self.canaries.canaries)
        examples = planted + len(self.canaries.controls)
        risen, attacker = differences(self._scores, self._last_step, examples)
        return measured_epsilon(
            risen[:planted],
            risen[planted:],
            claimed=claimed,
            delta=delta,
            seed=self.canaries.seed,
            attacker=attacker,
        )

    def _measure_secrets(
        self, canary_set: CanarySet, model: nn.Module, **settings: Any
    ) -> _MadeResult | None:
        """Measure a template's canaries; return what makes the result of their uses.

        None in all processes but the first.
        """
        measure = FinalMeasure(
            canary_set=canary_set,
            tokenizer=self.tokenizer,
            context=self._context,
            first=self._first,
            start=self._rows[0].start,
            vocabulary=_vocabulary_of(model, self.tokenizer),
            forward=self._forward,
            **settings,
        )
        trained, base = measure.of(model)
        if trained is None:
            return None
        return lambda uses, controls: training_audit(
            Measured(
                canaries=canary_set,
                trained=trained,
                base=base,
                scores=self._scores,
                uses=uses,
                context=len(self._context),
                overhead=self.overhead_so_far,
                data=_data_in_words(self._planted),
                windows=None if self._windows is None else self._windows.window,
                controls_used=controls,
            ),
            limit=self.limit,
            judged=self.judged,
            share=self.share,
        )

    def _measure_examples(
        self, examples: OwnTexts | OwnImages, reference_models: Iterator[nn.Module]
    ) -> _MadeResult | None:
        """Measure examples of one's own; return what makes the result of their uses."""
        are_texts = isinstance(examples, OwnTexts)
        scored = [-self._costs(model, Shortcuts()) for model in reference_models]
        references = np.stack(scored) if scored else None
        if not Processes.now().first:
            return None
        if references is not None:
            self._state.keep_references(references)
        return lambda uses, controls: examples_audit(
            MeasuredExamples(
                kind="texts" if are_texts else "images",
                repeats=np.array(examples.repeats, dtype=np.int64),
                controls=len(examples.controls),
                drawn=examples.drawn,
                scores={step: -costs for step, costs in self._scores.items()},
                score="minus its cost in bits a token"
                if are_texts
                else "the log-odds of its label",
                final=self._last_step,
                uses=uses,
                context=len(self._context),
                overhead=self.overhead_so_far,
                data=_data_in_words(self._planted),
                seed=examples.seed,
                windows=None if self._windows is None else self._windows.window,
                controls_used=controls,
                references=references,
            ),
            limit=self.limit,
            judged=self.judged,
        )

    def _ended(
        self,
        measured: _MadeResult | None,
        epsilon: MeasuredEpsilon | None,
    ) -> AuditOutcome:
        """Judge what was measured, and write the record and the report in the first process."""
        processes = Processes.now()
        uses, controls = self.uses(), self._controls_used()
        outcome = None
        with processes.together():
            if measured is not None:
                result = measured(uses, controls)
                if epsilon is not None:
                    result = with_epsilon(result, epsilon)
                outcome = _outcome(
                    result, self.out, self._state.finish(result, audited=self._audited())
                )
        agreed = processes.agreed(outcome)
        processes.settle()
        if agreed is None:
            raise RuntimeError("the first process did not measure the model")
        return agreed

    # -- within -------------------------------------------------------------------------------

    def _audited(self) -> dict[str, str]:
        """What was audited, in words: model, data and steps."""
        made = {} if self._model is None else {"Model": model_in_words(self._model)}
        data = _data_in_words(self._planted)
        return made | ({"Data": data} if data else {}) | {"Steps": str(self._last_step)}

    def _draw_windows(self, count: int) -> StaggeredWindows:
        rng = np.random.default_rng([self.canaries.seed, _WINDOWS])
        return StaggeredWindows.draw(self.canaries, count=count, rng=rng)

    def _look_at(
        self, loader: Any, matcher: TokenMatcher, secret_start: int
    ) -> list[tuple[int, ...]]:
        """Check the data, and return the tokens that come before canaries in their rows."""
        dataset = getattr(loader, "dataset", None)
        if dataset is None:
            return []
        collate = getattr(loader, "collate_fn", None)
        seen = scan(dataset, collate, matcher)
        if seen is None:
            return []
        check_copies(seen, self.canaries)
        if collate is not None:
            check_collated(dataset, collate, matcher, seen, secret_start)
        return seen.contexts

    def _place_rows(self, *, at_least: int) -> None:
        """Lay out the rows as batches have them, where the data could not be looked at before.

        Args:
            at_least: Canaries that must have been seen, so that what comes before all of them is
                not what comes before one of them by chance.
        """
        if self._unplaced is None or self._watcher is None:
            return
        seen = Processes.now().gathered(list(self._watcher.contexts))
        contexts = [context for each in seen for context in each]
        if len(contexts) >= at_least:
            self._set_rows(*self._unplaced, contexts)
            self._unplaced = None

    def _set_rows(
        self, encoded: list[list[int]], matcher: TokenMatcher, contexts: list[tuple[int, ...]]
    ) -> None:
        """Lay out the tokens that are scored: canaries, controls, references.

        Args:
            encoded: The tokens of each text alone.
            matcher: Knows which of them are searched for.
            contexts: What comes before those in rows of the data.
        """
        skip = matcher.skipped
        if isinstance(self.canaries, OwnTexts):
            # What is left out is the first token of each text, and not a part of the context.
            ending = common_ending([before[: len(before) - skip] for before in contexts])
            self._context = ending if contexts else _leading(self.tokenizer)
            if not skip:  # something must come before the first token that is scored
                self._context = self._context or _document_start(self.tokenizer)
            self._rows = [
                ScoredRow((*self._context, *ids), max(1, len(self._context) + skip))
                for ids in encoded
            ]
            return
        self._first = encoded[0][0] if skip else None
        cores = [*matcher.cores]
        cores += [tuple(encode_text(self.tokenizer, text)[skip:]) for text in self._references]
        context = (
            common_ending(contexts) if contexts else (*_leading(self.tokenizer), *encoded[0][:skip])
        )
        self._context = context or _document_start(self.tokenizer)
        start = len(self._context) + common_start(cores)
        self._rows = [ScoredRow((*self._context, *core), max(1, start)) for core in cores]

    def _resume(self, step: int) -> None:
        """Write the record, or go on with one of the same audit."""
        planted = self._planted or PlantedRows(None, None, len(self.canaries.copies))
        processes = Processes.now()
        with processes.together():
            if processes.first:
                self._state.begin(
                    rows=planted.rows, copies=planted.copies, device=str(_device_of(self._model))
                )
                scores, uses = self._state.read(until=step)
                self._scores = scores if step else {}
                self._state.write(self._scores, uses if step else uses[:0])
                if self._watcher is not None and step:
                    for at, canary, count in uses.tolist():
                        self._watcher.uses[at, canary] += count
        self._scores = processes.agreed(self._scores)
        self._stored_until = step

    def _check_stream(self, step: int) -> None:
        if self._stream_check is None or self._watcher is None:
            return
        try:
            self._stream_check.after(step)
        except InvalidInput:
            self._watcher.detach()
            raise

    def _is_due(self, step: int) -> bool:
        if not self.due(step):
            return False
        if self.overhead is None or self._started is None or step == 0:
            return True
        elapsed = time.perf_counter() - self._started
        affordable = self._seconds + self._last_seconds <= self.overhead * elapsed
        if not Processes.now().agreed(affordable):
            self._skipped.add(step)
            return False
        return True

    def _score(self, model: nn.Module, step: int) -> Floats | None:
        await_gpu(model)  # what the training has still to do is not the scoring's
        began = time.perf_counter()
        self._place_rows(at_least=_CONTEXTS)
        try:
            costs = self._costs(model)
        except RemnantError as fault:
            if step == 0:
                raise
            warnings.warn(f"Step {step} was not scored: {fault}", RemnantWarning, stacklevel=3)
            return None
        self._scores[step] = costs
        self._append(step)
        if self._stream_check is not None and len(self._scores) > 1:
            self._stream_check.scored(step)
        self._last_seconds = time.perf_counter() - began
        self._seconds += self._last_seconds
        return costs[: len(self.canaries.canaries) + len(self.canaries.controls)]

    def _costs(self, model: nn.Module, shortcuts: Shortcuts | None = None) -> Floats:
        """The cost of each scored row, in bits; of texts of one's own, in bits a token.

        Of images it is minus the log-odds of the label.
        """
        if isinstance(self.canaries, OwnImages):
            return score_images(
                model, self.canaries, processes=Processes.now(), forward=self._forward
            )
        costs = score_rows(
            model,
            self._rows,
            vocabulary=_vocabulary_of(model, self.tokenizer),
            processes=Processes.now(),
            forward=self._forward,
            shortcuts=shortcuts or self._shortcuts,
        )
        if isinstance(self.canaries, CanarySet):
            return costs
        tokens = np.array([len(row.ids) - row.start for row in self._rows], dtype=np.float64)
        return np.divide(costs, tokens)

    def _append(self, step: int) -> None:
        """Store one scoring and the uses since the last; every process takes part."""
        processes = Processes.now()
        uses = self.uses(since=self._stored_until)
        with processes.together():
            if processes.first:
                self._state.append(step, self._scores[step], uses, since=self._stored_until)
        self._stored_until = step

    def _store(self) -> None:
        """Put scores and uses into the record; every process takes part, the first one writes."""
        processes = Processes.now()
        uses = self.uses()
        with processes.together():
            if processes.first:
                self._state.write(self._scores, uses)

    def uses(self, *, since: int = 0) -> NDArray[np.int64]:
        """Return when canaries were in batches of any process: rows of step, canary, count.

        Args:
            since: The first step that is asked for.
        """
        own = np.zeros((0, 3), np.int64) if self._watcher is None else self._watcher.counts()
        planted = own[(own[:, 1] < len(self.canaries.canaries)) & (own[:, 0] >= since)]
        return np.concatenate(Processes.now().gathered(planted))

    def _controls_used(self) -> int:
        """How many controls were in batches of any process, where none may be."""
        own = [] if self._watcher is None else self._watcher.counts()[:, 1].tolist()
        planted = len(self.canaries.canaries)
        return len(
            {text for each in Processes.now().gathered(own) for text in each} - {*range(planted)}
        )

    def latest(self) -> dict[str, float]:
        """Return the last scoring's means by how often planted, for a logger; they hold no secret.

        Of a template's canaries it is the mean exposure, of texts of one's own the attack's AUC.
        """
        if not self._scores:
            return {}
        step = max(self._scores)
        if not isinstance(self.canaries, CanarySet):
            scores = {at: -self._scores[at] for at in {min(self._scores), step}}
            repeats = np.array(self.canaries.repeats, dtype=np.int64)
            levels = examples_course(scores, repeats, calibrate=0 in scores)
            return {f"remnant/planted_{r.repeats}_auc": r.auc for r in levels if r.step == step}
        made = course({step: self._scores[step]}, self.canaries)
        rows = () if isinstance(made, Absent) else made.rows
        return {_metric(row.repeats): row.mean_bits for row in rows}

    @property
    def overhead_so_far(self) -> Overhead:
        """What scoring cost."""
        return Overhead(
            scored=len(self._scores),
            skipped=len(self._skipped),
            scoring_seconds=self._seconds,
            training_seconds=self._trained_seconds,
            allowed=self.overhead,
        )


def _outcome(result: TrainingAuditResult, folder: Path, report: Path) -> AuditOutcome:
    verdict = result.verdict
    if isinstance(verdict, Gate):
        return AuditOutcome(
            outcome=verdict.outcome,
            sentence=verdict.sentence,
            claim=verdict.claim or "",
            exit_code=EXIT_CODES[verdict.outcome],
            report=report,
            folder=folder,
            result=result,
        )
    said = verdict.reason if isinstance(verdict, Absent) else verdict.sentence
    return AuditOutcome(
        outcome=None,
        sentence=said,
        claim="",
        exit_code=0,
        report=report,
        folder=folder,
        result=result,
    )


def _data_in_words(planted: PlantedRows | None) -> str:
    if planted is None or planted.rows is None:
        return "a stream of rows"
    return f"{planted.rows - planted.copies} rows"


def _metric(repeats: int) -> str:
    return "remnant/controls_bits" if repeats == 0 else f"remnant/planted_{repeats}_bits"


def _canary_set(
    template: str | Template | None,
    canaries: CanarySet | Sequence[str] | ImageCanaries | None,
    *,
    repeats: Sequence[int],
    per_repeat: int,
    controls: int | Sequence[str],
    seed: int,
) -> CanarySet | OwnTexts | OwnImages:
    if (template is None) == (canaries is None):
        raise InvalidInput(
            "Give exactly one of template and canaries.",
            hint='For instance Audit(template="my pin is {digits:6}", out="audit").',
        )
    if isinstance(canaries, CanarySet):
        return canaries
    if not isinstance(repeats, Sequence):
        raise InvalidInput(
            f"repeats={repeats!r} is not a list of numbers.",
            hint="For instance repeats=(1, 4, 16).",
        )
    if isinstance(canaries, ImageCanaries):
        return deal_images(canaries, controls=controls, repeats=repeats, seed=seed)
    if canaries is not None:
        for name, given in (("canaries", canaries), ("controls", controls)):
            counted = name == "controls" and isinstance(given, int)
            if isinstance(given, str | bytes) or not (counted or isinstance(given, Sequence)):
                raise InvalidInput(
                    f"{name} is a {type(given).__name__}, not a list of texts.",
                    hint="Pass a list of texts, or a CanarySet made with "
                    "remnant.canaries.make_canary_set as canaries.",
                )
        return deal_texts(canaries, controls=controls, repeats=repeats, seed=seed)
    if not isinstance(controls, int):
        raise InvalidInput(
            f"controls is a {type(controls).__name__}; with a template it is how many secrets are "
            "never planted.",
            hint="For instance controls=20.",
        )
    made = template if isinstance(template, Template) else Template(str(template))
    if not len(repeats):
        return CanarySet(
            template=made,
            canaries=(),
            repeats=(),
            controls=make_canary_set(made, repeats=[1], controls=controls, seed=seed).controls,
            seed=seed,
        )
    return make_canary_set(
        made, repeats=repeats, per_repeat=per_repeat, controls=controls, seed=seed
    )


def _tossed(
    canaries: CanarySet | Sequence[str] | ImageCanaries | None,
    repeats: Sequence[int],
    per_repeat: int,
    controls: int | Sequence[str],
    seed: int,
) -> tuple[int, int]:
    """Toss a coin for each canary; return how many are planted, and how many are not.

    Which ones are planted is drawn at random where they are dealt, so that the coins are fair and
    independent.
    """
    faults = []
    if not isinstance(repeats, Sequence) or tuple(repeats) != (1,):
        faults.append(
            f"repeats={repeats!r} is not (1,), as coins= needs: epsilon is about one example, and "
            "a canary that is planted several times is several"
        )
    if isinstance(canaries, CanarySet):
        faults.append("coins= needs a template or examples of one's own, not a canary set")
    if not isinstance(controls, int):
        faults.append("coins= decides which examples are controls; controls= is a list")
    require(faults)
    count = per_repeat + int(controls) if canaries is None else len(canaries)  # type: ignore[arg-type]
    held_out = tails(count, seed=seed)
    return count - held_out, held_out


def _identity(canaries: CanarySet | OwnTexts | OwnImages) -> dict[str, Any]:
    """What tells these canaries from others, for the plan of the record."""
    if isinstance(canaries, CanarySet):
        return {"template": canaries.template.pattern}
    return {"texts" if isinstance(canaries, OwnTexts) else "images": canaries.fingerprint}


def _draw_references(canaries: CanarySet | OwnTexts | OwnImages, references: int) -> list[str]:
    """Texts of a template that its canaries are ranked among while the training runs."""
    if not isinstance(canaries, CanarySet):
        return []
    template = canaries.template
    taken = [canary.secret for canary in (*canaries.canaries, *canaries.controls)]
    rng = np.random.default_rng([canaries.seed, _REFERENCES])
    room = min(references, template.space - len(taken))
    return [canary.text for canary in template.sample(room, rng=rng, exclude=taken)]


def _check_types(numbers: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """Refuse settings that are not numbers, before they are compared with any."""
    faults = [
        f"{name}={value!r} is not a {'whole number' if kind is int else 'number'}"
        for settings, kind in ((numbers, int | float), (whole, int))
        for name, value in settings.items()
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind))
    ]
    require(faults)


def _check_every(every: Any) -> None:
    _check_types({}, {"every": every})
    require([f"every={every} is not at least 1"] if every is not None and every < 1 else [])


def _limit_of(canaries: PlantedTexts, judged: int | None) -> float:
    """The limit that chance alone reaches in at most 1 %."""
    if not isinstance(canaries, CanarySet):
        raise InvalidInput(
            "limit='auto' is for canaries of a template.",
            hint="With examples of one's own, pass the largest AUC that is allowed, such as 0.7.",
        )
    return limit_for(max(1, _judged_canaries(canaries, judged)))


def _judged_canaries(canaries: PlantedTexts, judged: int | None) -> int:
    return sum(often <= (math.inf if judged is None else judged) for often in canaries.repeats)


def _check_settings(audit: Audit, plan: str, references: int, windows: int) -> None:
    faults = []
    if plan not in ("from-start", "staggered"):
        faults.append(f"plan={plan!r} is neither 'from-start' nor 'staggered'")
    if windows < 1:
        faults.append(f"windows={windows} is not at least 1")
    if isinstance(audit.canaries, CanarySet):
        most = math.log2(audit.canaries.template.space)
        if audit.limit is not None and not 0 < audit.limit <= most:
            faults.append(
                f"limit={audit.limit:g} is not above 0 and at most {most:.1f}, the bits that a "
                "secret of this template can have"
            )
    else:
        if audit.limit is not None and not 0.5 < audit.limit < 1:
            faults.append(
                f"limit={audit.limit:g} is not above 0.5 and under 1: with examples of one's own "
                "it is the largest AUC that is allowed"
            )
        if audit.share is not None:
            faults.append("share= is for canaries of a template only")
    for name in ("judged", "share"):
        if getattr(audit, name) is not None and audit.limit is None:
            faults.append(f"{name}= needs limit=")
    least = min(audit.canaries.repeats, default=1)
    if audit.judged is not None and audit.judged < least:
        faults.append(
            f"judged={audit.judged} judges no canary: every canary is planted {least} times or more"
        )
    if audit.share is not None and not 0 < audit.share < 1:
        faults.append(f"share={audit.share:g} is not between 0 and 1")
    elif audit.share is not None:
        many, needed = _judged_canaries(audit.canaries, audit.judged), canaries_needed(audit.share)
        if 0 < many < needed:
            faults.append(
                f"share={audit.share:g} takes {needed} judged canaries for a PASS, and there "
                f"{'is' if many == 1 else 'are'} {many}"
            )
    if audit.overhead is not None and not audit.overhead > 0:
        faults.append(f"overhead={audit.overhead:g} is not above 0")
    if audit.every is not None and audit.every < 1:
        faults.append(f"every={audit.every} is not at least 1")
    if references < 1:
        faults.append(f"references={references} is not at least 1")
    require(faults)


def _leading(tokenizer: Any) -> tuple[int, ...]:
    """The special tokens that the tokenizer puts before a text, where it says so."""
    from remnant.integrations.tokenizer import HuggingFaceTokenizer

    if not callable(tokenizer):
        return ()
    return HuggingFaceTokenizer(tokenizer).leading


def _document_start(tokenizer: Any) -> tuple[int, ...]:
    for name in ("bos_token_id", "eos_token_id"):
        token = getattr(tokenizer, name, None)
        if token is not None:
            return (int(token),)
    return ()


def _device_of(model: nn.Module | None) -> Any:
    parameters = iter(()) if model is None else model.parameters()
    return next((parameter.device for parameter in parameters), "cpu")


def _vocabulary_of(model: nn.Module, tokenizer: Any) -> int:
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if isinstance(size, int):
        return size
    try:
        return len(tokenizer)
    except TypeError:
        return 1 << 16
