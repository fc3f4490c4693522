"""Numbering secrets where one secret can be filled in several ways: a deterministic automaton.

``{choice:a|ab}{choice:b|bb}`` has four fillings and three secrets: ``abb`` comes up twice. Here
the fillings are read letter by letter, all of them at once, so that equal texts end in the same
state and are counted once (the subset construction over places of a trie per slot).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import accumulate

from remnant.canaries.holes import Slot
from remnant.errors import InvalidInput

MOST_STATES = 500_000

_Spot = tuple[int, int]  # a slot and a node of its trie
_Key = tuple[frozenset[_Spot], bool]  # where all readings stand, and whether one is complete


class _Trie:
    """The choices of one slot as a tree of letters; node 0 is its root."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.children: list[dict[str, int]] = [{}]
        self.ends: set[int] = set()
        for choice in choices:
            node = 0
            for letter in choice:
                if letter not in self.children[node]:
                    self.children[node][letter] = len(self.children)
                    self.children.append({})
                node = self.children[node][letter]
            self.ends.add(node)


@dataclass(frozen=True, slots=True)
class _State:
    """What may follow one beginning of a secret.

    Attributes:
        letters: The letters that may come next, sorted.
        targets: The state after each.
        before: ``before[i]`` secrets come before those that go on with ``letters[i]``; the
            secret that ends here is the first. One more entry than letters: the last is the sum.
    """

    letters: str
    targets: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.before[-1]

    @property
    def ends(self) -> bool:
        return self.before[0] == 1


class Automaton:
    """The numbering of the distinct texts of a row of slots, in lexicographic order.

    Raises:
        InvalidInput: It would take more than ``MOST_STATES`` states.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        different = {id(slot.choices): slot.choices for slot in slots}
        tries = {key: _Trie(choices) for key, choices in different.items()}
        graph = _determinise([tries[id(slot.choices)] for slot in slots])
        totals = [0] * len(graph)
        self._states = [_State("", (), (0,))] * len(graph)
        needs = {number: edges.values() for number, (edges, _) in enumerate(graph)}
        for number in TopologicalSorter(needs).static_order():
            edges, ends = graph[number]
            letters = "".join(sorted(edges))
            targets = tuple(edges[letter] for letter in letters)
            before = tuple(accumulate((totals[target] for target in targets), initial=int(ends)))
            self._states[number] = _State(letters, targets, before)
            totals[number] = before[-1]
        self.space = self._states[0].total

    def secret_at(self, index: int) -> str:
        """Return the secret with this number."""
        state, letters = self._states[0], []
        while not (state.ends and index == 0):
            branch = bisect_right(state.before, index) - 1
            letters.append(state.letters[branch])
            index -= state.before[branch]
            state = self._states[state.targets[branch]]
        return "".join(letters)

    def index_of(self, secret: str) -> int | None:
        """Return the number of this secret, or None where it is not in the space."""
        state, index = self._states[0], 0
        for letter in secret:
            branch = state.letters.find(letter)
            if branch < 0:
                return None
            index += state.before[branch]
            state = self._states[state.targets[branch]]
        return index if state.ends else None

    def secrets(self) -> Iterator[str]:
        """Yield all secrets in the order of their numbers."""
        return map(self.secret_at, range(self.space))


def _determinise(tries: Sequence[_Trie]) -> list[tuple[dict[str, int], bool]]:
    """Return each state's edges and whether a secret may end there; state 0 is the start."""
    start = _settle([(0, 0)], tries)
    numbers: dict[_Key, int] = {start: 0}
    waiting, size = [start], 1
    graph: list[tuple[dict[str, int], bool]] = []
    for key in waiting:  # grows as it is walked
        spots, ends = key
        reached: dict[str, list[_Spot]] = {}
        for slot, node in spots:
            for letter, child in tries[slot].children[node].items():
                reached.setdefault(letter, []).append((slot, child))
        edges: dict[str, int] = {}
        for letter, targets in reached.items():
            target = _settle(targets, tries)
            if target not in numbers:
                numbers[target] = len(waiting)
                waiting.append(target)
                size += max(1, len(target[0]))
                if size > MOST_STATES:
                    raise _too_ambiguous()
            edges[letter] = numbers[target]
        graph.append((edges, ends))
    return graph


def _settle(spots: list[_Spot], tries: Sequence[_Trie]) -> _Key:
    """Go on to the next slot wherever a choice is complete, and drop spots that lead nowhere."""
    seen: set[_Spot] = set()
    ends = False
    waiting = spots
    while waiting:
        slot, node = waiting.pop()
        if slot == len(tries):
            ends = True
        elif (slot, node) not in seen:
            seen.add((slot, node))
            if node in tries[slot].ends:
                waiting.append((slot + 1, 0))
    return frozenset(spot for spot in seen if tries[spot[0]].children[spot[1]]), ends


def _too_ambiguous() -> InvalidInput:
    return InvalidInput(
        "pattern can be filled in several ways with the same secret, and counting its distinct "
        f"secrets would take more than {MOST_STATES} states.",
        hint="Use choices none of which begins another, or set a separator after each hole.",
    )
