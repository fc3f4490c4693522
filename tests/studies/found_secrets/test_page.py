"""The page of a scan: nothing of a secret on it, in any form in which it may leave."""

from __future__ import annotations

import dataclasses
import re

import pytest

from remnant.report import html, terminal
from remnant.report.blocks import Page, Table, walk
from remnant.report.tables import csv_text, json_text
from remnant.studies.found_secrets.page import TITLE, scan_page
from remnant.studies.found_secrets.parts import FilesTest


def made(result) -> Page:
    return Page(
        title=TITLE,
        question="",
        name="",
        fingerprint="",
        complete=True,
        blocks=tuple(scan_page(result)),
    )


def tables(result) -> dict[str, Table]:
    return {block.key: block for block in walk(scan_page(result)) if isinstance(block, Table)}


@pytest.fixture(scope="module")
def redacted(measured_scan):
    return measured_scan.result(reveal=False)


def test_no_secret_is_on_the_page_or_in_its_tables(measured_scan, redacted):
    texts = [html.render([made(redacted)]), terminal.detail(made(redacted))]
    texts += [
        write(table) for table in tables(redacted).values() for write in (csv_text, json_text)
    ]
    secrets = [part for secret in measured_scan.scan.found for part in secret.parts]
    assert not [secret for secret in secrets for text in texts if secret in text]
    revealed = terminal.detail(made(measured_scan.result(reveal=True)))
    assert all(secret.way.written in revealed for secret in measured_scan.scan.found)


def test_exposure_is_in_whole_bits_in_every_form(redacted):
    exposure = tables(redacted)["exposure"]
    for row in exposure.rows:
        cells = {column.name: column.cell(row).main for column in exposure.shown()}
        assert re.fullmatch(r"(at least )?\d+", cells["Exposure"])
        assert re.fullmatch(r"(at least )?\d+|–", cells["In the twin"])
    csv = csv_text(dataclasses.replace(exposure, columns=exposure.columns[3:5]))
    assert set(re.findall(r"\d+\.(\d+)", csv)) <= {"0"}


def test_the_terminal_has_every_table(redacted):
    text = terminal.detail(made(redacted))
    shown = tables(redacted)
    assert list(shown) == ["kinds", "files", "secrets", "exposure", "means", "twin"]
    assert all(table.caption in text for table in shown.values())


def test_a_test_over_files_is_a_sentence(redacted):
    test = FilesTest(p_value=0.0312, files=41, method="exact")
    twin = dataclasses.replace(redacted.twin, test=test, in_twin_text=2, not_compared=1)
    text = terminal.detail(made(dataclasses.replace(redacted, twin=twin)))
    assert "Sign-flip test over the 41 files in which the secrets first occur: p = 0.031." in text
    assert "Left out: 2 secrets, which also occur in --twin-text." in text
    assert "Not compared: 1 secret, measured in one model only." in text


def test_blanks_of_a_revealed_secret_are_kept(measured_scan):
    result = measured_scan.result(reveal=True)
    spaced = dataclasses.replace(result.secrets[0], secret="536  90  4399")
    text = terminal.detail(made(dataclasses.replace(result, secrets=(spaced,))))
    assert "536  90  4399" in text
