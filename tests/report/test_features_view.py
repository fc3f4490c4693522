"""A record of unique features is read whole; what is missing is None, what is wrong is named."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view
from remnant.report.features_reading import MOST_PICTURES, without_secrets
from remnant.report.features_view import FeaturesView, Half
from remnant.report.prediction_view import Estimate
from remnant.report.run_view import NotMeasured

PARTS = (
    *("test_accuracy", "stopped_epoch", "planted", "unplanted", "beyond", "beyond_m"),
    *("by_influence", "white_box", "by_canary", "spread", "through", "influence", "activations"),
)


@pytest.fixture
def read(make_features):
    """The view of a run with changes."""

    def make(**options):
        return read_view(Record.open(make_features(**options)))

    return make


def test_a_full_record_is_read_whole(read, featured):
    view, stored = read(), featured["features"]
    assert isinstance(view, FeaturesView)
    assert (view.name, view.verdict.limit) == ("letters", 0.05)
    found = view.features
    assert (found.canaries, found.seeds, found.unplanted, found.nulls) == (10, 3, 11, 199)
    assert (found.images, found.n_images, found.significance) == ("blocks", 1000, 0.05)
    assert (found.patch.row, found.patch.height, found.patch.opacity) == (1, 5, 1.0)
    assert [one.name for one in found.variants] == ["plain", "dropout"]
    plain, kept = found.plain, stored["variants"][0]
    assert plain.planted.share_significant == Estimate(*kept["planted"]["share_significant"])
    assert plain.unplanted.mean_positive == kept["unplanted"]["mean_positive"]
    assert plain.beyond == Estimate(*kept["beyond"])
    for name, half in plain.by_influence.named:
        was = kept["by_influence"][name]
        assert half == Half(
            canaries=5,
            n=15,
            share_significant=Estimate(*was["share_significant"]),
            mean=Estimate(*was["mean"]),
            beyond_m=Estimate(*was["beyond_m"]),
        )
    assert plain.white_box.largest == 0.11
    assert [one.m for one in plain.canaries] == [tuple(one["m"]) for one in kept["by_canary"]]
    assert plain.canaries[0].mean == pytest.approx(np.mean(kept["by_canary"][0]["m"]))
    assert plain.spread.sign_changes == 0.3
    assert plain.through.planted[2] == Estimate(*kept["through"]["planted"][2])
    assert plain.influence.changes[3].before == kept["influence"]["changes"][3]["before"]
    assert plain.activations.letter == tuple(kept["activations"]["letter"])


def test_pictures_are_those_of_the_record(read):
    rng = np.random.default_rng(0)
    colour = rng.random((9, 3, 4, 6))
    view = read(arrays={"pictures-clean": colour})
    (first, *others) = view.features.pictures
    assert (first.what, first.title, first.height, first.width) == ("clean", "As they were", 4, 6)
    assert len(first.files) == MOST_PICTURES
    for file, image in zip(first.files, colour, strict=False):
        with Image.open(io.BytesIO(file)) as picture:
            shown = np.asarray(picture).transpose(2, 0, 1)
        np.testing.assert_array_equal(shown, np.rint(255 * image))
    assert [len(one.files) for one in others] == [5] * 4
    assert [one.asked for one in view.features.pictures] == [False, False, True, True, True]


@pytest.mark.parametrize("part", PARTS)
def test_any_part_may_be_missing(read, part):
    plain = read(plain={part: None}).features.plain
    assert getattr(plain, "canaries" if part == "by_canary" else part) in (None, ())


def test_a_record_from_before_halves_were_kept_has_none(read, featured):
    for variant in (variants := featured["features"]["variants"]):
        del variant["by_influence"]
    found = read(change={"variants": variants}).features
    assert [one.by_influence for one in found.variants] == [None, None]


def test_a_half_without_canaries_is_a_reason(read, featured):
    halves = featured["features"]["variants"][0]["by_influence"]
    halves |= {"low": {"absent": "no canary was chosen for it."}}
    found = read(plain={"by_influence": halves}).features.plain.by_influence
    assert found.low == NotMeasured("no canary was chosen for it")
    assert found.high.canaries == 5


def test_what_may_be_null_or_empty_within_a_part(read, featured):
    variant = featured["features"]["variants"][0]
    canary = variant["by_canary"][0] | {"high": None, "influence": None, "twin_m": None}
    plain = {
        "changes": None,
        "by_canary": [canary],
        "spread": {"seeds": None, "canaries": None, "patches": None, "sign_changes": None},
        "influence": {"pearson": None, "spearman": None, "n": 1, "changes": None},
        "planted": variant["planted"] | {"mean_positive": None},
    }
    found = read(plain=plain, change=None).features.plain
    assert (found.canaries[0].high, found.canaries[0].twin_m) == (None, ())
    assert (found.changes, found.influence.changes, found.spread.seeds) == ("", (), None)
    empty = read(name="two", change={"variants": [], "pictures": None}).features
    assert (empty.plain, empty.pictures) == (None, ())


def test_what_was_not_measured_is_a_reason(read):
    view = read(without=("features",), absent=(("features", "training did not end."),))
    assert view.features == NotMeasured("training did not end")
    assert not view.has_pictures


@pytest.mark.parametrize(
    "key",
    [
        *("patch", "images", "canaries", "seeds", "unplanted", "nulls", "significance"),
        *("confidence", "convention", "variants"),
    ],
)
def test_an_entry_that_is_missing_is_named(read, key):
    with pytest.raises(RecordError, match=rf"malformed result 'features': .*features.{key}"):
        read(change={key: None})


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("patch.opacity", 2, "is no share between 0 and 1"),
        ("patch.row", -1, "is an int, no whole number from 0"),
        ("images.n", "many", "is a str, no whole number"),
        ("significance", 5, "is no share between 0 and 1"),
        ("pictures.0.what", "secret", "is none of clean, patched"),
        ("pictures.1.array", "nothing", "names no array of the record"),
        ("pictures.1.title", None, "is missing, no text"),
        ("variants.0.name", None, "is missing, no text"),
        ("variants.0.members", 1.5, "is a float, no whole number"),
        ("variants.0.beyond", [0.1, 0.2], "has 2 entries, not value, low and high"),
        ("variants.0.test_accuracy", [0.9, 0.8, 1.1], "holds what is no share"),
        ("variants.0.planted.share_positive", None, "is missing, no list"),
        ("variants.0.unplanted.share_t_test", [1.1, 0, 1], "holds what is no share"),
        ("variants.0.planted.largest", "x", "is a str, no finite number"),
        ("variants.0.by_influence.low", None, "is missing, no object"),
        ("variants.0.by_influence.low.n", None, "is missing, no whole number"),
        ("variants.0.by_influence.high.canaries", -1, "is an int, no whole number from 0"),
        ("variants.0.by_influence.high.share_significant", [2, 0, 1], "holds what is no share"),
        ("variants.0.by_influence.high.mean", [0.1], "has 1 entries, not value, low and high"),
        ("variants.0.by_influence.low.beyond_m", None, "is missing, no list"),
        ("variants.0.white_box.twins", None, "is missing, no list"),
        ("variants.0.by_canary.2.p", [0.1, 0.2], "has 2 entries for 3 m"),
        ("variants.0.by_canary.2.p", [0.1, 0.2, 7.0], "holds what is no share"),
        ("variants.0.by_canary.2.m", [], "is empty"),
        ("variants.0.by_canary.0.high", 1, "is an int, neither true nor false"),
        ("variants.0.by_canary.0.influence", -1.0, "is negative"),
        ("variants.0.spread.seeds", -0.1, "is negative"),
        ("variants.0.spread.sign_changes", 3.0, "is no share"),
        ("variants.0.through.epoch", [0, 1, 1, 2, 3, 4, 5], "do not rise"),
        ("variants.0.through.planted", [[0.1, 0.0, 0.2]], "has 1 entries for 7 epoch"),
        ("variants.0.through.planted.1", [0.1, None, 0.2], "has 2 entries, not value"),
        ("variants.0.influence.changes.0.before", -1e-9, "is negative"),
        ("variants.0.activations.random", [0.5], "has 1 entries for 20 letter"),
        ("variants.0.activations.letter", [2.0] * 20, "holds what is no share"),
    ],
)
def test_a_malformed_result_is_named(read, featured, path, value, words):
    place = featured["features"]
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        place = place[part]
    place[last] = value
    with pytest.raises(RecordError) as caught:
        read(results={"features": featured["features"]})
    field = re.escape(re.sub(r"\.(\d+)", r"[\1]", path))
    assert re.search(f"features.{field} ?{re.escape(words)}", str(caught.value)), caught.value


@pytest.mark.parametrize(
    "array", [np.zeros((5, 2, 8, 8)), np.zeros((8, 8)), np.array(1.0), np.full((2, 1, 4, 4), 3.0)]
)
def test_an_array_that_is_no_pictures_is_named(read, array):
    with pytest.raises(RecordError, match=r"features.pictures\[0\].array cannot be shown: "):
        read(arrays={"pictures-clean": array})


def test_what_a_patch_says_is_nowhere_in_the_view(read):
    plan = {
        "plan": {"kind": "feature"},
        "patch": {"text": "ANNA 7", "size": 5},
        "recipe": {"scales": [{"patch": {"file": "ANNA 7.png", "text": None}}], "text": "kept"},
    }
    assert "ANNA" not in repr(read(plan=plan))
    hidden = without_secrets(plan)
    assert hidden["patch"] == {"text": "not shown: it may be a secret", "size": 5}
    assert hidden["recipe"]["scales"][0]["patch"]["text"] is None
    assert hidden["recipe"]["text"] == "kept"
    assert plan["patch"]["text"] == "ANNA 7"
