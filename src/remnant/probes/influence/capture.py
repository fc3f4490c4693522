"""What entered layers with a closed form, and what came back to them.

A layer's closed form holds where it ran once, where its parameters are used nowhere else, and where
examples are the first axis of its input. The first two are read off the graph of each batch: its
leaves say how often a parameter was used. Where that does not hold, the general method is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from remnant.gradients.closed_forms import Norms, Seen
from remnant.gradients.layers import FORMS, Layer


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    layer: Layer
    given: Tensor
    edge: GradientEdge
    statistics: tuple[Tensor, Tensor] | None


@contextmanager
def watching(layers: Sequence[Layer]) -> Iterator[list[_Call]]:
    """Note every call of the layers that takes part in the graph, while a batch is asked."""
    calls: list[_Call] = []

    def keep(layer: Layer) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
        def after(module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
            if len(given) == 1 and isinstance(made, Tensor) and made.requires_grad:
                # An edge, not the output: that may be overwritten in place later on.
                edge = get_gradient_edge(made)
                calls.append(_Call(layer, given[0].detach(), edge, _statistics(module)))

        return after

    hooks = [layer.module.register_forward_hook(keep(layer), prepend=True) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _statistics(module: Any) -> tuple[Tensor, Tensor] | None:
    mean = getattr(module, "running_mean", None)
    return None if mean is None else (mean, module.running_var)


def closed(
    losses: Tensor, calls: Sequence[_Call], weights: Mapping[str, Tensor]
) -> tuple[Norms, set[str]]:
    """Return squared gradient norms of each example, and which parameters were used at all.

    Args:
        losses: One an example.
        calls: Of layers, while the losses were computed.
        weights: The parameters asked for, by name.

    Returns:
        For each parameter whose closed form holds, its norms ``(n,)``; and the names of all those
        that the losses depend on.
    """
    if not losses.requires_grad:
        return {}, set()
    total = losses.sum()
    uses = _uses(total)
    often = {name: uses[id(tensor)] for name, tensor in weights.items()}
    times = Counter(id(call.layer) for call in calls)
    once = [call for call in calls if times[id(call.layer)] == 1 and _holds(call, often, losses)]
    norms: Norms = {}

    def take(call: _Call, g: Tensor | None) -> None:
        if g is not None and len(g) == len(losses):
            norms.update(_norms(call, g))

    if once:
        _backward(total, once, take)
    return norms, {name for name, number in often.items() if number}


def _backward(
    total: Tensor, calls: Sequence[_Call], take: Callable[[_Call, Tensor | None], None]
) -> None:
    """Go back from the total no further than needed, handing out gradients as they come.

    Gradients of weights are not computed, and those of outputs are dropped as soon as possible.
    """
    passed = _passed([call.edge.node for call in calls])
    last = [call for call in calls if call.edge.node not in passed]

    def hand(call: _Call, place: int) -> Callable[[tuple[Tensor, ...]], None]:
        return lambda came: take(call, came[place])

    hooks = [
        call.edge.node.register_prehook(hand(call, call.edge.output_nr))
        for call in calls
        if call.edge.node in passed
    ]
    try:
        ends = torch.autograd.grad(total, [call.edge for call in last], allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    for call, g in zip(last, ends, strict=True):
        take(call, g)


def _passed(nodes: Sequence[Node]) -> set[Node]:
    """Those of the nodes behind which there is another one, on the way back."""
    wanted = set(nodes)
    behind: dict[Node, bool] = {}
    for start in nodes:
        path = [(start, iter(start.next_functions))]
        while path:
            node, rest = path[-1]
            for after, _ in rest:
                if after is not None and after not in behind:
                    path.append((after, iter(after.next_functions)))
                    break
            else:
                path.pop()
                behind[node] = any(
                    after is not None and (after in wanted or behind[after])
                    for after, _ in node.next_functions
                )
    return {node for node in wanted if behind[node]}


def _norms(call: _Call, g: Tensor) -> Norms:
    form = FORMS[type(call.layer.module)].norms
    given, owns = call.given, call.layer.owns
    kind = torch.float64 if torch.float64 in (g.dtype, given.dtype) else torch.float32
    x = given.to(kind) if given.is_floating_point() else given
    seen = Seen(call.layer.module, x, g.detach().to(kind), owns.keys(), call.statistics)
    with torch.no_grad():
        return {owns[own]: norm for own, norm in form(seen).items()}


def _holds(call: _Call, often: Mapping[str, int], losses: Tensor) -> bool:
    fits = FORMS[type(call.layer.module)].fits
    return (
        fits(call.layer.module, call.given.ndim)
        and len(call.given) == len(losses)
        and all(often[name] == 1 for name in call.layer.owns.values())
    )


def _uses(total: Tensor) -> Counter[int]:
    """How often each leaf is used in the graph of a tensor, by the leaf's id."""
    uses: Counter[int] = Counter()
    reached = {total.grad_fn}
    waiting = [total.grad_fn]
    while waiting:
        node = waiting.pop()
        for after, _ in node.next_functions if node is not None else ():
            if after is None:
                continue
            if type(after).__name__ == "AccumulateGrad":
                uses[id(after.variable)] += 1  # type: ignore[attr-defined]
            elif after not in reached:
                reached.add(after)
                waiting.append(after)
    return uses
