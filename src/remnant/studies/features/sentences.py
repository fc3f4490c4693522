"""The words of unique features: numbers and sentences."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

from remnant.report.blocks import Cell
from remnant.report.numerals import (
    SPACE,
    count_text,
    counted,
    epoch_text,
    epochs_text,
    percent,
    power_text,
    short_percent,
)
from remnant.studies.features.result import (
    Activations,
    Features,
    Half,
    Influence,
    InfluenceChange,
    NoHalf,
    Spread,
    Through,
    VariantResult,
    WhiteBox,
)
from remnant.studies.shared.estimates import Estimate, rate_text
from remnant.studies.shared.wording import listed

MINUS = "\N{MINUS SIGN}"
_SMALL, _LARGE = 1e-3, 1e6


def number_text(value: float | None) -> str:
    """A number of any size and sign to three digits; a dash where there is none.

    Example:
        >>> number_text(0.01234), number_text(-2.5), number_text(None)
        ('0.0123', '−2.5', '–')
        >>> number_text(-1.5e-13).replace("\\u202f", " "), number_text(75012.0).replace(SPACE, " ")
        ('−1.5 × 10⁻¹³', '75 000')
    """
    if value is None:
        return "–"
    size, sign = abs(value), MINUS if value < 0 else ""
    if 0 < size < _SMALL or size >= _LARGE:
        return sign + power_text(size)
    if size >= 999.5:
        return sign + count_text(int(float(f"{size:.2e}")))
    return f"{sign}{size:.3g}"


def nats_text(value: float, *, up: bool = False) -> str:
    """A score in sentences: three decimals, or two significant digits where it is small.

    Args:
        value: A finite number.
        up: Round up, for an upper bound.

    Guarantees:
        * Only 0 itself is printed as a zero.
        * With ``up`` the number printed is never less than ``value``.

    Example:
        >>> nats_text(1.1166), nats_text(0.00781), nats_text(-0.00000123), nats_text(0.0)
        ('1.117', '0.0078', '-1.2e-06', '0')
        >>> nats_text(1.1161, up=True)
        '1.117'
    """
    exact = Decimal(value)
    if exact == 0:
        return "0"
    unit = Decimal(1).scaleb(min(-3, exact.adjusted() - 1))
    rounded = exact.quantize(unit, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN)
    return f"{rounded:.3f}" if abs(rounded) >= Decimal("0.01") else f"{float(rounded):.2g}"


def interval_text(estimate: Estimate) -> str:
    """Both ends of a number."""
    return f"{number_text(estimate.low)} to {number_text(estimate.high)}"


def estimate_text(estimate: Estimate) -> str:
    """A number with its interval, such as ``0.0123 (−0.001 to 0.025)``."""
    return f"{number_text(estimate.value)} ({interval_text(estimate)})"


def estimate_cell(estimate: Estimate) -> Cell:
    """The same in a table, with the interval in small print."""
    return Cell(number_text(estimate.value), interval_text(estimate))


def points_number(value: float) -> str:
    """A difference of two shares in points, such as ``+12.0``."""
    return f"{round(100 * value, 1) + 0.0:+.1f}".replace("-", MINUS)


def points_text(value: float) -> str:
    """A difference of two shares, such as ``+12.0 points``."""
    return f"{points_number(value)}{SPACE}points"


def points_ends(estimate: Estimate) -> str:
    """Both ends of a difference of shares, without the unit."""
    return f"{points_number(estimate.low)} to {points_number(estimate.high)}"


def points_estimate(estimate: Estimate) -> str:
    """A difference of shares with its interval."""
    return f"{points_text(estimate.value)} ({points_ends(estimate)})"


def correlation_text(estimate: Estimate) -> str:
    """A correlation with its interval, to two digits."""
    value, low, high = (f"{round(end, 2) + 0.0:.2f}".replace("-", MINUS) for end in estimate)
    return f"{value} ({low} to {high})"


def epochs_ends(estimate: Estimate) -> str:
    """The first and the last epoch at which training stopped."""
    return f"{epoch_text(estimate.low)} to {epoch_text(estimate.high)}"


def capital(text: str) -> str:
    """The same with a capital."""
    return text[:1].upper() + text[1:]


def done_sentence(features: Features) -> str:
    """The patch, the models that saw it, those that did not, and the images for testing."""
    patch, ways = features.patch, len(features.variants)
    faint = "" if patch.opacity == 1 else f" at an opacity of {short_percent(patch.opacity)}"
    several = f" All this was done in {ways} ways to train." if ways > 1 else ""
    canaries = counted(features.canaries, "image (the canary)", "different images (canaries)")
    return (
        f"{capital(patch.what)}{faint} was stamped on one training image at a time: {canaries}, "
        f"{counted(features.seeds, 'training')} each, and {counted(features.unplanted, 'training')}"
        f" without the patch. Each model was tested on {counted(features.images.n, 'image')} "
        f"({features.images.name}) unrelated to its task.{several}"
    )


def score_sentence(features: Features) -> str:
    """What M is, and when a model reacts."""
    return (
        "M is how much more the patch changes a model’s answers than random patches in the same "
        "place do. Any patch changes the answers of any model, so M is ranked among "
        f"{count_text(features.nulls)} patches that no model was trained on. A model reacts to the "
        f"patch if its M is among the highest {short_percent(features.significance)} of them."
    )


def reactions_sentence(features: Features, variant: VariantResult) -> str:
    """How many planted models react, beside those that never saw the patch."""
    planted, unplanted, beyond = variant.planted, variant.unplanted, variant.beyond
    way = f"{capital(variant.name)}: " if len(features.variants) > 1 else ""
    chance = ", which may be chance" if beyond.low <= 0 < beyond.value else ""
    return (
        f"{way}{rate_text(planted.share_significant)} of {counted(planted.n, 'planted model')} "
        f"react to the patch (p ≤ {short_percent(features.significance)}), and "
        f"{rate_text(unplanted.share_significant)} of {counted(unplanted.n, 'model')} that never "
        f"saw it. The difference is {points_estimate(beyond)}{chance}. Mean M of the planted "
        f"models less that of their twins: {estimate_text(variant.beyond_m)} nats."
    )


def half_sentence(name: str, half: NoHalf | Half) -> str:
    """How many models react whose canary was chosen for a high self-influence, or a low one."""
    start = f"Canaries of {name} self-influence: "
    if isinstance(half, NoHalf):
        return f"{start}not measured: {half.reason}."
    alone = "; with one canary, these intervals are over seeds only" if half.canaries == 1 else ""
    return (
        f"{start}{rate_text(half.share_significant)} of {counted(half.n, 'planted model')} react; "
        f"mean M less the twins’: {estimate_text(half.beyond_m)} nats{alone}."
    )


def variants_sentence(features: Features) -> str:
    """In which ways to train planted models react clearly more often; empty for one way."""
    ways = len(features.variants)
    if ways < 2:
        return ""
    above = [variant.name for variant in features.variants if variant.beyond.low > 0]
    if not above:
        return f"In none of {ways} ways to train do planted models react clearly more often."
    return (
        f"Planted models react clearly more often in {len(above)} of {ways} ways to train: "
        f"{listed(above)}."
    )


def t_test_sentence(features: Features) -> str:
    """What the paper's own test gives, and why the verdict does not rest on it."""
    planted, unplanted = features.plain.planted.share_t_test, features.plain.unplanted.share_t_test
    text = (
        f"The paper’s t-test over images is significant in {percent(planted.value)} of the planted "
        f"models and in {percent(unplanted.value)} of the models that never saw the patch"
    )
    if unplanted.low > features.significance:
        text += ": it tests whether other images would give M the same sign, not whether the model "
        text += "knows the patch. It is shown only for comparison with the paper"
    return f"{text}."


def positive_sentence(variant: VariantResult) -> str:
    """The paper's mean over M > 0 beside the same without the patch; empty where there is none."""
    planted, unplanted = variant.planted.mean_positive, variant.unplanted.mean_positive
    if planted is None:
        return ""
    beside = (
        "no model without the patch has an M above 0"
        if unplanted is None
        else f"without the patch it is {number_text(unplanted)}"
    )
    return (
        f"The paper reports the mean of M over models with M > 0: {number_text(planted)} nats "
        f"here. That mean is positive by construction; {beside}."
    )


def spread_sentence(spread: Spread) -> str:
    """How much M varies, and with what."""
    parts = [
        f"{number_text(value)} {over}"
        for value, over in (
            (spread.seeds, "between seeds of one canary"),
            (spread.canaries, "between the means of canaries"),
            (spread.patches, "between draws of the random patches"),
        )
        if value is not None
    ]
    share = percent(spread.sign_changes, 0) if spread.sign_changes else "None"
    return (
        f"Standard deviation of M: {listed(parts)}. {share} of the canaries have M of both signs."
    )


def white_box_sentence(white_box: WhiteBox) -> str:
    """The score that uses the canary's label."""
    return (
        "With the canary’s label known, the patch raises the log-probability of that class by "
        f"{estimate_text(white_box.planted)} nats over random patches, on images of the class; in "
        f"the twins by {estimate_text(white_box.twins)}. The largest value is "
        f"{number_text(white_box.largest)}."
    )


def through_sentence(through: Through) -> str:
    """When planted models are first above the others, for each moment by itself."""
    if not through.apart:
        return (
            "At no moment is the interval of the planted models above that of models that never "
            "saw the patch."
        )
    return (
        "The interval of the planted models is first above that of the others after "
        f"{epochs_text(through.apart[0])}, and at {len(through.apart)} of "
        f"{counted(len(through.epoch), 'moment')}."
    )


def correlation_sentence(influence: Influence) -> str:
    """Both correlations with their intervals; empty where there is none."""
    parts = [
        f"{name} {correlation_text(estimate)}"
        for name, estimate in (("Pearson", influence.pearson), ("Spearman", influence.spearman))
        if estimate is not None
    ]
    return f"Correlation of M and self-influence: {', '.join(parts)}." if parts else ""


def influence_sentence(influence: Influence) -> str:
    """Whether M and self-influence go together."""
    text = correlation_sentence(influence)
    if not text:
        return f"{counted(influence.n, 'canary is', 'canaries are')} too few for a correlation."
    known = [value for value in (influence.pearson, influence.spearman) if value is not None]
    if all(estimate.low <= 0 <= estimate.high for estimate in known):
        text += " Both may be zero." if len(known) > 1 else " It may be zero."
    return text


def changes_sentence(influence: Influence) -> str:
    """What the patch does to self-influence, of canaries with a high and with a low one."""
    parts = []
    for high, name in ((True, "high"), (False, "low")):
        ratios = sorted(
            ratio
            for change in influence.changes
            if change.high is high and (ratio := influence_ratio(change)) is not None
        )
        if ratios:
            middle = number_text(ratios[len(ratios) // 2])
            parts.append(f"{middle} times as large (the median of {len(ratios)} that were {name})")
    return f"With the patch, a canary’s self-influence is {listed(parts)}." if parts else ""


def activations_sentence(activations: Activations) -> str:
    """How often the unit that reacts most does so."""
    return (
        f"Of {counted(activations.units, 'unit')} in the last hidden layer, the one that reacts "
        f"most to the patch fires for it in {percent(activations.letter[0])} of the cases; for "
        f"random patches in {percent(activations.random[0])}; in models that never saw the patch "
        f"in {percent(activations.unplanted[0])}."
    )


def influence_ratio(change: InfluenceChange) -> float | None:
    """How many times as large self-influence is with the patch; None where it was 0 without."""
    ratio = change.after / change.before if change.before else math.inf
    return ratio if math.isfinite(ratio) else None
