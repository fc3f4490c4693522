"""The few numbers under a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.report.curve import Curve, lag_text, percent, short_percent
from remnant.report.exposure_view import ExposureView
from remnant.report.exposure_words import exposure_text, extracted_number, extracted_remark
from remnant.report.feature_audit_view import FeatureAuditView
from remnant.report.feature_audit_words import audit_tiles
from remnant.report.features_numerals import interval_text, number_text, points_ends, points_number
from remnant.report.features_view import FeaturesView
from remnant.report.forgetting_view import ForgettingView
from remnant.report.numerals import bits_number, bits_text, count_text, counted, times_text
from remnant.report.one_run_view import OneRunView
from remnant.report.prediction_numerals import ends_text, epoch_text, held_text, name_of, rate_ends
from remnant.report.prediction_view import PredictionView
from remnant.report.run_view import NotMeasured, Verdict
from remnant.report.text_forgetting_view import TextForgettingView
from remnant.report.training_view import TrainingView
from remnant.report.training_words import training_tiles
from remnant.report.view import View


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its name and a remark, which may be empty.

    Attributes:
        tone: ``"harm"`` where the number says that secrets came out; else empty.
    """

    name: str
    value: str
    remark: str
    tone: str = ""


def tiles_of(view: View) -> list[Tile]:
    """What was measured of what matters most."""
    if isinstance(view, OneRunView):
        return _one_run(view)
    if isinstance(view, TextForgettingView):
        return _text_forgetting(view)
    if isinstance(view, PredictionView):
        return _prediction(view)
    if isinstance(view, FeaturesView):
        return _features(view)
    if isinstance(view, TrainingView):
        return [Tile(*one) for one in training_tiles(view)]
    if isinstance(view, FeatureAuditView):
        return [Tile(*one) for one in audit_tiles(view)]
    return _exposure(view) if isinstance(view, ExposureView) else _forgetting(view)


def _forgetting(view: ForgettingView) -> list[Tile]:
    tiles = []
    curve, control = view.curve, view.control
    if isinstance(curve, Curve):
        for point, name in (
            (curve.start, "Right after planting" if curve.start.lag == 0 else None),
            (curve.end, None),
        ):
            tiles.append(
                Tile(
                    name or f"After {counted(int(point.lag), 'step')}"
                    if point.lag == int(point.lag)
                    else f"After {lag_text(point.lag)} steps",
                    curve.show(point.value),
                    curve.show_interval(point),
                )
            )
    if isinstance(control, Curve):
        tiles.append(
            Tile(
                "A/A twins, at the end",
                control.show(control.end.value),
                control.show_interval(control.end),
            )
        )
    if isinstance(curve, Curve) and isinstance(view.verdict, Verdict):
        limit, lag = view.verdict.limit, view.verdict.lag
        if limit is not None:
            remark = "" if lag is None else f"at lag {lag_text(lag)}"
            tiles.append(Tile("Limit", curve.show(limit), remark))
    return tiles


def _text_forgetting(view: TextForgettingView) -> list[Tile]:
    found, control = view.exposure, view.control
    if isinstance(found, NotMeasured):
        return []
    curve, places = found.curve, {"Right after planting": found.curve.start}
    places["Highest"] = found.peak
    places[f"After {lag_text(curve.end.lag)} steps"] = curve.end
    tiles = []
    for name, point in places.items():
        remark = curve.show_interval(point)
        if name == "Highest":
            remark = f"at lag {lag_text(point.lag)}"
        tiles.append(Tile(name, bits_text(point.value or 0.0), remark))
    if not isinstance(control, NotMeasured):
        end = control.curve.end
        chance = f"chance gives {curve.show(curve.chance)}"
        tiles.append(Tile("A/A twins, at the end", bits_text(end.value or 0.0), chance))
    if isinstance(view.verdict, Verdict) and view.verdict.limit is not None:
        tiles.append(Tile("Limit", bits_text(view.verdict.limit), "at the last lag"))
    return tiles


def _exposure(view: ExposureView) -> list[Tile]:
    tiles = []
    found = view.exposure
    if not isinstance(found, NotMeasured):
        highest = found.highest
        if highest is not None:
            remark = f"{highest.name}, planted {times_text(highest.repeats)}"
            tiles.append(Tile("Highest exposure", exposure_text(highest), remark))
        space = f"first of {counted(found.space, 'secret')}"
        tiles.append(Tile("Ceiling", bits_text(found.ceiling), space))
        mean = found.controls_mean
        if mean is not None:
            chance = f"mean; chance gives {bits_number(found.null_mean)}, two bits is noise"
            least = "at least " if found.controls_at_least else ""
            tiles.append(Tile("Never-planted controls", least + bits_text(mean), chance))
    number, harm = extracted_number(view)
    if number:
        tiles.append(Tile("Extracted", number, extracted_remark(view), "harm" if harm else ""))
    return tiles


def _one_run(view: OneRunView) -> list[Tile]:
    found = view.one_run
    if isinstance(found, NotMeasured):
        return []
    judged = found.judged
    curve = judged.curve
    who = f"planted {times_text(judged.repeats)}, from step {count_text(judged.start)}"
    tiles = [
        Tile(
            f"{lag_text(round(point.lag))} steps after last use",
            curve.show(point.value),
            "; ".join(part for part in (curve.show_interval(point), who) if part),
        )
        for point in (curve.start, curve.end)
    ]
    guess = f"never planted; guessing gives {curve.show(curve.chance)}"
    tiles.append(Tile("Controls", count_text(found.n_unseen), guess))
    if isinstance(view.verdict, Verdict) and view.verdict.limit is not None:
        lag = view.verdict.lag
        remark = "" if lag is None else f"at lag {lag_text(round(lag))}"
        tiles.append(Tile("Limit", curve.show(view.verdict.limit), remark))
    return tiles


def _prediction(view: PredictionView) -> list[Tile]:
    tiles = []
    found, truth, list_ = view.prediction, view.truth, view.protect
    if not isinstance(found, NotMeasured):
        stop = found.stop
        value = f"{epoch_text(stop.epoch)} of {epoch_text(stop.epochs)}"
        remark = f"epochs; median loss down by {percent(stop.dropped)}"
        if not stop.reached:
            remark += f"; {short_percent(stop.drop)} was never reached"
        tiles.append(Tile("Known after", value, remark))
    if not isinstance(truth, NotMeasured):
        n = None if isinstance(found, NotMeasured) else found.samples
        remark = "of its training samples" if n is None else f"of {counted(n, 'training sample')}"
        tiles.append(Tile("Memorised in the end", percent(truth.memorised_share), remark))
    if not isinstance(found, NotMeasured) and found.quality:
        first = found.quality[0]
        remark = f"{ends_text(first.auc)}; guessing gives 0.5"
        tiles.append(Tile(f"AUC of {name_of(first.predictor)}", f"{first.auc.value:.3f}", remark))
    if not isinstance(list_, NotMeasured):
        remark = f"{count_text(list_.listed)} of {counted(list_.n, 'sample')}"
        remark += f"; stated to miss at most {percent(list_.stated)}"
        if list_.check is not None:
            remark += f"; {held_text(list_.check)} on another run"
        tiles.append(Tile("Protect", percent(list_.share), remark))
    return tiles


def _features(view: FeaturesView) -> list[Tile]:
    found = view.features
    if isinstance(found, NotMeasured) or found.plain is None:
        return []
    plain, tiles = found.plain, []
    for name, models in (
        ("Planted models that stand out", plain.planted),
        ("Never planted, stand out", plain.unplanted),
    ):
        if models is not None:
            share = models.share_significant
            remark = f"of {counted(models.n, 'model')}; {rate_ends(share)}"
            tiles.append(Tile(name, percent(share.value), remark))
    if plain.beyond is not None:
        remark = f"points; {points_ends(plain.beyond)}"
        if isinstance(view.verdict, Verdict) and view.verdict.limit is not None:
            remark += f"; allowed {short_percent(view.verdict.limit)}"
        tiles.append(Tile("Difference", points_number(plain.beyond.value), remark))
    if plain.beyond_m is not None:
        remark = f"nats; {interval_text(plain.beyond_m)}"
        tiles.append(Tile("Mean M less the twins’", number_text(plain.beyond_m.value), remark))
    return tiles
