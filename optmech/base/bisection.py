"""Where a claim that grows begins to hold."""

from __future__ import annotations

import math
from collections.abc import Callable


def bisected(
    holds: Callable[[float], bool], low: float, high: float, steps: int, close: float = 0.0
) -> tuple[float, float]:
    """Closer ends around the place from which on a claim holds, as it does at ``high`` and does not
    at ``low``: after so many steps, or where they are within a share ``close`` of each other."""
    for _ in range(steps):
        if high - low <= close * high:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def reached(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    steps: int,
    close: float,
    most: float = math.inf,
) -> tuple[float, float]:
    """Ends around the place from which on a claim holds, where nothing is known of ``high``: it is
    doubled until the claim holds, and is infinite where it would be above ``most``. Both are
    ``low`` where the claim holds there."""
    if holds(low):
        return low, low
    while high <= most and not holds(high):
        low, high = high, 2 * high
    return bisected(holds, low, high, steps, close) if high <= most else (low, math.inf)
