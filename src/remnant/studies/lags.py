"""At which lags a curve is measured."""

from __future__ import annotations

from remnant.errors import PlanError


def lag_grid(watch_steps: int, wanted: tuple[int, ...] = ()) -> list[int]:
    """Return the lags to measure: those asked for, or 0 and a 1-2-5 grid up to the last step.

    Example:
        >>> lag_grid(60)
        [0, 1, 2, 5, 10, 20, 50, 60]
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
    last = max(1, watch_steps // 8)  # the far end on a linear scale too, where decay is slow
    return sorted(grid | set(range(last, watch_steps, last)))
