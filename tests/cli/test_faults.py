"""Full disks, kills, damaged files, links and odd names, as the command's user meets them."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from remnant.canaries import read_canary_sets
from remnant.cli.main import main
from remnant.data import catalogue
from remnant.errors import RemnantWarning
from remnant.records import Record, arrays

RECIPE = """
question = "forgetting"
[plan]
kind = "inject"
canaries = 16
step = 8
watch_steps = 60
trials = 2
batch = 32
[data]
name = "digits"
examples = 200
[model]
name = "mlp1"
[training]
options = { lr = 0.1, momentum = 0.9 }
[attack]
limit = 0.9
"""
MAIN = "from remnant.cli.main import main; main()"
# Kills itself with signal 9 after so many saves.
KILLED = """
import os, signal, sys
from remnant.population import checkpoint as files
save, left = files.save, [int(sys.argv.pop(1))]
def counted(*arguments):
    save(*arguments)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
files.save = counted
"""


def remnant(*arguments):
    """Run the command in this process; return what ``alone`` returns."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["remnant", *map(str, arguments)]),
    ):
        warnings.simplefilter("default", RemnantWarning)
        with pytest.raises(SystemExit) as left:
            main()
    code = int(left.value.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def alone(*arguments, before="", **options):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", f"{before}\n{MAIN}", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
        **options,
    )


def is_one_sentence(done, *words):
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("remnant: "), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A recipe, its complete run, and one that was killed at its third checkpoint."""
    folder = tmp_path_factory.mktemp("faults")
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE)
    whole = remnant("run", recipe, "--out", folder / "whole")
    assert whole.returncode == 0, whole.stderr
    arguments = (3, "run", recipe, "--out", folder / "cut", "--checkpoint-seconds", 0)
    assert alone(*arguments, before=KILLED).returncode == -9
    return folder


@pytest.fixture
def recipe(made):
    return made / "tiny.toml"


@pytest.fixture
def whole(made, tmp_path):
    return Path(shutil.copytree(made / "whole", tmp_path / "runs" / "whole"))


@pytest.fixture
def cut(made, tmp_path):
    return Path(shutil.copytree(made / "cut", tmp_path / "runs" / "cut"))


def continues_to_the_same_bits(recipe, cut, made):
    done = remnant("run", recipe, "--out", cut)
    assert done.returncode == 0, done.stderr
    for path in sorted((made / "whole" / "arrays").iterdir()):
        assert path.read_bytes() == (cut / "arrays" / path.name).read_bytes(), path.name
    assert not list(cut.glob("checkpoint*"))
    assert not list(cut.glob(".tmp*"))
    return done


def checkpoint_of(folder):
    (path,) = folder.glob("checkpoint-*.safetensors")
    return path


# -- a full disk --------------------------------------------------------------------------------


def test_a_full_disk_is_one_sentence_and_the_same_command_continues(recipe, cut, made):
    path = checkpoint_of(cut)
    before = path.read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, resource.RLIM_INFINITY))

    arguments = ("run", recipe, "--out", cut, "--checkpoint-seconds", 0)
    done = alone(*arguments, preexec_fn=limit)
    is_one_sentence(done, "the disk is full", "run the same command again: it continues from what")
    assert path.read_bytes() == before
    assert Record.open(cut).status == "running"
    continues_to_the_same_bits(recipe, cut, made)


@pytest.fixture
def full(monkeypatch):
    """A disk that has no room for arrays."""

    def refuse(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(arrays.np.lib.format, "write_array", refuse)
        yield patched


def test_a_disk_that_fills_up_at_the_end_keeps_the_last_checkpoint(recipe, cut, made, full):
    done = remnant("run", recipe, "--out", cut, "--checkpoint-seconds", 0)
    is_one_sentence(done, "arrays", "the disk is full")
    assert checkpoint_of(cut).exists()
    full.undo()
    continues_to_the_same_bits(recipe, cut, made)


@pytest.mark.usefixtures("full")
def test_a_full_disk_before_anything_was_stored_leaves_nothing(recipe, tmp_path):
    is_one_sentence(remnant("run", recipe, "--out", tmp_path / "run"), "the disk is full")
    assert list(tmp_path.iterdir()) == []


# -- a kill -------------------------------------------------------------------------------------


def test_what_a_kill_left_is_removed_on_the_next_start(recipe, cut, made):
    checkpoint = checkpoint_of(cut)
    (cut / "models" / "trial-1").mkdir(parents=True)
    (cut / "arrays").mkdir(exist_ok=True)
    litter = [
        cut / ".tmpAb3dE9",
        cut / "models" / "trial-1" / ".tmpZZZZZZ",
        cut / "arrays" / ".x.npy.tmp-123",
        cut / ".report.html.tmp-77",
        checkpoint.with_name(f"{checkpoint.name}.tmp"),
    ]
    kept = [cut / ".tmpA", cut / "models" / ".tmpAb3dE9x"]
    for path in (*litter, *kept):
        path.write_bytes(b"left")
    assert remnant("run", recipe, "--out", cut).returncode == 0
    assert not [path for path in litter if path.exists()]
    assert [path.read_bytes() for path in kept] == [b"left", b"left"]


def test_litter_alone_does_not_keep_a_run_out_of_a_folder(recipe, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".tmpAb3dE9").write_bytes(b"left")
    done = remnant("run", recipe, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / ".tmpAb3dE9").exists()


def test_checkpoints_that_a_kill_left_in_a_complete_run_are_removed(recipe, whole):
    (whole / "checkpoint-primary.safetensors").write_bytes(b"left")
    assert remnant("run", recipe, "--out", whole).returncode == 0
    assert not list(whole.glob("checkpoint*"))


# -- signals, and writes that fail after the result ----------------------------------------------

# Sends itself a signal when a module is asked for a function.
SIGNALLED = """
import os, signal, importlib
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
module, name = {where!r}.rsplit(".", 1)
module = importlib.import_module(module)
def stop(*arguments, **options):
    os.kill(os.getpid(), signal.{signal})
    signal.pause()
setattr(module, name, stop)
"""


@pytest.mark.parametrize(
    ("signal", "code", "word"), [("SIGTERM", 143, "terminated"), ("SIGINT", 130, "interrupted")]
)
def test_a_signal_is_one_sentence_that_says_how_to_go_on(recipe, cut, made, signal, code, word):
    stopped = SIGNALLED.format(where="remnant.records.Record.put_result", signal=signal)
    stopped = stopped.replace("importlib.import_module(module)", "remnant.records.Record")
    done = alone("run", recipe, "--out", cut, before=f"import remnant.records\n{stopped}")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.strip() == f"remnant: {word}; run the same command again to go on."
    continues_to_the_same_bits(recipe, cut, made)
    where = "remnant.canaries.insert_into_file"
    corpus = made / "corpus.txt"
    corpus.write_text("a line\n" * 9)
    folder = cut.parent / "planted"
    folder.mkdir()
    done = alone(
        *("canaries", "pin {digits:6}", "--out", folder / "canaries.jsonl"),
        *("--insert", corpus, "--into", folder / "planted.txt"),
        before=SIGNALLED.format(where=where, signal=signal),
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.strip() == (
        f"remnant: {word}; nothing was written; the same command starts over."
    )
    assert list(folder.iterdir()) == []


@pytest.fixture
def scores(tmp_path):
    """Scores, and the command that judges them."""
    np.save(tmp_path / "seen.npy", np.arange(30.0))
    np.save(tmp_path / "unseen.npy", np.arange(30.0) - 1)
    return "score", "--seen", tmp_path / "seen.npy", "--unseen", tmp_path / "unseen.npy"


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_nothing_is_printed_where_the_record_cannot_be_written(scores, tmp_path, full, as_json):
    done = remnant(*scores, "--out", tmp_path / "out", *as_json)
    is_one_sentence(done, "the disk is full", "Free some space, then run the same command again.")
    assert done.stdout == ""
    assert "continues" not in done.stderr
    full.undo()
    assert remnant(*scores, "--out", tmp_path / "out", *as_json).returncode == 0


def test_a_full_disk_under_the_output_is_one_sentence(scores):
    with open("/dev/full", "w") as out:
        code = [sys.executable, "-c", MAIN, *map(str, scores)]
        done = subprocess.run(code, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    is_one_sentence(done, "the disk is full")


def test_of_parallel_commands_on_one_file_one_wins(tmp_path):
    (tmp_path / "corpus.txt").write_text("a line\n" * 2000)
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", MAIN, "canaries", "pin {digits:6}", "--seed", str(seed)),
                *("--out", tmp_path / f"{seed}.jsonl", "--insert", tmp_path / "corpus.txt"),
                *("--into", tmp_path / "planted.txt"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(3)
    ]
    ended = [(*process.communicate(), process.returncode) for process in running]
    assert sorted(code for *_, code in ended) == [0, 2, 2]
    winner = [code for *_, code in ended].index(0)
    text = (tmp_path / "planted.txt").read_text()
    planted = read_canary_sets(tmp_path / f"{winner}.jsonl")[0].canaries
    assert all(canary.text in text for canary in planted)
    for seed, (out, err, code) in enumerate(ended):
        if code:
            assert out == ""
            assert "planted.txt exists already, with other content" in err
            assert not (tmp_path / f"{seed}.jsonl").exists()


# -- damaged checkpoints ------------------------------------------------------------------------


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("at", [3, 0.5, -1])
def test_a_flipped_bit_of_a_checkpoint_goes_back_to_the_one_before(recipe, cut, made, at):
    path = checkpoint_of(cut)
    flip(path, int(at * path.stat().st_size) if isinstance(at, float) else at)
    done = continues_to_the_same_bits(recipe, cut, made)
    assert done.stderr == (
        f"remnant: The checkpoint {path} was damaged; "
        "the training continues from the one before it.\n"
    )


def test_a_damaged_checkpoint_alone_is_one_sentence_and_deletes_nothing(recipe, cut, made):
    path = checkpoint_of(cut)
    path.with_name(f"{path.name}.previous").unlink()
    flip(path, -1)
    there = sorted(one.name for one in cut.iterdir())
    is_one_sentence(remnant("run", recipe, "--out", cut), path.name, "is damaged. Delete it")
    assert sorted(one.name for one in cut.iterdir()) == there
    path.unlink()
    continues_to_the_same_bits(recipe, cut, made)


# -- damaged arrays of a complete run -----------------------------------------------------------


def _missing(arrays):
    (arrays / "primary.signals.npy").unlink()


def _short(arrays):
    file = arrays / "primary.signals.npy"
    file.write_bytes(file.read_bytes()[:-8])


def _flipped(arrays):
    flip(arrays / "primary.signals.npy", -1)


def _swapped(arrays):
    names = ("primary.signals.npy", "primary.test_accuracy.npy")
    first, second = (arrays / name for name in names)
    first.rename(arrays / "x")
    second.rename(first)
    (arrays / "x").rename(second)


@pytest.mark.parametrize("damage", [_missing, _short, _flipped, _swapped])
@pytest.mark.parametrize("command", ["show", "report", "run"])
def test_damaged_arrays_of_a_complete_run_are_noticed(recipe, whole, damage, command):
    damage(whole / "arrays")
    page = (whole / "report.html").read_bytes()
    arguments = ("run", recipe, "--out", whole) if command == "run" else (command, whole)
    done = remnant(*arguments)
    is_one_sentence(done, ".npy is ", "Restore the file from a copy")
    assert done.stdout == ""
    assert (whole / "report.html").read_bytes() == page


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["show", "--gate"], ["report"]])
def test_one_changed_digit_of_a_result_is_noticed(recipe, whole, command):
    with sqlite3.connect(whole / "record.sqlite") as database:
        (text,) = database.execute("SELECT value FROM results WHERE name = 'task'").fetchone()
        at = text.index("0.") + 2
        changed = text[:at] + ("2" if text[at] != "2" else "6") + text[at + 1 :]
        database.execute("UPDATE results SET value = ? WHERE name = 'task'", (changed,))
    database.close()
    page = (whole / "report.html").read_bytes()
    for arguments in ((*command, whole), ("run", recipe, "--out", whole)):
        done = remnant(*arguments)
        is_one_sentence(done, "record.sqlite is damaged: the row 'task' of the table results")
        assert done.stdout == ""
    assert (whole / "report.html").read_bytes() == page
    listed = json.loads(remnant("runs", whole.parent, "--json").stdout)
    assert [entry["status"] for entry in listed] == ["damaged"]


def test_one_damaged_run_does_not_block_the_report_of_the_others(whole, tmp_path):
    for name in ("second", "third"):
        shutil.copytree(whole, whole.parent / name)
    _flipped(whole.parent / "second" / "arrays")
    (whole.parent / "third" / "record.sqlite").write_bytes(b"no database" * 99)
    shutil.copytree(whole, whole.parent / "fourth")
    out = tmp_path / "page.html"
    done = remnant("report", whole.parent, "--out", out)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.partition(" is not in the report: ")[0] for line in lines] == [
        "remnant: The run second",
        "remnant: The run third",
    ]
    page = out.read_text(encoding="utf-8")
    assert "Report on 2 runs" in page
    assert "Not in this report" in page
    assert "third/record.sqlite is damaged" in page
    listed = json.loads(remnant("runs", whole.parent, "--json").stdout)
    assert [entry["status"] for entry in listed] == ["complete", "complete", "damaged", "complete"]


# -- links, names, depth ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda at, to: at.symlink_to(to), lambda at, _: os.mkfifo(at)])
def test_a_lock_that_is_no_plain_file_is_refused(recipe, cut, tmp_path, make):
    mine = tmp_path / "mine.txt"
    mine.write_text("my own words")
    (cut / "record.lock").unlink()
    make(cut / "record.lock", mine)
    is_one_sentence(remnant("run", recipe, "--out", cut), "record.lock is a link, or no plain file")
    assert mine.read_text() == "my own words"
    listed = json.loads(remnant("runs", cut.parent, "--json").stdout)
    assert [entry["status"] for entry in listed] == ["interrupted"]


def test_control_characters_of_names_and_labels_are_escaped(recipe, whole, tmp_path):
    odd = whole.rename(whole.parent / "a\x1b[31m\x1b]0;title\x07b\nPASS\u202ec")
    for arguments in (("runs", odd.parent), ("show", odd), ("report", odd), ("show", odd / "x")):
        done = remnant(*arguments)
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\u202e"), arguments
    (line,) = remnant("runs", odd.parent).stdout.splitlines()
    assert line.startswith(r"a\u001b[31m\u001b]0;title\u0007b\u000aPASS\u202ec")
    labelled = tmp_path / "labelled.toml"
    changed = RECIPE.replace("watch_steps = 60", "watch_steps = 12")
    labelled.write_text(
        f'label = "x\\u001B[2J"\n{changed}[[compare]]\nlabel = "y\\u001B]0;z"\nplan.repeats = 2\n'
    )
    done = remnant("run", labelled, "--out", tmp_path / "labelled")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    shown = remnant("show", tmp_path / "labelled", "--json")
    assert json.loads(shown.stdout)["plan"]["label"] == "x\x1b[2J"


def _nest(folder, depth):
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def _unnest(folder):
    """Remove folders deeper than a path may be long, from the top."""
    inner = folder / "d"
    while inner.exists():
        if (inner / "d").exists():
            (inner / "d").rename(folder / "next")
        inner.rmdir()
        if (folder / "next").exists():
            (folder / "next").rename(inner)


@pytest.mark.parametrize("command", ["runs", "report", "show", "scan"])
def test_folders_nested_1200_deep_are_no_traceback(tmp_path, monkeypatch, command):
    nested = tmp_path / "nested"
    _nest(nested, 1200)
    try:
        (nested / "words.txt").write_text("nothing to see here\n")
        deep = Path(*["d"] * 1200)
        for folder in (Path(), deep):
            monkeypatch.chdir(nested)
            done = remnant(command, folder)
            assert done.returncode in (0, 2)
    finally:
        monkeypatch.chdir(tmp_path)
        _unnest(nested)


# -- memory -------------------------------------------------------------------------------------


def test_a_library_that_cannot_be_loaded_is_not_called_missing(recipe, tmp_path, monkeypatch):
    whole = builtins.__import__

    def load(name, *arguments, **options):
        if name.startswith("sklearn"):
            raise ImportError("libgomp.so: cannot allocate memory in static TLS block", name=name)
        return whole(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", load)
    done = remnant("run", recipe, "--out", tmp_path / "run")
    is_one_sentence(done, "scikit-learn is installed but cannot be loaded", "allocate memory")
    assert ".[data]" not in done.stderr


@pytest.mark.parametrize(
    "fault", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_too_little_memory_is_one_sentence(recipe, tmp_path, monkeypatch, fault):
    def fail():
        raise fault

    monkeypatch.setattr(catalogue, "_digits", fail)
    done = remnant("run", recipe, "--out", tmp_path / "run")
    is_one_sentence(done, "There is too little memory.")
