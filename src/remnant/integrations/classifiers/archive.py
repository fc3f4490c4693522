"""Reads a pt2 file: a graph as JSON, and tensors as plain numbers. No pickle is opened."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remnant.errors import InvalidInput, RemnantError, UnsupportedModel

KINDS = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}
_SCHEMA = 8
_GRAPH = "models/model.json"
_AGAIN = "Write it with torch.export.save."


@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """An exported program, not yet checked.

    Attributes:
        nodes: The operators in order, as the file has them.
        tensors: Weights, buffers and constants, by their name in the graph.
        input: The name of the one input.
        output: The name of the one output.
        fixed_batch: How many examples the input must hold; None where any number will do.
        shape: Of one example; None where it may differ.
    """

    nodes: Sequence[Mapping[str, Any]]
    tensors: Mapping[str, Tensor]
    input: str
    output: str
    fixed_batch: int | None
    shape: tuple[int, ...] | None


def read_archive(path: Path) -> Archive:
    """Read a pt2 file.

    Raises:
        InvalidInput: It is not there, no such archive, or damaged.
        UnsupportedModel: It holds pickled tensors or objects, or compiled code; or the program
            takes or returns something else than one tensor.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except RemnantError:
        raise
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there.", hint="Check its path.") from None
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None
    except (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, json.JSONDecodeError) as fault:
        raise InvalidInput(f"{path} is no pt2 file, or damaged.", hint=_AGAIN) from fault
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as fault:
        raise InvalidInput(f"{path} is damaged.", hint=_AGAIN) from fault


def _read(path: Path, archive: zipfile.ZipFile) -> Archive:
    names = archive.namelist()
    graphs = [name for name in names if name.split("/", 1)[-1] == _GRAPH]
    if len(graphs) != 1 or any("/data/aotinductor/" in name for name in names):
        raise UnsupportedModel(
            f"{path} does not hold one exported program and nothing compiled.", hint=_AGAIN
        )
    root = graphs[0].removesuffix(_GRAPH)
    if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
        raise UnsupportedModel(f"{path} was written on a machine of another byte order.")
    program = json.loads(archive.read(graphs[0]))
    if program["schema_version"]["major"] != _SCHEMA:
        raise UnsupportedModel(
            f"{path} is of schema {program['schema_version']['major']}; it takes {_SCHEMA}.",
            hint=f"Write it again with torch {torch.__version__}.",
        )
    module = program["graph_module"]
    graph, signature = module["graph"], module["signature"]
    kept = _tensors(path, archive, f"{root}data/weights/", "model_weights_config.json")
    kept |= _tensors(path, archive, f"{root}data/constants/", "model_constants_config.json")
    tensors: dict[str, Tensor] = {}
    inputs: list[str] = []
    for spec in signature["input_specs"]:
        kind, held = next(iter(spec.items()))
        if kind == "user_input":
            inputs.append(held["arg"].get("as_tensor", {"name": ""})["name"])
        elif kind in ("parameter", "buffer", "tensor_constant"):
            tensors[held["arg"]["name"]] = kept[held[f"{kind}_name"]]
        else:
            raise UnsupportedModel(f"{path} has an input of kind {kind}, which is not read here.")
    outputs = [
        spec["user_output"]["arg"] for spec in signature["output_specs"] if "user_output" in spec
    ]
    if len(inputs) != 1 or not inputs[0] or len(outputs) != 1 or "as_tensor" not in outputs[0]:
        raise UnsupportedModel(
            f"{path} takes {len(inputs)} inputs and returns {len(outputs)} outputs; a classifier "
            "takes one tensor and returns its logits."
        )
    first, *others = graph["tensor_values"][inputs[0]]["sizes"]
    shape = tuple(size.get("as_int") for size in others)
    return Archive(
        nodes=graph["nodes"],
        tensors=tensors,
        input=inputs[0],
        output=outputs[0]["as_tensor"]["name"],
        fixed_batch=first.get("as_int"),
        shape=None if None in shape else shape,
    )


def _tensors(path: Path, archive: zipfile.ZipFile, folder: str, about: str) -> dict[str, Tensor]:
    """The tensors of one folder; each points to a file of plain numbers, which it may share."""
    try:
        entries = json.loads(archive.read(f"{folder}{about}"))["config"]
    except KeyError:
        raise UnsupportedModel(
            f"{path} is of an older format, which holds its weights pickled.", hint=_AGAIN
        ) from None
    files: dict[str, Tensor] = {}
    tensors: dict[str, Tensor] = {}
    for name, entry in entries.items():
        if entry["use_pickle"] or entry["tensor_meta"] is None:
            raise UnsupportedModel(
                f"{path} holds {name} pickled, and pickles are never opened.",
                hint="Pass weights as safetensors, and a maker.",
            )
        meta = entry["tensor_meta"]
        where = entry["path_name"]
        if where not in files:
            kind = KINDS[meta["dtype"]]
            raw = bytearray(archive.read(f"{folder}{where}"))
            files[where] = torch.frombuffer(raw, dtype=kind) if raw else torch.empty(0, dtype=kind)
        tensors[name] = torch.as_strided(
            files[where],
            [size["as_int"] for size in meta["sizes"]],
            [stride["as_int"] for stride in meta["strides"]],
            meta["storage_offset"]["as_int"],
        ).clone()
    return tensors
