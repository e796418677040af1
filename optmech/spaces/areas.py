"""Euclidean distances from places to areas: their mean over the area, the least and the largest.

The mean is exact for polygons. With r = |x − p| the divergence of r^k (x − p) is (k + 2) r^k, so
that its integral over an area is 1/(k + 2) of that of r^k h along the border, h the distance of p
from the line of each edge; r^k along a line has a primitive in closed form for k = 1 and 2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError

Reduce = Literal["mean", "max", "min"]
_FAR = 1e4
"""Sizes of an area beyond which the distance of its middle is its mean, to a part in 10^8."""


def to_areas(points: Floats, shapes: list[list[Floats]], reduce: Reduce, power: float) -> Floats:
    """Distances, to a ``power`` (1 or 2 for means), from points (n, 2) to shapes, each the inside
    of an odd number of its rings (k, 2) of corners: (n, shapes). Raises ProblemError on shapes
    without area."""
    out = np.empty((len(points), len(shapes)))
    for column, rings in enumerate(shapes):
        if reduce == "mean":
            out[:, column] = _mean(points, rings, power)
        elif reduce == "max":
            corners = np.vstack(rings)
            away = np.hypot(*(points[:, None] - corners).transpose(2, 0, 1))
            out[:, column] = away.max(axis=1) ** power
        else:
            out[:, column] = _least(points, rings) ** power
    return out


def _edges(points: Floats, ring: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of every point (rows) and edge: h, positive to the left of the edge, where the edge begins
    and ends along its own line, and lengths; edges of no length are left out."""
    start, end = ring, np.roll(ring, -1, axis=0)
    length = np.hypot(*(end - start).T)
    start, end, length = (part[length > 0] for part in (start, end, length))
    along = (end - start) / length[:, None]
    away = start[None] - points[:, None]
    first = (away * along).sum(axis=2)
    h = away[..., 0] * along[:, 1] - away[..., 1] * along[:, 0]
    return h, first, first + length, length


def _mean(points: Floats, rings: list[Floats], power: float) -> Floats:
    corners = np.vstack(rings)
    origin, size = corners[0], float(np.hypot(*np.ptp(corners, axis=0)))
    # differences of powers along the border lose their digits far away, where it is the middle
    out: Floats = np.asarray(np.hypot(*(points - origin).T))
    near = out <= _FAR * size
    total, area, moment = np.zeros(int(near.sum())), 0.0, np.zeros(2)
    for k, ring in enumerate(rings):
        # inside of an odd number of others a ring is the border of a hole
        holds = sum(bool(_inside(ring[:1], other)[0]) for i, other in enumerate(rings) if i != k)
        own, middle = _area(ring)
        sign = float(np.sign(own)) * (-1) ** holds
        h, first, last, length = _edges(points[near], ring)
        if power == 2:
            along = h**2 * length + (last**3 - first**3) / 3
        else:
            along = _primitive(last, h) - _primitive(first, h)
        total += sign * (h * along).sum(axis=1) / (power + 2)
        area += sign * own
        moment += sign * (middle + own * (ring[0] - origin))
    if not area > 0:
        raise ProblemError("a cell has no area", where="observables")
    out[near] = np.maximum(total / area, 0.0)
    with np.errstate(over="ignore"):  # what is too large is refused as a loss
        out[~near] = np.hypot(*(points[~near] - origin - moment / area).T) ** power
    return out


def _primitive(t: Floats, h: Floats) -> Floats:
    """Of √(h² + t²) in t."""
    size = np.abs(h)
    safe = np.where(size > 0, size, 1.0)
    bent = np.where(size > 0, h**2 * np.arcsinh(t / safe), 0.0)
    return np.asarray(0.5 * (t * np.hypot(t, h) + bent))


def _least(points: Floats, rings: list[Floats]) -> Floats:
    found = np.full(len(points), np.inf)
    odd = np.zeros(len(points), dtype=bool)
    for ring in rings:
        h, first, last, _ = _edges(points, ring)
        beyond = np.maximum(np.maximum(first, -last), 0.0)
        found = np.minimum(found, np.hypot(h, beyond).min(axis=1, initial=np.inf))
        odd ^= _inside(points, ring)
    return np.where(odd, 0.0, found)


def _inside(points: Floats, ring: Floats) -> np.ndarray:
    """Whether points lie inside of a ring, by the edges that a ray to the right crosses."""
    start, end = ring, np.roll(ring, -1, axis=0)
    x, y = points[:, :1], points[:, 1:]
    crossed = (start[:, 1] > y) != (end[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = start[:, 0] + (y - start[:, 1]) / (end - start)[:, 1] * (end - start)[:, 0]
    return np.asarray((crossed & (x < at)).sum(axis=1) % 2 == 1)


def _area(ring: Floats) -> tuple[float, Floats]:
    """With a sign, and the integral of x and y over it, from the first corner on."""
    corner = ring - ring[0]
    after = np.roll(corner, -1, axis=0)
    across = corner[:, 0] * after[:, 1] - after[:, 0] * corner[:, 1]
    return float(0.5 * across.sum()), (across[:, None] * (corner + after)).sum(axis=0) / 6
