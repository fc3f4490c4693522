"""One fit: the loop that walks a schedule, and the places where it pauses.

The loop works on rows, not members: before a trunk's end one row stands for all members that share
it, and after some have stopped early only the others have a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from remnant.errors import RecordError
from remnant.plans import Schedule, Trunk
from remnant.population import checkpoint as files
from remnant.population.augmentation import Augmentation
from remnant.population.backends import Backend
from remnant.population.checkpoint import Checkpoint
from remnant.population.early_stop import Watch
from remnant.population.graphs import CaptureFailed, GraphedStep
from remnant.population.optimizers import Optimizer
from remnant.population.private.clipping import PrivateGradients
from remnant.population.state import State
from remnant.population.store import ExampleStore, as_array, feed
from remnant.population.update_rules import update


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes:
        steps: Steps walked (fewer than asked for when every member stopped early).
        backend, reason: Which backend ran and the rule that chose it.
        split: Members per pass.
        precision: The arithmetic, ``None`` for the model's own.
        memory: Bytes that the population needs at its peak, estimated from one member.
        probe_steps: Updates done whenever a probe was called.
        probes: What each probe returned, stacked: ``(its probe steps, ...)``.
        stopped_at: Updates after which each member stopped early, -1 where it did not, or ``None``
            without early stopping.
    """

    steps: int
    backend: str
    reason: str
    split: int
    precision: str | None
    memory: int
    probe_steps: tuple[int, ...]
    probes: dict[str, NDArray[Any]]
    stopped_at: NDArray[np.int64] | None


_OWN = ("seeds", "hyper", "rates")  # what a member has for itself also while it shares a trunk
Probe = Callable[[State], Any]


@dataclass(kw_only=True, eq=False)
class Training:
    """What one fit needs, and its position."""

    home: State
    store: ExampleStore
    schedule: Schedule
    steps: int
    backend: Backend
    optimizer: Optimizer
    factors: Tensor
    split: int
    clipped: bool
    graphed: bool
    probes: Mapping[str, Probe]
    probe_steps: Mapping[str, list[int]]
    watch: Watch | None
    losses: Callable[[State], Tensor] | None
    checkpoint: Checkpoint | None
    precision: str | None
    settings: list[Any]
    on_step: Callable[[int], None] | None
    augment: Augmentation | None = None
    private: PrivateGradients | None = None

    def __post_init__(self) -> None:
        self.device = self.home["clocks"]["fit"].device
        self.notes = {
            "backend": self.backend.name,
            "split": self.split,
            "precision": self.precision,
        }
        if self.checkpoint is not None:
            self.notes["settings"] = files.settings_digest(
                state=self.home,
                store=self.store,
                schedule=self.schedule,
                steps=self.steps,
                plain=self.settings,
            )
        self.stretches = stretches(self.schedule.trunks, self.home, together=self.watch is None)
        self.step = 0
        self.history: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in self.probes}
        self.probed: list[int] = []
        self.taken = np.zeros(len(self.home), np.int64)  # updates of this fit, known to the host
        self._graph: GraphedStep | None = None
        self._saved, self._saving = time.monotonic(), 0.0
        self._host: tuple[Tensor | None, NDArray[np.int64]] = (None, np.empty(0, np.int64))
        self._own_seeds = {n: t.clone() for n, t in self.home["seeds"].items()}
        self.members = torch.arange(len(self.home), device=self.device)
        self.work = self.home
        self._enter(self.stretches[0])

    def result(self, *, reason: str, memory: int) -> Fit:
        """What the fit leaves behind.

        Args:
            reason: The rule that chose the backend.
            memory: Bytes that it needed at its peak.
        """
        stopped = None if self.watch is None else self.watch.tally["stopped_at"].cpu().numpy()
        return Fit(
            steps=self.step,
            backend=self.backend.name,
            reason=reason,
            split=self.split,
            precision=self.precision,
            memory=memory,
            probe_steps=tuple(self.probed),
            probes={name: np.stack(read) for name, read in self.history.items() if read},
            stopped_at=stopped,
        )

    def run(self) -> None:
        """Walk from the current step to the last, probing, saving and stopping on the way."""
        resumes = self.checkpoint is not None and self.checkpoint.path.exists()
        if resumes and self.checkpoint is not None:
            self._restore(self.checkpoint)
        self._settle()
        if not resumes:  # a checkpoint is written after all that was due at its step
            self._pause()
        for step, indices, active in feed(
            self.schedule,
            self.store,
            start=self.step,
            stop=self.steps,
            device=self.device,
            padded=self.private is not None,
        ):
            self._one_step(indices, active)
            self.taken += active
            self.step = step + 1
            self._pause()
            if self.on_step is not None:
                self.on_step(self.step)
            if len(self.members) == 0:
                break
        self._sync()
        if self.watch is not None:
            self.home.copy_(self.watch.best)
            self._probe_after_the_end()
        for name, own in self._own_seeds.items():
            self.home["seeds"][name].copy_(own)

    def _members_on_host(self) -> NDArray[np.int64]:
        if self._host[0] is not self.members:  # asking the device at every step would stall it
            self._host = self.members, self.members.cpu().numpy()
        return self._host[1]

    def _one_step(self, indices: Tensor, active: NDArray[np.bool_]) -> None:
        whole = len(self.members) == len(self.home)
        rows = indices if whole else indices[self.members]
        here = active[self._members_on_host()]
        if here.all():
            if self.graphed and self._graph is None:
                work = self.work
                try:
                    self._graph = GraphedStep(lambda i: self._update(work, i), work, rows)
                except CaptureFailed:
                    self.graphed = False
            if self._graph is not None:
                self._graph(rows)
            else:
                self._update(self.work, rows)
        elif here.any():  # the others' tensors are not even touched
            chosen = torch.from_numpy(np.flatnonzero(here)).to(self.device)
            part = self.work.take(chosen)
            self._update(part, rows[chosen])
            self.work.put(chosen, part)

    def _update(self, state: State, indices: Tensor) -> None:
        for start in range(0, len(state), self.split):
            stop = min(start + self.split, len(state))
            part = state.view(start, stop)
            rows = indices[start:stop]
            present = None
            if self.private is not None:
                present = rows >= 0
                # A row of the batch stands in empty places: it cannot be worse than the others.
                rows = torch.where(present, rows, rows.amax(1, keepdim=True).clamp(min=0))
            clocks, inputs = part["clocks"], self.store.inputs[rows]
            if self.augment is not None:
                inputs = self.augment.batch(
                    inputs, seeds=part["seeds"]["dropout"], taken=clocks["lifetime"]
                )
            gradients = self._gradients(part, inputs, self.store.labels[rows], present)
            with torch.no_grad():
                if self.clipped:
                    _clip(gradients, part["hyper"]["clip"])
                factor = self.factors[clocks["fit"].clamp(max=len(self.factors) - 1)]
                update(self.optimizer, part, gradients, factor)
                clocks["fit"].add_(1)
                clocks["lifetime"].add_(1)

    def _gradients(
        self, state: State, inputs: Tensor, targets: Tensor, present: Tensor | None = None
    ) -> dict[str, Tensor]:
        if self.private is None:
            return self.backend.gradients(state, inputs, targets)
        if present is None:
            present = torch.ones(inputs.shape[:2], dtype=torch.bool, device=self.device)
        return self.private.gradients(state, inputs, targets, present)

    def _pause(self) -> None:
        """Do what is due after ``self.step`` updates, in a fixed order."""
        part = next((s for s in self.stretches[1:] if s.start == self.step), None)
        if part is not None:
            self._branch(part)
        self._stop_early()
        if any(self.step in times for times in self.probe_steps.values()):
            self._sync()
            self._probe(self.step)
        if self.checkpoint is not None and self.step < self.steps and self._due(self.checkpoint):
            self._save(self.checkpoint)

    def _probe(self, step: int) -> None:
        for name, probe in self.probes.items():
            if step in self.probe_steps.get(name, ()):
                self.history[name].append(as_array(probe(self.home)))
        self.probed.append(step)

    def _probe_after_the_end(self) -> None:
        """Probe the steps that were not reached because every member had stopped."""
        for step in sorted({step for times in self.probe_steps.values() for step in times}):
            if step > self.step:
                self._probe(step)

    def _settle(self) -> None:
        """Prepare newly made working rows: laid out as their gradients come, no graph yet."""
        self._graph = None
        if len(self.work):
            first = self.work.take(torch.zeros(1, dtype=torch.int64))
            rows = torch.arange(self.schedule.batch_size, device=self.device) % len(self.store)
            inputs, labels = self.store.inputs[rows][None], self.store.labels[rows][None]
            self.work.lay_out_like(self._gradients(first, inputs, labels))

    def _enter(self, stretch: Stretch) -> None:
        """Give the members the rows and the randomness that they have on this stretch."""
        self.stretch = stretch
        for name, own in self._own_seeds.items():
            self.home["seeds"][name].copy_(own[stretch.parents])
        if self.watch is None:
            self.members = stretch.rows
            whole = len(self.members) == len(self.home)
            self.work = self.home if whole else self.home.take(self.members)
        elif self.work is not self.home:
            for name, shared in self.home["seeds"].items():
                self.work["seeds"][name].copy_(shared[self.members])

    def _branch(self, stretch: Stretch) -> None:
        """Part members that were together, each with a row from its parent's."""
        before = len(self.members)
        if self.watch is None:
            self._sync()
        self._enter(stretch)
        if len(self.members) != before:
            self._settle()

    def _sync(self) -> None:
        """Bring every member's tensors up to date in ``home``."""
        if self.work is not self.home and len(self.members):
            if self.watch is None:
                own = {group: self.home[group] for group in _OWN}
                self.home.groups.update({**self.work.take(self.stretch.row_of).groups, **own})
            else:
                self.home.put(self.members, self.work)
        self._restore_stopped()

    def _stop_early(self) -> None:
        """Look at the members that are due by their own clocks; drop the rows of the stopped."""
        if self.watch is None or self.losses is None or len(self.members) == 0:
            return
        here = self._members_on_host()
        due = self.watch.due(self.taken, last=self.step == self.steps)[here]
        if not due.any():
            return
        chosen = torch.from_numpy(due).to(self.device)
        over = self.watch.look(self.step, self.work, self.members, chosen, self.losses)
        self.watch.looked[here[due]] = self.taken[here[due]]
        share = float(over.float().mean())
        # A captured graph is worth keeping until a good part of its members has stopped.
        if share == 0 or (self.graphed and share < 0.25):
            return
        if self.work is self.home:
            self.home = self.work.clone()
        else:
            self.home.put(self.members, self.work)
        running = torch.nonzero(~over).flatten()
        self.work, self.members = self.work.take(running), self.members[running]
        self._settle()
        self._restore_stopped()

    def _restore_stopped(self) -> None:
        if self.watch is not None:
            rows = torch.nonzero(self.watch.tally["stopped_at"] >= 0).flatten()
            self.home.put(rows, self.watch.best.take(rows))

    def _due(self, policy: Checkpoint) -> bool:
        """Whether the time has come, and saving takes no more than a tenth of all time."""
        least = max(policy.seconds, 9 * self._saving) if policy.seconds else 0.0
        return time.monotonic() - self._saved >= least

    def _save(self, policy: Checkpoint) -> None:
        began = time.monotonic()
        tensors = {f"work/{g}/{n}": t for (g, n), t in self.work.items()}
        tensors["members"], tensors["taken"] = self.members, torch.from_numpy(self.taken)
        if self.work is not self.home:
            tensors |= {f"home/{g}/{n}": t for (g, n), t in self.home.items()}
        if self.watch is not None:
            tensors |= {f"best/{g}/{n}": t for (g, n), t in self.watch.best.items()}
            tensors |= {f"tally/{n}": t for n, t in self.watch.tally.items()}
            tensors["looked"] = torch.from_numpy(self.watch.looked)
        for name, arrays in self.history.items():
            if arrays:
                tensors[f"history/{name}"] = torch.from_numpy(np.stack(arrays))
        notes = {**self.notes, "key": policy.key, "step": self.step, "probed": self.probed}
        files.save(policy.path, tensors, notes)
        self._saved = time.monotonic()
        self._saving = self._saved - began

    def _restore(self, policy: Checkpoint) -> None:
        tensors, notes = files.load(policy.path, self.device)
        for name, value in {**self.notes, "key": policy.key}.items():
            if notes.get(name) != value:
                raise RecordError(
                    f"The checkpoint {policy.path} was made with {name}={notes.get(name)!r}, "
                    f"not {value!r}.",
                    hint="Choose another folder, or delete the checkpoint to start again.",
                )
        self.step, self.probed = int(notes["step"]), list(notes["probed"])
        self.members, self.taken = tensors["members"], tensors["taken"].cpu().numpy().copy()
        made = self.home
        self.work = _state(tensors, "work", made)
        self.stretch = [s for s in self.stretches if s.start <= self.step][-1]
        apart = "home/clocks/fit" in tensors
        self.home = _state(tensors, "home", made) if apart else self.work
        if self.watch is not None:
            self.watch.best = _state(tensors, "best", made)
            self.watch.tally = {n: tensors[f"tally/{n}"] for n in self.watch.tally}
            self.watch.looked = tensors["looked"].cpu().numpy().copy()
        for name in self.history:
            if f"history/{name}" in tensors:
                self.history[name] = list(tensors[f"history/{name}"].cpu().numpy())


def _state(tensors: dict[str, Tensor], part: str, like: State) -> State:
    """Return one part of a checkpoint, its tensors in the order of another state.

    A file has an order of its own, and a norm that is summed in another order is rounded otherwise.
    """
    groups: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        head, _, rest = key.partition("/")
        if head == part:
            group, _, name = rest.partition("/")
            groups.setdefault(group, {})[name] = tensor
    place = {name: number for number, name in enumerate(like["params"])}
    return State(
        {
            group: {name: named[name] for name in sorted(named, key=lambda n: place.get(n, -1))}
            for group, named in groups.items()
        }
    )


def _clip(gradients: dict[str, Tensor], limit: Tensor) -> None:
    """Scale each member's gradient down to its limit, as ``clip_grad_norm_`` does."""
    squares = sum(g.reshape(len(g), -1).square().sum(1) for g in gradients.values())
    norm = torch.as_tensor(squares).sqrt()
    scale = (limit.to(norm.dtype) / (norm + 1e-6)).clamp(max=1.0)
    for grad in gradients.values():
        grad.mul_(scale.reshape(-1, *(1 for _ in grad.shape[1:])))


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """One stretch of a schedule, on which the same members stay together.

    Attributes:
        start: The first step of it.
        parents: Whose randomness each member has, ``(members,)``.
        rows: The members that have a row of their own.
        row_of: Which of these rows is each member's, ``(members,)``.
    """

    start: int
    parents: Tensor
    rows: Tensor
    row_of: Tensor


def stretches(trunks: tuple[Trunk, ...], home: State, *, together: bool) -> list[Stretch]:
    """Cut a schedule into stretches; on the last every member is by itself.

    Args:
        trunks: In order of their ends.
        home: The members at the start. Those that differ from their parent (in weights or settings)
            share its randomness, but not its row.
        together: Whether members may share rows at all.
    """
    device = home["clocks"]["fit"].device
    own = torch.arange(len(home), device=device)
    made, start = [], 0
    for trunk in trunks:
        if trunk.steps > start:
            parents = torch.from_numpy(trunk.parents).to(device)
            if together and _alike(home, parents):
                rows = torch.from_numpy(np.unique(trunk.parents)).to(device)
                made.append(Stretch(start, parents, rows, torch.searchsorted(rows, parents)))
            else:
                made.append(Stretch(start, parents, own, own))
            start = trunk.steps
    return [*made, Stretch(start, own, own, own)]


def _alike(home: State, parents: Tensor) -> bool:
    return all(
        group == "seeds" or torch.equal(tensor, tensor[parents])
        for (group, _), tensor in home.items()
    )
