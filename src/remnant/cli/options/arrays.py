"""Arrays of other frameworks on the command line: npy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.errors import NO_ARRAYS, InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_npy(option: str, path: Path, *, holds: str) -> NDArray[Any]:
    """Read the array of an npy file; nothing is unpickled.

    Args:
        option: The option that names the file, for errors.
        path: The file.
        holds: What the file of this option holds, for errors.

    Raises:
        InvalidInput: It is not there, is no plain npy file, or holds no real numbers.
    """
    import numpy as np

    try:
        with path.open("rb") as file:
            array = np.load(file, allow_pickle=False)
    except FileNotFoundError as fault:
        raise InvalidInput(
            f"{option} {path} is not there.",
            hint=f"{option} takes an npy file with {holds}; write it with numpy.save.",
        ) from fault
    except NO_ARRAYS as fault:
        raise InvalidInput(
            f"{option} {path} is not a plain npy file.", hint="Write it with numpy.save."
        ) from fault
    if not isinstance(array, np.ndarray):
        raise InvalidInput(
            f"{option} {path} holds several arrays.", hint="Write one with numpy.save."
        )
    if array.dtype.kind == "c":
        raise InvalidInput(f"{option} {path} holds complex numbers.", hint="Save real scores.")
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"{option} {path} holds values of type {array.dtype}, not numbers.",
            hint=f"{option} takes {holds}.",
        )
    return array
