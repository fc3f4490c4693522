"""``remnant audit --checkpoints``: a small LSTM, its checkpoints, and the rows of each batch."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from remnant import Audit
from remnant.models import Vocabulary, load_language_model, lstm, save_language_model
from remnant.records.typed import plain

ROWS, STEPS, EVERY = 40, 120, 20
OPTIONS = {"units": 64, "layers": 1}


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@dataclass(frozen=True)
class Run:
    """A training whose first rows were used first, and never again."""

    home: Path
    seen: list[str]
    unseen: list[str]
    uses: list[tuple[int, int]]

    def options(self, **changed: object) -> list[object]:
        given: dict[str, object] = {
            "checkpoints": str(self.home / "checkpoint-*"),
            "ledger": self.home / "ledger.csv",
            "seen": self.home / "seen.jsonl",
            "unseen": self.home / "unseen.jsonl",
        }
        given |= changed
        return [part for name, value in given.items() for part in (f"--{name}", value)]


def text_of(rng: np.random.Generator) -> str:
    return f"code {rng.integers(10**9, 10**10)} of {rng.integers(10**9, 10**10)}"


def write_texts(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def write_ledger(path: Path, uses: list[tuple[int, int]]) -> Path:
    path.write_text("step,row\n" + "".join(f"{step},{row}\n" for step, row in uses))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    seen, unseen = ([text_of(rng) for _ in range(count)] for count in (2 * ROWS, 80))
    vocabulary = Vocabulary.of_characters("code of 0123456789")
    torch.manual_seed(0)
    net = lstm(vocabulary.size, **OPTIONS)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    uses = []

    def save(step: int) -> None:
        save_language_model(
            home / f"checkpoint-{step}",
            architecture="lstm",
            options=OPTIONS,
            state=net.state_dict(),
            vocabulary=vocabulary,
        )

    save(0)
    for step in range(STEPS):
        window = step // EVERY  # rows of the first window, of the second, then other texts
        if window < 2:
            rows = list(range(window * ROWS, (window + 1) * ROWS))
            uses += [(step, row + 1) for row in rows]
            batch = [seen[row] for row in rows]
        else:
            batch = [text_of(rng) for _ in range(ROWS)]
        ids = torch.tensor([vocabulary.encode(text) for text in batch])
        optimizer.zero_grad()
        logits = net(ids[:, :-1]).flatten(0, 1)
        torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten()).backward()
        optimizer.step()
        if (step + 1) % EVERY == 0:
            save(step + 1)
    write_texts(home / "seen.jsonl", seen)
    write_texts(home / "unseen.jsonl", unseen)
    write_ledger(home / "ledger.csv", uses)
    return Run(home, seen, unseen, uses)


def numbers_in(part: object) -> list[float]:
    """All numbers of a part of a result, in their order."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list | tuple):
        return [number for inner in part for number in numbers_in(inner)]
    return [float(part)] if isinstance(part, int | float) else []


def test_the_curve_is_that_of_scores_by_hand(command, run, tmp_path):
    done = command("audit", *run.options(), "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    scores = {}
    for step in range(0, STEPS + 1, EVERY):
        model = load_language_model(run.home / f"checkpoint-{step}")
        means = []
        for text in [*run.seen, *run.unseen]:
            ids = torch.tensor([model.encode(text)])
            with torch.no_grad():
                costs = torch.nn.functional.cross_entropy(model.module(ids[:, :-1])[0], ids[0, 1:])
            means.append(-float(costs))
        scores[step] = np.array(means)
    by_hand = Audit.from_ledger(
        scores, [(step, row - 1) for step, row in run.uses], out=tmp_path / "by-hand"
    )
    assert by_hand.result.sightings.uses == result["sightings"]["uses"] == len(run.uses)
    assert by_hand.sentence == result["verdict"]["sentence"]
    expected = numbers_in(plain(by_hand.result.forgetting))
    assert len(expected) > 20
    np.testing.assert_allclose(numbers_in(result["forgetting"]), expected, atol=2e-3)


def test_a_limit_judges_and_out_leaves_a_record(command, run, tmp_path):
    out = tmp_path / "audit"
    done = command("audit", *run.options(), "--limit", 0.95, "--out", out)
    assert done.code == 0, done.out
    assert done.out.startswith("PASS: 100 steps after their last use")
    near = ("audit", *run.options(), "--limit", 0.57)
    assert command(*near).code == 3
    assert command(*near, "--allow-inconclusive").code == 0
    assert "report.html" in done.out
    assert "Attack: loss, at 7 checkpoints." in done.out
    shown = command("show", out, "--gate")
    assert shown.code == done.code
    assert run.seen[0] not in (out / "report.html").read_text() + done.out
    again = command("audit", *run.options(), "--out", out)
    assert again.code == 2
    assert "already holds a record" in again.err


def test_with_a_reference_the_attack_is_the_ratio(command, run, tmp_path):
    shutil.copytree(run.home / "checkpoint-0", tmp_path / "start")
    done = command("audit", *run.options(), "--reference-model", tmp_path / "start")
    assert done.code == 0, done.err
    assert "Attack: ratio" in done.out
    named = command("audit", *run.options(), "--reference-model", tmp_path / "start", "--json")
    curves = json.loads(named.out)["forgetting"]["curves"]
    who = "an attacker with 1 reference model trained without these examples"
    assert curves["attacker"] == who
    assert [other["name"] for other in curves["others"]] == [
        "an attacker with the model alone",
        "an attacker with two checkpoints of this run",
    ]


def test_a_training_that_was_not_on_the_rows_is_no_pass(command, run):
    # Rows of the unseen file as if they had been used: the attack finds none of them.
    done = command(
        "audit",
        *run.options(seen=run.home / "unseen.jsonl", unseen=run.home / "seen.jsonl"),
        "--limit",
        0.7,
    )
    assert done.code != 0, done.out
    assert not done.out.startswith("PASS")


def test_copies_of_a_row_are_one_record_and_shared_rows_are_left_out(command, run, tmp_path):
    seen = [*run.seen, run.seen[0], run.unseen[0]]
    write_texts(tmp_path / "seen.jsonl", seen)
    uses = [(step, 81 if row == 1 else row) for step, row in run.uses] + [(1, 82)]
    write_ledger(tmp_path / "ledger.csv", uses)
    changed = {"seen": tmp_path / "seen.jsonl", "ledger": tmp_path / "ledger.csv"}
    done = command("audit", *run.options(**changed), "--json")
    whole = command("audit", *run.options(), "--json")
    assert done.code == 0, done.err
    results = [json.loads(each.out) for each in (done, whole)]
    assert results[0]["sightings"] == results[1]["sightings"]
    assert results[0]["left_out"] == {
        "not_in_ledger": 0,
        "in_both_files": 1,
        "without_token_to_predict": 0,
    }
    assert results[1]["left_out"]["in_both_files"] == 0
    assert (results[1]["attack"], results[1]["checkpoints"]) == ("loss", 7)
    said = command("audit", *run.options(**changed)).out
    assert said.endswith("Left out: 1 texts that are in both files.\n")


def test_a_copy_in_another_case_is_a_use_of_the_same_record(command, run, tmp_path):
    shouted = [text.upper() for text in run.seen[:2]]  # the vocabulary has no upper case
    write_texts(tmp_path / "seen.jsonl", [*run.seen, *shouted])
    uses = [(step, 81 if row == 1 else row) for step, row in run.uses] + [(90, 82)]
    write_ledger(tmp_path / "ledger.csv", uses)
    changed = {"seen": tmp_path / "seen.jsonl", "ledger": tmp_path / "ledger.csv"}
    done = command("audit", *run.options(**changed), "--json")
    assert done.code == 0, done.err
    sightings = json.loads(done.out)["sightings"]
    assert sightings["uses"] == len(run.uses) + 1
    assert sightings["last_step"] == 90


@pytest.mark.parametrize("limit", [None, 0.95])
def test_files_that_differ_in_themselves_make_the_audit_void(command, run, tmp_path, limit):
    other = [text.replace("code ", "of ") for text in run.unseen]
    unseen = write_texts(tmp_path / "unseen.jsonl", other)
    given = [] if limit is None else ["--limit", limit]
    done = command("audit", *run.options(unseen=unseen), *given, "--json")
    assert done.code == 3, done.out
    verdict = json.loads(done.out)["verdict"]
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert verdict["sentence"].startswith("The audit is void: a classifier that sees only")


def test_json_lines_with_counts_are_a_ledger_too(command, run, tmp_path):
    lines = [json.dumps({"step": step, "row": row, "count": 2}) for step, row in run.uses]
    (tmp_path / "ledger.jsonl").write_text("\n".join(lines))
    done = command("audit", *run.options(ledger=tmp_path / "ledger.jsonl"), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["sightings"]["uses"] == 2 * len(run.uses)


def _ledger(tmp_path: Path, text: str) -> Path:
    (tmp_path / "ledger.csv").write_text(text)
    return tmp_path / "ledger.csv"


def test_faults_are_one_sentence(command, run, tmp_path):
    (tmp_path / "checkpoint-last").mkdir()
    lone = tmp_path / "lone" / "checkpoint-5"
    lone.mkdir(parents=True)
    for name in ("checkpoint-7", "step-7"):
        (tmp_path / "twice" / name).mkdir(parents=True)
    same = write_ledger(tmp_path / "same.csv", [(STEPS - 1, row) for row in range(1, 41)])
    cases = [
        ({"checkpoints": str(tmp_path / "nothing-*")}, "matches no folder"),
        ({"checkpoints": str(tmp_path / "checkpoint-*")}, "has no number in its name"),
        ({"checkpoints": str(tmp_path / "lone" / "*")}, "matches one folder only"),
        ({"checkpoints": str(tmp_path / "twice" / "*")}, "have the same number"),
        ({"ledger": same}, "all rows were last used between the same two checkpoints"),
        ({"ledger": tmp_path / "none.csv"}, "cannot be read"),
        ({"unseen": write_texts(tmp_path / "shared.jsonl", run.seen)}, "--seen only"),
        ({"unseen": write_texts(tmp_path / "no.jsonl", run.seen[70:])}, "There are no controls"),
    ]
    for text, words in (
        ("step,row\n3,81\n", "--ledger names row 81, and --seen"),
        (f"step,row\n{STEPS},1\n", f"--ledger has step {STEPS}, and the last checkpoint is that"),
        ("step,line\n3,1\n", "row 1, has no row"),
        ("step,row\n3,x\n", "row 1, does not hold whole numbers"),
        ("step,row\n3,0\n", "row 1, does not hold whole numbers"),
        ("step,row\n-1,1\n", "row 1, does not hold whole numbers"),
        ("step,row\n", "has no row"),
    ):
        path = tmp_path / f"ledger-{len(cases)}.csv"
        path.write_text(text)
        cases.append(({"ledger": path}, words))
    for changed, words in cases:
        done = command("audit", *run.options(**changed))
        assert (done.code, done.out) == (2, ""), (changed, done.out)
        assert words in done.err, (words, done.err)
        assert len(done.err.splitlines()) == 1


def test_options_belong_together(command, run, tmp_path):
    files = ("--seen", run.home / "seen.jsonl", "--unseen", run.home / "unseen.jsonl")
    model = ("--model", run.home / "checkpoint-120")
    ledger = ("--ledger", run.home / "ledger.csv")
    pattern = ("--checkpoints", str(run.home / "checkpoint-*"))
    for given, words in (
        (files, "--model is missing"),
        ((*files, *model, *pattern), "--model is given with --checkpoints"),
        ((*files, *pattern), "--ledger is missing"),
        ((*files, *ledger), "--checkpoints is missing"),
        ((*files, *pattern, *ledger, "--attack", "zlib"), "--attack zlib is not for"),
        ((*files, *pattern, *ledger, "--attack", "ratio"), "belong together"),
        ((*files, *pattern, *ledger, "--control", files[1]), "--control is not for --checkpoints"),
    ):
        done = command("audit", *given)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
