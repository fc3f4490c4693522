"""Models that a server holds, that are in their own precision, or on several devices."""

from __future__ import annotations

import json
import os
import socket
import string
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from remnant.canaries import Template, make_canary_set, write_canary_sets

TOKEN = "a-token-that-nobody-may-see"
TEMPLATE = "the pin is {digits:3}"


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A Llama in bfloat16 with a tokenizer that begins texts with BOS, and canaries."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=100,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.4,
    )
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder / "model")
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *string.printable[:62], " ", ".", "is", "th"]
    merges = [("i", "s"), ("t", "h")]
    made = Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Digits(individual_digits=True)
    made.decoder = decoders.Fuse()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder / "model")
    drawn = make_canary_set(Template(TEMPLATE), repeats=[1, 8], controls=3, seed=2)
    write_canary_sets([drawn], folder / "canaries.jsonl")
    return folder


@pytest.fixture(scope="session")
def float32_copy(tiny):
    """The same model stored in float32, as the server computes."""
    folder = tiny / "float32"
    model = transformers.LlamaForCausalLM.from_pretrained(tiny / "model", dtype=torch.float32)
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tiny / "model").save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def server(float32_copy):
    """The address of a server process around that model."""
    program = Path(__file__).with_name("completions_server.py")
    process = subprocess.Popen(
        [sys.executable, str(program), str(float32_copy)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SERVER_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def served(server, monkeypatch):
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", TOKEN)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # not used for this machine
    return ["--served", server, "--served-model", "tiny"]


BEAM = ["--template", TEMPLATE, "--method", "beam"]


def every_byte(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_served_model_has_the_exposure_of_the_same_model(
    command, served, tiny, float32_copy, tmp_path
):
    asked = ["--canaries", tiny / "canaries.jsonl", "--references", 400, "--json"]
    done = command("exposure", *served, *asked, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    plain = command("exposure", "--model", float32_copy, *asked, "--method", "sampled")
    found, expected = (json.loads(each.out)["sets"][0] for each in (done, plain))
    assert (found["method"], found["reason"]) == (
        "sampled",
        "the model scores whole texts only",
    )
    for group in ("canaries", "controls"):
        for one, other in zip(found[group], expected[group], strict=True):
            assert one["bits"] == other["bits"]
            assert one["cost"] == pytest.approx(other["cost"], abs=1e-4)
    assert "two readings of 16 texts differ by" in found["arithmetic"]
    everything = every_byte(tmp_path / "run") + (done.out + done.err).encode()
    assert TOKEN.encode() not in everything
    assert b"127.0.0.1" in everything  # the record says which server was asked


def test_all_secrets_of_a_space_do_not_make_a_served_rank_exact(command, served, tiny):
    asked = ["--canaries", tiny / "canaries.jsonl", "--references", 1000, "--json"]
    found = json.loads(command("exposure", *served, *asked).out)["sets"][0]
    assert found["references"] == 995
    assert found["method"] == "sampled"
    assert found["canaries"][0]["rank"] is None


def test_a_gate_judges_a_served_model_that_learnt_nothing_inconclusive(command, served, tiny):
    asked = ["--canaries", tiny / "canaries.jsonl", "--references", 400, "--limit", 7]
    done = command("exposure", *served, *asked)
    assert done.code == 3, done.out + done.err


def test_a_beam_through_a_served_model_finds_what_one_through_the_model_finds(
    command, served, float32_copy
):
    asked = ["--template", TEMPLATE, "--method", "beam", "--beam", 20, "--top", 5]
    done = command("extract", *served, *asked, "--json", "--reveal")
    assert done.code == 0, done.err
    plain = command("extract", "--model", float32_copy, *asked, "--json", "--reveal")
    found, expected = (json.loads(each.out) for each in (done, plain))
    assert found["certified"] is False
    assert [c["secret"] for c in found["candidates"]] == [
        c["secret"] for c in expected["candidates"]
    ]
    for one, other in zip(found["candidates"], expected["candidates"], strict=True):
        assert one["bits"] == pytest.approx(other["bits"], abs=1e-4)
    shown = command("extract", *served, *asked).out
    assert "Not certified: beam of 20 proves nothing" in shown


def test_a_wrong_token_is_one_sentence_that_does_not_hold_it(command, served, tiny, monkeypatch):
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", "another-token")
    done = command("exposure", *served, "--canaries", tiny / "canaries.jsonl")
    assert done.code == 2
    assert "refused the request (401): the token was refused" in done.err
    assert "another-token" not in done.err
    monkeypatch.setenv("OTHER", TOKEN)
    done = command(
        *("exposure", *served, "--served-token-env", "OTHER"),
        *("--canaries", tiny / "canaries.jsonl", "--references", 50),
    )
    assert done.code == 0, done.err


def test_the_wrong_name_of_a_model_is_one_sentence(command, served, tiny):
    done = command(
        *("exposure", *served[:2], "--served-model", "huge"),
        *("--canaries", tiny / "canaries.jsonl"),
    )
    assert done.code == 2
    assert "serves no model called 'huge' (404)" in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--model and --served are neither given"),
        (["--served", "http://127.0.0.1:1", "--model", "x"], "--model and --served are both given"),
        (["--model", "x", "--served-model", "tiny"], "--served-model needs --served"),
        (["--served", "http://127.0.0.1:1"], "--served needs --served-model"),
        (
            ["--served", "http://10.0.0.1:1", "--served-model", "tiny"],
            "--served http://10.0.0.1:1 is not on this machine, and texts with secrets would be "
            "sent there. Pass --allow-remote if",
        ),
        (
            ["--served", "http://127.0.0.1:1", "--served-model", "tiny", "--precision", "own"],
            "--precision is not for --served",
        ),
        (
            ["--served", "http://127.0.0.1:1", "--served-model", "t", "--served-token-env", "NO"],
            "--served-token-env names no environment variable that is set. Pass the name",
        ),
        (
            ["--served", "http://127.0.0.1:1", "--served-model", "t", "--memory", "64"],
            "--memory is not for --served",
        ),
        (
            ["--served", "http://127.0.0.1:1", "--served-model", "t", "--max-nodes", "64"],
            "--max-nodes is not for --served",
        ),
        (
            ["--served", "http://127.0.0.1:1/\u00e9", "--served-model", "t"],
            "--served holds blanks, control characters or characters that are not ASCII",
        ),
        (["--served", "http://127.0.0.1:1", "--served-model", "tiny"], "No server answers at"),
    ],
)
def test_servers_that_cannot_be_asked_are_one_sentence(command, tiny, options, words):
    done = command("exposure", "--canaries", tiny / "canaries.jsonl", *options)
    assert (done.code, done.out) == (2, "")
    assert words in " ".join(done.err.split())


def test_a_token_in_place_of_its_variable_is_not_repeated(command, tiny):
    asked = ["--served", "http://127.0.0.1:1", "--served-model", "t", "--served-token-env", TOKEN]
    for rest in (["exposure", "--canaries", tiny / "canaries.jsonl"], ["extract", *BEAM]):
        done = command(rest[0], *asked, *rest[1:])
        assert done.code == 2
        assert "names no environment variable" in done.err
        assert TOKEN not in done.out + done.err


@pytest.mark.parametrize("name", ["extract", "exposure"])
def test_a_command_ends_with_its_time_where_a_server_hangs(command, tiny, name, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, and says nothing
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        asked = ["--served", url, "--served-model", "t", "--max-seconds", 0.3]
        rest = BEAM if name == "extract" else ["--canaries", tiny / "canaries.jsonl"]
        done = command(name, *asked, *rest, "--out", tmp_path / "run")
    assert (done.code, done.out) == (2, "")
    assert "The time limit of 0.3 s ended after 0 texts were scored." in " ".join(done.err.split())
    assert not (tmp_path / "run").exists()


def test_a_search_that_no_server_answers_has_no_hint_that_it_refuses(command):
    asked = ["--served", "http://127.0.0.1:1", "--served-model", "tiny"]
    done = command("extract", *asked, *BEAM)
    assert done.code == 2
    assert "No server answers at http://127.0.0.1:1. Start it" in " ".join(done.err.split())
    assert "certified" not in done.err


def test_an_open_gate_of_a_server_asks_for_no_walk(command, served, tiny):
    asked = ["--canaries", tiny / "canaries.jsonl", "--references", 50, "--limit", 9]
    done = command("exposure", *served, *asked)
    assert done.code == 3, done.out + done.err
    assert "--max-nodes" not in done.out


@pytest.mark.parametrize("name", ["extract", "exposure"])
def test_a_server_proves_nothing(command, tiny, name):
    asked = ["--served", "http://127.0.0.1:1", "--served-model", "tiny"]
    if name == "extract":
        done = command("extract", *asked, "--template", TEMPLATE)
        assert "--method certified needs a model's next tokens" in done.err
    else:
        done = command(
            "exposure", *asked, "--canaries", tiny / "canaries.jsonl", "--method", "exact"
        )
        assert "--method exact needs a model's next tokens" in done.err
    assert done.code == 2


def test_exposure_in_bfloat16_by_a_device_map_is_that_of_float64(command, tiny, tmp_path):
    asked = ["exposure", "--model", tiny / "model", "--canaries", tiny / "canaries.jsonl"]
    low = command(*asked, "--device-map", "auto", "--json", "--out", tmp_path / "run")
    assert "Computed in bfloat16." in command("show", tmp_path / "run").out
    plain = command(*asked, "--json")
    found, expected = (json.loads(each.out)["sets"][0] for each in (low, plain))
    assert found["arithmetic"].startswith("Computed in bfloat16. A sample of 37 secrets and ")
    assert "arithmetic" not in expected
    ranks = [[row["rank"] for row in each["canaries"]] for each in (found, expected)]
    assert ranks[0] == ranks[1]
    shown = command(*asked, "--precision", "own").out
    assert "bits, and the order is that of float64." in " ".join(shown.split())


def test_extraction_in_bfloat16_is_that_of_float64(command, tiny, tmp_path):
    asked = ["extract", "--model", tiny / "model", "--template", TEMPLATE, "--top", 3, "--reveal"]
    low = command(*asked, "--precision", "own", "--json", "--out", tmp_path / "run")
    plain = command(*asked, "--json")
    found, expected = (json.loads(each.out) for each in (low, plain))
    assert found["certified"]
    assert "Computed in bfloat16." in command("show", tmp_path / "run").out
    for one, other in zip(found["candidates"], expected["candidates"], strict=True):
        assert one["secret"] == other["secret"]
        assert one["bits"] == pytest.approx(other["bits"], abs=1e-9)
    assert "bfloat16" in found["arithmetic"]


def test_a_scan_in_bfloat16_says_so(command, tiny, tmp_path):
    text = tmp_path / "mail.txt"
    text.write_text("my card is 4111111111111111 ok\n")
    done = command(
        *("scan", text, "--model", tiny / "model", "--precision", "own", "--references", 50),
        *("--method", "sampled", "--out", tmp_path / "run"),
    )
    assert done.code == 0, done.err
    assert "Computed in bfloat16." in done.out
    assert "Computed in bfloat16." in command("show", tmp_path / "run").out


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    generator = torch.Generator().manual_seed(0)
    for name in ("seen", "unseen"):
        numbers = torch.randint(10**6, (40,), generator=generator).tolist()
        (folder / f"{name}.txt").write_text("".join(f"the pin is {n}\n" for n in numbers))
    return folder


def test_an_audit_in_bfloat16_compares_scores_and_does_not_pass(command, tiny, records, tmp_path):
    asked = ["audit", "--model", tiny / "model", "--seen", records / "seen.txt"]
    asked += ["--unseen", records / "unseen.txt", "--limit", 0.9, "--json"]
    done = command(*asked, "--precision", "own", "--out", tmp_path / "run")
    found = json.loads(done.out)
    sentence = found["attacks"]["arithmetic"]
    assert "Computed in bfloat16: on 48 records the scores of the attack 'loss'" in sentence
    assert found["verdict"]["outcome"] != "PASS"
    assert "on 48 records the scores" in command("show", tmp_path / "run").out
    plain = command(*asked)
    assert "arithmetic" not in json.loads(plain.out)["attacks"]


def test_scores_that_low_precision_swaps_allow_no_pass():
    from remnant.studies.membership.coarse_scores import compared_scores

    rng = np.random.default_rng(0)
    wide = rng.normal(size=48)
    fine = compared_scores(wide + 1e-6, wide, attack="loss", precision="bfloat16")
    assert (fine.swapped, fine.fault) == (0.0, "")
    blurred = compared_scores(wide + rng.normal(size=48), wide, attack="loss", precision="bfloat16")
    assert blurred.swapped > 0.1
    assert "an attack in float32 could do better" in blurred.fault


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device-map", "everywhere"], "'everywhere' is not one of"),
        (["--precision", "int4"], "'int4' is not one of"),
    ],
)
def test_wrong_options_are_one_sentence(command, tiny, options, words):
    done = command("extract", "--model", tiny / "model", "--template", TEMPLATE, *options)
    assert done.code == 2
    assert words in done.err


def test_a_checkpoint_of_ours_is_not_placed(command, planted):
    done = command(
        *("exposure", "--model", planted.model, "--canaries", planted.canaries),
        *("--device-map", "auto"),
    )
    assert done.code == 2
    assert "holds a Remnant checkpoint, which is read on one device and in float32" in done.err
