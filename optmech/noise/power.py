"""The best noise under bounds on its Rényi divergences, in floats, and from these laws and
tangents in whole numbers; proofs are elsewhere.

The sums R_s(z) = Σ_i z(i)^α z(i + s)^{1-α}, and Σ_i z(i) ln(z(i)/z(i + s)) of order one, are convex
and of degree one. In steps relative to z the second derivative of R_s is that of
α(α - 1) Σ f_i (du_i - du_{i+s})² / 2, and of order one that of Σ z(i) (du_i - du_{i+s})² / 2, so
that Newton's method on a barrier for R_s <= T solves sparse systems, and places of 1e-30 are as
good as others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from optmech.base.arrays import Floats, Ints
from optmech.base.bisection import bisected
from optmech.errors import SolverError
from optmech.exact.number import Exact
from optmech.noise.additive.bound import ShiftTangents, Tangents
from optmech.noise.additive.law import Law
from optmech.noise.additive.loss import NoiseLoss
from optmech.noise.proposals import mirrored, with_tails

_STAGES = 40
_STEPS = 60
_HALVINGS = 50
_FASTER = 6.0
_LONGEST = 1.0
"""The largest relative change of a probability in a step, as a logarithm."""
_WIDER = 30
_ROUGH, _FINE = 1e-2, 1e-12
"""Relative changes at which Newton's method stops."""
_NEAR = 1e-3
_LAST_STEPS = 8


@dataclass(frozen=True)
class PowerWindow:
    """What is solved: z on |k| <= n, which goes on with ``ratio`` from period to period of
    ``sensitivity``; R_s <= T for these ``shifts`` up to it and every order, to a relative gap.
    ``limits`` are T = e^{(α - 1)ε}, or ε of order one."""

    loss: NoiseLoss
    orders: tuple[float, ...]
    limits: tuple[float, ...]
    sensitivity: int
    shifts: tuple[int, ...]
    n: int
    ratio: float
    gap: float

    @property
    def count(self) -> int:
        """How many sums are bounded."""
        return len(self.shifts) * len(self.orders)


@dataclass(frozen=True)
class PowerSolution:
    """z(0), …, z(n), and the prices λ of every order and shift, shape (orders, shifts)."""

    places: Floats
    prices: Floats


def solve_power(window: PowerWindow) -> PowerSolution:
    """The best places; raises SolverError where none are found."""
    return _Program(window).solved()


class _Program:
    """Pairs of places as weighted columns, and a barrier."""

    def __init__(self, window: PowerWindow) -> None:
        w = self.window = window
        self.size = w.n + 1
        self.mass, self.cost = weights_of(w)
        parts = [self._pairs(s) for s in w.shifts]
        first, second, steps, rest, tail = (
            np.concatenate(some) for some in zip(*parts, strict=True)
        )
        sizes = [len(part[0]) for part in parts]
        which = np.repeat(np.arange(len(parts)), sizes)
        many = len(w.orders)
        self.first, self.second = np.tile(first, many), np.tile(second, many)
        self.sum = np.concatenate([which + len(parts) * j for j in range(many)])
        self.order = np.repeat(w.orders, len(first))
        self.is_log = self.order == 1
        powers = self.order * np.tile(steps, many) + (1 - self.order) * np.tile(rest, many)
        self.weight = np.tile(tail, many) * w.ratio**powers
        self.offset = np.tile(steps - rest, many) * math.log(w.ratio)
        self.limits = np.repeat(w.limits, len(parts))

    def _pairs(self, s: int) -> tuple[Ints, Ints, Ints, Ints, Floats]:
        """Columns of z(i) and z(i + s), the powers of the ratio that they are taken by, and how
        often the term counts: of the window, and of a period beyond it to either side, with all
        that follow."""
        w, p = self.window, self.window.sensitivity
        inner = np.arange(-w.n - s, w.n + 1)
        right, left = np.arange(w.n + 1, w.n + p + 1), np.arange(-w.n - s - p, -w.n - s)
        i = np.concatenate([inner, right, left])
        sums = np.concatenate([np.ones(len(inner)), np.full(2 * p, 1 / (1 - w.ratio))])
        (first, a), (second, b) = self._columns(np.abs(i)), self._columns(np.abs(i + s))
        return first, second, a, b, sums

    def _columns(self, k: Ints) -> tuple[Ints, Ints]:
        """z(k) is a column times a power of the ratio."""
        w = self.window
        beyond = np.maximum(k - w.n, 0)
        periods = -(-beyond // w.sensitivity)
        return k - periods * w.sensitivity, periods

    def terms(self, z: Floats) -> Floats:
        """All terms of all sums."""
        first = z[self.first]
        with np.errstate(all="ignore"):
            ratio = first / z[self.second]
            power = np.where(self.is_log, np.log(ratio) + self.offset, ratio ** (self.order - 1))
            return np.asarray(self.weight * first * power)

    def sums(self, terms: Floats) -> Floats:
        """Every R_s, order after order."""
        return np.bincount(self.sum, terms, self.window.count).astype(np.float64)

    def start(self) -> Floats:
        """Gaussian noise wide enough, in which the tail's ratio is kept."""
        w = self.window
        pairs = zip(w.orders, w.limits, strict=True)
        wide = max(order / (2 * _rate_of(order, limit)) for order, limit in pairs)
        variance = 1.1 * w.sensitivity**2 * wide
        k = np.arange(w.n + 1.0)
        for _ in range(_WIDER):
            slope = np.minimum(k / variance, -math.log(w.ratio) / w.sensitivity)
            z = np.exp(-np.append(0.0, np.cumsum((slope[1:] + slope[:-1]) / 2)))
            z /= float(self.mass @ z)
            if (self.sums(self.terms(z)) < self.limits * (1 - 1e-9)).all():
                return np.asarray(z)
            variance *= 1.3
        raise SolverError("no noise to start from was found", where="noise")

    def solved(self) -> PowerSolution:
        """Along the barrier until the gap is small enough."""
        z, w = self.start(), self.window
        rate = w.count / float(self.cost @ z)
        for _ in range(_STAGES):
            try:
                z = self._centred(z, rate, _ROUGH)
            except SolverError:
                # equations that are singular in floats: what was centred before stands
                rate /= _FASTER
                break
            if w.count / rate < w.gap * float(self.cost @ z):
                break
            rate *= _FASTER
        with suppress(SolverError):
            z = self._centred(z, rate, _FINE)
        prices = 1 / (rate * (self.limits - self.sums(self.terms(z))))
        return PowerSolution(z, prices.reshape(len(w.orders), -1))

    def _value(self, z: Floats, rate: float) -> float:
        room = self.limits - self.sums(self.terms(z))
        if not (room > 0).all():
            return math.inf
        return rate * float(self.cost @ z) - float(np.log(room).sum())

    def _centred(self, z: Floats, rate: float, enough: float) -> Floats:
        """The least value of the barrier."""
        value, near = self._value(z, rate), 0
        for _ in range(_STEPS):
            step, slope = self._step(z, rate)
            if -slope < _NEAR and float(np.abs(step).max()) < 0.5:
                # values are no longer known well enough to compare: Newton's steps themselves are
                moved = z * np.exp(step)
                moved /= float(self.mass @ moved)
                near += 1
                if near > _LAST_STEPS or not math.isfinite(self._value(moved, rate)):
                    break
                z = moved
                value = self._value(z, rate)
                if float(np.abs(step).max()) < enough:
                    break
                continue
            share = min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
            for _ in range(_HALVINGS):
                moved = z * np.exp(share * step)
                moved /= float(self.mass @ moved)
                now = self._value(moved, rate)
                if now <= value + 0.05 * share * slope:
                    break
                share /= 2
            else:
                return z
            z, value = moved, now
        return z

    def _step(self, z: Floats, rate: float) -> tuple[Floats, float]:
        """Newton's step, relative to z, and the slope of the value along it."""
        order, count, size = self.order, self.window.count, self.size
        terms = self.terms(z)
        room = self.limits - self.sums(terms)
        weight = z * self.mass
        plain = self.weight * z[self.first]
        rise = np.where(self.is_log, terms + plain, order * terms)
        fall = np.where(self.is_log, -plain, (1 - order) * terms)
        slopes = np.zeros((count, size))
        np.add.at(slopes, (self.sum, self.first), rise)
        np.add.at(slopes, (self.sum, self.second), fall)
        gradient = rate * self.cost * z + (slopes / room[:, None]).sum(axis=0)
        scale = 1 / np.sqrt(weight)
        bend = np.where(self.is_log, plain, order * (order - 1) * terms) / room[self.sum]
        one, other = scale[self.first], scale[self.second]
        steps = np.arange(size)
        borders = slopes * scale / room[:, None]
        down, across = np.repeat(np.arange(count) + size, size), np.tile(steps, count)
        last = np.full(size, size + count)
        rows = [self.first, self.second, self.first, self.second, steps, down, across,
                np.arange(count) + size, last, steps]  # fmt: skip
        columns = [self.first, self.second, self.second, self.first, steps, across, down,
                   np.arange(count) + size, steps, last]  # fmt: skip
        values = [
            bend * one**2, bend * other**2, -bend * one * other, -bend * one * other,
            np.full(size, 1e-13 * float(bend.sum())), borders.ravel(), borders.ravel(),
            -np.ones(count), weight * scale, weight * scale,
        ]  # fmt: skip
        shape = (size + count + 1, size + count + 1)
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        right = np.concatenate([-gradient * scale, np.zeros(count + 1)])
        try:
            found = splu(sp.csc_matrix(entries, shape=shape)).solve(right)
        except RuntimeError as error:
            raise SolverError("a system of equations is singular", where="noise") from error
        step = np.asarray(found[:size] * scale)
        if not np.isfinite(step).all():
            raise SolverError("the search for noise did not converge", where="noise")
        step -= float(step @ weight)
        return step, float(gradient @ step)


def _rate_of(order: float, limit: float) -> float:
    """ε from T."""
    return limit if order == 1 else math.log(limit) / (order - 1)


def weights_of(window: PowerWindow) -> tuple[Floats, Floats]:
    """Probability and expected loss of a unit of every place, both sides and the tail's part."""
    w = window
    r, p = w.ratio, w.sensitivity
    mass = np.full(w.n + 1, 2.0)
    mass[0] = 1.0
    cost = mass * w.loss.floats(np.arange(w.n + 1.0))
    for i in range(w.n + 1 - p, w.n + 1):
        a, b, g = map(float, w.loss.polynomial(i))
        mass[i] += 2 * r / (1 - r)
        mean = a * r / (1 - r) + b * p * r / (1 - r) ** 2
        cost[i] += 2 * (mean + g * p * p * r * (1 + r) / (1 - r) ** 3)
    return mass, cost


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
    following = solution.places[-p:] * (ratio / 2**_RATIO_BITS)
    return with_tails(np.append(solution.places, following), p, ratio, _RATIO_BITS)


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
    both = mirrored(z)
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
        held = tuple(_positive(v, unit) for v in x[widest : len(x) - widest].tolist())
        tail = _positive(growth**s, unit), _positive(growth**-s, unit)
        whole = int(Fraction(price) * (1 << price_bits))
        parts.append(ShiftTangents(s, held, tail, whole, j))
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
    low, _ = bisected(lambda x: left(x) <= need, low, high, 60)
    return 1 + (low - 1) * (1 - 1e-9)
