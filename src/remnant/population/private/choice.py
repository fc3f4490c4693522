"""Which way of per-example norms is taken: each is tried against autograd; and what none can do."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from remnant.errors import RemnantError, UnsupportedModel
from remnant.population.blueprint import Blueprint, Loss, Traits
from remnant.population.precision import arithmetic
from remnant.population.private.clipping import PrivateGradients
from remnant.population.private.ghost import Ghost
from remnant.population.private.noise import normal
from remnant.population.private.per_example import PerExample
from remnant.population.randomness import CounterDropout
from remnant.population.state import Named, State

_TRIED = 3  # examples
_DRIFT = 0.02  # by which weights are moved first: zeros would hide a wrong form
# By how much a way may be off and still be the same number, by what is computed in.
_OFF_BY = {torch.float64: 1e-6, torch.float32: 1e-3}
_COARSE = 5e-2
_FAULTS = (RemnantError, RuntimeError, TypeError, ValueError, LookupError, NotImplementedError)
Read = Callable[[Tensor, Tensor], Named]


def private_gradients(
    blueprint: Blueprint,
    loss: Loss,
    traits: Traits,
    state: State,
    store: tuple[Tensor, Tensor],
    *,
    precision: str | None,
    stacked: bool,
    expected_batch: int,
    noisy: bool,
) -> PrivateGradients:
    """Return what computes private gradients of a model the fastest way that is right.

    A closed form is kept only if it gives the norms of plain autograd on a few examples, in both
    orders of them; so is ``torch.func``. Otherwise examples are run one by one.

    Args:
        blueprint, loss, traits: The model.
        state: The members at the start.
        store: Inputs and targets, of which the first few are tried.
        precision: Of the population.
        stacked: Whether all members are run at once.
        expected_batch: Expected number of examples in a batch.
        noisy: Whether any member adds noise.
    """
    names = list(blueprint.tensors()["params"])
    member = _drifted(state, names, count=2 if stacked else 1)
    x, y = (part[:_TRIED].expand(len(member), *part[:_TRIED].shape) for part in store)
    with arithmetic(None, x.device):  # a form is right or wrong in full precision
        plain = PerExample(blueprint, loss, None, vmapped=False, draws=traits.draws)
        trial = _Trial(plain, member, names, x, y)
        covered = set() if traits.draws else _covered(trial, blueprint, loss, stacked=stacked)
        vmaps = not (traits.recurrent or traits.padded or traits.draws)
        if vmaps:
            vmapped = PerExample(blueprint, loss, None, vmapped=True, draws=False)
            known = trial.right(lambda x, y: _norms(vmapped, member, x, y, names))
            vmaps = known == set(names)
    ghost = None
    if covered:
        ghost = Ghost(blueprint, loss, precision, stacked=stacked, inputs=x[0])
        ghost.keep(covered)
    examples = PerExample(blueprint, loss, precision, vmapped=vmaps, draws=traits.draws)
    return PrivateGradients(ghost, examples, names, expected_batch=expected_batch, noisy=noisy)


def _covered(trial: _Trial, blueprint: Blueprint, loss: Loss, *, stacked: bool) -> set[str]:
    """Return the parameters whose closed forms are right."""
    try:
        ghost = Ghost(blueprint, loss, None, stacked=stacked, inputs=trial.x[0])
    except _FAULTS:
        return set()
    ghost.keep(trial.right(lambda x, y: ghost.notes(trial.member, x, y).by_name))
    return ghost.names


class _Trial:
    """A few examples in both orders, and their norms by plain autograd."""

    def __init__(
        self,
        plain: PerExample,
        member: State,
        names: list[str],
        x: Tensor,
        y: Tensor,
    ) -> None:
        self.member, self.x = member, x
        self._orders = [(x, y), (x.flip(1), y.flip(1))]
        self._exact = [_norms(plain, member, *order, names) for order in self._orders]
        kind = member["params"][names[0]].dtype
        self._share = _OFF_BY.get(kind, _COARSE)

    def right(self, read: Read) -> set[str]:
        """Return the parameters whose norms are right in both orders; none where it fails."""
        try:
            good = [
                self._agreeing(read(*order), exact)
                for order, exact in zip(self._orders, self._exact, strict=True)
            ]
        except _FAULTS:
            return set()
        return good[0] & good[1]

    def _agreeing(self, norms: Named, exact: Named) -> set[str]:
        total = torch.stack(list(exact.values())).sum(0)
        share = self._share

        def agrees(name: str, norm: Tensor) -> bool:
            apart = (norm - exact[name]).abs()
            return bool((apart <= share * exact[name] + share**2 * total).all())

        return {name for name, norm in norms.items() if agrees(name, norm)}


def _norms(way: PerExample, member: State, x: Tensor, y: Tensor, names: list[str]) -> Named:
    """Squared norms ``(members, examples)`` of each parameter."""
    every = {"members": slice(0, len(member)), "examples": slice(0, x.shape[1])}
    grads = way.gradients(member, x, y, names=names, **every)
    return {
        name: torch.linalg.vector_norm(grad.flatten(2), dim=2, dtype=torch.float64).square()
        for name, grad in grads.items()
    }


def _drifted(state: State, names: list[str], *, count: int) -> State:
    """Copies of the first member with all weights moved a little, each differently."""
    made = state.take(torch.zeros(count, dtype=torch.int64))
    own = made["params"]
    numbers = torch.arange(count, device=own[names[0]].device)
    sizes = [own[name][0].numel() for name in names]
    drawn = normal(numbers, torch.zeros_like(numbers), sum(sizes), dtype=torch.float64)
    for name, noise in zip(names, drawn.split(sizes, dim=1), strict=True):
        own[name] += (_DRIFT * noise).view(own[name].shape).to(own[name].dtype)
    return made


_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)
_HINT = "Use GroupNorm or LayerNorm, which normalise each example by itself."
_APART = {torch.float64: 1e-9, torch.float32: 1e-4}


def check_examples_apart(blueprint: Blueprint, inputs: Tensor) -> None:
    """Refuse a model in which one example's output depends on the others of its batch.

    Batch norms are known by name. Any other model is run on batches that differ in one example; the
    other outputs and the buffers must not change.

    Args:
        blueprint: The model.
        inputs: Some examples, at least one.

    Raises:
        UnsupportedModel: It mixes examples, or stores statistics of them.
    """
    for name, layer in blueprint.module.named_modules():
        if isinstance(layer, _BATCH_NORMS):
            raise UnsupportedModel(
                f"Layer {name!r} is a {type(layer).__name__}: it mixes the examples of a batch, so "
                "that clipping one example's gradient does not bound its influence.",
                hint=_HINT,
            )
    module = copy.deepcopy(blueprint.module).train()
    before = {n: b.clone() for n, b in module.named_buffers()}
    first = inputs[:1]
    outputs = [_outputs(module, torch.cat([first, other])) for other in _others(inputs)]
    if any(not torch.equal(before[n], b) for n, b in module.named_buffers()):
        raise UnsupportedModel(
            "The model stores statistics of its examples in a buffer, which no noise protects.",
            hint=_HINT,
        )
    share = _APART.get(outputs[0].dtype, 1e-2)
    for made in outputs[1:]:
        scale = outputs[0].abs().amax().clamp(min=1e-30)
        if bool(((made - outputs[0]).abs().amax() > share * scale).item()):
            raise UnsupportedModel(
                "The model mixes the examples of a batch, so that clipping one example's gradient "
                "does not bound its influence.",
                hint=_HINT,
            )


def _others(inputs: Tensor) -> list[Tensor]:
    """The second example of each trial batch."""
    return [inputs[row : row + 1] for row in sorted({0, len(inputs) // 2, len(inputs) - 1})]


def _outputs(module: nn.Module, inputs: Tensor) -> Tensor:
    """The first example's output; dropout and the model's own draws are the same each time."""
    for layer in module.modules():
        if isinstance(layer, CounterDropout):
            layer.calls = 0
    devices = [inputs.device.index or 0] if inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        torch.manual_seed(0)
        made: Tensor = module(inputs)
    return made[0]
