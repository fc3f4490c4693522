"""Carries a study out in a record: one that is complete is left alone, one cut short goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from remnant.errors import RemnantError
from remnant.records import Record, gather_provenance
from remnant.studies.machine import device_name
from remnant.studies.settings import Execution


class Recorded(Protocol):
    """What a record keeps of a study."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, its question included."""
        ...


def carry_out(
    study: Recorded,
    folder: Path,
    execution: Execution,
    *,
    data_fingerprint: str,
    seeds: dict[str, int],
    work: Callable[[Record], None],
) -> None:
    """Open the study's record, new or cut short, and do the work in it.

    Raises:
        RecordError: The disk is full, or a file of the run is damaged. What is stored stays, also
            checkpoints, and running the same study again continues from there.
        RemnantError: Anything else the user can fix. A folder in which nothing was stored yet then
            holds nothing new.
    """
    plain = study.to_dict()
    with Record.open_or_create(
        folder,
        question=plain["question"],
        plan=plain,
        plan_fingerprint=study.fingerprint,
        data_fingerprint=data_fingerprint,
        execution={"device": execution.device, "compiled": execution.compiled},
        provenance=gather_provenance(
            device=device_name(execution.device), threads=torch.get_num_threads(), seeds=seeds
        ),
    ) as record:
        if record.status == "complete":
            record.verify()
            record.remove_checkpoints()  # a kill after the last result may have left them
            return
        try:
            work(record)
        except RemnantError:
            record.discard_if_empty()
            raise
