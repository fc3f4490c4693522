"""Names of files and folders: nothing of a secret is left in them."""

from __future__ import annotations

import pytest

from remnant.canaries.natural import scan_files
from remnant.studies.found_secrets.redacted_paths import RedactedPaths

SALT = b"0123456789abcdef"
# Made up, and in parts: no file of ours holds one whole.
CARD = "4111 1111 " + "1111 1111"
IBAN = "DE89 3704 0044 " + "0532 0130 00"
PHONE = "(650) 253" + "-0147"
SSN = "489-39" + "-3472"


@pytest.fixture
def names(tmp_path):
    def make(text: str, region: str = "US") -> RedactedPaths:
        path = tmp_path / "text.txt"
        path.write_text(text)
        return RedactedPaths(scan_files([path], salt=SALT, region=region).found, region=region)

    return make


@pytest.mark.parametrize(
    ("text", "path", "shown"),
    [
        (CARD, "ph/4111111111111111.txt", "ph/….txt"),
        (CARD, "ph/4111-1111_11111111 old.txt", "ph/… old.txt"),
        (CARD, "4111/1111/1111/1111.txt", "…/…/…/….txt"),
        (CARD, "x4111111111111111y/41111111/1.txt", "x…y/41111111/1.txt"),
        (IBAN, "de89370400440532013000.txt", "….txt"),
        (IBAN, "89370400440532013000.txt", "….txt"),
        (PHONE, "650-253-0147.txt", "….txt"),
        (PHONE, "16502530147", "…"),
        ("+1 650-253-0147", "6502530147", "…"),
        (SSN, "489393472.txt", "….txt"),
        ("jsmith77@firm.org", "lp/jsmith77/1.txt", "lp/…/1.txt"),
        ("j.smith77@firm.org", "lp/J_Smith77.mbox", "lp/….mbox"),
        ("jsmith77@firm.org", "jsmith77@firm.org.txt", "….txt"),
        ("m\u00fcller@firma.de", "mu\u0308ller/1.txt", "…/1.txt"),
        ("jsmith77@firm.org", "lp/x.jsmith77", "lp/x.…"),
        ("jo@firm.org", "jobs/jo/jo.txt", "jobs/…/….txt"),
        ("http://ann:~---~@host.org/", "a~---~b", "a…b"),
        ("nothing", "mail/2024-10-12/report.txt", "mail/2024-10-12/report.txt"),
    ],
)
def test_a_secret_of_the_text_is_hidden_however_a_name_spells_it(names, text, path, shown):
    assert names(text).redacted(path) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("jsmith@firm.org/1.txt", "…@firm.org/1.txt"),
        ("489-39-3472dir/1.txt", "…dir/1.txt"),
        ("ssn489-39-3472/1.txt", "ssn…/1.txt"),
        ("card-4111111111111111.txt", "card-….txt"),
        ("card_4111111111111111_old.txt", "card_…_old.txt"),
        ("call(650) 253-0147.txt", "call….txt"),
        ("report-2024.txt", "report-2024.txt"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_though_it_is_in_no_text(names, path, shown):
    assert names("nothing").redacted(path) == shown


def test_a_number_of_the_region_is_hidden(names):
    assert names("x", region="GB").redacted("020 8366 1177.txt") == "….txt"
    assert names("020 8366 1177", region="GB").redacted("442083661177.txt") == "….txt"
