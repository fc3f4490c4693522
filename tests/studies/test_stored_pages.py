"""The lock: pages, terminal, JSON and CSV of stored records are what they were, byte for byte."""

from __future__ import annotations

import json
import time

import pytest

import remnant
from remnant.studies.registry import QUESTIONS

from . import make_stored_records, stored_pages
from .stored_pages import DIGESTS, EVERY, RECORDS, VERSIONS, state_of

LOCKED = json.loads(DIGESTS.read_text(encoding="utf-8"))
WRITE = "python tests/studies/stored_pages.py write FOLDER"
MAKE = "python tests/studies/make_stored_records.py make WORK QUESTION"
LAST = VERSIONS[-1]  # earlier ones had fewer questions
RECORD = "python tests/studies/stored_pages.py record"


def differences(name):
    """What differs between the locked state of a record and the present one, as one text."""
    locked, found = LOCKED.get(name, {}), state_of(name)
    changed = [key for key in locked.keys() | found.keys() if locked.get(key) != found.get(key)]
    if not changed:
        return ""
    return (
        f"{name}: {', '.join(sorted(changed))} changed. `{WRITE}` writes the bytes before and "
        f"after for a diff; if this is meant, `{RECORD}` locks the new ones."
    )


def test_every_question_of_every_version_is_locked():
    assert list(LOCKED) == EVERY
    missing = QUESTIONS.keys() - {
        name.partition("/")[2] for name in RECORDS if name.startswith(LAST)
    }
    assert not missing, f"`{MAKE}` stores a record of {missing}"
    assert make_stored_records.RECORDS.keys() == QUESTIONS.keys()


@pytest.mark.parametrize("name", EVERY)
def test_it_shows_what_it_did(name):
    assert not (changed := differences(name)), changed


def test_a_changed_word_and_a_changed_name_are_noticed(monkeypatch):
    name = "0.3/exposure"
    monkeypatch.setattr(QUESTIONS["exposure"].heading.replace(":", "."), "Another title")
    assert differences(name).startswith("0.3/exposure: html changed.")
    monkeypatch.undo()
    contents = stored_pages.contents
    other = {"arrays": ["another"]}
    monkeypatch.setattr(stored_pages, "contents", lambda name: contents(name) | other)
    assert differences(name).startswith("0.3/exposure: arrays changed.")


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Another place, time zone, terminal and version."""
    for name, value in (("COLUMNS", "47"), ("TZ", "Asia/Kathmandu"), ("LC_ALL", "C")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remnant, "__version__", "9.9.9")
    monkeypatch.chdir(tmp_path)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", ["0.1/forgetting", "0.2/unique-features", "0.3/found-secrets"])
def test_it_shows_the_same_elsewhere(name, elsewhere):
    assert not differences(name)
