"""The triangle that holds a point, and the point's barycentric weights there."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints, normalised_rows
from optmech.spaces.mesh.covering import Corners, Place, doubled_area

_EDGE = 1e-12
"""A point is taken to lie in a triangle whose weights fall below zero by no more than this."""
_STEPS = 1000
"""Of a walk before all triangles are tried: meshes that are not Delaunay may lead in circles."""


class Locator:
    """Where points are among the triangles (T, 3) of vertices (V, 2), whose coordinates times
    ``scale`` (2,) are compared when a near one is looked for."""

    def __init__(self, vertices: Floats, triangles: Ints, scale: Floats) -> None:
        from scipy.spatial import cKDTree

        self._corners, self._scale = vertices[triangles], scale
        self._low, self._high = vertices.min(axis=0), vertices.max(axis=0)
        self._tree = cKDTree(vertices * scale)
        self._beside = _neighbours(triangles)
        # some triangle at every vertex
        self._incident = np.zeros(len(vertices), dtype=np.int64)
        self._incident[triangles.ravel()] = np.repeat(np.arange(len(triangles)), 3)

    def floats(self, points: Floats) -> tuple[Ints, Floats]:
        """For points (k, 2) the triangle of each, -1 outside and for points that are not finite,
        and its weights (k, 3), which are >= 0 and sum to one up to rounding."""
        corners, beside = self._corners, self._beside
        at, weights = np.zeros(len(points), dtype=np.int64), np.zeros((len(points), 3))
        active = np.flatnonzero(np.isfinite(points).all(axis=1))
        at[active] = self._incident[self._nearest(points[active])]
        found = np.full(len(points), -1, dtype=np.int64)
        for _ in range(_STEPS):
            if not len(active):
                break
            own = _weights(points[active], corners[at[active]])
            worst = own.argmin(axis=1)
            rows = np.arange(len(active))
            done = own[rows, worst] >= -_EDGE
            found[active[done]], weights[active[done]] = at[active[done]], own[done]
            after = beside[at[active], worst]
            # at the border another edge may lead on, around a corner of the region
            others = np.where(own < -_EDGE, beside[at[active]], -1)
            after = np.where(after >= 0, after, others.max(axis=1))
            going = ~done & (after >= 0)
            at[active[going]] = after[going]
            active = active[going]
        for k in active.tolist():
            own = _weights(points[[k]], corners)
            best = int(own.min(axis=1).argmax())
            if own[best].min() >= -_EDGE:
                found[k], weights[k] = best, own[best]
        weights = np.maximum(weights, 0.0)
        inside = found >= 0
        weights[inside] /= weights[inside].sum(axis=1, keepdims=True)
        return found, weights

    def exactly(
        self,
        point: tuple[Fraction, Fraction],
        places: Sequence[Place],
        exponent: int,
        triangles: Sequence[Corners],
    ) -> tuple[int, tuple[int, int, int]] | None:
        """A triangle with the point, and its weights in whole numbers >= 0 over their sum; None
        outside. ``places`` are the vertices in whole numbers over 2^exponent."""
        unit = 1 << exponent
        scale = lcm(*((value * unit).denominator for value in point))
        x, y = (int(value * unit * scale) for value in point)

        def weights(t: int) -> tuple[int, int, int]:
            a, b, c = ((u * scale, v * scale) for u, v in (places[k] for k in triangles[t]))
            p = x, y
            return doubled_area(p, b, c), doubled_area(p, c, a), doubled_area(p, a, b)

        seen: set[int] = set()
        t = int(self._incident[self._nearest(np.array(list(map(float, point))))])
        while t >= 0 and t not in seen:
            seen.add(t)
            own = weights(t)
            if min(own) >= 0:
                return t, own
            t = int(self._beside[t][own.index(min(own))])
        for t in range(len(triangles)):
            if min(own := weights(t)) >= 0:
                return t, own
        return None

    def _nearest(self, places: Floats) -> Any:
        """A vertex near each of ``places`` (..., 2), or near where its box is nearest to it."""
        inside = np.clip(places, self._low, self._high)
        return self._tree.query(inside * self._scale)[1]


def _neighbours(triangles: Ints) -> Ints:
    """The triangle across the edge opposite every corner, -1 at the border; shape (T, 3)."""
    tails, heads = triangles[:, (1, 2, 0)], triangles[:, (2, 0, 1)]
    size = int(triangles.max()) + 1
    mine, theirs = (tails * size + heads).ravel(), (heads * size + tails).ravel()
    order = np.argsort(mine)
    found = np.minimum(np.searchsorted(mine, theirs, sorter=order), len(mine) - 1)
    edge = order[found]
    return np.where(mine[edge] == theirs, edge // 3, -1).reshape(triangles.shape)


def _weights(points: Floats, corners: Floats) -> Floats:
    """Signed areas opposite every corner over their sum, for points (k, 2) and (k, 3, 2)."""
    one, other = area_products(points, corners)
    return normalised_rows(one - other)


def area_products(points: Floats, corners: Floats) -> tuple[Floats, Floats]:
    """x1·y2 and y1·x2 of the two corners (x1, y1) and (x2, y2) other than each, seen from a point:
    their difference is twice the signed area opposite it; for points (k, 2) and (k, 3, 2)."""
    away = corners - points[:, None, :]
    ahead, after = away[:, (1, 2, 0)], away[:, (2, 0, 1)]
    return ahead[..., 0] * after[..., 1], ahead[..., 1] * after[..., 0]
