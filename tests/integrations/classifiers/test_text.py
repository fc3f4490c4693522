"""Texts and questions for Hugging Face models: the same answers as asking one by one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers

from remnant.errors import InvalidInput
from remnant.integrations.classifiers import load_text_model, read_text_rows, text_samples
from remnant.integrations.classifiers.asking import ask
from remnant.measures import cross_entropy

TEXTS = [
    "the cat and the dog",
    "a hen",
    "this is it.",
    "and then the end of this",
    "no",
    "so is he",
]
LABELS = ["good", "bad", "good", 1, "bad", 0]


def rows_in(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def classifier(tmp_path, make_tokenizer):
    """Return a function that writes a small sequence classifier and its tokenizer."""

    def write(kind, *, name="classifier", **options):
        torch.manual_seed(0)
        shared = {"vocab_size": 60, "num_labels": 2, "id2label": {0: "good", 1: "bad"}}
        shared["label2id"] = {"good": 0, "bad": 1}
        logging = transformers.utils.logging
        before = logging.get_verbosity()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        if kind == "bert":
            config = transformers.BertConfig(
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=24,
                max_position_embeddings=32,
                **shared,
            )
            model = transformers.BertForSequenceClassification(config)
        else:
            config = transformers.GPT2Config(
                n_embd=16, n_layer=1, n_head=2, n_positions=32, pad_token_id=None, **shared
            )
            model = transformers.GPT2ForSequenceClassification(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
        model.save_pretrained(tmp_path / name)
        logging.enable_progress_bar()
        logging.set_verbosity(before)
        make_tokenizer(**options).save_pretrained(tmp_path / name)
        return tmp_path / name, model.eval()

    return write


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_texts_are_classified_as_one_by_one(kind, classifier, tmp_path):
    folder, model = classifier(kind, bos=True)
    pairs = [{"text": t, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)]
    rows = read_text_rows(rows_in(tmp_path / "rows.jsonl", pairs))
    samples = text_samples(folder, rows)
    assert samples.labels.tolist() == [0, 1, 0, 1, 1, 0]
    assert [samples.name(0), samples.name(1)] == ["good", "bad"]
    read = load_text_model(folder, rows)
    found = ask(read, samples.inputs, torch.from_numpy(samples.labels), batch=4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model.config.pad_token_id = 0
    for at, text in enumerate(TEXTS):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        assert int(ids[0, 0]) == 1  # the tokenizer's own special token
        with torch.no_grad():
            logits = model(input_ids=ids).logits.numpy()
        loss = cross_entropy(logits, samples.labels[at : at + 1])
        np.testing.assert_allclose(found.losses[at], loss[0], rtol=1e-4)
    assert found.hidden[0].shape == (6, 16)


def test_questions_are_read_at_the_end_of_the_prompt(save, tmp_path):
    folder = save("gpt2", bos=True)
    asked = [("is it the hen or the cat? ", "a"), ("no. is it? ", "b"), ("and then is this ", "a")]
    pairs = [{"prompt": q, "answer": a} for q, a in asked]
    rows = read_text_rows(rows_in(tmp_path / "rows.jsonl", pairs))
    samples = text_samples(folder, rows)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    answers = [tokenizer(a, add_special_tokens=False)["input_ids"][0] for _, a in asked]
    assert samples.labels.tolist() == answers
    model = load_text_model(folder, rows)
    found = ask(model, samples.inputs, torch.from_numpy(samples.labels), batch=2)
    for at, (prompt, _) in enumerate(asked):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            made = model(input_ids=ids, output_hidden_states=True)
        loss = cross_entropy(made.logits[:, -1].numpy(), samples.labels[at : at + 1])
        np.testing.assert_allclose(found.losses[at], loss[0], rtol=1e-3)
        last = made.hidden_states[-1][0, -1]
        torch.testing.assert_close(found.hidden[0][at], last, rtol=1e-3, atol=1e-3)
    assert samples.name(answers[0]) == tokenizer.decode([answers[0]]).strip()


def test_long_texts_are_cut_and_long_questions_refused(classifier, save, tmp_path):
    folder, _ = classifier("bert")
    pairs = [{"text": "z" * 50, "label": 0}, {"text": "a", "label": 1}]
    rows = read_text_rows(rows_in(tmp_path / "rows.jsonl", pairs))
    assert text_samples(folder, rows).inputs["input_ids"].shape == (2, 32)
    questions = [{"prompt": "z" * 99, "answer": " a"}]
    rows = read_text_rows(rows_in(tmp_path / "rows.jsonl", questions))
    with pytest.raises(InvalidInput, match="line 1: the prompt has 99 tokens, and the model tak"):
        text_samples(save("gpt2"), rows)


def test_faults_name_lines_and_quote_nothing(classifier, save, tmp_path):
    file = tmp_path / "rows.jsonl"
    for text, words in (
        ("", "holds no row"),
        ("secret\n", "line 1 is no row with text and label, or prompt and answer"),
        ('{"text": "secret"}\n', "line 1 is no row"),
        ('{"text": "a", "label": 0}\n\n{"text": "secret"}\n', "line 3 is no row with text and lab"),
        ('{"text": "a", "label": 0}\n{"prompt": "secret", "answer": "b"}\n', "line 2 is no row"),
        ('{"text": "", "label": 0}\n', "line 1: text is no text, or empty"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidInput, match=words) as fault:
            read_text_rows(file)
        assert "secret" not in str(fault.value)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not text in UTF-8"):
        read_text_rows(file)
    with pytest.raises(InvalidInput, match="is not there"):
        read_text_rows(tmp_path / "none.jsonl")
    folder, _ = classifier("bert")
    causal = save("gpt2")
    for where, rows, words in (
        (folder, [{"text": "a", "label": "secret"}], "line 1: label is neither a whole number nor"),
        (folder, [{"text": "a", "label": True}], "Its labels are, among others: good, bad"),
        (causal, [{"prompt": "a", "answer": ""}], "line 1: answer is no text"),
        (causal, [{"prompt": "an", "answer": "d"}], "does not begin with a token of its own"),
        (
            causal,
            [{"prompt": "a", "answer": "xy"}, {"prompt": "b", "answer": "xz"}],
            "line 2: its answer and another one begin with the same token",
        ),
    ):
        read = read_text_rows(rows_in(file, rows))
        with pytest.raises(InvalidInput, match=words) as fault:
            text_samples(where, read)
        assert "secret" not in str(fault.value)
    rows = read_text_rows(rows_in(file, [{"text": "a", "label": 0}]))
    with pytest.raises(InvalidInput, match="lacks 1 of the model's tensors"):
        load_text_model(causal, rows)
