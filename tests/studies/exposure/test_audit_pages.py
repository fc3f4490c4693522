"""What ``remnant exposure`` and ``remnant extract`` measure, as results with pages."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from remnant.canaries import Template, read_canary_sets
from remnant.cli.options.naming import named
from remnant.cli.redaction import hidden
from remnant.models import load_language_model
from remnant.records.typed import plain
from remnant.report.blocks import Headline
from remnant.report.numerals import printable, whole_text
from remnant.studies.exposure.audit_page import exposure_page
from remnant.studies.exposure.audit_result import ExposureAuditResult, audited_set
from remnant.studies.exposure.canary_sets import judge_sets, measure_canaries
from remnant.studies.exposure.extract_page import extract_page
from remnant.studies.exposure.extract_result import extract_result
from remnant.studies.exposure.search import Decoding, Leak, SecretSearch, search_secrets

WAYS = {
    "exact": {},
    "sampled": {"method": "sampled", "references": 60},
    "cut": {"method": "exact", "max_nodes": 40},
    "law": {"method": "sampled", "references": 300, "fit": True},
    "apart": {"max_nodes": 40, "references": 200},
    "few": {"method": "sampled", "references": 2},
}


@pytest.fixture(scope="module")
def model(exact_folder):
    return load_language_model(exact_folder / "models" / "planted-1")


@pytest.fixture(scope="module")
def drawn(exact_folder):
    (drawn,) = read_canary_sets(exact_folder / "canaries.jsonl")
    return drawn


def rename(text):
    return named(text, method="--method", shared_references="--references")


@pytest.fixture(params=list(WAYS))
def measured(request, model, drawn):
    options = WAYS[request.param]
    exposure = measure_canaries(model, drawn, rng=np.random.default_rng(0), **options)
    return exposure, options.get("fit", False)


@pytest.mark.parametrize("reveal", [False, True])
def test_the_plain_data_are_what_was_measured(measured, drawn, reveal):
    exposure, fit = measured
    audited = audited_set(1, drawn, exposure, extrapolate=fit, reveal=reveal, rename=rename)
    verdict = judge_sets({1: exposure}, limit=5.0)
    result = plain(ExposureAuditResult(sets=(audited,), verdict=verdict))
    (data,) = json.loads(json.dumps(result, allow_nan=False))["sets"]
    expected = dataclasses.asdict(verdict)
    assert isinstance(expected["detected"], bool)
    assert result["verdict"] == expected
    assert (data["template"], data["space"]) == (drawn.template.pattern, drawn.template.space)
    assert (data["method"], data["nodes"]) == (exposure.method, exposure.nodes)
    assert not data["reason"].startswith(("exact: ", "sampled, because ", "method="))
    rows = [*data["canaries"], *data["controls"]]
    assert len(data["canaries"]) == len(drawn.canaries)
    secrets = [canary.secret for canary in (*drawn.canaries, *drawn.controls)]
    for row, canary, secret in zip(rows, exposure.each, secrets, strict=True):
        kept = {"name", "repeats", "method", "exact", "bits", "low", "rank", "saturated", "cost"}
        shown = {name: row[name] for name in kept}
        assert shown == {name: getattr(canary, name) for name in kept}
        assert row.get("secret") == (secret if reveal else None)
        assert ("secret" in row, "skew_normal_bits" in row) == (reveal, fit)
        assert ("rank_low" in row) is (canary.rank is not None)
    assert ("ks_pvalue" in data) is fit
    for mean, group in zip(data["means"], exposure.groups, strict=True):
        assert (mean["repeats"], mean["n"], mean["mean_low"], mean["p_value"]) == (
            group.repeats,
            group.n,
            group.mean_low,
            group.p_value,
        )
        assert ("p_value_reason" in mean) is (group.p_value is None)


@pytest.mark.parametrize("share", [None, 0.3])
def test_every_number_is_on_the_page_and_no_secret(measured, drawn, share, all_text):
    exposure, fit = measured
    verdict = judge_sets({1: exposure}, limit=5.0, share=share)
    audited = audited_set(1, drawn, exposure, extrapolate=fit, rename=rename)
    blocks = list(exposure_page(ExposureAuditResult(sets=(audited,), verdict=verdict)))
    shown = all_text(blocks, "show")
    for canary in exposure.each[: len(drawn.canaries) + 10]:
        bits = canary.bits if canary.at_least is None else canary.at_least
        assert f"{bits:.2f}" in shown
        assert f"{canary.cost:.2f}" in shown
        if canary.rank is None:
            assert f"{canary.low:.2f} to {canary.high:.2f}" in shown
        else:
            assert whole_text(canary.rank).replace("\u202f", " ") in shown
    for group in exposure.groups:
        assert f"{group.mean_low:.2f}" in shown
        assert group.p_value is None or f"{group.p_value:.2g}" in shown
    for canary in (*drawn.canaries, *drawn.controls):
        assert canary.text not in shown
    headline = blocks[0]
    assert isinstance(headline, Headline)
    assert headline.sentence == verdict.sentence
    assert headline.reading.limit == (5.0 if share is None else share)


def test_a_walk_that_was_cut_short_gives_bounds(model, drawn, all_text):
    exposure = measure_canaries(model, drawn, rng=np.random.default_rng(0), **WAYS["cut"])
    made = audited_set(1, drawn, exposure)
    assert made.ended
    text = all_text(exposure_page(ExposureAuditResult(sets=(made,), verdict=None)))
    assert "A budget ended the walk, so ranks and exposure are bounds." in text
    assert "at most " in text
    assert "at least " in text


def test_secrets_are_shown_only_where_they_may_be(model, drawn, all_text):
    exposure = measure_canaries(model, drawn, rng=np.random.default_rng(0))
    for reveal in (False, True):
        made = audited_set(1, drawn, exposure, reveal=reveal)
        blocks = list(exposure_page(ExposureAuditResult(sets=(made,), verdict=None)))
        assert ("\nSecret\n" in all_text(blocks)) is reveal


@pytest.fixture(params=["certified", "greedy"])
def search(request, model, drawn):
    return search_secrets(
        model,
        drawn.template,
        rng=np.random.default_rng(0),
        method=request.param,
        top=3,
        decodings=[Decoding(), Decoding(temperature=0.5, top_k=1)],
    )


@pytest.mark.parametrize("reveal", [False, True])
@pytest.mark.parametrize("compared", [False, True])
def test_a_search_as_plain_data_and_as_a_page(search, drawn, reveal, compared, all_text):
    sets = [drawn] if compared else []
    result = extract_result(
        drawn.template, search, sets, hidden=hidden(drawn.template), reveal=reveal
    )
    data = json.loads(json.dumps(plain(result), allow_nan=False))
    proof = "certified: nothing" if search.certified else "not certified: greedy proves nothing ("
    assert data["sentence"].startswith(proof)
    assert "hidden" not in data
    text = all_text(extract_page(result), "show")
    for row, (secret, bits) in zip(data["candidates"], search.candidates, strict=True):
        assert (row["bits"], row["probability"]) == (bits, 2.0**-bits)
        assert row.get("secret") == (secret if reveal else None)
        assert ("canary" in row) is compared
        assert f"{bits:.2f}" in text
        assert f"{2.0**-bits:.2g}" in text
        assert (f"\n{secret}\n" in text) is reveal
    for row, leak in zip(data["queries"], search.leaks, strict=True):
        assert (row["queries_50"], row["queries_99"]) == (leak.queries_half, leak.queries_nearly)
    assert (hidden(drawn.template) in text) is not reveal
    assert ("canary 2 of set 1, planted 40 times" in text) is compared


def test_a_search_that_a_budget_ended_is_not_certified(model, drawn):
    ended = search_secrets(model, drawn.template, rng=np.random.default_rng(0), max_nodes=20)
    result = extract_result(drawn.template, ended, hidden="●")
    assert not result.certified
    assert result.sentence.startswith("not certified: a budget ended the search (")


def test_a_probability_beyond_floating_point_is_a_power_of_two(all_text):
    far = SecretSearch(
        candidates=(("123", 5000.4), ("124", float("inf"))),
        certified=False,
        method="beam",
        nodes=1,
        tolerance=0.0,
        leaks=(Leak(Decoding(), None, 10**40, None, "the number is beyond floating point"),),
    )
    template = Template("key {digits:3}")
    result = extract_result(template, far, hidden="●●●")
    text = all_text(extract_page(result))
    for words in ("2^-5000", "about 2^132", "the number is beyond floating point", "●●●"):
        assert words in text
    assert plain(result)["candidates"][1]["bits_reason"] == "the model gives it no probability"


def test_numbers_of_any_size_and_secrets_in_print():
    assert whole_text(10**6).replace("\u202f", " ") == "1 000 000"
    assert whole_text(10**20).replace("\u202f", " ") == "100 000 000 000 000 000 000"
    assert whole_text(10**5000) == "about 2^16609"
    assert (printable("ab"), printable("a\n")) == ("ab", '"a\\n"')


def test_a_secret_with_spaces_that_a_cell_would_lose_is_spelled_out(all_text):
    spaced = SecretSearch(
        candidates=(("a  b", 1.0), ("a\N{NON-BREAKING HYPHEN}b", 2.0), ("a b", 3.0)),
        certified=False,
        method="beam",
        nodes=1,
        tolerance=0.0,
        leaks=(),
    )
    template = Template("{choice:a  b|a\N{NON-BREAKING HYPHEN}b|a b}")
    result = extract_result(template, spaced, hidden="●", reveal=True)
    text = all_text(extract_page(result))
    for shown in (r'"a \u0020b"', r'"a\u2011b"', "\na b\n"):
        assert shown in text
