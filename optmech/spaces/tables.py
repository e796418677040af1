"""Distances that files give as matrices: which of them are what their name says.

A file may call any matrix euclidean. Names that follow from labels and coordinates are computed
again; of all others nothing is said but that a matrix was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.spaces.distances import (
    Distance,
    distance_name,
    euclidean,
    evaluate,
    hamming,
    haversine,
    is_metric,
    manhattan,
)
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain

NAMED: Mapping[str, Distance] = {
    distance_name(known): known for known in (euclidean(), manhattan(), hamming(), haversine())
}
"""Distances that follow from labels and coordinates alone: what a file says of them is computed
again."""

SQUARES = "euclidean^2"
"""The name of squared Euclidean distances, as ``losses.powered`` has it."""


def _squares(a: Domain, b: Domain) -> Floats:
    return euclidean()(a, b) ** 2


LOSSES: Mapping[str, Distance] = {**NAMED, SQUARES: _squares}
"""The same of losses."""

_ROUNDING = 1e-12
_LEAST = 2.0**-960
"""Numbers below it have fewer digits than are compared, and no name."""
_NEARLY_OPPOSITE = 0.9999 * np.pi * EARTH_RADIUS_KM


@record
class _Tabulated(SameFields, ReadOnly):
    name: str
    tables: tuple[tuple[Domain, Domain, Floats], ...]
    computed: bool
    """Whether the matrices were compared with what the name says."""

    def __repr__(self) -> str:
        return f"distances.table({self.name[:60]!r})"

    def __call__(self, a: Domain, b: Domain) -> Floats:
        fitting = [
            (columns == b, values)
            for rows, columns, values in self.tables
            if rows.labels == a.labels and columns.labels == b.labels
        ]
        if fitting:
            # secrets and observables may have the same labels at other places
            return max(fitting, key=lambda found: found[0])[1]
        raise ProblemError(
            f"{self.name} was tabulated for other domains",
            where="distance",
            remedy="Use it with the domains it was made for",
        )


def table(
    name: str,
    tables: Sequence[tuple[Domain, Domain, ArrayLike]],
    known: Mapping[str, Distance] = NAMED,
) -> Distance:
    """A distance given by its matrices between pairs of domains. Raises ProblemError where the name
    is ``known``, and a matrix is not what it gives for the domains."""
    checked = [
        (a, b, finite_array(values, where="distance", ndim=2, infinite=True))
        for a, b, values in tables
    ]
    for a, b, values in checked:
        place = misnamed(name, a, b, values, known)
        if place is not None:
            raise ProblemError(
                f"is called {name}, and is not that distance of the coordinates and labels "
                f"given: see {list(place)}",
                where="distance",
                remedy="Call it a matrix, or give the coordinates that it belongs to",
            )
    return _Tabulated(name, tuple(checked), name in known)


def misnamed(
    name: str, a: Domain, b: Domain, values: Floats, known: Mapping[str, Distance] = NAMED
) -> tuple[int, int] | None:
    """A place where a matrix is not what its name says; None where all are, up to rounding, and
    for names that say nothing which could be computed again. ProblemError where the domains have
    no such distance."""
    if name not in known:
        return None
    proper = evaluate(known[name], a, b)
    if values.shape != proper.shape:
        return (0, 0)
    share = np.full(proper.shape, _ROUNDING)
    if name == "haversine":
        # an arcsine near 1 loses half of the digits
        share = np.where(proper < _NEARLY_OPPOSITE, 1e3 * _ROUNDING, 1e5 * _ROUNDING)
    lost = (np.maximum(values, proper) < _LEAST) & ((values > 0) | (proper > 0))
    off = np.argwhere((np.abs(values - proper) > share * proper) | lost)
    return (int(off[0][0]), int(off[0][1])) if len(off) else None


def distance_words(distance: object) -> str:
    """What may be said of a distance: its name where optmech computed it, or computed it again
    from the coordinates of a file; else that it is given as a matrix."""
    name = distance_name(distance)
    read, own = False, name not in (*NAMED, "matrix", "given")
    if isinstance(distance, _Tabulated):
        read, own = True, distance.computed
    if is_metric(distance) or own:
        return name
    called = "" if name in ("matrix", "given") else f", called {name!r}"
    return f"given as a matrix{called}{' in the file' if read and called else ''}"
