"""Positions on the globe, evaluated alike on every machine: as vectors, around 180 degrees, and the
nearest of several places.

Sines of libraries differ in their last digit from one to the other. Those here are sums and
products of float64 in one order (docs/packed.md, "On the globe"), so that every reader of a packed
file and ``optmech protect`` find the same place.
"""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, slices
from optmech.base.read_only import ReadOnly, record

FAR = 2.0**100
"""Coordinates beyond this are no position: squares of differences would be no numbers."""
INWARD = 1e-9
"""How far towards its middle a point of a border is led, so that rounding leaves it inside."""
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(7, 0, -1)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(8, 0, -1)]
_RADIAN = math.pi / 180
_PARTS_PER_DEGREE, _MOST_PARTS = 16, 256
_AT_ONCE = 2**20
_TIE = 1e-12


def is_position(points: Floats, globe: bool) -> Bools:
    """Which rows (n, k) are positions: finite, at most 2^100, and of latitudes up to 90 degrees."""
    with np.errstate(invalid="ignore"):
        found = (np.abs(points) <= FAR).all(axis=1)
        return np.asarray(found & (np.abs(points[:, 1]) <= 90) if globe else found)


def sines(degrees: Floats) -> tuple[Floats, Floats]:
    """Sine and cosine of angles in degrees, to two units in the last place; exact at the multiples
    of 90."""
    turned = np.fmod(degrees, 360.0)
    quarter = np.floor(turned / 90 + 0.5)
    y = (turned - 90 * quarter) * _RADIAN
    z = y * y
    p, q = np.full_like(z, _SINE[0]), np.full_like(z, _COSINE[0])
    for c in _SINE[1:]:
        p = p * z + c
    for c in _COSINE[1:]:
        q = q * z + c
    s, c = y + (y * z) * p, 1 + z * q
    which = quarter.astype(np.int64) & 3
    return np.choose(which, [s, c, -s, -c]), np.choose(which, [c, -s, -c, s])


def vectors(lonlat: Floats) -> Floats:
    """Longitudes and latitudes in degrees (..., 2) as unit vectors (..., 3)."""
    (s, c), (up, flat) = sines(lonlat[..., 0]), sines(lonlat[..., 1])
    return np.stack([flat * c, flat * s, up], axis=-1)


def turned(x: Floats, west: float, east: float) -> Floats:
    """Longitudes led around the globe: the first of r, r - 360 and r + 360 that lies between
    ``west`` and ``east``, with r the remainder of x by 360; x itself where none does."""
    with np.errstate(invalid="ignore"):
        # of what is no number nothing remains, and no candidate lies between
        r = np.fmod(x, 360.0)
    out = x
    for candidate in (r + 360, r - 360, r):
        out = np.where((west <= candidate) & (candidate <= east), candidate, out)
    return out


def squares(step: Floats) -> Floats:
    """The squared lengths of differences (..., k), summed from the first on."""
    with np.errstate(over="ignore"):
        out = step[..., 0] * step[..., 0]
        for k in range(1, step.shape[-1]):
            out = out + step[..., k] * step[..., k]
    return out


def nearest(places: Floats, points: Floats) -> tuple[Ints, Floats]:
    """For each of ``points`` (n, k) the index of the nearest of ``places`` (m, k), the first where
    several are, and the squared distance: least as ``squares`` evaluates it."""
    if len(places) * len(points) <= _AT_ONCE:
        apart = squares(points[:, None] - places)
        index = apart.argmin(axis=1)
        return index, np.take_along_axis(apart, index[:, None], 1)[:, 0]
    from scipy.spatial import cKDTree

    tree = cKDTree(places)
    distance, found = tree.query(points, k=2)
    # of places that are too far for squares there is none
    index = np.minimum(found[:, 0], len(places) - 1)
    tied = np.flatnonzero(
        np.isfinite(distance[:, 1]) & (distance[:, 1] <= distance[:, 0] * (1 + _TIE))
    )
    # what the tree cannot tell apart is looked at again
    for row, near in zip(
        tied.tolist(),
        tree.query_ball_point(points[tied], distance[tied, 0] * (1 + _TIE), return_sorted=True),
        strict=True,
    ):
        index[row] = near[int(squares(points[row] - places[near]).argmin())]
    return np.asarray(index, dtype=np.int64), squares(points - places[index])


@record
class Border(ReadOnly):
    """Edges of a region, or segments of roads, straight in their coordinates, in parts; on the
    globe the parts count as the chords between their ends.

    A foot is no further from its position than the nearest point of the border by more than the
    square of a part's |Δλ| + |Δφ|, in radians, over 4 (theory, "Positions outside").
    """

    start: Floats
    end: Floats
    """Ends of the parts in coordinates, (E, 2)."""
    tails: Floats
    along: Floats
    """The parts as vectors: where they begin, and to where they lead; (E, 2), or (E, 3) on the
    globe."""
    globe: bool
    edge: Ints
    part: Ints
    parts: Ints
    """The number of the edge of every part, that of the part on its edge, and how many this has,
    (E,)."""

    @classmethod
    def of(cls, start: Floats, end: Floats, globe: bool) -> Border:
        """The border of edges from ``start`` to ``end``, both (n, 2)."""
        wide = np.abs(end - start).max(axis=1) * (_PARTS_PER_DEGREE if globe else 0)
        counts = np.clip(np.ceil(wide), 1, _MOST_PARTS).astype(np.int64)
        edge = np.repeat(np.arange(len(counts)), counts)
        part = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin, step, count = start[edge], (end - start)[edge], counts[edge]
        first = begin + (part / count)[:, None] * step
        last = np.where(
            (part + 1 == count)[:, None], end[edge], begin + ((part + 1) / count)[:, None] * step
        )
        tails, heads = (vectors(part) if globe else part for part in (first, last))
        return cls(first, last, tails, heads - tails, globe, edge, part, count)

    @classmethod
    def around(cls, west: float, south: float, east: float, north: float) -> Border:
        """The border of a rectangle of degrees, counterclockwise from its south-west corner."""
        ring = np.array([[west, south], [east, south], [east, north], [west, north]])
        return cls.of(ring, np.roll(ring, -1, axis=0), True)

    def feet(self, points: Floats) -> Floats:
        """The points of the border next to ``points`` (n, 2)."""
        which, share = self._next_to(points)
        first = self.start[which]
        return first + share[:, None] * (self.end[which] - first)

    def shares(self, points: Floats) -> tuple[Ints, Floats]:
        """The edges (n,) of these points of the border, and the shares of the way along each."""
        which, share = self._next_to(points)
        return self.edge[which], (self.part[which] + share) / self.parts[which]

    def _next_to(self, points: Floats) -> tuple[Ints, Floats]:
        """The parts next to points, (n,), and the share of the way along each; the first part of
        the least distance counts."""
        which, share = np.empty(len(points), dtype=np.int64), np.empty(len(points))
        for part in slices(len(points), len(self.start), _AT_ONCE):
            which[part], share[part] = self._nearest(points[part])
        return which, share

    def _nearest(self, points: Floats) -> tuple[Ints, Floats]:
        own = vectors(points) if self.globe else points
        axes = range(own.shape[1])
        length = squares(self.along)
        dot = sum((own[:, k, None] - self.tails[:, k]) * self.along[:, k] for k in axes)
        share = np.clip(dot / np.where(length > 0, length, 1.0), 0.0, 1.0)
        steps = (own[:, k, None] - (self.tails[:, k] + share * self.along[:, k]) for k in axes)
        which = np.asarray(sum(step * step for step in steps)).argmin(axis=1)
        return which, np.take_along_axis(share, which[:, None], 1)[:, 0]
