"""``remnant speech make``, and a recipe of speech from the command line to its report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest

RECIPE = """
question = "speech-forgetting"
[plan]
kind = "poison"
canaries = 4
step = 6
watch_steps = 2
trials = 2
batch = 8
fresh_canaries = true
[data]
name = "files"
path = "spoken"
validation = 4
bands = 16
[canaries]
kind = "spoken"
words = [2]
speakers = [1]
references = 12
[model]
options = { width = 8, layers = 1, heads = 1, kernel = 3 }
[attack]
limit = 2.5
lags = [0, 2]
"""


ONE_RUN = """
question = "speech-one-run"
[plan]
kind = "staggered"
canaries = 36
never = 12
starts = [4, 10]
window = 6
per_batch = 2
steps = 20
batch = 8
[data]
name = "files"
path = "spoken"
validation = 4
bands = 16
[canaries]
words = [2]
[model]
options = { width = 8, layers = 1, heads = 1, kernel = 3 }
[attack]
checkpoints = 3
"""


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    said = [f"{a} {b}" for a in ("red", "old", "tall", "warm") for b in ("house", "tree", "door")]
    (folder / "said.txt").write_text("\n".join([*said, *said]), encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    (folder / "one-run.toml").write_text(ONE_RUN, encoding="utf-8")
    return folder


def test_sentences_are_spoken_trained_on_and_heard_again(command, home):
    voices = ("--voices", "slt,rms")
    made = command("speech", "make", home / "said.txt", home / "spoken", *voices)
    assert made.code == 0, made.err
    seconds = re.search(r"^24 utterances, (\d+\.\d) seconds of speech; 24 were spoken", made.out)
    assert seconds is not None
    assert 5.0 < float(seconds[1]) < 60.0
    again = command("speech", "make", home / "said.txt", home / "spoken", *voices, "--json")
    assert json.loads(again.out)["spoken"] == 0
    run = ("run", home / "recipe.toml", "--data", home, "--out", home / "run")
    ran = command(*run)
    assert ran.code == 0, ran.err
    assert "INCONCLUSIVE" in ran.out or "FAIL" in ran.out
    report = home / "run" / "report.html"
    assert "<audio" not in report.read_text(encoding="utf-8")
    heard = command(*run, "--reveal")
    assert heard.code == 0, heard.err
    document = report.read_text(encoding="utf-8")
    assert len(re.findall("<audio", document)) == 3
    assert "This report shows secrets (--reveal)" in document
    assert report.stat().st_mode & 0o077 == 0
    assert "Forgetting of speech" in command("show", home / "run").out + document
    assert len(list((home / "speech").glob("*.npy"))) >= 32, "canaries are kept for the next run"


def test_one_run_from_sentences_to_its_report(command, home, tmp_path):
    voices = ("--voices", "slt,rms")
    assert command("speech", "make", home / "said.txt", home / "spoken", *voices).code == 0
    run = ("run", home / "one-run.toml", "--data", home, "--out", tmp_path / "run")
    dry = command(*run, "--dry-run", "--json")
    assert (json.loads(dry.out)["members"], json.loads(dry.out)["steps"]) == (1, 20)
    assert not (tmp_path / "run").exists()
    ran = command(*run)
    assert ran.code == 0, ran.err
    assert "INCONCLUSIVE" in ran.out or "FAIL" in ran.out
    shown = command("show", tmp_path / "run")
    assert "12 canaries planted once from step 4" in shown.out
    document = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "One-run forgetting of speech" in document
    assert "Cost saved by planting (bits)" in document
    revealed = command(*run, "--reveal")
    assert revealed.code == 2
    assert "--reveal applies to recipes with the question speech-forgetting" in revealed.err
    few = home / "few.toml"
    few.write_text(ONE_RUN + "fpr = 0.05\n", encoding="utf-8")
    refused = command("run", few, "--data", home, "--out", tmp_path / "few")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "plan.never=12 cannot place a threshold at attack.fpr=0.05" in refused.err
    assert not (tmp_path / "few").exists()


def test_one_run_killed_with_9_goes_on_to_the_same_bits(command, home, tmp_path):
    voices = ("--voices", "slt,rms")
    assert command("speech", "make", home / "said.txt", home / "spoken", *voices).code == 0
    longer = ONE_RUN.replace("steps = 20", "steps = 300").replace(
        "kernel = 3 }", "kernel = 3, dropout = 0.2 }"
    )
    (home / "longer.toml").write_text(longer, encoding="utf-8")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run = ("run", home / "longer.toml", "--data", home, "--threads", 1)
    assert command(*run, "--out", whole).code == 0
    arguments = [*run, "--out", cut, "--checkpoint-seconds", "0.05"]
    program = [sys.executable, "-c", "from remnant.cli.main import main; main()"]
    process = subprocess.Popen([*program, *map(str, arguments)], stdout=subprocess.DEVNULL)
    while process.poll() is None and not (cut / "checkpoint.safetensors").exists():
        time.sleep(0.02)
    assert process.poll() is None, "the run ended before it could be killed"
    process.kill()
    process.wait()
    assert command(*arguments).code == 0
    for path in sorted((whole / "arrays").iterdir()):
        assert path.read_bytes() == (cut / "arrays" / path.name).read_bytes(), path.name
    first, second = (json.loads(command("show", f, "--json").out) for f in (whole, cut))
    assert first["results"] == second["results"]
    assert not (cut / "checkpoint.safetensors").exists()


def test_faults_are_one_sentence(command, home, tmp_path, monkeypatch):
    for arguments, said in (
        (("--voices", "hal"), "--voices hal is not known. Choose from slt"),
        (("--seed", -1), "--seed -1 is less than 0"),
    ):
        done = command("speech", "make", home / "said.txt", tmp_path / "x", *arguments)
        assert (done.code, done.out) == (2, "")
        assert said in done.err
    done = command("speech", "make", tmp_path / "none.txt", tmp_path / "x")
    assert done.code == 2
    assert "none.txt is not there" in done.err
    monkeypatch.setenv("PATH", str(tmp_path))
    done = command("speech", "make", home / "said.txt", tmp_path / "x")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "The synthesizer flite is not installed. Install it with: apt-get" in done.err
    assert not (tmp_path / "x").exists()
    dry = command("run", home / "recipe.toml", "--data", home, "--dry-run", "--json")
    assert json.loads(dry.out)["members"] == 6


def test_reveal_is_for_speech_alone(command, tmp_path):
    (tmp_path / "other.toml").write_text(
        '[plan]\nkind = "inject"\ncanaries = 12\nstep = 6\nwatch_steps = 8\n'
    )
    done = command("run", tmp_path / "other.toml", "--reveal")
    assert done.code == 2
    assert "--reveal applies to recipes with the question speech-forgetting" in done.err
