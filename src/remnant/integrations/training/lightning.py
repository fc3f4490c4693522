"""The audit as a callback of Lightning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remnant.errors import MissingExtra, import_failure
from remnant.integrations.training.audit import Audit
from remnant.integrations.training.preflight import check_order
from remnant.integrations.training.published import refuse_published

_IN_ORDER = (
    "Make the loader with shuffle=False. In several processes Lightning shuffles all the same: "
    "make it in train_dataloader() with sampler=DistributedSampler(data, shuffle=False), and pass "
    "use_distributed_sampler=False to the trainer."
)


def lightning_callback(audit: Audit, *, every: int | None, preflight: bool) -> Any:
    """Return a Lightning ``Callback`` that runs the audit.

    The audited model is the module's attribute ``model`` where it has one, else the module itself.

    Args:
        audit: Whose canaries are watched.
        every: Steps between two scorings; by default 20 scorings in a training.
        preflight: Whether to check the training data before the first step.

    Raises:
        MissingExtra: Lightning is not installed.
    """
    base = _callback_class()

    class AuditCallback(base):  # type: ignore[misc,valid-type]
        """Checks the data before the first step, scores canaries, and logs their exposure."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            root = Path(trainer.default_root_dir) / "lightning_logs"
            refuse_published(audit.out, root, name="lightning_logs")
            if preflight and audit.plan == "staggered":
                check_order(trainer.train_dataloader, hint=_IN_ORDER)
            steps = trainer.estimated_stepping_batches
            audit.start(
                audited(pl_module),
                trainer.train_dataloader,
                tokenizer=getattr(pl_module, "tokenizer", None),
                step=trainer.global_step,
                steps=int(steps) if steps != float("inf") else None,
                every=every,
                preflight=preflight,
            )
            _log(trainer)

        def on_train_batch_end(
            self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            if audit.step(audited(pl_module), trainer.global_step) is not None:
                _log(trainer)

        def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
            audit.save()

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            audit.stop(audited(pl_module), step=trainer.global_step)

    def _log(trainer: Any) -> None:
        for logger in trainer.loggers:
            logger.log_metrics(audit.latest(), step=trainer.global_step)

    return AuditCallback()


def audited(module: Any) -> Any:
    """Return the language model inside a Lightning module."""
    return getattr(module, "model", module)


def _callback_class() -> Any:
    fault: ImportError | None = None
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return __import__(name, fromlist=["Callback"]).Callback
        except ImportError as error:
            fault = fault or error
    if fault is None:
        raise MissingExtra("Lightning is not installed.")
    raise import_failure(
        fault,
        library="lightning",
        message="The Lightning callback needs lightning, which is not installed.",
        extra="lightning",
    )
