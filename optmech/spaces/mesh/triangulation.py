"""Vertices and triangles of meshes: arguments, rectangles, regions around points, refinement; and
the triangle that holds a point, with the point's barycentric weights there.

Triangulations are Delaunay's, by Qhull (scipy.spatial); whether they tile a convex region is
decided elsewhere. Vertices around points lie on a lattice of short binary fractions, so that every
border of slope 0, ±1 or inf is straight exactly, and so are the halves of its edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Bools, Floats, Ints, ends_of, finite_array, normalised_rows
from optmech.errors import ProblemError, described
from optmech.exact.number import Number, float_of, parse_signed
from optmech.spaces.domain import EARTH_RADIUS_KM, Coordinates
from optmech.spaces.domain_arguments import Box, require_lonlat
from optmech.spaces.mesh.covering import Corners, Place, doubled_area


def scale_of(points: Floats, coordinates: Coordinates) -> Floats:
    """What a unit of each coordinate is, about: 1, or kilometres per degree of longitude and
    latitude."""
    if coordinates == "plane":
        return np.ones(2)
    middle = (points[:, 1].min() + points[:, 1].max()) / 2
    return float(np.radians(EARTH_RADIUS_KM)) * np.array([float(np.cos(np.radians(middle))), 1.0])


def widths_of(width: Number, box: Floats, coordinates: Coordinates) -> Floats:
    """The width of a mesh in units of the coordinates, each way."""
    step = float_of(width, "width", positive=True)
    if coordinates == "lonlat":
        require_lonlat(box)
    return step / scale_of(box, coordinates)


def corners_of(value: ArrayLike, count: int) -> Ints:
    """Triangles as indices of ``count`` vertices, (T, 3)."""
    rows = finite_array(value, where="triangles", ndim=2)
    if rows.shape[1] != 3 or not len(rows):
        raise ProblemError(f"shape {rows.shape} is not (T, 3)", where="triangles")
    wrong = np.flatnonzero(((rows != np.floor(rows)) | (rows < 0) | (rows >= count)).any(axis=1))
    if len(wrong):
        raise ProblemError(
            f"{rows[wrong[0]].tolist()} are not three of the {count} vertices",
            where=f"triangles[{wrong[0]}]",
            remedy=f"Give indices from 0 to {count - 1}",
        )
    return rows.astype(np.int64)


def both_rational(point: Sequence[float | Fraction]) -> tuple[Fraction, Fraction]:
    """The two coordinates of a point, exactly."""
    try:
        x, y = point
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{described(point)} is no point", where="point", remedy="Give two coordinates"
        ) from error
    return rational(x), rational(y)


def rational(value: float | Fraction) -> Fraction:
    """A coordinate, exactly."""
    found = parse_signed(value, where="point")
    if found.log_of is not None:
        raise ProblemError("is no fraction", where="point", remedy="Give a number or a fraction")
    return found.factor


MOST = 1_000_000
"""Vertices."""
_SHORT = 12
"""Bits of a lattice's width: its multiples, and their halves, are floats exactly."""


def rectangle(bounds: Box, steps: tuple[int, int]) -> tuple[Floats, Ints]:
    """The vertices of ``steps`` equal cells each way, row by row from below; and triangles: every
    cell cut along a diagonal, neighbours along others."""
    x, y = (
        low + (high - low) * (np.arange(count + 1) / count)
        for low, high, count in zip(bounds[:2], bounds[2:], steps, strict=True)
    )
    x[-1], y[-1] = bounds[2:]
    vertices = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
    j, i = (part.ravel() for part in np.mgrid[0 : steps[1], 0 : steps[0]])
    a = j * (steps[0] + 1) + i
    b, c, d = a + 1, a + steps[0] + 1, a + steps[0] + 2
    even = ((i + j) % 2 == 0)[:, None]
    first = np.where(even, np.column_stack([a, b, c]), np.column_stack([a, b, d]))
    second = np.where(even, np.column_stack([d, c, b]), np.column_stack([a, d, c]))
    return vertices, np.vstack([first, second])


def lattice_around(points: Floats, width: Floats) -> Floats:
    """Lattice points whose convex hull, of up to eight sides, holds the points.

    ``width`` is the spacing each way, made shorter by less than a thousandth.
    """
    mantissa, exponent = np.frexp(width)
    step = np.ldexp(np.floor(np.ldexp(mantissa, _SHORT)), exponent - _SHORT)
    scaled = points / step
    low, high = np.floor(scaled.min(axis=0)), np.ceil(scaled.max(axis=0))
    # a region with an inside, also around one point or a line of them
    high = np.maximum(high, low + 1)
    refuse_more(float(np.prod(high - low + 1)))
    if np.abs(np.concatenate([low, high])).max() > 2**30:
        raise ProblemError(
            "is too small for coordinates of this size",
            where="width",
            remedy="Give a larger width, or coordinates from a nearer origin",
        )
    i, j = (
        part.ravel() for part in np.mgrid[low[0] : high[0] + 1, low[1] : high[1] + 1].astype(float)
    )
    total, difference = scaled.sum(axis=1), scaled[:, 0] - scaled[:, 1]
    kept = np.ones(len(i), dtype=bool)
    for mine, theirs in ((i + j, total), (i - j, difference)):
        # one more, so that a corner between two slanted sides is cut off outside of the points
        kept &= (mine >= math.floor(theirs.min()) - 1) & (mine <= math.ceil(theirs.max()) + 1)
    return np.asarray(np.column_stack([i[kept], j[kept]]) * step)


def delaunay(vertices: Floats, scale: Floats) -> Ints:
    """Delaunay's triangles of vertices with their coordinates times ``scale`` (2,)."""
    from scipy.spatial import Delaunay, QhullError

    try:
        found = np.asarray(Delaunay((vertices - vertices.mean(axis=0)) * scale).simplices)
    except (QhullError, ValueError) as error:
        raise ProblemError(
            "the vertices cannot be triangulated",
            where="mesh",
            remedy="Give at least three that are not on one line",
        ) from error
    return found.astype(np.int64)


def halves(vertices: Floats, triangles: Ints, marked: Bools, scale: Floats) -> Floats:
    """The middles of the longest edges of the marked triangles, those that floats express.

    Elsewhere, at a slanted border whose middle is no float, they are left out.
    """
    ends = np.stack([triangles[marked][:, (1, 2, 0)], triangles[marked][:, (2, 0, 1)]], axis=2)
    lengths = np.linalg.norm((vertices[ends[..., 0]] - vertices[ends[..., 1]]) * scale, axis=2)
    longest = lengths.argmax(axis=1)
    edges = np.unique(np.sort(ends[np.arange(len(ends)), longest], axis=1), axis=0)
    one, other = vertices[edges[:, 0]], vertices[edges[:, 1]]
    middle = (one + other) / 2
    # differences of neighbouring floats are exact within a factor of two only: compare both ways
    straight = ((middle - one == other - middle) & (one + (other - one) / 2 == middle)).all(axis=1)
    return np.asarray(middle[straight])


def largest(values: Floats, share: float, most: int | None) -> Bools:
    """The largest of ``values`` (T,) >= 0, as many as hold a ``share`` of their sum, ``most`` at
    most and none that are 0."""
    order = np.argsort(-values, kind="stable")
    running = np.cumsum(values[order])
    enough = int(np.searchsorted(running, share * running[-1])) + 1
    marked = np.zeros(len(values), dtype=bool)
    marked[order[: enough if most is None else min(enough, max(most, 1))]] = True
    return marked & (values > 0)


def refuse_more(count: float) -> None:
    """Refuse meshes that nobody can use."""
    if count > MOST:
        raise ProblemError(
            f"{count:,.0f} vertices; at most {MOST:,} are possible",
            where="mesh",
            remedy="Use a larger width",
        )


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
        self._ends = ends_of(vertices)
        self._tree = cKDTree(vertices * scale)
        self.beside = _neighbours(triangles)
        # some triangle at every vertex
        self._incident = np.zeros(len(vertices), dtype=np.int64)
        self._incident[triangles.ravel()] = np.repeat(np.arange(len(triangles)), 3)

    def floats(self, points: Floats) -> tuple[Ints, Floats]:
        """For points (k, 2) the triangle of each, -1 outside and for points that are not finite,
        and its weights (k, 3), which are >= 0 and sum to one up to rounding."""
        corners, beside = self._corners, self.beside
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
        weights[inside] = normalised_rows(weights[inside])
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
        scale = math.lcm(*((value * unit).denominator for value in point))
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
            t = int(self.beside[t][own.index(min(own))])
        for t in range(len(triangles)):
            if min(own := weights(t)) >= 0:
                return t, own
        return None

    def _nearest(self, places: Floats) -> Any:
        """A vertex near each of ``places`` (..., 2), or near where its box is nearest to it."""
        inside = np.clip(places, *self._ends)
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
