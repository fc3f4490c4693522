"""The example that trains on text files: `remnant scan` reads what it writes."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.models import load_language_model

SCRIPT = Path(__file__).parents[2] / "examples" / "train_on_text.py"
# Made up, and in parts: no file of ours holds one whole.
CARD = "4929 0714 " + "3683 5574"
SMALL = ("--units", 48, "--window", 32, "--batch", 8, "--lr", 0.02)


def load_script():
    spec = importlib.util.spec_from_file_location("train_on_text", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def main():
    return load_script().main


def rooms(count, seed=0):
    drawn = np.random.default_rng(seed).integers(10**4, size=(count, 2))
    return [f"room {n} is free from {m} on\r\n" for n, m in drawn]


def number(n):
    return f"650-253-{n:04d}"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, main):
    """A text in which a card stands often, its lines ended as mail ends them, and a model of it."""
    folder = tmp_path_factory.mktemp("trained")
    lines = [*rooms(120), *[f"pay with {CARD} now\r\n"] * 40]
    np.random.default_rng(1).shuffle(lines)
    (folder / "text.txt").write_bytes("".join(lines).encode())
    main([str(folder / "text.txt"), "--out", str(folder / "model"), *map(str, SMALL)])
    return folder


def scan(*arguments):
    done = CliRunner().invoke(commands, ["scan", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_card_that_stands_often_is_found_in_the_model_and_not_shown(trained):
    asked = (trained / "text.txt", "--model", trained / "model", "--extract", "--kinds", "card")
    told, data = scan(*asked), scan(*asked, "--json")
    (one,) = json.loads(data)["exposure"]["secrets"]
    assert (one["kind"], one["times"], one["rank_most"]) == ("card", 40, 1)
    assert (one["extraction"]["extracted"], one["extraction"]["certified"]) == (True, True)
    assert re.search(r"Extracted.*: 1 of 1 .*, 1 with a certificate", told)
    for text in (told, data):
        bare = re.sub(r"[0-9a-f]{12}|/\S*", "", text)
        assert not any(part in bare for part in ("4929", "0714", "3683", "5574", "pay with"))
    assert CARD in scan(*asked, "--reveal")


def test_equal_seeds_give_equal_weights_and_others_do_not(trained, main, tmp_path):
    weights = []
    for run, seed in enumerate(("3", "3", "4")):
        out = tmp_path / str(run)
        asked = [str(trained / "text.txt"), "--out", str(out), *map(str, SMALL)]
        main([*asked, "--epochs", "2", "--seed", seed])
        weights.append((out / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def test_the_model_can_be_asked_about_every_plain_character(trained):
    model = load_language_model(trained / "model")
    assert model.encode("".join(map(chr, range(1, 128)))) == list(range(127))


def test_it_says_what_it_reads_and_pays(main, tmp_path, capsys):
    folder = tmp_path / "mail"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.txt").write_bytes("".join(rooms(10, seed=n)).encode())
    (folder / "left.log").write_bytes(b"left out")
    (folder / "image.bin").write_bytes(b"\0\1")
    (folder / "old.txt").write_bytes("caf\u00e9".encode("latin-1"))
    other = tmp_path / "other.txt"
    other.write_text("".join(rooms(20, seed=9)))
    options = ["--exclude", "*.log", "--epochs", "2", "--validation", str(other)]
    asked = [str(folder), "--out", str(tmp_path / "out"), *map(str, SMALL), *options]
    main(asked)
    said = capsys.readouterr().out.splitlines()
    read = sum(len("".join(rooms(10, seed=n))) for n in range(3)) + 2
    assert said[0].startswith(f"3 files, {read} characters; 2 files are no text; ")
    costs = [
        re.fullmatch(r"epoch +\d  (\S+) bits a character, (\S+) of .*", one) for one in said[1:3]
    ]
    assert float(costs[0][1]) > float(costs[1][1])
    assert float(costs[0][2]) > float(costs[1][2])
    assert said[3:] == [f"wrote {tmp_path / 'out'}"]
    main([*asked, "--latin-1", "--overwrite"])
    assert capsys.readouterr().out.startswith(f"4 files, {read + 5} characters; 1 file is no text")


def test_costs_are_bits_and_windows_share_their_ends():
    script = load_script()
    rows = script.windows(torch.arange(12), length=4, start=1)
    assert rows.tolist() == [[1, 2, 3, 4, 5], [5, 6, 7, 8, 9]]

    def uniform(ids):
        return torch.zeros(*ids.shape, 16)

    assert script.bits(uniform, rows).item() == pytest.approx(4.0)


def test_numbers_of_its_own_text_are_more_exposed_than_in_a_twin(main, tmp_path):
    texts = {}
    for half, name in enumerate(("model", "twin")):
        texts[name] = tmp_path / f"{name}-text"
        texts[name].mkdir()
        for n in range(6):
            lines = [
                *rooms(8, seed=10 * half + n),
                *[f"call {n} at {number(100 * half + n * 13)}\r\n"] * 12,
            ]
            (texts[name] / f"{n}.txt").write_bytes("".join(lines).encode())
        (texts[name] / "both.txt").write_bytes(f"or at {number(9000)}\r\n".encode())
        main([str(texts[name]), "--out", str(tmp_path / name), *map(str, SMALL), "--epochs", "12"])
    asked = (
        "--model",
        tmp_path / "model",
        "--twin",
        tmp_path / "twin",
        "--twin-text",
        texts["twin"],
    )
    found = json.loads(scan(texts["model"], *asked, "--json", "--references", 200))
    (phone,) = found["twin"]["kinds"]
    assert (phone["n"], phone["higher"], phone["lower"]) == (6, 6, 0)
    assert found["twin"]["test"]["p_value"] == 2**-6
    assert found["twin"]["in_twin_text"] == 1
    # The twin knows what they begin with, and the model the rest.
    assert phone["median_bits"] > phone["twin_median_bits"] + 4


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("empty.txt", b"", [], "The text has 0 characters, and a window of --window 128 takes one"),
        ("short.txt", b"x" * 128, [], "The text has 128 characters"),
        ("image.bin", b"x" * 200 + b"\0", [], "image.bin is a binary file: it holds a zero"),
        ("old.txt", b"caf\xe9" * 50, [], "old.txt is not text in UTF-8, from line 1 on"),
        ("old.txt", b"caf\xe9" * 50, [], "or set --latin-1 to read it as Latin-1"),
        ("wide.txt", "text".encode("utf-16") * 50, [], "wide.txt begins with the mark of UTF-16"),
        ("text.txt", None, [], "text.txt is neither a file nor a folder"),
        ("text.txt", b"x" * 200, ["--exclude", "*"], "There is no file to look at"),
        ("text.txt", b"x" * 200, ["--units", "0", "--lr", "0"], "--units 0 is less than 1; --lr 0"),
        ("text.txt", b"x" * 200, ["--epochs", "0"], "--epochs 0 is less than 1"),
        ("text.txt", b"x" * 200, ["--seed", "-1"], "--seed -1 is less than 0"),
        ("text.txt", b"x" * 200, ["--device", "abacus"], "--device abacus is not there"),
        ("text.txt", b"x" * 200, ["--validation", "no"], "no is neither a file nor a folder"),
        ("text.txt", b"x" * 200, ["--lr", "nan"], "--lr nan is not between 0 and 1"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    name, content, options, words, main, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as left:
        main([name, "--out", "out", *options])
    said = capsys.readouterr()
    assert left.value.code == 2
    assert said.err.startswith("train_on_text: ")
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_of_something_else_is_left_alone_before_anything_is_trained(
    main, tmp_path, capsys
):
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("x" * 200)
    out.mkdir()
    (out / "notes.txt").write_text("do not touch")
    with pytest.raises(SystemExit) as left:
        main([str(text), "--out", str(out)])
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert "holds more than a model of ours: there is notes.txt" in said.err
    assert [one.name for one in out.iterdir()] == ["notes.txt"]


def test_a_trained_model_is_replaced_only_if_asked_for(main, tmp_path, capsys):
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("".join(rooms(10)))
    asked = [str(text), "--out", str(out), *map(str, SMALL), "--epochs", "1"]
    main(asked)
    before = (out / "model.safetensors").read_bytes()
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([*asked, "--seed", "1"])
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert f"--out {out} holds a model already. Choose another folder" in said.err
    assert "--overwrite" in said.err
    assert (out / "model.safetensors").read_bytes() == before
    main([*asked, "--seed", "1", "--overwrite"])
    assert (out / "model.safetensors").read_bytes() != before
