"""Each attack agrees with its definition, text by text."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.measures.membership.attacks import (
    CLASSIFIER_ATTACKS,
    TEXT_ATTACKS,
    LabelEvidence,
    attack_scores,
    classifier_attack_scores,
    needs_reference,
)

DOCS = Path(__file__).parents[3] / "docs"


def rows(seed, lengths, width):
    rng = np.random.default_rng(seed)
    shape = (len(lengths), width)
    return SimpleNamespace(
        log_probs=-rng.exponential(2.0, size=shape),
        standard=rng.normal(size=shape),
        correct=rng.random(shape) < 0.4,
        lengths=np.array(lengths),
    )


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_attacks_agree_with_their_definitions(seed, lengths):
    target, reference = rows(seed, lengths, 33), rows(seed + 1, lengths, 33)
    packed = list(range(5, 5 + len(lengths)))
    scores = attack_scores(target, reference, zlib_bytes=packed)
    assert scores.keys() == TEXT_ATTACKS.keys()
    for i, length in enumerate(lengths):
        own, beside = target.log_probs[i, :length], reference.log_probs[i, :length]
        gain = own - beside
        wrong = gain[~target.correct[i, :length]]
        up, down = wrong[wrong > 0].sum(), -wrong[wrong < 0].sum()
        lowest = np.sort(target.standard[i, :length])[: max(1, math.ceil(0.2 * length - 1e-9))]
        assert scores["loss"][i] == pytest.approx(own.mean())
        assert scores["ratio"][i] == pytest.approx(gain.mean())
        assert scores["min-k"][i] == pytest.approx(lowest.mean())
        assert scores["zlib"][i] == pytest.approx(own.sum() / packed[i])
        assert scores["bits"][i] == pytest.approx(max(0.0, gain.sum()) / math.log(2))
        if len(wrong) == 0:
            assert scores["ez"][i] == 1.0
        elif down > 0:  # the order of gains over losses
            ratio = up / down
            assert scores["ez"][i] == pytest.approx(ratio / (1 + ratio))


def test_without_a_reference_only_attacks_on_the_model_alone():
    scores = attack_scores(rows(0, [4, 5], 6), None, zlib_bytes=[9, 9])
    assert set(scores) == {name for name in TEXT_ATTACKS if not needs_reference(name)}
    assert not scores.keys() & {"ratio", "ez", "bits"}


def test_what_comes_after_a_text_is_ignored():
    short = rows(3, [4, 7], 7)
    long = rows(3, [4, 7], 7)
    for name in ("log_probs", "standard"):
        getattr(long, name)[0, 4:] = -99.0
    long.correct[0, 4:] = True
    first = attack_scores(short, short, zlib_bytes=[3, 3])
    second = attack_scores(long, long, zlib_bytes=[3, 3])
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_attacks_on_a_classifier_agree_with_their_definitions():
    rng = np.random.default_rng(0)
    losses, gaps, odds, beside = rng.normal(size=(4, 9))
    given = {"losses": losses, "logit_gaps": gaps, "log_odds": odds}
    scores = classifier_attack_scores(LabelEvidence(**given, reference_log_odds=beside))
    assert scores.keys() == CLASSIFIER_ATTACKS.keys()
    np.testing.assert_array_equal(scores["loss"], -losses)
    np.testing.assert_array_equal(scores["gap"], gaps)
    np.testing.assert_array_equal(scores["ratio"], odds - beside)
    alone = classifier_attack_scores(LabelEvidence(**given, reference_log_odds=None))
    assert alone.keys() == {"loss", "gap"}


def test_the_page_names_every_attack():
    page = (DOCS / "how-a-two-file-audit-works.md").read_text(encoding="utf-8")
    table = page.split("## The attacks")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([^`]+)` \|", table, flags=re.MULTILINE)
    assert set(named) == set(TEXT_ATTACKS), "the table of docs/how-a-two-file-audit-works.md"
    commands = (DOCS / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (?:sequence|image) classifier.*\| (.*?) \|$", commands, flags=re.MULTILINE
    )
    assert len(rows) == 2
    for row in rows:
        assert set(re.findall(r"`([^`]+)`", row)) == set(CLASSIFIER_ATTACKS), "docs/commands.md"
