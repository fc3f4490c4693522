"""The report of exposure and one-run records, and of several runs, in a terminal."""

from __future__ import annotations

import json

from click.testing import CliRunner

from remnant.cli.main import commands
from remnant.errors import RecordError
from remnant.records import Record
from remnant.report import detail_text, read_view, read_views, summary_text
from remnant.report.render import render

VERDICT = (
    "FAIL: Of 6 canaries planted at most 16 times, the most exposed (planted 16 times) has an "
    "exposure of 15.9 bits, out of at most 19.9: at or above the limit of 10."
)
EXPOSURE = [
    "  highest exposure of 24 canaries: 19.93 bits of 19.93 (canary 10, planted 64 times)",
    "  16 controls, mean: 1.61 bits (never planted; chance gives 1.44)",
    "  Extracted: 2 of 24 planted secrets (proven)",
]
ONE_RUN = [
    "  True positive rate at FPR 10 % (chance 10.0 %), canaries planted from step 100",
    "    planted once     lag      20  36.2 %  [28.2 % to 46.2 %]",
    "    planted once     lag     470  11.3 %  [3.3 % to 21.3 %]",
    "    planted 8 times  lag       4  87.8 %  [79.8 % to 97.8 %]",
    "    planted 8 times  lag     454  13.9 %  [5.9 % to 23.9 %]",
    "  120 controls never planted",
    "  one run: intervals are over canaries, not over runs; what is not found may only be hidden",
]


def test_the_summary_of_an_exposure_run(make_exposure):
    view = read_view(Record.open(make_exposure()))
    assert summary_text(view, report="run/report.html").splitlines() == [
        VERDICT,
        *EXPOSURE,
        "report: run/report.html",
    ]


def test_the_summary_of_an_empty_exposure_run(make_exposure):
    names = ("verdict", "exposure", "repeats", "extraction")
    view = read_view(Record.open(make_exposure(without=names, absent=(("exposure", "no time"),))))
    assert summary_text(view).splitlines() == [
        "no verdict: this run recorded none",
        "  exposure  not measured: no time",
        "  extraction  not measured: this run recorded none",
    ]
    assert detail_text(view) == ""


def test_the_summary_without_controls_and_with_one_search(make_exposure):
    canary = {
        "name": "canary 1", "trial": 0, "repeats": 1, "uses": 1, "bits": 13.2877, "low": 11.0,
        "high": None, "rank": None, "cost": 4.0, "saturated": True, "skew_normal_bits": None,
        "twin_bits": None,
    }  # fmt: skip
    search = {"member": "m", "certified": True, "nodes": 3, "space": 10**6, "candidates": []}
    change = {
        "exposure": {"canaries": [canary], "controls": [], "method": "sampled"},
        "extraction": {"searches": [search]},
    }
    view = read_view(Record.open(make_exposure(change=change)))
    assert summary_text(view).splitlines()[1:] == [
        "  highest exposure of 1 canary: at least 11.00 bits of 19.93 (canary 1, planted once)",
        "  Extracted: 0 of 1 planted secret (proven)",
    ]


def test_the_summary_of_several_says_which_is_which(make_run, make_exposure, tmp_path):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    lines = summary_text(read_views(tmp_path / "demo"), report="demo/report.html").splitlines()
    assert lines[0].startswith("PASS: 400 steps after planting")
    assert lines[2] == "  run demo, forgetting"
    assert lines[7].startswith("  A/A twins, lag 400: 50.8 % [43.1 % to 56.9 %]")
    assert [line.split(":")[0] for line in lines[11:13]] == ["  decision", "  gone or hidden"]
    assert lines[13:] == [
        "",
        VERDICT,
        "  run keys, exposure and extraction",
        *EXPOSURE,
        "",
        "report: demo/report.html",
    ]


def test_exposure_against_repeats_in_a_terminal(make_exposure):
    assert detail_text(read_view(Record.open(make_exposure()))).splitlines() == [
        "Exposure in bits",
        "planted   n   mean  twin  p-value  0.00                               19.93",
        "  never  16   1.61  1.41     0.41     ●",
        "      1   6   2.90  1.48    0.024     ┊  ●",
        "      4   6   5.99  1.27  < 0.001     ┊        ●",
        "     16   6  13.64  2.17  < 0.001     ┊                       ●",
        "     64   6  19.93  2.34  < 0.001     ┊                                   ●",
        "┊ chance, 1.44 bits",
    ]


def test_canaries_of_exposed_controls_are_held_against_these(make_exposure):
    tests = {
        "pooled_pvalue": [1e-5, 1e-9, 1e-9, 1e-30, 1e-40],
        "control_pvalue": [None, 0.3, 0.02, 1e-4, 1e-4],
    }
    folder = make_exposure(change={"repeats": tests})
    lines = detail_text(read_view(Record.open(folder))).splitlines()
    assert [line.split()[4] for line in lines[2:5]] == ["<", "0.30", "0.020"]
    assert lines[-1] == "the controls have more than chance: p-values of canaries are against them"
    page = render(Record.open(folder))
    assert "the p‑value is against chance, but that of canaries against the controls" in page
    assert "<td>0.30</td>" in page


def test_exposure_against_repeats_without_means_or_chance(make_exposure):
    level = {
        "repeats": [4], "n": [0], "mean_bits": [None], "twin_mean_bits": [None],
        "pooled_pvalue": [None],
    }  # fmt: skip
    folder = make_exposure(without=("exposure",), change={"repeats": level})
    assert detail_text(read_view(Record.open(folder))).splitlines() == [
        "Exposure in bits",
        "planted  n  mean  twin  p-value  0.00                                0.00",
        "      4  0     –     –        –",
    ]


def test_the_summary_of_a_one_run_record(make_one_run):
    lines = summary_text(read_view(Record.open(make_one_run())), report="r.html").splitlines()
    assert lines[0].startswith("PASS: 454 steps after their last use, canaries planted 8 times")
    assert lines[1:] == [*ONE_RUN, "report: r.html"]


def test_the_summary_of_an_empty_one_run_record(make_one_run):
    view = read_view(Record.open(make_one_run(without=("verdict", "one_run"))))
    assert summary_text(view).splitlines() == [
        "no verdict: this run recorded none",
        "  attack success  not measured: this run recorded none",
        ONE_RUN[-1],
    ]
    assert detail_text(view) == ""


def test_windows_that_disagree_are_told_in_a_terminal(make_one_run):
    n = 2
    rows = {
        "lags": [9.0, 5.4], "success": [0.2, 0.8], "low": [0.1, 0.6], "high": [0.3, None],
        "effect": [None] * n, "effect_low": [None] * n, "effect_high": [None] * n,
        "cohort": [0, 1], "repeats": [1] * n, "n_seen": [4] * n, "checkpoint": [599.0] * n,
    }  # fmt: skip
    told = "  the windows disagree: planted once, lag about 5: 80.0 % from step 300, 20.0 % from"
    found = summary_text(read_view(Record.open(make_one_run(change=rows)))).splitlines()
    assert not any("disagree" in line for line in found)
    rows["high"] = [0.3, 1.0]
    found = summary_text(read_view(Record.open(make_one_run(name="two", change=rows)))).splitlines()
    assert f"{told} step 100" in found


def test_every_window_of_one_run_in_a_terminal(make_one_run):
    lines = detail_text(read_view(Record.open(make_one_run()))).splitlines()
    assert lines[:3] == [
        "True positive rate at FPR 10 %, 95 % interval",
        "from step  planted  lag   value     low    high  3.3 %                             97.8 %",
        "      100       1×   20  36.2 %  28.2 %  46.2 %     ┊      ────●────",
    ]
    assert len(lines) == 2 + 18 + 1
    assert lines[-1] == "┊ chance, 10.0 %"


def test_the_summary_of_all_three_questions(make_run, make_exposure, make_one_run, tmp_path):
    make_run(name="demo")
    make_exposure(name="demo/keys")
    make_one_run(name="demo/staggered")
    lines = summary_text(read_views(tmp_path / "demo")).splitlines()
    for name in ("demo, forgetting", "keys, exposure and extraction"):
        assert f"  run {name}" in lines
    assert lines[-8:] == ["  run staggered, one-run forgetting", *ONE_RUN]


def test_the_summary_of_a_prediction_run(make_prediction, predicted):
    rows = predicted["prediction"]["quality"][:2]
    rows[0] |= {"auc": [0.9, 0.85, 0.94], "fpr_at_tpr": [0.071, 0.049, 0.107]}
    rows[1] |= {"auc": [0.8, 0.7, 0.9], "fpr_at_tpr": [0.2, 0.1, 1.0]}
    change = {
        "prediction": {"quality": rows},
        "truth": {"memorised_share": 0.064},
        "protect": {"listed": 77, "share": 0.155},
    }
    view = read_view(Record.open(make_prediction(change=change)))
    lines = summary_text(view, report="r.html").splitlines()
    assert lines[0].startswith("FINDING: A short list holds most memorised samples. Protect 72")
    assert lines[1].startswith("  what to do: Remove, mask or protect")
    assert lines[2:] == [
        "  look after 6 of 30 epochs: median loss down by 95.3 %",
        "  memorised in the end: 6.4 %; two of 24 models disagree on 8.1 % [6.2 % to 10.4 %]",
        "  AUC at the stop (guessing 0.5), FPR at TPR 75 %",
        "    PSMI  0.900  [0.850 to 0.940]   7.1 %  [4.9 % to 10.7 %]",
        "    Loss  0.800  [0.700 to 0.900]  20.0 %  [10.0 % to 100.0 %]",
        "  protect 77 of 502 samples (15.5 %): stated to miss at most 18.7 % of what is memorised, "
        "at 90 % confidence",
        "    held on another run: 7 of 61 missed, 11.5 % [4.7 % to 22.2 %]",
        "report: r.html",
    ]
    assert detail_text(view).splitlines() == [
        "AUC, 95 % interval",
        "predictor  value    low   high  0.500                              0.940",
        "     PSMI  0.900  0.850  0.940  ┊                              ────●────",
        "     Loss  0.800  0.700  0.900  ┊                 ─────────●────────",
        "┊ chance, 0.500",
    ]


def test_the_summary_of_a_prediction_run_that_lacks_something(make_prediction, predicted):
    view = read_view(
        Record.open(make_prediction(without=("verdict", "prediction", "truth", "protect")))
    )
    assert summary_text(view).splitlines() == [
        "no verdict: this run recorded none",
        "  prediction  not measured: this run recorded none",
        "  protect list  not measured: this run recorded none",
    ]
    assert detail_text(view) == ""
    stop = predicted["prediction"]["stop"] | {"reached": False, "dropped": 0.9}
    change = {"prediction": {"quality": [], "stop": stop}, "protect": {"check": None}}
    view = read_view(Record.open(make_prediction(name="two", change=change)))
    lines = summary_text(view).splitlines()
    assert lines[2].endswith("median loss down by 90.0 %; 95 % was never reached")
    assert lines[-1] == "    no run was left to check it on"
    assert detail_text(view) == ""
    check = predicted["protect"]["check"] | {"held": False}
    view = read_view(
        Record.open(make_prediction(name="three", change={"protect": {"check": check}}))
    )
    assert "    not held on another run: 7 of 61 missed" in summary_text(view)


def test_the_commands_that_read_records_know_prediction_runs_and_their_pools(
    make_pool, make_prediction
):
    folder = make_prediction(name="out")
    pool = make_pool("out/pool")
    shown = CliRunner().invoke(commands, ["show", str(folder)])
    view = read_view(Record.open(folder))
    assert shown.output == f"{summary_text(view)}\n\n{detail_text(view)}\n"
    listed = CliRunner().invoke(commands, ["runs", str(folder)])
    assert [" ".join(line.split()) for line in listed.output.splitlines()] == [
        "out complete prediction FINDING: A short list holds most memorised samples",
        "pool pool shadow-pool no run",
    ]
    written = CliRunner().invoke(commands, ["report", str(folder)])
    assert written.output == f"{folder / 'report.html'}\n"
    for command in ("show", "report"):
        refused = CliRunner().invoke(commands, [command, str(pool)])
        assert isinstance(refused.exception, RecordError)
        assert str(refused.exception).startswith(f"{pool} is a pool of shadow models’ scores")
    kept = CliRunner().invoke(commands, ["show", str(pool), "--json"])
    assert json.loads(kept.output)["question"] == "shadow-pool"


def test_the_details_of_a_forgetting_run_are_its_curve(make_run):
    first = detail_text(read_view(Record.open(make_run()))).splitlines()[0]
    assert first == "Precision at FPR 10 %, 95 % interval"
    assert detail_text(read_view(Record.open(make_run(name="no", without=("curve",))))) == ""


def test_the_commands_that_read_records_know_exposure_runs(make_exposure, tmp_path):
    folder = make_exposure(name="runs/keys")
    shown = CliRunner().invoke(commands, ["show", str(folder)])
    assert shown.exit_code == 0, shown.output
    view = read_view(Record.open(folder))
    assert shown.output == f"{summary_text(view)}\n\n{detail_text(view)}\n"
    summary = CliRunner().invoke(commands, ["show", str(folder), "--json"])
    assert json.loads(summary.output)["results"]["exposure"]["space"] == 10**6
    listed = CliRunner().invoke(commands, ["runs", str(tmp_path / "runs")])
    assert listed.output.split() == ["keys", "complete", "exposure", "FAIL"]
    written = CliRunner().invoke(commands, ["report", str(tmp_path / "runs")])
    assert written.output == f"{tmp_path / 'runs' / 'report.html'}\n"


def test_the_commands_that_read_records_know_one_run_records(make_one_run, tmp_path):
    folder = make_one_run(name="runs/staggered")
    shown = CliRunner().invoke(commands, ["show", str(folder)])
    assert shown.exit_code == 0, shown.output
    view = read_view(Record.open(folder))
    assert shown.output == f"{summary_text(view)}\n\n{detail_text(view)}\n"
    written = CliRunner().invoke(commands, ["report", str(folder)])
    assert written.output == f"{folder / 'report.html'}\n"
