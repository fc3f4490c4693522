"""The page of an audit with two sets of records."""

from __future__ import annotations

import math
from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Bar,
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
from remnant.report.charts.shapes import Chart, Dot, Dots, Rule
from remnant.report.numerals import bits_text, count_text, counted, percent, power_text, pvalue_text
from remnant.studies.beside.membership import beside
from remnant.studies.membership.result import (
    AS_A_FIELD,
    Attacks,
    Blind,
    Control,
    JudgedSuccess,
    MembershipResult,
    Risks,
    RowCounts,
    Verbatim,
)
from remnant.studies.shared.estimates import Estimate, estimate_cell, estimate_text, rate_cell
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section
from remnant.studies.shared.result_parts import ClassifierTask, Gate, LanguageTask

TITLE = "Training records against held-out records"
TITLES = {
    "PASS": "Training records stay under the limit",
    "FAIL": "Training records can be recognised",
    "INCONCLUSIVE": "This audit decides nothing",
}
ADVICE = {
    "PASS": "No action is needed for records like these. Audit again when the data, the model or "
    "the training changes.",
    "FAIL": "Do not release this model as it is. Remove duplicates and secrets from the training "
    "data (remnant scan FILES --redact DIR writes a copy without the secrets that it finds), train "
    "for fewer epochs or with differential privacy, and audit again. docs/explanation/defences.md "
    "compares remedies and what they cost.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Do what the sentence above asks for, and audit "
    "again.",
}
_TERMS: tuple[tuple[str, str], ...] = (
    (
        "AUC",
        "The probability that a seen record scores higher than an unseen one. 0.5 is chance, 1 is "
        "certain recognition.",
    ),
    (
        "Blind baseline",
        "A classifier that is trained on the records themselves and sees no model. If it "
        "distinguishes seen from unseen, or is wrong more often than chance, the two sets are no "
        "random split of one source, and the audit is void.",
    ),
    (
        "Reference model",
        "A model that never saw the records, such as the one that the training started from. Text "
        "that is likely in both models is ordinary text; text that is likely in the audited model "
        "only was learnt in training.",
    ),
    (
        "Verbatim",
        "The model is given the first tokens of a window and everything before it. Greedy decoding "
        "takes the likeliest token each time; sampling draws tokens at temperature 1.",
    ),
    (
        "Positive control",
        "Records that a copy of the model was trained on for certain. The same attack has to find "
        "them, or an attack that finds nothing proves nothing.",
    ),
)


def page(result: MembershipResult, run: RunFacts | None = None) -> Iterator[Block]:
    """Yield the page of a result; ``run`` is None for what a command prints without a record."""
    limit = result.verdict.limit if isinstance(result.verdict, Gate) else None
    yield headline(
        result.verdict,
        TITLES,
        checks=beside(result),
        reading=_reading(result.judged, result.rows, limit),
        advice=ADVICE,
    )
    yield Tiles(tuple(_tiles(result)))
    yield section("How well each attack does", _attacks(result.attacks, result.judged, limit))
    yield section("What comes out verbatim", _verbatim(result.verbatim))
    yield section("Records at the highest risk", _risks(result.risks))
    yield section("Controls", _controls(result), part="method")
    yield section("How it was measured", _method(result), part="method")
    yield scope_section(result.scope)
    yield section("How to read this", [Terms(_TERMS)])
    if run is not None:
        yield from closing(run, ledger=False)


def _reading(
    judged: JudgedSuccess | Absent, rows: RowCounts | Absent, limit: float | None
) -> Reading | None:
    if isinstance(judged, Absent) or isinstance(rows, Absent):
        return None
    return Reading(
        name=judged.success.upper() if judged.success in ("auc", "tpr") else judged.success,
        value=judged.estimate.value,
        low=judged.estimate.low,
        high=judged.estimate.high,
        limit=limit,
        lowest=0.0 if judged.success == "tpr" else min(0.5, judged.estimate.low),
        highest=1.0,
        show=lambda value: f"{value:.3f}",
        n=f"{count_text(rows.seen)} seen, {count_text(rows.unseen)} unseen records",
    )


def _tiles(result: MembershipResult) -> Iterator[Tile]:
    if isinstance(result.attacks, Attacks):
        named = result.attacks.named
        yield Tile(f"AUC of {named.name}", f"{named.auc.value:.3f}", _ends(named.auc))
    if isinstance(result.blind, Blind):
        yield Tile(
            "Blind AUC",
            f"{result.blind.auc.value:.3f}",
            "the sets are no random split" if result.blind.void else "no model was used",
        )
    if isinstance(result.verbatim, Verbatim):
        out = [row for row in result.verbatim.rows if row.side == "seen" and row.rows]
        if out:
            first = out[0]
            count = first.greedy if first.beyond is None else first.beyond
            yield Tile(
                "Verbatim",
                f"{count_text(count)} of {count_text(first.rows)}",
                f"seen records, {first.half} tokens after {first.half}",
                "harm" if count else "",
            )
    if isinstance(result.risks, Risks) and isinstance(result.rows, RowCounts):
        yield Tile(
            "Above all held-out records",
            f"{count_text(result.risks.beyond)} of {count_text(result.rows.seen)}",
            "seen records",
        )


def _ends(estimate: Estimate) -> str:
    return f"{estimate.low:.3f} to {estimate.high:.3f}"


def _attacks(
    attacks: Attacks | Absent, judged: JudgedSuccess | Absent, limit: float | None
) -> Iterator[Block]:
    if isinstance(attacks, Absent):
        yield Missing("Attacks", attacks.reason)
        return
    on_auc = not isinstance(judged, Absent) and judged.success == "auc"
    if len(attacks.rows) > 1:
        yield prose(
            f"The attack {attacks.named.name!r} was named before the run. The others are shown "
            "beside it, with p-values corrected for their number."
        )
    yield Figure(_chart(attacks, limit if on_auc else None), "attacks")
    yield Table(
        caption="Attacks",
        key="attacks",
        rows=attacks.rows,
        columns=(
            Column("Attack", lambda row: row.name + " (named)" * row.named),
            Column("AUC", "auc", estimate_cell, strong=True),
            Column(f"TPR at FPR {attacks.fpr:g}", "tpr", rate_cell, optional=True),
            Column("p", "adjusted", pvalue_text),
            Column("Score", "description", depth="page"),
        ),
        bar=Bar(
            value="auc.value",
            low="auc.low",
            high="auc.high",
            show=lambda value: f"{value:.2f}",
            mark=("chance", 0.5),
        ),
        depth="show",
        note=f"Intervals at {percent(attacks.confidence, 0)}. p: one-sided rank-sum test; the "
        "attacks that were not named are corrected by Holm.",
    )


def _chart(attacks: Attacks, limit: float | None) -> Chart:
    dots = tuple(
        Dot(
            x=float(place),
            y=row.auc.value,
            tip=f"{row.name}: {estimate_text(row.auc)}",
            low=row.auc.low,
            high=row.auc.high,
        )
        for place, row in enumerate(attacks.rows, start=1)
    )
    rules = [Rule("chance", "chance", 0.5)]
    if limit is not None:
        rules.append(Rule("limit", "limit", limit))
    named = ", ".join(f"{i} {row.name}" for i, row in enumerate(attacks.rows, start=1))
    return Chart(
        title="AUC of each attack",
        description="; ".join(dot.tip for dot in dots),
        x_label=f"Attack: {named}",
        y_label="AUC",
        y_from=0.5,
        x_word="attack",
        x_form="number",
        x_digits=0,
        x_ticks=tuple(dot.x for dot in dots),
        rules=tuple(rules),
        dots=(Dots("AUC with its interval", "main", dots),),
    )


def _verbatim(verbatim: Verbatim | Absent) -> Iterator[Block]:
    if isinstance(verbatim, Absent):
        yield Missing("What comes out verbatim", verbatim.reason)
        return
    yield prose(
        "Each record is cut into windows. The model is given the first half of a window and "
        "everything before it, and has to give back the second half. A record counts as sampled if "
        f"{counted(verbatim.samples, 'sample')} give a second half back with a probability of at "
        f"least {percent(verbatim.probability, 0)}."
    )
    yield Table(
        caption="Records of which a part comes out verbatim",
        key="verbatim",
        rows=verbatim.rows,
        columns=(
            Column("Tokens", lambda row: f"{row.half} + {row.half}"),
            Column("Records", "side"),
            Column("Tested", "rows", count_text),
            Column("Greedy", "greedy", count_text),
            Column("Sampled", "sampled", count_text),
            Column("Reference: greedy", "reference_greedy", count_text, optional=True),
            Column("Reference: sampled", "reference_sampled", count_text, optional=True),
            Column("Not of the reference", "beyond", count_text, strong=True, optional=True),
            Column("Likeliest part", "likeliest", _probability),
        ),
        depth="show",
    )
    if verbatim.tests:
        yield Table(
            caption="Seen against held-out records",
            key="verbatim-tests",
            rows=verbatim.tests,
            columns=(
                Column("Tokens", lambda row: f"{row.half} + {row.half}"),
                Column("Seen", "seen_share", rate_cell, strong=True),
                Column("Held out", "unseen_share", rate_cell),
                Column("p", verbatim.corrected, pvalue_text),
            ),
            depth="show",
            note="Fisher’s exact test, one-sided, corrected for the number of rows. Text that "
            "comes out of held-out records or of the reference model too is likely text, not "
            "memorised text.",
        )


def _probability(log_probability: float) -> str:
    if log_probability > -700.0:
        return power_text(math.exp(log_probability))
    return f"10^{log_probability / math.log(10.0):.0f}"


def _risks(risks: Risks | Absent) -> Iterator[Block]:
    if isinstance(risks, Absent):
        yield Missing("Records at the highest risk", risks.reason)
        return
    yield Table(
        caption="Seen records with the highest scores",
        key="risks",
        rows=risks.rows,
        columns=(
            Column("Row", "row", count_text),
            Column("Score", "score", lambda score: f"{score:.4g}"),
            Column("Held-out records above", "above", percent),
            Column(
                "Verbatim", "verbatim", lambda flag: "comes out" if flag else "no", optional=True
            ),
        ),
        depth="page",
        note="Rows of the file or list of seen records, counted from 1. No text is shown.",
    )


def _controls(result: MembershipResult) -> Iterator[Block]:
    blind, control, task = result.blind, result.control, result.task
    if isinstance(blind, Absent):
        yield Missing("Blind baseline", blind.reason)
    else:
        yield prose(
            f"Blind baseline: AUC {estimate_text(blind.auc)} on {count_text(blind.seen)} seen and "
            f"{count_text(blind.unseen)} unseen records, without any model. The audit is void if "
            f"0.5 is outside its 99 % bounds, {blind.low_bound:.3f} and {blind.high_bound:.3f}.",
            tone="notice" if blind.void else "plain",
            depth="show",
        )
    if isinstance(control, Control):
        sentence = control.sentence[0].upper() + control.sentence[1:]
        yield prose(sentence, tone="plain" if control.found else "notice", depth="show")
    else:
        yield Missing("Positive control", control.reason)
    if isinstance(task, LanguageTask) and task.uniform_bits is not None:
        yield prose(
            f"The model needs {bits_text(task.validation_bits)} a token on held-out records; "
            f"guessing by the tokens’ frequencies needs {bits_text(task.uniform_bits)}."
        )
    if isinstance(task, ClassifierTask):
        majority = "" if task.majority is None else f" (commonest class: {percent(task.majority)})"
        yield prose(f"Accuracy on held-out records: {percent(task.test_accuracy)}{majority}.")


def _method(result: MembershipResult) -> Iterator[Block]:
    rows = result.rows
    if isinstance(rows, Absent):
        yield Missing("Records", rows.reason)
        return
    left_out = [
        f"{counted(number, 'record')} {why}"
        for number, why in (
            (rows.shared, "in both sets, left out of both"),
            (rows.repeated_seen, "repeated among the seen ones, left out"),
            (rows.repeated_unseen, "repeated among the unseen ones, left out"),
            (rows.short, "too short to be scored, left out"),
            (rows.cut, "longer than the model reads, scored up to that length"),
        )
        if number
    ]
    tokens = "" if rows.tokens is None else f", {counted(rows.tokens, 'token')}"
    yield prose(
        f"{count_text(rows.seen)} seen and {count_text(rows.unseen)} unseen records were "
        f"scored{tokens}. {'; '.join(left_out)}{'.' * bool(left_out)}",
        depth="show",
    )
    if rows.refused:
        for refused in rows.refused:
            said = f"{refused.clause[0].upper()}{refused.clause[1:]}; they are left out."
            yield prose(f"{said} {AS_A_FIELD}", tone="notice", depth="show")
    if not isinstance(result.attacks, Absent) and result.attacks.arithmetic:
        yield prose(result.attacks.arithmetic, depth="show")
