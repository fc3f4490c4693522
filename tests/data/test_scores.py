"""Scores come in as arrays, files and data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from remnant import audit_scores, forgetting_curve
from remnant.data import read_curve, read_scores
from remnant.errors import InvalidInput

SEEN = np.random.default_rng(0).normal(2, 1, 40)
UNSEEN = np.random.default_rng(1).normal(0, 1, 40)


def written(folder, kind, name, scores):
    """Return scores in one of the forms in which they come."""
    frame = pd.DataFrame({"row": range(len(scores)), "score": scores})
    if kind == "frame":
        return frame
    path = folder / f"{name}.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "frame"])
def test_every_form_gives_the_audit_of_the_array(kind, tmp_path):
    given = {
        name: written(tmp_path, kind, name, scores)
        for name, scores in (("seen", SEEN), ("unseen", UNSEEN))
    }
    array = audit_scores(seen=SEEN, unseen=UNSEEN, rng=np.random.default_rng(0))
    table = audit_scores(**given, column="score", rng=np.random.default_rng(0))
    assert table.result.to_dict() == array.result.to_dict()


def test_a_column_of_its_own_needs_no_name(tmp_path):
    path = tmp_path / "seen.csv"
    path.write_text("score\n1\n2.5\n")
    np.save(tmp_path / "seen.npy", SEEN)
    assert read_scores(path).tolist() == [1, 2.5]
    assert read_scores(str(path)).tolist() == [1, 2.5]
    np.testing.assert_array_equal(read_scores(tmp_path / "seen.npy"), SEEN)
    assert read_scores(SEEN) is SEEN


@pytest.mark.parametrize(
    ("name", "text", "column", "said"),
    [
        ("a.csv", "row,score\n1,2\n", None, "has several columns: row, score"),
        ("a.csv", "row,score\n1,2\n", "loss", "has no column 'loss'"),
        ("a.csv", "row,score\n1,x\n", "score", "does not hold only numbers"),
        ("a.csv", "row,score\n1\n", "score", "row 2, has another number of fields"),
        ("a.csv", "", "score", "it is empty"),
        ("a.csv", "1\n2\n3\n", None, "begins with the number 1 and not with the name"),
        ("a.csv", "score,score\n1,2\n", "score", "has several columns 'score'"),
        ("a.txt", "1\n", None, "does not end in .csv, .npy, .parquet, .tsv"),
        ("a.parquet", "no parquet", "score", "cannot be read as Parquet"),
        ("a.npy", "no array", None, "is not a readable npy file"),
    ],
)
def test_a_table_that_cannot_be_read_is_a_sentence(name, text, column, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_scores(tmp_path / name, column)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame([[1.0, 2.0]], columns=["s", "s"]), "has several columns 's'"),
        (pd.DataFrame([[1.0, 2.0]], columns=[1, "1"]), "has several columns '1'"),
        (pd.DataFrame({"s": [1 + 2j]}), "does not hold only numbers"),
        (pd.DataFrame({"s": pd.to_datetime(["2020-01-01"])}), "does not hold only numbers"),
    ],
)
def test_a_frame_without_one_column_of_numbers_is_refused(frame, said):
    with pytest.raises(InvalidInput, match=said):
        read_scores(frame, str(frame.columns[0]))


def test_a_missing_file_and_a_column_of_an_array_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="is not a file"):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is for tables"):
        read_scores(SEEN, "score")


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_long_table_gives_the_curve_of_its_arrays(as_frame, tmp_path):
    rng = np.random.default_rng(0)
    seen, unseen = rng.normal(1, 1, (2, 3, 20)), rng.normal(0, 1, (2, 3, 25))
    rows = [
        {"lag": 100 * lag, "trial": trial, "seen": side, "score": score}
        for side, scores in ((True, seen), (False, unseen))
        for (lag, trial, _), score in np.ndenumerate(scores)
    ]
    frame = pd.DataFrame(rows).sample(frac=1, random_state=0).sort_index()
    frame.to_csv(tmp_path / "scores.csv", index=False)
    arrays = read_curve(frame if as_frame else tmp_path / "scores.csv")
    np.testing.assert_array_equal(arrays["lags"], [0, 100])
    np.testing.assert_array_equal(arrays["seen_scores"], seen)
    np.testing.assert_array_equal(arrays["unseen_scores"], unseen)
    curve = forgetting_curve(**arrays, rng=np.random.default_rng(0))
    assert curve.value.shape == (2,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lag,score\n0,1\n", "has no column seen of 0 and 1"),
        ("lag,seen,score\n0,maybe,1\n", "has no column seen of 0 and 1"),
        ("lag,seen,score\n0,1,1\n0,0,1\n5,1,1\n", "between 0 and 1 unseen scores"),
        ("seen,score\n1,1\n", "has no column 'lag'"),
    ],
)
def test_a_long_table_with_a_gap_is_refused(text, said, tmp_path):
    (tmp_path / "scores.csv").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_curve(tmp_path / "scores.csv")
