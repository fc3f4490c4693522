"""A training that is watched: which canaries its batches hold, and what the model remembers.

That the canaries of a stream do not arrive in the batches is found out early. A stream cannot be
scanned before the first step. It counts what it yields, and the watcher counts what arrives: copies
that were yielded and are never recognised were cut off or filtered away.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from remnant.canaries import CanarySet, OwnImages
from remnant.errors import InvalidInput, RemnantError, RemnantWarning
from remnant.integrations.training.canary_costs import Forward, ImageCosts, TextCosts
from remnant.integrations.training.image_canaries import ImageMatcher, ImageWatcher, check_images
from remnant.integrations.training.planting import PlantedRows, PlantedStream
from remnant.integrations.training.preflight import (
    check_learnable,
    check_order,
    check_texts,
    check_trainable,
    contexts_in,
)
from remnant.integrations.training.processes import Processes
from remnant.integrations.training.recognition import TokenMatcher
from remnant.integrations.training.scoring import await_gpu
from remnant.integrations.training.scoring_time import ScoringTime
from remnant.integrations.training.settings import AuditSettings
from remnant.integrations.training.state import AuditState
from remnant.integrations.training.watching import Watcher
from remnant.records.typed import Absent
from remnant.studies.training_audit.measure import course
from remnant.studies.training_audit.own_examples import examples_course

PATIENCE = 50  # steps after the first copy was yielded
_EXPECTED = 10.0  # copies; by chance none of them arrives with a probability of e^-10
_SHARE = 0.9  # of all copies, where there are fewer
_HINT = (
    "Train on what audit.prepare(...) returned. If you do, raise the maximum length of the "
    "collator, and apply filters before audit.prepare."
)


class StreamCheck:
    """Compares the copies that a stream has yielded with those in the batches.

    Args:
        stream: Yields rows and canaries.
        watcher: Sees the batches.

    Guarantees:
        * A training in which one canary was recognised is never stopped.
        * A shuffle buffer after the stream does not stop it: the batches must have had so many rows
          that 10 copies were expected among them.
    """

    def __init__(self, stream: PlantedStream, watcher: Watcher) -> None:
        self._stream = stream
        self._watcher = watcher
        self._since: tuple[int, int] | None = None  # step and rows when a copy was first yielded
        self._settled = False

    def after(self, step: int) -> None:
        """Stop a training whose canaries are lost.

        Args:
            step: How many updates the model has had. All processes call it with the same steps.

        Raises:
            InvalidInput: Copies were yielded, and none of them is in the batches of the next steps.
        """
        processes = Processes.now()
        if self._settled or (processes.count > 1 and step % PATIENCE):
            return
        recognised, rows, yielded, yielded_rows = self._counts(processes)
        self._settled = recognised > 0
        if self._settled or not yielded:
            return
        if self._since is None:
            self._since = (step, rows)
        first_step, first_rows = self._since
        expected = yielded * (rows - first_rows) / max(yielded_rows, 1)
        if step - first_step < PATIENCE or expected < min(_EXPECTED, _SHARE * yielded):
            return
        raise InvalidInput(
            f"None of the canaries is in the batches of {step - first_step} steps, although the "
            f"stream has yielded {yielded} copies.",
            hint=_HINT,
        )

    def scored(self, step: int) -> None:
        """Warn once where no canary was seen by the second scoring and several were expected.

        What worker processes yield is not counted, so that the training is not stopped.

        Args:
            step: How many updates the model has had.
        """
        if self._settled:
            return
        recognised, rows, yielded, _ = self._counts(Processes.now())
        expected = rows * self._stream.density
        self._settled = recognised > 0
        if self._settled or yielded or expected < min(_EXPECTED, _SHARE * self._stream.copies):
            return
        self._settled = True
        warnings.warn(
            f"None of the canaries was in the batches up to step {step}: they may be cut off or "
            f"filtered away. {_HINT}",
            RemnantWarning,
            stacklevel=5,
        )

    def _counts(self, processes: Processes) -> tuple[int, int, int, int]:
        """Canaries recognised, rows seen, copies yielded and rows yielded, by all processes."""
        own = (
            self._watcher.recognised,
            self._watcher.rows,
            self._stream.yielded,
            self._stream.yielded_rows,
        )
        recognised, rows, yielded, yielded_rows = map(
            sum, zip(*processes.gathered(own), strict=True)
        )
        return recognised, rows, yielded, yielded_rows


Floats = NDArray[np.float64]
_CONTEXTS = 16  # canaries in batches, before rows are laid out as these have them


class WatchedTraining:
    """One training of an audit; it is made after data and model were checked.

    All processes that train together make one each, and call the same methods at the same steps.

    Args:
        settings: What is planted.
        state: The record.
        clock: Says which steps are scored.
        planted: The data with canaries; None where it was made elsewhere.
        model: The model that is trained.
        loader: The loader of its data; None is not checked.
        tokenizer: That the data is made with; images need none.
        forward: Returns logits, for models of an unusual kind.
        step: How many updates the model has had.
        preflight: Whether to check the data.

    Raises:
        InvalidInput: The canaries cannot be learnt, or the model cannot learn at all.

    Attributes:
        watcher: Sees the batches.
        costs: Scores canaries.
        scores: By how many updates the model had.
        last_step: The last of them, once the training has ended.
    """

    def __init__(
        self,
        settings: AuditSettings,
        state: AuditState,
        clock: ScoringTime,
        planted: PlantedRows | None,
        *,
        model: nn.Module,
        loader: Any,
        tokenizer: Any,
        forward: Forward | None,
        step: int,
        preflight: bool,
    ) -> None:
        self.settings, self.planted = settings, planted
        self._state, self._clock = state, clock
        self.model: nn.Module | None = model
        self.scores: dict[int, Floats] = {}
        self.last_step = 0
        self._stored_until = 0
        self._stream_check: StreamCheck | None = None
        self.watcher: Watcher
        self.costs: TextCosts | ImageCosts
        canaries = settings.canaries
        if preflight and settings.plan == "staggered" and loader is not None:
            check_order(loader, hint="Make the loader with shuffle=False.")
        if isinstance(canaries, OwnImages):
            matcher_of_images = ImageMatcher(canaries.images)
            if preflight:
                check_trainable(model)
                check_images(getattr(loader, "dataset", None), canaries, matcher_of_images)
            self.watcher = ImageWatcher(matcher_of_images)
            self.watcher.step = step
            self.costs = ImageCosts(canaries, forward=forward)
            return
        if tokenizer is None:
            raise InvalidInput(
                "There is no tokenizer to recognise canaries with.",
                hint="Pass Audit(tokenizer=...).",
            )
        encoded = check_texts(tokenizer, canaries)
        matcher = TokenMatcher(encoded, one_template=isinstance(canaries, CanarySet))
        if preflight:
            check_learnable(model, matcher, tokenizer)
        contexts = contexts_in(loader, canaries, matcher) if preflight else []
        self.watcher = Watcher(matcher)
        self.watcher.step = step
        stream = None if planted is None else planted.stream
        if preflight and stream is not None:
            self._stream_check = StreamCheck(stream, self.watcher)
        self.costs = TextCosts(
            canaries,
            settings.references,
            tokenizer=tokenizer,
            encoded=encoded,
            matcher=matcher,
            contexts=contexts,
            forward=forward,
        )

    def resume(self, model: nn.Module, step: int) -> None:
        """Write the record, or go on with one of the same audit; then watch the batches."""
        planted = self.planted or PlantedRows(None, None, len(self.settings.canaries.copies))
        processes = Processes.now()
        with processes.together():
            if processes.first:
                self._state.begin(
                    rows=planted.rows, copies=planted.copies, device=str(_device_of(model))
                )
                scores, uses = self._state.read(until=step)
                self.scores = scores if step else {}
                self._state.write(self.scores, uses if step else uses[:0])
                if step:
                    for at, canary, count in uses.tolist():
                        self.watcher.uses[at, canary] += count
        self.scores = processes.agreed(self.scores)
        self._stored_until = step
        self.watcher.attach(model)
        self._clock.start()

    def step(self, model: nn.Module, step: int) -> Floats | None:
        """Note that the model has had ``step`` updates; score and return costs if that is due.

        Raises:
            InvalidInput: The data is a stream whose canaries do not arrive in the batches.
        """
        self.watcher.step = step
        if self._stream_check is not None:
            try:
                self._stream_check.after(step)
            except InvalidInput:
                self.watcher.detach()
                raise
        if step in self.scores or not self._clock.allows(step):
            return None
        return self._score(model, step)

    def stop(self, model: nn.Module, step: int | None) -> None:
        """End the watching, score once more and store everything."""
        self.watcher.detach()
        self.last_step = self.watcher.step if step is None else step
        if self.last_step not in self.scores:
            self._score(model, self.last_step)
        self.store()
        self._clock.stop()

    def score_at_the_end(self, model: nn.Module) -> None:
        """Score the finished model; its weights may be others than at the last scoring."""
        self.scores[self.last_step] = self.costs.of(model)
        self.store()

    def store(self) -> None:
        """Put scores and uses into the record; every process takes part, the first one writes."""
        processes = Processes.now()
        uses = self.uses()
        with processes.together():
            if processes.first:
                self._state.write(self.scores, uses)

    def uses(self, *, since: int = 0) -> NDArray[np.int64]:
        """Return when canaries were in batches of any process: rows of step, canary, count.

        Args:
            since: The first step that is asked for.
        """
        own = self.watcher.counts()
        planted = len(self.settings.canaries.canaries)
        return np.concatenate(
            Processes.now().gathered(own[(own[:, 1] < planted) & (own[:, 0] >= since)])
        )

    def controls_used(self) -> int:
        """Return how many controls were in batches of any process, where none may be."""
        own = self.watcher.counts()[:, 1].tolist()
        planted = len(self.settings.canaries.canaries)
        return len(
            {text for each in Processes.now().gathered(own) for text in each} - {*range(planted)}
        )

    def latest(self) -> dict[str, float]:
        """Return the last scoring's means by how often planted; see ``Audit.latest``."""
        if not self.scores:
            return {}
        canaries, step = self.settings.canaries, max(self.scores)
        if not isinstance(canaries, CanarySet):
            scores = {at: -self.scores[at] for at in {min(self.scores), step}}
            repeats = np.array(canaries.repeats, dtype=np.int64)
            levels = examples_course(scores, repeats, calibrate=0 in scores)
            return {f"remnant/planted_{r.repeats}_auc": r.auc for r in levels if r.step == step}
        made = course({step: self.scores[step]}, canaries)
        rows = () if isinstance(made, Absent) else made.rows
        return {_metric(row.repeats): row.mean_bits for row in rows}

    def _score(self, model: nn.Module, step: int) -> Floats | None:
        await_gpu(model)  # what the training has still to do is not the scoring's
        began = time.perf_counter()
        self.costs.place(self.watcher, at_least=_CONTEXTS)
        try:
            costs = self.costs.of(model)
        except RemnantError as fault:
            if step == 0:
                raise
            warnings.warn(f"Step {step} was not scored: {fault}", RemnantWarning, stacklevel=4)
            return None
        self.scores[step] = costs
        self._append(step)
        if self._stream_check is not None and len(self.scores) > 1:
            self._stream_check.scored(step)
        self._clock.took(time.perf_counter() - began)
        canaries = self.settings.canaries
        return costs[: len(canaries.canaries) + len(canaries.controls)]

    def _append(self, step: int) -> None:
        """Store one scoring and the uses since the last; every process takes part."""
        processes = Processes.now()
        uses = self.uses(since=self._stored_until)
        with processes.together():
            if processes.first:
                self._state.append(step, self.scores[step], uses, since=self._stored_until)
        self._stored_until = step


def _metric(repeats: int) -> str:
    return "remnant/controls_bits" if repeats == 0 else f"remnant/planted_{repeats}_bits"


def _device_of(model: nn.Module) -> Any:
    return next((parameter.device for parameter in model.parameters()), "cpu")
