"""What a patch's audit found, in words and as JSON; never what the patch says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.cli.counts import aligned, counted
from remnant.cli.nats import nats

if TYPE_CHECKING:
    from remnant.canaries import Patch
    from remnant.cli.feature_audit import FeatureAudit, Scores, Settings
    from remnant.cli.feature_control import TaskControl
    from remnant.cli.feature_look import Look
    from remnant.measures import MScore

T_TEST = (
    "The t-test is shown as the paper's only: on models that never saw a patch it is under 5 % far "
    "more often than that."
)
_NAMES = {
    "black_box": "M, nats",
    "white_box": "white-box M_w, nats",
    "gain": "probability gain",
}


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What there is to tell.

    Attributes:
        found: The audit.
        settings: How the patch was scored.
        patch: The patch.
        what: Kind and size of it in words.
        look: Models and images.
        files: Names of the files that were looked at, by option.
    """

    found: FeatureAudit
    settings: Settings
    patch: Patch
    what: str
    look: Look
    files: dict[str, str]


def tested(told: Told) -> list[str]:
    """Return what was asked, in sentences."""
    settings, images = told.settings, told.look.images
    shape = " x ".join(str(side) for side in images.shape[1:])
    lines = [
        f"{told.what} at row {told.patch.row}, column {told.patch.column}"
        + ("" if told.patch.opacity == 1.0 else f", opacity {told.patch.opacity:g}"),
        f"{counted(len(images), 'image')} of {shape}, any images: each as it is, with the patch, "
        f"with a random patch ({settings.control}), and with {settings.nulls} "
        f"{settings.never_planted}",
        f"the model's answers were taken for {told.look.model.kind}",
    ]
    if told.look.labelled is not None:
        lines.append(
            f"{counted(len(told.look.labelled), 'image')} of label {settings.label}, for the "
            "white-box scores"
        )
    if told.found.task is not None:
        lines.append(
            f"{counted(told.found.task.images, 'labelled image')}, for whether the model learnt "
            f"its task: {told.found.task.right} get their label"
        )
    if told.found.twin is not None:
        lines.append("the same on a twin, said to be trained without the patch")
    return lines


def not_tested(told: Told) -> list[str]:
    """Return what the audit does not tell, in sentences."""
    lines = [
        "whether the patch was in the training data: that the model reacts to it is seen, not why",
        "what another training run of the same recipe would give: intervals are over images, for "
        "this one model",
        "other renderings: another size, place, typeface or contrast of the same text",
    ]
    if told.found.outcome != "FAIL":
        lines.append("that the patch was not memorised: finding nothing is no proof of that")
    if told.found.twin is None:
        lines.append(
            "whether the patch is conspicuous by itself: a twin that was trained without it would "
            "show that (--twin)"
        )
    if told.settings.against == "words":
        lines.append("names against names: random letters are no names, which may look different")
    if told.look.labelled is None:
        lines.append("the class under which it was planted: --label asks about one")
    return lines


def score_fields(score: MScore) -> dict[str, Any]:
    """Return a score as JSON takes it."""
    nulls = score.null_values
    return {
        "value": [score.value, score.low, score.high],
        "confidence": score.confidence,
        "p_value": score.p_value,
        "rank": round(score.p_value * (1 + score.n_nulls)),
        "nulls": score.n_nulls,
        "null_median": float(np.median(nulls)),
        "null_largest": float(nulls.max()),
        "t_test_p_value": score.t_test_p_value,
        "carried_by_few": "few carry the score" in score.method,
        "images": score.n_images,
        "method": score.method,
        "convention": score.convention,
    }


def _scores(scores: Scores) -> dict[str, Any]:
    return {
        name: None if (one := getattr(scores, name)) is None else score_fields(one)
        for name in _NAMES
    }


def _task(task: TaskControl) -> dict[str, Any]:
    return {
        "images": task.images,
        "right": task.right,
        "low": task.low,
        "majority": task.majority,
        "p_value": task.p_value,
        "learnt": not task.reason,
    }


def patch_fields(told: Told) -> dict[str, Any]:
    """Return what may be said of the patch."""
    patch = told.patch
    return {
        "what": told.what,
        "row": patch.row,
        "column": patch.column,
        "height": int(patch.pixels.shape[1]),
        "width": int(patch.pixels.shape[2]),
        "opacity": patch.opacity,
    }


def feature_fields(told: Told, report: Path | None = None) -> dict[str, Any]:
    """Return everything for JSON."""
    found, settings = told.found, told.settings
    beyond = found.beyond
    return {
        "outcome": None,
        "headline": None,
        "advice": None,
        "claim": None,
        **found.row,
        "significance": settings.significance,
        "confidence": settings.confidence,
        "limit": settings.limit,
        "p_values": list(found.p_values),
        "task": None if found.task is None else _task(found.task),
        "patch": patch_fields(told),
        "files": told.files,
        "outputs": told.look.model.kind,
        "images": len(told.look.images),
        "shape": list(told.look.images.shape[1:]),
        "label": settings.label,
        "control": settings.control,
        "against": settings.against,
        "seed": settings.seed,
        "model": _scores(found.model),
        "twin": None if found.twin is None else _scores(found.twin),
        "beyond_twin": None if beyond is None else [beyond.value, beyond.low, beyond.high],
        "tested": tested(told),
        "not_tested": not_tested(told),
        "report": None if report is None else str(report),
    }


def feature_text(told: Told, report: Path | None = None) -> str:
    """Return everything for people, the verdict first."""
    fields = feature_fields(told, report)
    sides = [name for name in ("model", "twin") if fields[name] is not None]
    rows = [["", *sides]]
    for name, title in _NAMES.items():
        if fields["model"][name] is not None:
            rows += _rows(title, [fields[side][name] for side in sides])
    if fields["outcome"] is not None:
        lines = [f"{fields['outcome']}: {fields['sentence']}", f"claim: {fields['claim']}"]
    else:
        lines = [f"FINDING: {fields['headline']}. {fields['sentence']}"]
        lines += [f"what to do: {fields['advice']}"] if fields["advice"] else []
    lines += ["", *fields["tested"], ""]
    lines += aligned(rows, left=set(range(len(rows[0]))))
    if fields["beyond_twin"] is not None:
        lines.append(
            f"M less the twin's, on the same images: {_interval(fields['beyond_twin'])}; any two "
            "trainings differ"
        )
    lines += [T_TEST, "", "This does not tell", *(f"- {one}" for one in fields["not_tested"])]
    if report is not None:
        lines += ["", f"report: {report} (it shows the patch)"]
    return "\n".join(lines)


def _rows(title: str, each: list[dict[str, Any]]) -> list[list[str]]:
    t_tests = ["-" if one["t_test_p_value"] is None else _p(one["t_test_p_value"]) for one in each]
    few = [bool(one["carried_by_few"]) for one in each]
    few = few if any(few) else []
    return [
        [title, *(_interval(one["value"]) for one in each)],
        ["  p-value", *(f"{_p(one['p_value'])}, {_rank(one)}" for one in each)],
        [
            "  never planted",
            *(
                f"median {nats(one['null_median'])}, most {nats(one['null_largest'])}"
                for one in each
            ),
        ],
        ["  t-test of the paper", *t_tests],
        *([] if not few else [["  carried by", *("few images" * one for one in few)]]),
    ]


def _rank(score: dict[str, Any]) -> str:
    return f"place {score['rank']} of {score['nulls'] + 1}"


def _p(value: float) -> str:
    return f"{value:.2g}"


def _interval(given: list[float]) -> str:
    return f"{nats(given[0])} ({nats(given[1])} to {nats(given[2])})"
