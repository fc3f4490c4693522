"""``remnant canaries`` as its user meets it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest

from remnant.canaries import Template, make_canary_set, read_canary_sets
from remnant.cli.options.planting import PlantedCopy
from remnant.models import Vocabulary, lstm, save_language_model

PIN = "my pin is {digits:6}"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"line {n}\n" for n in range(30)))
    return path


def secrets_of(path):
    return [
        one.secret for each in read_canary_sets(path) for one in (*each.canaries, *each.controls)
    ]


def test_the_whole_output(command, corpus, tmp_path):
    out, into = tmp_path / "canaries.jsonl", tmp_path / "planted.txt"
    done = command(
        *("canaries", PIN, "code {choice:a|b|c}", "--out", out, "--repeats", "2,1"),
        *("--controls", 1, "--insert", corpus, "--into", into),
    )
    where = {
        text: [n for n, line in enumerate(into.read_text().splitlines(), start=1) if line == text]
        for each in read_canary_sets(out)
        for text in (one.text for one in each.canaries)
    }
    pins, codes = read_canary_sets(out)

    def lines(canary):
        found = where[canary.text]
        return f"line{'s' * (len(found) > 1)} {', '.join(map(str, found))}"

    assert done.out == (
        f"set 1: {PIN}\n"
        "  space        1 000 000 secrets (19.9 bits)\n"
        "  canaries     1 planted 2 times, 1 planted once\n"
        "  controls     1\n"
        f"  fingerprint  {pins.fingerprint[:16]}\n"
        f"  canary 1     {lines(pins.canaries[0])}\n"
        f"  canary 2     {lines(pins.canaries[1])}\n"
        "set 2: code {choice:a|b|c}\n"
        "  space        3 secrets (1.6 bits)\n"
        "  canaries     1 planted 2 times, 1 planted once\n"
        "  controls     1\n"
        f"  fingerprint  {codes.fingerprint[:16]}\n"
        f"  canary 1     {lines(codes.canaries[0])}\n"
        f"  canary 2     {lines(codes.canaries[1])}\n"
        f"written: {out} (it holds the secrets; only its owner can read it)\n"
        f"planted: {into} ({corpus} with 6 lines more; it holds the secrets; only its owner can "
        "read it)\n"
    )
    assert (done.code, done.err) == (0, "")
    assert [len(where[one.text]) for one in (*pins.canaries, *codes.canaries)] == [2, 1, 2, 1]
    assert out.stat().st_mode & 0o777 == 0o600
    assert into.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {
        "corpus.txt",
        "canaries.jsonl",
        "planted.txt",
    }


def test_the_file_holds_the_sets_that_the_library_makes(command, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("fig\n\nkiwi \nplum\napple\n")
    out = tmp_path / "canaries.jsonl"
    pattern = "say {words:2}"
    done = command(
        *("canaries", PIN, pattern, "--out", out, "--words", words, "--seed", 3),
        *("--repeats", "1,1,8", "--per-repeat", 2, "--controls", 5),
    )
    assert done.code == 0, done.err
    made = [
        make_canary_set(template, repeats=[1, 1, 8], per_repeat=2, controls=5, seed=3)
        for template in (Template(PIN), Template(pattern, words=["fig", "kiwi", "plum", "apple"]))
    ]
    assert read_canary_sets(out) == made
    assert "4 planted once, 2 planted 8 times" in done.out


def test_a_models_own_tokens_fill_a_hole(command, planted, tmp_path):
    out = tmp_path / "canaries.jsonl"
    done = command("canaries", "x {tokens:3}", "--out", out, "--model", planted.model)
    assert done.code == 0, done.err
    tokens = set(read_canary_sets(out)[0].template.tokens)
    assert tokens == set(planted.text.read_text()) - {"\n"}


def test_secrets_are_shown_when_asked_for_and_only_then(command, corpus, tmp_path):
    out, into = tmp_path / "canaries.jsonl", tmp_path / "planted.txt"
    arguments = ["canaries", PIN, "--out", out, "--insert", corpus, "--into", into]
    for flags in ([], ["--json"]):
        quiet = command(*arguments, *flags)
        assert quiet.code == 0, quiet.err
        secrets = secrets_of(out)
        assert len(secrets) == 13
        assert not any(secret in quiet.out + quiet.err for secret in secrets)
        told = command(*arguments, *flags, "--reveal")
        assert all(secret in told.out for secret in secrets)


@pytest.mark.parametrize("seed", range(4))
def test_json_says_where_each_canary_of_each_set_stands(command, corpus, tmp_path, seed):
    out, into = tmp_path / "canaries.jsonl", tmp_path / "planted.txt"
    patterns = [PIN, "my code is {letters:4}", "my key is {hex:8}"]
    done = command(
        *("canaries", *patterns, "--out", out, "--insert", corpus, "--into", into),
        *("--place-seed", seed, "--json", "--reveal"),
    )
    found = json.loads(done.out)
    text = into.read_text().splitlines()
    standing = set()
    for pattern, one_set in zip(patterns, found["sets"], strict=True):
        for one in one_set["canaries"]:
            whole = Template(pattern).text(one["secret"])
            assert [text[n - 1] for n in one["lines"]] == [whole] * one["repeats"]
            standing |= set(one["lines"])
    rest = [line for n, line in enumerate(text, start=1) if n not in standing]
    assert rest == corpus.read_text().splitlines()
    assert found["sets"][0]["space"] == 10**6
    assert (found["file"], found["planted"]) == (str(out), str(into))


def test_a_vast_space_is_told_as_far_as_it_can_be_written(command, tmp_path):
    many = 20_000
    vocabulary = Vocabulary.of_characters("".join(map(chr, range(0x4E00, 0x4E00 + many))))
    options = {"units": 1, "layers": 1}
    save_language_model(
        tmp_path / "model",
        architecture="lstm",
        options=options,
        state=lstm(many, **options).state_dict(),
        vocabulary=vocabulary,
    )
    out = tmp_path / "c.jsonl"
    vast = ["canaries", "x {tokens:1000}", "--model", tmp_path / "model", "--out", out]
    assert "space        about 2^14287 secrets (14287.7 bits)" in command(*vast).out
    found = json.loads(command(*vast, "--json").out)["sets"][0]
    assert found["space"] is None
    assert found["space_reason"] == "it has more than 4000 digits"
    assert found["space_bits"] == pytest.approx(1000 * math.log2(many))
    large = ["canaries", "x {hex:500}", "--out", tmp_path / "d.jsonl", "--json"]
    assert json.loads(command(*large).out)["sets"][0]["space"] == 16**500


def test_the_same_command_again_is_welcome_and_another_is_not(command, corpus, tmp_path):
    out, into = tmp_path / "canaries.jsonl", tmp_path / "planted.txt"
    arguments = ["canaries", PIN, "--out", out, "--insert", corpus, "--into", into]
    first = command(*arguments)
    kept = out.read_bytes(), into.read_bytes()
    assert command(*arguments) == first
    for others in (["--seed", 1], ["--controls", 3], ["--place-seed", 1]):
        done = command(*arguments, *others)
        assert done.code == 2
        assert "exists already, with other content" in done.err
        assert (out.read_bytes(), into.read_bytes()) == kept
    assert command(*arguments, "--seed", 1, "--force").code == 0
    assert out.read_bytes() != kept[0]
    assert into.read_bytes() != kept[1]


def test_a_seed_is_random_unless_given_and_nothing_prints_it(command, tmp_path):
    files = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    printed = [command("canaries", PIN, "--out", file, "--json").out for file in files]
    (first,), (second,) = map(read_canary_sets, files)
    assert first.seed != second.seed
    assert min(first.seed, second.seed) > 2**32
    assert not any(
        str(made.seed) in text for made, text in zip((first, second), printed, strict=True)
    )
    assert first == make_canary_set(
        Template(PIN), repeats=[1, 4, 16], controls=10, seed=first.seed
    ), "what is kept repeats the draw"
    shown = command("canaries", PIN, "--out", files[0], "--json", "--reveal")
    assert json.loads(shown.out)["sets"][0]["seed"] == first.seed
    forced = command("canaries", PIN, "--out", files[0], "--force")
    assert forced.code == 0
    assert read_canary_sets(files[0])[0].seed != first.seed


def test_faults_are_one_sentence_and_nothing_is_written(command, corpus, planted, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "thesis.tex").write_text("do not touch")
    (tmp_path / "twice.txt").write_text("fig\nkiwi\nfig\n")
    (tmp_path / "folder").mkdir()
    out = tmp_path / "canaries.jsonl"
    insert = ["--insert", corpus, "--into"]
    for arguments, words in (
        (["no hole"], "TEMPLATE has no hole"),
        (["{digits:}"], "not a whole number"),
        (["{digits:6"], "unbalanced"),
        (["{colour:6}"], "unknown kind"),
        ([PIN, PIN], "given twice"),
        (["{digits:1}", "--controls", "9"], "more than the 10 secrets"),
        ([PIN, "--repeats", "1,many"], "--repeats '1,many'"),
        ([PIN, "--repeats", "0"], "--repeats 0 is not"),
        ([PIN, "--repeats", ""], "--repeats ''"),
        ([PIN, "--per-repeat", "0"], "--per-repeat 0 is not"),
        ([PIN, "--controls", "-1"], "--controls -1 is not"),
        ([PIN, "--seed", "-1"], "remnant: --seed -1 is not"),
        ([PIN, "--place-seed", "-1"], "--place-seed -1"),
        (["{words:2}"], "--words FILE"),
        (["{tokens:2}"], "--model DIR"),
        (["{tokens:2}", "--model", tmp_path / "nowhere"], "nowhere is not a folder"),
        (
            ["{words:2}", "--words", tmp_path / "twice.txt"],
            "1 repeated word. W",
        ),
        ([PIN, "--field", "text"], "--field needs --insert"),
        ([PIN, *insert, tmp_path / "p.txt", "--field", "text"], "and --field text was given"),
        ([PIN, *insert, "/dev/full", "--force"], "is a device, not a regular file"),
        (["{tokens:2}", "--model", tmp_path / "folder"], "neither"),
        ([PIN, "--words", corpus], "no template has a {words:n} hole"),
        (["{words:2}", "--words", tmp_path / "empty.txt"], "holds no word"),
        (["{words:2}", "--words", tmp_path / "binary.txt"], "UTF-8"),
        (["{words:2}", "--words", tmp_path / "nowhere.txt"], "No such file"),
        ([PIN, "--insert", corpus], "belong together"),
        ([PIN, "--into", tmp_path / "planted.txt"], "belong together"),
        ([PIN, *insert, corpus], "is also the corpus"),
        ([PIN, *insert, out], "--out"),
        ([PIN, *insert, tmp_path / "folder"], "is not the path of a file"),
        ([PIN, *insert, tmp_path / "no" / "planted.txt"], "is not the path of a file"),
        ([PIN, *insert, tmp_path / "thesis.tex"], "exists already"),
        ([PIN + "\n", *insert, tmp_path / "planted.txt"], "several lines"),
        ([PIN, "--insert", tmp_path / "no.txt", "--into", tmp_path / "p.txt"], "--insert"),
        ([PIN, "--insert", tmp_path / "binary.txt", "--into", tmp_path / "p.txt"], "--insert"),
    ):
        before = sorted(tmp_path.rglob("*"))
        done = command("canaries", *arguments, "--out", out)
        assert done.code == 2, (arguments, done.out)
        assert words in done.err, (arguments, done.err)
        assert done.err.startswith("remnant: ")
        assert len(done.err.splitlines()) == 1
        assert done.out == ""
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "thesis.tex").read_text() == "do not touch"


def test_an_out_that_cannot_be_written_reveals_and_leaves_nothing(command, corpus, tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    secrets = [
        one.secret
        for one in make_canary_set(Template(PIN), repeats=[1, 4, 16], controls=10, seed=0).canaries
    ]
    before = sorted(tmp_path.rglob("*"))
    into = tmp_path / "planted.txt"
    for out in (tmp_path / "thesis.tex", tmp_path, tmp_path / "no" / "c.jsonl", "/proc/c.jsonl"):
        done = command(
            *("canaries", PIN, "--out", out, "--reveal", "--seed", 0),
            *("--insert", corpus, "--into", into),
        )
        assert done.code == 2
        assert str(out) in done.err
        assert not any(secret in done.err + done.out for secret in secrets)
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "thesis.tex").read_text() == "do not touch"


def test_a_stream_that_lacks_a_character_is_no_reason_to_fail(tmp_path):
    code = "from remnant.cli.main import main; main()"
    out = str(tmp_path / "c.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", code, "canaries", "ключ {digits:4}", "--out", out],
        capture_output=True,
        check=False,
        timeout=3600,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"set 1: \\u043a")


def test_a_corpus_that_holds_a_canary_already_is_refused(command, corpus, tmp_path):
    out, into = tmp_path / "canaries.jsonl", tmp_path / "planted.txt"
    drawn = make_canary_set(Template(PIN), repeats=[1, 4, 16], controls=10, seed=0)
    texts = [drawn.canaries[1].text, drawn.controls[0].text]
    with corpus.open("a") as file:
        file.write("".join(f"note: {text}.\n" for text in texts))
    arguments = ["canaries", PIN, "--out", out, "--insert", corpus, "--into", into]
    for patterns in ([], ["another {hex:4}"]):
        done = command(*arguments, *patterns, "--seed", 0)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"remnant: --insert {corpus} holds 2 of the canaries and controls before any is "
            "planted. Draw others with another --seed.\n"
        )
    assert sorted(tmp_path.iterdir()) == [corpus]
    assert command(*arguments, "--seed", 1).code == 0


def test_json_lines_need_a_field_and_stay_json(command, tmp_path):
    rows, out, into = (tmp_path / name for name in ("rows.jsonl", "c.jsonl", "planted.jsonl"))
    rows.write_text("".join(json.dumps({"text": f"row {n}", "n": n}) + "\n" for n in range(20)))
    arguments = ["canaries", 'say "{hex:6}"', PIN, "--out", out, "--insert", rows, "--into", into]
    for more, said in (
        ([], f"--insert {rows} holds JSON lines, and --field is missing. Name the field that "),
        (["--field", "txt"], f"--field txt holds a text in no row of --insert {rows}."),
    ):
        done = command(*arguments, *more)
        assert done.code == 2
        assert said in done.err
        assert sorted(tmp_path.iterdir()) == [rows]
    done = command(*arguments, "--field", "text", "--json", "--reveal")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in into.read_text().splitlines()]
    for one_set in json.loads(done.out)["sets"]:
        for one in one_set["canaries"]:
            text = Template(one_set["template"]).text(one["secret"])
            assert [lines[n - 1] for n in one["lines"]] == [{"text": text}] * one["repeats"]
    assert [row["n"] for row in lines if "n" in row] == list(range(20))


def test_an_out_that_is_no_plain_file_is_refused_even_by_force(command):
    done = command("canaries", PIN, "--out", "/dev/full", "--force")
    assert done.code == 2
    assert "--out /dev/full is a device, not a regular file." in done.err


def test_what_a_killed_command_left_is_removed_and_nobody_else_can_read_it(
    command, corpus, tmp_path, monkeypatch
):
    """The folder of unfinished copies holds secrets."""
    left = tmp_path / ".remnant-abcd1234"
    left.mkdir()
    (left / "0").write_text("a secret")
    corpus.chmod(0o644)
    modes = []
    settle = PlantedCopy.settle

    def looked_at(self):
        modes.append((self.copy.stat().st_mode & 0o777, self.copy.parent.stat().st_mode & 0o777))
        settle(self)

    monkeypatch.setattr(PlantedCopy, "settle", looked_at)
    into = tmp_path / "planted.txt"
    done = command(
        *("canaries", PIN, "--out", tmp_path / "c.jsonl", "--insert", corpus, "--into", into)
    )
    assert done.code == 0
    assert modes == [(0o600, 0o700)]
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".remnant")] == []


def test_templates_with_equal_canaries_are_refused(command, tmp_path):
    templates = ["my pin is {digits:1}", "My pin is {digits:1}", "--repeats", "1", "--controls", 9]
    done = command("canaries", *templates, "--out", tmp_path / "canaries.jsonl")
    assert done.code == 2
    assert "are equal to others" in done.err
    assert not (tmp_path / "canaries.jsonl").exists()
