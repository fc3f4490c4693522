"""The advice beside a PASS depends on what was detected, not on the words of its sentence."""

from __future__ import annotations

import pytest

from remnant.records import gate_row
from remnant.records.typed import plain
from remnant.studies.shared.pages import headline
from remnant.studies.shared.result_parts import Gate

ADVICE = {"PASS": "No action is needed.", "FAIL": "Do not release."}
FIRST = "The limit holds, yet something was detected: look at it before you release."


def made(outcome, *, detected, sentence="Under the limit."):
    row = gate_row(outcome=outcome, sentence=sentence, claim="", limit=0.6, detected=detected)
    return Gate(**row)


@pytest.mark.parametrize("sentence", ["Under the limit.", "Not yet trained, and under the limit."])
def test_a_pass_beside_which_something_was_detected_says_so_first(sentence):
    plain_pass = made("PASS", detected=False, sentence=sentence)
    assert headline(plain_pass, {}, checks=(), advice=ADVICE).advice == "No action is needed."
    found = made("PASS", detected=True, sentence=sentence)
    assert (
        headline(found, {}, checks=(), advice=ADVICE).advice
        == f"{FIRST} No other action is needed."
    )


@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
@pytest.mark.parametrize("detected", [True, False])
def test_the_field_means_the_same_beside_every_outcome(outcome, detected):
    gate = made(outcome, detected=detected)
    assert gate.detected is plain(gate)["detected"] is detected
    advice = headline(gate, {}, checks=(), advice=ADVICE).advice
    assert advice.startswith(FIRST) == (outcome == "PASS" and detected)


def test_older_records_and_gates_that_do_not_say_have_no_field():
    silent = made("PASS", detected=None)
    assert silent.detected is None
    assert "detected" not in plain(silent)
    older = gate_row(outcome="PASS", sentence="Yet.", claim="", limit=0.6)
    assert headline(Gate(**older), {}, checks=(), advice=ADVICE).advice == "No action is needed."
