"""``remnant audit`` with classifiers of texts and of images."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from . import audited_classifiers as made

LIMIT = 0.62


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return made.text_case(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Weights ``tuned``, ``light``, ``reference`` and ``random``; records as npz and as folders."""
    home = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(1)
    seen, unseen, others = (made.images_of(count, rng) for count in (250, 250, 800))
    many = [
        np.concatenate(parts) for parts in zip(seen, others, made.images_of(3000, rng), strict=True)
    ]
    for name, (pixels, labels) in (("seen", seen), ("unseen", unseen)):
        np.savez(home / f"{name}.npz", images=pixels, labels=labels)
        for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
            folder = home / name / ("upper", "lower")[label]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image[0]).save(folder / f"{number:04}.png")
    models = {
        "tuned": made.trained_images(*seen, epochs=150),
        "light": made.trained_images(*many, epochs=3),
        "reference": made.trained_images(*others, epochs=6),
        "random": made.network(),
    }
    for name, model in models.items():
        made.save_images(model, home / f"{name}.safetensors")
    inputs = torch.zeros(2, 1, made.SIDE, made.SIDE)
    program = torch.export.export(
        models["light"], (inputs,), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    torch.export.save(program, home / "light.pt2")
    return home


def image_options(home: Path, model: str, *, folders: bool = False, reference: str = "reference"):
    ending = "" if folders else ".npz"
    given: list[object] = ["--model", home / model, "--maker", f"{made.__name__}:network"]
    given += ["--seen", home / f"seen{ending}", "--unseen", home / f"unseen{ending}"]
    return given + (["--reference-model", home / f"{reference}.safetensors"] if reference else [])


# -- texts ---------------------------------------------------------------------------------------


def test_an_overfitted_text_classifier_fails(command, texts, tmp_path):
    out = tmp_path / "audit"
    done = command("audit", *texts.options("tuned"), "--limit", LIMIT, "--out", out, "--json")
    assert done.code == 1, done.err
    result = json.loads(done.out)
    assert result["verdict"]["outcome"] == "FAIL"
    assert [row["name"] for row in result["attacks"]["rows"]] == ["ratio", "loss", "gap"]
    assert result["verbatim"] == {"reason": "a classifier generates no text"}
    assert result["rows"]["tokens"] is None
    with (out / "risks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(texts.seen)
    assert list(rows[0]) == ["row", "share_of_unseen_above", "ratio", "loss", "gap"]
    assert command("show", out, "--gate").code == 1
    words = texts.seen[0][0]
    assert words not in (out / "report.html").read_text() + done.out


def test_scores_are_those_of_the_library(command, texts):
    from remnant import audit_text_classifier

    audit = audit_text_classifier(
        texts.home / "tuned",
        seen=texts.home / "seen.jsonl",
        unseen=texts.home / "unseen.jsonl",
        reference_model=texts.home / "reference",
        rng=np.random.default_rng(0),
    )
    odds = []
    for name in ("tuned", "reference"):
        model = transformers.BertForSequenceClassification.from_pretrained(texts.home / name).eval()
        for words, label in texts.seen[:5]:
            ids = torch.tensor([made.tokenizer()(words)["input_ids"]])
            with torch.no_grad():
                logits = model(input_ids=ids).logits[0].double()
            odds.append(float(logits[label] - logits[1 - label]))
    by_hand = np.array(odds[:5]) - np.array(odds[5:])
    np.testing.assert_allclose(np.asarray(audit.risks[:5]), by_hand, atol=1e-5)


def test_a_text_classifier_that_remembers_little_passes_with_a_trained_control(command, texts):
    done = command("audit", *texts.options("light"), "--limit", LIMIT)
    assert done.code == 0, done.out
    assert done.out.startswith("PASS")
    assert "Positive control: in a copy of the model that was trained on 32" in done.out


def test_without_a_reference_there_is_no_pass(command, texts):
    done = command("audit", *texts.options("light", reference=False), "--limit", LIMIT)
    assert done.code == 3
    assert "there is no reference model" in done.out


def test_a_text_classifier_that_learnt_nothing_is_no_pass(command, texts):
    done = command("audit", *texts.options("random"), "--limit", LIMIT)
    assert done.code == 3
    assert "did not learn its task" in done.out


def test_a_control_that_was_not_trained_on_is_not_found(command, texts, tmp_path):
    control = made.write_rows(tmp_path / "c.jsonl", made.rows_of(60, np.random.default_rng(9)))
    done = command("audit", *texts.options("light"), "--limit", LIMIT, "--control", control)
    assert done.code == 3
    assert "positive control failed" in done.out


@pytest.mark.parametrize("shift", ["words", "labels"])
def test_sets_that_differ_in_themselves_are_void(command, texts, tmp_path, shift):
    rng = np.random.default_rng(5)
    if shift == "words":
        rows = made.rows_of(200, rng, words=made.WORDS[:30])
    else:
        rows = [row for row in made.rows_of(900, rng) if row[1] == 0 or rng.random() < 0.05][:200]
    made.write_rows(tmp_path / "unseen.jsonl", rows)
    given = texts.options("light")
    given[given.index("--unseen") + 1] = tmp_path / "unseen.jsonl"
    done = command("audit", *given)
    assert done.code == 3
    assert "The audit is void" in done.out


def test_tables_fields_numbers_and_copies(command, texts, tmp_path):
    lines = ["body,class"] + [f"{words},{label}" for words, label in texts.seen]
    lines += [*lines[1:4], f"{texts.unseen[0][0]},0"]
    (tmp_path / "seen.csv").write_text("\n".join(lines) + "\n")
    unseen = made.write_rows(tmp_path / "unseen.jsonl", texts.unseen, text="body", label="class")
    given = ["--model", texts.home / "tuned", "--seen", tmp_path / "seen.csv", "--unseen", unseen]
    done = command("audit", *given, "--field", "body", "--label-field", "class", "--json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert (rows["seen"], rows["unseen"]) == (200, 199)
    assert (rows["shared"], rows["repeated_seen"], rows["repeated_unseen"]) == (1, 3, 0)


def test_texts_longer_than_the_model_are_counted(command, texts, tmp_path):
    longer = [(f"{words} {words}", label) for words, label in texts.seen[:7]]
    made.write_rows(tmp_path / "seen.jsonl", [*texts.seen, *longer])
    given = texts.options("tuned", reference=False)
    given[given.index("--seen") + 1] = tmp_path / "seen.jsonl"
    assert json.loads(command("audit", *given, "--json").out)["rows"]["cut"] == 7


def _rows(texts, tmp_path, change) -> list[object]:
    lines = (texts.home / "seen.jsonl").read_text().splitlines()
    row = json.loads(lines[2])
    change(row)
    lines[2] = json.dumps(row)
    (tmp_path / "seen.jsonl").write_text("\n".join(lines) + "\n")
    given = texts.options("tuned")
    given[given.index("--seen") + 1] = tmp_path / "seen.jsonl"
    return given


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row.pop("label"), "row 3, has no label: there is no field 'label'"),
        (lambda row: row.update(label=2), "row 3: the label 2 is not one of the model's 2 classes"),
        (lambda row: row.update(label="ugly"), "line 3: label is neither a whole number nor"),
        (lambda row: row.update(label=True), "line 3: label is neither"),
        (lambda row: row.update(text=3), "row 3: 'text' is no text but a int"),
    ],
)
def test_rows_without_a_label_of_the_model_are_refused(command, texts, tmp_path, change, words):
    done = command("audit", *_rows(texts, tmp_path, change))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_options_and_models_that_do_not_fit_are_refused(command, texts, images, tmp_path):
    other = made.bert(problem_type="multi_label_classification")
    made.save_text(other, tmp_path / "several")
    other = made.bert()
    other.config.label2id = {"yes": 0, "no": 1}
    made.save_text(other, tmp_path / "renamed")
    plain = texts.options("tuned", reference=False)
    several = texts.options("tuned", reference=False)
    several[1] = tmp_path / "several"
    lines = tmp_path / "lines.txt"
    lines.write_text("w1 w2\n" * 30)
    unlabelled = texts.options("tuned", reference=False)
    unlabelled[3] = lines
    for given, words in (
        ((*plain, "--attack", "min-k"), "--attack min-k is not one of a classifier's"),
        ((*plain, "--attack", "ratio"), "--attack ratio needs a reference model"),
        ((*plain, "--architecture", "mlp1"), "--architecture is not for texts"),
        ((*plain, "--base", texts.home / "random"), "--base is not for a text classifier"),
        ((*plain, "--reference-model", tmp_path / "renamed"), "other labels than the model"),
        ((*plain, "--reference-model", texts.home / "tuned"), "is the model under audit"),
        (several, "predicts several labels of a text"),
        (unlabelled, "row 1, has no label"),
        (
            (
                "--model",
                texts.home / "tuned",
                "--seen",
                images / "seen",
                "--unseen",
                images / "unseen",
            ),
            "is a folder",
        ),
    ):
        done = command("audit", *given)
        assert (done.code, done.out) == (2, ""), given
        assert words in done.err
        assert len(done.err.splitlines()) == 1


# -- images --------------------------------------------------------------------------------------


def test_an_overfitted_image_classifier_fails(command, images):
    done = command("audit", *image_options(images, "tuned.safetensors"), "--limit", LIMIT)
    assert done.code == 1, done.out
    assert done.out.startswith("FAIL")


def test_classes_that_are_numbered_otherwise_than_in_training_decide_nothing(command, images):
    # Folders number their classes by name: lower is 0 there, and 1 in the training.
    given = image_options(images, "tuned.safetensors", folders=True)
    done = command("audit", *given, "--limit", LIMIT)
    assert done.code == 3, done.out
    assert "did not learn its task" in done.out


def test_folders_named_by_number_are_those_classes(command, images, tmp_path):
    given = image_options(images, "tuned.safetensors", folders=True)
    for at in (given.index("--seen") + 1, given.index("--unseen") + 1):
        side = tmp_path / Path(str(given[at])).name
        side.mkdir()
        for name, number in (("upper", "0"), ("lower", "1")):
            (side / number).symlink_to(Path(str(given[at])) / name)
        given[at] = side
    done = command("audit", *given, "--limit", LIMIT, "--json")
    arrays = command(
        "audit", *image_options(images, "tuned.safetensors"), "--limit", LIMIT, "--json"
    )
    values = [json.loads(each.out)["judged"]["estimate"][0] for each in (done, arrays)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_an_image_classifier_that_remembers_little_passes(command, images):
    done = command("audit", *image_options(images, "light.safetensors"), "--limit", 0.6)
    assert done.code == 0, done.out
    assert "Positive control: in a copy of the model" in done.out


def test_an_image_classifier_that_learnt_nothing_is_no_pass(command, images):
    done = command("audit", *image_options(images, "random.safetensors"), "--limit", LIMIT)
    assert done.code == 3
    assert "did not learn its task" in done.out


def test_a_program_needs_a_control(command, images):
    given = image_options(images, "light.pt2")
    done = command("audit", *given, "--limit", LIMIT)
    assert done.code == 3, done.err
    assert "an exported program cannot be trained" in done.out
    blind = command("audit", *given, "--limit", LIMIT, "--control", images / "unseen.npz")
    assert blind.code == 3
    assert "positive control failed" in blind.out


def test_darker_images_are_void(command, images, tmp_path):
    with np.load(images / "unseen.npz") as stored:
        np.savez(tmp_path / "dark.npz", images=stored["images"] // 2, labels=stored["labels"])
    given = image_options(images, "light.safetensors")
    given[given.index("--unseen") + 1] = tmp_path / "dark.npz"
    done = command("audit", *given)
    assert done.code == 3
    assert "The audit is void" in done.out


def test_a_hugging_face_image_classifier(command, images, tmp_path):
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=made.SIDE,
        patch_size=6,
        num_channels=1,
        label2id={"upper": 0, "lower": 1},
        id2label={0: "upper", 1: "lower"},
    )
    torch.manual_seed(0)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    given = ["--model", tmp_path / "vit", "--seen", images / "seen", "--unseen", images / "unseen"]
    done = command("audit", *given, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["rows"]["seen"] == 250
    (tmp_path / "odd" / "sideways").mkdir(parents=True)
    Image.fromarray(np.zeros((12, 12), np.uint8)).save(tmp_path / "odd" / "sideways" / "a.png")
    given[3] = tmp_path / "odd"
    refused = command("audit", *given)
    assert refused.code == 2
    assert "the model has no class 'sideways'" in refused.err


def test_what_does_not_fit_images_is_refused(command, images, texts, tmp_path):
    given = image_options(images, "tuned.safetensors")
    empty = tmp_path / "empty"
    empty.mkdir()
    with np.load(images / "seen.npz") as stored:
        pixels, labels = stored["images"], stored["labels"]
    np.savez(tmp_path / "labels.npz", images=pixels, labels=labels + 3)
    np.savez(tmp_path / "few.npz", images=pixels[:9], labels=labels[:9])

    def with_seen(path: Path) -> list[object]:
        return [path if part == images / "seen.npz" else part for part in given]

    for options, words in (
        (with_seen(texts.home / "seen.jsonl"), "is neither a folder with one folder a class nor"),
        (with_seen(empty), "has no folder for a class"),
        (with_seen(tmp_path / "labels.npz"), "labels reach from 3 to 4, and the model has 2"),
        (with_seen(tmp_path / "few.npz"), "9 seen and 250 unseen records are too few"),
        (with_seen(tmp_path / "nowhere.npz"), f"--seen {tmp_path / 'nowhere.npz'} is not there"),
        ((*given, "--control", tmp_path / "few.npz"), "--control has 9 records; it takes at least"),
        ((*given, "--field", "x"), "--field is not for images"),
        ((*given, "--mean", "0.5"), "--mean and --std belong together"),
        ((*given, "--architecture", "mlp1"), "--architecture and --maker are both given"),
    ):
        done = command("audit", *options)
        assert (done.code, done.out) == (2, ""), words
        assert words in done.err
        assert len(done.err.splitlines()) == 1
