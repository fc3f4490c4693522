"""``--out`` of a patch's audit: a record, and a report that shows the patch on images."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from remnant.cli.feature_told import feature_fields, not_tested, patch_fields, tested
from remnant.records import Record, gather_provenance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remnant.cli.feature_look import AskedModel
    from remnant.cli.feature_told import Told

QUESTION = "feature-audit"
_SHOWN = 6
_CHUNK = 1 << 20
_TITLES = {
    "image": "Images that the model was asked about",
    "image patched": "The same with the patch",
    "image random": "The same with random patches",
}


def write_record(out: Path, told: Told, asked: AskedModel) -> Path:
    """Write record and report, and return the report's path.

    The record holds no text of the patch, but pictures of it.

    Raises:
        RecordError: The folder cannot be written.
    """
    from remnant.report import write_report

    plan = _plan(told, asked)
    images = told.look.images.cpu().numpy()
    with Record.create(
        out,
        question=QUESTION,
        plan=plan,
        plan_fingerprint=_digest(json.dumps(plan, sort_keys=True).encode()),
        data_fingerprint=_digest(images.tobytes()),
        execution={"device": asked.device, "batch": told.settings.batch},
        provenance=gather_provenance(
            device=asked.device,
            threads=torch.get_num_threads(),
            seeds={"audit": told.settings.seed},
        ),
    ) as record:
        pictures = []
        for what, array in _pictures(told, images).items():
            name = what.replace(" ", "_")
            record.put_array(name, array)
            pictures.append({"what": what, "title": _TITLES[what], "array": name})
        for side, scores in (("model", told.found.model), ("twin", told.found.twin)):
            if scores is not None:
                record.put_array(f"{side}_per_image", scores.black_box.per_image)
                record.put_array(f"{side}_null_values", scores.black_box.null_values)
        fields = feature_fields(told)
        record.put_result("audit", fields | {"pictures": pictures})
        record.put_result("verdict", told.found.row)
        record.put_result("scope", {"tested": tested(told), "not_tested": not_tested(told)})
        record.finish()
    return write_report(out)


def _plan(told: Told, asked: AskedModel) -> dict[str, Any]:
    settings = told.settings
    return {
        "question": QUESTION,
        "patch": patch_fields(told),
        "files": told.files | {"model_sha256": _file_digest(asked.model)},
        "images": {"count": asked.count, "shape": list(told.look.images.shape[1:])},
        "score": {
            "nulls": settings.nulls,
            "against": settings.against,
            "control": settings.control,
            "significance": settings.significance,
            "confidence": settings.confidence,
            "label": settings.label,
            "limit": settings.limit,
            "seed": settings.seed,
        },
    }


def _pictures(told: Told, images: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A few images: as they are, with the patch, with random patches."""
    some = np.asarray(images[:_SHOWN], dtype=np.float32)
    rng = np.random.default_rng([told.settings.seed, 4])
    kind: Any = told.settings.control
    drawn = told.patch.random_like(rng, len(some), kind)
    return {
        "image": some,
        "image patched": told.patch.stamp(some),
        "image random": drawn.stamp(some),
    }


def _file_digest(path: Path) -> str:
    """Of a file, or of the weights in a folder."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for one in files:
        with one.open("rb") as file:
            while piece := file.read(_CHUNK):
                digest.update(piece)
    return digest.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
