"""The command line as its user meets it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from remnant.cli.demo import RECIPES, SECONDS
from remnant.cli.main import commands

RECIPE = """
question = "forgetting"
[plan]
kind = "inject"
canaries = 16
step = 8
watch_steps = 12
trials = 2
batch = 32
[data]
name = "digits"
examples = 200
[model]
name = "logistic"
[training]
options = { lr = 0.1, momentum = 0.9 }
[attack]
limit = 0.85
"""


INSTALLED = [sys.executable, "-c", "from remnant.cli.main import main; main()"]


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run by the installed command, in a process of its own."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.toml").write_text(RECIPE)
    arguments = ("run", folder / "tiny.toml", "--out", folder / "runs" / "tiny")
    done = subprocess.run(
        [*INSTALLED, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "tiny", done


def test_help_names_every_exit_code():
    text = " ".join(CliRunner().invoke(commands, ["--help"]).output.split())
    for code in ("0 fine", "1 FAIL", "2 usage error", "3 INCONCLUSIVE", "130 interrupted"):
        assert code in text


def test_help_answers_without_the_heavy_imports():
    code = (
        "import sys; from remnant.cli.main import main\n"
        "sys.argv = ['remnant', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'scipy', 'jinja2', 'tqdm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=3600
    )
    assert done.stdout.splitlines()[-1] == "[]"


def every_command(group=commands, before=""):
    """Yield every command with its name, those of groups after the group."""
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{before}{name} ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("scann",), "No such command 'scann'."),
        (("recipe", "list", "--jsn"), "No such option '--jsn'."),
        (("recipe", "new"), "Missing argument 'QUESTION'. See: remnant recipe new --help"),
        (("recipe", "new", "a", "b"), "unexpected extra argument (b). See: remnant recipe new"),
        (("canaries", "x", "--controls", "b"), "'--controls': 'b' is not a valid integer. See: "),
        (("run", "x.toml", "--device"), "Option '--device' requires an argument. See: remnant"),
        (("run", "x.toml", "--no\npe"), "See: remnant run --help"),
    ],
)
def test_a_misspelt_option_or_argument_is_one_line(command, arguments, said):
    done = command(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("remnant: ")
    assert said in done.err
    assert done.err.endswith(" --help\n")


def test_a_group_without_a_command_prints_its_help(command):
    done = command("recipe")
    assert done.code == 2
    assert "remnant recipe new exposure" in done.err


def test_every_command_has_an_example_and_help_for_all_that_it_takes():
    for name, command in every_command():
        text = CliRunner().invoke(commands, [*name.split(), "--help"]).output
        assert "Example:" in text, f"{name} --help has no example"
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts[0]} has no help"


def test_a_run_prints_its_verdict_and_leaves_a_record_and_a_report(finished):
    folder, done = finished
    words = " ".join(done.stdout.split())
    assert words.startswith("INCONCLUSIVE: 12 steps after the canaries were last used, ")
    assert done.stdout.splitlines()[-1] == f"1 INCONCLUSIVE  →  {folder / 'report.html'}"
    assert done.stderr == "", "a short run says nothing to a log"
    assert {p.name for p in folder.iterdir()} == {
        "arrays",
        "record.lock",
        "record.sqlite",
        "report.html",
    }
    with sqlite3.connect(folder / "record.sqlite") as database:
        rows = database.execute("SELECT COUNT(*) FROM ledger").fetchone()
    database.close()
    assert rows == (2 * 16,)


def test_a_finished_run_again_prints_the_same(finished, command):
    folder, done = finished
    again = command("run", folder.parents[1] / "tiny.toml", "--out", folder)
    assert (again.code, again.out.split()) == (0, done.stdout.split())


def test_show_runs_and_report_read_the_record(finished, tmp_path, command):
    folder, done = finished
    shown = command("show", folder)
    assert shown.out.startswith(done.stdout.splitlines()[0])
    summary = json.loads(command("show", folder, "--json").out)
    assert summary["status"] == "complete"
    listed = command("runs", folder.parent)
    assert listed.out.split()[:4] == ["tiny", "complete", "forgetting", "INCONCLUSIVE"]
    assert json.loads(command("runs", folder.parent, "--json").out)[0]["verdict"] == "INCONCLUSIVE"
    assert command("runs", tmp_path).out == f"No runs in {tmp_path}.\n"
    page = tmp_path / "page.html"
    assert command("report", folder, "--out", page).out == f"{page}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert command("report", folder, "--out", page).code == 0
    listed = command("runs", folder)
    assert listed.out.split()[:4] == ["tiny", "complete", "forgetting", "INCONCLUSIVE"]


def test_show_lists_runs_and_writes_reports_as_runs_and_report_do(
    finished, tmp_path, monkeypatch, command
):
    folder, _ = finished
    monkeypatch.chdir(folder.parents[1])
    assert command("show").out == command("runs").out == command("show", "runs", "--list").out
    assert command("show", folder, "--list", "--json").out == command("runs", folder, "--json").out
    page, text = tmp_path / "page.html", tmp_path / "text.md"
    assert command("show", folder, "--html", page).out == f"{page}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert command("show", folder, "--html").out == f"{folder / 'report.html'}\n"
    assert command("show", "--html", folder).out == f"{folder / 'report.html'}\n"
    assert command("show", folder, "--html", "--out", page).out == f"{page}\n"
    printed = command("show", folder, "--md").out
    assert command("show", "--md", folder).out == printed
    assert command("show", folder, "--md", text).out == f"{text}\n"
    assert text.read_text() == printed
    text.write_text("mine")
    assert "is not a summary in Markdown" in command("show", folder, "--md", text).err
    assert "is not a report" in command("show", folder, "--html", text).err
    assert text.read_text() == "mine"
    for words in (("--md", "--html"), ("--json", "--md"), ("--list", "--html")):
        assert "are two forms of one output" in command("show", folder, *words).err
    assert "--gate needs a run" in command("show", "--gate").err


def test_a_report_takes_the_place_of_no_other_file(finished, tmp_path, command):
    folder, _ = finished
    notes = tmp_path / "notes.txt"
    notes.write_text("do not touch")
    done = command("report", folder, "--out", notes)
    assert done.code == 2
    assert f"--out {notes} exists already and is not a report." in done.err
    assert notes.read_text() == "do not touch"
    assert command("report", folder, "--out", notes, "--force").code == 0
    assert notes.read_text().startswith("<!doctype html>")
    done = command("report", folder, "--out", "/dev/full", "--force")
    assert done.code == 2
    assert "is a device, not a regular file" in done.err


def test_an_interrupted_run_says_so(recipe, tmp_path, monkeypatch, command):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("remnant.records.Record.put_result", interrupted)
    out = tmp_path / "cut"
    done = command("run", recipe, "--out", out)
    assert (done.code, done.err) == (
        130,
        "remnant: interrupted; run the same command again to go on.\n",
    )
    assert command("show", out).out == (
        f"interrupted; run the command that began {out} again to go on.\n"
    )
    assert command("runs", out).out.split()[:2] == ["cut", "interrupted"]


HOLDING = """
import sys
from remnant.records import Record
record = Record.create(
    sys.argv[1], question="forgetting", plan={}, plan_fingerprint="a", data_fingerprint="b",
    execution={"groups": "1 of 3"}, provenance={},
)
print("begun", flush=True)
sys.stdin.read()
"""


def test_a_run_is_running_while_a_process_holds_it_and_interrupted_once_killed(tmp_path, command):
    out = tmp_path / "live"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout.readline() == b"begun\n"
        assert command("runs", out).out.split()[:3] == ["live", "running", "forgetting"]
        assert command("show", out).out == (
            f"running: a process is writing {out}, 1 of 3 groups trained.\n"
        )
        assert command("show", out, "--gate").code == 3
        holder.kill()
        holder.wait()
    assert command("runs", out).out.split()[:2] == ["live", "interrupted"]
    assert command("show", out).out.startswith("interrupted; run the command that began")


def test_a_dry_run_writes_nothing(recipe, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    done = command("run", recipe, "--dry-run")
    lines = [line.split() for line in done.out.splitlines()]
    assert [line[0] for line in lines] == ["members", "steps", "memory", "minutes"]
    assert [line[1] for line in lines[:2]] == ["6", "21"]
    assert {p.name for p in tmp_path.iterdir()} == {"tiny.toml"}
    assert json.loads(command("run", recipe, "--dry-run", "--json").out)["members"] == 6


def test_another_plan_in_the_folder_is_refused(finished, tmp_path, command):
    folder, _ = finished
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("step = 8", "step = 9"))
    before = (folder / "record.sqlite").read_bytes()
    done = command("run", other, "--out", folder)
    assert done.code == 2
    assert "another plan" in done.err
    assert len(done.err.splitlines()) == 1
    assert (folder / "record.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("canaries = 16", "canaries = 33"), "more than batch=32 holds"),
        (("canaries = 16", "canaries = -1\nseeed = 3"), "unknown field plan.seeed"),
        (("[model]", "[modle]"), "unknown section or field 'modle'"),
        (('kind = "inject"', 'kind = "whisper"'), "plan.kind='whisper'"),
        (('kind = "inject"\n', ""), "plan.kind is missing; it is one of inject, poison"),
        (("trials = 2", 'trials = "two"'), "trials='two' is not a whole number"),
        (("examples = 200", "examples = 9999"), "data.examples=9999"),
        (('name = "logistic"', 'name = "gpt-9"'), "model.name='gpt-9'"),
        (("watch_steps = 12\n", ""), "lacks watch_steps"),
        (("lr = 0.1,", "lr = 0.1, speed = 3,"), "no option 'speed'"),
        (("[plan]", "[plan"), "is not TOML"),
        (("examples = 200", 'examples = "many"'), "data.examples='many'"),
        (("lr = 0.1,", "lr = 1e30,"), "diverged"),
        (("limit = 0.85", "limit = 0.85\nlags = [true, false]"), "attack.lags"),
        (("limit = 0.85", "limit = 1.0"), "attack.limit=1.0"),
        (('question = "forgetting"', "compare = 3"), "compare is not a list of tables"),
    ],
)
def test_a_bad_recipe_is_one_sentence_and_exit_code_2(change, words, tmp_path, command):
    path = tmp_path / "bad.toml"
    path.write_text(RECIPE.replace(*change))
    done = command("run", path, "--out", tmp_path / "out")
    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("remnant: ")
    assert len(done.err.splitlines()) == 1
    assert done.out == ""
    assert not (tmp_path / "out").exists()


def test_faults_of_files_and_folders(recipe, finished, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    folder, _ = finished
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("do not touch")
    damaged, newer = tmp_path / "damaged", tmp_path / "newer"
    shutil.copytree(folder, damaged)
    (damaged / "record.sqlite").write_bytes(b"SQLite format 3\0 and then nothing")
    shutil.copytree(folder, newer)
    with sqlite3.connect(newer / "record.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    for arguments, words in (
        (("run", tmp_path / "nowhere.toml"), "is not there"),
        (("run", recipe, "--out", tmp_path / "file"), "file"),
        (("run", recipe, "--out", tmp_path / "full"), "empty"),
        (("run", recipe, "--out", "/proc/remnant"), "/proc"),
        (("run", recipe, "--device", "cuda:7"), "cuda:7"),
        (("run", recipe, "--device", "warp"), "Pass cpu or cuda"),
        (("show", tmp_path / "nowhere"), "nowhere"),
        (("show", damaged), "damaged"),
        (("report", damaged), "damaged"),
        (("show", newer), "newer"),
        (("report", folder, "--out", tmp_path / "no" / "such" / "place.html"), "place.html"),
        (("frobnicate",), "No such command"),
    ):
        done = command(*arguments)
        assert done.code == 2, (arguments, done.out, done.err)
        assert words in done.err, (arguments, done.err)
        assert "Traceback" not in done.err
    assert (tmp_path / "full" / "thesis.tex").read_text() == "do not touch"


def test_a_curve_from_arrays_of_any_framework(tmp_path, command):
    rng = np.random.default_rng(0)
    lags = np.array([0, 10, 100])
    seen = rng.normal(size=(3, 4, 50)) + np.array([3.0, 1.0, 0.0])[:, None, None]
    for name, array in (("seen", seen), ("unseen", rng.normal(size=(3, 4, 50))), ("lags", lags)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [f"--{name}={tmp_path / name}.npy" for name in ("seen", "unseen", "lags")]
    drawn = command("curve", *files, "--out", tmp_path / "curve.html")
    assert drawn.code == 0, drawn.err
    assert drawn.out.startswith("Precision at FPR 10 % at every lag, 95 % interval\n")
    assert "<svg" in (tmp_path / "curve.html").read_text()
    found = json.loads(command("curve", *files, "--success", "auc", "--json").out)
    assert found["value"][0] > 0.95 > found["value"][-1]
    before = (tmp_path / "seen.npy").read_bytes()
    assert command("curve", *files, "--out", tmp_path / "seen.npy").code == 2
    assert (tmp_path / "seen.npy").read_bytes() == before
    assert command("curve", *files, "--out", tmp_path).code == 2
    (tmp_path / "notes.txt").write_text("do not touch")
    assert "is a file" in command("curve", *files, "--out", tmp_path / "notes.txt").err
    (tmp_path / "notes.html").write_text("do not touch")
    assert "is not a report" in command("curve", *files, "--out", tmp_path / "notes.html").err
    assert command("curve", *files, "--out", tmp_path / "curve.html").code == 0
    np.save(tmp_path / "lags.npy", lags[::-1])
    wrong = command("curve", *files)
    assert wrong.code == 2
    assert "lags" in wrong.err
    np.save(tmp_path / "lags.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert command("curve", *files).code == 2
    (tmp_path / "lags.npy").unlink()
    assert "is not there" in command("curve", *files).err


def test_curve_says_what_an_option_takes(command, tmp_path):
    for name in ("seen", "unseen"):
        np.save(tmp_path / f"{name}.npy", np.zeros((3, 2, 20)))
    files = ("--seen", tmp_path / "seen.npy", "--unseen", tmp_path / "unseen.npy")
    done = command("curve", *files, "--lags", "0,100,1000")
    assert done.code == 2
    assert "--lags 0,100,1000 is not there" in done.err
    assert "--lags takes an npy file with the steps since last use, one number per lag" in done.err


KILLED = RECIPE.replace("watch_steps = 12", "watch_steps = 150").replace(
    'name = "logistic"', 'name = "mlp1"\noptions = { dropout = 0.2, batch_norm = true }'
)


def test_a_run_killed_with_9_goes_on_to_the_same_bits(tmp_path, command):
    recipe = tmp_path / "killed.toml"
    recipe.write_text(KILLED + '\n[[compare]]\nlabel = "3 repeats"\nplan.repeats = 3\n')
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert command("run", recipe, "--out", whole, "--threads", 1).code == 0
    arguments = ["run", recipe, "--out", cut, "--checkpoint-seconds", "0", "--threads", "1"]
    kills = 0
    for _ in range(2):
        process = subprocess.Popen([*INSTALLED, *map(str, arguments)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 3600
        before = _saved(cut)
        while time.monotonic() < deadline and process.poll() is None and _saved(cut) <= before + 2:
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.wait()
    assert kills > 0, "the run ended before it could be killed"
    done = command(*arguments)
    assert done.code == 0, done.err
    for path in sorted((whole / "arrays").iterdir()):
        assert path.read_bytes() == (cut / "arrays" / path.name).read_bytes(), path.name
    first, second = (json.loads(command("show", f, "--json").out) for f in (whole, cut))
    assert first["results"] == second["results"]


_saves: dict[Path, tuple[float, int]] = {}


def _saved(folder: Path) -> int:
    """Count how often a checkpoint was seen to change."""
    stamps = [p.stat().st_mtime for p in folder.glob("checkpoint-*.safetensors") if p.exists()]
    last, count = _saves.get(folder, (0.0, 0))
    if stamps and max(stamps) != last:
        _saves[folder] = max(stamps), count + 1
    return _saves.get(folder, (0.0, 0))[1]


def test_the_demo_knows_how_long_each_of_its_runs_takes():
    assert SECONDS.keys() == RECIPES.keys()
