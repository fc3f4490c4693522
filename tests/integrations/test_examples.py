"""The examples: converters answer as the files they read do, and the others do what they say."""

from __future__ import annotations

import importlib.util
import itertools
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.cli.main import commands
from remnant.integrations import load_causal_lm

EXAMPLES = Path(__file__).parents[2] / "examples"
DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, LONGEST = 16, 24, 2, 4, 2, 32
HALF = DIM // HEADS // 2
WORDS = [" ", "a", "b", "c", "é", "aa", "ab", "aab", " a", " ab", "bc", "abc", "ca", " c"]
PIECES = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores():
    return [0.0] * (len(PIECES) - len(WORDS)) + [-float(n) for n in range(len(WORDS))]


def greedy_tokens(text):
    """The slow definition: join the two neighbours of the best score, from left to right."""
    ids = {piece: place for place, piece in enumerate(PIECES)}
    found = []
    for character in " " + text if text else "":
        if character in ids:
            found.append(ids[character])
        else:
            found += [byte + 3 for byte in character.encode()]
    while True:
        joins = [
            (scores()[ids[PIECES[a] + PIECES[b]]], -place)
            for place, (a, b) in enumerate(itertools.pairwise(found))
            if PIECES[a] + PIECES[b] in ids
        ]
        if not joins:
            return found
        place = -max(joins)[1]
        found[place : place + 2] = [ids[PIECES[found[place]] + PIECES[found[place + 1]]]]


def random_weights(rng, *, shared):
    shapes = {
        "embedding": (len(PIECES), DIM),
        "norm1": (LAYERS, DIM),
        "q": (LAYERS, DIM, DIM),
        "k": (LAYERS, DIM * KV_HEADS // HEADS, DIM),
        "v": (LAYERS, DIM * KV_HEADS // HEADS, DIM),
        "o": (LAYERS, DIM, DIM),
        "norm2": (LAYERS, DIM),
        "w1": (LAYERS, HIDDEN, DIM),
        "w2": (LAYERS, DIM, HIDDEN),
        "w3": (LAYERS, HIDDEN, DIM),
        "norm": (DIM,),
        "rotations": (2, LONGEST, HALF),
    }
    if not shared:
        shapes["head"] = (len(PIECES), DIM)
    return {name: rng.normal(scale=0.5, size=shape).astype("<f4") for name, shape in shapes.items()}


def logits_by_hand(w, ids):
    """The slow definition, in float64: neighbours of a head's vector rotate together."""

    def norm(x, scale):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale

    def rotated(x):
        angle = np.arange(len(x))[:, None] / 10000 ** (np.arange(HALF) / HALF)
        turned = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None]
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    w = {name: tensor.astype(np.float64) for name, tensor in w.items()}
    x = w["embedding"][ids]
    future = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    for n in range(LAYERS):
        seen = norm(x, w["norm1"][n])
        q, k, v = ((seen @ w[name][n].T).reshape(len(ids), -1, 2 * HALF) for name in "qkv")
        k, v = (np.repeat(t, HEADS // KV_HEADS, 1) for t in (rotated(k), v))
        weight = np.einsum("ihd,jhd->hij", rotated(q), k) / np.sqrt(2 * HALF) + future
        weight = np.exp(weight - weight.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", weight, v).reshape(len(ids), DIM) @ w["o"][n].T
        seen = norm(x, w["norm2"][n])
        gate = seen @ w["w1"][n].T
        x = x + (gate / (1 + np.exp(-gate)) * (seen @ w["w3"][n].T)) @ w["w2"][n].T
    return norm(x, w["norm"]) @ w.get("head", w["embedding"]).T


def write_source(folder, weights, *, shared):
    sign = 1 if shared else -1
    header = struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, sign * len(PIECES), LONGEST)
    body = b"".join(weight.tobytes() for weight in weights.values())
    (folder / "stories260K.bin").write_bytes(header + body)
    pieces = b"".join(
        struct.pack("<fi", score, len(piece.encode())) + piece.encode()
        for piece, score in zip(PIECES, scores(), strict=True)
    )
    (folder / "tok512.bin").write_bytes(struct.pack("<i", 8) + pieces)


@pytest.mark.parametrize("shared", [True, False])
def test_stories_become_a_folder_with_the_same_answers(shared, tmp_path, monkeypatch, capsys):
    weights = random_weights(np.random.default_rng(0), shared=shared)
    write_source(tmp_path, weights, shared=shared)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["convert", "--source", str(tmp_path), "--out", str(out)])
    transformers.utils.logging.disable_progress_bar()
    example("convert_stories260k").main()
    transformers.utils.logging.enable_progress_bar()
    assert capsys.readouterr().out == f"wrote {out}\n"

    model = load_causal_lm(out, dtype=torch.float64)
    ids = model.encode("abc aab é!")
    truth = torch.from_numpy(logits_by_hand(weights, [1, *ids])).log_softmax(-1)
    log_probs, state = model.start(ids[:4])
    for place in range(4, len(ids)):
        torch.testing.assert_close(log_probs, truth[place : place + 1], rtol=0, atol=1e-6)
        log_probs, state = model.step(state, torch.tensor([ids[place]]))
    torch.testing.assert_close(log_probs, truth[-1:], rtol=0, atol=1e-6)


def test_stories_are_cut_into_the_tokens_of_greedy_joining(tmp_path):
    write_source(tmp_path, random_weights(np.random.default_rng(0), shared=True), shared=True)
    convert = example("convert_stories260k")
    tokenizer = convert.make_tokenizer(*convert.read_pieces(tmp_path / "tok512.bin"))

    @given(text=st.text("abc é😀!\n", max_size=12))
    @settings(max_examples=200)
    def agree(text):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == greedy_tokens(text)
        assert tokenizer.decode(ids) == text

    agree()
    assert tokenizer("a")["input_ids"][0] == 1


def test_a_file_of_the_wrong_size_is_refused(tmp_path):
    write_source(tmp_path, random_weights(np.random.default_rng(0), shared=True), shared=True)
    with (tmp_path / "stories260K.bin").open("ab") as file:
        file.write(bytes(8))
    with pytest.raises(SystemExit, match="weights where its header tells of"):
        example("convert_stories260k").read_model(tmp_path / "stories260K.bin")


def test_a_gguf_that_is_not_there_is_refused(tmp_path, monkeypatch):
    given_arguments = ["convert", "--source", str(tmp_path / "no.gguf"), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given_arguments)
    with pytest.raises(SystemExit, match="is not a file"):
        example("convert_gguf").main()


def test_the_digits_are_listed_by_the_hook_and_by_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["digits", "--out", str(tmp_path), "--steps", "90"])
    example("predict_memorised_digits").main()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("step ")
    assert said[0].endswith(" %")
    assert said[1].endswith("; 1 pass over the data")
    monkeypatch.chdir(EXAMPLES.parent)
    asked = ["--maker", "examples.predict_memorised_digits:make_model", "--json"]
    files = {"model": "early.safetensors", "start": "start.safetensors", "data": "train.npz"}
    files["memorised"] = "wrong.npy"
    for option, name in files.items():
        asked += [f"--{option}", str(tmp_path / name)]
    found = json.loads(CliRunner().invoke(commands, ["predict", *asked]).output)
    assert said[1].startswith(f"predicted to be memorised: {found['listed']} samples, ")
    assert f", {found['truth']['listed_and_memorised']} of the 90 wrong labels" in said[1]
    assert found["truth"]["missed"] < 10
    assert found["warnings"] == []
    assert found["stop"]["reached"]
