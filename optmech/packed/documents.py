"""Files of every kind that is proved, and packed ones: checked and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, examined
from optmech.reading.sealed import is_packed_file, read_sealed
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from optmech.packed.earth import Earth
    from optmech.packed.file import Parts
    from optmech.packed.mechanism import PackedMechanism


@checked_arguments
def check(path: str | Path) -> CheckReport:
    """Recompute every inequality, the value and the bound from a saved file alone: a design, a
    family of coupling mechanisms, or noise.

    Raises ProblemError if the file cannot be read, VerificationError if it is altered or
    malformed; what merely does not hold is reported in ``faults``.

    Examples
    --------
    >>> om.noise.optimal(epsilon=1, gap=1e-3).save("noise.json")
    >>> om.check("noise.json").passed
    True
    """
    return examined(read_sealed(path, Proved.formats), str(path))[1]


@checked_arguments
def load(path: str | Path) -> Proved | PackedMechanism | Earth:
    """What a file holds, of whichever kind it is, everything that it claims proved again.

    A design, a family of coupling mechanisms or noise is read as by its own ``load``, a packed
    mechanism as by ``om.load_packed``: such a file has no proof of its own, see
    ``om.check_packed``. A file for the whole earth has one, and is read as by ``om.Earth.load``.

    Raises
    ------
    ProblemError
        If the file cannot be read, or is of none of these kinds.
    VerificationError
        If it was altered, or does not hold what it claims.

    Examples
    --------
    >>> om.noise.optimal(epsilon=1, gap=1e-3).save("noise.json")
    >>> om.load("noise.json").epsilon
    1.0
    """
    return load_any_packed(path) if is_packed_file(path) else Proved.load(path)


def load_any_packed(path: str | Path) -> PackedMechanism | Earth:
    """A packed file of any kind, also one for the whole earth. Raises what ``load_packed`` and
    ``Earth.load`` raise."""
    from optmech.packed.earth import Earth, is_earth_file

    return (Earth.load if is_earth_file(path) else load_packed)(path)


@checked_arguments
def load_packed(path: str | Path, *, signer: str | Path | None = None) -> PackedMechanism:
    """Read a file that ``pack`` wrote: all of it is checked before anything is built from it.

    Parameters
    ----------
    signer:
        A PEM file with the Ed25519 public key that the file has to be signed with; signed files
        are read only with one.

    Raises
    ------
    ProblemError
        Where the file or the key cannot be read.
    VerificationError
        Where the file was altered, is not exactly as specified, or is not signed as it should be.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> _ = om.pack(om.solve(problem), "cells.omm")
    >>> packed = om.load_packed("cells.omm")
    >>> packed.locate((1.5, 0.2))  # the cell of a position, in km
    (0, 1)
    """
    from optmech.packed.file import decode_parts, payload_of

    return mechanism_of(decode_parts(payload_of(path, signer), str(path)))


def mechanism_of(parts: Parts) -> PackedMechanism:
    """What the parts of a file are."""
    from optmech.packed.mechanism import PackedPlaces
    from optmech.packed.regions import PackedRegion

    return (PackedPlaces if parts.mesh is None else PackedRegion)(parts)
