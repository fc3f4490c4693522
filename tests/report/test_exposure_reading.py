"""An exposure record is read whole; what is missing is a reason, what is malformed is named."""

from __future__ import annotations

import pytest

from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import read_view, read_views
from remnant.report.exposure_view import ExposureView
from remnant.report.forgetting_view import ForgettingView
from remnant.report.run_view import LanguageTask, NotMeasured

ALL = ("verdict", "exposure", "repeats", "costs", "extraction", "task", "scope")


def test_a_full_record_is_read_whole(make_exposure):
    found = read_view(Record.open(make_exposure()))
    assert isinstance(found, ExposureView)
    assert (found.name, found.question, found.verdict.limit) == ("keys", "exposure", 10.0)
    assert (found.exposure.space, found.exposure.method) == (10**6, "exact")
    assert (len(found.exposure.canaries), len(found.exposure.controls)) == (24, 16)
    assert [level.repeats for level in found.repeats] == [0, 1, 4, 16, 64]
    assert len(found.costs.edges) == len(found.costs.counts) + 1
    assert (found.costs.skew_normal.shape, found.costs.ks_pvalue) == (-1.6, 0.37)
    assert [search.certified for search in found.extraction] == [True, False]
    assert found.extraction[0].candidates[2].canary is None
    assert found.task == LanguageTask(2.213, 40_000, "character", 6.6)


def test_the_highest_is_the_one_planted_least_of_the_most_exposed(make_exposure):
    found = read_view(Record.open(make_exposure())).exposure
    first = [one for one in found.canaries if one.rank == 1]
    assert len(first) > 1
    assert found.highest in first
    assert found.highest.repeats == min(one.repeats for one in first)


def test_means_are_those_of_the_rows(make_exposure):
    found = read_view(Record.open(make_exposure()))
    never = found.repeats[0]
    assert found.exposure.controls_mean == pytest.approx(never.mean_bits)
    canaries = found.exposure.canaries
    assert found.exposure.twin_mean == pytest.approx(sum(c.twin_bits for c in canaries) / 24)
    ranked = found.exposure.ranked
    assert [one.repeats for one in ranked] == sorted((o.repeats for o in ranked), reverse=True)
    assert {one.name for one in ranked[-16:]} == {f"control {i}" for i in range(1, 17)}


def test_a_space_beyond_any_float_is_kept_exactly(make_exposure):
    space = 267_735**70 + 1
    folder = make_exposure(change={"exposure": {"space": space}})
    assert read_view(Record.open(folder)).exposure.space == space


def test_what_was_not_measured_is_a_reason(make_exposure):
    found = read_view(Record.open(make_exposure(without=ALL, absent=(("costs", "no time"),))))
    assert (
        found.exposure == found.repeats == found.extraction == NotMeasured("this run recorded none")
    )
    assert found.costs == NotMeasured("no time")


@pytest.mark.parametrize(
    ("name", "entries", "reason"),
    [
        ("exposure", {"canaries": [], "controls": []}, "it holds no canary"),
        ("costs", {"counts": [0], "edges": [0.0, 1.0]}, "no reference with a finite cost"),
        ("extraction", {"searches": []}, "no search was made"),
    ],
)
def test_an_empty_result_is_not_measured(make_exposure, name, entries, reason):
    found = getattr(read_view(Record.open(make_exposure(change={name: entries}))), name)
    assert isinstance(found, NotMeasured)
    assert found.reason.startswith(reason)


def test_a_canary_without_probability_has_no_place_in_the_histogram(make_exposure):
    marked = [
        {"name": "canary 1", "repeats": 1, "cost": None, "bits": 0.2},
        {"name": "canary 2", "repeats": 4, "cost": 8.5, "bits": 9.0},
    ]
    found = read_view(Record.open(make_exposure(change={"costs": {"marked": marked}}))).costs
    assert ([one.name for one in found.marked], found.unmarked) == (["canary 2"], ("canary 1",))


@pytest.mark.parametrize(
    ("name", "entries", "words"),
    [
        ("exposure", {"space": 1.5}, "exposure.space is a float, no whole number"),
        ("exposure", {"method": "guessed"}, "exposure.method is neither exact nor sampled"),
        ("exposure", {"canaries": [{"name": "canary 1"}]}, r"canaries\[0\].bits is missing"),
        ("exposure", {"controls": None}, "exposure.controls is missing, no list"),
        ("repeats", {"n": [1]}, "repeats.n has 1 entries for 5 repeats"),
        ("repeats", {"repeats": [0, 4, 1, 16, 64]}, "repeats.repeats do not rise"),
        ("costs", {"counts": [1, 2]}, "costs.edges has 41 entries for 2 counts"),
        ("costs", {"edges": [1.0, 0.0], "counts": [3]}, "costs.edges do not rise"),
        ("costs", {"skew_normal": {"shape": 1, "location": 0}}, "skew_normal.scale is missing"),
        (
            "costs",
            {"skew_normal": {"shape": 1, "location": 0, "scale": 0}},
            "skew_normal.scale is not above 0",
        ),
        ("extraction", {"searches": [{"member": "m"}]}, r"searches\[0\].certified is missing"),
        ("task", {"validation_tokens": None}, "int"),
    ],
)
def test_a_malformed_result_is_named(make_exposure, name, entries, words):
    folder = make_exposure(change={name: entries})
    with pytest.raises(RecordError, match=f"malformed result '{name}': .*{words}"):
        read_view(Record.open(folder))


def test_all_faults_of_a_result_are_listed_and_no_value_is_told(make_exposure):
    candidates = [{"bits": "281265017", "canary": 281265017}]
    search = {"member": "m", "certified": "281265017", "nodes": 1, "space": 1}
    folder = make_exposure(
        change={"extraction": {"searches": [search | {"candidates": candidates}]}}
    )
    with pytest.raises(RecordError) as caught:
        read_view(Record.open(folder))
    for words in ("certified is a str", "bits is a str", "canary is an int"):
        assert words in str(caught.value)
    assert "281265017" not in str(caught.value)


def test_an_unknown_question_is_refused(make_run):
    with pytest.raises(RecordError, match=r"'weather'; .* text-prediction(,| and) unique-features"):
        read_view(Record.open(make_run(question="weather")))


def test_a_folder_is_read_with_the_runs_directly_under_it(make_run, make_exposure, tmp_path):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    make_run(name="demo/again")
    make_run(name="demo/keys/deeper")
    found = read_views(tmp_path / "demo")
    assert [(view.name, type(view)) for view in found] == [
        ("demo", ForgettingView),
        ("again", ForgettingView),
        ("keys", ExposureView),
    ]


def test_a_folder_with_runs_under_it_needs_none_of_its_own(make_run, make_exposure, tmp_path):
    make_exposure(name="runs/keys")
    make_run(name="runs/digits")
    assert [view.name for view in read_views(tmp_path / "runs")] == ["digits", "keys"]


def test_a_folder_without_any_run_says_so(tmp_path):
    with pytest.raises(RecordError, match="holds no record"):
        read_views(tmp_path)
    with pytest.raises(RecordError, match="does not exist"):
        read_views(tmp_path / "nowhere")


def test_a_damaged_run_under_the_folder_is_named(make_run, tmp_path):
    make_run(name="demo")
    broken = tmp_path / "demo" / "broken"
    broken.mkdir()
    (broken / "record.sqlite").write_bytes(b"nothing of ours" * 100)
    with pytest.raises(RecordError, match="broken"):
        read_views(tmp_path / "demo")
