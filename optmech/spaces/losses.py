"""Losses c(s, o) beyond plain distances: to sets of elements, and with a suppression symbol.

A loss is used like a distance: called with secrets and observables it returns the S x O matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import own_labels
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of
from optmech.exact.number import float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import (
    Distance,
    DistanceLike,
    as_distance,
    distance_name,
    evaluate,
    matrix,
    refuse_negative,
)
from optmech.spaces.domain import Domain
from optmech.spaces.layout import layout
from optmech.spaces.observables import Subsets, Suppressible

__all__ = ["over_cells", "over_members", "powered", "with_suppression"]
__dir__ = __all__.copy


Reduce = Literal["mean", "max", "min"]
_FAR = 1e4
"""Sizes of an area beyond which the distance of its middle is its mean, to a part in 10^8."""


@dataclass(frozen=True)
class _Reduced:
    distance: Distance
    reduce: Reduce

    def __post_init__(self) -> None:
        one_of(self.reduce, ("mean", "max", "min"), "loss.reduce")


@dataclass(frozen=True)
class _OverMembers(_Reduced):
    def __call__(self, a: Domain, b: Domain) -> Floats:
        if not isinstance(b, Subsets):
            raise ProblemError(
                "needs observables that are subsets",
                where="loss",
                remedy="Make them with observables.coarser or observables.subsets",
            )
        base = self.distance(a, b.base)
        groups = (base[:, list(group)] for group in b.members)
        return np.column_stack([getattr(values, self.reduce)(axis=1) for values in groups])


@dataclass(frozen=True)
class _OverCells(_Reduced):
    def __call__(self, a: Domain, b: Domain) -> Floats:
        drawn = layout(b)
        if drawn is None or not drawn.exact:
            raise ProblemError(
                "needs observables that are cells",
                where="loss",
                remedy="Use a Grid, regions, or a domain with outlines",
            )
        given = self.distance
        base, power = (
            (given.distance, given.exponent) if isinstance(given, _Powered) else (given, 1)
        )
        name = distance_name(base)
        if name == "haversine" and a.coordinates == "lonlat" and drawn.degrees is not None:
            points = drawn.from_degrees(a.require_points("measure distances to cells"))
        elif name == "euclidean":
            base(a, b)  # refuses what has no distance
            points = a.require_points("measure distances to cells")
        else:
            raise ProblemError(
                f"distances to cells are not known for {name!r} here",
                where="loss.distance",
                remedy='Use "euclidean", or "haversine" from longitudes and latitudes',
            )
        if self.reduce == "mean" and power not in (1, 2):
            raise ProblemError(
                f"the mean over a cell of a distance to the power {power:g} is not known",
                where="loss.power",
                remedy="Use the power 1 or 2, or the least or the largest distance",
            )
        measure = {"mean": _mean, "max": _most, "min": _least}[self.reduce]
        return np.column_stack([measure(points, rings, power) for rings in drawn.shapes])


@record
class _WithSuppression(SameFields, ReadOnly):
    loss: Distance
    cost: Floats

    def __call__(self, a: Domain, b: Domain) -> Floats:
        if not isinstance(b, Suppressible):
            raise ProblemError(
                "needs observables with a suppression symbol",
                where="loss",
                remedy="Make them with observables.suppressible",
            )
        if self.cost.ndim == 1 and self.cost.shape != (len(a),):
            raise ProblemError(
                f"{self.cost.size} suppression costs for {len(a)} secrets", where="loss"
            )
        return np.column_stack([self.loss(a, b.inner), np.broadcast_to(self.cost, (len(a),))])


@dataclass(frozen=True)
class _Powered:
    distance: Distance
    exponent: float

    @property
    def name(self) -> str:
        power = np.format_float_positional(self.exponent, trim="-")
        return f"{distance_name(self.distance)}^{power}"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        return self.distance(a, b) ** self.exponent


def powered(distance: DistanceLike, exponent: float) -> Distance:
    """d(s, o) to a positive power: 2 gives the squared error.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> print(om.losses.powered(om.distances.euclidean(), 2)(line, line))
    [[0. 1. 4.]
     [1. 0. 1.]
     [4. 1. 0.]]
    """
    return _Powered(as_distance(distance), float_of(exponent, "loss.power", positive=True))


@checked_arguments
def over_members(distance: DistanceLike, reduce: Reduce = "mean") -> Distance:
    """Mean, largest or smallest distance from the secret to the members of the observable.

    Examples
    --------
    >>> line = om.Grid(1, 4)
    >>> halves = om.observables.coarser(line, 1, 2)
    >>> print(om.losses.over_members(om.distances.euclidean())(line, halves))
    [[0.5 2.5]
     [0.5 1.5]
     [1.5 0.5]
     [2.5 0.5]]
    """
    return _OverMembers(as_distance(distance), reduce)


@checked_arguments
def over_cells(distance: DistanceLike, reduce: Reduce = "mean") -> Distance:
    """Mean, largest or smallest distance from the secret to the points of an observable that is a
    cell: of a ``Grid``, of regions, or of a domain with outlines.

    Parameters
    ----------
    distance:
        Euclidean, or haversine from places in degrees to zones in degrees or the cells of a grid
        over bounds, which are then measured on the map that they are drawn on (within about 1 %
        over 100 km); or ``powered`` of these, by 2 for means.
    reduce:
        The mean is that over the area, in closed form.

    Raises ProblemError, here or when it is called, on other distances and observables.

    Examples
    --------
    >>> cells = om.Grid(1, 2, unit="km")
    >>> mean = om.losses.over_cells(om.distances.euclidean())
    >>> print(mean(cells, cells).round(4))  # from the centre of a square: (√2 + ln(1 + √2)) / 6
    [[0.3826 1.0434]
     [1.0434 0.3826]]
    """
    return _OverCells(as_distance(distance), reduce)


def with_suppression(loss: DistanceLike, cost: ArrayLike) -> Distance:
    """``loss`` on the ordinary observables and ``cost`` (a number or one per secret) on the
    suppression symbol.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> observables = om.observables.suppressible(line)
    >>> loss = om.losses.with_suppression(om.distances.euclidean(), cost=0.5)
    >>> print(loss(line, observables))
    [[0.  1.  0.5]
     [1.  0.  0.5]]
    """
    array = finite_array(cost, where="loss.suppression")
    if array.ndim > 1 or (array < 0).any():
        raise ProblemError(
            "the cost of suppression must be a number >= 0, or one per secret",
            where="loss.suppression",
        )
    return _WithSuppression(as_distance(loss, where="loss"), array)


def as_loss(value: DistanceLike, where: str) -> Distance | Floats:
    """A distance as it is, a table with labels as one that is read by them, anything else as a
    finite two-dimensional array."""
    if callable(value) or isinstance(value, str):
        return as_distance(value, where=where)
    if own_labels(value) is not None:
        return matrix(value)
    return finite_array(value, where=where, ndim=2)


def loss_matrix(loss: object, secrets: Domain, observables: Domain) -> Floats:
    """The S x O matrix of a loss given as a distance or an array, checked."""
    if callable(loss):
        return evaluate(loss, secrets, observables, where="loss")
    values = np.asarray(loss, dtype=np.float64)
    shape = (len(secrets), len(observables))
    if values.shape != shape:
        raise ProblemError(
            f"shape {values.shape} does not fit {shape[0]} secrets x {shape[1]} observables",
            where="loss",
            remedy=f"Give an array of shape {shape}",
        )
    remedy = "Losses must be >= 0; loss - loss.min() has the same best mechanism"
    refuse_negative(values, "loss", "loss", remedy)
    return values


def _most(points: Floats, rings: list[Floats], power: float) -> Floats:
    away = points[:, None] - np.vstack(rings)
    return np.asarray(np.hypot(away[..., 0], away[..., 1]).max(axis=1) ** power)


def _edges(points: Floats, ring: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """For every point (rows) and edge: h, positive to the left of the edge, where the edge begins
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
    """The mean of r^power over the area, exact for polygons: with r = |x − p| the divergence of
    r^k (x − p) is (k + 2) r^k, so that its integral over an area is 1/(k + 2) of that of r^k h
    along the border, h the distance of p from the line of each edge; r^k along a line has a
    primitive in closed form for k = 1 and 2."""
    corners = np.vstack(rings)
    origin, size = corners[0], float(np.hypot(*np.ptp(corners, axis=0)))
    # differences of powers along the border lose their digits far away, where it is the middle
    out: Floats = np.hypot(*(points - origin).T)
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
    """The primitive of √(h² + t²) in t."""
    size = np.abs(h)
    safe = np.where(size > 0, size, 1.0)
    bent = np.where(size > 0, h**2 * np.arcsinh(t / safe), 0.0)
    return 0.5 * (t * np.hypot(t, h) + bent)


def _least(points: Floats, rings: list[Floats], power: float) -> Floats:
    """Distances of points (n, 2) to what lies inside of an odd number of rings."""
    found = np.full(len(points), np.inf)
    odd = np.zeros(len(points), dtype=bool)
    for ring in rings:
        h, first, last, _ = _edges(points, ring)
        beyond = np.maximum(np.maximum(first, -last), 0.0)
        found = np.minimum(found, np.hypot(h, beyond).min(axis=1, initial=np.inf))
        odd ^= _inside(points, ring)
    return np.where(odd, 0.0, found) ** power


def _inside(points: Floats, ring: Floats) -> np.ndarray:
    """Whether points lie inside of a ring, by the edges that a ray to the right crosses."""
    start, end = ring, np.roll(ring, -1, axis=0)
    x, y = points[:, :1], points[:, 1:]
    crossed = (start[:, 1] > y) != (end[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = start[:, 0] + (y - start[:, 1]) / (end - start)[:, 1] * (end - start)[:, 0]
    return np.asarray((crossed & (x < at)).sum(axis=1) % 2 == 1)


def _area(ring: Floats) -> tuple[float, Floats]:
    """The area inside a ring, with a sign, and the integral of x and y over it, from the first
    corner on."""
    corner = ring - ring[0]
    after = np.roll(corner, -1, axis=0)
    across = corner[:, 0] * after[:, 1] - after[:, 0] * corner[:, 1]
    return float(0.5 * across.sum()), (across[:, None] * (corner + after)).sum(axis=0) / 6
