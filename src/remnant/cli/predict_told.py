"""A prediction in words, as JSON, and as one row a sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.cli.counts import aligned, counted, grouped
from remnant.cli.predict_look import Look
from remnant.cli.terminal import one_line
from remnant.measures import clopper_pearson, prediction_quality, stopping_point

if TYPE_CHECKING:
    from remnant.measures import PredictionQuality
    from remnant.measures.predicted import PredictedMemorisation

DROP, TPR, CONFIDENCE = 0.95, 0.75, 0.95
SHOWN = 10
# Under this share of samples that are given another class, wrong labels have been learnt as well.
LATE = 0.005
UNKNOWN = (
    "How many of the samples that will be memorised are not on it is unknown without the truth "
    '(--memorised); a recipe with question = "prediction" measures it on shadow models.'
)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The prediction held against the truth.

    Attributes:
        quality: Of the risk.
        missed: Memorised samples that are not on the list.
        low, high: Interval of their share.
        right: Listed samples that were memorised.
        memorised: How many were.
    """

    quality: PredictionQuality
    missed: int
    low: float
    high: float
    right: int
    memorised: int


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What there is to tell.

    Attributes:
        look: At the samples.
        found: The prediction from each layer; the first decides.
        listed: Samples on the list, the riskiest first.
        by, share, top: How the list was made.
        truth: How it stands beside the truth; None where that was not given.
    """

    look: Look
    found: tuple[PredictedMemorisation, ...]
    listed: NDArray[np.int64]
    by: str
    share: float | None
    top: int | None
    truth: Judged | None


def judged(
    found: PredictedMemorisation,
    listed: NDArray[np.int64],
    truth: NDArray[np.bool_],
    by: str,
    seed: int,
) -> Judged:
    """Hold a risk and a list against the truth.

    Raises:
        NotEnoughEvidence: Fewer than four memorised samples, or no other.
    """
    kept = ~found.alone if by == "psmi" else np.ones(found.n, dtype=np.bool_)
    risk = found.psmi.risk if by == "psmi" else found.risk(by)
    quality = prediction_quality(
        risk=risk,
        memorised=truth[kept],
        threshold=0.0 if by == "psmi" else None,
        tpr=TPR,
        confidence=CONFIDENCE,
        rng=np.random.default_rng(seed),
    )
    on_it = np.isin(np.arange(found.n), listed)
    missed, memorised = int(np.sum(truth & ~on_it)), int(truth.sum())
    low, high = clopper_pearson(missed, memorised, confidence=CONFIDENCE)
    right = int(np.sum(truth & on_it))
    return Judged(quality, missed, float(low), float(high), right, memorised)


def sample_rows(told: Told) -> list[dict[str, Any]]:
    """Return one row a sample, in their order; None where there is no number."""
    columns: dict[str, list[Any]] = {"index": list(range(told.found[0].n))}
    columns["label"] = [told.look.name(label) for label in told.look.labels]
    for name, values in (
        ("predicted", told.look.predicted),
        ("loss", told.look.losses),
        ("logit_gap", told.look.logit_gaps),
    ):
        columns[name] = _column(values, told.found[0].n)
    columns["predicted"] = [
        None if one is None else told.look.name(one) for one in columns["predicted"]
    ]
    for number, (found, layer) in enumerate(zip(told.found, told.look.layers, strict=True)):
        end = f":{layer}" if number else ""
        columns[f"psmi{end}"] = _filled(found, found.psmi.values)
        columns[f"psmi_standard_error{end}"] = _filled(found, found.psmi.standard_error)
        far = None if found.mahalanobis is None else found.mahalanobis.distances
        columns[f"mahalanobis{end}"] = _column(far, found.n)
    ranks = np.empty(told.found[0].n, dtype=np.int64)
    ranks[told.found[0].order(told.by)] = np.arange(1, ranks.size + 1)
    columns["rank"] = ranks.tolist()
    columns["listed"] = np.isin(np.arange(ranks.size), told.listed).astype(int).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _column(values: NDArray[Any] | None, n: int) -> list[Any]:
    return [None] * n if values is None else values.tolist()


def _filled(found: PredictedMemorisation, values: NDArray[Any]) -> list[Any]:
    """Values of the samples that have one, None for those that are alone in their class."""
    given = iter(values.tolist())
    return [None if alone else next(given) for alone in found.alone]


def rule(told: Told) -> str:
    """Return how the list was made, in words."""
    name = {"psmi": "PSMI", "loss": "loss", "logit_gap": "logit gap"}.get(told.by, "Mahalanobis")
    if told.share is not None:
        return f"the riskiest {percent(told.share)} by {name}"
    return f"the riskiest {grouped(told.top)} by {name}" if told.top else "PSMI at or under 0"


def stop_fields(told: Told) -> dict[str, Any]:
    """Return whether it was time to look, or why that is not known."""
    now, start = told.look.losses, told.look.start_losses
    if now is None:
        return {"absent": "losses are not known without logits"}
    if start is None:
        return {"absent": "no --start was given", "median_loss": float(np.median(now))}
    first, last = float(np.median(start)), float(np.median(now))
    dropped = float(stopping_point(losses=[first, last], drop=DROP).dropped[1])
    return {
        "start_median_loss": first,
        "median_loss": last,
        "dropped": dropped,
        "drop": DROP,
        "reached": dropped >= DROP - 1e-12,
    }


def warnings(told: Told) -> list[str]:
    """Return what speaks against this look."""
    found = []
    stop = stop_fields(told)
    if stop.get("reached") is False:
        found.append(
            f"too early: the median training loss has dropped by {percent(stop['dropped'])}, and "
            f"the rule asks for {percent(DROP)}. Train on, and look again."
        )
    if told.look.predicted is not None:
        wrong = float(np.mean(told.look.predicted != told.look.labels))
        if wrong < LATE:
            found.append(
                f"late: the model gives {percent(1 - wrong)} of the samples their label, so that "
                "much of what was to be predicted has happened; loss and logit gap say little "
                "now. Take an earlier checkpoint."
            )
    lonely = int(told.found[0].alone.sum())
    if lonely:
        found.append(
            f"{counted(lonely, 'sample')} alone in the class: listed first, without a PSMI."
        )
    return found


def truth_fields(told: Told) -> dict[str, Any]:
    """Return how good the prediction is, or that nobody knows."""
    if told.truth is None:
        return {"absent": "no --memorised was given"}
    found, quality = told.truth, told.truth.quality
    rates = {"auc": quality.auc, "fpr_at_tpr": quality.fpr_at_tpr}
    return {
        "memorised": found.memorised,
        **{name: [rate.value, rate.low, rate.high] for name, rate in rates.items()},
        "tpr": TPR,
        "confidence": CONFIDENCE,
        "missed": found.missed,
        "miss_rate": [found.missed / found.memorised, found.low, found.high],
        "listed_and_memorised": found.right,
    }


def predict_fields(told: Told, out: Path | None) -> dict[str, Any]:
    """Return the summary for JSON."""
    main = told.found[0]
    rows = sample_rows(told)
    correct = told.look.predicted
    return {
        "n": main.n,
        "classes": len(np.unique(told.look.labels)),
        "accuracy": None if correct is None else float(np.mean(correct == told.look.labels)),
        "layers": [
            {
                "layer": layer,
                "features": int(hidden.shape[1]),
                "smi": found.psmi.smi,
                "psmi_at_most_0": int(np.sum(found.psmi.values <= 0.0)),
                "mahalanobis_components": found.mahalanobis.components
                if found.mahalanobis is not None
                else {"absent": found.no_mahalanobis},
            }
            for layer, hidden, found in zip(
                told.look.layers, told.look.hidden, told.found, strict=True
            )
        ],
        "stop": stop_fields(told),
        "by": told.by,
        "rule": rule(told),
        "listed": len(told.listed),
        "share": len(told.listed) / main.n,
        "riskiest": [rows[at] for at in main.order(told.by)[:SHOWN].tolist()],
        "truth": truth_fields(told),
        "miss_rate_unknown": told.truth is None,
        "warnings": warnings(told),
        "out": None if out is None else str(out),
    }


def predict_text(told: Told, out: Path | None) -> str:
    """Return the summary for people."""
    fields = predict_fields(told, out)
    first = f"{counted(fields['n'], 'sample')}, {fields['classes']} classes"
    if fields["accuracy"] is not None:
        first += f"; the model gives {percent(fields['accuracy'])} of them their label"
    lines = [first]
    for one in fields["layers"]:
        lines.append(
            f"{one['layer']}: {counted(one['features'], 'feature')}, SMI {one['smi']:.3f} nats"
        )
    lines.append(_stop_text(fields["stop"]))
    lines += [f"warning, {one}" for one in fields["warnings"]]
    lines.append(
        f"predicted to be memorised: {grouped(fields['listed'])} of {grouped(fields['n'])} "
        f"({percent(fields['share'])}): {fields['rule']}"
    )
    shown = fields["riskiest"][: fields["listed"] or SHOWN]  # where none is listed, the riskiest
    lines += ["", *_table(shown), ""]
    lines.append(UNKNOWN if told.truth is None else _truth_text(fields["truth"]))
    if out is not None:
        lines.append(f"written: {one_line(str(out))} (only its owner can read it)")
    return "\n".join(lines)


def _stop_text(stop: dict[str, Any]) -> str:
    if "absent" in stop:
        return f"whether it is time to look was not checked: {stop['absent']}"
    return (
        f"the median training loss has dropped by {percent(stop['dropped'])} from the start "
        f"({stop['start_median_loss']:.3g} to {stop['median_loss']:.3g})"
    )


def _table(rows: list[dict[str, Any]]) -> list[str]:
    head = ["", "index", "label", "predicted", "loss", "logit gap", "PSMI", "s.e.", "Mahalanobis"]
    names = ("loss", "logit_gap", "psmi", "psmi_standard_error", "mahalanobis")
    digits = (2, 2, 2, 3, 1)
    table = [head]
    for row in rows:
        numbers = [
            "-" if row[name] is None else f"{row[name]:.{places}f}"
            for name, places in zip(names, digits, strict=True)
        ]
        said = "-" if row["predicted"] is None else str(row["predicted"])
        table.append([str(row["rank"]), str(row["index"]), str(row["label"]), said, *numbers])
    return aligned(table, left={2, 3})


def _truth_text(truth: dict[str, Any]) -> str:
    miss, area, rate = truth["miss_rate"], truth["auc"], truth["fpr_at_tpr"]
    return (
        f"beside the truth ({counted(truth['memorised'], 'memorised sample')}; "
        f"{percent(CONFIDENCE)} intervals over samples):\n"
        f"  AUC                   {_interval(area)}\n"
        f"  FPR at a TPR of {percent(TPR)}  {_interval(rate)}\n"
        f"  missed by the list    {_interval(miss)}  ({grouped(truth['missed'])} of "
        f"{grouped(truth['memorised'])})"
    )


def percent(share: float) -> str:
    """Return a share in percent.

    Example:
        >>> percent(0.95), percent(0.0776), percent(0.99951)
        ('95 %', '7.8 %', '99.95 %')
    """
    digits = 1 if share < 0.999 else 2
    return f"{100.0 * share:.{digits}f}".rstrip("0").rstrip(".") + " %"


def _interval(given: list[float]) -> str:
    return f"{given[0]:.3f} ({given[1]:.3f} to {given[2]:.3f})"
