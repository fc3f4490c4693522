"""Sentences of a report on forgetting of text, for a reader who has never run an attack."""

from __future__ import annotations

from remnant.report.curve import SPACE, lag_text, percent
from remnant.report.numerals import bits_number, bits_text, counted
from remnant.report.run_view import NotMeasured
from remnant.report.text_forgetting_view import ExposureCurve, TextForgettingView
from remnant.report.words import control_count, control_holds

_CALIBRATED = {
    "twin": " From each cost was subtracted what the model’s twin, which never saw the canaries, "
    "pays for the same sequence.",
    "references": " From each cost was subtracted the mean of what reference models, trained on "
    "parts of the clean text, pay for the same sequence.",
}


def in_plain_words(view: TextForgettingView) -> str:
    """One paragraph: what was done, and what exposure says."""
    found = view.exposure
    done = (
        "Sequences of random tokens, which no text predicts, were planted into a language model’s "
        "training and then never shown again, while it trained on clean text."
    )
    if isinstance(found, NotMeasured):
        return f"{done} How exposed they are was not measured: {found.reason}."
    ranked = (
        f" At each point {counted(found.n_canaries, 'planted sequence')} were ranked among "
        f"{counted(found.n_references, 'reference')}, drawn alike and never planted, by what the "
        f"model pays for them. Exposure says how far to the front a sequence comes: ten bits mean "
        f"about one in a thousand, and {bits_text(found.curve.chance or 0.0)} are what chance "
        f"gives."
    )
    return done + ranked + _CALIBRATED.get(view.calibration, "")


def what_was_found(found: ExposureCurve) -> str:
    """How exposure went, in a paragraph."""
    curve, peak = found.curve, found.peak
    start, end = curve.start, curve.end
    begins = "Right after planting" if start.lag <= 1 else f"After {lag_text(start.lag)} steps"
    parts = [f"{begins} the mean exposure was {bits_text(start.value or 0.0)}"]
    if peak.lag not in (start.lag, end.lag):
        parts.append(
            f"it was highest after {lag_text(peak.lag)} steps, with {bits_text(peak.value or 0.0)}"
        )
    interval = curve.show_interval(end)
    sure = f" ({percent(curve.confidence, 0)} interval {interval})" if interval else ""
    parts.append(f"after {lag_text(end.lag)} steps it was {bits_text(end.value or 0.0)}{sure}")
    told = "; ".join(parts) + "."
    if peak.lag not in (start.lag, end.lag):
        told += " Exposure need not be highest at the beginning: look at the whole curve."
    return f"{told} {found.safe_reason}"


def control_sentence(control: ExposureCurve | NotMeasured) -> str:
    """What the A/A twins say about the measurement itself."""
    if isinstance(control, NotMeasured):
        return f"There is no negative control: {control.reason}."
    inside, of = control_count(control.curve)
    check = "As a check, the same sequences were ranked in models that never saw any of them"
    if control_holds(control.curve):
        return f"{check}: there they are no more exposed than chance has it."
    return (
        f"{check}; but the interval holds chance at only {inside} of {of} lags, so read the curve "
        f"with caution."
    )


def control_fails(control: ExposureCurve | NotMeasured) -> bool:
    """Whether the A/A twins are away from chance."""
    return not isinstance(control, NotMeasured) and not control_holds(control.curve)


def caption(found: ExposureCurve) -> str:
    """What the figure of the exposure rests on."""
    curve = found.curve
    facts = [
        f"{curve.trials}{SPACE}{'trial' if curve.trials == 1 else 'trials'}",
        f"{counted(found.n_canaries, 'canary', 'canaries')} and "
        f"{counted(found.n_references, 'reference')} each",
        f"at most {bits_text(found.ceiling)} can be shown",
        curve.method or "",
    ]
    band = "" if curve.confidence is None else f"Bands: {percent(curve.confidence, 0)} intervals. "
    return band + "; ".join(fact for fact in facts if fact) + "."


def saturated_sentence(found: ExposureCurve) -> str:
    """How many canaries the references could not place; empty where there are none."""
    most = max(found.saturated, default=0.0)
    if most == 0:
        return ""
    return (
        f"At most {percent(most)} of the canaries at a lag were cheaper than every reference "
        f"({percent(found.saturated[-1])} at the last): each counts with "
        f"{bits_number(found.ceiling)} bits and may have any more."
    )
