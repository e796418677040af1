"""Where domains lie in the coordinates that data have: degrees for what was made over degrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, cast, runtime_checkable

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, ends_of
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.sampler import EachBytes
from optmech.spaces.arguments import kind
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.mesh.mesh import Mesh
from optmech.spaces.observables import data_coordinates
from optmech.spaces.sphere import is_position, sines

STICKY = 0.1
"""By which log ratios may grow, ε times a diagonal, where points are snapped to repeat reports."""
_WIDEST = 90.0
"""Kilometres of a lattice's diagonal, for which arcs and chords are as good as equal."""


@kind("Give om.devices.Earth.of(…)", words="mechanism for the whole earth")
@runtime_checkable
class Anywhere(Protocol):
    """Reports from every position of the earth, by the numbers of cells, which reports have too."""

    @property
    def observables(self) -> Any:
        """The cells."""

    @property
    def fingerprint(self) -> bytes:
        """What tells it from every other."""

    def cells_of(self, positions: Floats) -> Ints:
        """The cells of positions (n, 2) in degrees."""

    def centres_of(self, cells: Ints) -> Floats:
        """Longitudes and latitudes (n, 2) of the centres of cells."""

    def draws(self, places: Ints, source: EachBytes) -> Ints:
        """A report for each cell."""


@record
class Centres:
    """The coordinates of reports that are too many for a table, by their numbers."""

    of: Anywhere

    @property
    def shape(self) -> tuple[int, int]:
        """How many there may be, and two coordinates."""
        return len(self.of.observables), 2

    def __getitem__(self, key: Any) -> Floats:
        """Coordinates by (reports, axis), or by reports, as an array of all of them has them."""
        reports, axis = key if isinstance(key, tuple) else (key, slice(None))
        return self.of.centres_of(reports)[:, axis]


@record
class Snap:
    """A lattice on which fixes of one place are one point: the distance of two of them grows by at
    most ``slack``, in the mesh's unit, km for degrees."""

    mesh: Mesh
    step: Floats
    """Of the lattice, in the mesh's coordinates."""
    slack: float

    @classmethod
    def of(cls, mesh: Mesh, slack: float) -> Self:
        """The widest whose moves add at most ``slack`` to a distance: its diagonal, where the
        region is a rectangle, whose points stay inside by themselves; twice that elsewhere, where
        the nearest point of the region is taken."""
        globe = mesh.coordinates == "lonlat"
        slack = min(slack, _WIDEST) if globe else slack
        low, high = ends_of(mesh.vertices)
        corners = np.array([low, high, [low[0], high[1]], [high[0], low[1]]]).tolist()
        boxed = all(mesh.locate_exactly(corner) is not None for corner in corners)
        # by how much a foot may be farther away than the border itself
        more = 0.0
        if not boxed and globe:
            border = mesh.border
            wide = float(np.abs(border.end - border.start).sum(axis=1).max()) * (np.pi / 180)
            more = wide * wide / 4 * EARTH_RADIUS_KM
        diagonal = slack if boxed else max(slack / 2 - more, slack / 4)
        slack = slack if boxed else 2 * (diagonal + more)
        # a little less, for rounding and for what is led inwards from the border
        side = (1 - 5e-5) * np.array([diagonal, diagonal]) / np.sqrt(2)
        if globe:
            # of longitude where a degree is longest: nowhere is the lattice's cell longer
            near = 0.0 if low[1] <= 0 <= high[1] else float(np.abs([low[1], high[1]]).min())
            degree = float(np.radians(EARTH_RADIUS_KM))
            side = side / (degree * np.array([float(sines(np.array([near]))[1][0]), 1.0]))
        return cls(mesh, side, slack)

    def __call__(self, points: Floats) -> tuple[Floats, list[bytes], Ints]:
        """The lattice's points (n, 2) for points of the region, a message for each, and numbers
        that are equal where these are. -0.0 is 0, and a longitude counts whichever way around the
        globe it is written."""
        index = self.index(self.mesh.led_around(points))
        snapped = self.points(index)
        lost = self.mesh.locate(snapped)[0] < 0
        if lost.any():
            snapped[lost] = self.mesh.nearest(snapped[lost])
        messages = [
            b"".join(part.to_bytes(8, "big", signed=True) for part in pair)
            for pair in index.tolist()
        ]
        return snapped, messages, index[:, 0] * 2**31 + index[:, 1]

    def index(self, places: Floats) -> Ints:
        """Columns and rows of the lattice next to places of the region, (n, 2): sums and products
        of float64 in one order, as other languages have them."""
        steps = np.floor((places - self.mesh.vertices.min(axis=0)) / self.step + 0.5)
        return np.asarray(np.maximum(steps, 0).astype(np.int64))

    def points(self, index: Ints) -> Floats:
        """The lattice's points, cut off at the box around the region."""
        low, high = ends_of(self.mesh.vertices)
        return np.clip(low + index * self.step, low, high)

    @property
    def shape(self) -> tuple[int, int]:
        """How many columns and rows there are."""
        columns, rows = self.index(self.mesh.vertices.max(axis=0)[None])[0].tolist()
        return columns + 1, rows + 1


class At(NamedTuple):
    """Positions that reports are drawn from."""

    draws: Callable[[EachBytes], Ints]
    """The index of an observable for each."""
    messages: Callable[[], list[bytes]]
    """What tells different places of them apart, and not equal ones."""
    visited: Ints | None
    """Numbers that are equal where places are; None where all count as different."""


@dataclass(frozen=True)
class Positions:
    """Where a mechanism reports from: the places of its secrets, by their indices."""

    mechanism: Any
    max_distance: float | None = None
    slack = 0.0
    """By how much the distance of two positions grows where reports repeat, km for degrees."""

    @property
    def dimensions(self) -> int | None:
        """Coordinates that a position has; None where there are none."""
        points = self.mechanism.secrets.points
        return None if points is None else points.shape[1]

    @property
    def geographic(self) -> bool:
        """Whether data are read as longitude and latitude in degrees."""
        secrets = self.mechanism.secrets
        return bool(secrets.coordinates == "lonlat" or secrets.frame != ())

    @property
    def listed(self) -> Domain | None:
        """The observables, where they can be counted."""
        return cast(Domain, self.mechanism.observables)

    @property
    def reports(self) -> Floats | Centres | None:
        """The observables in the coordinates of the data, (O, k); None where they have none."""
        return data_coordinates(self.mechanism.observables)

    def labelled(self) -> Domain:
        """The secrets, by their labels. Raises ProblemError where positions have none."""
        return cast(Domain, self.mechanism.secrets)

    def require_repeats(self) -> None:
        """Raise ProblemError where reports of one place would not repeat."""

    def inside(self, points: Floats) -> Bools:
        """Which positions (n, k) it reports from."""
        found = self.labelled().locate(points, max_distance=self.max_distance)
        return np.asarray(found >= 0)

    def of(self, indices: Ints) -> At:
        """Secrets, by their indices (n,)."""
        return At(
            partial(self.mechanism.draws, indices),
            lambda: [k.to_bytes(8, "big") for k in indices.tolist()],
            indices,
        )

    def at(self, points: Floats, inside: Bools, *, repeats: bool) -> At:
        """Positions (n, k); those outside count as the nearest inside."""
        return self.of(self.labelled().nearest_index(points))


@dataclass(frozen=True)
class Earth(Positions):
    """Every position of the earth, by the numbers of cells."""

    dimensions, listed, geographic = 2, None, True

    @property
    def reports(self) -> Centres:
        return Centres(self.mechanism)

    def labelled(self) -> Domain:
        raise _no_labels()

    def inside(self, points: Floats) -> Bools:
        return is_position(points, True)

    def at(self, points: Floats, inside: Bools, *, repeats: bool) -> At:
        return self.of(self.mechanism.cells_of(points))


@dataclass(frozen=True)
class Everywhere(Positions):
    """Every point of a region, on whose lattice reports repeat where its ε is known; of a line, or
    along roads."""

    lattice: Snap | None = None

    @property
    def mesh(self) -> Mesh:
        """What its points are points of."""
        return cast(Mesh, self.mechanism.mesh)

    @property
    def geographic(self) -> bool:
        return self.mesh.coordinates == "lonlat"

    @property
    def slack(self) -> float:  # type: ignore[override]
        return 0.0 if self.lattice is None else self.lattice.slack

    @property
    def dimensions(self) -> int:
        return int(self.mesh.vertices.shape[1])

    def labelled(self) -> Domain:
        raise _no_labels()

    def require_repeats(self) -> None:
        if self.lattice is not None:
            return
        if self.mesh.is_region:
            raise ProblemError(
                "reports of a mechanism for every point repeat on a lattice, whose width "
                "depends on its ε, and this one states none",
                where="key",
                remedy="Give the design itself",
            )
        raise ProblemError(
            "the design is private at every point of a line: two fixes of one place are two "
            "points, whose reports would not repeat",
            where="key",
            remedy="Leave the key out, or use a design for places",
        )

    def inside(self, points: Floats) -> Bools:
        return np.asarray(self.mechanism._holds(points))

    def at(self, points: Floats, inside: Bools, *, repeats: bool) -> At:
        if not inside.all():
            points[~inside] = self.mesh.nearest(points[~inside])
        draws = partial(self.mechanism.draws_at, points)
        if self.lattice is None:
            return At(draws, list, None)
        snapped, messages, visited = self.lattice(points)
        draws = partial(self.mechanism.draws_at, snapped) if repeats else draws
        return At(draws, lambda: messages, visited)


def _no_labels() -> ProblemError:
    return ProblemError(
        "is private at every point, and has no labels",
        where="label",
        remedy="Name the columns with the coordinates",
    )


def positions_of(
    mechanism: Mechanism | Anywhere, max_distance: float | None, rate: float | None
) -> Positions:
    """Where a mechanism reports from; ``rate`` is the ε of one for every point, where it is
    known."""
    if isinstance(mechanism, Anywhere):
        return Earth(mechanism)
    if not isinstance(mechanism, MeshMechanism):
        return Positions(mechanism, max_distance)
    mesh = mechanism.mesh
    lattice = None if rate is None or not mesh.is_region else Snap.of(mesh, STICKY / rate)
    return Everywhere(mechanism, lattice=lattice)


def is_geographic(mechanism: Mechanism | Anywhere) -> bool:
    """Whether data are read as longitude and latitude in degrees."""
    return positions_of(mechanism, None, None).geographic
