"""``--out FOLDER`` of every command that measures: a record and a report, read like a study's."""

from __future__ import annotations

import json
import stat

import numpy as np
import pytest

from remnant.records import Record
from remnant.studies.registry import QUESTIONS
from remnant.studies.reporting import read_page


@pytest.fixture
def arrays(tmp_path):
    """Hidden states of two classes and scores of two groups, as npy files."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    saved = {
        "labels": labels,
        "hidden": rng.normal(size=(60, 4)) + 2 * labels[:, None],
        "seen": rng.normal(size=(3, 4, 50)) + np.array([3.0, 1.0, 0.0])[:, None, None],
        "unseen": rng.normal(size=(3, 4, 50)),
        "lags": np.array([0, 10, 100]),
    }
    for name, array in saved.items():
        np.save(tmp_path / f"{name}.npy", array)
    return lambda *names: [part for n in names for part in (f"--{n}", tmp_path / f"{n}.npy")]


@pytest.fixture
def letter(tmp_path):
    path = tmp_path / "letters" / "letter.txt"
    path.parent.mkdir()
    path.write_text("write to ann@example.org, my pin is 271828 or call 202-555-0143\n" * 3)
    return path


@pytest.fixture
def asked(planted, arrays, letter):
    """The arguments of each command, and the question of its record."""
    model = ("--model", planted.model)
    few = ("--max-nodes", 3000, "--references", 200)
    return {
        "exposure-audit": ("exposure", *model, "--canaries", planted.canaries, *few),
        "extraction": (
            *("extract", *model, "--template", "my pin is {digits:6}", "--top", 2),
            *("--canaries", planted.canaries),
        ),
        "found-secrets": ("scan", letter, *model, "--references", 50, "--max-nodes", 500),
        "early-prediction": ("predict", *arrays("hidden", "labels"), "--directions", 50),
        "attack-curve": ("curve", *arrays("seen", "unseen", "lags")),
    }


@pytest.mark.parametrize(
    "question",
    ["exposure-audit", "extraction", "found-secrets", "early-prediction", "attack-curve"],
)
def test_a_command_leaves_a_record_and_a_report(command, asked, tmp_path, question):
    out = tmp_path / "runs" / "measured"
    done = command(*asked[question], "--out", out, "--json")
    assert done.code == 0, done.err
    private = question in ("found-secrets", "early-prediction")
    assert done.err.splitlines()[-1] == (
        f"report: {out / 'report.html'}{' (only its owner can read it)' * private}"
    )
    shown = command("show", out, "--json")
    assert shown.code == 0, shown.err
    printed, record = json.loads(done.out), json.loads(shown.out)
    assert record["results"]["measured"] == printed
    assert (record["question"], record["status"]) == (question, "complete")
    assert record["results"]["verdict"]["headline"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!doctype html>")
    assert record["results"]["verdict"]["headline"] in page
    again = command("report", out, "--out", tmp_path / "copy.html")
    assert again.code == 0, again.err
    assert (tmp_path / "copy.html").read_text(encoding="utf-8") == page
    listed = command("runs", tmp_path / "runs").out.split()
    assert listed[:4] == ["measured", "complete", question, "FINDING:"]
    gated = command("show", out, "--gate")
    assert (gated.code, "findings only" in gated.err) == (2, True)
    for path in (out / "report.html", out / "record.sqlite", tmp_path / "copy.html"):
        assert bool(stat.S_IMODE(path.stat().st_mode) & 0o077) != private, path


@pytest.mark.parametrize("question", ["exposure-audit", "early-prediction", "attack-curve"])
def test_what_a_terminal_shows_is_on_the_page_too(command, asked, tmp_path, question):
    """The page of a record has the tables of the command's own output."""
    out = tmp_path / "measured"
    done = command(*asked[question], "--out", out)
    assert done.code == 0, done.err
    shown = command("show", out, "-v").out
    tables = [line for line in done.out.splitlines()[:-1] if "  " in line.strip()]
    assert tables
    own = f"  {out}"  # the only line that names the folder
    for line in tables:
        if own not in line:
            assert line in shown


def test_the_same_command_with_and_without_out_prints_the_same(command, asked, tmp_path):
    for question in ("exposure-audit", "attack-curve"):
        bare = command(*asked[question])
        kept = command(*asked[question], "--out", tmp_path / question)
        report = f"report: {tmp_path / question / 'report.html'}\n"
        assert kept.out == bare.out + report


def test_a_folder_that_cannot_be_used_is_refused_before_anything_is_read(
    command, asked, tmp_path, monkeypatch
):
    """No model and no array is read: the paths of both are wrong, and --out is what is named."""
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.tex").write_text("mine")
    for arguments in asked.values():
        missing = ["/nowhere" if "/" in str(part) else part for part in arguments]
        for out, said in (
            (taken, "is not empty: it holds thesis.tex but no record"),
            (taken / "thesis.tex", "is a file, not a folder"),
            (taken / "thesis.tex" / "inner", "cannot be"),
        ):
            done = command(*missing, "--out", out)
            assert (done.code, done.out) == (2, ""), done.err
            assert f"--out {out} {said}" in done.err
            assert done.err.count("\n") == 1
    assert [path.name for path in taken.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ("exposure-audit", (".html", ".csv", ".json")),
        ("extraction", (".html", ".csv", ".json")),
        ("found-secrets", (".html", ".csv")),
        ("early-prediction", (".html",)),
        ("attack-curve", (".csv", ".json")),
    ],
)
def test_files_of_other_kinds_are_refused(command, asked, tmp_path, question, refused):
    for ending in refused:
        done = command(*asked[question], "--out", tmp_path / f"x{ending}")
        assert (done.code, done.out) == (2, ""), done.err
        assert f"ends in {ending}, and this command writes no such file" in done.err
        assert "Name a folder for a record and a report" in done.err
        assert not (tmp_path / f"x{ending}").exists()


def test_a_record_is_never_replaced(command, asked, tmp_path):
    out = tmp_path / "curve"
    assert command(*asked["attack-curve"], "--out", out).code == 0
    before = (out / "record.sqlite").read_bytes()
    for more in ((), ("--force",)):
        again = command(*asked["attack-curve"], "--out", out, *more)
        assert again.code == 2
        assert "already holds a record. Name a new folder, or remove that one." in again.err
    assert (out / "record.sqlite").read_bytes() == before


def test_a_limit_makes_the_record_a_gate(command, asked, tmp_path):
    out = tmp_path / "judged"
    done = command(*asked["exposure-audit"], "--limit", 1, "--out", out)
    assert done.code == 1, done.err
    shown = command("show", out)
    assert shown.out.splitlines()[0] == done.out.splitlines()[0]
    assert shown.out.startswith("FAIL: ")
    assert command("show", out, "--gate").code == 1
    assert command("runs", tmp_path).out.split()[3] == "FAIL"


def test_secrets_are_stored_only_with_reveal(command, planted, asked, tmp_path):
    secrets = planted.secrets
    for question in ("exposure-audit", "extraction"):
        hidden, shown = tmp_path / f"{question}-hidden", tmp_path / f"{question}-shown"
        assert command(*asked[question], "--out", hidden).code == 0
        done = command(*asked[question], "--out", shown, "--reveal")
        assert done.code == 0, done.err
        assert done.out.splitlines()[-1].endswith("report.html (only its owner can read it)")
        for folder, revealed in ((hidden, False), (shown, True)):
            content = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
            assert any(secret.encode() in content for secret in secrets) == revealed
            assert (b"This report shows secrets" in content) == revealed
        assert stat.S_IMODE(shown.stat().st_mode) == 0o700
        copy = tmp_path / f"{question}.html"
        assert command("report", shown, "--out", copy).code == 0
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert "This report shows secrets" in command("show", shown).out


def test_a_scan_stores_no_secret_of_the_text(command, asked, tmp_path):
    out = tmp_path / "scan"
    assert command(*asked["found-secrets"], "--out", out).code == 0
    content = b"".join(p.read_bytes() for p in out.rglob("*") if p.is_file())
    for secret in (b"ann@example.org", b"555-0143", b"2025550143"):
        assert secret not in content


def test_a_prediction_leaves_all_samples_beside_the_record(command, asked, tmp_path):
    out = tmp_path / "risks"
    assert command(*asked["early-prediction"], "--out", out).code == 0
    table = command(*asked["early-prediction"], "--out", tmp_path / "risks.csv")
    assert table.code == 0, table.err
    assert (out / "samples.csv").read_bytes() == (tmp_path / "risks.csv").read_bytes()
    assert stat.S_IMODE((out / "samples.csv").stat().st_mode) == 0o600


def test_names_that_are_not_unicode_are_stored_as_codes(command, letter, tmp_path):
    odd = letter.with_name("brief-\udce4.txt")
    try:
        odd.write_text("call 202-555-0143\n")
    except (OSError, UnicodeError):  # a file system that takes no such name
        odd = letter
    out = tmp_path / "scan"
    done = command("scan", letter.parent, "--out", out)
    assert done.code == 0, done.err
    paths = [file["path"] for file in Record.open(out).results()["measured"]["files"]]
    assert all(path.isprintable() for path in paths)


def test_every_measured_question_is_one_of_the_registry(asked):
    assert asked.keys() <= QUESTIONS.keys()


def test_a_record_names_its_command_its_inputs_and_when_it_began(
    command, asked, tmp_path, monkeypatch
):
    """It begins with the command, not when it is written."""
    monkeypatch.setattr("remnant.records.store.utc_now", lambda: "2999-01-01T00:00:00Z")
    out = tmp_path / "measured"
    done = command(*asked["exposure-audit"], "--out", out)
    assert done.code == 0, done.err
    record = Record.open(out)
    assert record.started < "2999" < record.finished
    assert record.provenance["command"].startswith("remnant exposure --model ")
    inputs = record.provenance["inputs"]
    assert {name.split()[0] for name in inputs} == {"--model", "--canaries"}
    assert all(len(digest) == 64 for digest in inputs.values())
    assert {"torch", "numpy", "click", "safetensors"} <= record.provenance["versions"].keys()
    assert read_page(record).command == record.provenance["command"]
