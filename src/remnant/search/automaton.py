"""The tree of a template's token sequences, stored as an automaton that merges equal subtrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.template import Template
from remnant.errors import InvalidInput
from remnant.search.tokens import Encode, Ids, MergedTokens, Tokenization, encoded, tokenize

Item = tuple[int, int]
LARGEST = 500_000


@dataclass(frozen=True, slots=True)
class _Trie:
    """The token sequences of one slot: children by token, and where a choice ends."""

    children: list[dict[int, int]]
    ends: set[int]


@dataclass(frozen=True, eq=False)
class Automaton:
    """Places, the tokens that may come next at each, and where they lead.

    Place 0 is the start. The tree of all token sequences is the automaton unrolled.

    Attributes:
        prefix: Tokens before the first hole.
        offsets: Edges of place ``p`` are ``offsets[p]:offsets[p + 1]``, shape ``(places + 1,)``.
        tokens, targets: Of each edge.
        final: Whether a secret may end at this place.
        counts: How many secrets end at or after this place, as exact integers.
        depth: Tokens of the longest secret, the template's end included.
        tokenization: Of the choices that the paths are made of.
        skipped: What all choices begin with, counted to the prefix.
    """

    prefix: Ids
    offsets: NDArray[np.int64]
    tokens: NDArray[np.int64]
    targets: NDArray[np.int64]
    final: NDArray[np.bool_]
    counts: list[int]
    depth: int
    tokenization: Tokenization
    skipped: Ids = ()

    @cached_property
    def chain(self) -> bool:
        """Whether there is one place per level, and every secret ends at the last."""
        places = np.arange(len(self.final) - 1)
        sources = np.repeat(np.arange(len(self.final)), np.diff(self.offsets))
        return bool(
            np.array_equal(self.targets, sources + 1)
            and np.all(np.diff(self.offsets)[places] > 0)
            and not self.final[:-1].any()
        )

    @cached_property
    def widths(self) -> list[int]:
        """How many prefixes there are at each depth from 1 on."""
        here: dict[int, int] = {0: 1}
        widths = []
        for _ in range(self.depth):
            ahead: dict[int, int] = {}
            for place, prefixes in here.items():
                for target in self.targets[self.offsets[place] : self.offsets[place + 1]].tolist():
                    ahead[target] = ahead.get(target, 0) + prefixes
            here = ahead
            widths.append(sum(here.values()))
        return widths

    @cached_property
    def widest(self) -> int:
        """The most edges that any place has."""
        return int(np.diff(self.offsets).max())

    def accepts(self, path: Sequence[int]) -> bool:
        """Whether these tokens are a whole secret of the space, to the template's end."""
        place = 0
        for token in path:
            edges = slice(self.offsets[place], self.offsets[place + 1])
            hit = np.flatnonzero(self.tokens[edges] == token)
            if len(hit) == 0:
                return False
            place = int(self.targets[edges][hit[0]])
        return bool(self.final[place])

    def filling(self, path: Sequence[int]) -> str:
        """Return the text whose tokens these are, from the first hole to the template's end."""
        tables = [dict(zip(p, range(len(p)), strict=True)) for p in self.tokenization.pieces]
        lengths = [sorted({len(piece) for piece in table}) for table in tables]
        ends: list[dict[int, tuple[int, int]]] = [{0: (-1, -1)}]
        whole = self.skipped + tuple(int(t) for t in path)
        for table, sizes in zip(tables, lengths, strict=True):
            ahead: dict[int, tuple[int, int]] = {}
            for start in ends[-1]:
                for size in sizes:
                    choice = table.get(whole[start : start + size])
                    if choice is not None and start + size <= len(whole):
                        ahead.setdefault(start + size, (start, choice))
            ends.append(ahead)
        at, text = len(whole), ""
        for slot in range(len(tables) - 1, -1, -1):
            at, choice = ends[slot + 1][at]
            text = self.tokenization.texts[slot][choice] + text
        return text.removeprefix(self.tokenization.folded)


def compile_template(encode: Encode, template: Template) -> Automaton:
    """Turn a template into the automaton of its token sequences.

    Guarantees:
        * Every secret has one path, and every path is a secret's: the counts are compared with the
          template's space.

    Raises:
        MergedTokens: The tokens of a choice depend on its neighbours, two cuts of one text are both
            in the tree, or its choices overlap in more ways than can be kept apart.
        InvalidInput: The template has characters that the model cannot encode.
    """
    tokenization = tokenize(encode, template, rng=np.random.default_rng(0))
    tries = _tries(tokenization.pieces)
    numbers: dict[frozenset[Item], int] = {}
    waiting: list[frozenset[Item]] = []

    def number(items: frozenset[Item]) -> int:
        if items not in numbers:
            numbers[items] = len(numbers)
            waiting.append(items)
        return numbers[items]

    number(_closure({(0, 0)}, tries))
    edges: list[list[tuple[int, int]]] = []
    final: list[bool] = []
    for items in waiting:  # grows while it is read: places are numbered in breadth-first order
        final.append((len(tries), 0) in items)
        ahead: dict[int, set[Item]] = {}
        for slot, node in items:
            if slot < len(tries):
                for token, child in tries[slot].children[node].items():
                    ahead.setdefault(token, set()).add((slot, child))
        edges.append([(t, number(_closure(to, tries))) for t, to in sorted(ahead.items())])
        if len(numbers) > LARGEST:
            raise MergedTokens(
                f"The choices of the template overlap in more than {LARGEST} ways.",
                hint="Measure by sampling, or use choices of which none begins like another.",
            )
    counts, depths = _counted(edges, final)
    if counts[0] != template.space:
        raise MergedTokens(
            f"The template has {template.space} secrets and the tokenizer makes {counts[0]} token "
            "sequences of them.",
            hint="Measure by sampling, or use choices that cannot be put together in two ways.",
        )
    root = 0
    while tokenization.folded and len(edges[root]) == 1 and not final[root]:
        root += 1  # breadth-first numbers: an only child comes right after its parent
    kept = edges[root:]
    return Automaton(
        prefix=tokenization.prefix + tuple(row[0][0] for row in edges[:root]),
        offsets=np.cumsum([0, *map(len, kept)]),
        tokens=np.array([t for row in kept for t, _ in row], dtype=np.int64),
        targets=np.array([to - root for row in kept for _, to in row], dtype=np.int64),
        final=np.array(final[root:]),
        counts=counts[root:],
        depth=depths[root],
        tokenization=tokenization,
        skipped=tuple(row[0][0] for row in edges[:root]),
    )


def check_template(template: object) -> None:
    """Refuse anything but a ``Template``, such as its pattern as a string."""
    if not isinstance(template, Template):
        raise InvalidInput(
            f"template is a {type(template).__name__}, not a Template.",
            hint="Pass remnant.Template(pattern).",
        )


def secret_path(encode: Encode, automaton: Automaton, template: Template, secret: str) -> Ids:
    """Return the tokens of one secret, from the first hole to the template's end.

    Raises:
        InvalidInput: The secret is outside the template's space; it is not quoted.
        MergedTokens: Its tokens are not the ones that its choices have.
    """
    ids = encoded(encode, template.text(secret))
    path = ids[len(automaton.prefix) :]
    if ids[: len(automaton.prefix)] != automaton.prefix or not automaton.accepts(path):
        raise MergedTokens(
            "The tokenizer cuts a given secret otherwise than its choices.",
            hint="Measure by sampling (method='sampled').",
        )
    return path


def secret_of(automaton: Automaton, template: Template, path: Sequence[int]) -> str:
    """Return the secret that these tokens spell; the inverse of ``secret_path``."""
    text = automaton.filling(path)
    return text[: len(text) - len(template.suffix)]


def _tries(pieces: Sequence[tuple[Ids, ...]]) -> list[_Trie]:
    made: dict[tuple[Ids, ...], _Trie] = {}
    for slot in pieces:
        if slot not in made:
            trie = _Trie([{}], set())
            for piece in slot:
                node = 0
                for token in piece:
                    if token not in trie.children[node]:
                        trie.children[node][token] = len(trie.children)
                        trie.children.append({})
                    node = trie.children[node][token]
                trie.ends.add(node)
            made[slot] = trie
    return [made[slot] for slot in pieces]


def _closure(items: set[Item], tries: list[_Trie]) -> frozenset[Item]:
    """Add the start of the next slot wherever a choice has ended; drop nodes without children.

    Dropping these makes the ends of all choices one place.
    """
    reached, waiting = set(items), list(items)
    while waiting:
        slot, node = waiting.pop()
        if slot < len(tries) and node in tries[slot].ends and (slot + 1, 0) not in reached:
            reached.add((slot + 1, 0))
            waiting.append((slot + 1, 0))
    return frozenset(
        (slot, node) for slot, node in reached if slot == len(tries) or tries[slot].children[node]
    )


def _counted(edges: list[list[tuple[int, int]]], final: list[bool]) -> tuple[list[int], list[int]]:
    """Return how many secrets lie ahead of each place, and how far the farthest is."""
    counts, depths = [0] * len(edges), [0] * len(edges)
    done = [False] * len(edges)
    stack = [0]
    while stack:
        place = stack[-1]
        missing = {to for _, to in edges[place] if not done[to]}
        if missing:
            stack += missing
            continue
        stack.pop()
        if not done[place]:
            counts[place] = int(final[place]) + sum(counts[to] for _, to in edges[place])
            depths[place] = max((depths[to] + 1 for _, to in edges[place]), default=0)
            done[place] = True
    if counts[0] == 0:
        raise InvalidInput("The template's space is empty.")
    return counts, depths
