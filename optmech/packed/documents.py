"""Files of every kind that is proved, and packed ones: checked and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, examined
from optmech.reading.sealed import read_sealed
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from optmech.packed.earth import Earth
    from optmech.packed.everywhere import PackedEverywhere
    from optmech.packed.load import PackedMechanism


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
def load(path: str | Path) -> Proved | PackedMechanism | PackedEverywhere | Earth:
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
    from optmech.packed.load import is_packed_file

    return load_any_packed(path) if is_packed_file(path) else Proved.load(path)


def load_any_packed(
    path: str | Path, *, signer: str | Path | None = None
) -> PackedMechanism | PackedEverywhere | Earth:
    """A packed file of any kind, also one for the whole earth. Raises what ``load_packed`` and
    ``Earth.load`` raise."""
    from optmech.packed.earth import Earth, is_earth_file
    from optmech.packed.load import load_packed

    return (Earth.load if is_earth_file(path) else load_packed)(path, signer=signer)
