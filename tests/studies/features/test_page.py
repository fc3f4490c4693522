"""The page on unique features says what was done and what was measured, in every branch."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from remnant.errors import RecordError
from remnant.records.typed import Absent, read_result
from remnant.report.blocks import Figure, Headline, Pictures, Section, Table, row_value, walk
from remnant.studies.features.page import (
    MOST_PICTURES,
    TITLE,
    page,
)
from remnant.studies.features.result import (
    Activations,
    FeaturesResult,
    Half,
    Influence,
    InfluenceChange,
    NoHalf,
    Spread,
    Through,
    WhiteBox,
)
from remnant.studies.features.sentences import (
    activations_sentence,
    changes_sentence,
    done_sentence,
    half_sentence,
    influence_sentence,
    positive_sentence,
    reactions_sentence,
    score_sentence,
    spread_sentence,
    t_test_sentence,
    through_sentence,
    variants_sentence,
    white_box_sentence,
)
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.pages import read_run


def spaced(text):
    return text.replace("\u202f", " ")


@pytest.fixture
def result(studied):
    return read_result(studied, FeaturesResult)


@pytest.fixture
def features(result):
    return result.features


@pytest.fixture
def run(studied):
    return read_run(studied)


@pytest.fixture
def blocks_of(result, run):
    """The blocks of the page, of which the features or the first variant are changed."""

    def make(plain=None, **changes):
        features = replace(result.features, **changes)
        if plain is not None:
            first, *others = features.variants
            features = replace(features, variants=(replace(first, **plain), *others))
        return list(page(replace(result, features=features), run))

    return make


def test_the_sections_and_their_order(blocks_of):
    blocks = blocks_of()
    assert TITLE == "Unique features"
    assert isinstance(blocks[0], Headline)
    assert [block.title for block in blocks if isinstance(block, Section)] == [
        "In plain words",
        "How many models react to the patch",
        "Canary by canary",
        "During training",
        "Does self-influence predict which canary is memorised?",
        "Is there a unit for the patch?",
        "The other ways to train",
        "How it was measured",
        "What was tested, and what was not",
        "How to read this",
        "What was run",
    ]
    for kind in (Table, Figure):
        keys = [block.key for block in walk(blocks) if isinstance(block, kind)]
        assert len(keys) == len(set(keys)) > 4


def test_the_headline_rests_on_the_difference(blocks_of, result):
    headline = blocks_of()[0]
    beyond, reading = result.features.plain.beyond, headline.reading
    assert (reading.value, reading.low, reading.high) == tuple(beyond)
    assert reading.limit == result.verdict.limit == 0.05
    assert reading.lowest <= beyond.low
    assert reading.n == "20 planted models, 4 without the patch"
    assert spaced(reading.show(0.1234)) == "+12.3 points"
    assert headline.sentence == result.verdict.sentence


@pytest.mark.parametrize(
    ("outcome", "title", "advice"),
    [
        ("PASS", "Models do not react to the patch more often than allowed", "Nothing to do"),
        ("FAIL", "Models react to a patch that was on one training image", "Remove names"),
        ("INCONCLUSIVE", "Not enough evidence to decide", "Change the recipe"),
    ],
)
def test_each_outcome_has_a_title_and_advice(result, run, outcome, title, advice):
    verdict = replace(result.verdict, outcome=outcome)
    headline = next(page(replace(result, verdict=verdict), run))
    assert (headline.outcome, headline.title) == (outcome, title)
    assert headline.advice.startswith(advice)


def test_nothing_measured_is_said_and_not_drawn(run, page_text):
    nothing = Absent("this run recorded none")
    result = FeaturesResult(
        verdict=nothing, task=nothing, scope=nothing, features=Absent("no time")
    )
    blocks = list(page(result, run))
    text = page_text(blocks)
    for words in (
        "No verdict",
        "Whether models memorise a patch was not measured: no time.",
        "Reactions to the patch: not measured: no time.",
        "Scope: not measured: this run recorded none.",
    ):
        assert words in text
    assert "Reactions to the patch: not measured" in page_text(blocks, "summary")
    assert not any(isinstance(block, Figure) for block in walk(blocks))


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"through": None}, "During training"),
        ({"activations": None}, "Is there a unit for the patch?"),
        ({"by_influence": None}, None),
        ({"influence": None}, None),
    ],
)
def test_a_part_that_was_not_measured_has_no_section(blocks_of, page_text, changes, gone):
    blocks = blocks_of(plain=changes)
    titles = [block.title for block in blocks if isinstance(block, Section)]
    assert gone not in titles
    assert "None " not in page_text(blocks).replace("None of the", "")


def test_without_self_influence_there_is_no_section_on_it(blocks_of, features):
    canaries = tuple(replace(canary, influence=None) for canary in features.plain.by_canary)
    blocks = blocks_of(plain={"influence": None, "by_canary": canaries})
    titles = [block.title for block in blocks if isinstance(block, Section)]
    assert not [title for title in titles if "self-influence" in title]


def test_canaries_drawn_at_random_have_neither_halves_nor_a_reason(blocks_of, features):
    variants = tuple(
        replace(
            variant,
            by_influence=None,
            by_canary=tuple(replace(canary, high=None) for canary in variant.by_canary),
        )
        for variant in features.variants
    )
    blocks = list(walk(blocks_of(variants=variants)))
    tables = {block.key: block for block in blocks if isinstance(block, Table)}
    assert "halves" not in tables
    assert "Chosen for" not in [column.name for column in tables["canaries"].shown()]


def test_a_half_without_canaries_has_dashes_in_the_table(blocks_of, features):
    halves = replace(features.plain.by_influence, low=NoHalf(absent="no canary was chosen for it"))
    blocks = blocks_of(plain={"by_influence": halves})
    (table,) = (block for block in walk(blocks) if getattr(block, "key", "") == "halves")
    cells = [column.cell(table.rows[0]).main for column in table.shown()]
    assert cells[-2:] == ["–", "–"]
    assert "–" not in cells[:-2]


def test_tables_show_what_was_measured(blocks_of, features):
    tables = {block.key: block for block in walk(blocks_of()) if isinstance(block, Table)}
    assert len(tables["reactions"].rows) == 4
    bar, row = tables["reactions"].bar, tables["reactions"].rows[1]
    share = features.plain.unplanted.share_significant
    ends = (row_value(row, end) for end in (bar.value, bar.low, bar.high))
    assert tuple(ends) == tuple(share)
    assert bar.mark == ("chance", 0.05)
    canary = tables["canaries"].rows[0]
    cells = {c.name: c.cell(canary).main for c in tables["canaries"].shown()}
    assert cells["Example"] == str(canary.example)
    assert len(cells["M"].split(", ")) == len(cells["p"].split(", ")) == 2
    ratio = tables["changes"].columns[-1]
    zero = replace(tables["changes"].rows[0], before=0.0)
    assert ratio.cell(zero).main == "–"


def test_pictures_are_those_of_the_record(blocks_of, studied):
    strips = [block for block in walk(blocks_of()) if isinstance(block, Pictures)]
    assert [strip.title for strip in strips][:2] == [
        "Training images as they are",
        "The same as planted",
    ]
    assert [strip.pictures[1].alt for strip in strips] == [
        "Training image 2 as it was",
        "Training image 2 with the patch",
        "Training image 2 with a random patch",
        "Image 2 as it was",
        "Image 2 with the patch",
        "Image 2 with a random patch",
    ]
    first = strips[0].pictures[0]
    with Image.open(io.BytesIO(first.png)) as picture:
        shown = np.asarray(picture)
    assert shown.shape == (first.height, first.width) == (20, 20)
    np.testing.assert_array_equal(shown, np.rint(255 * studied.array("pictures.clean")[0, 0]))


def test_no_more_than_six_pictures_and_none_where_there_are_none(result, run, blocks_of):
    many = replace(run, array=lambda name: np.full((9, 3, 4, 6), 0.5))
    strips = [block for block in walk(page(result, many)) if isinstance(block, Pictures)]
    assert {len(strip.pictures) for strip in strips} == {MOST_PICTURES}
    assert strips[0].pictures[0].width == 6
    assert not [block for block in walk(blocks_of(pictures=())) if isinstance(block, Pictures)]


@pytest.mark.parametrize(
    "array", [np.zeros((5, 2, 8, 8)), np.zeros((8, 8)), np.array(1.0), np.full((2, 1, 4, 4), 3.0)]
)
def test_an_array_that_holds_no_pictures_is_named(result, run, array):
    faulty = replace(run, array=lambda name: array)
    with pytest.raises(RecordError, match=r"features.pictures\[0\].array cannot be shown: "):
        list(page(result, faulty))


def test_a_record_without_its_pictures_is_named(result, run, features):
    missing = replace(features.pictures[0], array="nothing")
    changed = replace(result, features=replace(features, pictures=(missing,)))
    with pytest.raises(RecordError, match="holds no array 'nothing'"):
        list(page(changed, run))


def test_the_plain_words(features):
    planted = replace(features.plain.planted, n=30, share_significant=Estimate(0.333, 0.2, 0.5))
    unplanted = replace(features.plain.unplanted, n=11, share_significant=Estimate(0.091, 0.0, 0.4))
    plain = replace(
        features.plain,
        planted=planted,
        unplanted=unplanted,
        beyond=Estimate(0.242, 0.051, 0.433),
        beyond_m=Estimate(0.00676, 0.001, 0.0125),
    )
    alone = replace(features, variants=(plain,))
    assert spaced(done_sentence(features)) == (
        "A letter of 5 x 5 pixels was stamped on one training image at a time: 10 different images "
        "(canaries), 2 trainings each, and 4 trainings without the patch. Each model was tested on "
        "40 images (blocks) unrelated to its task. All this was done in 2 ways to train."
    )
    assert "among 19 patches that no model was trained on" in score_sentence(features)
    assert spaced(score_sentence(features)).endswith("among the highest 5 % of them.")
    sentence = (
        "33.3 % (20.0 % to 50.0 %) of 30 planted models react to the patch (p ≤ 5 %), and 9.1 % "
        "(0.0 % to 40.0 %) of 11 models that never saw it. The difference is +24.2 points (+5.1 to "
        "+43.3). Mean M of the planted models less that of their twins: 0.00676 (0.001 to 0.0125) "
        "nats."
    )
    assert spaced(reactions_sentence(alone, plain)) == sentence
    assert spaced(reactions_sentence(features, plain)) == f"Plain: {sentence}"


def test_one_of_everything(features):
    patch = replace(features.patch, opacity=0.5)
    single = replace(
        features, patch=patch, canaries=1, seeds=1, unplanted=1, variants=features.variants[:1]
    )
    assert spaced(done_sentence(single)) == (
        "A letter of 5 x 5 pixels at an opacity of 50 % was stamped on one training image at a "
        "time: 1 image (the canary), 1 training each, and 1 training without the patch. Each model "
        "was tested on 40 images (blocks) unrelated to its task."
    )


@pytest.mark.parametrize(
    ("beyond", "words"),
    [
        ((0.1, -0.1, 0.3), "+10.0 points (−10.0 to +30.0), which may be chance."),
        ((-0.1, -0.3, 0.1), "−10.0 points (−30.0 to +10.0)."),
        ((0.1, 0.05, 0.3), "+10.0 points (+5.0 to +30.0)."),
    ],
)
def test_a_difference_that_may_be_chance_is_called_so(features, beyond, words):
    variant = replace(features.plain, beyond=Estimate(*beyond))
    assert f"The difference is {words} Mean" in spaced(reactions_sentence(features, variant))


def _shares(features, share):
    unplanted = replace(features.plain.unplanted, share_t_test=Estimate(*share))
    planted = replace(features.plain.planted, share_t_test=Estimate(0.8, 0.7, 0.9))
    plain = replace(features.plain, planted=planted, unplanted=unplanted)
    return replace(features, variants=(plain,))


def test_the_t_test_is_for_comparison_only(features):
    assert spaced(t_test_sentence(_shares(features, (0.8, 0.7, 0.9)))) == (
        "The paper’s t-test over images is significant in 80.0 % of the planted models and in "
        "80.0 % of the models that never saw the patch: it tests whether other images would give M "
        "the same sign, not whether the model knows the patch. It is shown only for comparison "
        "with the paper."
    )
    few = spaced(t_test_sentence(_shares(features, (0.1, 0.01, 0.3))))
    assert few.endswith("10.0 % of the models that never saw the patch.")


@pytest.mark.parametrize(
    ("planted", "unplanted", "words"),
    [
        (0.012, 0.011, "0.012 nats here. That mean is positive by construction; without the "),
        (0.012, None, "no model without the patch has an M above 0."),
        (None, 0.011, ""),
    ],
)
def test_a_mean_over_positive_scores_has_the_unplanted_one_beside_it(
    features, planted, unplanted, words
):
    variant = replace(
        features.plain,
        planted=replace(features.plain.planted, mean_positive=planted),
        unplanted=replace(features.plain.unplanted, mean_positive=unplanted),
    )
    assert words in positive_sentence(variant)
    assert bool(words) == bool(positive_sentence(variant))


def test_white_box_spread_and_units():
    white_box = WhiteBox(
        planted=Estimate(0.031, 0.012, 0.05), twins=Estimate(0.002, -0.004, 0.008), largest=0.11
    )
    assert white_box_sentence(white_box) == (
        "With the canary’s label known, the patch raises the log-probability of that class by "
        "0.031 (0.012 to 0.05) nats over random patches, on images of the class; in the twins by "
        "0.002 (−0.004 to 0.008). The largest value is 0.11."
    )
    spread = Spread(seeds=0.0051, canaries=0.0098, patches=2e-4, sign_changes=0.3)
    assert spaced(spread_sentence(spread)) == (
        "Standard deviation of M: 0.0051 between seeds of one canary, 0.0098 between the means of "
        "canaries and 2 × 10⁻⁴ between draws of the random patches. 30 % of the canaries have M "
        "of both signs."
    )
    assert spread_sentence(Spread(seeds=0.5, canaries=None, patches=None, sign_changes=0.0)) == (
        "Standard deviation of M: 0.5 between seeds of one canary. None of the canaries have M of "
        "both signs."
    )
    units = Activations(units=128, letter=(0.4,), random=(0.1,), unplanted=(0.2,))
    assert spaced(activations_sentence(units)) == (
        "Of 128 units in the last hidden layer, the one that reacts most to the patch fires for it "
        "in 40.0 % of the cases; for random patches in 10.0 %; in models that never saw the patch "
        "in 20.0 %."
    )


def test_when_planted_models_are_above():
    other, above = Estimate(0.0, -0.1, 0.1), Estimate(0.5, 0.2, 0.8)
    through = Through(epoch=(0.0, 2.0, 5.0), planted=(other, above, above), unplanted=(other,) * 3)
    assert through_sentence(through) == (
        "The interval of the planted models is first above that of the others after 2 epochs, and "
        "at 2 of 3 moments."
    )
    never = Through(epoch=(1.0,), planted=(other,), unplanted=(other,))
    assert through_sentence(never).startswith("At no moment is the interval")


def test_correlations_are_given_with_their_intervals():
    none, some = Estimate(0.1, -0.3, 0.4), Estimate(0.43, 0.1, 0.68)
    found = Influence(pearson=some, spearman=none, n=9, changes=())
    assert influence_sentence(found) == (
        "Correlation of M and self-influence: Pearson 0.43 (0.10 to 0.68), Spearman 0.10 (−0.30 to "
        "0.40)."
    )
    assert influence_sentence(replace(found, pearson=none)).endswith("Both may be zero.")
    assert influence_sentence(replace(found, pearson=None)).endswith("It may be zero.")
    assert influence_sentence(replace(found, pearson=None, spearman=None, n=6)) == (
        "6 canaries are too few for a correlation."
    )


def test_what_the_patch_does_to_self_influence():
    changes = tuple(
        InfluenceChange(example=i, before=before, after=6.0, high=high)
        for i, (before, high) in enumerate([(2.0, True), (3.0, True), (0.0, False), (1.0, False)])
    )
    found = Influence(pearson=None, spearman=None, n=4, changes=changes)
    assert changes_sentence(found) == (
        "With the patch, a canary’s self-influence is 3 times as large (the median of 2 that were "
        "high) and 6 times as large (the median of 1 that were low)."
    )
    assert changes_sentence(replace(found, changes=())) == ""


def test_both_halves_in_words():
    half = Half(
        canaries=15,
        n=75,
        share_significant=Estimate(0.64, 0.4, 0.83),
        mean=Estimate(0.02, 0.01, 0.03),
        beyond_m=Estimate(0.015, 0.004, 0.026),
    )
    sentence = (
        "Canaries of high self-influence: 64.0 % (40.0 % to 83.0 %) of 75 planted models react; "
        "mean M less the twins’: 0.015 (0.004 to 0.026) nats"
    )
    assert spaced(half_sentence("high", half)) == f"{sentence}."
    assert spaced(half_sentence("high", replace(half, canaries=1))) == (
        f"{sentence}; with one canary, these intervals are over seeds only."
    )
    assert half_sentence("low", NoHalf(absent="no canary.")) == (
        "Canaries of low self-influence: not measured: no canary."
    )


def test_variants_are_compared_only_as_far_as_their_intervals_go(features):
    above = tuple(replace(v, beyond=Estimate(0.2, 0.1, 0.3)) for v in features.variants)
    assert variants_sentence(replace(features, variants=above)) == (
        "Planted models react clearly more often in 2 of 2 ways to train: plain and dropout."
    )
    unclear = tuple(replace(v, beyond=Estimate(0.1, -0.1, 0.3)) for v in features.variants)
    assert variants_sentence(replace(features, variants=unclear)) == (
        "In none of 2 ways to train do planted models react clearly more often."
    )
    assert variants_sentence(replace(features, variants=above[:1])) == ""
