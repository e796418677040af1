"""The largest value of a concave function of a distribution, by a primal-dual Newton method.

For what fixed-point updates (Blahut and Arimoto, expectation maximisation) leave slow: where
weights go to 0 they take as many steps as digits are wanted. Proposes only; callers prove what
is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Floats

Value = Callable[[Floats], tuple[Floats, Floats, float]]
"""From weights to the gradient, minus the matrix of second derivatives, and how much is still to
gain at most."""


def concave_maximum(start: Floats, value: Value, enough: float, most: int) -> tuple[Floats, int]:
    """Weights >= 0 of sum 1 at which at most ``enough`` is to gain, or the best on the way after
    ``most`` steps; and the steps.

    Newton's method on gradient - ν + μ = 0, π μ = t, Σ π = 1 for falling t (Nocedal and Wright,
    Numerical Optimization, chapter 19).
    """
    count = len(start)
    weights = (start + 1e-4 / count) / (1 + 1e-4)
    gradient, _, _ = value(weights)
    level = float(gradient.max())
    prices = np.maximum(level - gradient, 1e-3)
    best, reached = start, value(start)[2]
    system = np.ones((count + 1, count + 1))
    for step in range(1, most + 1):
        gradient, curved, gap = value(weights)
        if gap < reached:
            best, reached = weights, gap
        if gap <= enough:
            return best, step
        target = 0.1 * float(weights @ prices) / count
        system[:count, :count] = curved + np.diag(prices / weights)
        system[count, count] = 0.0
        wanted = np.append(gradient - level + target / weights, 1 - weights.sum())
        try:
            move = np.linalg.solve(system, wanted)
        except np.linalg.LinAlgError:
            return best, step
        if not np.isfinite(move).all():
            return best, step
        other = (target - weights * prices - prices * move[:count]) / weights
        # nothing may reach 0
        weights = weights + _room(weights, move[:count]) * move[:count]
        prices = prices + _room(prices, other) * other
        level += float(move[count])
    return best, most


def _room(values: Floats, move: Floats) -> float:
    """How far to go along ``move`` so that everything stays above 0."""
    falling = move < 0
    room = (values[falling] / -move[falling]).min(initial=np.inf)
    return float(min(1.0, 0.995 * room))
