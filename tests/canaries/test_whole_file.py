"""A file that appears whole or not at all."""

from __future__ import annotations

import pytest

from remnant.canaries.whole_file import writing_whole
from remnant.errors import InvalidInput


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with writing_whole(path, mode=0o640) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
        (unfinished,) = (one for one in tmp_path.iterdir() if one != path)
        assert unfinished.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_half_way_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def fail_half_way():
        with writing_whole(path, mode=0o600) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(InvalidInput, match=r"away/file cannot be written: No such file"),
        writing_whole(tmp_path / "away" / "file", mode=0o600),
    ):
        pass
    with (
        pytest.raises(InvalidInput, match="is a folder, not a file"),
        writing_whole(tmp_path, mode=0o600),
    ):
        pass
    with (
        pytest.raises(InvalidInput, match="file cannot be written: No space left on device"),
        writing_whole(tmp_path / "file", mode=0o600),
    ):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []
