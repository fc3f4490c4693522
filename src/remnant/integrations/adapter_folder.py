"""Folders of PEFT adapters: finds the base model, and merges the adapter into it in memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from remnant.errors import InvalidInput, RemnantError, UnsupportedModel, import_failure
from remnant.integrations.arithmetic import full_precision
from remnant.integrations.folder_checks import check_numbers, read_headers, read_object
from remnant.integrations.placement import Placement
from remnant.integrations.pretrained import (
    is_library_fault,
    quiet,
    read_model,
    read_tokenizer,
)
from remnant.integrations.time_bound import check_patterns

CONFIG, WEIGHTS, PICKLE = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
# Types whose merged weights are tested against the live adapter.
TYPES = ("LORA", "IA3", "LOHA", "LOKR", "LN_TUNING")
_TASKS = (None, "CAUSAL_LM", "SEQ_2_SEQ_LM")
# Ways to start a training; a string that is not here recomputes the base's weights on loading.
_STARTS = (None, True, False, "gaussian", "orthogonal", "eva", "pissa", "olora")
# Settings of LoRA that make the adapter depend on the text, or the base another network.
_NOT_MERGED = (
    *("alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication"),
    *("megatron_config", "monteclora_config", "velora_config"),
)
_RANKS = ("r", "rank_pattern")
_TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model"),
    *("spiece.model", "vocab.json", "vocab.txt"),
)
_NAME = "default"
_PREFIX = "base_model.model."
_SAVE = "Save the adapter again with model.save_pretrained(folder)."
_SAVE_EMBEDDINGS = "Save it with model.save_pretrained(folder, save_embedding_layers=True)."
_FIT = "Pass base=DIR, the folder of the model that the adapter was trained on."
_MERGE = "Merge it with model.merge_and_unload(), and save the whole model."
_TOLERANCE = 1e-3  # of merged logits, relative to the largest logit


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The folders that a language model is read from.

    Attributes:
        model: The weights; the base's where there is an adapter.
        tokenizer: The tokenizer.
        adapter: The adapter, if there is one.
    """

    model: Path
    tokenizer: Path
    adapter: Path | None = None


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds a PEFT adapter and no whole model."""
    path = Path(folder)
    if not (path / CONFIG).is_file() or (path / "remnant.json").is_file():
        return False
    others = [file for file in path.glob("*.safetensors") if file.name != WEIGHTS]
    return not (others and (path / "config.json").is_file())


def model_parts(folder: str | Path, *, base: str | Path | None = None) -> ModelParts:
    """Find the folders of a model: itself, or an adapter and its base.

    Args:
        folder: A Hugging Face model, or a PEFT adapter (it holds ``adapter_config.json``).
        base: The base model of the adapter. By default the local folder that
            ``base_model_name_or_path`` of the adapter's configuration names: an absolute path, or
            one relative to the adapter or to the working directory.

    Raises:
        InvalidInput: ``base`` is given for a folder that is no adapter; the base is not a local
            folder or holds no model; the adapter's configuration is damaged.
    """
    path = Path(folder)
    if not is_adapter(path):
        if base is not None:
            raise InvalidInput(
                f"base={str(base)!r} is given, and folder={str(path)!r} is no adapter.",
                hint=f"Leave it out: only a folder with {CONFIG} has a base.",
            )
        return ModelParts(path, path)
    fields = read_object(path / CONFIG, hint=_SAVE)
    base_folder = _named_base(path, fields) if base is None else Path(base)
    if not (base_folder / "config.json").is_file() or is_adapter(base_folder):
        raise InvalidInput(
            f"base={str(base_folder)!r} is no folder of a Hugging Face model.",
            hint="Pass the folder that the model's own save_pretrained wrote; "
            "nothing is downloaded.",
        )
    return ModelParts(base_folder, path if _has_tokenizer(path) else base_folder, path)


def tokenizer_folder(folder: str | Path, *, base: str | Path | None = None) -> Path:
    """Find the folder of a model's tokenizer; a base is looked for only where it is needed.

    Raises:
        InvalidInput: See ``model_parts``.
    """
    path = Path(folder)
    return (
        path
        if is_adapter(path) and _has_tokenizer(path)
        else model_parts(path, base=base).tokenizer
    )


def read_parts(
    parts: ModelParts,
    *,
    kind: str,
    device: str | torch.device,
    dtype: torch.dtype,
    placement: Placement | None = None,
) -> tuple[Any, Any]:
    """Read a model and its tokenizer; an adapter is merged into its base in memory.

    Guarantees:
        * The merged model gives the logits of the live adapter, but for rounding; this is checked
          on every model.
        * Nothing is downloaded, no pickle is read, and no code of a folder is run.

    Args:
        parts: See ``model_parts``.
        kind: The name of the transformers class that knows the architectures.
        device: Where the model computes.
        dtype: float32 or float64.
        placement: Instead of the two: several devices, or weights in their own precision.

    Raises:
        InvalidInput: A folder is damaged, or the adapter does not fit the base.
        UnsupportedModel: The adapter cannot be merged into weights, or belongs to a classifier.
        MissingExtra: transformers or peft is not installed.
    """
    if parts.adapter is None:
        given: dict[str, Any] = {"device": device, "dtype": dtype}
        if placement is not None:
            given = {
                "device": placement.device,
                "dtype": None if placement.precision == "own" else dtype,
                "device_map": placement.device_map,
            }
        model = read_model(parts.model, kind=kind, **given)
        return model, read_tokenizer(parts.tokenizer)
    if placement is not None:
        placement.refuse(f"folder={str(parts.adapter)!r} holds an adapter, which", _MERGE)
    fields, tensors = _read_adapter(parts.adapter)
    peft_library()
    tokenizer = read_tokenizer(parts.tokenizer)
    with _naming_base():
        model = read_model(parts.model, kind=kind, device=device, dtype=dtype)
    # Peft draws first values for the layers that it makes: the caller's generator stays as it was.
    with quiet(), torch.random.fork_rng(), torch.no_grad():
        model = _with_adapter(model, fields, tensors, parts)
    rows = len(model.get_input_embeddings().weight)
    if parts.tokenizer == parts.adapter and len(tokenizer) > rows:
        raise InvalidInput(
            f"folder={str(parts.adapter)!r}: the tokenizer has {len(tokenizer)} tokens, and the "
            f"model has embeddings for {rows}.",
            hint=_SAVE_EMBEDDINGS,
        )
    return model, tokenizer


def _with_adapter(
    model: Any, fields: Mapping[str, Any], tensors: Mapping[str, Tensor], parts: ModelParts
) -> Any:
    """Merge an adapter into its base, which is changed.

    Raises:
        InvalidInput: It does not fit, or the result gives no finite numbers.
        UnsupportedModel: The merged model differs from the live adapter.
    """
    peft = peft_library()
    if parts.adapter is not None:
        check_patterns(parts.adapter / CONFIG, fields, (name for name, _ in model.named_modules()))
    with _fitting(parts, "its configuration cannot be used"):
        config = peft.PeftConfig.from_peft_type(**fields)
        config.inference_mode, config.task_type = True, None
    with _fitting(parts, "its embeddings have other shapes"):
        _resize(model, fields, tensors, parts)
    rows = len(model.get_input_embeddings().weight)
    ends = _ends(model)
    with _fitting(parts, "the modules that it changes are not there, or have other shapes"):
        live = peft.get_peft_model(model, config, adapter_name=_NAME).eval()
    with _fitting(parts, "its tensors have other names or shapes"):
        result = peft.set_peft_model_state_dict(live, dict(tensors), adapter_name=_NAME)
    missing = _not_loaded(live, result.missing_keys)
    # Weights of embeddings are stored more than once, in forms of which peft reads one.
    foreign = [
        name
        for name in result.unexpected_keys
        if not any(end and name.startswith(f"{_PREFIX}{end}.") for end in ends)
    ]
    if missing or foreign:
        raise InvalidInput(
            f"folder={str(parts.adapter)!r}: the adapter does not fit base={str(parts.model)!r}: "
            f"tensors missing: {missing}, tensors of modules that are not there: {len(foreign)}.",
            hint=_FIT,
        )
    with _fitting(parts, "it cannot be merged"):
        answers = _answers(live.get_base_model(), rows)
        _untie(live)
        with full_precision(live):
            merged = live.merge_and_unload()
        merged.eval()
        again = _answers(merged, rows)
    if not (answers.isfinite().all() and again.isfinite().all()):
        raise InvalidInput(
            f"folder={str(parts.adapter)!r}: the adapter's numbers are so large that the model "
            "answers NaN or infinity.",
            hint=_SAVE,
        )
    if (answers - again).abs().max() > _TOLERANCE * (1 + answers.abs().max()):
        raise UnsupportedModel(
            f"folder={str(parts.adapter)!r}: the merged model answers otherwise than the adapter.",
            hint="Merge it with model.merge_and_unload(), compare, and save the whole model.",
        )
    return merged


def _not_loaded(live: Any, missing_names: list[str]) -> int:
    """Count the adapter's tensors that were not read, but for those tied to one that was."""
    parameters = dict(live.named_parameters(remove_duplicate=False))
    missing = {name for name in missing_names if f".{_NAME}" in name and name in parameters}
    loaded = {id(tensor) for name, tensor in parameters.items() if name not in missing}
    return sum(id(parameters[name]) not in loaded for name in missing)


def _ends(model: Any) -> tuple[str | None, str | None]:
    """Names of the modules of the input and output embeddings."""
    names = {module: name for name, module in model.named_modules()}
    return names.get(model.get_input_embeddings()), names.get(model.get_output_embeddings())


def _answers(model: Any, rows: int) -> Tensor:
    """Logits of a model for its first and last tokens."""
    few = min(4, rows)
    ids = torch.tensor([[*range(few), *range(rows - few, rows)]], device=model.device)
    given = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with full_precision(model):
        logits: Tensor = model(input_ids=ids, **given).logits
    return logits


def _untie(live: Any) -> None:
    """Give layers that an adapter changes weights of their own.

    An adapter of an embedding does not change an output that is tied to it, and merging it would.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    holders = Counter(id(p) for module in live.modules() for p in module._parameters.values())
    for layer in [module for module in live.modules() if isinstance(module, BaseTunerLayer)]:
        changed = layer.get_base_layer()
        for name, parameter in list(changed.named_parameters(recurse=False)):
            if holders[id(parameter)] > 1:
                own = nn.Parameter(parameter.detach().clone(), requires_grad=False)
                setattr(changed, name, own)


@contextmanager
def _fitting(parts: ModelParts, why: str) -> Iterator[None]:
    """Turn whatever peft raises on an adapter into one sentence.

    Raises:
        InvalidInput: In place of the library's error, which is kept as the cause.
    """
    try:
        yield
    except BaseException as fault:
        if not is_library_fault(fault):
            raise
        raise InvalidInput(
            f"folder={str(parts.adapter)!r}: the adapter does not fit base={str(parts.model)!r}: "
            f"{why}.",
            hint=_FIT,
        ) from fault


@contextmanager
def _naming_base() -> Iterator[None]:
    """Let errors about the base's folder call it ``base``."""
    try:
        yield
    except RemnantError as fault:
        fault.message = fault.message.replace("folder=", "base=", 1)
        raise


def peft_library() -> Any:
    """Return the peft library.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import peft
    except ImportError as fault:
        raise import_failure(
            fault,
            library="peft",
            message="Reading an adapter needs peft, which is not installed.",
            extra="peft",
        ) from None
    return peft


def _has_tokenizer(path: Path) -> bool:
    return any((path / name).is_file() for name in _TOKENIZERS)


def _named_base(path: Path, fields: Mapping[str, Any]) -> Path:
    """The local folder that an adapter's configuration names as its base."""
    name = fields.get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise InvalidInput(
            f"folder={str(path)!r} is an adapter, and {CONFIG} names no base model.",
            hint="Pass base=DIR, the folder of the model that it was trained on.",
        )
    for place in (path / name, Path(name)):
        try:
            if place.is_dir() and place.resolve() != path.resolve():
                return place
        except (OSError, ValueError):  # a name that no file can have
            continue
    shown = name if name.isprintable() and len(name) < 200 else name[:50].encode("unicode_escape")
    raise InvalidInput(
        f"folder={str(path)!r} is an adapter of {shown!r}, which is no local folder.",
        hint="Pass base=DIR, the folder of that model; nothing is downloaded.",
    )


def _read_adapter(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read and check an adapter's configuration and tensors (in float32)."""
    fields = dict(read_object(path / CONFIG, hint=_SAVE))
    check_numbers(path / CONFIG, fields)
    if not (path / WEIGHTS).is_file():
        pickled = (path / PICKLE).exists()
        raise InvalidInput(
            f"folder={str(path)!r} holds no {WEIGHTS}{f', only {PICKLE}' if pickled else ''}.",
            hint=("Pickled weights are never read. " if pickled else "") + _SAVE,
        )
    headers = read_headers(path)
    if not headers.tensors:
        raise InvalidInput(f"{path / WEIGHTS} holds no tensor.", hint=_SAVE)
    _check_fields(path, fields, headers.widest)
    tensors = load_file(path / WEIGHTS)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise InvalidInput(f"{path / WEIGHTS}: {name!r} holds no finite numbers.", hint=_SAVE)
    fields.pop("runtime_config", None)
    fields.pop("auto_mapping", None)
    return fields, {name: tensor.float() for name, tensor in tensors.items()}


def _check_fields(path: Path, fields: Mapping[str, Any], widest: int) -> None:
    """Refuse what cannot be merged, and ranks that the tensors do not have."""
    kind, task, start = (
        fields.get(name) for name in ("peft_type", "task_type", "init_lora_weights")
    )
    where = path / CONFIG
    if kind not in TYPES:
        raise UnsupportedModel(
            f"{where}: adapters of the type {_shown(kind)} are not merged here; known: "
            f"{', '.join(TYPES)}.",
            hint=_MERGE,
        )
    if task not in _TASKS:
        raise UnsupportedModel(
            f"{where}: the adapter is of the task {_shown(task)}, and not of a language model.",
            hint="Pass an adapter of the task CAUSAL_LM or SEQ_2_SEQ_LM.",
        )
    unmerged = [name for name in _NOT_MERGED if fields.get(name)]
    if unmerged:
        raise UnsupportedModel(
            f"{where}: an adapter with {unmerged[0]} is not merged here.", hint=_MERGE
        )
    if not isinstance(start, bool | str | None) or start not in _STARTS:
        raise UnsupportedModel(
            f"{where}: init_lora_weights={_shown(start)} changes the base in a way that cannot be "
            "repeated.",
            hint="Save the adapter with path_initial_model_for_weight_conversion, as peft's "
            "documentation describes.",
        )
    for name in _RANKS:
        values = fields.get(name)
        for rank in values.values() if isinstance(values, dict) else (values,):
            if rank is not None and (type(rank) is not int or not 0 < rank <= widest):
                raise InvalidInput(
                    f"{where}: {name} is {_shown(rank)}, and the tensors allow 1 to {widest}.",
                    hint="The configuration belongs to another adapter. " + _SAVE,
                )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _resize(
    model: Any, fields: Mapping[str, Any], tensors: Mapping[str, Tensor], parts: ModelParts
) -> None:
    """Give the embeddings as many rows as the adapter was trained with.

    Raises:
        InvalidInput: The adapter has no weights for rows that the base lacks.
    """
    ends = dict(zip(("input", "output"), _ends(model), strict=True))
    stored = {end: _stored_rows(tensors, name) for end, name in ends.items()}
    trained = {
        end: _trained_tokens(fields.get("trainable_token_indices"), name, end)
        for end, name in ends.items()
    }
    output = model.get_output_embeddings()
    embedding = model.get_input_embeddings().weight
    before = len(embedding)
    rows = max(stored.values()) or max([before, *(max(t, default=0) + 1 for t in trained.values())])
    tied = output is None or output.weight is embedding
    for end in ("input",) if tied else ("input", "output"):
        new = sum(before <= token < rows for token in trained[end])
        if stored[end] < rows and new < rows - before:
            raise InvalidInput(
                f"folder={str(parts.adapter)!r} was trained with {rows} tokens, and holds no "
                f"{end} embeddings of those that its base lacks.",
                hint=_SAVE_EMBEDDINGS,
            )
    if rows != before:
        model.resize_token_embeddings(rows, mean_resizing=False)


def _stored_rows(tensors: Mapping[str, Tensor], name: str | None) -> int:
    """Rows of an embedding whose weights an adapter holds as a whole; 0 where it does not."""
    if name is None:
        return 0
    forms = ("", ".base_layer", ".modules_to_save", ".token_adapter.base_layer")
    held = [tensors.get(f"{_PREFIX}{name}{form}.weight") for form in forms]
    return max(
        (len(tensor) for tensor in held if tensor is not None and tensor.ndim == 2), default=0
    )


def _trained_tokens(given: Any, name: str | None, end: str) -> set[int]:
    """Tokens whose rows of an embedding an adapter trains one by one."""
    if isinstance(given, dict):
        given = [
            token
            for target, tokens in given.items()
            if name is not None and re.search(rf"(^|\.){re.escape(str(target))}$", name)
            for token in (tokens if isinstance(tokens, list) else [])
        ]
    elif end == "output":
        return set()
    return {token for token in given or () if type(token) is int and token >= 0}
