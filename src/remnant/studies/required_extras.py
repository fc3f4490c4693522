"""The optional libraries that studies need, found out before any study is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from remnant.errors import MissingExtra, install_hint
from remnant.studies.shared.study import Study


@dataclass(frozen=True, slots=True)
class Need:
    """A library that a study cannot be run without.

    Attributes:
        module: The name that it is imported by.
        package: The name that it is installed by.
        extra: The extra of this package that installs it.
        purpose: What needs it.
    """

    module: str
    package: str
    extra: str
    purpose: str


_DIGITS = Need("sklearn", "scikit-learn", "data", "The digits")
_SHEETS = Need("PIL", "Pillow", "data", "CIFAR-10")
_FOLDERS = Need("PIL", "Pillow", "data", "A folder of images")
_OF_DATA = {"digits": _DIGITS, "framed-digits": _DIGITS, "cifar10": _SHEETS}
_DEDUPLICATION = (
    Need("datasketch", "datasketch", "dedup", "Deduplication"),
    Need("rapidfuzz", "rapidfuzz", "dedup", "Deduplication"),
)
_PRETRAINED = Need("transformers", "transformers", "hf", "The question text-prediction")


def check_extras(studies: Iterable[Study]) -> None:
    """Refuse studies that need a library which is not installed, before any of them is run.

    Libraries are looked up and not imported, so that this takes no time.

    Args:
        studies: Those that are going to be run.

    Raises:
        MissingExtra: One sentence that names all missing libraries and a command for them.
    """
    needs = dict.fromkeys(need for study in studies for need in needs_of(study))
    missing = [need for need in needs if find_spec(need.module) is None]
    if not missing:
        return
    purposes = " and ".join(dict.fromkeys(need.purpose for need in missing))
    libraries = " and ".join(need.package for need in missing)
    plural = len({need.purpose for need in missing}) > 1 or purposes.endswith("s")
    raise MissingExtra(
        f"{purposes} need{'' if plural else 's'} {libraries}, which "
        f"{'is' if len(missing) == 1 else 'are'} not installed.",
        hint=install_hint(*dict.fromkeys(need.extra for need in missing)),
    )


def needs_of(study: Study) -> Iterator[Need]:
    """Yield the optional libraries of a study, its variants and what it is compared with."""
    fields = study.to_dict()
    if fields["question"] == "text-prediction":
        yield _PRETRAINED
    yield from _needs_in(fields)


def _is_image_folder(table: Any) -> bool:
    """Whether a section names the user's own images and no npz file; only these have labels."""
    path = table.get("path") if isinstance(table, Mapping) else None
    return isinstance(path, str) and "labels" in table and not path.lower().endswith(".npz")


def _needs_in(part: Any) -> Iterator[Need]:
    """Look through nested tables and lists."""
    if isinstance(part, Mapping):
        for name in ("data", "images"):
            table = part.get(name)
            set_name = table.get("name") if isinstance(table, Mapping) else None
            if isinstance(set_name, str) and set_name in _OF_DATA:
                yield _OF_DATA[set_name]
            elif name == "data" and _is_image_folder(table):
                yield _FOLDERS
        if part.get("deduplicate") is True:
            yield from _DEDUPLICATION
        part = part.values()
    elif not isinstance(part, list | tuple):
        return
    for inner in part:
        yield from _needs_in(inner)
