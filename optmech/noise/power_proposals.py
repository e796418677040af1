"""Laws and tangents for Rényi divergences, from floats to whole numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.number import Exact
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.additive.power import ShiftTangents, Tangents
from optmech.noise.power import PowerSolution, PowerWindow, weights_of
from optmech.noise.proposals import apportioned

_BITS = 80
_RATIO_BITS = 120
KEPT = 1e-11
"""The share of e^{(α-1)ε} that is kept back for roundings."""
_LARGEST = 1e300
_RARE = 1e-7
_MOST = 1e3
_NEGLIGIBLE = 1e-13
"""A price below this share of all proves next to nothing."""


def first_window(
    loss: NoiseLoss, order: Fraction, epsilon: Exact, sensitivity: int, gap: float
) -> PowerWindow:
    """A window about as wide as Gaussian noise of the same divergence."""
    a, rate = float(order), float(epsilon)
    sigma = sensitivity * math.sqrt(a / (2 * rate))
    wide = 7 * sigma + (2 + min(a, 4 * sigma)) * sensitivity + 8
    steep = 1.0 if loss.is_bounded else 7.0
    fall = min(steep * sensitivity / sigma, 0.9 * rate * a / (a - 1) + 1)
    limit = math.exp((a - 1) * rate) * (1 - KEPT)
    n = int(wide) + loss.last
    return PowerWindow(loss, a, limit, sensitivity, n, math.exp(-fall), gap)


def next_window(window: PowerWindow, solution: PowerSolution) -> PowerWindow:
    """A wider window, whose tail falls as the solution does at its end."""
    p = window.sensitivity
    ends = solution.places[-p:].sum() / solution.places[-2 * p : -p].sum()
    ratio = min(max(float(ends), 1e-12), 1 - 1e-6)
    return replace(window, n=window.n + window.n // 2, ratio=ratio)


def power_law(solution: PowerSolution, window: PowerWindow) -> Law:
    """Whole numbers near a solution, and the tails that it goes on with."""
    p = window.sensitivity
    ratio = int(Fraction(window.ratio) * (1 << _RATIO_BITS))
    kept = ratio / 2**_RATIO_BITS
    tails = solution.places[-p:] * kept / (1 - kept)
    return apportioned(np.concatenate([solution.places, tails]), p, ratio, _RATIO_BITS)


def tangents_of(solution: PowerSolution, window: PowerWindow) -> Tangents | None:
    """The ratios of a solution, lowered from the outside inwards where they hurt a place more than
    it can bear; None where floats do not hold them."""
    w = window
    a, n = w.order, w.n
    limit = w.limit / (1 - KEPT)
    prices = solution.prices
    shifts = [s + 1 for s in np.flatnonzero(prices > _NEGLIGIBLE * prices.sum()).tolist()]
    z = solution.places
    level = float(weights_of(window)[1] @ solution.places) * (1 - 1e-13)
    widest = shifts[-1]
    loss = w.loss.floats(np.arange(n + widest + 2.0))
    both = np.concatenate([z[:0:-1], z])
    cost = limit * sum(float(prices[s - 1]) for s in shifts)
    growth = _far_ratio(shifts, prices, a, level + cost - float(loss[n + 1]))
    rows: dict[int, Floats] = {}
    for s in shifts:
        x = np.empty(2 * (n + widest) + 1)
        inner = both[: len(both) - s] / both[s:]
        x[: widest + n + 1] = growth**-s
        x[widest + n :] = growth**s
        x[widest : widest + len(inner)] = inner
        rows[s] = x
    at = n + widest
    # seen from a place: what hurts it from nearer to the centre is lowered as far as must be
    for k in range(n + widest, -1, -1):
        value = float(loss[k]) - cost - level
        outward = []
        for s in shifts:
            x, price = rows[s], float(prices[s - 1])
            gain = x[at + k] ** (a - 1) + x[at - k] ** (a - 1)
            harm = x[at + k - s] ** a + (x[at - k - s] ** a if k + s <= at else growth ** (-s * a))
            value += price * (a * gain - (a - 1) * harm) / 2
            if 2 * k > s and k - s <= n:
                outward.append((s, price * (a - 1) / 2 * x[at + k - s] ** a))
        total = sum(part for _, part in outward)
        rare = k > n or z[k] < _RARE * z[0]
        if total > 0 and (value < 0 or rare):
            # where noise is rare its ratios are known least: there they follow from the loss
            kept = min(max(0.0, 1 + value / total), _MOST)
            for s, _ in outward:
                rows[s][at + k - s] *= kept ** (1 / a)
    if not all(np.isfinite(x).all() and x.max() < _LARGEST for x in rows.values()):
        return None
    unit = 1 << _BITS
    price_bits = max(0, _BITS - math.frexp(float(prices.sum()))[1])
    parts = []
    for s in shifts:
        x = rows[s][widest : len(rows[s]) - widest]
        inner = tuple(int(Fraction(v) * unit) for v in x.tolist())
        tail = int(Fraction(growth**s) * unit), int(Fraction(growth**-s) * unit)
        price = int(Fraction(float(prices[s - 1])) * (1 << price_bits))
        parts.append(ShiftTangents(s, inner, tail, price))
    return Tangents(_BITS, price_bits, tuple(parts))


def _far_ratio(shifts: list[int], prices: Floats, order: float, need: float) -> float:
    """The largest X for which ratios X^s far out on one side, and X^-s on the other, leave a place
    as much as it needs."""

    def left(x: float) -> float:
        return math.fsum(
            float(prices[s - 1])
            * (order * (x ** (s * (order - 1)) + x ** (s * (1 - order)))
               - (order - 1) * (x ** (s * order) + x ** (-s * order))) / 2
            for s in shifts
        )  # fmt: skip

    low, high = 1.0, 2.0
    if left(low) <= need:
        return low
    most = math.exp(200 / (order * shifts[-1]))
    while high < most and left(high) > need:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > need else (low, middle)
    return 1 + (low - 1) * (1 - 1e-9)
