"""The report's sentences, for a reader who has never run an attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remnant.report.curve import Curve, Point, lag_text, percent
from remnant.report.forgetting_view import ForgettingView, Gap
from remnant.report.hidden_words import hidden_sentences
from remnant.report.numerals import bits_text
from remnant.report.run_view import Finding, LanguageTask, NotMeasured, RunView, Task, Verdict

SYMBOLS = {"PASS": "✓", "FAIL": "✕", "INCONCLUSIVE": "?", "FINDING": "i"}
_QUESTIONS = {
    "forgetting": "Forgetting",
    "exposure": "Exposure and extraction",
    "translation-exposure": "Exposure in translation",
    "exposure-training": "Exposure by training choices",
    "one-run": "One-run forgetting",
    "text-forgetting": "Forgetting of text",
    "prediction": "Prediction of memorisation",
    "text-prediction": "Prediction of memorisation of text",
    "unique-features": "Unique features",
    "feature-audit": "Audit of a feature",
}
_UNDECIDED = "Not enough evidence to decide"
_EXPOSURE = {
    "PASS": "The canaries judged are no more exposed than allowed",
    "FAIL": "A canary judged is more exposed than allowed",
    "INCONCLUSIVE": _UNDECIDED,
}
_HEADLINES = {
    "forgetting": {
        "PASS": "Under the limit at the last step watched",
        "FAIL": "Still remembered beyond the limit",
        "INCONCLUSIVE": _UNDECIDED,
    },
    "exposure": _EXPOSURE,
    "translation-exposure": _EXPOSURE,
    "text-forgetting": {
        "PASS": "No more exposed than allowed at the last step watched",
        "FAIL": "Still more exposed than allowed",
        "INCONCLUSIVE": _UNDECIDED,
    },
    "one-run": {
        "PASS": "Within the limit at the end of this one run",
        "FAIL": "Still found beyond the limit at the end of this one run",
        "INCONCLUSIVE": _UNDECIDED,
    },
    "unique-features": {
        "PASS": "Models do not know the patch more often than allowed",
        "FAIL": "Models know a patch that was in one training image",
        "INCONCLUSIVE": _UNDECIDED,
    },
    "feature-audit": {
        "PASS": "Nothing found, and under the limit",
        "FAIL": "The model reacts to the patch",
        "INCONCLUSIVE": "No evidence that it was memorised, and no proof that it was not",
    },
}


def question(view: RunView) -> str:
    """What the run is about, as a heading."""
    return _QUESTIONS[view.question]


def headline(view: RunView) -> str:
    """The verdict or the finding in a few words."""
    found = view.verdict
    if isinstance(found, NotMeasured):
        return "No verdict"
    if isinstance(found, Finding):
        return found.headline
    return _HEADLINES[view.question][found.outcome]


def outcome(view: RunView) -> str:
    """PASS, FAIL or INCONCLUSIVE, FINDING where the run has no limit, or ``no verdict``."""
    if isinstance(view.verdict, NotMeasured):
        return "no verdict"
    return "FINDING" if isinstance(view.verdict, Finding) else view.verdict.outcome


def beneath(view: RunView) -> list[tuple[str, str]]:
    """Name and sentence of what stands under an outcome: a gate's claim, a finding's advice."""
    found = view.verdict
    if isinstance(found, Finding) and found.advice:
        return [("what to do", found.advice)]
    if isinstance(found, Verdict) and found.claim:
        return [("claim", found.claim)]
    return []


def verdict_lines(view: RunView) -> list[str]:
    """The verdict for a terminal: the outcome with its sentence, then the claim or the advice."""
    found = view.verdict
    if isinstance(found, NotMeasured):
        return [f"no verdict: {found.reason}"]
    said = f"{found.headline}. {found.sentence}" if isinstance(found, Finding) else found.sentence
    return [f"{outcome(view)}: {said}", *(f"  {name}: {text}" for name, text in beneath(view))]


def in_plain_words(view: ForgettingView) -> str:
    """One paragraph: what was done, what an attacker could tell, and whether the ruler is true."""
    uses = max((row.uses[1] for row in view.ledger), default=None)
    sentences = [_what_was_done(view.plan, uses)]
    if isinstance(view.curve, Curve):
        sentences += _what_was_found(view.curve)
    else:
        sentences.append(f"How fast attack success falls was not measured: {view.curve.reason}.")
    sentences.append(control_sentence(view))
    sentences.append(hidden_sentences(view.hidden, view.scan)[0])
    return " ".join(sentence for sentence in sentences if sentence)


def control_sentence(view: ForgettingView) -> str:
    """What the A/A twins say about the measurement itself."""
    control = view.control
    if isinstance(control, NotMeasured):
        return f"There is no negative control: {control.reason}."
    inside, of = control_count(control)
    if of == 0:
        return ""
    check = (
        "As a check on the method, pairs of models of which neither saw the examples were compared "
        "in the same way"
    )
    if control_holds(control):
        return f"{check}: there the attacker could not be told from one who guesses."
    return (
        f"{check}, where an attacker can only guess; but the interval holds chance at only "
        f"{inside} of {of} lags, so read the curve with caution."
    )


def control_count(control: Curve) -> tuple[int, int]:
    """At how many lags the A/A interval holds chance, and at how many it is known."""
    chance = control.chance
    ends = [(p.low, p.high) for p in control.points if p.low is not None and p.high is not None]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if chance is None:
        return 0, 0
    return sum(low <= chance <= high for low, high in known), len(known)


def control_holds(control: Curve) -> bool:
    """Whether the A/A interval holds chance at nine lags in ten."""
    inside, of = control_count(control)
    return of > 0 and inside >= 0.9 * of


def task_sentence(task: Task | LanguageTask | NotMeasured) -> str:
    """How useful the trained model is."""
    if isinstance(task, NotMeasured):
        return f"The model's usefulness was not measured: {task.reason}."
    if isinstance(task, LanguageTask):
        return _language_task(task)
    beside = (
        ""
        if task.majority is None
        else (f"; always naming the commonest class would give {percent(task.majority)}")
    )
    return (
        f"The trained model is right on {percent(task.test_accuracy)} of "
        f"{lag_text(task.test_examples)} test examples{beside}."
    )


def useless_line(task: Task | LanguageTask | NotMeasured) -> str:
    """A few words where a language model is worse than a blind guess; else nothing."""
    if not isinstance(task, LanguageTask) or task.uniform_bits is None or not task.useless:
        return ""
    return (
        f"no use as a language model: {bits_text(task.validation_bits)} a {task.token} on unseen "
        f"text, where a blind guess needs {bits_text(task.uniform_bits)}"
    )


def _language_task(task: LanguageTask) -> str:
    blind = "" if task.uniform_bits is None else f" (a blind guess: {bits_text(task.uniform_bits)})"
    told = (
        f"On text that it was not trained on, the model needs {bits_text(task.validation_bits)} a "
        f"{task.token}{blind}, over {lag_text(task.validation_tokens)} {task.token}s"
    )
    if task.useless:
        return (
            f"{told}: it is worse than a blind guess, and no use as a language model, so what is "
            "found here need not hold for one that is."
        )
    return f"{told}; the fewer, the better it predicts."


def describe(curve: Curve) -> str:
    """The curve in one sentence, for those who cannot see it."""
    return (
        f"{curve.label} goes from {point_text(curve, curve.start)} at lag "
        f"{lag_text(curve.start.lag)} to {point_text(curve, curve.end)} at lag "
        f"{lag_text(curve.end.lag)}."
    )


def point_text(curve: Curve, point: Point) -> str:
    """A value with its interval, such as ``74.1 % (68.0 % to 80.2 %)``."""
    interval = curve.show_interval(point)
    return curve.show(point.value) + (f" ({interval})" if interval else "")


def epsilon_text(point: Point) -> str:
    """The heuristic epsilon with its interval; what is not finite is no number."""
    value, low, high = (
        "not finite" if end is None else f"{end:.2f}"
        for end in (point.value, point.low, point.high)
    )
    return f"{value} ({low} to {high})"


def steps_to_rows(curve: Curve) -> tuple[tuple[str, str], ...]:
    """Levels and the steps it takes to fall to them."""
    last = lag_text(curve.end.lag)
    return tuple(
        (
            curve.show(level),
            f"not reached in the {last} steps watched"
            if lag is None
            else f"{lag_text(round(lag))}",
        )
        for level, lag in curve.steps_to
    )


def tiled_sentence(view: RunView) -> str:
    """Why the ledger counts more uses than the plan has repeats; nothing where it does not."""
    repeats = view.plan.get("repeats")
    uses = max((row.uses[1] for row in view.ledger), default=0)
    if view.plan.get("kind") != "inject" or not isinstance(repeats, int) or uses <= repeats:
        return ""
    return (
        f"The plan injects the canaries {'once' if repeats == 1 else f'{repeats} times'}, and the "
        f"ledger counts up to {uses} uses: an injected batch holds several copies of a canary, "
        "because the canaries are repeated to fill it."
    )


def constructed_sentence(curve: Curve) -> str:
    """What lag 0 shows where it holds by construction; else nothing."""
    zero = curve.constructed
    if zero is None:
        return ""
    return (
        f"Lag 0 ({curve.show(zero.value)}) holds by construction: there the twin that skipped the "
        "planting still equals its checkpoint, so all its scores are 0. The first lag at which the "
        f"attack can fail is {lag_text(curve.start.lag)}."
    )


def never_planted_sentence(curve: Curve) -> str:
    """What the attack makes of canaries that were drawn alike and never planted."""
    guess = "" if curve.chance is None else f"; guessing gives {curve.show(curve.chance)}"
    return (
        "Never-planted canaries, drawn the same way and scored in the same models: "
        f"{curve.label} is {point_text(curve, curve.start)} at lag {lag_text(curve.start.lag)} and "
        f"{point_text(curve, curve.end)} at lag {lag_text(curve.end.lag)}{guess}. A value above "
        "chance shows that planting moved the model on canaries it did not see."
    )


def epsilon_ends(curve: Curve) -> tuple[Point, Point]:
    """The heuristic epsilon at the first lag at which the attack can fail, and at the last."""
    first = next(point for point in curve.epsilon if point.lag == curve.start.lag)
    return first, curve.epsilon[-1]


def _what_was_done(plan: Mapping[str, Any], uses: int | None) -> str:
    canaries, repeats = plan.get("canaries"), plan.get("repeats")
    if not isinstance(canaries, int):
        return ""
    step, watch = plan.get("step"), plan.get("watch_steps")
    shown = "were part of one model's training"
    if plan.get("kind") == "inject" and isinstance(repeats, int) and isinstance(step, int):
        times = "once" if repeats == 1 else f"{repeats} times"
        shown = f"were shown to a model {times} at training step {lag_text(step)}"
        if uses is not None and uses > repeats:
            shown = (
                f"were shown to a model in {'one batch' if repeats == 1 else f'{repeats} batches'} "
                f"at training step {lag_text(step)}, up to {uses} times in all since they fill "
                "the batch"
            )
    after = f" for {lag_text(watch)} more steps" if isinstance(watch, int) else ""
    return (
        f"{lag_text(canaries)} chosen examples {shown}; an otherwise equal twin never saw them. "
        f"Both then trained on without these examples{after}, and at each point an attacker who "
        f"holds the model had to say which examples had been used."
    )


def _what_was_found(curve: Curve) -> list[str]:
    start, end = curve.start, curve.end
    steps = lag_text(end.lag)
    if curve.success == "precision" and start.value is not None and end.value is not None:
        interval = curve.show_interval(end)
        sure = "" if not interval else f" ({percent(curve.confidence, 0)} interval {interval})"
        guess = "" if curve.chance is None else f"; pure guessing gives {percent(curve.chance, 0)}"
        since = f"{lag_text(start.lag)} steps after planting"
        if start.lag <= 1:
            since = "One step after planting" if start.lag == 1 else "Straight after planting"
        return [
            f"{since}, {curve.show(start.value)} of the examples the attacker "
            f"named had really been used{guess}.",
            f"By {steps} steps after planting it was {curve.show(end.value)}{sure}.",
        ]
    return [describe(curve)]


def gap_text(gap: Gap, curve: Curve) -> str:
    """How far a variant lies above the study, such as ``+10.2 points (9.0 to 11.4)``."""
    scale, unit, digits = 1.0, "", 3
    if curve.is_share:
        scale, unit, digits = 100.0, " points", 1
    elif curve.success == "exposure":
        unit, digits = " bits", 2

    def signed(value: float) -> str:
        return f"{scale * value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")

    return f"{signed(gap.mean)}{unit} ({signed(gap.low)} to {signed(gap.high)})"
