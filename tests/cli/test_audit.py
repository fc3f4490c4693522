"""``remnant audit``: from two files to an outcome, an exit code, a record and a report."""

from __future__ import annotations

import csv
import io
import json
import random

import pytest
import torch
from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.models import gpt
from remnant.models.model_folder import save_language_model
from remnant.models.vocabulary import Vocabulary

ALPHABET = "abcdefgh \n"
OPTIONS = {"units": 32, "layers": 1, "heads": 2, "context": 80}
LENGTH = 72


def texts(count, seed):
    rng = random.Random(seed)
    words = ["".join(rng.choices(ALPHABET[:8], k=3)) for _ in range(12)]
    rng = random.Random(seed + 1)
    return [" ".join(rng.choices(words, k=18))[:LENGTH] for _ in range(count)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two models of ours: ``base``, and ``tuned`` on the seen texts; and two files."""
    folder = tmp_path_factory.mktemp("audit")
    every = texts(400, seed=1)
    seen, unseen, other = every[:60], every[60:120], every[120:]
    vocabulary = Vocabulary.of_characters(ALPHABET)
    torch.manual_seed(0)
    network = gpt(vocabulary.size, **OPTIONS)

    def trained(rows, epochs, lr):
        optimizer = torch.optim.Adam(network.parameters(), lr=lr)
        ids = torch.tensor([vocabulary.encode(row) for row in rows])
        for _ in range(epochs):
            for batch in torch.randperm(len(ids)).split(32):
                logits = network(ids[batch])[:, :-1]
                wanted = ids[batch][:, 1:]
                loss = torch.nn.functional.cross_entropy(
                    logits.reshape(-1, vocabulary.size), wanted.reshape(-1)
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    def save(name):
        save_language_model(
            folder / name,
            architecture="gpt",
            options=OPTIONS,
            state=network.state_dict(),
            vocabulary=vocabulary,
        )

    trained(other, 15, 5e-3)
    save("base")
    trained(seen, 60, 5e-3)
    save("tuned")
    for name, rows in (("seen", seen), ("unseen", unseen)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps({"text": row}) + "\n" for row in rows)
        )
    return folder


def run(home, *options, model="tuned", reference="base", seen="seen.jsonl", unseen="unseen.jsonl"):
    given = ["audit", "--model", str(home / model), "--seen", str(home / seen)]
    given += ["--unseen", str(home / unseen)]
    if reference:
        given += ["--reference-model", str(home / reference)]
    return CliRunner().invoke(commands, [*given, *options, "-v"])


def message(result):
    assert result.exception is not None
    return str(result.exception)


def test_a_finding_without_a_limit(home):
    result = run(home)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("FINDING: Training records can be distinguished")
    assert "60 seen and 60 unseen records" in result.output
    assert "Blind baseline: AUC" in result.output
    assert "Records of which a part comes out verbatim" in result.output


def test_a_limit_fails_a_model_that_remembers(home):
    result = run(home, "--limit", "0.6", "--json")
    assert result.exit_code == 1
    verdict = json.loads(result.output)["verdict"]
    assert verdict["outcome"] == "FAIL"
    assert verdict["limit"] == 0.6


def test_an_untouched_model_is_no_pass(home):
    result = run(home, "--limit", "0.7", model="base", reference=None)
    assert result.exit_code == 3
    assert result.output.startswith("INCONCLUSIVE: ")
    allowed = run(home, "--limit", "0.7", "--allow-inconclusive", model="base", reference=None)
    assert allowed.exit_code == 0


def test_no_text_is_printed_or_stored_in_clear(home, tmp_path):
    result = run(home, "--out", str(tmp_path / "audit"))
    assert result.exit_code == 0, result.output
    secret = json.loads((home / "seen.jsonl").read_text().splitlines()[0])["text"]
    stored = b"".join(
        path.read_bytes() for path in (tmp_path / "audit").rglob("*") if path.is_file()
    )
    assert secret not in result.output
    assert secret.encode() not in stored


def test_out_leaves_a_record_a_report_and_the_risks(home, tmp_path):
    folder = tmp_path / "audit"
    printed = run(home, "--limit", "0.6", "--json", "--out", str(folder))
    assert printed.exit_code == 1
    shown = CliRunner().invoke(commands, ["show", str(folder), "--json", "--gate"])
    assert shown.exit_code == 1
    stored = json.loads(shown.output)
    assert stored["results"]["attacks"] == json.loads(printed.stdout)["attacks"]
    assert (folder / "report.html").read_text(encoding="utf-8").count("FAIL") >= 1
    rows = list(csv.DictReader(io.StringIO((folder / "risks.csv").read_text())))
    assert [int(row["row"]) for row in rows] == list(range(1, 61))
    assert {"ratio", "loss", "share_of_unseen_above", "verbatim"} <= set(rows[0])
    again = run(home, "--out", str(folder))
    assert "already holds a record" in message(again)


def test_out_may_be_a_csv_file(home, tmp_path):
    result = run(home, "--out", str(tmp_path / "risks.csv"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "risks.csv").read_text().startswith("row,share_of_unseen_above,ratio,")


def test_a_long_audit_says_first_what_it_costs(home, monkeypatch):
    monkeypatch.setattr("remnant.cli.cost.LEAST_SECONDS", 0.0)
    announced = run(home, "--json")
    monkeypatch.setattr("remnant.cli.cost.LEAST_SECONDS", float("inf"))
    silent = run(home, "--json")
    assert announced.stderr.startswith("Scoring 120 records, 8 600 tokens, with 2 models: about ")
    assert "Scoring" not in silent.stderr
    assert announced.stdout == silent.stdout


def test_csv_and_plain_lines_are_read_too(home, tmp_path):
    for side in ("seen", "unseen"):
        lines = (home / f"{side}.jsonl").read_text().splitlines()
        rows = [json.loads(line)["text"] for line in lines]
        (home / f"{side}.txt").write_text("\n".join(rows) + "\n\n")
        with (home / f"{side}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "body"])
            writer.writerows(enumerate(rows))
    outputs = [
        run(home, "--json").output,
        run(home, "--json", seen="seen.txt", unseen="unseen.txt").output,
        run(home, "--json", "--field", "body", seen="seen.csv", unseen="unseen.csv").output,
    ]
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"body": "x"}\n', "has no field 'text'; its fields are: body"),
        ('{"Alice has a secret": "x"}\n', "has no field 'text'. Pass --field NAME"),
        ('{"text": 3}\n', "'text' is no text but a int"),
        ("[1, 2]\n", "line 1, is no JSON object"),
        ("{\n", "line 1, is no JSON object"),
        ("", "0 seen and 60 unseen records are too few"),
        ('{"text": "a"}\n' * 50, "1 seen and 60 unseen records are too few"),
    ],
)
def test_bad_rows_are_one_sentence(home, tmp_path, content, said):
    (tmp_path / "bad.jsonl").write_text(content)
    result = run(home, seen=tmp_path / "bad.jsonl")
    assert said in message(result)
    assert "\n" not in message(result)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "0.5"], "not above chance"),
        (["--limit", "-1"], "--limit -1 is not above 0"),
        (["--attack", "ratio"], "needs a reference model"),
        (["--fpr", "7"], "--fpr 7 is not between 0 and 1"),
        (["--success", "tpr", "--fpr", "0.001", "--limit", "0.3"], "cannot place a threshold"),
    ],
)
def test_bad_options_are_one_sentence(home, options, said):
    result = run(home, *options, reference=None)
    assert said in message(result)


def test_a_csv_file_without_a_header_shows_no_text(home, tmp_path):
    (tmp_path / "bare.csv").write_text("my number is 4711,1\nanother row,2\n")
    result = run(home, seen=tmp_path / "bare.csv")
    assert "4711" not in message(result)
    assert "The first line of a CSV file names the columns" in message(result)


def test_a_copy_of_the_seen_file_is_no_held_out_file(home, tmp_path):
    (tmp_path / "copy.jsonl").write_bytes((home / "seen.jsonl").read_bytes())
    assert "60 records are in both sets" in message(run(home, unseen=tmp_path / "copy.jsonl"))


def test_a_missing_reference_model_is_named_by_its_option(home):
    assert message(run(home, reference="nothing")).startswith("--reference-model ")


def test_the_same_file_twice_and_the_same_model_twice_are_refused(home):
    assert "the same file" in message(run(home, unseen="seen.jsonl"))
    assert "is the model under audit" in message(run(home, reference="tuned"))


def test_a_file_that_is_no_model_is_named_by_its_option(home):
    said = message(run(home, model="seen.jsonl", reference=None))
    assert said.startswith("--model ")
    assert "seen.jsonl is not a model. Pass a folder that save_pretrained wrote" in said


def test_missing_files_and_folders_are_named(home, tmp_path):
    said = message(run(home, seen="nothing.jsonl"))
    assert said.startswith("--seen ")
    assert "nothing.jsonl is not there. " in said
    assert "is a folder" in message(run(home, seen="tuned"))
    assert "--model" in message(run(home, model="nothing", reference=None))
