"""Commands name a missing extra before they read or write anything."""

from __future__ import annotations

import sys

import pytest


def test_the_demo_stops_before_it_writes(monkeypatch, tmp_path, command):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = command("demo", "--out", tmp_path / "demo")
    assert (done.code, done.out) == (2, "")
    assert "The digits need scikit-learn, which is not installed." in done.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("kinds", [(), ("--kinds", "phone")])
def test_scan_looks_for_its_libraries_before_a_model(command, tmp_path, monkeypatch, kinds):
    (tmp_path / "mail.txt").write_text("nothing")
    (tmp_path / "model").mkdir()
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    done = command("scan", tmp_path / "mail.txt", "--model", tmp_path / "model", *kinds)
    assert done.code == 2
    assert "pip install -e '.[scan]'" in done.err


def test_feature_looks_for_pillow_before_a_model(command, tmp_path, monkeypatch):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "model.pt2").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL", None)
    done = command(
        *("feature", "--model", tmp_path / "model.pt2", "--images", tmp_path / "pictures"),
        *("--text", "A"),
    )
    assert done.code == 2
    assert "Reading pictures needs Pillow, which is not installed." in done.err


def test_predict_looks_for_transformers_before_the_data(command, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "transformers", None)
    done = command("predict", "--model", tmp_path, "--data", tmp_path / "no.jsonl")
    assert done.code == 2
    assert "pip install -e '.[hf]'" in done.err
