"""Inputs that are no plain files, or whose names steer a terminal, in every command."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import click
import numpy as np
import pytest

from remnant.cli.main import commands
from remnant.errors import InvalidInput
from remnant.measures import auc
from remnant.models import Vocabulary, lstm, save_language_model

RED = "\x1b[31m"


def paths_of(command: click.Command) -> list[click.Parameter]:
    return [one for one in command.params if isinstance(one.type, click.Path)]


def every_command(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from every_command(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


EVERY = [
    (name, param.opts[0] if isinstance(param, click.Option) else "")
    for name, command in every_command(commands)
    for param in paths_of(command)
]


def test_the_list_of_paths_is_not_empty():
    assert {"curve", "canaries", "exposure", "extract", "predict", "feature", "scan", "run"} <= {
        name for name, _ in EVERY
    }
    assert len(EVERY) > 30


@pytest.mark.parametrize(("name", "option"), EVERY)
def test_a_fifo_is_refused_in_one_sentence(command, tmp_path, name, option):
    """Whoever opens one waits for a writer that never comes."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # ``recipe copy`` takes a name before the path.
    named = ["digits-inject"] if name == "recipe copy" else []
    done = command(*name.split(), *named, *([option] if option else []), pipe)
    assert (done.code, done.out) == (2, "")
    said = f"{option} {pipe}" if option else str(pipe)
    assert done.err == f"remnant: {said} is a FIFO, not a regular file. Pass a file or folder.\n"


def test_a_device_and_a_socket_are_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    try:
        for path, kind in (("/dev/zero", "a device"), ("s", "a socket")):
            done = command("scan", ".", "--salt", path)
            assert done.code == 2
            assert f"--salt {path} is {kind}, not a regular file" in done.err
    finally:
        server.close()


@pytest.mark.parametrize("which", ["--seen", "--unseen", "--lags"])
def test_complex_arrays_are_refused(command, tmp_path, which):
    rng = np.random.default_rng(0)
    arrays = {
        "--seen": rng.normal(size=(3, 2, 20)),
        "--unseen": rng.normal(size=(3, 2, 20)),
        "--lags": np.array([0.0, 5.0, 10.0]),
    }
    arrays[which] = arrays[which].astype(complex)
    for option, array in arrays.items():
        np.save(tmp_path / f"{option}.npy", array)
    given = [part for option in arrays for part in (option, tmp_path / f"{option}.npy")]
    done = command("curve", *given)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"remnant: {which} {tmp_path / which}.npy holds complex numbers. Save real scores.\n"
    )


@pytest.mark.parametrize("field", ["images", "inputs", "labels"])
def test_complex_samples_are_refused(command, tmp_path, field):
    arrays = {"images": np.zeros((4, 8, 8)), "labels": np.array([0, 1, 0, 1])}
    if field == "inputs":
        arrays["inputs"] = arrays.pop("images")
    arrays[field] = arrays[field].astype(complex)
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "model.safetensors").write_bytes(b"")
    done = command(
        *("predict", "--model", tmp_path / "model.safetensors", "--architecture", "mlp1"),
        *("--data", tmp_path / "data.npz"),
    )
    assert (done.code, done.out) == (2, "")
    assert f"{tmp_path / 'data.npz'} holds complex numbers" in done.err


def test_complex_scores_are_refused_by_the_measures():
    with pytest.raises(InvalidInput, match="seen_scores holds complex numbers"):
        auc(
            seen_scores=np.ones(5, dtype=complex),
            unseen_scores=np.zeros(5),
            rng=np.random.default_rng(0),
        )


def test_folders_in_folders_are_scanned_however_deep_they_are(command, tmp_path):
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
        with open("mail.txt", "w") as file:
            file.write("call 650-253" + "-0147\n")
        os.chdir(tmp_path)
        done = command("scan", "d")
        assert (done.code, done.err) == (0, "")
        assert "phone" in done.out
    finally:
        os.chdir(tmp_path)
        depth = 0
        while os.path.isdir("d"):
            os.chdir("d")
            depth += 1
        for name in os.listdir("."):
            os.unlink(name)
        for _ in range(depth):
            os.chdir("..")
            os.rmdir("d")
        os.chdir(here)


@pytest.fixture
def steering(tmp_path):
    """A folder whose name turns a terminal red."""
    folder = tmp_path / f"a{RED}b"
    folder.mkdir()
    return folder


def test_errors_show_the_codes_of_control_characters(command, steering):
    for name, option in (
        *(("exposure", "--model"), ("extract", "--model"), ("predict", "--model")),
        *(("feature", "--model"), ("scan", "--model")),
    ):
        more = {
            "exposure": ["--canaries", steering / "x.jsonl"],
            "extract": ["--template", "pin {digits:2}"],
            "predict": ["--data", steering / "x.npz"],
            "feature": ["--text", "K", "--images", steering / "x.npy"],
            "scan": [steering / "x.txt"],
        }[name]
        done = command(name, option, steering / "gone", *more)
        assert done.code == 2
        assert "\x1b" not in done.err
        assert "a\\x1b[31mb" in done.err or "a\\u001b[31mb" in done.err


def test_output_shows_the_codes_of_control_characters(command, steering):
    text = steering / f"x{RED}.txt"
    text.write_text("my pin is 1 call me at 650-253" + "-0147\n")
    out = steering / f"y{RED}.json"
    done = command("scan", text, "--out", out)
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert "written: " in done.out
    assert "y\\u001b[31m.json" in done.out
    model = steering / f"m{RED}"
    vocabulary = Vocabulary.of_characters("abcdefghijklmnopqrstuvwxyz0123456789 -.\n")
    save_language_model(
        model,
        architecture="lstm",
        options={"units": 4},
        state=lstm(vocabulary.size, units=4).state_dict(),
        vocabulary=vocabulary,
    )
    done = command("scan", text, "--model", model, "--references", 20)
    assert (done.code, "\x1b" in done.out + done.err) == (0, False)
    assert "m\\u001b[31m" in done.out
