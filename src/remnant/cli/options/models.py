"""Folders of models on the command line."""

from __future__ import annotations

import filecmp
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from remnant.cli.options.naming import naming
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.integrations.placement import Placement

_WEIGHTS = "*.safetensors"


def naming_model(option: str, folder: Path) -> AbstractContextManager[None]:
    """Let errors about reading a model name options.

    Args:
        option: ``--model`` or ``--reference-model``.
        folder: Its value.
    """
    return naming(
        option,
        folder,
        folder=option,
        base="--base",
        device="--device",
        device_map="--device-map",
        precision="--precision",
        source="--source",
    )


def placed(device: str, device_map: str | None, precision: str | None) -> Placement | None:
    """Return where models are put; None for one device and float32.

    Args:
        device, device_map, precision: Values of the options.

    Raises:
        InvalidInput: ``--device`` and ``--device-map`` are both given.
        MissingExtra: Accelerate is needed and not installed.
    """
    if device_map is None and precision in (None, "float32"):
        return None
    if device_map is not None and device != "cpu":
        raise InvalidInput(
            f"--device {device} and --device-map {device_map} are both given.",
            hint="Leave --device out: the map chooses the devices.",
        )
    from remnant.integrations.placement import Placement

    kept = precision or ("own" if device_map is not None else "float32")
    return Placement(device=device, device_map=device_map, precision=kept)  # type: ignore[arg-type]


def bases(base: Path | None, *folders: Path) -> dict[Path, Path | None]:
    """Return the base to read each model with, before any is read.

    Args:
        base: The value of ``--base``, the base of all adapters among the models.
        folders: The folders of the models.

    Raises:
        InvalidInput: ``--base`` is given, and no model is an adapter.
        MissingExtra: A library that a model needs is not installed.
    """
    from remnant.integrations.adapter_folder import is_adapter, peft_library
    from remnant.integrations.pretrained import library

    adapters = {folder for folder in folders if is_adapter(folder)}
    if base is not None and not adapters and all(folder.is_dir() for folder in folders):
        named = ", ".join(map(str, folders))
        raise InvalidInput(
            f"--base is given, and {named} is no adapter.",
            hint="Leave it out: only a folder with adapter_config.json has a base.",
        )
    if adapters or any((folder / "config.json").is_file() for folder in folders):
        library()
    if adapters:
        peft_library()
    return {folder: base if folder in adapters else None for folder in folders}


def refuse_the_same(
    model: Path, others: tuple[Path, ...], *, option: str = "--reference-model"
) -> None:
    """Refuse a model that is the same as the model under audit: all differences would be 0.

    Args:
        model: Under audit.
        others: Reference models, or a twin.
        option: Which option named them.

    Raises:
        InvalidInput: A folder is the same, or its weights are, byte for byte.
    """
    for other in others:
        if model.resolve() == other.resolve() or _same_weights(model, other):
            raise InvalidInput(
                f"{option} {other} is the model under audit, so all differences would be 0.",
                hint="Pass a model that was not trained on this data.",
            )


def _same_weights(model: Path, other: Path) -> bool:
    files = [sorted(folder.glob(_WEIGHTS)) for folder in (model, other)]
    if not files[0] or len(files[0]) != len(files[1]):
        return False
    pairs = list(zip(*files, strict=True))
    if any(first.stat().st_size != second.stat().st_size for first, second in pairs):
        return False
    return all(filecmp.cmp(first, second, shallow=False) for first, second in pairs)
