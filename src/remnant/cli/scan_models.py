"""The models of a scan: read and tried before the files are, then asked about what was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.models import naming_model, refuse_the_same
from remnant.cli.progress import ProgressBar
from remnant.cli.redaction import withheld
from remnant.errors import UnsupportedModel

if TYPE_CHECKING:
    from remnant.canaries.natural import Scan
    from remnant.studies.found_exposure import FoundExposures
    from remnant.studies.found_twin import TwinComparison


@dataclass(frozen=True, eq=False)
class Models:
    """Models that were read, and that answer.

    Attributes:
        asked: The model and its twin, where there is one, by what they were named with.
        references: Those that calibrate.
    """

    asked: dict[str, Any]
    references: list[Any]


def load_models(model: Path, given: dict[str, object], *, device: str) -> Models:
    """Read all models and ask each for an answer, before any file is looked at.

    Args:
        model: The folder of ``--model``.
        given: The options about models.
        device: Where they compute.

    Raises:
        InvalidInput: A folder holds no model, or the model under audit once more.
        RecordError: A model is damaged.
        UnsupportedModel: It answers NaN, or no log-probabilities.
    """
    from remnant.integrations import load_sequence_model
    from remnant.studies.found_reasons import check_answers

    references: tuple[Path, ...] = given["reference_models"]  # type: ignore[assignment]
    twin: Path | None = given["twin"]  # type: ignore[assignment]
    refuse_the_same(model, references)
    refuse_the_same(model, () if twin is None else (twin,), option="--twin")

    def load(option: str, folder: Path) -> Any:
        with naming_model(option, folder), _blaming(f"{option} {folder}"):
            found = load_sequence_model(folder, device=device)
            check_answers(found)
        return found

    asked = {f"--model {model}": load("--model", model)}
    others = [load("--reference-model", folder) for folder in references]
    if twin is not None:
        asked[f"--twin {twin}"] = load("--twin", twin)
    return Models(asked, others)


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    """Let an error about what a model does say which model."""
    try:
        yield
    except UnsupportedModel as fault:
        if not fault.message.startswith(name):
            fault.message = f"{name}: {fault.message[:1].lower()}{fault.message[1:]}"
        raise


def measure_in(
    scan: Scan,
    in_twins_text: Scan | None,
    models: Models,
    given: dict[str, object],
    *,
    seed: int,
    bar: ProgressBar,
) -> tuple[FoundExposures, TwinComparison | None]:
    """Measure found secrets in the model and in its twin; no error that passes holds a secret."""
    import numpy as np

    from remnant.studies.found_exposure import measure_found
    from remnant.studies.found_twin import compare_with_twin, unseen_by_twin

    found = scan.found
    if in_twins_text is not None:
        found = unseen_by_twin(found, in_twins_text.found)
    names = ("extract", "at_most", "method", "references", "max_nodes", "max_seconds")
    chosen: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    watched = {part for one in scan.found for part in one.parts}
    measured = []
    for name, model in models.asked.items():
        with withheld(watched), nullcontext() if models.references else _blaming(name):
            # Equal generators: both are asked with the same references.
            measured.append(
                measure_found(
                    model,
                    found,
                    rng=np.random.default_rng(seed),
                    reference_models=models.references,
                    progress=bar,
                    **chosen,
                )
            )
    if len(measured) == 1:
        return measured[0], None
    in_model, in_twin = measured
    shared = len(scan.found) - len(found)
    return in_model, compare_with_twin(found, in_model=in_model, in_twin=in_twin, shared=shared)
