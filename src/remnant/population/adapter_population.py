"""A population of fine-tuned models: LoRA adapters over one frozen model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import InvalidInput, require
from remnant.plans import ArraySchedule
from remnant.population import checkpoint as files
from remnant.population.adapters import PADDING, Adapters, FrozenModel
from remnant.population.checkpoint import Checkpoint
from remnant.population.lora import Lora
from remnant.population.memory import Footprint, fitting_split, free_bytes, kept_bytes
from remnant.population.optimizers import LearningRate, Optimizer, make_optimizer, whole_numbers
from remnant.population.precision import arithmetic, dtype_of
from remnant.population.state import State
from remnant.population.store import ExampleStore, as_schedule, as_tensor, probe_times, walked_steps
from remnant.population.training import Fit, Training
from remnant.population.update_rules import attach, set_clip

_OVERHEAD = 1.5  # a backward pass holds gradients of activations beside the activations
_AT_ONCE = {"cuda": 2**16, "cpu": 2**12}  # tokens per pass of ``ask``


class AdapterPopulation:
    """N adapters of one frozen causal language model, trained together, each as if alone.

    Members learn the token that follows a sequence: the loss is its cross-entropy over the whole
    vocabulary.

    Args:
        model: The frozen model. It is put into evaluation mode, so its own dropout is off.
        seeds: One per member; it determines the initial adapters and the dropout masks.
        lora: Rank, scale, dropout and layers.
        precision: ``float32``, ``tf32``, ``bf16`` (autocast) or ``float64``; ``None`` keeps the
            model's own type. Adapters are in float32, or float64 with ``float64``.

    Guarantees:
        * A member of N equals the same member alone, to rounding.
        * Padding changes nothing, to rounding.
        * torch's global generator is not used.
        * ``ask`` never computes in bf16: it uses TF32 if the precision is ``tf32`` or ``bf16``, and
          the model's own type otherwise.
    """

    def __init__(
        self,
        model: FrozenModel,
        seeds: Sequence[int],
        *,
        lora: Lora | None = None,
        precision: str | None = None,
    ) -> None:
        self.seeds = whole_numbers("seeds", seeds)
        require([] if self.seeds else ["seeds is empty"], hint="Give one seed per member.")
        self.precision = precision
        kind = dtype_of(precision) or torch.float32
        self.device = next(model.module.parameters()).device
        self._adapters = Adapters(model, lora or Lora(), precision=precision)
        rows = [self._adapters.start(seed, kind) for seed in self.seeds]
        self._state = State(
            {
                "params": {self._adapters.name: torch.stack(rows).to(self.device)},
                "seeds": {
                    "dropout": torch.tensor(
                        [seed & 0x7FFFFFFFFFFFFFFF for seed in self.seeds], device=self.device
                    )
                },
                "clocks": {
                    "lifetime": torch.zeros(len(rows), dtype=torch.int64, device=self.device)
                },
            }
        )

    def __len__(self) -> int:
        return len(self.seeds)

    def fit(
        self,
        tokens: Any,
        answers: Any,
        indices: Any,
        *,
        optimizer: str = "adamw",
        steps: int | None = None,
        learning_rate: LearningRate | None = None,
        clip: float | None = None,
        split: int | None = None,
        probes: Mapping[str, Callable[[AdapterPopulation], Any]] | None = None,
        probe_steps: Sequence[int] | Mapping[str, Sequence[int]] = (),
        checkpoint: Checkpoint | None = None,
        on_step: Callable[[int], None] | None = None,
        **options: Any,
    ) -> Fit:
        """Train every member on its own rows of the sequences.

        Args:
            tokens: int64 ``(n, time)``, ``PADDING`` after each sequence's last token.
            answers: The token that follows each sequence, ``(n,)``.
            indices: int64 ``(steps, members, batch)``, or a ``Schedule``.
            optimizer, options, learning_rate, clip: As in ``Population.fit``.
            steps: How many steps of the schedule to walk; all, if not given.
            split: Members per pass; by default as many as fit the free memory.
            probes: Called with this population after each number of updates in ``probe_steps``.
            probe_steps: For all probes, or for each by its name.
            checkpoint: Where to save the training, and to resume it from.
            on_step: Called with the number of steps done.

        Raises:
            InvalidInput: Tokens, rows or options do not fit.
        """
        store = ExampleStore(self._checked(tokens), answers, device=self.device, dtype=None)
        schedule = as_schedule(indices, None, members=len(self))
        if isinstance(schedule, ArraySchedule):  # all rows are known: refuse before training
            store.check_rows(*schedule.span())
        steps = walked_steps(steps, schedule)
        wanted = probe_times(probes or {}, probe_steps, last=steps)
        rule = make_optimizer(optimizer, members=len(self), options=options)
        if rule.is_private:
            raise InvalidInput(
                f"optimizer={optimizer!r}: adapters cannot be trained with differential privacy.",
                hint="Choose an optimizer without dp-, or train whole models with Population.",
            )
        rates = learning_rate or LearningRate()
        with arithmetic(self.precision, self.device):
            attach(rule, self._state)
            set_clip(self._state, clip, members=len(self), device=self.device)
            need = self._footprint(store, rule)
            saved = None if checkpoint is None else files.peek(checkpoint.path)
            if split is None and saved is not None:
                split = int(saved["split"])
            free = free_bytes(self.device)
            if split is None:
                split = fitting_split(need, members=len(self), in_flight=None, free=free)
            room = max(0, free // 2 - need.resident * len(self)) // need.activations
            self._adapters.most_tokens = max(room, 1) * store.inputs.shape[1]
            shape = split, schedule.batch_size, store.inputs.shape[1]
            rows = self._adapters.rows_of(shape, self.device)
            training = Training(
                home=self._state,
                store=store,
                schedule=schedule,
                steps=steps,
                backend=self._adapters,
                optimizer=rule,
                factors=rates.table(steps).to(self.device),
                split=split,
                clipped=clip is not None,
                graphed=False,
                probes={name: self._probe(read) for name, read in (probes or {}).items()},
                probe_steps=wanted,
                watch=None,
                losses=None,
                checkpoint=checkpoint,
                precision=self.precision,
                settings=[rule.plain(), dataclasses.asdict(rates), wanted],
                on_step=on_step,
            )
            training.run()
        self._state = training.home
        memory = need.total(members=len(self), split=split, in_flight=split * rows)
        return training.result(reason="one frozen model for all", memory=memory)

    def ask(
        self,
        tokens: Any,
        *,
        layers: Sequence[str] = (),
        members: slice = slice(None),
        at_once: int | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], Tensor, dict[str, Tensor]]]:
        """Yield every member's predictions for the same sequences, in batches, shortest first.

        Args:
            tokens: int64 ``(n, time)``, ``PADDING`` after each sequence's last token.
            layers: Names of layers whose states at the last token to return too; ``last`` is the
                input of the head.
            members: Which members, a slice without a step.
            at_once: Tokens in one pass, all members together.

        Yields:
            The indices of the batch's sequences, their logits ``(members, batch, vocabulary)``, and
            their states by layer, ``(members, batch, width)``.
        """
        rows = as_tensor(self._checked(tokens), device=self.device, dtype=None)
        lengths = (rows != PADDING).sum(-1).cpu().numpy()
        order = np.argsort(lengths, kind="stable")
        begin, end, _ = members.indices(len(self))
        state = self._state.view(begin, end)
        most = max(1, (at_once or _AT_ONCE[self.device.type]) // len(state))
        # TF32 moved logit gaps by thousandths of a nat; models differ by tenths and more.
        exact = None if self.precision in (None, "float32", "float64") else "tf32"
        first = 0
        while first < len(order):
            some = order[first : first + max(1, most // int(lengths[order[first]]))]
            while len(some) > 1 and len(some) * int(lengths[some[-1]]) > most:
                some = some[: max(1, most // int(lengths[some[-1]]))]
            with arithmetic(exact, self.device):
                part = rows[torch.from_numpy(some).to(self.device)]
                logits, states = self._adapters.look(state, part, layers)
            yield some, logits, states
            first += len(some)

    def state_dict(self, member: int) -> dict[str, Tensor]:
        """Return a copy of one member's matrices, ``LAYER.A`` and ``LAYER.B``."""
        if not isinstance(member, int | np.integer) or not -len(self) <= member < len(self):
            raise InvalidInput(f"member={member!r} is not one of {len(self)}.")
        return self._adapters.named(self._state["params"][self._adapters.name][member])

    def _checked(self, tokens: Any) -> Tensor:
        tensor = as_tensor(tokens, device=torch.device("cpu"), dtype=None)
        faults = []
        if tensor.ndim != 2 or tensor.is_floating_point() or tensor.numel() == 0:
            faults.append(f"tokens of shape {tuple(tensor.shape)} are not whole numbers (n, time)")
        else:
            there = tensor != PADDING
            if bool((there[:, 1:] & ~there[:, :-1]).any()) or not bool(there[:, 0].all()):
                faults.append("a sequence is empty, or has padding before its last token")
            if bool((tensor < PADDING).any()):
                faults.append("a token is negative")
        require(faults, hint=f"Put {PADDING} after each sequence's last token.")
        return tensor.long()

    def _probe(self, read: Callable[[AdapterPopulation], Any]) -> Callable[[State], Any]:
        def probe(state: State) -> Any:
            self._state = state
            return read(self)

        return probe

    def _footprint(self, store: ExampleStore, rule: Optimizer) -> Footprint:
        """Measure a member's memory on the longest sequence: two members minus one member."""
        longest = (store.inputs != PADDING).sum(-1).argmax()
        alone, together = (
            kept_bytes(
                lambda count=count: self._adapters.gradients(  # type: ignore[misc]
                    self._state.take(torch.zeros(count, dtype=torch.int64)),
                    store.inputs[longest].expand(count, 1, -1),
                    store.labels[longest].expand(count, 1),
                )
            )
            for count in (1, 2)
        )
        weights = self._state["params"][self._adapters.name][0].nbytes
        return Footprint(
            resident=weights * (1 + len(rule.moments)),
            gradient=2 * weights,
            activations=int(_OVERHEAD * max(together - alone, 1)),
        )
