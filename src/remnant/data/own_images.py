"""Labelled images, features or tensors of the user's own: npz files, folders, arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data.images import Images
from remnant.data.labelled import as_images, read_arrays
from remnant.data.own_files import Origin, OwnFiles, class_numbers, hidden, listed
from remnant.data.rows import class_name
from remnant.errors import InvalidInput, MissingField, import_failure, require

_ENDINGS = (".png", ".jpg", ".jpeg")
_MODES = ("L", "RGB", "RGBA")
_INPUTS = ("images", "inputs")  # where the recipe names no array


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Inputs as models take them, and the class of each as a text."""

    inputs: NDArray[Any]
    classes: list[str]


def own_images(
    files: OwnFiles, *, inputs: str | None = None, labels: str = "labels", tensors: bool = False
) -> tuple[Images, Images | None, Origin]:
    """Read labelled images or feature arrays.

    A path is an npz file with an array of inputs and one of labels, or a folder with a sub-folder
    of PNG or JPEG images for each class. Arrays with two axes are features, one row an example,
    and stay as they are; arrays with three or four are images, see ``read_labelled``. Bytes are
    divided by 255 in either case.

    Labels are whole numbers or names. Their different values, in order, become the numbers 0, 1,
    ...; the origin has the values.

    Args:
        files: Where they are.
        inputs: The array of inputs; by default ``images`` or ``inputs``.
        labels: The array of labels.
        tensors: Whether inputs have any shape (examples, ...) and are taken as they are: whole
            numbers as int64, others as float32.

    Returns:
        What to train on, the held-out part or None, and the origin. Features have the shape
        ``(n, 1, 1, features)``.

    Raises:
        InvalidInput: A file is missing, damaged or not as described; all faults are listed.
        MissingExtra: Pillow, for folders, is not installed.
    """

    def read(path: Path) -> tuple[_Part, Sequence[Path]]:
        if path.is_dir() and not tensors:
            return _read_folder(path)
        return _read_arrays(path, inputs, labels, tensors=tensors), [path]

    train, later, origin = files.read(read)
    if later is not None and later.inputs.shape[1:] != train.inputs.shape[1:]:
        raise InvalidInput(
            f"data.held_out: {files.held_out} has inputs of shape {_shape(later)}, and "
            f"{files.path} of shape {_shape(train)}.",
            hint="Give both parts the same shape.",
        )
    if train.inputs.min() == train.inputs.max():
        raise InvalidInput(
            f"data.path: all values of {files.path} are equal.", hint="Give inputs that differ."
        )
    held_out = None if later is None else later.classes
    numbers, later_numbers, origin = class_numbers(train.classes, held_out, origin)
    other = None
    if later is not None and later_numbers is not None:
        other = Images(later.inputs, np.array(later_numbers, dtype=np.int64))
    return Images(train.inputs, np.array(numbers, dtype=np.int64)), other, origin


def own_tensors(given: Any, *, maker: str, sha256: str) -> tuple[Images, Origin]:
    """Check what a function of the user's own returned: inputs of any shape, and labels.

    Args:
        given: ``(inputs, labels)``, arrays or what NumPy makes arrays of.
        maker: The function, as a recipe names it.
        sha256: Of its file.

    Raises:
        InvalidInput: They are something else; all faults are listed.
    """
    name = f"data.maker={maker!r}"
    if not isinstance(given, tuple | list) or len(given) != 2:
        count = f" of {len(given)}" if isinstance(given, tuple | list) else ""
        raise InvalidInput(
            f"{name} returns {type(given).__name__}{count}, not a pair of arrays.",
            hint="Let the function return inputs and labels.",
        )
    try:
        inputs, labels = (np.asarray(part) for part in given)
    except (TypeError, ValueError, RuntimeError) as fault:
        raise InvalidInput(
            f"{name} returns what NumPy makes no arrays of.", hint="Return arrays or CPU tensors."
        ) from fault
    part = _part(name, ("inputs", inputs), ("labels", labels), tensors=True)
    if part.inputs.min() == part.inputs.max():
        raise InvalidInput(f"{name}: all inputs are equal.", hint="Give inputs that differ.")
    numbers, _, origin = class_numbers(part.classes, None, Origin(((maker, sha256),)))
    return Images(part.inputs, np.array(numbers, dtype=np.int64)), origin


def _shape(part: _Part) -> tuple[int, ...]:
    shape = part.inputs.shape[1:]
    return shape[2:] if shape[:2] == (1, 1) else shape


def _read_arrays(path: Path, inputs: str | None, labels: str, *, tensors: bool) -> _Part:
    if path.suffix.lower() != ".npz":
        raise InvalidInput(
            f"{path} is neither an .npz file nor a folder with a sub-folder of images a class.",
            hint="Write it with numpy.savez(path, images=images, labels=labels).",
        )
    arrays = read_arrays(path)
    wanted = _INPUTS if inputs is None else (inputs,)
    named = [name for name in wanted if name in arrays]
    holds = f"it holds {', '.join(sorted(arrays)) or 'nothing'}"
    faults = []
    if not named:
        faults.append(
            f"{path} has no array {' or '.join(map(repr, wanted))} (data.inputs); {holds}"
        )
    elif len(named) > 1:
        faults.append(
            f"{path} has both {' and '.join(map(repr, named))}, and data.inputs names none"
        )
    if labels not in arrays:
        faults.append(f"{path} has no array {labels!r} (data.labels); {holds}")
    require(faults, error=MissingField, hint="Name the arrays in data.inputs and data.labels.")
    given, classes = (named[0], arrays[named[0]]), (labels, arrays[labels])
    return _part(str(path), given, classes, tensors=tensors)


def _part(
    where: str,
    inputs: tuple[str, NDArray[Any]],
    labels: tuple[str, NDArray[Any]],
    *,
    tensors: bool,
) -> _Part:
    """Check arrays, each with its name, and bring them into the form that models take."""
    (name, given), (label_name, classes) = inputs, labels
    faults = _label_faults(f"{where}: {label_name}", classes)
    if given.dtype.kind not in "fiub":
        faults.append(f"{where}: {name} are of type {given.dtype}, not numbers")
    elif tensors and (given.ndim == 0 or given.size == 0):
        faults.append(f"{where}: {name} have the shape {given.shape}; it takes (examples, ...)")
    elif not tensors and (given.ndim not in (2, 3, 4) or given.size == 0):
        faults.append(
            f"{where}: {name} have the shape {given.shape}; it takes (examples, features), "
            "(examples, height, width) or (examples, channels, height, width)"
        )
    elif bad := int(np.sum(~np.isfinite(_float32(given)))):
        faults.append(f"{where}: {name} hold {bad} values that are NaN, infinite or too large")
    if given.ndim and classes.ndim and len(given) != len(classes):
        faults.append(f"{where}: {len(given)} {name} for {len(classes)} {label_name}")
    require(faults, hint="Save one row of finite numbers and one label for each example.")
    if tensors:
        made: NDArray[Any] = _float32(given) if given.dtype.kind == "f" else given.astype(np.int64)
    else:
        made = _features(given) if given.ndim == 2 else _images(given, f"{where}: {name}")
    return _Part(np.ascontiguousarray(made), [str(class_name(value)) for value in classes.tolist()])


def _label_faults(name: str, given: NDArray[Any]) -> list[str]:
    if given.ndim != 1:
        return [f"{name} have the shape {given.shape}, not one label an example"]
    if given.dtype.kind not in "iufbU":
        return [f"{name} are of type {given.dtype}, neither whole numbers nor names"]
    wrong = [place for place, value in enumerate(given.tolist()) if class_name(value) is None]
    return listed(f"{name}[{place}] is neither a whole number nor a name" for place in wrong)


def _features(given: NDArray[Any]) -> NDArray[np.float32]:
    made = _float32(given)
    made = made / np.float32(255) if given.dtype == np.uint8 else made
    return np.ascontiguousarray(made[:, None, None])


def _float32(given: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        return given.astype(np.float32)


def _images(given: NDArray[Any], name: str) -> NDArray[np.float32]:
    try:
        return as_images(given, name)
    except InvalidInput as fault:
        raise InvalidInput(
            fault.message,
            hint="Save images as uint8 or scaled to [0, 1], shape (examples, channels, height, "
            "width); save anything else as (examples, features).",
        ) from fault


def _read_folder(path: Path) -> tuple[_Part, list[Path]]:
    folders = sorted(inner for inner in path.iterdir() if inner.is_dir() and inner.name[0] != ".")
    if not folders:
        raise InvalidInput(
            f"{path} has no sub-folders.", hint="Put the images of each class in a sub-folder."
        )
    loose = [file for file in path.iterdir() if file.is_file() and not hidden(file, path)]
    inside = {folder: sorted(_shown(folder)) for folder in folders}
    strange = [
        *loose,
        *(file for files in inside.values() for file in files if not _is_image(file)),
    ]
    faults = listed(f"{file} is no PNG or JPEG of a class" for file in sorted(strange))
    faults += listed(f"{folder} is empty" for folder, files in inside.items() if not files)
    require(
        faults,
        hint="Put PNG and JPEG files, and nothing else, into one sub-folder for each class.",
    )
    files = [file for folder in folders for file in inside[folder]]
    classes = [folder.name for folder in folders for _ in inside[folder]]
    names = [class_name(name) for name in classes]  # 03 and 3 are one class
    pixels = _pixels(files)
    return _Part(
        as_images(pixels, str(path)),
        [name or given for name, given in zip(names, classes, strict=True)],
    ), files


def _shown(folder: Path) -> Iterable[Path]:
    return (file for file in folder.iterdir() if not file.name.startswith("."))


def _is_image(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in _ENDINGS


def _pixels(files: Sequence[Path]) -> NDArray[np.uint8]:
    """Return the pixels of all files, shape ``(n, height, width)`` or with channels last."""
    try:
        from PIL import Image
    except ImportError as fault:
        raise import_failure(
            fault, library="Pillow", message="Reading image folders needs Pillow.", extra="data"
        ) from fault
    pixels, faults = [], []
    kinds: list[str] = []
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of huge and of cut-off images
                with Image.open(file, formats=("PNG", "JPEG")) as picture:
                    kind = f"{picture.width} x {picture.height} pixels, mode {picture.mode}"
                    array = np.asarray(picture) if picture.mode in _MODES else None
        except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
            faults.append(f"{file} is damaged, or no PNG or JPEG")
            continue
        first = kinds[0] if kinds else kind
        kinds.append(kind)
        if array is None or kind != first:
            faults.append(f"{file} has {kind}" + (f", {files[0].name} {first}" * (kind != first)))
        else:
            pixels.append(array)
    require(
        listed(faults),
        hint="Make all images one size and one of the modes L (grey), RGB or RGBA, and save "
        "damaged ones again.",
    )
    return np.stack(pixels)
