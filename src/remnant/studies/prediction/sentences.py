"""The words of prediction: names, numbers and sentences.

They are for a reader who has never trained a shadow model.
"""

from __future__ import annotations

from collections.abc import Sequence

from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.records.typed import Absent
from remnant.report.numerals import (
    count_text,
    counted,
    epoch_text,
    epochs_text,
    percent,
    short_percent,
)
from remnant.studies.prediction.result import (
    EarlyStop,
    Memorisation,
    PredictionResult,
    PredictorComparison,
    PredictorQuality,
    ProtectList,
    TruthAgreement,
)
from remnant.studies.shared.estimates import ends_text, estimate_text, rate_text

NAMES = {
    "psmi": "PSMI",
    "loss": "Loss",
    "logit_gap": "Logit gap",
    "mahalanobis": "Mahalanobis",
    "lt_iqr": "LT-IQR",
    "early_lira": "Early LiRA",
}
NEEDS_MORE = {
    "lt_iqr": "the whole run",
    "early_lira": "all models, early",
}
_IN_TEXT = {
    "psmi": "PSMI",
    "loss": "the loss",
    "logit_gap": "the logit gap",
    "mahalanobis": "the Mahalanobis distance",
    "lt_iqr": "LT-IQR",
    "early_lira": "early LiRA",
}
TRUTH_NAMES = {
    "lira": "LiRA’s success rate",
    "counterfactual": "counterfactual memorization",
    "rmia": "RMIA",
}
# Dentan et al., between LiRA's success rate and counterfactual memorization.
_PAPER = (0.75, 0.88)


def name_of(predictor: str) -> str:
    """A predictor within a sentence."""
    return _IN_TEXT[predictor]


def short_name_of(predictor: str) -> str:
    """A predictor within a sentence that has its own article, or none.

    Example:
        >>> short_name_of("mahalanobis"), short_name_of("logit_gap")
        ('Mahalanobis', 'logit gap')
    """
    return name_of(predictor).removeprefix("the ").removesuffix(" distance")


def needs_of(predictor: str) -> str:
    """What has to be trained before the predictor can be computed."""
    return NEEDS_MORE.get(predictor, "one model, early")


def share_text(share: float) -> str:
    """A share in percent, with two decimals close to 100 %.

    Example:
        >>> share_text(0.95), share_text(0.0776), share_text(0.99951)
        ('95 %', '7.8 %', '99.95 %')
    """
    digits = 1 if share < 0.999 else 2
    return f"{100.0 * share:.{digits}f}".rstrip("0").rstrip(".") + " %"


def others_text(values: Sequence[float]) -> str:
    """AUC on the other targets, from the lowest to the highest; a dash where there is none."""
    if not values:
        return "–"
    low, high = (f"{end(values):.3f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def signed_text(value: float) -> str:
    """A number of either sign with two digits."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def threshold_text(threshold: float) -> str:
    """A threshold of LiRA's log ratio."""
    return f"{threshold:g}".replace("-", "−")


def in_plain_words(result: PredictionResult) -> list[str]:
    """What was done, what was memorised, how well that was predicted, and what to protect."""
    prediction, truth = result.prediction, result.truth
    sentences = []
    if isinstance(prediction, Absent):
        sentences.append(
            f"How well memorisation can be predicted was not measured: {prediction.reason}."
        )
        if not isinstance(truth, Absent):
            sentences.append(memorised_sentence(None, truth))
    else:
        sentences += [what_was_done(prediction, truth), what_was_found(prediction)]
    return [*sentences, protect_sentence(result.protect)]


def what_was_done(comparison: PredictorComparison, truth: Memorisation | Absent) -> str:
    """The models, the early look, what it is compared with, and how much was memorised."""
    early = "One of them was" if comparison.targets == 1 else f"{comparison.targets} of them were"
    done = (
        f"{count_text(comparison.models)} models were trained, each on a random half of the "
        f"samples. {early} also examined early, {stop_text(comparison.stop)}. What a model "
        "memorised in the end is determined by an attack (LiRA) that compares it with all the "
        "other models."
    )
    return done if isinstance(truth, Absent) else f"{done} {memorised_sentence(comparison, truth)}"


def memorised_sentence(comparison: PredictorComparison | None, truth: Memorisation) -> str:
    """How much the first target memorised."""
    n = None if comparison is None else comparison.samples
    of = "its training samples" if n is None else f"the {counted(n, 'sample')} it was trained on"
    share = percent(truth.memorised_share) if truth.memorised_share else "none"
    return f"The first model that was examined early memorised {share} of {of}."


def stop_text(stop: EarlyStop) -> str:
    """When and why, such as ``after 6 of 30 epochs, when the median …``."""
    when = f"after {epoch_text(stop.epoch)} of {epochs_text(stop.epochs)}"
    if stop.reached:
        return f"{when}, when the median training loss had dropped by {percent(stop.dropped)}"
    return (
        f"{when}, when the drop of the median training loss ({percent(stop.dropped)}) came closest "
        f"to {short_percent(stop.drop)}, which it never reached"
    )


def what_was_found(comparison: PredictorComparison) -> str:
    """How well the first predictor did, and whether another one did better."""
    first = comparison.first
    if first is None:
        return few_sentence(comparison)
    sentences = [
        f"At that moment {name_of(first.predictor)} ranked a memorised sample above another one in "
        f"{percent(first.auc.value)} of the pairs (AUC {first.auc.value:.3f}, "
        f"{short_percent(comparison.confidence)} interval {ends_text(first.auc)}); guessing gives "
        f"{percent(0.5, 0)}.",
        default_sentence(first),
        best_sentence(comparison),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def few_sentence(comparison: PredictorComparison) -> str:
    """That too few were memorised, and what is known at the highest threshold with enough."""
    few = "Too few samples were memorised to say how well that could be predicted."
    if not comparison.by_threshold:
        return few
    highest = comparison.thresholds[-1]
    row = next(row for row in comparison.by_threshold if row.threshold == highest)
    return (
        f"{few} At LiRA’s threshold {threshold_text(highest)}, "
        f"{counted(row.n_memorised, 'sample counts', 'samples count')} as memorised, and "
        f"{name_of(row.predictor)} has an AUC of {estimate_text(row.auc)}."
    )


def default_sentence(row: PredictorQuality) -> str:
    """What the predictor's own threshold does; nothing where it has none."""
    if row.default_tpr is None or row.default_fpr is None:
        return ""
    return (
        f"Its own threshold ({name_of(row.predictor)} ≤ 0) finds {percent(row.default_tpr.value)} "
        f"of the memorised samples and flags {percent(row.default_fpr.value)} of the others."
    )


def best_sentence(comparison: PredictorComparison) -> str:
    """Whether a predictor of the same cost has a higher AUC, and whether the intervals overlap.

    Only predictors that need one model up to the stop are compared with the first.
    """
    first, *others = comparison.at_stop
    cheap = [row for row in others if row.predictor not in NEEDS_MORE]
    better = [row for row in cheap if row.auc.value > first.auc.value]
    if not cheap:
        return ""
    if not better:
        return "No other predictor of the same cost has a higher AUC."
    best = max(better, key=lambda row: row.auc.value)
    luck = "" if best.auc.low > first.auc.high else "; the intervals overlap, so this may be chance"
    return (
        f"{_capital(name_of(best.predictor))}, at the same cost, has a higher AUC: "
        f"{estimate_text(best.auc)}{luck}."
    )


def reading_sentences(comparison: PredictorComparison, first: PredictorQuality) -> list[str]:
    """What the lines of the first chart say about the first predictor."""
    at_tpr = (
        f"To find {short_percent(comparison.tpr)} of the memorised samples, "
        f"{name_of(first.predictor)} flags {rate_text(first.fpr_at_tpr)} of the others."
    )
    default = default_sentence(first)
    return [f"{default} The dot marks it.", at_tpr] if default else [at_tpr]


def evidence_sentence(first: PredictorQuality) -> str:
    """How many samples the first chart rests on, and what its intervals leave out."""
    return (
        f"{counted(first.n_memorised, 'memorised sample')} and {counted(first.n_others, 'other')} "
        "of the first model examined. The intervals are over samples; variation between training "
        "runs is not included."
    )


def base_rate_sentence(first: PredictorQuality) -> str:
    """What to compare the precision with."""
    return (
        f"{percent(first.base_rate)} of the samples are memorised: guessing at random has that "
        "precision."
    )


def time_sentence(stop: EarlyStop) -> str:
    """When the rule stops, and what that saves."""
    when = f"The rule watches the median training loss and stops {stop_text(stop)}."
    left = stop.epochs - stop.epoch
    if left <= 0:
        return f"{when} That is the end of the training: nothing is saved."
    return f"{when} The list does not need the remaining {epochs_text(left)} of training."


def moment_sentence(comparison: PredictorComparison) -> str:
    """When the first predictor first did as well as at the stop, and when it did best."""
    first = comparison.first
    if first is None:
        return ""
    rows = [row for row in comparison.moments if row.predictor == first.predictor]
    enough = [row for row in rows if row.auc.value >= first.auc.low]
    if not enough:
        return ""
    best = max(rows, key=lambda row: row.auc.value)
    return (
        f"The AUC of {name_of(first.predictor)} first came within the interval of the stop after "
        f"{epochs_text(enough[0].epoch)} ({enough[0].auc.value:.3f}) and was highest after "
        f"{epochs_text(best.epoch)} ({best.auc.value:.3f}); both are known only in hindsight."
    )


def threshold_sentence(comparison: PredictorComparison) -> str:
    """Why there is more than one threshold."""
    first = comparison.first
    main = (
        ""
        if first is None
        else f" The rest of this page uses the threshold {threshold_text(first.threshold)}."
    )
    return (
        "A sample counts as memorised where LiRA’s log ratio is at least a threshold. A higher "
        f"threshold leaves fewer and more extreme samples.{main}"
    )


def protect_sentence(protect: ProtectList | Absent) -> str:
    """How many samples to protect, and whether an independent run agrees."""
    if isinstance(protect, Absent):
        return f"There is no protect list: {protect.reason}."
    aim = f"To miss at most {short_percent(protect.miss)} of the memorised samples"
    if protect.listed == protect.n:
        return (
            f"{aim}, all {counted(protect.n, 'sample')} would have to be protected: no shorter "
            "list can state that rate."
        )
    return (
        f"{aim}, protect the {counted(protect.listed, 'sample')} of highest risk, "
        f"{percent(protect.share)} of {count_text(protect.n)}. {check_sentence(protect)}"
    )


def check_sentence(protect: ProtectList) -> str:
    """Whether the rule held on a run that was not used to make it."""
    check = protect.check
    if check is None:
        return "No run was left to check the list."
    missed = (
        f"On an independent run the list missed {count_text(check.missed)} of "
        f"{counted(check.memorised, 'memorised sample')}, {rate_text(check.rate)}"
    )
    if check.held:
        return f"{missed}: within the {percent(protect.stated)} stated."
    missed += f": more than the {percent(protect.stated)} stated."
    if check.refuted or check.chance is None:
        return f"{missed} Do not rely on it."
    return (
        f"{missed} This may be chance: {percent(check.chance)} of runs like those that made the "
        f"list would miss as many, and the list allows for "
        f"{short_percent(1.0 - protect.confidence)}. Make the list on more runs."
    )


def stated_sentences(protect: ProtectList) -> tuple[tuple[str, str], ...]:
    """What the stated rate means, and what it does not."""
    runs = "one run" if protect.runs == 1 else f"{protect.runs} runs"
    variation = (
        "That is for trainings like this one"
        if protect.runs == 1
        else "How much these runs differ is included"
    )
    return (
        (
            "What it means",
            f"The rule “protect the riskiest {percent(protect.share)} by "
            f"{name_of(protect.predictor)}” was made on {runs}. Train once more in the same way, "
            f"on another random half: with {short_percent(protect.confidence)} confidence the list "
            f"of that run leaves out at most {percent(protect.stated)} of the samples that it will "
            f"memorise. {variation}; {cannot_exclude(protect.runs)}.",
        ),
        (
            "What it does not mean",
            "It guarantees nothing about a single sample, and a sample that is not listed need not "
            "be safe. It holds for this kind of data, model and training, and for what LiRA calls "
            "memorised at this threshold; a stronger attack would find more. Many samples on the "
            "list may never be memorised: the list is long enough to miss few.",
        ),
    )


def flip_sentence(truth: Memorisation) -> str:
    """How much of what is memorised depends on the run."""
    again = (
        ""
        if truth.persistence is None
        else " What one model memorised is memorised by another one that was trained on it in "
        f"{percent(truth.persistence)} of the cases."
    )
    return (
        "Two models that were both trained on a sample disagree whether it is memorised in "
        f"{rate_text(truth.flip_rate)} of the cases.{again} What is memorised depends on the run "
        "as well as on the sample: examine the run that you will use."
    )


def false_alarm_sentence(truth: Memorisation) -> str:
    """False positives of the first target's truth, and which targets were left out."""
    if not truth.false_alarms:
        return ""
    estimated = (
        "Estimated false positives among the samples that the first target is said to have "
        f"memorised: {percent(truth.false_alarms[0])}, from samples that it was not trained on."
    )
    if not truth.unfit:
        return estimated
    many = "One target is" if truth.unfit == 1 else f"{truth.unfit} targets are"
    left_out = "was" if truth.unfit == 1 else "were"
    return (
        f"{estimated} {many} above {percent(truth.false_alarm_limit)} and {left_out} not used to "
        "make or check the protect list: in a model that differs from the others, LiRA reports "
        "samples that were not memorised."
    )


def agreement_sentence(truth: Memorisation) -> str:
    """Our correlation beside the paper's; nothing where the two were not compared."""
    row = next((row for row in truth.agreement if _is_papers(row)), None)
    if row is None:
        return ""
    low, high = _PAPER
    place = (
        "within that range"
        if low <= row.value <= high
        else "above"
        if row.value > high
        else "below"
    )
    return (
        "LiRA’s success rate and counterfactual memorization measure memorisation in different "
        f"ways. Their rankings of the samples have a correlation of {row.value:.2f} (Spearman). "
        f"The paper (Dentan et al.) reports {low} to {high} for fine-tuned language models: this "
        f"is {place}."
    )


def between_text(row: TruthAgreement) -> str:
    """Two measures, such as ``LiRA’s success rate and RMIA``."""
    return f"{_capital(TRUTH_NAMES[row.first])} and {TRUTH_NAMES[row.second]}"


def convention_sentence(truth: Memorisation) -> str:
    """How LiRA was done."""
    return (
        f"LiRA over {counted(truth.models, 'model')}, from the {truth.signal.replace('_', ' ')}; "
        f"{truth.convention.replace('_', '-')}."
    )


def _is_papers(row: TruthAgreement) -> bool:
    return {row.first, row.second} == {"lira", "counterfactual"}


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
