"""Inputs that are no plain files, or whose names steer a terminal, in every command."""

from __future__ import annotations

import json
import os
import socket
import zipfile
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
NUMBERS = [
    (name, param.opts[0], isinstance(param.type, click.types.FloatParamType))
    for name, command in every_command(commands)
    for param in command.params
    if isinstance(param.type, click.types.IntParamType | click.types.FloatParamType)
]
SINGLE = [
    (name, param.opts[0])
    for name, command in every_command(commands)
    for param in command.params
    if isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count)
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


@pytest.mark.parametrize(("name", "option"), EVERY)
def test_a_loop_of_links_is_refused_in_one_sentence(command, tmp_path, name, option):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    named = ["digits-inject"] if name == "recipe copy" else []
    done = command(*name.split(), *named, *([option] if option else []), loop)
    assert (done.code, done.out) == (2, "")
    said = f"{option} {loop}" if option else str(loop)
    assert done.err == f"remnant: {said} is a loop of links. Pass a file or folder.\n"


@pytest.mark.parametrize(("name", "option", "real"), NUMBERS)
def test_numbers_without_sense_are_refused_in_one_sentence(command, name, option, real):
    for number in (10**23, -(10**23), *(["1e-320", "-1e-320"] if real else [])):
        done = command(*name.split(), f"{option}={number}")
        assert (done.code, done.out) == (2, ""), number
        assert len(done.err.splitlines()) == 1
        assert option in done.err


@pytest.mark.parametrize(
    ("name", "option"), [("canaries", "--repeats"), ("feature", "--mean"), ("predict", "--std")]
)
def test_numbers_without_sense_in_lists_are_refused(command, name, option):
    needed = {
        "canaries": ["pin {digits:6}", "--out", "gone/x.jsonl"],
        "feature": ["--model", "x", "--images", "x"],
        "predict": ["--model", "x"],
    }
    done = command(name, *needed[name], option, f"1,{10**23}")
    assert (done.code, done.out) == (2, "")
    assert f"{option} 1e+23 is too large." in done.err


@pytest.mark.parametrize(("name", "option"), SINGLE)
def test_an_option_of_one_value_is_given_once(command, name, option):
    done = command(*name.split(), option, "x", option, "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"remnant: {option} is given 2 times and takes one value. Give it once.\n"


def test_the_lists_of_numbers_and_options_are_not_empty():
    assert len(NUMBERS) > 50
    assert len(SINGLE) > 150


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


def npy(shape: str) -> bytes:
    """An npy file whose header states a shape that NumPy never wrote."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(80)


SHAPES = ("(True,)", f"({10**26},)", f"({10**12},)", "(-1,)", "(2.0,)", "(" * 300)


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_of_odd_shapes_are_refused(command, tmp_path, shape):
    odd, fine = tmp_path / "odd.npy", tmp_path / "fine.npy"
    odd.write_bytes(npy(shape))
    np.save(fine, np.arange(30.0))
    done = command("score", "--seen", odd, "--unseen", fine)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"remnant: --seen {odd} is not a plain npy file. Write it with numpy.save.\n"
    )
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
        archive.writestr("images.npy", npy(shape))
    refuses_samples(command, tmp_path / "odd.npz", "is damaged, or holds something else")


def refuses_samples(command, path, words):
    path.with_name("model.safetensors").write_bytes(b"")
    done = command(
        *("predict", "--model", path.with_name("model.safetensors"), "--architecture", "mlp1"),
        *("--data", path),
    )
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert f"{path} {words}" in done.err


def test_a_file_in_an_npz_that_is_no_npy_is_refused(command, tmp_path):
    for name in ("images", "images.npy"):
        with zipfile.ZipFile(tmp_path / "odd.npz", "w") as archive:
            archive.writestr(name, b"hello")
        refuses_samples(command, tmp_path / "odd.npz", "is damaged, or holds something else")


NO_NUMBERS = (
    np.arange(30).astype("datetime64[D]"),
    np.arange(30).astype("timedelta64[s]"),
    np.zeros(30, dtype=[("score", "f8")]),
    np.array([b"1"] * 30),
    np.array(["1"] * 30),
)


@pytest.mark.parametrize("scores", NO_NUMBERS, ids=lambda scores: scores.dtype.kind)
def test_scores_that_are_no_numbers_are_refused(command, tmp_path, scores):
    odd, fine = tmp_path / "odd.npy", tmp_path / "fine.npy"
    np.save(odd, scores)
    np.save(fine, np.arange(30.0))
    done = command("score", "--seen", fine, "--unseen", odd)
    assert (done.code, done.out) == (2, "")
    assert f"--unseen {odd} holds values of type {scores.dtype}, not numbers." in done.err
    with pytest.raises(InvalidInput, match="unseen_scores is not an array of numbers"):
        auc(seen_scores=np.ones(5), unseen_scores=scores, rng=np.random.default_rng(0))


@pytest.mark.parametrize("images", NO_NUMBERS[:3], ids=lambda images: images.dtype.kind)
def test_samples_that_are_no_numbers_are_refused(command, tmp_path, images):
    np.savez(tmp_path / "odd.npz", images=images, labels=np.arange(30) % 2)
    refuses_samples(command, tmp_path / "odd.npz", "holds values of type")


def test_a_loop_of_links_in_a_folder_is_skipped_and_counted(command, tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "mail.txt").write_text("call 650-253" + "-0147\n")
    done = command("scan", folder, "--json", "--redact", tmp_path / "cleaned")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert [skipped["path"] for skipped in found["skipped"]] == [str(folder / "loop")]
    assert [secret["kind"] for secret in found["secrets"]] == ["phone"]


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
