"""The linear programs of noise for pairs of whole numbers, in floats; proofs are elsewhere.

Places that are images of each other under the symmetries of the square share a column. Of the
shifts, too, only one of all images is in the program; few of many matter, and those are added that
a solution breaks.
"""

from __future__ import annotations

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
    shell_mean,
    shifts_within,
    wedge,
)
from optmech.noise.program import Compared, Program, Rows, Window

_LEAST_SCALE = 1e-13


@dataclass(frozen=True, kw_only=True)
class PlanarWindow(Window):
    """z of radius up to ``n``, and ``sensitivity`` shells beyond that go on with ``ratio``; or,
    where that is 0, z of radius up to n + sensitivity with no inequality of what lies beyond n:
    a relaxation. ``loss`` is that of the norm that ``measure`` says."""

    measure: PlanarLoss
    norm: str

    @property
    def shape(self) -> str:
        """The norm of the window."""
        return shape_of(self.norm)


def _arrays(rows: Sequence[tuple[float, ...]]) -> tuple[Any, ...]:
    """One array of every entry of the rows."""
    return tuple(np.array(part) for part in zip(*rows, strict=True))


class PlanarRows(Rows[Place]):
    """Columns of places and shells, and pairs of them that shifts compare: a class of places has
    one multiplier."""

    seconds, sides = 300.0, 1
    window: PlanarWindow

    def __init__(self, window: PlanarWindow) -> None:
        w = self.window = window
        # with tails shells stand for all that follow, and rows end before them
        self.shells = range(w.n + 1, w.n + 1 + w.sensitivity * (w.ratio > 0))
        self.core = wedge(w.shape, w.n + w.sensitivity - len(self.shells))
        self.places = len(self.core)
        self.index = {place: i for i, place in enumerate(self.core)}
        self.costs = np.array([float(w.measure.bounds(place)[0]) for place in self.core])
        # about the size of every column: that falls from the nearest place that costs least
        xy = np.array([*self.core, *((m, 0) for m in self.shells)], dtype=float)
        best = xy[: self.places][self.costs == self.costs.min()]
        # of many such places, all that are inside matter little
        x, y = (np.abs(xy[:, None, i] - best[None, :64, i]) for i in (0, 1))
        away = {"l1": x + y, "l2": np.hypot(x, y), "linf": np.maximum(x, y)}[w.norm].min(axis=1)
        self.scales = np.maximum(np.exp(-w.epsilon * away / w.sensitivity), _LEAST_SCALE)

    def column(self, place: Place) -> tuple[int, float]:
        """z of a place is a column times a factor."""
        found = self.index.get(place)
        if found is not None:
            return found, 1.0
        w = self.window
        block, c = divmod(radius(w.shape, *place) - w.n - 1, w.sensitivity)
        return self.places + c, w.ratio**block

    def of(self, shift: Place, inward: bool) -> Compared:
        first, a, second, b, counts = self.pairs(shift)
        a, b, at = a * self.scales[first], b * self.scales[second], np.arange(len(a))
        return Compared(first, a, second, b, counts, at, len(a))

    def more(self, program: Program) -> None:
        if len(self.shells) > 1:
            first, a, second, b = self.between_shells()
            size = self.window.power * b * self.scales[second] / (a * self.scales[first])
            program.compare(1.0, first, -size, second)

    def pairs(self, shift: Place) -> tuple[Ints, Floats, Ints, Floats, Floats]:
        """Columns and factors of k and k + shift, and of how many k: k of radius up to n, and with
        tails also those of which k + shift is."""
        w = self.window
        found: dict[tuple[Place, Place], int] = {}
        for one, other, count in classes(w.shape, w.n, shift):
            found[one, other] = found.get((one, other), 0) + count
            if self.shells and radius(w.shape, *other) > w.n:
                found[other, one] = count
        return _arrays(
            [(*self.column(one), *self.column(k), float(m)) for (one, k), m in found.items()]
        )

    def excess(self, columns: Floats, shift: Place) -> float:
        """By how much a shift breaks ε in all."""
        first, a, second, b, counts = self.pairs(shift)
        found = columns[first] * a - self.window.power * columns[second] * b
        return float(counts @ np.maximum(found, 0))

    def between_shells(self) -> tuple[Ints, Floats, Ints, Floats]:
        """Pairs of shells that differ by at most the sensitivity, both ways."""
        w, start = self.window, self.places
        p = w.sensitivity
        found: list[tuple[float, ...]] = []
        for c in range(p):
            for t in range(1, p):
                block, d = divmod(c + t, p)
                factor = w.ratio**block
                found += [(start + c, 1.0, start + d, factor), (start + d, factor, start + c, 1.0)]
        return _arrays(found)

    def weights(self) -> tuple[Floats, Floats]:
        w = self.window
        r, p, each = w.ratio, w.sensitivity, around(w.shape) / (1 - w.ratio)
        mass = [float(len(orbit(place))) for place in self.core]
        cost = [size * least for size, least in zip(mass, self.costs.tolist(), strict=True)]
        for m in self.shells:
            a, b, g = map(float, w.measure.beyond(w.shape, m))
            mass.append(each * shell_mean((1.0, 0.0, 0.0), m, p, r))
            cost.append(each * shell_mean((a, b, g), m, p, r))
        return np.array(mass), np.array(cost)


def first_shifts(norm: str, sensitivity: int) -> list[Place]:
    """Shifts on the border of what is allowed, and the shortest."""
    every = shifts_within(norm, sensitivity)
    if len(every) <= 6:
        return every
    inside = set(every)
    border = [(x, y) for x, y in every if (x + 1, y) not in inside or (x, y + 1) not in inside]
    return sorted({(1, 0), *border})
