"""``--out`` of commands that measure: a folder for a record and a report, or a single file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from remnant.cli.options import declared
from remnant.cli.options.naming import naming
from remnant.cli.terminal import one_line, show
from remnant.errors import InvalidInput

FILE_ENDINGS = (".html", ".csv", ".json")
out = declared.path("--out", "-o", help="New folder for a record and a report.")


def out_folder(path: Path | None, *, files: tuple[str, ...] = ()) -> Path | None:
    """Return the folder that ``--out`` names, checked before anything is measured.

    Args:
        path: The value of ``--out``; None where it is not given.
        files: Endings of files that the command writes itself, such as ``(".csv",)``.

    Returns:
        The folder; None where ``--out`` is not given, or names such a file.

    Raises:
        InvalidInput: It names a file of a kind that the command does not write.
        RecordError: No record can be written there; see ``check_command_folder``.
    """
    from remnant.studies.command_record import check_command_folder

    if path is None:
        return None
    ending = path.suffix.lower()
    if ending in files:
        return None
    if ending in FILE_ENDINGS:
        also = "".join(f", or a {kind} file" for kind in files)
        redirect = (
            " For JSON in a file, redirect the output of --json." if ending == ".json" else ""
        )
        raise InvalidInput(
            f"--out {path} ends in {ending}, and this command writes no such file.",
            hint=f"Name a folder for a record and a report{also}.{redirect}",
        )
    with naming("--out", path):
        check_command_folder(path)
    return path


def models(folder: Path | None, *, served: Any = None, **others: Any) -> dict[str, Any]:
    """Return what a plan says about a model: its folder, a digest of its weights, other models.

    Args:
        folder: Of the model, or its file; None for a served one.
        served: The served model, of which the address and the name are kept.
        others: Folders of other models by what they are; those not given are left out.
    """
    from remnant.studies.command_record import weights_digest

    given = {name: other for name, other in others.items() if other}
    if folder is None:
        about = {"served": served.url, "name": served.name}
    else:
        about = {"folder": str(folder), "weights": weights_digest(folder)}
    return {
        **about,
        **{
            name: str(other) if isinstance(other, Path) else [str(path) for path in other]
            for name, other in given.items()
        },
    }


def write_out(
    folder: Path | None,
    *,
    as_json: bool,
    private: bool = False,
    reveal: bool = False,
    **record: Any,
) -> None:
    """Write a command's record and report, and print where the report is.

    Args:
        folder: What ``out_folder`` returned; nothing is written where it is None.
        as_json: Whether standard output holds JSON.
        private, reveal: See ``write_command_record``.
        record: Its other arguments.

    Raises:
        RecordError: The record cannot be written.
    """
    if folder is None:
        return
    from remnant.studies.command_record import write_command_record

    with naming("--out", folder):
        report = write_command_record(folder, private=private, reveal=reveal, **record)
    show_written(report, private=private or reveal, err=as_json)


def show_written(report: Path, *, private: bool = False, err: bool = False) -> None:
    """Print where the report is.

    Args:
        report: Its path.
        private: Whether only its owner can read it.
        err: Whether standard output holds JSON.
    """
    show(f"report: {one_line(str(report))}{' (only its owner can read it)' * private}", err=err)
