"""The view of an audit that asked one model about one patch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from remnant.errors import InvalidInput
from remnant.records import Record
from remnant.report.features_pictures import png
from remnant.report.features_view import KINDS, Pictures
from remnant.report.fields import Fields
from remnant.report.prediction_view import Estimate
from remnant.report.run_view import NotMeasured, Results, RunView, run_fields

SCORES = {
    "black_box": "M",
    "white_box": "White-box M_w",
    "gain": "Probability gain",
}
SIDES = {"model": "Model", "twin": "Twin"}
_BINS = 24


@dataclass(frozen=True, slots=True)
class AuditScore:
    """One score of one model.

    Attributes:
        side: "model" or "twin".
        name: One of ``SCORES``.
        value: With its interval over images.
        p_value: From the rank among patches that were never planted.
        rank, nulls: The rank, and among how many others.
        null_median, null_largest: Of those others.
        t_test: The paper's p-value; None where all images give the same number.
        few: Whether few images carry the score.
    """

    side: str
    name: str
    value: Estimate
    p_value: float
    rank: int
    nulls: int
    null_median: float
    null_largest: float
    t_test: float | None
    few: bool


@dataclass(frozen=True, slots=True)
class Nulls:
    """How the model's scores with never planted patches are spread: edges of bins and counts."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found.

    Attributes:
        what: Kind and size of the patch, never what it says.
        images: How many images were asked about.
        significance: From which p-value on a score counts.
        confidence: Of all intervals.
        against: "pixels" or "words".
        scores: Of the model, then of the twin.
        beyond: M of the model less the twin's; None without one.
        nulls: Of the model's M.
        pictures: Of images, with and without patches.
    """

    what: str
    images: int
    significance: float
    confidence: float
    against: str
    scores: tuple[AuditScore, ...]
    beyond: Estimate | None
    nulls: Nulls
    pictures: tuple[Pictures, ...]

    @property
    def main(self) -> AuditScore:
        """M of the model."""
        return self.scores[0]

    @property
    def twin(self) -> AuditScore | None:
        """M of the twin."""
        found = [one for one in self.scores if one.side == "twin" and one.name == "black_box"]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class FeatureAuditView(RunView):
    """What the report shows of such an audit."""

    audit: Audit | NotMeasured

    @property
    def has_pictures(self) -> bool:
        """Whether there is any picture to show."""
        found = self.audit
        return not isinstance(found, NotMeasured) and any(one.files for one in found.pictures)


def read_feature_audit(record: Record) -> FeatureAuditView:
    """Read the record of an audit.

    Raises:
        RecordError: A result is malformed.
    """
    results = Results(record)
    audit = results.read("audit", lambda found: _audit(found, record))
    return FeatureAuditView(**run_fields(record, results), audit=audit)


def _audit(found: Mapping[str, Any], record: Record) -> Audit:
    fields = Fields(found, name="audit")
    scores = tuple(
        _score(side, name, fields.inner(side).inner(name))
        for side in SIDES
        if fields.has(side)
        for name in SCORES
        if fields.inner(side).has(name)
    )
    if not scores or (scores[0].side, scores[0].name) != ("model", "black_box"):
        fields.note(".model.black_box", "is missing")
    read = Audit(
        what=fields.inner("patch").text("what"),
        images=fields.whole("images"),
        significance=fields.number("significance"),
        confidence=fields.number("confidence"),
        against=fields.text("against"),
        scores=scores,
        beyond=_estimate(fields, "beyond_twin") if fields.has("beyond_twin") else None,
        nulls=_nulls(fields, record),
        pictures=tuple(_pictures(one, record) for one in fields.each("pictures")),
    )
    fields.check()
    return read


def _score(side: str, name: str, one: Fields) -> AuditScore:
    return AuditScore(
        side=side,
        name=name,
        value=_estimate(one, "value"),
        p_value=one.number("p_value"),
        rank=one.whole("rank"),
        nulls=one.whole("nulls"),
        null_median=one.number("null_median"),
        null_largest=one.number("null_largest"),
        t_test=one.number_or_none("t_test_p_value"),
        few=one.flag("carried_by_few"),
    )


def _estimate(fields: Fields, key: str) -> Estimate:
    found = fields.numbers(key)
    if len(found) != 3:
        fields.note(f".{key}", f"has {len(found)} entries, not value, low and high")
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(*found)


def _nulls(fields: Fields, record: Record) -> Nulls:
    name = "model_null_values"
    if name not in record.array_names():
        fields.note(f".{name}", "is no array of the record")
        return Nulls((0.0, 1.0), (0,))
    counts, edges = np.histogram(record.array(name), bins=_BINS)
    return Nulls(tuple(edges.tolist()), tuple(counts.tolist()))


def _pictures(one: Fields, record: Record) -> Pictures:
    what, name = one.text("what"), one.text("array")
    if what not in KINDS:
        one.note(".what", f"is none of {', '.join(KINDS)}")
    if name not in record.array_names():
        one.note(".array", "names no array of the record")
        return Pictures(what, one.text("title"), 0, 0, ())
    images = record.array(name)
    files: tuple[bytes, ...] = ()
    try:
        files = tuple(png(image) for image in images)
    except (InvalidInput, TypeError) as fault:
        one.note(".array", f"cannot be shown: {str(fault).removesuffix('.')}")
    height, width = images.shape[-2:] if images.ndim == 4 else (0, 0)
    return Pictures(what, one.text("title"), height, width, files)
