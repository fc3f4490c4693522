"""The audit as a callback of the Hugging Face ``Trainer``, which TRL's trainers are too."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from remnant.integrations.pretrained import library
from remnant.integrations.training.audit import Audit
from remnant.integrations.training.preflight import check_order
from remnant.integrations.training.published import refuse_published

_IN_ORDER = 'Pass train_sampling_strategy="sequential" to TrainingArguments.'


def trainer_callback(audit: Audit, *, every: int | None, preflight: bool) -> Any:
    """Return a ``TrainerCallback`` that runs the audit.

    Args:
        audit: Whose canaries are watched.
        every: Steps between two scorings; by default 20 scorings in a training.
        preflight: Whether to check the training data before the first step.

    Raises:
        MissingExtra: transformers is not installed.
    """
    transformers = library()

    class AuditCallback(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        """Checks the data before the first step, scores canaries, and logs their exposure."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            refuse_published(audit.out, Path(args.output_dir), name="output_dir")
            loader = given.get("train_dataloader")
            if preflight and audit.plan == "staggered":
                check_order(loader, hint=_IN_ORDER)
            audit.start(
                given["model"],
                loader,
                tokenizer=_tokenizer(given, loader),
                step=state.global_step,
                steps=state.max_steps,
                every=every,
                preflight=preflight,
            )
            _log()

        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if audit.step(given["model"], state.global_step) is not None:
                _log()

        def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            audit.save()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            audit.stop(given["model"], step=state.global_step)

    def _log() -> None:
        trainer = _calling_trainer()
        if trainer is not None:
            trainer.log(audit.latest())

    return AuditCallback()


def _tokenizer(given: dict[str, Any], loader: Any) -> Any:
    """The trainer's tokenizer, else the collator's."""
    processing = given.get("processing_class")
    collator = getattr(loader, "collate_fn", None)
    # The trainer wraps a collator to drop columns that the model does not take.
    collator = getattr(collator, "data_collator", collator)
    for owner in (processing, getattr(collator, "tokenizer", None)):
        inner = getattr(owner, "tokenizer", owner)  # a processor holds one
        if inner is not None and hasattr(inner, "encode"):
            return inner
    return None


def _calling_trainer() -> Any:
    """The trainer that called the callback: a callback is not given it, and cannot log without."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if hasattr(caller, "callback_handler") and hasattr(caller, "log"):
            return caller
        frame = frame.f_back
    return None
