"""The sentences of an exposure report, for a reader who has never run an attack."""

from __future__ import annotations

from remnant.report.control_words import controls_sentence
from remnant.report.exposure_view import (
    CanaryExposure,
    Costs,
    Exposure,
    ExposureView,
    Level,
    Search,
)
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    p_equals,
    small_text,
    times_text,
)
from remnant.report.run_view import NotMeasured

_DOUBTFUL_FIT = 0.1


def in_plain_words(view: ExposureView) -> str:
    """What was planted, and what exposure is."""
    found = view.exposure
    if isinstance(found, NotMeasured):
        return f"How exposed the canaries are was not measured: {found.reason}."
    return (
        f"{_what_was_done(found)}{_given(found)} Exposure says how far up in the "
        "model's own ranking of all these secrets a planted one stands: each bit "
        "halves the guesses that an attacker needs, and at "
        f"{bits_text(found.ceiling)} it comes first of all."
    )


def what_was_found(view: ExposureView) -> str:
    """The most exposed canary beside controls and twin, and what was extracted."""
    found = view.exposure
    if isinstance(found, NotMeasured):
        return ""
    sentences = []
    highest = found.highest
    if highest is not None:
        ranked = "" if highest.rank is None else f": it ranks {rank_text(highest)} of "
        sentences.append(
            f"The most exposed canary, planted {times_text(highest.repeats)}, has "
            f"{exposure_text(highest)}{ranked}{count_text(found.space) if ranked else ''}."
        )
    sentences += [controls_sentence(found), twin_sentence(found), extraction_sentence(view)]
    return " ".join(sentence for sentence in sentences if sentence)


def pattern_text(found: Exposure) -> str:
    """The template on one line."""
    return found.template.replace("\n", "↵")


def twin_sentence(found: Exposure) -> str:
    """What the same canaries look like to a model that never saw them."""
    if found.twin_mean is None:
        return ""
    return (
        "In a twin of the model that saw no canary, the same canaries have "
        f"{bits_text(found.twin_mean)} on average."
    )


def exposure_text(one: CanaryExposure) -> str:
    """A canary's exposure, such as ``at least 11.20 bits``, the interval's low end."""
    return f"{'at least ' if one.saturated else ''}{bits_text(one.told)}"


def exposure_number(one: CanaryExposure) -> str:
    """The same without the unit, for a table."""
    return f"{'at least ' if one.saturated else ''}{bits_number(one.told)}"


def mean_number(level: Level) -> str:
    """The mean exposure of a level without its unit, such as ``at least 11.20``."""
    return f"{'' if level.at_least is None else 'at least '}{bits_number(level.told)}"


def interval_text(one: CanaryExposure) -> str:
    """The interval in print, such as ``11.20 to 14.10`` or ``from 11.20``; a dash without one."""
    if one.low is None:
        return "–"
    if one.high is None:
        return f"from {bits_number(one.low)}"
    if one.high - one.low < 0.005:
        return "exact"
    return f"{bits_number(one.low)} to {bits_number(one.high)}"


def method_sentence(found: Exposure) -> str:
    """How ranks were got, and why in this way."""
    how = (
        f"The ranks are exact: every one of the {count_text(found.space)} secrets was compared, or "
        "ruled out because its beginning alone already costs more."
        if found.method == "exact"
        else f"The ranks are estimated: of the {count_text(found.space)} secrets a sample was "
        "compared, so each exposure has a 95 % interval, and one that no sampled secret reaches is "
        "only known to be “at least” so much."
    )
    reason = found.reason.strip().removesuffix(".")
    for opening in (f"{found.method}: ", f"{found.method}, because "):
        reason = reason.removeprefix(opening)
    told = f" Why this method: {reason}." if reason else ""
    if found.method == "exact" and found.tolerance is not None:
        told += f" Costs within {small_text(found.tolerance)} bits count as equal."
    return how + told


def far_ceiling(found: Exposure) -> str:
    """A remark where the ceiling lies beyond the chart; else nothing."""
    if found.ceiling_in_sight:
        return ""
    return f" The ceiling, {bits_text(found.ceiling)}, lies far above this chart."


def histogram_sentence(costs: Costs) -> str:
    """What the histogram shows."""
    return (
        f"What {counted(costs.n_references, 'random secret')} cost the model “{costs.member}”, in "
        "bits: the further left, the likelier. A canary inside the heap is one of many; a canary "
        "far to its left is remembered."
    )


def fit_is_doubtful(costs: Costs) -> bool:
    """Whether the references reject the law that was fitted to them."""
    return (
        costs.skew_normal is not None
        and costs.ks_pvalue is not None
        and costs.ks_pvalue <= _DOUBTFUL_FIT
    )


def fit_sentence(costs: Costs) -> str:
    """Whether the skew-normal law fits, where one was fitted."""
    if costs.skew_normal is None:
        return ""
    if costs.ks_pvalue is None:
        return "How well the skew-normal law fits was not tested."
    if fit_is_doubtful(costs):
        return (
            "The fit is doubtful: the costs do not follow the skew-normal law (Kolmogorov–Smirnov "
            f"{p_equals(costs.ks_pvalue)}), so do not rely on bits extrapolated from it."
        )
    return (
        "Nothing speaks against the skew-normal law (Kolmogorov–Smirnov "
        f"{p_equals(costs.ks_pvalue)}); bits extrapolated from it are still no more than a guess."
    )


def unnamed_sentence(costs: Costs) -> str:
    """How many canaries the chart has no room for."""
    more = len(costs.marked) - len(costs.named)
    return f"The most exposed canaries; {more} more are in the table above." if more else ""


def unmarked_sentence(costs: Costs) -> str:
    """Which canaries have no place in the histogram."""
    if not costs.unmarked:
        return ""
    return f"Not marked, because the model gives them no probability: {', '.join(costs.unmarked)}."


def certificate(search: Search) -> str:
    """What the search proves."""
    space, nodes = count_text(search.space), counted(search.nodes, "node")
    verb = "was" if search.nodes == 1 else "were"
    if search.certified:
        return f"Nothing likelier exists among {space} secrets: {nodes} {verb} enough to prove it."
    return (
        f"Not proven: the search ended after {nodes}, and likelier ones may exist among {space} "
        "secrets."
    )


def found_sentence(search: Search) -> str:
    """What was pulled out."""
    if not search.candidates:
        return "It found no secret."
    first = search.candidates[0]
    if first.canary is not None:
        often = "" if first.repeats is None else f", planted {times_text(first.repeats)}"
        return f"The first secret it brings up is {first.canary}{often}."
    later = [one for one in search.candidates if one.canary is not None]
    if later:
        return f"The first secret it brings up is no canary, but {later[0].canary} follows."
    if len(search.candidates) == 1:
        return "The secret it brings up is no canary."
    return f"None of the {len(search.candidates)} secrets it brings up is a canary."


def extracted(view: ExposureView) -> tuple[int, int] | None:
    """How many canaries were extracted, and how many were planted; None where not searched."""
    if isinstance(view.extraction, NotMeasured) or isinstance(view.exposure, NotMeasured):
        return None
    return len(_extracted_names(view.extraction)), len(view.exposure.canaries)


def _extracted_names(searches: tuple[Search, ...]) -> set[str]:
    own = [search for search in searches if not search.of_twin]
    return {c.canary for search in own for c in search.candidates if c.canary is not None}


def extracted_number(view: ExposureView) -> tuple[str, bool]:
    """How many planted secrets were extracted, such as ``2 of 11``, and whether any was.

    Empty where no search was made.
    """
    if isinstance(view.extraction, NotMeasured):
        return "", False
    many = len(_extracted_names(view.extraction))
    of = "" if isinstance(view.exposure, NotMeasured) else f" of {_planted(view.exposure)}"
    return f"{count_text(many)}{of}", many > 0


def _planted(found: Exposure) -> str:
    return count_text(len(found.canaries))


def extracted_remark(view: ExposureView) -> str:
    """What was asked for and whether it is proven: ``planted secrets (top 3 guesses, proven)``."""
    if isinstance(view.extraction, NotMeasured):
        return ""
    own = [search for search in view.extraction if not search.of_twin]
    asked = {search.asked for search in own if search.asked is not None}
    proven = sum(search.certified for search in own)
    parts = [f"top {counted(max(asked), 'guess', 'guesses')}"] if asked else []
    if len(own) > 1:
        parts.append(f"in each of {count_text(len(own))} models")
    if proven in (0, len(own)):
        parts.append("proven" if proven and own else "not proven: a budget ended the search")
    else:
        parts.append(f"{count_text(proven)} of {counted(len(own), 'search', 'searches')} proven")
    many = 0 if isinstance(view.exposure, NotMeasured) else len(view.exposure.canaries)
    return f"planted {'secret' if many == 1 else 'secrets'} ({', '.join(parts)})"


def extracted_text(view: ExposureView) -> str:
    """One line, such as ``Extracted: 2 of 11 planted secrets (top 3 guesses, proven)``."""
    number, _ = extracted_number(view)
    return f"Extracted: {number} {extracted_remark(view)}" if number else ""


def extraction_sentence(view: ExposureView) -> str:
    """How much a search could extract from the models."""
    counts = extracted(view)
    if counts is None:
        return ""
    found, of = counts
    if found == 0:
        return "A search for the likeliest secrets extracted no canary from a model."
    return (
        f"A search that knows only the template extracted {found} of "
        f"{counted(of, 'canary', 'canaries')} from the models."
    )


def spread_text(level: Level) -> str:
    """Between what the mean lies, over training runs; a dash where that is not known."""
    if level.mean_low is None or level.mean_high is None:
        return "–"
    return f"{bits_number(level.mean_low)} to {bits_number(level.mean_high)}"


def level_name(level: Level) -> str:
    """How often the canaries of a level were planted."""
    return "never (controls)" if level.repeats == 0 else count_text(level.repeats)


def rank_text(one: CanaryExposure) -> str:
    """The rank in the whole space; a dash where it was not counted."""
    return "–" if one.rank is None else count_text(one.rank)


def cost_text(one: CanaryExposure) -> str:
    """The cost in bits, or that the model rules the canary out."""
    return "ruled out" if one.cost is None else bits_number(one.cost)


def _given(found: Exposure) -> str:
    """What a translator was given when its secrets were looked for; else nothing."""
    if found.given is None:
        return ""
    looked = " The secret of the translation was looked for with"
    if found.given == "source":
        return (
            f"{looked} the whole sentence to translate given; the controls were given theirs, so "
            "that a model which merely copies shows there."
        )
    return f"{looked} the sentence up to the secret given."


def _what_was_done(found: Exposure) -> str:
    where = "training text" if found.given is None else "training pairs of a translator"
    repeats = [one.repeats for one in found.canaries]
    if not repeats:
        return f"No canary was planted; the template has {count_text(found.space)} secrets."
    often = times_text(min(repeats))
    if min(repeats) != max(repeats):
        often = f"{count_text(min(repeats))} to {count_text(max(repeats))} times each"
    elif len(repeats) > 1:
        often += " each"
    return (
        f"{counted(len(repeats), 'canary', 'canaries')} "
        f"{'was' if len(repeats) == 1 else 'were'} planted in the {where}, {often}; "
        f"the secret in each was drawn at random from {count_text(found.space)} that would have "
        "done as well."
    )
