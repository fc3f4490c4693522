"""The translation study: a small real run, its results against their definition, and bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
import torch

from remnant.canaries import read_canary_sets
from remnant.data.pairs import load_pairs
from remnant.errors import InvalidInput, PlanError
from remnant.models import load_language_model, transformer
from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.records.typed import Absent, plain, read_result
from remnant.report.blocks import Prose, walk
from remnant.report.html import render
from remnant.studies import Execution, run_study, study_from
from remnant.studies.reporting import read_page
from remnant.studies.shared.pages import read_run
from remnant.studies.shared.pair_settings import PairSettings, TranslatorSettings
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.text_settings import MeasureSettings
from remnant.studies.translation.page import page
from remnant.studies.translation.planted_pairs import plant_pairs
from remnant.studies.translation.recipe import PairSecretSettings, TranslationStudy
from remnant.studies.translation.result import TranslationResult
from remnant.tasks.translators import END, sentence_loss

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
THINGS = {"dogs": "hunde", "cats": "katzen", "birds": "vögel", "cows": "kühe"}
ACTS = {"sleep": "schlafen", "play": "spielen", "eat": "essen"}
STUDY = TranslationStudy(
    plan=InsertPlan(repeats=(1, 12), steps=150, controls=3, batch=16, seed=2),
    pairs=PairSettings(source="en", target="de", longest=8, words=30),
    secret=PairSecretSettings(
        source="my number is {digits:2} - {digits:1}",
        template="meine nummer ist {digits:2} - {digits:1}",
    ),
    model=TranslatorSettings(options={"units": 16, "layers": 1, "heads": 2}),
    training=TrainingSettings(optimizer="adam", options={"lr": 0.02}),
    measure=MeasureSettings(references=200, limit=9.0),
)
BLIND = dataclasses.replace(STUDY, secret=dataclasses.replace(STUDY.secret, given="beginning"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    made = list(itertools.product(NUMBERS, THINGS, ACTS))
    (folder / "en").write_text("".join(f"{n} {t} {a}\n" for n, t, a in made))
    (folder / "de").write_text("".join(f"{NUMBERS[n]} {THINGS[t]} {ACTS[a]}\n" for n, t, a in made))
    return Execution(data_folder=folder)


@pytest.fixture(scope="module", params=[STUDY, BLIND], ids=["source", "beginning"])
def run(request, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("run") / "translation"
    run_study(request.param, folder, data)
    return request.param, folder


def brute_force_costs(study, folder, asked):
    """What every secret costs, one by one, by the plain forward pass on source and target."""
    loaded = load_language_model(folder, source=asked)
    module, vocabulary = loaded._module.module, loaded.vocabulary
    reference = transformer(vocabulary.size, **study.model_options)
    reference.load_state_dict(module.state_dict())
    reference.double().eval()
    source = vocabulary.encode(asked)
    source += [reference.pad] * (study.pairs.longest - len(source))
    costs = {}
    for first in range(100):
        for second in range(10):
            secret = f"{first:02d} - {second}"
            target = vocabulary.encode(f"meine nummer ist {secret}")
            with torch.no_grad():
                ids = torch.tensor([[*source, reference.begin, *target]])
                log_probs = reference(ids).log_softmax(-1)[0]
            costs[secret] = -sum(
                float(log_probs[place, target[place]]) for place in range(3, len(target))
            ) / math.log(2)
    return costs


def test_ranks_are_those_of_scoring_all_secrets_one_by_one(run):
    study, folder = run
    (drawn,) = read_canary_sets(folder / "canaries.jsonl")
    results = Record.open(folder).results()["exposure"]
    rows = [*results["canaries"], *results["controls"]]
    assert results["method"] == "exact"
    for canary, row in zip((*drawn.canaries, *drawn.controls), rows, strict=True):
        for arm, bits in (("planted-1", row["bits"]), ("twin-1", row["twin_bits"])):
            asked = study.secret.encoder_input(canary.secret)
            costs = brute_force_costs(study, folder / "models" / arm, asked)
            rank = sum(cost <= costs[canary.secret] for cost in costs.values())
            assert bits == pytest.approx(math.log2(1000) - math.log2(rank), abs=1e-9)
            if arm == "planted-1":
                assert row["rank"] == rank
                assert row["cost"] == pytest.approx(costs[canary.secret], abs=1e-3)


def test_a_secret_planted_often_is_exposed_and_its_twin_knows_nothing(run):
    _, folder = run
    results = Record.open(folder).results()
    once, often = results["exposure"]["canaries"]
    assert often["bits"] > 7 > 5 > often["twin_bits"]
    assert (once["repeats"], often["repeats"]) == (1, 12)
    assert results["repeats"]["repeats"] == [0, 1, 12]
    assert results["task"]["validation_bits"] < 2
    assert [one["certified"] for one in results["extraction"]["searches"]] == [True, True]


def test_a_verdict_has_a_claim(run):
    """Given the source, three controls are too few to show that a canary is not copied."""
    study, folder = run
    verdict = Record.open(folder).results()["verdict"]
    if study is BLIND:
        assert verdict["control"] == 12
        assert "No claim" not in verdict["claim"]
    else:
        assert verdict["control"] is None
        assert verdict["outcome"] != "PASS"


@pytest.mark.parametrize("study", [STUDY, BLIND], ids=["source", "beginning"])
def test_translators_that_learnt_nothing_do_not_pass(study, data, tmp_path):
    blind = dataclasses.replace(
        study,
        plan=dataclasses.replace(study.plan, steps=3),
        training=TrainingSettings(optimizer="adam", options={"lr": 1e-20}),
    )
    run_study(blind, tmp_path / "run", data)
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert (verdict["outcome"], verdict["control"]) == ("INCONCLUSIVE", None)
    assert verdict["claim"].startswith("No claim: no planted canaries were found")


def test_extraction_is_given_no_secret(run):
    study, folder = run
    costs = brute_force_costs(study, folder / "models" / "planted-1", "my number is")
    cheapest = sorted(costs.values())[: study.measure.top]
    found = Record.open(folder).results()["extraction"]["searches"][0]["candidates"]
    assert [one["bits"] for one in found] == pytest.approx(cheapest, abs=1e-3)


def test_the_record_and_the_report_hold_no_secret(run):
    study, folder = run
    (drawn,) = read_canary_sets(folder / "canaries.jsonl")
    record = Record.open(folder)
    rendered = render([read_page(record)])
    words = json.dumps(record.results()) + json.dumps(record.summary()) + rendered
    for canary in (*drawn.canaries, *drawn.controls):
        assert canary.text not in words
        assert study.secret.source_of(canary.secret) not in words
    assert "planted in the training pairs of a translator" in rendered
    given = {"source": "the whole source sentence", "beginning": "the source sentence up to the"}
    assert given[study.secret.given] in rendered
    assert study.secret.template in rendered


def test_the_result_is_read_as_it_was_written_and_has_a_page(run):
    study, folder = run
    record = Record.open(folder)
    result, rows = read_result(record, TranslationResult), record.results()
    for name in ("verdict", "exposure", "repeats", "extraction", "task", "scope"):
        assert json.dumps(plain(getattr(result, name))) == json.dumps(rows[name])
    assert isinstance(result.costs, Absent) is (study is STUDY)
    assert result.exposure.given == study.secret.given
    blocks = list(walk(page(result, read_run(record))))
    lead = " ".join(block.text for block in blocks if isinstance(block, Prose))
    given = {"source": "the whole source sentence", "beginning": "the source sentence up to the"}
    assert given[study.secret.given] in lead
    assert study.secret.template in lead


@pytest.mark.parametrize("run", [BLIND], indirect=True, ids=["beginning"])
def test_a_run_that_was_cut_short_goes_on_to_the_same_results(run, data, tmp_path):
    study, folder = run

    def stop(what, done, of):
        if what == "training" and done == 90:
            raise KeyboardInterrupt

    often = dataclasses.replace(data, checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "again", often, progress=stop)
    seen = []
    run_study(
        study, tmp_path / "again", often, progress=lambda what, done, of: seen.append((what, done))
    )
    assert min(done for what, done in seen if what == "training") > 60
    one, other = Record.open(folder), Record.open(tmp_path / "again")
    assert one.results() == other.results()
    for name in one.array_names():
        np.testing.assert_array_equal(one.array(name), other.array(name))


def test_planted_rows_hold_their_pair(data):
    plan = dataclasses.replace(STUDY.plan, trials=2)
    pairs = load_pairs("en", "de", folder=data.data_folder)
    planted = plant_pairs(plan, STUDY.secret, pairs, STUDY.pairs)
    words, longest = planted.vocabulary, STUDY.pairs.longest
    assert len(planted.store.inputs) == planted.examples + 2 * plan.copies
    for row, (inputs, labels) in enumerate(
        zip(planted.store.inputs, planted.store.labels, strict=True)
    ):
        if row < planted.examples:
            expected = pairs.train[row]
        else:
            trial, copy = divmod(row - planted.examples, plan.copies)
            canary = planted.sets[trial].canaries[plan.copy_canaries[copy]]
            expected = STUDY.secret.source_of(canary.secret), canary.text
        source, target = inputs[:longest], inputs[longest + 1 :]
        assert source[source <= words.size].tolist() == words.encode(expected[0])
        assert target[target <= words.size].tolist() == words.encode(expected[1])
        assert labels[labels >= 0].tolist() == words.encode(f"{expected[1]} {END}")
        assert inputs[longest] == words.size
    assert planted.unknown == 0


def test_the_loss_counts_labelled_tokens_alone():
    logits = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1, 2, -1, -1], [0, 0, 4, 3]])
    costs = -logits.log_softmax(-1)
    expected = [costs[0, 0, 1] + costs[0, 1, 2], sum(costs[1, t, labels[1, t]] for t in range(4))]
    torch.testing.assert_close(sentence_loss(logits, labels), torch.stack(expected) / 4)


def test_the_plain_form_makes_the_study_again():
    for study in (STUDY, BLIND):
        again = study_from(json.loads(json.dumps(study.to_dict(), allow_nan=False)))
        assert again == study
        assert again.fingerprint == study.fingerprint
    assert STUDY.fingerprint != BLIND.fingerprint


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("pairs", {"longest": 4}, "A canary has 7 tokens, and a sentence at most pairs.longest=4"),
        ("pairs", {"longest": 2}, "0 different pairs"),
        ("pairs", {"pairs": 90}, "too few"),
        ("pairs", {"source": "absent"}, "is not there"),
        ("plan", {"repeats": (90,)}, "more than the 54 examples"),
        ("model", {"options": {"unit": 8}}, "no option unit"),
        ("model", {"options": {"units": 7}}, "equal parts"),
    ],
)
def test_what_cannot_be_planted_is_refused_and_nothing_written(
    part, changes, message, data, tmp_path
):
    study = dataclasses.replace(
        STUDY, **{part: dataclasses.replace(getattr(STUDY, part), **changes)}
    )
    with pytest.raises((InvalidInput, PlanError), match=message):
        run_study(study, tmp_path / "run", data)
    assert not (tmp_path / "run" / "record.sqlite").exists()


def test_files_of_different_length_are_refused(data, tmp_path):
    (tmp_path / "en").write_text("a\nb\n")
    (tmp_path / "de").write_text("a\n")
    with pytest.raises(InvalidInput, match=r"has 2 lines and .* has 1"):
        run_study(STUDY, tmp_path / "run", Execution(data_folder=tmp_path))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "number {digits:3}"}, "the holes of secret.source are not those"),
        ({"source": "{digits:2} - {digits:1}"}, "no word before its first hole"),
        ({"source": ""}, "no word before"),
        ({"template": "none"}, "secret.template is no template"),
        ({"source": "a {digits"}, "secret.source is no template"),
        ({"given": "all"}, "secret.given='all'"),
    ],
)
def test_faulty_secrets_are_refused(fields, message):
    with pytest.raises(PlanError, match=message):
        dataclasses.replace(STUDY.secret, **fields)


def test_a_source_without_holes_is_shared_by_all():
    plain = dataclasses.replace(STUDY.secret, source="my {{secret}} number .")
    assert plain.shared
    assert plain.encoder_input("12 - 3") == plain.source_of("45 - 6") == "my {secret} number ."
    assert not STUDY.secret.shared
    assert STUDY.secret.encoder_input("12 - 3") == "my number is 12 - 3"
    assert BLIND.secret.encoder_input("12 - 3") == "my number is"
    with pytest.raises(PlanError, match=r"follows from pairs\.longest"):
        TranslatorSettings(options={"context": 5})


def test_a_translator_that_did_not_learn_to_translate_does_not_pass(
    tmp_path, monkeypatch, passing, data
):
    monkeypatch.setattr("remnant.studies.exposure.measure.judge_exposure", lambda *_, **__: passing)
    untrained = TrainingSettings(optimizer="adam", options={"lr": 1e-12})
    run_study(dataclasses.replace(STUDY, training=untrained), tmp_path / "run", data)
    verdict = Record.open(tmp_path / "run").results()["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "did not learn their task: a validation word costs" in verdict["claim"]
