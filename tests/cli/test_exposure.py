"""``remnant exposure`` as its user meets it."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
import torch

from remnant.canaries import Canary, CanarySet, Template, make_canary_set, write_canary_sets
from remnant.models import Vocabulary, lstm, save_language_model


def run(command, audited, *more):
    own = {"--model": audited.model, "--canaries": audited.canaries}
    given = [part for name, value in own.items() if name not in more for part in (name, value)]
    return command("exposure", *given, *more)


def test_the_whole_output(command, weighted):
    done = run(command, weighted)
    assert done.out == (
        "Set 1: pin {digits:2}, 100 secrets (6.6 bits).\n"
        "Exact: the walk was expected to take about 10 nodes of 2 000 000 allowed.\n"
        "\n"
        "Exposure of canaries and controls, in bits; 95 % interval where sampled\n"
        "Canary     Planted  Exposure  Rank of 100   Cost\n"
        "canary 1        16      6.64            1   2.00\n"
        "canary 2         1      2.40           19   6.00\n"
        "control 1    never      0.00          100  10.00\n"
        "control 2    never      0.00          100  10.00\n"
        "\n"
        "Mean exposure in bits; 1.44 where nothing is memorised\n"
        "Planted  Canaries  Mean  p-value  0.00                                6.64\n"
        "      1         1  2.40     0.19          ┊     ●\n"
        "     16         1  6.64     0.01          ┊                              ●\n"
        "  never         2  0.00        1  ●       ┊\n"
        "┊ chance, 1.44\n"
    )
    assert (done.code, done.err) == (0, "")


def test_a_memorised_canary_ranks_first_and_controls_do_not(command, planted):
    found = json.loads(run(command, planted, "--json").out)["sets"][0]
    assert (found["method"], found["space"]) == ("exact", 10**6)
    first = found["canaries"][-1]
    assert (first["name"], first["repeats"], first["rank"]) == ("canary 2", 60, 1)
    assert first["bits"] == pytest.approx(math.log2(10**6))
    means = {group["repeats"]: group for group in found["means"]}
    assert means[60]["p_value"] < 1e-5
    assert means[0]["mean_bits"] < 5
    assert means[0]["n"] == 4


def test_saturated_values_are_ranked_apart_where_that_is_cheap(command, planted):
    narrow = ["--max-nodes", 2000, "--references", 300, "--json"]
    found = json.loads(run(command, planted, *narrow).out)["sets"][0]
    assert found["method"] == "sampled"
    assert "canary 2" in found["ranked_apart"]
    assert found["references"] == 300
    kinds = {one["name"]: one["method"] for one in (*found["canaries"], *found["controls"])}
    assert (kinds["canary 2"], kinds["control 1"]) == ("exact", "sampled")
    assert found["canaries"][-1]["rank"] == 1
    assert found["controls"][0]["rank"] is None
    assert found["controls"][0]["rank_reason"] == "sampled"
    text = run(command, planted, *narrow[:-1]).out
    assert f"Exact for {', '.join(found['ranked_apart'])}: the walk was expected" in text
    assert "of 2 000 allowed; 300 references.\n" in text


def test_sampled_values_have_intervals_and_saturated_ones_say_at_least(command, weighted):
    sampled = ["--method", "sampled", "--references", 80]
    done = run(command, weighted, *sampled)
    lines = done.out.splitlines()
    assert lines[1] == "Sampled: --method sampled was asked for; 80 references."
    found = json.loads(run(command, weighted, *sampled, "--json").out)["sets"][0]
    first = found["canaries"][0]
    assert first["bits"] == pytest.approx(math.log2(81))
    assert first["low"] < first["bits"] - 1
    least = f"at least {first['low']:.2f}"
    assert f" {least} " in next(line for line in lines if line.startswith("canary 1"))
    assert f" 1  {least} " in next(line for line in lines if line.startswith("     16 "))
    assert "at least" not in next(line for line in lines if line.startswith("canary 2"))
    assert lines[-1] == (
        "1 value saturated, since no reference was as cheap: the lower end of the interval is "
        "shown as “at least”. Each further bit takes twice the references; a walk with more "
        "--max-nodes ranks exactly."
    )
    often = found["means"][1]
    assert (often["at_least"], often["mean_low"]) == (True, first["low"])
    assert often["mean_bits"] == first["bits"]
    assert first["exact"] is False
    assert "rank_low" not in first
    assert [one["saturated"] for one in found["canaries"]] == [True, False]
    one = found["canaries"][1]
    assert one["low"] < one["bits"] < one["high"]
    assert found["means"][0]["p_value"] is not None


def test_too_few_references_are_not_tested(command, weighted):
    few = ["--method", "sampled", "--references", 30]
    done = run(command, weighted, *few)
    means = done.out[done.out.index("Mean exposure") :].splitlines()
    assert next(line for line in means if "never" in line).split()[3] == "–"
    assert "Not tested: --references 30 are too few" in done.out
    means = json.loads(run(command, weighted, *few, "--json").out)["sets"][0]["means"]
    controls = next(group for group in means if group["repeats"] == 0)
    assert controls["p_value"] is None
    assert controls["p_value_reason"].startswith("--references 30 are too few")


def test_the_references_follow_the_seed_alone(command, planted):
    sampled = ["--references", 300, "--json"]
    asked = run(command, planted, *sampled, "--method", "sampled")
    fallen_back = run(command, planted, *sampled, "--max-nodes", 20)
    other = run(command, planted, *sampled, "--method", "sampled", "--seed", 1)
    bits = [
        [one["bits"] for one in json.loads(done.out)["sets"][0]["controls"]]
        for done in (asked, fallen_back, other)
    ]
    assert bits[0] == bits[1] != bits[2]


def test_a_walk_that_a_budget_ended_gives_bounds_and_tests_nothing(command, planted):
    ended = ["--method", "exact", "--max-nodes", 50]
    lines = run(command, planted, *ended).out.splitlines()
    line = next(line for line in lines if line.startswith("canary 2"))
    assert "  at least 0.00 (0.00 to 19.93)  at most 1 000 000  " in line
    means = [line.split()[:6] for line in lines if line.startswith(("     60 ", "      1 "))]
    assert means == [[many, "1", "at", "least", "0.00", "–"] for many in ("1", "60")]
    assert lines[-2:] == [
        "A budget ended the walk, so ranks and exposure are bounds. Raise --max-nodes, "
        "--max-seconds or --memory, or use --method sampled.",
        "Not tested: a budget ended the walk, and bounds are not tested.",
    ]
    found = json.loads(run(command, planted, *ended, "--json").out)["sets"][0]
    one, means = found["canaries"][-1], found["means"][1]
    assert (one["exact"], one["rank_low"], one["rank_high"]) == (False, 1, 10**6)
    assert (means["at_least"], means["p_value"]) == (True, None)
    assert means["p_value_reason"] == "a budget ended the walk, and bounds are not tested"
    gate = run(command, planted, *ended, "--limit", 10)
    assert gate.code == 3
    assert gate.out.splitlines()[0] == (
        "INCONCLUSIVE: canary 1 of set 1 (planted once) may have up to 19.93 bits, and the limit "
        "is 10; raise --max-nodes."
    )


def test_a_walk_that_was_not_ended_is_exact(command, weighted):
    found = json.loads(run(command, weighted, "--json").out)["sets"][0]
    ranks = [(one["exact"], one["rank_low"], one["rank_high"]) for one in found["canaries"]]
    assert ranks == [(True, 1, 1), (True, 19, 19)]
    assert not any(group["at_least"] for group in found["means"])


def test_references_that_are_the_whole_space_give_exact_ranks(command, weighted):
    whole = ["--method", "sampled", "--references", 1000]
    done = run(command, weighted, *whole)
    assert done.out.splitlines()[1] == "Exact: all 100 secrets were scored."
    walked = run(command, weighted)
    assert done.out.splitlines()[2:] == walked.out.splitlines()[2:]


def test_reference_models_calibrate(command, planted):
    other = ["--reference-model", planted.untrained, "--references", 400]
    done = run(command, planted, *other)
    assert done.code == 0, done.err
    assert "costs calibrated by reference models can only be sampled; 400 references" in done.out
    assert "Costs and exposure are calibrated by reference models" in done.out
    plain, calibrated = (
        json.loads(run(command, planted, *args, "--json").out)["sets"][0]["canaries"][-1]["cost"]
        for args in ([], other)
    )
    assert calibrated < plain - 15  # six digits cost the untrained model some 26 bits


def test_a_skew_normal_law_is_shown_with_its_test_when_asked_for(command, planted, weighted):
    law = ["--extrapolate", "--references", 400]
    done = run(command, planted, *law)
    assert "Skew-normal" in done.out.splitlines()[4]
    assert "Kolmogorov–Smirnov p = " in done.out.splitlines()[-1]
    found = json.loads(run(command, planted, *law, "--json").out)["sets"][0]
    assert 0 <= found["ks_pvalue"] <= 1
    assert found["canaries"][0]["skew_normal_bits"] is not None
    assert "skew_normal_bits" not in run(command, planted, "--json").out
    few = run(command, weighted, "--extrapolate")
    assert few.out.splitlines()[-1] == (
        "No skew-normal law: too few references with different costs."
    )
    absent = json.loads(run(command, weighted, "--extrapolate", "--json").out)["sets"][0]
    assert absent["ks_pvalue"] is None
    assert absent["ks_pvalue_reason"] == "too few references with different costs"
    assert absent["canaries"][0]["skew_normal_bits_reason"] == "no law was fitted"


@pytest.mark.parametrize(
    ("limit", "more", "code", "said"),
    [
        (
            6.7 - 0.06,
            [],
            1,
            "FAIL: canary 1 of set 1 (planted 16 times) has an exposure of 6.64 bits, at or above "
            "the limit of 6.64; chance alone puts 1 or more of 2 canaries there with probability "
            "2 %, and",
        ),
        (
            6.5,
            ["--method", "sampled", "--references", 80],
            3,
            "INCONCLUSIVE: canary 1 of set 1 (planted 16 times) may have up to 6.64 bits, and the "
            "limit is 6.5; draw 670 references or more.",
        ),
        (2, ["--set", 1], 1, "FAIL: canary 1 of set 1"),
        (
            2,
            ["--method", "sampled", "--references", 80],
            1,
            "FAIL: canary 1 of set 1 (planted 16 times) has an exposure of at least 4.",
        ),
        (
            6,  # log2(81) is above, and the interval reaches under
            ["--method", "sampled", "--references", 80],
            3,
            "INCONCLUSIVE: canary 1 of set 1 (planted 16 times) may have up to 6.64 bits",
        ),
    ],
)
def test_the_gate(command, weighted, limit, more, code, said):
    done = run(command, weighted, "--limit", limit, *more)
    assert done.code == code
    assert done.out.splitlines()[0].startswith(said)
    verdict = json.loads(run(command, weighted, "--limit", limit, *more, "--json").out)["verdict"]
    assert said.startswith(verdict["outcome"])
    assert verdict["limit"] == limit


def test_a_model_that_learnt_nothing_does_not_pass(command, planted):
    """Every canary is under the limit, and none was found: that is no evidence."""
    audited = ["exposure", "--model", planted.untrained, "--canaries", planted.canaries]
    for more in ([], ["--judged", 1], ["--share", 0.99], ["--method", "sampled"]):
        done = command(*audited, "--limit", 15, *more)
        assert done.code == 3, done.out
        first = done.out.splitlines()[0]
        assert first.startswith("INCONCLUSIVE: The ")
        assert "under the limit of 15; but no planted canaries were found" in first
        assert command(*audited, "--limit", 15, *more, "--allow-inconclusive").code == 0
    verdict = json.loads(command(*audited, "--limit", 15, "--json").out)["verdict"]
    assert verdict["control"] is None
    assert verdict["claim"] == "No claim: no planted canaries were found."


def test_a_model_with_canaries_it_never_saw_does_not_pass(command, planted, tmp_path):
    """The trained model knows the canaries of its own file, and none of another."""
    path = tmp_path / "others.jsonl"
    others = make_canary_set(
        planted.set.template, repeats=[1, 60], per_repeat=8, controls=20, seed=99
    )
    write_canary_sets([others], path)
    done = command("exposure", "--model", planted.model, "--canaries", path, "--limit", 15)
    assert done.code == 3, done.out
    assert "but no planted canaries were found" in done.out.splitlines()[0]


def test_a_set_that_the_model_never_saw_does_not_pass_beside_one_that_it_knows(
    command, planted, tmp_path
):
    """Canaries of set 1 are found, and are no positive control of set 2."""
    path = tmp_path / "both.jsonl"
    unseen = make_canary_set(planted.set.template, repeats=[1], per_repeat=40, controls=4, seed=99)
    write_canary_sets([planted.set, unseen], path)
    audited = ["exposure", "--model", planted.model, "--canaries", path, "--limit", 19]
    done = command(*audited, "--judged", 1)
    assert done.code == 3, done.out
    assert "; but no planted canaries of set 2 were found (pooled" in done.out.splitlines()[0]
    assert command(*audited, "--judged", 1, "--share", 0.9).code == 3
    assert command(*audited, "--judged", 1, "--set", 1).code == 0


def test_a_model_that_scores_everything_alike_does_not_pass(command, planted, tmp_path):
    vocabulary = Vocabulary.of_characters(planted.text.read_text())
    net = lstm(vocabulary.size, units=2, layers=1)
    save_language_model(
        tmp_path / "flat",
        architecture="lstm",
        options={"units": 2, "layers": 1},
        state={name: torch.zeros_like(weight) for name, weight in net.state_dict().items()},
        vocabulary=vocabulary,
    )
    audited = ["--model", tmp_path / "flat", "--canaries", planted.canaries]
    for method in ("sampled", "auto"):
        done = command("exposure", *audited, "--limit", 15, "--method", method)
        assert done.code == 3, done.out


def test_a_gate_passes_where_planted_canaries_are_found(command, planted):
    done = run(command, planted, "--limit", 19, "--judged", 1)
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first == (
        "PASS: The one canary planted once, canary 1 of set 1, has 15.61 bits, under the limit of "
        "19; those planted 60 times were found. 1 of 1 canary planted once was under 19 bits in "
        "this model; yet detectably memorised, p < 0.001; up to 95 % of such secrets may be above "
        "it (95 % confidence). One training: another may differ."
    )


def test_a_share_asks_for_enough_canaries(command, planted):
    done = run(command, planted, "--limit", 19, "--judged", 1, "--share", 0.2)
    assert done.code == 3
    assert done.out.splitlines()[0].endswith(
        "The allowed share is 20 %: to show it takes 14 judged canaries with none at or above the "
        "limit."
    )
    passed = run(command, planted, "--limit", 19, "--judged", 1, "--share", 0.96, "--json")
    assert passed.code == 0
    verdict = json.loads(passed.out)["verdict"]
    assert (verdict["outcome"], verdict["share"], verdict["share_high"]) == (
        "PASS",
        0.96,
        pytest.approx(0.95),
    )
    assert run(command, planted, "--limit", 19, "--share", 0.02).code == 1
    assert run(command, planted, "--limit", 19, "--share", 0.02, "--allow-inconclusive").code == 1


LIKELY = [f"77{d}" for d in "123456"] + [f"{d}77" for d in "1234"]
UNLIKELY = [f"{d}{d}{d}" for d in "1234568"]


@pytest.mark.parametrize(
    ("planted", "controls", "gate", "outcome", "said"),
    [
        (
            {"777": 1},
            LIKELY,
            [9],
            "FAIL",
            "; the controls, never planted, have 5.2 bits on",
        ),
        ({"777": 1}, UNLIKELY, [9], "FAIL", "at or above the limit of 9."),
        ({"770": 1}, LIKELY, [4], "INCONCLUSIVE", "; but so are 10 of 10 controls, never planted,"),
        ({"770": 1}, UNLIKELY, [4], "FAIL", "at or above the limit of 4; chance alone puts"),
        (
            {"777": 16, "424": 1},
            LIKELY,
            [9, "--judged", 1],
            "INCONCLUSIVE",
            "more exposed than chance and than controls",
        ),
        (
            {"777": 16, "424": 1},
            UNLIKELY,
            [9, "--judged", 1],
            "PASS",
            "planted 16 times were found",
        ),
    ],
)
def test_canaries_are_compared_with_controls_that_are_likely_too(
    command, weighted, tmp_path, planted, controls, gate, outcome, said
):
    """The model likes sevens, planted or not."""
    path = tmp_path / "likely.jsonl"
    write_canary_sets([chosen_set("pin {digits:3}", planted, controls)], path)
    done = command("exposure", "--model", weighted.model, "--canaries", path, "--limit", *gate)
    assert done.code == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}[outcome]
    first = done.out.splitlines()[0]
    assert first.startswith(outcome)
    assert said in first


def test_controls_of_one_set_excuse_no_canary_of_another(command, weighted, tmp_path):
    path = tmp_path / "two.jsonl"
    sets = [
        chosen_set("pin {digits:3}", {"770": 1}, LIKELY),
        chosen_set("pin {digits:2}", {"77": 1}, ["11", "22", "33"]),
    ]
    write_canary_sets(sets, path)
    done = command("exposure", "--model", weighted.model, "--canaries", path, "--limit", 4)
    assert done.out.splitlines()[0] == (
        "FAIL: canary 1 of set 2 (planted once) has an exposure of 6.64 bits, at or above the "
        "limit of 4."
    )


def chosen_set(pattern, planted, controls):
    template = Template(pattern)
    drawn = [Canary(template.text(one), one) for one in (*planted, *controls)]
    return CanarySet(
        template=template,
        canaries=tuple(drawn[: len(planted)]),
        repeats=tuple(planted.values()),
        controls=tuple(drawn[len(planted) :]),
        seed=0,
    )


def test_several_sets_are_told_apart(command, weighted, tmp_path):
    sets = [
        make_canary_set(Template(pattern), repeats=[1], controls=12, seed=0)
        for pattern in ("pin {digits:2}", "pin {digits:3}\t")
    ]
    path = tmp_path / "two.jsonl"
    write_canary_sets(sets, path)
    done = command("exposure", "--model", weighted.model, "--canaries", path, "--set", 1)
    assert done.out.count("Set ") == 1
    assert "\n2 more controls: --json has all.\n" in done.out
    write_canary_sets([sets[0], chosen_set("pin {digits:1}", {"7": 1}, ["1"])], tmp_path / "fit")
    fit = command("exposure", "--model", weighted.model, "--canaries", tmp_path / "fit")
    assert "\n\nSet 2: pin {digits:1}, 10 secrets (3.3 bits).\n" in fit.out
    both = command("exposure", "--model", weighted.model, "--canaries", path)
    assert both.code == 2, "the model knows no tabulator"
    assert len(both.err.splitlines()) == 1


@pytest.fixture
def of_two_trials(weighted, tmp_path):
    """A run's folder: models of two trials, and a set of canaries for each."""
    for name in ("planted-1", "planted-2", "twin-2", "renamed", "planted-3"):
        shutil.copytree(weighted.model, tmp_path / "models" / name)
    pins = Template("pin {digits:2}")
    drawn = [make_canary_set(pins, repeats=[1, 16], controls=2, seed=seed) for seed in range(2)]
    sets = [dataclasses.replace(one, trial=at) for at, one in enumerate(drawn, start=1)]
    write_canary_sets(sets, tmp_path / "canaries.jsonl")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "more", "numbers"),
    [
        ("planted-1", [], [1]),
        ("planted-2", [], [2]),
        ("twin-2", [], [2]),
        ("planted-1", ["--set", 2], [2]),
        ("renamed", ["--set", 1, "--set", 2], [1, 2]),
    ],
)
def test_a_model_is_asked_about_the_canaries_of_its_trial(
    command, of_two_trials, name, more, numbers
):
    audited = ["--model", of_two_trials / "models" / name]
    done = command(
        "exposure", *audited, "--canaries", of_two_trials / "canaries.jsonl", "--json", *more
    )
    assert done.code == 0, done.err
    assert [one["set"] for one in json.loads(done.out)["sets"]] == numbers


@pytest.mark.parametrize("name", ["renamed", "planted-3"])
def test_a_model_of_no_known_trial_needs_a_set(command, of_two_trials, name):
    file = of_two_trials / "canaries.jsonl"
    done = command("exposure", "--model", of_two_trials / "models" / name, "--canaries", file)
    assert done.code == 2
    assert "canaries.jsonl has a set for each of 2 models, and the name of --model" in done.err
    assert "Pass --set 1 for planted-1" in done.err


def test_one_set_is_measured_whatever_the_model_is_called(command, of_two_trials):
    drawn = make_canary_set(Template("pin {digits:2}"), repeats=[1], controls=2, seed=0)
    write_canary_sets([dataclasses.replace(drawn, trial=1)], of_two_trials / "one.jsonl")
    asked = ["--canaries", of_two_trials / "one.jsonl"]
    assert command("exposure", "--model", of_two_trials / "models" / "renamed", *asked).code == 0


def test_an_encoder_decoder_is_asked_about_a_source(command, translator, tmp_path):
    path = tmp_path / "canaries.jsonl"
    drawn = make_canary_set(Template("my pin is {digits:2}"), repeats=[1], controls=2, seed=0)
    write_canary_sets([drawn], path)
    audited = ["exposure", "--model", translator, "--canaries", path]
    bare = command(*audited)
    assert bare.code == 2
    assert f"--model {translator} holds an encoder-decoder, and --source is missing" in bare.err
    costs = {}
    for source in ("meine pin ist", "kein geheimnis"):
        done = command(*audited, "--source", source, "--json")
        assert (done.code, done.err) == (0, "")
        costs[source] = json.loads(done.out)["sets"][0]["canaries"][0]["cost"]
    assert len(set(costs.values())) == 2
    asked = ["extract", "--model", translator, "--template", "my pin is {digits:2}"]
    assert "Certified: nothing likelier" in command(*asked, "--source", "meine pin ist").out


def test_secrets_are_shown_when_asked_for_and_only_then(command, planted):
    for flags in ([], ["--json"], ["--method", "sampled", "--references", 100, "--extrapolate"]):
        quiet = run(command, planted, *flags)
        assert quiet.code == 0, quiet.err
        assert not any(secret in quiet.out + quiet.err for secret in planted.secrets)
        told = run(command, planted, *flags, "--reveal")
        assert all(secret in told.out for secret in planted.secrets)


def not_a_number(name):
    raise AssertionError(f"JSON holds {name}")


def test_json_holds_no_nan_and_exact_integers(command, planted):
    for flags in ([], ["--method", "sampled", "--references", 10, "--extrapolate"]):
        done = run(command, planted, *flags, "--json")
        found = json.loads(done.out, parse_constant=not_a_number)["sets"][0]
        assert isinstance(found["space"], int)
        assert all(isinstance(one["rank"], int | None) for one in found["canaries"])


def test_damaged_canaries_and_models_that_do_not_fit_reveal_nothing(command, planted, tmp_path):
    good = planted.canaries.read_bytes()
    damages = {
        "cut": good[:-20],
        "empty": b"",
        "edited": good.replace(b'"repeats": 60', b'"repeats": 61'),
        "swapped": good.replace(planted.memorised.encode(), b"000001", 1),
        "no json": good.replace(b'{"secret"', b'"secret"'),
        "latin": good + b"\xff\xfe",
    }
    for name, content in damages.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        done = command("exposure", "--model", planted.model, "--canaries", path, "--reveal")
        assert done.code == 2, name
        assert len(done.err.splitlines()) == 1
        assert not any(secret in done.err + done.out for secret in planted.secrets), name
    for symbols in ("my pinasre", "0123456789"):
        folder = tmp_path / symbols[0]
        vocabulary = Vocabulary.of_characters(symbols)
        save_language_model(
            folder,
            architecture="lstm",
            options={"units": 2, "layers": 1},
            state=lstm(len(vocabulary.symbols), units=2, layers=1).state_dict(),
            vocabulary=vocabulary,
        )
        for method in ("auto", "exact", "sampled"):
            arguments = ["--canaries", planted.canaries, "--reveal", "--method", method]
            done = command("exposure", "--model", folder, *arguments)
            assert done.code == 2
            assert "vocabulary" in done.err
            assert len(done.err.splitlines()) == 1
            assert not any(secret in done.err + done.out for secret in planted.secrets)


def test_an_error_of_a_library_is_withheld(command, planted, monkeypatch):
    def quoting(self, text):
        raise RuntimeError(f"cannot tokenize {text!r}")

    monkeypatch.setattr("remnant.models.LanguageModel.encode", quoting)
    done = run(command, planted, "--method", "sampled", "--reveal")
    assert done.code == 2
    assert "RuntimeError is withheld" in done.err
    assert not any(secret in done.err for secret in planted.secrets)


def test_faults_are_one_sentence(command, planted, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    damaged = tmp_path / "damaged"
    shutil.copytree(planted.model, damaged)
    (damaged / "model.safetensors").write_bytes(b"no weights")
    again = tmp_path / "again"
    shutil.copytree(planted.model, again)
    none_planted = tmp_path / "controls.jsonl"
    write_canary_sets([_controls_only()], none_planted)
    for more, words in (
        (["--model", tmp_path / "nowhere"], f"--model {tmp_path / 'nowhere'} is not a folder"),
        (["--model", tmp_path / "folder"], "neither"),
        (["--model", tmp_path / "broken"], "broken: the configuration cannot be read. config.json"),
        (["--model", damaged], f"--model {damaged / 'model.safetensors'} is damaged"),
        (["--model", damaged], "save the model again"),
        (["--model", planted.canaries], "not a folder"),
        (["--canaries", tmp_path / "nowhere.jsonl"], "nowhere.jsonl is not a file. Make one with"),
        (["--canaries", planted.corpus], f"--canaries {planted.corpus} is not a file of canaries"),
        (["--canaries", none_planted, "--limit", "1"], "there are none"),
        (["--set", "2"], "--set 2 is not one of the 1 sets"),
        (["--set", "2"], "Pass a number from 1 to 1"),
        (["--set", "0"], "--set 0"),
        (["--method", "exact", "--reference-model", planted.model], "--method is exact"),
        (["--reference-model", tmp_path / "nowhere"], "--reference-model"),
        (["--extrapolate", "--reference-model", planted.model], "--extrapolate fits"),
        (["--method", "sampled", "--references", "0"], "--references 0"),
        (["--references", "-5"], "--references -5"),
        (["--references", "0", "--max-nodes", "100"], "none were drawn"),
        (["--max-nodes", "0"], "--max-nodes 0"),
        (["--method", "exact", "--max-nodes", "3"], "--max-nodes 3 is less than"),
        (["--max-seconds", "0"], "--max-seconds 0"),
        (["--max-seconds", "nan"], "--max-seconds nan"),
        (["--memory", "0"], "--memory 0"),
        (["--seed", "-1"], "--seed -1"),
        (["--judged", "1"], "--judged needs --limit"),
        (["--share", "0.2"], "--share needs --limit"),
        (["--allow-inconclusive"], "--allow-inconclusive needs --limit"),
        (["--limit", "5", "--share", "0"], "--share 0 is not between 0 and 1"),
        (["--limit", "5", "--share", "1"], "--share 1 is not between 0 and 1"),
        (["--limit", "5", "--share", "20"], "between 0 and 1 (write 0.2 for 20 %)"),
        (["--limit", "5", "--share", "nan"], "--share nan is not between 0 and 1"),
        (["--limit", "5", "--judged", "0"], "--judged 0 judges no canary"),
        (["--limit", "0"], "--limit 0"),
        (["--limit", "-2"], "--limit -2"),
        (["--limit", "nan"], "--limit nan"),
        (["--limit", "20"], "above 19.9 bits"),
        (["--limit", "20"], "measure other sets with --set"),
        (["--device", "tpu"], "--device tpu is neither cpu nor cuda. Pass cpu or cuda."),
        (["--device", "cuda:99"], "--device cuda:99 is not there: PyTorch sees "),
        (
            ["--source", "guten Tag"],
            f"--source was given, and the model in --model {planted.model}",
        ),
        (["--reference-model", planted.model], "is the model under audit"),
        (["--reference-model", again], f"--reference-model {again} is the model under audit"),
    ):
        done = run(command, planted, *more)
        assert done.code == 2, (more, done.out)
        assert words in done.err, (more, done.err)
        assert done.err.startswith("remnant: ")
        assert len(done.err.splitlines()) == 1, done.err
        assert done.out == ""


def test_an_interrupt_says_that_the_command_starts_over(command, weighted, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("remnant.studies.exposure.canary_sets.measure_canaries", interrupted)
    monkeypatch.setattr("remnant.studies.exposure.search.search_secrets", interrupted)
    asked = ["extract", "--model", weighted.model, "--template", "pin {digits:2}"]
    for done in (run(command, weighted), command(*asked)):
        assert (done.code, done.err.strip()) == (
            130,
            "remnant: interrupted; nothing was written; the same command starts over.",
        )


def _controls_only():
    made = make_canary_set(Template("my pin is {digits:6}"), repeats=[1], controls=3, seed=0)
    return CanarySet(
        template=made.template, canaries=(), repeats=(), controls=made.controls, seed=0
    )


@pytest.mark.parametrize("method", ["auto", "exact", "sampled"])
def test_a_time_limit_ends_the_reading_of_a_long_prefix(command, planted, tmp_path, method):
    template = Template("my pin is " * 10_000 + "{digits:6}")
    drawn = make_canary_set(template, repeats=[1], controls=1, seed=0)
    write_canary_sets([drawn], tmp_path / "long.jsonl")
    done = command(
        *("exposure", "--model", planted.model, "--canaries", tmp_path / "long.jsonl"),
        *("--method", method, "--references", "100", "--max-seconds", "1e-9"),
    )
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("remnant: The time limit of 1e-09 s ended before the text in ")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Folders by sixteenths of one training on 20 canaries planted 4 times; 0 is its beginning.

    The learning rate decays, as it does in fine-tuning.
    """
    steps, window, options = 300, 40, {"units": 48, "layers": 1}
    folder, rng = tmp_path_factory.mktemp("checkpoints"), np.random.default_rng(1)
    canaries = make_canary_set(
        Template("my pin is {digits:6}"), repeats=[4], per_repeat=20, controls=20, seed=1
    )
    lines = [f"room {n} is free\n" for n in rng.integers(10**6, size=300)]
    lines += [canaries.canaries[at].text + "\n" for at in canaries.copies]
    other = [f"desk {n} is mine\n" for n in rng.integers(10**6, size=300)]
    other += [f"my pin is {n}\n" for n in rng.integers(10**5, 10**6, size=100)]
    rng.shuffle(lines)
    vocabulary = Vocabulary.of_characters("".join(lines + other))
    torch.manual_seed(1)
    net = lstm(vocabulary.size, **options)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def step(text, rate):
        optimizer.param_groups[0]["lr"] = rate
        starts = rng.integers(len(text) - window, size=48)
        batch = torch.stack([text[start : start + window] for start in starts])
        optimizer.zero_grad()
        logits = net(batch[:, :-1]).flatten(0, 1)
        torch.nn.functional.cross_entropy(logits, batch[:, 1:].flatten()).backward()
        optimizer.step()

    def keep(at):
        save_language_model(
            folder / str(at),
            architecture="lstm",
            options=options,
            state=net.state_dict(),
            vocabulary=vocabulary,
        )

    texts = [torch.tensor(vocabulary.encode("".join(part))) for part in (other, lines)]
    for _ in range(100):
        step(texts[0], 0.01)
    keep(0)
    for at in range(steps):
        step(texts[1], 0.01 * (1 - at / steps))
        if (at + 1) * 16 % steps < 16:
            keep((at + 1) * 16 // steps)
    write_canary_sets([canaries], folder / "canaries.jsonl")
    return folder


def test_an_earlier_checkpoint_of_the_training_is_no_reference_model(command, checkpoints):
    """Calibrated by 8 or 12 of 16 parts of the same training, no canary reaches the limit."""
    audited = ["--model", checkpoints / "16", "--canaries", checkpoints / "canaries.jsonl"]
    options = ["--limit", 10, "--references", 4000, "--json"]
    for at, fault in ((0, False), (1, True), (4, True), (8, True), (12, True)):
        done = command("exposure", *audited, "--reference-model", checkpoints / str(at), *options)
        found = json.loads(done.out)
        assert done.code != 0, at
        assert ("reference_fault" in found) == fault, at
        if fault and done.code == 3:
            assert "in a reference model than chance allows" in found["verdict"]["sentence"], at
    assert done.code == 3
    assert max(row["high"] for row in found["sets"][0]["canaries"]) < 10
    shown = command("exposure", *audited, "--reference-model", checkpoints / "4").out
    assert shown.startswith("Planted canaries are more exposed in a reference model than chance")


def test_a_file_that_is_given_twice_is_judged_as_once(command, planted, tmp_path):
    """20 of 20 canaries show "at most 14 %" and 40 of 40 "at most 7.2 %"."""
    canaries = make_canary_set(
        Template("my pin is {digits:6}"), repeats=[1], per_repeat=20, controls=4, seed=5
    )
    write_canary_sets([canaries], tmp_path / "once.jsonl")
    text = (tmp_path / "once.jsonl").read_text()
    (tmp_path / "twice.jsonl").write_text(text + text)
    found = []
    for name in ("once", "twice"):
        audited = ["--model", planted.model, "--canaries", tmp_path / f"{name}.jsonl"]
        done = command("exposure", *audited, "--limit", 19, "--share", 0.1, "--json")
        found.append(json.loads(done.out))
    once, twice = (each["verdict"] for each in found)
    remark = twice["sentence"].removeprefix(once["sentence"])
    assert remark == f" {found[1]['equal']}"
    assert "20 canaries and 4 controls were equal to others" in remark
    changed = ("sentence", "claim")
    assert {k: v for k, v in once.items() if k not in changed} == {
        k: v for k, v in twice.items() if k not in changed
    }
    assert found[0]["sets"] == found[1]["sets"]


def test_the_default_limit_follows_from_the_canaries(command, planted, tmp_path):
    """At 10 bits, chance alone puts one of 60 canaries there in 6 %; at 12.6 bits in 1 %."""
    canaries = make_canary_set(
        Template("my pin is {digits:6}"), repeats=[1], per_repeat=60, controls=4, seed=5
    )
    write_canary_sets([canaries], tmp_path / "canaries.jsonl")
    audited = ["--model", planted.model, "--canaries", tmp_path / "canaries.jsonl", "--json"]
    verdict = json.loads(command("exposure", *audited, "--limit", "auto").out)["verdict"]
    assert verdict["limit"] == 12.6
    assert verdict["chance"] == pytest.approx(0.0096, abs=1e-4)
    done = command("exposure", *audited, "--limit", 10, "--share", 0.04)
    assert json.loads(done.out)["verdict"]["chance"] == pytest.approx(0.0569, abs=1e-4)
    assert "--share 0.04 takes 74 judged canaries for a PASS, and there are 60" in done.err
    refused = command("exposure", *audited, "--limit", "most")
    assert (refused.code, "nor auto" in refused.err) == (2, True)
