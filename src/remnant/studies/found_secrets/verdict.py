"""The gate of a scan: whether text that was read holds a secret.

It judges the text alone. How exposed a secret is in a model does not enter: secrets that were not
drawn at random have no p-value, and a secret that a model does not expose is still in its text.
"""

from __future__ import annotations

from pathlib import PurePath

from remnant.canaries.natural import BINARY, Scan, SkippedFile
from remnant.records.outcomes import Outcome, gate_row
from remnant.report.numerals import counted
from remnant.studies.shared.result_parts import Gate

TITLES = {
    "PASS": "No secret was detected",
    "FAIL": "Secrets were detected",
    "INCONCLUSIVE": "Not all text was scanned",
}
# What no kind covers.
NOT_SEARCHED = (
    "names, street addresses, passwords without a fixed form, and secrets in an encoding such as "
    "base64 or hex"
)
NO_PROOF = (
    "This does not show that the text holds no secrets: detectors miss some. Not searched for: "
    f"{NOT_SEARCHED}."
)
REMOVE = (
    "Remove these secrets from the text before a model is trained on it, and replace the keys that "
    "are still in use: remnant scan FILES --redact DIR writes a copy without them. "
    "docs/explanation/defences.md compares what can be done about a model that was trained on them."
)
ADVICE = {
    "PASS": NO_PROOF,
    "FAIL": f"{REMOVE} Leave out kinds that do not matter with --kinds.",
    "INCONCLUSIVE": "Do not treat this as a PASS. Leave out files that are no training text with "
    "--exclude, unpack or fix the others and save them in UTF-8, and scan again.",
}


# Files with these endings usually hold text: as data, in an archive, or as text in an encoding that
# has zeros, such as UTF-16 without a mark.
_WITH_TEXT = frozenset(
    {
        *(".parquet", ".arrow", ".feather", ".orc", ".avro", ".npz", ".pkl", ".pickle", ".sqlite"),
        *(".db", ".tfrecord", ".gz", ".tgz", ".zst", ".bz2", ".xz", ".lz4", ".zip", ".tar", ".7z"),
        *(".docx", ".xlsx", ".pptx", ".odt", ".ods", ".pdf"),
        *(".txt", ".text", ".md", ".rst", ".tex", ".log", ".csv", ".tsv", ".tab", ".json"),
        *(".jsonl", ".ndjson", ".ipynb", ".xml", ".html", ".htm", ".yaml", ".yml", ".toml"),
        *(".ini", ".cfg", ".conf", ".env", ".properties", ".sql", ".srt", ".vtt", ".eml"),
        *(".mbox", ".py", ".js", ".ts", ".java", ".c", ".h", ".cpp", ".cs", ".go", ".rs"),
        *(".rb", ".php", ".sh", ".ps1", ".bat", ".reg"),
    }
)


def judge_scan(scan: Scan) -> Gate:
    """Judge what a scan found.

    * FAIL: a secret of the kinds that were searched for was found, whatever was not read.
    * INCONCLUSIVE: no text was read; a file was skipped that is not binary, such as a link, or that
      by its ending holds text, such as an archive or a .txt file with zeros; or a file of rows was
      read as plain text, in which escapes may hide secrets.
    * PASS: none of these. Other binary files count as no text, and the sentence counts them.

    The settings must be able to find each kind; see ``undetected_kinds``.

    Guarantees:
        * Nothing of a secret, and no name of a file, is in the sentences.
    """
    files = counted(len(scan.files), "file")
    characters = sum(file.characters for file in scan.files)
    unread = sum(map(_may_hold_text, scan.skipped))
    binary = len(scan.skipped) - unread
    not_by_field = sum(file.read_as_text is not None for file in scan.files)
    kinds = ", ".join(scan.kinds)
    left_out = f" Not scanned: {counted(binary, 'binary file')}." if binary else ""
    claim = f"{files} with {counted(characters, 'character')}: no secret of {kinds}."
    if scan.found:
        many = [(kind, sum(secret.kind == kind for secret in scan.found)) for kind in scan.kinds]
        listed = ", ".join(f"{kind} {number}" for kind, number in many if number)
        holding = sum(bool(file.counts) for file in scan.files)
        skipped = len(scan.skipped)
        left_out = f" Not scanned: {counted(skipped, 'file')}." if skipped else ""
        return _gate(
            "FAIL",
            f"{counted(len(scan.found), 'secret')} ({listed}) in {holding} of {files}.{left_out}",
            claim="",
        )
    if not characters:
        return _gate("INCONCLUSIVE", f"No text was scanned: {files} read.{left_out}", claim="")
    missed = [
        f"{counted(unread, 'file')} could not be read as text" if unread else "",
        f"{counted(not_by_field, 'file')} could not be read by field" if not_by_field else "",
    ]
    if any(missed):
        said = "; ".join(part for part in missed if part)
        return _gate("INCONCLUSIVE", f"{said}. In what was read: {claim}{left_out}", claim="")
    return _gate("PASS", claim + left_out, claim=claim)


def _may_hold_text(skipped: SkippedFile) -> bool:
    return skipped.reason != BINARY or PurePath(skipped.path).suffix.lower() in _WITH_TEXT


def _gate(outcome: Outcome, sentence: str, *, claim: str) -> Gate:
    return Gate(**gate_row(outcome=outcome, sentence=sentence, claim=claim, limit=0.0))
