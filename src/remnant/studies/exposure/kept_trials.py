"""The measurement of one trial as a file of the run, until the results of all trials are stored.

A study that is killed while it measures its trials goes on with those that are not measured yet.
The file holds no secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet
from remnant.measures import ExtrapolatedExposure
from remnant.measures.statistics.skew_normal_fit import SkewNormalFit
from remnant.population.checkpoint import peek, save
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.measure import TrialExposure, TrialSearch
from remnant.studies.exposure.result import CanaryExposure

_ARRAYS = "reference_costs"  # the record has them
_UNUSED = ("arithmetic", "alone")  # no result of a study has them


def keep_trial(path: Path, trial: TrialExposure, *, key: str) -> None:
    """Write what was measured in one trial, without its canaries and its references' costs.

    Args:
        path: The file.
        trial: What was measured.
        key: Of the study and its data.

    Raises:
        RecordError: The file cannot be written.
    """
    parts = {
        "key": key,
        "planted": _audit_parts(trial.planted),
        "twin": None if trial.twin is None else _audit_parts(trial.twin),
        "searches": {name: asdict(search) for name, search in trial.searches.items()},
    }
    save(path, {}, json.loads(json.dumps(parts, default=lambda value: value.tolist())))


def kept_trial(
    path: Path,
    *,
    key: str,
    canaries: CanarySet,
    uses: NDArray[np.int64],
    costs: Callable[[str], NDArray[np.float64]],
) -> TrialExposure | None:
    """Return what ``keep_trial`` wrote; None where there is no file, or one of another form.

    Args:
        path: The file.
        key: Of the study and its data.
        canaries: The trial's canary set.
        uses: How often training used each canary.
        costs: Returns the costs of the references in the trial's model of an arm.

    Raises:
        RecordError: The file is damaged or cannot be read.
    """
    parts = peek(path)
    if parts is None or parts.get("key") != key:
        return None
    try:
        twin = parts["twin"]
        return TrialExposure(
            canaries,
            uses,
            _audit(parts["planted"], costs("planted")),
            None if twin is None else _audit(twin, costs("twin")),
            {name: _search(search) for name, search in parts["searches"].items()},
        )
    except (KeyError, TypeError):  # of another version of Remnant: it is measured again
        return None


def _audit_parts(audit: ExposureAudit) -> dict[str, Any]:
    parts = asdict(audit)
    return {name: part for name, part in parts.items() if name not in (_ARRAYS, *_UNUSED)}


def _audit(parts: Mapping[str, Any], reference_costs: NDArray[np.float64]) -> ExposureAudit:
    law = parts["extrapolated"]
    made: dict[str, Any] = {
        **parts,
        "each": tuple(CanaryExposure(**secret) for secret in parts["each"]),
        "extrapolated": None if law is None else _law(law),
        _ARRAYS: reference_costs,
    }
    return ExposureAudit(**made)


def _law(parts: Mapping[str, Any]) -> ExtrapolatedExposure:
    made: dict[str, Any] = {
        **parts,
        "bits": np.array(parts["bits"], dtype=np.float64),
        "extrapolated": np.array(parts["extrapolated"], dtype=bool),
        "fit": SkewNormalFit(**parts["fit"]),
    }
    return ExtrapolatedExposure(**made)


def _search(parts: Mapping[str, Any]) -> TrialSearch:
    candidates = tuple((place, bits) for place, bits in parts["candidates"])
    return TrialSearch(**{**parts, "candidates": candidates})
