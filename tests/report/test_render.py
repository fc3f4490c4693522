"""One file, nothing outside it, everything escaped; and the same in a terminal."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from remnant.errors import InvalidInput, RecordError
from remnant.records import Record, gate_row
from remnant.records.listing import summarise
from remnant.report import curve_text, read_view, summary_text, write_curve_page, write_report
from remnant.report.render import render

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'
DECIDED = ("decision", "hidden", "returning")
VOID = {"meta", "link", "img", "br", "hr", "input"}


class _Page(HTMLParser):
    """Collects tags and text, and sees that every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data.replace("\u202f", " ")


@pytest.fixture
def page(make_run) -> str:
    return render(Record.open(make_run()))


def test_the_page_is_well_formed_and_refers_to_nothing(page):
    found = _Page(page)
    assert found.open == []
    assert not {"script", "link", "img", "iframe", "object", "a", "base"} & set(found.tags)
    assert not {name for name, _ in found.attributes} & {"src", "href", "srcset", "style"}
    assert "http" not in page.replace("http-equiv", "")
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_ids_are_unique_and_labels_point_to_them(page):
    attributes = _Page(page).attributes
    ids = [value for name, value in attributes if name == "id"]
    named = {v for name, value in attributes if name == "aria-labelledby" for v in value.split()}
    assert len(ids) == len(set(ids))
    assert named <= set(ids)


def test_the_verdict_comes_first_then_every_section(page):
    text = _Page(page).text
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert "PASS" in headings[0]
    assert text.index("Under the limit at the last step watched") < text.index("In plain words")
    for words in (
        "Precision at FPR 10 % at chosen lags",
        "A/A twins",
        "not reached in the 400 steps watched",
        "Once against ten times",
        "AUC",
        "Loss on the canaries",
        "Examples shown more than once, or again later.",
        "gives 90.9 %",
        "What to decide",
        "the last 16 000 examples",
        "42 steps (30 to 57)",
        "This lies within the steps that were measured.",
        "Gone or only hidden?",
        "comes back: found better than before",
        "What an attack does not find may only be hidden; this was searched for by weight noise, "
        "relearning on similar examples and a scan of later checkpoints.",
        "21 were clearly found at a later one; so were 9 in models that never saw them",
        "Planted twins, smoothed",
        "Heuristic ε in nats",
        "Lag 0 (90.0 %) holds by construction",
        "The first lag at which the attack can fail is 1.",
        "A two-sided interval: if the whole audit",
        "by one-sided 95 % bounds",
        "Guessing gives 50.0 %",
        "3f9c2d7be4a1905c6f",
        "torch 2.13.0",
        "mislabelled",
    ):
        assert words in text, words


def test_an_exposure_page_is_well_formed_and_has_every_section(make_exposure):
    page = render(Record.open(make_exposure()))
    found = _Page(page)
    assert found.open == []
    assert not {"script", "link", "img", "iframe", "object", "a", "base"} & set(found.tags)
    headings = [re.sub("<[^>]*>", "", h) for h in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]
    assert headings == [
        "FAIL A canary judged is more exposed than allowed",
        "In plain words",
        "How exposed it is",
        "Where the canaries stand among random secrets",
        "What can be extracted",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    for words in (
        "Nothing likelier exists among 1 000 000 secrets: 812 nodes were enough to prove it.",
        "first of 1 000 000 secrets",
        "chance gives 1.44, two bits is noise",
        "2 of 24 planted secrets (proven)",
        "Rank of 1 000 000",
        "2.21 bits a character",
    ):
        assert words in found.text, words


def test_every_canary_has_its_row(make_exposure):
    page = render(Record.open(make_exposure()))
    view = read_view(Record.open(make_exposure(name="again")))
    rows = re.findall(r'<tr><th scope="row">(c\w+ \d+)</th>(.*?)</tr>', page)
    assert [name for name, _ in rows] == [one.name for one in view.exposure.ranked]
    top = view.exposure.ranked[0]
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", rows[0][1])]
    assert cells == [
        *("19.93", "64", "192", "1", f"{top.twin_bits:.2f}", f"{top.cost:.2f}"),
        *(f"{top.skew_normal_bits:.2f}", str(top.trial + 1)),
    ]


def test_an_empty_exposure_record_is_shown_as_not_measured(make_exposure):
    names = ("verdict", "exposure", "repeats", "costs", "extraction", "scope")
    absent = (("extraction", "the template cannot be walked"),)
    page = render(Record.open(make_exposure(without=names, absent=absent)))
    text = _Page(page).text
    for words in (
        "No verdict",
        "Exposure: not measured: this run recorded none.",
        "Exposure against repeats: not measured: this run recorded none.",
        "Costs of the references: not measured: this run recorded none.",
        "Extraction: not measured: the template cannot be walked.",
    ):
        assert words in text, words
    assert "<svg" not in page
    assert 'class="tiles"' not in page


def test_text_of_an_exposure_record_is_escaped(make_exposure):
    search = {
        "member": HOSTILE,
        "certified": True,
        "nodes": 1,
        "space": 10,
        "candidates": [{"bits": 1.0, "canary": HOSTILE, "repeats": 2}],
    }
    folder = make_exposure(
        change={
            "exposure": {"template": HOSTILE + "{digits:6}", "reason": HOSTILE},
            "costs": {
                "member": HOSTILE,
                "marked": [
                    {"name": HOSTILE, "repeats": 1, "cost": 20.0, "bits": 1.0},
                    {"name": HOSTILE, "repeats": 1, "cost": None, "bits": 1.0},
                ],
            },
            "extraction": {"searches": [search]},
            "task": {"token": HOSTILE},
        }
    )
    page = render(Record.open(folder))
    assert "<script" not in page
    assert "<img" not in page
    text = _Page(page).text
    assert f"What was planted reads {HOSTILE}{{digits:6}};" in text
    assert text.count(HOSTILE) > 8


def test_a_one_run_page_is_well_formed_and_has_every_section(make_one_run):
    page = render(Record.open(make_one_run()))
    found = _Page(page)
    assert found.open == []
    assert not {"script", "link", "img", "iframe", "object", "a", "base"} & set(found.tags)
    headings = [re.sub("<[^>]*>", "", h) for h in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]
    assert headings == [
        "PASS Within the limit at the end of this one run",
        "In plain words",
        "What the attacker still finds as the run goes on",
        "What planting did to the model’s confidence",
        "What was tested, and what was not",
        "How to read this",
        "When the canaries were used",
        "What was run",
    ]
    for words in (
        "One-run forgetting report staggered",
        "454 steps after last use",
        "5.9 % to 23.9 %; planted 8 times, from step 100",
        "This is one run: the intervals say how much other canaries would change these numbers",
        "no relearning was run",
        "Every window and checkpoint (18 rows)",
        "If only the lag mattered, lines of one colour would lie on each other",
        "The trained model is right on 96.3 %",
        "3f9c2d7be4a1905c6f",
        "mlp1",
    ):
        assert words in found.text, words
    assert "forgotten" not in page


def test_every_row_of_one_run_is_in_its_table(make_one_run):
    page = render(Record.open(make_one_run()))
    table = page[page.index("<details>") : page.index("</details>")]
    rows = re.findall(r'<tr><th scope="row">(.*?)</tr>', table)
    cells = [re.sub("</t.>(<td>)?", "|", row).replace("\u202f", " ") for row in rows]
    assert len(cells) == 18
    assert re.sub("<[^>]*>", "", cells[6]) == ("100|8×|4|87.8 %|79.8 %|97.8 %|3.11 (2.61 to 3.61)|")


def test_a_one_run_page_without_effect_or_with_disagreeing_windows(make_one_run):
    rows = 18
    change = {key: [None] * rows for key in ("effect", "effect_low", "effect_high")}
    low, high = [0.1] * 12 + [0.5] * 6, [0.2] * 12 + [0.6] * 6
    page = render(Record.open(make_one_run(change=change | {"low": low, "high": high})))
    assert "Effect of planting: not measured" in page
    assert '<th scope="col">Effect</th>' not in page
    assert '<p class="notice">The windows do not agree.' in page


def test_an_empty_one_run_record_is_shown_as_not_measured(make_one_run):
    names = ("verdict", "one_run", "task", "scope")
    page = render(Record.open(make_one_run(without=names, absent=(("one_run", "no time"),))))
    text = _Page(page).text
    for words in (
        "No verdict",
        "What an attacker finds in this run was not measured: no time.",
        "Attack success: not measured: no time.",
        "Scope: not measured: this run recorded none.",
        "It is over canaries, not over runs",
    ):
        assert words in text, words
    assert "<svg" not in page
    assert 'class="tiles"' not in page


def test_text_of_a_one_run_record_is_escaped(make_one_run):
    folder = make_one_run(
        plan={"plan": {HOSTILE: HOSTILE}},
        change={"method": HOSTILE},
        results={
            "verdict": gate_row(
                outcome="FAIL", sentence=HOSTILE, claim="Claimed.", limit=0.5, lag=1
            ),
            "scope": {"tested": [HOSTILE], "not_tested": [HOSTILE]},
        },
    )
    page = render(Record.open(folder))
    assert "<script" not in page
    assert "<img" not in page
    assert _Page(page).text.count(HOSTILE) == 6


def test_a_prediction_page_is_well_formed_and_has_every_section(make_prediction):
    page = render(Record.open(make_prediction()))
    found = _Page(page)
    assert found.open == []
    assert not {"script", "link", "img", "iframe", "object", "a", "base"} & set(found.tags)
    ids = [value for name, value in found.attributes if name == "id"]
    labels = [value for name, value in found.attributes if name == "aria-labelledby"]
    assert len(ids) == len(set(ids))
    assert {one for label in labels for one in label.split()} <= set(ids)
    headings = [re.sub("<[^>]*>", "", h) for h in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]
    assert headings == [
        "FINDING A short list holds most memorised samples",
        "In plain words",
        "How good each predictor is",
        "When to look",
        "Where to look, and what counts as memorised",
        "Is the truth stable?",
        "Which samples to protect",
        "What was tested, and what was not",
        "How to read this",
        "What was run",
    ]
    for words in (
        "Prediction of memorisation report early",
        "epochs; median loss down by 95.3 %",
        "stated to miss at most 18.7 %; held on another run",
        "FPR at TPR 75 %",
        "one model, early",
        "AUC in other runs",
        "Every moment (60 rows)",
        "AUC at the stop, by layer",
        "AUC at the stop, by LiRA’s threshold",
        "Do the truths rank 1 000 samples alike? (Spearman)",
        "By kind of sample, of those the first model looked at was trained on",
        "What it does not mean",
        "The 25 samples of highest risk, by PSMI at the stop",
        "3f9c2d7be4a1905c6f",
    ):
        assert words in found.text, words


def test_every_predictor_moment_and_risky_sample_has_its_row(make_prediction):
    folder = make_prediction()
    page, view = render(Record.open(folder)), read_view(Record.open(folder))
    tables = [
        [
            [re.sub("<[^>]*>", "", cell).replace("\u202f", " ") for cell in cells]
            for row in re.findall(r"<tr>(<th scope=.row.*?)</tr>", table)
            for cells in [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        ]
        for table in re.findall(r"<table class=.numbers.>(.*?)</table>", page, re.DOTALL)
    ]
    quality, moments, layers, thresholds, agreed, kinds, flagged, risky = tables
    rows = view.prediction.quality
    assert [cells[0].split(" ")[0] for cells in quality] == [
        *("PSMI", "Loss", "Logit", "Mahalanobis", "LT-IQR", "Early")
    ]
    auc, psmi = rows[0].auc, rows[0]
    assert quality[0][1] == f"{auc.value:.3f} {auc.low:.3f} to {auc.high:.3f}"
    assert quality[0][4].startswith(f"{100 * psmi.default_tpr.value:.1f} % ")
    assert quality[1][4:6] == ["–", "–"]
    assert quality[0][6] == f"{auc.value - 0.02:.3f} to {auc.value + 0.01:.3f}"
    assert (len(moments), len(thresholds), len(agreed), len(risky)) == (60, 5, 3, 25)
    assert [cells[0] for cells in layers] == ["first", "middle", "last"]
    assert thresholds[2][1].startswith(f"{rows[0].n_memorised} ")
    assert [cells[0] for cells in kinds] == [cells[0] for cells in flagged]
    first = view.protect.samples[0]
    said = "yes" if first.memorised else "no"
    assert risky[0] == [str(first.example), first.kind, str(first.label), f"{first.risk:.2f}", said]


def test_an_empty_prediction_record_is_shown_as_not_measured(make_prediction):
    names = ("verdict", "prediction", "truth", "protect", "task", "scope")
    absent = (("prediction", "no time"), ("protect", "nothing was memorised"))
    page = render(Record.open(make_prediction(without=names, absent=absent)))
    text = _Page(page).text
    for words in (
        "No verdict",
        "How well memorisation can be predicted was not measured: no time.",
        "Prediction: not measured: no time.",
        "What was memorised in the end: not measured: this run recorded none.",
        "Protect list: not measured: nothing was memorised.",
        "Scope: not measured: this run recorded none.",
    ):
        assert words in text, words
    assert "<svg" not in page
    assert 'class="tiles"' not in page
    assert "When to look" not in text


def test_a_prediction_page_without_layers_rows_or_check(make_prediction):
    empty = {"quality": [], "by_time": [], "by_layer": [], "by_threshold": [], "canaries": []}
    change = {
        "prediction": empty,
        "truth": {"agreement": [], "by_kind": []},
        "protect": {"samples": [], "check": None},
    }
    text = _Page(render(Record.open(make_prediction(change=change)))).text
    assert "Quality of the predictors: not measured: too few samples were memorised." in text
    assert "No run was left to check the rule on." in text
    assert "What counts as memorised" not in text
    assert "Spearman" not in text
    one = render(Record.open(make_prediction(name="one", change={"prediction": {"by_layer": []}})))
    assert ">What counts as memorised</h2>" in one
    assert "by layer" not in one


def test_a_list_that_did_not_hold_is_a_notice(make_prediction):
    check = {"model": 6, "memorised": 60, "missed": 30, "rate": [0.5, 0.37, 0.63], "held": False}
    page = render(Record.open(make_prediction(change={"protect": {"check": check}})))
    assert '<p class="notice">To miss at most' in page
    assert "Do not rely on it." in page


def test_text_of_a_prediction_record_is_escaped(make_prediction, predicted):
    samples = [{"example": 1, "kind": HOSTILE, "label": 3, "risk": 1.0, "memorised": True}]
    canary = {"kind": HOSTILE, "n": 3, "memorised": 0.5, "flagged": 0.5}
    kind = {"kind": HOSTILE, "n": 3, "lira": 0.5, "counterfactual": 1.0, "rmia": 0.5}
    layers = [row | {"layer": HOSTILE} for row in predicted["prediction"]["by_layer"][:2]]
    layers += predicted["prediction"]["by_layer"][2:]
    folder = make_prediction(
        plan={"plan": {HOSTILE: HOSTILE}},
        change={
            "prediction": {"layer": HOSTILE, "by_layer": layers, "canaries": [canary]},
            "truth": {"signal": HOSTILE, "convention": HOSTILE, "by_kind": [kind]},
            "protect": {"samples": samples},
        },
        results={"scope": {"tested": [HOSTILE], "not_tested": [HOSTILE]}},
    )
    page = render(Record.open(folder))
    assert "<script" not in page
    assert "<img" not in page
    assert _Page(page).text.count(HOSTILE) >= 12


def test_all_questions_stand_on_one_page_and_pools_do_not(
    make_run, make_exposure, make_one_run, make_prediction, make_pool, tmp_path
):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    make_one_run(name="demo/staggered")
    make_prediction(name="demo/early")
    make_prediction(name="demo/text", question="text-prediction")
    make_pool("demo/pool")
    page = write_report(tmp_path / "demo").read_text(encoding="utf-8")
    found = _Page(page)
    assert found.open == []
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert "Report on 5 runs" in found.text
    assert "prediction FINDING" in page
    assert "text-prediction FINDING" in page


def test_a_long_ledger_is_folded(make_run):
    folder = make_run()
    with Record.open(folder, write=True) as record:
        steps = np.arange(130)
        one = np.ones(130, dtype=int)
        record.put_ledger({"member": 0 * one, "canary": steps, "step": steps, "uses": one})
    page = render(Record.open(folder))
    assert "<summary>Ledger of uses (130 rows)</summary>" in page
    assert "30 more rows are in the record." in page


def test_several_runs_stand_on_one_page_with_a_table_of_contents(make_run, make_exposure, tmp_path):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    page = write_report(tmp_path / "demo").read_text(encoding="utf-8")
    found = _Page(page)
    assert found.open == []
    links = [value for name, value in found.attributes if name == "href"]
    ids = [value for name, value in found.attributes if name == "id"]
    assert links == ["#run1-top", "#run2-top"]
    assert {link[1:] for link in links} <= set(ids)
    assert len(ids) == len(set(ids))
    named = {
        v for name, value in found.attributes if name == "aria-labelledby" for v in value.split()
    }
    assert named <= set(ids)
    assert found.tags.count("article") == 2
    assert re.findall('class="verdict ([a-z]+)"', page) == ["pass", "fail"]
    assert re.findall(r"<h(\d)", page)[:4] == ["1", "2", "2", "3"]
    assert "<title>demo: forgetting PASS, exposure FAIL · Remnant</title>" in page
    assert "Report on 2 runs" in found.text


def test_all_three_questions_stand_on_one_page(make_run, make_exposure, make_one_run, tmp_path):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    make_one_run(name="demo/staggered")
    make_one_run(name="demo/staggered-again")
    page = write_report(tmp_path / "demo").read_text(encoding="utf-8")
    found = _Page(page)
    assert found.open == []
    ids = [value for name, value in found.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    titles = "forgetting PASS, exposure FAIL, one-run PASS, one-run PASS"
    assert f"<title>demo: {titles} · Remnant</title>" in page


def test_runs_under_a_folder_without_one_make_a_report_there(make_run, make_exposure, tmp_path):
    make_exposure(name="runs/keys")
    assert "Report on" not in write_report(tmp_path / "runs").read_text(encoding="utf-8")
    make_run(name="runs/digits")
    path = write_report(tmp_path / "runs")
    assert path == tmp_path / "runs" / "report.html"
    assert "Report on 2 runs" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_each_verdict_is_in_words_and_in_a_symbol(make_run, outcome):
    value = gate_row(outcome=outcome, sentence="A sentence.", claim="Claimed.", limit=0.6, lag=400)
    page = render(Record.open(make_run(results={"verdict": value})))
    assert f'<span class="outcome">{outcome}</span>' in page
    assert f'class="verdict {outcome.lower()}"' in page
    assert re.search(r'class="symbol" aria-hidden="true">[✓✕?]<', page)
    assert '<p class="claim"><strong>Claim:</strong> Claimed.</p>' in page


@pytest.mark.parametrize("outcome", ["PASS", "FAIL", "INCONCLUSIVE"])
def test_an_outcome_of_older_rules_is_never_shown_as_pass(make_run, outcome):
    value = {"outcome": outcome, "sentence": "A sentence.", "limit": 0.6, "lag": 400}
    folder = make_run(results={"verdict": value})
    page = render(Record.open(folder))
    assert 'class="verdict inconclusive"' in page
    assert (
        f"Not judged again: older rules, which could pass without evidence, said {outcome}" in page
    )
    shown = Record.open(folder).summary()["results"]["verdict"]
    assert shown["outcome"] == "INCONCLUSIVE"
    assert summarise(folder).verdict == "INCONCLUSIVE"


def test_a_finding_has_a_colour_a_symbol_and_advice(make_prediction):
    page = render(Record.open(make_prediction()))
    assert 'class="verdict finding"' in page
    assert '<p class="symbol" aria-hidden="true">i</p>' in page
    assert "<strong>What to do:</strong> Remove, mask or protect the samples on the list" in page
    assert ">PASS<" not in page


def test_an_empty_record_is_shown_as_not_measured(make_run):
    names = ("verdict", "curve", "curve_aa", "curve_tpr", "curve_auc", "curve_accuracy")
    folder = make_run(
        without=(*names, *("traditional", "task", "scope", "compare"), *DECIDED),
        absent=(("curve", "the run was stopped early"),),
        finish=False,
    )
    text = _Page(render(Record.open(folder))).text
    assert "No verdict" in text
    assert "This run is not complete." in text
    assert "Forgetting curve: not measured: the run was stopped early." in text
    assert "Decision: not measured: this run recorded none." in text
    assert "none of weight noise, relearning on similar examples and a scan of later" in text
    assert "Scan of later checkpoints: not measured: this run recorded none." in text


def test_text_from_the_record_is_escaped(make_run):
    folder = make_run(
        plan={"plan": {"note": HOSTILE, HOSTILE: 1}, HOSTILE: {"x": 1}},
        results={
            "verdict": gate_row(
                outcome="FAIL", sentence=HOSTILE, claim="Claimed.", limit=0.5, lag=1
            ),
            "scope": {"tested": [HOSTILE], "not_tested": [HOSTILE]},
        },
        without=("compare",),
        absent=(("compare", HOSTILE), ("curve_tpr", HOSTILE)),
    )
    page = render(Record.open(folder))
    assert "<script" not in page
    assert "<img" not in page
    assert HOSTILE in _Page(page).text


def test_hostile_series_names_are_escaped(make_run):
    series = [{"label": HOSTILE, "lags": [0, 1], "value": [0.5, 0.6]}]
    page = render(Record.open(make_run(results={"compare": {"series": series, "title": HOSTILE}})))
    assert "<script" not in page
    assert "<img" not in page


def test_the_same_record_gives_the_same_page(make_run):
    folder = make_run()
    assert render(Record.open(folder)) == render(Record.open(folder))


def test_the_report_is_written_whole_or_not_at_all(make_run, tmp_path, monkeypatch):
    folder = make_run()
    path = write_report(folder)
    assert path == folder / "report.html"
    before = path.read_text()

    def refuse(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("remnant.report.render.os.replace", refuse)
    with pytest.raises(RecordError, match=r"report\.html cannot be written: the disk is full"):
        write_report(folder)
    assert path.read_text() == before
    assert not list(folder.glob(".report*"))


def test_the_report_goes_where_it_is_told_or_says_why_not(make_run, tmp_path):
    folder = make_run()
    assert write_report(folder, tmp_path / "other.html").is_file()
    with pytest.raises(RecordError, match="cannot be written"):
        write_report(folder, tmp_path / "nowhere" / "x.html")
    with pytest.raises(RecordError, match="does not exist"):
        write_report(tmp_path / "no-run")


def test_the_curve_page_stands_alone(make_curve, tmp_path):
    curve = make_curve(start=0.9, floor=0.6, chance=0.5, spread=0.05)
    path = write_curve_page(curve, tmp_path / "curve.html", title=HOSTILE)
    page = path.read_text(encoding="utf-8")
    assert _Page(page).open == []
    assert "<script" not in page
    assert "Attack success" in page
    with pytest.raises(InvalidInput, match="was not measured: no scores"):
        write_curve_page({"absent": "no scores"}, tmp_path / "x.html")


def test_the_summary_in_a_terminal(make_run):
    found = read_view(Record.open(make_run()))
    assert summary_text(found, report="run/report.html").splitlines() == [
        "PASS: 400 steps after planting, precision at FPR 10 % is at most 64.3 %, "
        "under the limit of 65 %.",
        "  claim: At most 64.3 % precision (95 % confidence, 5 trainings).",
        "  Precision at FPR 10 % (chance 50.0 %)",
        "    lag       1  89.8 %  [84.8 % to 93.8 %]",
        "    lag     400  58.7 %  [51.7 % to 64.3 %]",
        "    lag       0  90.0 %  by construction",
        "  A/A twins, lag 400: 50.8 % [43.1 % to 56.9 %] (neither saw the canaries)",
        "  Once against ten times; at the end, and above '1 repeat' on average",
        "    1 repeat    58.7 %",
        "    10 repeats  74.6 %  +14.2 points (+12.1 to +16.3), p < 0.001",
        "  decision: safe after: 250 steps; protect: the last 16 000 examples; half-life: 42 steps "
        "(30 to 57); limit reached: 91 steps (70 to 118)",
        "  gone or hidden: weight noise: still found (1 of 2); relearning: comes back (1 of 1); "
        "scan of 16 checkpoints: 21 came back, 9 by chance (p 0.013)",
        "report: run/report.html",
    ]


def test_differences_of_variants_are_shown_or_why_they_are_not(make_run):
    folder = make_run()
    shown = render(Record.open(folder))
    assert "above “1 repeat”, trial by trial" in shown
    assert "+14.2 points (+12.1 to +16.3)" in shown
    with Record.open(folder, write=True) as record:
        found = record.results()["compare"]
        found["differences"] = [{"label": "10 repeats", "absent": "one trial a curve"}]
        record.put_result("compare", found)
    assert "10 repeats: one trial a curve" in render(Record.open(folder))


def test_the_summary_of_an_empty_run(make_run):
    names = ("verdict", "curve", "curve_aa")
    lines = summary_text(read_view(Record.open(make_run(without=names)))).splitlines()
    assert lines[0] == "no verdict: this run recorded none"
    assert lines[1] == "  forgetting curve  not measured: this run recorded none"


def test_the_curve_in_a_terminal():
    curve = {
        "success": "precision",
        "fpr": 0.1,
        "confidence": 0.95,
        "chance": 0.5,
        "lags": [0, 10, 200],
        "value": [0.9, 0.7, None],
        "low": [0.8, 0.6, None],
        "high": [0.98, 0.8, None],
    }
    assert curve_text(curve).splitlines() == [
        "Precision at FPR 10 %, 95 % interval",
        "lag   value     low    high  50.0 %                            98.0 %",
        "  0  90.0 %  80.0 %  98.0 %  ┊                       ────────●───────",
        " 10  70.0 %  60.0 %  80.0 %  ┊       ────────●────────",
        "200       –       –       –  ┊",
        "┊ chance, 50.0 %",
    ]


def _verdict_legend(folder) -> str:
    page = render(Record.open(folder))
    legend = page.split("<dt>The verdict</dt>")[1].split("</dd>")[0]
    return legend.replace("\u202f", " ")


def test_legends_state_the_rules_by_which_verdicts_are_made(make_run, make_one_run, make_exposure):
    forgetting = _verdict_legend(make_run())
    assert "the one-sided upper bound at 95 % is at or under the limit" in forgetting
    assert "two-sided" not in forgetting
    assert "After INJECT, lag 0 does not count" in forgetting
    assert "after POISON it counts" in forgetting
    one_run = _verdict_legend(make_one_run())
    assert "at some checkpoint, corrected for the number of checkpoints" in one_run
    assert "right after they were planted" not in one_run
    exposure = _verdict_legend(make_exposure())
    assert "the positive control was found" in exposure
    assert "upper bound to be at most the share allowed" in exposure
