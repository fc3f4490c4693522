"""The sentences of a prediction report, for a reader who has never trained a shadow model."""

from __future__ import annotations

from remnant.report.curve import percent, short_percent
from remnant.report.numerals import count_text, counted
from remnant.report.prediction_numerals import (
    NEEDS_MORE,
    ends_text,
    epoch_text,
    epochs_text,
    estimate_text,
    name_of,
    rate_text,
    threshold_text,
)
from remnant.report.prediction_view import (
    Agreement,
    Prediction,
    PredictionView,
    Protect,
    Quality,
    Stop,
    Truth,
)
from remnant.report.run_view import NotMeasured

TRUTH_NAMES = {
    "lira": "LiRA’s success rate",
    "counterfactual": "counterfactual memorization",
    "rmia": "RMIA",
}
# Dentan et al., between LiRA's success rate and counterfactual memorization.
_PAPER = (0.75, 0.88)


def in_plain_words(view: PredictionView) -> list[str]:
    """What was done, what was memorised, how well that was known early, and whom to protect."""
    found = view.prediction
    told = []
    if isinstance(found, NotMeasured):
        told.append(f"How well memorisation can be predicted was not measured: {found.reason}.")
        if not isinstance(view.truth, NotMeasured):
            told.append(memorised_sentence(None, view.truth))
    else:
        told += [what_was_done(found, view.truth), what_was_found(found)]
    told.append(protect_sentence(view.protect))
    return told


def what_was_done(found: Prediction, truth: Truth | NotMeasured) -> str:
    """The models, the early look, what it is held against, and how much was memorised."""
    looked = "one of them was" if found.targets == 1 else f"{found.targets} of them were"
    told = (
        f"{count_text(found.models)} models were trained, each on a random half of the samples; "
        f"{looked} also looked at early, {stop_text(found.stop)}. What a model has memorised in "
        "the end is told by an attack that holds it against all the others (LiRA)."
    )
    return told if isinstance(truth, NotMeasured) else f"{told} {memorised_sentence(found, truth)}"


def memorised_sentence(found: Prediction | None, truth: Truth) -> str:
    """How much the first target memorised."""
    n = None if found is None else found.samples
    of = "its training samples" if n is None else f"the {counted(n, 'sample')} it was trained on"
    share = percent(truth.memorised_share) if truth.memorised_share else "none"
    return f"The first model that was looked at memorised {share} of {of}."


def stop_text(stop: Stop) -> str:
    """When and why, such as ``after 6 of 30 epochs, when the median …``."""
    when = f"after {epoch_text(stop.epoch)} of {epochs_text(stop.epochs)}"
    if stop.reached:
        return f"{when}, when the median training loss had dropped by {percent(stop.dropped)}"
    return (
        f"{when}, where the median training loss came closest to a drop by "
        f"{short_percent(stop.drop)}, which it never reached ({percent(stop.dropped)})"
    )


def what_was_found(found: Prediction) -> str:
    """How well the first predictor did, and whether another did better."""
    if not found.quality:
        return few_sentence(found)
    first = found.quality[0]
    told = [
        f"At that moment {name_of(first.predictor)} put a memorised sample above another one in "
        f"{percent(first.auc.value)} of the pairs (AUC {first.auc.value:.3f}, "
        f"{short_percent(found.confidence)} interval {ends_text(first.auc)}); guessing gives "
        f"{percent(0.5, 0)}.",
        default_sentence(first),
        best_sentence(found),
    ]
    return " ".join(sentence for sentence in told if sentence)


def few_sentence(found: Prediction) -> str:
    """That too few were memorised, and what is known at the highest threshold with enough."""
    told = "Too few samples were memorised to say how well that could be predicted."
    if not found.by_threshold:
        return told
    row = max(found.by_threshold, key=lambda one: one.threshold)
    return (
        f"{told} From LiRA’s threshold {threshold_text(row.threshold)} on there are "
        f"{count_text(row.n_memorised)}, for which {name_of(row.predictor)} has an AUC of "
        f"{estimate_text(row.auc)}."
    )


def default_sentence(row: Quality) -> str:
    """What the predictor's own threshold does; nothing where it has none."""
    if row.default_tpr is None or row.default_fpr is None:
        return ""
    return (
        f"Its own threshold ({name_of(row.predictor)} ≤ 0) finds {percent(row.default_tpr.value)} "
        f"of the memorised samples and flags {percent(row.default_fpr.value)} of the others."
    )


def reading_sentences(found: Prediction) -> list[str]:
    """What the lines of the first chart say of the first predictor."""
    first = found.quality[0]
    at_tpr = (
        f"To find {short_percent(found.tpr)} of the memorised samples, {name_of(first.predictor)} "
        f"flags {rate_text(first.fpr_at_tpr)} of the others."
    )
    default = default_sentence(first)
    return [f"{default} The dot marks it.", at_tpr] if default else [at_tpr]


def evidence_sentence(found: Prediction) -> str:
    """On how many samples the first chart rests, and what its intervals leave out."""
    first = found.quality[0]
    return (
        f"{counted(first.n_memorised, 'memorised sample')} and {counted(first.n_others, 'other')} "
        "of the first model looked at. The intervals are over samples; how much another training "
        "run would change is not in them."
    )


def base_rate_sentence(row: Quality) -> str:
    """What the precision is to be held against."""
    return (
        f"{percent(row.base_rate)} of the samples are memorised: a predictor that knows nothing "
        "has that precision."
    )


def threshold_sentence(found: Prediction) -> str:
    """Why there is more than one threshold."""
    at = (
        ""
        if not found.quality
        else f" Elsewhere it is {threshold_text(found.quality[0].threshold)}."
    )
    return (
        "A sample counts as memorised from some log ratio of LiRA on: the higher it is, the fewer "
        f"samples count, and the more extreme they are.{at}"
    )


def best_sentence(found: Prediction) -> str:
    """Whether a predictor that is as cheap has the higher AUC; ties within the intervals are said.

    Only predictors that need one model to the stop are compared with the first.
    """
    first, *others = found.quality
    cheap = [row for row in others if row.predictor not in NEEDS_MORE]
    better = [row for row in cheap if row.auc.value > first.auc.value]
    if not cheap:
        return ""
    if not better:
        return "No other predictor that needs as little has a higher AUC."
    best = max(better, key=lambda row: row.auc.value)
    sure = best.auc.low > first.auc.high
    tell = "" if sure else "; the intervals overlap, so that this may be luck"
    return (
        f"{_capital(name_of(best.predictor))}, which needs as little, has a higher AUC, "
        f"{estimate_text(best.auc)}{tell}."
    )


def protect_sentence(found: Protect | NotMeasured) -> str:
    """How many samples to protect, in one sentence or two."""
    if isinstance(found, NotMeasured):
        return f"There is no protect list: {found.reason}."
    if found.listed == found.n:
        return (
            f"To miss at most {short_percent(found.miss)} of what is memorised, all "
            f"{counted(found.n, 'sample')} would have to be protected: no shorter list can "
            "state that rate."
        )
    return (
        f"To miss at most {short_percent(found.miss)} of what is memorised, protect the "
        f"{counted(found.listed, 'sample')} of highest risk, {percent(found.share)} of "
        f"{count_text(found.n)}. {check_sentence(found)}"
    )


def check_sentence(found: Protect) -> str:
    """Whether the rule held on a run that had no part in it."""
    check = found.check
    if check is None:
        return "No run was left to check the rule on."
    told = (
        f"On another run, which had no part in the rule, it missed {count_text(check.missed)} of "
        f"{counted(check.memorised, 'memorised sample')}, {rate_text(check.rate)}"
    )
    if check.held:
        return f"{told}: within the {percent(found.stated)} stated."
    told += f": more than the {percent(found.stated)} stated."
    if check.refuted or check.chance is None:
        return f"{told} Do not rely on it."
    return (
        f"{told} That may be chance: {percent(check.chance)} of runs like those that made the rule "
        f"would miss as many, and it allows for {short_percent(1.0 - found.confidence)}. Let more "
        "runs make the rule."
    )


def stated_sentences(found: Protect) -> list[tuple[str, str]]:
    """What the stated rate means, and what it does not."""
    runs = "one run" if found.runs == 1 else f"{found.runs} runs"
    alike = (
        "With one run it takes the next one for alike: how much runs differ is not in it."
        if found.runs == 1
        else "How much these runs differ from each other is in it."
    )
    return [
        (
            "What it means",
            f"The rule “protect the riskiest {percent(found.share)} by {name_of(found.predictor)}” "
            f"was made on {runs}. Train once more in the same way, on another random half: with "
            f"{short_percent(found.confidence)} confidence the list of that run leaves out at most "
            f"{percent(found.stated)} of the samples that it will memorise. {alike}",
        ),
        (
            "What it does not mean",
            "It is no promise for a single sample, nor that what is not listed is safe. It holds "
            "for this kind of data, model and training, and for what LiRA calls memorised at this "
            "threshold; a stronger attack would call more so. Many samples on the list may never "
            "be memorised: it is as long as it takes to miss few.",
        ),
    ]


def flip_sentence(truth: Truth) -> str:
    """How much the truth belongs to the sample, and how much to one run."""
    again = (
        ""
        if truth.persistence is None
        else " What one model memorised is memorised by another that saw it too in "
        f"{percent(truth.persistence)} of the cases."
    )
    return (
        "Of two models that were both trained on a sample, one has memorised it and the other not "
        f"in {rate_text(truth.flip_rate)} of the cases.{again} What is memorised depends on the "
        "run as well as on the sample: look at the very run that you will use."
    )


def false_alarm_sentence(truth: Truth) -> str:
    """How far the first target's truth is chance, and which targets were no judges."""
    if not truth.false_alarms:
        return ""
    unfit = sum(one > truth.false_alarm_limit for one in truth.false_alarms)
    told = (
        f"Going by samples that it never saw, {percent(truth.false_alarms[0])} of what the first "
        "target is said to have memorised is to be taken for chance."
    )
    if not unfit:
        return told
    many = "One target is" if unfit == 1 else f"{unfit} targets are"
    return (
        f"{told} {many} above {percent(truth.false_alarm_limit)} and had no part in making or "
        "checking the protect list: a model that came out unlike the others makes LiRA find what "
        "is not there."
    )


def agreement_sentence(truth: Truth) -> str:
    """Ours beside the paper's; nothing where the two were not compared."""
    found = next((one for one in truth.agreements if _is_papers(one)), None)
    if found is None:
        return ""
    low, high = _PAPER
    value = found.value.value
    place = "within that range" if low <= value <= high else "above" if value > high else "below"
    return (
        f"LiRA’s success rate and counterfactual memorization, two truths made in different "
        f"ways, rank the samples alike with a correlation of {value:.2f} (Spearman). The paper "
        f"(Dentan et al.) reports {low} to {high} for fine-tuned language models: this is {place}."
    )


def between_text(one: Agreement) -> str:
    """Two truths, such as ``LiRA’s success rate and RMIA``."""
    return f"{_capital(TRUTH_NAMES[one.first])} and {TRUTH_NAMES[one.second]}"


def convention_sentence(truth: Truth) -> str:
    """How LiRA was done."""
    return (
        f"LiRA over {counted(truth.models, 'model')}, from the {truth.signal.replace('_', ' ')}; "
        f"{truth.convention.replace('_', '-')}."
    )


def _is_papers(one: Agreement) -> bool:
    return {one.first, one.second} == {"lira", "counterfactual"}


def time_sentence(found: Prediction) -> str:
    """When the rule stops, what that costs, and what it saves."""
    stop = found.stop
    told = f"The rule watches how training goes and stops {stop_text(stop)}."
    if found.forward_passes is not None:
        told += (
            f" Watching the loss and asking the predictors took {found.forward_passes:.2g} passes "
            "over the training samples in all."
        )
    left = stop.epochs - stop.epoch
    if left <= 0:
        return f"{told} That is the end of the training: nothing is saved."
    return (
        f"{told} The other {epochs_text(left)} of training need not be paid for before the list "
        "is known."
    )


def moment_sentence(found: Prediction) -> str:
    """From when on the first predictor was as good as at the stop, and when it was best."""
    if not found.quality or not found.by_time:
        return ""
    first = found.quality[0]
    rows = [row for row in found.by_time if row.predictor == first.predictor]
    enough = [row for row in rows if row.auc.value >= first.auc.low]
    if not enough:
        return ""
    best = max(rows, key=lambda row: row.auc.value)
    return (
        f"The AUC of {name_of(first.predictor)} first came within the interval of the stop after "
        f"{epochs_text(enough[0].epoch)} ({enough[0].auc.value:.3f}) and was highest after "
        f"{epochs_text(best.epoch)} ({best.auc.value:.3f}); both are known in hindsight only."
    )


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
