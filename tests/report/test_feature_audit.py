"""The page of an audit of one patch, from records written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.errors import RecordError
from remnant.records import Record, gate_row
from remnant.report import read_view, summary_text
from remnant.report.render import render

SCORE = {
    "value": [1.2, 1.0, 1.5],
    "p_value": 0.005,
    "rank": 1,
    "nulls": 199,
    "null_median": -0.1,
    "null_largest": 0.9,
    "t_test_p_value": None,
    "carried_by_few": True,
}
AUDIT = {
    "patch": {"what": "a letter of <5> x 5 pixels"},
    "images": 40,
    "significance": 0.05,
    "confidence": 0.95,
    "against": "pixels",
    "model": {"black_box": SCORE, "white_box": None, "gain": None},
    "twin": None,
    "beyond_twin": None,
    "pictures": [{"what": "image", "title": "Images", "array": "image"}],
}


def written(folder, audit, *, arrays=("image", "model_null_values")):
    with Record.create(
        folder,
        question="feature-audit",
        plan={"patch": {"row": 1}},
        plan_fingerprint="0" * 64,
        data_fingerprint="0" * 64,
        execution={},
        provenance={},
    ) as record:
        given = {
            "image": np.full((2, 1, 8, 8), 0.5),
            "model_null_values": np.linspace(-1, 0.9, 199),
        }
        for name in arrays:
            record.put_array(name, given[name])
        if audit is None:
            record.put_absent("audit", "it was stopped")
        else:
            record.put_result("audit", audit)
        verdict = gate_row(outcome="FAIL", sentence="It reacts.", claim="It does.", limit=0.1)
        record.put_result("verdict", verdict)
        record.finish()
    return Record.open(folder)


def test_the_page_shows_numbers_and_pictures_and_escapes_words(tmp_path):
    page = render(written(tmp_path / "run", AUDIT))
    assert "a letter of &lt;5&gt; x 5 pixels" in page
    assert "place 1, p = 0.005" in page
    assert page.count("data:image/png;base64,") == 2
    assert "few images carry it" in page
    assert "There is no twin" in page
    assert "When the canaries were used" not in page


def test_a_twin_stands_beside_the_model(tmp_path):
    twin = SCORE | {"value": [0.01, -0.1, 0.1], "p_value": 0.4, "rank": 80, "t_test_p_value": 0.2}
    audit = AUDIT | {"twin": {"black_box": twin}, "beyond_twin": [1.19, 1.0, 1.4]}
    record = written(tmp_path / "run", audit)
    text = summary_text(read_view(record))
    assert text.splitlines()[0] == "FAIL: It reacts."
    assert "twin, M" in text
    assert "p = 0.40" in text
    page = render(record)
    assert "On a twin that was trained without it, M is 0.01, place 80" in page
    assert "M above the twin’s" in page


@pytest.mark.parametrize(
    ("change", "arrays", "said"),
    [
        ({"model": {"white_box": SCORE}}, None, "model.black_box is missing"),
        ({"model": {"black_box": SCORE | {"value": [1.0]}}}, None, "has 1 entries, not value, low"),
        ({"images": "many"}, None, "audit.images is a str, no whole number"),
        ({}, ("image",), "model_null_values is no array"),
        ({}, ("model_null_values",), "names no array of the record"),
        ({"pictures": [{"what": "x", "title": "", "array": "image"}]}, None, "is none of"),
    ],
)
def test_a_record_that_is_not_as_it_should_be_is_refused(tmp_path, change, arrays, said):
    record = written(
        tmp_path / "run", AUDIT | change, arrays=arrays or ("image", "model_null_values")
    )
    with pytest.raises(RecordError, match="malformed result 'audit'") as found:
        read_view(record)
    assert said in str(found.value)


def test_an_audit_that_was_not_made_says_so(tmp_path):
    record = written(tmp_path / "run", None)
    assert "not measured: it was stopped" in render(record)
    assert "audit  not measured: it was stopped" in summary_text(read_view(record))
