"""The sentences of a report about training choices, and its numbers in print."""

from __future__ import annotations

from remnant.report.curve import percent, short_percent
from remnant.report.numerals import bits_number, bits_text, count_text, counted, times_text
from remnant.report.run_view import NotMeasured
from remnant.report.training_view import (
    Band,
    Difference,
    Interval,
    TrainedVariant,
    Training,
    TrainingView,
)

_MEANS = (
    "The front is that of the means: other seeds may give another, and a mean known as “at least” "
    "counts with the maximum."
)
_SMALL = 2.0  # bits: no more than noise


def in_plain_words(view: TrainingView) -> str:
    """What was done, and what exposure is."""
    found = view.training
    if isinstance(found, NotMeasured):
        return f"How exposed the canaries are was not measured: {found.reason}."
    return (
        f"{counted(found.models, 'language model')} were trained on text with made-up secrets in "
        f"it, in {counted(len(found.variants), 'variant')} of one training, with "
        f"{counted(found.trials, 'seed')} each. Exposure says how far up in a model’s own ranking "
        "of all possible secrets a planted one stands: each bit halves the guesses that an "
        f"attacker needs, and at {bits_text(found.space_bits)} it comes first of all. A secret "
        f"that nobody planted has {bits_text(found.null_mean)} on average."
    )


def what_was_found(found: Training) -> str:
    """The most and the least exposed variant, and whether the controls stayed at chance."""
    ranked = sorted(found.variants, key=lambda one: one.exposure.value)
    low, high = ranked[0], ranked[-1]
    told = f"Exposure is highest with “{high.label}”, {interval_bits(high.exposure)}"
    if low is not high:
        told += f", and lowest with “{low.label}”, {interval_bits(low.exposure)}"
    controls = [one for one in found.variants if one.controls is not None]
    if not controls:
        return f"{told}."
    most = max(one.controls.value for one in controls if one.controls is not None)
    return f"{told}. Controls, which were never planted, have at most {bits_text(most)}."


def training_tiles(view: TrainingView) -> list[tuple[str, str, str]]:
    """Name, value and remark of the few numbers under the verdict."""
    found = view.training
    if isinstance(found, NotMeasured):
        return []
    ranked = sorted(found.variants, key=lambda one: one.exposure.value)
    tiles = []
    for name, one in (("Highest", ranked[-1]), ("Lowest", ranked[0])):
        tiles.append((f"{name} exposure", _least_bits(one.exposure), one.label))
    differ = sum(one.differs for one in view.differences)
    remark = f"of {counted(len(view.differences), 'variant')} from “{found.variants[0].label}”"
    tiles.append(("Told apart", count_text(differ), remark))
    most = bits_text(found.space_bits)
    tiles.append(("Most possible", most, f"chance gives {bits_text(found.null_mean)}"))
    return tiles[:1] + tiles[2:] if len(ranked) == 1 else tiles


def interval_bits(one: Interval) -> str:
    """Bits with their interval, such as ``4.31 bits (3.02 to 5.80)``."""
    return f"{_least_bits(one)}{_ends(one)}"


def mean_number(one: Interval) -> str:
    """Bits alone, or what they are at least."""
    return f"{_floor(one)}{bits_number(one.value)}"


def _least_bits(one: Interval) -> str:
    return f"{_floor(one)}{bits_text(one.value)}"


def _floor(one: Interval) -> str:
    return "≥ " if one.at_least else ""


def interval_number(one: Interval | None) -> str:
    """Bits with their interval, without the unit; a dash where there are none."""
    return "–" if one is None else f"{mean_number(one)}{_ends(one)}"


def share_text(one: Interval | None) -> str:
    """A share with its interval; a dash where there is none."""
    if one is None:
        return "–"
    if one.low is None or one.high is None:
        return percent(one.value)
    return f"{percent(one.value)} ({percent(one.low)} to {percent(one.high)})"


def signed_text(one: Interval) -> str:
    """A difference in bits with its interval, such as ``+4.31 (+3.02 to +5.80)``.

    Where one side is known as "at least" only, the ends alone.
    """
    if one.at_least:
        if one.low is None or one.high is None:
            return "–"
        return f"{_signed(one.low)} to {_signed(one.high)}"
    ends = (
        ""
        if one.low is None or one.high is None
        else f" ({_signed(one.low)} to {_signed(one.high)})"
    )
    return f"{_signed(one.value)}{ends}"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def _ends(one: Interval) -> str:
    if one.low is None or one.high is None:
        return ""
    return f" ({bits_number(one.low)} to {bits_number(one.high)})"


def difference_of(view: TrainingView, label: str) -> Difference | None:
    """How far a variant lies above the first, or None for the first itself."""
    return next((one for one in view.differences if one.label == label), None)


def planted_text(one: TrainedVariant) -> str:
    """How often its canaries were planted."""
    if one.planted is not None:
        return times_text(one.planted)
    return ", ".join(count_text(many) for many in one.repeats)


def method_sentence(found: Training) -> str:
    """How the exposures were measured."""
    saturated = sum(one.saturated for one in found.variants)
    known = [exact for one in found.variants for exact in one.exact]
    if all(known):
        told = "Every exposure is exact: the rank in the whole space."
    elif any(known):
        told = f"{sum(known)} of {counted(len(known), 'exposure')} are exact ranks; the others, "
        told += "whose rank would take too long to count, were sampled."
    else:
        told = "Exposures were sampled."
    if saturated:
        verb = "is" if saturated == 1 else "are"
        told += f" {counted(saturated, 'exposure')} {verb} at least what is told."
    if found.trials > 1:
        told += (
            f" Intervals are for the mean over other seeds, at {short_percent(found.confidence)}."
        )
    return told


def through_sentence(found: Training) -> str:
    """What the figures through training show."""
    ceilings = {one.through.ceiling for one in found.followed if one.through is not None}
    told = (
        "How exposure grows while models train, beside what a token of text costs them: a model "
        "may remember a secret long before it overfits. Thin vertical lines mark the steps at "
        "which the first canary was used."
    )
    if min(ceilings) < found.space_bits:
        told += (
            f" On the way a canary is ranked among sampled secrets, which show at most "
            f"{bits_text(min(ceilings))}; the exact rank is told for the end alone."
        )
    return told


def turning_sentence(found: Training) -> str:
    """When the validation cost was lowest, and exposure highest, of the first variant followed."""
    one = found.followed[0]
    through = one.through
    if through is None:
        return ""
    best = min(range(len(through.step)), key=lambda i: through.validation[i].value)
    most = max(range(len(through.step)), key=lambda i: through.exposure[i].value)
    then, peak = through.exposure[best], through.exposure[most]
    told = (
        f"With “{one.label}” the text kept back is predicted best at epoch "
        f"{through.epoch[best]:.3g}, where exposure is {_least_bits(then)}; exposure is "
        f"highest, {_least_bits(peak)}, at epoch "
        f"{through.epoch[most]:.3g}"
    )
    alike = [
        i for i, seen in enumerate(through.exposure) if (seen.high or seen.value) >= peak.value
    ]
    if alike[0] < most:
        told += f", and from epoch {through.epoch[alike[0]]:.3g} on it cannot be told from that"
    return f"{told}."


def front_sentence(found: Training) -> str:
    """Which variants are worth choosing between; one is called best only where it is significant.

    A variant is below another where their intervals do not overlap.
    """
    if len(found.variants) == 1:
        return "There is one variant, and no front."
    if len(found.front) > 1:
        named = ", ".join(f"“{label}”" for label in found.front)
        return (
            f"{len(found.front)} of {counted(len(found.variants), 'variant')} are on the Pareto "
            f"front of the means: {named}. Moving along it trades usefulness against exposure. "
            f"{_MEANS}"
        )
    best = best_variant(found)
    if best is None:
        return (
            "No variant is significantly best: the one with the lowest means has intervals that "
            f"overlap those of others. {_MEANS}"
        )
    label, exposes, predicts = best
    if exposes and predicts:
        return f"“{label}” predicts best and exposes least; its intervals overlap no other."
    if exposes:
        return (
            f"“{label}” exposes least. Its bits on held-out text do not differ significantly from "
            "those of all others."
        )
    return (
        f"“{label}” predicts best. Its exposure does not differ significantly from that of all "
        "others."
    )


def best_variant(found: Training) -> tuple[str, bool, bool] | None:
    """The variant with the lowest means in both, if it is significantly below all others.

    Returns:
        Its label, whether its exposure is below all others', and whether its bits on held-out text
        are; None where neither is, or where several variants are on the front.
    """
    if len(found.front) != 1:
        return None
    best = next(one for one in found.variants if one.label == found.front[0])
    others = [one for one in found.variants if one is not best]
    exposes = all(_below(best.exposure, one.exposure) for one in others)
    predicts = all(_below(best.validation, one.validation) for one in others)
    return (best.label, exposes, predicts) if others and (exposes or predicts) else None


def _below(one: Interval, other: Interval) -> bool:
    """Whether an interval ends before another begins; "at least" has no upper end."""
    if one.high is None or other.low is None or one.at_least:
        return False
    return one.high < other.low


def extraction_sentence(found: Training) -> str:
    """At which exposures canaries were read out."""
    hit = [bits for one in found.searched for bits, out in _read(one) if out]
    missed = [bits for one in found.searched for bits, out in _read(one) if not out]
    if not hit:
        return f"No canary was read out of any model.{_ended(found)}"
    told = f"{count_text(len(hit))} of {counted(len(hit) + len(missed), 'canary', 'canaries')}"
    told += f" were read out; the least exposed of them has {bits_text(min(hit))}"
    if missed:
        told += f", the most exposed of the others {bits_text(max(missed))}"
    return f"{told}.{_ended(found)}"


def _ended(found: Training) -> str:
    ended = sum(one.searches_ended for one in found.searched)
    if not ended:
        return ""
    verb = "was" if ended == 1 else "were"
    return (
        f" {counted(ended, 'search', 'searches')} {verb} ended by the budget before all was sure."
    )


def _read(one: TrainedVariant) -> list[tuple[float, bool]]:
    return list(zip(one.each, one.read_out, strict=True))


def estimate_sentence(found: Training) -> str:
    """How far the skew-normal estimate is off."""
    gaps = [
        guess - bits for one in found.estimated for bits, guess in one.estimates if bits > _SMALL
    ]
    if not gaps:
        return "No canary has more than two bits, where an estimate would matter."
    low = sum(gap < 0 for gap in gaps)
    return (
        f"Of {counted(len(gaps), 'canary', 'canaries')} with more than two bits, the skew-normal "
        f"law puts {low} too low; its error is {_signed(sum(gaps) / len(gaps))} bits on average, "
        f"from {_signed(min(gaps))} to {_signed(max(gaps))}."
    )


def band_text(one: Band) -> str:
    """The exposures of a band, such as ``8 to 12``."""
    if one.low == one.high:
        return f"ranked first, {bits_number(one.high)}"
    return f"{bits_number(one.low)} to {bits_number(one.high)}"


def error_text(one: Band) -> str:
    """The estimate's error: its mean, and the least and the most."""
    return signed_text(one.error) if one.error is not None else "–"


def effects_sentence(found: Training) -> str:
    """What the table of fields on their own shows."""
    pairs = {one.field: one.along for one in found.effects if one.along}
    moved = "".join(
        f" With {name} moves {' and '.join(along)}, and the two cannot be told apart."
        for name, along in pairs.items()
    )
    return (
        "Each row is the mean over all variants with that value, and the difference is from the "
        "field’s first value, seed by seed. Many variants at once tell more than one: an effect "
        "that no single variant shows may show here. P‑values are corrected for the rows "
        f"of this table alone.{moved}"
    )
