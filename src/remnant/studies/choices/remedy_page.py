"""The page about defences: which remedy holds the limit, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Column,
    Figure,
    Missing,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.numerals import (
    bits_number,
    bits_text,
    count_text,
    counted,
    pvalue_text,
    short_percent,
)
from remnant.studies.beside.choices import of_defences
from remnant.studies.choices.charts import remedies_front_chart
from remnant.studies.choices.formats import (
    interval_bits,
    interval_number,
    share_text,
    signed_text,
)
from remnant.studies.choices.result import Defences, DefencesResult, Interval, MeasuredRemedy
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section, task_sentence

TITLE = "Defences"
_TITLES = {
    "PASS": "A remedy holds the limit",
    "FAIL": "No remedy holds the limit",
    "INCONCLUSIVE": "Not enough evidence for a remedy",
}
_ADVICE = {
    "PASS": "Train with the remedy, then measure your own model: another text, model or secret may "
    "behave differently.",
    "FAIL": "Try stronger remedies: remove the secrets from the data, or train with differential "
    "privacy.",
    "INCONCLUSIVE": "Change what the sentence names (more trials, more text, canaries planted more "
    "often) and run the recipe again in a new folder.",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """A remedy, its number on the page, and how long it takes.

    Attributes:
        time: Training time as a multiple of that of doing nothing; None where it was not measured.
    """

    number: int
    remedy: MeasuredRemedy
    time: float | None


def page(result: DefencesResult, run: RunFacts) -> Iterator[Block]:
    """Yield the blocks of the page."""
    defences = result.defences
    reading = None if isinstance(defences, Absent) else _reading(result, defences)
    yield headline(
        result.verdict, _TITLES, checks=of_defences(result), reading=reading, advice=_ADVICE
    )
    if not isinstance(defences, Absent):
        yield Tiles(tuple(_tiles(defences)))
    yield section("In plain words", _plain_words(result))
    if isinstance(defences, Absent):
        missing = Missing("Remedies", defences.reason, depth="summary")
        yield section("Remedies", [missing])
    else:
        yield section(defences.title, _remedies(defences, run))
        if any(remedy.relearnt for remedy in defences.remedies):
            yield section("Gone or hidden?", _relearnt(defences))
        if any(remedy.privacy for remedy in defences.remedies):
            yield section("Differential privacy", _privacy(defences))
        yield section("How it was measured", [prose(_method_sentence(defences))], part="method")
    yield scope_section(result.scope)
    yield section("How to read this", [_TERMS])
    yield from closing(run)


def _reading(result: DefencesResult, defences: Defences) -> Reading:
    """The cheapest remedy that holds the limit, or doing nothing."""
    cheapest = None if isinstance(result.verdict, Absent) else result.verdict.cheapest
    shown = next((row for row in defences.tried if row.label == cheapest), defences.nothing)
    value, low, high = shown.exposure
    return Reading(
        name=f"Mean exposure, “{shown.label}”",
        value=value,
        low=low,
        high=high,
        limit=defences.limit,
        lowest=0.0,
        highest=defences.space_bits,
        show=bits_text,
        n=f"{counted(defences.trials, 'seed')} a remedy",
    )


def _tiles(defences: Defences) -> Iterator[Tile]:
    nothing = defences.nothing
    yield Tile("Doing nothing", interval_bits(nothing.mean_exposure), "mean exposure")
    many = counted(len(defences.tried), "remedy", "remedies")
    for name, status in (("Hold the limit", "holds"), ("Fail", "fails")):
        count = sum(remedy.status == status for remedy in defences.tried)
        yield Tile(name, count_text(count), f"of {many}")
    if defences.trials >= defences.trials_needed:
        like = sum(remedy.like_nothing and remedy.status != "holds" for remedy in defences.tried)
        yield Tile(
            "Not distinguished from nothing", count_text(like), f"of {many}, by mean exposure"
        )
    chance = f"of {bits_text(defences.space_bits)} possible"
    yield Tile("Limit", bits_text(defences.limit), chance)


def _plain_words(result: DefencesResult) -> Iterator[Block]:
    defences = result.defences
    if isinstance(defences, Absent):
        yield prose(f"Exposure was not measured: {defences.reason}.", tone="lead")
    else:
        yield prose(_what_was_done(defences), tone="lead")
        yield prose(_what_was_found(defences), tone="lead", depth="summary")
    yield prose(task_sentence(result.task), tone="lead")


def _what_was_done(defences: Defences) -> str:
    return (
        "Language models were trained on text with made-up secrets in it: as planned, and with "
        f"each of {counted(len(defences.tried), 'remedy', 'remedies')}, with "
        f"{counted(defences.trials, 'seed')} each. Exposure is a planted secret’s rank in the "
        "model’s own ranking of all possible secrets, in bits: each bit halves the guesses that an "
        f"attacker needs. A secret that nobody planted has {bits_text(defences.null_mean_bits)} on "
        "average. Usefulness is what held-out text costs the model, in bits "
        f"a {defences.token}: fewer are better."
    )


def _what_was_found(defences: Defences) -> str:
    """Which remedies hold, which change nothing, and which are useless or undecided."""
    sentences = []
    for words, chosen in (
        ("Hold the limit", [row for row in defences.tried if row.status == "holds"]),
        (
            "Not distinguished from doing nothing by mean exposure",
            [
                row
                for row in defences.tried
                if row.like_nothing
                and row.status == "fails"
                and defences.trials >= defences.trials_needed
            ],
        ),
        (
            "Useless models, which count as no remedy",
            [row for row in defences.tried if row.status == "useless model"],
        ),
        ("Undecided", [row for row in defences.tried if row.status == "not shown"]),
    ):
        if chosen:
            sentences.append(f"{words}: {', '.join(f'“{row.label}”' for row in chosen)}.")
    if not any(row.status == "holds" for row in defences.tried):
        sentences.insert(0, "No remedy holds the limit.")
    if defences.trials < defences.trials_needed:
        sentences.append(
            f"{counted(defences.trials, 'seed')} cannot show which of "
            f"{counted(len(defences.tried), 'remedy', 'remedies')} differ from doing nothing in "
            f"mean exposure: that takes {defences.trials_needed}."
        )
    return " ".join(sentences)


def _remedies(defences: Defences, run: RunFacts) -> Iterator[Block]:
    if len(defences.remedies) > 1:
        yield Figure(remedies_front_chart(defences), key="front")
    rows = [
        _Row(number, remedy, _time(remedy, defences.nothing, run.execution))
        for number, remedy in enumerate(defences.remedies, start=1)
    ]
    sure = f"{short_percent(defences.confidence)} intervals" if defences.trials > 1 else "one seed"
    yield Table(
        caption=f"Every remedy, in bits ({sure})",
        key="remedies",
        note="Cost and difference are from doing nothing, seed by seed; their intervals and "
        "p‑values are corrected for the number of remedies. Numbers are those of the chart.",
        rows=rows,
        columns=_columns(defences),
        depth="summary",
    )
    yield Table(
        caption=f"Further numbers of every remedy ({sure})",
        key="remedies-numbers",
        rows=rows,
        columns=_further_columns(defences),
        depth="page",
    )
    yield Table(
        caption="Why each remedy holds the limit or not",
        key="reasons",
        rows=[row for row in rows if row.remedy.reason],
        columns=(
            Column("Remedy", lambda row: f"{row.number}. {row.remedy.label}"),
            Column("Result", lambda row: row.remedy.status),
            Column("Why", lambda row: row.remedy.reason),
        ),
        depth="show",
    )


def _columns(defences: Defences) -> tuple[Column, ...]:
    def cost(row: _Row) -> Interval | None:
        return None if row.remedy.cost is None else row.remedy.cost.interval

    return (
        Column("Remedy", lambda row: f"{row.number}. {row.remedy.label}"),
        Column("Result", lambda row: row.remedy.status, strong=True),
        Column("Exposure", lambda row: row.remedy.mean_exposure, interval_number, strong=True),
        Column(f"Cost, bits a {defences.token}", cost, _cost_text),
        Column("Time", "time", _time_text),
        Column(
            "Epsilon",
            lambda row: row.remedy.privacy and row.remedy.privacy.epsilon,
            _epsilon_text,
            optional=True,
        ),
        Column(
            "p‑value",
            lambda row: row.remedy.exposure_change and row.remedy.exposure_change.adjusted_p_value,
            pvalue_text,
            depth="show",
        ),
    )


def _further_columns(defences: Defences) -> tuple[Column, ...]:
    def change(row: _Row) -> Interval | None:
        own = row.remedy.exposure_change
        return None if own is None else own.interval

    return (
        Column("Remedy", lambda row: f"{row.number}. {row.remedy.label}"),
        Column(
            f"Bits a {defences.token}, held-out",
            lambda row: row.remedy.validation,
            interval_number,
        ),
        Column(
            "Ranked first",
            lambda row: row.remedy.ranked_first and Interval(*row.remedy.ranked_first),
            share_text,
            optional=True,
        ),
        Column(
            "Controls",
            lambda row: row.remedy.controls and Interval(*row.remedy.controls),
            interval_number,
            optional=True,
        ),
        Column("Difference of exposure", change, signed_text),
        Column("Kind", lambda row: row.remedy.kind or None),
        Column("Models", lambda row: row.remedy.models, count_text),
        Column("Steps", lambda row: row.remedy.steps, count_text),
    )


def _time(
    remedy: MeasuredRemedy, nothing: MeasuredRemedy, execution: Mapping[str, Any]
) -> float | None:
    base = execution.get(f"{nothing.name}.seconds")
    after = execution.get(f"{remedy.name}.seconds_after", 0.0)
    own = execution.get(f"{remedy.name}.seconds", base if after else None)
    if not isinstance(base, float) or not isinstance(own, float) or base <= 0:
        return None
    return (own + float(after)) / base


def _relearnt(defences: Defences) -> Iterator[Block]:
    yield prose(
        "A secret that is no longer exposed may only be hidden. After these remedies the models "
        "were trained on clean text for a few more steps, in which the secret does not occur, and "
        "measured again. Where exposure rises, the secret was hidden, not gone. The limit applies "
        "to both measurements."
    )
    yield Table(
        caption="Mean exposure in bits before the remedy, after it, and after relearning",
        key="relearnt",
        rows=[remedy for remedy in defences.tried if remedy.relearnt is not None],
        columns=(
            Column("Remedy", "label"),
            Column("Before", lambda _: defences.nothing.mean_exposure, interval_number),
            Column("After", "mean_exposure", interval_number, strong=True),
            Column(
                "After relearning",
                lambda remedy: remedy.relearnt and Interval(*remedy.relearnt),
                interval_number,
                strong=True,
            ),
            Column("Steps", lambda remedy: remedy.settings.get("relearn"), count_text),
        ),
        depth="show",
    )


def _privacy(defences: Defences) -> Iterator[Block]:
    yield prose(
        "Epsilon bounds what anyone can learn about one training example from the model, with "
        "probability 1 − delta. It holds for every attack and every example, and it is a promise "
        "about one window of text: a secret that is planted in r windows has up to r times the "
        "epsilon. A small measured exposure beside a large epsilon shows that this attack failed, "
        "not that every attack would."
    )
    yield Table(
        caption="What private training promises, and the exposure that was measured",
        key="privacy",
        rows=[remedy for remedy in defences.tried if remedy.privacy is not None],
        columns=(
            Column("Remedy", "label"),
            Column("Epsilon", lambda remedy: _promise(remedy)),
            Column("Exposure", "mean_exposure", interval_number, strong=True),
            Column("Noise", lambda remedy: remedy.settings.get("noise")),
            Column("Clip", lambda remedy: remedy.settings.get("clip")),
        ),
        depth="show",
    )


def _promise(remedy: MeasuredRemedy) -> str:
    privacy = remedy.privacy
    if privacy is None or privacy.epsilon is None:
        return f"no epsilon: {privacy.reason if privacy else 'not private'}"
    return f"{_epsilon_text(privacy.epsilon)} at delta {privacy.delta:g}"


def _epsilon_text(epsilon: float) -> str:
    return f"{epsilon:.3g}"


def _time_text(time: float) -> str:
    return f"{time:.2f}×"


def _cost_text(cost: Interval) -> str:
    """A difference of validation bits with three decimals."""
    return signed_text(cost, digits=3)


def _method_sentence(defences: Defences) -> str:
    exact = sum(remedy.exact for remedy in defences.remedies)
    every = sum(len(remedy.each) for remedy in defences.remedies)
    sentences = [
        f"{count_text(exact)} of {counted(every, 'exposure')} are exact ranks in the whole space; "
        "the others were sampled."
        if exact < every
        else "Every exposure is exact: the rank in the whole space."
    ]
    saturated = sum(remedy.saturated for remedy in defences.remedies)
    if saturated:
        sentences.append(f"{counted(saturated, 'exposure')} are lower bounds.")
    sentences.append(
        f"A token of held-out text costs {bits_number(defences.unigram_bits)} bits by its "
        "frequency alone; models that gain less than a tenth of what the training as planned gains "
        "over this are called useless. Time is that of the "
        "training steps of one model, measured in this run; remedies that were trained together "
        "share it."
    )
    return " ".join(sentences)


_TERMS = Terms(
    (
        (
            "Holds",
            "No canary of any training reaches the limit, significantly fewer than without the "
            "remedy (Fisher’s exact test, corrected for the number of remedies), and the models "
            "are of use.",
        ),
        (
            "Fails, not shown",
            "Fails: a canary reaches the limit. Not shown: it may, or so few trainings reach it "
            "without the remedy that their absence may be chance.",
        ),
        (
            "Useless model",
            "A model that predicts held-out text no better than the frequencies of its tokens "
            "exposes nothing because it learnt nothing. A remedy counts only if its models are "
            "shown to gain a tenth of what the training as planned gains over the frequencies.",
        ),
        (
            "Cost",
            "How many more bits a token of held-out text costs than without the remedy, seed by "
            "seed. A negative cost is a better model.",
        ),
        (
            "Not distinguished from nothing",
            "Neither more nor fewer seeds than by chance are less exposed than without the remedy "
            "(sign test, corrected for the number of remedies). This is no proof that the remedy "
            "does nothing.",
        ),
    )
)
