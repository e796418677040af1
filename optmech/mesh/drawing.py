"""Control points drawn by the weights of many points at once, with exact probabilities.

Floats decide where they can: the weights come with a bound on their rounding, and a point closer
than that to an edge, or a number closer than that to a border between two vertices, is decided in
whole numbers (theory: "Reports for tables of points").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.exact.sampler import EachBytes
from optmech.mesh.covering import Corners
from optmech.mesh.elements import indices
from optmech.mesh.mesh import Mesh

_BITS = 53
"""Bits of the first number: floats hold it exactly."""
_ROUNDING = 2.0**-53
_SLACK = 64.0
"""Units of rounding that are charged; 26 are used up."""

Around = Callable[[int], tuple[int, Corners]]


def draw_control_points(mesh: Mesh, points: Floats, source: EachBytes, around: Around) -> Ints:
    """For every point (n, 2) the index of a control point of the mesh, with exactly the
    probabilities that are its weights there: as many corners of the triangle as the mesh has
    degrees are drawn by the barycentric weights, and how often each came up is the control point.

    ``around`` gives the triangle around a point, by the point's index, and the weights of its
    corners in whole numbers; it is asked where floats do not decide, and refuses points outside of
    the region. Negative attempts of the source are used.
    """
    every = np.arange(len(points))
    triangle, weights, error = _enclosed(mesh, points)
    inner = (triangle >= 0) & (weights.min(axis=1) > error)
    first, second = weights[:, 0], weights[:, 0] + weights[:, 1]
    # the number stands for an interval of this width
    near = error + 2.0 ** (1 - _BITS)
    times = np.zeros((len(points), 3), dtype=np.int64)
    for k in range(mesh.degree):
        attempt, step = -1 - k, -mesh.degree
        words = np.frombuffer(source(every, 8, attempt), dtype=">u8").astype(np.uint64)
        numbers = words >> np.uint64(64 - _BITS)
        at = numbers * 2.0**-_BITS
        sure = inner & (np.abs(at - first) > near) & (np.abs(at - second) > near)
        chosen = (at > first).astype(np.int64) + (at > second)
        for n in np.flatnonzero(~sure).tolist():
            triangle[n], whole = around(n)
            further = count(attempt + step, step)
            mine = (source(np.array([n]), 8, again) for again in further)
            chosen[n] = _decided(whole, int(numbers[n]), mine)
        times[every, chosen] += 1
    found = indices(mesh.degree)
    place = np.zeros((mesh.degree + 1, mesh.degree + 1), dtype=np.int64)
    for i, (_, j, k) in enumerate(found):
        place[j, k] = i
    return mesh.control[triangle, place[times[:, 1], times[:, 2]]].astype(np.int64)


def _decided(weights: Corners, number: int, more: Iterator[bytes]) -> int:
    """The part of the unit interval, cut by the weights, that holds a number of which ``number``
    are the first bits: bits are added until only one does."""
    total, bits = sum(weights), _BITS
    while True:
        low, high = number * total, (number + 1) * total
        begin = 0
        for k, weight in enumerate(weights):
            end = begin + (weight << bits)
            if begin <= low and high <= end:
                return k
            begin = end
        number = number << 64 | int.from_bytes(next(more), "big")
        bits += 64


def _enclosed(mesh: Mesh, points: Floats) -> tuple[Ints, Floats, Floats]:
    """A triangle near each point, -1 where none was found, the point's weights there (n, 3), and
    how far these, and sums of two of them, may be from the true ones (n,).

    An area x1·y2 - y1·x2 of rounded differences is off by at most 5 roundings of |x1·y2| + |y1·x2|,
    their sum by 8 of the sum M of these; a quotient of the two within [0, 1], and the sum of two
    such, are then off by less than 26 M / sum + 3 roundings.
    """
    # a longitude that is led around the globe is no exact difference any more
    west, east = mesh.vertices[:, 0].min(), mesh.vertices[:, 0].max()
    straight = (points[:, 0] >= west) & (points[:, 0] <= east)
    triangle = np.where(straight, mesh.locate(points)[0], -1)
    away = mesh.vertices[mesh.triangles[np.maximum(triangle, 0)]] - points[:, None, :]
    ahead, after = away[:, (1, 2, 0)], away[:, (2, 0, 1)]
    one, other = ahead[..., 0] * after[..., 1], ahead[..., 1] * after[..., 0]
    total, size = (one - other).sum(axis=1), (np.abs(one) + np.abs(other)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = (one - other) / total[:, None]
        error = _SLACK * _ROUNDING * (size / total + 1.0)
    # the bound holds where the sum stands out of its own rounding, and nothing underflows
    usable = (error > 0) & (error < 2.0**-10) & (total > 1e-200)
    return np.where(usable, triangle, -1), weights, error
