"""Models as they are given on the command line: folders, read in the words of their option."""

from __future__ import annotations

import filecmp
from contextlib import AbstractContextManager
from pathlib import Path

from remnant.cli.naming import naming
from remnant.errors import InvalidInput

_WEIGHTS = "*.safetensors"


def naming_model(option: str, folder: Path) -> AbstractContextManager[None]:
    """Let the errors of reading a model name the options that it was asked for with.

    Args:
        option: ``--model`` or ``--reference-model``.
        folder: What it gave.
    """
    return naming(option, folder, folder=option, device="--device", source="--source")


def refuse_the_same(
    model: Path, others: tuple[Path, ...], *, option: str = "--reference-model"
) -> None:
    """Refuse another model that is the model under audit: all differences would be 0.

    Args:
        model: Under audit.
        others: Reference models, or a twin.
        option: That gave them.

    Raises:
        InvalidInput: A folder is the same, or its weights are, byte for byte.
    """
    for other in others:
        if model.resolve() == other.resolve() or _same_weights(model, other):
            raise InvalidInput(
                f"{option} {other} is the model under audit, so that nothing is left of the "
                "differences.",
                hint="Pass a model that never saw the secrets.",
            )


def _same_weights(one: Path, other: Path) -> bool:
    files = [sorted(folder.glob(_WEIGHTS)) for folder in (one, other)]
    if not files[0] or len(files[0]) != len(files[1]):
        return False
    pairs = list(zip(*files, strict=True))
    if any(first.stat().st_size != second.stat().st_size for first, second in pairs):
        return False
    return all(filecmp.cmp(first, second, shallow=False) for first, second in pairs)
