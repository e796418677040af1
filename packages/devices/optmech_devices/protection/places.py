"""Where domains lie in the coordinates that data have: degrees for what was made over degrees; the
mechanism that protects where nobody has made a design, the whole earth's; and draws that repeat,
bytes by a key and what is drawn for.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.number import from_above
from optmech.exact.rounding import exp_up
from optmech.exact.sampler import EachBytes
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.mesh.mesh import Mesh
from optmech.spaces.observables import data_coordinates
from optmech.spaces.sphere import is_position
from optmech_devices.packed.earth import Earth
from optmech_devices.packed.meshes import STICKY, Snap

_DIGEST = 32
_DOMAIN = b"optmech sticky 1"


class Keyed:
    """An ``EachBytes`` whose draws repeat: draw k takes its bytes from the k-th message.

    HMAC-SHA-256 (FIPS 198-1), a pseudorandom function: to whoever lacks the key, the bytes of
    different messages look like independent uniform ones, and those of one message are always the
    same. Every part of what is hashed has a fixed length but the message, which stands last.
    """

    def __init__(self, key: bytes, messages: Sequence[bytes]) -> None:
        self._key, self._messages = key, messages

    def __call__(self, which: Ints, size: int, attempt: int) -> bytes:
        """``size`` bytes for each draw in ``which``; others at every attempt."""
        blocks = -(-size // _DIGEST)
        heads = [
            _DOMAIN + attempt.to_bytes(4, "big", signed=True) + block.to_bytes(4, "big")
            for block in range(blocks)
        ]
        key, messages, digest = self._key, self._messages, hmac.digest
        if blocks == 1:
            (head,) = heads
            return b"".join(
                [digest(key, head + messages[k], "sha256")[:size] for k in which.tolist()]
            )
        return b"".join(
            b"".join(digest(key, head + messages[k], "sha256") for head in heads)[:size]
            for k in which.tolist()
        )


@record
class Centres:
    """The coordinates of reports that are too many for a table, by their numbers."""

    of: Earth

    @property
    def shape(self) -> tuple[int, int]:
        """How many there may be, and two coordinates."""
        return len(self.of.observables), 2

    def __getitem__(self, key: Any) -> Floats:
        """Coordinates by (reports, axis), or by reports, as an array of all of them has them."""
        reports, axis = key if isinstance(key, tuple) else (key, slice(None))
        return self.of.centres_of(reports)[:, axis]


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
class OnEarth(Positions):
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
    mechanism: Mechanism | Earth, max_distance: float | None, rate: float | None
) -> Positions:
    """Where a mechanism reports from; ``rate`` is the ε of one for every point, where it is
    known."""
    if isinstance(mechanism, Earth):
        return OnEarth(mechanism)
    if not isinstance(mechanism, MeshMechanism):
        return Positions(mechanism, max_distance)
    mesh = mechanism.mesh
    lattice = None if rate is None or not mesh.is_region else Snap.of(mesh, STICKY / rate)
    return Everywhere(mechanism, lattice=lattice)


def is_geographic(mechanism: Mechanism | Earth) -> bool:
    """Whether data are read as longitude and latitude in degrees."""
    return positions_of(mechanism, None, None).geographic


RADIUS, FACTOR = "1km", 4
"""Places so far apart differ by e^(ε (d + 2 snap)), where ε d is the logarithm of so many times and
snap what positions are rounded by, where nothing is said. Neither comes from the data,
so that the promise says nothing of them: a kilometre is ten minutes on foot, and who believed one
of two places as much as the other believes it five to one after a report, at most."""
_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(km|m)?\s*")
BOUGHT = "how much less a design for these data errs: optmech init {data}, then optmech solve"


def everywhere(radius: str | None = None) -> Earth:
    """Reports from everywhere on earth, for which two places ``radius`` apart, as 500m or 2km,
    differ by ``FACTOR`` and what rounding adds. Raises ProblemError on what is no length."""
    text = RADIUS if radius is None else str(radius)
    found = _LENGTH.fullmatch(text)
    if found is None or not Fraction(found[1]):
        raise ProblemError(
            f"{text[:40]!r} is no length", where="radius", remedy="Give one, as 500m or 2km"
        )
    if found[2] is None:
        raise ProblemError(
            f"{found[1]} may be metres or kilometres",
            where="radius",
            remedy=f"Give {found[1]}m or {found[1]}km",
        )
    kilometres = Fraction(found[1]) / (1000 if found[2] == "m" else 1)
    return Earth.of(f"{1 / kilometres} ln {FACTOR}")


def said(earth: Earth, radius: str | None) -> str:
    """What was taken, and why, in words."""
    number, unit = _LENGTH.fullmatch(radius or RADIUS).groups()  # type: ignore[union-attr]
    apart, kilometres = f"{number} {unit}", float(number) / (1000 if unit == "m" else 1)
    rate, snap = earth.promise.epsilon or 0.0, earth.header.snap or 0.0
    most = exp_up(np.array(rate * (kilometres + 2 * snap)))
    why = "" if radius else ": a default that says nothing of the data, --radius sets another"
    return (
        f"without a design the mechanism of the whole earth reports: {apart} apart, a report is at "
        f"most {from_above(float(most), 3)} times as likely{why}; it errs by "
        f"{earth.header.loss.packed:.3g} km on average"
    )
