"""The page of a forgetting study: its order, and the sentences of every branch."""

from __future__ import annotations

import dataclasses

import pytest

from remnant.records import Record, gate_row
from remnant.records.typed import Absent, read_result
from remnant.report.blocks import (
    Figure,
    Headline,
    Missing,
    Prose,
    Section,
    Table,
    Terms,
    Tiles,
    walk,
)
from remnant.report.numerals import percent
from remnant.studies.forgetting.decision_blocks import answers
from remnant.studies.forgetting.page import (
    TITLE,
    control_sentence,
    holds_by_construction,
    page,
    what_was_done,
    what_was_found,
)
from remnant.studies.forgetting.result import (
    AttackUsed,
    DecayLaw,
    Decision,
    Forecast,
    ForgettingResult,
    ProtectLast,
    SafeAfter,
)
from remnant.studies.residual_memory.blocks import (
    READINGS,
    residual_memory_section,
    scan_sentence,
    search_results,
    searches,
)
from remnant.studies.residual_memory.result import Disturbance, ResidualMemory, Returning
from remnant.studies.shared.curve_blocks import (
    control_count,
    control_holds,
    curve_page,
    curve_tables,
    difference_text,
)
from remnant.studies.shared.curves import CurveResult, Ends, Unmeasured
from remnant.studies.shared.pages import LedgerRow, read_run


def plain(text):
    return text.replace("\u202f", " ")


def blocks_of(record):
    return tuple(page(read_result(record, ForgettingResult), read_run(record)))


def titles(blocks):
    return [block.title for block in blocks if isinstance(block, Section)]


def test_the_page_has_the_same_order_as_all_pages(whole_run):
    blocks = blocks_of(Record.open(whole_run))
    assert TITLE == "Forgetting"
    assert [type(block) for block in blocks[:2]] == [Headline, Tiles]
    assert titles(blocks) == [
        "In plain words",
        "How attack success falls",
        "Controls",
        "Other attackers, and what is no attack",
        "What to decide",
        "Is it erased, or only undetected?",
        "The same study, varied",
        "Other measures of success",
        "What accuracy and loss show",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    keys = [block.key for block in walk(blocks) if isinstance(block, Table | Figure)]
    tables = [block.key for block in walk(blocks) if isinstance(block, Table)]
    assert len(tables) == len(set(tables))
    assert {"curve", "lags", "decision", "disturbances", "compare", "measures"} <= set(keys)


def test_the_headline_has_a_number_beside_its_limit(whole_run):
    headline = blocks_of(Record.open(whole_run))[0]
    curve = Record.open(whole_run).results()["curve"]
    reading = headline.reading
    assert (reading.value, reading.low) == (curve["value"][-1], curve["low"][-1])
    assert (reading.limit, reading.lowest, reading.highest) == (0.7, 0.0, 1.0)
    assert plain(reading.name) == "Precision at FPR 10 % after 20 steps"
    assert reading.n == "3 trainings, 16 canaries each"
    assert plain(reading.show(0.5)) == "50.0 %"


@pytest.mark.parametrize(
    ("outcome", "title", "advice"),
    [
        ("PASS", "Under the limit at the last step watched", "“What to decide” says whether"),
        ("FAIL", "Still remembered beyond the limit", "Protect these examples"),
        ("INCONCLUSIVE", "Not enough evidence to decide", "Run the study again"),
    ],
)
def test_each_outcome_says_what_to_do(changed, whole_run, outcome, title, advice):
    row = gate_row(outcome=outcome, sentence="A sentence.", claim="Claimed.", limit=0.6, lag=20)
    headline = blocks_of(changed(whole_run, {"verdict": row}))[0]
    assert (headline.outcome, headline.title, headline.claim) == (outcome, title, "Claimed.")
    assert advice in headline.advice


def test_a_run_that_measured_nothing_says_so(changed, whole_run, page_text):
    names = set(Record.open(whole_run).results()) - {"curve", "attack"}
    record = changed(whole_run, absent={"curve": "the run was stopped early."}, without=names)
    blocks = blocks_of(record)
    text = page_text(blocks)
    assert blocks[0].outcome is None
    assert blocks[0].reading is None
    assert not any(isinstance(block, Tiles | Figure) for block in walk(blocks))
    for words in (
        "No verdict",
        "How fast attack success falls was not measured: the run was stopped early.",
        "Forgetting curve: not measured: the run was stopped early.",
        "There is no negative control: this run recorded none.",
        "Unplanted twins (negative control): not measured: this run recorded none.",
        "Each model’s own set: not measured: this run recorded none.",
        "Within the same label: not measured: this run recorded none.",
        "Decision: not measured: this run recorded none.",
        "Weight noise, relearning on similar examples and a scan of later checkpoints were not run",
        "Weight noise and relearning: not measured: this run recorded none.",
        "Scan of later checkpoints: not measured: this run recorded none.",
        "True positive rate: not measured: this run recorded none.",
        "AUC: not measured",
        "Attack accuracy: not measured",
        "Accuracy and loss on the canaries: not measured: this run recorded none.",
        "The model's usefulness was not measured: this run recorded none.",
        "Scope: not measured",
        "in 95 % of them",
    ):
        assert words in text, words
    assert "Precision: not measured" not in text
    brief = page_text(blocks, "summary")
    for words in ("Forgetting curve: not measured", "Unplanted twins", "Decision: not measured"):
        assert words in brief, words


def test_a_control_off_chance_is_a_notice(changed, whole_run):
    row = Record.open(whole_run).results()["curve_aa"]
    leaky = row | {"low": [0.6] * 13, "value": [0.7] * 13, "high": [0.8] * 13}
    record = changed(whole_run, {"curve_aa": leaky})
    blocks = blocks_of(record)
    notices = [b.text for b in walk(blocks) if isinstance(b, Prose) and b.tone == "notice"]
    assert len(notices) == 1
    assert "includes chance at only 0 of 13 lags, so read the curve with caution" in notices[0]
    assert notices[0] in next(b.text for b in walk(blocks) if isinstance(b, Prose))


def test_a_control_at_chance_is_said_in_plain_words(whole_run, page_text):
    text = page_text(blocks_of(Record.open(whole_run)))
    assert "in models that saw none of the examples: the attack did no better than guessing" in text


def test_a_control_without_intervals_says_nothing():
    bare = CurveResult(chance=0.5, lags=(0.0,), value=(0.5,))
    assert control_sentence(bare, bare.shown()) == ""
    assert control_count(bare.shown()) == (0, 0)
    assert not control_holds(bare.shown())
    unknown = CurveResult(lags=(0.0,), value=(0.5,), low=(0.4,), high=(0.6,)).shown()
    assert control_count(unknown) == (0, 0)


@pytest.mark.parametrize(
    ("recipe", "constructed"),
    [
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "logit"}}, True),
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "checkpoint"}}, True),
        ({"plan": {"kind": "inject"}}, True),
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "none"}}, False),
        ({"plan": {"kind": "inject"}, "attack": {"calibration": "twins"}}, False),
        ({"plan": {"kind": "poison"}, "attack": {"calibration": "logit"}}, False),
        ({"plan": 3}, False),
    ],
)
def test_when_lag_0_holds_by_construction(recipe, constructed):
    assert holds_by_construction(recipe) == constructed


def test_the_page_opens_with_a_lag_at_which_the_attack_can_fail(whole_run, twin_run, page_text):
    inside, twin = (blocks_of(Record.open(run)) for run in (whole_run, twin_run))
    assert inside[1].tiles[0].name.endswith("right after planting")
    assert twin[1].tiles[0].name.endswith("after 1 step")
    assert "first lag at which the attack can fail is 1." in page_text(twin, "summary")
    assert "by construction:" not in page_text(inside)


def test_what_is_no_attack_stands_apart(whole_run, page_text):
    blocks = blocks_of(Record.open(whole_run))
    table = next(b for b in walk(blocks) if isinstance(b, Table) and b.key == "comparisons")
    assert [row.name for row in table.rows] == [
        "With reference models",
        "With the checkpoint before planting",
        "With the model alone",
        "Influence of planting",
        "As in the paper",
        "Same kind, never seen",
    ]
    assert "no attack: nobody has the trial’s twin" in page_text(blocks)
    assert "own set: not measured: 3 trials have too few orders for a p-value" in page_text(blocks)
    figure = next(b for b in walk(blocks) if isinstance(b, Figure) and b.key == "curve")
    names = [line.label for line in figure.chart.lines]
    assert {"Planted examples", "Unplanted twins", "Same kind, never seen"} <= set(names)


def test_a_comparison_with_the_twin_has_its_right_name(twin_run, page_text):
    text = page_text(blocks_of(Record.open(twin_run)))
    assert "compared with its twin on the same examples, as in the paper" in text
    assert "also what was learnt of their kind" in text
    assert "Never-planted canaries, drawn the same way and scored in the same models" in text
    assert "an otherwise equal twin never saw them" in text
    assert "After INJECT, lag 0 does not count as found" in text


def test_every_other_measure_is_shown_and_not_the_curve_itself(whole_run, poison_run):
    for folder, first, last in (
        (whole_run, "True positive rate at FPR 10 %", "Heuristic ε in nats, ln(TPR/FPR); no bound"),
        (poison_run, "Precision at FPR 10 %", "Attack accuracy"),
    ):
        blocks = walk(blocks_of(Record.open(folder)))
        table = next(b for b in blocks if isinstance(b, Table) and b.key == "measures")
        names = [plain(table.columns[0].cell(row).main) for row in table.rows]
        assert (names[0], names[-1]) == (first, last)


def test_the_term_for_precision_names_its_highest_value(whole_run, poison_run):
    def terms(folder):
        blocks = walk(blocks_of(Record.open(folder)))
        return dict(next(b for b in blocks if isinstance(b, Terms)).entries)

    precision = next(text for name, text in terms(whole_run).items() if "Precision" in name)
    assert "Guessing gives 50.0 %" in plain(precision)
    assert "gives 90.9 %" in plain(precision)
    assert not any("Precision" in name for name in terms(poison_run))
    verdict = plain(terms(whole_run)["The verdict"])
    assert "the one-sided upper bound at 95 % is at or under the limit" in verdict
    assert "PASS also needs the bounds of all other attackers that were computed." in verdict


def test_the_word_forgotten_is_not_used_about_a_result(whole_run, poison_run, page_text):
    for folder in (whole_run, poison_run):
        assert "forgotten" not in page_text(blocks_of(Record.open(folder)))


PLAN = {"kind": "inject", "repeats": 1, "canaries": 32, "step": 1100, "watch_steps": 400}


@pytest.mark.parametrize(
    ("plan", "uses", "words"),
    [
        (PLAN, 1, "32 chosen examples were shown to a model once at training step 1 100;"),
        (PLAN | {"repeats": 3}, None, "were shown to a model 3 times at training step 1 100;"),
        (PLAN, 2, "in one batch at training step 1 100, up to 2 times in all because they fill"),
        (PLAN | {"repeats": 3}, 9, "in 3 batches at training step 1 100, up to 9 times in all"),
        (PLAN | {"kind": "poison"}, 1, "were part of one model’s training;"),
        (PLAN, 1, "Both then trained without these examples for 400 more steps."),
        ({"canaries": 4}, None, "Both then trained without these examples. At each point"),
    ],
)
def test_what_was_done_beside_a_twin(plan, uses, words):
    assert words in plain(what_was_done(plan, uses, attack=Absent("an older record")))


def test_what_was_done_inside_one_model():
    attack = AttackUsed(
        against="never-planted",
        calibration="references",
        signal="log-odds",
        references=14,
        attacker="an attacker with 14 reference models",
    )
    curve = curve_of(n_unseen=224).shown()
    assert plain(what_was_done(PLAN, 1, attack=attack, curve=curve)) == (
        "32 chosen examples were shown to a model once at training step 1 100, which then trained "
        "without them for 400 more steps. At each point an attacker with 14 reference models had "
        "to distinguish them from 224 that were chosen the same way and that this model never saw."
    )


def test_a_plan_without_canaries_is_not_described():
    assert what_was_done({}, None, attack=Absent("an older record")) == ""


def test_more_uses_than_repeats_are_explained_with_the_ledger(whole_run, page_text):
    record = Record.open(whole_run)
    result, run = read_result(record, ForgettingResult), read_run(record)
    row = LedgerRow("1–16", 16, 1, (2, 2), 10, 10)
    text = page_text(page(result, dataclasses.replace(run, ledger=(row,))))
    assert "the canaries are repeated to fill it" in text
    assert "up to 2 times in all because they fill the batch" in text


def curve_of(success="precision", lags=(0.0, 10.0), value=(0.9, 0.6), **changes):
    fields = {"success": success, "chance": 0.5, "fpr": 0.1, "confidence": 0.95, **changes}
    return CurveResult(lags=lags, value=value, **fields)


@pytest.mark.parametrize(
    ("lag", "words"),
    [(0.0, "Right after planting, "), (1.0, "One step after planting, "), (4.0, "4 steps after")],
)
def test_what_was_found_by_precision(lag, words):
    curve = curve_of(lags=(lag, 10.0), low=(0.8, 0.5), high=(0.95, 0.7)).shown()
    first, last = map(plain, what_was_found(curve))
    assert first.startswith(words)
    assert first.endswith("had really been used; pure guessing gives 50 %.")
    assert last == "10 steps after planting it was 60.0 % (95 % interval 50.0 % to 70.0 %)."


def test_what_was_found_by_other_measures_or_with_gaps():
    assert what_was_found(curve_of("auc").shown()) == [
        "AUC goes from 0.900 at lag 0 to 0.600 at lag 10."
    ]
    (sentence,) = what_was_found(curve_of(value=(0.9, None)).shown())
    assert plain(sentence).endswith("to – at lag 10.")


def test_long_curves_have_a_chosen_and_a_whole_table():
    dense = curve_of(lags=tuple(map(float, range(100))), value=(0.5,) * 100, steps_to={"0.7": 31.5})
    chosen, whole, levels = curve_tables(dense.shown(), dense.shown())
    assert len(chosen.rows) <= 20
    assert (chosen.rows[0].lag, chosen.rows[-1].lag) == (0.0, 99.0)
    assert (len(whole.rows), whole.fold) == (100, "All 100 lags")
    assert chosen.depth == "show"
    assert chosen.columns[-1].name == "A/A twins"
    assert [plain(column.cell(levels.rows[0]).main) for column in levels.columns] == [
        *("70.0 %", "32")
    ]


def test_a_level_that_is_not_reached_says_so():
    (_, table) = curve_tables(curve_of(steps_to={"0.55": None}).shown())
    cells = [plain(column.cell(table.rows[0]).main) for column in table.columns]
    assert cells == ["55.0 %", "not reached in the 10 steps watched"]


def test_a_control_that_lacks_a_lag_has_a_dash_there():
    control = curve_of(lags=(10.0,), value=(0.5,)).shown()
    (table,) = curve_tables(curve_of().shown(), control)
    assert [plain(table.columns[-1].cell(row).main) for row in table.rows] == ["–", "50.0 %"]


def test_a_curve_alone_has_a_page(page_text):
    stored = curve_of(trials=1, n_seen=8, n_unseen=9, method="a bootstrap")
    text = page_text(curve_page(stored))
    assert "1 trial; 8 seen and 9 unseen scores; a bootstrap" in text
    assert "Precision at FPR 10 % against lag" in text
    assert "chance, 50.0 %" in text
    assert "My scores" in page_text(curve_page(stored, "My scores"))


def test_differences_are_in_the_units_of_the_curve():
    ends = Ends(value=0.142, low=-0.021, high=0.163)
    shown = [difference_text(ends, curve_of(name).shown()) for name in ("tpr", "auc", "exposure")]
    assert shown == [
        "+14.2 points (\N{MINUS SIGN}2.1 to +16.3)",
        "+0.142 (\N{MINUS SIGN}0.021 to +0.163)",
        "+0.14 bits (\N{MINUS SIGN}0.02 to +0.16)",
    ]
    assert difference_text(Ends(value=0.1, low=None, high=None), curve_of().shown()).endswith(
        "(– to –)"
    )


def test_variants_that_cannot_be_compared_have_a_reason(changed, whole_run, page_text):
    row = Record.open(whole_run).results()["compare"]
    row["differences"] = [{"label": "two trials", "absent": "one trial a curve."}]
    blocks = blocks_of(changed(whole_run, {"compare": row}))
    assert "Difference: not measured: two trials: one trial a curve." in page_text(blocks)
    table = next(b for b in walk(blocks) if isinstance(b, Table) and b.key == "compare")
    assert table.note == ""
    assert [column.name for column in table.shown()] == ["Variant", "At the end"]


LAW = DecayLaw(
    law="exponential",
    shown=True,
    half_life=Ends(value=41.6, low=30.2, high=57.3),
    floor=Ends(value=0.58, low=0.54, high=0.62),
)
DECISION = Decision(
    limit=0.65,
    confidence=0.95,
    last_lag=400.0,
    batch=64,
    safe_after=SafeAfter(lag=250.0, reason="From lag 250 on every bound is under 0.65."),
    protect_last=ProtectLast(steps=250, examples=16000, reason=""),
    decay=LAW,
    forecast=Forecast(value=91.0, low=70.0, high=118.0, beyond=False),
)


def answered(**changes):
    decision = dataclasses.replace(DECISION, **changes)
    return [tuple(map(plain, dataclasses.astuple(row))) for row in answers(decision, percent)]


def test_a_decision_answers_five_questions():
    rows = answered()
    assert [row[:2] for row in rows] == [
        ("From which lag on is success within 65.0 %?", "250 steps"),
        ("What should be protected?", "the last 16 000 examples"),
        ("How long until half of the fall is over?", "42 steps (30 to 57)"),
        ("Where does success level off?", "58.0 % (54.0 % to 62.0 %)"),
        ("When is 65.0 % reached?", "91 steps (70 to 118)"),
    ]
    assert rows[0][2].startswith("From lag 250 on every bound is under 0.65. Tested backward")
    assert "one-sided 95 % bounds" in rows[0][2]
    assert "only measured lags are claimed" in rows[0][2]
    assert "used in the last 250 steps, 64 a step" in rows[1][2]
    assert rows[2][2].startswith("An exponential law with a plateau")
    assert rows[4][2] == "By the same law. This is within the steps that were measured."


def test_no_safe_lag_protects_everything():
    rows = answered(
        safe_after=SafeAfter(lag=None, reason="Not even the last lag holds."),
        protect_last=ProtectLast(steps=None, examples=None, reason=""),
    )
    assert rows[0][1] == "no lag within the 400 steps watched"
    assert rows[1][1:] == (
        "all examples ever used",
        "No lag was shown to be safe, so no example can be excluded.",
    )


def test_safe_at_once_protects_nothing():
    rows = answered(
        safe_after=SafeAfter(lag=0.0, reason="At every lag."),
        protect_last=ProtectLast(steps=0, examples=0, reason=""),
    )
    assert rows[1][1] == "nothing"
    assert "even right after the last use" in rows[1][2]


def test_a_forecast_says_that_it_is_one():
    row = answered(forecast=Forecast(value=912.0, low=500.0, high=None, beyond=True))[-1]
    assert row[1] == "912 steps (500 to any), forecast"
    assert "beyond the last checkpoint, at 400 steps: a forecast, not a measurement" in row[2]


def test_a_law_that_never_reaches_the_limit_says_so():
    row = answered(forecast=Forecast(value=None, low=0.0, high=None, beyond=True))[-1]
    assert row[1] == "never, by the fitted law"
    assert "levels off above the limit" in row[2]


def test_where_no_fall_is_shown_there_is_no_half_life():
    rows = answered(decay=dataclasses.replace(LAW, shown=False))
    assert [row[1] for row in rows[2:]] == ["no fall shown"]


def test_a_law_that_could_not_be_fitted_is_a_reason():
    absent = Unmeasured(absent="3 lags after planting are too few for a decay law; it takes 4.")
    assert answered(decay=absent, forecast=absent)[-1][1:] == ("not measured", absent.absent)


def test_ends_that_are_unbounded_are_not_numbers():
    law = dataclasses.replace(
        LAW,
        law="power",
        half_life=Ends(value=12.0, low=None, high=None),
        floor=Ends(value=0.6, low=None, high=0.7),
    )
    rows = answered(decay=law)
    assert rows[2][1] == "12 steps (no interval)"
    assert rows[2][2].startswith("A power law with a plateau")
    assert rows[3][1] == "60.0 % (up to 70.0 %)"


def disturbed(kind, reading, **changes):
    numbers = ("after", "after_low", "after_high", "rise", "rise_low", "rise_high")
    fields = dict.fromkeys(numbers, 0.5) | {"pvalue_after": 0.2, "pvalue_rise": 0.0002} | changes
    return Disturbance(
        kind=kind, amount=1, label="some", reading=reading, test_accuracy=0.941, **fields
    )


def memory_of(*rows):
    return ResidualMemory(
        before=0.587,
        before_low=0.517,
        before_high=0.643,
        success="precision",
        fpr=0.1,
        chance=0.5,
        confidence=0.95,
        trials=3,
        method="Student t over 3 trials",
        lag=400.0,
        draws=5,
        neighbours=64,
        disturbances=rows,
    )


NOISE = (disturbed("noise", "still found"), disturbed("noise", "not found"))
SCAN = Returning(
    canaries=96,
    lost=80,
    returned=21,
    chance_returned=9,
    excess=0.125,
    excess_low=0.02,
    excess_high=0.23,
    pvalue=0.013,
    confidence=0.95,
    checkpoints=16,
    reference="A/A twins",
)
NONE = Absent("none")


def test_all_three_searches_are_reported():
    memory = memory_of(*NOISE, disturbed("relearn", "comes back"))
    assert [plain(sentence) for sentence in search_results(memory, SCAN)] == [
        "Undetected is not erased. Weight noise, relearning on similar examples and a scan of "
        "later checkpoints were run.",
        "Weight noise brought nothing more back; the attack still succeeds in 1 of 2 cases.",
        "Relearning brought the canaries back in 1 of 1 case: the attack succeeds better than "
        "before.",
        "Scan of 16 checkpoints: of 96 planted canaries, 80 were not found at two checkpoints in "
        "a row. Of these, 21 came back, clearly found at a later one; in models that never saw "
        "them (A/A twins) 9 did. This is more than chance (excess 12.5 %, 2.0 % to 23.0 %; "
        "p = 0.013).",
    ]


@pytest.mark.parametrize(
    ("memory", "scan", "words"),
    [
        (
            memory_of(*NOISE),
            SCAN,
            "Weight noise and a scan of later checkpoints were run; relearning on similar examples "
            "was not run.",
        ),
        (
            memory_of(disturbed("relearn", "hidden")),
            NONE,
            "Relearning on similar examples was run; weight noise and a scan of later checkpoints "
            "were not run.",
        ),
        (
            NONE,
            SCAN,
            "A scan of later checkpoints was run; weight noise and relearning on similar examples "
            "were not run.",
        ),
        (
            NONE,
            NONE,
            "Weight noise, relearning on similar examples and a scan of later checkpoints were not "
            "run.",
        ),
    ],
)
def test_what_was_not_run_is_named(memory, scan, words):
    assert searches(memory, scan) == f"Undetected is not erased. {words}"


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ("hidden", "Relearning revealed the canaries in 1 of 1 case"),
        ("not found", "Relearning brought nothing back; the attack detects nothing in 1 of 1 case"),
        ("still found", "Relearning brought nothing more back; the attack still succeeds in 1 of"),
    ],
)
def test_readings_have_words(reading, words):
    memory = memory_of(disturbed("relearn", reading))
    assert words in " ".join(search_results(memory, NONE))
    assert reading in READINGS


def test_nothing_detected_is_said_beside_what_is_not_excluded():
    rows = [disturbed("noise", "not found", after_high=high) for high in (0.62, 0.97, 0.7)]
    said = " ".join(search_results(memory_of(*rows), NONE))
    assert "the attack detects nothing in 3 of 3 cases" in said
    assert "of up to 97.0\N{NARROW NO-BREAK SPACE}% is not excluded)" in said


def test_a_scan_that_shows_nothing_says_so():
    scan = dataclasses.replace(SCAN, pvalue=0.3, reference="other trials' twins")
    said = scan_sentence(dataclasses.replace(scan, excess_low=-0.02))
    assert "(other trials' twins) 9 did. This is not shown to be more than chance" in said
    assert "−2.0" in said


def test_a_run_without_twins_has_no_column_for_them():
    def columns(*rows):
        blocks = residual_memory_section(memory_of(*rows), NONE).blocks
        table = next(block for block in blocks if isinstance(block, Table))
        return [column.name for column in table.shown()]

    assert "A/A twins after" not in columns(disturbed("noise", "hidden"))
    twins = {"aa": 0.5, "aa_low": 0.4, "aa_high": 0.6}
    assert "A/A twins after" in columns(disturbed("noise", "hidden", **twins))


def test_what_was_not_searched_is_missing():
    blocks = residual_memory_section(NONE, NONE).blocks
    assert [block.what for block in blocks if isinstance(block, Missing)] == [
        "Weight noise and relearning",
        "Scan of later checkpoints",
    ]
