"""``audit_checkpoints``: the forgetting curve of a finished training, from its checkpoints."""

from __future__ import annotations

import csv
import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.data.rows import json_lines
from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.integrations.membership.records import Overlap, TextSource, overlap, text_source
from remnant.integrations.membership.text_models import (
    TextModel,
    check_same_tokens,
    load_text_lm,
)
from remnant.measures.membership.attacks import token_mask
from remnant.measures.membership.blind import blind_baseline
from remnant.progress import Progress
from remnant.records.typed import Absent
from remnant.studies.membership.measure import blind_part
from remnant.studies.membership.result import Blind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CHUNK = 1024  # texts that are read, scored and let go together
_BLIND = 2000  # texts of a file that the blind baseline sees
_TRIED = 32  # texts that tokenizers are compared on
_NUMBER = re.compile(r"(\d+)\D*$")
_COLUMNS = ("step", "row")
_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True, eq=False)
class ScoredCheckpoints:
    """Scores of a training's records at its checkpoints; see ``Audit.from_ledger``.

    Attributes:
        scores: One number a record, higher = more likely seen, by how many updates the model had.
            Records of the ledger come first, then the unseen ones.
        ledger: ``(lines, 3)``: the step, the record and how often the step's batch held it.
        unused: Seen rows that are in no line of the ledger; they are left out.
        shared: Texts that are in both files; they are left out.
        short: Texts with no token to predict; they are left out.
        attack: ``"loss"``, or ``"ratio"`` with a reference model.
        references: The same scores in the reference model, ``(1, records)``; None without one.
        blind: Whether a classifier that sees only the texts distinguishes the two files; Absent
            where there are too few of them.
    """

    scores: dict[int, Floats]
    ledger: Ints
    unused: int
    shared: int
    short: int
    attack: str
    references: Floats | None
    blind: Blind | Absent


def checkpoint_folders(pattern: str) -> dict[int, Path]:
    """Return the folders that a pattern matches, by the number of updates in their name.

    Args:
        pattern: Such as ``run/checkpoint-*``. The last number of a name counts updates.

    Raises:
        InvalidInput: No folder matches, one has no number, two have the same, or there is one only.
    """
    folders = sorted(path for path in map(Path, glob.glob(pattern)) if path.is_dir())
    if not folders:
        raise InvalidInput(
            f"checkpoints={pattern!r} matches no folder.",
            hint="Quote the pattern, such as 'run/checkpoint-*'.",
        )
    numbered: dict[int, Path] = {}
    for folder in folders:
        match = _NUMBER.search(folder.name)
        if match is None:
            raise InvalidInput(
                f"checkpoints={pattern!r}: the folder {folder.name} has no number in its name.",
                hint="Name folders by the number of updates, such as checkpoint-500.",
            )
        if numbered.setdefault(int(match[1]), folder) != folder:
            raise InvalidInput(
                f"checkpoints={pattern!r}: {numbered[int(match[1])].name} and {folder.name} have "
                "the same number.",
                hint="Pass one folder for each number of updates.",
            )
    if len(numbered) == 1:
        raise InvalidInput(
            f"checkpoints={pattern!r} matches one folder only, and a curve takes at least two.",
            hint="Save more checkpoints, or audit this one with --model.",
        )
    return dict(sorted(numbered.items()))


def read_uses(path: str | Path) -> Ints:
    """Read a ledger: which update's batch held which row.

    Args:
        path: CSV with a header, or JSON lines, with ``step`` (the update, counted from 0), ``row``
            (of the seen file, counted from 1) and optionally ``count``.

    Returns:
        ``(lines, 3)``: step, row and count.

    Raises:
        InvalidInput: The file cannot be read, lacks a column, or holds something else than whole
            numbers.
    """
    where = Path(path)
    try:
        with where.open(encoding="utf-8-sig", newline="") as file:
            lines = _ledger_lines(where, file)
            uses = [_use(where, number, line) for number, line in lines]
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text in UTF-8.", hint="Save it as UTF-8.") from None
    except OSError as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault.strerror}.", hint="Check its path."
        ) from None
    except csv.Error:
        raise InvalidInput(f"{path} is no CSV.", hint="Write it with a header: step,row.") from None
    if not uses:
        raise InvalidInput(f"{path} has no row.", hint="Write one line a use: step,row.")
    return np.array(uses, dtype=np.int64)


def _ledger_lines(path: Path, file: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix.lower() not in _LINES:
        yield from enumerate(csv.DictReader(file, strict=True), start=1)
        return
    for number, row in json_lines(file):
        yield number, row if isinstance(row, dict) else {}


def _use(path: Path, number: int, line: Mapping[str, Any]) -> tuple[int, int, int]:
    missing = [name for name in _COLUMNS if line.get(name) is None]
    if missing:
        raise InvalidInput(
            f"{path}, row {number}, has no {missing[0]}.",
            hint="A ledger has the columns step, row and, if a row is in a batch more than once, "
            "count.",
        )
    given = (line["step"], line["row"], 1 if line.get("count") in (None, "") else line["count"])
    values = [_whole(value) for value in given]
    step, row, count = values
    if step is None or row is None or count is None or step < 0 or row < 1 or count < 1:
        raise InvalidInput(
            f"{path}, row {number}, does not hold whole numbers: a step from 0 on, a row from 1 "
            "on, and a count from 1 on.",
            hint="Steps count updates from 0, and rows count those of --seen from 1.",
        )
    return step, row, count


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def score_checkpoints(
    folders: Mapping[int, Path],
    uses: Ints,
    *,
    seen: str | Path,
    unseen: str | Path,
    reference_model: str | Path | None = None,
    base: str | Path | None = None,
    field: str | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> ScoredCheckpoints:
    """Score every record at every checkpoint.

    The score of a text is the mean log-probability of its tokens. Copies of a text within the seen
    file are one record, which was used whenever one of them was. Texts that are in both files are
    left out.

    Args:
        folders: Of causal language models, or adapters, by how many updates they had.
        uses: See ``read_uses``.
        seen: File of the training texts.
        unseen: File of texts that were held out, the controls.
        reference_model: A model that never saw the texts, with the same tokenizer.
        base: Folder of the base model, where the checkpoints are adapters.
        field: Field of the text.
        device: Where models compute.
        progress: Called with the name of a stage, what is done, and of how much.

    Raises:
        InvalidInput: The ledger names a row that is not in the file, or a step at or beyond the
            last checkpoint; or a model or a text cannot be read.
        NotEnoughEvidence: No row of the ledger is left, or there are no controls.
    """
    last = max(folders)
    if int(uses[:, 0].max()) >= last:
        raise InvalidInput(
            f"ledger= has step {int(uses[:, 0].max())}, and the last checkpoint is that of {last} "
            f"updates, so its steps are 0 to {last - 1}.",
            hint="Add the checkpoint of the end of the training, or leave later steps out.",
        )
    sides = (
        text_source(seen, name="seen", field=field),
        text_source(unseen, name="unseen", field=field),
    )
    used = overlap(*sides, sampled=_TRIED, rng=np.random.default_rng(0))
    record_of, texts = _records(sides[0], used)
    rows = uses[:, 1]
    known = np.isin(rows, list(record_of))
    if not known.all():
        wrong = int(rows[~known][0])
        raise InvalidInput(
            f"ledger= names row {wrong}, and seen={str(seen)!r} has no such row; its last is "
            f"{max(record_of, default=0)}.",
            hint="Rows count the lines of --seen from 1.",
        )
    records = np.array([record_of[int(row)] for row in rows], dtype=np.int64)
    in_one = records >= 0  # the others are in both files
    named, numbers = np.unique(records[in_one], return_inverse=True)
    held_out = [text for _, text in used.used(sides[1])]
    if not named.size:
        raise NotEnoughEvidence(
            "ledger= names no row that is in --seen only.", hint="Hold records out of the training."
        )
    if not held_out:
        raise NotEnoughEvidence(
            "There are no controls: every text of --unseen is also in --seen.",
            hint="Pass texts that were held out.",
        )
    trained_on = [texts[record] for record in named.tolist()]
    blind = _blind(trained_on, held_out, np.random.default_rng(0))
    kept = [*trained_on, *held_out]
    scores, beside, fine = _scored(folders, kept, reference_model, base, device, progress)
    ledger = np.column_stack([uses[in_one, 0], numbers, uses[in_one, 2]])
    order = np.cumsum(fine) - 1
    of_scored = fine[ledger[:, 1]]
    ledger = ledger[of_scored]
    ledger[:, 1] = order[ledger[:, 1]]
    return ScoredCheckpoints(
        scores={step: values[fine] for step, values in scores.items()},
        ledger=ledger,
        unused=len(texts) - len(named),
        shared=used.shared,
        short=int((~fine).sum()),
        attack="loss" if reference_model is None else "ratio",
        references=None if beside is None else beside[None, fine],
        blind=blind,
    )


def _blind(seen: list[str], unseen: list[str], rng: np.random.Generator) -> Blind | Absent:
    """The blind baseline of some texts of each file."""
    samples = [
        [texts[i] for i in rng.permutation(len(texts))[:_BLIND].tolist()]
        for texts in (seen, unseen)
    ]
    try:
        return blind_part(blind_baseline(samples[0], samples[1], rng=rng))
    except NotEnoughEvidence as fault:
        return Absent(fault.message)


def _records(source: TextSource, used: Overlap) -> tuple[dict[int, int], list[str]]:
    """The record of each row, -1 for a text that is in both files; and the records' texts."""
    places = {place for place, _ in used.used(source)}
    numbers: dict[bytes, int] = {}
    record_of: dict[int, int] = {}
    texts: list[str] = []
    for place, text, keys in source.keyed():
        if place in places:
            numbers[keys[0]] = len(texts)
            texts.append(text)
        record_of[place] = numbers.get(keys[0], -1)  # a copy comes after the first of its kind
    return record_of, texts


def _scored(
    folders: Mapping[int, Path],
    texts: list[str],
    reference_model: str | Path | None,
    base: str | Path | None,
    device: str | torch.device,
    progress: Progress | None,
) -> tuple[dict[int, Floats], Floats | None, NDArray[np.bool_]]:
    """Scores by step, those of the reference model, and which texts have a token to predict."""
    reference, beside = None, None
    if reference_model is not None:
        reference = load_text_lm(reference_model, device=device)
        beside = _means(reference, texts)
    scores = {}
    for done, (step, folder) in enumerate(folders.items(), start=1):
        model = load_text_lm(folder, device=device, base=base)
        if reference is not None:
            check_same_tokens(model, reference, texts[:_TRIED])
        scores[step] = _means(model, texts)
        if progress is not None:
            progress("checkpoints", done, len(folders))
    every = [*scores.values(), *([] if beside is None else [beside])]
    return scores, beside, np.logical_and.reduce([np.isfinite(values) for values in every])


def _means(model: TextModel, texts: list[str]) -> Floats:
    """Mean log-probability of a token of each text; NaN where there is none to predict."""
    means = np.full(len(texts), np.nan)
    waiting = iter(enumerate(texts))
    while chunk := list(islice(waiting, _CHUNK)):
        ids = [row[: model.room] for row in model.encode([text for _, text in chunk])]
        rows = [i for i, row in enumerate(ids) if len(row) > model.unpredicted]
        if rows:
            scored = model.scores([ids[i] for i in rows])
            totals = np.where(token_mask(scored), scored.log_probs, 0.0).sum(1)
            means[[chunk[i][0] for i in rows]] = totals / scored.lengths
    return means
