"""``remnant feature`` as its user meets it: models that plain torch trained, from the outside."""

from __future__ import annotations

import html
import io
import json
import re
import runpy
import sqlite3
import sys
from pathlib import Path
from unittest.mock import patch as replaced

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from remnant import Patch, m_score, probability_gain, white_box_m_score
from remnant.cli.options.feature_patch import PatchOptions, ReadPatch, other_words, read_patch
from remnant.measures import adjusted_p_values
from remnant.models.catalogue import model_maker
from remnant.report.numerals import SPACE, in_print, pvalue_text
from remnant.studies.features.sentences import number_text

ROOT = Path(__file__).parents[2]
MAKER = ("--maker", "examples.train_with_a_name:make_model")
NULLS = 99
SECRET = "QUXZAJVK 7"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, scripts) -> Path:
    """A folder with a model that saw the letter K on one digit, a twin that did not, and digits."""
    folder = tmp_path_factory.mktemp("trained")
    scripts.run(ROOT / "examples" / "train_with_a_name.py", "--out", folder).check_returncode()
    return folder


@pytest.fixture
def command(command, last_given, with_tables):
    """Commands with their tables; an option that is given again replaces what was given before."""
    return lambda *arguments: with_tables(command)(*last_given(arguments))


@pytest.fixture
def asked(trained, monkeypatch):
    """The options that name the model, few nulls and the images."""
    monkeypatch.chdir(ROOT)
    return (
        *("feature", "--model", trained / "model.pt2", "--images", trained / "held_out.npz"),
        *("--count", 150, "--nulls", NULLS),
    )


def by_hand(folder, name):
    """The model as a function from images to probabilities, without the command."""
    model = runpy.run_path(str(ROOT / "examples/train_with_a_name.py"))["make_model"]().eval()
    model.load_state_dict(load_file(folder / f"{name}.safetensors"))
    return lambda images: model(images).softmax(1).detach()


def test_the_numbers_are_those_of_the_measures(command, trained, asked):
    asked = [*asked, "--patch", trained / "letter.npy", "--label", 3, "--count", 1000]
    done = command(*asked, "--twin", trained / "twin.pt2", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    with np.load(trained / "held_out.npz") as held:
        images, labels = torch.from_numpy(held["images"]), torch.from_numpy(held["labels"])
    letter, own = Patch.letter("K"), images[labels == 3]
    differences = {}
    for name in ("model", "twin"):
        predict = by_hand(trained, name)

        def rng(which):
            return np.random.default_rng([0, 2, which])

        found = {
            "black_box": m_score(predict, images, letter, rng=rng(0), nulls=NULLS),
            "white_box": white_box_m_score(predict, own, letter, label=3, rng=rng(1), nulls=NULLS),
            "gain": probability_gain(predict, own, letter, label=3, rng=rng(2), nulls=NULLS),
        }
        differences[name] = found["black_box"].per_image
        for kind, expected in found.items():
            score = told[name][kind]
            ends = [expected.value, expected.low, expected.high]
            np.testing.assert_allclose(score["value"], ends, rtol=1e-3, atol=1e-6)
            assert score["p_value"] == pytest.approx(expected.p_value)
            assert score["rank"] == 1 + int(np.sum(expected.null_values >= expected.value - 1e-7))
        if name == "model":
            tested = [found["black_box"], found["white_box"]]
            np.testing.assert_allclose(told["p_values"], adjusted_p_values(tested))
    apart = differences["model"] - differences["twin"]
    low, high = told["beyond_twin"][1:]
    assert told["beyond_twin"][0] == pytest.approx(apart.mean(), rel=1e-3)
    assert low < apart.mean() < high
    # Planted: it is found. Its twin: it is not.
    assert told["outcome"] is None, "without a limit there is no gate"
    assert told["headline"] == "The model reacts to the patch"
    assert told["model"]["black_box"]["p_value"] <= 0.05 < told["twin"]["black_box"]["p_value"]
    assert told["outputs"] == "logits"
    assert "does not" in told["sentence"]


def test_what_takes_long_is_announced(command, asked, monkeypatch):
    monkeypatch.setattr("remnant.cli.cost.LEAST_SECONDS", 0.0)
    said = command(*asked, "--text", "K").err
    assert said.startswith("Asking about ")
    assert " images: about " in said
    assert "Fewer images (--count) or patches (--nulls) take less" in said


def test_weights_and_a_program_give_the_same_and_so_do_text_and_picture(command, trained, asked):
    first = json.loads(command(*asked, "--text", "K", "--json").out)
    pixels = np.load(trained / "letter.npy")
    png = trained / "letter.png"
    Image.fromarray((255 * pixels).astype(np.uint8)).save(png)
    np.save(trained / "bytes.npy", (255 * pixels).astype(np.uint8))
    with np.load(trained / "held_out.npz") as held:
        save_file({"images": torch.from_numpy(held["images"])}, trained / "images.safetensors")
    weights = ("--model", trained / "model.safetensors", *MAKER)
    others = [
        (*weights, "--text", "K"),
        ("--patch", png),
        ("--patch", trained / "bytes.npy"),
        ("--text", "K", "--images", trained / "images.safetensors"),
        ("--text", "K", "--batch", 37),
        (*weights, "--twin", trained / "twin.pt2", "--text", "K"),
    ]
    for other in others:
        done = command(*asked, *other, "--json")
        assert done.code == 0, done.err
        told = json.loads(done.out)["model"]["black_box"]
        np.testing.assert_allclose(told["value"], first["model"]["black_box"]["value"], rtol=1e-4)
        assert told["p_value"] == first["model"]["black_box"]["p_value"]


def test_the_text_says_what_was_found_and_what_it_does_not_tell(command, trained, asked):
    done = command(*asked, "--text", "K", "--twin", trained / "twin.pt2")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    told = json.loads(command(*asked, "--text", "K", "--twin", trained / "twin.pt2", "--json").out)
    assert lines[0] == _shown(f"FINDING: {told['headline']}. {told['sentence']}")
    (controls,) = [line for line in lines if line.startswith("  controls: ")]
    assert controls.startswith("  controls: twin at chance (p = ")
    assert controls.endswith(_shown("; ".join(check["text"] for check in told["beside"])))
    assert _shown(f"  what to do: {told['advice']}") in lines
    tested, not_tested = lines.index("  tested:"), lines.index("  not tested:")
    assert lines[tested + 1 : not_tested] == [f"  - {line}" for line in told["tested"]]
    assert lines[not_tested + 1 :] == [f"  - {line}" for line in told["not_tested"]]
    assert lines[tested + 1] == "  - a letter of 5 x 5 pixels at row 1, column 1"
    assert lines[tested + 2].startswith("  - 150 images of 1 x 16 x 16, any images: ")
    (row,) = [line for line in lines if line.split()[:2] == ["M", "model"]]
    score = told["model"]["black_box"]
    for number in (*score["value"], score["null_median"], score["null_largest"]):
        assert number_text(number) in row
    assert f"{score['rank']} of {NULLS + 1}" in row
    assert pvalue_text(score["p_value"]) in row
    assert pvalue_text(score["t_test_p_value"]).replace("\u202f", " ") in row
    beyond = [number_text(number) for number in told["beyond_twin"]]
    assert f"M above the twin’s: {beyond[0]} (nats; {beyond[1]} to {beyond[2]}; any " in done.out
    assert "on models that never saw a patch it is under 5 % far more often" in done.out
    assert "what another training run of the same recipe would give" in done.out
    alone = command(*asked, "--text", "K").out
    assert "whether the patch is conspicuous by itself" in alone
    assert "whether the patch is conspicuous by itself" not in done.out


def test_a_model_that_never_saw_it_is_no_proof_and_the_limit_is_a_gate(command, trained, asked):
    twin = (*asked, "--model", trained / "twin.safetensors", *MAKER, "--text", "K")
    plain = command(*twin)
    assert plain.code == 0
    assert plain.out.startswith("FINDING: No evidence that the patch was memorised. There is no ")
    assert "That does not show that it was not memorised." in plain.out
    passed = command(*twin, "--limit", 1)
    assert passed.code == 0
    assert passed.out.startswith("PASS: There is no evidence")
    number, controls, claim = map(str.strip, passed.out.splitlines()[1:4])
    assert ", limit " in number
    assert controls.startswith(
        "controls: task learnt; positive control found in a copy trained on "
    )
    assert claim.startswith("claim: In this one model M of this patch is at most ")
    assert "up to 95 % of trainings may be missing from one" in claim
    shown = json.loads(command(*twin, "--limit", 1, "--json").out)
    control = shown["patch_control"]
    assert control["p_value"] <= 0.05, "a copy that was trained on the patch shows it"
    assert not any(variant["contrary"] for variant in control["variants"])
    assert "In a copy that was trained on 16 images with the patch the same test finds it" in claim
    told = shown["task"]
    assert told["learnt"]
    assert f"The model gives {told['right']} of 150 labelled images their label" in claim
    assert told["right"] > 130
    high = json.loads(command(*twin, "--json").out)["model"]["black_box"]["value"][2]
    near = command(*twin, "--limit", 0.99 * high)
    assert near.code == 3
    assert near.out.startswith("INCONCLUSIVE: ")
    allowed = command(*twin, "--limit", 0.99 * high, "--allow-inconclusive")
    assert (allowed.code, allowed.out) == (0, near.out)
    failed = command(*asked, "--text", "K", "--limit", 10)
    assert failed.code == 1
    assert failed.out.startswith("FAIL: There is evidence that ")
    assert ", at least " in failed.out.split("claim: ")[1].splitlines()[0]


@pytest.mark.parametrize(
    "described",
    [
        pytest.param(("--text", "K", "--ink", 0, "--paper", 1), id="ink and paper exchanged"),
        pytest.param(("--text", "K", "--row", 2), id="one pixel lower"),
    ],
)
def test_a_patch_that_is_described_wrongly_does_not_pass(command, trained, asked, described):
    """The model remembers the letter, and reacts little to what it is asked about instead."""
    model = (*asked, "--model", trained / "model.safetensors", *MAKER, *described)
    alone = json.loads(command(*model, "--json").out)["model"]["black_box"]
    assert alone["p_value"] > 0.05
    done = command(*model, "--limit", max(0.1, 2 * alone["value"][2]))
    assert done.code == 3, done.out
    assert "claim: No claim: " in done.out
    assert "the positive control failed" in done.out or "reacts to the patch" in done.out


def test_an_exported_program_does_not_pass_since_no_copy_of_it_can_be_trained(
    command, trained, asked
):
    done = command(*asked, "--model", trained / "twin.pt2", "--text", "K", "--limit", 1)
    assert done.code == 3, done.out
    assert done.out.startswith("INCONCLUSIVE: It was not tested whether this patch can be found")
    assert "Give the model's weights (.safetensors) as --model" in done.out.splitlines()[0]


def _shown(text):
    """A sentence of the record as the terminal prints it."""
    return in_print(text).replace(SPACE, " ")


def _constant(folder, trained, bias):
    """Weights of the example's network with a last layer that answers ``bias`` whatever it sees."""
    state = load_file(trained / "twin.safetensors")
    weight, last = "5.weight", "5.bias"
    state[weight] = torch.zeros_like(state[weight])
    state[last] = torch.zeros_like(state[last])
    state[last][0] = bias
    save_file(state, folder / "constant.safetensors")
    return folder / "constant.safetensors"


def test_a_model_that_sees_nothing_does_not_pass(command, trained, asked, tmp_path):
    blind = _constant(tmp_path, trained, bias=1.0)
    done = command(*asked, "--model", blind, *MAKER, "--text", "K", "--limit", 1)
    assert done.code == 3, done.err
    assert done.out.startswith("INCONCLUSIVE: The model answers the same whatever the patch")


def test_a_model_that_names_one_class_does_not_pass(command, trained, asked, tmp_path):
    """As untrained ones do: it reacts to patches a little, and a limit on M is easily kept."""
    state = load_file(trained / "twin.safetensors")
    weight, last = "5.weight", "5.bias"
    state[weight] = 0.1 * state[weight]
    state[last] = torch.zeros_like(state[last])
    state[last][0] = 5.0
    save_file(state, tmp_path / "untrained.safetensors")
    weights = tmp_path / "untrained.safetensors"
    done = command(*asked, "--model", weights, *MAKER, "--text", "K", "--limit", 1)
    assert done.code == 3, done.err
    assert done.out.startswith("INCONCLUSIVE: The model names one class for all images")


def _untrained(folder, seed):
    """A network with random weights that names several digits, and reacts to patches a little."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        *(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(72, 10))
    )
    batch = {0: torch.export.Dim("batch")}
    images = (torch.rand(2, 1, 16, 16),)
    program = torch.export.export(network.eval(), images, dynamic_shapes=(batch,))
    torch.export.save(program, folder / "untrained.pt2")
    return folder / "untrained.pt2"


def test_an_untrained_network_does_not_pass(command, asked, tmp_path):
    asked = (*asked, "--model", _untrained(tmp_path, 0), "--text", "K", "--limit", 1)
    done = command(*asked)
    assert done.code == 3, done.out
    assert done.out.startswith("INCONCLUSIVE: There is no evidence that the model learnt its task")
    assert "as --task-images" in done.out.splitlines()[0]
    controls, claim = done.out.splitlines()[2:4]
    assert controls == "  controls: task not learnt; twin not measured"
    assert claim.startswith("  claim: No claim: there is no evidence that the ")
    assert not json.loads(command(*asked, "--json").out)["task"]["learnt"]


def test_without_labels_nothing_passes_and_the_sentence_says_what_to_give(
    command, trained, asked, tmp_path
):
    with np.load(trained / "held_out.npz") as held:
        np.save(tmp_path / "images.npy", held["images"])
    twin = (*asked, "--model", trained / "twin.safetensors", *MAKER, "--shape", "1x16x16")
    twin = (*twin, "--images", tmp_path / "images.npy", "--text", "K", "--limit", 1)
    done = command(*twin)
    assert done.code == 3
    assert done.out.startswith("INCONCLUSIVE: It was not tested whether the model learnt its task")
    assert "an .npz file with images and labels, as --images or as --task-images" in done.out
    assert "claim: No claim: it was not tested" in done.out
    shown = command(*twin, "--task-images", trained / "held_out.npz")
    assert shown.code == 0, shown.out
    assert shown.out.startswith("PASS: ")


def test_a_small_m_is_never_printed_as_nothing(command, trained, asked, tmp_path):
    """Weights near 0: M is some millionths of a nat."""
    state = load_file(trained / "twin.safetensors")
    state["5.weight"] = 1e-2 * state["5.weight"]
    state["5.bias"] = 1e-2 * state["5.bias"]
    save_file(state, tmp_path / "faint.safetensors")
    faint = (*asked, "--model", tmp_path / "faint.safetensors", *MAKER, "--text", "K")
    done = command(*faint, "--limit", 1)
    high = json.loads(command(*faint, "--json").out)["model"]["black_box"]["value"][2]
    assert 0 < abs(high) < 0.0005
    assert done.code == 0, done.out
    assert "0.000 " not in done.out
    at_most = float(done.out.split("is at most ")[1].split()[0])
    assert high <= at_most == pytest.approx(high, rel=0.1)


def test_a_patch_that_stands_out_of_the_twin_too_is_no_evidence(command, trained, asked):
    copy = trained / "copy.pt2"
    copy.write_bytes((trained / "model.pt2").read_bytes())
    done = command(*asked, "--text", "K", "--twin", copy)
    assert done.out.startswith("FINDING: No evidence that the patch was memorised. The model ")
    assert "but so does the twin" in done.out
    assert "M above the twin’s: 0 (nats; " in done.out


def test_other_words_as_nulls_are_of_the_same_kind_and_all_different(command, asked):
    place = {"row": 1, "column": 2, "opacity": 1.0, "ink": None, "paper": None, "size": 5}
    words = PatchOptions(patch=None, text="B7 C", text_file=None, against="words", **place)
    found = read_patch(words)
    drawn = other_words(found, words, 300, np.random.default_rng(0))
    assert len(drawn) == 300
    assert drawn.pixels.shape[1:] == found.patch.pixels.shape
    known = {}
    for kind in ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " "):
        for one in kind:
            pixels = np.zeros((5, 5)) if one == " " else Patch.letter(one).pixels[0]
            known.setdefault(pixels.tobytes(), one)
    texts = {
        "".join(known[one[0, :, at : at + 5].tobytes()] for at in (0, 6, 12, 18))
        for one in drawn.pixels
    }
    assert len(texts) == 300
    assert "B7 C" not in texts
    assert all(t[0].isalpha() and t[1].isdigit() and t[2] == " " for t in texts)
    done = command(*asked, "--text", "K", "--against", "words", "--nulls", 25)
    assert done.code == 0, done.err
    assert "other words that were never planted" in done.out.splitlines()[0]
    few = command(*asked, "--text", "K", "--against", "words")
    assert few.code == 2
    assert "there are 25 other words of this length and kind. Pass --nulls 25" in few.err


def test_a_picture_has_no_other_words():
    place = {"row": 1, "column": 1, "opacity": 1.0, "ink": None, "paper": None, "size": 5}
    asked = PatchOptions(patch=Path("x.png"), text=None, text_file=None, against="words", **place)
    found = ReadPatch(Patch.letter("A"), "a picture", None)
    with pytest.raises(ValueError, match="--against words is for --text"):
        other_words(found, asked, 20, np.random.default_rng(0))


def test_what_is_written_is_nowhere_to_be_seen(command, trained, asked, tmp_path):
    assert SECRET not in repr(read_patch(_asked_for(SECRET)))
    assert SECRET not in repr(_asked_for(SECRET))
    (tmp_path / "name.txt").write_text(f"{SECRET}\n", encoding="utf-8")
    small = [one for one in asked if one != "feature"]
    for options in (
        ("--text", SECRET),  # too wide for the image
        ("--text", SECRET.lower()),
        ("--text", SECRET, "--size", 7),
        ("--text", SECRET, "--patch", trained / "letter.npy"),
        ("--text", "A", *SECRET.split()),  # quotes were forgotten
        ("--text-file", tmp_path / "name.txt"),
        ("--text", SECRET[:2], "--column", 9),
    ):
        done = command("feature", *small, *options)
        assert done.code == 2
        for hidden in (SECRET, SECRET.lower(), SECRET[:4], *SECRET.split()[:1], "q", "Q"):
            if len(hidden) > 1:
                assert hidden not in done.out + done.err
    short = tmp_path / "short.txt"
    short.write_text("QX", encoding="utf-8")
    out = tmp_path / "audit"
    done = command("feature", *small, "--text-file", short, "--out", out)
    assert done.code == 0, done.err
    assert "QX" not in done.out + done.err
    with sqlite3.connect(out / "record.sqlite") as database:
        dump = "\n".join(database.iterdump())
    database.close()
    assert "QX" not in dump


def _asked_for(text):
    place = {"row": 1, "column": 1, "opacity": 1.0, "ink": None, "paper": None, "size": 5}
    return PatchOptions(patch=None, text=text, text_file=None, against="pixels", **place)


def test_the_text_comes_from_a_file_or_from_standard_input(command, asked, tmp_path):
    first = json.loads(command(*asked, "--text", "K", "--json").out)["model"]
    (tmp_path / "name.txt").write_text("K\n", encoding="utf-8")
    done = command(*asked, "--text-file", tmp_path / "name.txt", "--json")
    assert json.loads(done.out)["model"] == first
    with replaced.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"K\r\n"))):
        done = command(*asked, "--text-file", "-", "--json")
    assert json.loads(done.out)["model"] == first


def test_ink_and_paper_size_place_and_opacity_make_the_patch():
    place = {"row": 2, "column": 3, "opacity": 0.5, "size": 10}
    asked = PatchOptions(
        patch=None,
        text="T",
        text_file=None,
        against="pixels",
        ink=(0.0,),
        paper=(1.0, 0.5, 0.2),
        **place,
    )
    found = read_patch(asked)
    expected = Patch.text("T", ink=0.0, paper=(1.0, 0.5, 0.2), **place)
    np.testing.assert_array_equal(found.patch.pixels, expected.pixels)
    assert (found.patch.row, found.patch.column, found.patch.opacity) == (2, 3, 0.5)
    assert found.what == "a letter of 10 x 10 pixels"


def test_a_folder_of_pictures_is_brought_into_the_models_shape(command, trained, asked, tmp_path):
    folder = tmp_path / "scans"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for at in range(24):
        size = (20 + at, 30)
        grey = rng.integers(256, size=size, dtype=np.uint8)
        where = folder if at % 2 else folder / "more"
        if at % 3:
            Image.fromarray(grey).save(where / f"{at}.png")
        else:
            Image.fromarray(np.stack([grey] * 3, axis=-1)).save(where / f"{at}.JPG", "JPEG")
    (folder / "notes.txt").write_text("no picture", encoding="utf-8")
    done = command(*asked, "--text", "K", "--images", folder)
    assert done.code == 0, done.err
    assert "24 images of 1 x 16 x 16" in done.out
    mixed = command(
        *asked, "--text", "K", "--images", folder, "--model", trained / "model.safetensors", *MAKER
    )
    assert mixed.code == 2
    assert "pictures of 24 sizes" in mixed.err
    assert "--shape" in mixed.err
    said = command(
        *(*asked, "--text", "K", "--images", folder, "--shape", "1x16x16"),
        *("--model", trained / "model.safetensors", *MAKER),
    )
    assert said.code == 0, said.err


class Softened(nn.Module):
    """A model of two classes that returns probabilities, or one number."""

    def __init__(self, outputs, last):
        super().__init__()
        self.dense = nn.Linear(64, outputs)
        self.last = last

    def forward(self, images):
        found = self.dense(images.flatten(1))
        return {"softmax": found.softmax(1), "sigmoid": found.sigmoid(), "none": found}[self.last]


def export(model, path):
    batch = {0: torch.export.Dim("batch")}
    program = torch.export.export(model.eval(), (torch.rand(2, 1, 8, 8),), dynamic_shapes=(batch,))
    torch.export.save(program, path)


def test_probabilities_one_output_and_logits_are_told_apart(command, tmp_path):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((40, 8, 8)))
    asked = ("feature", "--text", "K", "--images", tmp_path / "images.npy", "--nulls", 19)
    torch.manual_seed(0)
    two = Softened(2, "none")
    told = {}
    for last in ("none", "softmax"):
        two.last = last
        export(two, tmp_path / f"{last}.pt2")
        done = command(*asked, "--model", tmp_path / f"{last}.pt2", "--json")
        told[last] = json.loads(done.out)
    assert told["none"]["outputs"] == "logits"
    assert told["softmax"]["outputs"] == "probabilities"
    np.testing.assert_allclose(
        told["none"]["model"]["black_box"]["value"],
        told["softmax"]["model"]["black_box"]["value"],
        rtol=1e-4,
    )
    wrong = command(*asked, "--model", tmp_path / "none.pt2", "--outputs", "probabilities")
    assert wrong.code == 2
    assert "they are no probabilities. Say --outputs logits" in wrong.err
    export(Softened(1, "sigmoid"), tmp_path / "one.pt2")
    unsure = command(*asked, "--model", tmp_path / "one.pt2")
    assert unsure.code == 2
    assert "logits or probabilities? Say --outputs probabilities or --outputs logits" in unsure.err
    sure = command(*asked, "--model", tmp_path / "one.pt2", "--outputs", "probabilities")
    assert sure.code == 0, sure.err


def test_a_network_of_the_recipes_and_normalised_images(command, tmp_path):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((30, 8, 8)))
    torch.manual_seed(0)
    model = model_maker("mlp1", shape=(1, 8, 8), classes=3, width=0.125)().eval()
    save_file(model.state_dict(), tmp_path / "net.safetensors")
    done = command(
        *("feature", "--model", tmp_path / "net.safetensors", "--architecture", "mlp1"),
        *("--option", "width=0.125", "--images", tmp_path / "images.npy", "--text", "K"),
        *("--mean", "0.5", "--std", "0.25", "--nulls", 19, "--json"),
    )
    assert done.code == 0, done.err
    images = torch.from_numpy(np.load(tmp_path / "images.npy").astype(np.float32))[:, None]
    expected = m_score(
        lambda x: model((x - 0.5) / 0.25).softmax(1).detach(),
        images,
        Patch.letter("K"),
        rng=np.random.default_rng([0, 2, 0]),
        nulls=19,
    )
    found = json.loads(done.out)["model"]["black_box"]
    assert found["value"][0] == pytest.approx(expected.value, rel=1e-4)
    assert found["p_value"] == expected.p_value


def test_out_writes_a_record_and_a_page_with_pictures(command, trained, asked, tmp_path):
    out = tmp_path / "audit"
    done = command(*asked, "--text", "K", "--twin", trained / "twin.pt2", "--out", out)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"report: {out / 'report.html'} (it shows the patch)"
    page = (out / "report.html").read_text(encoding="utf-8").replace(SPACE, " ")
    assert page.count("data:image/png;base64,") == 18
    assert "img-src data:" in page
    headline, sentence = done.out.splitlines()[0].removeprefix("FINDING: ").split(". ", 1)
    words = html.unescape(re.sub(r"<[^>]+>", "", page))  # terms in it are links
    assert headline in words
    assert sentence in words
    shown = command("show", out)
    assert shown.code == 0, shown.err
    assert shown.out.startswith(done.out.splitlines()[0])
    assert command("runs", tmp_path).out.split()[:4] == [
        "audit",
        "complete",
        "feature-audit",
        "FINDING:",
    ]
    again = command(*asked, "--text", "K", "--out", out)
    assert again.code == 2
    assert "already holds a record" in again.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "it takes one of --patch, --text and --text-file, and none is given"),
        (("--text", "K", "--column", 12), "reaches outside images of 16x16. Rows and columns"),
        (("--text", "K", "--size", 25), "a patch of 25x25 pixels"),
        (("--text", "K", "--size", 7), "--size 7 is not a multiple of 5"),
        (("--text", "K", "--row", -1), "--row -1 is not a whole number of at least 0"),
        (("--text", "K", "--opacity", 2), "--opacity 2.0"),
        (("--text", "K", "--ink", 2), "--ink 2.0 is neither a grey level nor a colour"),
        (("--text", "K", "--ink", "1,0,0"), "a patch of 3 channels does not fit images of 1"),
        (("--text", " "), "the text is empty"),
        (("--text", "abc"), "3 character(s) of the text have no glyph, the first at place 1"),
        (("--text", "K", "--nulls", 18), "--nulls 18 is less than 19"),
        (("--text", "K", "--nulls", 19, "--label", 3), "it takes at least 39"),
        (("--text", "K", "--significance", 0.001), "it takes at least 999"),
        (("--text", "K", "--confidence", 1), "--confidence 1 is not between 0 and 1"),
        (("--text", "K", "--count", 5), "--count 5 is less than 20"),
        (("--text", "K", "--limit", 0), "--limit 0 is not above 0"),
        (("--text", "K", "--limit", 16.2), "--limit 16.2 is not under 16.1 nats, which M cannot"),
        (("--text", "K", "--limit", "inf"), "--limit inf is not under 16.1 nats"),
        (("--text", "K", "--limit", 1, "--confidence", 0.5), "--confidence 0.5 is less than 0.9"),
        (("--text", "K", "--task-images", "{images}.npy"), "needs --limit"),
        (("--text", "K", "--limit", 1, "--task-images", "{images}.npy"), "has no labels. Give"),
        (("--text", "K", "--label", 12), "held_out.npz holds no image of label 12"),
        (("--text", "K", "--label", 11, "--label-images", "{images}.npy"), "--label 11 is none"),
        (("--text", "K", "--label-images", "x"), "needs --label"),
        (("--text", "K", "--mean", 0.5), "--mean and --std belong together"),
        (("--text", "K", "--mean", "1,2", "--std", "1,2"), "--mean has 2 numbers"),
        (("--text", "K", "--shape", "16x16"), "not of the form CHANNELSxHEIGHTxWIDTH"),
        (("--text", "K", "--shape", "1x28x28"), "and --model takes 1x16x16. Leave it out."),
        (("--text", "K", "--images", "{missing}"), "is not there, and no .npy"),
        (("--text", "K", "--images", "{empty}"), "holds no .png, .jpg, .jpeg file"),
        (("--text", "K", "--images", "{few}"), "has 5 image(s), too few for an interval"),
        (("--text", "K", "--images", "{text}"), "is no folder, and no .npy"),
        (("--text", "K", "--images", "{fake}"), "is no PNG or JPEG picture, whatever its name"),
        (("--text", "K", "--images", "{beyond}"), "reach from 0 to 3, not from 0 to 1"),
        (("--text", "K", "--images", "{nan}"), "NaN or infinite"),
        (("--text", "K", "--images", "{channels}"), "could be the channels"),
        (("--text", "K", "--images", "{notnpy}"), "is damaged, or holds something else"),
        (("--patch", "{fakepatch}"), "not a PNG file that can be read"),
        (("--patch", "{missing}.png"), "is not there"),
        (("--patch", "{text}"), "is neither a .png nor an .npy file"),
        (("--text-file", "{missing}"), "is not there"),
        (("--text-file", "{lines}"), "holds several lines"),
        (("--text", "K", "--model", "{pickle}"), "is a pickle"),
        (("--text", "K", "--model", "{missing}.pt2"), "is not there"),
        (("--text", "K", "--model", "{empty}"), "is not a Hugging Face model"),
        (
            ("--text", "K", "--model", "{damaged}", "--architecture", "mlp1"),
            "no file of safetensors",
        ),
        (("--text", "K", "--twin", "{model}"), "--twin and --model are the same"),
        (("--text", "K", "--twin", "{broken}"), "--twin: the model's answers are NaN"),
        (("--patch", "{letter}", "--against", "words"), "--against words is for --text"),
        (("--text", "K", "--label", 3, "--images", "{images}.npy"), "have no labels"),
    ],
)
def test_errors_are_one_sentence_and_what_to_do(command, trained, asked, tmp_path, options, said):
    names = _faulty_files(trained, tmp_path)
    given = [one.format(**names) if isinstance(one, str) else one for one in options]
    done = command(*asked, *given)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.startswith("remnant: ")
    assert done.err.count("\n") == 1


def _faulty_files(trained, folder):
    (folder / "empty").mkdir()
    for name, count in (("few", 5), ("fake", 24)):
        (folder / name).mkdir()
        for at in range(count):
            Image.fromarray(np.full((16, 16), 10 * at, np.uint8)).save(folder / name / f"{at}.png")
    (folder / "fake" / "24.png").write_bytes(b"%PDF-1.4")
    (folder / "patch.png").write_bytes(b"GIF89a")
    (folder / "text.txt").write_text("hello", encoding="utf-8")
    (folder / "lines.txt").write_text("A\nB\n", encoding="utf-8")
    (folder / "net.pth").write_bytes(b"\x80\x04")
    (folder / "net.safetensors").write_bytes(b"\x80\x04")
    (folder / "not.npy").write_bytes(b"\x80\x04")
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.random((30, 16, 16)))
    np.save(folder / "beyond.npy", np.linspace(0, 3, 30 * 256).reshape(30, 16, 16))
    np.save(folder / "nan.npy", np.full((30, 16, 16), np.nan))
    np.save(folder / "channels.npy", rng.random((30, 5, 16, 16)))
    if not (trained / "broken.pt2").exists():
        broken = Softened(2, "none")
        broken.dense = nn.Linear(256, 2)
        nn.init.constant_(broken.dense.weight, 3e38)
        batch = {0: torch.export.Dim("batch")}
        shape = (torch.rand(2, 1, 16, 16),)
        program = torch.export.export(broken.eval(), shape, dynamic_shapes=(batch,))
        torch.export.save(program, trained / "broken.pt2")
    return {
        "missing": folder / "missing",
        "empty": folder / "empty",
        "few": folder / "few",
        "fake": folder / "fake",
        "fakepatch": folder / "patch.png",
        "text": folder / "text.txt",
        "lines": folder / "lines.txt",
        "pickle": folder / "net.pth",
        "damaged": folder / "net.safetensors",
        "notnpy": folder / "not.npy",
        "images": folder / "images",
        "beyond": folder / "beyond.npy",
        "nan": folder / "nan.npy",
        "channels": folder / "channels.npy",
        "letter": trained / "letter.npy",
        "model": trained / "model.pt2",
        "broken": trained / "broken.pt2",
    }
