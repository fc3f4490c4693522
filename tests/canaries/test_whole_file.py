"""A file that appears whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from remnant.canaries.whole_file import clear_leftovers, folder_beside, writing_whole
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


KILLED = """
import os, pathlib, signal
from remnant.canaries.whole_file import folder_beside, writing_whole
place = pathlib.Path({place!r})
with folder_beside(place) as folder:
    (folder / "0").write_text("a secret")
    with writing_whole(place, mode=0o644) as file:
        file.write(b"a secret")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_on_the_next_start(tmp_path):
    place = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", KILLED.format(place=str(place))], check=False)
    assert done.returncode == -signal.SIGKILL
    left = sorted(tmp_path.iterdir())
    assert [one.is_dir() for one in left].count(True) == 1
    assert {one.stat().st_mode & 0o777 for one in left} == {0o700, 0o600}
    with writing_whole(place, mode=0o600) as file:
        file.write(b"new")
    assert list(tmp_path.iterdir()) == [place]


def test_what_is_still_being_written_stays_and_so_does_what_is_not_ours(tmp_path):
    others = [tmp_path / ".remnant-notes", tmp_path / ".remnant-abcd12345"]
    for one in others:
        one.write_text("mine")
    (tmp_path / ".remnant-abcd1234").symlink_to(others[0])
    with folder_beside(tmp_path / "x") as folder, writing_whole(tmp_path / "y", mode=0o600) as file:
        file.write(b"new")
        clear_leftovers(tmp_path)
        assert folder.is_dir()
    names = {".remnant-notes", ".remnant-abcd12345", ".remnant-abcd1234", "y"}
    assert {one.name for one in tmp_path.iterdir()} == names
