"""The sentences of a report on unique features say what was done, and no more than was found."""

from __future__ import annotations

import pytest

from remnant.records import Record
from remnant.report import read_view
from remnant.report.features_numerals import (
    correlation_text,
    epochs_ends,
    estimate_text,
    number_text,
    points_estimate,
    points_number,
    times_as,
)
from remnant.report.features_view import ByInfluence, Half, Influence, Spread, ThroughTraining
from remnant.report.features_words import (
    activations_sentence,
    alt_text,
    changes_sentence,
    chosen_text,
    halves_sentence,
    in_plain_words,
    influence_sentence,
    mean_sentence,
    positive_sentence,
    spread_sentence,
    strips,
    t_test_sentence,
    through_sentence,
    variants_sentence,
    what_was_done,
    what_was_found,
    white_box_sentence,
)
from remnant.report.prediction_view import Estimate
from remnant.report.run_view import NotMeasured
from remnant.report.tiles import tiles_of
from remnant.report.words import headline, question


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


@pytest.fixture
def read(make_features):
    """The view of a run with changes."""

    def make(**options):
        return read_view(Record.open(make_features(**options)))

    return make


def _models(featured, who, **entries):
    return {who: featured["features"]["variants"][0][who] | entries}


def test_the_plain_words_tell_what_was_done_asked_and_found(read, featured):
    plain = _models(featured, "planted", share_significant=[0.333, 0.2, 0.5])
    plain |= _models(featured, "unplanted", share_significant=[0.091, 0.0, 0.4])
    plain["beyond_m"] = [0.00676, 0.001, 0.0125]
    done, asked, found = map(_plain, in_plain_words(read(plain=plain)))
    assert done == (
        "A letter of 5 x 5 pixels was put into one single training image, and a model was trained "
        "on the data with it. That was done for 10 different images (canaries), 3 times with other "
        "random numbers; 11 models more never saw the patch. All this was done in 2 ways to train."
    )
    assert asked == (
        "Each model was then shown 1 000 images (blocks) that have nothing to do with its task, "
        "with the patch and with random patches in the same place. M says how much more the patch "
        "moves its answers. Any patch moves any model somehow, so M is ranked among 199 patches "
        "that no model ever saw: a model stands out where its M is among the highest 5 % of them."
    )
    assert found == (
        "33.3 % (20.0 % to 50.0 %) of 30 planted models stand out; of 11 models that never saw the "
        "patch it is 9.1 % (0.0 % to 40.0 %). The difference is +24.2 points (+5.1 to +43.3). A "
        "planted model’s M less that of its twin is on average 0.00676 (0.001 to 0.0125) nats."
    )


def test_one_of_everything(read, featured):
    patch = featured["features"]["patch"] | {"opacity": 0.5}
    variants = featured["features"]["variants"][:1]
    change = {"canaries": 1, "seeds": 1, "unplanted": 1, "patch": patch, "variants": variants}
    assert _plain(what_was_done(read(change=change).features)) == (
        "A letter of 5 x 5 pixels at an opacity of 50 % was put into one single training image, "
        "and a model was trained on the data with it. That was done for 1 image (the canary); "
        "1 model more never saw the patch."
    )


@pytest.mark.parametrize(
    ("beyond", "words"),
    [
        ([0.1, -0.1, 0.3], "+10.0 points (−10.0 to +30.0), which may be chance."),
        ([-0.1, -0.3, 0.1], "−10.0 points (−30.0 to +10.0)."),
        ([0.1, 0.05, 0.3], "+10.0 points (+5.0 to +30.0)."),
    ],
)
def test_a_difference_that_may_be_chance_is_called_so(read, beyond, words):
    view = read(plain={"beyond": beyond, "beyond_m": None})
    told = _plain(what_was_found(view.features, view.features.plain))
    assert told.endswith(f"The difference is {words}")


def test_what_is_missing_is_not_told(read):
    view = read(plain={"unplanted": None, "beyond": None, "beyond_m": None})
    found = view.features
    told = what_was_found(found, found.plain)
    assert told.endswith("No model without the patch was measured, so nothing is known of chance.")
    assert (mean_sentence(found.plain), positive_sentence(found.plain)) == ("", "")
    assert t_test_sentence(found, found.plain) == ""
    nothing = read(name="two", plain={"planted": None})
    assert len(in_plain_words(nothing)) == 2
    absent = read(name="three", without=("features",), absent=(("features", "no time"),))
    assert in_plain_words(absent) == ["Whether a patch is remembered was not measured: no time."]
    assert tiles_of(absent) == []
    empty = read(name="four", change={"variants": []})
    assert tiles_of(empty) == []
    assert len(in_plain_words(empty)) == 2


def test_the_t_test_is_the_papers_only(read, featured):
    found = read().features
    told = _plain(t_test_sentence(found, found.plain))
    assert told == (
        "The paper’s t-test over images finds the patch in 80.0 % of the planted models, and in "
        "80.0 % of those that never saw it: it asks whether other images would give the same sign, "
        "not whether the patch is known. It is shown as the paper’s only."
    )
    plain = _models(featured, "unplanted", share_t_test=[0.1, 0.01, 0.3])
    found = read(name="two", plain=plain).features
    assert _plain(t_test_sentence(found, found.plain)).endswith(
        "10.0 % of those that never saw it."
    )


def test_a_mean_over_positive_scores_has_the_unplanted_one_beside_it(read, featured):
    plain = _models(featured, "planted", mean_positive=0.012)
    plain |= _models(featured, "unplanted", mean_positive=0.011)
    told = positive_sentence(read(plain=plain).features.plain)
    assert told.endswith(
        "0.012 nats here. Such a mean is positive by its making; it is 0.011 where nothing was "
        "planted."
    )
    plain |= _models(featured, "unplanted", mean_positive=None)
    told = positive_sentence(read(name="two", plain=plain).features.plain)
    assert told.endswith("no model that never saw the patch has one.")
    plain |= _models(featured, "planted", mean_positive=None)
    assert positive_sentence(read(name="three", plain=plain).features.plain) == ""


def test_white_box_spread_and_units(read):
    plain = read().features.plain
    assert white_box_sentence(plain.white_box) == (
        "With the canary’s label known, the patch raises the log-probability of that class by "
        "0.031 (0.012 to 0.05) nats over random patches, on images of the class; for the twins it "
        "is 0.002 (−0.004 to 0.008). The largest is 0.11."
    )
    assert _plain(spread_sentence(plain.spread)) == (
        "Standard deviation of M: 0.0051 between seeds of one canary, 0.0098 between the means of "
        "canaries and 2 × 10⁻⁴ between draws of the random patches. 30 % of the canaries have M "
        "of both signs."
    )
    assert spread_sentence(Spread(0.5, None, None, None)) == (
        "Standard deviation of M: 0.5 between seeds of one canary."
    )
    assert spread_sentence(Spread(None, None, None, 0.0)) == (
        "None of the canaries have M of both signs."
    )
    assert spread_sentence(Spread(None, None, None, None)) == ""
    assert _plain(activations_sentence(plain.activations)).startswith(
        "Of 128 units in the last hidden layer, the one that answers most to the patch does so in "
    )


def test_when_planted_models_lie_clear():
    other, clear = Estimate(0.0, -0.1, 0.1), Estimate(0.5, 0.2, 0.8)
    through = ThroughTraining((0.0, 2.0, 5.0), (other, clear, clear), (other,) * 3)
    assert through_sentence(through) == (
        "The planted models first lie clear of the others after 2 epochs, and do so at 2 of 3 "
        "moments."
    )
    assert through_sentence(ThroughTraining((1.0,), (other,), (other,))) == (
        "At no moment do the planted models lie clear of those that never saw the patch."
    )


def test_influence_is_told_with_how_sure_it_is(read):
    found = read().features.plain.influence
    assert influence_sentence(found) == (
        "Correlation of M and self-influence: Pearson 0.43 (0.10 to 0.68), Spearman 0.21 (−0.15 to "
        "0.52)."
    )
    none = Estimate(0.1, -0.3, 0.4)
    both = influence_sentence(Influence(none, none, 9, ()))
    assert both.endswith("Neither can be told from none.")
    assert influence_sentence(Influence(None, none, 9, ())).endswith("It may be none.")
    assert influence_sentence(Influence(None, None, 6, ())) == (
        "6 canaries are too few to tell a correlation."
    )
    told = _plain(changes_sentence(found))
    assert told.startswith("With the patch, a canary’s self-influence is ")
    assert "times as large (the median of 5 where it was high) and " in told
    assert changes_sentence(Influence(None, None, 9, ())) == ""


def test_both_halves_are_told():
    share, beyond = Estimate(0.64, 0.4, 0.83), Estimate(0.015, 0.004, 0.026)
    high = Half(15, 75, share, Estimate(0.02, 0.01, 0.03), beyond)
    none, below = Estimate(0.0, 0.0, 0.2), Estimate(-0.0015, -0.004, 0.001)
    low = Half(1, 5, none, Estimate(0.001, -0.002, 0.004), below)
    first, second = (
        "Of 75 planted models with a canary of high self-influence, 64.0 % (40.0 % to 83.0 %) "
        "stand out, and M less that of the twin is on average 0.015 (0.004 to 0.026) nats.",
        "Of 5 planted models with a canary of low self-influence, 0.0 % (0.0 % to 20.0 %) stand "
        "out, and M less that of the twin is on average −0.0015 (−0.004 to 0.001) nats; of one "
        "canary, these intervals are over seeds only.",
    )
    assert _plain(halves_sentence(ByInfluence(high, low))) == f"{first} {second}"
    assert _plain(halves_sentence(ByInfluence(high, NotMeasured("no canary")))) == (
        f"{first} Of a low self-influence nothing was measured: no canary."
    )


def test_variants_are_compared_only_as_far_as_their_intervals_go(read, featured):
    assert variants_sentence(read().features) == (
        "The planted models clearly stand out more often than the others in 2 of 2 ways to train: "
        "plain and dropout."
    )
    variants = [one | {"beyond": [0.1, -0.1, 0.3]} for one in featured["features"]["variants"]]
    assert variants_sentence(read(name="two", change={"variants": variants}).features) == (
        "In none of 2 ways to train do the planted models clearly stand out more often than the "
        "others."
    )
    one = read(name="three", change={"variants": variants[:1]}).features
    assert variants_sentence(one) == ""


def test_alt_texts_say_what_a_picture_is_and_not_what_it_says(read):
    (trained, rows), (asked, others) = strips(read().features)
    assert trained == "Training images"
    assert asked == "Images that were asked about"
    assert [alt_text(row, 2) for row in (*rows, *others)] == [
        "Training image 2 as it was",
        "Training image 2 with the patch",
        "Image 2 as it was",
        "Image 2 with the patch",
        "Image 2 with a random patch",
    ]
    assert strips(read(name="two", change={"pictures": []}).features) == []


def test_tiles_headline_and_question(read):
    view = read()
    assert question(view) == "Unique features"
    assert headline(view) == "Models know a patch that was in one training image"
    names = [tile.name for tile in tiles_of(view)]
    assert names == [
        "Planted models that stand out",
        "Never planted, stand out",
        "Difference",
        "Mean M less the twins’",
    ]
    difference = tiles_of(view)[2]
    assert (difference.value, _plain(difference.remark)) == (
        "+24.2",
        "points; +5.1 to +43.3; allowed 5 %",
    )
    plain = {"unplanted": None, "beyond": None, "beyond_m": None}
    assert len(tiles_of(read(name="two", plain=plain))) == 1
    free = read(name="three", without=("verdict",))
    assert _plain(tiles_of(free)[2].remark) == "points; +5.1 to +43.3"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.00123, "0.00123"),
        (0.000999, "10⁻³"),
        (1e-13, "10⁻¹³"),
        (-5e-324, "−4.9 × 10⁻³²⁴"),
        (16.118, "16.1"),
        (999.6, "1 000"),
        (75400.4, "75 400"),
        (-1.7e308, "−1.7 × 10³⁰⁸"),
        (None, "–"),
    ],
)
def test_numbers_of_any_size(value, text):
    assert _plain(number_text(value)) == text


def test_other_numbers():
    one = Estimate(0.1, -0.0004, 0.25)
    assert _plain(estimate_text(one)) == "0.1 (−4 × 10⁻⁴ to 0.25)"
    assert _plain(points_estimate(one)) == "+10.0 points (+0.0 to +25.0)"
    assert points_number(-0.1234) == "−12.3"
    assert correlation_text(Estimate(-1.0, -1.0, 1.0)) == "−1.00 (−1.00 to 1.00)"
    assert (times_as(0.0, 1.0), times_as(1e-300, 1e300), times_as(4.0, 1.0)) == ("–", "–", "0.25")
    assert _plain(epochs_ends(Estimate(41, 33, 58.5))) == "33 to 58.5"
    assert [chosen_text(one) for one in (True, False, None)] == ["high", "low", "at random"]
