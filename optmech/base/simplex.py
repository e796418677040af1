"""The largest value of a concave function of a distribution, by a primal-dual Newton method, and
the likeliest distribution, by the iterative Bayesian update and that.

For what fixed-point updates (Blahut and Arimoto, expectation maximisation) leave slow: where
weights go to 0 they take as many steps as digits are wanted. Proposes only; callers prove what
is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Floats, normalised_rows

Value = Callable[[Floats], tuple[Floats, Floats, float]]
"""From weights to the gradient, minus the matrix of second derivatives, and how much is still to
gain at most."""
_LEAST = 1e-290
"""No weight falls to 0 on the way: it could never rise again."""
_PATIENCE = 300
"""Updates after which the slow ones are finished by Newton's method."""
_NEWTON = 100


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


def likeliest(likely: Floats, shares: Floats, enough: float, most: int) -> tuple[Floats, int]:
    """The likeliest weights for every row of ``shares``, shape (B, O)."""
    weights, steps = _updated(likely, shares, enough, min(most, _PATIENCE))
    spent = 0
    for row, share in enumerate(shares if steps < most else ()):
        if np.log(_gradient(likely, share[None], weights[row : row + 1]).max()) > enough:

            def value(trial: Floats, share: Floats = share) -> tuple[Floats, Floats, float]:
                output = trial @ likely
                gradient = likely @ (share / output)
                curved = (likely * (share / output**2)) @ likely.T
                return gradient, curved, float(np.log(gradient.max() * trial.sum()))

            weights[row], taken = concave_maximum(
                weights[row], value, enough, min(most - steps, _NEWTON)
            )
            spent = max(spent, taken)
    return normalised_rows(weights), steps + spent


def _updated(likely: Floats, shares: Floats, enough: float, most: int) -> tuple[Floats, int]:
    """The iterative Bayesian update, squared and extrapolated (Varadhan and Roland 2008) where that
    does not lose likelihood."""
    count = len(likely)
    weights = np.full((len(shares), count), 1 / count)
    steps = 0
    while steps < most:
        gradient = _gradient(likely, shares, weights)
        if np.log(gradient.max()) <= enough:
            break
        first = weights * gradient
        second = first * _gradient(likely, shares, first)
        steps += 2
        change, curve = first - weights, second - 2 * first + weights
        size = np.linalg.norm(curve, axis=1)
        stretch = np.linalg.norm(change, axis=1) / np.where(size > 0, size, 1.0)
        stretch = np.maximum(1.0, np.where(size > 0, stretch, 1.0))[:, None]
        further = weights + 2 * stretch * change + stretch**2 * curve
        usable = further.min(axis=1, keepdims=True) > 0
        further = np.where(usable, further, second)
        further = normalised_rows(further)
        better = _log_likelihood(likely, shares, further) >= _log_likelihood(likely, shares, second)
        weights = np.where(better[:, None], further, second)
        weights = np.maximum(normalised_rows(weights), _LEAST)
    return weights, steps


def _gradient(likely: Floats, shares: Floats, weights: Floats) -> Floats:
    """Σ_o share(o) p(o|s) / (πP)(o), shape (B, S)."""
    output = np.maximum(weights @ likely, np.finfo(float).tiny)
    return (shares / output) @ likely.T


def _log_likelihood(likely: Floats, shares: Floats, weights: Floats) -> Floats:
    output = np.maximum(weights @ likely, np.finfo(float).tiny)
    return np.asarray((shares * np.log(output)).sum(axis=1))
