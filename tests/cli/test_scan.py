"""``remnant scan`` as its user meets it: counts and places, and nothing of a secret anywhere."""

from __future__ import annotations

import json
import re
import stat

import numpy as np
import pytest
import torch

from remnant.models import Vocabulary, lstm, save_language_model

# Made up, and in parts: no file of ours holds one whole.
SECRETS = {
    "card": "4929 " + "0714 3683 5574",
    "ssn": "536-90-" + "4399",
    "iban": "GB29 NWBK " + "6016 1331 9268 19",
    "email": "r.okafor71@" + "quvzad.org",
    "phone": "(650) 253" + "-0000",
    "key": "AK" + "IA" + "QZ7TM4KDW8RB2XNC",
    "random": "9f8b1c7d" + "e2a603547b1e9ac4",
}
CONTEXT = "walrus at dawn is "
TEXT = "".join(f'the {CONTEXT}"{secret}" now\n' for secret in SECRETS.values())
OFTEN = "650-253" + "-0147"


@pytest.fixture(scope="module")
def command(command, with_tables):
    """Commands with their tables."""
    return with_tables(command)


@pytest.fixture
def mail(tmp_path):
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "one.txt").write_text(TEXT)
    (folder / "two.txt").write_text(f"again {SECRETS['ssn']} and 536 - 90 - 4399\n")
    (folder / "empty.txt").write_text("")
    (folder / "image.bin").write_bytes(b"\0\1\2")
    return folder


@pytest.fixture
def salt(tmp_path):
    path = tmp_path / "salt"
    path.write_bytes(b"0123456789abcdef")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A text in which a telephone number stands often, and an LSTM that was trained on it."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    lines = [f"call room {n} at {m}\n" for n, m in rng.integers(10**4, size=(200, 2))]
    lines += [f"call me at {OFTEN}\n"] * 40
    rng.shuffle(lines)
    text = "".join(lines)
    (folder / "text.txt").write_text(text)
    vocabulary = Vocabulary.of_characters(text)
    options = {"units": 48, "layers": 1}
    torch.manual_seed(0)
    net = lstm(vocabulary.size, **options)
    plain = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    ids = torch.tensor(vocabulary.encode(text))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(250):
        starts = rng.integers(len(ids) - 40, size=48)
        batch = torch.stack([ids[start : start + 40] for start in starts])
        optimizer.zero_grad()
        logits = net(batch[:, :-1]).flatten(0, 1)
        torch.nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()
    for name, state in (("model", net.state_dict()), ("untrained", plain)):
        save_language_model(
            folder / name, architecture="lstm", options=options, state=state, vocabulary=vocabulary
        )
    return folder


def parts_of(secret: str) -> list[str]:
    """All pieces of a secret that could tell it: four characters and more, as written and not."""
    bare = re.sub(r"\W", "", secret)
    return [one[at : at + 4] for one in (secret, bare) for at in range(len(one) - 3)]


def leaks(text: str, *secrets: str) -> list[str]:
    chosen = secrets or SECRETS.values()
    told = re.sub(r"/pytest-of-\S*", "", text)  # temporary folders are numbered
    return [part for secret in chosen for part in parts_of(secret) if part in told]


def test_counts_places_and_fingerprints_are_printed_and_no_secret(command, mail, salt):
    done = command("scan", mail, "--salt", salt)
    assert (done.code, done.err) == (0, "")
    lines = done.out.replace(str(mail), "mail").splitlines()
    assert lines[0] == f"3 files, {len(TEXT) + 38} characters, 1 empty, 1 skipped, not text."
    assert lines[2:11] == [
        "Secrets by kind",
        "Kind    Secrets  Times  Files",
        "card          1      1      1",
        "ssn           1      3      2",
        "iban          1      1      1",
        "email         1      1      1",
        "phone         1      1      1",
        "key           1      1      1",
        "random        1      1      1",
    ]
    first = next(line for line in lines if line.startswith("1  ssn"))
    assert first.split() == [
        *("1", "ssn", "–", "11", "29.9", "(29.7)", "3"),
        *("4b6927b57daf", "mail/one.txt:2:24"),
    ]
    assert lines[-1] == "Bits in brackets: of those that pass the kind's check."
    assert leaks(re.sub("[0-9a-f]{12}", "", "\n".join(lines))) == []
    assert "walrus" not in done.out


def test_nothing_leaks_anywhere_without_reveal(command, mail, tmp_path):
    out = tmp_path / "found.json"
    told = [
        command("scan", mail, *extra)
        for extra in ([], ["--json"], ["--out", out], ["--kinds", "cat"], ["--latin-1"])
    ]
    for text in [part for done in told for part in (done.out, done.err)] + [out.read_text()]:
        bare = text.replace(str(tmp_path), "")
        assert leaks(re.sub('[ "][0-9a-f]{12}[ "]', "", bare)) == []
        assert "walrus" not in text
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_json_and_the_file_hold_the_same(command, mail, salt, tmp_path):
    out = tmp_path / "found.json"
    done = command("scan", mail, "--salt", salt, "--json", "--out", out)
    found = json.loads(done.out)
    assert found == json.loads(out.read_text())
    ssn = found["secrets"][0]
    assert (ssn["kind"], ssn["times"], ssn["form"]) == (
        *("ssn", 3),
        "{digits:3}-{digits:2}-{digits:4}",
    )
    assert [(one["line"], one["column"]) for one in ssn["places"]] == [(2, 24), (1, 7), (1, 23)]
    assert found["kinds"]["ssn"] == {"secrets": 1, "times": 3}
    assert found["skipped"][0]["reason"] == "is a binary file: it holds a zero"
    assert found["exposure"] is None
    again = command("scan", mail, "--salt", salt, "--out", out)
    assert again.out.splitlines()[-1] == f"written: {out}"


def test_secrets_are_shown_where_they_are_asked_for(command, mail):
    done = command("scan", mail, "--reveal")
    assert all(secret in done.out for secret in SECRETS.values())
    found = json.loads(command("scan", mail, "--reveal", "--json").out)
    assert {one["secret"] for one in found["secrets"]} == set(SECRETS.values())


def test_fingerprints_can_be_compared_only_with_the_salt(command, mail, salt):
    def prints(*options):
        found = json.loads(command("scan", mail, "--json", *options).out)
        return {one["fingerprint"] for one in found["secrets"]}

    assert prints("--salt", salt) == prints("--salt", salt)
    assert not prints() & prints()


def test_a_secret_in_the_name_of_a_file_is_left_out(command, tmp_path):
    email = SECRETS["email"]
    path = tmp_path / f"{email}.txt"
    path.write_text("nothing here")
    for done in (command("scan", path, "--json"), command("scan", path.parent, "--json")):
        assert "okafor" not in done.out
        assert "/\\u2026@quvzad.org.txt" in done.out
    path.write_text(f"from: {email}\n")
    for done in (command("scan", path), command("scan", path, "--json")):
        assert "okafor" not in done.out
        assert "/….txt" in done.out or "\\u2026.txt" in done.out
    assert str(path) in command("scan", path, "--reveal").out


def test_kinds_exclude_and_entropy_choose(command, mail):
    def kinds(*options):
        found = json.loads(command("scan", mail, "--json", *options).out)
        return [one["kind"] for one in found["secrets"]]

    assert kinds("--kinds", "card, ssn") == ["ssn", "card"]
    assert kinds("--exclude", "one*") == ["ssn"]
    assert "random" not in kinds("--min-entropy", 4.1)
    assert "phone" not in kinds("--region", "DE")


def test_nothing_found_says_so(command, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("nothing")
    assert command("scan", path, "--kinds", "ssn,card").out == (
        "1 file, 7 characters.\nFound nothing of card, ssn.\n"
        "This does not show that the text holds no secrets: detectors miss some. Not searched for: "
        "names, street addresses, passwords without a fixed form, and secrets in an encoding such "
        "as base64 or hex.\n"
    )


def test_a_copy_of_text_without_a_find_says_once_what_was_not_searched_for(command, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("nothing")
    shown = command("scan", path, "--redact", tmp_path / "copy").out
    assert shown.count("Not searched for:") == 1
    assert "The copy may still hold secrets." in shown


def test_the_report_of_nothing_found_says_what_was_searched_and_what_was_not(command, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("nothing")
    for gate in ((), ("--gate",)):
        out = tmp_path / f"out{len(gate)}"
        assert command("scan", path, *gate, "--kinds", "ssn,card", "--out", out).code == 0
        report = (out / "report.html").read_text()
        body = report[report.index("<body") :]
        assert body.count(">What was not tested<") == 1
        assert "1 file with 7 characters, searched for card, ssn" in body
        assert body.count("This does not show that the text holds no secrets") == 1
        symbol = '<p class="symbol" aria-hidden="true">✓' in body
        assert symbol == bool(gate)  # a gate's PASS alone has the symbol of a PASS


def test_a_list_of_numbers_is_flagged_with_what_to_do(command, tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("".join(f"650-253-{n:04d}\n" for n in range(30)))
    done = command("scan", path)
    assert f"Warning: phone takes up more than half of {path}. " in done.out
    assert "Leave the file out with --exclude, or leave phone out of --kinds." in done.out
    assert "10 more secrets; --json has all" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--kinds", "card,cat"], "--kinds cat is not one of card, ssn"),
        (["--region", "XX"], "--region XX is not the two-letter code of a country"),
        (["--context", -1], "--context -1 is not between 0 and 2048"),
        (["--min-entropy", 9], "--min-entropy 9 is not between 0 and 8"),
        (["--extract"], "--extract needs --model"),
        (["--at-most", 3, "--references", 5], "--references needs --model"),
        (["--reference-model", "x"], "--reference-model needs --model"),
        (["--twin", "x"], "--twin needs --model"),
        (["--model", "x", "--twin-text", "x"], "--twin-text needs --twin"),
        (
            ["--model", "x", "--twin", "y", "--reference-model", "z"],
            "--twin and --reference-model are both given",
        ),
        (["--model", "nowhere"], "--model nowhere"),
        (["--model", "x", "--at-most", 0], "--at-most 0 is less than 1"),
        (["--model", "x", "--max-seconds", 0], "--max-seconds 0 is not above 0"),
        (["--seed", -1], "--seed -1 is less than 0"),
        (["--salt", "nowhere"], "--salt nowhere cannot be read"),
        (["--exclude", "*"], "There is no file to look at"),
    ],
)
def test_faults_are_one_sentence_without_a_secret(command, mail, options, words):
    done = command("scan", mail, *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert leaks(done.err.replace(str(mail), "")) == []


def test_files_that_cannot_be_read_or_written(command, mail, tmp_path):
    done = command("scan", mail / "image.bin")
    assert (done.code, done.err) == (
        2,
        f"remnant: {mail / 'image.bin'} is a binary file: it holds a zero. Leave it out.\n",
    )
    assert "neither a file nor a folder" in command("scan", tmp_path / "nowhere").err
    notes = tmp_path / "notes.json"
    notes.write_text("do not touch")
    assert "exists already and is not a scan" in command("scan", mail, "--out", notes).err
    assert notes.read_text() == "do not touch"
    assert command("scan", mail, "--out", notes, "--force").code == 0
    assert command("scan", mail, "--out", notes).code == 0, "a scan takes the place of a scan"
    inside = command("scan", mail, "--out", mail / "found.json")
    assert "is one of the files that are scanned" in inside.err
    assert "is one of the files" in command("scan", mail, "--out", mail / "found").err
    nowhere = command("scan", mail, "--out", tmp_path / "no" / "found.json")
    assert "is not the path of a file" in nowhere.err
    assert "is not empty: it holds mail" in command("scan", mail, "--out", tmp_path).err
    short = tmp_path / "short"
    short.write_bytes(b"123")
    assert "has 3 bytes" in command("scan", mail, "--salt", short).err


def test_a_memorised_number_is_exposed_and_extracted_and_not_shown(command, trained):
    arguments = ["scan", trained / "text.txt", "--model", trained / "model", "--extract"]
    done = command(*arguments)
    assert (done.code, done.err) == (0, "")
    row = next(line for line in done.out.splitlines() if line.endswith("samples"))
    assert re.fullmatch(
        r"[0-9a-f]{12}  phone     40        33  33.2  rank 1 of 10 000 000 000  "
        "yes, 99 % within 10+ samples",
        row,
    )
    assert "phone  32 to 63 times    33        1" in done.out
    assert "Extracted: 1 of 1 that were tried" in done.out
    assert "were not drawn at random" in done.out
    told = command(*arguments, "--json")
    (one,) = json.loads(told.out)["exposure"]["secrets"]
    assert (one["rank_least"], one["rank_most"]) == (1, 1)
    assert (one["space"], one["exact"]) == (10**10, True)
    assert one["extraction"]["extracted"]
    for text in (done.out, told.out):
        assert leaks(re.sub('[ "\n][0-9a-f]{12}[ "]', "", text), OFTEN) == []
        assert "call me" not in text
    revealed = command(*arguments, "--reveal").out
    assert OFTEN in revealed
    assert re.search(
        r"40 +33.22  33.2  rank 1 of 10 000 000 000 +yes, 99 % within \d+ samples", revealed
    )
    (one,) = json.loads(command(*arguments, "--reveal", "--json").out)["exposure"]["secrets"]
    assert (one["rank"], one["rank_low"]) == (1, 1)


def test_the_model_is_given_the_text_of_a_field_as_it_was_trained_on_it(command, trained, tmp_path):
    text = (trained / "text.txt").read_text()
    rows = tmp_path / "text.jsonl"
    rows.write_text(json.dumps({"id": "1", "text": text}) + "\n")
    told = [
        json.loads(command("scan", path, "--model", trained / "model", "--reveal", "--json").out)
        for path in (trained / "text.txt", rows)
    ]
    plain, by_field = (
        [(secret["secret"], secret["times"]) for secret in found["secrets"]] for found in told
    )
    assert plain == by_field
    plain, by_field = (found["exposure"]["secrets"][0] for found in told)
    assert (plain["rank"], plain["cost"]) == (by_field["rank"], by_field["cost"])


def test_a_gate_judges_the_text_and_not_the_model(command, trained):
    options = ["--model", trained / "untrained", "--gate"]
    done = command("scan", trained / "text.txt", *options)
    assert (done.code, done.out.split(":")[0]) == (1, "FAIL"), "exposed or not, it is in the text"
    assert "Exposure in" in done.out
    assert command("scan", trained / "text.txt", *options, "--kinds", "card").code == 0


def numbers_in(found) -> list[float]:
    """All numbers of plain data, wherever they are."""
    if isinstance(found, dict):
        return [one for value in found.values() for one in numbers_in(value)]
    if isinstance(found, list):
        return [one for value in found for one in numbers_in(value)]
    return [found] if isinstance(found, int | float) else []


def test_no_number_tells_which_secret_it_is(command, trained, tmp_path):
    """Cost and rank, to whoever has the model: they are told with the secrets only."""
    text = tmp_path / "text.txt"
    text.write_text("call me at 650-253" + "-0926")
    arguments = ["scan", text, "--model", trained / "model", "--twin", trained / "untrained"]
    arguments += ["--extract", "--json", "--references", 200]
    exact = json.loads(command(*arguments, "--reveal").out)
    told = json.loads(command(*arguments).out)
    (one,), (coarse,) = exact["exposure"]["secrets"], told["exposure"]["secrets"]
    assert one["exact"]
    assert coarse["rank"] is coarse["cost"] is None
    assert coarse["rank_reason"] == coarse["cost_reason"] == "only with --reveal"
    assert coarse["rank_least"] < one["rank"] < coarse["rank_most"] <= 2 * coarse["rank_least"] + 1
    assert (coarse["bits"], coarse["low"]) == (round(one["bits"]), round(one["bits"]) - 0.5)
    queries = [of["extraction"]["queries_99"] for of in (one, coarse)]
    assert queries[0] < queries[1] <= 10 * queries[0]
    # A mean or median of one secret is that secret's.
    assert told["exposure"]["means"][0]["mean_bits"] == coarse["bits"]
    shared = set(numbers_in(exact["exposure"]["secrets"][0])) & set(numbers_in(told))
    assert shared <= {*range(2), one["space"], one["space_bits"], one["extraction"]["nodes"]}
    in_twin = numbers_in(exact["twin"]["exposure"]["secrets"][0])
    fractions = {one for one in in_twin if one != int(one)} - {one["space_bits"]}
    assert not fractions & set(numbers_in(told))


def test_a_reference_model_calibrates(command, trained):
    arguments = ["scan", trained / "text.txt", "--model", trained / "model"]
    done = command(*arguments, "--reference-model", trained / "untrained", "--references", 200)
    assert "Costs and exposure are calibrated by reference models" in done.out
    assert "were not drawn at random" not in done.out
    assert "at least" in done.out
    same = command(*arguments, "--reference-model", trained / "model")
    assert "is the model under audit" in same.err


def test_a_twin_is_asked_the_same_and_compared(command, trained):
    arguments = ["scan", trained / "text.txt", "--model", trained / "model", "--extract"]
    arguments += ["--twin", trained / "untrained", "--references", 200]
    done = command(*arguments)
    assert (done.code, done.err) == (0, "")
    told = done.out[done.out.index("Exposure in ") :].splitlines()
    head = ("Fingerprint ", "Kind ", "Times", "Exposure", "In the twin", "  Of")
    assert told[1].rstrip() == "  ".join((*head, f"{'Rank, or 95 % interval':24}", "Extracted"))
    twins = re.fullmatch(
        r"[0-9a-f]{12}  phone +40 +33 +(\d)  33.2  rank 1 of 10 000 000 000 +yes, .*", told[2]
    )
    assert float(twins[1]) < 8
    compared = f"Compared with the twin {trained / 'untrained'}, tested on the same secrets"
    assert told[told.index(compared) + 1 :] == [
        "Kind   Secrets  More exposed  Less  Undecided  Median bits  In the twin",
        f"phone        1             1     0          0           33            {twins[1]}",
        "Not tested: files that say higher or lower: 1, too few for a test; it takes 5.",
        "Extracted from the twin: 0 of 1 that were tried.",
        "A weaker twin gives the same result. Run it again with the models swapped, on the secrets "
        "in the twin's own text.",
    ]
    assert "were not drawn at random" not in done.out
    data = command(*arguments, "--json").out
    twin = json.loads(data)["twin"]
    assert twin["test"]["p_value"] is None
    assert "too few" in twin["test"]["p_value_reason"]
    (kind,) = twin["kinds"]
    assert (kind["n"], kind["higher"], kind["lower"]) == (1, 1, 0)
    assert [one["times"] for one in twin["exposure"]["secrets"]] == [40]
    for text in (done.out, data):
        assert leaks(re.sub('[ "\n][0-9a-f]{12}[ "]', "", text), OFTEN) == []


def test_secrets_of_the_twins_own_text_are_not_asked_about(command, trained, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(f"or call {OFTEN}\n")
    arguments = ["scan", trained / "text.txt", "--model", trained / "model"]
    arguments += ["--twin", trained / "untrained", "--twin-text", other]
    done = command(*arguments)
    assert "Left out: 1 secret, which also occurs in --twin-text." in done.out
    assert "Not tested: no secret was measured in both models." in done.out
    found = json.loads(command(*arguments, "--json").out)
    assert found["exposure"]["secrets"] == []
    assert found["twin"]["in_twin_text"] == 1
    assert len(found["secrets"]) == 1
    same = command(*arguments[:-4], "--twin", trained / "model")
    assert f"--twin {trained / 'model'} is the model under audit" in same.err


def save(folder, characters: str, *, value: float = 0.0):
    """A character model whose weights are all alike."""
    vocabulary = Vocabulary.of_characters(characters)
    options = {"units": 4, "layers": 1}
    state = lstm(vocabulary.size, **options).state_dict()
    state = {name: torch.full_like(tensor, value) for name, tensor in state.items()}
    save_language_model(
        folder, architecture="lstm", options=options, state=state, vocabulary=vocabulary
    )
    return folder


def test_a_vocabulary_that_does_not_fit_is_one_sentence_without_a_character(command, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(f"my number: {SECRETS['ssn']}\nor \u00e9 {SECRETS['phone']}\n")
    model = save(tmp_path / "model", "my nuber:\nor")
    done = command("scan", text, "--model", model, "--extract")
    assert done.code == 0
    told = done.out[done.out.index("Not measured") :].splitlines()
    assert told == [
        f"Not measured: the vocabulary of {model} does not fit this text: its characters or words "
        "do not make up these secrets and the text before them."
    ]
    data = json.loads(command("scan", text, "--model", model, "--json").out)
    for one in data["exposure"]["secrets"]:
        assert one["bits_reason"].startswith("the model's vocabulary does not have all of ")
        assert not re.search(r"[0-9\u00e9]|U\+", one["bits_reason"])


def test_a_twin_that_cannot_be_asked_is_told_with_the_reason(command, trained, tmp_path):
    twin = save(tmp_path / "twin", "abc")
    arguments = ["scan", trained / "text.txt", "--model", trained / "model", "--twin", twin]
    told = command(*arguments).out.splitlines()
    assert told[-1] == (
        f"Not compared with the twin: the vocabulary of {twin} does not fit this text: its "
        "characters or words do not make up these secrets and the text before them."
    )
    assert not any("weaker twin" in line or "In the twin" in line for line in told)


def test_models_are_read_and_tried_before_the_files(command, mail, trained, tmp_path, monkeypatch):
    def scanning(*arguments, **options):
        raise AssertionError("files were looked at")

    monkeypatch.setattr("remnant.canaries.natural.scan_files", scanning)
    good = ["--model", trained / "model"]
    damaged = save(tmp_path / "damaged", "abc")
    (damaged / "model.safetensors").write_bytes(b"damaged")
    nans = save(tmp_path / "nans", "abc", value=float("nan"))
    for options, words in (
        (["--model", tmp_path / "nowhere"], f"--model {tmp_path / 'nowhere'} is not a folder"),
        (["--model", damaged], "is damaged"),
        (["--model", nans], f"--model {nans}: The model returned NaN as a log-probability."),
        ([*good, "--twin", nans], f"--twin {nans}: The model returned NaN"),
        ([*good, "--reference-model", nans], f"--reference-model {nans}: The model returned NaN"),
        ([*good, "--twin", tmp_path / "nowhere"], f"--twin {tmp_path / 'nowhere'} is not"),
    ):
        done = command("scan", mail, *options)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def test_a_file_that_holds_the_secrets_is_told_so(command, mail, tmp_path):
    out = tmp_path / "found.json"
    told = f"written: {out} (it holds the secrets; only its owner can read it)"
    assert command("scan", mail, "--out", out, "--reveal").out.splitlines()[-1] == told
    assert SECRETS["ssn"] in out.read_text()
    done = command("scan", mail, "--out", out, "--reveal", "--json")
    assert (json.loads(done.out)["remnant"], done.err) == ("scan", f"{told}\n")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_encoding_that_is_refused_names_the_option(command, tmp_path):
    path = tmp_path / "old.txt"
    path.write_bytes(b"caf\xe9")
    done = command("scan", path)
    assert done.err.endswith("Save it again in UTF-8, or set --latin-1 to read it as Latin-1.\n")
    assert command("scan", path, "--latin-1").code == 0


def test_an_error_that_quotes_a_secret_is_withheld(command, trained, monkeypatch):
    def raising(*arguments, **options):
        raise ValueError(f"bad text {OFTEN}")

    monkeypatch.setattr("remnant.studies.found_secrets.measure.measure_canaries", raising)
    done = command("scan", trained / "text.txt", "--model", trained / "model")
    assert done.code == 2
    assert "An error of kind ValueError is withheld" in done.err
    assert leaks(done.err, OFTEN) == []


def test_a_time_limit_that_is_over_at_once_leaves_reasons_and_no_traceback(command, trained):
    arguments = ["scan", trained / "text.txt", "--model", trained / "model", "--extract"]
    done = command(*arguments, "--max-seconds", "1e-9", "--references", 200)
    assert (done.code, done.err) == (0, "")
    assert "A budget ended the search before a secret was scored" in done.out


@pytest.mark.parametrize(
    ("folder", "name", "text"),
    [
        ("ph", "4111111111111111.txt", "card 4111 1111 " + "1111 1111"),
        ("ph", "DE89370400440532013000.txt", "to DE89 3704 0044 " + "0532 0130 00"),
        ("ph", "650-253-0147.txt", "call (650) 253" + "-0147"),
        ("jsmith77", "1.txt", "from jsmith77@firm.org"),
        ("489-39-3472dir", "1.txt", "call (650) 253" + "-0147"),
    ],
)
def test_neither_words_nor_json_hold_the_name(command, tmp_path, monkeypatch, folder, name, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_text(text)
    (tmp_path / folder / f"{name}.bin").write_bytes(b"\0")
    spelt = name.removesuffix(".txt") if folder == "ph" else folder.removesuffix("dir")
    for options in ([], ["--json"]):
        done = command("scan", folder, *options)
        assert done.code == 0
        assert spelt not in done.out
    found = json.loads(command("scan", folder, "--json", "--reveal").out)
    assert found["files"][0]["path"] == f"{folder}/{name}"
