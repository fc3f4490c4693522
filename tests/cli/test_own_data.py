"""Every question that trains, on files that the test writes: the numbers of named data, resumed."""

from __future__ import annotations

import itertools
import json
import string
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from sklearn.datasets import load_digits
from tokenizers import Tokenizer, decoders, models

from remnant.progress import ProgressBar
from remnant.records import Record

WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "ran",
    "to",
    "see",
    "an",
    "old",
    "red",
    "dog",
)


@dataclass(frozen=True)
class Case:
    """A question on named data, and the same on own files.

    Attributes:
        recipe: Without what names the data.
        named: Sections that name the data.
        own: The section ``[data]``.
        write: Writes the files of both into a folder.
        changed: The file that is changed later.
    """

    recipe: str
    named: str
    own: str
    write: object
    changed: str = "mine.jsonl"


def write_digits(folder: Path, *, frame: int = 0) -> None:
    digits = load_digits()
    images = np.pad(digits.images, ((0, 0), (frame, frame), (frame, frame))) / 16
    np.savez(folder / "mine.npz", images=images, labels=digits.target)


def write_text(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [" ".join(rng.choice(WORDS, 12)) + "." for _ in range(150)]
    (folder / "book.txt").write_text("\n".join(rows))
    lines = [json.dumps({"id": n, "body": row}) for n, row in enumerate(rows)]
    (folder / "mine.jsonl").write_text("\n\n".join(lines) + "\n")


def write_pairs(folder: Path) -> None:
    numbers = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf"}
    things = {"dogs": "hunde", "cats": "katzen", "birds": "vögel", "cows": "kühe"}
    acts = {"sleep": "schlafen", "play": "spielen", "eat": "essen"}
    made = list(itertools.product(numbers, things, acts))
    english = [" ".join(words) for words in made]
    german = [f"{numbers[n]} {things[t]} {acts[a]}" for n, t, a in made]
    (folder / "en").write_text("\n".join(english))
    (folder / "de").write_text("\n".join(german))
    rows = [f'"{source}",{target}' for source, target in zip(english, german, strict=True)]
    (folder / "mine.csv").write_text("\n".join(["source,target", *rows]))


def write_llama(folder: Path) -> None:
    """A tiny Llama, and a tokenizer of characters in which ' A' and ' B' are one token each."""
    merges = [(" ", "A"), (" ", "B")]
    pieces = ["<pad>", "<s>", *string.printable[:95], "\n", " A", " B"]
    made = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    made.decoder = decoders.Fuse()
    config = transformers.LlamaConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    transformers.utils.logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=made).save_pretrained(folder)
    transformers.utils.logging.enable_progress_bar()


def write_questions(folder: Path) -> None:
    write_llama(folder / "tiny")
    rng = np.random.default_rng(0)
    records = []
    for number in range(80):
        word = "".join(rng.choice(list("abcdefgh"), rng.integers(2, 7)))
        answer = int(word[0] in "abcd")
        records.append({"question": f"{word} {number}", "choices": ["n", "y"], "answer": answer})
    (folder / "own.json").write_text(json.dumps(records))
    rows = [
        {"q": row["question"], "options": row["choices"], "right": "AB"[row["answer"]]}
        for row in records
    ]
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))


def write_frames(folder: Path) -> None:
    write_digits(folder, frame=6)


CLASSIFIER = '[model]\nname = "mlp1"\noptions = { width = 0.125 }\n'
LANGUAGE = '[model]\nname = "gru"\noptions = { units = 16, layers = 1 }\n'
OWN_DIGITS = '[data]\nname = "files"\npath = "mine.npz"\nexamples = 150\n'
OWN_TEXT = '[data]\nname = "files"\npath = "mine.jsonl"\ntext = "body"\n'
CASES = {
    "forgetting": Case(
        recipe="""
        question = "forgetting"
        plan = { kind = "inject", canaries = 12, step = 10, watch_steps = 12, trials = 2 }
        attack = { success = "auc", lags = [0, 6, 12] }
        """,
        named='[data]\nname = "digits"\nexamples = 150\n' + CLASSIFIER,
        own=OWN_DIGITS + CLASSIFIER,
        write=write_digits,
        changed="mine.npz",
    ),
    "one-run": Case(
        recipe="""
        question = "one-run"
        plan = { kind = "staggered", canaries = 60, never = 20, starts = [10, 20], window = 8 }
        attack = { success = "auc", limit = 0.7, checkpoints = 4 }
        """,
        named='[data]\nname = "digits"\nexamples = 150\n' + CLASSIFIER,
        own=OWN_DIGITS + CLASSIFIER,
        write=write_digits,
        changed="mine.npz",
    ),
    "prediction": Case(
        recipe="""
        question = "prediction"
        plan = { kind = "shadow", models = 8, steps = 60, batch = 16 }
        canaries = { mislabelled = 20, odd = 5 }
        predict = { targets = 3, directions = 20, moments = [1.0, 4.0] }
        truth = { threshold = 1.0, thresholds = [0.0, 1.0], false_alarms = 1.0 }
        """,
        named='[data]\nname = "digits"\nexamples = 150\n' + CLASSIFIER,
        own=OWN_DIGITS + CLASSIFIER,
        write=write_digits,
        changed="mine.npz",
    ),
    "unique-features": Case(
        recipe="""
        question = "unique-features"
        plan = { kind = "feature", canaries = 4, seeds = 2, unplanted = 2, epochs = 4, batch = 32 }
        patch = { text = "K" }
        images = { count = 40 }
        score = { nulls = 19, redraws = 2 }
        """,
        named='[data]\nname = "framed-digits"\nexamples = 150\n' + CLASSIFIER,
        own=OWN_DIGITS + CLASSIFIER,
        write=write_frames,
        changed="mine.npz",
    ),
    "exposure": Case(
        recipe="""
        question = "exposure"
        plan = { kind = "insert", repeats = [1, 30], steps = 40, controls = 2, batch = 16 }
        secret = { template = "key {digits:3};" }
        measure = { references = 100, limit = 6.0 }
        """,
        named='[text]\nname = "book.txt"\ncharacters = 5000\nwindow = 24\n' + LANGUAGE,
        own=OWN_TEXT + "[text]\ncharacters = 5000\nwindow = 24\n" + LANGUAGE,
        write=write_text,
    ),
    "exposure-training": Case(
        recipe="""
        question = "exposure-training"
        plan = { kind = "insert", repeats = [4], epochs = 2, trials = 3, controls = 2, batch = 16 }
        secret = { template = "key {digits:3};" }
        measure = { references = 100, windows = 10 }
        compare = [{ label = "30 times", plan = { repeats = [30] } }]
        """,
        named='[text]\nname = "book.txt"\ncharacters = 5000\nwindow = 24\n' + LANGUAGE,
        own=OWN_TEXT + "[text]\ncharacters = 5000\nwindow = 24\n" + LANGUAGE,
        write=write_text,
    ),
    "defences": Case(
        recipe="""
        question = "defences"
        plan = { kind = "insert", repeats = [4], epochs = 2, trials = 3, controls = 2, batch = 16 }
        secret = { template = "key {digits:3};" }
        measure = { references = 100, windows = 10, limit = 6.0 }
        remedy = [{ label = "once", kind = "deduplication" }, { label = "int8", kind = "int8" }]
        """,
        named='[text]\nname = "book.txt"\ncharacters = 5000\nwindow = 24\n' + LANGUAGE,
        own=OWN_TEXT + "[text]\ncharacters = 5000\nwindow = 24\n" + LANGUAGE,
        write=write_text,
    ),
    "text-forgetting": Case(
        recipe="""
        question = "text-forgetting"
        plan = { kind = "inject", canaries = 8, step = 10, watch_steps = 12, trials = 2 }
        canaries = { references = 60 }
        attack = { lags = [0, 6, 12] }
        """,
        named='[text]\nname = "book.txt"\ncharacters = 5000\nwindow = 12\n' + LANGUAGE,
        own=OWN_TEXT + "[text]\ncharacters = 5000\nwindow = 12\n" + LANGUAGE,
        write=write_text,
    ),
    "translation-exposure": Case(
        recipe="""
        question = "translation-exposure"
        plan = { kind = "insert", repeats = [1, 12], steps = 40, controls = 3, batch = 16 }
        secret = { source = "my number is {digits:3}", template = "meine nummer ist {digits:3}" }
        model = { options = { units = 16, layers = 1, heads = 2 } }
        measure = { references = 100, limit = 6.0 }
        """,
        named='[pairs]\nsource = "en"\ntarget = "de"\nlongest = 8\nwords = 30\n',
        own='[data]\nname = "files"\npath = "mine.csv"\n[pairs]\nlongest = 8\nwords = 30\n',
        write=write_pairs,
        changed="mine.csv",
    ),
    "text-prediction": Case(
        recipe="""
        question = "text-prediction"
        plan = { kind = "shadow", models = 8, steps = 20, batch = 4 }
        model = { folder = "tiny" }
        lora = { rank = 4 }
        predict = { targets = 2, directions = 20, drop = 0.5 }
        truth = { thresholds = [0.0, 1.0], threshold = 0.5 }
        """,
        named='[questions]\nname = "own.json"\nexamples = 44\nlongest = 40\n',
        own='[data]\nname = "files"\npath = "own.jsonl"\nquestion = "q"\nchoices = ["options"]\n'
        'answer = "right"\n[questions]\nexamples = 44\nlongest = 40\n',
        write=write_questions,
        changed="own.jsonl",
    ),
}


def write_recipe(folder: Path, case: Case, *, own: bool) -> Path:
    path = folder / ("own.toml" if own else "named.toml")
    path.write_text(dedent(case.recipe) + (case.own if own else case.named))
    return path


def numbers_of(folder: Path) -> dict[str, object]:
    """All results but for the words that name the data."""
    results = Record.open(folder).results()
    for variant in results.get("features", {}).get("variants", []):
        variant.pop("what")
    return {name: result for name, result in results.items() if name != "scope"}


class _Interrupted:
    """A progress bar during which somebody presses Ctrl-C."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def __call__(self, bar: ProgressBar, name: str, done: int, total: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("question", CASES)
def test_own_files_give_the_numbers_of_named_data_also_after_an_interruption(
    question, command, tmp_path, monkeypatch
):
    case, out = CASES[question], tmp_path / "own"
    case.write(tmp_path)
    named = command(
        *("run", write_recipe(tmp_path, case, own=False), "--data", tmp_path),
        *("--out", tmp_path / "named"),
    )
    assert named.code == 0, named.err
    run = ("run", write_recipe(tmp_path, case, own=True), "--out", out, "--checkpoint-seconds", 0)
    dry = command(*run, "--dry-run")
    assert dry.code == 0, dry.err
    assert not out.exists()
    with monkeypatch.context() as patched:
        interrupted = _Interrupted(8)
        patched.setattr(
            ProgressBar, "__call__", lambda bar, *given: interrupted(bar, *given), raising=True
        )
        stopped = command(*run)
    assert stopped.code != 0
    assert Record.open(out).status == "running"
    done = command(*run)
    assert done.code == 0, done.err
    assert numbers_of(out) == numbers_of(tmp_path / "named")

    record = Record.open(out)
    assert len(record.attempts()) == 2
    assert len(record.provenance["data_files"][case.changed]) == 64
    assert case.changed in (out / "report.html").read_text(encoding="utf-8")
    assert record.data_fingerprint != Record.open(tmp_path / "named").data_fingerprint

    path = tmp_path / case.changed
    path.write_bytes(path.read_bytes() + b"\n")
    refused = command(*run)
    assert refused.code == 2
    assert "holds a run on other data" in refused.err
    assert refused.err.count("\n") == 1


def recipe_of(folder: Path, data: str) -> Path:
    """A small forgetting recipe with this section ``[data]``."""
    text = dedent(CASES["forgetting"].recipe)
    path = folder / "recipe.toml"
    path.write_text(text + f'[data]\nname = "files"\n{data}\n' + CLASSIFIER)
    return path


def blobs(count: int, *, classes: int = 3, seed: int = 0):
    """Features of classes that a linear model tells apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    centres = np.random.default_rng(1).normal(0, 3, (classes, 6))
    return centres[labels] + rng.normal(0, 1, (count, 6)), labels


def test_features_with_class_names_and_a_held_out_file(command, tmp_path):
    inputs, labels = blobs(200)
    names = np.array(["cat", "ant", "bee"])
    np.savez(tmp_path / "train.npz", x=inputs, y=names[labels])
    inputs, labels = blobs(120, seed=5)
    np.savez(tmp_path / "rest.npz", x=inputs, y=names[labels])
    recipe = recipe_of(
        tmp_path, 'path = "train.npz"\nheld_out = "rest.npz"\ninputs = "x"\nlabels = "y"'
    )
    done = command("run", recipe, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    record = Record.open(tmp_path / "run")
    assert record.provenance["classes"] == {"0": "ant", "1": "bee", "2": "cat"}
    assert set(record.provenance["data_files"]) == {"train.npz", "rest.npz"}
    assert record.result("task")["test_examples"] == 60
    assert "on train.npz" in json.dumps(record.result("scope"))
    shown = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "0 ant, 1 bee, 2 cat" in shown


def test_a_folder_of_images_with_poison(command, tmp_path):
    rng = np.random.default_rng(0)
    for place, name in enumerate(("light", "dark")):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(70):
            pixels = rng.integers(0, 128, (8, 8, 3)) + 127 * (1 - place)
            picture = Image.fromarray(pixels.astype(np.uint8))
            picture.save(tmp_path / "pictures" / name / f"{number}.{('png', 'jpg')[number % 2]}")
    recipe = recipe_of(tmp_path, 'path = "pictures"')
    recipe.write_text(recipe.read_text().replace('"inject"', '"poison"'))
    done = command("run", recipe, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    record = Record.open(tmp_path / "run")
    assert record.provenance["classes"] == {"0": "dark", "1": "light"}
    assert record.plan["plan"]["kind"] == "poison"
    (tmp_path / "pictures" / "dark" / "0.png").rename(tmp_path / "pictures" / "dark" / "70.png")
    refused = command("run", recipe, "--out", tmp_path / "run")
    assert "holds a run on other data" in refused.err


def test_relative_paths_start_at_the_recipe_or_at_the_data_folder(command, tmp_path, monkeypatch):
    for name, seed in (("recipes", 0), ("elsewhere", 1)):
        (tmp_path / name).mkdir()
        inputs, labels = blobs(150, seed=seed)
        np.savez(tmp_path / name / "mine.npz", inputs=inputs, labels=labels)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    recipe = recipe_of(tmp_path / "recipes", 'path = "mine.npz"')
    found = {}
    for name, more in (
        ("recipe", []),
        ("data", ["--data", tmp_path / "elsewhere"]),
        ("same", ["--data", tmp_path / "recipes"]),
    ):
        done = command("run", recipe, "--out", tmp_path / "out" / name, *more)
        assert done.code == 0, done.err
        found[name] = Record.open(tmp_path / "out" / name).data_fingerprint
    assert found["recipe"] == found["same"] != found["data"]
    other = tmp_path / "recipes" / "second.toml"
    other.write_text(recipe.read_text())
    assert command("run", recipe, other, "--out", tmp_path / "both").code == 0
    missing = command("run", recipe, "--data", tmp_path / "empty", "--out", tmp_path / "none")
    assert missing.code == 2
    assert f"data.path: {tmp_path / 'empty' / 'mine.npz'} is not there" in missing.err
    assert "--data" in missing.err
    assert not (tmp_path / "none").exists()


def test_a_new_recipe_for_own_files_runs_as_it_is(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path)
    made = command("recipe", "new", "forgetting", "--files", "mine.npz", "--out", "sub.toml")
    assert made.code == 0, made.err
    assert 'path = "mine.npz"' in Path("sub.toml").read_text()
    (tmp_path / "deep").mkdir()
    made = command("recipe", "new", "forgetting", "--files", "mine.npz", "--out", "deep/a.toml")
    assert 'path = "../mine.npz"' in Path("deep/a.toml").read_text()
    for recipe in ("sub.toml", "deep/a.toml"):
        done = command("run", recipe, "--dry-run")
        assert done.code == 0, done.err
    assert 'path = "mine.npz"' in command("recipe", "new", "one-run", "--files", "mine.npz").out


def test_too_few_examples_say_how_many_are_needed(command, tmp_path):
    inputs, labels = blobs(60)
    np.savez(tmp_path / "mine.npz", inputs=inputs, labels=labels)
    recipe = recipe_of(tmp_path, 'path = "mine.npz"')
    recipe.write_text(recipe.read_text().replace("canaries = 12", "canaries = 15"))
    refused = command("run", recipe, "--out", tmp_path / "run")
    assert refused.code == 2
    assert "The plan needs 30 canaries and controls" in refused.err
    assert "the pool of mine.npz holds 18 examples" in refused.err
    assert "give at least 99 examples" in refused.err
    inputs, labels = blobs(99)
    np.savez(tmp_path / "mine.npz", inputs=inputs, labels=labels)
    assert command("run", recipe, "--out", tmp_path / "run").code == 0


def test_what_needs_images_refuses_features(command, tmp_path):
    inputs, labels = blobs(150)
    np.savez(tmp_path / "mine.npz", inputs=inputs, labels=labels)
    recipe = recipe_of(tmp_path, 'path = "mine.npz"')
    plain = recipe.read_text()
    recipe.write_text(f'{plain}[canaries]\nkind = "odd"\n')
    odd = command("run", recipe, "--out", tmp_path / "run")
    assert odd.code == 2
    assert "odd canaries are images, and the data are rows of features" in odd.err
    recipe.write_text(dedent(CASES["unique-features"].recipe) + OWN_DIGITS.replace("150", "50"))
    patch = command("run", recipe, "--out", tmp_path / "run")
    assert "A patch is stamped on images, and mine.npz has rows of features" in patch.err
    recipe.write_text(plain.replace('"mlp1"', '"cnn1"').replace("{ width = 0.125 }", "{}"))
    convolution = command("run", recipe, "--out", tmp_path / "run")
    assert "cnn1 needs images of at least 6 pixels a side" in convolution.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("question", "sections", "words"),
    [
        ("forgetting", '[data]\nname = "files"', 'data.path is needed with data.name = "files"'),
        (
            "forgetting",
            '[data]\npath = "a.npz"\nheld_out = "b.npz"\nlabels = "y"',
            'data.path needs data.name = "files"; data.held_out needs data.name = "files"; '
            'data.labels needs data.name = "files"',
        ),
        (
            "exposure",
            '[data]\nname = "digits"\npath = "a"',
            "data.name='digits' is not one of files",
        ),
        ("exposure", "[data]", "[data] lacks path"),
        (
            "exposure",
            '[data]\npath = "a"\n[text]\nname = "book.txt"',
            "text.name='book.txt' and [data] both name the data",
        ),
        (
            "text-forgetting",
            '[data]\npath = "a"\n[text]\nname = "book.txt"',
            "text.name='book.txt' and [data] both name the data",
        ),
        (
            "exposure-training",
            '[data]\npath = "a"\n[text]\nname = "book.txt"',
            "text.name='book.txt' and [data] both name the data",
        ),
        ("translation-exposure", "", "neither [data] nor pairs.source names the pairs"),
        (
            "translation-exposure",
            '[data]\npath = "a"\n[pairs]\nsource = "en"\ntarget = "de"',
            "pairs.source and [data] both name the pairs; pairs.target and [data] both name",
        ),
        (
            "text-prediction",
            '[data]\npath = "a"\ntext = "t"',
            "data.text is given alone; labelled texts need data.text and data.label",
        ),
        (
            "text-prediction",
            '[data]\npath = "a"\n[questions]\nname = "own.json"',
            "questions.name='own.json' and [data] both name the data",
        ),
        (
            "exposure",
            '[data]\npath = ""\ntext = 3',
            "data.path='' is not a path; data.text=3 is not",
        ),
    ],
)
def test_recipes_that_contradict_themselves(question, sections, words, command, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(dedent(CASES[question].recipe) + sections + "\n")
    refused = command("run", path, "--out", tmp_path / "run")
    assert refused.code == 2
    assert words in refused.err
    assert refused.err.count("\n") == 1


def test_faults_of_both_files_are_listed_at_once(command, tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 8, 8)))
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    recipe = recipe_of(tmp_path, 'path = "a.npz"\nheld_out = "b.npz"')
    refused = command("run", recipe, "--out", tmp_path / "run")
    assert refused.code == 2
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    assert f"data.path: {a} has no array 'labels' (data.labels); it holds images; " in refused.err
    assert f"data.held_out: {b} has no array 'images' or 'inputs' (data.inputs)" in refused.err
    assert f"data.held_out: {b} has no array 'labels'" in refused.err
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_labelled_texts_are_questions_about_their_class(command, tmp_path):
    write_llama(tmp_path / "tiny")
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(70)]
    for name, rows in (("train.csv", words[:50]), ("rest.csv", words[50:])):
        lines = [f'"{word}, too",{("ham", "spam")[word[0] < "d"]}' for word in rows]
        (tmp_path / name).write_text("\n".join(["mail,kind", *lines]))
    own = (
        '[data]\npath = "train.csv"\nheld_out = "rest.csv"\ntext = "mail"\nlabel = "kind"\n'
        "[questions]\nlongest = 60\n"
    )
    path = tmp_path / "recipe.toml"
    path.write_text(dedent(CASES["text-prediction"].recipe) + own)
    done = command("run", path, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    record = Record.open(tmp_path / "run")
    assert record.provenance["classes"] == {"0": "ham", "1": "spam"}
    assert record.result("task")["test_examples"] == 20
    assert set(record.provenance["data_files"]) == {"train.csv", "rest.csv"}
