"""The linear programs of noise for pairs of whole numbers, in floats; proofs are elsewhere.

Places that are images of each other under the symmetries of the square share a column. Of the
shifts, too, only one of all images is in the program; few of many matter, and those are added that
a solution breaks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.noise.additive.planar import classes, shape_of
from optmech.noise.additive.planar_law import (
    Place,
    PlanarLoss,
    around,
    orbit,
    radius,
    shifts_within,
    sum_beyond,
    wedge,
)
from optmech.noise.program import Program

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
    def far(self) -> float | None:
        """What probability infinitely far out costs, where that is a constant, and it breaks no
        inequality."""
        loss = self.measure.loss
        return float(loss.end) if self.delta > 0 and loss.is_bounded else None


@dataclass(frozen=True)
class PlanarSolution:
    """z by place and then the shells, the value; of every shift y per class, and its limit."""

    columns: Floats
    value: float
    multipliers: dict[Place, Floats]
    limits: dict[Place, float]
    far: float = 0.0
    """The probability infinitely far out."""


def _arrays(rows: Sequence[tuple[float, ...]]) -> tuple[Any, ...]:
    """One array of every entry of the rows."""
    return tuple(np.array(part) for part in zip(*rows, strict=True))


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
        return _arrays(
            [(*self.column(one), *self.column(k), float(m)) for (one, k), m in found.items()]
        )

    def shells(self) -> tuple[Ints, Floats, Ints, Floats]:
        """Pairs of shells that differ by at most the sensitivity, both ways."""
        w, start = self.window, len(self.places)
        p = w.sensitivity
        found: list[tuple[float, ...]] = []
        for c in range(p):
            for t in range(1, p):
                block, d = divmod(c + t, p)
                factor = w.ratio**block
                found += [(start + c, 1.0, start + d, factor), (start + d, factor, start + c, 1.0)]
        return _arrays(found)

    def weights(self) -> tuple[Floats, Floats]:
        """Probability and expected loss of a unit of every column."""
        w = self.window
        mass, cost = np.zeros(self.count), np.zeros(self.count)
        for i, place in enumerate(self.places):
            mass[i] = len(orbit(place))
            cost[i] = mass[i] * float(w.measure.bounds(place)[0])
        r, p, each = w.ratio, w.sensitivity, around(w.shape)
        for c in range(self.count - len(self.places)):
            i, start = len(self.places) + c, w.n + 1 + c
            a, b, g = map(float, w.measure.beyond(w.shape, start))
            mass[i] = each * sum_beyond((1.0, 0.0, 0.0), start, p, r)
            cost[i] = each * sum_beyond((a, b, g), start, p, r)
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
    scale, power = rows.scales(), math.exp(window.epsilon)
    program = Program(rows.count)

    def compare(first: Ints, a: Floats, second: Ints, b: Floats) -> tuple[Ints, Floats]:
        size = a * scale[first]
        return program.compare(1.0, first, -power * b * scale[second] / size, second), size

    found: dict[Place, tuple[Ints, Floats, Floats]] = {}
    budgets: dict[Place, int] = {}
    for shift in shifts:
        first, a, second, b, counts = rows.pairs(shift)
        index, size = compare(first, a, second, b)
        found[shift] = index, size, counts
        if window.delta > 0:
            budgets[shift] = program.exceed(index, window.delta / size, counts)
    if rows.with_tails and window.sensitivity > 1:
        compare(*rows.shells())
    mass, loss = rows.weights()
    # the size of losses to expect
    unit = max(float(loss @ scale / (mass @ scale)), 1e-9)
    made = program.solved(mass * scale, loss * scale, window.far, unit, limit)
    return PlanarSolution(
        made.x[: rows.count] * scale,
        made.value,
        {s: np.maximum(made.prices[k] / size, 0) / m for s, (k, size, m) in found.items()},
        {s: max(0.0, made.prices[row] / window.delta) for s, row in budgets.items()},
        made.far,
    )


def first_shifts(window: PlanarWindow) -> list[Place]:
    """Shifts on the border of what is allowed, and the shortest."""
    every = shifts_within(window.norm, window.sensitivity)
    if len(every) <= 6:
        return every
    inside = set(every)
    border = [(x, y) for x, y in every if (x + 1, y) not in inside or (x, y + 1) not in inside]
    return sorted({(1, 0), *border})
