"""Which files are looked at."""

from __future__ import annotations

import os

import pytest

from remnant.canaries.natural.files import files_of
from remnant.errors import InvalidInput


@pytest.fixture
def tree(tmp_path):
    for name in ("b.txt", "a.log", "deep/c.txt", "deep/old/d.txt", ".hidden"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "link.txt").symlink_to(tmp_path / "b.txt")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def names(tree, *arguments, **options):
    return [str(path.relative_to(tree)) for path in files_of(*arguments, **options)]


def test_folders_are_walked_in_order_without_links(tree):
    assert names(tree, [tree]) == [".hidden", "a.log", "b.txt", "deep/c.txt", "deep/old/d.txt"]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["*.log", ".*"], ["b.txt", "deep/c.txt", "deep/old/d.txt"]),
        (["old"], [".hidden", "a.log", "b.txt", "deep/c.txt"]),
        (["*/deep/*"], [".hidden", "a.log", "b.txt"]),
    ],
)
def test_names_can_be_left_out(tree, exclude, left):
    assert names(tree, [tree], exclude=exclude) == left


def test_a_file_is_taken_once_and_one_that_is_named_is_known(tree):
    found = files_of([tree / "b.txt", tree, tree / "link.txt"])
    assert next(iter(found)) == tree / "b.txt"
    assert len(found) == 5
    assert [path.name for path, named in found.items() if named] == ["b.txt"]


def test_what_is_not_there_is_refused(tree):
    with pytest.raises(InvalidInput, match="nowhere is neither a file nor a folder"):
        files_of([tree / "nowhere"])
    with pytest.raises(InvalidInput, match="pipe is neither"):
        files_of([tree / "pipe"])
    with pytest.raises(InvalidInput, match="no file to look at"):
        files_of([tree], exclude=["*"])
    with pytest.raises(InvalidInput, match="one path"):
        files_of(str(tree))
