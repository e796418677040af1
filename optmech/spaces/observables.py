"""Observables that are not the secrets: coarser cells, subsets, a suppression symbol.

Each function returns a ``Domain`` to be given as ``Problem(observables=...)``; ``losses`` has
the matching losses.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from optmech.base.arrays import Floats, unwrapped
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.domain_arguments import Box

__all__ = ["Subsets", "Suppressible", "coarser", "subsets", "suppressible"]
__dir__ = __all__.copy


@record
class Subsets(Domain):
    """Observables that stand for sets of elements of ``base`` (Shokri, PETS 2015, section 3.1).

    Where the base has coordinates, a subset lies at the mean of its members.

    Examples
    --------
    >>> halves = om.observables.coarser(om.Grid(1, 4), 1, 2)
    >>> halves.labels, [list(map(int, m)) for m in halves.members]
    (((0, 0), (0, 1)), [[0, 1], [2, 3]])
    """

    base: Domain = None  # type: ignore[assignment]
    members: tuple[tuple[int, ...], ...] = ()

    @checked_arguments
    def __init__(
        self, base: Domain, labels: Iterable[Hashable], members: Iterable[Iterable[int]]
    ) -> None:
        groups = tuple(tuple(group) for group in members)
        for k, group in enumerate(groups):
            if not group:
                raise ProblemError("the subset is empty", where=f"observables[{k}]")
            if not all(0 <= member < len(base) for member in group):
                raise ProblemError(
                    f"{group} are not indices of the {len(base)} elements",
                    where=f"observables[{k}]",
                    remedy=f"Indices run from 0 to {len(base) - 1}",
                )
        points = None
        if base.points is not None:
            own = [base.points[list(group)] for group in groups]
            if base.coordinates == "lonlat":
                own = [unwrapped(members, members[0]) for members in own]
            points = [members.mean(axis=0) for members in own]
        super().__init__(labels, points, base.unit, coordinates=base.coordinates)
        if len(groups) != len(self.labels):
            raise ProblemError(
                f"{len(groups)} subsets for {len(self.labels)} labels", where="observables"
            )
        vars(self).update(base=base, members=groups)

    @property
    def frame(self) -> tuple[Hashable, ...]:
        """What the coordinates of the base are measured from."""
        return self.base.frame

    @property
    def _degrees(self) -> Box | None:
        return self.base._degrees


@record
class Suppressible(Domain):
    """The observables of ``inner`` and, last, a symbol that says nothing.

    Examples
    --------
    >>> om.observables.suppressible(om.Domain(["a", "b"]), symbol="no report").labels
    ('a', 'b', 'no report')
    """

    inner: Domain = None  # type: ignore[assignment]

    @checked_arguments
    def __init__(self, inner: Domain, symbol: Hashable = "suppressed") -> None:
        super().__init__((*inner.labels, symbol))
        object.__setattr__(self, "inner", inner)

    def __repr__(self) -> str:
        return f"{self.inner!r} or {self.labels[-1]!r}"


@checked_arguments
def coarser(grid: Grid, rows: int, columns: int) -> Subsets:
    """Merge blocks of ``rows`` x ``columns`` cells; blocks at the far border may be smaller.

    Labels are the (row, column) of the block.

    Examples
    --------
    >>> om.observables.coarser(om.Grid(2, 4), rows=2, columns=2).points.tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """
    for name, value in (("rows", rows), ("columns", columns)):
        whole(value, f"coarser.{name}", least=1)
    groups: dict[Hashable, list[int]] = {}
    for k in range(len(grid)):
        row, column = divmod(k, grid.columns)
        groups.setdefault((row // rows, column // columns), []).append(k)
    return Subsets(grid, groups.keys(), groups.values())


@checked_arguments
def subsets(base: Domain, groups: Mapping[Hashable, Iterable[Hashable]]) -> Subsets:
    """Named subsets of ``base``: a mapping from observable label to member labels.

    Examples
    --------
    >>> wards = om.Domain(["a", "b", "c"])
    >>> om.observables.subsets(wards, {"west": ["a", "b"], "east": ["c"]}).labels
    ('west', 'east')
    """
    return Subsets(
        base,
        groups.keys(),
        [[base.index(label) for label in members] for members in groups.values()],
    )


@checked_arguments
def suppressible(inner: Domain, symbol: Hashable = "suppressed") -> Suppressible:
    """Add a suppression symbol after the observables of ``inner``.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> len(om.observables.suppressible(line))
    3
    """
    return Suppressible(inner, symbol)


def data_coordinates(domain: Domain) -> Floats | None:
    """The points of a domain as ``locate`` reads data: longitude and latitude in degrees where it
    was made over degrees, else its own, shape (n, k); NaN for what is nowhere, as a symbol for
    suppression; None where there are none at all."""
    if isinstance(domain, Suppressible):
        inner = data_coordinates(domain.inner)
        return None if inner is None else np.vstack([inner, np.full((1, inner.shape[1]), np.nan)])
    if domain.points is None:
        return None
    places = np.array(domain.points)
    if domain._degrees is not None:
        corner, scale = np.split(np.array(domain._degrees), 2)
        places = places / scale + corner
    if domain.coordinates == "lonlat" or domain.frame:
        # a region across the antimeridian may be stated by longitudes beyond 180
        places[:, 0] -= 360 * np.round(places[:, 0] / 360)
    return places
