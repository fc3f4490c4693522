"""How commands read their arguments: what is missing, what may be meant, which device is taken."""

from __future__ import annotations

import click
import pytest
import torch

from remnant.cli.help import suggestions
from remnant.cli.main import commands
from remnant.cli.options import declared


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["audit"], "--model or --checkpoints, --seen, --unseen"),
        (["audit", "--model", "m"], "--seen, --unseen"),
        (["exposure"], "--model or --served, --canaries"),
        (["extract"], "--model or --served, --template"),
        (["feature"], "--model, --patch or --text or --text-file, --images"),
        (["feature", "--text", "A"], "--model, --images"),
        (["canaries"], "TEMPLATE..., --out"),
        (["curve", "--lags", "x"], "--seen, --unseen"),
        (["score"], "--seen, --unseen"),
    ],
)
def test_all_that_is_missing_is_named_at_once(command, arguments, missing):
    done = command(*arguments)
    said = f"remnant: Missing: {missing}. See: remnant {arguments[0]} --help\n"
    assert (done.code, done.out, done.err) == (2, "", said)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["audit", "--train", "x"], "'--seen'"),
        (["audit", "--nonmembers", "x"], "'--unseen'"),
        (["audit", "--treshold", "x"], "'--limit'"),
        (["exposure", "--checkpoint", "x"], "'--model'"),
        (["score", "--confidense", "x"], "'--confidence'"),
        (["run", "x.toml", "--output", "x"], "'--out'"),
        (["run", "x.toml", "--gpu"], "'--device'"),
        (["scan", "x", "--mask", "y"], "'--redact'"),
        (["predict", "--batch-size", "3"], "'--batch'"),
        (["list"], "'show'"),
        (["mia"], "'audit'"),
        (["scann"], "'scan'"),
    ],
)
def test_a_plausible_mistake_gets_what_was_meant(command, arguments, meant):
    done = command(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"Did you mean {meant}?" in done.err


def test_nothing_is_suggested_for_a_word_that_means_nothing(command):
    assert "Did you mean" not in command("audit", "--qqqq", "x").err


def test_suggestions_are_options_and_commands_that_exist():
    options = {
        name
        for command in commands.commands.values()
        for param in command.params
        if isinstance(param, click.Option)
        for name in param.opts
    }
    assert set(suggestions._COMMANDS) <= commands.commands.keys()
    assert set(suggestions._OPTIONS) - {"--files"} <= options, "--files is of recipe new"


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(declared, "_may_have_gpus", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)


@pytest.fixture
def chosen(command, monkeypatch):
    """The device that a command takes for its arguments, and what it says of it."""

    def ask(name, *arguments):
        own = commands.commands[name]
        monkeypatch.setattr(own, "callback", lambda **given: click.echo(given["device"]))
        done = command(name, *map(str, arguments))
        assert done.code == 0, done.err
        return done.out.strip(), done.err

    return ask


EXTRACT = ("extract", "--model", "m", "--template", "t")
SAID = "Computing on a GPU; --device cpu takes the processor.\n"


def test_auto_takes_a_gpu_where_there_is_one_and_says_so(two_gpus, chosen):
    assert chosen(*EXTRACT) == ("cuda", SAID)
    assert chosen(*EXTRACT, "--device", "auto") == ("cuda", SAID)
    assert chosen("audit", "--checkpoints", "c", "--seen", "a", "--unseen", "b")[0] == "cuda"


def test_auto_takes_the_processor_where_the_gpu_is_broken(two_gpus, chosen, monkeypatch):
    def broken():
        raise RuntimeError("CUDA driver initialization failed.\nMore.")

    monkeypatch.setattr(torch.cuda, "init", broken)
    said = "The GPU cannot be used: CUDA driver initialization failed. Computing on the processor."
    assert chosen(*EXTRACT) == ("cpu", f"{said}\n")


def test_auto_takes_the_processor_where_there_is_no_gpu_or_no_model(no_gpu, chosen):
    assert chosen(*EXTRACT) == ("cpu", "")
    assert chosen("predict", "--hidden", "h.npy") == ("cpu", "")


def test_auto_takes_no_gpu_that_nothing_would_be_computed_on(two_gpus, chosen):
    assert chosen("scan", "file") == ("cpu", "")
    assert chosen("extract", "--served", "u", "--template", "t") == ("cpu", "")
    assert chosen(*EXTRACT, "--device-map", "auto") == ("cpu", "")
    assert chosen(*EXTRACT, "--device", "cpu") == ("cpu", "")
    assert chosen(*EXTRACT, "--device", "cuda:1") == ("cuda:1", "")


@pytest.mark.parametrize("name", ["mps", "mps:0"])
def test_mps_is_refused_with_the_reason(command, name):
    done = command(*EXTRACT, "--device", name)
    said = f"--device {name} is refused: ranks are settled in float64, which it lacks. Pass cpu."
    assert (done.code, done.err) == (2, f"remnant: {said}\n")


@pytest.mark.parametrize("name", ["exposure", "extract", "scan", "feature", "predict", "audit"])
def test_commands_that_compute_take_threads(name):
    assert any(param.name == "threads" for param in commands.commands[name].params)
