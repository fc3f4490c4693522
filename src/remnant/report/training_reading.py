"""Record -> the view of a run about training choices, every result checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from remnant.records import Record
from remnant.report.fields import Fields
from remnant.report.run_view import NotMeasured, Results, run_fields
from remnant.report.training_view import (
    Band,
    Difference,
    Effect,
    Interval,
    Through,
    TrainedVariant,
    Training,
    TrainingView,
)


def read_training(record: Record) -> TrainingView:
    """Read the record of a run about training choices into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    found = results.read("verdict", _differences)
    return TrainingView(
        **run_fields(record, results),
        training=results.read("training", _training),
        differences=() if isinstance(found, NotMeasured) else found,
    )


def _differences(found: Mapping[str, Any]) -> tuple[Difference, ...]:
    fields = Fields(found, name="verdict")
    read = tuple(
        Difference(
            label=one.text("label"),
            value=_interval(one, "difference", at_least=_flag(one, "at_least")),
            p_value=one.number_or_none("p_value"),
            adjusted_p_value=one.number_or_none("adjusted_p_value"),
            differs=one.flag("differs"),
        )
        for one in fields.each("differences")
    )
    fields.check()
    return read


def _training(found: Mapping[str, Any]) -> Training | NotMeasured:
    fields = Fields(found, name="training")
    table = fields.inner("table") if fields.has("table") else None
    variants = tuple(_variant(one) for one in fields.each("variants"))
    read = Training(
        title=fields.text("title"),
        space_bits=fields.number("space_bits"),
        null_mean=fields.number("null_mean_bits"),
        trials=fields.whole("trials"),
        models=fields.whole("models")
        if fields.has("models")
        else sum(one.models for one in variants),
        confidence=fields.number("confidence"),
        token=fields.text("token"),
        variants=variants,
        rows=None if table is None else table.text("rows"),
        columns=None if table is None else table.text("columns"),
        front=fields.texts("pareto"),
        effects=_effects(fields) if fields.has("effects") else (),
        bands=_bands(fields) if fields.has("by_exposure") else (),
    )
    if table is not None:
        for one in read.variants:
            if one.cell is not None and not {read.rows, read.columns} <= set(one.cell):
                fields.note(".variants", "have cells without the table's fields")
    if not set(read.front) <= {one.label for one in read.variants}:
        fields.note(".pareto", "names what is no variant")
    fields.check()
    return read if read.variants else NotMeasured("it holds no variant")


def _effects(fields: Fields) -> tuple[Effect, ...]:
    return tuple(
        Effect(
            field=one.text("field"),
            value=one.text("value"),
            cells=one.whole("cells"),
            along=one.texts("along") if one.has("along") else (),
            exposure=_interval(one, "exposure", at_least=_flag(one, "at_least")),
            validation=_interval(one, "validation_bits"),
            difference=_interval_or_none(
                one, "difference", at_least=_flag(one, "difference_at_least")
            ),
            adjusted_p_value=one.number_or_none("adjusted_p_value"),
        )
        for one in fields.each("effects")
    )


def _bands(fields: Fields) -> tuple[Band, ...]:
    return tuple(
        Band(
            low=one.number("low"),
            high=one.number("high"),
            canaries=one.whole("canaries"),
            searched=one.whole("searched"),
            read_out=one.whole("read_out"),
            nodes=one.number_or_none("nodes"),
            estimated=one.whole("estimated"),
            error=_interval_or_none(one, "error"),
        )
        for one in fields.each("by_exposure")
    )


def _variant(one: Fields) -> TrainedVariant:
    each = one.numbers("each")
    searched = one.has("extracted")
    read_out = one.flags("extracted_each") if searched else ()
    skew = one.numbers("skew_normal") if one.has("skew_normal") else ()
    exact = one.flags("exact_each")
    nodes = one.numbers("nodes_each") if searched else ()
    if searched and (not nodes or len(each) % len(nodes)):
        one.note(".nodes_each", f"has {len(nodes)} entries for {len(each)} canaries")
    one.same_length(
        each=each,
        exact_each=exact,
        **({"extracted_each": read_out} if searched else {}),
        **({"skew_normal": skew} if skew else {}),
    )
    return TrainedVariant(
        label=one.text("label"),
        cell=one.words("cell") if one.has("cell") else None,
        repeats=one.wholes("repeats"),
        models=one.whole("models"),
        steps=one.whole("steps"),
        parameters=one.whole("parameters"),
        exposure=_interval(one, "exposure", at_least=one.whole("saturated") > 0),
        each=each,
        exact=exact,
        saturated=one.whole("saturated"),
        ranked_first=_interval_or_none(one, "ranked_first"),
        controls=_interval_or_none(one, "controls"),
        twin=_interval_or_none(one, "twin"),
        validation=_interval(one, "validation_bits"),
        training=_interval(one, "training_bits"),
        extracted=_interval_or_none(one, "extracted"),
        read_out=read_out,
        nodes=one.number_or_none("nodes"),
        nodes_each=nodes,
        searches_ended=one.whole("searches_ended") if one.has("searches_ended") else 0,
        skew_normal=skew,
        through=_through(one.inner("through")) if one.has("through") else None,
    )


def _through(fields: Fields) -> Through:
    seen = _intervals(fields, "exposure")
    floors = fields.flags("at_least") if fields.has("at_least") else (False,) * len(seen)
    read = Through(
        step=fields.wholes("step"),
        epoch=fields.numbers("epoch"),
        exposure=tuple(
            dataclasses.replace(one, at_least=floor)
            for one, floor in zip(seen, floors, strict=False)
        ),
        validation=_intervals(fields, "validation_bits"),
        training=_intervals(fields, "training_bits"),
        uses=fields.wholes("uses"),
        ceiling=fields.number("ceiling_bits"),
    )
    fields.same_length(step=read.step, at_least=floors)
    fields.same_length(
        step=read.step,
        epoch=read.epoch,
        exposure=read.exposure,
        validation_bits=read.validation,
        training_bits=read.training,
    )
    if not read.step:
        fields.note(".step", "is empty")
    return read


def _interval(fields: Fields, key: str, *, at_least: bool = False) -> Interval:
    found = _ends(fields, f".{key}", fields.numbers_or_none(key))
    return dataclasses.replace(found, at_least=at_least)


def _flag(fields: Fields, key: str) -> bool:
    return fields.flag(key) if fields.has(key) else False


def _interval_or_none(fields: Fields, key: str, *, at_least: bool = False) -> Interval | None:
    return _interval(fields, key, at_least=at_least) if fields.has(key) else None


def _intervals(fields: Fields, key: str) -> tuple[Interval, ...]:
    return tuple(_ends(fields, f".{key}[{i}]", row) for i, row in enumerate(fields.rows(key)))


def _ends(fields: Fields, place: str, found: tuple[float | None, ...]) -> Interval:
    if len(found) != 3 or found[0] is None:
        fields.note(place, "is no value with two ends")
        return Interval(0.0, None, None)
    return Interval(found[0], found[1], found[2])
