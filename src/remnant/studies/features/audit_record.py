"""The record of an audit of a patch, and its report, which shows the patch on images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.records.typed import plain
from remnant.studies.command_record import array_digests, weights_digest, write_command_record
from remnant.studies.features.audit import PatchAudit, feature_audit_result
from remnant.studies.features.audit_result import QUESTION
from remnant.studies.features.result import PatchPlace, PictureKind, PictureRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN = 6
_SCORE = (*("nulls", "against", "control", "significance", "confidence", "label", "limit", "seed"),)
_TITLES: dict[PictureKind, str] = {
    "image": "Images that the model was asked about",
    "image patched": "The same with the patch",
    "image random": "The same with random patches",
}


def write_record(
    out: Path, audit: PatchAudit, *, model: Path, most_images: int, device: str
) -> Path:
    """Write record and report, and return the report's path.

    The record holds no text of the patch, but pictures of it.

    Args:
        out: An empty folder, or one that does not exist.
        audit: What was measured.
        model: File or folder of the model, for its digest.
        most_images: The most images to test on.
        device: Where the model ran.

    Raises:
        RecordError: The folder cannot be written.
    """
    images = audit.inputs.images.cpu().numpy()
    shown = _pictures(audit, images)
    names = {what: what.replace(" ", "_") for what in shown}
    pictures = [PictureRow(what=what, title=_TITLES[what], array=names[what]) for what in shown]
    return write_command_record(
        out,
        question=QUESTION,
        plan=_plan(audit, model, most_images),
        result=feature_audit_result(audit, pictures=tuple(pictures)),
        arrays={names[what]: array for what, array in shown.items()} | audit.arrays(),
        data=array_digests(images=images),
        device=device,
        execution={"batch": audit.settings.batch},
        seeds={"audit": audit.settings.seed},
    )


def _plan(audit: PatchAudit, model: Path, most_images: int) -> dict[str, Any]:
    return {
        "question": QUESTION,
        "patch": plain(PatchPlace.of(audit.patch, audit.what)),
        "files": {**audit.files, "model_sha256": weights_digest(model)},
        "images": {"count": most_images, "shape": list(audit.inputs.images.shape[1:])},
        "score": {name: getattr(audit.settings, name) for name in _SCORE},
    }


def _pictures(audit: PatchAudit, images: NDArray[Any]) -> dict[PictureKind, NDArray[Any]]:
    """A few images: as they are, with the patch, with random patches."""
    some = np.asarray(images[:_SHOWN], dtype=np.float32)
    rng = np.random.default_rng([audit.settings.seed, 4])
    kind: Any = audit.settings.control
    drawn = audit.patch.random_like(rng, len(some), kind)
    return {
        "image": some,
        "image patched": audit.patch.stamp(some),
        "image random": drawn.stamp(some),
    }
