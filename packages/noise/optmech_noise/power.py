"""The best noise under bounds on its Rényi divergences, in floats, and from these laws and
tangents in whole numbers; proofs are elsewhere.

The sums R_s(z) = Σ_i z(i)^α z(i + s)^{1-α}, and Σ_i z(i) ln(z(i)/z(i + s)) of order one, are convex
and of degree one. In steps relative to z the second derivative of R_s is that of
α(α - 1) Σ f_i (du_i - du_{i+s})² / 2, and of order one that of Σ z(i) (du_i - du_{i+s})² / 2, so
that Newton's method on a barrier for R_s <= T solves sparse systems, and places of 1e-30 are as
good as others.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from optmech.base.arrays import Floats
from optmech.base.bisection import reached
from optmech.errors import SolverError
from optmech_noise.additive.bound import Bounds, ShiftWindow, Tangents
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.program import line_weights
from optmech_noise.proposals import bits_for, mirrored, whole_numbers, with_tails

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
    ``sensitivity``; D_α <= ε at all shifts up to it for the pairs (α, ε) of ``bounds``."""

    loss: NoiseLoss
    bounds: tuple[tuple[float, float], ...]
    sensitivity: int
    n: int
    ratio: float

    @property
    def limits(self) -> list[float]:
        """T = e^{(α - 1)ε} of every order, or ε of order one, but for what roundings may take."""
        return [(e if a == 1 else math.exp((a - 1) * e)) * (1 - KEPT) for a, e in self.bounds]

    @property
    def count(self) -> int:
        """How many sums are bounded."""
        return self.sensitivity * len(self.bounds)


class PowerSolution(NamedTuple):
    """z(0), …, z(n), and the prices λ of every order and shift, shape (orders, shifts)."""

    places: Floats
    prices: Floats


class PowerProgram:
    """Pairs of places as weighted columns, and a barrier."""

    def __init__(self, window: PowerWindow) -> None:
        w = self.window = window
        self.mass, self.cost = weights_of(w)
        shifts = range(1, w.sensitivity + 1)
        parts = [self._pairs(order, s) for (order, _), s in product(w.bounds, shifts)]
        self.first, self.second, self.order, self.weight, self.offset = (
            np.concatenate(some) for some in zip(*parts, strict=True)
        )
        self.sum = np.repeat(np.arange(w.count), [len(part[0]) for part in parts])
        self.is_log = self.order == 1
        self.limits = np.repeat(w.limits, w.sensitivity)

    def _pairs(self, order: float, s: int) -> tuple[Any, ...]:
        """Columns of z(i) and z(i + s), the order, what the term of the columns counts, and what
        is added to the logarithm of their ratio: of the window, and of a period beyond it to either
        side, with all that follow."""
        w, p = self.window, self.window.sensitivity
        i = np.arange(-w.n - s - p, w.n + p + 1)
        sums = np.ones(len(i))
        sums[:p] = sums[-p:] = 1 / (1 - w.ratio)
        # z(k) is a column times a power of the ratio
        k = np.abs([i, i + s])
        periods = -(-np.maximum(k - w.n, 0) // p)
        (first, second), (a, b) = k - periods * p, periods
        weight = sums * w.ratio ** (order * a + (1 - order) * b)
        return first, second, np.full(len(i), order), weight, (a - b) * math.log(w.ratio)

    def terms(self, z: Floats) -> Floats:
        """All terms of all sums."""
        first = z[self.first]
        with np.errstate(all="ignore"):
            ratio = first / z[self.second]
            power = np.where(self.is_log, np.log(ratio) + self.offset, ratio ** (self.order - 1))
            return np.asarray(self.weight * first * power)

    def room(self, terms: Floats) -> Floats:
        """What every R_s, order after order, leaves of its limit."""
        return self.limits - np.bincount(self.sum, terms, self.window.count)

    def _probable(self, z: Floats) -> Floats:
        """Places in proportion, of sum one."""
        return np.asarray(z / float(self.mass @ z))

    def start(self) -> Floats:
        """Gaussian noise wide enough, in which the tail's ratio is kept."""
        w = self.window
        variance = 1.1 * w.sensitivity**2 * max(order / (2 * rate) for order, rate in w.bounds)
        k = np.arange(w.n + 1.0)
        for _ in range(_WIDER):
            slope = np.minimum(k / variance, -math.log(w.ratio) / w.sensitivity)
            fall = np.append(0.0, np.cumsum((slope[1:] + slope[:-1]) / 2))
            z = self._probable(np.exp(-fall))
            if (self.room(self.terms(z)) > 1e-9 * self.limits).all():
                return z
            variance *= 1.3
        raise SolverError("no noise to start from was found", where="noise")

    def solved(self, gap: float) -> PowerSolution:
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
            if w.count / rate < gap * float(self.cost @ z):
                break
            rate *= _FASTER
        with suppress(SolverError):
            z = self._centred(z, rate, _FINE)
        prices = 1 / (rate * self.room(self.terms(z)))
        return PowerSolution(z, prices.reshape(-1, w.sensitivity))

    def _value(self, z: Floats, rate: float) -> float:
        room = self.room(self.terms(z))
        if not (room > 0).all():
            return math.inf
        return rate * float(self.cost @ z) - float(np.log(room).sum())

    def _centred(self, z: Floats, rate: float, enough: float) -> Floats:
        """The least value of the barrier."""
        value, near = self._value(z, rate), 0
        for _ in range(_STEPS):
            step, slope = self._step(z, rate)
            longest = max(float(np.abs(step).max()), 1e-300)
            if -slope < _NEAR and longest < 0.5:
                # values are no longer known well enough to compare: Newton's steps themselves are
                moved = self._probable(z * np.exp(step))
                value, near = self._value(moved, rate), near + 1
                if near > _LAST_STEPS or not math.isfinite(value):
                    break
                z = moved
                if longest < enough:
                    break
                continue
            share = min(1.0, _LONGEST / longest)
            for _ in range(_HALVINGS):
                moved = self._probable(z * np.exp(share * step))
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
        order, count, size = self.order, self.window.count, len(z)
        terms = self.terms(z)
        room = self.room(terms)
        weight = z * self.mass
        plain = self.weight * z[self.first]
        rise = np.where(self.is_log, terms + plain, order * terms)
        fall = np.where(self.is_log, -plain, (1 - order) * terms)
        bend = np.where(self.is_log, plain, order * (order - 1) * terms) / room[self.sum]
        slopes = np.zeros((count, size))
        np.add.at(slopes, (self.sum, self.first), rise)
        np.add.at(slopes, (self.sum, self.second), fall)
        gradient = rate * self.cost * z + (slopes / room[:, None]).sum(axis=0)
        scale = 1 / np.sqrt(weight)
        one, other = scale[self.first], scale[self.second]
        steps, sums = np.arange(size), np.arange(count) + size
        borders = slopes * scale / room[:, None]
        # half of a symmetric matrix
        half = [
            (bend * one**2 / 2, self.first, self.first),
            (bend * other**2 / 2, self.second, self.second),
            (-bend * one * other, self.first, self.second),
            (np.full(size, 0.5e-13 * float(bend.sum())), steps, steps),
            (borders.ravel(), np.repeat(sums, size), np.tile(steps, count)),
            (np.full(count, -0.5), sums, sums),
            (weight * scale, np.full(size, size + count), steps),
        ]
        values, rows, columns = (np.concatenate(part) for part in zip(*half, strict=True))
        entries = np.tile(values, 2), (np.append(rows, columns), np.append(columns, rows))
        system = sp.csc_matrix(entries, shape=(size + count + 1, size + count + 1))
        try:
            found = splu(system).solve(np.append(-gradient * scale, np.zeros(count + 1)))
        except RuntimeError as error:
            raise SolverError("a system of equations is singular", where="noise") from error
        step = np.asarray(found[:size] * scale)
        if not np.isfinite(step).all():
            raise SolverError("the search for noise did not converge", where="noise")
        step -= float(step @ weight)
        return step, float(gradient @ step)


def weights_of(window: PowerWindow) -> tuple[Floats, Floats]:
    """Probability and expected loss of a unit of every place, both sides and the tail's part."""
    w, p = window, window.sensitivity
    found = line_weights(w.loss, w.n, p, w.ratio)
    for each in found:
        each[-2 * p : -p] += w.ratio / (1 - w.ratio) * each[-p:]
    mass, cost = (each[:-p] for each in found)
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


def first_window(loss: NoiseLoss, bounds: Bounds, sensitivity: int) -> PowerWindow:
    """A window about as wide as Gaussian noise of the same divergences."""
    pairs = floats_of(bounds)
    sigma, a = max((sensitivity * math.sqrt(a / (2 * rate)), a) for a, rate in pairs)
    wide = 7 * sigma + (2 + min(a, 4 * sigma)) * sensitivity + 8
    steep = 1.0 if loss.is_bounded else 7.0
    falls = [0.9 * rate * a / (a - 1) + 1 for a, rate in pairs if a > 1]
    fall = min([steep * sensitivity / sigma, *falls])
    return PowerWindow(loss, pairs, sensitivity, int(wide) + loss.last, math.exp(-fall))


def floats_of(bounds: Bounds) -> tuple[tuple[float, float], ...]:
    """Orders, and what divergences of these are at most."""
    return tuple((float(order), float(rate)) for order, rate in bounds)


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


class _Sum(NamedTuple):
    """A sum that is bounded: which of the orders it is of, which that is, its shift and price."""

    bound: int
    order: float
    shift: int
    price: float

    def gain(self, x: float) -> float:
        """What a tangent at the ratio x adds to the place of its first number, a half of it to
        either side."""
        found = 1 + math.log(x) if self.order == 1 else self.order * x ** (self.order - 1)
        return self.price * found / 2

    def harm(self, x: float) -> float:
        """What it takes from that of its second."""
        found = x if self.order == 1 else (self.order - 1) * x**self.order
        return self.price * found / 2


def tangents_of(solution: PowerSolution, window: PowerWindow) -> Tangents | None:
    """The ratios of a solution, lowered from the outside inwards where they hurt a place more than
    it can bear; None where floats do not hold them."""
    w, z, prices = window, solution.places, solution.prices
    found = np.argwhere(prices > _NEGLIGIBLE * prices.sum()).tolist()
    used = [_Sum(j, w.bounds[j][0], i + 1, float(prices[j, i])) for j, i in found]
    widest = max(part.shift for part in used)
    last = w.n + widest
    loss = w.loss.floats(np.arange(last + 2.0))
    cost = sum(part.price * w.limits[part.bound] / (1 - KEPT) for part in used)
    need = cost + float(weights_of(w)[1] @ z) * (1 - 1e-13)
    growth = _far_ratio(used, need - float(loss[w.n + 1]))
    both = mirrored(z)
    rows: list[tuple[_Sum, Floats]] = []
    # where the ratio at 0 is: shifts lead from -n - widest farther out
    at = last + widest
    for part in used:
        x = np.full(last + at + 1, growth**part.shift)
        x[:at] = growth**-part.shift
        inner = both[: -part.shift] / both[part.shift :]
        x[2 * widest : 2 * widest + len(inner)] = inner
        rows.append((part, x))
    # seen from a place: what hurts it from nearer to the centre is lowered as far as must be
    for k in range(last, -1, -1):
        value = float(loss[k]) - need
        outward = []
        for part, x in rows:
            s = part.shift
            harm = part.harm(x[at + k - s])
            value += part.gain(x[at + k]) + part.gain(x[at - k]) - harm
            value -= part.harm(x[at - k - s])
            if 2 * k > s and k - s <= w.n:
                outward.append((x, s, part.order, harm))
        total = sum(harm for *_, harm in outward)
        rare = k > w.n or z[k] < _RARE * z[0]
        if total > 0 and (value < 0 or rare):
            # where noise is rare its ratios are known least: there they follow from the loss
            kept = min(max(_LEAST, 1 + value / total), _MOST)
            for x, s, order, _ in outward:
                x[at + k - s] *= kept ** (1 / order)
    if not all(np.isfinite(x).all() and x.max() < _LARGEST for _, x in rows):
        return None
    price_bits = bits_for(float(prices.sum()), _BITS)
    parts = []
    for part, x in rows:
        low, *held, high = map(_positive, [growth**-part.shift, *x[2 * widest : -widest].tolist(),
                                            growth**part.shift])  # fmt: skip
        price = whole_numbers([part.price], price_bits)[0]
        parts.append(ShiftWindow(part.shift, tuple(held), (high, low), price, part.bound))
    return Tangents(_BITS, tuple(parts), price_bits)


def _positive(value: float) -> int:
    """In units of 2^-80, above 0: logarithms are taken of ratios."""
    return max(1, int(Fraction(value) * (1 << _BITS)))


def _far_ratio(used: Sequence[_Sum], need: float) -> float:
    """The largest X for which ratios X^s far out on one side, and X^-s on the other, leave a place
    as much as it needs."""

    def fails(x: float) -> bool:
        ratios = ((part, y) for part in used for y in (x**part.shift, x**-part.shift))
        return math.fsum(part.gain(y) - part.harm(y) for part, y in ratios) <= need

    most = math.exp(200 / max(part.order * part.shift for part in used))
    return 1 + (reached(fails, 1.0, 2.0, 60, 0.0, most)[0] - 1) * (1 - 1e-9)
