"""``remnant predict`` as its user meets it."""

from __future__ import annotations

import csv
import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from remnant.cli.predict import DATA_SETS
from remnant.measures import cross_entropy, logit_gap, mahalanobis, prediction_quality, psmi
from remnant.measures.prediction.predicted import PREDICTORS
from remnant.models.catalogue import model_maker
from remnant.probes import hidden_states
from remnant.studies.prediction.sentences import share_text

WIDTH = {"width": 0.125}
OPTION = ("--architecture", "mlp1", "--option", "width=0.125")
WRONG = 40


@dataclass(frozen=True)
class Trained:
    """A small network on digits with wrong labels: at the start, early, and late; and its data."""

    folder: Path
    images: np.ndarray
    labels: np.ndarray
    wrong: np.ndarray
    model: nn.Module

    @property
    def model_file(self):
        """The early one."""
        return self.folder / "early.safetensors"

    @property
    def asked(self):
        """The options that name model and data."""
        return ("predict", "--model", self.model_file, *OPTION, "--data", self.folder / "train.npz")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    from sklearn.datasets import load_digits

    folder = tmp_path_factory.mktemp("trained")
    bunch = load_digits()
    rng = np.random.default_rng(0)
    images, labels = (bunch.images[:700, None] / 16).astype(np.float32), bunch.target[:700].copy()
    wrong = np.zeros(700, dtype=bool)
    wrong[rng.choice(700, WRONG, replace=False)] = True
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, WRONG)) % 10
    np.savez(folder / "train.npz", images=images, labels=labels)
    np.save(folder / "wrong.npy", wrong)
    torch.manual_seed(0)
    model = model_maker("mlp1", shape=(1, 8, 8), classes=10, **WIDTH)()
    early = model_maker("mlp1", shape=(1, 8, 8), classes=10, **WIDTH)()
    save_file(model.state_dict(), folder / "start.safetensors")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    inputs, targets = torch.from_numpy(images), torch.from_numpy(labels)
    for step in range(400):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if step == 45:
            early.load_state_dict(model.state_dict())
            save_file(model.state_dict(), folder / "early.safetensors")
    save_file(model.state_dict(), folder / "late.safetensors")
    return Trained(folder, images, labels, wrong, early.eval())


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def answers(trained):
    """What the measures say, asked by hand."""
    inputs = torch.from_numpy(trained.images)
    logits = trained.model(inputs).detach().numpy()
    hidden = hidden_states(trained.model, inputs).numpy()
    return logits, hidden, psmi(hidden=hidden, labels=trained.labels, rng=np.random.default_rng(0))


def test_every_row_holds_what_the_measures_say(command, trained, tmp_path):
    out = tmp_path / "risks.csv"
    done = command(*trained.asked, "--out", out)
    assert (done.code, done.err) == (0, "")
    rows = table(out)
    logits, hidden, found = answers(trained)
    assert list(rows[0]) == [
        *("index", "label", "predicted", "loss", "logit_gap", "psmi", "psmi_standard_error"),
        *("mahalanobis", "rank", "listed"),
    ]

    def column(name):
        return np.array([float(row[name]) for row in rows])

    np.testing.assert_array_equal(column("index"), np.arange(700))
    np.testing.assert_array_equal(column("label"), trained.labels)
    np.testing.assert_array_equal(column("predicted"), logits.argmax(1))
    losses = cross_entropy(logits, trained.labels)
    np.testing.assert_allclose(column("loss"), losses, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(column("logit_gap"), logit_gap(logits, trained.labels), atol=1e-3)
    np.testing.assert_allclose(column("psmi"), found.values, atol=1e-3)
    np.testing.assert_allclose(column("psmi_standard_error"), found.standard_error, atol=1e-3)
    components = json.loads(command(*trained.asked, "--json").out)["layers"][0]
    far = mahalanobis(hidden=hidden, components=components["mahalanobis_components"])
    np.testing.assert_allclose(column("mahalanobis"), far.distances, rtol=1e-2)
    order = np.argsort(column("rank"))
    assert np.all(np.diff(column("psmi")[order]) >= 0)
    np.testing.assert_array_equal(column("listed"), column("psmi") <= 0)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["risks.csv"]
    # And it does find them: more than two in three of the wrong labels are on a short list.
    assert column("listed")[trained.wrong].mean() > 0.67
    assert column("listed").mean() < 0.2


def test_the_whole_output(command, trained, tmp_path):
    out = tmp_path / "risks.json"
    asked = [*trained.asked, "--start", trained.folder / "start.safetensors", "--top", 30]
    done = command(*asked, "--out", out)
    told = json.loads(out.read_text())
    assert done.code == 0, done.err
    first, layer, stop, listed, blank, caption, head, *table = done.out.splitlines()
    accuracy = float(np.mean([row["label"] == row["predicted"] for row in told["samples"]]))
    assert first == (
        f"700 samples, 10 classes; the model gives {share_text(accuracy)} of them their label"
    )
    assert layer == f"entering 7: 16 features, SMI {told['layers'][0]['smi']:.3f} nats"
    dropped = told["stop"]["dropped"]
    assert stop.startswith(f"the median training loss has dropped by {share_text(dropped)} from ")
    assert listed == "predicted to be memorised: 30 of 700 (4.3 %): the riskiest 30 by PSMI"
    assert (blank, caption) == ("", "The riskiest samples")
    assert head.split() == [
        *("Rank", "Index", "Label", "Predicted", "Loss", "Logit", "gap", "PSMI", "s.e."),
        "Mahalanobis",
    ]
    assert [int(line.split()[1]) for line in table[:10]] == [
        row["index"] for row in told["riskiest"]
    ]
    assert table[10:] == [
        "How many of the samples that will be memorised are not on it is unknown without the truth "
        '(--memorised); a recipe with question = "prediction" measures it on shadow models.',
        f"written: {out} (only its owner can read it)",
    ]
    few = command(*trained.asked, "--top", 3).out.splitlines()
    shown = [line.split() for line in few[few.index("") + 3 :]]
    assert shown[:3] == [line.split() for line in table[:3]]
    assert shown[3][:2] == ["How", "many"], "no more than are listed"
    assert len(told["samples"]) == 700
    assert sum(row["listed"] for row in told["samples"]) == 30
    assert told["miss_rate_unknown"] is True
    assert told["truth"] == {"absent": "no --memorised was given"}


@pytest.mark.parametrize("by", PREDICTORS)
def test_lists_are_made_by_any_predictor(command, trained, by):
    found = json.loads(command(*trained.asked, "--by", by, "--protect", 0.1, "--json").out)
    assert (found["by"], found["listed"]) == (by, 70)
    assert found["share"] == pytest.approx(0.1)
    ranks = [row["rank"] for row in found["riskiest"]]
    assert ranks == list(range(1, 11))
    values = np.array([row[by] for row in found["riskiest"]])
    assert np.all(np.diff(values * (1 if by in ("loss", "mahalanobis") else -1)) <= 0)


def test_the_truth_says_how_good_the_prediction_is(command, trained):
    truth = trained.folder / "wrong.npy"
    done = command(*trained.asked, "--memorised", truth, "--json")
    found = json.loads(done.out)
    _, _, by_hand = answers(trained)
    quality = prediction_quality(
        risk=by_hand.risk, memorised=trained.wrong, rng=np.random.default_rng(0)
    )
    told = found["truth"]
    assert told["auc"] == pytest.approx(
        [quality.auc.value, quality.auc.low, quality.auc.high], abs=2e-3
    )
    assert told["fpr_at_tpr"][0] == pytest.approx(quality.fpr_at_tpr.value, abs=5e-3)
    missed = int(np.sum(trained.wrong & ~(by_hand.values <= 0)))
    assert (told["memorised"], told["missed"]) == (WRONG, pytest.approx(missed, abs=1))
    low, value, high = told["miss_rate"][1], told["miss_rate"][0], told["miss_rate"][2]
    assert low < value == told["missed"] / WRONG < high
    assert found["miss_rate_unknown"] is False
    assert told["listed_and_memorised"] == WRONG - told["missed"]
    text = command(*trained.asked, "--memorised", truth).out
    assert "compared with the truth (40 memorised samples; 95 % intervals over samples):" in text
    assert f"({told['missed']} of 40)" in text
    assert "unknown" not in text


def test_it_says_when_it_is_too_early_or_late(command, trained):
    start, late = trained.folder / "start.safetensors", trained.folder / "late.safetensors"
    asked = ("predict", *OPTION, "--data", trained.folder / "train.npz", "--json")
    fine = json.loads(command(*asked, "--model", trained.model_file, "--start", start).out)
    assert fine["warnings"] == []
    assert (fine["stop"]["reached"], fine["stop"]["drop"]) == (True, 0.95)
    assert fine["stop"]["dropped"] == pytest.approx(
        1 - fine["stop"]["median_loss"] / fine["stop"]["start_median_loss"]
    )
    early = json.loads(command(*asked, "--model", start, "--start", trained.model_file).out)
    assert early["stop"]["reached"] is False
    assert early["warnings"][0].startswith("too early: the median training loss has dropped by -")
    done = json.loads(command(*asked, "--model", late).out)
    assert done["stop"]["absent"] == "no --start was given"
    assert done["warnings"][0].startswith("late: the model gives ")
    text = command(*asked[:-1], "--model", late).out
    assert (
        "whether the model was read at the right moment was not checked: no --start was given"
        in text
    )
    assert "warning, late: " in text


def test_arrays_need_no_model(command, trained, tmp_path):
    logits, hidden, found = answers(trained)
    for name, array in (("h", hidden), ("y", trained.labels), ("z", logits)):
        np.save(tmp_path / f"{name}.npy", array)
    asked = ["predict", "--hidden", tmp_path / "h.npy", "--labels", tmp_path / "y.npy"]
    by_model = json.loads(command(*trained.asked, "--json").out)
    told = json.loads(command(*asked, "--logits", tmp_path / "z.npy", "--json").out)
    assert told["layers"][0]["smi"] == pytest.approx(found.smi)
    assert told["listed"] == pytest.approx(by_model["listed"], abs=2)
    assert told["accuracy"] == by_model["accuracy"]
    bare = json.loads(command(*asked, "--json").out)
    assert (bare["listed"], bare["accuracy"]) == (told["listed"], None)
    assert bare["stop"] == {"absent": "losses are not known without logits"}
    assert bare["riskiest"][0]["loss"] is None
    names = np.array(["cat", "dog", "hen"])[trained.labels % 3]
    np.save(tmp_path / "y.npy", names)
    out = tmp_path / "risks.csv"
    assert command(*asked, "--out", out).code == 0
    row = table(out)[0]
    assert (row["label"], row["predicted"], row["loss"]) == (names[0], "", "")


def test_an_exported_program_gives_the_same(command, trained, tmp_path):
    inputs = torch.from_numpy(trained.images)
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(trained.model, (inputs[:4],), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    asked = ["--data", trained.folder / "train.npz", "--json"]
    ours = json.loads(command("predict", "--model", tmp_path / "model.pt2", *asked).out)
    weights = json.loads(command(*trained.asked, "--json").out)
    assert ours["layers"][0]["smi"] == pytest.approx(weights["layers"][0]["smi"], abs=1e-3)
    assert ours["listed"] == pytest.approx(weights["listed"], abs=2)
    single = torch.export.export(trained.model, (inputs[:1],))
    torch.export.save(single, tmp_path / "single.pt2")
    alone = json.loads(command("predict", "--model", tmp_path / "single.pt2", *asked).out)
    assert alone["listed"] == pytest.approx(weights["listed"], abs=2)
    fixed = torch.export.export(trained.model, (inputs[:9],))
    torch.export.save(fixed, tmp_path / "fixed.pt2")
    done = command("predict", "--model", tmp_path / "fixed.pt2", *asked)
    assert done.code == 2
    assert done.err.startswith("remnant: the program was exported for batches of 9, and gets 7. ")


def test_layers_are_columns_and_the_first_decides(command, trained, tmp_path):
    out = tmp_path / "risks.csv"
    asked = [*trained.asked, "--layer", "5", "--layer", "last", "--out", out, "--json"]
    found = json.loads(command(*asked).out)
    assert [one["layer"] for one in found["layers"]] == ["5", "entering 7"]
    rows = table(out)
    assert "psmi:entering 7" in rows[0]
    listed = [float(row["psmi"]) <= 0 for row in rows]
    assert [row["listed"] == "1" for row in rows] == listed
    other = json.loads(command(*trained.asked, "--json").out)["layers"][0]["smi"]
    assert found["layers"][1]["smi"] == pytest.approx(other)


def test_a_sample_alone_in_its_class_is_named_or_listed(command, trained, tmp_path):
    labels = trained.labels.copy()
    labels[labels == 9] = 8
    labels[5] = 9
    data = tmp_path / "alone.npz"
    np.savez(data, images=trained.images, labels=labels)
    asked = ["predict", "--model", trained.model_file, *OPTION, "--data", data]
    done = command(*asked)
    assert done.code == 2
    assert done.err == (
        "remnant: classes with a single sample have no PSMI: 9 (sample 5). Join classes, or put "
        "such samples on the list with --list-small-classes.\n"
    )
    out = tmp_path / "risks.csv"
    done = command(*asked, "--list-small-classes", "--out", out)
    assert done.code == 0, done.err
    assert "warning, 1 sample alone in the class: listed first, without a PSMI." in done.out
    row = table(out)[5]
    assert (row["psmi"], row["rank"], row["listed"]) == ("", "1", "1")


def test_texts_and_questions(command, tmp_path):
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = ["<pad>", "<unk>", *"abcdefghijklmnopqrstuvwxyz ?"]
    cut = Tokenizer(
        models.BPE({piece: at for at, piece in enumerate(pieces)}, [], unk_token="<unk>")
    )
    cut.pre_tokenizer, cut.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=cut, pad_token="<pad>", unk_token="<unk>"
    )
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(pieces),
        n_embd=12,
        n_layer=1,
        n_head=2,
        n_positions=24,
        pad_token_id=0,
        id2label={0: "calm", 1: "angry", 2: "glad"},
        label2id={"calm": 0, "angry": 1, "glad": 2},
    )
    logging = transformers.utils.logging
    logging.disable_progress_bar()
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path / "classes")
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "causal")
    logging.enable_progress_bar()
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh "), size=rng.integers(3, 15))) for _ in range(60)]
    classes = [("calm", "angry", "glad")[at % 3] for at in range(60)]
    for folder, first, second, given in (
        ("classes", "text", "label", classes),
        ("causal", "prompt", "answer", [name[0] for name in classes]),
    ):
        tokenizer.save_pretrained(tmp_path / folder)
        data = tmp_path / f"{folder}.jsonl"
        rows = [{first: f"{w}?", second: y} for w, y in zip(words, given, strict=True)]
        data.write_text("\n".join(map(json.dumps, rows)))
        out = tmp_path / f"{folder}.csv"
        done = command("predict", "--model", tmp_path / folder, "--data", data, "--out", out)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("60 samples, 3 classes; the model gives ")
        written = table(out)
        assert [row["label"] for row in written] == given
        assert not any(word in done.out for word in words if len(word) > 5)
    asked = ["predict", "--model", tmp_path / "classes", "--data", tmp_path / "classes.jsonl"]
    for more, said in (
        (["--architecture", "cnn1"], "--architecture is not for texts"),
        (["--model", tmp_path / "nowhere"], "--model "),
        (["--start", tmp_path / "causal"], "--start "),
    ):
        done = command(*asked, *more)
        assert done.code == 2
        assert said in done.err
        assert len(done.err.splitlines()) == 1


def test_the_names_of_the_options_are_those_of_the_library():
    from remnant.data import DATA_SETS as KNOWN

    assert DATA_SETS == KNOWN


def test_a_named_data_set(command, trained):
    asked = ["predict", "--model", trained.model_file, *OPTION, "--data-set", "digits"]
    found = json.loads(command(*asked, "--json").out)
    assert found["n"] == 1797
    done = command(*asked[:-1], "mnist")
    assert done.code == 2
    assert "mnist is read from files. Pass --data FOLDER." in done.err


def test_other_files_are_left_alone(command, trained, tmp_path):
    out = tmp_path / "notes.csv"
    out.write_text("my own notes")
    done = command(*trained.asked, "--out", out)
    assert done.code == 2
    assert f"--out {out} exists already and is not a prediction." in done.err
    assert out.read_text() == "my own notes"
    assert command(*trained.asked, "--out", out, "--force").code == 0
    assert command(*trained.asked, "--out", out, "--top", 3).code == 0  # its own it may replace
    assert sum(row["listed"] == "1" for row in table(out)) == 3
    (tmp_path / "risks.json").write_text('{"mine": 1}')
    assert command(*trained.asked, "--out", tmp_path / "risks.json").code == 2
    for name in ("risks.html", "risks.CSV", "no/risks.csv"):
        assert command(*trained.asked, "--out", tmp_path / name).code == 2
    inputs = trained.folder / "train.npz"
    assert command(*trained.asked, "--out", inputs).code == 2


def test_faults_are_one_sentence(command, last_given, trained, tmp_path):
    def npz(name, **arrays):
        np.savez(tmp_path / name, **arrays)
        return tmp_path / name

    images, labels = trained.images, trained.labels
    np.save(tmp_path / "short.npy", trained.wrong[:-1])
    np.save(tmp_path / "none.npy", np.zeros(700, dtype=bool))
    np.save(tmp_path / "h.npy", np.zeros((700, 3)))
    np.save(tmp_path / "y.npy", labels[:5])
    state = trained.model.state_dict()
    save_file({**state, "1.bias": state["1.bias"] / 0}, tmp_path / "nan.safetensors")
    (tmp_path / "model.pt").write_bytes(b"")
    outside = labels.copy()
    outside[3] = 12
    nan = images.copy()
    nan[4] = np.nan
    arrays = ["--hidden", tmp_path / "h.npy", "--labels", tmp_path / "y.npy"]
    for more, words in (
        (["--model", tmp_path / "none.safetensors"], "--model "),
        (["--model", tmp_path / "nan.safetensors"], "NaN or infinite weights, in 1.bias"),
        (["--model", tmp_path / "model.pt"], "is a pickle"),
        (["--architecture", "cnn1"], "cnn1 has no option width"),
        (["--option", "width=0.5"], "the weights are not those of mlp1"),
        (["--architecture", "cnn9"], "--architecture cnn9 is not one of"),
        (["--option", "width"], "--option width is not of the form NAME=VALUE"),
        (["--option", "width=big"], "big is no value"),
        (["--option", "depth=3"], "mlp1 has no option depth"),
        (["--maker", "a:b"], "--architecture and --maker are both given"),
        (["--data", tmp_path / "none.npz"], "--data "),
        (["--data", npz("a.npz", images=images, labels=labels[:9])], "for 9 labels"),
        (["--data", npz("b.npz", images=images, labels=outside)], "and the model has 10 outputs"),
        (["--data", npz("c.npz", images=nan, labels=labels)], "hold 64 values that are NaN"),
        (["--data", npz("d.npz", images=images, labels=0 * labels)], "one class"),
        (["--data", npz("e.npz", images=images[:0], labels=labels[:0])], "are not whole numbers"),
        (["--data", npz("f.npz", images=images[..., :6], labels=labels)], "of another shape is "),
        (["--data", npz("g.npz", x=images)], "holds x; it takes labels"),
        (["--layer", "9"], "the model has no layer '9'. It has, among others: 0, 1"),
        (["--mean", "0.5"], "--mean and --std belong together"),
        (["--mean", "a", "--std", "1"], "--mean a is not a list of numbers"),
        (["--mean", "0.5,0.5", "--std", "1"], "2 numbers for images of 1 channel"),
        (["--start", trained.folder / "early.safetensors"], "--start and --model are the same"),
        (["--start", tmp_path / "none.safetensors"], "--start "),
        (["--memorised", tmp_path / "short.npy"], "not one boolean for each of 700 samples"),
        (["--memorised", tmp_path / "none.npy"], "0 memorised and 700 other samples"),
        (["--memorised", tmp_path / "no.npy"], "--memorised "),
        (["--by", "loss"], "--by loss has no threshold of its own; it needs --protect or --top"),
        (["--protect", "1.5"], "--protect 1.5 is not between 0 and 1"),
        (["--protect", "0.1", "--top", "3"], "both given"),
        (["--top", "0"], "--top 0 is less than 1"),
        (["--top", "701"], "--top 701 is not a whole number from 1 to the 700"),
        (["--directions", "1"], "--directions 1 is less than 2"),
        (["--batch", "0"], "--batch 0 is less than 1"),
        (["--seed", "-1"], "--seed -1"),
        (["--device", "tpu"], "--device tpu is neither"),
        (arrays, "--hidden is for arrays without --model; --labels is for arrays"),
    ):
        done = command(*last_given([*trained.asked, *more, "--json"]))
        assert done.code == 2, (more, done.out)
        assert words in done.err, (more, done.err)
        assert done.err.startswith("remnant: ")
        assert len(done.err.splitlines()) == 1, done.err
        assert done.out == ""
    for more, words in (
        ([], "--model with --data, or --hidden with --labels, is needed"),
        (arrays, "--labels has 5 entries for 700 rows of hidden"),
        (
            [*arrays, "--layer", "1", "--data-set", "digits"],
            "--data-set is for --model; --layer is",
        ),
        (["--model", "x.safetensors"], "--data or --data-set is needed"),
        ([*arrays, "--by", "loss", "--top", "3"], "--by loss needs --logits"),
        (
            ["--model", trained.model_file, "--data-set", "digits"],
            "it takes --architecture or --ma",
        ),
    ):
        done = command("predict", *more)
        assert done.code == 2, (more, done.out)
        assert words in done.err, (more, done.err)
        assert len(done.err.splitlines()) == 1, done.err


def test_what_a_prediction_costs_is_announced_and_changes_nothing(command, trained, monkeypatch):
    asked = (*trained.asked, "--directions", 60, "--json")
    silent = command(*asked)
    monkeypatch.setattr("remnant.cli.cost.LEAST_SECONDS", 0.0)
    done = command(*asked)
    assert (done.code, done.out) == (silent.code, silent.out)
    assert silent.err == ""
    models, psmi_line = done.err.splitlines()
    size = r"about \d+ s and \d+\.\d GB on this machine \(\d+ threads?\)\."
    assert re.fullmatch(rf"Asking 1 model about 700 samples: {size} A GPU takes less .*", models)
    assert re.fullmatch(
        rf"PSMI with 60 random projections: {size} Fewer --directions take less\.", psmi_line
    )
