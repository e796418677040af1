"""Losses c(s, o) beyond plain distances: to sets of elements, and with a suppression symbol.

A loss is used like a distance: called with secrets and observables it returns the S x O matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.equality import SameFields
from optmech.base.labelled import own_labels
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.number import parse_exact
from optmech.spaces.areas import Reduce, to_areas
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


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class _OverMembers:
    distance: Distance
    reduce: Reduce

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
class _OverCells:
    distance: Distance
    reduce: Reduce

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
        return to_areas(points, drawn.shapes, self.reduce, power)


@dataclass(frozen=True, eq=False)
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
        return f"{distance_name(self.distance)}^{self.exponent:g}"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        return np.asarray(self.distance(a, b) ** self.exponent)


def powered(distance: DistanceLike, exponent: float) -> Distance:
    """d(s, o) to a positive power: 2 gives the squared error."""
    return _Powered(
        as_distance(distance), float(parse_exact(exponent, where="loss.power", positive=True))
    )


def over_members(distance: DistanceLike, reduce: Reduce = "mean") -> Distance:
    """Mean, largest or smallest distance from the secret to the members of the observable."""
    if reduce not in ("mean", "max", "min"):
        raise ProblemError(f"{reduce!r} is not 'mean', 'max' or 'min'", where="loss.reduce")
    return _OverMembers(as_distance(distance), reduce)


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
    """
    if reduce not in ("mean", "max", "min"):
        raise ProblemError(f"{reduce!r} is not 'mean', 'max' or 'min'", where="loss.reduce")
    return _OverCells(as_distance(distance), reduce)


def with_suppression(loss: DistanceLike, cost: ArrayLike) -> Distance:
    """``loss`` on the ordinary observables and ``cost`` (a number or one per secret) on the
    suppression symbol."""
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


def loss_matrix(loss: object, secrets: Domain, observables: Domain, *, where: str) -> Floats:
    """The S x O matrix of a loss given as a distance or an array, checked."""
    if callable(loss):
        return evaluate(loss, secrets, observables, where=where)
    values = np.asarray(loss, dtype=np.float64)
    shape = (len(secrets), len(observables))
    if values.shape != shape:
        raise ProblemError(
            f"shape {values.shape} does not fit {shape[0]} secrets x {shape[1]} observables",
            where=where,
            remedy=f"Give an array of shape {shape}",
        )
    refuse_negative(values, where, "loss", "Losses must be >= 0; add a constant to all of them")
    return values
