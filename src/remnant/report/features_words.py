"""The sentences of a report on unique features, for a reader who has never planted one."""

from __future__ import annotations

import math

from remnant.report.curve import percent, short_percent
from remnant.report.features_figures import correlation_sentence
from remnant.report.features_numerals import (
    estimate_text,
    number_text,
    points_estimate,
)
from remnant.report.features_view import (
    Activations,
    ByInfluence,
    Features,
    FeaturesView,
    Half,
    Influence,
    Models,
    Pictures,
    Spread,
    ThroughTraining,
    Variant,
    WhiteBox,
)
from remnant.report.numerals import count_text, counted
from remnant.report.prediction_numerals import epochs_text, rate_text
from remnant.report.run_view import NotMeasured

_ALT = {
    "clean": "Training image {} as it was",
    "patched": "Training image {} with the patch",
    "random": "Training image {} with a random patch",
    "image": "Image {} as it was",
    "image patched": "Image {} with the patch",
    "image random": "Image {} with a random patch",
}


def in_plain_words(view: FeaturesView) -> list[str]:
    """What was planted, what was asked, and who reacted."""
    found = view.features
    if isinstance(found, NotMeasured):
        return [f"Whether a patch is remembered was not measured: {found.reason}."]
    told = [what_was_done(found), what_was_asked(found)]
    if found.plain is not None:
        told.append(what_was_found(found, found.plain))
    return [sentence for sentence in told if sentence]


def what_was_done(found: Features) -> str:
    """The patch, the models that saw it and those that did not."""
    patch = found.patch
    faint = "" if patch.opacity == 1 else f" at an opacity of {short_percent(patch.opacity)}"
    each = "" if found.seeds == 1 else f", {found.seeds} times with other random numbers"
    several = len(found.variants) > 1
    ways = f" All this was done in {len(found.variants)} ways to train." if several else ""
    return (
        f"{capital(patch.what)}{faint} was put into one single training image, and a model was "
        f"trained on the data with it. That was done for "
        f"{counted(found.canaries, 'image (the canary)', 'different images (canaries)')}{each}; "
        f"{counted(found.unplanted, 'model')} more never saw the patch.{ways}"
    )


def what_was_asked(found: Features) -> str:
    """How a reaction is told from noise."""
    return (
        f"Each model was then shown {counted(found.n_images, 'image')} ({found.images}) that have "
        "nothing to do with its task, with the patch and with random patches in the same place. M "
        "says how much more the patch moves its answers. Any patch moves any model somehow, so M "
        f"is ranked among {count_text(found.nulls)} patches that no model ever saw: a model stands "
        f"out where its M is among the highest {short_percent(found.significance)} of them."
    )


def what_was_found(found: Features, variant: Variant) -> str:
    """How many planted models stand out, beside those that never saw the patch."""
    planted, unplanted = variant.planted, variant.unplanted
    if planted is None:
        return ""
    told = (
        f"{rate_text(planted.share_significant)} of {counted(planted.n, 'planted model')} stand out"
    )
    if unplanted is None:
        return f"{told}. No model without the patch was measured, so nothing is known of chance."
    told += f"; of {counted(unplanted.n, 'model')} that never saw the patch it is "
    told += f"{rate_text(unplanted.share_significant)}."
    if variant.beyond is not None:
        told += f" The difference is {points_estimate(variant.beyond)}{_sure(variant)}."
    return f"{told} {mean_sentence(variant)}".strip()


def mean_sentence(variant: Variant) -> str:
    """How M differs from that of the twins; nothing where it is not known."""
    if variant.beyond_m is None:
        return ""
    return (
        "A planted model’s M less that of its twin is on average "
        f"{estimate_text(variant.beyond_m)} nats."
    )


def halves_sentence(found: ByInfluence) -> str:
    """Who stands out where canaries were chosen for a high self-influence, and for a low one."""
    told = []
    for name, half in found.named:
        if isinstance(half, NotMeasured):
            told.append(f"Of a {name} self-influence nothing was measured: {half.reason}.")
            continue
        told.append(
            f"Of {counted(half.n, 'planted model')} with a canary of {name} self-influence, "
            f"{rate_text(half.share_significant)} stand out, and M less that of the twin is on "
            f"average {estimate_text(half.beyond_m)} nats{_alone(half)}."
        )
    return " ".join(told)


def t_test_sentence(found: Features, variant: Variant) -> str:
    """What the paper's own test says, and why it is not the one that counts."""
    planted, unplanted = variant.planted, variant.unplanted
    if planted is None or unplanted is None:
        return ""
    told = (
        "The paper’s t-test over images finds the patch in "
        f"{percent(planted.share_t_test.value)} of the planted models, and in "
        f"{percent(unplanted.share_t_test.value)} of those that never saw it"
    )
    if unplanted.share_t_test.low > found.significance:
        told += ": it asks whether other images would give the same sign, not whether the patch is "
        told += "known. It is shown as the paper’s only"
    return f"{told}."


def positive_sentence(variant: Variant) -> str:
    """What a mean over M > 0 is to be held against."""
    planted, unplanted = variant.planted, variant.unplanted
    if planted is None or unplanted is None or planted.mean_positive is None:
        return ""
    beside = (
        "no model that never saw the patch has one"
        if unplanted.mean_positive is None
        else f"it is {number_text(unplanted.mean_positive)} where nothing was planted"
    )
    return (
        "The paper reports the mean of M over models with M > 0: "
        f"{number_text(planted.mean_positive)} nats here. Such a mean is positive by its "
        f"making; {beside}."
    )


def white_box_sentence(found: WhiteBox) -> str:
    """The score of one who knows the label."""
    return (
        "With the canary’s label known, the patch raises the log-probability of that class by "
        f"{estimate_text(found.planted)} nats over random patches, on images of the class; for the "
        f"twins it is {estimate_text(found.twins)}. The largest is {number_text(found.largest)}."
    )


def spread_sentence(found: Spread) -> str:
    """What M varies with."""
    parts = [
        f"{number_text(value)} {over}"
        for value, over in (
            (found.seeds, "between seeds of one canary"),
            (found.canaries, "between the means of canaries"),
            (found.patches, "between draws of the random patches"),
        )
        if value is not None
    ]
    told = f"Standard deviation of M: {_listed(parts)}." if parts else ""
    if found.sign_changes is not None:
        share = percent(found.sign_changes, 0) if found.sign_changes else "None"
        told += f" {share} of the canaries have M of both signs."
    return told.strip()


def through_sentence(found: ThroughTraining) -> str:
    """From when on the planted models lie above the others, each moment by itself."""
    places = zip(found.epoch, found.planted, found.unplanted, strict=True)
    apart = [epoch for epoch, planted, other in places if planted.low > other.high]
    if not apart:
        return "At no moment do the planted models lie clear of those that never saw the patch."
    return (
        f"The planted models first lie clear of the others after {epochs_text(apart[0])}, and do "
        f"so at {len(apart)} of {counted(len(found.epoch), 'moment')}."
    )


def influence_sentence(found: Influence) -> str:
    """Whether self-influence would have told which canary is remembered."""
    told = correlation_sentence(found.pearson, found.spearman)
    if not told:
        return f"{counted(found.n, 'canary is', 'canaries are')} too few to tell a correlation."
    sure = [one for one in (found.pearson, found.spearman) if one is not None]
    if sure and all(one.low <= 0 <= one.high for one in sure):
        told += " Neither can be told from none." if len(sure) > 1 else " It may be none."
    return told


def changes_sentence(found: Influence) -> str:
    """What the patch does to self-influence, for those chosen high and low."""
    told = []
    for high, name in ((True, "high"), (False, "low"), (None, "")):
        mine = sorted(
            one.after / one.before
            for one in found.changes
            if one.high is high and one.before and math.isfinite(one.after / one.before)
        )
        if mine:
            middle = number_text(mine[len(mine) // 2])
            chosen = f" of {len(mine)} where it was {name}" if name else f" of {len(mine)}"
            told.append(f"{middle} times as large (the median{chosen})")
    return f"With the patch, a canary’s self-influence is {_listed(told)}." if told else ""


def activations_sentence(found: Activations) -> str:
    """Whether one unit stands for the patch."""
    return (
        f"Of {counted(found.units, 'unit')} in the last hidden layer, the one that answers most to "
        f"the patch does so in {percent(found.letter[0])} of the cases; to random patches in "
        f"{percent(found.random[0])}; in models that never saw the patch in "
        f"{percent(found.unplanted[0])}."
    )


def variants_sentence(found: Features) -> str:
    """Which ways to train differ from one another as far as anybody can say."""
    known = [one for one in found.variants if one.beyond is not None]
    if len(known) < 2:
        return ""
    above = [one.name for one in known if one.beyond is not None and one.beyond.low > 0]
    if not above:
        return (
            f"In none of {len(known)} ways to train do the planted models clearly stand out more "
            "often than the others."
        )
    return (
        f"The planted models clearly stand out more often than the others in {len(above)} of "
        f"{len(known)} ways to train: {_listed(above)}."
    )


def members_text(found: Models | None) -> str:
    """How many models a cell is about."""
    return "" if found is None else counted(found.n, "model")


def alt_text(pictures: Pictures, number: int) -> str:
    """What a picture shows, for those who cannot see it; never what the patch says."""
    return _ALT[pictures.what].format(number)


def strips(found: Features) -> list[tuple[str, list[Pictures]]]:
    """Pictures by whether they are training images or those that were asked about."""
    trained = [one for one in found.pictures if one.files and not one.asked]
    asked = [one for one in found.pictures if one.files and one.asked]
    named = (("Training images", trained), ("Images that were asked about", asked))
    return [(name, rows) for name, rows in named if rows]


def chosen_text(high: bool | None) -> str:
    """Why a canary was chosen."""
    return {True: "high", False: "low", None: "at random"}[high]


def capital(name: str) -> str:
    """The same with a capital."""
    return name[:1].upper() + name[1:]


def _alone(half: Half) -> str:
    return "; of one canary, these intervals are over seeds only" if half.canaries == 1 else ""


def _sure(variant: Variant) -> str:
    beyond = variant.beyond
    if beyond is None or beyond.low > 0:
        return ""
    return ", which may be chance" if beyond.value > 0 else ""


def _listed(parts: list[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last
