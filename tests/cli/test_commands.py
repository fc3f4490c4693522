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


def remnant(*arguments, timeout=3600, **options):
    """Run the installed command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from remnant.cli.main import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.toml").write_text(RECIPE)
    done = remnant("run", folder / "tiny.toml", "--out", folder / "runs" / "tiny")
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


def test_every_command_has_an_example_and_is_in_the_docs():
    docs = Path(__file__).parents[2].joinpath("docs", "commands.md").read_text()
    for name, command in every_command():
        text = CliRunner().invoke(commands, [*name.split(), "--help"]).output
        assert "Example:" in text, f"{name} --help has no example"
        start = "- `remnant" if " " in name else "## `remnant"
        assert f"{start} {name}" in docs, f"docs/commands.md does not describe {name}"
        for parameter in command.params:
            if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
                assert f"`{parameter.opts[0]}" in docs, f"{name} {parameter.opts[0]}"


def test_a_run_prints_its_verdict_and_leaves_a_record_and_a_report(finished):
    folder, done = finished
    assert done.stdout.startswith("INCONCLUSIVE: 12 steps after the canaries were last used, ")
    assert done.stdout.splitlines()[-1] == f"report: {folder / 'report.html'}"
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


def test_a_finished_run_again_prints_the_same(finished):
    folder, done = finished
    again = remnant("run", folder.parents[1] / "tiny.toml", "--out", folder)
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_show_runs_and_report_read_the_record(finished, tmp_path):
    folder, done = finished
    shown = remnant("show", folder)
    assert shown.stdout.startswith(done.stdout.splitlines()[0])
    summary = json.loads(remnant("show", folder, "--json").stdout)
    assert summary["status"] == "complete"
    listed = remnant("runs", folder.parent)
    assert listed.stdout.split()[:4] == ["tiny", "complete", "forgetting", "INCONCLUSIVE"]
    assert (
        json.loads(remnant("runs", folder.parent, "--json").stdout)[0]["verdict"] == "INCONCLUSIVE"
    )
    assert remnant("runs", tmp_path).stdout == f"No runs in {tmp_path}.\n"
    page = tmp_path / "page.html"
    assert remnant("report", folder, "--out", page).stdout == f"{page}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert remnant("report", folder, "--out", page).returncode == 0
    listed = remnant("runs", folder)
    assert listed.stdout.split()[:4] == ["tiny", "complete", "forgetting", "INCONCLUSIVE"]


def test_a_report_takes_the_place_of_no_other_file(finished, tmp_path):
    folder, _ = finished
    notes = tmp_path / "notes.txt"
    notes.write_text("do not touch")
    done = remnant("report", folder, "--out", notes)
    assert done.returncode == 2
    assert f"--out {notes} exists already and is not a report." in done.stderr
    assert notes.read_text() == "do not touch"
    assert remnant("report", folder, "--out", notes, "--force").returncode == 0
    assert notes.read_text().startswith("<!doctype html>")
    done = remnant("report", folder, "--out", "/dev/full", "--force")
    assert done.returncode == 2
    assert "is a device, not a regular file" in done.stderr


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


def test_a_dry_run_writes_nothing(recipe, tmp_path):
    done = remnant("run", recipe, "--dry-run", cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["members", "steps", "memory", "minutes"]
    assert [line[1] for line in lines[:2]] == ["6", "21"]
    assert {p.name for p in tmp_path.iterdir()} == {"tiny.toml"}
    assert json.loads(remnant("run", recipe, "--dry-run", "--json").stdout)["members"] == 6


def test_another_plan_in_the_folder_is_refused(finished, tmp_path):
    folder, _ = finished
    other = tmp_path / "other.toml"
    other.write_text(RECIPE.replace("step = 8", "step = 9"))
    before = (folder / "record.sqlite").read_bytes()
    done = remnant("run", other, "--out", folder)
    assert done.returncode == 2
    assert "another plan" in done.stderr
    assert len(done.stderr.splitlines()) == 1
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
def test_a_bad_recipe_is_one_sentence_and_exit_code_2(change, words, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(RECIPE.replace(*change))
    done = remnant("run", path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("remnant: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_faults_of_files_and_folders(recipe, finished, tmp_path):
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
        done = remnant(*arguments, cwd=tmp_path)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)
        assert words in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
    assert (tmp_path / "full" / "thesis.tex").read_text() == "do not touch"


def test_a_curve_from_arrays_of_any_framework(tmp_path):
    rng = np.random.default_rng(0)
    lags = np.array([0, 10, 100])
    seen = rng.normal(size=(3, 4, 50)) + np.array([3.0, 1.0, 0.0])[:, None, None]
    for name, array in (("seen", seen), ("unseen", rng.normal(size=(3, 4, 50))), ("lags", lags)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [f"--{name}={tmp_path / name}.npy" for name in ("seen", "unseen", "lags")]
    drawn = remnant("curve", *files, "--out", tmp_path / "curve.html")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.startswith("Precision at FPR 10 % at every lag, 95 % interval\n")
    assert "<svg" in (tmp_path / "curve.html").read_text()
    found = json.loads(remnant("curve", *files, "--success", "auc", "--json").stdout)
    assert found["value"][0] > 0.95 > found["value"][-1]
    before = (tmp_path / "seen.npy").read_bytes()
    assert remnant("curve", *files, "--out", tmp_path / "seen.npy").returncode == 2
    assert (tmp_path / "seen.npy").read_bytes() == before
    assert remnant("curve", *files, "--out", tmp_path).returncode == 2
    (tmp_path / "notes.txt").write_text("do not touch")
    assert "is a file" in remnant("curve", *files, "--out", tmp_path / "notes.txt").stderr
    (tmp_path / "notes.html").write_text("do not touch")
    assert "is not a report" in remnant("curve", *files, "--out", tmp_path / "notes.html").stderr
    assert remnant("curve", *files, "--out", tmp_path / "curve.html").returncode == 0
    np.save(tmp_path / "lags.npy", lags[::-1])
    wrong = remnant("curve", *files)
    assert wrong.returncode == 2
    assert "lags" in wrong.stderr
    np.save(tmp_path / "lags.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert remnant("curve", *files).returncode == 2
    (tmp_path / "lags.npy").unlink()
    assert "is not there" in remnant("curve", *files).stderr


def test_curve_says_what_an_option_takes(command, tmp_path):
    for name in ("seen", "unseen"):
        np.save(tmp_path / f"{name}.npy", np.zeros((3, 2, 20)))
    files = ("--seen", tmp_path / "seen.npy", "--unseen", tmp_path / "unseen.npy")
    done = command("curve", *files, "--lags", "0,100,1000")
    assert done.code == 2
    assert "--lags 0,100,1000 is not there" in done.err
    assert "--lags takes an npy file with the steps since last use, one number per lag" in done.err


KILLED = RECIPE.replace("watch_steps = 12", "watch_steps = 600").replace(
    'name = "logistic"', 'name = "mlp1"\noptions = { dropout = 0.2, batch_norm = true }'
)


def test_a_run_killed_with_9_goes_on_to_the_same_bits(tmp_path):
    recipe = tmp_path / "killed.toml"
    recipe.write_text(KILLED + '\n[[compare]]\nlabel = "3 repeats"\nplan.repeats = 3\n')
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert remnant("run", recipe, "--out", whole).returncode == 0
    arguments = ["run", recipe, "--out", cut, "--checkpoint-seconds", "0.05"]
    command = [sys.executable, "-c", "from remnant.cli.main import main; main()"]
    kills = 0
    for _ in range(3):
        process = subprocess.Popen([*command, *map(str, arguments)], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 3600
        before = _saved(cut)
        while time.monotonic() < deadline and process.poll() is None and _saved(cut) <= before + 2:
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.wait()
        if _complete(cut):
            break
    assert kills > 0, "the run ended before it could be killed"
    done = remnant(*arguments)
    assert done.returncode == 0, done.stderr
    for path in sorted((whole / "arrays").iterdir()):
        assert path.read_bytes() == (cut / "arrays" / path.name).read_bytes(), path.name
    first, second = (json.loads(remnant("show", f, "--json").stdout) for f in (whole, cut))
    assert first["results"] == second["results"]


_saves: dict[Path, tuple[float, int]] = {}


def _saved(folder: Path) -> int:
    """Count how often a checkpoint was seen to change."""
    stamps = [p.stat().st_mtime for p in folder.glob("checkpoint-*.safetensors") if p.exists()]
    last, count = _saves.get(folder, (0.0, 0))
    if stamps and max(stamps) != last:
        _saves[folder] = max(stamps), count + 1
    return _saves.get(folder, (0.0, 0))[1]


def _complete(folder: Path) -> bool:
    if not (folder / "record.sqlite").exists():
        return False
    shown = remnant("show", folder, "--json")
    return shown.returncode == 0 and json.loads(shown.stdout)["status"] == "complete"


def test_the_demo_writes_what_it_promises(tmp_path):
    done = remnant("demo", "--out", tmp_path / "demo", timeout=3600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PASS: 600 steps after the canaries were last used, ")
    assert "'sanitising by scan' is the cheapest remedy that holds the limit" in done.stdout
    assert (tmp_path / "demo" / "report.html").stat().st_size > 20_000
    assert (tmp_path / "demo" / "record.sqlite").exists()
