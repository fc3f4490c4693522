"""The page of an audit of one model for one patch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.records.typed import Absent
from remnant.report.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Missing,
    Page,
    Reading,
    Table,
    Terms,
    Tile,
    Tiles,
    prose,
    section,
)
from remnant.report.charts.shapes import Bars, Chart, Flag
from remnant.report.numerals import counted, p_equals, percent, pvalue_text, short_percent
from remnant.studies.beside.features import of_audit
from remnant.studies.features.audit_result import (
    NULL_VALUES,
    QUESTION,
    Audit,
    FeatureAuditResult,
    PatchControl,
    ScoreRow,
    TaskCheck,
)
from remnant.studies.features.page import picture_blocks
from remnant.studies.features.sentences import (
    estimate_cell,
    estimate_text,
    interval_text,
    number_text,
)
from remnant.studies.shared.pages import RunFacts, closing, headline, scope_section

TITLE = "Audit of a feature"
_TITLES = {
    "PASS": "No evidence of the patch, and M is under the limit",
    "FAIL": "The model reacts to the patch",
    "INCONCLUSIVE": "No evidence that the patch was memorised, and no proof that it was not",
}
_ADVICE = {
    "PASS": "Nothing to do about this patch in this model.",
    "FAIL": "Find the training images that hold the patch, remove them, and train again.",
    "INCONCLUSIVE": "Do what the verdict says, or give more images and a twin (--twin).",
}
_SCORES = {"black_box": "M", "white_box": "White-box M_w", "gain": "Probability gain"}
_BINS = 24


def page(result: FeatureAuditResult, run: RunFacts) -> Iterator[Block]:
    """Yield the page of a result."""
    audit = result.audit
    if isinstance(audit, Absent):
        yield headline(result.verdict, _TITLES, checks=of_audit(result), advice=_ADVICE)
        missing = Missing("The audit", audit.reason, depth="summary")
        yield section("Does the model react to the patch?", [missing])
    else:
        yield headline(
            result.verdict,
            _TITLES,
            checks=of_audit(result),
            reading=_reading(audit),
            advice=_ADVICE,
        )
        yield _tiles(audit)
        yield section("In plain words", _in_plain_words(audit))
        yield section("Does the model react to the patch?", _scores(audit, run))
        strips = picture_blocks(audit.pictures or (), run, part="audit")
        if strips:
            yield section("What the model was tested on", [strip for _, strip in strips])
        if audit.task is not None:
            yield section("Did the model learn its task?", [prose(task_sentence(audit.task))])
        if audit.patch_control is not None:
            yield section("Could the patch be found?", _control(audit, audit.patch_control))
    yield scope_section(result.scope, depth="summary")
    if not isinstance(audit, Absent):
        yield section("How to read this", [_terms(audit)])
    yield from closing(run, ledger=False)


def unrecorded_page(result: FeatureAuditResult, arrays: Mapping[str, NDArray[Any]]) -> Page:
    """Return the page of an audit that has no record; it shows no pictures."""
    run = RunFacts(
        name="",
        question=QUESTION,
        complete=True,
        fingerprint="",
        plan={},
        recipe={},
        ledger=(),
        groups=(),
        array=arrays.__getitem__,
    )
    return Page(
        title=TITLE,
        question=QUESTION,
        name="",
        fingerprint="",
        complete=True,
        blocks=tuple(page(result, run)),
    )


def _reading(audit: Audit) -> Reading:
    m, limit = audit.main.value, audit.limit
    ends = [0.0, m.low, m.high, audit.main.null_largest, *([] if limit is None else [limit])]
    return Reading(
        name="M",
        value=m.value,
        low=m.low,
        high=m.high,
        limit=limit,
        lowest=min(ends),
        highest=max(ends),
        show=lambda value: f"{number_text(value)} nats",
        n=f"{counted(audit.images, 'image')}, {counted(audit.main.nulls, 'patch', 'patches')} "
        "never planted, one model",
    )


def _tiles(audit: Audit) -> Tiles:
    m, twin, beyond = audit.main, audit.twin, audit.beyond_twin
    tiles = [
        Tile("p-value of M", pvalue_text(m.p_value), f"place {m.place}"),
        Tile("M", number_text(m.value.value), f"nats; {interval_text(m.value)}"),
    ]
    if twin is not None:
        remark = f"M {estimate_text(twin.black_box.value)}"
        tiles.append(Tile("p-value, twin", pvalue_text(twin.black_box.p_value), remark))
    if beyond is not None:
        remark = f"nats; {interval_text(beyond)}; any two trainings differ"
        tiles.append(Tile("M above the twin’s", number_text(beyond.value), remark))
    return Tiles(tuple(tiles))


def _in_plain_words(audit: Audit) -> Iterator[Block]:
    yield prose(
        f"The patch is {audit.patch.what}. The model was tested on "
        f"{counted(audit.images, 'image')}.",
        tone="lead",
        depth="summary",
    )
    yield prose(rank_sentence(audit), tone="lead")
    yield prose(twin_sentence(audit), tone="lead")


def rank_sentence(audit: Audit) -> str:
    """What M is, and its rank."""
    m = audit.main
    return (
        "Each image was given as it is, with the patch and with random patches. M is how much more "
        "the patch changes the model’s answers than random patches do: "
        f"{number_text(m.value.value)} nats. Any patch can do that, so M is ranked among those of "
        f"{m.nulls} {audit.never_planted}: place {m.rank}, {p_equals(m.p_value)}."
    )


def twin_sentence(audit: Audit) -> str:
    """M of the twin, or what is not known without one."""
    if audit.twin is None:
        return (
            "There is no twin that was trained without the patch, so it is not known whether a "
            "model that never saw the patch reacts to it too."
        )
    m = audit.twin.black_box
    return (
        f"On a twin that was trained without the patch, M is {number_text(m.value.value)}, place "
        f"{m.rank} ({p_equals(m.p_value)})."
    )


def task_sentence(task: TaskCheck) -> str:
    """Whether the model learnt its task, which a PASS needs."""
    learnt = "This is evidence" if task.learnt else "This is no evidence"
    return (
        f"The model names the label of {task.right} of {counted(task.images, 'labelled image')} "
        f"(lower bound {percent(task.low)}); the commonest label would give "
        f"{percent(task.majority)}. {learnt} that it learnt its task "
        f"({p_equals(task.p_value)})."
    )


def _control(audit: Audit, control: PatchControl) -> Iterator[Block]:
    yield prose(control.reason or control.claim)
    if control.variants:
        yield Table(
            caption="Variants of the patch, tested on the model",
            key="variants",
            rows=control.variants,
            columns=(
                Column("The patch", "name"),
                Column("M (nats)", "value", number_text),
                Column("p", "p_value", pvalue_text),
                Column("Found", lambda row: "yes" if row.contrary else "no"),
            ),
            note=f"A variant is found where p is at most {audit.significance:g} after Holm’s "
            "correction, or without it where M is not under the limit.",
        )


def _scores(audit: Audit, run: RunFacts) -> Iterator[Block]:
    yield Figure(
        nulls_chart(audit, run.array(NULL_VALUES.format("model"))),
        "nulls",
        "Each of these patches was put onto the same images; none was planted.",
        flags="The patch that was tested",
    )
    yield Table(
        caption=f"Scores, with {short_percent(audit.confidence)} intervals over images",
        key="scores",
        rows=audit.scores,
        columns=(
            Column("Score", lambda row: _SCORES[row.name], depth="summary"),
            Column("Of the", "side", depth="summary"),
            _column("Value", "value", estimate_cell, strong=True),
            Column("Carried by", _carried_by, optional=True, depth="summary"),
            _column("p", "p_value", pvalue_text),
            _column("Place", "place"),
            _column("Median", "null_median", number_text, group="Never planted"),
            _column("Largest", "null_largest", number_text, group="Never planted"),
            _column("t-test", "t_test_p_value", pvalue_text),
        ),
        note="M and M_w are in nats, the gain is a probability. Median and largest are scores of "
        "the patches never planted. The t-test is the paper’s: on models that never saw a patch "
        "it is under 5 % far more often than in 5 % of the cases.",
        depth="summary",
    )


def _column(
    name: str, value: str, show: Callable[[Any], str | Cell] = str, **options: Any
) -> Column:
    return Column(name, f"score.{value}", show, depth="summary", **options)


def _carried_by(row: ScoreRow) -> str | None:
    return "few images" if row.score.carried_by_few else None


def nulls_chart(audit: Audit, null_values: NDArray[Any]) -> Chart:
    """M of the patches never planted, and of the patch among them."""
    m = audit.main
    shown, median, largest = map(number_text, (m.value.value, m.null_median, m.null_largest))
    counts, edges = np.histogram(null_values, bins=_BINS)
    return Chart(
        title="M of patches that were never planted, and of the patch",
        description=f"Of {m.nulls} {audit.never_planted}, the median M is {median} and the largest "
        f"{largest} nats; the patch has {shown}.",
        x_label="M (nats)",
        y_label="Patches",
        x_form="number",
        bars=Bars(
            "Never planted", "control", tuple(edges.tolist()), tuple(counts.astype(float).tolist())
        ),
        flags=(Flag(m.value.value, "the patch", "main", f"The patch: M {shown}"),),
    )


def _terms(audit: Audit) -> Terms:
    terms = {
        "M": "The mean Kullback–Leibler divergence of the model’s answer from its answer to the "
        "image without a patch, in nats: of the patch, less that of random patches.",
        "The p-value, and the place": f"M is ranked among {audit.never_planted}; place 1 is the "
        f"highest. A p-value of {audit.significance:g} or less is evidence that the model reacts "
        "to this patch.",
        "The t-test": "The paper’s test over images asks whether other images would give the same "
        "sign, not whether another patch would. On models that never saw a patch it is under 5 % "
        "far more often than in 5 % of the cases.",
    }
    return Terms(tuple(terms.items()))
