"""Runs what ``torch.export.save`` wrote, without unpickling anything or running foreign code.

``torch.export.load`` unpickles: sample inputs and custom objects, and weights where the file says
so. But a pt2 file is a zip archive of JSON (the graph) and of plain numbers (the weights). Both are
read here as what they are, and the graph is run operator by operator: only torch's own ATen
operators, none that reads files or writes, takes text or draws random numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RemnantError, UnsupportedModel
from remnant.integrations.classifiers.archive import KINDS, Archive, read_archive

_ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)")
_NUMBERS = {
    f"_operator.{name}": getattr(operator, name)
    for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "eq", "ge", "gt", "le", "lt", "ne")
}
# Operators without a tensor among their arguments that make one from plain numbers.
_MAKERS = {"arange", "full", "zeros", "ones", "empty", "scalar_tensor", "linspace", "eye"}
# Operators to which a text only says how to compute.
_TEXTS = {"gelu", "div", "div_", "einsum", "pad"}
# Operators that draw random numbers in training only, by the name of the argument that says so.
_DRAWS = {"dropout": "train", "dropout_": "train", "scaled_dot_product_attention": "dropout_p"}
_FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_STRIDED = 7
_NO_LAYER = "_empty_nn_module_stack"  # what torch writes for operators between layers
_EXPORT = (
    "Export it again with torch.export.export(model.eval(), (images,), "
    "dynamic_shapes=({0: torch.export.Dim('batch')},)), or pass weights and a maker."
)


class _Place(nn.Module):
    """Where a layer of the exported model ended: gives on what the layer returned."""

    def forward(self, given: Any) -> Any:
        return given


class _Entered(nn.Linear):
    """What enters a dense layer of the exported model; it has no weights of its own."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def extra_repr(self) -> str:
        return ""

    def forward(self, given: Tensor) -> Tensor:
        return given


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator, its arguments as the file has them, and what becomes of the outcome."""

    operate: Any
    positional: tuple[Mapping[str, Any], ...]
    named: Mapping[str, Mapping[str, Any]]
    outputs: tuple[Mapping[str, Any], ...]
    places: tuple[nn.Module, ...]
    entered: _Entered | None
    at: int
    unused: tuple[str, ...]


class ExportedClassifier(nn.Module):
    """An exported program as a module: its layers keep their names, so that they can be watched.

    Attributes:
        fixed_batch: The number of examples it was exported for; None where any number will do.
        sample_shape: Of one example; None where it may differ.

    Raises:
        UnsupportedModel: It has an operator or argument that is not supported, takes another
            input than one tensor, or was exported in training mode.
    """

    def __init__(self, archive: Archive) -> None:
        super().__init__()
        self.fixed_batch, self.sample_shape = archive.fixed_batch, archive.shape
        self._input, self._output = archive.input, archive.output
        self._names: dict[str, str] = {}
        for number, (name, tensor) in enumerate(archive.tensors.items()):
            self._names[name] = f"tensor_{number}"
            if tensor.is_floating_point():
                held = nn.Parameter(tensor, requires_grad=False)
                self.register_parameter(self._names[name], held)
            else:
                self.register_buffer(self._names[name], tensor)
        self._steps = self._made(archive.nodes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits."""
        if self.fixed_batch not in (None, len(images)):
            raise InvalidInput(
                f"the program was exported for batches of {self.fixed_batch}, and gets "
                f"{len(images)}.",
                hint=_EXPORT,
            )
        held = {name: getattr(self, attribute) for name, attribute in self._names.items()}
        versions = {name: tensor._version for name, tensor in held.items()}
        values: dict[str, Any] = held | {self._input: images.clone()}
        for step in self._steps:
            self._work(step, values)
        if changed := [name for name, tensor in held.items() if tensor._version != versions[name]]:
            raise UnsupportedModel(
                f"the program changes its own {changed[0]}: it was exported in training mode.",
                hint=_EXPORT,
            )
        logits = values[self._output]
        if not isinstance(logits, Tensor):
            raise UnsupportedModel("the program returns something else than a tensor.")
        return logits

    def _work(self, step: _Step, values: dict[str, Any]) -> None:
        given = [_value(argument, values, self._where) for argument in step.positional]
        named = {
            name: _value(argument, values, self._where) for name, argument in step.named.items()
        }
        if step.entered is not None:
            given[step.at] = step.entered(given[step.at])
        made = step.operate(*given, **named)
        for place in step.places:
            made = place(made)
        several = isinstance(made, tuple | list) and len(step.outputs) > 1
        for output, result in zip(step.outputs, made if several else [made], strict=False):
            _keep(output, result, values)
        for name in step.unused:
            values.pop(name, None)

    @property
    def _where(self) -> torch.device:
        return next((tensor.device for tensor in self.parameters()), torch.device("cpu"))

    def _made(self, nodes: Sequence[Mapping[str, Any]]) -> list[_Step]:
        paths = [_paths(node) for node in nodes]
        ends = {path: at for at, each in enumerate(paths) for path in each}
        uses: dict[str, int] = {}
        for at, node in enumerate(nodes):
            for argument in node["inputs"]:
                uses.update(dict.fromkeys(_mentioned(argument["arg"]), at))
        last: dict[int, list[str]] = {}
        for name, at in uses.items():
            if name not in self._names and name != self._output:
                last.setdefault(at, []).append(name)
        steps = []
        for at, node in enumerate(nodes):
            inputs = node["inputs"]
            operate, dense = _operator(node), _dense(node)
            entered = None
            if dense is not None:
                entered = _Entered()
                inner = paths[at][-1] if paths[at] else ""
                self._place(inner)._modules["linear"] = entered
            steps.append(
                _Step(
                    operate,
                    tuple(argument["arg"] for argument in inputs if argument.get("kind") != 2),
                    {
                        argument["name"]: argument["arg"]
                        for argument in inputs
                        if argument.get("kind") == 2
                    },
                    tuple(node["outputs"]),
                    tuple(self._place(path) for path in reversed(paths[at]) if ends[path] == at),
                    entered,
                    dense or 0,
                    tuple(last.get(at, ())),
                )
            )
        return steps

    def _place(self, path: str) -> nn.Module:
        """Return the module at a path, made with those above it where it is not there."""
        module: nn.Module = self
        for part in path.split(".") if path else ():
            if not isinstance(module._modules.get(part), _Place):
                module._modules[part] = _Place()
            module = module._modules[part] or module
        return module


def load_exported(path: str | Path) -> ExportedClassifier:
    """Read a pt2 file as a module that gives logits.

    Args:
        path: What ``torch.export.save`` wrote.

    Guarantees:
        * Nothing is unpickled, evaluated or imported; files that would need it are refused.

    Raises:
        InvalidInput: The file is not there, damaged, or not of this format.
        UnsupportedModel: See ``ExportedClassifier``.
    """
    try:
        return ExportedClassifier(read_archive(Path(path)))
    except RemnantError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError) as fault:
        raise InvalidInput(f"{path} is damaged: its graph is not as it should be.") from fault


def _operator(node: Mapping[str, Any]) -> Any:
    target = node["target"]
    if target in _NUMBERS:
        return _NUMBERS[target]
    match = _ATEN.fullmatch(target)
    packet = getattr(torch.ops.aten, match[1], None) if match else None
    operate = getattr(packet, match[2], None) if match else None
    if match is None or not isinstance(operate, torch._ops.OpOverload):
        raise UnsupportedModel(
            f"the program calls {target}, which is not an ATen operator.",
            hint="Pass weights and a maker.",
        )
    name = match[1]
    kinds = {str(argument.type) for argument in operate._schema.arguments}
    given = {argument["name"]: argument["arg"] for argument in node["inputs"]}
    if not any("Tensor" in kind for kind in kinds) and name not in _MAKERS:
        raise UnsupportedModel(f"the program calls {target}, which is not supported.")
    if any("as_string" in arg or "as_strings" in arg for arg in given.values()):
        _allow(name in _TEXTS, f"calls {target} with a text")
    if operate._schema.is_mutable:
        _allow(name.endswith("_") and not name.endswith("__"), f"calls {target}, which overwrites")
    trained = any(arg.get("as_bool") and key in ("train", "training") for key, arg in given.items())
    drawn = torch.Tag.nondeterministic_seeded in operate.tags and (
        name not in _DRAWS or bool(next(iter(given.get(_DRAWS[name], {"": 0}).values())))
    )
    if trained or drawn:
        raise UnsupportedModel(f"the program's {target} computes as in training.", hint=_EXPORT)
    return operate


def _allow(allowed: bool, what: str) -> None:
    if not allowed:
        raise UnsupportedModel(f"the program {what}, which is not supported.")


def _dense(node: Mapping[str, Any]) -> int | None:
    """The place of the states among the arguments of a dense layer; None for other operators."""
    return {"torch.ops.aten.linear.default": 0, "torch.ops.aten.addmm.default": 1}.get(
        node["target"]
    )


def _paths(node: Mapping[str, Any]) -> list[str]:
    """The layers that a node belongs to, the outermost first."""
    stack = node.get("metadata", {}).get("nn_module_stack", "")
    paths = [entry.split(",")[1] for entry in stack.split(";") if entry.count(",") >= 2]
    return [path for path in paths if all(path.split(".")) and not path.startswith(_NO_LAYER)]


def _mentioned(arg: Mapping[str, Any]) -> list[str]:
    """The names of the values that an argument uses."""
    names: list[str] = []
    for held in arg.values():
        for value in held if isinstance(held, list) else [held]:
            if isinstance(value, Mapping):
                name = value.get("name", value.get("as_name"))
                names += [name] if isinstance(name, str) else _mentioned(value)
    return names


def _value(arg: Mapping[str, Any], values: Mapping[str, Any], where: torch.device) -> Any:
    (kind, held) = next(iter(arg.items()))
    if kind == "as_none":
        return None
    if kind == "as_tensor":
        return values[held["name"]]
    if kind in ("as_tensors", "as_optional_tensors"):
        return [
            values[item["name"]] if "name" in item else _value(item, values, where) for item in held
        ]
    if kind in ("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"):
        return held
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return values[held["as_name"]] if "as_name" in held else next(iter(held.values()))
    if kind == "as_sym_ints":
        return [values[item["as_name"]] if "as_name" in item else item["as_int"] for item in held]
    if kind == "as_scalar_type" and held in KINDS:
        return KINDS[held]
    if kind == "as_memory_format" and held in _FORMATS:
        return _FORMATS[held]
    if kind == "as_layout" and held == _STRIDED:
        return torch.strided
    if kind == "as_device":
        return where
    raise UnsupportedModel(
        f"the program has an argument of kind {kind}, which is not supported.",
        hint="Pass weights and a maker.",
    )


def _keep(output: Mapping[str, Any], made: Any, values: dict[str, Any]) -> None:
    (kind, held) = next(iter(output.items()))
    if kind == "as_tensor":
        values[held["name"]] = made
    elif kind == "as_tensors":
        values.update(zip((tensor["name"] for tensor in held), made, strict=True))
    elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        values[held["as_name"]] = made
    elif kind != "as_none":
        raise UnsupportedModel(f"the program has an outcome of kind {kind}.")
