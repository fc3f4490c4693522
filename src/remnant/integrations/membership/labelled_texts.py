"""``audit_text_classifier``: can a classifier's training texts be distinguished from others?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.classifiers.text import TextRows, load_text_model, text_samples
from remnant.integrations.membership.classifiers import (
    Classifier,
    LabelledRecords,
    audit_records,
    check_classifier_settings,
)
from remnant.integrations.membership.outcome import MembershipAudit
from remnant.integrations.membership.records import text_source
from remnant.integrations.pretrained import read_config
from remnant.measures import Success
from remnant.measures.membership.blind import (
    BlindBaseline,
    blind_classifier,
    text_features,
    with_labels,
)
from remnant.progress import Progress
from remnant.studies.membership.measure import Settings, check_counts
from remnant.studies.membership.result import RowCounts

_FIELDS = ("text", "label")
_BATCH = 32
BLIND = 2000  # records of a side that the blind baseline sees
Row = tuple[int, str, Any]


def audit_text_classifier(
    model_dir: str | Path,
    *,
    seen: str | Path,
    unseen: str | Path,
    reference_model: str | Path | None = None,
    rng: np.random.Generator,
    limit: float | None = None,
    attack: str | None = None,
    success: Success = "auc",
    fpr: float = 0.1,
    confidence: float = 0.95,
    field: str | None = None,
    label_field: str = "label",
    control: str | Path | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> MembershipAudit:
    """Audit a Hugging Face sequence classifier with labelled texts that it was trained on.

    Texts that are in both files, and further copies within a file, are left out and counted.

    Args:
        model_dir: Folder of the model.
        seen: File of the training data, JSON lines or CSV: rows with a text and a label.
        unseen: File of rows drawn from the same source and held out.
        reference_model: Folder of a classifier of the same classes that never saw the rows, such as
            one that was trained the same way on other rows. A PASS needs one.
        rng: Draws resamples, folds and the records of the control.
        limit: The largest success allowed; None judges nothing.
        attack: The attack that is judged: ``"loss"`` (log-probability of the label), ``"gap"``
            (its logit less the largest other one) or ``"ratio"`` (its log-odds less the reference
            model's). By default ``"ratio"`` with a reference model, else ``"loss"``.
        success: The rate that is judged: ``"auc"``, ``"tpr"``, ``"precision"`` or ``"accuracy"``.
        fpr: False-positive rate of a TPR or a precision.
        confidence: Of intervals and bounds.
        field, label_field: Fields of the text and of its label. A label is a name of the model's
            configuration, or its number.
        control: File of rows that the model is known to have memorised. By default a copy of the
            model is trained on a few unseen rows, if a PASS depends on it.
        device: Where models compute.
        progress: Called with the name of a stage, what is done, and of how much.

    Raises:
        InvalidInput: Rows, labels, models or settings are not what they should be.
        NotEnoughEvidence: A file has fewer than 20 different texts.
        UnsupportedModel: The model is no classifier of single labels.
        MissingExtra: transformers is not installed.
    """
    settings = Settings(
        attack=attack or ("loss" if reference_model is None else "ratio"),
        limit=limit,
        success=success,
        fpr=fpr,
        confidence=confidence,
    )
    check_classifier_settings(settings, has_reference=reference_model is not None, rng=rng)
    files = [("seen", seen), ("unseen", unseen)] + (
        [] if control is None else [("control", control)]
    )
    given = [
        list(text_source(path, name=name, field=field).labelled(label_field))
        for name, path in files
    ]
    distinct = [_distinct(rows) for rows in given]
    shared = {text for _, text, _ in distinct[0]} & {text for _, text, _ in distinct[1]}
    used = [[row for row in rows if row[1] not in shared] for rows in distinct[:2]] + distinct[2:]
    check_counts(len(used[0]), len(used[1]))
    folder = Path(model_dir)
    names = _label_names(folder)
    if reference_model is not None and _label_names(Path(reference_model)) != names:
        raise InvalidInput(
            "The reference model has other labels than the model, so their odds cannot be "
            "compared.",
            hint="Pass a reference model of the same labels, or leave it out.",
        )
    read = [
        _records(folder, reference_model, Path(path), rows, classes=len(names))
        for (_, path), rows in zip(files, used, strict=True)
    ]
    records = [side for side, _ in read]
    rows = RowCounts(
        seen=len(used[0]),
        unseen=len(used[1]),
        shared=len(shared),
        repeated_seen=len(given[0]) - len(distinct[0]),
        repeated_unseen=len(given[1]) - len(distinct[1]),
        short=0,
        cut=read[0][1] + read[1][1],
        tokens=None,
    )
    text_rows = TextRows(Path(seen), _FIELDS, (), ())
    return audit_records(
        Classifier(load_text_model(folder, text_rows, device=device), batch=_BATCH),
        None
        if reference_model is None
        else Classifier(load_text_model(reference_model, text_rows, device=device), batch=_BATCH),
        seen=records[0],
        unseen=records[1],
        control=records[2] if len(records) > 2 else None,
        blind=_blind(used[0], used[1], records, rng),
        rows=rows,
        counts=(len(given[0]), len(given[1])),
        settings=settings,
        rng=rng,
        progress=progress,
    )


def _label_names(folder: Path) -> dict[str, int]:
    """The model's labels.

    Raises:
        UnsupportedModel: It predicts a number, or several labels at once.
    """
    config = read_config(folder)
    kind = getattr(config, "problem_type", None)
    if kind in ("regression", "multi_label_classification") or config.num_labels < 2:
        what = "several labels of a text" if kind == "multi_label_classification" else "a number"
        raise UnsupportedModel(
            f"folder={str(folder)!r} predicts {what}, and the attacks need one label a text.",
            hint="Pass a classifier of at least two classes, or compute scores of your own and "
            "use remnant score.",
        )
    return {str(name): int(number) for name, number in config.label2id.items()}


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """The rows without further copies of a text, whatever their label."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row[1], row)
    return list(first.values())


def _records(
    folder: Path,
    reference: str | Path | None,
    path: Path,
    rows: Sequence[Row],
    *,
    classes: int,
) -> tuple[LabelledRecords, int]:
    """Rows as the model and the reference model take them, and how many texts were cut."""
    table = TextRows(
        path,
        _FIELDS,
        tuple((text, label) for _, text, label in rows),
        tuple(row[0] for row in rows),
    )
    samples = text_samples(folder, table)
    for (place, _, _), label in zip(rows, samples.labels.tolist(), strict=True):
        if not 0 <= label < classes:
            raise InvalidInput(
                f"{path}, row {place}: the label {label} is not one of the model's {classes} "
                f"classes, 0 to {classes - 1}.",
                hint="Number the classes as in training.",
            )
    beside = None if reference is None else text_samples(reference, table).inputs
    places = np.array([row[0] for row in rows], dtype=np.int64)
    return LabelledRecords(samples.inputs, samples.labels, places, beside), samples.cut


def _blind(
    seen: Sequence[Row],
    unseen: Sequence[Row],
    records: Sequence[LabelledRecords],
    rng: np.random.Generator,
) -> BlindBaseline:
    """The blind baseline: it sees a text and its label."""
    chosen = [rng.permutation(len(side))[:BLIND].tolist() for side in (seen, unseen)]
    texts = [side[i][1] for side, rows in zip((seen, unseen), chosen, strict=True) for i in rows]
    labels = np.concatenate([records[side].labels[rows] for side, rows in enumerate(chosen)])
    features = with_labels(text_features(texts), labels)
    return blind_classifier(features, len(chosen[0]), rng=rng, records="texts")
