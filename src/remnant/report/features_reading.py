"""Record -> the view of a run that plants a patch, every result checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

from remnant.errors import InvalidInput
from remnant.records import Record
from remnant.report.features_pictures import png
from remnant.report.features_view import (
    KINDS,
    Activations,
    ByInfluence,
    Canary,
    Change,
    Features,
    FeaturesView,
    Half,
    Influence,
    Models,
    PatchPlace,
    Pictures,
    Spread,
    ThroughTraining,
    Variant,
    WhiteBox,
)
from remnant.report.fields import Fields
from remnant.report.prediction_view import Estimate
from remnant.report.ran import machine_group, plan_groups
from remnant.report.run_view import NotMeasured, Results, run_fields

T = TypeVar("T")

MOST_PICTURES = 6
_SECRET = ("text", "file")
_NOT_SHOWN = "not shown: it may be a secret"


def read_features(record: Record) -> FeaturesView:
    """Read the record of a run that plants a patch into a view.

    Guarantees:
        * What the patch says is in no text of the view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    groups = (*plan_groups(without_secrets(record.plan)), machine_group(record))
    return FeaturesView(
        **run_fields(record, results) | {"groups": groups},
        features=results.read("features", lambda found: _features(found, record)),
    )


def without_secrets(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan without what its patches say, wherever they stand in it."""

    def hide(found: Any, key: str) -> Any:
        if isinstance(found, list):
            return [hide(one, key) for one in found]
        if not isinstance(found, Mapping):
            return found
        hidden = _SECRET if key == "patch" else ()
        return {
            name: _NOT_SHOWN if name in hidden and inner is not None else hide(inner, name)
            for name, inner in found.items()
        }

    return {name: hide(inner, name) for name, inner in plan.items()}


def _features(found: Mapping[str, Any], record: Record) -> Features:
    fields = Fields(found, name="features")
    images, place = fields.inner("images"), fields.inner("patch")
    read = Features(
        patch=PatchPlace(
            what=place.text("what"),
            row=place.whole("row"),
            column=place.whole("column"),
            height=place.whole("height"),
            width=place.whole("width"),
            opacity=_share(place, "opacity"),
        ),
        images=images.text("name"),
        n_images=images.whole("n"),
        canaries=fields.whole("canaries"),
        seeds=fields.whole("seeds"),
        unplanted=fields.whole("unplanted"),
        nulls=fields.whole("nulls"),
        significance=_share(fields, "significance"),
        confidence=_share(fields, "confidence"),
        convention=fields.text("convention"),
        pictures=tuple(_pictures(one, record) for one in fields.each("pictures"))
        if fields.has("pictures")
        else (),
        variants=tuple(_variant(one) for one in fields.each("variants")),
    )
    fields.check()
    return read


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
        files = tuple(png(image) for image in images[:MOST_PICTURES])
    except (InvalidInput, IndexError) as fault:
        one.note(".array", f"cannot be shown: {str(fault).removesuffix('.')}")
    height, width = images.shape[-2:] if images.ndim == 4 else (0, 0)
    return Pictures(what, one.text("title"), height, width, files)


def _variant(one: Fields) -> Variant:
    return Variant(
        name=one.text("name"),
        what=one.text("what"),
        changes=one.text_or_none("changes") or "",
        members=one.whole("members"),
        test_accuracy=_rate(one, "test_accuracy"),
        stopped_epoch=_estimate(one, "stopped_epoch"),
        planted=_inner(one, "planted", _models),
        unplanted=_inner(one, "unplanted", _models),
        beyond=_estimate(one, "beyond"),
        beyond_m=_estimate(one, "beyond_m"),
        by_influence=_inner(one, "by_influence", _by_influence),
        white_box=_inner(one, "white_box", _white_box),
        canaries=tuple(_canary(canary) for canary in one.each("by_canary"))
        if one.has("by_canary")
        else (),
        spread=_inner(one, "spread", _spread),
        through=_inner(one, "through", _through),
        influence=_inner(one, "influence", _influence),
        activations=_inner(one, "activations", _activations),
    )


def _models(group: Fields) -> Models:
    return Models(
        n=group.whole("n"),
        share_positive=_needed_rate(group, "share_positive"),
        share_significant=_needed_rate(group, "share_significant"),
        share_t_test=_needed_rate(group, "share_t_test"),
        mean_positive=group.number_or_none("mean_positive"),
        mean=_needed(group, "mean"),
        largest=group.number("largest"),
    )


def _by_influence(found: Fields) -> ByInfluence:
    return ByInfluence(_half(found.inner("high")), _half(found.inner("low")))


def _half(found: Fields) -> Half | NotMeasured:
    if found.has("absent"):
        return NotMeasured(found.text("absent").removesuffix("."))
    return Half(
        canaries=found.whole("canaries"),
        n=found.whole("n"),
        share_significant=_needed_rate(found, "share_significant"),
        mean=_needed(found, "mean"),
        beyond_m=_needed(found, "beyond_m"),
    )


def _white_box(found: Fields) -> WhiteBox:
    return WhiteBox(_needed(found, "planted"), _needed(found, "twins"), found.number("largest"))


def _canary(one: Fields) -> Canary:
    read = Canary(
        example=one.whole("example"),
        label=one.whole("label"),
        high=one.flag("high") if one.has("high") else None,
        influence=_magnitude(one, "influence") if one.has("influence") else None,
        m=one.numbers("m"),
        p=one.numbers("p"),
        twin_m=one.numbers("twin_m") if one.has("twin_m") else (),
    )
    one.same_length(m=read.m, p=read.p)
    if not read.m:
        one.note(".m", "is empty")
    _require_shares(one, "p", read.p)
    return read


def _spread(found: Fields) -> Spread:
    seeds, canaries, patches = (
        _magnitude(found, key) if found.has(key) else None
        for key in ("seeds", "canaries", "patches")
    )
    changes = _share(found, "sign_changes") if found.has("sign_changes") else None
    return Spread(seeds, canaries, patches, changes)


def _through(found: Fields) -> ThroughTraining:
    epoch = found.numbers("epoch")
    read = ThroughTraining(epoch, _column(found, "planted"), _column(found, "unplanted"))
    found.same_length(epoch=epoch, planted=read.planted, unplanted=read.unplanted)
    if any(later <= earlier for earlier, later in pairwise(epoch)):
        found.note(".epoch", "do not rise")
    return read


def _influence(found: Fields) -> Influence:
    return Influence(
        pearson=_estimate(found, "pearson"),
        spearman=_estimate(found, "spearman"),
        n=found.whole("n"),
        changes=tuple(
            Change(
                example=one.whole("example"),
                before=_magnitude(one, "before"),
                after=_magnitude(one, "after"),
                high=one.flag("high") if one.has("high") else None,
            )
            for one in found.each("changes")
        )
        if found.has("changes")
        else (),
    )


def _activations(found: Fields) -> Activations:
    columns = {key: found.numbers(key) for key in ("letter", "random", "unplanted")}
    found.same_length(**columns)
    for key, column in columns.items():
        _require_shares(found, key, column)
    return Activations(found.whole("units"), **columns)


def _inner(fields: Fields, key: str, make: Callable[[Fields], T]) -> T | None:
    return make(fields.inner(key)) if fields.has(key) else None


def _estimate(fields: Fields, key: str) -> Estimate | None:
    return _needed(fields, key) if fields.has(key) else None


def _rate(fields: Fields, key: str) -> Estimate | None:
    return _needed_rate(fields, key) if fields.has(key) else None


def _needed_rate(fields: Fields, key: str) -> Estimate:
    found = _needed(fields, key)
    _require_shares(fields, key, (found.value, found.low, found.high))
    return found


def _needed(fields: Fields, key: str) -> Estimate:
    """A number with both ends, written as a list of three."""
    return _three(fields, key, fields.numbers(key))


def _column(fields: Fields, key: str) -> tuple[Estimate, ...]:
    read = []
    for i, row in enumerate(fields.rows(key)):
        known = tuple(one for one in row if one is not None)
        read.append(_three(fields, f"{key}[{i}]", known))
    return tuple(read)


def _three(fields: Fields, key: str, found: tuple[float, ...]) -> Estimate:
    if len(found) != 3:
        fields.note(f".{key}", f"has {len(found)} entries, not value, low and high")
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(*found)


def _require_shares(fields: Fields, key: str, found: tuple[float, ...]) -> None:
    if any(not 0 <= one <= 1 for one in found):
        fields.note(f".{key}", "holds what is no share between 0 and 1")


def _share(fields: Fields, key: str) -> float:
    found = fields.number(key)
    if not 0 <= found <= 1:
        fields.note(f".{key}", "is no share between 0 and 1")
    return found


def _magnitude(fields: Fields, key: str) -> float:
    found = fields.number(key)
    if found < 0:
        fields.note(f".{key}", "is negative")
    return found
