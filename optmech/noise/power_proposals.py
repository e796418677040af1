"""Laws and tangents for Rényi divergences, from floats to whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
_LEAST = 1e-9
_NEGLIGIBLE = 1e-13
"""A price below this share of all proves next to nothing."""


def first_window(
    loss: NoiseLoss,
    bounds: Sequence[tuple[Fraction, Exact]],
    sensitivity: int,
    shifts: tuple[int, ...],
    gap: float,
) -> PowerWindow:
    """A window about as wide as Gaussian noise of the same divergences."""
    pairs = [(float(order), float(rate)) for order, rate in bounds]
    sigma, a = max((sensitivity * math.sqrt(a / (2 * rate)), a) for a, rate in pairs)
    wide = 7 * sigma + (2 + min(a, 4 * sigma)) * sensitivity + 8
    steep = 1.0 if loss.is_bounded else 7.0
    falls = [0.9 * rate * a / (a - 1) + 1 for a, rate in pairs if a > 1]
    fall = min([steep * sensitivity / sigma, *falls])
    n = int(wide) + loss.last
    window = PowerWindow(loss, (), (), sensitivity, shifts, n, math.exp(-fall), gap)
    return with_bounds(window, bounds)


def with_bounds(window: PowerWindow, bounds: Sequence[tuple[Fraction, Exact]]) -> PowerWindow:
    """A window under bounds on divergences of some orders."""
    pairs = [(float(order), float(rate)) for order, rate in bounds]
    limits = [(rate if a == 1 else math.exp((a - 1) * rate)) * (1 - KEPT) for a, rate in pairs]
    return replace(window, orders=tuple(a for a, _ in pairs), limits=tuple(limits))


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
    n = w.n
    prices = solution.prices
    least = _NEGLIGIBLE * prices.sum()
    used = [(j, w.shifts[i], float(prices[j, i])) for j, i in np.argwhere(prices > least).tolist()]
    z = solution.places
    level = float(weights_of(window)[1] @ solution.places) * (1 - 1e-13)
    widest = max(s for _, s, _ in used)
    loss = w.loss.floats(np.arange(n + widest + 2.0))
    both = np.concatenate([z[:0:-1], z])
    cost = sum(price * w.limits[j] / (1 - KEPT) for j, _, price in used)
    growth = _far_ratio(used, w.orders, level + cost - float(loss[n + 1]))
    rows: list[Floats] = []
    for _, s, _ in used:
        x = np.empty(2 * (n + widest) + 1)
        inner = both[: len(both) - s] / both[s:]
        x[: widest + n + 1] = growth**-s
        x[widest + n :] = growth**s
        x[widest : widest + len(inner)] = inner
        rows.append(x)
    at = n + widest
    # seen from a place: what hurts it from nearer to the centre is lowered as far as must be
    for k in range(n + widest, -1, -1):
        value = float(loss[k]) - cost - level
        outward = []
        for x, (j, s, price) in zip(rows, used, strict=True):
            order = w.orders[j]
            gain = _gain(x[at + k], order) + _gain(x[at - k], order)
            beyond = x[at - k - s] if k + s <= at else growth**-s
            harm = _harm(x[at + k - s], order), _harm(beyond, order)
            value += price * (gain - sum(harm)) / 2
            if 2 * k > s and k - s <= n:
                outward.append((x, s, order, price * harm[0] / 2))
        total = sum(part for *_, part in outward)
        rare = k > n or z[k] < _RARE * z[0]
        if total > 0 and (value < 0 or rare):
            # where noise is rare its ratios are known least: there they follow from the loss
            kept = min(max(_LEAST, 1 + value / total), _MOST)
            for x, s, order, _ in outward:
                x[at + k - s] *= kept ** (1 / order)
    if not all(np.isfinite(x).all() and x.max() < _LARGEST for x in rows):
        return None
    unit = 1 << _BITS
    price_bits = max(0, _BITS - math.frexp(float(prices.sum()))[1])
    parts = []
    for x, (j, s, price) in zip(rows, used, strict=True):
        inner = tuple(_positive(v, unit) for v in x[widest : len(x) - widest].tolist())
        tail = _positive(growth**s, unit), _positive(growth**-s, unit)
        whole = int(Fraction(price) * (1 << price_bits))
        parts.append(ShiftTangents(s, inner, tail, whole, j))
    return Tangents(_BITS, price_bits, tuple(parts))


def _positive(value: float, unit: int) -> int:
    """Logarithms are taken of ratios."""
    return max(1, int(Fraction(value) * unit))


def _gain(x: float, order: float) -> float:
    """What a tangent at the ratio x adds to the place of its first number."""
    return 1 + math.log(x) if order == 1 else order * x ** (order - 1)


def _harm(x: float, order: float) -> float:
    """What it takes from that of its second."""
    return x if order == 1 else (order - 1) * x**order


def _far_ratio(
    used: Sequence[tuple[int, int, float]], orders: Sequence[float], need: float
) -> float:
    """The largest X for which ratios X^s far out on one side, and X^-s on the other, leave a place
    as much as it needs."""

    def left(x: float) -> float:
        return math.fsum(
            price * (_gain(y, orders[j]) - _harm(y, orders[j])) / 2
            for j, s, price in used
            for y in (x**s, x**-s)
        )

    low, high = 1.0, 2.0
    if left(low) <= need:
        return low
    most = math.exp(200 / max(orders[j] * s for j, s, _ in used))
    while high < most and left(high) > need:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if left(middle) > need else (low, middle)
    return 1 + (low - 1) * (1 - 1e-9)
