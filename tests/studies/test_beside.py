"""What stands beside an outcome: every question has it, and each contradiction is one by a test."""

from __future__ import annotations

import dataclasses
import functools
import json
import tempfile
import zipfile
from html import unescape
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.records import Record, outcomes
from remnant.records.typed import Absent, read_result
from remnant.report.html import render
from remnant.report.numerals import in_print
from remnant.report.terminal import summary
from remnant.studies.beside.exposure import of_sets
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.features.audit_result import PatchControl, PatchVariantScore
from remnant.studies.forgetting.result import (
    AttackUsed,
    DecayLaw,
    Forecast,
    OwnSet,
    WithinLabel,
)
from remnant.studies.one_run.result import AttackerAtEnd
from remnant.studies.registry import QUESTIONS, load
from remnant.studies.reporting import checks_beside, read_page
from remnant.studies.residual_memory.result import Returning
from remnant.studies.shared.curves import Ends
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Gate, LanguageTask

STORED = Path(__file__).parent / "stored_records"
HIGH = Estimate(0.9, 0.8, 0.95)
ONE_RUNS = [name for name, question in QUESTIONS.items() if question.asks == "one-run"]


@pytest.fixture(autouse=True)
def rules_of_the_stored_records(monkeypatch):
    """They count as judged by today's rules; what older rules decided is not shown."""
    monkeypatch.setattr(outcomes, "RULES", 2)


@functools.cache
def opened(question):
    folder = Path(tempfile.mkdtemp()) / question
    records = sorted(STORED.glob(f"*/{question}.zip"))  # the oldest first
    assert records, f"make_stored_records.py has not stored a record of {question}"
    with zipfile.ZipFile(records[0]) as stored:
        stored.extractall(folder)
    return Record.open(folder)


@functools.cache
def stored(question):
    return read_result(opened(question), load(QUESTIONS[question].result))


def judged(question, outcome, **parts):
    """The stored result of a question with another outcome and other parts."""
    result = stored(question)
    verdict = result.verdict
    if not isinstance(verdict, Gate):
        verdict = Gate(outcome=outcome, sentence="", claim="", rules=2)
    verdict = dataclasses.replace(verdict, outcome=outcome)
    return dataclasses.replace(result, **{"verdict": verdict} | parts)


def contrary(question, result):
    """The texts that contradict the outcome of a result, by the name of the check."""
    checks = load(QUESTIONS[question].beside)(result)
    return {check.name: check.text for check in checks if check.contradicts}


def changed(part, **fields):
    return dataclasses.replace(part, **fields)


def ending(curve, value, low, high, *, at=-1):
    """A curve with another value and interval at one lag."""
    columns = {}
    for name, number in (("value", value), ("low", low), ("high", high)):
        column = list(getattr(curve, name))
        column[at] = number
        columns[name] = tuple(column)
    return dataclasses.replace(curve, **columns)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_outcome_has_its_line(question):
    page = read_page(opened(question))
    checks = page.headline.checks
    assert page.headline.outcome is not None
    assert checks, "a question names its controls"
    beside = ("  controls: ", "  contradicts: ")
    line = "".join(line for line in summary(page).splitlines() if line.startswith(beside))
    html = unescape(render([page]))
    rows = checks_beside(opened(question))
    assert [row["name"] for row in rows] == [check.name for check in checks]
    for check, row in zip(checks, rows, strict=True):
        assert in_print(check.text) in html
        assert in_print(row["text"]).replace("\u202f", " ") in line
        assert row["contradicts"] is check.contradicts


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_says_where_its_controls_are(question):
    assert list(signature(load(QUESTIONS[question].beside)).parameters) == ["result"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_is_said_of_what_was_not_measured(question):
    result = stored(question)
    if isinstance(result.verdict, ExposureGate):  # says by itself what it found
        gate = ExposureGate(outcome="FAIL", sentence="", claim="", rules=2)
        result = dataclasses.replace(result, verdict=gate)
    absent = {
        field.name: Absent("it was not measured")
        for field in dataclasses.fields(result)
        if field.name != "verdict"
    }
    checks = load(QUESTIONS[question].beside)(dataclasses.replace(result, **absent))
    assert {check.status for check in checks} <= {"not measured"}
    assert not any(check.contradicts for check in checks)


def test_show_prints_it_under_the_outcome():
    shown = CliRunner().invoke(commands, ["show", str(opened("attack-curve").folder), "--json"])
    assert shown.exit_code == 0
    beside = json.loads(shown.output)["results"]["verdict"]["beside"]
    assert beside[1] == {
        "name": "negative control",
        "status": "not measured",
        "text": "negative control not measured",
        "contradicts": False,
    }


def test_what_contradicts_is_marked_by_more_than_its_colour():
    page = read_page(opened("exposure"))
    assert "\n  contradicts: judged canaries more exposed" in summary(page)
    html = render([page, read_page(opened("forgetting"))])
    chip = '<li class="contrary"><strong>✕ contradicts:</strong> 4 of 16 canaries were extracted'
    assert html.count(chip) == 1
    assert "✕ 2 of 4 contradict: pooled test, extraction" in html, "in the overview too"


# -- forgetting -----------------------------------------------------------------------------------


def test_canaries_that_were_never_planted_and_are_found_as_easily():
    curve = stored("forgetting").curve
    first = next(place for place, lag in enumerate(curve.lags) if lag > 0)
    planted = ending(curve, 0.871, 0.80, 0.92, at=first)
    alike = ending(curve, 0.899, 0.82, 0.95, at=first)
    less = ending(curve, 0.62, 0.55, 0.7, at=first)
    for never, contradicts in ((alike, True), (less, False)):
        result = judged("forgetting", "PASS", curve=planted, curve_kind=never)
        assert ("never-planted canaries" in contrary("forgetting", result)) is contradicts
    result = judged("forgetting", "PASS", curve=planted, curve_kind=alike)
    said = contrary("forgetting", result)["never-planted canaries"]
    assert said.startswith("never-planted canaries are found as easily at lag")
    assert said.replace("\u202f", " ").endswith("(89.9 %; planted 87.1 %)")


@pytest.mark.parametrize("question", ["forgetting", "text-forgetting", "speech-forgetting"])
def test_twins_that_are_distinguished_contradict_a_fail(question):
    name = "curve_aa" if question == "forgetting" else "curve_exposure_aa"
    curve = getattr(stored(question), name)
    above = ending(curve, curve.chance + 0.3, curve.chance + 0.1, curve.chance + 0.4)
    result = judged(question, "FAIL", **{name: above})
    assert "negative control" in contrary(question, result)
    assert "negative control" not in contrary(question, judged(question, "PASS", **{name: above}))


@pytest.mark.parametrize("question", ["forgetting", "text-forgetting", "speech-forgetting"])
def test_twins_that_are_distinguished_at_other_lags_are_counted(question):
    name = "curve_aa" if question == "forgetting" else "curve_exposure_aa"
    curve = getattr(stored(question), name)
    columns = {
        "value": curve.chance + 0.3,
        "low": curve.chance + 0.1,
        "high": curve.chance + 0.4,
    }
    everywhere = dataclasses.replace(
        curve, **{column: (number,) * len(curve.lags) for column, number in columns.items()}
    )
    at_the_end = ending(everywhere, curve.chance, curve.chance - 0.1, curve.chance + 0.1)
    result = judged(question, "PASS", **{name: at_the_end})
    said = {check.name: check.text for check in load(QUESTIONS[question].beside)(result)}
    assert f"at only 1 of {len(curve.lags)} lags)" in said["negative control"]
    assert said["negative control"].startswith("negative control at chance (at lag ")


@pytest.mark.parametrize("question", ["forgetting", "text-forgetting", "speech-forgetting"])
def test_another_measure_that_disagrees(question):
    auc, main = stored(question).curve_auc, {}
    above, within = ending(auc, 0.7, 0.6, 0.8), ending(auc, 0.5, 0.4, 0.6)
    if question == "forgetting":  # where the judged measure is above chance, this is said once
        main = {"curve": ending(stored(question).curve, 0.5, 0.4, 0.6)}
    for outcome, curve, contradicts in (
        ("PASS", above, True),
        ("PASS", within, False),
        ("FAIL", above, False),
        ("FAIL", within, True),
        ("INCONCLUSIVE", above, False),
    ):
        said = contrary(question, judged(question, outcome, curve_auc=curve, **main))
        assert ("AUC" in said) is contradicts


def inside(outcome, *, value, p_value, within, other, sets=8):
    """A forgetting result inside the planted model, judged, and what contradicts it."""
    curve = stored("forgetting").curve
    lags = curve.lags
    columns = {name: (within + shift,) * len(lags) for name, shift in ENDS.items()}
    result = judged(
        "forgetting",
        outcome,
        curve=ending(curve, value, value - 0.05, value + 0.05),
        attack=AttackUsed(
            against="never-planted",
            calibration="references",
            signal="log-odds",
            references=14,
            attacker="an attacker",
        ),
        own_set=OwnSet(
            lags=lags, p_value=(p_value,) * len(lags), mean_rank=(1.0,) * len(lags), sets=sets
        ),
        within_label=WithinLabel(lags=lags, **columns),
        curve_by_none=ending(curve, other, other - 0.05, other + 0.05),
    )
    return contrary("forgetting", result)


ENDS = {"value": 0.0, "low": -0.05, "high": 0.05}
TESTS = {"own sets", "within label", "another attacker"}


@pytest.mark.parametrize(
    ("outcome", "finds", "contrary_tests"),
    [("PASS", True, TESTS), ("PASS", False, set()), ("FAIL", False, TESTS - {"another attacker"})],
)
def test_what_contradicts_an_outcome_inside_the_model(outcome, finds, contrary_tests):
    """At a PASS the named attacker finds nothing; at a FAIL it finds the canaries."""
    value = 0.5 if outcome == "PASS" else 0.9
    said = inside(
        outcome,
        value=value,
        p_value=0.001 if finds else 0.5,
        within=0.7 if finds else 0.5,
        other=0.7 if finds else 0.5,
    )
    assert TESTS & said.keys() == contrary_tests


def test_three_sets_have_too_few_orders_to_contradict_anything():
    said = inside("FAIL", value=0.9, p_value=0.5, within=0.9, other=0.5, sets=3)
    assert "own sets" not in said


def test_a_pass_that_is_above_chance_says_so_once():
    said = inside("PASS", value=0.7, p_value=0.001, within=0.7, other=0.7)
    label = stored("forgetting").curve.shown().label
    assert label in said
    assert not TESTS & said.keys()


@pytest.mark.parametrize("question", ["forgetting", "text-forgetting", "speech-forgetting"])
def test_what_is_within_the_limit_and_still_detected(question):
    name = "curve" if question == "forgetting" else "curve_exposure"
    curve = getattr(stored(question), name)
    label = curve.shown().label if question == "forgetting" else curve.curve.label
    above = ending(curve, curve.chance + 0.2, curve.chance + 0.1, curve.chance + 0.3)
    assert label in contrary(question, judged(question, "PASS", **{name: above}))
    within = ending(curve, curve.chance, curve.chance - 0.1, curve.chance + 0.1)
    assert label not in contrary(question, judged(question, "PASS", **{name: within}))


def test_what_comes_back_contradicts_a_pass():
    back = Returning(
        canaries=40, lost=20, returned=15, chance_returned=2, excess=0.6, excess_low=0.4,
        excess_high=0.8, pvalue=0.001, confidence=0.95, checkpoints=5, reference="twins",
    )  # fmt: skip
    said = contrary("forgetting", judged("forgetting", "PASS", returning=back))
    assert said["later checkpoints"].startswith("15 of 20 lost canaries come back")
    assert said["residual memory"] == "canaries found after 1 of 2 disturbances"
    chance = changed(back, pvalue=0.4)
    said = contrary("forgetting", judged("forgetting", "PASS", returning=chance))
    assert "later checkpoints" not in said
    said = contrary("forgetting", judged("forgetting", "FAIL", returning=back))
    assert not {"later checkpoints", "residual memory"} & said.keys()


def test_a_fitted_law_that_meets_the_limit_elsewhere():
    decision = stored("forgetting").decision
    lags = stored("forgetting").curve.lags
    safe = changed(decision.safe_after, lag=float(lags[-1]), reason="")
    ends = Ends(value=10.0, low=5.0, high=20.0)
    decay = DecayLaw(law="exponential", shown=True, start=0.9, half_life=ends, floor=ends)

    def met(value, low, high):
        forecast = Forecast(value=value, low=low, high=high, beyond=False)
        own = changed(decision, safe_after=safe, decay=decay, forecast=forecast)
        return contrary("forgetting", judged("forgetting", "PASS", decision=own)).get("safe from")

    before = lags[-2]
    assert "a fitted law meets it at" in met(before / 3, before / 4, before / 2)
    assert met(before / 3, before / 4, lags[-1]) is None, "its interval reaches the tested lag"
    assert met(2 * lags[-1], 1.5 * lags[-1], 3 * lags[-1]) is not None, "met only later"
    decay = changed(decay, shown=False)
    assert met(before / 3, before / 4, before / 2) is None, "no fall is shown, so no law meets it"
    none = changed(decision, safe_after=changed(safe, lag=None))
    assert contrary("forgetting", judged("forgetting", "PASS", decision=none))["safe from"] == (
        "no lag is shown to be safe"
    )


def test_a_control_that_was_not_found_contradicts_a_pass():
    curve = changed(stored("forgetting").curve, found=False)
    said = contrary("forgetting", judged("forgetting", "PASS", curve=curve))
    assert said["positive control"] == "positive control not found"
    failed = judged("forgetting", "FAIL", curve=ending(curve, 0.6, 0.4, 0.8))
    assert "positive control" in contrary("forgetting", failed)
    failed = judged("forgetting", "FAIL", curve=ending(curve, 0.97, 0.9, 1.0))
    assert "positive control" not in contrary("forgetting", failed), "it is found at the last lag"
    checks = load(QUESTIONS["forgetting"].beside)(failed)
    assert "positive control found at the judged lag alone" in " ".join(c.text for c in checks)
    result = judged("forgetting", "INCONCLUSIVE", curve=curve)
    assert "positive control" not in contrary("forgetting", result)
    found = changed(curve, found=True, found_at=4.0)
    checks = load(QUESTIONS["forgetting"].beside)(judged("forgetting", "PASS", curve=found))
    assert checks[0].text == "positive control found at lag 4"


# -- one run --------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ONE_RUNS)
def test_a_later_window_that_disagrees(question):
    curves = stored(question).one_run
    rows = range(len(curves.lags))
    later = {i for i in rows if curves.cohort[i] == max(curves.cohort)}
    flat = {"success": 0.3, "low": 0.25, "high": 0.35}
    for value, outcome in ((0.9, "PASS"), (0.05, "FAIL")):
        other = {"success": value, "low": value - 0.02, "high": value + 0.02}
        columns = {
            name: tuple((other if i in later else flat)[name] for i in rows) for name in flat
        }
        apart = changed(curves, **columns)
        assert "windows" in contrary(question, judged(question, outcome, one_run=apart))
        opposite = {"PASS": "FAIL", "FAIL": "PASS"}[outcome]
        assert "windows" not in contrary(question, judged(question, opposite, one_run=apart))


@pytest.mark.parametrize("question", ONE_RUNS)
def test_a_mean_score_that_disagrees(question):
    curves = stored(question).one_run
    many = len(curves.lags)
    raised = changed(curves, effect=(1.0,) * many, effect_low=(0.5,) * many)
    none = changed(curves, effect=(0.0,) * many, effect_low=(-0.5,) * many)
    for outcome, own, contradicts in (
        ("PASS", raised, True),
        ("PASS", none, False),
        ("FAIL", raised, False),
        ("FAIL", none, True),
    ):
        said = contrary(question, judged(question, outcome, one_run=own))
        assert ("mean score" in said) is contradicts


@pytest.mark.parametrize("question", ONE_RUNS)
def test_another_attacker_who_succeeds_contradicts_a_pass(question):
    curves = stored(question).one_run
    alone = "an attacker with the model alone"
    for low, outcome, contradicts in (
        (curves.chance + 0.1, "PASS", True),
        (curves.chance - 0.1, "PASS", False),
        (curves.chance + 0.1, "FAIL", False),
    ):
        other = AttackerAtEnd(name=alone, success=low + 0.1, low=low, high=low + 0.2)
        own = judged(question, outcome, one_run=changed(curves, others=(other,)))
        assert ("another attacker" in contrary(question, own)) is contradicts
        checks = load(QUESTIONS[question].beside)(own)
        said = "finds" if low > curves.chance else "is not shown to find"
        assert any(f"{alone} {said} the canaries" in check.text for check in checks)


# -- exposure -------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["exposure", "translation-exposure"])
def test_extracted_canaries_contradict_a_pass(question):
    said = contrary(question, judged(question, "PASS"))
    assert said["extraction"].endswith("canaries were extracted")
    assert "extraction" not in contrary(question, judged(question, "FAIL"))
    none = Absent("no search was made")
    checks = load(QUESTIONS[question].beside)(judged(question, "PASS", extraction=none))
    assert "extraction not measured" in [check.text for check in checks]


def test_exposed_controls_contradict_a_fail():
    repeats = stored("exposure").repeats
    p_values = (1e-6, *repeats.pooled_pvalue[1:])
    exposed = changed(repeats, pooled_pvalue=p_values)
    assert repeats.repeats[0] == 0
    said = contrary("exposure", judged("exposure", "FAIL", repeats=exposed))
    assert "negative control" in said
    assert "negative control" not in contrary("exposure", judged("exposure", "FAIL"))


def test_an_exposure_gate_beside_what_it_found_itself():
    verdict = changed(stored("exposure").verdict, above=2, p_value=0.4, control=None)
    result = changed(stored("exposure"), verdict=verdict)
    said = contrary("exposure", result)
    assert said["above the limit"] == "2 of 12 judged canaries reach the limit, or may"
    assert said["positive control"] == "positive control not found"
    assert "pooled test" not in said
    assert "pooled test" in contrary("exposure", stored("exposure")), "p < 0.001"


def test_canary_sets_of_one_model():
    measured = stored("exposure-audit").measured
    gate = ExposureGate(**measured.verdict.row())
    assert not any(check.contradicts for check in of_sets(measured, gate))
    exposed = tuple(
        changed(each, means=tuple(changed(m, p_value=1e-6) for m in each.means))
        for each in measured.sets
    )
    checks = of_sets(changed(measured, sets=exposed), gate)
    assert [check.name for check in checks if check.contradicts] == ["negative control"]


def test_a_model_that_is_of_no_use_contradicts_a_pass():
    task = LanguageTask(validation_bits=9.0, validation_tokens=100, uniform_bits=5.0)
    said = contrary("exposure", judged("exposure", "PASS", task=task))
    assert said["usefulness"] == "the model is worse than guessing blindly"


def test_a_control_among_the_likeliest_secrets():
    measured = stored("extraction").measured
    control = changed(measured.candidates[0].canary, repeats=0, name="control 1")
    row = changed(measured.candidates[0], canary=control)
    result = changed(
        stored("extraction"), measured=changed(measured, candidates=(row, *measured.candidates))
    )
    assert "negative control" in contrary("extraction", result)
    assert not contrary("extraction", stored("extraction"))


# -- membership, training, defences ---------------------------------------------------------------


def test_an_audit_with_two_sets():
    said = contrary("membership-audit", judged("membership-audit", "PASS"))
    assert {"rank-sum test", "other attacks"} <= said.keys()
    result = stored("membership-audit")
    rows = tuple(changed(row, p_value=0.7, adjusted=0.9) for row in result.attacks.rows)
    dull = changed(result.attacks, rows=rows)
    said = contrary("membership-audit", judged("membership-audit", "FAIL", attacks=dull))
    assert {"rank-sum test", "other attacks"} <= said.keys()
    assert not contrary("membership-audit", judged("membership-audit", "PASS", attacks=dull))
    void = changed(result.blind, void=True)
    for outcome in ("PASS", "FAIL"):
        parts = {"attacks": dull if outcome == "PASS" else result.attacks, "blind": void}
        said = contrary("membership-audit", judged("membership-audit", outcome, **parts))
        assert said == {"blind baseline": "blind baseline not at chance (AUC 0.582)"}
    verbatim = result.verbatim
    rows = tuple(changed(row, greedy=30, beyond=30 if row.rows else 0) for row in verbatim.rows)
    for p_value in (1e-9, 0.5):
        tests = tuple(changed(test, p_value=p_value) for test in verbatim.tests)
        out = changed(verbatim, rows=rows, tests=tests)
        parts = {"attacks": dull, "verbatim": out}
        said = contrary("membership-audit", judged("membership-audit", "PASS", **parts))
        assert said.get("verbatim extraction", "").startswith("30 of 60") is (p_value < 0.05)


def test_an_audit_of_a_training():
    result = stored("training-audit")
    sightings = changed(result.sightings, seen=result.sightings.planted - 1, controls=2)
    said = contrary("training-audit", judged("training-audit", "PASS", sightings=sightings))
    assert said["batches"].startswith("1 of")
    assert said["controls"] == "controls not at chance (2 in batches)"


def test_a_study_of_defences():
    result = stored("defences")
    defences = result.defences
    remedy, *others = defences.tried
    limit = defences.limit
    remedy = changed(remedy, ranked_first=(0.5, 0.1, 0.9), relearnt=(limit + 2, limit + 1, 99.0))
    nothing = changed(
        defences.nothing,
        exposure=(limit + 3, limit + 1, limit + 5),
        controls=(3.0, 2.5, 3.5),
    )
    defences = changed(defences, remedies=(nothing, remedy, *others))
    verdict = changed(result.verdict, outcome="PASS", cheapest=remedy.label)
    said = contrary("defences", changed(result, verdict=verdict, defences=defences))
    assert said.keys() == {"negative control", "extraction", "relearning"}


# -- features -------------------------------------------------------------------------------------


def test_features_that_disagree_during_training():
    result = stored("unique-features")
    plain = result.features.plain
    assert plain.through.apart == ()

    def said(outcome, **fields):
        variants = (changed(plain, **fields), *result.features.variants[1:])
        features = changed(result.features, variants=variants)
        return contrary("unique-features", judged("unique-features", outcome, features=features))

    never = "at no moment of training is the interval above that of other models"
    assert said("FAIL")["during training"] == never
    assert "during training" not in said("PASS")
    over = changed(plain.through, planted=(Estimate(9.0, 8.0, 9.5),) * len(plain.through.epoch))
    assert "during training" in said("PASS", through=over)
    assert "mean M" in said("PASS", beyond_m=Estimate(1.0, 0.5, 1.5))
    assert "mean M" in said("FAIL", beyond_m=Estimate(1.0, -0.5, 1.5))
    reacting = changed(plain.unplanted, share_significant=HIGH)
    assert "negative control" in said("FAIL", unplanted=reacting)
    assert "negative control" not in said("PASS", unplanted=reacting)
    assert "models" in said("PASS", blind=2)


def test_an_audit_of_one_patch():
    result = stored("feature-audit")
    audit = result.audit
    assert not contrary("feature-audit", result)
    assert {"white-box M_w", "probability gain", "M"} <= contrary(
        "feature-audit", judged("feature-audit", "PASS")
    ).keys()

    def said(outcome, **fields):
        return contrary(
            "feature-audit", judged("feature-audit", outcome, audit=changed(audit, **fields))
        )

    reacting = changed(audit.twin, black_box=changed(audit.twin.black_box, p_value=0.01))
    assert "twin" in said("FAIL", twin=reacting)
    assert "M beyond the twin’s" in said("FAIL", beyond_twin=Estimate(0.1, -0.2, 0.4))
    few = changed(audit.model, black_box=changed(audit.main, carried_by_few=True))
    assert said("FAIL", model=few) == {"images": "a few images make up most of M"}
    assert "task" in said("PASS", task=changed(audit.task, learnt=False))
    variant = PatchVariantScore(name="mirrored", value=1.0, p_value=0.005, contrary=True)
    failed = PatchControl(p_value=0.3, level=0.05, variants=(variant,))
    assert {"positive control", "variants"} <= said("PASS", patch_control=failed).keys()
    holds = PatchControl(p_value=0.01, level=0.05, variants=(changed(variant, contrary=False),))
    assert not {"positive control", "variants"} & said("PASS", patch_control=holds).keys()


# -- findings -------------------------------------------------------------------------------------


def test_a_protect_list_by_a_predictor_that_knows_nothing():
    result = stored("prediction")
    assert not contrary("prediction", result)
    quality = tuple(
        changed(row, auc=Estimate(0.55, 0.45, 0.65)) for row in result.prediction.quality
    )
    dull = changed(result, prediction=changed(result.prediction, quality=quality))
    assert "not shown to be better than chance" in contrary("prediction", dull)["predictor"]
    check = changed(result.protect.check, held=False, refuted=True)
    refuted = changed(result, protect=changed(result.protect, check=check))
    assert contrary("prediction", refuted)["independent run"].startswith(
        "an independent run missed 5 of 39 memorised samples"
    )
    row = changed(result.truth.agreement[0], low=-0.1)
    apart = changed(result, truth=changed(result.truth, agreement=(row,)))
    assert "other measures" in contrary("prediction", apart)
    assert not contrary("text-prediction", stored("text-prediction")), "there is no list"


def test_training_choices_that_no_model_remembers():
    result = stored("exposure-training")
    training = result.training
    assert not contrary("exposure-training", result)
    variants = tuple(changed(row, exposure=(1.4, 1.0, 2.0)) for row in training.variants)
    none = changed(result, training=changed(training, variants=variants))
    assert contrary("exposure-training", none) == {"positive control": "positive control not found"}
    variants = tuple(changed(row, controls=(3.0, 2.0, 4.0)) for row in training.variants)
    exposed = changed(result, training=changed(training, variants=variants))
    assert "negative control" in contrary("exposure-training", exposed)
