"""From what utterances cost along one run to its curves and a verdict; touches no model."""

from __future__ import annotations

from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.one_run.measure import not_long_after, put_curves
from remnant.studies.shared.result_parts import Tested
from remnant.studies.shared.speech_settings import SYNTHETIC
from remnant.studies.shared.wording import times
from remnant.studies.speech_one_run.recipe import SpeechOneRunStudy


def measure_speech_one_run(record: Record, study: SpeechOneRunStudy) -> None:
    """Measure the run's curves, judge them, and put both into the record; no canary is in it.

    Args:
        record: Holds ``scores`` and ``task``, and is given the results.
        study: The study that was run.
    """
    put_curves(record, study)
    put_parts(record, scope=_scope(study))


def _scope(study: SpeechOneRunStudy) -> Tested:
    plan, own = study.plan, study.canaries
    lengths = " or ".join(map(str, own.words))
    what = (
        f"transcripts of {lengths} random words, spoken by synthesizers"
        if own.kind == "spoken"
        else f"utterances of the corpus with {lengths} random words as their transcript"
    )
    often = " or ".join(times(uses) for uses in plan.repeats)
    before = ", less its cost before the window" if study.attack.calibrate else ""
    others = (
        "real voices: synthesizers speak more alike than people do"
        if study.data.name == SYNTHETIC or own.kind == "spoken"
        else "utterances with their true transcripts: wrong ones are learnt by heart"
    )
    return Tested(
        tested=(
            f"STAGGERED: one run of {plan.total_steps} steps of {study.model.name} on "
            f"{study.data.title} speech, {plan.canaries - plan.never} canaries ({what}) planted "
            f"{often} in {len(plan.starts)} windows of {plan.window} steps",
            f"a transcript's CTC cost given its sound{before}",
            f"{plan.never} canaries drawn the same way, never planted: controls of every window",
        ),
        not_tested=(
            "how much another run would differ: there was one",
            others,
            "other speakers: intervals are over utterances, not over who speaks them",
            "attackers without the sound: the cost is that of a transcript given its own sound",
            "adversaries who know the batch order, see gradients, or query the model while it "
            "trains",
            "whether what the attack no longer finds is gone or only hidden: no weight noise, no "
            "relearning, no scan of later checkpoints was run",
            "lags beyond the end of the run, other recognisers and other speech",
            *not_long_after(plan),
        ),
    )
