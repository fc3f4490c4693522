"""At which lags a curve is measured."""

from __future__ import annotations

from remnant.errors import PlanError


def lag_grid(watch_steps: int, wanted: tuple[int, ...] = ()) -> list[int]:
    """Return the lags to measure: those asked for, or a grid from 0 to the last step.

    The grid is 1-2-5 at the near end, where decay is fast, and eighths of the whole beyond.

    Example:
        >>> lag_grid(80)
        [0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80]
    """
    if wanted:
        beyond = [lag for lag in wanted if lag > watch_steps]
        if beyond:
            raise PlanError(
                f"attack.lags={beyond} are beyond watch_steps={watch_steps}.",
                hint="Raise the plan's watch_steps or drop these lags.",
            )
        return sorted(set(wanted))
    grid = {0, watch_steps}
    scale = 1
    while scale <= watch_steps:
        grid |= {scale * unit for unit in (1, 2, 5) if scale * unit <= watch_steps}
        scale *= 10
    last = max(1, watch_steps // 8)
    return sorted(grid | set(range(last, watch_steps, last)))
