"""A tiny language model fine-tuned on made-up questions: looks, pool, results, resuming, faults."""

from __future__ import annotations

import dataclasses
import json
import shutil
import string

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models

from remnant import measures
from remnant.errors import InvalidInput, PlanError, UnsupportedModel
from remnant.plans import ShadowPlan
from remnant.population import AdapterPopulation, Lora
from remnant.population.adapters import PADDING
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.records.typed import Absent, plain, read_result
from remnant.report.blocks import Table, walk
from remnant.studies import Execution, run_study
from remnant.studies.prediction.multiple_choice import (
    MultipleChoiceTask,
    answer_signals,
    read_frozen,
    tokenise_questions,
)
from remnant.studies.prediction.page import TEXT_TITLE, page
from remnant.studies.prediction.recipe import PredictSettings, TruthSettings
from remnant.studies.prediction.result import PredictionResult
from remnant.studies.prediction.shadow_pool import models_in
from remnant.studies.prediction.text_recipe import (
    LoraSettings,
    PretrainedSettings,
    QuestionSettings,
    TextPredictionStudy,
)
from remnant.studies.shared.pages import read_run
from remnant.studies.shared.settings import TrainingSettings

STUDY = TextPredictionStudy(
    plan=ShadowPlan(models=8, steps=40, batch=4, seed=1),
    questions=QuestionSettings(name="own.json", examples=44, longest=40, mislabelled=8),
    model=PretrainedSettings(folder="tiny"),
    lora=LoraSettings(rank=4, modules=("q_proj", "v_proj", "down_proj")),
    training=TrainingSettings(optimizer="adamw", options={"lr": 0.01}),
    predict=PredictSettings(targets=2, layers=("last", "model.layers.0"), directions=50, drop=0.5),
    truth=TruthSettings(thresholds=(0.0, 1.0), threshold=0.5, variance="pooled"),
)


def write_model(folder, *, merges=((" ", "A"), (" ", "B")), **changes):
    """A tokenizer of characters in which ' A' and ' B' are one token each, and a tiny Llama."""
    pieces = ["<pad>", "<s>", *string.printable[:95], "\n"]
    pieces += ["".join(pair) for pair in merges]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    made = Tokenizer(models.BPE(vocabulary, list(merges)))
    made.decoder = decoders.Fuse()
    config = transformers.LlamaConfig(
        vocab_size=len(pieces) + 3,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        **changes,
    )
    logging = transformers.utils.logging
    logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config)
        for parameter in model.parameters():  # so that an answer depends on all that was read
            parameter.data *= 4 if parameter.ndim > 1 else 1
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(folder)
    logging.enable_progress_bar()
    return model


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_model(folder / "tiny")
    rng = np.random.default_rng(0)
    records = []
    for number in range(80):
        word = "".join(rng.choice(list("abcdefgh"), rng.integers(2, 7)))
        answer = int(word[0] in "abcd")
        records.append({"question": f"{word} {number}", "choices": ["n", "y"], "answer": answer})
    (folder / "own.json").write_text(json.dumps(records))
    return folder


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "text"
    run_study(STUDY, folder, Execution(data_folder=data))
    return folder


def test_what_is_recorded(run):
    record = Record.open(run)
    assert record.status == "complete"
    results = record.results()
    assert {"task", "truth", "prediction", "protect", "verdict", "scope"} <= results.keys()
    assert results["task"]["test_examples"] == 16
    assert results["prediction"]["models"] == 8
    assert [row["predictor"] for row in results["prediction"]["quality"]][:2] == ["psmi", "loss"]
    assert {row["layer"] for row in results["prediction"]["by_layer"]} == {"last", "model.layers.0"}
    assert "LoRA of rank 4 on tiny" in results["scope"]["tested"][0]
    kinds = {row["kind"]: row["n"] for row in results["truth"]["by_kind"]}
    assert kinds == {"mislabelled": 8, "clean": 44}


def test_the_result_is_read_as_it_was_stored_and_has_a_page(run):
    record = Record.open(run)
    result = read_result(record, PredictionResult)
    for name, row in record.results().items():
        part = getattr(result, name)
        if "absent" in row:
            assert part == Absent(row["absent"].removesuffix("."))
        else:
            assert json.dumps(plain(part)) == json.dumps(row), name
    blocks = list(walk(page(result, read_run(record))))
    assert blocks[0].title == result.verdict.headline
    assert TEXT_TITLE == "Prediction of memorisation of text"
    tables = {block.key: block for block in blocks if isinstance(block, Table)}
    assert [row.place for row in tables["layers"].rows] == ["last", "model.layers.0"]
    assert [row.kind for row in tables["kinds"].rows] == ["mislabelled", "clean"]


def test_models_know_what_they_saw_and_not_what_they_did_not(run):
    record = Record.open(run / "pool")
    assert models_in(record) == 8
    scores = record.array("models-0-8")
    assert scores.shape == (8, 6, 52)
    seen = STUDY.plan.seen(examples=52)
    gaps = scores[:, 3 + MARGINS.index("logit_gap")]
    assert gaps[seen].mean() > gaps[~seen].mean() + 0.3
    losses = scores[:, [0, 3]]
    assert losses[:, 1][seen].mean() < losses[:, 0][seen].mean()


def test_targets_of_the_looks_are_those_of_the_pool(run):
    looked = Record.open(run).array("looks.signals")
    scores = Record.open(run / "pool").array("models-0-8")
    np.testing.assert_allclose(looked[-1], scores[[0, 2], 3:], rtol=0.02, atol=0.02)
    assert np.ptp(looked[0], axis=0).max() < 1e-5  # adapters begin as nothing
    psmi = Record.open(run).array("looks.psmi")
    assert psmi.shape == (len(looked), 2, 2, 52)
    assert np.isnan(psmi[0]).all()
    seen = STUDY.plan.seen(examples=52, members=[0, 2])
    np.testing.assert_array_equal(
        np.isfinite(psmi[1:, 0]), np.broadcast_to(seen, psmi[1:, 0].shape)
    )


class Cut(BaseException):
    pass


@pytest.mark.parametrize("where", ["fill_pool", "measure_prediction"])
def test_a_run_cut_short_goes_on_to_the_same_results(where, run, data, tmp_path, monkeypatch):
    def cut(*_, **__):
        raise Cut

    folder = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(f"remnant.studies.prediction.run.{where}", cut)
        with pytest.raises(Cut):
            run_study(STUDY, folder, Execution(data_folder=data))

    def trained_again(*_, **__):
        raise AssertionError("what was there already is trained again")

    with monkeypatch.context() as patch:
        patch.setattr("remnant.studies.prediction.run._look_at_targets", trained_again)
        if where == "measure_prediction":
            patch.setattr(MultipleChoiceTask, "fit", trained_again)
        run_study(STUDY, folder, Execution(data_folder=data))
    assert Record.open(folder).results() == Record.open(run).results()


def test_signals_are_their_definitions():
    rng = np.random.default_rng(0)
    logits, letters = rng.normal(size=(2, 5, 30)) * 20, np.array([7, 3, 11])
    answers = rng.integers(0, 3, 5)
    found = answer_signals(
        torch.from_numpy(logits), torch.from_numpy(answers), torch.from_numpy(letters)
    ).numpy()
    chosen = logits[..., letters]
    np.testing.assert_allclose(found[:, 0], measures.cross_entropy(logits, letters[answers]))
    np.testing.assert_allclose(found[:, 1], measures.log_odds(chosen, answers))
    np.testing.assert_allclose(found[:, 2], measures.logit_gap(chosen, answers))


def test_answers_are_the_librarys_own_whichever_side_is_padded(data):
    execution = Execution(data_folder=data)
    asked = tokenise_questions(STUDY.questions, STUDY.model, execution)
    frozen, _ = read_frozen(STUDY.model, execution, precision="float32")
    fresh = AdapterPopulation(frozen, [1], lora=Lora(modules=("q_proj",)))
    ours = torch.empty(len(asked), frozen.module.config.vocab_size)
    for rows, logits, _ in fresh.ask(asked.tokens, at_once=200):
        ours[rows] = logits[0]
    lengths = (asked.tokens != PADDING).sum(1)
    left = np.stack(
        [np.roll(row, -length) for row, length in zip(asked.tokens, lengths, strict=True)]
    )
    mask = torch.from_numpy((left != PADDING).astype(np.int64))
    with torch.no_grad():
        theirs = frozen.module(
            input_ids=torch.from_numpy(left).clamp(min=0),
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        ).logits[:, -1]
        alone = frozen.module(input_ids=torch.from_numpy(asked.tokens[:1, : lengths[0]])).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours[:1], alone[:, -1], rtol=1e-4, atol=1e-5)


def test_questions_are_read_in_the_models_tokens(data):
    asked = tokenise_questions(STUDY.questions, STUDY.model, Execution(data_folder=data))
    assert len(asked) == 52
    records = json.loads((data / "own.json").read_text())
    known = {one["question"]: one["answer"] for one in records}
    tokenizer = transformers.AutoTokenizer.from_pretrained(data / "tiny")
    for row, answer, kind in zip(asked.tokens, asked.answers, asked.kinds, strict=True):
        text = "".join(tokenizer.convert_ids_to_tokens(row[row != PADDING].tolist()))
        assert text.endswith("\nA. n\nB. y\nAnswer:")
        assert (known[text.split("\n")[0]] == answer) == (kind == "clean")
    assert (asked.tokens != PADDING).sum(1).max() <= 40
    wanted = tokenizer.convert_ids_to_tokens(asked.wanted.tolist())
    assert wanted == [" AB"[0] + "AB"[answer] for answer in asked.answers]


def test_weights_in_pieces_are_the_same_weights(data, tmp_path):
    shutil.copytree(data / "tiny", tmp_path / "tiny")
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "tiny")
    (tmp_path / "tiny" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "tiny", max_shard_size="30KB")
    assert len(list((tmp_path / "tiny").glob("*.safetensors"))) > 1
    digests = {
        read_frozen(STUDY.model, Execution(data_folder=where), precision="float32")[1]
        for where in (data, tmp_path)
    }
    assert len(digests) == 1


def changed(**parts):
    return dataclasses.replace(
        STUDY,
        **{name: dataclasses.replace(getattr(STUDY, name), **new) for name, new in parts.items()},
    )


@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"model": {"folder": "nowhere"}}, InvalidInput, "folder='nowhere' is not a folder"),
        ({"questions": {"examples": 70}}, PlanError, "has 64 to train on and 16 to judge by"),
        ({"questions": {"longest": 20}}, PlanError, "has 0 to train on"),
        ({"questions": {"name": "trivia"}}, PlanError, "'trivia' is not one of arc-easy"),
        ({"lora": {"modules": ("c_attn",)}}, UnsupportedModel, "no dense layers called so"),
        (
            {"predict": {"layers": ("model.layers.9",)}},
            UnsupportedModel,
            "no layer 'model.layers.9'",
        ),
        ({"predict": {"moments": (99.0,)}}, PlanError, "beyond the"),
        ({"training": {"options": {"lr": 1e30}}}, InvalidInput, "Training diverged"),
        ({"training": {"options": {"momentum": 1}}}, InvalidInput, "adamw has no option"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_left(parts, error, words, data, tmp_path):
    with pytest.raises(error, match=words):
        run_study(changed(**parts), tmp_path / "run", Execution(data_folder=data))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("merges", "words"),
    [((), "does not read ' A' after 'Answer:' as one token"), (((" ", "A"),), "' B'")],
)
def test_letters_must_be_tokens(merges, words, data, tmp_path):
    write_model(tmp_path / "tiny", merges=merges)
    shutil.copy(data / "own.json", tmp_path)
    with pytest.raises(UnsupportedModel, match=words):
        tokenise_questions(STUDY.questions, STUDY.model, Execution(data_folder=tmp_path))


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        (QuestionSettings, {"longest": 2}, "questions.longest=2"),
        (QuestionSettings, {"name": ""}, "questions.name='' is not a name"),
        (PretrainedSettings, {"folder": 3}, "model.folder=3 is not a path"),
        (LoraSettings, {"rank": 0}, "lora: rank=0"),
        (LoraSettings, {"modules": []}, r"lora: modules=\(\) are no names"),
    ],
)
def test_settings_are_checked(part, change, words):
    with pytest.raises(PlanError, match=words):
        part(**change)
