"""``remnant extract`` as its user meets it."""

from __future__ import annotations

import json

import pytest

from remnant.canaries import Template, make_canary_set, write_canary_sets
from remnant.models import Vocabulary, lstm, save_language_model

PIN = "my pin is {digits:6}"


def run(command, planted, *more):
    own = {"--model": planted.model, "--template": PIN}
    given = [part for name, value in own.items() if name not in more for part in (name, value)]
    return command("extract", *given, *more)


def test_the_whole_output(command, weighted):
    done = command(
        *("extract", "--model", weighted.model, "--template", "pin {digits:2}", "--top", 2),
        *("--canaries", weighted.canaries, "--temperature", 0.5, "--top-k", 1, "--reveal"),
    )
    first, second, *rest = done.out.splitlines()
    assert first == "pin {digits:2}: 100 secrets (6.6 bits)."
    assert second.startswith("Certified: nothing likelier exists among 100 secrets (")
    assert rest[:4] == [
        "",
        "The likeliest secrets",
        "Place  Cost in bits  Probability  Secret  Known as",
        "    1          2.00         0.25  77      canary 1 of set 1, planted 16 times",
    ]
    assert rest[4].startswith("    2          6.00        0.016  ")
    assert rest[5:] == [
        "",
        "Queries until the first comes out with a probability of 50 % and 99 %",
        "Decoding                  50 %  99 %",
        "temperature 1                3    17",
        "temperature 0.5, top-k 1     1     1",
    ]
    assert (done.code, done.err) == (0, "")


def test_a_memorised_secret_is_recovered_and_proved(command, planted):
    done = run(command, planted, "--canaries", planted.canaries, "--reveal", "--json")
    found = json.loads(done.out)
    assert found["certified"] is True
    assert found["nodes"] < 5000
    assert found["sentence"] == (
        f"certified: nothing likelier exists among 1 000 000 secrets ({found['nodes']:,} nodes)"
    ).replace(",", " ")
    best = found["candidates"][0]
    assert best["secret"] == planted.memorised
    assert best["canary"] == {"set": 1, "name": "canary 2", "repeats": 60}
    assert best["probability"] == pytest.approx(2 ** -best["bits"])
    assert found["queries"][0]["queries_50"] == 1
    assert found["queries"][0]["probability"] == pytest.approx(best["probability"])


@pytest.mark.parametrize("method", ["brute-force", "greedy", "beam", "sample", "dijkstra"])
def test_every_method_finds_it_and_only_brute_force_proves_it(command, planted, method):
    pattern = f"my pin is {planted.memorised[:3]}{{digits:3}}"
    asked = ["extract", "--model", planted.model, "--template", pattern, "--method", method]
    done = command(*asked, "--json", "--reveal")
    found = json.loads(done.out)
    assert found["candidates"][0]["secret"] == planted.memorised[3:]
    assert found["certified"] is (method == "brute-force")
    said = command(*asked).out.splitlines()[1]
    assert said.startswith("Certified: nothing" if found["certified"] else "Not certified: ")
    assert said.endswith(" nodes).")


def test_a_budget_ends_the_search_without_a_certificate(command, planted):
    done = command(
        *("extract", "--model", planted.untrained, "--template", PIN, "--max-nodes", 500)
    )
    assert done.code == 0
    assert done.out.splitlines()[1].startswith("Not certified: a budget ended the search (")


def test_samples_follow_the_seed(command, planted):
    def drawn(seed):
        asked = ["--method", "sample", "--queries", 3, "--seed", seed, "--top", 3, "--json"]
        done = command(
            *("extract", "--model", planted.untrained, "--template", PIN, "--reveal", *asked)
        )
        return [one["secret"] for one in json.loads(done.out)["candidates"]]

    assert drawn(0) == drawn(0) != drawn(1)


def test_a_decoding_that_cuts_the_secret_away_never_gives_it(command, weighted):
    asked = ["extract", "--model", weighted.model, "--template", "{digits:1}o", "--top-k", 1]
    assert command(*asked).out.splitlines()[-1] == (
        "temperature 1, top-k 1     –     –  this decoding never gives it"
    )
    cut = json.loads(command(*asked, "--json").out)["queries"][1]
    assert (cut["top_k"], cut["top_p"], cut["queries_50"], cut["queries_99"]) == (
        1,
        None,
        None,
        None,
    )
    assert cut["log2_probability"] is None
    assert cut["log2_probability_reason"] == "this decoding never gives it"


def test_words_of_a_word_model(command, tmp_path):
    words = ["fig", "kiwi", "plum", "apple"]
    vocabulary = Vocabulary("words", ("say", *words))
    options = {"units": 1, "layers": 1}
    state = {name: 0 * tensor for name, tensor in lstm(5, **options).state_dict().items()}
    state["head.bias"][2] = 3.0
    save_language_model(
        tmp_path / "model",
        architecture="lstm",
        options=options,
        state=state,
        vocabulary=vocabulary,
    )
    (tmp_path / "words.txt").write_text("\n".join(words))
    asked = ["extract", "--model", tmp_path / "model", "--template", "say {words:2}"]
    asked += ["--words", tmp_path / "words.txt"]
    assert "kiwi kiwi" in command(*asked, "--reveal").out
    assert "●● (2 words)" in command(*asked).out


def test_a_models_own_tokens_fill_a_hole(command, weighted):
    asked = ["extract", "--model", weighted.model, "--template", "pin {tokens:2}", "--reveal"]
    assert json.loads(command(*asked, "--json").out)["candidates"][0]["secret"] == "77"


def test_secrets_are_shown_when_asked_for_and_only_then(command, planted):
    for flags in ([], ["--json"], ["--method", "greedy"], ["--canaries", planted.canaries]):
        quiet = run(command, planted, *flags)
        assert quiet.code == 0, quiet.err
        assert not any(secret in quiet.out + quiet.err for secret in planted.secrets)
        told = run(command, planted, *flags, "--reveal")
        assert planted.memorised in told.out


def test_faults_are_one_sentence_and_reveal_nothing(command, planted, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").write_text("")
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(planted.canaries.read_bytes()[:-20])
    for more, words in (
        (["--model", tmp_path / "nowhere"], "nowhere"),
        (["--model", tmp_path / "folder"], "neither"),
        (["--template", "no hole"], "--template has no hole"),
        (["--template", "my pin is {digits:6"], "--template has unbalanced braces"),
        (["--template", "MY PIN IS {digits:6}"], "vocabulary"),
        (["--template", "my pin is {words:2}"], "--words FILE"),
        (["--template", "{words:2}", "--words", tmp_path / "empty.txt"], "holds no word"),
        (["--words", planted.corpus], "no template has"),
        (["--canaries", cut], "cut.jsonl"),
        (["--top", "0"], "--top 0"),
        (["--beam", "0"], "--beam 0"),
        (["--seed", "-1"], "--seed -1"),
        (["--max-nodes", "0"], "--max-nodes 0"),
        (["--max-nodes", "3"], "--max-nodes 3 is less than"),
        (["--max-seconds", "-1"], "--max-seconds -1"),
        (["--memory", "0"], "--memory 0"),
        (["--method", "greedy", "--max-nodes", "9"], "--max-nodes is not for --method greedy"),
        (["--queries", "9"], "--queries is not for --method certified"),
        (["--method", "beam", "--memory", "9"], "--memory is not for --method beam"),
        (["--method", "sample", "--max-nodes", "9"], "--max-nodes is not for --method sample"),
        (["--method", "sample", "--queries", "0"], "--queries 0"),
        (["--method", "brute-force", "--template", "my pin is {digits:7}"], "10000000"),
        (
            ["--method", "brute-force", "--template", "my pin is {digits:7}"],
            "Use --method certified",
        ),
        (["--temperature", "0"], "--temperature 0"),
        (["--temperature", "nan"], "--temperature nan"),
        (["--top-k", "0"], "--top-k 0"),
        (["--top-p", "1.5"], "--top-p 1.5"),
        (["--device", "tpu"], "--device tpu is neither cpu nor cuda. Pass cpu or cuda."),
        (["--source", "guten Tag"], "--source was given"),
    ):
        done = run(command, planted, *more, "--reveal")
        assert done.code == 2, (more, done.out)
        assert words in done.err, (more, done.err)
        assert done.err.startswith("remnant: ")
        assert len(done.err.splitlines()) == 1, done.err
        assert done.out == ""
        assert not any(secret in done.err for secret in planted.secrets)


def test_canaries_of_another_template_are_refused(command, planted, tmp_path):
    two = tmp_path / "two.jsonl"
    sets = [planted.set, make_canary_set(Template("a {hex:2}\n"), repeats=[1], controls=0, seed=0)]
    write_canary_sets(sets, two)
    for pattern in ("my  pin is {digits:6}", "my pin is {digits:5}"):
        asked = ["extract", "--model", planted.model, "--template", pattern, "--canaries", two]
        done = command(*asked)
        assert done.code == 2
        assert done.err == (
            f"remnant: No set of --canaries {two} has the template {pattern}; it has: {PIN}, "
            '"a {hex:2}\\n". Pass one of these as --template, or leave --canaries out.\n'
        )
    # Part of a canary may be known: the rest is still that canary's.
    part = f"my pin is {planted.memorised[:3]}{{digits:3}}"
    asked = ["extract", "--model", planted.model, "--template", part, "--canaries", two]
    assert "canary 2 of set 1, planted 60 times" in command(*asked).out


def test_a_time_limit_that_ends_before_a_secret_is_scored_is_one_sentence(command, planted):
    done = run(command, planted, "--max-seconds", "1e-9")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "remnant: A budget ended the search before a secret was scored. Allow more seconds with "
        "--max-seconds.\n"
    )


def test_a_time_limit_ends_the_reading_of_a_long_prefix(command, planted):
    pattern = "my pin is " * 10_000 + "{digits:6}"
    done = command(
        *("extract", "--model", planted.model, "--template", pattern, "--max-seconds", "1e-9")
    )
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("remnant: The time limit of 1e-09 s ended before the text in ")
    assert done.err.endswith("or allow more seconds.\n")


def test_extract_never_judges(command, planted):
    """The exit code is 0 whether a canary comes out or not."""
    for model in (planted.model, planted.untrained):
        assert run(command, planted, "--model", model, "--canaries", planted.canaries).code == 0
    assert "The exit code is 0 whatever is found" in command("extract", "--help").out
