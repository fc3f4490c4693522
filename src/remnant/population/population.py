"""A population: N models trained as one, each as if it were alone."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from remnant.errors import InvalidInput, RecordError, UnsupportedModel, require
from remnant.plans import ArraySchedule
from remnant.population import checkpoint as files
from remnant.population.augmentation import Augmentation, augmentation_for
from remnant.population.backends import Backend, Serial, Stacked, choose_backend
from remnant.population.blueprint import Blueprint, Loss, Traits, cross_entropy, observe
from remnant.population.checkpoint import Checkpoint
from remnant.population.early_stop import EarlyStop, Watch
from remnant.population.memory import fitting_split, footprint, free_bytes
from remnant.population.optimizers import (
    LearningRate,
    check_clip,
    make_optimizer,
    per_member,
    whole_numbers,
)
from remnant.population.precision import arithmetic, dtype_of
from remnant.population.private.choice import check_examples_apart, private_gradients
from remnant.population.state import State
from remnant.population.store import ExampleStore, as_schedule, as_tensor, probe_times, walked_steps
from remnant.population.training import Fit, Training
from remnant.population.update_rules import attach, set_clip

# Numbers that one pass may hold: all members together, and one member alone; how examples are cut
# must not depend on the neighbours. A GPU is slow at small pieces.
_NUMBERS = {"cpu": 2**27, "cuda": 2**30}
_EXAMPLES = {"cpu": 2**24, "cuda": 2**28}
_GROWTH = 64  # how much larger than an input a model's inner activations are taken to be

# How far backends may be apart, as a share of a tensor's largest entry, by precision.
_ROUNDING = {"": 1e-3, "float64": 1e-6, "float32": 1e-3, "tf32": 5e-2, "bf16": 5e-2}
_SMALL = 1e-3


class Population:
    """N models trained together; member *i* is what it would be alone.

    Args:
        make_model: Returns a fresh ``nn.Module``; called once per member.
        seeds: One per member. A member's start is ``torch.manual_seed(seed); make_model()`` and
            depends on its seed alone, not on its place or neighbours.
        start: A checkpoint to start from instead, or one per member.
        dropout: Replaces the rate of every dropout layer: a number, or one per member.
        dropout_seeds: From which dropout masks and augmented images follow; the seeds, if not
            given.
        noise_seeds: From which the noise of private optimizers follows; the seeds, if not given.
            Members with the same noise seed get the same noise: give different ones where the
            difference of two members is to be as uncertain as privacy makes it.
        device: Where the population lives.
        precision: ``float32`` (no TF32), ``tf32``, ``bf16`` (autocast), ``float64``; ``None`` keeps
            the model's own type.
        compared: Whether the stacked backend is used only if it gives the gradients of the serial
            one on a batch. For networks of which nothing is known: vmap may run them and compute
            something else.

    Guarantees:
        * A member of N equals the same member alone, whatever N and the backend, to rounding.
        * A member that is not active at a step changes in nothing: not in parameters, buffers,
          moments, step count, learning-rate clock or dropout counter.
        * torch's global generator is left as it was.

    Example:
        >>> pop = Population(lambda: nn.Linear(4, 3), seeds=[0, 1])
        >>> fit = pop.fit(torch.randn(8, 4), torch.arange(8) % 3,
        ...               np.random.default_rng(0).integers(0, 8, (5, 2, 4)), lr=0.1)
        >>> pop.logits(torch.randn(6, 4)).shape
        torch.Size([2, 6, 3])
    """

    def __init__(
        self,
        make_model: Callable[[], nn.Module],
        seeds: Sequence[int],
        *,
        start: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]] | None = None,
        dropout: float | Sequence[float] | None = None,
        dropout_seeds: Sequence[int] | None = None,
        noise_seeds: Sequence[int] | None = None,
        device: str | torch.device = "cpu",
        precision: str | None = None,
        compared: bool = False,
    ) -> None:
        self._compared = compared
        self.seeds = whole_numbers("seeds", seeds)
        masks = self.seeds
        if dropout_seeds is not None:
            masks = whole_numbers("dropout_seeds", dropout_seeds)
        self._noise_seeds = self.seeds
        if noise_seeds is not None:
            self._noise_seeds = whole_numbers("noise_seeds", noise_seeds)
        faults = [] if self.seeds else ["seeds is empty"]
        for name, given in (("dropout_seeds", masks), ("noise_seeds", self._noise_seeds)):
            if len(given) != len(self.seeds):
                faults.append(f"{name} has {len(given)} values for {len(self.seeds)} members")
        require(faults, hint="Give one seed per member.")
        self.device, self.precision = find_device(device), precision
        self._blueprint, self._state = make_members(
            make_model, self.seeds, start=start, device=self.device, dtype=dtype_of(precision)
        )
        self._plain = copy.deepcopy(self._blueprint.module)  # never run: state dicts come from it
        self._seen: tuple[Any, Traits] | None = None
        self._used: str | None = None
        self._state["seeds"]["dropout"] = self._seed_words(masks)
        self._state["clocks"]["lifetime"] = torch.zeros(
            len(self), dtype=torch.int64, device=self.device
        )
        if dropout is not None:
            self._set_dropout(dropout)

    def __len__(self) -> int:
        return len(self.seeds)

    def fit(
        self,
        inputs: Any,
        labels: Any,
        indices: Any,
        *,
        optimizer: str = "sgd",
        steps: int | None = None,
        active: Any = None,
        loss: Loss | None = None,
        learning_rate: LearningRate | None = None,
        clip: float | Sequence[float] | None = None,
        backend: str | None = None,
        split: int | None = None,
        probes: Mapping[str, Callable[[Population], Any]] | None = None,
        probe_steps: Sequence[int] | Mapping[str, Sequence[int]] = (),
        early_stop: EarlyStop | None = None,
        augment: Augmentation | None = None,
        checkpoint: Checkpoint | None = None,
        graphs: bool = True,
        compiled: bool = False,
        on_step: Callable[[int], None] | None = None,
        **options: Any,
    ) -> Fit:
        """Train every member on its own rows of one example store.

        Args:
            inputs, labels: The example store: clean examples, canaries and controls.
            indices: int64 ``(steps, members, batch)``, or a ``Schedule``. With a private optimizer
                -1 is an empty place, which adds nothing; a batch of empty places is a step too.
            optimizer: ``sgd``, ``adam``, ``adamw``, ``rmsprop``, ``adagrad`` or ``adadelta``; its
                other keywords (``lr``, ``momentum``, ``weight_decay``, ...) and defaults are those
                of ``torch.optim``, and each number may be given once per member. Moments start
                anew in every fit. ``dp-sgd``, ``dp-rmsprop`` and ``dp-adam`` train with
                differential privacy: they need ``clip`` and ``noise``, the noise multiplier (0 for
                none), and otherwise take the options of their namesakes. Each example's gradient
                is multiplied by min(1, clip / norm); noise * clip * N(0, 1) is added to every
                entry of the sum, which is divided by the expected batch (the width of an index
                array, a schedule's ``expected_batch``). Weight decay and moments come after that.
                The noise is reproducible and not cryptographic: it serves to measure what privacy
                costs and protects, not to protect real data.
            steps: How many steps of the schedule to walk; all, if not given.
            active: bool ``(steps, members)``, with ``indices`` as an array.
            loss: From outputs and targets to one value per example; cross-entropy by default.
            learning_rate: How the learning rate moves with a member's own clock.
            clip: Largest gradient norm of a member; with a private optimizer, of each example.
                A number, or one per member.
            backend, split: Override the rule and the members per pass.
            probes: Called with this population after each number of updates in ``probe_steps``.
            probe_steps: For all probes, or for each by its name.
            early_stop: Stops members one by one and keeps each one's best weights.
            augment: Changes training images at random, anew at every update.
            checkpoint: Where to save the training and go on from.
            graphs: Whether to capture the step as a CUDA graph (on a GPU).
            compiled: Whether the serial backend compiles the model: some 20 s once, then a faster
                step, for convolutions on a GPU.
            on_step: Called with the number of steps done.

        Raises:
            InvalidInput: Data, shapes, labels, rows or options do not fit.
            UnsupportedModel: The model cannot be trained this way.
        """
        kind = self._parameter_type()
        store = ExampleStore(inputs, labels, device=self.device, dtype=kind)
        augment = augmentation_for(augment, store.inputs)
        held_out = None
        if early_stop is not None:
            examples = early_stop.inputs, early_stop.labels
            held_out = ExampleStore(*examples, device=self.device, dtype=kind)
        criterion = cross_entropy if loss is None else loss
        schedule = as_schedule(indices, active, members=len(self))
        steps = walked_steps(steps, schedule)
        wanted = probe_times(probes or {}, probe_steps, last=steps)
        if split is not None and whole_numbers("split", [split])[0] < 1:
            raise InvalidInput(f"split={split} is less than 1.")
        rule = make_optimizer(optimizer, members=len(self), options=options)
        if isinstance(schedule, ArraySchedule):  # all rows are known: refuse before training
            store.check_rows(*schedule.span(), padded=rule.is_private)
        elif schedule.is_poisson:
            store.check_rows(-1, 0, padded=rule.is_private)
        if rule.is_private:
            check_clip(optimizer, clip)
        rates = learning_rate or LearningRate()
        saved = None if checkpoint is None else files.peek(checkpoint.path)
        devices = [self.device.index or 0] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), arithmetic(self.precision, self.device):
            traits = self._observe(store.inputs[: schedule.batch_size])
            if loss is None:
                store.check_labels(traits.outputs)
            rows = torch.arange(schedule.batch_size, device=self.device) % len(store)
            batch = store.inputs[rows], store.labels[rows]
            engine, self._used, reason = self._engine(
                traits, criterion, batch, backend=backend, compiled=compiled
            )
            private = None
            self._blueprint.place_examples(store.inputs if rule.is_private else None)
            if rule.is_private:
                check_examples_apart(self._blueprint, store.inputs)
                private = private_gradients(
                    self._blueprint,
                    criterion,
                    traits,
                    self._state,
                    (store.inputs, store.labels),
                    precision=self.precision,
                    stacked=self._used == "stacked",
                    expected_batch=schedule.expected_batch,
                    noisy=rule.uses("noise"),
                )
            need = footprint(self._blueprint, criterion, *batch, moments=len(rule.moments))
            if private is not None:
                need = private.footprint(need, self._state, schedule.batch_size)
            in_flight = engine.in_flight(len(self), self.device)
            if split is None and saved is not None:
                split = int(saved["split"])
            elif split is None:
                split = fitting_split(
                    need, members=len(self), in_flight=in_flight, free=free_bytes(self.device)
                )
            attach(rule, self._state)
            set_clip(self._state, clip, members=len(self), device=self.device)
            self._state["seeds"].pop("noise", None)
            if rule.is_private:
                self._state["seeds"]["noise"] = self._seed_words(self._noise_seeds)
            stopping = early_stop and [early_stop.every, early_stop.patience, early_stop.min_delta]
            settings: list[Any] = [rule.plain(), dataclasses.asdict(rates), wanted, stopping]
            settings += [] if augment is None else [dataclasses.asdict(augment)]
            settings += [schedule.expected_batch] if rule.is_private else []
            graphed = graphs and self.device.type == "cuda"
            graphed = graphed and not (traits.draws or rule.is_private)
            training = Training(
                home=self._state,
                store=store,
                schedule=schedule,
                steps=steps,
                backend=engine,
                optimizer=rule,
                factors=rates.table(steps).to(self.device),
                augment=augment,
                private=private,
                split=split,
                clipped=clip is not None and not rule.is_private,
                graphed=graphed,
                probes={name: self._probe(probe) for name, probe in (probes or {}).items()},
                probe_steps=wanted,
                watch=None if early_stop is None else Watch(early_stop, self._state),
                losses=None if held_out is None else validation_loss(engine, criterion, held_out),
                checkpoint=checkpoint,
                precision=self.precision,
                settings=settings,
                on_step=on_step,
            )
            training.run()
        self._state = training.home
        held = split if in_flight is None else in_flight
        memory = need.total(members=len(self), split=split, in_flight=held)
        return training.result(reason=reason, memory=memory)

    def logits(self, inputs: Any, *, members: slice = slice(None)) -> Tensor:
        """Return every member's outputs in evaluation mode, ``(members, n, classes)``.

        Computed in the parameters' own type, never under autocast or TF32.

        Args:
            inputs: Of the examples.
            members: Ask only these, a slice without a step.
        """
        first, stop, _ = members.indices(len(self))
        state = self._state.view(first, stop)
        tensor = as_tensor(inputs, device=self.device, dtype=self._parameter_type())
        with arithmetic(None, self.device):
            traits = self._observe(tensor[[0, 0]] if len(tensor) == 1 else tensor[:2])
            name = self._used or choose_backend(traits, None)[0]
            try:
                engine = self._backend(name, traits, cross_entropy)
                return all_outputs(engine, state, tensor)
            except UnsupportedModel:
                engine = self._backend("serial", traits, cross_entropy)
                return all_outputs(engine, state, tensor)

    def state_dict(self, member: int) -> dict[str, Tensor]:
        """Return a copy of one member's parameters and buffers, loadable into ``make_model()``."""
        if not isinstance(member, int | np.integer) or not -len(self) <= member < len(self):
            raise InvalidInput(f"member={member!r} is not one of {len(self)}.")
        module = self._plain
        own = dict(module.named_parameters()) | dict(module.named_buffers())
        here = self._state.take(torch.tensor([range(len(self))[member]]))
        with torch.no_grad():
            for group in ("params", "frozen", "buffers"):
                for name, tensor in here[group].items():
                    own[name].copy_(tensor[0])
        return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}

    def _seed_words(self, seeds: Sequence[int]) -> Tensor:
        """Return seeds as words that torch takes."""
        return torch.tensor([seed & 0x7FFFFFFFFFFFFFFF for seed in seeds], device=self.device)

    def _observe(self, inputs: Tensor) -> Traits:
        key = (inputs.shape[1:], inputs.dtype)
        if self._seen is None or self._seen[0] != key:
            self._seen = key, observe(self._blueprint, inputs)
        return self._seen[1]

    def _set_dropout(self, dropout: float | Sequence[float]) -> None:
        faults = [] if self._blueprint.dropouts else ["the model has no dropout layer"]
        rates = per_member("dropout", dropout, len(self), faults, most=1.0)
        require(faults, hint="Give a rate between 0 and 1, once or once per member.")
        for name in self._blueprint.dropouts:
            self._state["rates"][name] = torch.tensor(
                rates, dtype=torch.float64, device=self.device
            )

    def _engine(
        self,
        traits: Traits,
        loss: Loss,
        batch: tuple[Tensor, Tensor],
        *,
        backend: str | None,
        compiled: bool,
    ) -> tuple[Backend, str, str]:
        """The backend, its name, and the rule that chose it.

        Whether vmap can run the model at all is part of the rule: where ``stacked`` was not asked
        for by name, it is tried on two members first.
        """
        name, reason = choose_backend(traits, backend)
        engine = self._backend(name, traits, loss, compiled=compiled)
        if name != "stacked" or backend is not None:
            return engine, name, reason
        inputs, labels = (part.expand(2, *part.shape) for part in batch)
        try:
            made = self._tried(engine, inputs, labels)
        except UnsupportedModel:
            made = None
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            if not self._compared:
                raise
            made = None
        serial = self._backend("serial", traits, loss, compiled=compiled)
        if made is None:
            return serial, "serial", "vmap cannot run this model"
        if self._compared and not _agree(made, self._tried(serial, inputs, labels), self.precision):
            return serial, "serial", "vmap computes other gradients"
        return engine, name, reason

    def _tried(self, engine: Backend, inputs: Tensor, labels: Tensor) -> State:
        """The gradients, and the buffers afterwards, of two members on a batch."""
        state = self._state.take(torch.zeros(len(inputs), dtype=torch.int64))
        gradients = engine.gradients(state, inputs, labels)
        return State({"gradients": gradients, "buffers": state["buffers"]})

    def _parameter_type(self) -> torch.dtype | None:
        for group in ("params", "frozen"):
            for tensor in self._state[group].values():
                if tensor.is_floating_point():
                    return tensor.dtype
        return None

    def _backend(self, name: str, traits: Traits, loss: Loss, *, compiled: bool = False) -> Backend:
        if name == "stacked":
            return Stacked(self._blueprint, loss, self.precision)
        whole = compiled and not (traits.draws or traits.reassigns)
        return Serial(self._blueprint, loss, self.precision, draws=traits.draws, compiled=whole)

    def _probe(self, probe: Callable[[Population], Any]) -> Callable[[State], Any]:
        def ask(home: State) -> Any:
            self._state = home
            return probe(self)

        return ask


def all_outputs(backend: Backend, state: State, inputs: Tensor) -> Tensor:
    """Return every member's evaluation outputs, ``(members, n, ...)``."""
    per_example = _GROWTH * max(1, inputs[:1].numel())
    where = inputs.device.type
    chunk = max(1, _EXAMPLES[where] // per_example)
    group = max(1, _NUMBERS[where] // (per_example * min(chunk, max(1, len(inputs)))))
    made = []
    for first in range(0, len(state), group):
        some = state.view(first, min(first + group, len(state)))
        made.append(torch.cat([backend.outputs(some, part) for part in inputs.split(chunk)], dim=1))
    return torch.cat(made)


def validation_loss(
    backend: Backend, loss: Loss, held_out: ExampleStore
) -> Callable[[State], Tensor]:
    """Return a function from a state to each member's mean loss on held-out examples."""

    def losses(state: State) -> Tensor:
        outputs = all_outputs(backend, state, held_out.inputs)
        return torch.stack([loss(member, held_out.labels).mean() for member in outputs])

    return losses


def make_members(
    make_model: Callable[[], nn.Module],
    seeds: Sequence[int],
    *,
    start: Any,
    device: torch.device,
    dtype: torch.dtype | None,
) -> tuple[Blueprint, State]:
    """Return the module through which all members compute, and their stacked tensors."""
    rows = []
    for seed, given in zip(seeds, _starts(start, len(seeds)), strict=True):
        blueprint = Blueprint(_member(make_model, seed, given))
        rows.append(blueprint.tensors())
    blueprint.module.to(device, dtype)
    groups: dict[str, dict[str, Tensor]] = {}
    for (group, name), first in rows[0].items():
        kind = dtype if first.is_floating_point() and group != "rates" else first.dtype
        stacked = torch.stack([row[group][name] for row in rows])
        groups.setdefault(group, {})[name] = stacked.to(device, kind)
    return blueprint, State(groups)


def find_device(device: str | torch.device) -> torch.device:
    """Return the device, or say that there is none."""
    try:
        chosen = torch.device(device)
        if chosen.type not in ("cpu", "cuda"):
            raise InvalidInput(f"device={device!s} is not supported.", hint="Pass 'cpu' or 'cuda'.")
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise InvalidInput(f"device={device!s} is not there.", hint="Pass device='cpu'.")
    except RuntimeError as fault:
        raise InvalidInput(
            f"device={device!r} is not a device.", hint="Pass 'cpu' or 'cuda'."
        ) from fault
    return chosen


def _starts(start: Any, members: int) -> list[Mapping[str, Tensor] | None]:
    if start is None or isinstance(start, Mapping):
        return [start] * members
    starts = list(start)
    if len(starts) != members:
        raise InvalidInput(f"start has {len(starts)} checkpoints for {members} members.")
    return starts


def _member(
    make_model: Callable[[], nn.Module], seed: int, start: Mapping[str, Tensor] | None
) -> nn.Module:
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        module = make_model()
    if not isinstance(module, nn.Module):
        raise UnsupportedModel(f"make_model() returned {type(module).__name__}, not an nn.Module.")
    if start is not None:
        try:
            module.load_state_dict(dict(start))
        except RuntimeError as fault:
            raise RecordError(
                "start does not fit the model that make_model() returns.",
                hint="Pass a state_dict of that model.",
            ) from fault
    return module


def _agree(made: State, other: State, precision: str | None) -> bool:
    """Whether two backends gave the same gradients and buffers, up to rounding."""
    apart = _ROUNDING["" if precision is None else precision]
    for group, tensors in made.groups.items():
        if tensors.keys() != other[group].keys():
            return False
        sizes = {n: float(t.abs().max()) for n, t in other[group].items() if t.numel()}
        least = _SMALL * max(sizes.values(), default=0.0)  # below it everything is rounding
        if not all(
            bool(((tensors[n] - other[group][n]).abs() <= apart * max(size, least)).all())
            for n, size in sizes.items()
        ):
            return False
    return True
