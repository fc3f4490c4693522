"""Record -> the view of an exposure run, every result checked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from remnant.records import Record
from remnant.report.exposure_view import (
    CanaryExposure,
    Candidate,
    Costs,
    Exposure,
    ExposureView,
    Level,
    MarkedCanary,
    Search,
    SkewNormalFit,
)
from remnant.report.fields import Fields
from remnant.report.run_view import NotMeasured, Results, run_fields


def read_exposure(record: Record) -> ExposureView:
    """Read an exposure run's record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    return ExposureView(
        **run_fields(record, results),
        exposure=results.read("exposure", _exposure),
        repeats=results.read("repeats", _repeats),
        costs=results.read("costs", _costs),
        extraction=results.read("extraction", _extraction),
    )


def _exposure(found: Mapping[str, Any]) -> Exposure | NotMeasured:
    fields = Fields(found, name="exposure")
    if fields.text("method") not in ("exact", "sampled"):
        fields.note(".method", "is neither exact nor sampled")
    read = Exposure(
        template=fields.text("template"),
        space=fields.whole("space"),
        ceiling=fields.number("ceiling_bits"),
        method=fields.text("method"),
        reason=fields.text("reason"),
        tolerance=fields.number_or_none("tolerance"),
        null_mean=fields.number("null_mean_bits"),
        canaries=tuple(_canary(one) for one in fields.each("canaries")),
        controls=tuple(_canary(one) for one in fields.each("controls")),
        given=fields.text_or_none("given"),
    )
    fields.check()
    return read if read.canaries or read.controls else NotMeasured("it holds no canary")


def _canary(one: Fields) -> CanaryExposure:
    return CanaryExposure(
        name=one.text("name"),
        trial=one.whole("trial"),
        repeats=one.whole("repeats"),
        uses=one.whole("uses"),
        bits=one.number("bits"),
        low=one.number_or_none("low"),
        high=one.number_or_none("high"),
        rank=one.whole_or_none("rank"),
        cost=one.number_or_none("cost"),
        saturated=one.flag("saturated"),
        skew_normal_bits=one.number_or_none("skew_normal_bits"),
        twin_bits=one.number_or_none("twin_bits"),
    )


def _repeats(found: Mapping[str, Any]) -> tuple[Level, ...] | NotMeasured:
    fields = Fields(found, name="repeats")
    repeats, n = fields.wholes("repeats"), fields.wholes("n")
    columns = {
        key: fields.numbers_or_none(key) for key in ("mean_bits", "twin_mean_bits", "pooled_pvalue")
    }
    if fields.has("mean_low"):
        columns |= {key: fields.numbers_or_none(key) for key in ("mean_low", "mean_high")}
    if fields.has("mean_at_least"):
        columns["at_least"] = fields.numbers_or_none("mean_at_least")
    if fields.has("control_pvalue"):
        columns["control_pvalue"] = fields.numbers_or_none("control_pvalue")
    fields.same_length(repeats=repeats, n=n, **columns)
    if any(later <= earlier for earlier, later in pairwise(repeats)):
        fields.note(".repeats", "do not rise")
    fields.check()
    rows = zip(*columns.values(), strict=True)
    levels = (
        Level(many, of, **dict(zip(columns, row, strict=True)))
        for many, of, row in zip(repeats, n, rows, strict=True)
    )
    return tuple(levels) or NotMeasured("it holds no canary")


def _costs(found: Mapping[str, Any]) -> Costs | NotMeasured:
    fields = Fields(found, name="costs")
    edges, counts = fields.numbers("edges"), fields.wholes("counts")
    if len(edges) != len(counts) + 1:
        fields.note(".edges", f"has {len(edges)} entries for {len(counts)} counts")
    if any(later <= earlier for earlier, later in pairwise(edges)):
        fields.note(".edges", "do not rise")
    law = None
    if fields.has("skew_normal"):
        inner = fields.inner("skew_normal")
        law = SkewNormalFit(*(inner.number(key) for key in ("shape", "location", "scale")))
        if law.scale <= 0:
            inner.note(".scale", "is not above 0")
    marked = fields.each("marked")
    read = Costs(
        edges=edges,
        counts=counts,
        n_references=fields.whole("n_references"),
        skew_normal=law,
        ks_pvalue=fields.number_or_none("ks_pvalue"),
        marked=tuple(
            MarkedCanary(
                *(one.text("name"), one.whole("repeats"), one.number("cost"), one.number("bits")),
                at_least=one.number_or_none("at_least"),
            )
            for one in marked
            if one.has("cost")
        ),
        unmarked=tuple(one.text("name") for one in marked if not one.has("cost")),
        member=fields.text("member"),
    )
    fields.check()
    return read if any(counts) else NotMeasured("no reference with a finite cost was sampled")


def _extraction(found: Mapping[str, Any]) -> tuple[Search, ...] | NotMeasured:
    fields = Fields(found, name="extraction")
    searches = tuple(
        Search(
            member=one.text("member"),
            certified=one.flag("certified"),
            nodes=one.whole("nodes"),
            space=one.whole("space"),
            tolerance=one.number_or_none("tolerance"),
            candidates=tuple(
                Candidate(
                    candidate.number_or_none("bits"),
                    candidate.text_or_none("canary"),
                    candidate.whole_or_none("repeats"),
                )
                for candidate in one.each("candidates")
            ),
            asked=one.whole_or_none("asked"),
        )
        for one in fields.each("searches")
    )
    fields.check()
    return searches or NotMeasured("no search was made")
