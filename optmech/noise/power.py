"""The best noise under bounds on its Rényi divergences, in floats; proofs are elsewhere.

The sums R_s(z) = Σ_i z(i)^α z(i + s)^{1-α} are convex and of degree one. In steps relative to z
the second derivative of R_s is that of α(α - 1) Σ f_i (du_i - du_{i+s})² / 2, so that Newton's
method on a barrier for R_s <= T solves sparse systems, and places of 1e-30 are as good as others.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from optmech.base.arrays import Floats, Ints
from optmech.errors import SolverError
from optmech.noise.additive.loss import NoiseLoss

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
    ``sensitivity``; R_s <= ``limit`` = e^{(α - 1)ε} for all shifts up to it, to a relative gap."""

    loss: NoiseLoss
    order: float
    limit: float
    sensitivity: int
    n: int
    ratio: float
    gap: float

    def aiming(self, gap: float) -> PowerWindow:
        """The same to another gap."""
        return replace(self, gap=gap)


@dataclass(frozen=True)
class PowerSolution:
    """z(0), …, z(n), and the prices λ_s of all shifts 1, 2, …"""

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
        parts = [self._pairs(s) for s in range(1, w.sensitivity + 1)]
        self.first = np.concatenate([part[0] for part in parts])
        self.second = np.concatenate([part[1] for part in parts])
        self.weight = np.concatenate([part[2] for part in parts])
        self.shift = np.repeat(np.arange(w.sensitivity), [len(part[0]) for part in parts])

    def _pairs(self, s: int) -> tuple[Ints, Ints, Floats]:
        """Columns of z(i) and z(i + s), and the weight of the term: of the window, and of a period
        beyond it to either side, with all that follow."""
        w, p = self.window, self.window.sensitivity
        inner = np.arange(-w.n - s, w.n + 1)
        right, left = np.arange(w.n + 1, w.n + p + 1), np.arange(-w.n - s - p, -w.n - s)
        i = np.concatenate([inner, right, left])
        sums = np.concatenate([np.ones(len(inner)), np.full(2 * p, 1 / (1 - w.ratio))])
        (first, a), (second, b) = self._columns(np.abs(i)), self._columns(np.abs(i + s))
        powers = w.order * a + (1 - w.order) * b
        return first, second, sums * w.ratio**powers

    def _columns(self, k: Ints) -> tuple[Ints, Ints]:
        """z(k) is a column times a power of the ratio."""
        w = self.window
        beyond = np.maximum(k - w.n, 0)
        periods = -(-beyond // w.sensitivity)
        return k - periods * w.sensitivity, periods

    def terms(self, z: Floats) -> Floats:
        """All terms of all sums."""
        first = z[self.first]
        with np.errstate(over="ignore"):
            power = (first / z[self.second]) ** (self.window.order - 1)
            return np.asarray(self.weight * first * power)

    def sums(self, terms: Floats) -> Floats:
        """R_1, …, R_Δ."""
        return np.bincount(self.shift, terms, self.window.sensitivity).astype(np.float64)

    def start(self) -> Floats:
        """Gaussian noise wide enough, in which the tail's ratio is kept."""
        w = self.window
        rate = math.log(w.limit) / (w.order - 1)
        variance = 1.1 * w.order * w.sensitivity**2 / (2 * rate)
        k = np.arange(w.n + 1.0)
        for _ in range(_WIDER):
            slope = np.minimum(k / variance, -math.log(w.ratio) / w.sensitivity)
            z = np.exp(-np.append(0.0, np.cumsum((slope[1:] + slope[:-1]) / 2)))
            z /= float(self.mass @ z)
            if (self.sums(self.terms(z)) < w.limit * (1 - 1e-9)).all():
                return np.asarray(z)
            variance *= 1.3
        raise SolverError("no noise to start from was found", where="noise")

    def solved(self) -> PowerSolution:
        """Along the barrier until the gap is small enough."""
        z, w = self.start(), self.window
        rate = w.sensitivity / float(self.cost @ z)
        for _ in range(_STAGES):
            try:
                z = self._centred(z, rate, _ROUGH)
            except SolverError:
                # equations that are singular in floats: what was centred before stands
                rate /= _FASTER
                break
            if w.sensitivity / rate < w.gap * float(self.cost @ z):
                break
            rate *= _FASTER
        with suppress(SolverError):
            z = self._centred(z, rate, _FINE)
        return PowerSolution(z, 1 / (rate * (w.limit - self.sums(self.terms(z)))))

    def _value(self, z: Floats, rate: float) -> float:
        room = self.window.limit - self.sums(self.terms(z))
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
        order, count, size = self.window.order, self.window.sensitivity, self.size
        terms = self.terms(z)
        room = self.window.limit - self.sums(terms)
        weight = z * self.mass
        slopes = np.zeros((count, size))
        np.add.at(slopes, (self.shift, self.first), order * terms)
        np.add.at(slopes, (self.shift, self.second), (1 - order) * terms)
        gradient = rate * self.cost * z + (slopes / room[:, None]).sum(axis=0)
        scale = 1 / np.sqrt(weight)
        bend = order * (order - 1) * terms / room[self.shift]
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
