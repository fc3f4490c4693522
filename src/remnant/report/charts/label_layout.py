"""Where labels and dots go so that they do not cover each other; all in pixels."""

from __future__ import annotations

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
