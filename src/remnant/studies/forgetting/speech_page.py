"""The page of a study of forgetting of speech: how exposure falls after planting, and for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Column,
    Figure,
    Missing,
    Section,
    Sound,
    Sounds,
    Table,
    Terms,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import bits_text, counted, lag_text, percent
from remnant.report.sounds import wav
from remnant.studies.beside.sequence_forgetting import beside
from remnant.studies.forgetting.sequence_page import (
    TITLES,
    band_term,
    control_sentence,
    controls,
    exposure_reading,
    exposure_tiles,
    falling_blocks,
    measured,
    success_table,
    what_was_found,
)
from remnant.studies.forgetting.sequence_result import (
    ErrorRates,
    ExposureCurveResult,
    PlantedSounds,
    SpeechForgettingResult,
)
from remnant.studies.residual_memory.blocks import residual_memory_section, searches
from remnant.studies.shared.curve_blocks import comparison_section
from remnant.studies.shared.curve_charts import comparison_chart
from remnant.studies.shared.pages import (
    RunFacts,
    closing,
    headline,
    scope_section,
    task_sentence,
)
from remnant.studies.shared.result_parts import Gate
from remnant.studies.shared.wording import times

TITLE = "Forgetting of speech"
_ADVICE = {
    "PASS": "Recordings as old as the last lag need no further protection against this test. "
    "Protect what was used more recently: see from which lag on the limit holds.",
    "FAIL": "Protect these recordings: use them less often, train longer without them before the "
    "release, or train with differential privacy. Then run the study again.",
    "INCONCLUSIVE": "Run the study again in a new folder with more evidence, such as more trials; "
    "the verdict says what is missing.",
}
_PLANTED = {
    "spoken": "Sentences of random words, spoken by synthetic voices, were planted into the "
    "training of a speech recogniser. It then trained on clean speech and never heard them again.",
    "wrong": "Recordings with a wrong transcript of random words were planted into the training of "
    "a speech recogniser. It then trained on clean speech and never heard them again.",
}
_INFLUENCE = (
    "From each cost was subtracted what the model’s own twin, which never heard the canaries, pays "
    "for the same utterance. No attacker has this twin: the curve is the influence of planting."
)
_CALIBRATED = {
    "twins": "From each cost was subtracted the mean of what the twins of the other trials, which "
    "never heard a canary, pay for the same utterance.",
    "influence": _INFLUENCE,
    "twin": _INFLUENCE,  # in records of version 0.2
    "references": "From each cost was subtracted the mean of what reference models, trained on "
    "parts of the clean speech, pay for the same utterance.",
}
_ERRORS = (
    "What a person would look at: the share of the canaries’ characters that the recogniser gets "
    "wrong, and what a character of them costs. Neither compares a canary with utterances that "
    "were never planted. An error rate is above 100 % where the recogniser writes more characters "
    "than were said. Mean over the trials."
)
_GROUPS = "Each group is ranked among references of its own kind."


def page(result: SpeechForgettingResult, run: RunFacts) -> Iterator[Block]:
    """What a report shows of a study of forgetting of speech."""
    exposure, control = measured(result.curve_exposure), measured(result.curve_exposure_aa)
    limit = result.verdict.limit if isinstance(result.verdict, Gate) else None
    yield headline(
        result.verdict,
        TITLES,
        checks=beside(result),
        reading=exposure_reading(exposure, limit),
        advice=_ADVICE,
    )
    if exposure is not None:
        yield Tiles(tuple(exposure_tiles(exposure, control, limit)))
    yield section("In plain words", _plain_words(result, exposure, run.recipe))
    falling = falling_blocks(result.curve_exposure, control, limit, result.calibrations)
    yield section("How exposure falls", falling)
    yield section("Controls", controls(result.curve_exposure_aa, what="utterances"), part="method")
    yield residual_memory_section(result.hidden, result.returning)
    primary = None if exposure is None else exposure.curve
    for key, group in result.groups.items():
        made = comparison_section(group, primary, key=key, start=True)
        yield Section(made.title, (*made.blocks, prose(_GROUPS, tone="note")))
    if not isinstance(result.compare, Absent):
        yield comparison_section(result.compare, primary, key="compare", start=True)
    yield section(
        "Distinguishing planted from never-planted utterances",
        [success_table(result.attack_success)],
    )
    yield section("What error rates show", _errors(result.errors))
    yield section("What was planted", [_sounds(result.sounds, run)])
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(tuple(_terms(exposure)))])
    yield from closing(run)


def _plain_words(
    result: SpeechForgettingResult,
    exposure: ExposureCurveResult | None,
    recipe: Mapping[str, Any],
) -> Iterator[Block]:
    yield prose(what_was_done(result.curve_exposure, recipe), tone="lead")
    if exposure is not None:
        control = control_sentence(result.curve_exposure_aa, what="utterances")
        yield prose(f"{what_was_found(exposure)} {control}", tone="lead")
    yield prose(searches(result.hidden, result.returning), tone="lead")
    yield prose(task_sentence(result.task), tone="lead", depth="summary")


def what_was_done(stored: ExposureCurveResult | Absent, recipe: Mapping[str, Any]) -> str:
    """How the canaries were planted and ranked, and what exposure says."""
    kind = _field(recipe, "canaries", "kind")
    planted = _PLANTED.get(kind, _PLANTED["spoken"])
    if isinstance(stored, Absent):
        return f"{planted} How exposed they are was not measured: {stored.reason}."
    ranked = (
        f"At each point {counted(stored.n_canaries, 'planted utterance')} were ranked among "
        f"{counted(stored.n_references, 'reference')}, drawn the same way and never planted, by "
        "what the model pays for the transcript given its sound. Exposure says how far to the "
        "front an utterance comes: ten bits mean about one in a thousand; chance gives "
        f"{bits_text(stored.chance or 0.0)}."
    )
    calibrated = _CALIBRATED.get(_field(recipe, "attack", "calibration"), "")
    return " ".join(part for part in (planted, ranked, calibrated) if part)


def _field(recipe: Mapping[str, Any], table: str, name: str) -> str:
    fields = recipe.get(table)
    return str(fields.get(name)) if isinstance(fields, Mapping) else ""


def _errors(errors: ErrorRates | Absent) -> Iterator[Block]:
    if isinstance(errors, Absent):
        yield Missing("Error rates of the canaries", errors.reason)
        return
    yield prose(_ERRORS)
    title = "Character error rate on the canaries"
    yield Figure(comparison_chart(title, errors.curves), key="errors")
    bits = "{:.2f}".format
    yield Table(
        caption="Error rate and cost of the canaries at every lag",
        key="error-rates",
        rows=errors.rows,
        columns=(
            Column("Lag", "lag", lag_text),
            Column("Heard them", "seen_error", percent, group="Character error rate"),
            Column("Did not", "unseen_error", percent, group="Character error rate"),
            Column("Heard them", "seen_bits", bits, group="Bits a character"),
            Column("Did not", "unseen_bits", bits, group="Bits a character"),
        ),
        depth="show",
    )


def _sounds(sounds: PlantedSounds | Absent, run: RunFacts) -> Block:
    if isinstance(sounds, Absent):
        return Missing("Sounds", sounds.reason)
    return Sounds(
        "Canaries to listen to, with the transcripts that they were planted with.",
        tuple(
            Sound(
                wav(run.array(sound.array), rate=sound.rate),
                f"“{sound.transcript}”, seen {times(sound.uses)}",
            )
            for sound in sounds.sounds
        ),
    )


def _terms(exposure: ExposureCurveResult | None) -> Iterator[tuple[str, str]]:
    curve = None if exposure is None else exposure.curve
    chance = None if curve is None else curve.chance
    yield (
        "Cost",
        "What the model pays for a transcript given its sound: the negative base-2 logarithm of "
        "its CTC probability, summed over all ways to spread its characters over the frames.",
    )
    yield (
        "Exposure",
        "A planted utterance that comes before all but one in 2ᵇ of its references has b bits. An "
        "utterance that was never planted may come anywhere; its exposure is {} bits on average, "
        "with a median of 1 bit, and two bits are noise.".format(
            "1.44" if chance is None else f"{chance:.2f}"
        ),
    )
    yield "The band", band_term(curve)
    yield (
        "A/A twins",
        "Models trained the same way with fresh randomness, which heard none of the canaries. Any "
        "exposure of the canaries there is not memory; it must stay at chance.",
    )
    yield (
        "The verdict",
        "PASS: the interval of the mean exposure at the last lag is within the limit for every "
        "attacker that was computed, the canaries were exposed at some lag, no more of them are "
        "beyond the references than chance explains, and the models learnt to recognise speech. "
        "FAIL: the interval lies above the limit. INCONCLUSIVE: the evidence supports neither.",
    )
