"""Where labels and dots go so that they do not cover each other; all in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

_ROW = 15.0


def spread(places: list[float], *, low: float, high: float, gap: float = _ROW) -> list[float]:
    """Move sorted places apart to at least ``gap``, as little as a simple pass can."""
    moved = list(places)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    if moved and moved[-1] > high:
        moved[-1] = high
    for i in range(len(moved) - 2, -1, -1):
        moved[i] = min(moved[i], moved[i + 1] - gap)
    return [max(place, low + i * gap) for i, place in enumerate(moved)] if moved else moved


def fitted(label: str, room: float, letter: float) -> str:
    """A label cut to the room that there is, with an ellipsis where something is cut.

    Args:
        label: The whole label.
        room: In pixels.
        letter: Width of a letter, in pixels.

    Example:
        >>> fitted("Planted twins", 70.0, 7.0), fitted("Planted", 70.0, 7.0)
        ('Planted t…', 'Planted')
    """
    most = max(2, int(room / letter + 1e-6))
    return label if len(label) <= most else f"{label[: most - 1]}…"


def flag_rows(places: list[float], widths: list[float]) -> list[int]:
    """Rows for names that stand to the right of their vertical lines, 0 the lowest.

    A line rises to its own row. A name must therefore stand above every line that it would
    otherwise be crossed by.

    Guarantees:
        * No name meets another name, or the line of another.

    Example:
        >>> flag_rows([10.0, 40.0, 300.0], [90.0, 90.0, 90.0])
        [1, 0, 0]
    """
    # Of lines at one place the first given stands highest.
    order = sorted(range(len(places)), key=lambda i: (places[i], i))
    rows = [0] * len(places)
    for position in range(len(order) - 1, -1, -1):
        i = order[position]
        under = [rows[j] for j in order[position + 1 :] if places[j] <= places[i] + widths[i]]
        rows[i] = max(under, default=-1) + 1
    return rows


def swarm(heights: list[float], *, gap: float, most: float) -> list[float]:
    """Sideways moves for dots of one column, so that none covers another.

    Args:
        heights: Of the dots.
        gap: Their diameter.
        most: The farthest a dot may be moved; beyond that dots cover each other.

    Example:
        >>> swarm([10.0, 10.0, 10.0, 50.0], gap=8.0, most=20.0)
        [0.0, 8.0, -8.0, 0.0]
    """
    steps = int(most / gap)
    tries = [0.0, *(side * k * gap for k in range(1, steps + 1) for side in (1, -1))]
    moves: list[float] = []
    for height in heights:
        near = [moves[j] for j in range(len(moves)) if abs(heights[j] - height) < gap]
        free = (t for t in tries if all(abs(t - other) >= gap for other in near))
        moves.append(next(free, tries[len(near) % len(tries)]))
    return moves


def scattered(places: Sequence[tuple[float, float]], *, gap: float, most: float) -> list[float]:
    """Sideways moves for dots anywhere, so that none covers another.

    Args:
        places: Of the dots: across and down.
        gap: Their diameter.
        most: The farthest a dot may be moved; beyond that dots cover each other.

    Example:
        >>> scattered([(10.0, 10.0), (10.0, 10.0), (50.0, 10.0)], gap=8.0, most=20.0)
        [0.0, 8.0, 0.0]
    """
    tries = [0.0, *(side * k for k in range(1, int(most) + 1) for side in (1.0, -1.0))]
    placed: list[tuple[float, float]] = []
    moves = []
    for x, y in places:
        free = (
            move
            for move in tries
            if all(hypot(x + move - across, y - down) >= gap for across, down in placed)
        )
        moves.append(next(free, 0.0))
        placed.append((x + moves[-1], y))
    return moves


Box = tuple[float, float, float, float]  # left, top, right, bottom


def free_box(
    around: Box, *, width: float, height: float, within: Box, taken: Sequence[Box]
) -> tuple[Box, bool]:
    """Where the name of some dots goes so that it covers no other name and no dot.

    Tried are the four corners of the dots, first above and to the right, then places farther up
    and down. Where nothing is free, the first corner is returned.

    Args:
        around: The dots that are named.
        width, height: Of the name.
        within: What the name must not leave.
        taken: Names and dots that are there already.

    Returns:
        The place of the name, and whether its right end is at the dots.

    Example:
        >>> free_box((0, 0, 8, 8), width=10, height=10, within=(-50, -50, 50, 50), taken=[])
        ((8, -10, 18, 0), False)
    """
    left, top, right, bottom = around
    boxes = []
    for row in range(4):
        above, below = top - (row + 1) * height, bottom + row * height
        for low in (above, below):
            boxes += [
                ((right, low, right + width, low + height), False),
                ((left - width, low, left, low + height), True),
            ]
    inside = [
        (box, ends)
        for box, ends in boxes
        if box[0] >= within[0]
        and box[1] >= within[1]
        and box[2] <= within[2]
        and box[3] <= within[3]
    ]
    free = (found for found in inside if not any(overlap(found[0], other) for other in taken))
    return next(free, (inside or boxes)[0])


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes cover each other in part.

    Example:
        >>> overlap((0, 0, 2, 2), (1, 1, 3, 3)), overlap((0, 0, 2, 2), (2, 0, 3, 3))
        (True, False)
    """
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def thinned(places: list[float], widths: list[float], *, gap: float = 8.0) -> list[int]:
    """Which of some sorted labels to keep: the first, the last, and what fits between.

    Example:
        >>> thinned([0.0, 10.0, 50.0, 100.0], [20.0] * 4)
        [0, 2, 3]
    """
    if len(places) < 2:
        return list(range(len(places)))

    def clear(i: int, j: int) -> bool:
        return places[j] - places[i] >= (widths[i] + widths[j]) / 2 + gap

    last = len(places) - 1
    kept = [0]
    for i in range(1, last):
        if clear(kept[-1], i) and clear(i, last):
            kept.append(i)
    return [*kept, last] if clear(kept[-1], last) else [last]
