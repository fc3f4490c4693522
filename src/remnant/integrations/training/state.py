"""What an audit keeps while the training runs, so that a killed training loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries import CanarySet, OwnImages, OwnTexts, write_canary_sets
from remnant.canaries.canary_set import random_seed
from remnant.errors import InvalidInput, RecordError
from remnant.integrations.training.processes import Processes
from remnant.plans.plan import fingerprint
from remnant.records import Record, gather_provenance
from remnant.records.folder import RECORD_FILE
from remnant.records.provenance import used_libraries
from remnant.records.typed import put_result
from remnant.studies.reporting import AUDITED, write_report
from remnant.studies.training_audit.result import TrainingAuditResult

QUESTION = "training-audit"
CANARIES, IMAGES = "canaries.jsonl", "canaries.npz"
RUNNING = "scored-since.jsonl"
_STEPS, _SCORES, _REFERENCES = "score_steps", "scores", "reference_scores"

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def own_seed(folder: Path) -> int:
    """A random seed, the same in all processes; that of the audit in the folder, if there is one.

    Raises:
        InvalidInput: There are several processes that cannot agree on one yet.
        RecordError: The record in the folder is damaged.
    """
    processes = Processes.now()
    if processes.count == 1 and (many := os.environ.get("WORLD_SIZE", "1")) != "1":
        raise InvalidInput(
            f"seed is not given, and WORLD_SIZE={many} processes would each draw other canaries.",
            hint="Pass all of them the same seed=, a number that nobody can guess.",
        )
    seed = random_seed()
    if (folder / RECORD_FILE).is_file():
        record = Record.open(folder)
        inner = record.plan.get("plan")
        if record.question == QUESTION and isinstance(inner, dict):
            seed = int(inner.get("seed", seed))
    return processes.agreed(seed)


class AuditState:
    """The record of an audit in its folder: scores by step, and which batch had which canary.

    Scorings are appended to a file beside the record, which costs next to nothing, and go into the
    record itself where the training is saved or ends. The record is locked only while something is
    written.

    Args:
        folder: The folder of the audit.
        plan: The canaries and the plan, as plain data; another plan is another audit.
        settings: What else the record says about the audit, such as its limit.
        canary_set: What is planted; None where nothing is.

    Raises:
        RecordError: The folder holds another audit, or one that is finished.
    """

    def __init__(
        self,
        folder: Path,
        *,
        plan: Mapping[str, Any],
        settings: Mapping[str, Any],
        canary_set: CanarySet | OwnTexts | OwnImages | None,
    ) -> None:
        self.folder = folder
        self._canary_set = canary_set
        self._plan: dict[str, Any] = {
            "question": QUESTION,
            "plan": dict(plan),
            "audit": dict(settings),
        }
        self._fingerprint = fingerprint({"question": QUESTION, "plan": dict(plan)})
        self._check()

    def _check(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise RecordError(
                f"out={str(self.folder)!r} is a file.",
                hint="Choose a folder of its own for the audit.",
            )
        if not (self.folder / RECORD_FILE).exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise RecordError(
                    f"out={str(self.folder)!r} is not empty and holds no audit.",
                    hint="Choose a folder of its own for the audit.",
                )
            return
        record = Record.open(self.folder)
        if record.question != QUESTION or record.plan_fingerprint != self._fingerprint:
            raise RecordError(
                f"out={str(self.folder)!r} holds another audit.",
                hint="Choose another folder, or remove that one.",
            )
        if record.status == "complete":
            raise RecordError(
                f"out={str(self.folder)!r} holds an audit that is finished.",
                hint="Choose another folder for another training, or remove that one.",
            )

    def begin(self, *, rows: int | None, copies: int, device: str) -> None:
        """Write the record and the canaries, or go on with those that are there."""
        data = fingerprint({"rows": rows, "copies": copies})
        with Record.open_or_create(
            self.folder,
            question=QUESTION,
            plan=self._plan,
            plan_fingerprint=self._fingerprint,
            data_fingerprint=data,
            execution={"device": device},
            provenance=gather_provenance(
                device=device,
                threads=torch.get_num_threads(),
                seeds={"plan": int(self._plan["plan"]["seed"])},
            ),
        ):
            if isinstance(self._canary_set, OwnImages):
                self._canary_set.write(self.folder / IMAGES)
            elif isinstance(self._canary_set, OwnTexts):
                self._canary_set.write(self.folder / CANARIES)
            elif self._canary_set is not None:
                write_canary_sets([self._canary_set], self.folder / CANARIES)

    @property
    def begun(self) -> bool:
        """Whether there is a record."""
        return (self.folder / RECORD_FILE).exists()

    def read(self, *, until: int) -> tuple[dict[int, Floats], Whole]:
        """Return the scores up to a step, and the uses before it.

        Args:
            until: The number of updates that the training starts with.

        Raises:
            RecordError: What was stored is damaged.
        """
        record = Record.open(self.folder)
        scores: dict[int, Floats] = {}
        if _STEPS in record.array_names():
            steps, rows = record.array(_STEPS).tolist(), record.array(_SCORES)
            scores = {step: rows[i] for i, step in enumerate(steps)}
        ledger = record.ledger()
        uses = np.column_stack([ledger["step"], ledger["canary"], ledger["uses"]])
        for step, values, since, later in self._running():
            scores[step] = values
            uses = np.concatenate([uses[uses[:, 0] < since], later])
        if len({values.shape for values in scores.values()}) > 1:
            raise self._damaged()
        return (
            {step: scores[step] for step in sorted(scores) if step <= until},
            uses[uses[:, 0] < until],
        )

    def _running(self) -> Iterator[tuple[int, Floats, int, Whole]]:
        """The scorings that are not in the record yet: step, scores, since when, and uses.

        One that was cut short is left out.
        """
        path = self.folder / RUNNING
        if not path.exists():
            return
        known = None if self._canary_set is None else len(self._canary_set.canaries)
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                row = json.loads(line)
                scores = np.array(row["scores"], dtype=np.float64)
                uses = np.array(row["uses"], dtype=np.int64).reshape(-1, 3)
                step, since = int(row["step"]), int(row["since"])
            except (ValueError, TypeError, LookupError, OverflowError):
                raise self._damaged() from None
            beyond = known is not None and bool((uses[:, 1] >= known).any())
            if scores.ndim != 1 or np.isnan(scores).any() or (uses < 0).any() or beyond:
                raise self._damaged()
            yield step, scores, since, uses

    def _damaged(self) -> RecordError:
        return RecordError(
            f"{self.folder / RUNNING} is damaged, so that the training cannot be resumed with it.",
            hint="Remove the folder of the audit and start the training anew.",
        )

    def append(self, step: int, scores: Floats, uses: Whole, *, since: int) -> None:
        """Store one scoring, without touching the record.

        Args:
            step: How many updates the model had.
            scores: One number a row.
            uses: All uses from the step ``since`` on; they take the place of those stored before.
            since: The first step whose uses may have changed.
        """
        line = {"step": step, "since": since, "scores": scores.tolist(), "uses": uses.tolist()}
        with (self.folder / RUNNING).open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def finish(
        self, result: TrainingAuditResult, *, audited: Mapping[str, str] | None = None
    ) -> Path:
        """Store the result, mark the audit as finished, and write its report.

        Args:
            result: All numbers.
            audited: Model, data and steps in words.
        """
        with Record.open(self.folder, write=True) as record:
            if audited:
                record.update_execution({AUDITED: dict(audited)})
            put_result(record, result)
            record.note_versions(used_libraries())
            record.finish()
        return write_report(self.folder)

    def keep_references(self, scores: Floats) -> None:
        """Store the scores of reference models."""
        with Record.open(self.folder, write=True) as record:
            record.put_array(_REFERENCES, scores)

    def write(self, scores: Mapping[int, Floats], uses: Whole) -> None:
        """Store the scores by step, and the uses of the canaries."""
        with Record.open(self.folder, write=True) as record:
            if scores or _STEPS in record.array_names():
                steps = sorted(scores)
                rows = np.array([scores[step] for step in steps], dtype=np.float64)
                record.put_array(_SCORES, rows)
                record.put_array(_STEPS, np.array(steps, dtype=np.int64))
            record.put_ledger(
                {
                    "member": np.zeros(len(uses), dtype=np.int64),
                    "canary": uses[:, 1],
                    "step": uses[:, 0],
                    "uses": uses[:, 2],
                }
            )
        (self.folder / RUNNING).unlink(missing_ok=True)
