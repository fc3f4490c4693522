"""Which of the user's own code a study names, and whether the user trusts its files. Runs none."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from remnant.data.own_code import TrustedFile, chosen_file, split_reference
from remnant.data.own_code import trusted_file as trusted_file
from remnant.errors import InvalidInput, PlanError, RecordError
from remnant.studies.shared.variants import Variant

if TYPE_CHECKING:
    from remnant.studies.jobs.execution import Execution

S = TypeVar("S")


def named_code(study: Any) -> Iterator[tuple[str, str]]:
    """Yield each field that names a function, and the function, of a study and its variants."""
    for part in _sections(study):
        for name in part.CODE:
            if (reference := getattr(part, name)) is not None:
                yield f"{part.NAME}.{name}", reference
    for variant in _variants(study):
        yield from named_code(variant.study)


def code_files(study: Any, execution: Execution) -> list[TrustedFile]:
    """Return the trusted files that a study's functions are read from.

    Raises:
        PlanError: One is not trusted.
    """
    return [
        chosen_file(field, reference, execution.trusted, _places(execution))
        for field, reference in named_code(study)
    ]


def with_digests(study: S, execution: Execution) -> S:
    """Return a study whose sections have the SHA-256 of the files that they name functions of.

    Args:
        study: Any study; one that names no code is returned as it is.
        execution: With the files that the user trusts, and the recipe's folder.

    Raises:
        PlanError: A file is not trusted, or is not the one that the recipe has the digest of.
    """
    if next(named_code(study), None) is None:
        return study
    changed: dict[str, Any] = {}
    for known in dataclasses.fields(study):  # type: ignore[arg-type]
        part = getattr(study, known.name)
        if any(getattr(part, name) is not None for name in getattr(part, "CODE", ())):
            changed[known.name] = dataclasses.replace(part, sha256=_digests(part, execution))
    for name in ("compare", "variants"):
        if others := getattr(study, name, ()):
            changed[name] = tuple(
                Variant(other.label, with_digests(other.study, execution)) for other in others
            )
    return dataclasses.replace(study, **changed)  # type: ignore[type-var]


def check_unused(studies: Mapping[Any, Any], executions: Mapping[Any, Execution]) -> None:
    """Refuse a trusted file from which no function of any study is read.

    Args:
        studies: By any key.
        executions: How each of them is run.

    Raises:
        InvalidInput: There is one.
    """
    used = {file for key in studies for file in code_files(studies[key], executions[key])}
    for execution in executions.values():
        for file in execution.trusted:
            if file not in used:
                raise InvalidInput(
                    f"--trust {file.path}: no function that a recipe names is read from it.",
                    hint="Leave it out, or name it in the recipe, such as in model.maker.",
                )


def file_of(part: Any, name: str, execution: Execution) -> TrustedFile:
    """Return the trusted file that has the digest which a section's field was given.

    Args:
        part: A section of a study; see ``with_digests``.
        name: Of the field.
        execution: With the trusted files; in a worker too.

    Raises:
        PlanError: There is none.
    """
    reference = getattr(part, name)
    module, _ = split_reference(f"{part.NAME}.{name}", reference)
    digest = (part.sha256 or {}).get(module)
    for file in execution.trusted:
        if file.sha256 == digest:
            return file
    raise PlanError(
        f"{part.NAME}.{name}={reference!r} names code, which runs only from a file that you trust.",
        hint="Run the recipe with --trust FILE; in Python, run_study(study, folder, "
        'Execution(trusted=(trusted_file("FILE"),))).',
    )


def check_same_code(kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume a run with code that has changed since it began.

    Args:
        kept: The plan in the record.
        now: The same study as it would be run now.

    Raises:
        RecordError: A file has another SHA-256.
    """
    before, after = dict(_kept_digests(kept)), dict(_kept_digests(now))
    for module, digest in after.items():
        if before.get(module, digest) != digest:
            raise RecordError(
                f"The file of {module} has changed since this run began: its SHA-256 was "
                f"{before[module][:12]}… and is {digest[:12]}….",
                hint="Restore the file to resume the run, or choose another folder.",
            )


def _kept_digests(plain: Any) -> Iterator[tuple[str, str]]:
    if isinstance(plain, Mapping):
        digests = plain.get("sha256")
        yield from digests.items() if isinstance(digests, Mapping) else ()
    inner = plain.values() if isinstance(plain, Mapping) else plain
    for part in inner if isinstance(plain, Mapping | list) else ():
        yield from _kept_digests(part)


def _digests(part: Any, execution: Execution) -> dict[str, str]:
    made = {}
    for name in part.CODE:
        if (reference := getattr(part, name)) is None:
            continue
        field = f"{part.NAME}.{name}"
        file = chosen_file(field, reference, execution.trusted, _places(execution))
        module, _ = split_reference(field, reference)
        pinned = (part.sha256 or {}).get(module, file.sha256)
        if pinned != file.sha256:
            raise PlanError(
                f"{file.path} is not the file that {part.NAME}.sha256 names: its SHA-256 is "
                f"{file.sha256[:12]}… and not {str(pinned)[:12]}….",
                hint=f"Pass the file as it was, or leave {part.NAME}.sha256 out of the recipe.",
            )
        made[module] = file.sha256
    return made


def _places(execution: Execution) -> list[Path]:
    home = execution.recipe_folder
    return [Path()] if home is None else [home, Path()]


def _sections(study: Any) -> Iterator[Any]:
    for known in dataclasses.fields(study):
        part = getattr(study, known.name)
        if getattr(part, "CODE", ()):
            yield part


def _variants(study: Any) -> Iterator[Any]:
    for name in ("compare", "variants"):
        yield from getattr(study, name, ())
