"""The linear programs of noise for pairs of whole numbers, in floats; proofs are elsewhere.

Places that are images of each other under the symmetries of the square share a column. Of the
shifts, too, only one of all images is in the program; few of many matter, and those are added that
a solution breaks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.noise.additive.planar import classes, shape_of
from optmech.noise.additive.planar_law import (
    Place,
    around,
    orbit,
    radius,
    shifts_within,
    wedge,
)
from optmech.noise.additive.planar_loss import PlanarLoss
from optmech.noise.program import FAR, run_program

_LEAST_SCALE = 1e-13


@dataclass(frozen=True)
class PlanarWindow:
    """z of radius up to ``n``, and ``sensitivity`` shells beyond that go on with ``ratio``; or,
    where that is 0, z of radius up to n + sensitivity with no inequality of what lies beyond n:
    a relaxation."""

    measure: PlanarLoss
    epsilon: float
    delta: float
    sensitivity: int
    norm: str
    n: int
    ratio: float

    @property
    def shape(self) -> str:
        """The norm of the window."""
        return shape_of(self.norm)

    @property
    def has_far(self) -> bool:
        """Whether probability infinitely far out costs a constant, and breaks no inequality."""
        return self.delta > 0 and self.measure.loss.is_bounded


@dataclass(frozen=True)
class PlanarSolution:
    """z by place, the shells, the value; of every shift y per class, and its limit."""

    core: dict[Place, float]
    tails: Floats
    value: float
    multipliers: dict[Place, Floats]
    limits: dict[Place, float]
    far: float = 0.0
    """The probability infinitely far out."""

    @property
    def columns(self) -> Floats:
        """z by place, then the shells."""
        return np.append(np.array(list(self.core.values())), self.tails)


class PlanarRows:
    """Columns of places and shells, and pairs of them that shifts compare."""

    def __init__(self, window: PlanarWindow) -> None:
        w = self.window = window
        self.with_tails = w.ratio > 0
        reach = w.n if self.with_tails else w.n + w.sensitivity
        self.places = wedge(w.shape, reach)
        self.index = {place: i for i, place in enumerate(self.places)}
        self.count = len(self.places) + (w.sensitivity if self.with_tails else 0)

    def column(self, place: Place) -> tuple[int, float]:
        """z of a place is a column times a factor."""
        found = self.index.get(place)
        if found is not None:
            return found, 1.0
        w = self.window
        block, c = divmod(radius(w.shape, *place) - w.n - 1, w.sensitivity)
        return len(self.places) + c, w.ratio**block

    def pairs(self, shift: Place) -> tuple[Ints, Floats, Ints, Floats, Floats]:
        """Columns and factors of k and k + shift, and of how many k: k of radius up to n, and with
        tails also those of which k + shift is."""
        w = self.window
        found: dict[tuple[Place, Place], int] = {}
        for one, other, count in classes(w.shape, w.n, shift):
            found[one, other] = found.get((one, other), 0) + count
            if self.with_tails and radius(w.shape, *other) > w.n:
                found[other, one] = count
        first = [self.column(one) for one, _ in found]
        second = [self.column(other) for _, other in found]
        return (
            np.array([c for c, _ in first]), np.array([f for _, f in first]),
            np.array([c for c, _ in second]), np.array([f for _, f in second]),
            np.array(list(found.values()), dtype=np.float64),
        )  # fmt: skip

    def shells(self) -> tuple[Ints, Floats, Ints, Floats]:
        """Pairs of shells that differ by at most the sensitivity, both ways."""
        w, start = self.window, len(self.places)
        p = w.sensitivity
        one, other, a, b = [], [], [], []
        for c in range(p):
            for t in range(1, p):
                block, d = divmod(c + t, p)
                factor = w.ratio**block
                one += [start + c, start + d]
                other += [start + d, start + c]
                a += [1.0, factor]
                b += [factor, 1.0]
        return np.array(one, int), np.array(a), np.array(other, int), np.array(b)

    def weights(self) -> tuple[Floats, Floats]:
        """Probability and expected loss of a unit of every column."""
        w = self.window
        mass, cost = np.zeros(self.count), np.zeros(self.count)
        for i, place in enumerate(self.places):
            mass[i] = len(orbit(place))
            cost[i] = mass[i] * float(w.measure.bounds(place)[0])
        r, p = w.ratio, w.sensitivity
        for c in range(self.count - len(self.places)):
            i, start = len(self.places) + c, w.n + 1 + c
            a, b, g = map(float, w.measure.beyond(w.shape, start))
            sums = (1 / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3,
                    r * (1 + 4 * r + r * r) / (1 - r) ** 4)  # fmt: skip
            each = around(w.shape)
            mass[i] = each * (start * sums[0] + p * sums[1])
            powers = (a * start, a + b * start, b + g * start, g)
            cost[i] = each * sum(v * p**d * s for d, (v, s) in enumerate(zip(powers, sums)))  # noqa: B905
        return mass, cost

    def scales(self) -> Floats:
        """About the size of every column: that falls from the nearest place that costs least."""
        w = self.window
        radii = range(w.n + 1, w.n + 1 + self.count - len(self.places))
        xy = np.array([*self.places, *((m, 0) for m in radii)], dtype=float)
        costs = np.array([w.measure.bounds(place)[0] for place in self.places], dtype=float)
        best = xy[: len(costs)][costs == costs.min()]
        # of many such places, all that are inside matter little
        x, y = (np.abs(xy[:, None, i] - best[None, :64, i]) for i in (0, 1))
        away = {"l1": x + y, "l2": np.hypot(x, y), "linf": np.maximum(x, y)}[w.norm].min(axis=1)
        return np.asarray(np.maximum(np.exp(-w.epsilon * away / w.sensitivity), _LEAST_SCALE))


def solve_planar(window: PlanarWindow, shifts: Sequence[Place], limit: float) -> PlanarSolution:
    """The best noise of the window against some shifts; raises SolverError where there is none."""
    rows = PlanarRows(window)
    scale = rows.scales()
    power = math.exp(window.epsilon)
    entries: list[tuple[Floats, Ints, Ints]] = []
    uppers: list[Floats] = []
    spans: dict[Place, tuple[int, int, Floats, Floats]] = {}
    budgets: dict[Place, int] = {}
    start, columns = 0, rows.count
    for shift in shifts:
        first, a, second, b, counts = rows.pairs(shift)
        size = a * scale[first]
        index = start + np.arange(len(first))
        # entries of one row and column are added up
        entries.append((np.ones(len(first)), index, first))
        entries.append((-power * b * scale[second] / size, index, second))
        uppers.append(np.zeros(len(first)))
        spans[shift] = start, start + len(first), size, counts
        start += len(first)
        if window.delta > 0:
            share = window.delta / size
            new = columns + np.arange(len(first))
            entries.append((-share, index, new))
            entries.append((counts, np.full(len(first), start), new))
            uppers.append(np.ones(1))
            budgets[shift] = start
            columns, start = columns + len(first), start + 1
    if rows.with_tails and window.sensitivity > 1:
        first, a, second, b = rows.shells()
        size = a * scale[first]
        index = start + np.arange(len(first))
        entries.append((np.ones(len(first)), index, first))
        entries.append((-power * b * scale[second] / size, index, second))
        uppers.append(np.zeros(len(first)))
        start += len(first)
    mass, loss = rows.weights()
    heavy, unit = np.arange(rows.count), _typical(window, rows, loss, mass)
    cost = np.zeros(columns)
    cost[: rows.count] = loss * scale
    weight = mass * scale
    if window.has_far:
        heavy, weight = np.append(heavy, columns), np.append(weight, 1.0)
        cost = np.append(cost, float(window.measure.loss.values[-1]) * (1 + FAR))
    entries.append((weight, np.full(len(weight), start), heavy))
    values, at, across = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = sp.csr_array(
        sp.coo_array((values, (at, across)), shape=(start + 1, len(cost))).tocsr()
    )
    upper = np.concatenate([*uppers, np.ones(1)])
    lower = np.full(start + 1, -np.inf)
    lower[-1] = 1.0
    x, duals = run_program(cost / unit, matrix, lower, upper, limit)
    z = x[: rows.count] * scale
    multipliers, limits = {}, {}
    for shift, (begin, end, size, counts) in spans.items():
        prices = np.maximum(-duals[begin:end] * unit / size, 0)
        multipliers[shift] = prices / counts
        if window.delta > 0:
            limits[shift] = max(0.0, -duals[budgets[shift]] * unit / window.delta)
    core = dict(zip(rows.places, z[: len(rows.places)].tolist(), strict=True))
    far = float(x[-1]) if window.has_far else 0.0
    return PlanarSolution(
        core, z[len(rows.places) :], float(cost @ x), multipliers, limits, far
    )  # fmt: skip


def _typical(window: PlanarWindow, rows: PlanarRows, cost: Floats, mass: Floats) -> float:
    """The size of losses to expect."""
    weights = rows.scales()
    return max(float(cost @ weights / (mass @ weights)), 1e-9)


def first_shifts(window: PlanarWindow) -> list[Place]:
    """Shifts on the border of what is allowed, and the shortest."""
    every = shifts_within(window.norm, window.sensitivity)
    if len(every) <= 6:
        return every
    inside = set(every)
    border = [(x, y) for x, y in every if (x + 1, y) not in inside or (x, y + 1) not in inside]
    return sorted({(1, 0), *border})
