"""What stands beside the outcome of a scan.

A scan's gate is about the text that was read. What a model knows of it contradicts no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator

from remnant.records.typed import Absent
from remnant.report.blocks import Check
from remnant.report.numerals import counted, p_equals
from remnant.studies.beside.checks import SIGNIFICANT, Recorded, not_measured
from remnant.studies.found_secrets.result import ScanResult


def beside(result: Recorded[ScanResult]) -> tuple[Check, ...]:
    """What stands beside the record of a scan."""
    measured = result.measured
    return () if isinstance(measured, Absent) else of_scan(measured)


def of_scan(result: ScanResult) -> tuple[Check, ...]:
    """What stands beside the outcome of a scan."""
    return tuple(_checks(result))


def _checks(result: ScanResult) -> Iterator[Check]:
    if result.skipped:
        text = f"{counted(len(result.skipped), 'file')} not scanned"
        yield Check(name="files", status="not measured", text=text)
    else:
        text = f"all {counted(len(result.files), 'file')} scanned"
        text = text if len(result.files) != 1 else "the file was scanned"
        yield Check(name="files", status="agrees", text=text)
    if not result.secrets:
        return
    exposure = result.exposure
    if exposure is None or not exposure.measured:
        yield not_measured("exposure in a model")
        return
    out = sum(tried.extracted for tried in exposure.tried)
    if exposure.tried:
        text = f"{out or 'none'} of {counted(len(exposure.tried), 'secret')} extracted"
        yield Check(name="extraction", status="found" if out else "not found", text=text)
    else:
        yield not_measured("extraction")
    if result.twin is None or result.twin.test.p_value is None:
        yield not_measured("negative control (twin)")
    else:
        p_value = result.twin.test.p_value
        finds = p_value <= SIGNIFICANT
        said = "more exposed" if finds else "not shown to be more exposed"
        text = f"{said} than in the twin ({p_equals(p_value)})"
        yield Check(name="twin", status="agrees" if finds else "disagrees", text=text)
