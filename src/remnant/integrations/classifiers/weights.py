"""Third-party weights, loaded into a network that is made here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from remnant.data.own_code import said, split_reference
from remnant.errors import InvalidInput, UnsupportedModel, require
from remnant.models.catalogue import model_maker

# What wrappers put before every name.
_PREFIXES = ("module.", "_orig_mod.")
# What a third-party maker may raise.
_FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, RuntimeError, SyntaxError, TypeError, ValueError),
)
_SHOWN = 3


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a file of safetensors by name.

    Raises:
        InvalidInput: It is not there, or not of this format.
    """
    try:
        return load_file(str(path))
    except FileNotFoundError:
        raise InvalidInput(f"{path} is not there.", hint="Check its path.") from None
    except (SafetensorError, OSError, ValueError) as fault:
        raise InvalidInput(
            f"{path} is no file of safetensors, or damaged.",
            hint="Write it with safetensors.torch.save_file(model.state_dict(), path).",
        ) from fault


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """Read a file of safetensors; a prefix that wrappers put before all names is taken off.

    Raises:
        InvalidInput: It is not there, not of this format, empty, or holds NaN.
    """
    state = read_tensors(path)
    for prefix in _PREFIXES:
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): tensor for name, tensor in state.items()}
    if not state:
        raise InvalidInput(f"{path} holds no tensor.")
    damaged = [
        name
        for name, tensor in state.items()
        if tensor.is_floating_point() and not bool(tensor.isfinite().all())
    ]
    if damaged:
        raise InvalidInput(
            f"{path} holds NaN or infinite weights, in {_listed(damaged)}.",
            hint="Its training may have diverged; pass an earlier checkpoint.",
        )
    return state


def model_of_architecture(
    name: str,
    state: Mapping[str, Tensor],
    *,
    shape: Sequence[int],
    classes: int,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Make a network of ours for these weights.

    Args:
        name: In the catalogue of recipes: ``mlp1``, ``cnn1``, ``cnn2``, ...
        state: The weights; they decide how many classes there are.
        shape: Of one input.
        classes: To begin with, those of the data.
        options: Of the architecture, as in a recipe.

    Raises:
        PlanError: An unknown name or option, or images too small for it.
        InvalidInput: The weights do not fit.
    """
    given = dict(options or {})
    with torch.device("meta"):
        plain = model_maker(name, shape=shape, classes=max(2, classes), **given)()
    dense = [layer for layer, module in plain.named_modules() if isinstance(module, nn.Linear)]
    head = state.get(f"{dense[-1]}.weight") if dense else None
    outputs = len(head) if head is not None and head.ndim == 2 else classes
    module = model_maker(name, shape=shape, classes=max(2, outputs), **given)()
    return _filled(module, state, f"{name} for samples of shape {tuple(shape)}")


def model_of_maker(maker: str, state: Mapping[str, Tensor]) -> nn.Module:
    """Call a function of somebody's own that makes the network, and fill in the weights.

    Args:
        maker: ``package.module:function``; modules of the current folder are found too. The
            function takes no arguments and returns the network.
        state: The weights.

    Raises:
        InvalidInput: There is no such function, it fails, or the weights do not fit.
        UnsupportedModel: It returns no network.
    """
    made = _call(maker, _function(maker))
    if not isinstance(made, nn.Module):
        raise UnsupportedModel(
            f"maker={maker!r} returns {type(made).__name__}, not a torch.nn.Module.",
            hint="Let the function return the network, untrained.",
        )
    return _filled(made, state, f"the network of {maker}")


def _function(maker: str) -> Callable[[], Any]:
    module, name = split_reference("maker", maker)
    try:
        with _current_folder_first(module):
            attribute = getattr(import_module(module), name, None)
    except _FAULTS as fault:
        raise InvalidInput(
            f"maker={maker!r}: {module} cannot be imported: {said(fault)}.",
            hint="Run the command in the folder that holds it, or install it.",
        ) from fault
    if not callable(attribute):
        raise InvalidInput(f"maker={maker!r}: {module} has no function {name}.")
    function: Callable[[], Any] = attribute
    return function


@contextmanager
def _current_folder_first(module: str) -> Iterator[None]:
    """Let imports look into the current folder first.

    A folder without ``__init__.py`` loses to an installed package of the same name (Opacus installs
    one called ``examples``), wherever it is on the path. So such a folder becomes a package here.
    """
    here = Path.cwd()
    top, dot, _ = module.partition(".")
    source = here.joinpath(*module.split(".")).with_suffix(".py")
    if dot and source.is_file() and not (here / top / "__init__.py").exists():
        _take_for_package(here / top)
    sys.path.insert(0, str(here))
    try:
        yield
    finally:
        if str(here) in sys.path:
            sys.path.remove(str(here))


def _take_for_package(folder: Path) -> None:
    known = sys.modules.get(folder.name)
    if known is not None and list(getattr(known, "__path__", ())) == [str(folder)]:
        return
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{folder.name}.")]:
        del sys.modules[name]
    package = ModuleType(folder.name)
    package.__path__ = [str(folder)]
    sys.modules[folder.name] = package


def _call(maker: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except _FAULTS as fault:
        raise InvalidInput(
            f"maker={maker!r} fails: {said(fault)}.",
            hint="It is called without arguments.",
        ) from fault


def _filled(module: nn.Module, state: Mapping[str, Tensor], what: str) -> nn.Module:
    own = module.state_dict()
    missing = [name for name in own if name not in state and not _counter(name)]
    strange = [name for name in state if name not in own]
    other = [
        f"{name} ({tuple(state[name].shape)} instead of {tuple(own[name].shape)})"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    faults = [f"the file lacks {_listed(missing)}"] if missing else []
    faults += [f"the network has no {_listed(strange)}"] if strange else []
    faults += [f"of another shape is {_listed(other)}"] if other else []
    if faults:
        faults[0] = f"the weights are not those of {what}: {faults[0]}"
    require(faults, hint="Name the architecture with its options, or the maker, it was made with.")
    module.load_state_dict(dict(state), strict=False)
    return module


def _counter(name: str) -> bool:
    """Whether a buffer only counts batches, which nothing is computed from."""
    return name.endswith("num_batches_tracked")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
