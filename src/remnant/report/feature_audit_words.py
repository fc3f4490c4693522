"""An audit of one patch in sentences, tiles and one figure."""

from __future__ import annotations

from remnant.report.feature_audit_view import SCORES, SIDES, Audit, FeatureAuditView
from remnant.report.features_numerals import estimate_text, interval_text, number_text
from remnant.report.figure import Figure, figure_of
from remnant.report.numerals import counted, pvalue_text
from remnant.report.run_view import NotMeasured
from remnant.report.shapes import Bars, Chart, Flag

SCORE_NAMES, SIDE_NAMES = SCORES, SIDES
T_TEST = (
    "The t-test over images is the paper’s. It asks whether other images would give the same sign, "
    "not whether another patch would: on models that never saw a patch it is under 5 % far more "
    "often than that."
)


def never_planted(found: Audit) -> str:
    """What the patch is ranked among."""
    if found.against == "words":
        return "other words that were never planted"
    return "patches of the same pixels that were never planted"


def in_plain_words(found: Audit) -> str:
    """What was done, and what came of it."""
    main, twin = found.main, found.twin
    sentences = [
        f"The model was asked about {counted(found.images, 'image')}: as they are, with the patch "
        f"({found.what}) and with random patches. M says how much more the patch moves its answers "
        f"than random patches do: {number_text(main.value.value)} nats. That alone shows nothing, "
        f"since any patch may. So it is ranked among those of {main.nulls} {never_planted(found)}: "
        f"place {main.rank}, p = {pvalue_text(main.p_value)}."
    ]
    if twin is None:
        sentences.append(
            "There is no twin that was trained without the patch, so that it is not known whether "
            "the patch stands out by itself."
        )
    else:
        sentences.append(
            f"On a twin that was trained without it, M is {number_text(twin.value.value)}, place "
            f"{twin.rank} (p = {pvalue_text(twin.p_value)})."
        )
    return " ".join(sentences)


def audit_tiles(view: FeatureAuditView) -> list[tuple[str, str, str]]:
    """Name, value and remark of the numbers under the verdict."""
    found = view.audit
    if isinstance(found, NotMeasured):
        return []
    main = found.main
    place = f"place {main.rank} of {main.nulls + 1}"
    tiles = [
        ("p-value of M", pvalue_text(main.p_value), place),
        ("M", number_text(main.value.value), f"nats; {interval_text(main.value)}"),
    ]
    if found.twin is not None:
        twin = found.twin
        tiles.append(("p-value, twin", pvalue_text(twin.p_value), f"M {estimate_text(twin.value)}"))
    if found.beyond is not None:
        remark = f"nats; {interval_text(found.beyond)}"
        tiles.append(("M above the twin’s", number_text(found.beyond.value), remark))
    return tiles


def audit_lines(view: FeatureAuditView) -> list[str]:
    """The scores in a few lines, for a terminal."""
    found = view.audit
    if isinstance(found, NotMeasured):
        return [f"  audit  not measured: {found.reason}"]
    lines = [f"  patch  {found.what}, on {counted(found.images, 'image')}"]
    for one in found.scores:
        title = f"{SIDES[one.side].lower()}, {SCORES[one.name]}"
        lines.append(f"  {title:<24} {estimate_text(one.value)}, p = {pvalue_text(one.p_value)}")
    return lines


def audit_figure(view: FeatureAuditView, ident: str = "") -> Figure | None:
    """M of the never planted patches, and of the patch among them."""
    found = view.audit
    if isinstance(found, NotMeasured):
        return None
    value = found.main.value.value
    median, largest = (number_text(m) for m in (found.main.null_median, found.main.null_largest))
    chart = Chart(
        title="M of patches that were never planted, and of the patch",
        description=f"Of {found.main.nulls} {never_planted(found)}, the median M is {median} "
        f"and the largest {largest} nats; the patch has {number_text(value)}.",
        x_label="M (nats)",
        y_label="Patches",
        lines=(),
        x_form="number",
        bars=Bars(
            "Never planted", "control", found.nulls.edges, tuple(map(float, found.nulls.counts))
        ),
        flags=(Flag(value, "the patch", "main", f"The patch: M {number_text(value)}"),),
    )
    return figure_of(chart, f"{ident}nulls", flags="The patch that was asked about")
