"""Checks the files of a Hugging Face folder before the library reads them.

The library trusts its files: with 2**70 layers in a configuration it builds layers until memory is
full, and an index of weights may name a pickle. Here the JSON files are only parsed, and the sizes
that they declare are compared with the shapes in the weights' headers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from remnant.errors import InvalidInput
from remnant.integrations.time_bound import check_rules

_SAVE = "Save it again with model.save_pretrained(folder)."
_SAVE_TOKENIZER = "Write it again with tokenizer.save_pretrained(folder)."
_PICKLES = "Pickled weights are never read; save the model with model.save_pretrained(folder)."
_LARGEST = 2**53
_MOST_POSITIONS = 2**24
_MOST_DEPTH = 64  # of nested JSON; the library's own files have less than ten
# Fields that say how many modules the library makes; each module has its own tensor.
_LAYERS = re.compile(r"(^|_)(n_layers?|num_layers|num_hidden_layers|(en|de)coder_layers|layers)$")
# Fields that say how many entries or modules it makes; each is a row of some tensor.
_MANY = re.compile(r"^(num_labels|depths?|num_(blocks|stages|codebooks|\w*experts))$")
_POSITIONS = re.compile(r"(position|n_ctx)")
_NO_SIZES = re.compile(r"(^max_|_per_tok$|_id$|_ids$)")


@dataclass(frozen=True, slots=True)
class Weights:
    """What the headers of a folder's weights say.

    Attributes:
        tensors: How many there are.
        elements: Numbers in all of them.
        widest: The largest side of any.
    """

    tensors: int
    elements: int
    widest: int


def read_object(path: Path, *, hint: str = _SAVE) -> Mapping[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        InvalidInput: It is no regular file, not in UTF-8, no JSON, no object, or nested too deeply.
    """
    if not path.is_file():
        raise InvalidInput(f"{path} is not a regular file.", hint=hint)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from None
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{path} is damaged: it is not JSON in UTF-8.", hint=hint) from fault
    if not isinstance(data, dict):
        raise InvalidInput(f"{path} is damaged: it does not hold an object.", hint=hint)
    if _depth(data) > _MOST_DEPTH:
        raise InvalidInput(f"{path} is damaged: it is nested too deeply.", hint=hint)
    return data


def check_config(path: Path) -> Mapping[str, Any]:
    """Check ``config.json`` for numbers that no model has.

    Args:
        path: The folder.

    Raises:
        InvalidInput: The file is damaged, or a size in it does not fit the weights, where there are
            some.
    """
    file = path / "config.json"
    config = read_object(file)
    weights = read_headers(path) if any(path.glob("*.safetensors")) else None
    check_numbers(file, config)
    for name, value in _numbers(config):
        most = _most(name, weights)
        if most is not None and value > most:
            raise InvalidInput(
                f"{file}: {name} is {value}, and the weights allow at most {most}.",
                hint="The configuration belongs to another model. " + _SAVE,
            )
    named = config.get("transformers_weights")
    if named is not None and not _is_safe(path, named, (".safetensors", ".safetensors.index.json")):
        raise InvalidInput(
            f"{file}: transformers_weights names no .safetensors file of this folder.",
            hint=_PICKLES,
        )
    return config


def check_numbers(file: Path, fields: Mapping[str, Any]) -> None:
    """Check the fields of a JSON file for numbers that no model has.

    Raises:
        InvalidInput: A number is not finite, or too large.
    """
    for name, value in _numbers(fields):
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise InvalidInput(f"{file} is damaged: {name} is not a usable number.", hint=_SAVE)


def check_weights(path: Path) -> Weights:
    """Check that all weights of a folder are safetensors, those that an index names too.

    Raises:
        InvalidInput: There are none, an index is damaged or names something else, there is an
            adapter beside the model, or a header cannot be read.
    """
    if not any(path.glob("*.safetensors")):
        endings = ("bin", "pt", "gguf")
        others = sorted(p.name for ending in endings for p in path.glob(f"*.{ending}"))
        beside = f", only {others[0]}" if others else ""
        raise InvalidInput(
            f"folder={str(path)!r} holds no weights as safetensors{beside}.",
            hint=_PICKLES if others else "Write them with model.save_pretrained(folder).",
        )
    for index in sorted(path.glob("*.safetensors.index.json")):
        parts = read_object(index).get("weight_map")
        if not isinstance(parts, dict) or not parts:
            raise InvalidInput(f"{index} is damaged: it has no weight_map.", hint=_SAVE)
        if not all(_is_safe(path, part, (".safetensors",)) for part in parts.values()):
            raise InvalidInput(
                f"{index} names a file that is no .safetensors file of this folder.", hint=_PICKLES
            )
    if (path / "adapter_config.json").exists():
        raise InvalidInput(
            f"folder={str(path)!r} holds an adapter beside the model.",
            hint="Merge it with model.merge_and_unload() and save the model again.",
        )
    return read_headers(path)


def check_tokenizer(path: Path) -> None:
    """Check the JSON files of a folder's tokenizer.

    Raises:
        InvalidInput: One of them is damaged.
    """
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (path / name).exists():
            fields = read_object(path / name, hint=_SAVE_TOKENIZER)
            if name == "tokenizer.json":
                check_rules(path / name, fields)
    for name in ("added_tokens.json", "vocab.json"):
        if (path / name).exists():
            tokens = read_object(path / name, hint=_SAVE_TOKENIZER)
            if not all(type(token) is int for token in tokens.values()):
                raise InvalidInput(
                    f"{path / name} is damaged: a token has no number.", hint=_SAVE_TOKENIZER
                )


def read_headers(path: Path) -> Weights:
    """Read the shapes of a folder's weights, and none of their numbers.

    Raises:
        InvalidInput: A file is not a regular one, or its header is damaged.
    """
    tensors = elements = widest = 0
    for file in sorted(path.glob("*.safetensors")):
        if not file.is_file():
            raise InvalidInput(f"{file} is not a regular file.", hint=_SAVE)
        try:
            with safe_open(file, framework="pt") as weights:
                shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as fault:
            raise InvalidInput(
                f"{file} is no file of safetensors, or damaged.", hint=_SAVE
            ) from fault
        tensors += len(shapes)
        elements += sum(math.prod(shape) for shape in shapes)
        widest = max([widest, *(side for shape in shapes for side in shape)])
    return Weights(tensors, elements, widest)


def _most(name: str, weights: Weights | None) -> int | None:
    """The largest value that a size of this name can have; None where there is no limit."""
    if _POSITIONS.search(name):
        return _MOST_POSITIONS
    if weights is None or _NO_SIZES.search(name):
        return None
    if _LAYERS.search(name):
        return weights.tensors
    return max(weights.tensors, weights.widest) if _MANY.search(name) else None


def _numbers(data: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield all numbers of JSON, each with the name of the field that it is in."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _numbers(value, key)
    elif isinstance(data, list):
        for value in data:
            yield from _numbers(value, name)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield name, data


def _depth(data: Any) -> int:
    level, depth = [data], 0
    while level:
        depth += 1
        inner = [node for node in level if isinstance(node, dict | list)]
        level = [v for node in inner for v in (node.values() if isinstance(node, dict) else node)]
    return depth


def _is_safe(folder: Path, name: Any, endings: tuple[str, ...]) -> bool:
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(endings):
        return False
    return (folder / name).is_file()
