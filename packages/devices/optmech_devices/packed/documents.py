"""Packed files of every kind, loaded."""

from pathlib import Path

from optmech.spaces.arguments import checked_arguments
from optmech_devices.packed.earth import Earth, is_earth_file
from optmech_devices.packed.file import Parts, decode_parts, payload_of
from optmech_devices.packed.mechanism import PackedMechanism, PackedPlaces
from optmech_devices.packed.regions import PackedRegion


def load_any_packed(path: str | Path) -> PackedMechanism | Earth:
    """A packed file of any kind, also one for the whole earth. Raises what ``load_packed`` and
    ``Earth.load`` raise."""
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
    >>> packed = om.devices.load_packed("cells.omm")
    >>> packed.locate((1.5, 0.2))  # the cell of a position, in km
    (0, 1)
    """
    return mechanism_of(decode_parts(payload_of(path, signer), str(path)))


def mechanism_of(parts: Parts) -> PackedMechanism:
    """What the parts of a file are."""
    return (PackedPlaces if parts.mesh is None else PackedRegion)(parts)
